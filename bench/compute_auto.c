/* compute_auto.c - the automatic choice against every way there is, by size.
 *
 * Two kernels: a vector add, which is all memory and so mostly the CPU's, and one of 2000
 * multiply-adds an item, which the GPU must win from some size on. For each size automatic calls
 * are made until the choice has settled; then automatic and each way take turns, a sample being as
 * many calls as last 50 us (the clock costs as much as a call of one item). A way that after three
 * rounds takes three times as long as the best one cannot become the best and is left out of the
 * rest. Arrays are plain memory of this process, or pinned buffers. "raw" is the best way; the
 * crossover is the size from which on a way through the device is the best. The time of the plain C
 * function, in one thread, is shown next to it. */
#include "compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AUTOMATIC = ACRE_WAY_COUNT, /* contenders: the ways, automatic, a plain call in C */
    PLAIN,
    CONTENDERS,
    ROUNDS_MAX = 101,
    ROUNDS_SURE = 3,
    SIZES_MAX = 24,
    HEAVY_ROUNDS = 2000,
    LANES = 16,
};
#define SAMPLE_NS    50e3
#define PLAIN_MAX_NS 100e6 /* one thread: hopeless for the larger ones, and only told */

struct subject {
    const char *name;   /* of the figures */
    const char *kernel; /* in the text */
    const char *text;
    bool is_pinned; /* arrays in memory that the device copies from and to by itself */
    acre_native_function *native;
    struct acre_auto_array arrays[3];
    uint32_t array_count;
    uint32_t largest, largest_small; /* items, at full size and else */
};

struct trial {
    const struct subject *subject;
    struct acre_auto *automatic;
    void *arrays[3];
    struct acre_buffer buffers[3]; /* that they are in, when pinned */
    uint32_t items;
    uint32_t chosen[ACRE_WAY_COUNT]; /* how often */
    struct bench_times times[CONTENDERS];
    bool is_out[CONTENDERS]; /* not there, or hopeless */
};

/* --- the kernels ---------------------------------------------------------------------------- */

static const char add_text[] =
    "kernel void add(global const float *a, global const float *b, global float *c, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        c[i] = a[i] + b[i];\n"
    "    }\n"
    "}\n";

static const char heavy_text[] =
    "kernel void heavy(global const float *in, global float *out, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        float x = in[i];\n"
    "        for (uint round = 0u; round < 2000u; round++) {\n"
    "            x = x * 0.999f + 0.001f;\n"
    "        }\n"
    "        out[i] = x;\n"
    "    }\n"
    "}\n";

/* The items of these groups: [*ret_first, end). */
static uint64_t items_of(const struct acre_groups *groups, uint32_t n, uint64_t *ret_first) {
    *ret_first = ACRE_MIN(groups->first * groups->group[0], (uint64_t)n);
    return ACRE_MIN(groups->end * groups->group[0], (uint64_t)n);
}

static void add_native(const struct acre_groups *groups, const void *const *arguments) {
    const float *a = arguments[0];
    const float *b = arguments[1];
    float *c = (float *)arguments[2];
    uint64_t i;
    uint64_t end = items_of(groups, *(const uint32_t *)arguments[3], &i);
    for (; i < end; i++) {
        c[i] = a[i] + b[i];
    }
}

/* So many items at once, for the vector units. */
static void heavy_native(const struct acre_groups *groups, const void *const *arguments) {
    const float *in = arguments[0];
    float *out = (float *)arguments[1];
    uint64_t i;
    uint64_t end = items_of(groups, *(const uint32_t *)arguments[2], &i);
    for (; i < end; i += LANES) {
        float x[LANES] = {0};
        uint64_t count = ACRE_MIN(end - i, (uint64_t)LANES);
        memcpy(x, in + i, count * sizeof(float));
        for (uint32_t round = 0; round < HEAVY_ROUNDS; round++) {
            for (uint32_t lane = 0; lane < LANES; lane++) {
                x[lane] = x[lane] * 0.999f + 0.001f;
            }
        }
        memcpy(out + i, x, count * sizeof(float));
    }
}

