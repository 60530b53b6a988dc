/* class.c - judgements kept per want, brought up to date when asked.
 *
 * Judging a shape for a want is the expensive step (every distinct device state is tried), so
 * each class judges each shape once in its life. A cluster event changes one node, that is, it
 * may bring one new shape to life; a class catches up with those born since it was last asked.
 * Dead shapes are left in the heap and dropped when they reach the top; `known` has a bit per
 * shape that is in the heap, so that one that lives again is not judged twice.
 *
 * Everything starts over when the log has moved past us, or, for strategies that go by worth,
 * when the mix was frozen again (epoch). Heaps are kept for
 * the HEAPS_MAX wants used last; a want beyond that costs one look at all shapes. */
#include "ledger/class.h"

#include "core/heap.h"
#include "core/index.h"
#include "ledger/mix.h"

#include <stdlib.h>
#include <string.h>

enum {
    HEAPS_MAX = 1024, /* wants with a heap; 32 B a shape each: a queue has hundreds of requests */
};

enum match { MATCH_UNKNOWN, MATCH_NO, MATCH_YES };

struct want_class {
    struct want want;
    bool in_use;
    uint64_t last_used;
    uint32_t epoch;
    bool is_judged; /* the heap has begun */
    uint64_t log_seen;
    struct candidate *heap;
    uint32_t heap_count, heap_capacity;
    uint64_t *known; /* a bit per shape id */
    uint32_t known_words;
    uint8_t *matches; /* by profile */
    uint64_t *slots;  /* by profile */
    uint32_t profile_count;
};

struct want_classes {
    struct want_class *all;  /* HEAPS_MAX */
    struct acre_index index; /* of those in use, by want */
    uint64_t uses;
};

struct want_classes *classes_create(void) {
    struct want_classes *classes = acre_calloc(1, sizeof(*classes));
    classes->all = acre_calloc(HEAPS_MAX, sizeof(*classes->all));
    return classes;
}

static void class_finish(struct want_class *class) {
    free(class->heap);
    free(class->known);
    free(class->matches);
    free(class->slots);
    memset(class, 0, sizeof(*class));
}

void classes_destroy(struct want_classes *classes) {
    if (classes == NULL) {
        return;
    }
    for (uint32_t i = 0; i < HEAPS_MAX; i++) {
        class_finish(&classes->all[i]);
    }
    acre_index_finish(&classes->index);
    free(classes->all);
    free(classes);
}

static uint32_t class_hash(uint32_t number, const void *context) {
    return (uint32_t)want_hash(&((const struct want_classes *)context)->all[number].want);
}

static bool class_is(uint32_t number, const void *key, const void *context) {
    const struct want *want = &((const struct want_classes *)context)->all[number].want;
    return memcmp(want, key, sizeof(*want)) == 0;
}

static const struct acre_index_kind by_want = {class_hash, class_is};

/* A free class, or the one that was not used for longest. */
static struct want_class *class_add(struct want_classes *classes, const struct want *want,
                                    uint32_t hash) {
    struct want_class *class = NULL;
    for (uint32_t i = 0; i < HEAPS_MAX; i++) {
        struct want_class *other = &classes->all[i];
        if (!other->in_use) {
            class = other;
            break;
        }
        if (class == NULL || other->last_used < class->last_used) {
            class = other;
        }
    }
    uint32_t number = (uint32_t)(class - classes->all);
    if (class->in_use) {
        acre_index_remove(&by_want, &classes->index, class_hash(number, classes), number, classes);
    }
    class_finish(class);
    class->want = *want;
    class->in_use = true;
    acre_index_add(&by_want, &classes->index, hash, number, classes);
    return class;
}

struct want_class *classes_get(struct acre_ledger *ledger, const struct want *want) {
    struct want_classes *classes = ledger->classes;
    uint32_t hash = (uint32_t)want_hash(want);
    uint32_t number = acre_index_find(&by_want, &classes->index, hash, want, classes);
    struct want_class *class =
        number != ACRE_INDEX_NONE ? &classes->all[number] : class_add(classes, want, hash);
    class->last_used = ++classes->uses;
    return class;
}

