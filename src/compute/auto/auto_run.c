/* auto_run.c - one automatic call: check, choose, run, measure.
 *
 * The cost model (cost.c) chooses among the variants that are possible for the size, the variant
 * (ways.c) runs, and some calls are measured. A variant that runs out of memory rests for a second
 * and another one runs. If the device fails, all its variants rest and the CPU takes over. One lock
 * is held throughout, because the variants share buffers and a stream, but not while a kernel runs
 * in the caller's thread.
 *
 * The smallest calls cost tens of nanoseconds on the CPU, less than the lock and the choice. Once
 * it is known how many calls of a bucket will go to the CPU before anything else is tried or
 * measured, they are taken from a counter instead. */
#include "compute/auto/inner.h"

#include "compute/auto/resident.h"
#include "compute/launch.h"
#include "compute/stream.h"
#include "core/clock.h"

#include <stdio.h>
#include <string.h>

enum { REST_NS = 1000000000, HOT_SHIFT = 16, HOT_MASK = 0xffff };

#define BIT(variant) (UINT32_C(1) << (variant))
#define DEVICE_VARIANTS                                                                            \
    (BIT(COST_RING) | BIT(COST_GRAPH) | BIT(COST_MAPPED) | BIT(COST_COPIED) | BIT(COST_PIECES))
#define ALL_VARIANTS (BIT(COST_VARIANTS_COUNT) - 1)

/* --- what is possible ----------------------------------------------------------------------- */

static void wake(struct acre_auto *automatic) {
    uint64_t now = acre_monotonic_ns();
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        if (now >= automatic->rests_until_ns[i]) {
            automatic->resting &= ~BIT(i);
        }
    }
}

static void rest(struct acre_auto *automatic, uint32_t variants, const char *why) {
    uint64_t until_ns = acre_monotonic_ns() + REST_NS;
    automatic->resting |= variants;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        if ((variants & automatic->present & BIT(i)) != 0) {
            automatic->rests_until_ns[i] = until_ns;
            snprintf(automatic->reason[i], sizeof(automatic->reason[i]), "%.95s", why);
        }
    }
}

uint32_t auto_possible(const struct acre_auto *automatic, uint32_t items, enum cost_memory memory) {
    uint32_t possible = automatic->present;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        bool is_direct = i == COST_MAPPED && memory == COST_MEMORY_MAPPED;
        if (items < automatic->min_items[i] || (items > automatic->max_items[i] && !is_direct)) {
            possible &= ~BIT(i);
        }
    }
    return possible;
}

void auto_why_not(const struct acre_auto *automatic, enum acre_way way, uint32_t items,
                  char *reason, size_t size) {
    uint32_t variants = cost_way_variants(way);
    uint32_t present = variants & automatic->present;
    uint32_t possible = variants & auto_possible(automatic, items, COST_MEMORY_PLAIN);
    if (present != 0 && possible == 0) {
        snprintf(reason, size, "%u items; accepted: at most %u", items,
                 automatic->max_items[__builtin_ctz(present)]);
        return;
    }
    const char *why = "";
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        bool counts = ((possible != 0 ? possible : variants) & BIT(i)) != 0;
        if (counts && automatic->reason[i][0] == '\0') {
            why = "";
            break;
        }
        why = counts ? automatic->reason[i] : why;
    }
    snprintf(reason, size, "%s", why);
}

/* --- calls that need no choice -------------------------------------------------------------- */

