/* nvml_double.c - a library with NVML's binary interface that answers from a script: test
 * equipment, to see how nvml.c takes answers a healthy machine does not give.
 *
 * The script is the environment variable ACRE_NVML_DOUBLE, read at nvmlInit_v2: statements
 * separated by ';', words by blanks, GPUs counted from 0.
 *
 *   gpus N              N GPUs (default 1), PCI 0000:10:00.0, 0000:11:00.0 ...
 *   island N            N at a time joined by 4 direct NVLinks each way
 *   switch              all joined by an NVSwitch
 *   mig I N             GPU I has MIG on and N instances (at places 0, 2, 4 ...)
 *   lost I              every call about GPU I answers 15
 *   fail SYMBOL CODE    that symbol answers CODE
 *   noopen I CODE       the handle of GPU I cannot be had
 *   init CODE           nvmlInit_v2 answers CODE
 *   driver VERSION      driver version; 535.43 ... 535.86 have wide _v3 process entries
 *   process I PID MIB   a compute process (MIB -1: not available), also: graphics, mps
 *   many I N            N compute processes
 *   xid I CODE          a pending XID event
 *
 * Built three times: whole; DOUBLE_OLD without the newer symbols; DOUBLE_BROKEN without one
 * that is required. */
#include "device/nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { GPUS = 16, SLICES = 7, RULES = 32, PROCESSES = 64, EVENTS = 256, LINKS = 4 };
enum { MIB = 1 << 20, TOTAL_MIB = 81920, RESERVED_MIB = 500, SLICE_MIB = 9984 };

struct nvml_device_opaque {
    unsigned gpu;
    int slice; /* -1: the whole */
};

static struct {
    unsigned gpus, island;
    bool on_switch;
    bool lost[GPUS];
    int noopen[GPUS];
    unsigned slices[GPUS];
    unsigned many[GPUS];
    char driver[64];
    int init;
    struct {
        char symbol[64];
        int code;
    } rules[RULES];
    unsigned rule_count;
    struct {
        unsigned gpu, pid;
        long long mib;
        char kind; /* c g m */
    } processes[PROCESSES];
    unsigned process_count;
    struct {
        unsigned gpu, code;
    } events[EVENTS];
    unsigned event_count, event_next;
    bool registered[GPUS];
    int opened; /* init count */
    struct nvml_device_opaque whole[GPUS], slice[GPUS][SLICES];
} self;

static void read_statement(char *statement) {
    char word[64] = "";
    char text[64] = "";
    unsigned gpu = 0;
    int a = 0;
    long long b = 0;
    if (sscanf(statement, " %63s", word) != 1) {
        return;
    }
    sscanf(statement, " %*s %u %d %lld", &gpu, &a, &b);
    unsigned g = gpu < GPUS ? gpu : 0;
    if (strcmp(word, "gpus") == 0) {
        self.gpus = gpu;
    } else if (strcmp(word, "island") == 0) {
        self.island = gpu;
    } else if (strcmp(word, "switch") == 0) {
        self.on_switch = true;
    } else if (strcmp(word, "mig") == 0) {
        self.slices[g] = (unsigned)a;
    } else if (strcmp(word, "lost") == 0) {
        self.lost[g] = true;
    } else if (strcmp(word, "noopen") == 0) {
        self.noopen[g] = a;
    } else if (strcmp(word, "init") == 0) {
        self.init = (int)gpu;
    } else if (strcmp(word, "many") == 0) {
        self.many[g] = (unsigned)a;
    } else if (strcmp(word, "driver") == 0) {
        sscanf(statement, " %*s %63s", self.driver);
    } else if (strcmp(word, "fail") == 0 && sscanf(statement, " %*s %63s %d", text, &a) == 2) {
        snprintf(self.rules[self.rule_count].symbol, sizeof(text), "%s", text);
        self.rules[self.rule_count++].code = a;
    } else if (strcmp(word, "xid") == 0) {
        self.events[self.event_count].gpu = g;
        self.events[self.event_count++].code = (unsigned)a;
    } else {
        self.processes[self.process_count].gpu = g;
        self.processes[self.process_count].pid = (unsigned)a;
        self.processes[self.process_count].mib = b;
        self.processes[self.process_count++].kind = word[0] == 'p' ? 'c' : word[0];
    }
}

static void read_script(void) {
    const char *script = getenv("ACRE_NVML_DOUBLE");
    char *copy = strdup(script != NULL ? script : "");
    memset(&self, 0, sizeof(self));
    self.gpus = 1;
    snprintf(self.driver, sizeof(self.driver), "580.65.06");
    for (char *rest = copy, *statement; (statement = strsep(&rest, ";")) != NULL;) {
        read_statement(statement);
    }
    for (unsigned g = 0; g < GPUS; g++) {
        self.whole[g] = (struct nvml_device_opaque){g, -1};
        for (int s = 0; s < SLICES; s++) {
            self.slice[g][s] = (struct nvml_device_opaque){g, s};
        }
    }
    free(copy);
}

