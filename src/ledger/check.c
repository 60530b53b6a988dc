/* check.c - every invariant of ALC-10, computed again from nothing but the allocations.
 *
 * Sums over all live parts must equal the books; no device above 1000 milli or its memory; an
 * exclusive part alone; kinds of sharing never mixed; the index must hold every node that takes
 * work once, under the state its books say. Slow on purpose; nothing here is shared with the
 * code it checks beyond the books' own words. */
#include "ledger/grant.h"
#include "ledger/shape.h"

#include <stdlib.h>

struct device_sums {
    uint64_t milli;
    uint64_t milli_by_share;
    uint64_t asked_mib;
    uint64_t mib;
    uint32_t count;
    uint32_t exclusive;
    uint32_t isolation; /* 1 + kind; UINT32_MAX: mixed */
};

static int sum_parts(const struct acre_ledger *ledger, const struct grant *grant,
                     struct device_sums *devices, uint64_t *cpu, uint64_t *ram,
                     struct acre_error *err) {
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    for (uint32_t i = 0; i < grant->part_count; i++) {
        if (parts[i].node >= ledger->node_count) {
            return acre_fail(err, ACRE_EINTERNAL, "allocation %llu: no node %u",
                             (unsigned long long)grant->id, parts[i].node);
        }
        cpu[parts[i].node] += parts[i].cpu_milli;
        ram[parts[i].node] += parts[i].ram_mib;
        if (parts[i].device == ACRE_DEVICE_NONE || grant->reservation != 0) {
            continue;
        }
        if (parts[i].device >= ledger->device_count ||
            ledger->devices[parts[i].device].node != parts[i].node) {
            return acre_fail(err, ACRE_EINTERNAL, "allocation %llu: device %u is not on node %u",
                             (unsigned long long)grant->id, parts[i].device, parts[i].node);
        }
        struct device_sums *sums = &devices[parts[i].device];
        sums->milli += parts[i].milli;
        sums->milli_by_share += parts[i].by_share ? parts[i].milli : 0;
        sums->asked_mib += parts[i].by_share ? 0 : parts[i].mib;
        sums->mib += parts[i].mib;
        sums->count++;
        sums->exclusive += grant_is_exclusive(grant);
        uint32_t isolation = grant->isolation + 1U;
        sums->isolation =
            sums->isolation == 0 || sums->isolation == isolation ? isolation : UINT32_MAX;
    }
    return 0;
}

static int check_device(const struct acre_ledger *ledger, uint32_t index,
                        const struct device_sums *sums, struct acre_error *err) {
    const struct device *device = &ledger->devices[index];
    const struct profile *profile = ledger->profiles[ledger->nodes[device->node].profile];
    uint32_t memory = profile->slots[device->slot].memory_mib;
    const char *wrong = NULL;
    if (sums->milli > 1000) {
        wrong = "more than 1000 milli";
    } else if (sums->mib > memory) {
        wrong = "more memory than it has";
    } else if (sums->exclusive > 0 && sums->count > 1) {
        wrong = "an exclusive part that is not alone";
    } else if (sums->isolation == UINT32_MAX) {
        wrong = "two kinds of sharing";
    } else if (sums->milli != device->milli_used || sums->asked_mib != device->memory_asked_mib ||
               sums->milli_by_share != device->milli_by_share || sums->count != device->count ||
               sums->isolation != device->isolation) {
        wrong = "books that differ from its parts";
    }
    return wrong == NULL ? 0
                         : acre_fail(err, ACRE_EINTERNAL,
                                     "device '%s' has %s: %llu milli, %llu MiB in %u parts",
                                     acre_names_text(ledger->names, device->name), wrong,
                                     (unsigned long long)sums->milli, (unsigned long long)sums->mib,
                                     sums->count);
}

static int check_index(const struct acre_ledger *ledger, uint32_t index, struct acre_error *err) {
    const struct node *node = &ledger->nodes[index];
    const char *name = acre_names_text(ledger->names, node->name);
    if (node->drained) {
        return node->shape == SHAPE_NONE
                   ? 0
                   : acre_fail(err, ACRE_EINTERNAL, "node '%s' is drained but indexed", name);
    }
    const struct shape *shape =
        node->shape != SHAPE_NONE ? shapes_get(ledger->shapes, node->shape) : NULL;
    if (shape == NULL || node->heap_pos >= shape->node_count ||
        shape->nodes[node->heap_pos] != index || shape->profile != node->profile ||
        shape->cpu_free_milli != node->cpu_free_milli ||
        shape->ram_free_mib != node->ram_free_mib) {
        return acre_fail(err, ACRE_EINTERNAL, "node '%s' is not where the index says", name);
    }
    if (node->heap_pos > 0 && shape->nodes[(node->heap_pos - 1) / 2] > index) {
        return acre_fail(err, ACRE_EINTERNAL, "node '%s' is out of order in its heap", name);
    }
    for (uint32_t slot = 0; slot < node->device_count; slot++) {
        uint32_t own = ledger->devices[node->first_device + slot].at_slot;
        uint32_t device = node->first_device + own;
        bool sorted = slot == ledger->profiles[node->profile]->slots[slot].group_start ||
                      shape->words[slot - 1] >= shape->words[slot];
        if (own >= node->device_count || ledger->devices[device].slot != slot || !sorted ||
            shape->words[slot] != device_word(ledger, device)) {
            return acre_fail(err, ACRE_EINTERNAL, "node '%s': slot %u is not as its device is",
                             name, slot);
        }
    }
    return 0;
}

int acre_ledger_check(const struct acre_ledger *ledger, struct acre_error *err) {
    struct device_sums *sums = acre_calloc(ACRE_MAX(ledger->device_count, 1U), sizeof(*sums));
    uint64_t *cpu = acre_calloc(ACRE_MAX(ledger->node_count, 1U), sizeof(*cpu));
    uint64_t *ram = acre_calloc(ACRE_MAX(ledger->node_count, 1U), sizeof(*ram));
    int r = 0;
    uint32_t cursor = 0;
    for (struct grant *grant; r == 0 && (grant = grants_walk(ledger->grants, &cursor)) != NULL;) {
        r = sum_parts(ledger, grant, sums, cpu, ram, err);
    }
    for (uint32_t i = 0; i < ledger->device_count && r == 0; i++) {
        r = check_device(ledger, i, &sums[i], err);
    }
    for (uint32_t i = 0; i < ledger->node_count && r == 0; i++) {
        const struct profile *profile = ledger->profiles[ledger->nodes[i].profile];
        if (cpu[i] + ledger->nodes[i].cpu_free_milli != profile->cpu_milli ||
            ram[i] + ledger->nodes[i].ram_free_mib != profile->ram_mib) {
            r = acre_fail(err, ACRE_EINTERNAL, "node '%s': CPU or RAM do not add up",
                          acre_names_text(ledger->names, ledger->nodes[i].name));
        } else {
            r = check_index(ledger, i, err);
        }
    }
    free(sums);
    free(cpu);
    free(ram);
    return r;
}
