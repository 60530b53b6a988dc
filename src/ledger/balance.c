/* balance.c - one loop over the devices, one row per strategy.
 *
 * A strategy is a limit (which queue must be below the maximum) and a score; the loop is the same
 * for all. A node has few devices, so nothing is indexed. Comparisons are made on the doubles
 * as the formulas give them: the vectors of the originals come out bit for bit. */
#include "ledger/balance.h"

#include <inttypes.h>
#include <math.h>

static double free_memory(const struct acre_balance_load *load) {
    return load->total_mib > 0 ? (double)load->available_mib / (double)load->total_mib : 0;
}

static bool queue_below(const struct acre_balance_load *load, double max_queue) {
    return load->queue < max_queue;
}

static bool queue_within(const struct acre_balance_load *load, double max_queue) {
    return load->queue <= max_queue;
}

static bool prediction_within(const struct acre_balance_load *load, double max_queue) {
    return load->predicted_queue <= max_queue;
}

static double score_least_loaded(const struct acre_balance_load *load) {
    return 1 - load->queue;
}

static double score_weighted(const struct acre_balance_load *load) {
    return (1 - load->queue) * 0.4 + free_memory(load) * 0.3 + (1 - load->utilisation) * 0.3;
}

static double score_adaptive(const struct acre_balance_load *load) {
    double score = (1 - load->queue) * 0.3 + (1 - load->predicted_queue) * 0.3 +
                   free_memory(load) * 0.2 + (1 - load->utilisation) * 0.2 -
                   (load->trend > 0 ? 0.1 : 0);
    return ACRE_MAX(score, 0.0);
}

/* Without `score` the turn decides. */
static const struct {
    const char *name;
    bool (*is_within)(const struct acre_balance_load *load, double max_queue);
    double (*score)(const struct acre_balance_load *load);
    const char *reason;
    const char *fallback;
} strategies[ACRE_BALANCE_STRATEGY_COUNT] = {
    [ACRE_BALANCE_ROUND_ROBIN] = {"round-robin", NULL, NULL, "next in turn",
                                  "every device is under back-pressure or too full"},
    [ACRE_BALANCE_LEAST_LOADED] = {"least-loaded", queue_below, score_least_loaded,
                                   "least loaded device",
                                   "no device is below the utilization threshold"},
    [ACRE_BALANCE_WEIGHTED] = {"weighted", queue_within, score_weighted, "best weighted score",
                               "no device is within the threshold and has the memory"},
    [ACRE_BALANCE_ADAPTIVE] = {"adaptive", prediction_within, score_adaptive,
                               "best score with its trend",
                               "no device is predicted within the threshold and has the memory"},
    [ACRE_BALANCE_AFFINITY_FIRST] = {"affinity-first", queue_within, score_weighted,
                                     "best weighted score; affinity cannot be used",
                                     "no device is within the threshold and has the memory"},
};

const char *acre_balance_strategy_name(enum acre_balance_strategy strategy) {
    ACRE_ASSERT((unsigned)strategy < ACRE_BALANCE_STRATEGY_COUNT);
    return strategies[strategy].name;
}

static bool is_ratio(double value) {
    return value >= 0 && value <= 1; /* false for NaN */
}

static int check_loads(const struct acre_balance_load *loads, uint32_t count,
                       struct acre_error *err) {
    for (uint32_t i = 0; i < count; i++) {
        const struct {
            const char *field;
            double value;
        } ratios[] = {{"queue", loads[i].queue},
                      {"predicted_queue", loads[i].predicted_queue},
                      {"utilisation", loads[i].utilisation}};
        for (size_t k = 0; k < ACRE_COUNT(ratios); k++) {
            if (!is_ratio(ratios[k].value)) {
                return acre_fail(err, ACRE_EINVALID, "device %" PRIu32 ": %s %g; accepted: 0 to 1",
                                 i, ratios[k].field, ratios[k].value);
            }
        }
        if (loads[i].available_mib > loads[i].total_mib) {
            return acre_fail(err, ACRE_EINVALID,
                             "device %" PRIu32 ": available_mib %" PRIu64
                             "; accepted: at most total_mib %" PRIu64,
                             i, loads[i].available_mib, loads[i].total_mib);
        }
    }
    return 0;
}

