/* explain.c - why nothing served a want, in one sentence with its numbers.
 *
 * From the reasons that time cannot cure to those it can: no nodes; labels; no such device; too
 * large for any one device or node; shares taken; CPU or RAM beside a free share taken; too
 * little room for a whole gang. The first that holds is the reason. Slow path: it walks the
 * shapes (never all devices) and, for a name to show, the devices of one node. */
#include "ledger/outlook.h"
#include "ledger/place.h"

#include "core/units.h"
#include "ledger/shape.h"

#include <stdio.h>

struct findings {
    uint32_t labelled;     /* profiles whose labels match */
    uint32_t most_devices; /* that can serve it, on one node, were all idle */
    uint32_t most_memory_mib;
    uint32_t most_cpu_milli, most_ram_mib; /* of one node with labels */
    bool serves_when_idle;
    /* now */
    uint32_t largest_milli; /* free on one matching device */
    uint32_t largest_mib;
    const struct shape *largest; /* where */
    uint32_t other_milli;        /* the same beside shares of another kind */
    uint32_t other_kind;
    const struct shape *other;             /* where */
    uint32_t most_fitting;                 /* devices that would take it, on one node */
    const struct shape *fitting;           /* where */
    uint32_t best_cpu_milli, best_ram_mib; /* free beside enough fitting devices */
    const struct shape *beside;
    uint64_t members;
};

static void look_at_hardware(const struct acre_ledger *ledger, const struct want *want,
                             const struct profile *profile, struct findings *findings) {
    if (!want_labels_match(ledger, want, profile)) {
        return;
    }
    findings->labelled++;
    findings->most_cpu_milli = ACRE_MAX(findings->most_cpu_milli, profile->cpu_milli);
    findings->most_ram_mib = ACRE_MAX(findings->most_ram_mib, profile->ram_mib);
    for (uint32_t i = 0; i < profile->device_count; i++) {
        findings->most_memory_mib =
            ACRE_MAX(findings->most_memory_mib, profile->slots[i].memory_mib);
    }
    struct want alone = *want;
    alone.gpus = ACRE_MIN(want->gpus, 1U);
    alone.cpu_milli = 0;
    alone.ram_mib = 0;
    uint64_t slots = 0;
    if (want_matches(ledger, &alone, profile, &slots)) {
        findings->most_devices =
            ACRE_MAX(findings->most_devices, (uint32_t)__builtin_popcountll(slots));
    }
    findings->serves_when_idle |= want_matches(ledger, want, profile, &slots);
}

static void look_at_shape(const struct acre_ledger *ledger, const struct want *want,
                          const struct shape *shape, struct findings *findings) {
    uint64_t slots;
    const struct profile *profile = ledger->profiles[shape->profile];
    if (!want_matches(ledger, want, profile, &slots)) {
        return;
    }
    uint32_t fitting = 0;
    for (; slots != 0; slots &= slots - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(slots);
        uint64_t word = shape->words[slot];
        fitting += want_fits(want, &profile->slots[slot], word);
        uint32_t kind = word_isolation(word);
        if (!want->whole && kind != 0 && kind != want->isolation + 1U) {
            if (word_room(word) > findings->other_milli) {
                findings->other_milli = word_room(word);
                findings->other_kind = kind - 1;
                findings->other = shape;
            }
            continue;
        }
        if (word_room(word) > findings->largest_milli) {
            findings->largest_milli = word_room(word);
            findings->largest = shape;
        }
        findings->largest_mib = ACRE_MAX(findings->largest_mib, word_mib(word));
    }
    if (fitting > findings->most_fitting) {
        findings->most_fitting = fitting;
        findings->fitting = shape;
    }
    if (fitting >= want->gpus) {
        bool better = findings->beside == NULL ||
                      (uint64_t)shape->cpu_free_milli + shape->ram_free_mib >
                          (uint64_t)findings->best_cpu_milli + findings->best_ram_mib;
        if (better) {
            findings->beside = shape;
            findings->best_cpu_milli = shape->cpu_free_milli;
            findings->best_ram_mib = shape->ram_free_mib;
        }
        struct room room;
        room_from_shape(ledger, shape, &room);
        uint64_t all;
        want_matches(ledger, want, profile, &all);
        findings->members += (uint64_t)shape->node_count *
                             choose_capacity(want, all, &room, ACRE_REQUEST_REPLICAS_MAX);
    }
}

static const char *node_name(const struct acre_ledger *ledger, const struct shape *shape) {
    return acre_names_text(ledger->names, ledger->nodes[shape->nodes[0]].name);
}

static int never(const struct acre_ledger *ledger, const struct want *want,
                 const struct findings *findings, struct acre_error *err) {
    if (ledger->node_count == 0) {
        return acre_fail(err, ACRE_ENOFIT, "never fits: there are no nodes; add one");
    }
    if (findings->labelled == 0) {
        return acre_fail(err, ACRE_ENOFIT,
                         "never fits: none of %u nodes has all the labels asked for; ask for fewer",
                         ledger->node_count);
    }
    if (want->gpus > 0 && findings->most_devices == 0) {
        return want->mib > findings->most_memory_mib
                   ? acre_fail(err, ACRE_ENOFIT,
                               "never fits: %u MiB of one device asked, the largest has %u MiB; "
                               "ask for less",
                               want->mib, findings->most_memory_mib)
                   : acre_fail(err, ACRE_ENOFIT,
                               "never fits: no device here is of the vendor, model and kind asked "
                               "for and takes such a share; see acre gpus");
    }
    if (want->gpus > findings->most_devices) {
        return acre_fail(err, ACRE_ENOFIT,
                         "never fits: %u devices on one node asked, no node has more than %u that "
                         "match; ask for fewer, or for more replicas of fewer",
                         want->gpus, findings->most_devices);
    }
    return acre_fail(err, ACRE_ENOFIT,
                     "never fits: %u milli-CPU and %u MiB RAM beside %u devices asked, the largest "
                     "nodes have %u and %u; ask for less",
                     want->cpu_milli, want->ram_mib, want->gpus, findings->most_cpu_milli,
                     findings->most_ram_mib);
}

