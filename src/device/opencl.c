/* opencl.c - OpenCL devices through the ICD loader, loaded at run time.
 *
 * OpenCL tells what a device is, not how it feels: samples hold only whether it is available. The
 * PCI id (Khronos extension, or NVIDIA's older one) lets the set drop what a vendor driver already
 * listed; without it the name is made of platform, device name and a number among equals,
 * which stays the same as long as the machine does. No context is created. */
#include "core/buf.h"
#include "core/dl.h"
#include "device/device.h"
#include "device/opencl_abi.h"
#include "device/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLATFORMS_MAX = 16, PLATFORM_DEVICES_MAX = 64, TEXT_MAX = 1024, EXTENSIONS_MAX = 16384 };

struct opencl {
    struct {
#define X(required, field, symbol, arguments) int32_t(*field) arguments;
        OPENCL_SYMBOLS(X)
#undef X
    } api;
    const char *soname;
    struct acre_device_info *infos;
    opencl_device *handles;
    uint32_t count;
    struct acre_buf notes;
};

static const struct acre_dl_symbol symbols[] = {
#define X(is_required, field, symbol, arguments)                                                   \
    {.name = symbol, .offset = offsetof(struct opencl, api.field), .required = is_required},
    OPENCL_SYMBOLS(X)
#undef X
};

static const char *const default_sonames[] = {"libOpenCL.so.1", NULL};

static void opencl_close(void *self) {
    struct opencl *cl = self;
    if (cl == NULL) {
        return;
    }
    acre_buf_finish(&cl->notes);
    free(cl->infos);
    free(cl->handles);
    free(cl);
}

/* Text of a device or platform; "" when it does not answer. */
static struct acre_str device_text(struct opencl *cl, opencl_device device, uint32_t what,
                                   char *text, size_t size) {
    size_t length = 0;
    if (cl->api.device_info(device, what, size, text, &length) != OPENCL_SUCCESS || length > size) {
        length = 0;
    }
    return (struct acre_str){text, strnlen(text, length)};
}

static bool device_number(struct opencl *cl, opencl_device device, uint32_t what, size_t size,
                          uint64_t *ret_value) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    void *to = size == sizeof(wide) ? (void *)&wide : (void *)&narrow;
    if (cl->api.device_info(device, what, size, to, NULL) != OPENCL_SUCCESS) {
        return false;
    }
    *ret_value = size == sizeof(wide) ? wide : narrow;
    return true;
}

static bool has_extension(struct acre_str extensions, const char *name) {
    struct acre_split words = acre_split_begin(extensions, ' ');
    struct acre_str word;
    while (acre_split_next(&words, &word)) {
        if (acre_str_is(word, name)) {
            return true;
        }
    }
    return false;
}

static bool find_pci(struct opencl *cl, opencl_device device, char pci_id[ACRE_PCI_ID_MAX]) {
    char *text = acre_calloc(1, EXTENSIONS_MAX);
    struct acre_str extensions =
        device_text(cl, device, OPENCL_DEVICE_EXTENSIONS, text, EXTENSIONS_MAX);
    bool khronos = has_extension(extensions, "cl_khr_pci_bus_info");
    bool nvidia = has_extension(extensions, "cl_nv_device_attribute_query");
    free(text);
    struct opencl_pci pci = {0};
    if (khronos &&
        cl->api.device_info(device, OPENCL_PCI_KHR, sizeof(pci), &pci, NULL) == OPENCL_SUCCESS) {
        acre_pci_id_format(pci.domain, pci.bus, pci.device, pci.function, pci_id);
        return true;
    }
    uint64_t bus = 0;
    uint64_t slot = 0;
    uint64_t domain = 0;
    if (nvidia && device_number(cl, device, OPENCL_PCI_BUS_NV, sizeof(uint32_t), &bus) &&
        device_number(cl, device, OPENCL_PCI_SLOT_NV, sizeof(uint32_t), &slot)) {
        device_number(cl, device, OPENCL_PCI_DOMAIN_NV, sizeof(uint32_t), &domain);
        acre_pci_id_format((uint32_t)domain, (uint32_t)bus, (uint32_t)slot >> 3, (uint32_t)slot & 7,
                           pci_id);
        return true;
    }
    return false;
}

