/* balance.h - which device of a node takes the next piece of work, and when to move some (CAP-9).
 *
 * Pure functions over arrays of device loads; any thread. Ratios are 0..1. A device is its
 * place in the array. It decides on load only: who may hold which device is the ledger's.
 *
 *   round robin     the next device in turn; score 0.5
 *   least loaded    lowest queue below the maximum; score 1 - queue
 *   weighted        0.4 (1 - queue) + 0.3 free memory + 0.3 (1 - utilisation); queue <= maximum
 *   adaptive        0.3 (1 - queue) + 0.3 (1 - predicted) + 0.2 free memory + 0.2 (1 -
 * utilisation), 0.1 less when rising, not below 0; predicted <= maximum affinity first  as
 * weighted; every strategy takes the affinity's device (score 1) when one is given and its queue is
 * below the maximum
 *
 * Never a candidate: a device under back-pressure or with less memory free than asked for. Equal
 * scores: the lower device. No candidate at all: device 0, marked as a fallback (the caller
 * decides whether to take it or to wait). */
#ifndef ACRE_LEDGER_BALANCE_H
#define ACRE_LEDGER_BALANCE_H

#include "core/error.h"

#define ACRE_BALANCE_NO_DEVICE       UINT32_MAX
#define ACRE_BALANCE_MAX_UTILISATION 0.8 /* default maximum of the queue */

enum acre_balance_strategy {
    ACRE_BALANCE_ROUND_ROBIN,
    ACRE_BALANCE_LEAST_LOADED,
    ACRE_BALANCE_WEIGHTED,
    ACRE_BALANCE_ADAPTIVE,
    ACRE_BALANCE_AFFINITY_FIRST,
    ACRE_BALANCE_STRATEGY_COUNT
};

struct acre_balance_load {
    double queue;           /* how full its queues are */
    double predicted_queue; /* in a minute: acre_balance_trend */
    int trend;              /* -1 falling, 0, 1 rising */
    double utilisation;     /* of its compute units */
    uint64_t available_mib;
    uint64_t total_mib;
    bool back_pressure;
};

struct acre_balance_request {
    enum acre_balance_strategy strategy;
    double max_queue; /* ACRE_BALANCE_MAX_UTILISATION */
    uint64_t min_mib;
    uint32_t affinity; /* the device its group is on, or ACRE_BALANCE_NO_DEVICE */
};

struct acre_balance_choice {
    uint32_t device;
    double score;
    bool is_fallback;
    uint32_t candidates; /* devices that could have been taken */
    const char *reason;  /* static text */
};

const char *acre_balance_strategy_name(enum acre_balance_strategy strategy); /* "round-robin" */

/* `cursor` is the round-robin turn, kept by the caller, 0 at first; other strategies leave it.
 * ACRE_EINVALID: no devices, a load that is not a ratio, memory above total, or an affinity that
 * is not one of the devices. */
int acre_balance_choose(const struct acre_balance_load *loads, uint32_t count,
                        const struct acre_balance_request *request, uint32_t *cursor,
                        struct acre_balance_choice *ret_choice, struct acre_error *err);

/* Where a queue is going: the mean of the younger half of its history against the older half,
 * with a dead band of 0.05, and their difference once more as the prediction for one minute.
 * Oldest first. With fewer than two samples nothing is known: flat, and `queue_now` stays. */
struct acre_balance_trend {
    int direction;
    double predicted;
};
struct acre_balance_trend acre_balance_trend(const double *history, uint32_t count,
                                             double queue_now);

/* 0.4 queue + 0.3 utilisation + 0.3 memory in use */
double acre_balance_load_score(const struct acre_balance_load *load);

enum acre_balance_urgency {
    ACRE_BALANCE_URGENCY_NONE,
    ACRE_BALANCE_URGENCY_LOW,      /* deviation > 0.05: not worth moving */
    ACRE_BALANCE_URGENCY_MEDIUM,   /* deviation > 0.15 */
    ACRE_BALANCE_URGENCY_HIGH,     /* max - min > 0.4 */
    ACRE_BALANCE_URGENCY_CRITICAL, /* max > 0.9 */
};

struct acre_balance_move {
    uint32_t from, to;
    double reduction; /* half of what `from` is over the mean */
};

struct acre_balance_advice {
    enum acre_balance_urgency urgency;
    bool rebalance; /* medium and up */
    double max, min, mean, deviation;
    double improvement; /* half of max - min, when rebalancing */
    uint32_t move_count;
    const char *reason; /* static text */
};

/* Moves go from devices over the mean + 0.1, most loaded first, to devices under the mean - 0.1,
 * least loaded first and in turn; only when rebalancing and max - min > 0.2. At most `max_moves`
 * are written to `ret_moves` (NULL when 0). */
int acre_balance_advise(const struct acre_balance_load *loads, uint32_t count,
                        struct acre_balance_move *ret_moves, uint32_t max_moves,
                        struct acre_balance_advice *ret_advice, struct acre_error *err);

#endif
