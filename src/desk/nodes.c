/* nodes.c - what engines report about their nodes: there, lost, back.
 *
 * A lost node takes nothing new; its runs are the engine's to report. Nodes of engines that may be
 * away when the daemon starts are remembered in the store: their jobs keep their places until the
 * engine reports. A node that an operator drained stays so whatever its engine reports. */
#include "desk/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX_BYTES = 64 << 20, LABELS_MAX = 64, DEVICES_MAX = 256 };
#define SETTING "nodes"

static bool is_operators(const struct acre_desk *desk, uint32_t node) {
    return desk->node_reasons[node] != NULL;
}

/* A lost node is drained in the ledger; so is one that an operator drained. */
static void mark(struct acre_desk *desk, uint32_t node) {
    const struct inventory_node *known = inventory_node(desk->inventory, node);
    if (desk->ledger == NULL) {
        return; /* the load marks it */
    }
    acre_ledger_drain_node(desk->ledger, node, known->is_lost || is_operators(desk, node), NULL);
    acre_sched_ledger_changed(desk->sched);
    desk->touched = true;
}

static void report_trouble(struct acre_desk *desk, const char *what, const struct acre_error *err) {
    if (desk->sink.trouble != NULL) {
        desk->sink.trouble(desk->sink.context, what, err);
    }
}

/* One more: room for its reason, and its place in the ledger, if that is there yet. */
static int add(struct acre_desk *desk, uint32_t node, struct acre_error *err) {
    desk->node_reasons = acre_realloc(desk->node_reasons, node + 1U, sizeof(*desk->node_reasons));
    desk->node_reasons[node] = NULL;
    if (desk->ledger == NULL) {
        return 0;
    }
    int r = inventory_fill(desk->inventory, node, desk->ledger, err);
    if (r == 0) {
        acre_sched_ledger_changed(desk->sched);
        desk->touched = true;
    }
    return r;
}

void desk_put_node(struct desk_engine *engine, const struct acre_engine_node *node) {
    struct acre_desk *desk = engine->desk;
    struct acre_error err = {0};
    uint32_t known = inventory_nodes(desk->inventory);
    uint32_t index = 0;
    int r = inventory_put(desk->inventory, engine->index, node, &index, &err);
    bool is_new = r == 0 && index == known;
    if (is_new) {
        r = add(desk, index, &err);
        if (r < 0) {
            inventory_undo(desk->inventory);
        }
    } else if (r == 0) {
        mark(desk, index);
    }
    if (r < 0) {
        report_trouble(desk, "a node cannot be used", &err);
    }
    desk->nodes_changed |= is_new && r == 0 && engine->driver->remembers_nodes;
}

void desk_lose_node(struct desk_engine *engine, const char *name, const char *why) {
    struct acre_desk *desk = engine->desk;
    uint32_t index = 0;
    if (inventory_find_node(desk->inventory, name, &index) &&
        inventory_node(desk->inventory, index)->engine == engine->index) {
        inventory_lose(desk->inventory, index, why);
        mark(desk, index);
    }
}

/* --- remembered ----------------------------------------------------------------------------- */

static void write_device(const struct acre_engine_device *device, struct acre_json *json) {
    acre_json_object(json);
    acre_json_put_string(json, "id", device->id);
    acre_json_put_string(json, "model", device->model);
    acre_json_put_string(json, "vendor", device->vendor);
    acre_json_put_u64(json, "memory_mib", device->memory_mib);
    acre_json_put_u64(json, "island", device->island);
    acre_json_put_u64(json, "step_milli", device->step_milli);
    acre_json_put_u64(json, "units", device->units);
    acre_json_put_bool(json, "is_mig", device->is_mig);
    acre_json_put_bool(json, "exclusive_only", device->exclusive_only);
    acre_json_put_bool(json, "simulated", device->simulated);
    acre_json_object_end(json);
}

