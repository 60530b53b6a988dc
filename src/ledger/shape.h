/* shape.h - nodes in the same state are one shape, judged once.
 *
 * A shape is hardware (profile) + free CPU + free RAM + the sorted words of its devices, found
 * by hash. It keeps its nodes in a heap, lowest index first, so that equal nodes are used in
 * order. Shapes without nodes stay a while (states recur) and are swept when they outnumber the
 * others. Every shape that comes to life is appended to a log; code that keeps judgements per
 * shape (class.h) reads on from where it stopped. Private to src/ledger; core thread only. */
#ifndef ACRE_LEDGER_SHAPE_H
#define ACRE_LEDGER_SHAPE_H

#include "ledger/state.h"

struct shape {
    uint64_t hash;
    uint32_t profile;
    uint32_t cpu_free_milli;
    uint32_t ram_free_mib;
    uint32_t free_milli;    /* sum over devices */
    uint16_t largest_milli; /* free on one device */
    uint8_t idle_count;     /* devices with all of it free */
    uint8_t device_count;
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t *nodes;  /* heap of node indexes */
    uint64_t words[]; /* by slot, descending within a group */
};

/* What rules most shapes out, side by side in memory: whole shapes are scattered, and reading one
 * that is not in the cache costs more than all the rest of the look. */
struct glance {
    uint32_t cpu_free_milli;
    uint32_t ram_free_mib;
    uint16_t largest_milli;
    uint8_t idle_count;
    bool is_live; /* has nodes */
};

struct shapes *shapes_create(void);
void shapes_destroy(struct shapes *shapes);

/* Put the node under the shape of its present books (all its devices), or take it out of the
 * index when it is drained. */
void shapes_file_node(struct acre_ledger *ledger, uint32_t node);
/* The same after one device and/or CPU and RAM of the node changed: cheaper. */
void shapes_refile_device(struct acre_ledger *ledger, uint32_t node, uint32_t device);

uint32_t shapes_limit(const struct shapes *shapes);                       /* ids are below this */
const struct shape *shapes_get(const struct shapes *shapes, uint32_t id); /* NULL: unused id */

const struct glance *shapes_glances(const struct shapes *shapes); /* by id */

/* The log of shapes that came to life: positions only grow. */
uint64_t shapes_log_end(const struct shapes *shapes);
uint64_t shapes_log_begin(const struct shapes *shapes); /* older entries are gone */
/* Up to `max` entries from `position` on; how many. */
uint32_t shapes_log_read(const struct shapes *shapes, uint64_t position, uint32_t *ids,
                         uint32_t max);

/* Emptier later: by free milli, CPU, RAM, words, profile. <0, 0 (same shape), >0. */
int shape_compare(const struct shape *a, const struct shape *b);
uint64_t shapes_free_milli(const struct shapes *shapes); /* of all nodes in the index */
size_t shapes_bytes(const struct shapes *shapes);

/* What the device is. */
static inline const struct hardware *hardware_of(const struct acre_ledger *ledger,
                                                 uint32_t device) {
    const struct node *node = &ledger->nodes[ledger->devices[device].node];
    return &ledger->profiles[node->profile]->slots[ledger->devices[device].slot];
}

/* What is taken of a device, now or at some later time. */
struct usage {
    uint32_t milli;          /* by all parts */
    uint32_t milli_by_share; /* of these, by the parts that asked for no memory */
    uint64_t memory_mib;     /* by the parts that asked for memory, and by others' processes */
    uint32_t isolation;      /* as in the word */
    uint32_t shares_left;    /* how many more it takes; 0: not counted */
};
uint64_t usage_word(const struct hardware *hardware, const struct usage *usage);

/* How many shares a device takes (ALC-9); its own counter is a byte. */
static inline uint32_t shares_max(const struct acre_ledger *ledger) {
    return ACRE_MIN(ledger->rules.max_allocations_per_device, (uint32_t)UINT8_MAX);
}

/* The word of a device by its books alone, whatever is reserved ahead. */
uint64_t books_word(const struct acre_ledger *ledger, uint32_t device);
/* The word of a device: what an open-ended request may take of it. */
uint64_t device_word(const struct acre_ledger *ledger, uint32_t device);

#endif
