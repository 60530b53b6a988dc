/* explain.c - why a request does not fit, in one sentence with its numbers.
 *
 * Reasons are tried in order, from those that waiting cannot fix to those it can: no nodes; labels;
 * no such device; too large for any one device or node; shares taken; CPU or RAM next to a free
 * share taken; too little room for a whole gang. The first that applies is reported. Slow path: it
 * walks the shapes (never all devices) and, for a name to show, the devices of one node. */
#include "ledger/outlook.h"
#include "ledger/place.h"

#include "core/units.h"
#include "ledger/shape.h"

#include <stdio.h>

enum { SHOWN = 32, SHOWN_BOTH = 80 }; /* bytes of a number as text, of two */

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
    uint32_t other_milli;        /* the same, next to shares of another kind */
    uint32_t other_kind;
    const struct shape *other;             /* where */
    uint32_t most_fitting;                 /* devices that would take it, on one node */
    const struct shape *fitting;           /* where */
    uint32_t best_cpu_milli, best_ram_mib; /* free next to enough fitting devices */
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

/* Two sizes to compare: "80 GiB" and "79.6 GiB", or both in MiB where rounding would hide which is
 * larger. */
static void show_sizes(uint32_t asked_mib, uint32_t there_mib, char asked[SHOWN],
                       char there[SHOWN]) {
    uint32_t apart = asked_mib > there_mib ? asked_mib - there_mib : there_mib - asked_mib;
    if (apart >= ACRE_MAX(asked_mib, there_mib) / 100) {
        acre_format_mib(asked_mib, asked, SHOWN);
        acre_format_mib(there_mib, there, SHOWN);
    } else {
        snprintf(asked, SHOWN, "%u MiB", asked_mib);
        snprintf(there, SHOWN, "%u MiB", there_mib);
    }
}

/* "4.5 CPUs and 1 GiB of RAM" asked for, "1 CPU and 256 GiB" there. */
static void show_node(const struct want *want, uint32_t cpu_milli, uint32_t ram_mib,
                      char asked[SHOWN_BOTH], char there[SHOWN_BOTH]) {
    char asked_cpu[SHOWN], asked_ram[SHOWN], cpu[SHOWN], ram[SHOWN];
    acre_format_amount(want->cpu_milli, "CPU", asked_cpu, sizeof(asked_cpu));
    acre_format_amount(cpu_milli, "CPU", cpu, sizeof(cpu));
    show_sizes(want->ram_mib, ram_mib, asked_ram, ram);
    snprintf(there, SHOWN_BOTH, "%s and %s", cpu, ram);
    if (want->cpu_milli == 0) {
        snprintf(asked, SHOWN_BOTH, "%s of RAM", asked_ram);
    } else if (want->ram_mib == 0) {
        snprintf(asked, SHOWN_BOTH, "%s", asked_cpu);
    } else {
        snprintf(asked, SHOWN_BOTH, "%s and %s of RAM", asked_cpu, asked_ram);
    }
}

/* The node itself is too small: CPU or RAM. */
static int never_on_a_node(const struct want *want, const struct findings *findings,
                           struct acre_error *err) {
    char asked[SHOWN_BOTH], there[SHOWN_BOTH], gpus[SHOWN], with[SHOWN + 8] = "";
    show_node(want, findings->most_cpu_milli, findings->most_ram_mib, asked, there);
    if (want->gpus > 0) {
        snprintf(with, sizeof(with), "%s with ",
                 acre_format_count(want->gpus, "GPU", gpus, sizeof(gpus)));
    }
    return acre_fail(err, ACRE_ENOFIT,
                     "never fits: it asks for %s%s on one node; the largest nodes have %s; ask for "
                     "less",
                     with, asked, there);
}

