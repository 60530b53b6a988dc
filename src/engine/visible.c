/* visible.c - the environment of a member: which GPUs the vendors' libraries may see, and how much
 * of them.
 *
 * Devices are named by UUID in the order of the allocation: numbers change with the order of the
 * bus and inside an MPS server, names do not. Where there is no name (AMD partitions, consumer
 * cards) the number comes from the kernel's topology. What a member may not see is said, not left
 * out: an unset CUDA_VISIBLE_DEVICES means all GPUs.
 *
 * HIP reads CUDA_VISIBLE_DEVICES when HIP_VISIBLE_DEVICES is empty: a member that has AMD GPUs
 * alone gets no CUDA_VISIBLE_DEVICES. */
#include "engine/visible.h"

#include "core/str.h"
#include "core/units.h"
#include "engine/rocm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ID_SHOWN = 80, ENVIRONMENT_MAX = 64 * 1024 };

/* The devices of one member. */
struct member_view {
    const struct visible_roots *roots;
    const struct acre_run_device *devices;
    uint32_t count;
    uint32_t member;
    uint32_t nvidia, amd, all;
    bool simulated;
    struct acre_buf out;
};

static bool is_vendor(const struct acre_run_device *device, const char *vendor) {
    return device->vendor != NULL && strcasecmp(device->vendor, vendor) == 0;
}

static bool is_mps(const struct acre_run_device *device) {
    return is_vendor(device, "nvidia") && !device->simulated && device->milli < 1000 &&
           device->isolation != NULL && strcmp(device->isolation, "mps") == 0;
}

int visible_mps(const struct acre_run_device *devices, uint32_t count, uint32_t member,
                const struct acre_run_device **ret_device, struct acre_error *err) {
    const struct acre_run_device *found = NULL;
    uint32_t nvidia = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i].member == member && is_vendor(&devices[i], "nvidia")) {
            nvidia++;
            found = is_mps(&devices[i]) ? &devices[i] : found;
        }
    }
    if (found != NULL && nvidia > 1) {
        char shown[ID_SHOWN];
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "a process cannot use a share of %s with MPS together with %u other GPUs; "
                         "accepted: one share with MPS, whole GPUs, or another isolation",
                         acre_str_show(acre_str_from(found->id), shown, sizeof(shown)), nvidia - 1);
    }
    *ret_device = found;
    return 0;
}

static void put(struct member_view *view, const char *format, ...) ACRE_PRINTF(2, 3);
static void put(struct member_view *view, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    acre_buf_vprintf(&view->out, format, arguments);
    va_end(arguments);
}

static void end_variable(struct member_view *view) {
    acre_buf_putc(&view->out, '\0');
}

/* The next device of the member (of `vendor` unless NULL) from `*at`; NULL: no more. */
static const struct acre_run_device *next(const struct member_view *view, const char *vendor,
                                          uint32_t *at) {
    while (*at < view->count) {
        const struct acre_run_device *device = &view->devices[(*at)++];
        if (device->member == view->member && (vendor == NULL || is_vendor(device, vendor))) {
            return device;
        }
    }
    return NULL;
}

static void survey(struct member_view *view) {
    const struct acre_run_device *device;
    for (uint32_t at = 0; (device = next(view, NULL, &at)) != NULL;) {
        view->all++;
        view->nvidia += is_vendor(device, "nvidia");
        view->amd += is_vendor(device, "amd");
        view->simulated = view->simulated || device->simulated;
    }
}

static void put_ids(struct member_view *view, const char *name, const char *vendor) {
    const struct acre_run_device *device;
    const char *comma = "";
    put(view, "%s=", name);
    for (uint32_t at = 0; (device = next(view, vendor, &at)) != NULL; comma = ",") {
        put(view, "%s%s", comma, device->id);
    }
    end_variable(view);
}

/* Ours: what was given, for programs that want to know. */
static void put_shares(struct member_view *view) {
    const struct acre_run_device *device;
    char text[16];
    const char *comma = "";
    put_ids(view, "ACRE_GPUS", NULL);
    put(view, "ACRE_GPU_SHARE=");
    for (uint32_t at = 0; (device = next(view, NULL, &at)) != NULL; comma = ",") {
        put(view, "%s%s", comma, acre_format_milli(device->milli, text, sizeof(text)));
    }
    end_variable(view);
    comma = "";
    put(view, "ACRE_GPU_MEMORY_MIB="); /* 0: no limit of its own */
    for (uint32_t at = 0; (device = next(view, NULL, &at)) != NULL; comma = ",") {
        put(view, "%s%" PRIu64, comma, device->mib);
    }
    end_variable(view);
}

/* Every library finds nothing; `cuda` is what CUDA_VISIBLE_DEVICES says. */
static void put_nothing(struct member_view *view, const char *cuda) {
    put(view, "CUDA_VISIBLE_DEVICES=%s", cuda);
    end_variable(view);
    put(view, "NVIDIA_VISIBLE_DEVICES=void");
    end_variable(view);
    put(view, "ROCR_VISIBLE_DEVICES=");
    end_variable(view);
}