static const struct subject subjects[] = {
    {.name = "add",
     .kernel = "add",
     .text = add_text,
     .native = add_native,
     .arrays = {{.in_bytes = 4}, {.in_bytes = 4}, {.out_bytes = 4}},
     .array_count = 3,
     .largest = 100000000,
     .largest_small = 10000},
    {.name = "add, pinned",
     .kernel = "add",
     .text = add_text,
     .is_pinned = true,
     .native = add_native,
     .arrays = {{.in_bytes = 4}, {.in_bytes = 4}, {.out_bytes = 4}},
     .array_count = 3,
     .largest = 100000000,
     .largest_small = 10000},
    {.name = "heavy",
     .kernel = "heavy",
     .text = heavy_text,
     .native = heavy_native,
     .arrays = {{.in_bytes = 4}, {.out_bytes = 4}},
     .array_count = 2,
     .largest = 3162277,
     .largest_small = 316},
};

/* --- one size ------------------------------------------------------------------------------- */

static int call(struct trial *trial, uint32_t contender, struct acre_error *err) {
    if (contender == PLAIN) {
        const void *arguments[4] = {0};
        memcpy(arguments, trial->arrays, sizeof(trial->arrays));
        arguments[trial->subject->array_count] = &trial->items;
        trial->subject->native(&(struct acre_groups){.end = trial->items,
                                                     .groups = {trial->items, 1, 1},
                                                     .group = {1, 1, 1}},
                               arguments);
        return 0;
    }
    if (contender != AUTOMATIC) {
        return acre_auto_run_by(trial->automatic, (enum acre_way)contender, trial->items,
                                trial->arrays, NULL, 0, err);
    }
    enum acre_way way = ACRE_WAY_CPU;
    int r = acre_auto_run(trial->automatic, trial->items, trial->arrays, NULL, 0, &way, err);
    if (r == 0) {
        trial->chosen[way]++;
    }
    return r;
}

/* At least 64 calls (each variant is tried a few times first), or as many as fit into the time. */
static int settle(struct trial *trial, double budget_ns, struct acre_error *err) {
    double start_ns = bench_now_ns();
    int r = 0;
    for (uint32_t i = 0; r == 0; i++) {
        double taken_ns = bench_now_ns() - start_ns;
        if ((i >= 64 && taken_ns > budget_ns / 20) || taken_ns > budget_ns) {
            break;
        }
        r = call(trial, AUTOMATIC, err);
    }
    return r;
}

static int sample(struct trial *trial, uint32_t contender, uint32_t calls, struct acre_error *err) {
    struct bench_times *times = &trial->times[contender];
    int r = call(trial, contender, err); /* after the others have had the caches */
    double start_ns = bench_now_ns();
    for (uint32_t i = 0; i < calls && r == 0; i++) {
        r = call(trial, contender, err);
    }
    times->ns[times->count++] = (bench_now_ns() - start_ns) / calls;
    return r;
}

static double median(const struct bench_times *times) {
    double sorted[ROUNDS_MAX];
    memcpy(sorted, times->ns, times->count * sizeof(double));
    bench_sort(sorted, times->count);
    return sorted[times->count / 2];
}

static double best_way(const struct trial *trial, uint32_t first, uint32_t end) {
    double best_ns = HUGE_VAL;
    for (uint32_t i = first; i < end; i++) {
        if (trial->times[i].count > 0) {
            best_ns = ACRE_MIN(best_ns, median(&trial->times[i]));
        }
    }
    return best_ns;
}

/* A call of each: is it there, and how many make a sample? */
static int probe(struct trial *trial, uint32_t calls[CONTENDERS], struct acre_error *err) {
    for (uint32_t i = 0; i < CONTENDERS; i++) {
        double taken_ns = 0;
        int r = 0;
        for (int j = 0; j < 3 && r == 0 && taken_ns < PLAIN_MAX_NS; j++) {
            double start_ns = bench_now_ns();
            r = call(trial, i, err);
            taken_ns = ACRE_MAX(bench_now_ns() - start_ns, 1.0);
        }
        calls[i] = (uint32_t)ACRE_MAX(ACRE_MIN(SAMPLE_NS / taken_ns, 1000.0), 1.0);
        trial->is_out[i] = r == ACRE_EUNSUPPORTED || (i == PLAIN && taken_ns > PLAIN_MAX_NS);
        if (r < 0 && r != ACRE_EUNSUPPORTED) {
            return r;
        }
    }
    return trial->is_out[AUTOMATIC] ? ACRE_EUNSUPPORTED : 0;
}

