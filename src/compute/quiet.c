/* quiet.c - see quiet.h. The scope is the rings' own pause (ring/ring_serve.c). */
#include "compute/quiet.h"

#include "compute/ring/ring.h"

void quiet_begin(struct quiet *quiet, struct acre_context *context) {
    rings_pause(context);
    quiet->context = context;
}

void quiet_end(struct quiet *quiet) {
    if (quiet->context != NULL) {
        rings_resume(quiet->context);
        quiet->context = NULL;
    }
}

static const struct backend *table_of(const struct quiet *quiet) {
    ACRE_ASSERT(quiet->context != NULL); /* not begun, or ended */
    return quiet->context->table;
}

int quiet_load(const struct quiet *quiet, const void *binary, size_t length, uint64_t *ret_module,
               struct acre_error *err) {
    return table_of(quiet)->load(quiet->context->seat, binary, length, ret_module, err);
}

void quiet_unload(const struct quiet *quiet, uint64_t module) {
    table_of(quiet)->unload(quiet->context->seat, module);
}

void quiet_region_destroy(const struct quiet *quiet, uint64_t region) {
    table_of(quiet)->region_destroy(quiet->context->seat, region);
}

int quiet_region_import(const struct quiet *quiet, const uint8_t ticket[64],
                        struct native_region *ret_region, struct acre_error *err) {
    return table_of(quiet)->region_import(quiet->context->seat, ticket, ret_region, err);
}

int quiet_graph_create(const struct quiet *quiet, const struct native_node *nodes, uint32_t count,
                       uint64_t *ret_graph, struct acre_error *err) {
    return table_of(quiet)->graph_create(quiet->context->seat, nodes, count, ret_graph, err);
}

void quiet_graph_destroy(const struct quiet *quiet, uint64_t graph) {
    table_of(quiet)->graph_destroy(quiet->context->seat, graph);
}