static int put_mps(struct member_view *view, const struct acre_run_device *device,
                   const char *pipe_directory, struct acre_error *err) {
    if (pipe_directory == NULL) {
        return acre_fail(err, ACRE_EUNAVAILABLE,
                         "a share of %s needs an MPS daemon, but none is running", device->id);
    }
    put(view, "CUDA_MPS_PIPE_DIRECTORY=%s", pipe_directory);
    end_variable(view);
    put(view, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u", ACRE_MAX(1u, device->milli / 10));
    end_variable(view);
    if (device->mib > 0) { /* it is the only one its clients see: number 0 */
        put(view, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=%" PRIu64 "M", device->mib);
        end_variable(view);
    }
    return 0;
}

static int put_amd_name(struct member_view *view, const struct acre_run_device *device,
                        struct acre_error *err) {
    uint32_t xcp = 0;
    bool slice = rocm_partition(device->id, &xcp);
    if (!slice && strncmp(device->id, "GPU-", 4) == 0) {
        put(view, "%s", device->id);
        return 0;
    }
    const char *sys = view->roots->sys != NULL ? view->roots->sys : "/sys";
    struct rocm_gpu gpu;
    int r = rocm_find(sys, device->pci, xcp, &gpu, err);
    if (r < 0) {
        return acre_fail_in(err, r, "%s", device->id);
    }
    put(view, "%u", gpu.index);
    return 0;
}

static void put_cu_masks(struct member_view *view) {
    const struct acre_run_device *device;
    const char *separator = "HSA_CU_MASK=";
    uint32_t index = 0;
    for (uint32_t at = 0; (device = next(view, "amd", &at)) != NULL; index++) {
        if (device->cu_ranges != NULL && device->cu_ranges[0] != '\0') {
            put(view, "%s%u:%s", separator, index, device->cu_ranges);
            separator = ";";
        }
    }
    if (separator[0] == ';') {
        end_variable(view);
    }
}

static int put_amd(struct member_view *view, struct acre_error *err) {
    const struct acre_run_device *device;
    const char *comma = "";
    put(view, "ROCR_VISIBLE_DEVICES=");
    for (uint32_t at = 0; (device = next(view, "amd", &at)) != NULL; comma = ",") {
        put(view, "%s", comma);
        int r = put_amd_name(view, device, err);
        if (r < 0) {
            return r;
        }
    }
    end_variable(view);
    if (view->amd == 0) {
        return 0;
    }
    put(view, "HIP_VISIBLE_DEVICES="); /* all that ROCm shows */
    for (uint32_t i = 0; i < view->amd; i++) {
        put(view, "%s%u", i > 0 ? "," : "", i);
    }
    end_variable(view);
    put_cu_masks(view);
    return 0;
}

static int put_real(struct member_view *view, const char *pipe_directory, struct acre_error *err) {
    const struct acre_run_device *mps;
    int r = visible_mps(view->devices, view->count, view->member, &mps, err);
    if (r < 0) {
        return r;
    }
    if (view->nvidia > 0) {
        put_ids(view, "CUDA_VISIBLE_DEVICES", "nvidia");
        put_ids(view, "NVIDIA_VISIBLE_DEVICES", "nvidia");
        put(view, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
        end_variable(view);
    } else {
        put(view, "NVIDIA_VISIBLE_DEVICES=void");
        end_variable(view);
        if (view->amd == 0) { /* devices of another vendor */
            put(view, "CUDA_VISIBLE_DEVICES=");
            end_variable(view);
        }
    }
    if (mps != NULL) {
        r = put_mps(view, mps, pipe_directory, err);
    }
    return r < 0 ? r : put_amd(view, err);
}

int visible_environment(const struct visible_roots *roots, const struct acre_run_device *devices,
                        uint32_t count, uint32_t member, const char *pipe_directory,
                        struct acre_buf *env, struct acre_error *err) {
    static const struct visible_roots defaults = {NULL, NULL, NULL};
    struct member_view view = {.roots = roots != NULL ? roots : &defaults,
                               .devices = devices,
                               .count = count,
                               .member = member};
    int r = 0;
    acre_buf_init(&view.out, ENVIRONMENT_MAX);
    survey(&view);
    if (view.all == 0) {
        put_nothing(&view, "");
    } else if (view.simulated) { /* not even by accident on a GPU that somebody else holds */
        put(&view, "ACRE_SIMULATED=1");
        end_variable(&view);
        put_nothing(&view, "void");
        put_shares(&view);
    } else {
        r = put_real(&view, pipe_directory, err);
        put_shares(&view);
    }
    if (r == 0 &&
        (acre_buf_failed(&view.out) || acre_buf_append(env, view.out.data, view.out.length) < 0)) {
        r = acre_fail(err, ACRE_ELIMIT, "the environment variables for %u devices are too long",
                      view.all);
    }
    acre_buf_finish(&view.out);
    return r;
}
