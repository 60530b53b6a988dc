/* seat_double.h - a back end for tests whose device moves only as told: memory on the heap of this
 * process, streams as lists of work.
 *
 * Work happens when double_run is called (each piece by a choice of seeds between streams), or,
 * after double_start, by a thread. The driver has `memory_bytes`, counts what is taken, and fails
 * the next call that is asked for. Regions are checked: work outside of one is an assertion. */
#ifndef ACRE_TEST_SEAT_DOUBLE_H
#define ACRE_TEST_SEAT_DOUBLE_H

#include "compute/inner.h"

struct double_seat;

struct double_options {
    uint64_t memory_bytes; /* 0: 1 GiB */
    uint64_t limit_bytes;  /* of the context; 0: what the driver has */
    bool debug;
    bool is_importing; /* has region_export and region_import */
    uint64_t seed;
};

/* A runtime with `count` contexts of doubles, made without looking for devices. */
struct acre_compute *double_open(const struct double_options *options, uint32_t count);
void double_close(struct acre_compute *compute);
struct acre_context *double_context(struct acre_compute *compute, uint32_t number); /* from 0 */

/* Do up to `count` pieces of work of a stream (NULL: of all, in some order). */
void double_run(struct acre_context *context, const struct acre_stream *stream, uint32_t count);
void double_start(struct acre_context *context); /* a thread does it from now on */
/* The seat is gone and made anew, as after a kernel that faulted. */
void double_lose(struct acre_context *context);
void double_lose_by(struct acre_context *context, int code); /* the same, for that reason */

struct double_counts {
    uint32_t regions;                  /* there are now */
    uint64_t device_bytes, host_bytes; /* of them, device memory */
    uint32_t created, signals, copies, imports;
};
struct double_counts double_counts(struct acre_context *context);
/* Fail every region_create above so many bytes with ACRE_ENOMEM. */
void double_refuse_above(struct acre_context *context, uint64_t bytes);
/* The bytes of a region, from an offset on. */
uint8_t *double_memory(struct acre_context *context, uint64_t region, uint64_t offset);

#endif