static bool is_usable(const struct acre_balance_load *load,
                      const struct acre_balance_request *request) {
    return !load->back_pressure && load->available_mib >= request->min_mib;
}

static struct acre_balance_choice choose_in_turn(const struct acre_balance_load *loads,
                                                 uint32_t count,
                                                 const struct acre_balance_request *request,
                                                 uint32_t *cursor) {
    struct acre_balance_choice choice = {.device = ACRE_BALANCE_NO_DEVICE, .score = 0.5};
    uint32_t first = *cursor % count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t device = (first + i) % count;
        if (is_usable(&loads[device], request)) {
            if (choice.candidates == 0) {
                choice.device = device;
                *cursor = (device + 1) % count;
            }
            choice.candidates++;
        }
    }
    return choice;
}

static struct acre_balance_choice choose_by_score(const struct acre_balance_load *loads,
                                                  uint32_t count,
                                                  const struct acre_balance_request *request) {
    struct acre_balance_choice choice = {.device = ACRE_BALANCE_NO_DEVICE};
    for (uint32_t i = 0; i < count; i++) {
        if (!is_usable(&loads[i], request) ||
            !strategies[request->strategy].is_within(&loads[i], request->max_queue)) {
            continue;
        }
        double score = strategies[request->strategy].score(&loads[i]);
        if (choice.candidates == 0 || score > choice.score) {
            choice.device = i;
            choice.score = score;
        }
        choice.candidates++;
    }
    return choice;
}

int acre_balance_choose(const struct acre_balance_load *loads, uint32_t count,
                        const struct acre_balance_request *request, uint32_t *cursor,
                        struct acre_balance_choice *ret_choice, struct acre_error *err) {
    ACRE_ASSERT((unsigned)request->strategy < ACRE_BALANCE_STRATEGY_COUNT);
    if (count == 0) {
        return acre_fail(err, ACRE_EINVALID, "no devices to choose from");
    }
    if (request->affinity != ACRE_BALANCE_NO_DEVICE && request->affinity >= count) {
        return acre_fail(err, ACRE_EINVALID, "affinity %" PRIu32 "; accepted: 0 to %" PRIu32,
                         request->affinity, count - 1);
    }
    int r = check_loads(loads, count, err);
    if (r < 0) {
        return r;
    }
    if (request->affinity != ACRE_BALANCE_NO_DEVICE &&
        is_usable(&loads[request->affinity], request) &&
        queue_below(&loads[request->affinity], request->max_queue)) {
        *ret_choice = (struct acre_balance_choice){request->affinity, 1, false, 1,
                                                   "affinity: its group is on this device"};
        return 0;
    }
    struct acre_balance_choice choice = strategies[request->strategy].score == NULL
                                            ? choose_in_turn(loads, count, request, cursor)
                                            : choose_by_score(loads, count, request);
    choice.reason = strategies[request->strategy].reason;
    if (choice.candidates == 0) {
        choice = (struct acre_balance_choice){.is_fallback = true,
                                              .reason = strategies[request->strategy].fallback};
    }
    *ret_choice = choice;
    return 0;
}

static double mean(const double *values, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / count;
}

struct acre_balance_trend acre_balance_trend(const double *history, uint32_t count,
                                             double queue_now) {
    struct acre_balance_trend trend = {0, queue_now};
    if (count >= 2) {
        double older = mean(history, count / 2);
        double younger = mean(history + count / 2, count - count / 2);
        double change = younger - older;
        trend.direction = (change > 0.05) - (change < -0.05);
        trend.predicted = ACRE_MIN(ACRE_MAX(younger + change, 0.0), 1.0);
    }
    return trend;
}

double acre_balance_load_score(const struct acre_balance_load *load) {
    double used = load->total_mib > 0 ? 1 - free_memory(load) : 0;
    return load->queue * 0.4 + load->utilisation * 0.3 + used * 0.3;
}

