/* ledger_oracle_room.h - what the parts of the oracle share: wants, states of devices, rooms.
 *
 * See ledger_oracle.h; nobody else includes this. */
#ifndef ACRE_TEST_LEDGER_ORACLE_ROOM_H
#define ACRE_TEST_LEDGER_ORACLE_ROOM_H

#include "support/ledger_oracle.h"

/* A request that was checked. */
struct oracle_want {
    const struct acre_request *request;
    enum acre_strategy strategy;
    uint32_t milli; /* 0: by memory alone */
    uint32_t kind;
    bool whole;
};

/* What a placement can depend on. All 0: the device takes nothing. */
struct oracle_state {
    uint32_t milli; /* free */
    uint32_t room;  /* free for shares without memory */
    uint32_t kind;
    uint32_t mib;    /* free */
    uint32_t shares; /* how many more; 0: not counted */
};

/* Taken of a device, now or at some other time. */
struct oracle_usage {
    uint32_t milli, milli_by_share;
    uint64_t memory_mib;
    uint32_t kind;
    uint32_t count;
};

struct oracle_slot {
    uint32_t device;
    bool can_serve; /* its hardware is what is asked for */
    struct oracle_state state;
};

/* A node on which members are tried: devices of equal hardware stand together, the freer first. */
struct oracle_room {
    uint32_t node;
    uint32_t cpu_free_milli, ram_free_mib;
    uint32_t count;
    struct oracle_slot slots[ORACLE_NODE_DEVICES_MAX];
};

/* How good a node is: the higher score, then the higher second. */
struct oracle_rank {
    double score, second;
};

int oracle_want_from(const struct oracle *oracle, const struct acre_request *request,
                     struct oracle_want *ret_want);
uint32_t oracle_shares_max(const struct oracle *oracle);

struct oracle_state oracle_state_of(const struct oracle *oracle, const struct oracle_device *device,
                                    const struct oracle_usage *usage);
struct oracle_state oracle_state_now(const struct oracle *oracle, uint32_t device);
/* The least of what is free of it from now until then, windows ahead considered. */
struct oracle_state oracle_state_until(const struct oracle *oracle, uint32_t device,
                                       uint64_t until_ms);
/* The same from an idle device and without this allocation. */
struct oracle_state oracle_state_without(const struct oracle *oracle, uint32_t device,
                                         uint64_t until_ms, uint64_t without);
/* As those see it who draw on the reservation; nothing when it is not one of its devices. */
struct oracle_state oracle_state_within(const struct oracle *oracle, uint32_t device,
                                        const struct oracle_reservation *reservation);
const struct oracle_reservation *oracle_find_reservation(const struct oracle *oracle, uint64_t id);

uint32_t oracle_milli_on(const struct oracle_want *want, const struct oracle_device *device);
bool oracle_fits(const struct oracle_want *want, const struct oracle_device *device,
                 const struct oracle_state *state);
struct oracle_state oracle_after(const struct oracle_want *want, const struct oracle_device *device,
                                 const struct oracle_state *state);

/* Can this node, idle, serve the want? */
bool oracle_node_can_serve(const struct oracle *oracle, const struct oracle_want *want,
                           uint32_t node);
/* The room of a node whose devices are in these states (in the order of its devices). */
struct oracle_room oracle_room_of(const struct oracle *oracle, const struct oracle_want *want,
                                  uint32_t node, const struct oracle_state *states);
struct oracle_room oracle_room_now(const struct oracle *oracle, const struct oracle_want *want,
                                   uint32_t node);

/* Put `replicas` members into the room; `devices` (may be NULL) are those taken, member by member.
 * False: they do not all fit. */
bool oracle_choose(const struct oracle *oracle, const struct oracle_want *want, uint32_t replicas,
                   struct oracle_room *room, uint32_t *devices, struct oracle_rank *ret_rank);
/* How many members fit into the room. */
uint32_t oracle_capacity(const struct oracle *oracle, const struct oracle_want *want,
                         const struct oracle_room *room);
/* <0: `a` is the fuller room: less GPU free in all, less CPU, less RAM, fewer devices, and so on.
 */
int oracle_compare_rooms(const struct oracle *oracle, const struct oracle_room *a,
                         const struct oracle_room *b);

/* What the room is worth to the recent requests, by the real ledger's formula. */
double oracle_worth(const struct oracle *oracle, const struct oracle_room *room);

/* Put the parts into the books or take them out again, unchecked. */
void oracle_count_part(struct oracle *oracle, const struct acre_part *part, uint32_t kind,
                       bool with_device, bool taken);
int oracle_check_parts(struct oracle *oracle, const struct acre_part *parts, uint32_t count,
                       uint32_t kind, bool exclusive, bool with_device);
struct oracle_grant *oracle_keep(struct oracle *oracle, const struct acre_part *parts,
                                 uint32_t count, uint64_t id);
void oracle_end(struct oracle *oracle, struct oracle_grant *grant);
uint32_t oracle_tick_reservations(struct oracle *oracle, uint64_t now_ms);
bool oracle_may_last(const struct oracle *oracle, const struct oracle_grant *grant,
                     uint64_t expires_ms);
int oracle_may_draw(const struct oracle *oracle, uint64_t reservation,
                    const struct acre_part *parts, uint32_t count, uint32_t kind, bool exclusive);

#endif
