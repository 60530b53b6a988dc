/* amdgpu.c - AMD GPUs through the kernel's amdgpu files; no ROCm needed.
 *
 * A GPU is a drm card whose PCI device has AMD's vendor number. The compute driver (kfd.c)
 * adds what only it knows, matched by PCI address: when it shows several nodes for one
 * address, the GPU is divided, and each node becomes a device of its own after the whole one,
 * named "<whole>/xcp<k>". Values come from device/, hwmon/ and ras/; units are changed here:
 * micro- to milliwatts, millidegrees to degrees, Hz to MHz, bytes to MiB. */
#include "device/device.h"
#include "device/kfd.h"
#include "device/partition.h"
#include "device/sysfs.h"
#include "device/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS_MAX = 1024, VENDOR_AMD = 0x1002, NO_NODE = -1, NO_HWMON = -1, PIDS_MAX = 16384 };

struct gpu {
    struct acre_device_info info;
    uint32_t card;
    int32_t hwmon;  /* directory number, or NO_HWMON */
    uint32_t whole; /* position of the whole GPU: its own, or its parent's */
    int32_t node;   /* in nodes: a partition's own, or the only one of a whole GPU, or NO_NODE */
    char problem[ACRE_FIELD_TEXT_MAX]; /* why it must not be used; "" is well */
};

struct amdgpu {
    struct acre_sysfs fs;
    struct gpu *gpus;
    uint32_t count;
    struct acre_kfd_node *nodes;
    uint32_t node_count;
};

static void amdgpu_close(void *self) {
    struct amdgpu *amd = self;
    if (amd == NULL) {
        return;
    }
    acre_sysfs_finish(&amd->fs);
    free(amd->gpus);
    free(amd->nodes);
    free(amd);
}

static void at_device(struct amdgpu *amd, const struct gpu *gpu, const char *file) {
    acre_sysfs_at(&amd->fs, "class/drm/card%u/device/%s", gpu->card, file);
}

static void at_hwmon(struct amdgpu *amd, const struct gpu *gpu, const char *file) {
    acre_sysfs_at(&amd->fs, "class/drm/card%u/device/hwmon/hwmon%d/%s", gpu->card, gpu->hwmon,
                  file);
}

/* A table row moves one file into one field: scaled down, or as text. */
struct row {
    const char *file;
    size_t offset;
    int bit;
    uint64_t max;
    uint64_t divide; /* 0: text */
};
#define INFO(name)   offsetof(struct acre_device_info, name), ACRE_INFO_##name
#define SAMPLE(name) offsetof(struct acre_device_sample, name), ACRE_SAMPLE_##name

/* A field an earlier row filled is left alone, so rows may offer second choices. */
static void take_rows(struct amdgpu *amd, const struct gpu *gpu, bool hwmon, const struct row *rows,
                      size_t count, void *record) {
    uint64_t *valid = record; /* every record begins with it */
    for (size_t i = 0; i < count; i++) {
        if ((*valid >> rows[i].bit & 1) != 0 || (hwmon && gpu->hwmon == NO_HWMON)) {
            continue;
        }
        (hwmon ? at_hwmon : at_device)(amd, gpu, rows[i].file);
        char *at = (char *)record + rows[i].offset;
        struct acre_str line;
        uint64_t value = 0;
        if (rows[i].divide == 0 && acre_sysfs_line(&amd->fs, &line) == 0) {
            acre_field_put_text(at, valid, rows[i].bit, line);
        } else if (rows[i].divide != 0 && acre_sysfs_u64(&amd->fs, rows[i].max, &value) == 0) {
            *(uint64_t *)(void *)at = value / rows[i].divide;
            *valid |= UINT64_C(1) << rows[i].bit;
        }
    }
}

/* Millidegrees; may be below zero. */
static bool take_celsius(struct amdgpu *amd, const struct gpu *gpu, const char *file,
                         int64_t *ret_celsius) {
    int64_t milli = 0;
    if (gpu->hwmon == NO_HWMON) {
        return false;
    }
    at_hwmon(amd, gpu, file);
    if (acre_sysfs_i64(&amd->fs, -273000, 1000000, &milli) < 0) {
        return false;
    }
    *ret_celsius = milli / 1000;
    return true;
}