static int rule(const char *symbol) {
    for (unsigned i = 0; i < self.rule_count; i++) {
        if (strcmp(self.rules[i].symbol, symbol) == 0) {
            return self.rules[i].code;
        }
    }
    return NVML_SUCCESS;
}

/* What a call about this device answers before it is looked at. */
static int check(nvml_device device, const char *symbol) {
    if (self.opened == 0) {
        return NVML_UNINITIALIZED;
    }
    if (device != NULL && self.lost[device->gpu]) {
        return NVML_GPU_IS_LOST;
    }
    return rule(symbol);
}

#define CHECK(device)                                                                              \
    int code = check(device, __func__);                                                            \
    if (code != NVML_SUCCESS) {                                                                    \
        return code;                                                                               \
    }
#define WHOLE_ONLY(device)                                                                         \
    if ((device)->slice >= 0) {                                                                    \
        return NVML_NOT_SUPPORTED;                                                                 \
    }

int nvmlInit_v2(void) {
    if (self.opened == 0) {
        read_script();
    }
    self.opened += self.init == 0;
    return self.init;
}

int nvmlShutdown(void) {
    self.opened--;
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    CHECK(NULL)
    snprintf(text, size, "%s", self.driver);
    return NVML_SUCCESS;
}

int nvmlSystemGetNVMLVersion(char *text, unsigned size) {
    CHECK(NULL)
    snprintf(text, size, "13.%s", self.driver);
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    CHECK(NULL)
    *version = 13000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    CHECK(NULL)
    *count = self.gpus;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device *device) {
    CHECK(NULL)
    if (self.noopen[index] != 0) {
        return self.noopen[index];
    }
    *device = &self.whole[index];
    return NVML_SUCCESS;
}

#ifndef DOUBLE_BROKEN
int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned size) {
    CHECK(device)
    if (device->slice >= 0) {
        snprintf(text, size, "MIG-%08x-0000-0000-0000-%012x", device->gpu, device->slice);
    } else {
        snprintf(text, size, "GPU-%08x-1111-2222-3333-444444444444", device->gpu);
    }
    return NVML_SUCCESS;
}
#endif

static void fill_pci(unsigned gpu, struct nvml_pci *pci) {
    memset(pci, 0, sizeof(*pci));
    pci->bus = 0x10 + gpu;
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", pci->bus);
}

int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci) {
    CHECK(device)
    fill_pci(device->gpu, pci);
    return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvml_device device, char *text, unsigned size) {
    CHECK(device)
    snprintf(text, size, "NVIDIA Double 80GB%s", device->slice >= 0 ? " MIG 1g.10gb" : "");
    return NVML_SUCCESS;
}

int nvmlDeviceGetSerial(nvml_device device, char *text, unsigned size) {
    CHECK(device)
    WHOLE_ONLY(device)
    snprintf(text, size, "16500%u", device->gpu);
    return NVML_SUCCESS;
}

