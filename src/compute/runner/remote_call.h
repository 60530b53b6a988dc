/* remote_call.h - the functions of the remote table that wait for an answer. See backend.h for
 * their meaning. Any thread. */
#ifndef ACRE_COMPUTE_RUNNER_REMOTE_CALL_H
#define ACRE_COMPUTE_RUNNER_REMOTE_CALL_H

#include "compute/runner/remote_inner.h"

/* A stream's number in messages. Handles are one more: 0 is none. */
static inline uint32_t remote_stream(uint64_t handle) {
    ACRE_ASSERT(handle > 0 && handle <= WIRE_STREAMS_MAX);
    return (uint32_t)(handle - 1);
}
/* A code that a runner answered: one of ours, whatever it says. */
int remote_code(int code);

int remote_check(void *seat, struct acre_error *err);
int remote_memory(void *seat, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err);
int remote_region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err);
void remote_region_destroy(void *seat, uint64_t region);
int remote_stream_own(void *seat, uint64_t stream, struct acre_error *err);
int remote_stream_create(void *seat, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err);
void remote_stream_destroy(void *seat, uint64_t stream);
int remote_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err);
int remote_load(void *seat, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err);
void remote_unload(void *seat, uint64_t module);
int remote_kernel(void *seat, uint64_t module, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err);
int remote_graph_create(void *seat, const struct native_node *nodes, uint32_t count,
                        uint64_t *ret_graph, struct acre_error *err);
int remote_graph_update(void *seat, uint64_t graph, uint32_t node,
                        const struct native_launch *launch, struct acre_error *err);
void remote_graph_destroy(void *seat, uint64_t graph);
int remote_profile(void *seat, uint64_t stream, bool on, struct acre_error *err);
int remote_timings(void *seat, uint64_t stream, struct acre_timing *ret_timings, uint32_t max,
                   uint32_t *ret_count, struct acre_error *err);
int remote_transfer(void *seat, const char *file, uint64_t file_offset, uint64_t region,
                    uint64_t region_offset, uint64_t bytes, bool is_write, char *how,
                    struct acre_error *err);
int remote_region_export(void *seat, uint64_t region, uint8_t ret_ticket[64],
                         struct acre_error *err);
int remote_region_import(void *seat, const uint8_t ticket[64], struct native_region *ret_region,
                         struct acre_error *err);

#endif
