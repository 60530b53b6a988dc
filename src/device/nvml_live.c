/* nvml_live.c - what changes: memory, load, temperature, power, clocks, errors, events, processes.
 *
 * A lost GPU gets one cheap call first; only if that succeeds are the others made, because each
 * call to a lost GPU may take long. The calls that placement needs come first. Process lists grow
 * to the size NVML returns, a few times at most: processes come and go meanwhile. */
#include "device/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_A_POLL = 64, /* an XID storm must not hold up a sample; the rest waits for the next */
    LIST_TRIES = 4,
    LIST_FIRST = 64,
    WIDE_PROCESS_BYTES = 32, /* room for the widest entry any driver wrote; see nvml_abi.h */
};

void nvml_poll(void *self) {
    struct nvml *nv = self;
    struct nvml_event event = {0};
    for (uint32_t n = 0; nv->event_set != NULL && n < EVENTS_A_POLL; n++) {
        if (nv->api.event_wait(nv->event_set, &event, 0) != NVML_SUCCESS) {
            return; /* no more, or a lost GPU, which its own sample finds */
        }
        for (uint32_t i = 0; i < nv->count; i++) {
            if (nv->gpus[i].handle == event.device && (event.type & NVML_EVENT_XID) != 0) {
                nv->gpus[i].xid_events++;
                nv->gpus[i].xid_last = event.data;
            }
        }
    }
}

/* Used memory is rounded up and free memory down, so that neither promises too much. */
static uint64_t mib_up(uint64_t bytes) {
    return (bytes >> 20) + ((bytes & 0xfffff) != 0);
}

/* Used is what is allocated; the driver's own reserve is apart in v2 and inside it in v1. */
static void sample_memory(struct nvml *nv, struct nvml_gpu *gpu,
                          struct acre_device_sample *sample) {
    struct nvml_memory_v2 v2 = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory v1 = {0};
    if (NVML_ASK(nv, gpu, memory_v2, &v2)) {
        ACRE_PUT(sample, ACRE_SAMPLE, memory_used_mib, mib_up(v2.used));
        ACRE_PUT(sample, ACRE_SAMPLE, memory_free_mib, v2.free >> 20);
        ACRE_PUT(sample, ACRE_SAMPLE, memory_reserved_mib, v2.reserved >> 20);
    } else if (!gpu->lost && NVML_ASK(nv, gpu, memory, &v1)) {
        ACRE_PUT(sample, ACRE_SAMPLE, memory_used_mib, mib_up(v1.used));
        ACRE_PUT(sample, ACRE_SAMPLE, memory_free_mib, v1.free >> 20);
    }
}

static void sample_temperature(struct nvml *nv, struct nvml_gpu *gpu,
                               struct acre_device_sample *sample) {
    unsigned celsius = 0;
    struct nvml_temperature versioned = {.version = NVML_VERSION(struct nvml_temperature, 1),
                                         .sensor = NVML_TEMPERATURE_GPU};
    if (NVML_ASK(nv, gpu, temperature, NVML_TEMPERATURE_GPU, &celsius)) {
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_c, celsius);
    } else if (NVML_ASK(nv, gpu, temperature_v, &versioned)) {
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_c, versioned.celsius);
    }
    struct nvml_field field = {.field = NVML_FIELD_MEMORY_TEMPERATURE};
    if (NVML_ASK(nv, gpu, fields, 1, &field) && field.code == NVML_SUCCESS && field.value.u32 > 0) {
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_memory_c, field.value.u32);
    }
}

static void sample_load(struct nvml *nv, struct nvml_gpu *gpu, struct acre_device_sample *sample) {
    struct nvml_utilization use = {0};
    if (NVML_ASK(nv, gpu, utilization, &use)) {
        ACRE_PUT(sample, ACRE_SAMPLE, utilization_gpu_pct, use.gpu);
        ACRE_PUT(sample, ACRE_SAMPLE, utilization_memory_pct, use.memory);
    }
    unsigned value = 0;
#define TAKE(name, symbol, ...)                                                                    \
    if (NVML_ASK(nv, gpu, symbol, __VA_ARGS__)) {                                                  \
        ACRE_PUT(sample, ACRE_SAMPLE, name, value);                                                \
    }
    TAKE(power_mw, power, &value)
    TAKE(power_limit_mw, power_limit, &value)
    TAKE(clock_sm_mhz, clock, NVML_CLOCK_SM, &value)
    TAKE(clock_memory_mhz, clock, NVML_CLOCK_MEM, &value)
    TAKE(pcie_gen, pcie_gen, &value)
    TAKE(pcie_width, pcie_width, &value)
#undef TAKE
}

