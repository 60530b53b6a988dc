/* gpu_kit.h - a GPU back end under test, spoken to by its table alone.
 *
 * kit_open ends the test as skipped, with the back end's own reason, where there is no device.
 * Each test has a process of its own (test.h), so one may lose its GPU context. */
#ifndef ACRE_GPU_KIT_H
#define ACRE_GPU_KIT_H

#include "compute/backend.h"
#include "test.h"

#include <stdatomic.h>

enum { KIT_STREAMS = 16, KIT_WAIT_MS = 10000 };

struct kit {
    const struct backend *table;
    void *self, *seat;
    struct acre_error err;
    _Atomic uint64_t *words; /* one for each stream, from 0 */
    struct native_region words_region;
    uint64_t streams[KIT_STREAMS];
    uint64_t sequence[KIT_STREAMS];
    uint64_t kernel_module;
};

void kit_open(struct kit *kit, const struct backend *table); /* and one stream: 0 */
void kit_close(struct kit *kit);
void kit_stream(struct kit *kit, uint32_t stream);
/* Signal and wait: false (and said) when it does not come within KIT_WAIT_MS. */
bool kit_sync(struct kit *kit, uint32_t stream);
bool kit_wait(struct kit *kit, uint32_t stream, uint64_t value); /* wait alone */

/* The call must succeed; its text is shown if not. */
#define KIT_OK(kit, call) kit_ok((kit), (call), #call, __FILE__, __LINE__)
void kit_ok(struct kit *kit, int result, const char *call, const char *file, int line);

struct native_region kit_device(struct kit *kit, uint64_t bytes);
/* Pages of this process, registered. */
struct native_region kit_host(struct kit *kit, enum acre_memory kind, uint64_t bytes,
                              void **ret_host);
void kit_copy(struct kit *kit, uint32_t stream, struct native_region to, struct native_region from,
              uint64_t bytes);

/* Compile, load and find one kernel; ends the test where the device takes no source. */
uint64_t kit_kernel(struct kit *kit, const char *source, const char *name);
/* Queue a launch of buffers first and then values of 4 bytes. */
int kit_launch(struct kit *kit, uint32_t stream, uint64_t kernel, struct acre_grid grid,
               const struct native_region *buffers, uint32_t buffer_count, const uint32_t *values,
               uint32_t value_count);
/* The same, not queued: for nodes of graphs. `launch` points into `room`. */
struct kit_launch_room {
    struct native_arg args[16];
    uint8_t extra[256];
};
struct native_launch kit_launch_make(struct kit_launch_room *room, uint64_t kernel,
                                     struct acre_grid grid, const struct native_region *buffers,
                                     uint32_t buffer_count, const uint32_t *values,
                                     uint32_t value_count);

uint64_t kit_now_ns(void);

#endif
