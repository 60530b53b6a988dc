/* quiet.h - a context without resident kernels, for driver calls that wait for every kernel.
 *
 * The kernel of a ring stays on the device until it is asked to leave. Some driver calls return
 * only when every kernel of the context has ended, and would wait for that one forever:
 *   - loading and unloading a module;
 *   - freeing device memory or unregistering host memory, and importing another process's memory;
 *   - creating and destroying a graph;
 *   - the first launch of a kernel that needs a larger stack than all before it (launch.h).
 * They are made in a quiet scope. The kernels of all rings leave when it begins and are launched
 * again when it ends; messages wait. All other calls of backend.h return while kernels run.
 *
 * The front makes these calls through the functions below, which take the scope they are made in:
 * scripts/tidy finds calls that bypass them.
 *
 * A scope begins and ends with neither the gate nor a lock held (inner.h has their order), and may
 * begin within another one of the same thread. Scopes of several threads run one after another. */
#ifndef ACRE_COMPUTE_QUIET_H
#define ACRE_COMPUTE_QUIET_H

#include "compute/inner.h"

struct quiet {
    struct acre_context *context; /* NULL: not begun */
};

void quiet_begin(struct quiet *quiet, struct acre_context *context);
void quiet_end(struct quiet *quiet); /* one that was not begun is fine */

/* As the slots of backend.h are. Gate held where the seat can be lost. */
int quiet_load(const struct quiet *quiet, const void *binary, size_t length, uint64_t *ret_module,
               struct acre_error *err);
void quiet_unload(const struct quiet *quiet, uint64_t module);
void quiet_region_destroy(const struct quiet *quiet, uint64_t region);
int quiet_region_import(const struct quiet *quiet, const uint8_t ticket[64],
                        struct native_region *ret_region, struct acre_error *err);
int quiet_graph_create(const struct quiet *quiet, const struct native_node *nodes, uint32_t count,
                       uint64_t *ret_graph, struct acre_error *err);
void quiet_graph_destroy(const struct quiet *quiet, uint64_t graph);

#endif
