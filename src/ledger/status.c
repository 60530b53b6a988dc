/* status.c - what nodes and devices look like from outside, and taking them out of use. */
#include "ledger/class.h"
#include "ledger/grant.h"
#include "ledger/mix.h"
#include "ledger/node_order.h"
#include "ledger/reserve.h"
#include "ledger/shape.h"

void acre_ledger_node_info(const struct acre_ledger *ledger, uint32_t index,
                           struct acre_ledger_node *ret_info) {
    ACRE_ASSERT(index < ledger->node_count);
    const struct node *node = &ledger->nodes[index];
    const struct profile *profile = ledger->profiles[node->profile];
    *ret_info = (struct acre_ledger_node){
        .name = acre_names_text(ledger->names, node->name),
        .first_device = node->first_device,
        .device_count = node->device_count,
        .cpu_milli = profile->cpu_milli,
        .cpu_free_milli = node->cpu_free_milli,
        .ram_mib = profile->ram_mib,
        .ram_free_mib = node->ram_free_mib,
        .drained = node->drained,
    };
}

void acre_ledger_device_info(const struct acre_ledger *ledger, uint32_t index,
                             struct acre_ledger_device *ret_info) {
    ACRE_ASSERT(index < ledger->device_count);
    const struct device *device = &ledger->devices[index];
    const struct node *node = &ledger->nodes[device->node];
    const struct hardware *hardware = &ledger->profiles[node->profile]->slots[device->slot];
    uint64_t word = node->drained ? 0 : device_word(ledger, index);
    *ret_info = (struct acre_ledger_device){
        .id = acre_names_text(ledger->names, device->name),
        .model = acre_names_text(ledger->names, hardware->model),
        .node = device->node,
        .memory_mib = hardware->memory_mib,
        .foreign_mib = device->foreign_mib,
        .milli_used = device->milli_used,
        .allocations = device->count,
        .largest_milli = word_room(word),
        .free_mib = word_room(word) > 0 ? word_mib(word) : 0,
        .drained = node->drained || (device->flags & DEVICE_DRAINED) != 0,
        .reason = acre_names_text(ledger->names, device->reason),
    };
}

static void refile(struct acre_ledger *ledger, uint32_t device) {
    uint32_t node = ledger->devices[device].node;
    if (!ledger->nodes[node].drained) {
        shapes_refile_device(ledger, node, device);
    }
    node_order_changed(ledger, node);
}

static int check_device(const struct acre_ledger *ledger, uint32_t device, struct acre_error *err) {
    return device < ledger->device_count
               ? 0
               : acre_fail(err, ACRE_ENOTFOUND, "there is no device %u; there are %u devices",
                           device, ledger->device_count);
}

int acre_ledger_drain_device(struct acre_ledger *ledger, uint32_t device, const char *reason,
                             struct acre_error *err) {
    int r = check_device(ledger, device, err);
    if (r < 0) {
        return r;
    }
    ledger->devices[device].flags |= DEVICE_DRAINED;
    uint32_t old = ledger->devices[device].reason;
    ledger->devices[device].reason = acre_names_take(ledger->names, acre_str_from(reason));
    acre_names_give(ledger->names, old);
    refile(ledger, device);
    return 0;
}

int acre_ledger_undrain_device(struct acre_ledger *ledger, uint32_t device,
                               struct acre_error *err) {
    int r = check_device(ledger, device, err);
    if (r < 0) {
        return r;
    }
    ledger->devices[device].flags &= (uint8_t)~DEVICE_DRAINED;
    acre_names_give(ledger->names, ledger->devices[device].reason);
    ledger->devices[device].reason = 0;
    refile(ledger, device);
    return 0;
}

int acre_ledger_drain_node(struct acre_ledger *ledger, uint32_t node, bool drained,
                           struct acre_error *err) {
    if (node >= ledger->node_count) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no node %u; there are %u nodes", node,
                         ledger->node_count);
    }
    ledger->nodes[node].drained = drained;
    shapes_file_node(ledger, node);
    node_order_changed(ledger, node);
    return 0;
}

int acre_ledger_set_foreign(struct acre_ledger *ledger, uint32_t index, uint64_t mib,
                            struct acre_error *err) {
    int r = check_device(ledger, index, err);
    if (r < 0) {
        return r;
    }
    struct device *device = &ledger->devices[index];
    const struct node *node = &ledger->nodes[device->node];
    uint32_t memory = ledger->profiles[node->profile]->slots[device->slot].memory_mib;
    if (mib > memory) {
        return acre_fail(
            err, ACRE_EINVALID,
            "device '%s': foreign memory of %llu MiB is out of range; accepted: 0 to %u MiB",
            acre_names_text(ledger->names, device->name), (unsigned long long)mib, memory);
    }
    device->foreign_mib = (uint32_t)mib;
    refile(ledger, index);
    return 0;
}

size_t acre_ledger_bytes(const struct acre_ledger *ledger) {
    size_t profiles = ledger->profile_capacity * sizeof(*ledger->profiles);
    for (uint32_t i = 0; i < ledger->profile_count; i++) {
        profiles += sizeof(struct profile) +
                    ledger->profiles[i]->device_count * sizeof(struct hardware) +
                    ledger->profiles[i]->label_count * sizeof(uint32_t);
    }
    return sizeof(*ledger) + profiles + acre_names_bytes(ledger->names) +
           ledger->node_capacity * sizeof(*ledger->nodes) +
           ledger->device_capacity * sizeof(*ledger->devices) +
           ledger->object_capacity * sizeof(*ledger->object_of_name) +
           grants_bytes(ledger->grants) + shapes_bytes(ledger->shapes) +
           classes_bytes(ledger->classes) + mix_bytes(ledger->mix) +
           node_order_bytes(ledger->order) + reservations_bytes(ledger->reservations);
}
