/* timeline.c - per node, segments of time with what is free in each; per kind, nodes by a bound.
 *
 * A node's future is a sorted array of segments; the last one has no end. Taking a place splits at
 * its two ends and subtracts between. The earliest place on one node is one sweep: a device's run
 * is how long it has had enough free; at the end of a segment all runs that are long enough are
 * looked at, and when there are as many as GPUs asked for the job starts with the latest of the
 * earliest of them.
 *
 * Sweeping all nodes for every job would be far too slow, so each kind keeps its nodes in heaps by
 * a bound: before it, the node has no room for even the easiest request of that shape (so many
 * GPUs, at least such a share, for at least so long). Room only shrinks as jobs are placed, so a
 * bound stays true, and is moved on only when its node comes to the top. A job looks at the nodes
 * whose bound is below the best time found: a few, however many nodes there are.
 *
 * Members of a gang must start together: the candidate time moves on, always by as much as is
 * certain, until enough nodes have room at once. */
#include "sched/timeline.h"

#include "core/heap.h"

#include <stdlib.h>
#include <string.h>

enum {
    WHOLE = 1000,
    LOOKS_MAX = 128,  /* nodes a job looks at once it has a place */
    GANG_STEPS = 256, /* times a gang tries; each costs a sweep of every node that could serve */
    SHARE_SHAPES = 4, /* shares of at least 0, 1/4, 1/2, 3/4 of one device */
    GPU_SHAPES = 8,   /* 1 ... 8 whole devices, and more */
    CPU_SHAPE = SHARE_SHAPES + GPU_SHAPES, /* no device at all */
    SHAPES,
    SPANS = 8,
    SEGMENTS_FIRST = 8,
};
/* A minute, and then by four: the seven spans reach from interactive work to three days. */
static const uint64_t span_ms[SPANS] = {1,       60000,    240000,   960000,
                                        3840000, 15360000, 61440000, 245760000};

struct segment {
    uint64_t start_ms; /* ends where the next one starts */
    uint32_t cpu_milli, ram_mib;
    uint16_t free_milli[]; /* by slot */
};

struct timeline_node {
    char *segments;
    uint32_t count, capacity;
    uint32_t kind;
    uint32_t stride; /* bytes of a segment */
    uint8_t slot_count;
};

struct bound {
    uint64_t before_ms; /* no room of this shape and span before */
    uint32_t node;
};
struct bound_heap {
    struct bound *bounds; /* NULL: not used yet */
    uint32_t count;
};
/* The nodes of one kind. */
struct node_pool {
    uint32_t *nodes;
    uint32_t count, capacity;
    struct bound_heap heaps[SHAPES][SPANS];
};

struct timeline {
    uint64_t now_ms;
    struct timeline_node *nodes;
    uint32_t node_count, node_capacity;
    struct node_pool *pools; /* by kind */
    uint32_t pool_count;
    struct bound *aside; /* scratch of one search */
    uint32_t aside_capacity;
    uint64_t searches;
    bool has_heaps;
};

/* What one member wants of one node. */
struct member_want {
    uint64_t slots;
    uint32_t gpus, milli, cpu_milli, ram_mib;
    uint64_t duration_ms;
};

struct timeline *timeline_create(uint64_t now_ms) {
    struct timeline *timeline = acre_calloc(1, sizeof(*timeline));
    timeline->now_ms = now_ms;
    return timeline;
}

void timeline_destroy(struct timeline *timeline) {
    if (timeline == NULL) {
        return;
    }
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        free(timeline->nodes[i].segments);
    }
    for (uint32_t i = 0; i < timeline->pool_count; i++) {
        for (unsigned heap = 0; heap < SHAPES * SPANS; heap++) {
            free(timeline->pools[i].heaps[heap / SPANS][heap % SPANS].bounds);
        }
        free(timeline->pools[i].nodes);
    }
    free(timeline->nodes);
    free(timeline->pools);
    free(timeline->aside);
    free(timeline);
}

size_t timeline_bytes(const struct timeline *timeline) {
    size_t bytes = sizeof(*timeline) + timeline->node_capacity * sizeof(struct timeline_node) +
                   timeline->pool_count * sizeof(struct node_pool) +
                   timeline->aside_capacity * sizeof(struct bound);
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        bytes += (size_t)timeline->nodes[i].capacity * timeline->nodes[i].stride;
    }
    for (uint32_t i = 0; i < timeline->pool_count; i++) {
        const struct node_pool *pool = &timeline->pools[i];
        bytes += pool->capacity * sizeof(*pool->nodes);
        for (unsigned heap = 0; heap < SHAPES * SPANS; heap++) {
            bytes += pool->heaps[heap / SPANS][heap % SPANS].count * sizeof(struct bound);
        }
    }
    return bytes;
}

