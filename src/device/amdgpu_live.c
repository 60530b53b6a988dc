/* amdgpu_live.c - what changes: memory, load, temperature, power, clocks, errors, processes, and
 * the links between GPUs.
 *
 * A device whose vendor file has disappeared fell off the bus: it is lost, and nothing else is
 * read. A partition reports only its own memory. */
#include "device/amdgpu.h"

#include "device/value.h"

#include <stdlib.h>

enum { PIDS_MAX = 16384 };

/* ras/<block>_err_count: "ue: 0\nce: 0\n". Summed over the blocks that are there. */
static void sample_ras(struct amdgpu *amd, const struct amdgpu_gpu *gpu,
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
        sysfs_at(&amd->fs, "class/drm/card%u/device/ras/%s_err_count", gpu->card, blocks[i]);
        if (sysfs_text(&amd->fs, &text) < 0) {
            continue;
        }
        if (value_find_u64(text, "ue", ':', UINT32_MAX, &ue, &err) < 0 ||
            value_find_u64(text, "ce", ':', UINT32_MAX, &ce, &err) < 0) {
            sysfs_note(&amd->fs, &err);
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

static void sample_whole(struct amdgpu *amd, const struct amdgpu_gpu *gpu,
                         struct acre_device_sample *sample) {
    static const struct amdgpu_row device_rows[] = {
        {"mem_info_vram_used", AMDGPU_SAMPLE(memory_used_mib), UINT64_MAX, 1 << 20},
        {"gpu_busy_percent", AMDGPU_SAMPLE(utilization_gpu_pct), 100, 1},
        {"mem_busy_percent", AMDGPU_SAMPLE(utilization_memory_pct), 100, 1},
        {"current_link_width", AMDGPU_SAMPLE(pcie_width), 64, 1},
    };
    static const struct amdgpu_row hwmon_rows[] = {
        {"power1_average", AMDGPU_SAMPLE(power_mw), UINT64_MAX, 1000},
        {"power1_input", AMDGPU_SAMPLE(power_mw), UINT64_MAX, 1000},
        {"power1_cap", AMDGPU_SAMPLE(power_limit_mw), UINT64_MAX, 1000},
        {"freq1_input", AMDGPU_SAMPLE(clock_sm_mhz), UINT64_MAX, 1000000},
        {"freq2_input", AMDGPU_SAMPLE(clock_memory_mhz), UINT64_MAX, 1000000},
    };
    amdgpu_take_rows(amd, gpu, false, device_rows, ACRE_COUNT(device_rows), sample);
    amdgpu_take_rows(amd, gpu, true, hwmon_rows, ACRE_COUNT(hwmon_rows), sample);
    int64_t celsius = 0;
    uint64_t value = 0;
    uint64_t max = 0;
    if (amdgpu_take_celsius(amd, gpu, "temp2_input", &celsius) || /* junction */
        amdgpu_take_celsius(amd, gpu, "temp1_input", &celsius)) { /* edge */
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_c, celsius);
    }
    if (amdgpu_take_celsius(amd, gpu, "temp3_input", &celsius)) {
        ACRE_PUT(sample, ACRE_SAMPLE, temperature_memory_c, celsius);
    }
    if (amdgpu_take_pcie_gen(amd, gpu, "current_link_speed", &value)) {
        ACRE_PUT(sample, ACRE_SAMPLE, pcie_gen, value);
    }
    if (!ACRE_HAS(sample, ACRE_SAMPLE, clock_sm_mhz) &&
        amdgpu_take_dpm(amd, gpu, "pp_dpm_sclk", &value, &max)) {
        ACRE_PUT(sample, ACRE_SAMPLE, clock_sm_mhz, value);
    }
    if (!ACRE_HAS(sample, ACRE_SAMPLE, clock_memory_mhz) &&
        amdgpu_take_dpm(amd, gpu, "pp_dpm_mclk", &value, &max)) {
        ACRE_PUT(sample, ACRE_SAMPLE, clock_memory_mhz, value);
    }
    sample_ras(amd, gpu, sample);
}

/* A partition: only its memory is its own; load, heat and power are the whole GPU's. */
static void sample_slice(struct amdgpu *amd, const struct amdgpu_gpu *gpu,
                         struct acre_device_sample *sample) {
    uint64_t used_bytes = 0;
    sysfs_at(&amd->fs, "class/kfd/kfd/topology/nodes/%u/mem_banks/0/used_memory",
             amd->nodes[gpu->node].number);
    if (sysfs_u64(&amd->fs, UINT64_MAX, &used_bytes) == 0) {
        ACRE_PUT(sample, ACRE_SAMPLE, memory_used_mib, used_bytes >> 20);
    }
}

int amdgpu_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                  struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = amdgpu_check_index(amd, index, err);
    if (r < 0) {
        return r;
    }
    const struct amdgpu_gpu *gpu = &amd->gpus[index];
    struct acre_device_sample sample = {0};
    uint64_t vendor = 0;
    amdgpu_at_device(amd, gpu, "vendor");
    if (sysfs_u64(&amd->fs, 0xffff, &vendor) < 0 || vendor != AMDGPU_VENDOR) {
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, state, ACRE_STR("lost"));
        ACRE_PUT_TEXT(&sample, ACRE_SAMPLE, reason, ACRE_STR("its sysfs entry has disappeared"));
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
static uint64_t bytes_of(struct amdgpu *amd, const struct amdgpu_gpu *gpu, uint32_t pid) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < amd->node_count; i++) {
        bool own = gpu->node == AMDGPU_NO_NODE ? amdgpu_is_node_of(&amd->nodes[i], &gpu->info)
                                               : (uint32_t)gpu->node == i;
        uint64_t bytes = 0;
        if (own && kfd_process_bytes(&amd->fs, pid, amd->nodes[i].gpu_id, &bytes) == 0 &&
            __builtin_add_overflow(sum, bytes, &sum)) {
            return UINT64_MAX;
        }
    }
    return sum;
}

int amdgpu_processes(void *self, uint32_t index, struct acre_process_list *list,
                     struct acre_error *err) {
    struct amdgpu *amd = self;
    int r = amdgpu_check_index(amd, index, err);
    if (r < 0) {
        return r;
    }
    if (amd->node_count == 0) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "amdgpu: no process list without %s/class/kfd",
                         amd->fs.root);
    }
    uint32_t *pids = acre_calloc(PIDS_MAX, sizeof(*pids));
    sysfs_at(&amd->fs, "class/kfd/kfd/proc");
    uint32_t count = sysfs_numbers(&amd->fs, "", pids, PIDS_MAX);
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
            if (amd->gpus[i].whole == i && amdgpu_is_node_of(&amd->nodes[n], &amd->gpus[i].info)) {
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
    link_list_add(search->list, (struct acre_device_link){a, b, ACRE_LINK_XGMI, 0});
}

int amdgpu_links(void *self, struct acre_link_list *list, struct acre_error *err) {
    struct amdgpu *amd = self;
    struct link_search search = {amd, list};
    (void)err;
    for (uint32_t i = 0; i < amd->node_count; i++) {
        kfd_xgmi(&amd->fs, amd->nodes[i].number, add_link, &search);
    }
    return 0;
}
