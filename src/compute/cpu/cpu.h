/* cpu.h - the CPU as a device: what the files of this directory share. Others see backend.h, which
 * also says which thread may call the functions below. */
#ifndef ACRE_COMPUTE_CPU_CPU_H
#define ACRE_COMPUTE_CPU_CPU_H

#include "compute/cpu/workers.h"
#include "core/str.h"

struct cpu_region {
    struct cpu_region *next, **link;
    char *base;
    uint64_t bytes;
    enum acre_memory kind;
};

struct cpu_module;

struct cpu_seat {
    struct cpu *self;
    struct cpu_pool pool;
    pthread_mutex_t lock; /* regions, streams, modules, kernels; taken before pool.lock */
    struct cpu_region *regions;
    struct cpu_stream *streams;
    struct cpu_module *modules;
    struct cpu_kernel *natives;
    uint64_t device_bytes;
};

struct cpu {
    uint32_t cores;
    struct cpu_tripwires tripwires;
    uint64_t memory_bytes;
    char model[96];
    uint64_t features;         /* hash of what the cores can do */
    char compiler[256];        /* path; "": none */
    char compiler_version[64]; /* what tells one from another: size and time of the file */
};

/* cpu.c: what compiled kernels depend on, of a text like /proc/cpuinfo. */
uint64_t cpu_features(struct acre_str cpuinfo);

/* Before work is given and things are freed: what signals and notices told to be done is seen done
 * from here on, also where their word went through another process. */
static inline void cpu_pool_see(struct cpu_pool *pool) {
    atomic_load_explicit(&pool->told, memory_order_acquire);
}

/* stream.c: slots of the table. */
int cpu_copy(void *seat, uint64_t stream, const struct native_copy *copy, struct acre_error *err);
int cpu_fill(void *seat, uint64_t stream, const struct native_fill *fill, struct acre_error *err);
int cpu_launch(void *seat, uint64_t stream, const struct native_launch *launch,
               struct acre_error *err);
int cpu_signal_later(void *seat, uint64_t stream, uint64_t value, struct acre_error *err);
int cpu_wait(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
             uint64_t value, struct acre_error *err);
int cpu_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err);
int cpu_profile(void *seat, uint64_t stream, bool on, struct acre_error *err);
int cpu_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                uint32_t *ret_count, struct acre_error *err);

/* build.c: likewise, and finding the compiler. */
void cpu_find_compiler(struct cpu *cpu);
int cpu_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                struct acre_buf *log, struct acre_error *err);
/* module.c */
int cpu_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
             struct acre_error *err);
void cpu_unload(void *seat, uint64_t module);
/* Close their files, in a child of the process that opened the seat. Its lock held. */
void cpu_modules_let_go(struct cpu_seat *seat);
int cpu_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
               struct kernel_facts *ret_facts, struct acre_error *err);

#endif