static void sample_throttle(struct nvml *nv, struct nvml_gpu *gpu,
                            struct acre_device_sample *sample) {
    static const struct {
        uint64_t nvml;
        enum throttle ours;
    } bits[] = {
        {0x001, ACRE_THROTTLE_idle},
        {0x002, ACRE_THROTTLE_application_clocks},
        {0x004, ACRE_THROTTLE_software_power_cap},
        {0x008, ACRE_THROTTLE_hardware_slowdown},
        {0x010, ACRE_THROTTLE_sync_boost},
        {0x020, ACRE_THROTTLE_software_thermal},
        {0x040, ACRE_THROTTLE_hardware_thermal},
        {0x080, ACRE_THROTTLE_power_brake},
        {0x100, ACRE_THROTTLE_display},
    };
    unsigned long long mask = 0;
    if (!NVML_ASK(nv, gpu, throttle, &mask) && !NVML_ASK(nv, gpu, throttle_old, &mask)) {
        return;
    }
    uint64_t reasons = 0;
    for (size_t i = 0; i < ACRE_COUNT(bits); i++) {
        reasons |= (mask & bits[i].nvml) != 0 ? UINT64_C(1) << bits[i].ours : 0;
    }
    ACRE_PUT(sample, ACRE_SAMPLE, throttle_reasons, reasons);
}

static void sample_errors(struct nvml *nv, struct nvml_gpu *gpu,
                          struct acre_device_sample *sample) {
    unsigned long long count = 0;
#define TAKE(name, type, counter)                                                                  \
    if (NVML_ASK(nv, gpu, ecc_errors, type, counter, &count)) {                                    \
        ACRE_PUT(sample, ACRE_SAMPLE, name, count);                                                \
    }
    TAKE(ecc_corrected, NVML_ERROR_CORRECTED, NVML_ECC_VOLATILE)
    TAKE(ecc_uncorrected, NVML_ERROR_UNCORRECTED, NVML_ECC_VOLATILE)
    TAKE(ecc_corrected_lifetime, NVML_ERROR_CORRECTED, NVML_ECC_AGGREGATE)
    TAKE(ecc_uncorrected_lifetime, NVML_ERROR_UNCORRECTED, NVML_ECC_AGGREGATE)
#undef TAKE
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    if (NVML_ASK(nv, gpu, remapped, &corrected, &uncorrected, &pending, &failed)) {
        ACRE_PUT(sample, ACRE_SAMPLE, rows_remapped_corrected, corrected);
        ACRE_PUT(sample, ACRE_SAMPLE, rows_remapped_uncorrected, uncorrected);
        ACRE_PUT(sample, ACRE_SAMPLE, rows_remap_pending, pending != 0);
        ACRE_PUT(sample, ACRE_SAMPLE, rows_remap_failed, failed != 0);
    }
}

/* A count of 0 asks only how many; "too small" then is the answer, not a failure. */
static bool count_retired(struct nvml *nv, struct nvml_gpu *gpu, unsigned cause,
                          uint64_t *ret_count) {
    unsigned count = 0;
    unsigned long long none = 0; /* not written: the count is 0 */
    int code = nv->api.retired == NULL ? NVML_FUNCTION_NOT_FOUND
                                       : nv->api.retired(gpu->handle, cause, &count, &none);
    if (code != NVML_INSUFFICIENT_SIZE && !nvml_accept(nv, gpu, NVML_SYMBOL_retired, code)) {
        return false;
    }
    *ret_count = count;
    return true;
}

static void sample_retired(struct nvml *nv, struct nvml_gpu *gpu,
                           struct acre_device_sample *sample) {
    uint64_t count = 0;
    unsigned pending = 0;
    if (count_retired(nv, gpu, NVML_RETIRED_SINGLE_BIT, &count)) {
        ACRE_PUT(sample, ACRE_SAMPLE, pages_retired_corrected, count);
    }
    if (count_retired(nv, gpu, NVML_RETIRED_DOUBLE_BIT, &count)) {
        ACRE_PUT(sample, ACRE_SAMPLE, pages_retired_uncorrected, count);
    }
    if (NVML_ASK(nv, gpu, retire_pending, &pending)) {
        ACRE_PUT(sample, ACRE_SAMPLE, pages_retire_pending, pending != 0);
    }
}

typedef void sample_part(struct nvml *nv, struct nvml_gpu *gpu, struct acre_device_sample *sample);

