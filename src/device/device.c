/* device.c - all drivers of one node in one list.
 *
 * Drivers are asked in the order of the array, once, at open. Their devices are appended in order;
 * a device whose PCI id or name an earlier driver already listed is skipped, so a GPU that both
 * NVML and OpenCL see is listed by NVML, which knows more. Last resorts are asked only if no driver
 * before found a GPU. Then links are translated to positions in this list and islands assigned.
 * Reading calls each device's own driver. */
#include "device/device.h"

#include "core/clock.h"
#include "device/foreign.h"
#include "device/process_name.h"

#include <stdlib.h>
#include <string.h>

static const struct acre_device_driver *const real_drivers[] = {
    &acre_driver_nvml,
    &acre_driver_amdgpu,
    &acre_driver_opencl,
    &acre_driver_cpu,
};

static const struct acre_device_driver *const simulated_drivers[] = {&acre_driver_sim};

enum { DRIVERS_MAX = ACRE_COUNT(real_drivers) };

struct device_origin {
    uint32_t driver; /* in attempts */
    uint32_t index;  /* the driver's own */
};

struct acre_devices {
    struct acre_device_attempt attempts[DRIVERS_MAX];
    void *selves[DRIVERS_MAX];
    uint32_t attempt_count;
    struct acre_device_info *infos;
    struct device_origin *origins;
    uint32_t count;
    uint32_t capacity;
    struct acre_link_list links;
    struct acre_sysfs proc;
};

static bool is_gpu(const struct acre_device_info *info) {
    return strcmp(info->kind, "cpu") != 0;
}

static bool found_gpu(const struct acre_devices *devices) {
    for (uint32_t i = 0; i < devices->count; i++) {
        if (is_gpu(&devices->infos[i])) {
            return true;
        }
    }
    return false;
}

static bool is_listed(const struct acre_devices *devices, const struct acre_device_info *info,
                      uint32_t driver) {
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct acre_device_info *other = &devices->infos[i];
        bool same_name = strcmp(other->id, info->id) == 0;
        bool same_address =
            devices->origins[i].driver != driver && ACRE_HAS(info, ACRE_INFO, pci_id) &&
            ACRE_HAS(other, ACRE_INFO, pci_id) && strcmp(other->pci_id, info->pci_id) == 0;
        if (same_name || same_address) {
            return true;
        }
    }
    return false;
}

static void append(struct acre_devices *devices, const struct acre_device_info *info,
                   struct device_origin origin) {
    if (devices->count == devices->capacity) {
        devices->capacity = ACRE_MAX(8U, devices->capacity * 2);
        devices->infos = acre_realloc(devices->infos, devices->capacity, sizeof(*devices->infos));
        devices->origins =
            acre_realloc(devices->origins, devices->capacity, sizeof(*devices->origins));
    }
    devices->infos[devices->count] = *info;
    devices->origins[devices->count] = origin;
    devices->count++;
}

static void list_devices(struct acre_devices *devices, uint32_t driver) {
    struct acre_device_attempt *attempt = &devices->attempts[driver];
    attempt->found = attempt->driver->count(devices->selves[driver]);
    for (uint32_t i = 0; i < attempt->found && devices->count < ACRE_DEVICES_MAX; i++) {
        struct acre_device_info info;
        if (attempt->driver->info(devices->selves[driver], i, &info, NULL) == 0 &&
            !is_listed(devices, &info, driver)) {
            append(devices, &info, (struct device_origin){driver, i});
            attempt->listed++;
        }
    }
}

static void ask(struct acre_devices *devices, const struct acre_device_driver *driver,
                const struct acre_device_options *options) {
    uint32_t at = devices->attempt_count++;
    struct acre_device_attempt *attempt = &devices->attempts[at];
    *attempt = (struct acre_device_attempt){.driver = driver, .notes = ""};
    if ((driver->last_resort && found_gpu(devices)) ||
        (options->telemetry_only && !driver->telemetry)) {
        attempt->skipped = true;
        return;
    }
    struct acre_clock clock = acre_clock_real();
    uint64_t start_ns = acre_clock_monotonic_ns(&clock);
    attempt->code = driver->open(options, &devices->selves[at], &attempt->err);
    if (attempt->code == 0) {
        list_devices(devices, at);
    }
    attempt->open_us = (acre_clock_monotonic_ns(&clock) - start_ns) / 1000;
}

/* Position in our list of the driver's device; the count when it is not listed. */
static uint32_t position_of(const struct acre_devices *devices, struct device_origin origin) {
    uint32_t i = 0;
    while (i < devices->count && (devices->origins[i].driver != origin.driver ||
                                  devices->origins[i].index != origin.index)) {
        i++;
    }
    return i;
}

static void collect_links(struct acre_devices *devices, uint32_t driver) {
    const struct acre_device_driver *table = devices->attempts[driver].driver;
    struct acre_link_list own = {0};
    if (devices->selves[driver] != NULL && table->links != NULL &&
        table->links(devices->selves[driver], &own, NULL) == 0) {
        for (uint32_t i = 0; i < own.count; i++) {
            struct acre_device_link link = own.items[i];
            uint32_t a = position_of(devices, (struct device_origin){driver, link.a});
            uint32_t b = position_of(devices, (struct device_origin){driver, link.b});
            if (a < devices->count && b < devices->count) {
                link.a = ACRE_MIN(a, b);
                link.b = ACRE_MAX(a, b);
                link_list_add(&devices->links, link);
            }
        }
    }
    link_list_finish(&own);
}

