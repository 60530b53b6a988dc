/* ledger.c - the ledger's own life, and its nodes and devices.
 *
 * Nodes of one build share a profile: their devices are ordered by island, then by what they
 * are, so that equal devices stand in one group of slots whatever order they were listed in.
 * Nodes and devices are never renumbered: an index handed out stays good; a node that goes away
 * is drained for good (its name may come back and is then the same node). */
#include "ledger/ledger.h"

#include "ledger/class.h"
#include "ledger/grant.h"
#include "ledger/mix.h"
#include "ledger/node_order.h"
#include "ledger/reserve.h"
#include "ledger/shape.h"

#include <stdlib.h>
#include <string.h>

struct acre_ledger *acre_ledger_create(const struct acre_ledger_options *options) {
    struct acre_ledger *ledger = acre_calloc(1, sizeof(*ledger));
    bool has_strategy = options != NULL && options->strategy != ACRE_STRATEGY_DEFAULT;
    ledger->strategy = has_strategy ? options->strategy : ACRE_STRATEGY_LEAST_WASTE;
    ledger->rules = options != NULL && options->rules != NULL ? *options->rules : *rules_default();
    ledger->event = options != NULL ? options->event : NULL;
    ledger->event_context = options != NULL ? options->event_context : NULL;
    ledger->track_counts = ledger->strategy == ACRE_STRATEGY_LOAD_BALANCED;
    ACRE_ASSERT((unsigned)ledger->strategy < ACRE_STRATEGY_COUNT);
    ACRE_ASSERT(ledger->rules.min_milli <= ledger->rules.max_milli);
    ledger->names = acre_names_create();
    ledger->constraints = constraints_create();
    ledger->grants = grants_create();
    ledger->shapes = shapes_create();
    ledger->classes = classes_create();
    ledger->mix = mix_create();
    ledger->reservations = reservations_create();
    return ledger;
}

void acre_ledger_destroy(struct acre_ledger *ledger) {
    if (ledger == NULL) {
        return;
    }
    reservations_destroy(ledger->reservations);
    node_order_destroy(ledger->order);
    mix_destroy(ledger->mix);
    classes_destroy(ledger->classes);
    shapes_destroy(ledger->shapes);
    grants_destroy(ledger->grants);
    constraints_destroy(ledger->constraints);
    for (uint32_t i = 0; i < ledger->profile_count; i++) {
        free(ledger->profiles[i]->labels);
        free(ledger->profiles[i]);
    }
    free(ledger->profiles);
    free(ledger->devices);
    free(ledger->nodes);
    free(ledger->object_of_name);
    acre_names_destroy(ledger->names);
    free(ledger);
}

struct acre_names *acre_ledger_names(struct acre_ledger *ledger) {
    return ledger->names;
}

uint32_t acre_ledger_node_count(const struct acre_ledger *ledger) {
    return ledger->node_count;
}

uint32_t acre_ledger_device_count(const struct acre_ledger *ledger) {
    return ledger->device_count;
}

static struct object *object_of(const struct acre_ledger *ledger, const char *name) {
    uint32_t id = acre_names_find(ledger->names, acre_str_from(name));
    return id != 0 && id < ledger->object_capacity ? &ledger->object_of_name[id] : NULL;
}

bool acre_ledger_find_node(const struct acre_ledger *ledger, const char *name, uint32_t *ret_node) {
    const struct object *object = object_of(ledger, name);
    if (object == NULL || object->node == 0) {
        return false;
    }
    *ret_node = object->node - 1;
    return true;
}

bool acre_ledger_find_device(const struct acre_ledger *ledger, const char *id,
                             uint32_t *ret_device) {
    const struct object *object = object_of(ledger, id);
    if (object == NULL || object->device == 0) {
        return false;
    }
    *ret_device = object->device - 1;
    return true;
}

