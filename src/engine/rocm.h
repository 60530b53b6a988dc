/* rocm.h - which number ROCm gives an AMD GPU, and its render node.
 *
 * ROCm counts GPUs in the order of the kernel's compute topology (KFD). Reads small files; any
 * thread. */
#ifndef ACRE_ENGINE_ROCM_H
#define ACRE_ENGINE_ROCM_H

#include "core/error.h"

struct rocm_gpu {
    uint32_t index;        /* among the GPUs, from 0 */
    uint32_t render_minor; /* of /dev/dri/renderD<minor>; 0: unknown */
};

/* Is `id` that of a partition, "<parent>/xcp3"? Then its number. */
bool rocm_partition(const char *id, uint32_t *ret_xcp);

/* The GPU at `pci` ("0000:05:00.0"), its partition `xcp` (0 when it is not divided). ACRE_EINVALID:
 * no PCI address; ACRE_ENOTFOUND names what was looked for and where. */
int rocm_find(const char *sys_root, const char *pci, uint32_t xcp, struct rocm_gpu *ret_gpu,
              struct acre_error *err);

#endif
