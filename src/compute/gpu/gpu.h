/* gpu.h - what CUDA and HIP share: one table of driver functions under neutral names.
 *
 * HIP's module API mirrors CUDA's driver API, so the back end is written once over this table;
 * cuda.c and hip.c fill it by dlopen (into their own struct, which begins with a struct gpu) and
 * add what differs: struct gpu_vendor. Their table is
 *     const struct backend backend_hip = {.name = "hip", ..., .open = hip_open,
 *                                                   GPU_ENTRIES, .compile = hip_compile};
 * where hip_open allocates its struct, loads it, and ends with gpu_start; gpu_close frees it.
 * Threads: see backend.h. */
#ifndef ACRE_COMPUTE_GPU_GPU_H
#define ACRE_COMPUTE_GPU_GPU_H

#include "compute/backend.h"
#include "compute/gpu/symbols.h"

#include <pthread.h>

struct gpu;
struct gpu_seat;

/* What a code of the driver means for people, and for us. */
struct gpu_fault {
    int code;
    const char *name;  /* "CUDA_ERROR_ILLEGAL_ADDRESS" */
    int error;         /* ACRE_E* */
    bool is_lasting;   /* nothing works any more in this process */
    const char *words; /* "a kernel read or wrote outside its memory"; NULL: the name says it */
};

struct gpu_grid_node { /* a launch of a graph */
    gpu_handle function;
    const struct acre_grid *grid;
    void **args;
};

/* What differs; each answers the driver's code where it says "code". `node` functions: NULL where
 * the driver has no graphs. */
struct gpu_vendor {
    bool is_hip; /* which column of symbols.h is told in messages */
    const struct gpu_fault *faults;
    size_t fault_count;
    const char *(*code_name)(const struct gpu *gpu, int code); /* of codes not in `faults` */

    void (*prepare)(struct gpu *gpu); /* there are devices, to be described now; NULL: nothing */
    /* Name and memory are filled in before; the rest is this one's. code. */
    int (*describe)(struct gpu *gpu, int device, struct acre_compute_device *device_of);
    /* A context is whatever `context_enter` takes (HIP: the device's number + 1). code. */
    int (*context_open)(struct gpu *gpu, int device, gpu_handle *ret_context);
    void (*context_close)(struct gpu *gpu, int device, gpu_handle context);
    int (*context_enter)(const struct gpu *gpu, gpu_handle context); /* of the calling thread */
    int (*context_peer)(struct gpu *gpu, gpu_handle peer); /* the current one may reach `peer` */
    /* What has failed in the current context, if anything has; waits for nothing. code. */
    int (*check)(struct gpu_seat *seat);

    int (*copy)(const struct gpu *gpu, uintptr_t to, uintptr_t from, size_t bytes,
                gpu_handle stream);
    /* Wait until *address >= value. NULL: cannot. */
    int (*wait64)(const struct gpu *gpu, gpu_handle stream, uintptr_t address, uint64_t value);
    /* How long a kernel's parameter is; code: there is no such. NULL: the driver does not tell. */
    int (*parameter)(const struct gpu *gpu, gpu_handle function, uint32_t index, size_t *ret_bytes);
    int (*module_ready)(const struct gpu *gpu, gpu_handle module); /* kernels loaded; NULL: are */
    /* As the driver's; NULL: the driver's. */
    int (*host_function)(const struct gpu *gpu, gpu_handle stream, void (*function)(void *),
                         void *user);
    /* Whether a whole image is one for this driver: ACRE_ECORRUPT. NULL: it finds out itself. */
    int (*image_check)(const void *bytes, size_t length, struct acre_error *err);

    int (*node_launch)(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                       const gpu_handle *after, size_t count, const struct gpu_grid_node *node);
    int (*node_copy)(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                     const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                     uintptr_t from, size_t bytes);
    int (*node_set)(const struct gpu *gpu, gpu_handle *ret_node, gpu_handle graph,
                    const gpu_handle *after, size_t count, gpu_handle context, uintptr_t to,
                    unsigned value, unsigned element_bytes, size_t elements);
    int (*node_update)(const struct gpu *gpu, gpu_handle made, gpu_handle node,
                       const struct gpu_grid_node *launch);
};

struct gpu_device {
    int device; /* the driver's */
    struct acre_compute_device description;
};

struct gpu { /* what open() gives: `self` of the table */
    const struct gpu_vendor *vendor;
    struct gpu_driver driver;
    const struct gpu_names *names; /* of the driver's functions */
    int version;                   /* of the driver */
    bool has_plain_tickets;        /* opened with flags 0, not 1 (HIP 5) */
    uint32_t queues;               /* of a device in this process; 0: no kernel stays, so any */
    uint32_t count;
    struct gpu_device *devices;
    pthread_mutex_t lock; /* seats */
    struct gpu_seat *seats;
};

/* The library is loaded into gpu->driver: initialise, list devices. ACRE_EUNAVAILABLE: none. */
int gpu_start(struct gpu *gpu, struct acre_error *err);
void gpu_close(void *self); /* what gpu_start made, and frees the struct; NULL is fine */
/* "cuMemAlloc: a text (CUDA_ERROR_X)", the ACRE_E* of it; lasting faults are kept by the seat
 * (NULL: none). `call` is the function's name: gpu->names->alloc; NULL: not told. */
int gpu_fail(const struct gpu *gpu, struct gpu_seat *seat, int code, const char *call,
             struct acre_error *err);
/* Make its context the calling thread's. */
int gpu_enter(struct gpu_seat *seat, struct acre_error *err);

#endif