static void write_node(const struct acre_desk *desk, const struct inventory_node *node,
                       struct acre_json *json) {
    acre_json_object(json);
    acre_json_put_string(json, "engine", desk->engines[node->engine].driver->name);
    acre_json_put_string(json, "name", node->name);
    acre_json_put_u64(json, "cpu_milli", node->cpu_milli);
    acre_json_put_u64(json, "ram_mib", node->ram_mib);
    acre_json_put_bool(json, "simulated", node->simulated);
    acre_json_key(json, "labels");
    acre_json_array(json);
    for (uint32_t i = 0; i < node->label_count; i++) {
        acre_json_string(json, node->labels[i]);
    }
    acre_json_array_end(json);
    acre_json_key(json, "devices");
    acre_json_array(json);
    for (uint32_t i = 0; i < node->device_count; i++) {
        write_device(inventory_device(desk->inventory, node->first_device + i), json);
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
}

void desk_remember_nodes(struct acre_desk *desk) {
    if (!desk->nodes_changed || desk->state != DESK_OPEN) {
        return;
    }
    struct acre_buf text;
    struct acre_json json;
    acre_buf_init(&text, NODES_MAX_BYTES);
    acre_json_begin(&json, &text, false);
    acre_json_array(&json);
    for (uint32_t i = 0; i < inventory_nodes(desk->inventory); i++) {
        const struct inventory_node *node = inventory_node(desk->inventory, i);
        if (desk->engines[node->engine].driver->remembers_nodes) {
            write_node(desk, node, &json);
        }
    }
    acre_json_array_end(&json);
    if (acre_json_end(&json) == 0) {
        acre_batch_put_setting(acre_desk_batch(desk), SETTING,
                               (struct acre_str){text.data, text.length});
    }
    acre_buf_finish(&text);
    desk->nodes_changed = false;
}

static uint64_t number(const json_t *object, const char *key) {
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static uint32_t read_devices(const json_t *list, struct acre_engine_device *devices) {
    uint32_t count = (uint32_t)ACRE_MIN(json_array_size(list), (size_t)DEVICES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const json_t *from = json_array_get(list, i);
        devices[i] = (struct acre_engine_device){
            .id = word(from, "id"),
            .model = word(from, "model"),
            .vendor = word(from, "vendor"),
            .memory_mib = number(from, "memory_mib"),
            .island = (uint32_t)number(from, "island"),
            .step_milli = (uint32_t)number(from, "step_milli"),
            .units = (uint32_t)number(from, "units"),
            .is_mig = json_is_true(json_object_get(from, "is_mig")),
            .exclusive_only = json_is_true(json_object_get(from, "exclusive_only")),
            .simulated = json_is_true(json_object_get(from, "simulated")),
        };
    }
    return count;
}

/* One that was not reported yet is there, and lost. */
static void recall(struct acre_desk *desk, const json_t *from) {
    struct desk_engine *engine = NULL;
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        bool is_it = strcmp(desk->engines[i].driver->name, word(from, "engine")) == 0;
        engine = is_it ? &desk->engines[i] : engine;
    }
    uint32_t index = 0;
    if (engine == NULL || !engine->driver->remembers_nodes || word(from, "name")[0] == '\0' ||
        inventory_find_node(desk->inventory, word(from, "name"), &index)) {
        return;
    }
    struct acre_engine_device *devices = acre_calloc(DEVICES_MAX, sizeof(*devices));
    const char *labels[LABELS_MAX];
    const json_t *list = json_object_get(from, "labels");
    uint32_t label_count = (uint32_t)ACRE_MIN(json_array_size(list), (size_t)LABELS_MAX);
    for (uint32_t i = 0; i < label_count; i++) {
        const char *label = json_string_value(json_array_get(list, i));
        labels[i] = label != NULL ? label : "";
    }
    struct acre_engine_node node = {.name = word(from, "name"),
                                    .cpu_milli = number(from, "cpu_milli"),
                                    .ram_mib = number(from, "ram_mib"),
                                    .labels = labels,
                                    .label_count = label_count,
                                    .devices = devices,
                                    .device_count =
                                        read_devices(json_object_get(from, "devices"), devices),
                                    .simulated = json_is_true(json_object_get(from, "simulated"))};
    char why[80];
    snprintf(why, sizeof(why), "not reported by the engine %s since the start",
             engine->driver->name);
    desk_put_node(engine, &node);
    desk_lose_node(engine, node.name, why);
    free(devices);
}

int desk_recall_nodes(struct acre_desk *desk, struct acre_error *err) {
    struct acre_buf text;
    json_t *list = NULL;
    bool changed = desk->nodes_changed;
    acre_buf_init(&text, NODES_MAX_BYTES);
    int r = desk_read_setting(desk, SETTING, &text, err);
    if (r == 0 && text.length > 0) {
        r = acre_json_parse("nodes in the store", (struct acre_str){text.data, text.length},
                            NODES_MAX_BYTES, &list, err);
    }
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        recall(desk, json_array_get(list, i));
    }
    desk->nodes_changed = changed; /* what was recalled is remembered already */
    json_decref(list);
    acre_buf_finish(&text);
    return r;
}