static int compare(struct trial *trial, double budget_ns, struct acre_error *err) {
    uint32_t calls[CONTENDERS];
    int r = probe(trial, calls, err);
    double start_ns = bench_now_ns();
    memset(trial->chosen, 0, sizeof(trial->chosen));
    for (uint32_t round = 0; round < ROUNDS_MAX && r == 0; round++) {
        if (round >= ROUNDS_SURE && bench_now_ns() - start_ns > budget_ns) {
            break;
        }
        for (uint32_t i = 0; i < CONTENDERS && r == 0; i++) {
            uint32_t turn = (i + round) % CONTENDERS; /* none always follows the same one */
            r = trial->is_out[turn] ? 0 : sample(trial, turn, calls[turn], err);
        }
        for (uint32_t i = 0; i < ACRE_WAY_COUNT && round + 1 == ROUNDS_SURE && r == 0; i++) {
            trial->is_out[i] |= trial->times[i].count > 0 &&
                                median(&trial->times[i]) > 3 * best_way(trial, 0, ACRE_WAY_COUNT);
        }
    }
    return r;
}

/* --- figures -------------------------------------------------------------------------------- */

static void write_note(const struct trial *trial, char *note) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < ACRE_WAY_COUNT; i++) {
        most = trial->chosen[i] > trial->chosen[most] ? i : most;
    }
    int length = snprintf(note, COMPUTE_NOTE_MAX, "chosen: %s;", acre_way_name(most));
    for (uint32_t i = 0; i < ACRE_WAY_COUNT; i++) {
        char us[32] = "-";
        if (trial->times[i].count > 0) {
            snprintf(us, sizeof(us), "%.2f", median(&trial->times[i]) / 1000);
        }
        length +=
            snprintf(note + length, COMPUTE_NOTE_MAX - (size_t)length, " %s %s%s",
                     acre_way_name((enum acre_way)i), us, i + 1 < ACRE_WAY_COUNT ? "," : " us");
    }
    if (trial->times[PLAIN].count > 0) {
        snprintf(note + length, COMPUTE_NOTE_MAX - (size_t)length, "; a C function %.3f us",
                 median(&trial->times[PLAIN]) / 1000);
    }
}

/* Whether a way through the device is the best one. */
static bool measure_size(struct compute_bench *bench, struct trial *trial) {
    struct compute_figure figure = {.what = "automatic; raw: the best of acre's own ways",
                                    .unit = "us",
                                    .limit_kind = COMPUTE_RATIO_MOST,
                                    .limit = 1.10};
    double budget_ns = bench->is_full ? 2e9 : 20e6;
    struct acre_error err = {0};
    snprintf(figure.name, sizeof(figure.name), "auto, %s, %u", trial->subject->name, trial->items);
    for (uint32_t i = 0; i < CONTENDERS; i++) {
        trial->times[i].count = 0;
        trial->is_out[i] = false;
    }
    int r = settle(trial, budget_ns, &err);
    r = r == 0 ? compare(trial, budget_ns, &err) : r;
    if (r < 0) {
        compute_fail(bench, figure, &err);
        return false;
    }
    struct bench_times *automatic = &trial->times[AUTOMATIC];
    double device_ns = best_way(trial, 0, ACRE_WAY_CPU);
    double cpu_ns = best_way(trial, ACRE_WAY_CPU, ACRE_WAY_COUNT);
    write_note(trial, figure.note);
    figure.acre = median(automatic) / 1000;
    bench_sort(automatic->ns, automatic->count);
    figure.p99 = automatic->ns[automatic->count * 99 / 100] / 1000;
    figure.raw = ACRE_MIN(device_ns, cpu_ns) / 1000;
    figure.raw_p99 = -1;
    figure.samples = (uint32_t)automatic->count;
    compute_keep(bench, figure);
    return device_ns < cpu_ns;
}

static void keep_crossover(struct compute_bench *bench, const struct subject *subject,
                           uint32_t crossover) {
    struct compute_figure figure = {.what = "smallest size at which the device is faster",
                                    .unit = "items",
                                    .acre = crossover > 0 ? (double)crossover : -1.0,
                                    .raw = -1,
                                    .p99 = -1,
                                    .raw_p99 = -1};
    snprintf(figure.name, sizeof(figure.name), "auto, %s, crossover", subject->name);
    if (crossover == 0) {
        snprintf(figure.note, sizeof(figure.note), "none: the CPU is faster at every size");
    }
    compute_keep(bench, figure);
}