const struct want *class_want(const struct want_class *class) {
    return &class->want;
}

bool class_matches(const struct acre_ledger *ledger, struct want_class *class, uint32_t profile,
                   uint64_t *ret_slots) {
    ACRE_ASSERT(profile < ledger->profile_count);
    if (profile >= class->profile_count) {
        uint32_t count = ledger->profile_count;
        class->matches = acre_realloc(class->matches, count, sizeof(*class->matches));
        class->slots = acre_realloc(class->slots, count, sizeof(*class->slots));
        memset(class->matches + class->profile_count, MATCH_UNKNOWN, count - class->profile_count);
        class->profile_count = count;
    }
    if (class->matches[profile] == MATCH_UNKNOWN) {
        bool matches =
            want_matches(ledger, &class->want, ledger->profiles[profile], &class->slots[profile]);
        class->matches[profile] = matches ? MATCH_YES : MATCH_NO;
    }
    *ret_slots = class->slots[profile];
    return class->matches[profile] == MATCH_YES;
}

static bool is_better(const void *candidate, const void *other, const void *context) {
    const struct acre_ledger *ledger = context;
    const struct candidate *a = candidate, *b = other;
    if (a->rank.islands != b->rank.islands) {
        return a->rank.islands < b->rank.islands;
    }
    if (a->rank.score != b->rank.score) {
        return a->rank.score > b->rank.score;
    }
    if (a->rank.second != b->rank.second) {
        return a->rank.second > b->rank.second;
    }
    return shape_compare(shapes_get(ledger->shapes, a->shape),
                         shapes_get(ledger->shapes, b->shape)) < 0;
}

static const struct acre_heap_kind by_rank = {sizeof(struct candidate), is_better, NULL};

static void heap_push(struct acre_ledger *ledger, struct want_class *class, struct candidate new) {
    if (class->heap_count == class->heap_capacity) {
        class->heap_capacity = ACRE_MAX(2 * class->heap_capacity, 64U);
        class->heap = acre_realloc(class->heap, class->heap_capacity, sizeof(*class->heap));
    }
    acre_heap_push(&by_rank, class->heap, &class->heap_count, &new, ledger);
}

static void forget_dead(struct acre_ledger *ledger, struct want_class *class) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < class->heap_count; i++) {
        uint32_t id = class->heap[i].shape;
        if (shapes_get(ledger->shapes, id)->node_count > 0) {
            class->heap[kept++] = class->heap[i];
        } else {
            class->known[id / 64] &= ~(UINT64_C(1) << id % 64);
        }
    }
    class->heap_count = kept;
    acre_heap_build(&by_rank, class->heap, kept, ledger);
}

void classes_forget_dead(struct acre_ledger *ledger) {
    for (uint32_t i = 0; i < HEAPS_MAX; i++) {
        if (ledger->classes->all[i].in_use) {
            forget_dead(ledger, &ledger->classes->all[i]);
        }
    }
}

/* A quick look: most shapes that cannot serve a want lack something plain, or live no more. */
static inline bool may_serve(const struct want_class *class, const struct glance *shape,
                             uint32_t id) {
    const struct want *want = &class->want;
    return shape->is_live && shape->cpu_free_milli >= want->cpu_milli &&
           shape->ram_free_mib >= want->ram_mib &&
           (want->whole
                ? shape->idle_count >= want->gpus * ACRE_MAX(want->replicas, (uint16_t)1)
                : shape->largest_milli >= (want->gpus > 0 ? ACRE_MAX(want->milli, 1U) : 0)) &&
           (class->known[id / 64] >> id % 64 & 1) == 0;
}