static int never(const struct acre_ledger *ledger, const struct want *want,
                 const struct findings *findings, struct acre_error *err) {
    char asked[SHOWN], there[SHOWN];
    if (ledger->node_count == 0) {
        return acre_fail(err, ACRE_ENOFIT, "never fits: there are no nodes; add one");
    }
    if (findings->labelled == 0) {
        return acre_fail(err, ACRE_ENOFIT,
                         "never fits: no node has all the labels it asks for; ask for fewer");
    }
    if (want->gpus > 0 && findings->most_devices == 0) {
        show_sizes(want->mib, findings->most_memory_mib, asked, there);
        return want->mib > findings->most_memory_mib
                   ? acre_fail(err, ACRE_ENOFIT,
                               "never fits: it asks for %s of GPU memory; the largest GPU has %s; "
                               "ask for less",
                               asked, there)
                   : acre_fail(err, ACRE_ENOFIT,
                               "never fits: no GPU has the vendor, model and kind it asks for and "
                               "can be shared that way; see 'acre gpus'");
    }
    if (want->gpus > findings->most_devices) {
        return acre_fail(err, ACRE_ENOFIT,
                         "never fits: it asks for %s on one node; at most %u on any one node "
                         "fit; ask for fewer, or for more nodes with fewer GPUs each",
                         acre_format_count(want->gpus, "GPU", asked, sizeof(asked)),
                         findings->most_devices);
    }
    return never_on_a_node(want, findings, err);
}

/* Not one device takes it. */
static int no_device_now(const struct acre_ledger *ledger, const struct want *want,
                         const struct findings *findings, struct acre_error *err) {
    char asked[SHOWN], free_share[SHOWN], memory[SHOWN];
    acre_format_milli(want->milli, asked, sizeof(asked));
    if (findings->largest == NULL && findings->other == NULL) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: every GPU that fits is full or drained; wait until one is "
                         "free");
    }
    if (findings->largest == NULL) {
        acre_format_milli(findings->other_milli, free_share, sizeof(free_share));
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: the largest free share is %s on %s, on a GPU shared with "
                         "isolation %s; it asks for %s; ask for that isolation or wait",
                         free_share, node_name(ledger, findings->other),
                         isolation_name((enum acre_isolation)findings->other_kind),
                         isolation_name((enum acre_isolation)want->isolation));
    }
    acre_format_milli(findings->largest_milli, free_share, sizeof(free_share));
    const char *where = node_name(ledger, findings->largest);
    if (want->mib > 0) {
        show_sizes(want->mib, findings->largest_mib, asked, memory);
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: the largest free share of a GPU is %s on %s, and the most "
                         "free memory of a GPU is %s; it asks for %s; ask for less or wait",
                         free_share, where, memory, asked);
    }
    return acre_fail(err, ACRE_ENOFIT,
                     "no room now: the largest free share of a GPU is %s on %s; it asks for %s; "
                     "ask for less or wait",
                     free_share, where, asked);
}

static int not_now(const struct acre_ledger *ledger, const struct want *want,
                   const struct findings *findings, struct acre_error *err) {
    if (findings->beside == NULL && want->gpus == 0) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: every node that fits is drained; undrain one or wait");
    }
    if (want->gpus > 0 && findings->most_fitting == 0) {
        return no_device_now(ledger, want, findings, err);
    }
    char gpus[SHOWN], share[SHOWN];
    if (want->gpus > findings->most_fitting) {
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: no node has more than %s with %s free (%s); it asks for %u; "
                         "ask for fewer or wait",
                         acre_format_count(findings->most_fitting, "GPU", gpus, sizeof(gpus)),
                         acre_format_milli(want->milli, share, sizeof(share)),
                         node_name(ledger, findings->fitting), want->gpus);
    }
    if (findings->members == 0 && findings->beside != NULL) {
        char asked[SHOWN_BOTH], there[SHOWN_BOTH];
        show_node(want, findings->best_cpu_milli, findings->best_ram_mib, asked, there);
        return acre_fail(err, ACRE_ENOFIT,
                         "no room now: %s%s has only %s free; it asks for %s; ask for less or wait",
                         want->gpus > 0 ? "GPUs are free, but " : "",
                         node_name(ledger, findings->beside), there, asked);
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
               : acre_fail(
                     err, ACRE_ENOFIT,
                     "never fits: it asks for %u members; all nodes together, idle, have room "
                     "for %llu; ask for fewer",
                     want.replicas, (unsigned long long)members);
}
