/* compute_kit.c - opening, building, copying and comparing, so that cases are only their point.
 *
 * Compiled programs are kept in one cache directory for the whole run (all cases, each a process):
 * a source is compiled once, and the cache is tried by every case on the way. */
#include "conformance/compute_kit.h"

#include "core/clock.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Spins of the gate until it opens by itself: some ten seconds. A GPU reads the host's memory in
 * about a microsecond, a CPU its own in about a nanosecond. */
#define GATE_SPINS_CPU UINT64_C(8000000000)
#define GATE_SPINS_GPU UINT64_C(8000000)

struct kit_choice kit_choice;

bool kit_is(const char *backend) {
    return strcmp(kit_choice.backend, backend) == 0;
}

bool kit_is_isolated(void) {
    return kit_choice.isolation == ACRE_CONTEXT_ISOLATION_PROCESS ||
           (kit_choice.isolation == ACRE_CONTEXT_ISOLATION_AUTO && !kit_is("cpu"));
}

void kit_needs_isolation(void) {
    if (!kit_is_isolated()) {
        acre_test_skip("faults stay in a process of their own only with --isolation process");
    }
}

/* The process, if it is a child of ours that lives, and a runner; 0: it is not. */
static pid_t as_runner(const char *name) {
    char path[300];
    char line[512];
    snprintf(path, sizeof(path), "/proc/%s/stat", name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *end = strrchr(line, ')');
    char state = 'Z';
    pid_t pid = 0;
    pid_t parent = 0;
    bool is = end != NULL && strstr(line, "(acre-runner") != NULL &&
              sscanf(line, "%d", &pid) == 1 && sscanf(end + 1, " %c %d", &state, &parent) == 2 &&
              state != 'Z' && parent == getpid();
    return is ? pid : 0;
}

pid_t kit_runner(void) {
    pid_t found = 0;
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    while (directory != NULL && found == 0 && (entry = readdir(directory)) != NULL) {
        found = as_runner(entry->d_name);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found;
}

struct acre_compute_options kit_options(void) {
    static char cache[sizeof(kit_choice.scratch) + 8];
    snprintf(cache, sizeof(cache), "%s/cache", kit_choice.scratch);
    return (struct acre_compute_options){.backends = kit_choice.backend, .cache = cache};
}

/* --- errors --------------------------------------------------------------------------------- */

static _Thread_local struct acre_error thread_error;

struct acre_error *kit_error(void) {
    memset(&thread_error, 0, sizeof(thread_error));
    return &thread_error;
}

int kit_ok(int result, const char *call, const char *file, int line) {
    if (result != 0) {
        char text[ACRE_ERROR_TEXT_MAX + 256];
        snprintf(text, sizeof(text), "%.160s: %s: %s", call, acre_error_name(result),
                 thread_error.text);
        acre_check(false, true, text, file, line);
    }
    return result;
}

void kit_fails(int result, int code, const char *const *parts, const char *call, const char *file,
               int line) {
    if (result != code) {
        char text[ACRE_ERROR_TEXT_MAX + 256];
        snprintf(text, sizeof(text), "%.120s: %s (%s), expected %s", call, acre_error_name(result),
                 thread_error.text, acre_error_name(code));
        acre_check(false, false, text, file, line);
        return;
    }
    for (size_t i = 0; parts[i] != NULL; i++) {
        acre_check_has(thread_error.text, parts[i], file, line);
    }
}

/* --- opening -------------------------------------------------------------------------------- */

struct acre_context *kit_context(struct kit *kit, struct acre_context_options options) {
    struct acre_context *context = NULL;
    if (options.isolation == ACRE_CONTEXT_ISOLATION_AUTO) {
        options.isolation = kit_choice.isolation;
    }
    OK(acre_context_open(kit->compute, kit->device, &options, &context, ERR));
    REQUIRE(context != NULL);
    return context;
}

/* Staging and the like are made on first use and stay: not to be taken for leaks. */
static void warm_up(struct kit *kit) {
    uint8_t bytes[64] = {0};
    struct acre_buffer buffer = kit_data(kit, bytes, sizeof(bytes));
    kit_get(kit, bytes, buffer, sizeof(bytes));
    kit_free(kit, buffer);
    OK(acre_stream_sync(kit->stream, ACRE_FOREVER, ERR));
}

void kit_open_with(struct kit *kit, struct acre_context_options options) {
    *kit = (struct kit){0};
    acre_rand_seed(&kit->rand, kit_choice.seed);
    struct acre_compute_options how = kit_options();
    OK(acre_compute_open(&how, &kit->compute, ERR));
    const char *absent = acre_compute_absent(kit->compute, kit_choice.backend);
    if (absent != NULL) {
        acre_test_skip("%s", absent);
    }
    REQUIRE(acre_compute_count(kit->compute) > kit_choice.device);
    kit->device = kit_choice.device;
    kit->facts = acre_compute_device(kit->compute, kit->device);
    kit->context = kit_context(kit, options);
    OK(acre_stream_create(kit->context, &kit->stream, ERR));
    warm_up(kit);
}

void kit_open(struct kit *kit) {
    kit_open_with(kit, (struct acre_context_options){0});
}

void kit_close(struct kit *kit) {
    OK(acre_stream_sync(kit->stream, ACRE_FOREVER, ERR));
    struct acre_context_report report;
    struct acre_memory_report memory;
    acre_context_report(kit->context, &report);
    acre_memory_report(kit->context, &memory);
    CHECK_EQ(report.buffers, 0);
    CHECK_U64(memory.used_bytes, 0);
    for (size_t i = 0; i < KIT_SOURCES_MAX; i++) {
        acre_program_destroy(kit->programs[i]);
    }
    acre_stream_destroy(kit->stream);
    acre_context_close(kit->context);
    acre_compute_close(kit->compute);
}

/* --- kernels -------------------------------------------------------------------------------- */

/* Whether `name` is one of the words. */
static bool has_word(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *at = words; (at = strstr(at, name)) != NULL; at += length) {
        bool begins = at == words || at[-1] == ' ';
        if (begins && (at[length] == '\0' || at[length] == ' ')) {
            return true;
        }
    }
    return false;
}

static size_t source_of(const char *name) {
    for (size_t i = 0; i < compute_source_count; i++) {
        if (has_word(compute_sources[i].kernels, name)) {
            return i;
        }
    }
    acre_test_context("kernel %s", name);
    REQUIRE(compute_source_count == 0); /* none of the sources has it */
    return 0;
}

const struct compute_source *kit_source(const char *kernel) {
    return &compute_sources[source_of(kernel)];
}

static struct acre_program *build(struct acre_context *context, size_t index) {
    const struct compute_source *source = &compute_sources[index];
    struct acre_program *program = NULL;
    OK(acre_program_build(context,
                          &(struct acre_source){.text = source->text,
                                                .name = source->name,
                                                .language = ACRE_LANGUAGE_PORTABLE},
                          &program, NULL, ERR));
    return program;
}

struct acre_kernel *kit_kernel_in(struct acre_context *context, const char *name,
                                  struct acre_program **ret_program) {
    struct acre_kernel *kernel = NULL;
    *ret_program = build(context, source_of(name));
    OK(acre_kernel_find(*ret_program, name, &kernel, ERR));
    return kernel;
}

struct acre_kernel *kit_kernel(struct kit *kit, const char *name) {
    size_t index = source_of(name);
    if (kit->programs[index] == NULL) {
        kit->programs[index] = build(kit->context, index);
    }
    struct acre_kernel *kernel = NULL;
    OK(acre_kernel_find(kit->programs[index], name, &kernel, ERR));
    return kernel;
}

struct acre_grid kit_grid(uint32_t groups, uint32_t group) {
    return (struct acre_grid){.groups = {groups, 1, 1}, .group = {group, 1, 1}};
}

/* --- memory --------------------------------------------------------------------------------- */

struct acre_buffer kit_buffer(struct kit *kit, enum acre_memory kind, uint64_t bytes) {
    struct acre_buffer buffer = {0};
    OK(acre_buffer_alloc(kit->stream, kind, bytes, &buffer, ERR));
    REQUIRE(buffer.id != 0);
    return buffer;
}

struct acre_buffer kit_data(struct kit *kit, const void *data, uint64_t bytes) {
    struct acre_buffer buffer = kit_buffer(kit, ACRE_MEMORY_DEVICE, bytes);
    OK(acre_copy_in(kit->stream, buffer, 0, data, bytes, ERR));
    return buffer;
}

void kit_get(struct kit *kit, void *to, struct acre_buffer from, uint64_t bytes) {
    OK(acre_copy_out(kit->stream, to, from, 0, bytes, ERR));
}

void kit_free(struct kit *kit, struct acre_buffer buffer) {
    OK(acre_buffer_free(kit->stream, buffer, ERR));
}

void kit_random(struct kit *kit, void *to, size_t bytes) {
    uint8_t *at = to;
    while (bytes > 0) {
        uint64_t word = acre_rand_next(&kit->rand);
        size_t part = ACRE_MIN(bytes, sizeof(word));
        memcpy(at, &word, part);
        at += part;
        bytes -= part;
    }
}

void kit_random_floats(struct kit *kit, float *to, size_t count, double low, double high) {
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)(low + (high - low) * acre_rand_unit(&kit->rand));
    }
}

