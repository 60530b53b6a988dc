/* node.c - uname, meminfo and the kernel's list of online CPUs.
 *
 * MemAvailable, not MemFree: the page cache can be reclaimed. CPUs are those online, not those this
 * process may use; a cgroup's share is up to the ledger. */
#include "device/node.h"

#include "device/sim.h"
#include "device/sysfs.h"
#include "device/value.h"

#include <sys/utsname.h>

int acre_node_cpus(struct acre_sysfs *sys, uint64_t *ret_count) {
    struct acre_str text;
    struct acre_error err = {0};
    sysfs_at(sys, "devices/system/cpu/online");
    int r = sysfs_text(sys, &text);
    if (r < 0) {
        return r;
    }
    r = value_cpu_list(text, ret_count, &err);
    if (r < 0) {
        sysfs_note(sys, &err);
    }
    return r;
}

/* "MemTotal:       16384256 kB" */
static int find_kib(struct acre_str text, const char *key, uint64_t *ret_kib,
                    struct acre_error *err) {
    struct acre_str value;
    int r = value_find(text, key, ':', &value, err);
    if (r < 0) {
        return r;
    }
    if (value.length > 3 &&
        acre_str_is((struct acre_str){value.data + value.length - 3, 3}, " kB")) {
        value.length -= 3;
    }
    r = value_u64(value, UINT64_MAX >> 10, ret_kib, err);
    return r < 0 ? acre_fail_in(err, r, "%s", key) : 0;
}

int acre_node_ram(struct acre_sysfs *proc, uint64_t *ret_total_mib, uint64_t *ret_available_mib) {
    struct acre_str text;
    struct acre_error err = {0};
    uint64_t total_kib = 0;
    uint64_t available_kib = 0;
    sysfs_at(proc, "meminfo");
    int r = sysfs_text(proc, &text);
    if (r < 0) {
        return r;
    }
    r = find_kib(text, "MemTotal", &total_kib, &err);
    if (r == 0) {
        r = find_kib(text, "MemAvailable", &available_kib, &err);
    }
    if (r < 0) {
        sysfs_note(proc, &err);
        return r;
    }
    *ret_total_mib = total_kib >> 10;
    *ret_available_mib = available_kib >> 10;
    return 0;
}

static void read_real(const struct acre_device_options *options, struct acre_node_info *node) {
    struct utsname names;
    if (uname(&names) == 0) {
        ACRE_PUT_TEXT(node, ACRE_NODE, name, acre_str_from(names.nodename));
        ACRE_PUT_TEXT(node, ACRE_NODE, kernel, acre_str_from(names.release));
    }
    struct acre_sysfs fs;
    uint64_t cpus = 0;
    uint64_t total_mib = 0;
    uint64_t available_mib = 0;
    sysfs_init(&fs, options->sysfs_root != NULL ? options->sysfs_root : "/sys");
    if (acre_node_cpus(&fs, &cpus) == 0) {
        ACRE_PUT(node, ACRE_NODE, cpu_milli, cpus * 1000);
    }
    sysfs_finish(&fs);
    sysfs_init(&fs, options->proc_root != NULL ? options->proc_root : "/proc");
    if (acre_node_ram(&fs, &total_mib, &available_mib) == 0) {
        ACRE_PUT(node, ACRE_NODE, ram_total_mib, total_mib);
        ACRE_PUT(node, ACRE_NODE, ram_available_mib, available_mib);
    }
    sysfs_finish(&fs);
}

static void read_simulated(const struct acre_sim_node *from, struct acre_node_info *node) {
    ACRE_PUT_TEXT(node, ACRE_NODE, name, acre_str_from(from->name));
    if (from->cpu_milli > 0) {
        ACRE_PUT(node, ACRE_NODE, cpu_milli, from->cpu_milli);
    }
    if (from->ram_mib > 0) {
        ACRE_PUT(node, ACRE_NODE, ram_total_mib, from->ram_mib);
        ACRE_PUT(node, ACRE_NODE, ram_available_mib, from->ram_mib);
    }
}

void acre_node_read(const struct acre_device_options *options, uint64_t now_ms,
                    struct acre_node_info *ret_node) {
    *ret_node = (struct acre_node_info){0};
    ACRE_PUT(ret_node, ACRE_NODE, simulated, options->sim != NULL);
    ACRE_PUT(ret_node, ACRE_NODE, time_ms, now_ms);
    if (options->sim != NULL) {
        read_simulated(acre_sim_node(options->sim, options->sim_node), ret_node);
    } else {
        read_real(options, ret_node);
    }
}
