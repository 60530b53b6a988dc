/* query.c - the queries made of every OpenCL device.
 *
 * Platforms and devices are listed in the order of the loader, which comes from its configuration
 * and stays the same from run to run. A query that fails is skipped: drivers differ in what they
 * know, and none of it is required. */
#include "opencl/query.h"

#include <string.h>

enum { PLATFORMS_MAX = 16, EXTENSIONS_MAX = 16384 };

static uint32_t list_platform(const struct acre_opencl_query *query, uint64_t types,
                              opencl_platform platform, struct acre_opencl_found *found,
                              uint32_t room, struct acre_buf *notes) {
    opencl_device devices[ACRE_OPENCL_FOUND_MAX];
    uint32_t count = 0;
    int32_t code = query->devices(platform, types, ACRE_OPENCL_FOUND_MAX, devices, &count);
    if (code != OPENCL_SUCCESS && code != OPENCL_DEVICE_NOT_FOUND) {
        char name[ACRE_OPENCL_TEXT_MAX];
        char shown[80];
        acre_buf_printf(
            notes, "clGetDeviceIDs on platform '%s' returned %d\n",
            acre_str_show(acre_opencl_platform_text(query, platform, OPENCL_PLATFORM_NAME, name,
                                                    sizeof(name)),
                          shown, sizeof(shown)),
            (int)code);
    }
    count = code == OPENCL_SUCCESS ? ACRE_MIN(count, room) : 0;
    for (uint32_t i = 0; i < count; i++) {
        found[i] = (struct acre_opencl_found){.platform = platform, .device = devices[i]};
    }
    return count;
}

int acre_opencl_list(const struct acre_opencl_query *query, uint64_t types,
                     struct acre_opencl_found *found, uint32_t *ret_count, struct acre_buf *notes,
                     struct acre_error *err) {
    opencl_platform platforms[PLATFORMS_MAX];
    uint32_t platform_count = 0;
    int32_t code = query->platforms(PLATFORMS_MAX, platforms, &platform_count);
    if (code != OPENCL_SUCCESS) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "clGetPlatformIDs returned %d%s", (int)code,
                         code == OPENCL_PLATFORM_NOT_FOUND_KHR ? ": no OpenCL driver is installed"
                                                               : "");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < ACRE_MIN(platform_count, (uint32_t)PLATFORMS_MAX); i++) {
        count += list_platform(query, types, platforms[i], found + count,
                               ACRE_OPENCL_FOUND_MAX - count, notes);
    }
    *ret_count = count;
    return 0;
}

static struct acre_str text_of(int32_t code, const char *text, size_t length, size_t size) {
    length = code == OPENCL_SUCCESS && length <= size ? length : 0;
    return (struct acre_str){text, strnlen(text, length)};
}

struct acre_str acre_opencl_platform_text(const struct acre_opencl_query *query,
                                          opencl_platform platform, uint32_t what, char *text,
                                          size_t size) {
    size_t length = 0;
    int32_t code = query->platform_info(platform, what, size, text, &length);
    return text_of(code, text, length, size);
}

struct acre_str acre_opencl_text(const struct acre_opencl_query *query, opencl_device device,
                                 uint32_t what, char *text, size_t size) {
    size_t length = 0;
    int32_t code = query->device_info(device, what, size, text, &length);
    return text_of(code, text, length, size);
}

bool acre_opencl_number(const struct acre_opencl_query *query, opencl_device device, uint32_t what,
                        uint64_t *ret_value) {
    uint64_t value = 0; /* little endian: shorter answers fill its low bytes */
    if (query->device_info(device, what, sizeof(value), &value, NULL) != OPENCL_SUCCESS) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool acre_opencl_has_extension(const struct acre_opencl_query *query, opencl_device device,
                               const char *name) {
    char text[EXTENSIONS_MAX];
    struct acre_split words = acre_split_begin(
        acre_opencl_text(query, device, OPENCL_DEVICE_EXTENSIONS, text, sizeof(text)), ' ');
    struct acre_str word;
    bool has = false;
    while (!has && acre_split_next(&words, &word)) {
        has = acre_str_is(word, name);
    }
    return has;
}
