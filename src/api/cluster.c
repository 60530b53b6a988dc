/* cluster.c - nodes and GPUs: hardware, current readings, free resources, and draining. */
#include "api/api.h"

#include "api/cluster.h"
#include "api/handlers.h"
#include "api/view.h"
#include "desk/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct field drain_fields[] = {
    {.name = "reason",
     .kinds = ACRE_KIND_STRING,
     .max_length = 200,
     .help = "shown to everyone who asks why"},
    {0},
};

/* --- who holds what ------------------------------------------------------------------------- */

static int compare_holders(const void *a, const void *b) {
    const struct holder *left = a;
    const struct holder *right = b;
    if (left->device != right->device) {
        return left->device < right->device ? -1 : 1;
    }
    return (left->owner > right->owner) - (left->owner < right->owner);
}

struct holders cluster_holders(struct acre_api *api, struct acre_arena *arena) {
    const struct acre_ledger *ledger = acre_desk_ledger(api->desk);
    struct holders holders = {0};
    struct acre_allocation allocation;
    for (uint32_t cursor = 0; acre_ledger_walk(ledger, &cursor, &allocation);) {
        holders.count += allocation.part_count;
    }
    holders.items = acre_arena_alloc(arena, (holders.count + 1U) * sizeof(*holders.items));
    uint32_t count = 0;
    struct acre_job job;
    for (uint32_t cursor = 0; acre_ledger_walk(ledger, &cursor, &allocation);) {
        bool is_job = acre_sched_find(acre_desk_sched(api->desk), allocation.owner, &job) &&
                      job.allocation == allocation.id;
        for (uint32_t i = 0; i < allocation.part_count; i++) {
            holders.items[count++] = (struct holder){.node = allocation.parts[i].node,
                                                     .device = allocation.parts[i].device,
                                                     .owner = allocation.owner,
                                                     .milli = allocation.parts[i].milli,
                                                     .mib = allocation.parts[i].mib,
                                                     .reserved = !is_job};
        }
    }
    qsort(holders.items, holders.count, sizeof(*holders.items), compare_holders);
    return holders;
}

