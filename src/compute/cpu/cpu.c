/* cpu.c - the CPU as a back end: always available, and the reference for the others.
 *
 * Device memory is memory of this process, and all regions are reached by address. Kernels are C
 * functions: registered ones, or those that the system's compiler made from a source (build.c).
 * They run in this process, on worker threads (workers.c): a kernel that reads or writes outside
 * its buffers, or divides by zero, crashes the process, and one that never ends keeps its thread.
 * Contexts that must survive that are opened with ACRE_CONTEXT_ISOLATION_PROCESS, which moves all
 * of this into a runner.
 *
 * Handles are addresses of the structs in cpu.h. */
#include "compute/cpu/cpu.h"

#include "core/cpus.h"
#include "core/file.h"
#include "core/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROC_MAX_BYTES = 4 << 20, HUGE_PAGE_BYTES = 2 << 20 };

#if defined(__x86_64__)
static const char processor[] = "x86-64";
#elif defined(__aarch64__)
static const char processor[] = "aarch64";
#endif

/* --- what the machine is -------------------------------------------------------------------- */

/* The value of the first line "key : value". */
static struct acre_str find_line(struct acre_str text, const char *key) {
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    size_t length = strlen(key);
    while (acre_split_next(&lines, &line)) {
        if (line.length > length && memcmp(line.data, key, length) == 0) {
            const char *colon = memchr(line.data, ':', line.length);
            if (colon != NULL) {
                size_t used = (size_t)(colon + 1 - line.data);
                return acre_str_trim((struct acre_str){colon + 1, line.length - used});
            }
        }
    }
    return (struct acre_str){0};
}

/* The first is x86's, the others are arm64's. */
uint64_t cpu_features(struct acre_str cpuinfo) {
    static const char *const keys[] = {"flags", "Features", "CPU implementer", "CPU part"};
    uint64_t hash = 0;
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        struct acre_str value = find_line(cpuinfo, keys[i]);
        hash = hash * 31 + acre_hash_bytes(value.data, value.length);
    }
    return hash;
}

static void read_model(struct cpu *cpu) {
    struct acre_buf text;
    acre_buf_init(&text, PROC_MAX_BYTES);
    snprintf(cpu->model, sizeof(cpu->model), "CPU");
    if (acre_file_read("/proc/cpuinfo", PROC_MAX_BYTES, &text, NULL) == 0) {
        struct acre_str all = {text.data, text.length};
        struct acre_str model = find_line(all, "model name");
        if (model.length > 0) {
            snprintf(cpu->model, sizeof(cpu->model), "%.*s", (int)ACRE_MIN(model.length, 90U),
                     model.data);
        }
        cpu->features = cpu_features(all);
    }
    acre_buf_finish(&text);
}

/* Bytes of a line "key: 123 kB" of /proc/meminfo; 0: not there. */
static uint64_t meminfo_bytes(struct acre_str text, const char *key) {
    struct acre_str value = find_line(text, key);
    uint64_t kib = 0;
    for (size_t i = 0; i < value.length && value.data[i] >= '0' && value.data[i] <= '9'; i++) {
        kib = kib * 10 + (uint64_t)(value.data[i] - '0');
        if (kib > UINT64_MAX / 20480) {
            return 0;
        }
    }
    return kib * 1024;
}

static int read_memory(uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, PROC_MAX_BYTES);
    int r = acre_file_read("/proc/meminfo", PROC_MAX_BYTES, &text, err);
    if (r == 0) {
        struct acre_str all = {text.data, text.length};
        *ret_free = meminfo_bytes(all, "MemAvailable");
        *ret_total = meminfo_bytes(all, "MemTotal");
    }
    acre_buf_finish(&text);
    return r;
}

static int cpu_open(void **ret_self, struct acre_error *err) {
    struct cpu *cpu = calloc(1, sizeof(*cpu));
    if (cpu == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu");
    }
    uint64_t available = 0;
    int r = read_memory(&available, &cpu->memory_bytes, err);
    if (r < 0) {
        free(cpu);
        return r;
    }
    cpu->cores = acre_cpu_count();
    cpu_tripwires_init(&cpu->tripwires);
    read_model(cpu);
    cpu_find_compiler(cpu);
    *ret_self = cpu;
    return 0;
}

static void cpu_close(void *self) {
    free(self);
}

static uint32_t cpu_count(void *self) {
    (void)self;
    return 1;
}

