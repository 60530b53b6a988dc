/* want.c - requests checked, normalised, and matched with hardware.
 *
 * Normalising: sharing off, a share of 1000, or isolation by MIG is "whole": the device (or the
 * MIG slice, which is a device of its own) alone, all of its memory. Models and labels are sorted,
 * so that their order does not make another class. The constraint sets seen so far are kept in a
 * list and found by linear search: a cluster has a handful (one per kind of job), and the search
 * is only reached by requests that have constraints at all. */
#include "ledger/want.h"

#include <stdlib.h>
#include <string.h>

/* No padding: compared as bytes. */
struct constraint {
    uint32_t vendor;
    uint32_t models[ACRE_REQUEST_MODELS_MAX];
    uint32_t labels[ACRE_REQUEST_LABELS_MAX];
};

struct constraints {
    struct constraint *sets;
    uint32_t count, capacity;
};

struct constraints *constraints_create(void) {
    return acre_calloc(1, sizeof(struct constraints));
}

void constraints_destroy(struct constraints *constraints) {
    if (constraints != NULL) {
        free(constraints->sets);
        free(constraints);
    }
}

uint64_t want_hash(const struct want *want) {
    uint64_t words[sizeof(*want) / sizeof(uint64_t)];
    memcpy(words, want, sizeof(words));
    uint64_t hash = 0;
    for (size_t i = 0; i < ACRE_COUNT(words); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Put up to the first 0 into `to` (all 0), sorted, without repeats: a few at most. */
static void copy_sorted(uint32_t *to, const uint32_t *from, size_t max) {
    size_t count = 0;
    for (size_t i = 0; i < max && from[i] != 0; i++) {
        size_t at = count;
        while (at > 0 && to[at - 1] > from[i]) {
            at--;
        }
        if (at == 0 || to[at - 1] != from[i]) {
            memmove(to + at + 1, to + at, (count - at) * sizeof(*to));
            to[at] = from[i];
            count++;
        }
    }
}

static uint32_t intern_constraint(struct constraints *constraints,
                                  const struct acre_request *request) {
    if (request->vendor == 0 && request->models[0] == 0 && request->labels[0] == 0) {
        return 0;
    }
    struct constraint set = {.vendor = request->vendor};
    copy_sorted(set.models, request->models, ACRE_REQUEST_MODELS_MAX);
    copy_sorted(set.labels, request->labels, ACRE_REQUEST_LABELS_MAX);
    for (uint32_t i = 0; i < constraints->count; i++) {
        if (memcmp(&constraints->sets[i], &set, sizeof(set)) == 0) {
            return i + 1;
        }
    }
    if (constraints->count == constraints->capacity) {
        constraints->capacity = ACRE_MAX(2 * constraints->capacity, 16U);
        constraints->sets =
            acre_realloc(constraints->sets, constraints->capacity, sizeof(*constraints->sets));
    }
    constraints->sets[constraints->count++] = set;
    return constraints->count;
}

static int check_ranges(const struct acre_request *request, struct acre_error *err) {
    const struct {
        const char *field;
        uint64_t value, min, max;
    } ranges[] = {
        {"replicas", request->replicas, 1, ACRE_REQUEST_REPLICAS_MAX},
        {"gpus", request->gpus, 0, ACRE_NODE_DEVICES_MAX},
        {"milli", request->milli, 0, 1000},
        {"mib", request->mib, 0, ACRE_LEDGER_AMOUNT_MAX},
        {"cpu_milli", request->cpu_milli, 0, ACRE_LEDGER_AMOUNT_MAX},
        {"ram_mib", request->ram_mib, 0, ACRE_LEDGER_AMOUNT_MAX},
        {"isolation", request->isolation, 0, ACRE_ISOLATION_COUNT - 1},
        {"strategy", request->strategy, 0, ACRE_STRATEGY_COUNT - 1},
    };
    for (size_t i = 0; i < ACRE_COUNT(ranges); i++) {
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
            return acre_fail(err, ACRE_EINVALID, "%s: %llu is out of range; accepted: %llu to %llu",
                             ranges[i].field, (unsigned long long)ranges[i].value,
                             (unsigned long long)ranges[i].min, (unsigned long long)ranges[i].max);
        }
    }
    return 0;
}

static int check_combination(const struct acre_request *request, struct acre_error *err) {
    if (request->gpus == 0) {
        if (request->milli > 0 || request->mib > 0) {
            return acre_fail(
                err, ACRE_EINVALID,
                "gpus: 0, but a share or memory of a GPU is given; ask for at least 1 GPU");
        }
        if (request->cpu_milli == 0 && request->ram_mib == 0) {
            return acre_fail(err, ACRE_EINVALID,
                             "the request is empty; ask for gpus, cpu_milli or ram_mib");
        }
        return 0;
    }
    if ((uint64_t)request->replicas * request->gpus > UINT16_MAX) {
        return acre_fail(
            err, ACRE_EINVALID,
            "replicas x gpus: %u x %u devices are too many; accepted: at most %d in one request",
            request->replicas, request->gpus, UINT16_MAX);
    }
    if (request->milli == 0 && request->mib == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "milli and mib are both 0; ask for a share (1 to 1000) or for memory");
    }
    return 0;
}