/* Not one device takes it. */
static int no_device_now(const struct acre_ledger *ledger, const struct want *want,
                         const struct findings *findings, struct acre_error *err) {
    char asked[24];
    char free_share[24];
    acre_format_milli(want->milli, asked, sizeof(asked));
    if (findings->largest == NULL && findings->other == NULL) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: every matching device is full or drained; wait for a "
                         "release");
    }
    if (findings->largest == NULL) {
        acre_format_milli(findings->other_milli, free_share, sizeof(free_share));
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: largest free share is %s on %s, beside shares of isolation "
                         "%s; %s asked; ask for that isolation or wait",
                         free_share, node_name(ledger, findings->other),
                         acre_isolation_name((enum acre_isolation)findings->other_kind),
                         acre_isolation_name((enum acre_isolation)want->isolation));
    }
    acre_format_milli(findings->largest_milli, free_share, sizeof(free_share));
    const char *where = node_name(ledger, findings->largest);
    return want->mib > 0
               ? acre_fail(err, ACRE_ENOFIT,
                           "no room now: largest free share is %s on %s, largest free memory "
                           "of one device is %u MiB; %u MiB asked; ask for less or wait",
                           free_share, where, findings->largest_mib, want->mib)
               : acre_fail(err, ACRE_ENOFIT,
                           "no room now: largest free share is %s on %s; %s of one device "
                           "asked; ask for less or wait",
                           free_share, where, asked);
}

static int not_now(const struct acre_ledger *ledger, const struct want *want,
                   const struct findings *findings, struct acre_error *err) {
    if (findings->beside == NULL && want->gpus == 0) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: every matching node is drained; undrain one or wait");
    }
    if (want->gpus > 0 && findings->most_fitting == 0) {
        return no_device_now(ledger, want, findings, err);
    }
    char asked[24];
    acre_format_milli(want->milli, asked, sizeof(asked));
    if (want->gpus > findings->most_fitting) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: at most %u devices with %s free on one node (%s); %u asked; "
                         "ask for fewer or wait",
                         findings->most_fitting, asked, node_name(ledger, findings->fitting),
                         want->gpus);
    }
    if (findings->members == 0 && findings->beside != NULL) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: devices are free, but %s has %u milli-CPU and %u MiB RAM "
                         "free beside them; %u and %u asked; ask for less or wait",
                         node_name(ledger, findings->beside), findings->best_cpu_milli,
                         findings->best_ram_mib, want->cpu_milli, want->ram_mib);
    }
    return acre_fail(err, ACRE_ENOFIT,
                     "no room now: room for %llu of %u members; ask for fewer or wait",
                     (unsigned long long)findings->members, want->replicas);
}

int explain_no_fit(struct acre_ledger *ledger, const struct want *want, struct acre_error *err) {
    struct findings findings = {0};
    for (uint32_t i = 0; i < ledger->profile_count; i++) {
        look_at_hardware(ledger, want, ledger->profiles[i], &findings);
    }
    if (!findings.serves_when_idle) {
        return never(ledger, want, &findings, err);
    }
    for (uint32_t i = 0; i < shapes_limit(ledger->shapes); i++) {
        const struct shape *shape = shapes_get(ledger->shapes, i);
        if (shape != NULL && shape->node_count > 0) {
            look_at_shape(ledger, want, shape, &findings);
        }
    }
    return not_now(ledger, want, &findings, err);
}

/* Members that all nodes of this hardware, idle, would hold. */
static uint64_t members_when_idle(const struct acre_ledger *ledger, const struct want *want,
                                  uint32_t index) {
    const struct profile *profile = ledger->profiles[index];
    struct room room = {.profile = profile,
                        .profile_index = index,
                        .cpu_free_milli = profile->cpu_milli,
                        .ram_free_mib = profile->ram_mib};
    uint64_t slots;
    if (!want_matches(ledger, want, profile, &slots)) {
        return 0;
    }
    for (uint32_t i = 0; i < profile->device_count; i++) {
        struct usage idle = {.shares_left = shares_max(ledger)};
        room.words[i] = usage_word(&profile->slots[i], &idle);
    }
    uint64_t each = choose_capacity(want, slots, &room, ACRE_REQUEST_REPLICAS_MAX);
    uint64_t members = 0;
    for (uint32_t i = 0; i < ledger->node_count && each > 0; i++) {
        members += ledger->nodes[i].profile == index ? each : 0;
    }
    return members;
}

int acre_ledger_could_fit(struct acre_ledger *ledger, const struct acre_request *request,
                          struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r < 0) {
        return r;
    }
    struct findings findings = {0};
    uint64_t members = 0;
    for (uint32_t i = 0; i < ledger->profile_count; i++) {
        look_at_hardware(ledger, &want, ledger->profiles[i], &findings);
        members += members_when_idle(ledger, &want, i);
    }
    if (!findings.serves_when_idle) {
        return never(ledger, &want, &findings, err);
    }
    return members >= want.replicas
               ? 0
               : acre_fail(err, ACRE_ENOFIT,
                           "never fits: %u members asked, all nodes together hold %llu when idle; "
                           "ask for fewer",
                           want.replicas, (unsigned long long)members);
}
