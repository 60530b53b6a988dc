/* quiet.c - see quiet.h. The scope is the rings' own pause (ring/serve.c). */
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

static const struct acre_backend *table_of(const struct quiet *quiet) {
    ACRE_ASSERT(quiet->context != NULL); /* not begun, or ended */
    return quiet->context->table;
}

int quiet_load(const struct quiet *quiet, const void *binary, size_t length, uint64_t *ret_module,
               struct acre_error *err) {
    return table_of(quiet)->load(quiet->context->place, binary, length, ret_module, err);
}

void quiet_unload(const struct quiet *quiet, uint64_t module) {
    table_of(quiet)->unload(quiet->context->place, module);
}

void quiet_region_destroy(const struct quiet *quiet, uint64_t region) {
    table_of(quiet)->region_destroy(quiet->context->place, region);
}

int quiet_region_import(const struct quiet *quiet, const uint8_t ticket[64],
                        struct acre_region *ret_region, struct acre_error *err) {
    return table_of(quiet)->region_import(quiet->context->place, ticket, ret_region, err);
}

int quiet_graph_create(const struct quiet *quiet, const struct acre_native_node *nodes,
                       uint32_t count, uint64_t *ret_graph, struct acre_error *err) {
    return table_of(quiet)->graph_create(quiet->context->place, nodes, count, ret_graph, err);
}

void quiet_graph_destroy(const struct quiet *quiet, uint64_t graph) {
    table_of(quiet)->graph_destroy(quiet->context->place, graph);
}
