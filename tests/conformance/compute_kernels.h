/* compute_kernels.h - the kernels of the compute suite, in the portable dialect: one place.
 *
 * Each source must compile on every back end; the tests of the compilers (NVRTC, HIPRTC) use the
 * same list. Handlers of rings are apart: a ring puts its own kernel around them. */
#ifndef ACRE_TEST_COMPUTE_KERNELS_H
#define ACRE_TEST_COMPUTE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

struct compute_source {
    const char *name;    /* of the file it could be: "basics.acl" */
    const char *kernels; /* names, separated by blanks */
    uint32_t needs;      /* of enum acre_capability; 0: nothing */
    const char *text;
};

extern const struct compute_source compute_sources[];
extern const size_t compute_source_count;

/* Handlers of rings. `handler void handle(...)` each. */
extern const char compute_handler_twice[];  /* out[i] = 2 * in[i] + 1 */
extern const char compute_handler_thrice[]; /* out[i] = 3 * in[i] + 1 */
extern const char compute_handler_state[];  /* adds in[0] to state[0]; out[0] = what it was */
extern const char compute_handler_race[];   /* as twice, but lanes meet without a fence: a hazard */
extern const char compute_handler_slow[];   /* in[0] rounds of v = v * 1664525 + 1013904223 */
extern const char compute_handler_hang[];   /* never answers where in[0] is 0xdead; else as twice */

/* Functions of one float, each with how far it may be off (units in the last place, the most that
 * OpenCL 1.2 allows; CUDA's are closer) and where it is tried. */
/* clang-format off */
#define COMPUTE_UNARY(X)          \
    X(sqrt,   3,  0.0,    1e6)    \
    X(fabs,   0,  -1e6,   1e6)    \
    X(floor,  0,  -1e4,   1e4)    \
    X(ceil,   0,  -1e4,   1e4)    \
    X(trunc,  0,  -1e4,   1e4)    \
    X(round,  0,  -1e4,   1e4)    \
    X(rint,   0,  -1e4,   1e4)    \
    X(exp,    3,  -80.0,  80.0)   \
    X(exp2,   3,  -120.0, 120.0)  \
    X(expm1,  3,  -20.0,  20.0)   \
    X(log,    3,  1e-6,   1e6)    \
    X(log2,   3,  1e-6,   1e6)    \
    X(log10,  3,  1e-6,   1e6)    \
    X(log1p,  2,  -0.5,   1e3)    \
    X(sin,    4,  -100.0, 100.0)  \
    X(cos,    4,  -100.0, 100.0)  \
    X(tan,    5,  -1.5,   1.5)    \
    X(asin,   4,  -1.0,   1.0)    \
    X(acos,   4,  -1.0,   1.0)    \
    X(atan,   5,  -1e3,   1e3)    \
    X(sinh,   4,  -10.0,  10.0)   \
    X(cosh,   4,  -10.0,  10.0)   \
    X(tanh,   5,  -10.0,  10.0)   \
    X(cbrt,   2,  -1e6,   1e6)    \
    X(erf,    16, -4.0,   4.0)
/* Of two. */
#define COMPUTE_BINARY(X)             \
    X(pow,      16, 0.1,   10.0)      \
    X(fmod,     0,  1.0,   1e4)       \
    X(atan2,    6,  -1e3,  1e3)       \
    X(hypot,    4,  -1e3,  1e3)       \
    X(fmin,     0,  -1e6,  1e6)       \
    X(fmax,     0,  -1e6,  1e6)       \
    X(copysign, 0,  -1e6,  1e6)       \
    X(fdim,     0,  -1e6,  1e6)
/* Of one double, where the device has them. */
#define COMPUTE_UNARY_DOUBLE(X)   \
    X(sqrt,   1,  0.0,    1e12)   \
    X(exp,    3,  -300.0, 300.0)  \
    X(log,    3,  1e-9,   1e9)    \
    X(sin,    4,  -100.0, 100.0)  \
    X(cos,    4,  -100.0, 100.0)  \
    X(floor,  0,  -1e9,   1e9)
/* clang-format on */

enum {
#define X(name, ulps, low, high) COMPUTE_UNARY_##name,
    COMPUTE_UNARY(X)
#undef X
        COMPUTE_UNARY_COUNT
};
enum {
#define X(name, ulps, low, high) COMPUTE_BINARY_##name,
    COMPUTE_BINARY(X)
#undef X
        COMPUTE_BINARY_COUNT
};
enum {
#define X(name, ulps, low, high) COMPUTE_UNARY_DOUBLE_##name,
    COMPUTE_UNARY_DOUBLE(X)
#undef X
        COMPUTE_UNARY_DOUBLE_COUNT
};

#endif
