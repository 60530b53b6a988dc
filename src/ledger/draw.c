/* draw.c - shares of an active reservation, for the requests that name it.
 *
 * The reservation's own allocation is in the devices' books; what is drawn on it is counted here,
 * per device. To the drawing request, a device looks as if all but the reserved share were taken by
 * share: then the arithmetic of any device (shape.h) divides the reserved part as exactly as it
 * divides a whole one, and its rules (one kind, so many shares, others' memory, drained) hold
 * within a reservation too. */
#include "ledger/draw.h"

#include "core/units.h"
#include "ledger/place.h"
#include "ledger/shape.h"

#include <stdlib.h>
#include <string.h>

static void count_part(struct drawn *drawn, const struct acre_part *part, uint32_t isolation) {
    drawn->milli += part->milli;
    drawn->milli_by_share += part->by_share ? part->milli : 0;
    drawn->asked_mib += part->by_share ? 0 : part->mib;
    drawn->count++;
    drawn->isolation = isolation;
}

void drawn_note(const struct acre_ledger *ledger, struct reservation *reservation,
                const struct grant *grant, bool taken) {
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    for (uint32_t i = 0; i < grant->part_count; i++) {
        for (uint32_t j = 0; j < reservation->shown.device_count; j++) {
            struct drawn *drawn = &reservation->drawn[j];
            if (reservation->shown.devices[j] != parts[i].device) {
                continue;
            }
            if (taken) {
                count_part(drawn, &parts[i], grant->isolation + 1U);
                continue;
            }
            ACRE_ASSERT(drawn->count > 0 && drawn->milli >= parts[i].milli);
            drawn->milli -= parts[i].milli;
            drawn->milli_by_share -= parts[i].by_share ? parts[i].milli : 0;
            drawn->asked_mib -= parts[i].by_share ? 0 : parts[i].mib;
            drawn->count--;
        }
    }
}

/* Memory that others' processes took of what the books have promised. */
static uint64_t missing_mib(const struct device *device, uint64_t total_mib) {
    uint64_t promised = device->foreign_mib + (uint64_t)device->memory_asked_mib +
                        (total_mib * device->milli_by_share + 999) / 1000;
    return promised > total_mib ? promised - total_mib : 0;
}

/* The state of the reservation's device number `at` as those who draw on it see it. */
static uint64_t word_within(const struct acre_ledger *ledger, const struct reservation *reservation,
                            uint32_t at) {
    const struct acre_reservation *shown = &reservation->shown;
    const struct device *device = &ledger->devices[shown->devices[at]];
    const struct hardware *hardware = hardware_of(ledger, shown->devices[at]);
    const struct drawn *drawn = &reservation->drawn[at];
    if ((device->flags & DEVICE_DRAINED) != 0 || drawn->count >= shares_max(ledger)) {
        return 0;
    }
    struct usage usage = {
        .milli = 1000 - shown->milli + drawn->milli,
        .milli_by_share = 1000 - shown->milli + drawn->milli_by_share,
        .memory_mib = drawn->asked_mib + missing_mib(device, hardware->memory_mib),
        .shares_left = ledger->track_counts ? shares_max(ledger) - drawn->count : 0,
    };
    if (drawn->count > 0) {
        usage.isolation = drawn->isolation;
    } else if (shown->milli < 1000) {
        usage.isolation = shown->isolation + 1U;
    }
    return usage_word(hardware, &usage);
}

int reserved_place_within(struct acre_ledger *ledger, const struct want *want, uint64_t id,
                          struct acre_part *parts, struct acre_error *err) {
    struct reservation *reservation;
    int r = reservation_active(ledger, id, &reservation, err);
    if (r < 0) {
        return r;
    }
    const struct acre_reservation *shown = &reservation->shown;
    struct want_class *class = classes_get(ledger, want);
    uint32_t placed = 0;
    for (uint32_t i = 0; i < shown->device_count && placed < want->replicas; i++) {
        uint32_t node = ledger->devices[shown->devices[i]].node;
        bool seen = false;
        for (uint32_t j = 0; j < i && !seen; j++) {
            seen = ledger->devices[shown->devices[j]].node == node;
        }
        uint64_t words[ACRE_NODE_DEVICES_MAX] = {0};
        for (uint32_t j = i; j < shown->device_count && !seen; j++) {
            const struct device *device = &ledger->devices[shown->devices[j]];
            if (device->node == node) {
                words[device->slot] = word_within(ledger, reservation, j);
            }
        }
        uint32_t members = want->replicas - placed;
        while (!seen && members > 0 &&
               !place_on_node(ledger, class, node, members, words,
                              parts + (size_t)placed * ACRE_MAX(want->gpus, 1U))) {
            members--;
        }
        placed += seen ? 0 : members;
    }
    return placed == want->replicas
               ? 0
               : acre_fail(err, ACRE_ENOFIT, "reservation %llu has room for only %u of %u members",
                           (unsigned long long)id, placed, want->replicas);
}

static int check_part(const struct acre_ledger *ledger, const struct acre_reservation *shown,
                      const struct acre_part *part, enum acre_isolation isolation, bool exclusive,
                      struct drawn *drawn, struct acre_error *err) {
    uint32_t at = 0;
    while (at < shown->device_count && shown->devices[at] != part->device) {
        at++;
    }
    if (at == shown->device_count || ledger->devices[part->device].node != part->node) {
        return acre_fail(err, ACRE_ENOTFOUND, "device %u of node %u is not in reservation %llu",
                         part->device, part->node, (unsigned long long)shown->id);
    }
    bool other_kind =
        (drawn[at].count > 0 && (exclusive || drawn[at].isolation != isolation + 1U)) ||
        (exclusive && part->milli != 1000) ||
        (shown->milli < 1000 && isolation != shown->isolation);
    uint64_t total = hardware_of(ledger, part->device)->memory_mib;
    char share[32], memory[32];
    count_part(&drawn[at], part, isolation + 1U);
    if (part->milli == 0 || part->milli > 1000 || drawn[at].milli > shown->milli || other_kind ||
        drawn[at].asked_mib * 1000 + total * drawn[at].milli_by_share > total * shown->milli) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "reservation %llu has no room on device '%s' for %s of it and %s more",
                         (unsigned long long)shown->id,
                         acre_names_text(ledger->names, ledger->devices[part->device].name),
                         acre_format_milli(part->milli, share, sizeof(share)),
                         acre_format_mib(part->mib, memory, sizeof(memory)));
    }
    return 0;
}

int reserved_may_draw(struct acre_ledger *ledger, uint64_t id, const struct acre_part *parts,
                      uint32_t count, enum acre_isolation isolation, bool exclusive,
                      struct acre_error *err) {
    struct reservation *reservation;
    int r = reservation_active(ledger, id, &reservation, err);
    if (r < 0) {
        return r;
    }
    const struct acre_reservation *shown = &reservation->shown;
    struct drawn *drawn = acre_calloc(shown->device_count, sizeof(*drawn));
    memcpy(drawn, reservation->drawn, shown->device_count * sizeof(*drawn));
    for (uint32_t i = 0; i < count && r == 0; i++) {
        if (parts[i].device != ACRE_DEVICE_NONE) {
            r = check_part(ledger, shown, &parts[i], isolation, exclusive, drawn, err);
        }
    }
    free(drawn);
    return r;
}
