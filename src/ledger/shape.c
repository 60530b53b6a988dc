/* shape.c - hash-consing of node states.
 *
 * Most clusters have few kinds of nodes, and most nodes of a kind are in one of few states
 * (empty, full, one half-used device ...). A placement depends on nothing but the state, so the
 * ledger judges states, not nodes: 12,500 nodes are a few hundred to a few thousand shapes.
 *
 * Filing a node is: compute its words, sort them within groups of equal hardware (devices of
 * one group are interchangeable; each device remembers its slot), hash, look up, move the node
 * from the old shape's heap to the new one's. When one device changed, the words are copied
 * from the old shape and that one word is moved to its place.
 *
 * Sweeping: a dead shape costs memory, a live one is needed. When the dead outnumber the live
 * by a floor of 1024, the classes forget what they thought of dead ones and these go, before an id
 * is given again. That happens at most once in as many filings as there are live shapes, so its
 * cost per filing is constant. */
#include "ledger/shape.h"

#include "core/heap.h"
#include "core/index.h"
#include "ledger/class.h"
#include "ledger/reserve.h"

#include <stdlib.h>
#include <string.h>

enum {
    SWEEP_FLOOR = 1024, /* dead shapes kept at least: about 150 KB */
    LOG_LENGTH = 8192,  /* births a reader may miss before it must look at all shapes; 2^n */
};

struct shapes {
    struct shape **by_id;
    struct glance *glances; /* by id */
    uint32_t *free_ids;
    uint32_t limit, capacity, free_count;
    struct acre_index index; /* of ids by state */
    uint32_t live;
    uint64_t log_end;
    uint64_t log_begin;
    uint32_t log[LOG_LENGTH];
    uint64_t free_milli; /* of all nodes */
    size_t bytes;
};

struct shapes *shapes_create(void) {
    return acre_calloc(1, sizeof(struct shapes));
}

static void shape_free(struct shapes *shapes, struct shape *shape) {
    shapes->bytes -= sizeof(*shape) + shape->device_count * sizeof(shape->words[0]) +
                     shape->node_capacity * sizeof(*shape->nodes);
    free(shape->nodes);
    free(shape);
}

void shapes_destroy(struct shapes *shapes) {
    if (shapes == NULL) {
        return;
    }
    for (uint32_t i = 0; i < shapes->limit; i++) {
        if (shapes->by_id[i] != NULL) {
            shape_free(shapes, shapes->by_id[i]);
        }
    }
    free(shapes->by_id);
    free(shapes->glances);
    free(shapes->free_ids);
    acre_index_finish(&shapes->index);
    free(shapes);
}

uint32_t shapes_limit(const struct shapes *shapes) {
    return shapes->limit;
}

const struct shape *shapes_get(const struct shapes *shapes, uint32_t id) {
    return shapes->by_id[id];
}

const struct glance *shapes_glances(const struct shapes *shapes) {
    return shapes->glances;
}

uint64_t shapes_log_end(const struct shapes *shapes) {
    return shapes->log_end;
}

uint64_t shapes_log_begin(const struct shapes *shapes) {
    return shapes->log_begin;
}

uint32_t shapes_log_read(const struct shapes *shapes, uint64_t position, uint32_t *ids,
                         uint32_t max) {
    ACRE_ASSERT(position >= shapes->log_begin && position <= shapes->log_end);
    uint32_t count = (uint32_t)ACRE_MIN(shapes->log_end - position, (uint64_t)max);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = shapes->log[(position + i) & (LOG_LENGTH - 1)];
    }
    return count;
}

uint64_t shapes_free_milli(const struct shapes *shapes) {
    return shapes->free_milli;
}

size_t shapes_bytes(const struct shapes *shapes) {
    return sizeof(*shapes) + shapes->bytes +
           shapes->capacity *
               (sizeof(*shapes->by_id) + sizeof(*shapes->glances) + sizeof(*shapes->free_ids)) +
           acre_index_bytes(&shapes->index);
}

