/* cpu.c - the CPU itself, as the device of last resort.
 *
 * One device per node, named "cpu": every node has one, and it cannot move. Its memory is RAM.
 * Utilization comes from two readings of /proc/stat, so the first sample has none. */
#include "device/device.h"
#include "device/node.h"
#include "device/sysfs.h"
#include "device/value.h"

#include <stdlib.h>

struct cpu_driver {
    struct acre_sysfs sys;
    struct acre_sysfs proc;
    struct acre_device_info info;
    bool has_times;
    uint64_t busy, total; /* ticks at the last sample */
};

static void cpu_close(void *self) {
    struct cpu_driver *cpu = self;
    if (cpu == NULL) {
        return;
    }
    sysfs_finish(&cpu->sys);
    sysfs_finish(&cpu->proc);
    free(cpu);
}

static void read_info(struct cpu_driver *cpu) {
    struct acre_device_info *info = &cpu->info;
    struct acre_str text;
    struct acre_str value;
    uint64_t count = 0;
    uint64_t available_mib = 0;
    ACRE_PUT_TEXT(info, ACRE_INFO, id, ACRE_STR("cpu"));
    ACRE_PUT(info, ACRE_INFO, simulated, false);
    ACRE_PUT_TEXT(info, ACRE_INFO, driver, ACRE_STR("cpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, kind, ACRE_STR("cpu"));
    ACRE_PUT(info, ACRE_INFO, divided, false);
    if (acre_node_cpus(&cpu->sys, &count) == 0) {
        ACRE_PUT(info, ACRE_INFO, compute_units, count);
    }
    if (acre_node_ram(&cpu->proc, &count, &available_mib) == 0) {
        ACRE_PUT(info, ACRE_INFO, memory_total_mib, count);
    }
    sysfs_at(&cpu->proc, "cpuinfo");
    if (sysfs_text(&cpu->proc, &text) < 0) {
        return;
    }
    if (value_find(text, "model name\t", ':', &value, NULL) == 0) {
        ACRE_PUT_TEXT(info, ACRE_INFO, model, value);
    }
    if (value_find(text, "vendor_id\t", ':', &value, NULL) == 0) {
        ACRE_PUT_TEXT(info, ACRE_INFO, vendor, value);
    }
}

static int cpu_open(const struct acre_device_options *options, void **ret_self,
                    struct acre_error *err) {
    (void)err;
    struct cpu_driver *cpu = acre_calloc(1, sizeof(*cpu));
    sysfs_init(&cpu->sys, options->sysfs_root != NULL ? options->sysfs_root : "/sys");
    sysfs_init(&cpu->proc, options->proc_root != NULL ? options->proc_root : "/proc");
    read_info(cpu);
    *ret_self = cpu;
    return 0;
}

static uint32_t cpu_count(const void *self) {
    (void)self;
    return 1;
}

static int cpu_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                    struct acre_error *err) {
    struct cpu_driver *cpu = self;
    if (index != 0) {
        return acre_fail(err, ACRE_ENOTFOUND, "cpu: no device %u; there is 1", index);
    }
    *ret_info = cpu->info;
    return 0;
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice" */
static bool read_times(struct cpu_driver *cpu, uint64_t *ret_busy, uint64_t *ret_total) {
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7 }; /* guest times are inside user and nice */
    struct acre_str text;
    struct acre_str line;
    struct acre_str part;
    sysfs_at(&cpu->proc, "stat");
    if (sysfs_text(&cpu->proc, &text) < 0 || value_find(text, "cpu", ' ', &line, NULL) < 0) {
        return false;
    }
    uint64_t busy = 0;
    uint64_t total = 0;
    struct acre_split parts = acre_split_begin(line, ' ');
    for (uint32_t i = 0; i <= STEAL && acre_split_next(&parts, &part); i++) {
        uint64_t ticks = 0;
        if (value_u64(part, UINT64_MAX >> 8, &ticks, NULL) < 0) {
            return false;
        }
        total += ticks;
        busy += i == IDLE || i == IOWAIT ? 0 : ticks;
    }
    *ret_busy = busy;
    *ret_total = total;
    return true;
}

static int cpu_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                      struct acre_error *err) {
    struct cpu_driver *cpu = self;
    if (index != 0) {
        return acre_fail(err, ACRE_ENOTFOUND, "cpu: no device %u; there is 1", index);
    }
    struct acre_device_sample sample = {0};
    uint64_t total_mib = 0;
    uint64_t available_mib = 0;
    ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, ACRE_STR("ok"));
    if (acre_node_ram(&cpu->proc, &total_mib, &available_mib) == 0 && available_mib <= total_mib) {
        ACRE_PUT(&sample, ACRE_SAMPLE, memory_used_mib, total_mib - available_mib);
        ACRE_PUT(&sample, ACRE_SAMPLE, memory_free_mib, available_mib);
    }
    uint64_t busy = 0;
    uint64_t total = 0;
    if (read_times(cpu, &busy, &total)) {
        if (cpu->has_times && total > cpu->total && busy >= cpu->busy) {
            uint64_t percent = (busy - cpu->busy) * 100 / (total - cpu->total);
            ACRE_PUT(&sample, ACRE_SAMPLE, utilization_gpu_pct, ACRE_MIN(percent, (uint64_t)100));
        }
        cpu->has_times = true;
        cpu->busy = busy;
        cpu->total = total;
    }
    *ret_sample = sample;
    return 0;
}

static const char *cpu_notes(const void *self) {
    const struct cpu_driver *cpu = self;
    return cpu->sys.notes.length > 0 ? cpu->sys.notes.data : cpu->proc.notes.data;
}

const struct acre_device_driver acre_driver_cpu = {
    .name = "cpu",
    .what = "the CPU, when there is no GPU",
    .last_resort = true,
    .open = cpu_open,
    .close = cpu_close,
    .count = cpu_count,
    .info = cpu_info,
    .sample = cpu_sample,
    .notes = cpu_notes,
};
