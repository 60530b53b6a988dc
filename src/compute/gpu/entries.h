/* entries.h - the functions of backend.h's table that cuda.c and hip.c share.
 *
 * See backend.h for meaning and threads. Not here: open, compile, transfer, native. */
#ifndef ACRE_COMPUTE_GPU_ENTRIES_H
#define ACRE_COMPUTE_GPU_ENTRIES_H

#include "compute/gpu/gpu.h"

/* gpu.c */
uint32_t gpu_count(void *self);
void gpu_describe(void *self, uint32_t device, struct acre_compute_device *ret_device);
int gpu_seat_open(void *self, uint32_t device, void **ret_seat, struct acre_error *err);
void gpu_seat_close(void *seat);
int gpu_check(void *seat, struct acre_error *err);
int gpu_memory(void *seat, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err);

/* region.c */
int gpu_region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                      struct native_region *ret_region, struct acre_error *err);
void gpu_region_destroy(void *seat, uint64_t region);
int gpu_region_export(void *seat, uint64_t region, uint8_t ret_ticket[64], struct acre_error *err);
int gpu_region_import(void *seat, const uint8_t ticket[64], struct native_region *ret_region,
                      struct acre_error *err);

/* stream.c */
int gpu_stream_create(void *seat, uint64_t word_region, uint64_t word_offset, uint64_t *ret_stream,
                      struct acre_error *err);
void gpu_stream_destroy(void *seat, uint64_t stream);
int gpu_copy(void *seat, uint64_t stream, const struct native_copy *copy, struct acre_error *err);
int gpu_fill(void *seat, uint64_t stream, const struct native_fill *fill, struct acre_error *err);
int gpu_launch(void *seat, uint64_t stream, const struct native_launch *launch,
               struct acre_error *err);
int gpu_signal(void *seat, uint64_t stream, uint64_t value, struct acre_error *err);
int gpu_wait(void *seat, uint64_t stream, uint64_t word_region, uint64_t word_offset,
             uint64_t value, struct acre_error *err);
int gpu_notify(void *seat, uint64_t stream, int event_fd, struct acre_error *err);

/* module.c */
int gpu_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
             struct acre_error *err);
void gpu_unload(void *seat, uint64_t module);
int gpu_kernel_find(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                    struct kernel_facts *ret_facts, struct acre_error *err);

/* graph.c */
int gpu_graph_create(void *seat, const struct native_node *nodes, uint32_t count,
                     uint64_t *ret_graph, struct acre_error *err);
int gpu_graph_update(void *seat, uint64_t graph, uint32_t node, const struct native_launch *launch,
                     struct acre_error *err);
int gpu_graph_launch(void *seat, uint64_t stream, uint64_t graph, struct acre_error *err);
void gpu_graph_destroy(void *seat, uint64_t graph);

int gpu_stream_own(void *seat, uint64_t stream, struct acre_error *err);
/* profile.c */
int gpu_profile(void *seat, uint64_t stream, bool on, struct acre_error *err);
int gpu_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                uint32_t *ret_count, struct acre_error *err);

/* What every driver has; and with graphs. */
#define GPU_PLAIN_ENTRIES                                                                          \
    .close = gpu_close, .count = gpu_count, .describe = gpu_describe, .seat_open = gpu_seat_open,  \
    .seat_close = gpu_seat_close, .check = gpu_check, .memory = gpu_memory,                        \
    .region_create = gpu_region_create, .region_destroy = gpu_region_destroy,                      \
    .stream_create = gpu_stream_create, .stream_destroy = gpu_stream_destroy,                      \
    .stream_own = gpu_stream_own, .copy = gpu_copy, .fill = gpu_fill, .launch = gpu_launch,        \
    .signal = gpu_signal, .wait = gpu_wait, .notify = gpu_notify, .load = gpu_load,                \
    .unload = gpu_unload, .kernel = gpu_kernel_find, .profile = gpu_profile,                       \
    .timings = gpu_timings, .region_export = gpu_region_export, .region_import = gpu_region_import

#define GPU_ENTRIES                                                                                \
    GPU_PLAIN_ENTRIES, .graph_create = gpu_graph_create, .graph_update = gpu_graph_update,         \
                       .graph_launch = gpu_graph_launch, .graph_destroy = gpu_graph_destroy

#endif
