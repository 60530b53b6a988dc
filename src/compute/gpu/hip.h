/* hip.h - AMD GPUs: what hip.c, hip_rtc.c and their tests share.
 *
 * hiprtc_compile needs no device: the compiler is part of the libraries. Any thread. */
#ifndef ACRE_COMPUTE_GPU_HIP_H
#define ACRE_COMPUTE_GPU_HIP_H

#include "compute/gpu/gpu.h"
#include "compute/gpu/hip_abi.h"

struct hiprtc {
#define X(need, member, symbol, result, arguments) result(*member) arguments;
    HIPRTC_SYMBOLS(X)
#undef X
};

struct hip {
    struct gpu gpu; /* first: a struct gpu * of ours is a struct hip * */
#define X(need, member, symbol, result, arguments) result(*member) arguments;
    HIP_SYMBOLS(X)
#undef X
    struct hiprtc rtc;
    bool has_rtc;
    char rtc_absent[256]; /* why not */
    int version;          /* of the runtime: 50221153 is 5.2.21153 */
};

/* The libraries alone; no device is looked for. Free with gpu_close. */
int hip_load(struct hip **ret_hip, struct acre_error *err);

/* hip_rtc.c: `major` is the one of the HIP library that opened. */
int hiprtc_load(int major, struct hiprtc *ret_rtc, struct acre_error *err);
/* As `compile` of backend.h, for the architecture `arch`. */
int hiprtc_compile(const struct hiprtc *rtc, const char *arch, const struct native_source *source,
                   struct acre_buf *binary, struct acre_buf *log, struct acre_error *err);

#endif
