/* cluster.h - which job holds which GPU, for routes; GPUs drained and returned, for the overseer.
 * Loop thread only. */
#ifndef ACRE_API_CLUSTER_H
#define ACRE_API_CLUSTER_H

#include "api/api.h"

/* Who holds what, sorted by device, in the arena. */
struct holder {
    uint32_t node, device; /* ACRE_DEVICE_NONE: CPU and RAM alone */
    uint64_t owner;        /* a job */
    uint32_t milli, mib;
    bool reserved; /* by a reservation: `owner` is its id */
};
struct holders {
    struct holder *items;
    uint32_t count;
};
struct holders cluster_holders(struct acre_api *api, struct acre_arena *arena);
/* Where those of `device` begin, or would. */
uint32_t cluster_first_holder(const struct holders *holders, uint32_t device);

#endif
