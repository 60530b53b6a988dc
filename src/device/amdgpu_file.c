/* amdgpu_file.c - one file, one value: device/, hwmon/ and the texts in them. */
#include "device/amdgpu.h"

#include "device/value.h"

#include <string.h>

void amdgpu_at_device(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file) {
    sysfs_at(&amd->fs, "class/drm/card%u/device/%s", gpu->card, file);
}

static void at_hwmon(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file) {
    sysfs_at(&amd->fs, "class/drm/card%u/device/hwmon/hwmon%d/%s", gpu->card, gpu->hwmon, file);
}

/* A column an earlier row filled is left alone, so rows may offer second choices. */
void amdgpu_take_rows(struct amdgpu *amd, const struct amdgpu_gpu *gpu, bool hwmon,
                      const struct amdgpu_row *rows, size_t count, void *record) {
    uint64_t *valid = record; /* every record begins with it */
    for (size_t i = 0; i < count; i++) {
        if ((*valid >> rows[i].bit & 1) != 0 || (hwmon && gpu->hwmon == AMDGPU_NO_HWMON)) {
            continue;
        }
        (hwmon ? at_hwmon : amdgpu_at_device)(amd, gpu, rows[i].file);
        char *at = (char *)record + rows[i].offset;
        struct acre_str line;
        uint64_t value = 0;
        if (rows[i].divide == 0 && sysfs_line(&amd->fs, &line) == 0) {
            column_put_text(at, valid, rows[i].bit, line);
        } else if (rows[i].divide != 0 && sysfs_u64(&amd->fs, rows[i].max, &value) == 0) {
            *(uint64_t *)(void *)at = value / rows[i].divide;
            *valid |= UINT64_C(1) << rows[i].bit;
        }
    }
}

/* Millidegrees; may be below zero. */
bool amdgpu_take_celsius(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                         int64_t *ret_celsius) {
    int64_t milli = 0;
    if (gpu->hwmon == AMDGPU_NO_HWMON) {
        return false;
    }
    at_hwmon(amd, gpu, file);
    if (sysfs_i64(&amd->fs, -273000, 1000000, &milli) < 0) {
        return false;
    }
    *ret_celsius = milli / 1000;
    return true;
}

bool amdgpu_take_pcie_gen(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                          uint64_t *ret_gen) {
    struct acre_str text;
    struct acre_error err = {0};
    amdgpu_at_device(amd, gpu, file);
    if (sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    if (value_pcie_gen(text, ret_gen, &err) < 0) {
        sysfs_note(&amd->fs, &err);
        return false;
    }
    return true;
}

bool amdgpu_take_dpm(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                     uint64_t *ret_current_mhz, uint64_t *ret_max_mhz) {
    struct acre_str text;
    struct acre_error err = {0};
    amdgpu_at_device(amd, gpu, file);
    if (sysfs_text(&amd->fs, &text) < 0) {
        return false;
    }
    int r = value_dpm(text, ret_current_mhz, ret_max_mhz, &err);
    if (r < 0) {
        sysfs_note(&amd->fs, &err);
    }
    return r == 0;
}

bool amdgpu_is_node_of(const struct kfd_node *node, const struct acre_device_info *info) {
    char pci_id[ACRE_PCI_ID_MAX];
    pci_id_format(node->domain, node->bus, node->device, 0, pci_id);
    return ACRE_HAS(info, ACRE_INFO, pci_id) && strcmp(pci_id, info->pci_id) == 0;
}

int amdgpu_check_index(const struct amdgpu *amd, uint32_t index, struct acre_error *err) {
    return index < amd->count ? 0
                              : acre_fail(err, ACRE_ENOTFOUND, "amdgpu: no device %u; there are %u",
                                          index, amd->count);
}
