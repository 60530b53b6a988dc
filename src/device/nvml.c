/* nvml.c - NVIDIA GPUs through NVML, loaded at run time: opening, discovery, what never changes.
 *
 * Open calls init once and lists the GPUs once; handles are kept, so a later sample makes only the
 * calls whose results can change (nvml_live.c). A MIG instance is a separate device right after its
 * parent. Every NVML code becomes ours here or in nvml_accept: "not supported" leaves one
 * column unknown, "GPU is lost" marks one device, and the others continue. */
#include "device/nvml.h"

#include "core/dl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct acre_dl_symbol symbols[] = {
#define X(is_required, member, symbol, arguments)                                                  \
    {.name = symbol, .offset = offsetof(struct nvml, api.member), .required = is_required},
    NVML_SYMBOLS(X)
#undef X
};

static const char *const default_sonames[] = {"libnvidia-ml.so.1", NULL};

const char *nvml_code_text(int code) {
    switch (code) {
#define X(name, number, text)                                                                      \
    case number:                                                                                   \
        return text;
        NVML_CODES(X)
#undef X
    default:
        return "unknown code";
    }
}

static int our_code(int code) {
    switch (code) {
    case NVML_NO_PERMISSION:
    case NVML_OPERATING_SYSTEM:
        return ACRE_EDENIED;
    case NVML_MEMORY:
        return ACRE_ENOMEM;
    default:
        return ACRE_EUNAVAILABLE;
    }
}

static void note(struct nvml *nv, enum nvml_symbol symbol, const char *who, int code) {
    char line[ACRE_ERROR_TEXT_MAX];
    snprintf(line, sizeof(line), "%s on %s returned %d: %s\n", symbols[symbol].name, who, code,
             nvml_code_text(code));
    acre_buf_puts(&nv->fs.notes, line);
}

bool nvml_accept(struct nvml *nv, struct nvml_gpu *gpu, enum nvml_symbol symbol, int code) {
    switch (code) {
    case NVML_SUCCESS:
        return true;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
    case NVML_NOT_FOUND:
    case NVML_NO_DATA:
    case NVML_DEPRECATED:
        return false;
    case NVML_GPU_IS_LOST:
    case NVML_RESET_REQUIRED:
        gpu->lost = true;
        snprintf(gpu->reason, sizeof(gpu->reason), "%s", nvml_code_text(code));
        return false;
    default:
        if ((nv->noted >> symbol & 1) == 0) {
            nv->noted |= UINT64_C(1) << symbol;
            note(nv, symbol, gpu->info.id[0] != '\0' ? gpu->info.id : "a GPU", code);
        }
        return false;
    }
}

static void nvml_close(void *self) {
    struct nvml *nv = self;
    if (nv == NULL) {
        return;
    }
    if (nv->event_set != NULL && nv->api.event_set_free != NULL) {
        nv->api.event_set_free(nv->event_set);
    }
    if (nv->initialised) {
        nv->api.shutdown();
    }
    sysfs_finish(&nv->fs);
    free(nv->gpus);
    free(nv->scratch);
    free(nv);
}

/* Drivers 535.43 ... 535.86; see nvml_abi.h. */
static bool has_wide_v3(const char *driver_version) {
    unsigned major = 0;
    unsigned minor = 0;
    struct acre_split parts = acre_split_begin(acre_str_from(driver_version), '.');
    struct acre_str part;
    uint64_t number = 0;
    if (acre_split_next(&parts, &part) && value_u64(part, 9999, &number, NULL) == 0) {
        major = (unsigned)number;
    }
    if (acre_split_next(&parts, &part) && value_u64(part, 9999, &number, NULL) == 0) {
        minor = (unsigned)number;
    }
    return major == 535 && minor >= 43 && minor <= 86;
}

static void read_versions(struct nvml *nv) {
    if (nv->api.driver_version(nv->driver_version, sizeof(nv->driver_version)) != NVML_SUCCESS) {
        nv->driver_version[0] = '\0';
    }
    if (nv->api.library_version == NULL ||
        nv->api.library_version(nv->library_version, sizeof(nv->library_version)) != NVML_SUCCESS) {
        nv->library_version[0] = '\0';
    }
    int cuda = 0;
    if (nv->api.cuda_version != NULL && nv->api.cuda_version(&cuda) == NVML_SUCCESS && cuda > 0) {
        snprintf(nv->cuda_version, sizeof(nv->cuda_version), "CUDA %d.%d", cuda / 1000,
                 cuda % 1000 / 10);
    }
    nv->wide_v3 = has_wide_v3(nv->driver_version);
}