int want_from(struct acre_ledger *ledger, const struct acre_request *request, struct want *ret_want,
              struct acre_error *err) {
    int r = check_ranges(request, err);
    if (r == 0) {
        r = check_combination(request, err);
    }
    bool whole = request->gpus > 0 && (request->exclusive || request->milli == 1000 ||
                                       request->isolation == ACRE_ISOLATION_MIG);
    if (r == 0 && request->gpus > 0) {
        r = rules_check(&ledger->rules, request->exclusive ? 1000 : request->milli,
                        request->isolation, !whole, err);
    }
    if (r < 0) {
        return r;
    }
    enum acre_strategy strategy =
        request->strategy != ACRE_STRATEGY_DEFAULT ? request->strategy : ledger->strategy;
    *ret_want = (struct want){
        .gpus = request->gpus,
        .milli = whole ? 1000 : request->milli,
        .mib = (uint32_t)request->mib,
        .cpu_milli = (uint32_t)request->cpu_milli,
        .ram_mib = (uint32_t)request->ram_mib,
        .constraint = intern_constraint(ledger->constraints, request),
        .replicas = (uint16_t)request->replicas,
        .isolation = request->gpus > 0 ? (uint8_t)request->isolation : 0,
        .whole = whole,
        .strategy = strategy,
    };
    return 0;
}

static bool has_id(const uint32_t *ids, size_t count, uint32_t id) {
    for (size_t i = 0; i < count && ids[i] != 0; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

bool want_labels_match(const struct acre_ledger *ledger, const struct want *want,
                       const struct profile *profile) {
    ACRE_ASSERT(want->constraint <= ledger->constraints->count);
    if (want->constraint == 0) {
        return true;
    }
    const struct constraint *set = &ledger->constraints->sets[want->constraint - 1];
    for (size_t i = 0; i < ACRE_REQUEST_LABELS_MAX && set->labels[i] != 0; i++) {
        if (!has_id(profile->labels, profile->label_count, set->labels[i])) {
            return false;
        }
    }
    return true;
}

static bool slot_can_serve(const struct want *want, const struct constraint *set,
                           const struct hardware *hardware) {
    if (set != NULL &&
        ((set->vendor != 0 && set->vendor != hardware->vendor) ||
         (set->models[0] != 0 && !has_id(set->models, ACRE_REQUEST_MODELS_MAX, hardware->model)))) {
        return false;
    }
    bool is_mig = (hardware->flags & HARDWARE_MIG) != 0;
    if (is_mig ? !want->whole : want->isolation == ACRE_ISOLATION_MIG) {
        return false;
    }
    if (want->mib > hardware->memory_mib) {
        return false;
    }
    if (want->whole) {
        return true;
    }
    return (hardware->flags & HARDWARE_EXCLUSIVE_ONLY) == 0 &&
           (hardware->step_milli == 0 || want_milli_on(want, hardware) % hardware->step_milli == 0);
}

bool want_matches(const struct acre_ledger *ledger, const struct want *want,
                  const struct profile *profile, uint64_t *ret_slots) {
    if (!want_labels_match(ledger, want, profile) || want->cpu_milli > profile->cpu_milli ||
        want->ram_mib > profile->ram_mib || want->gpus > profile->device_count) {
        return false;
    }
    const struct constraint *set =
        want->constraint != 0 ? &ledger->constraints->sets[want->constraint - 1] : NULL;
    uint64_t slots = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < profile->device_count && want->gpus > 0; i++) {
        if (slot_can_serve(want, set, &profile->slots[i])) {
            slots |= UINT64_C(1) << i;
            count++;
        }
    }
    *ret_slots = slots;
    return count >= want->gpus;
}

uint64_t want_word_after(const struct want *want, const struct hardware *hardware, uint64_t word) {
    uint32_t milli = want_milli_on(want, hardware);
    uint32_t shares = word_shares(word);
    if (want->whole || word_milli(word) <= milli || shares == 1) {
        return 0;
    }
    uint32_t milli_left = word_milli(word) - milli;
    uint64_t mib_taken = want->mib;
    uint32_t room_taken = milli;
    if (hardware->memory_mib > 0) {
        if (want->mib == 0) {
            mib_taken = ((uint64_t)hardware->memory_mib * milli + 999) / 1000;
        } else {
            room_taken = (uint32_t)(((uint64_t)want->mib * 1000 + hardware->memory_mib - 1) /
                                    hardware->memory_mib);
        }
    }
    uint32_t room = word_room(word) > room_taken ? word_room(word) - room_taken : 0;
    uint32_t mib = word_mib(word) > mib_taken ? word_mib(word) - (uint32_t)mib_taken : 0;
    return word_make(milli_left, ACRE_MIN(room, milli_left), want->isolation + 1U, mib,
                     shares > 0 ? shares - 1 : 0);
}
