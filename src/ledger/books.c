/* books.c - parts in and out of the devices' and nodes' books.
 *
 * Each part is checked against the raw sums (not against what the index offers: a log that is
 * replayed may hold shares of a drained device) and applied; when one fails, those before it are
 * taken back. Nodes are refiled once all parts are in. */
#include "ledger/node_order.h"
#include "ledger/place.h"

#include "core/units.h"
#include "ledger/reserve.h"
#include "ledger/shape.h"

enum { SHOWN = 32 }; /* bytes of a number as text */

static int check_host(const struct acre_ledger *ledger, const struct acre_part *part,
                      struct acre_error *err) {
    if (part->node >= ledger->node_count) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no node %u; there are %u nodes", part->node,
                         ledger->node_count);
    }
    if (part->device == ACRE_DEVICE_NONE && (part->milli > 0 || part->mib > 0)) {
        return acre_fail(err, ACRE_EINVALID, "device: none given, but %u milli and %u MiB of it",
                         part->milli, part->mib);
    }
    const struct node *node = &ledger->nodes[part->node];
    if (part->cpu_milli > node->cpu_free_milli || part->ram_mib > node->ram_free_mib) {
        char cpu[SHOWN], asked_cpu[SHOWN];
        return acre_fail(err, ACRE_ECONFLICT,
                         "node '%s' has %s and %u MiB of RAM free; this needs %s and %u MiB",
                         acre_names_text(ledger->names, node->name),
                         acre_format_amount(node->cpu_free_milli, "CPU", cpu, sizeof(cpu)),
                         node->ram_free_mib,
                         acre_format_amount(part->cpu_milli, "CPU", asked_cpu, sizeof(asked_cpu)),
                         part->ram_mib);
    }
    return 0;
}

static int check_device(const struct acre_ledger *ledger, const struct acre_part *part,
                        enum acre_isolation isolation, bool exclusive, struct acre_error *err) {
    if (part->device >= ledger->device_count || ledger->devices[part->device].node != part->node) {
        return acre_fail(err, ACRE_ENOTFOUND, "device %u is not on node %u", part->device,
                         part->node);
    }
    const struct device *device = &ledger->devices[part->device];
    const char *name = acre_names_text(ledger->names, device->name);
    const struct profile *profile = ledger->profiles[ledger->nodes[part->node].profile];
    uint32_t total = profile->slots[device->slot].memory_mib;
    char there[SHOWN], asked_share[SHOWN];
    if (part->milli == 0 || part->milli > 1000U - device->milli_used) {
        return acre_fail(err, ACRE_ECONFLICT, "device '%s' has %s of it free; this needs %s", name,
                         acre_format_milli(1000U - device->milli_used, there, sizeof(there)),
                         acre_format_milli(part->milli, asked_share, sizeof(asked_share)));
    }
    if (exclusive && part->milli != 1000) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "device '%s' is exclusive, but this takes only %s of it", name,
                         acre_format_milli(part->milli, asked_share, sizeof(asked_share)));
    }
    if (device->count > 0 && (exclusive || device->isolation != isolation + 1U)) {
        return acre_fail(err, ACRE_ECONFLICT, "device '%s' is shared with another isolation (%s)",
                         name, isolation_name((enum acre_isolation)(device->isolation - 1)));
    }
    uint64_t asked = device->memory_asked_mib + (uint64_t)(part->by_share ? 0 : part->mib);
    uint64_t by_share = device->milli_by_share + (uint64_t)(part->by_share ? part->milli : 0);
    if (total > 0 ? asked + (total * by_share + 999) / 1000 > total : asked > 0) {
        return acre_fail(err, ACRE_ECONFLICT, "device '%s' has too little of its %s free for %s",
                         name, acre_format_mib(total, there, sizeof(there)),
                         acre_format_mib(part->mib, asked_share, sizeof(asked_share)));
    }
    if (device->count == UINT8_MAX) {
        return acre_fail(err, ACRE_ELIMIT,
                         "device '%s' already has %u allocations, the most it may have", name,
                         device->count);
    }
    return 0;
}

static void apply(struct acre_ledger *ledger, const struct acre_part *part,
                  enum acre_isolation isolation, bool with_device) {
    ACRE_ASSERT(ledger->nodes[part->node].cpu_free_milli >= part->cpu_milli);
    ACRE_ASSERT(ledger->nodes[part->node].ram_free_mib >= part->ram_mib);
    ledger->nodes[part->node].cpu_free_milli -= part->cpu_milli;
    ledger->nodes[part->node].ram_free_mib -= part->ram_mib;
    if (with_device && part->device != ACRE_DEVICE_NONE) {
        struct device *device = &ledger->devices[part->device];
        ACRE_ASSERT(device->milli_used + part->milli <= 1000 && device->count < UINT8_MAX);
        device->milli_used = (uint16_t)(device->milli_used + part->milli);
        if (part->by_share) {
            device->milli_by_share = (uint16_t)(device->milli_by_share + part->milli);
        } else {
            device->memory_asked_mib += part->mib;
        }
        device->isolation = (uint8_t)(isolation + 1);
        device->count++;
    }
}

static void undo(struct acre_ledger *ledger, const struct acre_part *part, bool with_device) {
    ledger->nodes[part->node].cpu_free_milli += part->cpu_milli;
    ledger->nodes[part->node].ram_free_mib += part->ram_mib;
    if (with_device && part->device != ACRE_DEVICE_NONE) {
        struct device *device = &ledger->devices[part->device];
        ACRE_ASSERT(device->count > 0 && device->milli_used >= part->milli);
        ACRE_ASSERT(part->by_share ? device->milli_by_share >= part->milli
                                   : device->memory_asked_mib >= part->mib);
        device->milli_used = (uint16_t)(device->milli_used - part->milli);
        if (part->by_share) {
            device->milli_by_share = (uint16_t)(device->milli_by_share - part->milli);
        } else {
            device->memory_asked_mib -= part->mib;
        }
        device->count--;
        if (device->count == 0) {
            device->isolation = 0;
        }
    }
}

/* Bring index and order up to date with the books of every node named by the parts. */
static void refile(struct acre_ledger *ledger, const struct acre_part *parts, uint32_t count) {
    if (count == 1 && !ledger->nodes[parts[0].node].drained) {
        shapes_refile_device(ledger, parts[0].node, parts[0].device);
        node_order_changed(ledger, parts[0].node);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 == count || parts[i + 1].node != parts[i].node) {
            shapes_file_node(ledger, parts[i].node);
            node_order_changed(ledger, parts[i].node);
        }
    }
}

int books_take(struct acre_ledger *ledger, const struct acre_part *parts, uint32_t count,
               enum acre_isolation isolation, bool exclusive, bool within_reservation,
               struct acre_error *err) {
    ACRE_ASSERT(count > 0 && (unsigned)isolation < ACRE_ISOLATION_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        int r = check_host(ledger, &parts[i], err);
        if (r == 0 && parts[i].device != ACRE_DEVICE_NONE && !within_reservation) {
            r = check_device(ledger, &parts[i], isolation, exclusive, err);
        }
        if (r < 0) {
            while (i-- > 0) {
                undo(ledger, &parts[i], !within_reservation);
            }
            return r;
        }
        apply(ledger, &parts[i], isolation, !within_reservation);
    }
    refile(ledger, parts, count);
    return 0;
}

void books_give(struct acre_ledger *ledger, const struct acre_part *parts, uint32_t count,
                bool within_reservation) {
    ACRE_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        undo(ledger, &parts[i], !within_reservation);
    }
    refile(ledger, parts, count);
}
