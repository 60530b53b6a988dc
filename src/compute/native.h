/* native.h - work as back ends take it: checked, resolved, nothing left to look up.
 *
 * Handles are numbers of the back end; see backend.h. These structs also travel to runners
 * (remote.c), followed by what they point to. */
#ifndef ACRE_COMPUTE_NATIVE_H
#define ACRE_COMPUTE_NATIVE_H

#include <acre/kernel.h>

struct native_region {
    uint64_t handle;
    uint64_t address; /* as kernels see it; 0: they cannot, or it is not told */
};

enum native_kind { ACRE_NATIVE_BUFFER, ACRE_NATIVE_VALUE, ACRE_NATIVE_LOCAL };

struct native_arg {
    uint32_t kind;
    uint32_t bytes;  /* VALUE, LOCAL */
    uint64_t region; /* BUFFER: handle of the region. VALUE: offset in `extra` */
    uint64_t offset; /* BUFFER: in the region */
    uint64_t length; /* BUFFER: bytes of it from the offset on */
};

struct native_launch {
    uint64_t kernel;
    struct acre_grid grid; /* no zeros */
    bool is_limited;       /* its time is: it must not run in the thread that gives it */
    const struct native_arg *args;
    uint32_t arg_count;
    uint32_t extra_bytes; /* at most ACRE_EXTRA_MAX */
    const uint8_t *extra; /* the values, each at a multiple of 16 */
};
enum { ACRE_ARGS_MAX = 64, ACRE_EXTRA_MAX = 4096 };

struct native_copy {
    uint64_t to, to_offset, from, from_offset, bytes; /* regions of this seat, of any kind */
};

struct native_fill {
    uint64_t to, to_offset, bytes, pattern;
    uint32_t pattern_bytes;
};

enum node_kind { ACRE_NODE_LAUNCH, ACRE_NODE_COPY, ACRE_NODE_FILL };

struct native_node {
    enum node_kind kind;
    union {
        struct native_launch launch;
        struct native_copy copy;
        struct native_fill fill;
    };
    const uint32_t *after; /* numbers of earlier nodes it waits for */
    uint32_t after_count;
};

struct native_source {
    const char *text; /* prelude and all */
    size_t length;
    const char *options;        /* words separated by spaces; "" */
    const char *const *kernels; /* names of the kernels in it */
    uint32_t kernel_count;
};

struct kernel_facts {
    uint32_t group_max;   /* work items of a group, for this kernel */
    uint32_t local_bytes; /* static */
    uint32_t registers;   /* 0: unknown */
    uint32_t stack_bytes; /* of a work item; 0: none, or of no importance */
    uint32_t group[3];    /* the only one it may be launched with; 0: any */
    uint32_t parameters;  /* as the compiler has them; 0: unknown */
    /* How long each is, where it is a value; 0: unknown. */
    uint16_t value_bytes[ACRE_ARGS_MAX];
};

#endif