static void cpu_describe(void *self, uint32_t device, struct acre_compute_device *ret_device) {
    const struct cpu *cpu = self;
    ACRE_ASSERT(device == 0);
    bool has_compiler = cpu->compiler[0] != '\0';
    *ret_device = (struct acre_compute_device){
        .memory_bytes = cpu->memory_bytes,
        .units = cpu->cores,
        .group_max = CPU_GROUP_MAX,
        .local_bytes = CPU_LOCAL_MAX_BYTES,
        .capabilities = ACRE_CAN_NATIVE | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64 |
                        (has_compiler ? ACRE_CAN_SOURCE : 0),
    };
    snprintf(ret_device->backend, sizeof(ret_device->backend), "%s", backend_cpu.name);
    snprintf(ret_device->name, sizeof(ret_device->name), "%s", cpu->model);
    snprintf(ret_device->identity, sizeof(ret_device->identity),
             "%s %016" PRIx64 ACRE_IDENTITY_COMPILER "%s", processor, cpu->features,
             has_compiler ? cpu->compiler_version : "none");
}

/* --- seats and regions --------------------------------------------------------------------- */

static int seat_open(void *self, uint32_t device, void **ret_seat, struct acre_error *err) {
    struct cpu *cpu = self;
    ACRE_ASSERT(device == 0);
    struct cpu_seat *seat = calloc(1, sizeof(*seat));
    if (seat == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: seat");
    }
    int r = cpu_pool_init(&seat->pool, cpu->cores, &cpu->tripwires, err);
    if (r < 0) {
        free(seat);
        return r;
    }
    seat->self = cpu;
    pthread_mutex_init(&seat->lock, NULL);
    *ret_seat = seat;
    return 0;
}

static int seat_check(void *seat, struct acre_error *err) {
    (void)seat;
    (void)err;
    return 0; /* what fails here takes the process with it */
}

static int seat_memory(void *seat, uint64_t *ret_free, uint64_t *ret_total,
                       struct acre_error *err) {
    (void)seat;
    return read_memory(ret_free, ret_total, err);
}

/* The kernel gives addresses for more than there is and ends processes later, so it is asked what
 * there is; regions that were not yet written to do not count there, so all of them together are
 * limited too. */
static int map_device(struct cpu_seat *seat, uint64_t bytes, char **ret_base,
                      struct acre_error *err) {
    uint64_t available = 0;
    uint64_t total = 0;
    int r = read_memory(&available, &total, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&seat->lock);
    uint64_t held = seat->device_bytes;
    bool fits = bytes <= available && bytes <= total - ACRE_MIN(held, total);
    seat->device_bytes += fits ? bytes : 0;
    pthread_mutex_unlock(&seat->lock);
    void *base = MAP_FAILED;
    if (fits) {
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (base == MAP_FAILED) {
        pthread_mutex_lock(&seat->lock);
        seat->device_bytes -= fits ? bytes : 0;
        pthread_mutex_unlock(&seat->lock);
        return acre_fail(err, ACRE_ENOMEM,
                         "cpu: cannot allocate %" PRIu64 " bytes; %" PRIu64
                         " are available, and this context holds %" PRIu64,
                         bytes, available, held);
    }
    if (bytes >= HUGE_PAGE_BYTES) {
        (void)madvise(base, bytes, MADV_HUGEPAGE); /* a hint */
    }
    *ret_base = base;
    return 0;
}

static int region_create(void *seat, enum acre_memory kind, uint64_t bytes, void *host,
                         struct native_region *ret_region, struct acre_error *err) {
    struct cpu_seat *here = seat;
    struct cpu_region *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: region");
    }
    *region = (struct cpu_region){.base = host, .bytes = bytes, .kind = kind};
    if (kind == ACRE_MEMORY_DEVICE) {
        int r = map_device(here, bytes, &region->base, err);
        if (r < 0) {
            free(region);
            return r;
        }
    }
    ACRE_ASSERT(region->base != NULL);
    pthread_mutex_lock(&here->lock);
    region->next = here->regions;
    region->link = &here->regions;
    if (region->next != NULL) {
        region->next->link = &region->next;
    }
    here->regions = region;
    pthread_mutex_unlock(&here->lock);
    *ret_region = (struct native_region){.handle = (uint64_t)(uintptr_t)region,
                                         .address = (uint64_t)(uintptr_t)region->base};
    return 0;
}

static void region_destroy(void *seat, uint64_t handle) {
    struct cpu_seat *here = seat;
    struct cpu_region *region = (struct cpu_region *)(uintptr_t)handle;
    bool is_ours = region->kind == ACRE_MEMORY_DEVICE;
    cpu_pool_see(&here->pool);
    pthread_mutex_lock(&here->lock);
    *region->link = region->next;
    if (region->next != NULL) {
        region->next->link = region->link;
    }
    here->device_bytes -= is_ours ? region->bytes : 0;
    pthread_mutex_unlock(&here->lock);
    if (is_ours) {
        munmap(region->base, region->bytes);
    }
    free(region);
}

/* --- streams and kernels -------------------------------------------------------------------- */

