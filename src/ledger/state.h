/* state.h - what the ledger is made of. Private to src/ledger.
 *
 * A node's state is canonical: its free CPU and RAM, and one word per device that says all a
 * placement can depend on (struct acre_ledger keeps the books for it). Nodes whose hardware
 * and state are equal share one `struct shape`, so that a placement is judged once per shape
 * and not once per node; see shape.h, and class.h for how the judgements are kept. */
#ifndef ACRE_LEDGER_STATE_H
#define ACRE_LEDGER_STATE_H

#include "ledger/ledger.h"
#include "ledger/nodes.h"

/* 2^31-1 MiB is 2 PiB a device or node, and 2^31-1 milli-CPU two million cores: sums over a
 * node's devices stay far inside 64 bits. */
#define ACRE_LEDGER_AMOUNT_MAX INT32_MAX
enum { ACRE_NODE_DEVICES_MAX = 64 }; /* a bit each in one word */

/* One device as a placement sees it, in one word, so that states sort, compare and hash as
 * integers. From the top: free milli (10 bits), room for shares by milli (10), isolation of the
 * shares on it (3), free MiB (31), how many more shares it takes (8; 0: not counted, see
 * acre_ledger.track_counts), zero (2). A device that takes nothing (drained, full of shares) is
 * the word 0. */
enum {
    WORD_SHARES_AT = 2,
    WORD_MIB_AT = 10,
    WORD_ISOLATION_AT = 41,
    WORD_ROOM_AT = 44,
    WORD_MILLI_AT = 54,
};

static inline uint32_t word_milli(uint64_t word) {
    return (uint32_t)(word >> WORD_MILLI_AT);
}
static inline uint32_t word_room(uint64_t word) {
    return (uint32_t)(word >> WORD_ROOM_AT) & 1023;
}
static inline uint32_t word_mib(uint64_t word) {
    return (uint32_t)(word >> WORD_MIB_AT) & INT32_MAX;
}
static inline uint32_t word_shares(uint64_t word) {
    return (uint32_t)(word >> WORD_SHARES_AT) & 255;
}
static inline uint32_t word_isolation(uint64_t word) {
    return (uint32_t)(word >> WORD_ISOLATION_AT) & 7;
}
/* `isolation` as in the word: 0 nobody is here, else 1 + enum acre_isolation. */
static inline uint64_t word_make(uint32_t milli, uint32_t room, uint32_t isolation, uint32_t mib,
                                 uint32_t shares) {
    return (uint64_t)milli << WORD_MILLI_AT | (uint64_t)room << WORD_ROOM_AT |
           (uint64_t)isolation << WORD_ISOLATION_AT | (uint64_t)mib << WORD_MIB_AT |
           (uint64_t)shares << WORD_SHARES_AT;
}

enum { DEVICE_DRAINED = 1, DEVICE_CALENDAR = 2 };
enum { HARDWARE_MIG = 1, HARDWARE_EXCLUSIVE_ONLY = 2 };

struct device {
    uint32_t name;
    uint32_t node;
    uint32_t memory_asked_mib; /* sum over the parts that asked for memory */
    uint32_t foreign_mib;      /* held by processes that are not ours */
    uint32_t reason;           /* why drained; a name */
    uint16_t milli_used;       /* sum over all parts */
    uint16_t milli_by_share;   /* of these, the parts that asked for no memory */
    uint8_t count;             /* parts */
    uint8_t isolation;         /* of the parts: 0 none here, else 1 + enum */
    uint8_t flags;
    uint8_t slot;    /* where this device stands in its node's shape */
    uint8_t at_slot; /* which device of the node stands at the slot of this one's number */
};

struct node {
    uint32_t name;
    uint32_t profile;
    uint32_t first_device;
    uint32_t cpu_free_milli;
    uint32_t ram_free_mib;
    uint32_t shape;    /* SHAPE_NONE while drained */
    uint32_t heap_pos; /* in the shape's heap of nodes */
    uint8_t device_count;
    bool drained;
};

/* The hardware of one slot. Slots of one group are interchangeable. */
struct hardware {
    uint32_t model;
    uint32_t vendor;
    uint32_t memory_mib;
    uint16_t step_milli;
    uint8_t island; /* dense, from 0 */
    uint8_t flags;
    uint8_t group_start, group_end; /* slots [start, end) */
    uint16_t zero;                  /* no padding: compared as bytes */
};

/* What nodes of one build have in common; nodes point to it by index. */
struct profile {
    uint64_t hash;
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint32_t *labels; /* sorted */
    uint32_t label_count;
    uint8_t device_count;
    uint8_t island_count;
    struct hardware slots[];
};

/* What a name means: index + 1, or 0. */
struct object {
    uint32_t node;
    uint32_t device;
};

#define SHAPE_NONE UINT32_MAX

struct constraints;
struct grants;
struct shapes;
struct want_classes;
struct mix;
struct node_order;
struct reservations;

struct acre_ledger {
    enum acre_strategy strategy;
    struct acre_rules rules;
    uint32_t after_last_used; /* node after the one used last: where round robin starts */
    bool track_counts;        /* words say how many more shares a device takes */
    void (*event)(void *context, const struct acre_ledger_event *event);
    void *event_context;
    struct acre_names *names;
    struct node *nodes;
    struct device *devices;
    struct profile **profiles;
    uint32_t node_count, node_capacity;
    uint32_t device_count, device_capacity;
    uint32_t profile_count, profile_capacity;
    struct object *object_of_name; /* by name id */
    uint32_t object_capacity;
    struct constraints *constraints; /* want.h */
    struct grants *grants;           /* grant.h: allocations by id */
    struct shapes *shapes;           /* shape.h */
    struct want_classes *classes;    /* class.h */
    struct mix *mix;                 /* mix.h */
    struct node_order *order;        /* node_order.h; NULL until a strategy walks nodes in order */
    struct reservations *reservations; /* reserve.h */
};

#endif