static struct object *object_for(struct acre_ledger *ledger, uint32_t name) {
    if (name >= ledger->object_capacity) {
        uint32_t capacity =
            ACRE_MAX(ledger->object_capacity + ledger->object_capacity / 4, name + 64);
        ledger->object_of_name =
            acre_realloc(ledger->object_of_name, capacity, sizeof(*ledger->object_of_name));
        memset(ledger->object_of_name + ledger->object_capacity, 0,
               (capacity - ledger->object_capacity) * sizeof(*ledger->object_of_name));
        ledger->object_capacity = capacity;
    }
    return &ledger->object_of_name[name];
}

static int check_device_spec(const struct acre_ledger *ledger, const struct acre_node_spec *spec,
                             uint32_t at, struct acre_error *err) {
    const struct acre_device_spec *device = &spec->devices[at];
    char shown[80];
    if (!acre_str_is_name(acre_str_from(device->id), 128)) {
        return acre_fail(err, ACRE_EINVALID,
                         "node '%s': device %u: '%s' is not an id; accepted: 1 to 128 letters, "
                         "digits and -_./:@+",
                         spec->name, at,
                         acre_str_show(acre_str_from(device->id), shown, sizeof(shown)));
    }
    uint32_t existing;
    bool repeated = acre_ledger_find_device(ledger, device->id, &existing);
    for (uint32_t i = 0; i < at && !repeated; i++) {
        repeated = strcmp(spec->devices[i].id, device->id) == 0;
    }
    if (repeated) {
        return acre_fail(err, ACRE_EEXISTS, "node '%s': device '%s' already exists", spec->name,
                         device->id);
    }
    if (device->memory_mib > ACRE_LEDGER_AMOUNT_MAX) {
        return acre_fail(
            err, ACRE_EINVALID, "device '%s': memory_mib: %llu is out of range; accepted: 0 to %d",
            device->id, (unsigned long long)device->memory_mib, ACRE_LEDGER_AMOUNT_MAX);
    }
    if (device->step_milli > 1000) {
        return acre_fail(err, ACRE_EINVALID,
                         "device '%s': step_milli: %u is out of range; accepted: 0 to 1000",
                         device->id, device->step_milli);
    }
    return 0;
}