int nvmlDeviceGetArchitecture(nvml_device device, unsigned *architecture) {
    CHECK(device)
    *architecture = 9;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor) {
    CHECK(device)
    *major = 9;
    *minor = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(nvml_device device, struct nvml_attributes *attributes) {
    CHECK(device)
    *attributes = (struct nvml_attributes){.multiprocessors = 16, .memory_mib = SLICE_MIB};
    return device->slice >= 0 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

static uint64_t used_mib(nvml_device device) {
    uint64_t used = 0;
    for (unsigned i = 0; i < self.process_count; i++) {
        bool here = self.processes[i].gpu == device->gpu && self.processes[i].mib > 0;
        used += here ? (uint64_t)self.processes[i].mib : 0;
    }
    return used;
}

static uint64_t total_mib(nvml_device device) {
    return device->slice >= 0 ? SLICE_MIB : TOTAL_MIB;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory) {
    CHECK(device)
    uint64_t used = used_mib(device) + RESERVED_MIB;
    memory->total = total_mib(device) * MIB;
    memory->used = used * MIB;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *use) {
    CHECK(device)
    WHOLE_ONLY(device)
    *use = (struct nvml_utilization){37, 12};
    return NVML_SUCCESS;
}

#define ANSWER_U32(symbol, answer)                                                                 \
    int symbol(nvml_device device, unsigned *value) {                                              \
        CHECK(device)                                                                              \
        WHOLE_ONLY(device)                                                                         \
        *value = answer;                                                                           \
        return NVML_SUCCESS;                                                                       \
    }
#define ANSWER_ARGUMENT(symbol, answer)                                                            \
    int symbol(nvml_device device, unsigned which, unsigned *value) {                              \
        CHECK(device)                                                                              \
        WHOLE_ONLY(device)                                                                         \
        *value = answer;                                                                           \
        return NVML_SUCCESS;                                                                       \
    }
#define ANSWER_PAIR(symbol, first, second)                                                         \
    int symbol(nvml_device device, unsigned *value, unsigned *other) {                             \
        CHECK(device)                                                                              \
        *value = first;                                                                            \
        *other = second;                                                                           \
        return NVML_SUCCESS;                                                                       \
    }

ANSWER_U32(nvmlDeviceGetPowerUsage, 345678)
ANSWER_U32(nvmlDeviceGetEnforcedPowerLimit, 700000)
ANSWER_U32(nvmlDeviceGetCurrPcieLinkGeneration, 5)
ANSWER_U32(nvmlDeviceGetCurrPcieLinkWidth, 16)
ANSWER_U32(nvmlDeviceGetMaxPcieLinkGeneration, 5)
ANSWER_U32(nvmlDeviceGetMaxPcieLinkWidth, 16)
ANSWER_U32(nvmlDeviceGetPersistenceMode, 1)
ANSWER_U32(nvmlDeviceGetComputeMode, 0)
ANSWER_U32(nvmlDeviceGetRetiredPagesPendingStatus, 0)
ANSWER_ARGUMENT(nvmlDeviceGetTemperatureThreshold, which == NVML_THRESHOLD_SHUTDOWN ? 92 : 87)
ANSWER_ARGUMENT(nvmlDeviceGetClockInfo, which == NVML_CLOCK_SM ? 1755 : 2619)
ANSWER_ARGUMENT(nvmlDeviceGetMaxClockInfo, which == NVML_CLOCK_SM ? 1980 : 2619)
ANSWER_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, 200000, 700000)
ANSWER_PAIR(nvmlDeviceGetEccMode, 1, 1)
ANSWER_PAIR(nvmlDeviceGetMigMode, self.slices[device->gpu] > 0, self.slices[device->gpu] > 0)

int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *values) {
    CHECK(device)
    for (int i = 0; i < count; i++) {
        values[i].code =
            values[i].field == NVML_FIELD_MEMORY_TEMPERATURE ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
        values[i].value.u32 = 52;
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvml_device device, unsigned type, unsigned counter,
                                unsigned long long *count) {
    CHECK(device)
    WHOLE_ONLY(device)
    *count = counter * 10 + type;
    return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPages(nvml_device device, unsigned cause, unsigned *count,
                              unsigned long long *addresses) {
    CHECK(device)
    WHOLE_ONLY(device)
    bool asked = *count == 0;
    *count = cause == NVML_RETIRED_SINGLE_BIT ? 2 : 0;
    if (addresses == NULL) {
        return NVML_INVALID_ARGUMENT;
    }
    return asked && *count > 0 ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows(nvml_device device, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed) {
    CHECK(device)
    WHOLE_ONLY(device)
    *corrected = 3;
    *uncorrected = 1;
    *pending = 1;
    *failed = 0;
    return NVML_SUCCESS;
}

int nvmlEventSetCreate(nvml_event_set *set) {
    CHECK(NULL)
    *set = (nvml_event_set)&self;
    return NVML_SUCCESS;
}

int nvmlEventSetFree(nvml_event_set set) {
    (void)set;
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, nvml_event_set set) {
    (void)set;
    CHECK(device)
    self.registered[device->gpu] = (types & NVML_EVENT_XID) != 0;
    return NVML_SUCCESS;
}

int nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned timeout_ms) {
    (void)set;
    CHECK(NULL)
    if (timeout_ms != 0) {
        return NVML_UNKNOWN; /* Acre must not wait */
    }
    while (self.event_next < self.event_count &&
           !self.registered[self.events[self.event_next].gpu]) {
        self.event_next++;
    }
    if (self.event_next >= self.event_count) {
        return NVML_TIMEOUT;
    }
    *event = (struct nvml_event){.device = &self.whole[self.events[self.event_next].gpu],
                                 .type = NVML_EVENT_XID,
                                 .data = self.events[self.event_next].code,
                                 .gpu_instance = NVML_NO_INSTANCE,
                                 .compute_instance = NVML_NO_INSTANCE};
    self.event_next++;
    return NVML_SUCCESS;
}

static int list(nvml_device device, char kind, unsigned *count, struct nvml_process *to,
                size_t stride) {
    unsigned found = 0;
    unsigned extra = kind == 'c' ? self.many[device->gpu] : 0;
    for (unsigned i = 0; i < self.process_count + extra; i++) {
        bool scripted = i < self.process_count;
        if (scripted && (self.processes[i].gpu != device->gpu || self.processes[i].kind != kind)) {
            continue;
        }
        if (found < *count) {
            struct nvml_process process = {.pid = 100000 + i,
                                           .used_bytes = MIB,
                                           .gpu_instance = NVML_NO_INSTANCE,
                                           .compute_instance = NVML_NO_INSTANCE};
            if (scripted) {
                long long mib = self.processes[i].mib;
                process.pid = self.processes[i].pid;
                process.used_bytes = mib < 0 ? NVML_NO_MEMORY : (unsigned long long)mib * MIB;
            }
            memcpy((char *)to + found * stride, &process, sizeof(process));
        }
        found++;
    }
    int code = found > *count ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = found;
    return code;
}

#define LIST(symbol, kind, stride)                                                                 \
    int symbol(nvml_device device, unsigned *count, struct nvml_process *to) {                     \
        CHECK(device)                                                                              \
        return list(device, kind, count, to, stride);                                              \
    }
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'c', sizeof(struct nvml_process))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'g', sizeof(struct nvml_process))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'm', sizeof(struct nvml_process))

