/* opencl.c - OpenCL devices through the ICD loader, loaded at run time.
 *
 * OpenCL reports what a device is but no readings: samples only say whether it is available. The
 * PCI id (Khronos extension, or NVIDIA's older one) lets the set drop what a vendor driver already
 * listed; without it the name consists of platform, device name and a number among equals, which
 * stays the same as long as the machine does. No context is created. */
#include "core/buf.h"
#include "core/dl.h"
#include "device/device.h"
#include "device/opencl_abi.h"
#include "device/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opencl_driver {
    struct acre_opencl_query query;
    const char *soname;
    struct acre_device_info *infos;
    opencl_device *handles;
    uint32_t count;
    struct acre_buf notes;
};

static const struct acre_dl_symbol symbols[] = {
#define X(is_required, result, member, symbol, arguments)                                          \
    {.name = #symbol,                                                                              \
     .offset = offsetof(struct opencl_driver, query.member),                                       \
     .required = is_required},
    OPENCL_QUERY_SYMBOLS(X)
#undef X
};

static const char *const default_sonames[] = {"libOpenCL.so.1", NULL};

static void opencl_close(void *self) {
    struct opencl_driver *cl = self;
    if (cl == NULL) {
        return;
    }
    acre_buf_finish(&cl->notes);
    free(cl->infos);
    free(cl->handles);
    free(cl);
}

static bool find_pci(struct opencl_driver *cl, opencl_device device, char pci_id[ACRE_PCI_ID_MAX]) {
    const struct acre_opencl_query *query = &cl->query;
    struct opencl_pci pci = {0};
    if (acre_opencl_has_extension(query, device, "cl_khr_pci_bus_info") &&
        query->device_info(device, OPENCL_DEVICE_PCI_BUS_INFO_KHR, sizeof(pci), &pci, NULL) ==
            OPENCL_SUCCESS) {
        pci_id_format(pci.domain, pci.bus, pci.device, pci.function, pci_id);
        return true;
    }
    uint64_t bus = 0;
    uint64_t slot = 0;
    uint64_t domain = 0;
    if (acre_opencl_has_extension(query, device, "cl_nv_device_attribute_query") &&
        acre_opencl_number(query, device, OPENCL_DEVICE_PCI_BUS_ID_NV, &bus) &&
        acre_opencl_number(query, device, OPENCL_DEVICE_PCI_SLOT_ID_NV, &slot)) {
        acre_opencl_number(query, device, OPENCL_DEVICE_PCI_DOMAIN_ID_NV, &domain);
        pci_id_format((uint32_t)domain, (uint32_t)bus, (uint32_t)slot >> 3, (uint32_t)slot & 7,
                      pci_id);
        return true;
    }
    return false;
}

/* "opencl:<platform>:<name>:<n>", n counting equals from 0. */
static void put_name(struct opencl_driver *cl, struct acre_device_info *info,
                     struct acre_str platform) {
    char id[ACRE_COLUMN_TEXT_MAX];
    char stem[ACRE_COLUMN_TEXT_MAX - 8];
    snprintf(stem, sizeof(stem), "opencl:%.*s:%s", (int)ACRE_MIN(platform.length, (size_t)24),
             platform.data, info->model);
    uint32_t equals = 0;
    for (uint32_t i = 0; i < cl->count; i++) {
        equals += strncmp(cl->infos[i].id, stem, strlen(stem)) == 0 &&
                  cl->infos[i].id[strlen(stem)] == ':';
    }
    snprintf(id, sizeof(id), "%s:%u", stem, equals);
    ACRE_PUT_TEXT(info, ACRE_INFO, id, acre_str_from(id));
}

