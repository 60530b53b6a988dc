/* opencl_rig.h - a seat of the OpenCL back end for tests: streams with their words, kernels from
 * source, launches put together an argument at a time. Skips the test, with the reason, where
 * there is no OpenCL device; any other failure ends it. */
#ifndef ACRE_TEST_OPENCL_RIG_H
#define ACRE_TEST_OPENCL_RIG_H

#include "compute/backend.h"

#include "support/test.h"

#include <stdatomic.h>

enum { RIG_STREAMS = 16, RIG_PAGE = 4096 };

struct rig {
    void *self, *seat;
    _Atomic uint64_t *words; /* one for each stream */
    uint64_t words_region;
    uint64_t streams[RIG_STREAMS];
    uint64_t signaled[RIG_STREAMS];
};

/* The ways in which device memory is had; ACRE_OPENCL_MEMORY. */
extern const char *const rig_memories[2];

/* PoCL writes its cache to a temporary directory, removed at the end. */
int rig_main(const struct acre_test *tests, size_t count, int argc, char **argv);

struct rig rig_open(const char *memory, uint32_t streams);
void rig_close(struct rig *rig);
/* Signal all so far on a stream and wait for its word. */
void rig_signal(struct rig *rig, uint32_t stream);
void rig_reach(struct rig *rig, uint32_t stream, uint64_t value);
void rig_sync(struct rig *rig, uint32_t stream);

uint64_t rig_region(struct rig *rig, enum acre_memory kind, uint64_t bytes, void *host);
void *rig_pages(uint64_t bytes);
void rig_write(struct rig *rig, uint64_t region, uint64_t offset, const void *from, uint64_t bytes);
void rig_read(struct rig *rig, uint64_t region, uint64_t offset, void *to, uint64_t bytes);

uint64_t rig_load(struct rig *rig, const char *source);
uint64_t rig_kernel(struct rig *rig, uint64_t module, const char *name);

struct rig_launch {
    struct native_launch native;
    struct native_arg args[ACRE_ARGS_MAX];
    _Alignas(16) uint8_t extra[ACRE_EXTRA_MAX];
};
void rig_launch_begin(struct rig_launch *launch, uint64_t kernel, struct acre_grid grid);
void rig_launch_buffer(struct rig_launch *launch, uint64_t region, uint64_t offset,
                       uint64_t length);
void rig_launch_value(struct rig_launch *launch, const void *value, uint32_t bytes);
void rig_launch_local(struct rig_launch *launch, uint32_t bytes);

#endif
