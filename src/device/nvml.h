/* nvml.h - what the files of the NVML driver share: the symbol table, the handles, the one way to
 * make a call. Private to nvml*.c. One thread at a time. */
#ifndef ACRE_DEVICE_NVML_H
#define ACRE_DEVICE_NVML_H

#include "device/device.h"
#include "device/nvml_symbols.h"
#include "device/sysfs.h"
#include "device/value.h"

struct nvml_link {
    bool is_switch;
    char pci_id[ACRE_PCI_ID_MAX]; /* "" when the other end is not known */
};

struct nvml_gpu {
    nvml_device handle;
    struct acre_device_info info;
    bool slice; /* a MIG instance: NVML answers less about it */
    bool lost;
    char reason[ACRE_COLUMN_TEXT_MAX];
    bool events; /* XID events are registered */
    uint64_t xid_events;
    uint64_t xid_last;
    uint32_t link_count;
    struct nvml_link links[NVML_LINKS_MAX];
};

struct nvml {
    struct nvml_api api;
    bool initialised;
    const char *soname;
    char driver_version[NVML_TEXT_MAX];
    char library_version[NVML_TEXT_MAX];
    char cuda_version[16];
    bool wide_v3; /* this driver's _v3 process lists have another layout */
    nvml_event_set event_set;
    struct nvml_gpu *gpus;
    uint32_t count;
    struct acre_sysfs fs; /* NUMA node and CPU list; its notes are the driver's */
    uint64_t noted;       /* a bit per symbol: its odd answer is in the notes */
    struct nvml_process *scratch;
    uint32_t scratch_capacity;
};

_Static_assert((int)NVML_SYMBOL_COUNT <= 64, "noted is one word");

/* True for success. A lost GPU is remembered with its reason; odd answers are noted once per
 * symbol; "not supported" and its like only leave the column unknown. */
bool nvml_accept(struct nvml *nv, struct nvml_gpu *gpu, enum nvml_symbol symbol, int code);
#define NVML_ASK(nv, gpu, member, ...)                                                             \
    nvml_accept(nv, gpu, NVML_SYMBOL_##member,                                                     \
                (nv)->api.member == NULL ? NVML_FUNCTION_NOT_FOUND                                 \
                                         : (nv)->api.member((gpu)->handle, __VA_ARGS__))

const char *nvml_code_text(int code); /* "the GPU is lost: ..." */

/* nvml_live.c */
void nvml_poll(void *self);
int nvml_sample(void *self, uint32_t index, struct acre_device_sample *ret_sample,
                struct acre_error *err);
int nvml_processes(void *self, uint32_t index, struct acre_process_list *list,
                   struct acre_error *err);
/* nvml_topology.c */
void nvml_read_links(struct nvml *nv, struct nvml_gpu *gpu);
int nvml_links(void *self, struct acre_link_list *list, struct acre_error *err);

#endif