int shape_compare(const struct shape *a, const struct shape *b) {
    if (a->free_milli != b->free_milli) {
        return a->free_milli < b->free_milli ? -1 : 1;
    }
    if (a->cpu_free_milli != b->cpu_free_milli) {
        return a->cpu_free_milli < b->cpu_free_milli ? -1 : 1;
    }
    if (a->ram_free_mib != b->ram_free_mib) {
        return a->ram_free_mib < b->ram_free_mib ? -1 : 1;
    }
    if (a->device_count != b->device_count) {
        return a->device_count < b->device_count ? -1 : 1;
    }
    for (uint32_t i = 0; i < a->device_count; i++) {
        if (a->words[i] != b->words[i]) {
            return a->words[i] < b->words[i] ? -1 : 1;
        }
    }
    return a->profile == b->profile ? 0 : a->profile < b->profile ? -1 : 1;
}

/* Each step multiplies by an odd constant and folds the high half down: cheap, and every input
 * bit reaches the low bits that the index uses. */
static uint64_t mix_in(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_state(uint32_t profile, uint32_t cpu, uint32_t ram, const uint64_t *words,
                           uint32_t count) {
    uint64_t hash = mix_in(mix_in(count, (uint64_t)cpu << 32 | ram), profile);
    for (uint32_t i = 0; i < count; i++) {
        hash = mix_in(hash, words[i]);
    }
    return hash;
}

/* A node's state, as it is looked for. */
struct node_state {
    uint64_t hash;
    const struct node *node;
    const uint64_t *words;
};

static uint32_t shape_hash(uint32_t id, const void *context) {
    return (uint32_t)((const struct shapes *)context)->by_id[id]->hash;
}

static bool shape_is(uint32_t id, const void *key, const void *context) {
    const struct shape *shape = ((const struct shapes *)context)->by_id[id];
    const struct node_state *state = key;
    const struct node *node = state->node;
    return shape->hash == state->hash && shape->profile == node->profile &&
           shape->cpu_free_milli == node->cpu_free_milli &&
           shape->ram_free_mib == node->ram_free_mib &&
           memcmp(shape->words, state->words, node->device_count * sizeof(state->words[0])) == 0;
}

static const struct acre_index_kind by_state = {shape_hash, shape_is};

static void sweep(struct acre_ledger *ledger) {
    struct shapes *shapes = ledger->shapes;
    classes_forget_dead(ledger);
    for (uint32_t i = 0; i < shapes->limit; i++) {
        if (shapes->by_id[i] != NULL && shapes->by_id[i]->node_count == 0) {
            acre_index_remove(&by_state, &shapes->index, shape_hash(i, shapes), i, shapes);
            shape_free(shapes, shapes->by_id[i]);
            shapes->by_id[i] = NULL;
            shapes->free_ids[shapes->free_count++] = i;
        }
    }
}

static uint32_t take_id(struct shapes *shapes) {
    if (shapes->free_count > 0) {
        return shapes->free_ids[--shapes->free_count];
    }
    if (shapes->limit == shapes->capacity) {
        shapes->capacity = ACRE_MAX(2 * shapes->capacity, 256U);
        shapes->by_id = acre_realloc(shapes->by_id, shapes->capacity, sizeof(*shapes->by_id));
        shapes->glances = acre_realloc(shapes->glances, shapes->capacity, sizeof(*shapes->glances));
        shapes->free_ids =
            acre_realloc(shapes->free_ids, shapes->capacity, sizeof(*shapes->free_ids));
    }
    return shapes->limit++;
}

static uint32_t shape_add(struct shapes *shapes, const struct node_state *state) {
    const struct node *node = state->node;
    const uint64_t *words = state->words;
    size_t words_size = node->device_count * sizeof(words[0]);
    struct shape *shape = acre_calloc(1, sizeof(*shape) + words_size);
    shape->hash = state->hash;
    shape->profile = node->profile;
    shape->cpu_free_milli = node->cpu_free_milli;
    shape->ram_free_mib = node->ram_free_mib;
    shape->device_count = node->device_count;
    memcpy(shape->words, words, words_size);
    for (uint32_t i = 0; i < node->device_count; i++) {
        uint32_t milli = word_milli(words[i]);
        shape->free_milli += milli;
        shape->largest_milli = (uint16_t)ACRE_MAX(shape->largest_milli, milli);
        shape->idle_count = (uint8_t)(shape->idle_count + (milli == 1000));
    }
    uint32_t id = take_id(shapes);
    shapes->by_id[id] = shape;
    shapes->glances[id] = (struct glance){.cpu_free_milli = shape->cpu_free_milli,
                                          .ram_free_mib = shape->ram_free_mib,
                                          .largest_milli = shape->largest_milli,
                                          .idle_count = shape->idle_count};
    shapes->bytes += sizeof(*shape) + words_size;
    acre_index_add(&by_state, &shapes->index, shape_hash(id, shapes), id, shapes);
    return id;
}

static uint32_t shape_find_or_add(struct shapes *shapes, const struct node *node,
                                  const uint64_t *words) {
    struct node_state state = {.hash = hash_state(node->profile, node->cpu_free_milli,
                                                  node->ram_free_mib, words, node->device_count),
                               .node = node,
                               .words = words};
    uint32_t id = acre_index_find(&by_state, &shapes->index, (uint32_t)state.hash, &state, shapes);
    return id != ACRE_INDEX_NONE ? id : shape_add(shapes, &state);
}

static bool is_lower(const void *a, const void *b, const void *context) {
    (void)context;
    return *(const uint32_t *)a < *(const uint32_t *)b;
}

static void note_position(const void *item, uint32_t at, void *context) {
    ((struct acre_ledger *)context)->nodes[*(const uint32_t *)item].heap_pos = at;
}

static const struct acre_heap_kind by_number = {sizeof(uint32_t), is_lower, note_position};

static void leave_shape(struct acre_ledger *ledger, uint32_t node) {
    uint32_t id = ledger->nodes[node].shape;
    if (id == SHAPE_NONE) {
        return;
    }
    struct shape *shape = ledger->shapes->by_id[id];
    uint32_t at = ledger->nodes[node].heap_pos;
    ACRE_ASSERT(at < shape->node_count && shape->nodes[at] == node);
    ledger->shapes->free_milli -= shape->free_milli;
    acre_heap_remove(&by_number, shape->nodes, &shape->node_count, at, ledger);
    if (shape->node_count == 0) {
        ledger->shapes->live--;
        ledger->shapes->glances[id].is_live = false;
    }
    ledger->nodes[node].shape = SHAPE_NONE;
}

static void enter_shape(struct acre_ledger *ledger, uint32_t node, uint32_t id) {
    struct shapes *shapes = ledger->shapes;
    struct shape *shape = shapes->by_id[id];
    ACRE_ASSERT(ledger->nodes[node].shape == SHAPE_NONE &&
                shape->profile == ledger->nodes[node].profile);
    if (shape->node_count == shape->node_capacity) {
        uint32_t capacity = ACRE_MAX(2 * shape->node_capacity, 2U);
        shape->nodes = acre_realloc(shape->nodes, capacity, sizeof(*shape->nodes));
        shapes->bytes += (capacity - shape->node_capacity) * sizeof(*shape->nodes);
        shape->node_capacity = capacity;
    }
    if (shape->node_count == 0) {
        shapes->live++;
        shapes->glances[id].is_live = true;
        shapes->log[shapes->log_end++ & (LOG_LENGTH - 1)] = id;
        if (shapes->log_end - shapes->log_begin > LOG_LENGTH) {
            shapes->log_begin = shapes->log_end - LOG_LENGTH;
        }
    }
    ledger->nodes[node].shape = id;
    shapes->free_milli += shape->free_milli;
    acre_heap_push(&by_number, shape->nodes, &shape->node_count, &node, ledger);
}

uint64_t usage_word(const struct hardware *hardware, const struct usage *usage) {
    uint32_t free_milli = usage->milli < 1000 ? 1000 - usage->milli : 0;
    if (free_milli == 0) {
        return 0;
    }
    uint32_t total = hardware->memory_mib;
    uint32_t room = free_milli;
    uint32_t free_mib = 0;
    if (total > 0) {
        /* Shares by milli hold total * milli / 1000 together, rounded once and not per share:
         * ten tenths fit exactly whatever the memory is. */
        uint32_t left = usage->memory_mib < total ? total - (uint32_t)usage->memory_mib : 0;
        uint64_t limit = (uint64_t)left * 1000 / total;
        room = limit > usage->milli_by_share
                   ? ACRE_MIN((uint32_t)limit - usage->milli_by_share, free_milli)
                   : 0;
        uint64_t held = ((uint64_t)total * usage->milli_by_share + 999) / 1000;
        free_mib = left > held ? left - (uint32_t)held : 0;
    }
    return word_make(free_milli, room, usage->isolation, free_mib, usage->shares_left);
}

uint64_t books_word(const struct acre_ledger *ledger, uint32_t index) {
    ACRE_ASSERT(index < ledger->device_count);
    const struct device *device = &ledger->devices[index];
    const struct node *node = &ledger->nodes[device->node];
    if ((device->flags & DEVICE_DRAINED) != 0 || device->count >= shares_max(ledger)) {
        return 0;
    }
    struct usage usage = {
        .milli = device->milli_used,
        .milli_by_share = device->milli_by_share,
        .memory_mib = (uint64_t)device->memory_asked_mib + device->foreign_mib,
        .isolation = device->isolation,
        .shares_left = ledger->track_counts ? shares_max(ledger) - device->count : 0,
    };
    return usage_word(&ledger->profiles[node->profile]->slots[device->slot], &usage);
}

uint64_t device_word(const struct acre_ledger *ledger, uint32_t index) {
    uint64_t word = books_word(ledger, index);
    bool has_calendar = (ledger->devices[index].flags & DEVICE_CALENDAR) != 0;
    return has_calendar ? reserved_word(ledger, index, word, UINT64_MAX) : word;
}

/* Put `word` of `device` at its place among the sorted words of its group. */
static void settle_word(struct acre_ledger *ledger, const struct node *node, uint64_t *words,
                        uint32_t device, uint64_t word) {
    struct device *devices = &ledger->devices[node->first_device];
    uint32_t own = device - node->first_device;
    uint32_t at = devices[own].slot;
    const struct hardware *group = &ledger->profiles[node->profile]->slots[at];
    while (at > group->group_start && words[at - 1] < word) {
        words[at] = words[at - 1];
        devices[at].at_slot = devices[at - 1].at_slot;
        devices[devices[at].at_slot].slot = (uint8_t)at;
        at--;
    }
    while (at + 1 < group->group_end && words[at + 1] > word) {
        words[at] = words[at + 1];
        devices[at].at_slot = devices[at + 1].at_slot;
        devices[devices[at].at_slot].slot = (uint8_t)at;
        at++;
    }
    words[at] = word;
    devices[at].at_slot = (uint8_t)own;
    devices[own].slot = (uint8_t)at;
}

static void move_node(struct acre_ledger *ledger, uint32_t node, const uint64_t *words) {
    if (ledger->shapes->index.count > 2 * ledger->shapes->live + SWEEP_FLOOR) {
        sweep(ledger);
    }
    leave_shape(ledger, node);
    enter_shape(ledger, node, shape_find_or_add(ledger->shapes, &ledger->nodes[node], words));
}

void shapes_file_node(struct acre_ledger *ledger, uint32_t index) {
    ACRE_ASSERT(index < ledger->node_count);
    struct node *node = &ledger->nodes[index];
    if (node->drained) {
        leave_shape(ledger, index);
        return;
    }
    /* Each word starts as the lowest of its group and rises to its place. */
    uint64_t words[ACRE_NODE_DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < node->device_count; i++) {
        uint32_t device = node->first_device + i;
        settle_word(ledger, node, words, device, device_word(ledger, device));
    }
    move_node(ledger, index, words);
}

void shapes_refile_device(struct acre_ledger *ledger, uint32_t index, uint32_t device) {
    ACRE_ASSERT(index < ledger->node_count && !ledger->nodes[index].drained);
    ACRE_ASSERT(device == ACRE_DEVICE_NONE || ledger->devices[device].node == index);
    struct node *node = &ledger->nodes[index];
    if (node->shape == SHAPE_NONE) {
        shapes_file_node(ledger, index);
        return;
    }
    uint64_t words[ACRE_NODE_DEVICES_MAX];
    memcpy(words, ledger->shapes->by_id[node->shape]->words, node->device_count * sizeof(words[0]));
    if (device != ACRE_DEVICE_NONE) {
        settle_word(ledger, node, words, device, device_word(ledger, device));
    }
    move_node(ledger, index, words);
}