/* "opencl:<platform>:<name>:<n>", n counting equals from 0. */
static void put_name(struct opencl *cl, struct acre_device_info *info, struct acre_str platform) {
    char id[ACRE_FIELD_TEXT_MAX];
    char stem[ACRE_FIELD_TEXT_MAX - 8];
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

static void read_device(struct opencl *cl, opencl_device device, struct acre_str platform) {
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
    char text[TEXT_MAX];
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        acre_field_put_text((char *)&info + texts[i].offset, &info.valid, texts[i].bit,
                            device_text(cl, device, texts[i].what, text, sizeof(text)));
    }
    uint64_t value = 0;
    ACRE_PUT(&info, ACRE_INFO, simulated, false);
    ACRE_PUT(&info, ACRE_INFO, divided, false);
    ACRE_PUT_TEXT(&info, ACRE_INFO, driver, ACRE_STR("opencl"));
    bool cpu = device_number(cl, device, OPENCL_DEVICE_TYPE, sizeof(uint64_t), &value) &&
               (value & OPENCL_TYPE_CPU) != 0;
    ACRE_PUT_TEXT(&info, ACRE_INFO, kind, cpu ? ACRE_STR("cpu") : ACRE_STR("gpu"));
    if (device_number(cl, device, OPENCL_COMPUTE_UNITS, sizeof(uint32_t), &value)) {
        ACRE_PUT(&info, ACRE_INFO, compute_units, value);
    }
    if (device_number(cl, device, OPENCL_CLOCK_MAX_MHZ, sizeof(uint32_t), &value) && value > 0) {
        ACRE_PUT(&info, ACRE_INFO, clock_sm_max_mhz, value);
    }
    if (device_number(cl, device, OPENCL_MEMORY_BYTES, sizeof(uint64_t), &value)) {
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

static void list_platform(struct opencl *cl, opencl_platform platform) {
    opencl_device devices[PLATFORM_DEVICES_MAX];
    uint32_t count = 0;
    char name[TEXT_MAX] = "";
    size_t length = 0;
    if (cl->api.platform_info(platform, OPENCL_PLATFORM_NAME, sizeof(name) - 1, name, &length) !=
        OPENCL_SUCCESS) {
        name[0] = '\0';
    }
    int32_t code =
        cl->api.devices(platform, OPENCL_TYPE_ALL, PLATFORM_DEVICES_MAX, devices, &count);
    if (code != OPENCL_SUCCESS && code != OPENCL_DEVICE_NOT_FOUND) {
        char shown[80];
        acre_buf_printf(&cl->notes, "clGetDeviceIDs on platform '%s' answered %d\n",
                        acre_str_show(acre_str_from(name), shown, sizeof(shown)), (int)code);
    }
    count = code == OPENCL_SUCCESS ? ACRE_MIN(count, (uint32_t)PLATFORM_DEVICES_MAX) : 0;
    for (uint32_t i = 0; i < count; i++) {
        read_device(cl, devices[i], acre_str_from(name));
    }
}

static int opencl_open(const struct acre_device_options *options, void **ret_self,
                       struct acre_error *err) {
    struct opencl *cl = acre_calloc(1, sizeof(*cl));
    acre_buf_init(&cl->notes, 4096);
    const char *const *sonames =
        options->opencl_sonames != NULL ? options->opencl_sonames : default_sonames;
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cl, &cl->soname, err);
    if (r < 0) {
        goto fail;
    }
    opencl_platform platforms[PLATFORMS_MAX];
    uint32_t count = 0;
    int32_t code = cl->api.platforms(PLATFORMS_MAX, platforms, &count);
    if (code != OPENCL_SUCCESS) {
        r = acre_fail(err, ACRE_EUNAVAILABLE, "%s: clGetPlatformIDs answered %d%s", cl->soname,
                      (int)code,
                      code == OPENCL_PLATFORM_NOT_FOUND ? ": no OpenCL driver is installed" : "");
        goto fail;
    }
    count = ACRE_MIN(count, (uint32_t)PLATFORMS_MAX);
    cl->infos = acre_calloc((size_t)count * PLATFORM_DEVICES_MAX, sizeof(*cl->infos));
    cl->handles = acre_calloc((size_t)count * PLATFORM_DEVICES_MAX, sizeof(*cl->handles));
    for (uint32_t i = 0; i < count; i++) {
        list_platform(cl, platforms[i]);
    }
    *ret_self = cl;
    return 0;
fail:
    opencl_close(cl);
    return r;
}

static uint32_t opencl_count(const void *self) {
    return ((const struct opencl *)self)->count;
}

static int opencl_info(void *self, uint32_t index, struct acre_device_info *ret_info,
                       struct acre_error *err) {
    struct opencl *cl = self;
    if (index >= cl->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "opencl: no device %u; there are %u", index,
                         cl->count);
    }
    *ret_info = cl->infos[index];
    return 0;
}

static int opencl_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                         struct acre_error *err) {
    struct opencl *cl = self;
    if (index >= cl->count) {
        return acre_fail(err, ACRE_ENOTFOUND, "opencl: no device %u; there are %u", index,
                         cl->count);
    }
    uint64_t available = 0;
    bool answered = device_number(cl, cl->handles[index], OPENCL_DEVICE_AVAILABLE, sizeof(uint32_t),
                                  &available);
    *ret_sample = (struct acre_device_sample){0};
    ACRE_PUT_TEXT(ret_sample, ACRE_SAMPLE, state,
                  answered && available != 0 ? ACRE_STR("ok") : ACRE_STR("unavailable"));
    return 0;
}

static const char *opencl_notes(const void *self) {
    return ((const struct opencl *)self)->notes.data;
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
