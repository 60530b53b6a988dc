/* query.h - which OpenCL devices there are, and what they say about themselves.
 *
 * What both the device list and the compute back end ask, through the functions of a loader that
 * the caller opened (core/dl.h). Names and types are those of the public OpenCL registry with
 * OPENCL_ for CL_; no context is created here. Any thread. */
#ifndef ACRE_OPENCL_QUERY_H
#define ACRE_OPENCL_QUERY_H

#include "core/buf.h"
#include "core/str.h"

typedef struct _cl_platform_id *opencl_platform;
typedef struct _cl_device_id *opencl_device;

/* clang-format off */
#define OPENCL_QUERY_CONSTANTS(X)       \
    X(SUCCESS,                   0)     \
    X(DEVICE_NOT_FOUND,         -1)     \
    X(PLATFORM_VERSION,          0x0901) \
    X(PLATFORM_NAME,             0x0902) \
    X(DEVICE_TYPE_CPU,           1 << 1) \
    X(DEVICE_TYPE_GPU,           1 << 2) \
    X(DEVICE_TYPE_ACCELERATOR,   1 << 3) \
    X(DEVICE_TYPE,               0x1000) \
    X(DEVICE_MAX_COMPUTE_UNITS,  0x1002) \
    X(DEVICE_MAX_CLOCK_FREQUENCY, 0x100C) \
    X(DEVICE_GLOBAL_MEM_SIZE,    0x101F) \
    X(DEVICE_AVAILABLE,          0x1027) \
    X(DEVICE_NAME,               0x102B) \
    X(DEVICE_VENDOR,             0x102C) \
    X(DRIVER_VERSION,            0x102D) \
    X(DEVICE_VERSION,            0x102F) \
    X(DEVICE_EXTENSIONS,         0x1030)

#define OPENCL_QUERY_SYMBOLS(X)                                                                   \
    /* required result   member         symbol             arguments                           */ \
    X(true,     int32_t, platforms,     clGetPlatformIDs,  (uint32_t, opencl_platform *,          \
                                                            uint32_t *))                          \
    X(true,     int32_t, platform_info, clGetPlatformInfo, (opencl_platform, uint32_t, size_t,    \
                                                            void *, size_t *))                    \
    X(true,     int32_t, devices,       clGetDeviceIDs,    (opencl_platform, uint64_t, uint32_t,  \
                                                            opencl_device *, uint32_t *))         \
    X(true,     int32_t, device_info,   clGetDeviceInfo,   (opencl_device, uint32_t, size_t,      \
                                                            void *, size_t *))
/* clang-format on */

enum {
#define X(name, value) OPENCL_##name = (value),
    OPENCL_QUERY_CONSTANTS(X)
#undef X
        OPENCL_PLATFORM_NOT_FOUND_KHR = -1001, /* the loader is there, no driver is */
};
#define OPENCL_DEVICE_TYPE_ALL UINT64_C(0xFFFFFFFF)

struct acre_opencl_query {
#define X(required, result, member, symbol, arguments) result(*member) arguments;
    OPENCL_QUERY_SYMBOLS(X)
#undef X
};

struct acre_opencl_found {
    opencl_platform platform;
    opencl_device device;
};
enum { ACRE_OPENCL_FOUND_MAX = 256, ACRE_OPENCL_TEXT_MAX = 1024 };

/* Devices of these types on all platforms, in their order; at most ACRE_OPENCL_FOUND_MAX. What a
 * platform answers instead of devices is appended to `notes`, a line each. ACRE_EUNAVAILABLE: there
 * is no platform. */
int acre_opencl_list(const struct acre_opencl_query *query, uint64_t types,
                     struct acre_opencl_found *found, uint32_t *ret_count, struct acre_buf *notes,
                     struct acre_error *err);

/* "" when it does not answer; the view is in `text`. */
struct acre_str acre_opencl_platform_text(const struct acre_opencl_query *query,
                                          opencl_platform platform, uint32_t what, char *text,
                                          size_t size);
struct acre_str acre_opencl_text(const struct acre_opencl_query *query, opencl_device device,
                                 uint32_t what, char *text, size_t size);
/* Numbers of 1 to 8 bytes. False (and nothing written) when it does not answer. */
bool acre_opencl_number(const struct acre_opencl_query *query, opencl_device device, uint32_t what,
                        uint64_t *ret_value);
bool acre_opencl_has_extension(const struct acre_opencl_query *query, opencl_device device,
                               const char *name);

#endif