static bool take_pcie_gen(struct amdgpu *amd, const struct gpu *gpu, const char *file,
                          uint64_t *ret_gen) {
    struct acre_str text;
    struct acre_error err = {0};
    at_device(amd, gpu, file);
    if (acre_sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    if (acre_value_pcie_gen(text, ret_gen, &err) < 0) {
        acre_sysfs_note(&amd->fs, &err);
        return false;
    }
    return true;
}

static bool take_dpm(struct amdgpu *amd, const struct gpu *gpu, const char *file,
                     uint64_t *ret_current_mhz, uint64_t *ret_max_mhz) {
    struct acre_str text;
    struct acre_error err = {0};
    at_device(amd, gpu, file);
    if (acre_sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    int r = acre_value_dpm(text, ret_current_mhz, ret_max_mhz, &err);
    if (r < 0) {
        acre_sysfs_note(&amd->fs, &err);
    }
    return r == 0;
}

static void read_model(struct amdgpu *amd, struct gpu *gpu) {
    static const struct {
        uint32_t device;
        const char *model;
    } models[] = {
        {0x738c, "AMD Instinct MI100"},  {0x7408, "AMD Instinct MI250X"},
        {0x740c, "AMD Instinct MI250X"}, {0x740f, "AMD Instinct MI210"},
        {0x74a0, "AMD Instinct MI300A"}, {0x74a1, "AMD Instinct MI300X"},
        {0x74a2, "AMD Instinct MI308X"}, {0x74a5, "AMD Instinct MI325X"},
        {0x75a0, "AMD Instinct MI350X"}, {0x75a3, "AMD Instinct MI355X"},
    };
    struct acre_device_info *info = &gpu->info;
    uint64_t device = 0;
    at_device(amd, gpu, "device");
    if (ACRE_HAS(info, ACRE_INFO, model) || acre_sysfs_u64(&amd->fs, 0xffff, &device) < 0) {
        return;
    }
    char text[32];
    const char *model = text;
    snprintf(text, sizeof(text), "AMD GPU 0x%04x", (unsigned)device);
    for (size_t i = 0; i < ACRE_COUNT(models); i++) {
        model = models[i].device == device ? models[i].model : model;
    }
    ACRE_PUT_TEXT(info, ACRE_INFO, model, acre_str_from(model));
}

static void read_identity(struct amdgpu *amd, struct gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    struct acre_str line;
    at_device(amd, gpu, "unique_id");
    if (acre_sysfs_line(&amd->fs, &line) == 0) {
        char uuid[ACRE_FIELD_TEXT_MAX];
        snprintf(uuid, sizeof(uuid), "GPU-%.*s", (int)ACRE_MIN(line.length, (size_t)32), line.data);
        ACRE_PUT_TEXT(info, ACRE_INFO, uuid, acre_str_from(uuid));
    }
    const char *id = ACRE_HAS(info, ACRE_INFO, uuid) ? info->uuid : info->pci_id;
    ACRE_PUT_TEXT(info, ACRE_INFO, id, acre_str_from(id));
    acre_sysfs_at(&amd->fs, "module/amdgpu/version");
    if (acre_sysfs_line(&amd->fs, &line) == 0) {
        ACRE_PUT_TEXT(info, ACRE_INFO, driver_version, line);
    }
    ACRE_PUT(info, ACRE_INFO, simulated, false);
    ACRE_PUT(info, ACRE_INFO, divided, false);
    ACRE_PUT_TEXT(info, ACRE_INFO, driver, ACRE_STR("amdgpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, kind, ACRE_STR("gpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, vendor, ACRE_STR("AMD"));
}

static void read_static(struct amdgpu *amd, struct gpu *gpu) {
    static const struct row device_rows[] = {
        {"product_name", INFO(model), 0, 0},
        {"serial_number", INFO(serial), 0, 0},
        {"mem_info_vram_total", INFO(memory_total_mib), UINT64_MAX, 1 << 20},
        {"max_link_width", INFO(pcie_width_max), 64, 1},
        {"local_cpulist", INFO(cpu_affinity), 0, 0},
        {"current_compute_partition", INFO(compute_partition), 0, 0},
        {"current_memory_partition", INFO(memory_partition), 0, 0},
    };
    static const struct row hwmon_rows[] = {
        {"power1_cap_max", INFO(power_limit_max_mw), UINT64_MAX, 1000},
    };
    struct acre_device_info *info = &gpu->info;
    take_rows(amd, gpu, false, device_rows, ACRE_COUNT(device_rows), info);
    take_rows(amd, gpu, true, hwmon_rows, ACRE_COUNT(hwmon_rows), info);
    read_model(amd, gpu);
    int64_t celsius = 0;
    uint64_t value = 0;
    uint64_t current = 0;
    if (take_celsius(amd, gpu, "temp2_crit", &celsius)) {
        ACRE_PUT(info, ACRE_INFO, temperature_slowdown_c, celsius);
    }
    if (take_celsius(amd, gpu, "temp2_emergency", &celsius)) {
        ACRE_PUT(info, ACRE_INFO, temperature_shutdown_c, celsius);
    }
    if (take_pcie_gen(amd, gpu, "max_link_speed", &value)) {
        ACRE_PUT(info, ACRE_INFO, pcie_gen_max, value);
    }
    if (take_dpm(amd, gpu, "pp_dpm_sclk", &current, &value)) {
        ACRE_PUT(info, ACRE_INFO, clock_sm_max_mhz, value);
    }
    if (take_dpm(amd, gpu, "pp_dpm_mclk", &current, &value)) {
        ACRE_PUT(info, ACRE_INFO, clock_memory_max_mhz, value);
    }
    int64_t numa = -1;
    at_device(amd, gpu, "numa_node");
    if (acre_sysfs_i64(&amd->fs, -1, 4095, &numa) == 0 && numa >= 0) {
        ACRE_PUT(info, ACRE_INFO, numa_node, (uint64_t)numa);
    }
}

static bool is_node_of(const struct acre_kfd_node *node, const struct acre_device_info *info) {
    char pci_id[ACRE_PCI_ID_MAX];
    acre_pci_id_format(node->domain, node->bus, node->device, 0, pci_id);
    return ACRE_HAS(info, ACRE_INFO, pci_id) && strcmp(pci_id, info->pci_id) == 0;
}

static void put_compute(struct acre_device_info *info, uint32_t simds, uint32_t simds_per_cu,
                        uint32_t xcds, uint32_t gfx_version) {
    char text[32];
    if (simds > 0 && simds_per_cu > 0) {
        ACRE_PUT(info, ACRE_INFO, compute_units, simds / simds_per_cu);
    }
    if (xcds > 0) {
        ACRE_PUT(info, ACRE_INFO, xcds, xcds);
    }
    if (gfx_version > 0) {
        acre_kfd_gfx_name(gfx_version, text, sizeof(text));
        ACRE_PUT_TEXT(info, ACRE_INFO, architecture, acre_str_from(text));
    }
}

/* The rules of partition.h are those of the MI300X; for others only the modes are shown. */
static void check_partition(struct amdgpu *amd, struct gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    struct acre_partition partition = acre_partition_default();
    struct acre_error err = {0};
    if (!ACRE_HAS(info, ACRE_INFO, compute_partition)) {
        return;
    }
    int r = acre_partition_compute_parse(acre_str_from(info->compute_partition), &partition.compute,
                                         &err);
    if (r == 0 && ACRE_HAS(info, ACRE_INFO, memory_partition)) {
        r = acre_partition_memory_parse(acre_str_from(info->memory_partition), &partition.memory,
                                        &err);
    }
    if (ACRE_HAS(info, ACRE_INFO, xcds)) {
        partition.xcds = (uint32_t)info->xcds;
    }
    bool mi300x = strstr(info->model, "MI300X") != NULL;
    if (r == 0 && mi300x) {
        r = acre_partition_check(&partition, &err);
    }
    if (r < 0) {
        snprintf(gpu->problem, sizeof(gpu->problem), "%s", err.text);
        at_device(amd, gpu, "current_compute_partition");
        acre_sysfs_note(&amd->fs, &err);
    } else if (mi300x) {
        ACRE_PUT(info, ACRE_INFO, share_step_milli, acre_partition_step_milli(&partition));
    }
}

static void add_slice(struct amdgpu *amd, uint32_t whole, uint32_t node_at) {
    const struct gpu *parent = &amd->gpus[whole];
    const struct acre_kfd_node *node = &amd->nodes[node_at];
    struct gpu *gpu = &amd->gpus[amd->count++];
    *gpu = *parent;
    gpu->node = (int32_t)node_at;
    gpu->whole = whole;
    struct acre_device_info *info = &gpu->info;
    char id[ACRE_FIELD_TEXT_MAX];
    snprintf(id, sizeof(id), "%.*s/xcp%u", ACRE_FIELD_TEXT_MAX - 16, parent->info.id,
             node->function);
    ACRE_PUT_TEXT(info, ACRE_INFO, id, acre_str_from(id));
    ACRE_PUT_TEXT(info, ACRE_INFO, parent_id, acre_str_from(parent->info.id));
    ACRE_PUT_TEXT(info, ACRE_INFO, kind, ACRE_STR("xcp"));
    ACRE_PUT(info, ACRE_INFO, divided, false);
    ACRE_FORGET(info, ACRE_INFO, uuid);
    ACRE_FORGET(info, ACRE_INFO, serial);
    ACRE_FORGET(info, ACRE_INFO, share_step_milli);
    ACRE_FORGET(info, ACRE_INFO, memory_total_mib);
    ACRE_FORGET(info, ACRE_INFO, power_limit_max_mw);
    put_compute(info, node->simds, node->simds_per_cu, node->xcds, node->gfx_version);
    if (node->memory_bytes > 0) {
        ACRE_PUT(info, ACRE_INFO, memory_total_mib, node->memory_bytes >> 20);
    }
}

/* Join the GPU with its compute nodes: one is itself, several are its partitions. */
static void add_nodes(struct amdgpu *amd, uint32_t whole) {
    struct gpu *gpu = &amd->gpus[whole];
    uint32_t own[ACRE_PARTITION_XCDS_MAX * 2];
    uint32_t count = 0;
    uint32_t simds = 0;
    uint32_t xcds = 0;
    for (uint32_t i = 0; i < amd->node_count && count < ACRE_COUNT(own); i++) {
        if (is_node_of(&amd->nodes[i], &gpu->info)) {
            own[count++] = i;
            simds += amd->nodes[i].simds;
            xcds += amd->nodes[i].xcds;
        }
    }
    if (count > 0) {
        const struct acre_kfd_node *first = &amd->nodes[own[0]];
        put_compute(&gpu->info, simds, first->simds_per_cu, xcds, first->gfx_version);
        gpu->node = count == 1 ? (int32_t)own[0] : NO_NODE;
    }
    check_partition(amd, gpu);
    for (uint32_t i = 0; i < count && count > 1 && amd->count < ACRE_DEVICES_MAX; i++) {
        ACRE_PUT(&gpu->info, ACRE_INFO, divided, true);
        add_slice(amd, whole, own[i]);
    }
}

/* True when the card is an AMD GPU with a PCI address. Partition cards (amdgpu_xcp platform
 * devices) have no vendor file and are passed over here. */
static bool find_card(struct amdgpu *amd, uint32_t card, struct gpu *ret_gpu) {
    struct gpu gpu = {.card = card, .hwmon = NO_HWMON, .node = NO_NODE};
    uint64_t vendor = 0;
    struct acre_str text;
    struct acre_str slot;
    char pci_id[ACRE_PCI_ID_MAX];
    struct acre_error err = {0};
    at_device(amd, &gpu, "vendor");
    if (acre_sysfs_u64(&amd->fs, 0xffff, &vendor) < 0 || vendor != VENDOR_AMD) {
        return false;
    }
    at_device(amd, &gpu, "uevent");
    if (acre_sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    if (acre_value_find(text, "PCI_SLOT_NAME", '=', &slot, &err) < 0 ||
        acre_value_pci_id(slot, pci_id, &err) < 0) {
        acre_sysfs_note(&amd->fs, &err); /* without an address it has no name */
        return false;
    }
    ACRE_PUT_TEXT(&gpu.info, ACRE_INFO, pci_id, acre_str_from(pci_id));
    uint32_t number = 0;
    at_device(amd, &gpu, "hwmon");
    if (acre_sysfs_numbers(&amd->fs, "hwmon", &number, 1) == 1) {
        gpu.hwmon = (int32_t)number;
    }
    *ret_gpu = gpu;
    return true;
}

static void discover(struct amdgpu *amd, const uint32_t *cards, uint32_t card_count) {
    amd->nodes = acre_calloc(ACRE_KFD_NODES_MAX, sizeof(*amd->nodes));
    amd->node_count = acre_kfd_read(&amd->fs, amd->nodes, ACRE_KFD_NODES_MAX);
    for (uint32_t i = 0; i < card_count && amd->count < ACRE_DEVICES_MAX; i++) {
        uint32_t at = amd->count;
        struct gpu *gpu = &amd->gpus[at];
        if (!find_card(amd, cards[i], gpu)) {
            continue;
        }
        amd->count++;
        gpu->whole = at;
        read_identity(amd, gpu);
        read_static(amd, gpu);
        add_nodes(amd, at);
    }
}

static int amdgpu_open(const struct acre_device_options *options, void **ret_self,
                       struct acre_error *err) {
    struct amdgpu *amd = acre_calloc(1, sizeof(*amd));
    acre_sysfs_init(&amd->fs, options->sysfs_root != NULL ? options->sysfs_root : "/sys");
    amd->gpus = acre_calloc(ACRE_DEVICES_MAX, sizeof(*amd->gpus));
    uint32_t *cards = acre_calloc(CARDS_MAX, sizeof(*cards));
    acre_sysfs_at(&amd->fs, "class/drm");
    uint32_t card_count = acre_sysfs_numbers(&amd->fs, "card", cards, CARDS_MAX);
    discover(amd, cards, card_count);
    free(cards);
    if (amd->count == 0) {
        int r = acre_fail(err, ACRE_EUNAVAILABLE,
                          "%s/class/drm: %u cards, none an AMD GPU (vendor 0x1002)%s%s",
                          amd->fs.root, card_count, amd->fs.notes.length > 0 ? "; " : "",
                          amd->fs.notes.length > 0 ? amd->fs.notes.data : "");
        amdgpu_close(amd);
        return r;
    }
    *ret_self = amd;
    return 0;
}

static uint32_t amdgpu_count(const void *self) {
    return ((const struct amdgpu *)self)->count;
}

static int check_index(const struct amdgpu *amd, uint32_t index, struct acre_error *err) {
    return index < amd->count ? 0
                              : acre_fail(err, ACRE_ENOTFOUND, "amdgpu: no device %u; there are %u",
                                          index, amd->count);
}

static int amdgpu_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                       struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = check_index(amd, index, err);
    if (r == 0) {
        *ret_info = amd->gpus[index].info;
    }
    return r;
}

/* ras/<block>_err_count: "ue: 0\nce: 0\n". Summed over the blocks that are there. */
static void sample_ras(struct amdgpu *amd, const struct gpu *gpu,
                       struct acre_device_sample *sample) {
    static const char *const blocks[] = {"umc", "sdma", "gfx", "mmhub", "xgmi_wafl"};
    uint64_t corrected = 0;
    uint64_t uncorrected = 0;
    bool found = false;
    for (size_t i = 0; i < ACRE_COUNT(blocks); i++) {
        struct acre_str text;
        struct acre_error err = {0};
        uint64_t ue = 0;
        uint64_t ce = 0;
        acre_sysfs_at(&amd->fs, "class/drm/card%u/device/ras/%s_err_count", gpu->card, blocks[i]);
        if (acre_sysfs_text(&amd->fs, &text) < 0) {
            continue;
        }
        if (acre_value_find_u64(text, "ue", ':', UINT32_MAX, &ue, &err) < 0 ||
            acre_value_find_u64(text, "ce", ':', UINT32_MAX, &ce, &err) < 0) {
            acre_sysfs_note(&amd->fs, &err);
            continue;
        }
        uncorrected += ue;
        corrected += ce;
        found = true;
    }
    if (found) {
        ACRE_PUT(sample, ACRE_SAMPLE, ecc_corrected, corrected);
        ACRE_PUT(sample, ACRE_SAMPLE, ecc_uncorrected, uncorrected);
    }
}

static void sample_whole(struct amdgpu *amd, const struct gpu *gpu,
                         struct acre_device_sample *sample) {
    static const struct row device_rows[] = {
        {"mem_info_vram_used", SAMPLE(memory_used_mib), UINT64_MAX, 1 << 20},
        {"gpu_busy_percent", SAMPLE(utilization_gpu_pct), 100, 1},
        {"mem_busy_percent", SAMPLE(utilization_memory_pct), 100, 1},
        {"current_link_width", SAMPLE(pcie_width), 64, 1},
    };
    static const struct row hwmon_rows[] = {
        {"power1_average", SAMPLE(power_mw), UINT64_MAX, 1000},
        {"power1_input", SAMPLE(power_mw), UINT64_MAX, 1000},
        {"power1_cap", SAMPLE(power_limit_mw), UINT64_MAX, 1000},
        {"freq1_input", SAMPLE(clock_sm_mhz), UINT64_MAX, 1000000},
        {"freq2_input", SAMPLE(clock_memory_mhz), UINT64_MAX, 1000000},
    };
    take_rows(amd, gpu, false, device_rows, ACRE_COUNT(device_rows), sample);
    take_rows(amd, gpu, true, hwmon_rows, ACRE_COUNT(hwmon_rows), sample);
    int64_t celsius = 0;
    uint64_t value = 0;
    uint64_t max = 0;
    if (take_celsius(amd, gpu, "temp2_input", &celsius) || /* junction */
        take_celsius(amd, gpu, "temp1_input", &celsius)) { /* edge */
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_c, celsius);
    }
    if (take_celsius(amd, gpu, "temp3_input", &celsius)) {
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_memory_c, celsius);
    }
    if (take_pcie_gen(amd, gpu, "current_link_speed", &value)) {
        ACRE_PUT(sample, ACRE_SAMPLE, pcie_gen, value);
    }
    if (!ACRE_HAS(sample, ACRE_SAMPLE, clock_sm_mhz) &&
        take_dpm(amd, gpu, "pp_dpm_sclk", &value, &max)) {
        ACRE_PUT(sample, ACRE_SAMPLE, clock_sm_mhz, value);
    }
    if (!ACRE_HAS(sample, ACRE_SAMPLE, clock_memory_mhz) &&
        take_dpm(amd, gpu, "pp_dpm_mclk", &value, &max)) {
        ACRE_PUT(sample, ACRE_SAMPLE, clock_memory_mhz, value);
    }
    sample_ras(amd, gpu, sample);
}

/* A partition: only its memory is its own; load, heat and power are the whole GPU's. */
static void sample_slice(struct amdgpu *amd, const struct gpu *gpu,
                         struct acre_device_sample *sample) {
    uint64_t used_bytes = 0;
    acre_sysfs_at(&amd->fs, "class/kfd/kfd/topology/nodes/%u/mem_banks/0/used_memory",
                  amd->nodes[gpu->node].number);
    if (acre_sysfs_u64(&amd->fs, UINT64_MAX, &used_bytes) == 0) {
        ACRE_PUT(sample, ACRE_SAMPLE, memory_used_mib, used_bytes >> 20);
    }
}

static int amdgpu_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                         struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = check_index(amd, index, err);
    if (r < 0) {
        return r;
    }
    const struct gpu *gpu = &amd->gpus[index];
    struct acre_device_sample sample = {0};
    uint64_t vendor = 0;
    at_device(amd, gpu, "vendor");
    if (acre_sysfs_u64(&amd->fs, 0xffff, &vendor) < 0 || vendor != VENDOR_AMD) {
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, ACRE_STR("lost"));
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, reason, ACRE_STR("its sysfs entry is gone"));
        *ret_sample = sample;
        return 0;
    }
    if (gpu->whole == index) {
        sample_whole(amd, gpu, &sample);
    } else {
        sample_slice(amd, gpu, &sample);
    }
    if (ACRE_HAS(&sample, ACRE_SAMPLE, memory_used_mib) &&
        ACRE_HAS(&gpu->info, ACRE_INFO, memory_total_mib) &&
        sample.memory_used_mib <= gpu->info.memory_total_mib) {
        ACRE_PUT(&sample, ACRE_SAMPLE, memory_free_mib,
                 gpu->info.memory_total_mib - sample.memory_used_mib);
    }
    bool well = amd->gpus[gpu->whole].problem[0] == '\0';
    ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, well ? ACRE_STR("ok") : ACRE_STR("misconfigured"));
    ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, reason, acre_str_from(amd->gpus[gpu->whole].problem));
    *ret_sample = sample;
    return 0;
}