static void read_device(struct opencl_driver *cl, opencl_device device, struct acre_str platform) {
    static const struct {
        uint32_t what;
        size_t offset;
        int bit;
    } texts[] = {
        {OPENCL_DEVICE_NAME, offsetof(struct acre_device_info, model), ACRE_INFO_model},
        {OPENCL_DEVICE_VENDOR, offsetof(struct acre_device_info, vendor), ACRE_INFO_vendor},
        {OPENCL_DRIVER_VERSION, offsetof(struct acre_device_info, driver_version),
         ACRE_INFO_driver_version},
        {OPENCL_DEVICE_VERSION, offsetof(struct acre_device_info, api_version),
         ACRE_INFO_api_version},
    };
    struct acre_device_info info = {0};
    char text[ACRE_OPENCL_TEXT_MAX];
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        column_put_text((char *)&info + texts[i].offset, &info.valid, texts[i].bit,
                        acre_opencl_text(&cl->query, device, texts[i].what, text, sizeof(text)));
    }
    uint64_t value = 0;
    ACRE_PUT(&info, ACRE_INFO, simulated, false);
    ACRE_PUT(&info, ACRE_INFO, divided, false);
    ACRE_PUT_TEXT(&info, ACRE_INFO, driver, ACRE_STR("opencl"));
    bool cpu = acre_opencl_number(&cl->query, device, OPENCL_DEVICE_TYPE, &value) &&
               (value & OPENCL_DEVICE_TYPE_CPU) != 0;
    ACRE_PUT_TEXT(&info, ACRE_INFO, kind, cpu ? ACRE_STR("cpu") : ACRE_STR("gpu"));
    if (acre_opencl_number(&cl->query, device, OPENCL_DEVICE_MAX_COMPUTE_UNITS, &value)) {
        ACRE_PUT(&info, ACRE_INFO, compute_units, value);
    }
    if (acre_opencl_number(&cl->query, device, OPENCL_DEVICE_MAX_CLOCK_FREQUENCY, &value) &&
        value > 0) {
        ACRE_PUT(&info, ACRE_INFO, clock_sm_max_mhz, value);
    }
    if (acre_opencl_number(&cl->query, device, OPENCL_DEVICE_GLOBAL_MEM_SIZE, &value)) {
        ACRE_PUT(&info, ACRE_INFO, memory_total_mib, value >> 20);
    }
    char pci_id[ACRE_PCI_ID_MAX];
    if (!cpu && find_pci(cl, device, pci_id)) {
        ACRE_PUT_TEXT(&info, ACRE_INFO, pci_id, acre_str_from(pci_id));
        ACRE_PUT_TEXT(&info, ACRE_INFO, id, acre_str_from(pci_id));
    } else {
        put_name(cl, &info, platform);
    }
    cl->handles[cl->count] = device;
    cl->infos[cl->count++] = info;
}

static int opencl_open(const struct acre_device_options *options, void **ret_self,
                       struct acre_error *err) {
    struct opencl_driver *cl = acre_calloc(1, sizeof(*cl));
    acre_buf_init(&cl->notes, 4096);
    const char *const *sonames =
        options->opencl_sonames != NULL ? options->opencl_sonames : default_sonames;
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cl, &cl->soname, err);
    if (r < 0) {
        goto fail;
    }
    struct acre_opencl_found found[ACRE_OPENCL_FOUND_MAX];
    uint32_t count;
    r = acre_opencl_list(&cl->query, OPENCL_DEVICE_TYPE_ALL, found, &count, &cl->notes, err);
    if (r < 0) {
        acre_fail_in(err, r, "%s", cl->soname);
        goto fail;
    }
    cl->infos = acre_calloc(count, sizeof(*cl->infos));
    cl->handles = acre_calloc(count, sizeof(*cl->handles));
    for (uint32_t i = 0; i < count; i++) {
        char name[ACRE_OPENCL_TEXT_MAX];
        read_device(cl, found[i].device,
                    acre_opencl_platform_text(&cl->query, found[i].platform, OPENCL_PLATFORM_NAME,
                                              name, sizeof(name)));
    }
    *ret_self = cl;
    return 0;
fail:
    opencl_close(cl);
    return r;
}

static uint32_t opencl_count(const void *self) {
    return ((const struct opencl_driver *)self)->count;
}

static int opencl_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                       struct acre_error *err) {
    struct opencl_driver *cl = self;
    if (index >= cl->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "opencl: no device %u; there are %u", index,
                         cl->count);
    }
    *ret_info = cl->infos[index];
    return 0;
}

static int opencl_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                         struct acre_error *err) {
    struct opencl_driver *cl = self;
    if (index >= cl->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "opencl: no device %u; there are %u", index,
                         cl->count);
    }
    uint64_t available = 0;
    bool answered =
        acre_opencl_number(&cl->query, cl->handles[index], OPENCL_DEVICE_AVAILABLE, &available);
    *ret_sample = (struct acre_device_sample){0};
    ACRE_PUT_TEXT(ret_sample, ACRE_SAMPLE, state,
                  answered && available != 0 ? ACRE_STR("ok") : ACRE_STR("unavailable"));
    return 0;
}

static const char *opencl_notes(const void *self) {
    return ((const struct opencl_driver *)self)->notes.data;
}

const struct acre_device_driver acre_driver_opencl = {
    .name = "opencl",
    .what = "OpenCL devices through libOpenCL",
    .open = opencl_open,
    .close = opencl_close,
    .count = opencl_count,
    .info = opencl_info,
    .sample = opencl_sample,
    .notes = opencl_notes,
};