struct acre_devices *acre_devices_open(const struct acre_device_options *options) {
    struct acre_devices *devices = acre_calloc(1, sizeof(*devices));
    sysfs_init(&devices->proc, options->proc_root != NULL ? options->proc_root : "/proc");
    bool simulated = options->sim != NULL;
    size_t count = simulated ? ACRE_COUNT(simulated_drivers) : ACRE_COUNT(real_drivers);
    for (size_t i = 0; i < count; i++) {
        ask(devices, simulated ? simulated_drivers[i] : real_drivers[i], options);
    }
    for (uint32_t i = 0; i < devices->attempt_count; i++) {
        collect_links(devices, i);
    }
    islands_assign(devices->infos, devices->count, devices->links.items, devices->links.count);
    return devices;
}

void acre_devices_close(struct acre_devices *devices) {
    if (devices == NULL) {
        return;
    }
    for (uint32_t i = 0; i < devices->attempt_count; i++) {
        devices->attempts[i].driver->close(devices->selves[i]);
    }
    sysfs_finish(&devices->proc);
    link_list_finish(&devices->links);
    free(devices->infos);
    free(devices->origins);
    free(devices);
}

uint32_t acre_devices_count(const struct acre_devices *devices) {
    return devices->count;
}

const struct acre_device_info *acre_devices_info(const struct acre_devices *devices,
                                                 uint32_t index) {
    ACRE_ASSERT(index < devices->count);
    return &devices->infos[index];
}

const struct acre_device_link *acre_devices_links(const struct acre_devices *devices,
                                                  uint32_t *ret_count) {
    *ret_count = devices->links.count;
    return devices->links.items;
}

const struct acre_device_attempt *acre_devices_attempts(const struct acre_devices *devices,
                                                        uint32_t *ret_count) {
    /* Notes grow with every sample; the pointer is taken anew. */
    struct acre_devices *mine = (struct acre_devices *)devices;
    for (uint32_t i = 0; i < devices->attempt_count; i++) {
        struct acre_device_attempt *attempt = &mine->attempts[i];
        if (devices->selves[i] != NULL && attempt->driver->notes != NULL) {
            attempt->notes = attempt->driver->notes(devices->selves[i]);
        }
    }
    *ret_count = devices->attempt_count;
    return devices->attempts;
}

int acre_process_list_add(struct acre_process_list *list, struct acre_device_process **ret_process,
                          struct acre_error *err) {
    if (list->count >= ACRE_PROCESSES_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "more than %u processes on one device",
                         (unsigned)ACRE_PROCESSES_MAX);
    }
    if (list->count == list->capacity) {
        list->capacity = ACRE_MAX(16U, list->capacity * 2);
        list->items = acre_realloc(list->items, list->capacity, sizeof(*list->items));
    }
    *ret_process = &list->items[list->count++];
    **ret_process = (struct acre_device_process){0};
    return 0;
}

void acre_device_reading_finish(struct acre_device_reading *reading) {
    free(reading->processes.items);
    *reading = (struct acre_device_reading){0};
}

static void read_processes(struct acre_devices *devices, uint32_t index, const uint64_t *known_pids,
                           uint32_t known_count, struct acre_device_reading *reading) {
    struct device_origin origin = devices->origins[index];
    const struct acre_device_driver *driver = devices->attempts[origin.driver].driver;
    struct acre_device_sample *sample = &reading->sample;
    void *self = devices->selves[origin.driver];
    if (driver->processes == NULL || strcmp(sample->state, "lost") == 0 ||
        driver->processes(self, origin.index, &reading->processes, NULL) < 0) {
        return;
    }
    for (uint32_t i = 0; i < reading->processes.count; i++) {
        process_describe(&devices->proc, &reading->processes.items[i]);
    }
    struct foreign foreign = device_foreign(sample, reading->processes.items,
                                            reading->processes.count, known_pids, known_count);
    ACRE_PUT(sample, ACRE_SAMPLE, processes, reading->processes.count);
    if (foreign.known) {
        ACRE_PUT(sample, ACRE_SAMPLE, memory_foreign_mib, foreign.memory_mib);
        ACRE_PUT(sample, ACRE_SAMPLE, memory_unattributed_mib, foreign.unattributed_mib);
    }
}

void acre_devices_read(struct acre_devices *devices, uint64_t now_ms, const uint64_t *known_pids,
                       uint32_t known_count, struct acre_device_reading *readings) {
    for (uint32_t i = 0; i < devices->attempt_count; i++) {
        if (devices->selves[i] != NULL && devices->attempts[i].driver->poll != NULL) {
            devices->attempts[i].driver->poll(devices->selves[i]);
        }
    }
    for (uint32_t i = 0; i < devices->count; i++) {
        struct device_origin origin = devices->origins[i];
        struct acre_device_reading *reading = &readings[i];
        reading->processes.count = 0;
        reading->sample = (struct acre_device_sample){0};
        const struct acre_device_driver *driver = devices->attempts[origin.driver].driver;
        struct acre_error err = {0};
        if (driver->sample(devices->selves[origin.driver], origin.index, &reading->sample, &err) <
            0) {
            ACRE_PUT_TEXT(&reading->sample, ACRE_SAMPLE, state, ACRE_STR("unknown"));
            ACRE_PUT_TEXT(&reading->sample, ACRE_SAMPLE, reason, acre_str_from(err.text));
        }
        ACRE_PUT(&reading->sample, ACRE_SAMPLE, sampled_ms, now_ms);
        read_processes(devices, i, known_pids, known_count, reading);
    }
}