static void read_identity(struct nvml *nv, struct nvml_gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    char text[NVML_TEXT_MAX] = "";
    if (NVML_ASK(nv, gpu, uuid, text, sizeof(text))) {
        ACRE_PUT_TEXT(info, ACRE_INFO, uuid, acre_str_from(text));
    }
    struct nvml_pci pci = {0};
    char pci_id[ACRE_PCI_ID_MAX];
    if (NVML_ASK(nv, gpu, pci, &pci)) {
        pci_id_format(pci.domain, pci.bus, pci.device, 0, pci_id);
        ACRE_PUT_TEXT(info, ACRE_INFO, pci_id, acre_str_from(pci_id));
    }
    const char *id = ACRE_HAS(info, ACRE_INFO, uuid) ? info->uuid : info->pci_id;
    ACRE_PUT_TEXT(info, ACRE_INFO, id, acre_str_from(id));
    if (NVML_ASK(nv, gpu, name, text, sizeof(text))) {
        ACRE_PUT_TEXT(info, ACRE_INFO, model, acre_str_from(text));
    }
    if (NVML_ASK(nv, gpu, serial, text, sizeof(text))) {
        ACRE_PUT_TEXT(info, ACRE_INFO, serial, acre_str_from(text));
    }
    ACRE_PUT(info, ACRE_INFO, simulated, false);
    ACRE_PUT_TEXT(info, ACRE_INFO, driver, ACRE_STR("nvml"));
    ACRE_PUT_TEXT(info, ACRE_INFO, kind, gpu->slice ? ACRE_STR("mig") : ACRE_STR("gpu"));
    ACRE_PUT_TEXT(info, ACRE_INFO, vendor, ACRE_STR("NVIDIA"));
    ACRE_PUT_TEXT(info, ACRE_INFO, driver_version, acre_str_from(nv->driver_version));
    ACRE_PUT_TEXT(info, ACRE_INFO, library_version, acre_str_from(nv->library_version));
    ACRE_PUT_TEXT(info, ACRE_INFO, api_version, acre_str_from(nv->cuda_version));
}

static void read_model(struct nvml *nv, struct nvml_gpu *gpu) {
    static const char *const architectures[] = {
        [2] = "Kepler", [3] = "Maxwell", [4] = "Pascal", [5] = "Volta",      [6] = "Turing",
        [7] = "Ampere", [8] = "Ada",     [9] = "Hopper", [10] = "Blackwell", [13] = "Rubin",
    };
    struct acre_device_info *info = &gpu->info;
    unsigned architecture = 0;
    if (NVML_ASK(nv, gpu, architecture, &architecture) &&
        architecture < ACRE_COUNT(architectures)) {
        ACRE_PUT_TEXT(info, ACRE_INFO, architecture, acre_str_from(architectures[architecture]));
    }
    int major = 0;
    int minor = 0;
    if (NVML_ASK(nv, gpu, capability, &major, &minor)) {
        char text[32];
        snprintf(text, sizeof(text), "%d.%d", major, minor);
        ACRE_PUT_TEXT(info, ACRE_INFO, compute_capability, acre_str_from(text));
    }
    struct nvml_memory memory = {0};
    if (NVML_ASK(nv, gpu, memory, &memory)) {
        ACRE_PUT(info, ACRE_INFO, memory_total_mib, memory.total >> 20);
    }
}

static void read_limits(struct nvml *nv, struct nvml_gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    unsigned value = 0;
    unsigned other = 0;
#define TAKE(member, symbol, ...)                                                                  \
    if (NVML_ASK(nv, gpu, symbol, __VA_ARGS__)) {                                                  \
        ACRE_PUT(info, ACRE_INFO, member, value);                                                  \
    }
    TAKE(temperature_shutdown_c, threshold, NVML_THRESHOLD_SHUTDOWN, &value)
    TAKE(temperature_slowdown_c, threshold, NVML_THRESHOLD_SLOWDOWN, &value)
    TAKE(power_limit_max_mw, power_range, &other, &value)
    TAKE(clock_sm_max_mhz, clock_max, NVML_CLOCK_SM, &value)
    TAKE(clock_memory_max_mhz, clock_max, NVML_CLOCK_MEM, &value)
    TAKE(pcie_gen_max, pcie_gen_max, &value)
    TAKE(pcie_width_max, pcie_width_max, &value)
#undef TAKE
}

