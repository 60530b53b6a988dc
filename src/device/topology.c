/* topology.c - islands by union-find over the close links.
 *
 * Union by lowest position keeps a group's representative at its first member, so numbering in list
 * order needs no second pass over groups. Path halving; a node has at most some hundred devices. */
#include "device/topology.h"

#include "device/column.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool island;
} kinds[] = {
#define X(kind, name, island) {name, island},
    ACRE_LINKS(X)
#undef X
};

const char *link_name(enum link_kind kind) {
    ACRE_ASSERT((size_t)kind < ACRE_COUNT(kinds));
    return kinds[kind].name;
}

void link_list_add(struct acre_link_list *list, struct acre_device_link link) {
    ACRE_ASSERT(link.a < link.b);
    if (list->count == list->capacity) {
        list->capacity = ACRE_MAX(16U, list->capacity * 2);
        list->items = acre_realloc(list->items, list->capacity, sizeof(*list->items));
    }
    list->items[list->count++] = link;
}

void link_list_finish(struct acre_link_list *list) {
    free(list->items);
    *list = (struct acre_link_list){0};
}

static uint32_t root_of(uint32_t *parent, uint32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) {
    uint32_t x = root_of(parent, a);
    uint32_t y = root_of(parent, b);
    parent[ACRE_MAX(x, y)] = ACRE_MIN(x, y);
}

/* Devices no link joins, by NUMA node. */
static void join_numa(uint32_t *parent, const struct acre_device_info *infos, uint32_t count,
                      const char **kind) {
    for (uint32_t i = 0; i < count; i++) {
        if (kind[i] != NULL || !ACRE_HAS(&infos[i], ACRE_INFO, numa_node) ||
            ACRE_HAS(&infos[i], ACRE_INFO, parent_id)) {
            continue;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (kind[j] != NULL && strcmp(kind[j], "numa") == 0 &&
                infos[j].numa_node == infos[i].numa_node) {
                join(parent, j, i);
                break;
            }
        }
        kind[i] = "numa";
    }
}

static void join_slices(uint32_t *parent, const struct acre_device_info *infos, uint32_t count,
                        const char **kind) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; ACRE_HAS(&infos[i], ACRE_INFO, parent_id) && j < count; j++) {
            if (i != j && kind[j] != NULL && strcmp(infos[j].id, infos[i].parent_id) == 0) {
                join(parent, i, j);
                kind[i] = kind[j];
            }
        }
    }
}

void islands_assign(struct acre_device_info *infos, uint32_t count,
                    const struct acre_device_link *links, uint32_t link_count) {
    uint32_t *parent = acre_calloc(count + 1U, sizeof(*parent));
    uint32_t *number = acre_calloc(count + 1U, sizeof(*number)); /* by root, from 1 */
    const char **kind = acre_calloc(count + 1U, sizeof(*kind));
    for (uint32_t i = 0; i < count; i++) {
        parent[i] = i;
    }
    for (uint32_t i = 0; i < link_count; i++) {
        ACRE_ASSERT(links[i].a < count && links[i].b < count);
        if (kinds[links[i].kind].island) {
            join(parent, links[i].a, links[i].b);
            kind[links[i].a] = kinds[links[i].kind].name;
            kind[links[i].b] = kinds[links[i].kind].name;
        }
    }
    join_numa(parent, infos, count, kind);
    join_slices(parent, infos, count, kind);
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kind[i] != NULL) {
            uint32_t root = root_of(parent, i);
            number[root] = number[root] != 0 ? number[root] : ++next;
            ACRE_PUT(&infos[i], ACRE_INFO, island, number[root] - 1);
            ACRE_PUT_TEXT(&infos[i], ACRE_INFO, island_kind, acre_str_from(kind[i]));
        }
    }
    free(parent);
    free(number);
    free(kind);
}
