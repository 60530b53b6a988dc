/* cuda_rtc.h - NVRTC: CUDA source to code for one GPU.
 *
 * No GPU is needed to compile. Any thread, several at once. */
#ifndef ACRE_COMPUTE_GPU_CUDA_RTC_H
#define ACRE_COMPUTE_GPU_CUDA_RTC_H

#include "compute/gpu/cuda_abi.h"
#include "compute/native.h"
#include "core/buf.h"

struct cuda_rtc {
    struct nvrtc_library library;
    int major, minor;
    char include[2][256]; /* directories with CUDA's headers; "": none */
};

/* What a GPU is compiled for. */
struct cuda_target {
    int arch;    /* 90 for sm_90 */
    bool is_ptx; /* text that the driver compiles: the GPU is newer than NVRTC */
};

/* Find and load it: one that the driver (13000 for 13.0; 0: any) can load code of first.
 * ACRE_EUNAVAILABLE: not found, the text says where it was looked for. */
int cuda_rtc_load(struct cuda_rtc *rtc, int driver_version, struct acre_error *err);

/* Out of what NVRTC knows (ascending): the GPU's own; else the nearest lower one of the same
 * generation, whose code it runs too; else text of the newest lower one. ACRE_EUNSUPPORTED: the GPU
 * is older than all. Pure. */
int cuda_target_choose(const int *archs, int count, int device_arch, struct cuda_target *ret_target,
                       struct acre_error *err);

/* As `compile` of backend.h, for the GPU of `device_arch`. An architecture in the source's own
 * options is not overruled. */
int cuda_rtc_compile(const struct cuda_rtc *rtc, int device_arch,
                     const struct native_source *source, struct acre_buf *binary,
                     struct acre_buf *log, struct acre_error *err);

#endif