static void measure(const struct acre_balance_load *loads, uint32_t count,
                    struct acre_balance_advice *advice) {
    double sum = 0;
    advice->max = advice->min = acre_balance_load_score(&loads[0]);
    for (uint32_t i = 0; i < count; i++) {
        double score = acre_balance_load_score(&loads[i]);
        sum += score;
        advice->max = ACRE_MAX(advice->max, score);
        advice->min = ACRE_MIN(advice->min, score);
    }
    advice->mean = sum / count;
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        double off = acre_balance_load_score(&loads[i]) - advice->mean;
        squares += off * off;
    }
    advice->deviation = sqrt(squares / count);
}

static void judge(struct acre_balance_advice *advice) {
    const struct {
        bool holds;
        enum acre_balance_urgency urgency;
        const char *reason;
    } rows[] = {
        {advice->max > 0.9, ACRE_BALANCE_URGENCY_CRITICAL, "a device is overloaded"},
        {advice->max - advice->min > 0.4, ACRE_BALANCE_URGENCY_HIGH, "large load imbalance"},
        {advice->deviation > 0.15, ACRE_BALANCE_URGENCY_MEDIUM, "moderate load imbalance"},
        {advice->deviation > 0.05, ACRE_BALANCE_URGENCY_LOW, "minor load imbalance"},
        {true, ACRE_BALANCE_URGENCY_NONE, "load is balanced"},
    };
    size_t i = 0;
    while (!rows[i].holds) {
        i++;
    }
    advice->urgency = rows[i].urgency;
    advice->reason = rows[i].reason;
    advice->rebalance = advice->urgency >= ACRE_BALANCE_URGENCY_MEDIUM;
}

/* The device after `last` in the order by load (`sign` 1: least loaded first, -1: most loaded
 * first; equal loads by number), or ACRE_BALANCE_NO_DEVICE. */
static uint32_t next_by_load(const struct acre_balance_load *loads, uint32_t count, int sign,
                             uint32_t last) {
    uint32_t next = ACRE_BALANCE_NO_DEVICE;
    double next_load = 0;
    double last_load =
        last == ACRE_BALANCE_NO_DEVICE ? 0 : sign * acre_balance_load_score(&loads[last]);
    for (uint32_t i = 0; i < count; i++) {
        double load = sign * acre_balance_load_score(&loads[i]);
        bool after =
            last == ACRE_BALANCE_NO_DEVICE || load > last_load || (load == last_load && i > last);
        if (after && (next == ACRE_BALANCE_NO_DEVICE || load < next_load)) {
            next = i;
            next_load = load;
        }
    }
    return next;
}

static uint32_t suggest(const struct acre_balance_load *loads, uint32_t count, double mean_load,
                        struct acre_balance_move *moves, uint32_t max_moves) {
    uint32_t made = 0;
    uint32_t to = ACRE_BALANCE_NO_DEVICE;
    uint32_t from = next_by_load(loads, count, -1, ACRE_BALANCE_NO_DEVICE);
    while (made < max_moves && from != ACRE_BALANCE_NO_DEVICE &&
           acre_balance_load_score(&loads[from]) > mean_load + 0.1) {
        to = next_by_load(loads, count, 1, to);
        if (acre_balance_load_score(&loads[to]) >= mean_load - 0.1) {
            to = next_by_load(loads, count, 1, ACRE_BALANCE_NO_DEVICE);
        }
        if (acre_balance_load_score(&loads[to]) >= mean_load - 0.1) {
            break; /* nobody has room */
        }
        moves[made++] = (struct acre_balance_move){
            from, to, (acre_balance_load_score(&loads[from]) - mean_load) / 2};
        from = next_by_load(loads, count, -1, from);
    }
    return made;
}

int acre_balance_advise(const struct acre_balance_load *loads, uint32_t count,
                        struct acre_balance_move *ret_moves, uint32_t max_moves,
                        struct acre_balance_advice *ret_advice, struct acre_error *err) {
    int r = check_loads(loads, count, err);
    if (r < 0) {
        return r;
    }
    struct acre_balance_advice advice = {.reason = "too few devices"};
    if (count >= 2) {
        measure(loads, count, &advice);
        judge(&advice);
    }
    if (advice.rebalance) {
        advice.improvement = (advice.max - advice.min) / 2;
    }
    if (advice.rebalance && advice.max - advice.min > 0.2) {
        advice.move_count = suggest(loads, count, advice.mean, ret_moves, max_moves);
    }
    *ret_advice = advice;
    return 0;
}
