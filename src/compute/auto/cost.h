/* cost.h - what each way to run a call costs, as learned, and which is the cheapest.
 *
 * Pure: no clock, no I/O, no locks; the caller measures, and serializes calls. Sizes go into
 * buckets, four per octave. Calls whose arrays are all in memory the device can use have their own
 * buckets, because copies cost them less or nothing. */
#ifndef ACRE_COMPUTE_AUTO_COST_H
#define ACRE_COMPUTE_AUTO_COST_H

#include "core/buf.h"
#include "core/str.h"

#include <acre/auto.h>

/* How a call is run; each belongs to a way that users know. */
/* clang-format off */
#define COST_VARIANTS(X)                \
    /* variant  name       way       */ \
    X(RING,     "ring",    RING)        \
    X(GRAPH,    "graph",   GRAPH)       \
    X(MAPPED,   "mapped",  LAUNCH)      \
    X(COPIED,   "copied",  LAUNCH)      \
    X(PIECES,   "pieces",  LAUNCH)      \
    X(ONE,      "one",     CPU)         \
    X(ALL,      "all",     CPU)
/* clang-format on */

enum cost_variant {
#define X(variant, name, way) COST_##variant,
    COST_VARIANTS(X)
#undef X
        COST_VARIANTS_COUNT
};

/* What memory all arrays of a call are in. */
enum cost_memory {
    COST_MEMORY_PLAIN,
    COST_MEMORY_PINNED, /* at least */
    COST_MEMORY_MAPPED,
    COST_MEMORY_COUNT
};

enum {
    COST_SIZES = 128, /* four for each of the 32 octaves */
    COST_BUCKETS = COST_MEMORY_COUNT * COST_SIZES,
    COST_NAME_MAX = 128,
    COST_TEXT_MAX_BYTES = 1 << 18, /* all lines of the file, each at its longest, fit in half */
};

struct cost {
    double us; /* of a call; < 0: unknown */
    uint32_t tries;
    uint32_t strikes; /* measurements in a row that were far above */
    uint64_t calls;
};

struct costs {
    struct cost all[COST_BUCKETS][COST_VARIANTS_COUNT];
    uint32_t turns[COST_BUCKETS];   /* choices made since all were tried */
    uint32_t settled[COST_BUCKETS]; /* of these variants none has to be tried any more */
};

struct cost_choice {
    enum cost_variant variant;
    bool is_measured; /* tell what it cost */
    bool is_trial;    /* it is not the cheapest, as far as is known */
};

/* Whose costs they are. */
struct cost_owner {
    uint64_t key; /* of all they depend on */
    char kernel[COST_NAME_MAX], device[COST_NAME_MAX], cpu[COST_NAME_MAX]; /* for people */
};

const char *cost_variant_name(enum cost_variant variant); /* "copied" */
enum acre_way cost_variant_way(enum cost_variant variant);
/* The variants of a way, a bit each. */
uint32_t cost_way_variants(enum acre_way way);

uint32_t cost_bucket(uint32_t items, enum cost_memory memory); /* items: 1 or more */
/* The least number of items of a bucket. */
uint32_t cost_bucket_items(uint32_t bucket);

void costs_init(struct costs *costs);
/* Of the variants in `possible` (a bit each, not 0): one that was not tried enough, or the
 * cheapest; now and then the second. Counts the choice. */
struct cost_choice costs_choose(struct costs *costs, uint32_t bucket, uint32_t possible);
/* How many calls will be given to `variant` and not measured, before anything else: those may be
 * run without asking, and counted afterwards. */
uint32_t costs_free_calls(struct costs *costs, uint32_t bucket, uint32_t possible,
                          enum cost_variant variant);
/* So many calls were run: chosen, or free (which are choices too). */
void costs_count(struct costs *costs, uint32_t bucket, enum cost_variant variant, uint32_t calls,
                 bool is_free);
void costs_tell(struct costs *costs, uint32_t bucket, struct cost_choice choice, double us);
/* By octaves, ascending; those where something is known. Reasons are left empty. */
uint32_t costs_report(const struct costs *costs, struct acre_auto_cost *ret_costs, uint32_t max);

/* As text, and back: strictly. ACRE_ECORRUPT names the line; nothing is known then. */
void costs_write(const struct costs *costs, const struct cost_owner *owner, struct acre_buf *out);
int costs_read(struct acre_str text, struct cost_owner *ret_owner, struct costs *ret_costs,
               struct acre_error *err);

#endif
