/* compute.h - what the parts of bench/compute share: pairs, figures.
 *
 * A figure is measured twice in one run, through acre and by the driver's own calls, in rounds that
 * take turns. Acre's context of a GPU lives in a runner, the raw one in this process: they share
 * the device only when both have work, so rounds never overlap. Programs only, one thread (but for
 * the producers of "ring rate"). */
#ifndef ACRE_BENCH_COMPUTE_H
#define ACRE_BENCH_COMPUTE_H

#include "bench.h"
#include "compute_raw.h"

#include <acre/compute.h>

enum {
    COMPUTE_PATIENCE_MS = 20000, /* no figure waits longer for one answer */
    COMPUTE_FIGURES_MAX = 128,
    COMPUTE_NOTE_MAX = 320,
};

enum compute_limit {
    COMPUTE_NO_LIMIT,
    COMPUTE_RATIO_MOST,
    COMPUTE_RATIO_LEAST,
    COMPUTE_MOST,
    COMPUTE_LEAST
};

struct compute_figure {
    char name[48];
    const char *what; /* one line */
    const char *unit;
    double unit_ns; /* times: what one unit is; 0: a rate */
    double amount;  /* rates: of one sample, so that amount / ns is in units */
    enum compute_limit limit_kind;
    double limit;
    /* Measured: medians; p99: what 99 of 100 samples are better than. < 0: none. */
    double acre, raw, p99, raw_p99;
    uint32_t samples; /* of each side; of fewer than 100, p99 is the worst */
    char note[COMPUTE_NOTE_MAX];
    bool has_failed; /* the note says why */
};

struct compute_bench {
    const char *backend;
    bool is_full; /* sizes and rounds of a GPU */
    struct acre_compute *compute;
    uint32_t device;
    struct acre_context *context;
    struct acre_stream *stream;
    struct acre_program *program;
    struct acre_kernel *tick, *add, *multiply, *batch;
    struct acre_buffer device_memory[3], host_memory[2];
    void *host[2];
    const struct compute_raw *raw; /* NULL: none for this back end */
    void *raw_self;
    char scratch[256]; /* a directory of this run */
    struct compute_figure figures[COMPUTE_FIGURES_MAX];
    uint32_t count;
};

/* One of the two sides: a call that is timed, and what comes before and after a round of them. */
struct compute_side {
    int (*call)(struct compute_bench *bench, void *user, struct acre_error *err);
    int (*enter)(struct compute_bench *bench, void *user, struct acre_error *err); /* or NULL */
    void (*leave)(struct compute_bench *bench, void *user);                        /* or NULL */
};

struct compute_pair {
    struct compute_side acre, raw; /* raw.call NULL: none */
    void *user;
    uint32_t rounds, calls;
    uint32_t warm; /* calls before those of a round that are not timed */
};

/* `full` on a GPU, else `small`. */
uint64_t compute_pick(const struct compute_bench *bench, uint64_t full, uint64_t small);
/* Reserve for both sides: devices full of ones, host 0 of i % 4096. And give all of it back. */
int compute_reserve(struct compute_bench *bench, const struct compute_memory *memory,
                    struct acre_error *err);
void compute_release(struct compute_bench *bench);
/* Run the pair and keep its figure, or why there is none. */
void compute_measure(struct compute_bench *bench, const struct compute_pair *pair,
                     struct compute_figure figure);
/* A figure with its numbers, or one that failed. */
void compute_keep(struct compute_bench *bench, struct compute_figure figure);
void compute_fail(struct compute_bench *bench, struct compute_figure figure,
                  const struct acre_error *err);

/* The groups of figures, by the name --only knows. */
/* clang-format off */
#define COMPUTE_GROUPS(X)            \
    X(launch,       "launch")        \
    X(graph,        "graph")         \
    X(ring,         "ring")          \
    X(ring_rate,    "ring rate")     \
    X(pool,         "pool")          \
    X(device_bound, "device-bound")  \
    X(copy,         "copy")          \
    X(batch,        "batch")         \
    X(compile,      "compile")       \
    X(storage,      "storage")       \
    X(automatic,    "auto")
/* clang-format on */
#define X(function, name) void compute_##function(struct compute_bench *bench);
COMPUTE_GROUPS(X)
#undef X

#endif