/* Sum over the compute nodes of this device: its own, or all of a divided GPU's. */
static uint64_t bytes_of(struct amdgpu *amd, const struct gpu *gpu, uint32_t pid) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < amd->node_count; i++) {
        bool own = gpu->node == NO_NODE ? is_node_of(&amd->nodes[i], &gpu->info)
                                        : (uint32_t)gpu->node == i;
        uint64_t bytes = 0;
        if (own && acre_kfd_process_bytes(&amd->fs, pid, amd->nodes[i].gpu_id, &bytes) == 0 &&
            __builtin_add_overflow(sum, bytes, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

static int amdgpu_processes(void *self, uint32_t index, struct acre_process_list *list,
                            struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = check_index(amd, index, err);
    if (r < 0) {
        return r;
    }
    if (amd->node_count == 0) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "amdgpu: no process list without %s/class/kfd",
                         amd->fs.root);
    }
    uint32_t *pids = acre_calloc(PIDS_MAX, sizeof(*pids));
    acre_sysfs_at(&amd->fs, "class/kfd/kfd/proc");
    uint32_t count = acre_sysfs_numbers(&amd->fs, "", pids, PIDS_MAX);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint64_t bytes = bytes_of(amd, &amd->gpus[index], pids[i]);
        struct acre_device_process *process = NULL;
        r = bytes > 0 ? acre_process_list_add(list, &process, err) : 0;
        if (process != NULL) {
            ACRE_PUT(process, ACRE_PROCESS, pid, pids[i]);
            ACRE_PUT_TEXT(process, ACRE_PROCESS, kind, ACRE_STR("compute"));
            ACRE_PUT(process, ACRE_PROCESS, memory_mib, bytes >> 20);
        }
    }
    free(pids);
    return r;
}

