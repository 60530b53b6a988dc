/* cpu_rig.h - a seat of the CPU back end, and its table called with little writing. Everything
 * that fails ends the test with the text. */
#ifndef ACRE_TEST_CPU_RIG_H
#define ACRE_TEST_CPU_RIG_H

#include "compute/backend.h"

#include <stdatomic.h>

enum { CPU_RIG_WORDS = 512 };

struct cpu_rig {
    void *self, *seat;
    _Atomic uint64_t *words;
    uint64_t words_region;
};

void cpu_rig_require(int r, const struct acre_error *err);
void cpu_rig_init(struct cpu_rig *rig);
void cpu_rig_finish(struct cpu_rig *rig);
uint64_t cpu_rig_stream(struct cpu_rig *rig, uint32_t word);
struct native_region cpu_rig_region(struct cpu_rig *rig, uint64_t bytes);
uint64_t cpu_rig_native(struct cpu_rig *rig, acre_native_function *function);
/* As the front waits: sleep on the low half of the word. */
void cpu_rig_await(struct cpu_rig *rig, uint32_t word, uint64_t value);
void cpu_rig_sync(struct cpu_rig *rig, uint64_t stream, uint32_t word, uint64_t value);
struct native_arg cpu_rig_buffer(const struct native_region *region, uint64_t offset);
void cpu_rig_fill(struct cpu_rig *rig, uint64_t stream, const struct native_region *to,
                  uint64_t offset, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes);
void cpu_rig_copy(struct cpu_rig *rig, uint64_t stream, const struct native_region *to,
                  uint64_t to_offset, const struct native_region *from, uint64_t from_offset,
                  uint64_t bytes);

/* A portable source: read, written as C, compiled, loaded. */
struct cpu_rig_program {
    uint64_t module;
    struct acre_error err;
    char log[4096];
};
int cpu_rig_build(struct cpu_rig *rig, const char *name, const char *text, const char *options,
                  struct cpu_rig_program *ret_program);
uint64_t cpu_rig_kernel(struct cpu_rig *rig, uint64_t module, const char *name);

#endif