void kit_check_same(const void *got, const void *expected, size_t bytes, const char *file,
                    int line) {
    if (memcmp(got, expected, bytes) == 0) {
        return;
    }
    const uint8_t *a = got;
    const uint8_t *b = expected;
    size_t first = 0;
    size_t count = 0;
    for (size_t i = bytes; i-- > 0;) {
        if (a[i] != b[i]) {
            first = i;
            count++;
        }
    }
    char text[200];
    snprintf(text, sizeof(text),
             "%zu of %zu bytes differ, the first at %zu: %02x, expected %02x (seed %" PRIu64 ")",
             count, bytes, first, a[first], b[first], kit_choice.seed);
    acre_check(false, false, text, file, line);
}

struct kit_held kit_held(struct acre_context *context) {
    struct acre_memory_report memory;
    struct acre_context_report report;
    acre_memory_report(context, &memory);
    acre_context_report(context, &report);
    return (struct kit_held){.used_bytes = memory.used_bytes,
                             .buffers = report.buffers,
                             .files = acre_test_open_files()};
}

void kit_check_held(struct acre_context *context, const struct kit_held *before, const char *file,
                    int line) {
    struct kit_held now = kit_held(context);
    acre_check_u64(now.used_bytes, before->used_bytes, false, "used bytes", "before", file, line);
    acre_check_u64(now.buffers, before->buffers, false, "buffers", "before", file, line);
    acre_check_u64(now.files, before->files, false, "open files", "before", file, line);
}