static int stream_create(void *seat, uint64_t word_region, uint64_t word_offset,
                         uint64_t *ret_stream, struct acre_error *err) {
    struct cpu_seat *here = seat;
    const struct cpu_region *region = (struct cpu_region *)(uintptr_t)word_region;
    ACRE_ASSERT(word_offset % 8 == 0 && word_offset < region->bytes);
    struct cpu_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: stream");
    }
    stream->seat = here;
    stream->word = (_Atomic uint64_t *)(void *)(region->base + word_offset);
    stream->tail = &stream->head;
    pthread_mutex_lock(&here->lock);
    stream->next = here->streams;
    stream->link = &here->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    here->streams = stream;
    pthread_mutex_unlock(&here->lock);
    *ret_stream = (uint64_t)(uintptr_t)stream;
    return 0;
}

static void free_tasks(struct cpu_task *task) {
    while (task != NULL) {
        struct cpu_task *next = task->next;
        free(task);
        task = next;
    }
}

static void stream_destroy(void *seat, uint64_t handle) {
    struct cpu_seat *here = seat;
    struct cpu_stream *stream = (struct cpu_stream *)(uintptr_t)handle;
    cpu_pool_settle(&here->pool, stream);
    pthread_mutex_lock(&here->lock);
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    pthread_mutex_unlock(&here->lock);
    free_tasks(stream->running);
    free_tasks(stream->head);
    free(stream->timings);
    free(stream);
}

static int kernel_native(void *seat, acre_native_function *function, uint64_t *ret_kernel,
                         struct acre_error *err) {
    struct cpu_seat *here = seat;
    struct cpu_kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: kernel");
    }
    kernel->function = function;
    snprintf(kernel->name, sizeof(kernel->name), "native");
    pthread_mutex_lock(&here->lock);
    kernel->next = here->natives;
    here->natives = kernel;
    pthread_mutex_unlock(&here->lock);
    *ret_kernel = (uint64_t)(uintptr_t)kernel;
    return 0;
}

static void native_destroy(void *seat, uint64_t handle) {
    struct cpu_seat *here = seat;
    struct cpu_kernel *kernel = (struct cpu_kernel *)(uintptr_t)handle;
    cpu_pool_see(&here->pool);
    pthread_mutex_lock(&here->lock);
    struct cpu_kernel **link = &here->natives;
    while (*link != kernel) {
        link = &(*link)->next;
    }
    *link = kernel->next;
    pthread_mutex_unlock(&here->lock);
    free(kernel);
}

static void seat_close(void *seat) {
    struct cpu_seat *here = seat;
    cpu_pool_end(&here->pool);
    while (here->streams != NULL) {
        stream_destroy(here, (uint64_t)(uintptr_t)here->streams);
    }
    cpu_pool_finish(&here->pool);
    while (here->modules != NULL) {
        cpu_unload(here, (uint64_t)(uintptr_t)here->modules);
    }
    while (here->natives != NULL) { /* of a context that was lost */
        native_destroy(here, (uint64_t)(uintptr_t)here->natives);
    }
    while (here->regions != NULL) {
        region_destroy(here, (uint64_t)(uintptr_t)here->regions);
    }
    pthread_mutex_destroy(&here->lock);
    free(here);
}

static void seat_let_go(void *seat) {
    struct cpu_seat *here = seat;
    if (pthread_mutex_trylock(&here->lock) != 0) {
        return; /* somebody was changing the lists */
    }
    cpu_modules_let_go(here);
    for (const struct cpu_region *region = here->regions; region != NULL; region = region->next) {
        if (region->kind == ACRE_MEMORY_DEVICE) {
            munmap(region->base, region->bytes);
        }
    }
}

const struct backend backend_cpu = {
    .name = "cpu",
    .what = "the processor's cores",
    .language = ACRE_LANGUAGE_PORTABLE,
    .capabilities = ACRE_CAN_NATIVE | ACRE_CAN_SOURCE | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64,
    .wakes = true,
    .is_local = true,
    .open = cpu_open,
    .close = cpu_close,
    .count = cpu_count,
    .describe = cpu_describe,
    .seat_open = seat_open,
    .seat_close = seat_close,
    .seat_let_go = seat_let_go,
    .check = seat_check,
    .memory = seat_memory,
    .region_create = region_create,
    .region_destroy = region_destroy,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .launch = cpu_launch,
    .signal = cpu_signal_later,
    .wait = cpu_wait,
    .notify = cpu_notify,
    .compile = cpu_compile,
    .load = cpu_load,
    .unload = cpu_unload,
    .kernel = cpu_kernel,
    .native = kernel_native,
    .native_destroy = native_destroy,
    .profile = cpu_profile,
    .timings = cpu_timings,
};
