/* node_order.c - a tournament over nodes in index order.
 *
 * Each node's entry says what it has most of: the largest free share, idle devices, CPU and RAM.
 * An inner entry is the maximum of its two halves, so a half that lacks any one of them is
 * passed over whole. The maxima need not be on one node or device, hence the exact check at the
 * leaf; misses there are few, because wants are limited by one thing at a time. */
#include "ledger/node_order.h"

#include "ledger/shape.h"

#include <stdlib.h>

struct most {
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint16_t milli; /* largest free share */
    uint16_t idle;  /* idle devices */
};

struct node_order {
    struct most *most; /* 1 is the root; leaves from `leaves` on */
    uint32_t leaves;   /* a power of two */
};

void node_order_destroy(struct node_order *order) {
    if (order != NULL) {
        free(order->most);
        free(order);
    }
}

size_t node_order_bytes(const struct node_order *order) {
    return order != NULL ? sizeof(*order) + 2 * (size_t)order->leaves * sizeof(*order->most) : 0;
}

static struct most most_of(const struct acre_ledger *ledger, uint32_t index) {
    const struct node *node = &ledger->nodes[index];
    struct most most = {0};
    if (node->drained) {
        return most;
    }
    most.cpu_milli = node->cpu_free_milli;
    most.ram_mib = node->ram_free_mib;
    const struct shape *shape = shapes_get(ledger->shapes, node->shape);
    for (uint32_t i = 0; i < node->device_count; i++) {
        uint32_t milli = word_milli(shape->words[i]);
        most.milli = (uint16_t)ACRE_MAX(most.milli, milli);
        most.idle = (uint16_t)(most.idle + (milli == 1000));
    }
    return most;
}

static struct most most_of_both(const struct most *a, const struct most *b) {
    return (struct most){
        .cpu_milli = ACRE_MAX(a->cpu_milli, b->cpu_milli),
        .ram_mib = ACRE_MAX(a->ram_mib, b->ram_mib),
        .milli = ACRE_MAX(a->milli, b->milli),
        .idle = ACRE_MAX(a->idle, b->idle),
    };
}

static void build(struct acre_ledger *ledger, struct node_order *order) {
    uint32_t leaves = 64;
    while (leaves < ledger->node_count) {
        leaves *= 2;
    }
    free(order->most);
    order->leaves = leaves;
    order->most = acre_calloc(2 * (size_t)leaves, sizeof(*order->most));
    for (uint32_t i = 0; i < ledger->node_count; i++) {
        order->most[leaves + i] = most_of(ledger, i);
    }
    for (uint32_t i = leaves - 1; i > 0; i--) {
        order->most[i] = most_of_both(&order->most[2 * i], &order->most[2 * i + 1]);
    }
}

void node_order_changed(struct acre_ledger *ledger, uint32_t node) {
    ACRE_ASSERT(node < ledger->node_count);
    struct node_order *order = ledger->order;
    if (order == NULL) {
        return;
    }
    if (node >= order->leaves) {
        build(ledger, order);
        return;
    }
    uint32_t at = order->leaves + node;
    order->most[at] = most_of(ledger, node);
    while (at > 1) {
        at /= 2;
        order->most[at] = most_of_both(&order->most[2 * at], &order->most[2 * at + 1]);
    }
}

static bool may_serve(const struct most *most, const struct want *want) {
    return most->cpu_milli >= want->cpu_milli && most->ram_mib >= want->ram_mib &&
           (want->gpus == 0 || (most->milli >= ACRE_MAX(want->milli, 1U) &&
                                (!want->whole || most->idle >= want->gpus)));
}

static bool node_serves(struct acre_ledger *ledger, struct want_class *class, uint32_t index) {
    const struct node *node = &ledger->nodes[index];
    uint64_t slots;
    if (index >= ledger->node_count || node->drained ||
        !class_matches(ledger, class, node->profile, &slots)) {
        return false;
    }
    struct room room;
    struct rank rank;
    room_from_shape(ledger, shapes_get(ledger->shapes, node->shape), &room);
    const struct want *want = class_want(class);
    return choose_devices(ledger, want, slots, want->replicas, &room, NULL, &rank);
}

/* The first serving leaf in [from, to) below entry `at`, which covers [low, low + size). */
static uint32_t find_below(struct acre_ledger *ledger, struct want_class *class, uint32_t at,
                           uint32_t low, uint32_t size, uint32_t from, uint32_t to) {
    const struct node_order *order = ledger->order;
    if (low + size <= from || low >= to || !may_serve(&order->most[at], class_want(class))) {
        return UINT32_MAX;
    }
    if (size == 1) {
        return node_serves(ledger, class, low) ? low : UINT32_MAX;
    }
    uint32_t found = find_below(ledger, class, 2 * at, low, size / 2, from, to);
    if (found == UINT32_MAX) {
        found = find_below(ledger, class, 2 * at + 1, low + size / 2, size / 2, from, to);
    }
    return found;
}

uint32_t node_order_find(struct acre_ledger *ledger, struct want_class *class, uint32_t from) {
    ACRE_ASSERT(from <= ledger->node_count);
    if (ledger->order == NULL) {
        ledger->order = acre_calloc(1, sizeof(*ledger->order));
        build(ledger, ledger->order);
    }
    uint32_t leaves = ledger->order->leaves;
    uint32_t found = find_below(ledger, class, 1, 0, leaves, from, leaves);
    if (found == UINT32_MAX && from > 0) {
        found = find_below(ledger, class, 1, 0, leaves, 0, from);
    }
    return found;
}