static int check_node_spec(const struct acre_ledger *ledger, const struct acre_node_spec *spec,
                           struct acre_error *err) {
    char shown[80];
    if (!acre_str_is_name(acre_str_from(spec->name), 128)) {
        return acre_fail(err, ACRE_EINVALID,
                         "'%s' is not a node name; accepted: 1 to 128 letters, digits and -_./:@+",
                         acre_str_show(acre_str_from(spec->name), shown, sizeof(shown)));
    }
    uint32_t existing;
    if (acre_ledger_find_node(ledger, spec->name, &existing)) {
        return acre_fail(err, ACRE_EEXISTS, "node '%s' already exists", spec->name);
    }
    if (spec->cpu_milli > ACRE_LEDGER_AMOUNT_MAX || spec->ram_mib > ACRE_LEDGER_AMOUNT_MAX) {
        return acre_fail(
            err, ACRE_EINVALID,
            "node '%s': cpu_milli %llu or ram_mib %llu is out of range; accepted: 0 to %d each",
            spec->name, (unsigned long long)spec->cpu_milli, (unsigned long long)spec->ram_mib,
            ACRE_LEDGER_AMOUNT_MAX);
    }
    if (spec->device_count > ACRE_NODE_DEVICES_MAX) {
        return acre_fail(err, ACRE_EINVALID,
                         "node '%s': %u devices are too many; accepted: 0 to %d", spec->name,
                         spec->device_count, ACRE_NODE_DEVICES_MAX);
    }
    for (uint32_t i = 0; i < spec->label_count; i++) {
        if (acre_str_from(spec->labels[i]).length == 0) {
            return acre_fail(err, ACRE_EINVALID,
                             "node '%s': label %u is empty; accepted: key=value", spec->name, i);
        }
    }
    for (uint32_t i = 0; i < spec->device_count; i++) {
        int r = check_device_spec(ledger, spec, i, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* A device on its way into a profile: its hardware, and which one of the node it is. */
struct profile_entry {
    struct hardware hardware;
    uint32_t island; /* as given */
    uint32_t device;
};

static int compare_entries(const void *a, const void *b) {
    const struct profile_entry *x = a;
    const struct profile_entry *y = b;
    const int64_t differences[] = {
        (int64_t)x->island - y->island,
        (int64_t)x->hardware.model - y->hardware.model,
        (int64_t)x->hardware.vendor - y->hardware.vendor,
        (int64_t)x->hardware.memory_mib - y->hardware.memory_mib,
        (int64_t)x->hardware.step_milli - y->hardware.step_milli,
        (int64_t)x->hardware.flags - y->hardware.flags,
        (int64_t)x->device - y->device,
    };
    for (size_t i = 0; i < ACRE_COUNT(differences); i++) {
        if (differences[i] != 0) {
            return differences[i] < 0 ? -1 : 1;
        }
    }
    return 0;
}

/* Number islands densely and mark the groups of equal slots. */
static uint8_t group_entries(struct profile_entry *entries, uint32_t count) {
    uint8_t island = 0;
    uint32_t start = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool other_island = i > 0 && entries[i].island != entries[i - 1].island;
        island = (uint8_t)(island + other_island);
        entries[i].hardware.island = island;
        if (i > 0) {
            struct profile_entry before = entries[i - 1];
            before.device = entries[i].device;
            start = compare_entries(&before, &entries[i]) != 0 ? i : start;
        }
        for (uint32_t j = start; j <= i; j++) {
            entries[j].hardware.group_start = (uint8_t)start;
            entries[j].hardware.group_end = (uint8_t)(i + 1);
        }
    }
    return (uint8_t)(count > 0 ? island + 1 : 0);
}

static void make_entries(struct acre_ledger *ledger, const struct acre_node_spec *spec,
                         struct profile_entry *entries) {
    for (uint32_t i = 0; i < spec->device_count; i++) {
        const struct acre_device_spec *device = &spec->devices[i];
        entries[i] = (struct profile_entry){
            .hardware =
                {
                    .model = acre_names_intern(ledger->names, acre_str_from(device->model)),
                    .vendor = acre_names_intern(ledger->names, acre_str_from(device->vendor)),
                    .memory_mib = (uint32_t)device->memory_mib,
                    .step_milli = (uint16_t)device->step_milli,
                    .flags = (uint8_t)((device->is_mig ? HARDWARE_MIG : 0) |
                                       (device->exclusive_only ? HARDWARE_EXCLUSIVE_ONLY : 0)),
                },
            .island = device->island,
            .device = i,
        };
    }
    qsort(entries, spec->device_count, sizeof(*entries), compare_entries);
}

static bool profiles_equal(const struct profile *a, const struct profile *b) {
    return a->hash == b->hash && a->cpu_milli == b->cpu_milli && a->ram_mib == b->ram_mib &&
           a->device_count == b->device_count && a->label_count == b->label_count &&
           memcmp(a->slots, b->slots, a->device_count * sizeof(a->slots[0])) == 0 &&
           (a->label_count == 0 ||
            memcmp(a->labels, b->labels, a->label_count * sizeof(*a->labels)) == 0);
}

static uint32_t intern_profile(struct acre_ledger *ledger, const struct acre_node_spec *spec,
                               struct profile_entry *entries) {
    struct profile *profile =
        acre_calloc(1, sizeof(*profile) + spec->device_count * sizeof(profile->slots[0]));
    profile->cpu_milli = (uint32_t)spec->cpu_milli;
    profile->ram_mib = (uint32_t)spec->ram_mib;
    profile->device_count = (uint8_t)spec->device_count;
    profile->island_count = group_entries(entries, spec->device_count);
    for (uint32_t i = 0; i < spec->device_count; i++) {
        profile->slots[i] = entries[i].hardware;
    }
    profile->label_count = spec->label_count;
    profile->labels = acre_calloc(ACRE_MAX(spec->label_count, 1U), sizeof(*profile->labels));
    for (uint32_t i = 0; i < spec->label_count; i++) {
        profile->labels[i] = acre_names_intern(ledger->names, acre_str_from(spec->labels[i]));
    }
    qsort(profile->labels, profile->label_count, sizeof(*profile->labels), acre_names_compare_ids);
    profile->hash =
        acre_hash_bytes(profile->slots, profile->device_count * sizeof(profile->slots[0]));
    for (uint32_t i = 0; i < ledger->profile_count; i++) {
        if (profiles_equal(ledger->profiles[i], profile)) {
            free(profile->labels);
            free(profile);
            return i;
        }
    }
    if (ledger->profile_count == ledger->profile_capacity) {
        ledger->profile_capacity = ACRE_MAX(2 * ledger->profile_capacity, 16U);
        ledger->profiles =
            acre_realloc(ledger->profiles, ledger->profile_capacity, sizeof(*ledger->profiles));
    }
    ledger->profiles[ledger->profile_count] = profile;
    return ledger->profile_count++;
}

static void grow_tables(struct acre_ledger *ledger, uint32_t devices) {
    if (ledger->node_count == ledger->node_capacity) {
        uint32_t capacity = ledger->node_capacity + ACRE_MAX(ledger->node_capacity / 8, 16U);
        ledger->nodes =
            acre_grow_table(ledger->nodes, ledger->node_count, capacity, sizeof(*ledger->nodes));
        ledger->node_capacity = capacity;
    }
    if (ledger->device_count + devices > ledger->device_capacity) {
        uint32_t capacity =
            ledger->device_capacity + ACRE_MAX(ledger->device_capacity / 8, devices + 64);
        ledger->devices = acre_grow_table(ledger->devices, ledger->device_count, capacity,
                                          sizeof(*ledger->devices));
        ledger->device_capacity = capacity;
    }
}

int acre_ledger_add_node(struct acre_ledger *ledger, const struct acre_node_spec *spec,
                         uint32_t *ret_node, struct acre_error *err) {
    int r = check_node_spec(ledger, spec, err);
    if (r < 0) {
        return r;
    }
    struct profile_entry entries[ACRE_NODE_DEVICES_MAX];
    make_entries(ledger, spec, entries);
    grow_tables(ledger, spec->device_count);
    uint32_t index = ledger->node_count++;
    struct node *node = &ledger->nodes[index];
    *node = (struct node){
        .name = acre_names_intern(ledger->names, acre_str_from(spec->name)),
        .profile = intern_profile(ledger, spec, entries),
        .first_device = ledger->device_count,
        .cpu_free_milli = (uint32_t)spec->cpu_milli,
        .ram_free_mib = (uint32_t)spec->ram_mib,
        .shape = SHAPE_NONE,
        .device_count = (uint8_t)spec->device_count,
    };
    object_for(ledger, node->name)->node = index + 1;
    struct device *devices = spec->device_count > 0 ? &ledger->devices[node->first_device] : NULL;
    for (uint32_t slot = 0; slot < spec->device_count; slot++) {
        uint32_t own = entries[slot].device;
        uint32_t name = acre_names_intern(ledger->names, acre_str_from(spec->devices[own].id));
        object_for(ledger, name)->device = node->first_device + own + 1;
        devices[own] = (struct device){.name = name, .node = index, .slot = (uint8_t)slot};
    }
    for (uint32_t slot = 0; slot < spec->device_count; slot++) {
        devices[slot].at_slot = (uint8_t)entries[slot].device;
    }
    ACRE_ASSERT(node->first_device + spec->device_count <= ledger->device_capacity);
    ledger->device_count += spec->device_count;
    shapes_file_node(ledger, index);
    node_order_changed(ledger, index);
    *ret_node = index;
    return 0;
}