uint64_t timeline_searches(const struct timeline *timeline) {
    return timeline->searches;
}

static struct segment *segment_at(const struct timeline_node *node, uint32_t index) {
    return (struct segment *)(void *)(node->segments + (size_t)index * node->stride);
}

static uint64_t end_of(const struct timeline_node *node, uint32_t index) {
    return index + 1 < node->count ? segment_at(node, index + 1)->start_ms : ACRE_TIMELINE_NEVER;
}

/* The segment this moment is in. */
static uint32_t find_segment(const struct timeline_node *node, uint64_t at_ms) {
    uint32_t low = 0, high = node->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (segment_at(node, middle)->start_ms <= at_ms) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The index of the segment that starts at this moment, made when there is none. */
static uint32_t split(struct timeline_node *node, uint64_t at_ms) {
    if (at_ms == ACRE_TIMELINE_NEVER) {
        return node->count;
    }
    uint32_t index = find_segment(node, at_ms);
    if (segment_at(node, index)->start_ms >= at_ms) {
        return index;
    }
    node->segments = acre_grow(node->segments, node->count, &node->capacity, node->stride);
    memmove(segment_at(node, index + 1), segment_at(node, index),
            (size_t)(node->count - index) * node->stride);
    node->count++;
    segment_at(node, index + 1)->start_ms = at_ms;
    return index + 1;
}

static void add_pools(struct timeline *timeline, uint32_t kind) {
    if (kind >= timeline->pool_count) {
        timeline->pools = acre_realloc(timeline->pools, kind + 1, sizeof(*timeline->pools));
        memset(timeline->pools + timeline->pool_count, 0,
               (kind + 1 - timeline->pool_count) * sizeof(*timeline->pools));
        timeline->pool_count = kind + 1;
    }
}

uint32_t timeline_add_node(struct timeline *timeline, uint32_t kind, const uint16_t *free_milli,
                           uint32_t slot_count, uint32_t cpu_milli, uint32_t ram_mib) {
    ACRE_ASSERT(slot_count <= ACRE_TIMELINE_SLOTS_MAX);
    timeline->nodes = acre_grow(timeline->nodes, timeline->node_count, &timeline->node_capacity,
                                sizeof(*timeline->nodes));
    add_pools(timeline, kind);
    struct node_pool *pool = &timeline->pools[kind];
    ACRE_ASSERT(!timeline->has_heaps); /* they have all nodes of a kind from their beginning */
    pool->nodes = acre_grow(pool->nodes, pool->count, &pool->capacity, sizeof(*pool->nodes));
    pool->nodes[pool->count++] = timeline->node_count;
    size_t stride = sizeof(struct segment) + slot_count * sizeof(uint16_t);
    struct timeline_node *node = &timeline->nodes[timeline->node_count];
    *node = (struct timeline_node){.count = 1,
                                   .capacity = SEGMENTS_FIRST,
                                   .kind = kind,
                                   .stride = (uint32_t)(stride + 7) / 8 * 8,
                                   .slot_count = (uint8_t)slot_count};
    node->segments = acre_calloc(node->capacity, node->stride);
    struct segment *segment = segment_at(node, 0);
    segment->cpu_milli = cpu_milli; /* start_ms 0: what began before now is held from now on */
    segment->ram_mib = ram_mib;
    if (slot_count > 0) {
        memcpy(segment->free_milli, free_milli, slot_count * sizeof(*free_milli));
    }
    return timeline->node_count++;
}

static uint32_t less(uint32_t have, uint32_t taken) {
    return have > taken ? have - taken : 0;
}

void timeline_occupy(struct timeline *timeline, const struct timeline_use *use) {
    ACRE_ASSERT(use->node < timeline->node_count);
    ACRE_ASSERT(use->milli <= 1000);
    struct timeline_node *node = &timeline->nodes[use->node];
    uint64_t from_ms = ACRE_MAX(use->from_ms, timeline->now_ms);
    if (use->until_ms <= from_ms) {
        return;
    }
    ACRE_ASSERT(node->slot_count == 64 || use->slots >> node->slot_count == 0);
    uint32_t first = split(node, from_ms);
    uint32_t end = split(node, use->until_ms);
    for (uint32_t i = first; i < end; i++) {
        struct segment *segment = segment_at(node, i);
        segment->cpu_milli = less(segment->cpu_milli, use->cpu_milli);
        segment->ram_mib = less(segment->ram_mib, use->ram_mib);
        for (uint64_t left = use->slots; left != 0; left &= left - 1) {
            uint16_t *milli = &segment->free_milli[__builtin_ctzll(left)];
            *milli = (uint16_t)less(*milli, use->milli);
        }
    }
}

/* The `rank`-th smallest, from 1. */
static uint64_t smallest(const uint64_t *values, uint32_t count, uint32_t rank) {
    uint64_t low = 0; /* the answer is the smallest value with at least `rank` values up to it */
    for (uint32_t taken = 0; taken < rank;) {
        uint64_t next = ACRE_TIMELINE_NEVER;
        for (uint32_t i = 0; i < count; i++) {
            next = (taken == 0 || values[i] > low) ? ACRE_MIN(next, values[i]) : next;
        }
        for (uint32_t i = 0; i < count; i++) {
            taken += values[i] == next;
        }
        low = next;
        if (next == ACRE_TIMELINE_NEVER) {
            break;
        }
    }
    return low;
}

/* The earliest time from `from_ms` on at which the node serves the want for its whole duration;
 * NEVER when that is not before `before_ms`. */
static uint64_t earliest(struct timeline *timeline, const struct timeline_node *node,
                         const struct member_want *want, uint64_t from_ms, uint64_t before_ms) {
    uint64_t runs[ACRE_TIMELINE_SLOTS_MAX]; /* since when each slot has had enough free */
    uint8_t slots[ACRE_TIMELINE_SLOTS_MAX];
    uint32_t count = 0;
    for (uint64_t left = want->slots; left != 0; left &= left - 1) {
        slots[count++] = (uint8_t)__builtin_ctzll(left);
    }
    uint32_t needed = ACRE_MAX(want->gpus, 1U);
    uint32_t tracked = want->gpus > 0 ? count : 1; /* CPU and RAM only: one run, of the node */
    if (tracked < needed) {
        return ACRE_TIMELINE_NEVER;
    }
    timeline->searches++;
    for (uint32_t k = 0; k < tracked; k++) {
        runs[k] = from_ms;
    }
    for (uint32_t i = find_segment(node, from_ms); i < node->count; i++) {
        const struct segment *segment = segment_at(node, i);
        uint64_t end_ms = end_of(node, i);
        bool is_short = segment->cpu_milli < want->cpu_milli || segment->ram_mib < want->ram_mib;
        uint32_t ready = 0;
        for (uint32_t k = 0; k < tracked; k++) {
            if (is_short || (want->gpus > 0 && segment->free_milli[slots[k]] < want->milli)) {
                runs[k] = end_ms;
            }
            ready += end_ms - runs[k] >= want->duration_ms;
        }
        if (ready >= needed) {
            uint64_t start_ms = smallest(runs, tracked, needed);
            return start_ms < before_ms ? start_ms : ACRE_TIMELINE_NEVER;
        }
        if (end_ms >= before_ms && smallest(runs, tracked, needed) >= before_ms) {
            return ACRE_TIMELINE_NEVER;
        }
    }
    return ACRE_TIMELINE_NEVER;
}

/* The least that is free in a window: of each slot, and of CPU and RAM. */
static void least_free(const struct timeline_node *node, uint64_t start_ms, uint64_t duration_ms,
                       uint16_t *ret_milli, uint32_t *ret_cpu_milli, uint32_t *ret_ram_mib) {
    uint32_t i = find_segment(node, start_ms);
    const struct segment *segment = segment_at(node, i);
    memcpy(ret_milli, segment->free_milli, node->slot_count * sizeof(*ret_milli));
    *ret_cpu_milli = segment->cpu_milli;
    *ret_ram_mib = segment->ram_mib;
    for (i++; i < node->count && segment_at(node, i)->start_ms - start_ms < duration_ms; i++) {
        segment = segment_at(node, i);
        *ret_cpu_milli = ACRE_MIN(*ret_cpu_milli, segment->cpu_milli);
        *ret_ram_mib = ACRE_MIN(*ret_ram_mib, segment->ram_mib);
        for (uint32_t k = 0; k < node->slot_count; k++) {
            ret_milli[k] = ACRE_MIN(ret_milli[k], segment->free_milli[k]);
        }
    }
}

/* The devices of one member: those with the least to spare. 0: not enough of them. */
static uint64_t pick(const struct member_want *want, const uint16_t *free_milli) {
    uint64_t picked = 0;
    for (uint32_t i = 0; i < want->gpus; i++) {
        int best = -1;
        for (uint64_t left = want->slots & ~picked; left != 0; left &= left - 1) {
            int slot = __builtin_ctzll(left);
            if (free_milli[slot] >= want->milli &&
                (best < 0 || free_milli[slot] < free_milli[best])) {
                best = slot;
            }
        }
        if (best < 0) {
            return 0;
        }
        picked |= UINT64_C(1) << best;
    }
    return picked;
}

/* Put up to `members` members on the node at this time. Returns how many found room. With `take`
 * they keep it. */
static uint32_t fill(struct timeline *timeline, uint32_t index, const struct member_want *want,
                     uint64_t start_ms, uint32_t members, bool take, struct timeline_spot *spots) {
    const struct timeline_node *node = &timeline->nodes[index];
    uint16_t free_milli[ACRE_TIMELINE_SLOTS_MAX];
    uint32_t cpu_milli, ram_mib, placed = 0;
    least_free(node, start_ms, want->duration_ms, free_milli, &cpu_milli, &ram_mib);
    for (; placed < members; placed++) {
        uint64_t slots = pick(want, free_milli);
        if ((want->gpus > 0 && slots == 0) || cpu_milli < want->cpu_milli ||
            ram_mib < want->ram_mib) {
            break;
        }
        cpu_milli -= want->cpu_milli;
        ram_mib -= want->ram_mib;
        for (uint64_t left = slots; left != 0; left &= left - 1) {
            uint16_t *milli = &free_milli[__builtin_ctzll(left)];
            *milli = (uint16_t)(*milli - want->milli);
        }
        if (!take) {
            continue;
        }
        struct timeline_use use = {
            .node = index,
            .slots = slots,
            .milli = want->milli,
            .cpu_milli = want->cpu_milli,
            .ram_mib = want->ram_mib,
            .from_ms = start_ms,
            .until_ms = start_ms + want->duration_ms,
        };
        timeline_occupy(timeline, &use);
        if (spots != NULL) {
            spots[placed] = (struct timeline_spot){index, slots};
        }
    }
    return placed;
}

static struct member_want want_of(const struct timeline_ask *ask, uint32_t kind) {
    return (struct member_want){
        .slots = ask->needs[kind].slots,
        .gpus = ask->gpus,
        .milli = ask->needs[kind].milli,
        .cpu_milli = ask->cpu_milli,
        .ram_mib = ask->ram_mib,
        .duration_ms = ask->duration_ms,
    };
}

/* The easiest request of a shape and span, of all devices of the node. */
static struct member_want easiest(const struct timeline_node *node, uint32_t shape, uint32_t span) {
    bool is_share = shape < SHARE_SHAPES;
    if (shape == CPU_SHAPE) {
        return (struct member_want){.duration_ms = span_ms[span]};
    }
    return (struct member_want){
        .slots = node->slot_count == 64 ? UINT64_MAX : (UINT64_C(1) << node->slot_count) - 1,
        .gpus = is_share ? 1 : shape - SHARE_SHAPES + 1,
        .milli = is_share ? ACRE_MAX(shape * WHOLE / SHARE_SHAPES, 1U) : WHOLE,
        .duration_ms = span_ms[span],
    };
}

static uint32_t shape_of(const struct member_want *want) {
    if (want->gpus == 0) {
        return CPU_SHAPE;
    }
    if (want->milli == WHOLE) {
        return SHARE_SHAPES + ACRE_MIN(want->gpus, (uint32_t)GPU_SHAPES) - 1;
    }
    return want->milli * SHARE_SHAPES / WHOLE;
}

static uint32_t span_of(uint64_t duration_ms) {
    uint32_t span = 0;
    while (span + 1 < SPANS && span_ms[span + 1] <= duration_ms) {
        span++;
    }
    return span;
}

static bool is_sooner(const void *a, const void *b, const void *context) {
    (void)context;
    const struct bound *x = a, *y = b;
    return x->before_ms != y->before_ms ? x->before_ms < y->before_ms : x->node < y->node;
}

static const struct acre_heap_kind by_bound = {sizeof(struct bound), is_sooner, NULL};

static struct bound_heap *heap_of(struct timeline *timeline, struct node_pool *pool, uint32_t shape,
                                  uint32_t span) {
    struct bound_heap *heap = &pool->heaps[shape][span];
    timeline->has_heaps = true;
    if (heap->bounds == NULL) {
        heap->bounds = acre_calloc(pool->count, sizeof(*heap->bounds));
        for (heap->count = 0; heap->count < pool->count; heap->count++) {
            heap->bounds[heap->count] =
                (struct bound){timeline->now_ms, pool->nodes[heap->count]}; /* sorted: a heap */
        }
    }
    return heap;
}

uint64_t timeline_earliest_on(struct timeline *timeline, uint32_t node,
                              const struct timeline_ask *ask) {
    ACRE_ASSERT(node < timeline->node_count && timeline->nodes[node].kind < ask->kind_count);
    struct member_want want = want_of(ask, timeline->nodes[node].kind);
    uint64_t from_ms = ACRE_MAX(ask->not_before_ms, timeline->now_ms);
    return earliest(timeline, &timeline->nodes[node], &want, from_ms, ACRE_TIMELINE_NEVER);
}

struct best {
    uint64_t start_ms;
    uint32_t node;
};

/* The best node of one kind for a single member, if it is better than `best`. */
static void search_pool(struct timeline *timeline, uint32_t kind, const struct member_want *want,
                        uint64_t from_ms, struct best *best) {
    struct node_pool *pool = &timeline->pools[kind];
    uint32_t shape = shape_of(want), span = span_of(want->duration_ms);
    struct bound_heap *heap = heap_of(timeline, pool, shape, span);
    if (timeline->aside_capacity < pool->count) {
        timeline->aside_capacity = pool->count;
        timeline->aside =
            acre_realloc(timeline->aside, timeline->aside_capacity, sizeof(*timeline->aside));
    }
    uint32_t looked = 0;
    while (heap->count > 0 && heap->bounds[0].before_ms < best->start_ms &&
           best->start_ms > from_ms &&
           (looked < LOOKS_MAX || best->start_ms == ACRE_TIMELINE_NEVER)) {
        struct bound top = heap->bounds[0];
        const struct timeline_node *node = &timeline->nodes[top.node];
        struct member_want easy = easiest(node, shape, span);
        uint64_t bound_ms = earliest(timeline, node, &easy, top.before_ms, ACRE_TIMELINE_NEVER);
        if (bound_ms > top.before_ms) {
            top.before_ms = bound_ms;
            acre_heap_replace(&by_bound, heap->bounds, heap->count, 0, &top, NULL);
            continue;
        }
        uint64_t start_ms =
            earliest(timeline, node, want, ACRE_MAX(bound_ms, from_ms), best->start_ms);
        if (start_ms < best->start_ms) {
            *best = (struct best){start_ms, top.node};
        }
        timeline->aside[looked++] = top;
        acre_heap_remove_first(&by_bound, heap->bounds, &heap->count, NULL);
    }
    while (looked > 0) {
        acre_heap_push(&by_bound, heap->bounds, &heap->count, &timeline->aside[--looked], NULL);
    }
}

static bool fit_one(struct timeline *timeline, const struct timeline_ask *ask,
                    struct timeline_spot *spots, uint64_t *ret_start_ms) {
    struct best best = {.start_ms = ACRE_TIMELINE_NEVER};
    uint64_t from_ms = ACRE_MAX(ask->not_before_ms, timeline->now_ms);
    for (uint32_t kind = 0; kind < ask->kind_count && kind < timeline->pool_count; kind++) {
        if (ask->needs[kind].serves && timeline->pools[kind].count > 0) {
            struct member_want want = want_of(ask, kind);
            search_pool(timeline, kind, &want, from_ms, &best);
        }
    }
    if (best.start_ms == ACRE_TIMELINE_NEVER) {
        return false;
    }
    struct member_want want = want_of(ask, timeline->nodes[best.node].kind);
    uint32_t placed = fill(timeline, best.node, &want, best.start_ms, 1, true, spots);
    ACRE_ASSERT(placed == 1);
    *ret_start_ms = best.start_ms;
    return true;
}

/* When a node may next have more members than now, and how many at most. */
struct chance {
    uint64_t at_ms;
    uint32_t members;
};

static int compare_chances(const void *left, const void *right) {
    const struct chance *a = left, *b = right;
    return (a->at_ms > b->at_ms) - (a->at_ms < b->at_ms);
}

/* One step of a gang: is there room for all members at *at_ms? If not, *at_ms moves on to the first
 * moment at which there could be. False: there never is. `first_ms` is what earlier steps found out
 * about each node: no room for a member before. */
static bool step_gang(struct timeline *timeline, const struct timeline_ask *ask,
                      struct chance *chances, uint64_t *first_ms, uint64_t *at_ms, bool *ret_fits) {
    uint32_t members = 0, chance_count = 0;
    for (uint32_t i = 0; i < timeline->node_count && members < ask->replicas; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        if (node->kind >= ask->kind_count || !ask->needs[node->kind].serves) {
            continue;
        }
        struct member_want want = want_of(ask, node->kind);
        uint32_t slots = (uint32_t)__builtin_popcountll(want.slots);
        uint32_t most = want.gpus > 0 && want.milli == WHOLE ? slots / want.gpus : ask->replicas;
        uint32_t here = 0;
        if (first_ms[i] <= *at_ms) {
            first_ms[i] = earliest(timeline, node, &want, *at_ms, ACRE_TIMELINE_NEVER);
        }
        uint64_t next_ms = first_ms[i];
        if (next_ms == *at_ms) {
            here = fill(timeline, i, &want, *at_ms, ask->replicas - members, false, NULL);
            next_ms = end_of(node, find_segment(node, *at_ms));
        }
        members += here;
        if (here < most && next_ms != ACRE_TIMELINE_NEVER) {
            chances[chance_count++] = (struct chance){next_ms, most - here};
        }
    }
    *ret_fits = members >= ask->replicas;
    if (*ret_fits) {
        return true;
    }
    qsort(chances, chance_count, sizeof(*chances), compare_chances);
    for (uint32_t i = 0; i < chance_count; i++) {
        members += ACRE_MIN(chances[i].members, ask->replicas - members);
        if (members >= ask->replicas) {
            *at_ms = chances[i].at_ms;
            return true;
        }
    }
    return false;
}

static uint64_t horizon(const struct timeline *timeline) {
    uint64_t last_ms = timeline->now_ms;
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        last_ms = ACRE_MAX(last_ms, segment_at(node, node->count - 1)->start_ms);
    }
    return last_ms;
}

