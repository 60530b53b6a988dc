/* amdgpu.h - what the files of the amdgpu driver share. Private to amdgpu*.c. One thread at a
 * time. */
#ifndef ACRE_DEVICE_AMDGPU_H
#define ACRE_DEVICE_AMDGPU_H

#include "device/device.h"
#include "device/kfd.h"
#include "device/sysfs.h"

enum { AMDGPU_VENDOR = 0x1002, AMDGPU_NO_NODE = -1, AMDGPU_NO_HWMON = -1 };

struct amdgpu_gpu {
    struct acre_device_info info;
    uint32_t card;
    int32_t hwmon;  /* directory number, or AMDGPU_NO_HWMON */
    uint32_t whole; /* position of the whole GPU: its own, or its parent's */
    int32_t node;   /* in nodes: a partition's own, a whole GPU's only one, or AMDGPU_NO_NODE */
    char problem[ACRE_COLUMN_TEXT_MAX]; /* why it must not be used; "" is well */
};

struct amdgpu {
    struct acre_sysfs fs;
    struct amdgpu_gpu *gpus;
    uint32_t count;
    struct kfd_node *nodes;
    uint32_t node_count;
};

/* A row moves one file into one column: scaled down, or as text. */
struct amdgpu_row {
    const char *file;
    size_t offset;
    int bit;
    uint64_t max;
    uint64_t divide; /* 0: text */
};
#define AMDGPU_INFO(name)   offsetof(struct acre_device_info, name), ACRE_INFO_##name
#define AMDGPU_SAMPLE(name) offsetof(struct acre_device_sample, name), ACRE_SAMPLE_##name

/* amdgpu_file.c: where a GPU's files are, and the formats among them. */
void amdgpu_at_device(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file);
/* A column that is known already is left alone, so rows may offer second choices. */
void amdgpu_take_rows(struct amdgpu *amd, const struct amdgpu_gpu *gpu, bool hwmon,
                      const struct amdgpu_row *rows, size_t count, void *record);
bool amdgpu_take_celsius(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                         int64_t *ret_celsius);
bool amdgpu_take_pcie_gen(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                          uint64_t *ret_gen);
bool amdgpu_take_dpm(struct amdgpu *amd, const struct amdgpu_gpu *gpu, const char *file,
                     uint64_t *ret_current_mhz, uint64_t *ret_max_mhz);
bool amdgpu_is_node_of(const struct kfd_node *node, const struct acre_device_info *info);
int amdgpu_check_index(const struct amdgpu *amd, uint32_t index, struct acre_error *err);

/* amdgpu_live.c */
int amdgpu_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                  struct acre_error *err);
int amdgpu_processes(void *self, uint32_t index, struct acre_process_list *list,
                     struct acre_error *err);
int amdgpu_links(void *self, struct acre_link_list *list, struct acre_error *err);

#endif