static bool take_hot(struct acre_auto *automatic, uint32_t bucket) {
    uint32_t seen = atomic_load_explicit(&automatic->hot[bucket], memory_order_relaxed);
    while ((seen & HOT_MASK) != 0) {
        if (atomic_compare_exchange_weak_explicit(&automatic->hot[bucket], &seen, seen - 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void drain_bucket(struct acre_auto *automatic, uint32_t bucket) {
    uint32_t hot = atomic_exchange_explicit(&automatic->hot[bucket], 0, memory_order_relaxed);
    uint32_t used = (hot >> HOT_SHIFT) - (hot & HOT_MASK);
    if (used > 0) {
        costs_count(&automatic->costs, bucket, COST_ONE, used, true);
    }
}

void auto_drain(struct acre_auto *automatic) {
    for (uint32_t i = 0; i < COST_BUCKETS; i++) {
        drain_bucket(automatic, i);
    }
}

static void heat(struct acre_auto *automatic, uint32_t bucket, uint32_t possible) {
    drain_bucket(automatic, bucket); /* another call may have heated it meanwhile */
    uint32_t calls = costs_free_calls(&automatic->costs, bucket, possible, COST_ONE);
    atomic_store_explicit(&automatic->hot[bucket], calls << HOT_SHIFT | calls,
                          memory_order_relaxed);
}

/* --- a call --------------------------------------------------------------------------------- */

static int refuse_array(const struct acre_auto *automatic, uint32_t index, const void *array,
                        struct acre_error *err) {
    const struct signature *signature = automatic->signature;
    const char *name = signature->parameters[index].name;
    return array == NULL
               ? acre_fail(err, ACRE_EINVALID, "kernel '%s': array %u '%s' is NULL",
                           signature->name, index + 1, name)
               : acre_fail(
                     err, ACRE_EINVALID,
                     "kernel '%s': array %u '%s' is at address %p; accepted: multiples of %zu",
                     signature->name, index + 1, name, array,
                     (size_t)automatic->misalignment[index] + 1);
}

static int check_call(const struct acre_auto *automatic, const struct auto_call *call,
                      uint32_t value_count, struct acre_error *err) {
    int r = auto_check(automatic, err);
    if (r < 0) {
        return r;
    }
    if (value_count != automatic->value_count || (value_count > 0 && call->values == NULL)) {
        return acre_fail(err, ACRE_EINVALID, "kernel '%s': %u values; accepted: %u",
                         automatic->signature->name, call->values == NULL ? 0 : value_count,
                         automatic->value_count);
    }
    for (uint32_t i = 0; i < value_count; i++) {
        r = launch_check_arg(automatic->signature, automatic->array_count + i, &call->values[i],
                             err);
        if (r < 0) {
            return r;
        }
    }
    if (call->items == 0) {
        return 0;
    }
    if (call->arrays == NULL) {
        return refuse_array(automatic, 0, NULL, err);
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        const void *array = call->arrays[i];
        if (array == NULL || ((uintptr_t)array & automatic->misalignment[i]) != 0) {
            return refuse_array(automatic, i, array, err);
        }
    }
    return 0;
}

/* Run it as chosen, and tell what it cost. Locked. */
static int attempt(struct acre_auto *automatic, struct cost_choice choice, uint32_t bucket,
                   const struct auto_call *call, struct acre_error *err) {
    int r = auto_prepare(automatic, choice.variant, call, err);
    if (r < 0) {
        return r;
    }
    bool is_one = choice.variant == COST_ONE;
    if (is_one) {
        pthread_mutex_unlock(&automatic->lock);
    }
    uint64_t begun_ns = choice.is_measured ? acre_monotonic_ns() : 0;
    r = auto_go(automatic, choice.variant, call, err);
    uint64_t ended_ns = choice.is_measured ? acre_monotonic_ns() : 0;
    if (is_one) {
        pthread_mutex_lock(&automatic->lock);
    }
    if (r == 0) {
        costs_count(&automatic->costs, bucket, choice.variant, 1, false);
        if (choice.is_measured) {
            costs_tell(&automatic->costs, bucket, choice, (double)(ended_ns - begun_ns) / 1e3);
            automatic->has_learned = true;
        }
    }
    return r;
}

static bool is_of_size(int result) {
    return result == ACRE_ENOMEM || result == ACRE_ELIMIT || result == ACRE_ENOFIT ||
           result == ACRE_EUNSUPPORTED;
}

static bool is_of_device(int result) {
    return result == ACRE_EUNAVAILABLE || result == ACRE_ETIMEOUT || result == ACRE_EINTERNAL ||
           result == ACRE_EIO || result == ACRE_ECONFLICT;
}

/* What need not be tried again in this call after this failure; 0: the call has failed. */
static uint32_t give_up(struct acre_auto *automatic, enum cost_variant variant, int result,
                        const struct auto_call *call, const char *why) {
    uint32_t failed = 0;
    if (is_of_size(result)) {
        failed = BIT(variant);
    } else if (is_of_device(result) && (DEVICE_VARIANTS & BIT(variant)) != 0) {
        failed = DEVICE_VARIANTS;
    } else if (is_of_device(result)) {
        failed = BIT(variant); /* the CPU's context was lost */
    }
    rest(automatic, failed, why);
    return auto_spoils(automatic, variant, call) ? 0 : failed;
}

/* Locked. */
static int run_some(struct acre_auto *automatic, uint32_t variants, const struct auto_call *call,
                    enum cost_variant *ret_variant, struct acre_error *err) {
    enum cost_memory memory = auto_memory(automatic, call);
    uint32_t bucket = cost_bucket(call->items, memory);
    uint32_t failed = 0;
    int r = 0;
    drain_bucket(automatic, bucket);
    if (automatic->resting != 0) {
        wake(automatic);
    }
    for (;;) {
        uint32_t possible = auto_possible(automatic, call->items, memory) & variants & ~failed;
        if (possible == 0) {
            return r; /* of the last one; 0: there was none */
        }
        uint32_t awake = possible & ~automatic->resting;
        possible = awake != 0 ? awake : possible;
        struct cost_choice choice = costs_choose(&automatic->costs, bucket, possible);
        struct acre_error why = {0};
        r = attempt(automatic, choice, bucket, call, &why);
        if (r == 0) {
            if (variants == ALL_VARIANTS) {
                heat(automatic, bucket, possible);
            }
            if (choice.variant != COST_RING) {
                auto_ring_pass(automatic);
            }
            automatic->reason[choice.variant][0] = '\0';
            *ret_variant = choice.variant;
            return 0;
        }
        acre_fail(err, r, "%s", why.text);
        uint32_t more = give_up(automatic, choice.variant, r, call, why.text);
        if (more == 0) {
            return r;
        }
        failed |= more;
    }
}

static int run(struct acre_auto *automatic, uint32_t variants, const struct auto_call *call,
               enum acre_way *ret_way, struct acre_error *err) {
    enum cost_variant variant = COST_VARIANTS_COUNT;
    pthread_mutex_lock(&automatic->lock);
    int r = run_some(automatic, variants, call, &variant, err);
    if (r == 0 && variant == COST_VARIANTS_COUNT) {
        enum acre_way way = cost_variant_way((enum cost_variant)__builtin_ctz(variants));
        char reason[AUTO_REASON_MAX];
        auto_why_not(automatic, way, call->items, reason, sizeof(reason));
        r = acre_fail(err, ACRE_EUNSUPPORTED, "kernel '%s' cannot run by %s: %s",
                      automatic->signature->name, acre_way_name(way), reason);
    }
    pthread_mutex_unlock(&automatic->lock);
    if (r == 0 && ret_way != NULL) {
        *ret_way = cost_variant_way(variant);
    }
    return r;
}

int acre_auto_run(struct acre_auto *automatic, uint32_t items, void *const *arrays,
                  const struct acre_arg *values, uint32_t value_count, enum acre_way *ret_way,
                  struct acre_error *err) {
    struct auto_call call = {.items = items, .arrays = arrays, .values = values};
    int r = check_call(automatic, &call, value_count, err);
    if (r < 0) {
        return r;
    }
    if (items > 0 && !take_hot(automatic, cost_bucket(items, auto_memory(automatic, &call)))) {
        return run(automatic, ALL_VARIANTS, &call, ret_way, err);
    }
    if (items > 0) {
        auto_go_one(automatic, &call);
    }
    if (ret_way != NULL) {
        *ret_way = automatic->cpu.kernel != NULL ? ACRE_WAY_CPU : ACRE_WAY_LAUNCH;
    }
    return 0;
}

int acre_auto_run_by(struct acre_auto *automatic, enum acre_way way, uint32_t items,
                     void *const *arrays, const struct acre_arg *values, uint32_t value_count,
                     struct acre_error *err) {
    if ((uint32_t)way >= ACRE_WAY_COUNT) {
        return acre_fail(err, ACRE_EINVALID, "unknown way %d; accepted: 0 to %d", (int)way,
                         ACRE_WAY_COUNT - 1);
    }
    struct auto_call call = {.items = items, .arrays = arrays, .values = values};
    int r = check_call(automatic, &call, value_count, err);
    return r < 0 || items == 0 ? r : run(automatic, cost_way_variants(way), &call, NULL, err);
}