/* Judge one shape; a want for 0 replicas asks how many members would fit (gang.c). */
static void judge(struct acre_ledger *ledger, struct want_class *class, uint32_t id) {
    const struct shape *shape = shapes_get(ledger->shapes, id);
    uint64_t slots;
    if (!class_matches(ledger, class, shape->profile, &slots)) {
        return;
    }
    struct candidate new = {.shape = id};
    struct room room;
    room_from_shape(ledger, shape, &room);
    if (class->want.replicas == 0) {
        new.rank.score = choose_capacity(&class->want, slots, &room, ACRE_REQUEST_REPLICAS_MAX);
        if (new.rank.score <= 0) {
            return;
        }
    } else {
        bool one = class->want.replicas == 1 && class->want.gpus == 1;
        uint8_t slot = 0;
        if (!choose_devices(ledger, &class->want, slots, class->want.replicas, &room,
                            one ? &slot : NULL, &new.rank)) {
            return;
        }
        new.slot = slot;
    }
    heap_push(ledger, class, new);
    class->known[id / 64] |= UINT64_C(1) << id % 64;
}

static void start_afresh(struct acre_ledger *ledger, struct want_class *class) {
    class->heap_count = 0;
    memset(class->known, 0, class->known_words * sizeof(*class->known));
    class->is_judged = true;
    class->epoch = mix_epoch(ledger->mix);
    class->log_seen = shapes_log_end(ledger->shapes);
    const struct glance *glances = shapes_glances(ledger->shapes);
    for (uint32_t id = 0; id < shapes_limit(ledger->shapes); id++) {
        if (may_serve(class, &glances[id], id)) {
            judge(ledger, class, id);
        }
    }
}

static void catch_up(struct acre_ledger *ledger, struct want_class *class) {
    const struct shapes *shapes = ledger->shapes;
    uint32_t words = shapes_limit(shapes) / 64 + 1;
    if (words > class->known_words) {
        class->known = acre_realloc(class->known, 2 * words, sizeof(*class->known));
        memset(class->known + class->known_words, 0,
               (2 * words - class->known_words) * sizeof(*class->known));
        class->known_words = 2 * words;
    }
    bool by_worth = class->want.strategy == ACRE_STRATEGY_LEAST_WASTE && class->want.replicas > 0;
    if (!class->is_judged || (by_worth && class->epoch != mix_epoch(ledger->mix)) ||
        class->log_seen < shapes_log_begin(shapes)) {
        start_afresh(ledger, class);
        return;
    }
    const struct glance *glances = shapes_glances(shapes);
    uint32_t ids[64];
    for (uint32_t count; (count = shapes_log_read(shapes, class->log_seen, ids, 64)) > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            if (may_serve(class, &glances[ids[i]], ids[i])) {
                judge(ledger, class, ids[i]);
            }
        }
        class->log_seen += count;
    }
}

const struct candidate *class_best(struct acre_ledger *ledger, struct want_class *class) {
    catch_up(ledger, class);
    while (class->heap_count > 0) {
        uint32_t id = class->heap[0].shape;
        if (shapes_get(ledger->shapes, id)->node_count > 0) {
            return &class->heap[0];
        }
        acre_heap_remove_first(&by_rank, class->heap, &class->heap_count, ledger);
        class->known[id / 64] &= ~(UINT64_C(1) << id % 64);
    }
    return NULL;
}

const struct candidate *class_candidates(struct acre_ledger *ledger, struct want_class *class,
                                         uint32_t *ret_count) {
    catch_up(ledger, class);
    *ret_count = class->heap_count;
    return class->heap;
}

size_t classes_bytes(const struct want_classes *classes) {
    size_t bytes =
        sizeof(*classes) + HEAPS_MAX * sizeof(*classes->all) + acre_index_bytes(&classes->index);
    for (uint32_t i = 0; i < HEAPS_MAX; i++) {
        const struct want_class *class = &classes->all[i];
        bytes += class->heap_capacity * sizeof(*class->heap) +
                 class->known_words * sizeof(*class->known) +
                 class->profile_count * (sizeof(*class->matches) + sizeof(*class->slots));
    }
    return bytes;
}