/* --- time ----------------------------------------------------------------------------------- */

double kit_seconds(void) {
    struct acre_clock clock = acre_clock_real();
    return (double)acre_clock_monotonic_ns(&clock) / 1e9;
}

void kit_pass(int ms) {
    poll(NULL, 0, ms);
}

void kit_gate_close(struct kit *kit, struct acre_stream *stream, struct kit_gate *gate) {
    kit_gate_close_by(kit, stream, kit_grid(1, 1), gate);
}

void kit_gate_close_by(struct kit *kit, struct acre_stream *stream, struct acre_grid grid,
                       struct kit_gate *gate) {
    *gate = (struct kit_gate){.kit = kit};
    gate->buffer = kit_buffer(kit, ACRE_MEMORY_MAPPED, 64);
    gate->word = acre_buffer_host(kit->context, gate->buffer);
    REQUIRE(gate->word != NULL);
    gate->word[0] = 0;
    uint64_t spins = kit_is("cpu") || kit_is("opencl") ? GATE_SPINS_CPU : GATE_SPINS_GPU;
    RUN_ON(stream, kit, "gate", grid, ACRE_BUFFER(gate->buffer), ACRE_U64(spins));
}

void kit_gate_open(struct kit_gate *gate) {
    __atomic_store_n(gate->word, 1, __ATOMIC_SEQ_CST);
}

static void *open_late(void *user) {
    struct kit_gate *gate = user;
    double begun = kit_seconds();
    while (!atomic_load(&gate->is_cancelled) && (kit_seconds() - begun) * 1e3 < gate->delay_ms) {
        kit_pass(5);
    }
    kit_gate_open(gate);
    return NULL;
}

void kit_gate_open_in(struct kit_gate *gate, int delay_ms) {
    gate->delay_ms = delay_ms;
    REQUIRE_EQ(pthread_create(&gate->opener, NULL, open_late, gate), 0);
    gate->has_opener = true;
}

void kit_gate_finish(struct kit_gate *gate) {
    atomic_store(&gate->is_cancelled, true);
    if (gate->has_opener) {
        pthread_join(gate->opener, NULL);
    }
    kit_free(gate->kit, gate->buffer);
}