static int make_arrays(struct compute_bench *bench, struct trial *trial, uint32_t items,
                       struct acre_error *err) {
    for (uint32_t i = 0; i < trial->subject->array_count; i++) {
        float *floats = NULL;
        if (trial->subject->is_pinned) {
            int r = acre_buffer_alloc(bench->stream, ACRE_MEMORY_PINNED,
                                      (uint64_t)items * sizeof(float), &trial->buffers[i], err);
            if (r < 0) {
                return r;
            }
            floats = acre_buffer_host(bench->context, trial->buffers[i]);
        } else {
            floats = acre_calloc(items, sizeof(float));
        }
        for (uint32_t j = 0; j < items; j++) {
            floats[j] = (float)(j % 4096);
        }
        trial->arrays[i] = floats;
    }
    return 0;
}

static void free_arrays(struct compute_bench *bench, struct trial *trial) {
    for (uint32_t i = 0; i < trial->subject->array_count; i++) {
        if (!trial->subject->is_pinned) {
            free(trial->arrays[i]);
        } else if (trial->buffers[i].id != 0) {
            acre_buffer_free(bench->stream, trial->buffers[i], NULL);
        }
    }
}

static void measure_subject(struct compute_bench *bench, struct acre_context *cpu,
                            const struct subject *subject) {
    struct acre_error err = {0};
    struct trial trial = {.subject = subject};
    double *times = acre_calloc((size_t)CONTENDERS * ROUNDS_MAX, sizeof(double));
    uint32_t largest = (uint32_t)compute_pick(bench, subject->largest, subject->largest_small);
    for (uint32_t i = 0; i < CONTENDERS; i++) {
        trial.times[i].ns = times + (size_t)i * ROUNDS_MAX;
    }
    if (make_arrays(bench, &trial, largest, &err) < 0) {
        struct compute_figure figure = {.what = "automatic"};
        snprintf(figure.name, sizeof(figure.name), "auto, %s", subject->name);
        compute_fail(bench, figure, &err);
        free_arrays(bench, &trial);
        free(times);
        return;
    }
    const struct acre_source source = {
        .text = subject->text, .name = subject->kernel, .language = ACRE_LANGUAGE_PORTABLE};
    const struct acre_auto_options options = {.device =
                                                  cpu == bench->context ? NULL : bench->context,
                                              .cpu = cpu,
                                              .source = &source,
                                              .kernel = subject->kernel,
                                              .native = subject->native,
                                              .arrays = subject->arrays,
                                              .array_count = subject->array_count,
                                              .learned = ""};
    int r = acre_auto_create(&options, &trial.automatic, &err);
    if (r < 0) {
        struct compute_figure figure = {.what = "automatic"};
        snprintf(figure.name, sizeof(figure.name), "auto, %s", subject->name);
        compute_fail(bench, figure, &err);
    } else {
        uint32_t crossover = 0;
        for (uint32_t half = 0; half < SIZES_MAX; half++) { /* of decades: 1, 3, 10, 31 ... */
            trial.items = (uint32_t)pow(10.0, half / 2.0);
            if (trial.items > largest) {
                break;
            }
            bool is_device = measure_size(bench, &trial);
            crossover = !is_device ? 0 : crossover > 0 ? crossover : trial.items;
        }
        keep_crossover(bench, subject, crossover);
    }
    acre_auto_destroy(trial.automatic);
    free_arrays(bench, &trial);
    free(times);
}

void compute_automatic(struct compute_bench *bench) {
    struct acre_error err = {0};
    struct acre_compute *compute = NULL;
    struct acre_context *cpu = bench->context;
    int r = 0;
    struct acre_context_report report;
    acre_context_report(bench->context, &report);
    if (strcmp(bench->backend, "cpu") != 0 || report.is_isolated) {
        const struct acre_compute_options options = {.backends = "cpu", .cache = ""};
        r = acre_compute_open(&options, &compute, &err);
        r = r == 0 ? acre_context_open(compute, 0, NULL, &cpu, &err) : r;
    }
    if (r < 0) {
        compute_fail(bench, (struct compute_figure){.name = "auto", .what = "automatic"}, &err);
    }
    for (size_t i = 0; i < ACRE_COUNT(subjects) && r == 0; i++) {
        measure_subject(bench, cpu, &subjects[i]);
    }
    if (cpu != bench->context && r == 0) {
        acre_context_close(cpu);
    }
    acre_compute_close(compute);
}