uint32_t cluster_first_holder(const struct holders *holders, uint32_t device) {
    uint32_t low = 0;
    uint32_t high = holders->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (holders->items[middle].device < device) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void write_holders(struct acre_api *api, uint32_t device, const struct holders *holders,
                          struct acre_json *json) {
    const struct acre_names *names = acre_desk_names(api->desk);
    acre_json_key(json, "holders");
    acre_json_array(json);
    for (uint32_t i = cluster_first_holder(holders, device);
         i < holders->count && holders->items[i].device == device; i++) {
        const struct holder *holder = &holders->items[i];
        struct acre_job job;
        bool is_job =
            !holder->reserved && acre_sched_find(acre_desk_sched(api->desk), holder->owner, &job);
        acre_json_object(json);
        acre_json_put_u64(json, is_job ? "job" : "reservation", holder->owner);
        acre_json_put_string(json, "user", is_job ? acre_names_text(names, job.spec.user) : NULL);
        acre_json_put_u64(json, "share_milli", holder->milli);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

/* --- showing -------------------------------------------------------------------------------- */

/* As last read: all null when nobody has read yet. */
static void write_live(struct acre_json *json, const struct acre_device_live *live) {
    bool known = live->sampled_ms != 0;
    view_put_time(json, "sampled", live->sampled_ms);
    view_put_known(json, "memory_used_mib", known ? live->used_mib : ACRE_UNKNOWN);
    view_put_known(json, "utilization_pct", known ? live->utilization_pct : ACRE_UNKNOWN);
    view_put_known(json, "temperature_c", known ? live->temperature_c : ACRE_UNKNOWN);
    view_put_known(json, "power_mw", known ? live->power_mw : ACRE_UNKNOWN);
    view_put_known(json, "processes", known ? live->processes : ACRE_UNKNOWN);
    acre_json_put_string(json, "state", live->state[0] != '\0' ? live->state : NULL);
    acre_json_put_string(json, "health", live->health[0] != '\0' ? live->health : NULL);
}

/* Memory nobody holds; what strangers use counts as held. */
static uint64_t free_mib(const struct acre_ledger_device *device, uint32_t index,
                         const struct holders *holders) {
    uint64_t held_mib = device->foreign_mib;
    for (uint32_t i = cluster_first_holder(holders, index);
         i < holders->count && holders->items[i].device == index; i++) {
        held_mib += holders->items[i].mib;
    }
    if (device->memory_mib == 0) {
        return ACRE_UNKNOWN;
    }
    return device->memory_mib > held_mib ? device->memory_mib - held_mib : 0;
}

static void write_gpu(struct acre_api *api, uint32_t index, const struct holders *holders,
                      struct acre_json *json) {
    struct acre_ledger_device device;
    struct acre_ledger_node node;
    const struct acre_ledger *ledger = acre_desk_ledger(api->desk);
    const struct acre_engine_device *known =
        inventory_device(acre_desk_inventory(api->desk), index);
    acre_ledger_device_info(ledger, index, &device);
    acre_ledger_node_info(ledger, device.node, &node);
    acre_json_object(json);
    acre_json_put_string(json, "id", device.id);
    acre_json_put_string(json, "node", node.name);
    acre_json_put_string(json, "model", known->model[0] != '\0' ? known->model : NULL);
    acre_json_put_string(json, "vendor", known->vendor[0] != '\0' ? known->vendor : NULL);
    acre_json_put_string(json, "pci", known->pci[0] != '\0' ? known->pci : NULL);
    acre_json_put_string(json, "driver", known->driver[0] != '\0' ? known->driver : NULL);
    view_put_known(json, "memory_mib", known->memory_mib != 0 ? known->memory_mib : ACRE_UNKNOWN);
    view_put_known(json, "free_mib", free_mib(&device, index, holders));
    acre_json_put_u64(json, "foreign_mib", device.foreign_mib);
    acre_json_put_u64(json, "island", known->island);
    acre_json_put_u64(json, "used_milli", device.milli_used);
    acre_json_put_u64(json, "free_milli", node.drained ? 0 : device.largest_milli);
    write_holders(api, index, holders, json);
    acre_json_put_bool(json, "drained", device.drained || node.drained);
    acre_json_put_string(json, "reason",
                         device.drained ? device.reason
                         : node.drained ? acre_desk_node_reason(api->desk, device.node)
                                        : NULL);
    acre_json_put_bool(json, "simulated", known->simulated);
    write_live(json, &known->live);
    acre_json_object_end(json);
}

/* Different jobs that hold something of the node: its devices' holders stand together, those
 * without a device at the end. */
static uint32_t count_jobs(const struct holders *holders, uint32_t index,
                           const struct acre_ledger_node *node) {
    uint32_t count = 0;
    uint32_t first = cluster_first_holder(holders, node->first_device);
    uint32_t end = cluster_first_holder(holders, node->first_device + node->device_count);
    for (uint32_t i = first; i < end; i++) {
        bool again = holders->items[i].reserved;
        for (uint32_t j = first; j < i && !again; j++) {
            again = holders->items[j].owner == holders->items[i].owner;
        }
        count += !again;
    }
    for (uint32_t i = cluster_first_holder(holders, ACRE_DEVICE_NONE); i < holders->count; i++) {
        count += holders->items[i].node == index;
    }
    return count;
}

static void write_node(struct acre_api *api, uint32_t index, const struct holders *holders,
                       struct acre_json *json) {
    struct acre_ledger_node node;
    const struct inventory_node *known = inventory_node(acre_desk_inventory(api->desk), index);
    acre_ledger_node_info(acre_desk_ledger(api->desk), index, &node);
    acre_json_object(json);
    acre_json_put_string(json, "name", node.name);
    acre_json_put_bool(json, "simulated", known->simulated);
    acre_json_put_u64(json, "gpus", node.device_count);
    uint32_t free_milli = 0;
    for (uint32_t d = 0; d < node.device_count; d++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(acre_desk_ledger(api->desk), node.first_device + d, &device);
        free_milli += device.drained ? 0 : device.largest_milli;
    }
    acre_json_put_u64(json, "free_milli", node.drained ? 0 : free_milli);
    acre_json_put_u64(json, "cpu_milli", node.cpu_milli);
    acre_json_put_u64(json, "cpu_free_milli", node.cpu_free_milli);
    acre_json_put_u64(json, "ram_mib", node.ram_mib);
    acre_json_put_u64(json, "ram_free_mib", node.ram_free_mib);
    acre_json_put_u64(json, "jobs", count_jobs(holders, index, &node));
    acre_json_put_bool(json, "drained", node.drained);
    acre_json_put_string(json, "reason",
                         node.drained ? acre_desk_node_reason(api->desk, index) : NULL);
    acre_json_key(json, "labels");
    acre_json_array(json);
    for (uint32_t i = 0; i < known->label_count; i++) {
        acre_json_string(json, known->labels[i]);
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
}

/* A page of `count` things by their index. */
static void list(struct acre_api *api, struct acre_call *call, const char *key, uint32_t count,
                 void (*write)(struct acre_api *, uint32_t, const struct holders *,
                               struct acre_json *)) {
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    struct holders holders = cluster_holders(api, call->arena);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    uint64_t at = page.after;
    acre_json_key(json, key);
    acre_json_array(json);
    for (uint32_t shown = 0; shown < page.limit && at < count; shown++) {
        write(api, (uint32_t)at++, &holders, json);
    }
    acre_json_array_end(json);
    acre_page_write(json, at < count, at);
    acre_reply_send(api, call, &reply, 200);
}

void handle_nodes(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    list(api, call, "nodes", acre_ledger_node_count(acre_desk_ledger(api->desk)), write_node);
}

void handle_gpus(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    list(api, call, "gpus", acre_ledger_device_count(acre_desk_ledger(api->desk)), write_gpu);
}

/* --- draining ------------------------------------------------------------------------------- */

static const char *reason_of(const struct acre_call *call) {
    const char *reason = json_string_value(json_object_get(call->body, "reason"));
    return reason != NULL && reason[0] != '\0' ? reason : "drained by an operator";
}

static void change_gpu(struct acre_api *api, struct acre_call *call, bool drained) {
    const char *id = call_parameter(call, "id");
    struct acre_error err = {0};
    uint32_t device = 0;
    if (!acre_ledger_find_device(acre_desk_ledger(api->desk), id, &device)) {
        char shown[100];
        acre_fail(&err, ACRE_ENOTFOUND, "there is no GPU '%s'",
                  acre_str_show(acre_str_from(id), shown, sizeof(shown)));
        acre_api_fail(api, call, &err);
        return;
    }
    if (!acre_api_may_change(api, call)) {
        return;
    }
    acre_desk_drain_device(api->desk, device, drained ? reason_of(call) : NULL);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct holders holders = cluster_holders(api, call->arena);
    acre_json_key(json, "gpu");
    write_gpu(api, device, &holders, json);
    acre_reply_send(api, call, &reply, 200);
}

static void change_node(struct acre_api *api, struct acre_call *call, bool drained) {
    const char *name = call_parameter(call, "name");
    struct acre_error err = {0};
    uint32_t node = 0;
    if (!acre_ledger_find_node(acre_desk_ledger(api->desk), name, &node)) {
        char shown[100];
        uint32_t device = 0;
        bool is_gpu = acre_ledger_find_device(acre_desk_ledger(api->desk), name, &device);
        acre_fail(&err, ACRE_ENOTFOUND, "there is no node '%s'%s",
                  acre_str_show(acre_str_from(name), shown, sizeof(shown)),
                  is_gpu ? "; it is a GPU (--gpu, or /gpus/{id})" : "");
        acre_api_fail(api, call, &err);
        return;
    }
    if (!acre_api_may_change(api, call)) {
        return;
    }
    acre_desk_drain_node(api->desk, node, drained ? reason_of(call) : NULL);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct holders holders = cluster_holders(api, call->arena);
    acre_json_key(json, "node");
    write_node(api, node, &holders, json);
    acre_reply_send(api, call, &reply, 200);
}

void handle_node_drain(void *context, struct acre_call *call) {
    change_node(context, call, true);
}

void handle_node_undrain(void *context, struct acre_call *call) {
    change_node(context, call, false);
}

void handle_gpu_drain(void *context, struct acre_call *call) {
    change_gpu(context, call, true);
}

void handle_gpu_undrain(void *context, struct acre_call *call) {
    change_gpu(context, call, false);
}