static void read_modes(struct nvml *nv, struct nvml_gpu *gpu) {
    static const char *const compute_modes[] = {"default", "exclusive-thread", "prohibited",
                                                "exclusive-process"};
    struct acre_device_info *info = &gpu->info;
    unsigned value = 0;
    unsigned pending = 0;
    if (NVML_ASK(nv, gpu, ecc_mode, &value, &pending)) {
        ACRE_PUT(info, ACRE_INFO, ecc_enabled, value != 0);
    }
    if (NVML_ASK(nv, gpu, persistence, &value)) {
        ACRE_PUT(info, ACRE_INFO, persistence_enabled, value != 0);
    }
    if (NVML_ASK(nv, gpu, compute_mode, &value) && value < ACRE_COUNT(compute_modes)) {
        ACRE_PUT_TEXT(info, ACRE_INFO, compute_mode, acre_str_from(compute_modes[value]));
    }
    if (NVML_ASK(nv, gpu, mig_mode, &value, &pending)) {
        ACRE_PUT(info, ACRE_INFO, mig_enabled, value != 0);
    }
}

static void read_locality(struct nvml *nv, struct nvml_gpu *gpu) {
    struct acre_device_info *info = &gpu->info;
    if (!ACRE_HAS(info, ACRE_INFO, pci_id)) {
        return;
    }
    int64_t node = -1; /* the kernel's word for "unknown" */
    sysfs_at(&nv->fs, "bus/pci/devices/%s/numa_node", info->pci_id);
    if (sysfs_i64(&nv->fs, -1, 4095, &node) == 0 && node >= 0) {
        ACRE_PUT(info, ACRE_INFO, numa_node, (uint64_t)node);
    }
    struct acre_str cpus;
    sysfs_at(&nv->fs, "bus/pci/devices/%s/local_cpulist", info->pci_id);
    if (sysfs_line(&nv->fs, &cpus) == 0) {
        ACRE_PUT_TEXT(info, ACRE_INFO, cpu_affinity, cpus);
    }
}

static struct nvml_gpu *add_gpu(struct nvml *nv, nvml_device handle, bool slice) {
    struct nvml_gpu *gpu = &nv->gpus[nv->count];
    *gpu = (struct nvml_gpu){.handle = handle, .slice = slice};
    read_identity(nv, gpu);
    if (!ACRE_HAS(&gpu->info, ACRE_INFO, id)) {
        note(nv, NVML_SYMBOL_uuid, "a GPU without a UUID (skipped)",
             gpu->lost ? NVML_GPU_IS_LOST : NVML_UNKNOWN);
        return NULL;
    }
    nv->count++;
    read_model(nv, gpu);
    return gpu;
}

static void add_slices(struct nvml *nv, uint32_t parent) {
    unsigned max = 0;
    struct nvml_gpu *whole = &nv->gpus[parent];
    if (!ACRE_HAS(&whole->info, ACRE_INFO, mig_enabled) || !whole->info.mig_enabled ||
        !NVML_ASK(nv, whole, mig_max, &max)) {
        return;
    }
    for (unsigned i = 0; i < max && nv->count < ACRE_DEVICES_MAX; i++) {
        nvml_device handle = NULL;
        if (!NVML_ASK(nv, whole, mig_by_index, i, &handle)) {
            continue; /* most places are empty */
        }
        struct nvml_gpu *gpu = add_gpu(nv, handle, true);
        if (gpu == NULL) {
            continue;
        }
        struct acre_device_info *info = &gpu->info;
        struct nvml_attributes attributes = {0};
        unsigned value = 0;
        if (NVML_ASK(nv, gpu, attributes, &attributes)) {
            ACRE_PUT(info, ACRE_INFO, compute_units, attributes.multiprocessors);
            ACRE_PUT(info, ACRE_INFO, memory_total_mib, attributes.memory_mib);
        }
        if (NVML_ASK(nv, gpu, gpu_instance, &value)) {
            ACRE_PUT(info, ACRE_INFO, gpu_instance, value);
        }
        if (NVML_ASK(nv, gpu, compute_instance, &value)) {
            ACRE_PUT(info, ACRE_INFO, compute_instance, value);
        }
        ACRE_PUT_TEXT(info, ACRE_INFO, parent_id, acre_str_from(whole->info.id));
        ACRE_PUT(info, ACRE_INFO, divided, false);
        ACRE_PUT(&whole->info, ACRE_INFO, divided, true);
        read_locality(nv, gpu);
    }
}