struct link_search {
    struct amdgpu *amd;
    struct acre_link_list *list;
};

/* The whole GPU a compute node belongs to; count when none. */
static uint32_t whole_of_node(const struct amdgpu *amd, uint32_t number) {
    for (uint32_t n = 0; n < amd->node_count; n++) {
        for (uint32_t i = 0; amd->nodes[n].number == number && i < amd->count; i++) {
            if (amd->gpus[i].whole == i && is_node_of(&amd->nodes[n], &amd->gpus[i].info)) {
                return i;
            }
        }
    }
    return amd->count;
}

static void add_link(void *context, uint32_t node_from, uint32_t node_to) {
    struct link_search *search = context;
    uint32_t a = whole_of_node(search->amd, node_from);
    uint32_t b = whole_of_node(search->amd, node_to);
    if (a >= b || b >= search->amd->count) {
        return; /* within one GPU, to a CPU, or seen from the other end */
    }
    for (uint32_t i = 0; i < search->list->count; i++) {
        if (search->list->items[i].a == a && search->list->items[i].b == b) {
            return;
        }
    }
    acre_link_list_add(search->list, (struct acre_device_link){a, b, ACRE_LINK_XGMI, 0});
}

static int amdgpu_links(void *self, struct acre_link_list *list, struct acre_error *err) {
    struct amdgpu *amd = self;
    struct link_search search = {amd, list};
    (void)err;
    for (uint32_t i = 0; i < amd->node_count; i++) {
        acre_kfd_xgmi(&amd->fs, amd->nodes[i].number, add_link, &search);
    }
    return 0;
}

static const char *amdgpu_notes(const void *self) {
    return ((const struct amdgpu *)self)->fs.notes.data;
}

const struct acre_device_driver acre_driver_amdgpu = {
    .name = "amdgpu",
    .what = "AMD GPUs through sysfs",
    .open = amdgpu_open,
    .close = amdgpu_close,
    .count = amdgpu_count,
    .info = amdgpu_info,
    .sample = amdgpu_sample,
    .processes = amdgpu_processes,
    .links = amdgpu_links,
    .notes = amdgpu_notes,
};