int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned *count) {
    CHECK(device)
    *count = SLICES;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned index, nvml_device *slice) {
    CHECK(device)
    if (index % 2 != 0 || index / 2 >= self.slices[device->gpu]) {
        return NVML_NOT_FOUND;
    }
    *slice = &self.slice[device->gpu][index / 2];
    return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(nvml_device device, unsigned *id) {
    CHECK(device)
    *id = (unsigned)device->slice + 7;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(nvml_device device, unsigned *id) {
    CHECK(device)
    *id = 0;
    return NVML_SUCCESS;
}

/* Link L of a GPU in an island of N goes to the island's member L (itself: no link). */
int nvmlDeviceGetNvLinkState(nvml_device device, unsigned link, unsigned *active) {
    CHECK(device)
    WHOLE_ONLY(device)
    unsigned links = self.on_switch ? LINKS : self.island * LINKS;
    if (links == 0) {
        return NVML_NOT_SUPPORTED;
    }
    if (link >= links) {
        return NVML_INVALID_ARGUMENT;
    }
    *active = self.on_switch || device->gpu % self.island != link / LINKS;
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned link, unsigned *version) {
    (void)link;
    CHECK(device)
    *version = 4;
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned link, struct nvml_pci *pci) {
    CHECK(device)
    if (self.on_switch) {
        fill_pci(0x80 + link, pci);
    } else {
        fill_pci(device->gpu / self.island * self.island + link / LINKS, pci);
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned link, unsigned *type) {
    (void)link;
    CHECK(device)
    *type = self.on_switch ? NVML_REMOTE_SWITCH : NVML_REMOTE_GPU;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, unsigned *level) {
    CHECK(a)
    *level = a->gpu / 4 == b->gpu / 4 ? 40 : 50;
    return NVML_SUCCESS;
}

#ifdef DOUBLE_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device device, unsigned long long *reasons) {
    CHECK(device)
    WHOLE_ONLY(device)
    *reasons = 0x1;
    return NVML_SUCCESS;
}
int nvmlDeviceGetTemperatureV(nvml_device device, struct nvml_temperature *temperature) {
    CHECK(device)
    WHOLE_ONLY(device)
    if (temperature->version != NVML_VERSION(struct nvml_temperature, 1)) {
        return NVML_ARGUMENT_VERSION_MISMATCH;
    }
    temperature->celsius = 41;
    return NVML_SUCCESS;
}
#else
ANSWER_ARGUMENT(nvmlDeviceGetTemperature, which == NVML_TEMPERATURE_GPU ? 41 : 0)

int nvmlDeviceGetCurrentClocksEventReasons(nvml_device device, unsigned long long *reasons) {
    CHECK(device)
    WHOLE_ONLY(device)
    *reasons = 0x4 | 0x20;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory) {
    CHECK(device)
    if (memory->version != NVML_VERSION(struct nvml_memory_v2, 2)) {
        return NVML_ARGUMENT_VERSION_MISMATCH;
    }
    memory->total = total_mib(device) * MIB;
    memory->reserved = (uint64_t)RESERVED_MIB * MIB;
    memory->used = used_mib(device) * MIB;
    memory->free = memory->total - memory->reserved - memory->used;
    return NVML_SUCCESS;
}

static size_t v3_stride(void) {
    return strncmp(self.driver, "535.54", 6) == 0 ? 32 : sizeof(struct nvml_process);
}
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c', v3_stride())
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g', v3_stride())
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm', v3_stride())
#endif
