/* region.c - device memory, and host memory registered with the device.
 *
 * Device memory is allocated in large blocks with the plain call, not from the driver's pools: only
 * such memory can be shared with another process by a 64-byte ticket, and the front has its own
 * pool. Host pages are pinned in seat, for every context of the process, and always mapped for
 * kernels: it costs nothing, and signals need it. */
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The same in CUDA and HIP. */
enum { REGISTER_PORTABLE = 1, REGISTER_MAPPED = 2, TICKET_LAZY_PEER = 1 };

static int take_device(struct gpu_seat *seat, struct gpu_region *region, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    int code = gpu->driver.alloc(&region->address, region->bytes);
    if (code == 0) {
        return 0;
    }
    int r = gpu_fail(gpu, seat, code, gpu->names->alloc, err);
    return acre_fail_in(err, r, "%" PRIu64 " bytes of device memory", region->bytes);
}

static int take_host(struct gpu_seat *seat, struct gpu_region *region, struct acre_error *err) {
    const struct gpu *gpu = seat->gpu;
    const char *call = gpu->names->host_register;
    int code =
        gpu->driver.host_register(region->host, region->bytes, REGISTER_PORTABLE | REGISTER_MAPPED);
    if (code == 0) {
        call = gpu->names->host_address;
        code = gpu->driver.host_address(&region->address, region->host, 0);
        if (code != 0) {
            gpu->driver.host_unregister(region->host);
        }
    }
    if (code == 0) {
        return 0;
    }
    int r = gpu_fail(gpu, seat, code, call, err);
    return acre_fail_in(err, r, "%" PRIu64 " bytes of host memory", region->bytes);
}

static void give(struct gpu_seat *seat, struct gpu_region *region,
                 struct native_region *ret_region) {
    gpu_link_in(seat, &seat->regions, &region->link);
    *ret_region = (struct native_region){.handle = (uint64_t)(uintptr_t)region,
                                         .address = (uint64_t)region->address};
}

int gpu_region_create(void *self, enum acre_memory kind, uint64_t bytes, void *host,
                      struct native_region *ret_region, struct acre_error *err) {
    struct gpu_seat *seat = self;
    ACRE_ASSERT(bytes > 0 && (kind == ACRE_MEMORY_DEVICE) == (host == NULL));
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    struct gpu_region *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "region");
    }
    region->kind = kind;
    region->bytes = bytes;
    region->host = host;
    r = host == NULL ? take_device(seat, region, err) : take_host(seat, region, err);
    if (r < 0) {
        free(region);
        return r;
    }
    give(seat, region, ret_region);
    return 0;
}

void gpu_region_destroy(void *self, uint64_t handle) {
    struct gpu_seat *seat = self;
    struct gpu_region *region = gpu_region_of(handle);
    const struct gpu_driver *driver = &seat->gpu->driver;
    /* When the context is lost there is nothing left to give back: answers are not looked at. */
    if (gpu_enter(seat, NULL) == 0) {
        if (region->is_imported) {
            driver->ticket_close(region->address);
        } else if (region->host != NULL) {
            driver->host_unregister(region->host);
        } else {
            driver->free(region->address);
        }
    }
    gpu_link_out(seat, &region->link);
    free(region);
}

/* --- between processes ---------------------------------------------------------------------- */

int gpu_region_export(void *self, uint64_t handle, uint8_t ret_ticket[64], struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    const struct gpu_region *region = gpu_region_of(handle);
    struct gpu_ticket ticket;
    if (region->host != NULL || region->is_imported || gpu->driver.ticket_make == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "only device memory of this process can be shared with another process");
    }
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    int code = gpu->driver.ticket_make(&ticket, region->address);
    if (code != 0) {
        return gpu_fail(gpu, seat, code, gpu->names->ticket_make, err);
    }
    memcpy(ret_ticket, ticket.bytes, sizeof(ticket.bytes));
    return 0;
}

int gpu_region_import(void *self, const uint8_t bytes[64], struct native_region *ret_region,
                      struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    struct gpu_ticket ticket;
    memcpy(ticket.bytes, bytes, sizeof(ticket.bytes));
    if (gpu->driver.ticket_open == NULL || gpu->driver.ticket_close == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "this driver cannot share memory between processes");
    }
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    struct gpu_region *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "region");
    }
    region->kind = ACRE_MEMORY_DEVICE;
    region->is_imported = true;
    int code = gpu->driver.ticket_open(&region->address, ticket,
                                       gpu->has_plain_tickets ? 0 : TICKET_LAZY_PEER);
    if (code != 0) {
        free(region);
        return gpu_fail(gpu, seat, code, gpu->names->ticket_open, err);
    }
    give(seat, region, ret_region);
    return 0;
}