static void watch_events(struct nvml *nv, struct nvml_gpu *gpu) {
    if (nv->event_set == NULL && (nv->api.event_set_create == NULL || nv->api.event_wait == NULL ||
                                  nv->api.event_set_create(&nv->event_set) != NVML_SUCCESS)) {
        nv->event_set = NULL;
        return;
    }
    gpu->events = NVML_ASK(nv, gpu, event_register, NVML_EVENT_XID, nv->event_set);
}

static int discover(struct nvml *nv, struct acre_error *err) {
    unsigned count = 0;
    int code = nv->api.count(&count);
    if (code != NVML_SUCCESS) {
        return acre_fail(err, our_code(code), "nvmlDeviceGetCount_v2 returned %d: %s", code,
                         nvml_code_text(code));
    }
    for (unsigned i = 0; i < count && nv->count < ACRE_DEVICES_MAX; i++) {
        nvml_device handle = NULL;
        code = nv->api.by_index(i, &handle);
        if (code != NVML_SUCCESS) {
            char who[64];
            snprintf(who, sizeof(who), "GPU %u of %u (skipped)", i + 1, count);
            note(nv, NVML_SYMBOL_by_index, who, code);
            continue;
        }
        uint32_t at = nv->count;
        struct nvml_gpu *gpu = add_gpu(nv, handle, false);
        if (gpu == NULL) {
            continue;
        }
        ACRE_PUT(&gpu->info, ACRE_INFO, divided, false);
        read_limits(nv, gpu);
        read_modes(nv, gpu);
        read_locality(nv, gpu);
        nvml_read_links(nv, gpu);
        watch_events(nv, gpu);
        add_slices(nv, at);
    }
    return 0;
}

static int nvml_open(const struct acre_device_options *options, void **ret_self,
                     struct acre_error *err) {
    struct nvml *nv = acre_calloc(1, sizeof(*nv));
    sysfs_init(&nv->fs, options->sysfs_root != NULL ? options->sysfs_root : "/sys");
    nv->gpus = acre_calloc(ACRE_DEVICES_MAX, sizeof(*nv->gpus));
    const char *const *sonames =
        options->nvml_sonames != NULL ? options->nvml_sonames : default_sonames;
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), nv, &nv->soname, err);
    if (r < 0) {
        goto fail; /* err names the library and what the loader said */
    }
    int code = nv->api.init();
    if (code != NVML_SUCCESS) {
        r = acre_fail(err, our_code(code), "%s: nvmlInit_v2 returned %d: %s", nv->soname, code,
                      nvml_code_text(code));
        goto fail;
    }
    nv->initialised = true;
    read_versions(nv);
    r = discover(nv, err);
    if (r < 0) {
        goto fail;
    }
    *ret_self = nv;
    return 0;
fail:
    nvml_close(nv);
    return r;
}

static uint32_t nvml_count(const void *self) {
    return ((const struct nvml *)self)->count;
}

static int nvml_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                     struct acre_error *err) {
    struct nvml *nv = self;
    if (index >= nv->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "nvml: no device %u; there are %u", index, nv->count);
    }
    *ret_info = nv->gpus[index].info;
    return 0;
}

static const char *nvml_notes(const void *self) {
    return ((const struct nvml *)self)->fs.notes.data;
}

const struct acre_device_driver acre_driver_nvml = {
    .name = "nvml",
    .what = "NVIDIA GPUs through libnvidia-ml",
    .telemetry = true,
    .open = nvml_open,
    .close = nvml_close,
    .count = nvml_count,
    .info = nvml_info,
    .sample = nvml_sample,
    .poll = nvml_poll,
    .processes = nvml_processes,
    .links = nvml_links,
    .notes = nvml_notes,
};
