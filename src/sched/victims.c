/* victims.c - a small exact search, then bisection for a set of which none can be spared.
 *
 * The smallest sufficient set is hard in general (it is set cover), but sets of one to three are
 * what real preemptions need, and whatever is chosen must not contain a run that is not needed.
 * So, with the candidates in order of preference:
 *
 * 1. All of them: if that is not enough, none is disturbed.
 * 2. One alone, among the first SINGLES; two, among the first PAIRS; three, among the first
 * TRIPLES. Sets of one size are tried so that the least preferred member is as preferred as can be.
 * 3. Bisection, for more: the shortest sufficient prefix of an order ends with a run that is
 *    needed; he is kept, and the shortest prefix that is enough together with those kept is sought
 *    again, until those kept are enough. As `fits` is monotone, none of them can be spared: each
 *    was needed next to a superset of the others. Done in order of size, which gives few, and in
 * order of preference as long as that gives no more: then it wins.
 *
 * So the answer is the smallest in number when a set of one, two or three is among those tried,
 * or there are at most TRIPLES candidates and three are enough. `fits` is called at most
 * 1 + SINGLES + PAIRS(PAIRS-1)/2 + TRIPLES(TRIPLES-1)(TRIPLES-2)/6 = 497 times, then at most
 * log2(4096) + 1 = 13 times for each victim of either order. */
#include "sched/victims.h"

#include "core/heap.h"

#include <stdlib.h>
#include <string.h>

enum { SINGLES = 256, PAIRS = 16, TRIPLES = 10 };

struct victim_search {
    const struct victim *candidates;
    uint32_t count;
    victims_fits *fits;
    void *context;
    bool *taken;     /* by index: the set being asked about */
    uint32_t *set;   /* the same as a list, ascending */
    uint32_t *order; /* bisection: indexes in the order they are offered */
};

static int compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* Who yields first comes first. */
static int compare_preference(const void *left, const void *right) {
    const struct victim *a = left, *b = right;
    const int by[] = {
        (int)b->over_quota - (int)a->over_quota,
        compare_u64(a->priority, b->priority),
        compare_u64(a->run_ms, b->run_ms),
        compare_u64(b->size_milli, a->size_milli),
        compare_u64(b->job, a->job),
    };
    for (size_t i = 0; i < ACRE_COUNT(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    return 0;
}

/* Is the set of `taken` enough? */
static bool enough(struct victim_search *search) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->taken[i]) {
            search->set[count++] = i;
        }
    }
    return count > 0 && search->fits(search->context, search->set, count);
}

/* The first sufficient set of `size` more members below index `limit`, its last member as early as
 * possible, then the one before it. Leaves the members taken. */
static bool choose_few(struct victim_search *search, uint32_t size, uint32_t limit) {
    if (size == 0) {
        return enough(search);
    }
    for (uint32_t last = size - 1; last < limit; last++) {
        search->taken[last] = true;
        if (choose_few(search, size - 1, last)) {
            return true;
        }
        search->taken[last] = false;
    }
    return false;
}

/* Take exactly those kept and the first `length` of the order. */
static void take_prefix(struct victim_search *search, const bool *kept, uint32_t length) {
    memcpy(search->taken, kept, search->count * sizeof(*kept));
    for (uint32_t i = 0; i < length; i++) {
        search->taken[search->order[i]] = true;
    }
}

/* Bisection along `order`; all together are known to be enough. Leaves the members taken and says
 * how many; gives up above `limit`, with `limit` + 1. */
static uint32_t choose_minimal(struct victim_search *search, uint32_t limit) {
    bool *kept = acre_calloc(search->count, sizeof(*kept));
    uint32_t kept_count = 0;
    uint32_t end = search->count; /* what is beyond is kept or not needed */
    take_prefix(search, kept, 0);
    while (kept_count <= limit && (kept_count == 0 || !enough(search))) {
        uint32_t low = 0; /* a prefix of `low` is not enough, one of `end` is */
        while (end - low > 1) {
            uint32_t middle = low + (end - low) / 2;
            take_prefix(search, kept, middle);
            if (enough(search)) {
                end = middle;
            } else {
                low = middle;
            }
        }
        ACRE_ASSERT(end > 0); /* fits() is monotone */
        end--;
        kept[search->order[end]] = true;
        kept_count++;
        take_prefix(search, kept, 0);
    }
    free(kept);
    return kept_count;
}

/* Largest first, equal ones in order of preference: heap sort, because qsort has no context. */
static bool goes_later(const void *a, const void *b, const void *context) {
    const struct victim_search *search = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t size_x = search->candidates[x].size_milli, size_y = search->candidates[y].size_milli;
    return size_x != size_y ? size_x < size_y : x > y;
}

static void order_by_size(struct victim_search *search) {
    static const struct acre_heap_kind last_first = {sizeof(uint32_t), goes_later, NULL};
    acre_heap_build(&last_first, search->order, search->count, search);
    for (uint32_t left = search->count; left > 0;) {
        uint32_t last = search->order[0];
        acre_heap_remove_first(&last_first, search->order, &left, search);
        search->order[left] = last;
    }
}

static void choose_many(struct victim_search *search) {
    for (uint32_t i = 0; i < search->count; i++) {
        search->order[i] = i;
    }
    order_by_size(search);
    uint32_t by_size = choose_minimal(search, search->count);
    bool *taken = acre_calloc(search->count, sizeof(*taken));
    memcpy(taken, search->taken, search->count * sizeof(*taken));
    for (uint32_t i = 0; i < search->count; i++) {
        search->order[i] = i;
    }
    if (choose_minimal(search, by_size) > by_size) {
        memcpy(search->taken, taken, search->count * sizeof(*taken));
    }
    free(taken);
}

uint32_t victims_choose(struct victim *candidates, uint32_t count, victims_fits *fits,
                        void *context, uint32_t *ret_chosen) {
    ACRE_ASSERT(count <= ACRE_VICTIMS_MAX);
    if (count == 0) {
        return 0;
    }
    static const uint32_t near_front[] = {SINGLES, PAIRS, TRIPLES}; /* by size - 1 */
    qsort(candidates, count, sizeof(*candidates), compare_preference);
    struct victim_search search = {
        .candidates = candidates,
        .count = count,
        .fits = fits,
        .context = context,
        .taken = acre_calloc(count, sizeof(bool)),
        .set = acre_calloc(count, sizeof(uint32_t)),
        .order = acre_calloc(count, sizeof(uint32_t)),
    };
    memset(search.taken, true, count * sizeof(*search.taken));
    bool found = enough(&search);
    uint32_t chosen = 0;
    if (found) {
        memset(search.taken, false, count * sizeof(*search.taken));
        found = false;
        for (uint32_t size = 1; !found && size <= ACRE_COUNT(near_front); size++) {
            found = choose_few(&search, size, ACRE_MIN(near_front[size - 1], count));
        }
        if (!found) {
            choose_many(&search);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (search.taken[i]) {
                ret_chosen[chosen++] = i;
            }
        }
    }
    free(search.taken);
    free(search.set);
    free(search.order);
    return chosen;
}