int nvml_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                struct acre_error *err) {
    static const struct {
        sample_part *take;
        bool slices; /* a MIG instance answers it too */
    } parts[] = {
        {sample_memory, true},    {sample_load, false},   {sample_temperature, false},
        {sample_throttle, false}, {sample_errors, false}, {sample_retired, false},
    };
    struct nvml *nv = self;
    if (index >= nv->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "nvml: no device %u; there are %u", index, nv->count);
    }
    struct nvml_gpu *gpu = &nv->gpus[index];
    struct acre_device_sample sample = {0};
    gpu->lost = false; /* ask again: a reset brings it back */
    for (size_t i = 0; i < ACRE_COUNT(parts) && !gpu->lost; i++) {
        if (parts[i].slices || !gpu->slice) {
            parts[i].take(nv, gpu, &sample);
        }
    }
    if (gpu->lost) {
        sample = (struct acre_device_sample){0}; /* what it said before is no longer true */
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, reason, acre_str_from(gpu->reason));
    }
    ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, gpu->lost ? ACRE_STR("lost") : ACRE_STR("ok"));
    if (gpu->events) {
        ACRE_PUT(&sample, ACRE_SAMPLE, xid_events, gpu->xid_events);
        if (gpu->xid_events > 0) {
            ACRE_PUT(&sample, ACRE_SAMPLE, xid_last, gpu->xid_last);
        }
    }
    *ret_sample = sample;
    return 0;
}

typedef int list_call(nvml_device device, unsigned *count, struct nvml_process *processes);

/* Fill nv->scratch; returns NVML's last answer. */
static int list_into_scratch(struct nvml *nv, struct nvml_gpu *gpu, list_call *call,
                             unsigned *ret_count) {
    int code = NVML_INSUFFICIENT_SIZE;
    unsigned wanted = LIST_FIRST;
    for (uint32_t n = 0; n < LIST_TRIES && code == NVML_INSUFFICIENT_SIZE; n++) {
        if (wanted > nv->scratch_capacity) {
            nv->scratch_capacity = ACRE_MIN(wanted + LIST_FIRST, (unsigned)ACRE_PROCESSES_MAX);
            nv->scratch = acre_realloc(nv->scratch, nv->scratch_capacity, WIDE_PROCESS_BYTES);
        }
        *ret_count = nv->scratch_capacity;
        code = call(gpu->handle, ret_count, nv->scratch);
        wanted = *ret_count;
    }
    return code;
}

/* The process of this device that is listed already, from `first` on; NULL: none. */
static struct acre_device_process *find_listed(const struct acre_process_list *list, uint32_t first,
                                               uint64_t pid) {
    for (uint32_t i = first; i < list->count; i++) {
        if (list->items[i].pid == pid) {
            return &list->items[i];
        }
    }
    return NULL;
}

/* A client of MPS, or one that computes and draws, is in two lists with the same memory: it is one
 * process here, under the kind that was asked for last. */
static int add_processes(struct nvml *nv, unsigned count, const char *kind, uint32_t first,
                         struct acre_process_list *list, struct acre_error *err) {
    for (unsigned i = 0; i < count; i++) {
        const struct nvml_process *from = &nv->scratch[i];
        struct acre_device_process *process = find_listed(list, first, from->pid);
        int r = process == NULL ? acre_process_list_add(list, &process, err) : 0;
        if (r < 0) {
            return r;
        }
        ACRE_PUT(process, ACRE_PROCESS, pid, from->pid);
        ACRE_PUT_TEXT(process, ACRE_PROCESS, kind, acre_str_from(kind));
        if (from->used_bytes != NVML_NO_MEMORY) {
            ACRE_PUT(process, ACRE_PROCESS, memory_mib, from->used_bytes >> 20);
        }
    }
    return 0;
}

int nvml_processes(void *self, uint32_t index, struct acre_process_list *list,
                   struct acre_error *err) {
    struct nvml *nv = self;
    if (index >= nv->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "nvml: no device %u; there are %u", index, nv->count);
    }
    const struct nvml_api *api = &nv->api;
    const struct {
        const char *kind;
        list_call *v3, *v2;
        enum nvml_symbol symbol;
    } lists[] = {
        {"compute", api->compute_v3, api->compute_v2, NVML_SYMBOL_compute_v3},
        {"graphics", api->graphics_v3, api->graphics_v2, NVML_SYMBOL_graphics_v3},
        {"mps", api->mps_v3, api->mps_v2, NVML_SYMBOL_mps_v3},
    };
    struct nvml_gpu *gpu = &nv->gpus[index];
    bool answered = false;
    uint32_t first = list->count;
    for (size_t i = 0; i < ACRE_COUNT(lists) && !gpu->lost; i++) {
        list_call *call = lists[i].v3 != NULL && !nv->wide_v3 ? lists[i].v3 : lists[i].v2;
        unsigned count = 0;
        int code =
            call == NULL ? NVML_FUNCTION_NOT_FOUND : list_into_scratch(nv, gpu, call, &count);
        if (nvml_accept(nv, gpu, lists[i].symbol, code)) {
            answered = true;
            int r = add_processes(nv, count, lists[i].kind, first, list, err);
            if (r < 0) {
                return r;
            }
        }
    }
    return answered
               ? 0
               : acre_fail(err, ACRE_EUNSUPPORTED, "nvml: no process list for %s", gpu->info.id);
}
