/* arg.h - the arguments of a kernel: ACRE_BUFFER(x), ACRE_F32(2), one for each parameter.
 *
 * The macros make a struct acre_arg, in C and in C++. ACRE_BYTES keeps the pointer, which must stay
 * valid until the call that takes the argument returns. Any thread. */
#ifndef ACRE_ARG_H
#define ACRE_ARG_H

#include <acre/memory.h>

#if defined(__GNUC__)
#define ACRE_EXTENSION_ __extension__ /* C++ has no anonymous structs */
#else
#define ACRE_EXTENSION_
#endif

enum acre_arg_kind {
    ACRE_ARG_BUFFER,
    ACRE_ARG_INTEGER, /* signed or not */
    ACRE_ARG_FLOAT,
    ACRE_ARG_BYTES, /* vectors, structs */
    ACRE_ARG_LOCAL, /* an amount of local memory (OpenCL) */
};

struct acre_arg {
    uint32_t kind;
    uint32_t bytes; /* size of the value, or of the local memory */
    union {
        ACRE_EXTENSION_ struct {
            struct acre_buffer buffer;
            uint64_t offset;
        };
        const void *pointer; /* BYTES */
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    };
};

#define ACRE_BUFFER(handle) ACRE_BUFFER_AT(handle, 0)

#ifndef __cplusplus

#define ACRE_ARG_OF(kind_, bytes_, ...)                                                            \
    ((struct acre_arg){.kind = ACRE_ARG_##kind_, .bytes = (bytes_), __VA_ARGS__})
#define ACRE_BUFFER_AT(handle, at) ACRE_ARG_OF(BUFFER, 0, .buffer = (handle), .offset = (at))
#define ACRE_I32(value)            ACRE_ARG_OF(INTEGER, 4, .i32 = (value))
#define ACRE_U32(value)            ACRE_ARG_OF(INTEGER, 4, .u32 = (value))
#define ACRE_I64(value)            ACRE_ARG_OF(INTEGER, 8, .i64 = (value))
#define ACRE_U64(value)            ACRE_ARG_OF(INTEGER, 8, .u64 = (value))
#define ACRE_F32(value)            ACRE_ARG_OF(FLOAT, 4, .f32 = (value))
#define ACRE_F64(value)            ACRE_ARG_OF(FLOAT, 8, .f64 = (value))
#define ACRE_BYTES(at, size)       ACRE_ARG_OF(BYTES, size, .pointer = (at))
#define ACRE_LOCAL(size)           ACRE_ARG_OF(LOCAL, size, .u64 = 0)

#else /* C++ has no compound literals */

inline acre_arg acre_arg_of(acre_arg_kind kind, uint32_t bytes, uint64_t value) {
    acre_arg arg = acre_arg();
    arg.kind = kind;
    arg.bytes = bytes;
    arg.u64 = value; /* a value of 4 bytes is in the lower half, which comes first */
    return arg;
}
inline acre_arg acre_arg_at(acre_buffer buffer, uint64_t offset) {
    acre_arg arg = acre_arg_of(ACRE_ARG_BUFFER, 0, 0);
    arg.buffer = buffer;
    arg.offset = offset;
    return arg;
}
inline acre_arg acre_arg_f32(float value) {
    acre_arg arg = acre_arg_of(ACRE_ARG_FLOAT, 4, 0);
    arg.f32 = value;
    return arg;
}
inline acre_arg acre_arg_f64(double value) {
    acre_arg arg = acre_arg_of(ACRE_ARG_FLOAT, 8, 0);
    arg.f64 = value;
    return arg;
}
inline acre_arg acre_arg_bytes(const void *at, uint32_t size) {
    acre_arg arg = acre_arg_of(ACRE_ARG_BYTES, size, 0);
    arg.pointer = at;
    return arg;
}

#define ACRE_BUFFER_AT(handle, at) acre_arg_at(handle, at)
#define ACRE_I32(value)            acre_arg_of(ACRE_ARG_INTEGER, 4, static_cast<uint32_t>(value))
#define ACRE_U32(value)            acre_arg_of(ACRE_ARG_INTEGER, 4, static_cast<uint32_t>(value))
#define ACRE_I64(value)            acre_arg_of(ACRE_ARG_INTEGER, 8, static_cast<uint64_t>(value))
#define ACRE_U64(value)            acre_arg_of(ACRE_ARG_INTEGER, 8, static_cast<uint64_t>(value))
#define ACRE_F32(value)            acre_arg_f32(static_cast<float>(value))
#define ACRE_F64(value)            acre_arg_f64(static_cast<double>(value))
#define ACRE_BYTES(at, size)       acre_arg_bytes(at, static_cast<uint32_t>(size))
#define ACRE_LOCAL(size)           acre_arg_of(ACRE_ARG_LOCAL, static_cast<uint32_t>(size), 0)

#endif

#endif