static bool fit_gang(struct timeline *timeline, const struct timeline_ask *ask,
                     struct timeline_spot *spots, uint64_t *ret_start_ms) {
    struct chance *chances = acre_calloc(timeline->node_count, sizeof(*chances));
    uint64_t *first_ms = acre_calloc(timeline->node_count, sizeof(*first_ms));
    uint64_t at_ms = ACRE_MAX(ask->not_before_ms, timeline->now_ms);
    bool fits = false, possible = timeline->node_count > 0;
    for (uint32_t step = 0; possible && !fits && step < GANG_STEPS; step++) {
        possible = step_gang(timeline, ask, chances, first_ms, &at_ms, &fits);
    }
    if (possible && !fits) { /* late, but certain: when all that is known has ended */
        at_ms = ACRE_MAX(at_ms, horizon(timeline));
        possible = step_gang(timeline, ask, chances, first_ms, &at_ms, &fits);
    }
    free(chances);
    free(first_ms);
    if (!fits) {
        return false;
    }
    uint32_t placed = 0;
    for (uint32_t i = 0; i < timeline->node_count && placed < ask->replicas; i++) {
        uint32_t kind = timeline->nodes[i].kind;
        if (kind < ask->kind_count && ask->needs[kind].serves) {
            struct member_want want = want_of(ask, kind);
            placed += fill(timeline, i, &want, at_ms, ask->replicas - placed, true,
                           spots != NULL ? spots + placed : NULL);
        }
    }
    ACRE_ASSERT(placed == ask->replicas);
    *ret_start_ms = at_ms;
    return true;
}

bool timeline_fit(struct timeline *timeline, const struct timeline_ask *ask,
                  struct timeline_spot *spots, uint64_t *ret_start_ms) {
    ACRE_ASSERT(ask->duration_ms > 0 && ask->replicas > 0);
    ACRE_ASSERT(ask->gpus <= ACRE_TIMELINE_SLOTS_MAX &&
                (ask->needs != NULL || ask->kind_count == 0));
    return ask->replicas == 1 ? fit_one(timeline, ask, spots, ret_start_ms)
                              : fit_gang(timeline, ask, spots, ret_start_ms);
}
