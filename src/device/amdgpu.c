/* amdgpu.c - AMD GPUs through the kernel's amdgpu files; no ROCm needed.
 *
 * A GPU is a drm card whose PCI device has AMD's vendor number. The compute driver (kfd.c) adds
 * what only it knows, matched by PCI address: if it shows several nodes for one address, the GPU is
 * divided, and each node becomes a separate device after the whole one, named "<whole>/xcp<k>".
 * Values come from device/, hwmon/ and ras/; units are converted here: micro- to milliwatts,
 * millidegrees to degrees, Hz to MHz, bytes to MiB. */
#include "device/amdgpu.h"

#include "device/partition.h"
#include "device/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS_MAX = 1024 };

static void amdgpu_close(void *self) {
    struct amdgpu *amd = self;
    if (amd == NULL) {
        return;
    }
    sysfs_finish(&amd->fs);
    free(amd->gpus);
    free(amd->nodes);
    free(amd);
}

static void read_model(struct amdgpu *amd, struct amdgpu_gpu *gpu) {
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
    amdgpu_at_device(amd, gpu, "device");
    if (ACRE_HAS(info, ACRE_INFO, model) || sysfs_u64(&amd->fs, 0xffff, &device) < 0) {
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

static void read_identity(struct amdgpu *amd, struct amdgpu_gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    struct acre_str line;
    amdgpu_at_device(amd, gpu, "unique_id");
    if (sysfs_line(&amd->fs, &line) == 0) {
        char uuid[ACRE_COLUMN_TEXT_MAX];
        snprintf(uuid, sizeof(uuid), "GPU-%.*s", (int)ACRE_MIN(line.length, (size_t)32), line.data);
        ACRE_PUT_TEXT(info, ACRE_INFO, uuid, acre_str_from(uuid));
    }
    const char *id = ACRE_HAS(info, ACRE_INFO, uuid) ? info->uuid : info->pci_id;
    ACRE_PUT_TEXT(info, ACRE_INFO, id, acre_str_from(id));
    sysfs_at(&amd->fs, "module/amdgpu/version");
    if (sysfs_line(&amd->fs, &line) == 0) {
        ACRE_PUT_TEXT(info, ACRE_INFO, driver_version, line);
    }
    ACRE_PUT(info, ACRE_INFO, simulated, false);
    ACRE_PUT(info, ACRE_INFO, divided, false);
    ACRE_PUT_TEXT(info, ACRE_INFO, driver, ACRE_STR("amdgpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, kind, ACRE_STR("gpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, vendor, ACRE_STR("AMD"));
}

static void read_static(struct amdgpu *amd, struct amdgpu_gpu *gpu) {
    static const struct amdgpu_row device_rows[] = {
        {"product_name", AMDGPU_INFO(model), 0, 0},
        {"serial_number", AMDGPU_INFO(serial), 0, 0},
        {"mem_info_vram_total", AMDGPU_INFO(memory_total_mib), UINT64_MAX, 1 << 20},
        {"max_link_width", AMDGPU_INFO(pcie_width_max), 64, 1},
        {"local_cpulist", AMDGPU_INFO(cpu_affinity), 0, 0},
        {"current_compute_partition", AMDGPU_INFO(compute_partition), 0, 0},
        {"current_memory_partition", AMDGPU_INFO(memory_partition), 0, 0},
    };
    static const struct amdgpu_row hwmon_rows[] = {
        {"power1_cap_max", AMDGPU_INFO(power_limit_max_mw), UINT64_MAX, 1000},
    };
    struct acre_device_info *info = &gpu->info;
    amdgpu_take_rows(amd, gpu, false, device_rows, ACRE_COUNT(device_rows), info);
    amdgpu_take_rows(amd, gpu, true, hwmon_rows, ACRE_COUNT(hwmon_rows), info);
    read_model(amd, gpu);
    int64_t celsius = 0;
    uint64_t value = 0;
    uint64_t current = 0;
    if (amdgpu_take_celsius(amd, gpu, "temp2_crit", &celsius)) {
        ACRE_PUT(info, ACRE_INFO, temperature_slowdown_c, celsius);
    }
    if (amdgpu_take_celsius(amd, gpu, "temp2_emergency", &celsius)) {
        ACRE_PUT(info, ACRE_INFO, temperature_shutdown_c, celsius);
    }
    if (amdgpu_take_pcie_gen(amd, gpu, "max_link_speed", &value)) {
        ACRE_PUT(info, ACRE_INFO, pcie_gen_max, value);
    }
    if (amdgpu_take_dpm(amd, gpu, "pp_dpm_sclk", &current, &value)) {
        ACRE_PUT(info, ACRE_INFO, clock_sm_max_mhz, value);
    }
    if (amdgpu_take_dpm(amd, gpu, "pp_dpm_mclk", &current, &value)) {
        ACRE_PUT(info, ACRE_INFO, clock_memory_max_mhz, value);
    }
    int64_t numa = -1;
    amdgpu_at_device(amd, gpu, "numa_node");
    if (sysfs_i64(&amd->fs, -1, 4095, &numa) == 0 && numa >= 0) {
        ACRE_PUT(info, ACRE_INFO, numa_node, (uint64_t)numa);
    }
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
        kfd_gfx_name(gfx_version, text, sizeof(text));
        ACRE_PUT_TEXT(info, ACRE_INFO, architecture, acre_str_from(text));
    }
}

/* The rules of partition.h are those of the MI300X; for others only the modes are shown. */
static void check_partition(struct amdgpu *amd, struct amdgpu_gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    struct partition partition = partition_default();
    struct acre_error err = {0};
    if (!ACRE_HAS(info, ACRE_INFO, compute_partition)) {
        return;
    }
    int r =
        partition_compute_parse(acre_str_from(info->compute_partition), &partition.compute, &err);
    if (r == 0 && ACRE_HAS(info, ACRE_INFO, memory_partition)) {
        r = partition_memory_parse(acre_str_from(info->memory_partition), &partition.memory, &err);
    }
    if (ACRE_HAS(info, ACRE_INFO, xcds)) {
        partition.xcds = (uint32_t)info->xcds;
    }
    bool mi300x = strstr(info->model, "MI300X") != NULL;
    if (r == 0 && mi300x) {
        r = partition_check(&partition, &err);
    }
    if (r < 0) {
        snprintf(gpu->problem, sizeof(gpu->problem), "%s", err.text);
        amdgpu_at_device(amd, gpu, "current_compute_partition");
        sysfs_note(&amd->fs, &err);
    } else if (mi300x) {
        ACRE_PUT(info, ACRE_INFO, share_step_milli, partition_step_milli(&partition));
    }
}

static void add_slice(struct amdgpu *amd, uint32_t whole, uint32_t node_at) {
    const struct amdgpu_gpu *parent = &amd->gpus[whole];
    const struct kfd_node *node = &amd->nodes[node_at];
    struct amdgpu_gpu *gpu = &amd->gpus[amd->count++];
    *gpu = *parent;
    gpu->node = (int32_t)node_at;
    gpu->whole = whole;
    struct acre_device_info *info = &gpu->info;
    char id[ACRE_COLUMN_TEXT_MAX];
    snprintf(id, sizeof(id), "%.*s/xcp%u", ACRE_COLUMN_TEXT_MAX - 16, parent->info.id,
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
    struct amdgpu_gpu *gpu = &amd->gpus[whole];
    uint32_t own[ACRE_PARTITION_XCDS_MAX * 2];
    uint32_t count = 0;
    uint32_t simds = 0;
    uint32_t xcds = 0;
    for (uint32_t i = 0; i < amd->node_count && count < ACRE_COUNT(own); i++) {
        if (amdgpu_is_node_of(&amd->nodes[i], &gpu->info)) {
            own[count++] = i;
            simds += amd->nodes[i].simds;
            xcds += amd->nodes[i].xcds;
        }
    }
    if (count > 0) {
        const struct kfd_node *first = &amd->nodes[own[0]];
        put_compute(&gpu->info, simds, first->simds_per_cu, xcds, first->gfx_version);
        gpu->node = count == 1 ? (int32_t)own[0] : AMDGPU_NO_NODE;
    }
    check_partition(amd, gpu);
    for (uint32_t i = 0; i < count && count > 1 && amd->count < ACRE_DEVICES_MAX; i++) {
        ACRE_PUT(&gpu->info, ACRE_INFO, divided, true);
        add_slice(amd, whole, own[i]);
    }
}

/* True when the card is an AMD GPU with a PCI address. Partition cards (amdgpu_xcp platform
 * devices) have no vendor file and are passed over here. */
static bool find_card(struct amdgpu *amd, uint32_t card, struct amdgpu_gpu *ret_gpu) {
    struct amdgpu_gpu gpu = {.card = card, .hwmon = AMDGPU_NO_HWMON, .node = AMDGPU_NO_NODE};
    uint64_t vendor = 0;
    struct acre_str text;
    struct acre_str slot;
    char pci_id[ACRE_PCI_ID_MAX];
    struct acre_error err = {0};
    amdgpu_at_device(amd, &gpu, "vendor");
    if (sysfs_u64(&amd->fs, 0xffff, &vendor) < 0 || vendor != AMDGPU_VENDOR) {
        return false;
    }
    amdgpu_at_device(amd, &gpu, "uevent");
    if (sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    if (value_find(text, "PCI_SLOT_NAME", '=', &slot, &err) < 0 ||
        value_pci_id(slot, pci_id, &err) < 0) {
        sysfs_note(&amd->fs, &err); /* without an address it has no name */
        return false;
    }
    ACRE_PUT_TEXT(&gpu.info, ACRE_INFO, pci_id, acre_str_from(pci_id));
    uint32_t number = 0;
    amdgpu_at_device(amd, &gpu, "hwmon");
    if (sysfs_numbers(&amd->fs, "hwmon", &number, 1) == 1) {
        gpu.hwmon = (int32_t)number;
    }
    *ret_gpu = gpu;
    return true;
}

static void discover(struct amdgpu *amd, const uint32_t *cards, uint32_t card_count) {
    amd->nodes = acre_calloc(ACRE_KFD_NODES_MAX, sizeof(*amd->nodes));
    amd->node_count = kfd_read(&amd->fs, amd->nodes, ACRE_KFD_NODES_MAX);
    for (uint32_t i = 0; i < card_count && amd->count < ACRE_DEVICES_MAX; i++) {
        uint32_t at = amd->count;
        struct amdgpu_gpu *gpu = &amd->gpus[at];
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
    sysfs_init(&amd->fs, options->sysfs_root != NULL ? options->sysfs_root : "/sys");
    amd->gpus = acre_calloc(ACRE_DEVICES_MAX, sizeof(*amd->gpus));
    uint32_t *cards = acre_calloc(CARDS_MAX, sizeof(*cards));
    sysfs_at(&amd->fs, "class/drm");
    uint32_t card_count = sysfs_numbers(&amd->fs, "card", cards, CARDS_MAX);
    discover(amd, cards, card_count);
    free(cards);
    if (amd->count == 0) {
        int r =
            acre_fail(err, ACRE_EUNAVAILABLE,
                      "%s/class/drm: %u card%s, no AMD GPU (vendor 0x1002)%s%s", amd->fs.root,
                      card_count, card_count == 1 ? "" : "s", amd->fs.notes.length > 0 ? "; " : "",
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

static int amdgpu_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                       struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = amdgpu_check_index(amd, index, err);
    if (r == 0) {
        *ret_info = amd->gpus[index].info;
    }
    return r;
}

static const char *amdgpu_notes(const void *self) {
    return ((const struct amdgpu *)self)->fs.notes.data;
}

const struct acre_device_driver acre_driver_amdgpu = {
    .name = "amdgpu",
    .what = "AMD GPUs through sysfs",
    .telemetry = true,
    .open = amdgpu_open,
    .close = amdgpu_close,
    .count = amdgpu_count,
    .info = amdgpu_info,
    .sample = amdgpu_sample,
    .processes = amdgpu_processes,
    .links = amdgpu_links,
    .notes = amdgpu_notes,
};
