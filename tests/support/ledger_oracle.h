/* ledger_oracle.h - a second ledger that is slow and obvious, to check the real one against.
 *
 * It keeps books of its own and looks at every node, device, allocation and reservation for every
 * question; nothing is indexed, kept or guessed. It decides by the rules written in the headers of
 * src/ledger and at the top of choose.c, place.c, reserve.c and draw.c, and shares no code with
 * them. Only what a node's room is worth to the recent requests is asked of the real ledger's mix
 * (ledger_oracle_worth.c), and therefore an answer is to be asked for after the real one.
 *
 * For small clusters; its arrays are fixed. One thread. */
#ifndef ACRE_TEST_LEDGER_ORACLE_H
#define ACRE_TEST_LEDGER_ORACLE_H

#include "ledger/ledger.h"
#include "ledger/nodes.h"
#include "ledger/reservation.h"

enum {
    ORACLE_NODES_MAX = 8,
    ORACLE_NODE_DEVICES_MAX = 8,
    ORACLE_DEVICES_MAX = ORACLE_NODES_MAX * ORACLE_NODE_DEVICES_MAX,
    ORACLE_LABELS_MAX = 4,
    ORACLE_PARTS_MAX = 64,
    ORACLE_GRANTS_MAX = 512,
    ORACLE_RESERVATIONS_MAX = 512,
};

/* A kind of sharing is 0 (nobody is there) or 1 + enum acre_isolation. */
struct oracle_device {
    uint32_t node;
    uint32_t own; /* its number on its node */
    uint32_t model, vendor;
    uint32_t memory_mib, foreign_mib;
    uint32_t island;
    uint32_t step_milli;
    bool is_mig, exclusive_only;
    bool drained;
    uint32_t milli, milli_by_share, asked_mib, count, kind; /* what is taken */
};

struct oracle_node {
    uint32_t first_device, device_count;
    uint32_t cpu_milli, ram_mib;
    uint32_t cpu_free_milli, ram_free_mib;
    uint32_t labels[ORACLE_LABELS_MAX]; /* sorted */
    uint32_t label_count;
    uint32_t build; /* the first node of the same hardware and labels */
    bool drained;
};

struct oracle_grant {
    uint64_t id, owner, created_ms, expires_ms, reservation;
    uint32_t tenant;
    enum acre_isolation isolation;
    bool exclusive, pending;
    bool is_reserved; /* held by a reservation itself */
    uint32_t part_count;
    struct acre_part parts[ORACLE_PARTS_MAX];
};

struct oracle_reservation {
    uint64_t id, start_ms, end_ms, allocation;
    uint32_t user, milli;
    enum acre_isolation isolation;
    enum acre_reservation_state state;
    uint32_t device_count;
    uint32_t devices[ORACLE_DEVICES_MAX];
};

struct oracle {
    struct acre_ledger *ledger; /* the real one: for names and worth */
    enum acre_strategy strategy;
    struct acre_rules rules;
    bool counts_shares; /* states tell how many more shares a device takes */
    uint32_t next_node; /* where round robin goes on */
    uint64_t next_id, next_reservation;
    uint32_t node_count, device_count, grant_count, reservation_count, calendar_count;
    struct oracle_node nodes[ORACLE_NODES_MAX];
    struct oracle_device devices[ORACLE_DEVICES_MAX];
    struct oracle_grant grants[ORACLE_GRANTS_MAX];
    struct oracle_reservation reservations[ORACLE_RESERVATIONS_MAX];
    uint32_t calendars[ORACLE_DEVICES_MAX]; /* devices with windows ahead, as they came */
};

struct oracle *oracle_create(struct acre_ledger *ledger, const struct acre_ledger_options *options);
void oracle_destroy(struct oracle *oracle);
void oracle_add_node(struct oracle *oracle, const struct acre_node_spec *spec);

/* The answers of the real ledger: the same codes, parts and ids. */
int oracle_plan(struct oracle *oracle, const struct acre_request *request, uint64_t now_ms,
                struct acre_part *parts, uint32_t *ret_count);
int oracle_place(struct oracle *oracle, const struct acre_request *request,
                 const struct acre_part *parts, uint32_t count, uint64_t id, uint64_t now_ms,
                 uint64_t *ret_id);
int oracle_activate(struct oracle *oracle, uint64_t id);
int oracle_release(struct oracle *oracle, uint64_t id);
int oracle_extend(struct oracle *oracle, uint64_t id, uint64_t expires_ms, uint64_t now_ms);
uint32_t oracle_tick(struct oracle *oracle, uint64_t now_ms);
int oracle_reserve(struct oracle *oracle, const struct acre_reservation_spec *spec, uint64_t now_ms,
                   uint64_t *ret_id);
int oracle_cancel(struct oracle *oracle, uint64_t id);
struct oracle_grant *oracle_find(struct oracle *oracle, uint64_t id); /* NULL: none */
/* The largest share a new open-ended request could get. */
uint32_t oracle_largest_milli(const struct oracle *oracle, uint32_t device);

#endif
