/* compute_bench.c - `acre compute bench`: measures this machine in a few seconds.
 *
 * Each figure is one piece of work, repeated for FIGURE_MS and timed with this program's clock from
 * the call until the result is known; it shows the median and the 99th percentile. A figure that
 * cannot be measured says why. (bench/compute compares with the driver.) */
#include "cli/cli.h"

#include "cli/compute.h"
#include "core/clock.h"
#include "core/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FIGURE_MS = 150,
    WARM_UP = 3, /* not counted: first use of memory, of a module */
    SAMPLES_MAX = 20000,
    FIGURES_MAX = 32,
    COPY_BYTES = 64 << 20,
    POOL_BYTES = 64 << 10,
    BATCH = 64, /* of work too short for a clock, or given all at once */
    GRAPH_KERNELS = 20,
    ADD_ITEMS_MAX = 1 << 24,
    NAME_MAX_BYTES = 64,
};

static const char source_text[] =
    "kernel void touch(global uint *word, uint value) {\n"
    "    word[global_id(0)] = value;\n"
    "}\n"
    "kernel void add(global const float *a, global const float *b, global float *sum, uint n) {\n"
    "    ulong i = global_id(0);\n"
    "    if (i < n) {\n"
    "        sum[i] = a[i] + b[i];\n"
    "    }\n"
    "}\n";
static const char ring_text[] =
    "handler void handle(local const uint *in, local uint *out, global uint *state, uint lane,\n"
    "                    uint lanes) {\n"
    "    if (lane == 0) {\n"
    "        out[0] = in[0] + 1;\n"
    "    }\n"
    "}\n";

struct compute_bench_options {
    const char *device;
    bool json;
    bool quiet;
};

enum bench_unit { UNIT_US, UNIT_GB_S };

struct figure {
    char name[NAME_MAX_BYTES];
    enum bench_unit unit;
    double p50, p99; /* < 0: there is none */
    uint64_t samples;
    char note[160];
};

struct bench {
    const struct compute_bench_options *options;
    struct target target;
    struct acre_context *cpu; /* NULL: the device is the CPU */
    struct acre_program *program;
    struct acre_kernel *touch;
    struct acre_buffer device, other, host, word;
    struct acre_graph *graph;
    struct acre_ring *ring;
    struct acre_auto *automatic;
    enum acre_way way;
    uint32_t items;
    void *arrays[3];
    struct progress progress;
    double *samples;
    struct figure figures[FIGURES_MAX];
    uint32_t count;
};

/* --- measuring ------------------------------------------------------------------------------ */

typedef int work_function(struct bench *bench, struct acre_error *err);

/* Do it again and again; the samples are sorted. */
static int sample(struct bench *bench, work_function *work, uint64_t *ret_count,
                  struct acre_error *err) {
    struct acre_clock clock = acre_clock_real();
    int r = 0;
    for (uint32_t i = 0; i < WARM_UP && r == 0; i++) {
        r = work(bench, err);
    }
    uint64_t count = 0, begin_ns = acre_clock_monotonic_ns(&clock), now_ns = begin_ns;
    while (r == 0 && count < SAMPLES_MAX && now_ns - begin_ns < FIGURE_MS * UINT64_C(1000000)) {
        uint64_t before_ns = acre_clock_monotonic_ns(&clock);
        r = work(bench, err);
        now_ns = acre_clock_monotonic_ns(&clock);
        bench->samples[count++] = (double)(now_ns - before_ns) / 1e3;
    }
    figures_sort(bench->samples, count);
    *ret_count = count;
    return r;
}

/* One figure; `size` is what a sample is divided by, or the bytes it moves. */
static void measure(struct bench *bench, const char *name, enum bench_unit unit, double size,
                    work_function *work, const char *note) {
    ACRE_ASSERT(bench->count < FIGURES_MAX);
    struct figure *figure = &bench->figures[bench->count++];
    struct acre_error err = {0};
    *figure = (struct figure){.unit = unit, .p50 = -1, .p99 = -1};
    snprintf(figure->name, sizeof(figure->name), "%s", name);
    snprintf(figure->note, sizeof(figure->note), "%s", note);
    progress_show(&bench->progress, "%s", name);
    if (sample(bench, work, &figure->samples, &err) < 0) {
        snprintf(figure->note, sizeof(figure->note), "%.*s", (int)sizeof(figure->note) - 1,
                 err.text);
        return;
    }
    double p50 = bench->samples[figure->samples / 2];
    double p99 = bench->samples[figure->samples * 99 / 100];
    figure->p50 = unit == UNIT_US ? p50 / size : size / p50 / 1e3;
    figure->p99 = unit == UNIT_US ? p99 / size : size / p99 / 1e3;
}

static void cannot(struct bench *bench, const char *name, const struct acre_error *err) {
    struct figure *figure = &bench->figures[bench->count++];
    *figure = (struct figure){.p50 = -1, .p99 = -1};
    snprintf(figure->name, sizeof(figure->name), "%s", name);
    snprintf(figure->note, sizeof(figure->note), "%.*s", (int)sizeof(figure->note) - 1, err->text);
}

static int finish(struct bench *bench, int r, struct acre_error *err) {
    return r == 0 ? acre_stream_sync(bench->target.stream, ACRE_FOREVER, err) : r;
}

/* --- the work ------------------------------------------------------------------------------- */

static int copy_in(struct bench *bench, struct acre_error *err) {
    const void *from = acre_buffer_host(bench->target.context, bench->host);
    return finish(bench,
                  acre_copy_in(bench->target.stream, bench->device, 0, from, COPY_BYTES, err), err);
}

static int copy_out(struct bench *bench, struct acre_error *err) {
    void *to = acre_buffer_host(bench->target.context, bench->host);
    return finish(bench, acre_copy_out(bench->target.stream, to, bench->device, 0, COPY_BYTES, err),
                  err);
}

static int copy_within(struct bench *bench, struct acre_error *err) {
    return finish(
        bench, acre_copy(bench->target.stream, bench->other, 0, bench->device, 0, COPY_BYTES, err),
        err);
}

static int launch(struct bench *bench, struct acre_error *err) {
    const struct acre_arg args[] = {ACRE_BUFFER(bench->word), ACRE_U32(1)};
    const struct acre_grid one = {.groups = {1}, .group = {1}};
    return acre_launch(bench->target.stream, bench->touch, one, args, ACRE_COUNT(args), err);
}

static int launch_one(struct bench *bench, struct acre_error *err) {
    return finish(bench, launch(bench, err), err);
}

static int launch_many(struct bench *bench, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < BATCH && r == 0; i++) {
        r = launch(bench, err);
    }
    return finish(bench, r, err);
}

static int launch_graph(struct bench *bench, struct acre_error *err) {
    return finish(bench, acre_graph_launch(bench->graph, bench->target.stream, err), err);
}

static int call_ring(struct bench *bench, struct acre_error *err) {
    uint32_t in = 41, out = 0;
    int r = acre_ring_call(bench->ring, &in, &out, 10000, err);
    return r == 0 && out != 42 ? acre_fail(err, ACRE_EINTERNAL, "the ring answered %u", out) : r;
}

static int use_pool(struct bench *bench, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < BATCH && r == 0; i++) {
        struct acre_buffer buffer;
        r = acre_buffer_alloc(bench->target.stream, ACRE_MEMORY_DEVICE, POOL_BYTES, &buffer, err);
        r = r == 0 ? acre_buffer_free(bench->target.stream, buffer, err) : r;
    }
    return r;
}

/* Which kernel, and by which way, is in the name of the figure already. */
static int add_by_way(struct bench *bench, struct acre_error *err) {
    struct acre_error why = {0};
    int r =
        acre_auto_run_by(bench->automatic, bench->way, bench->items, bench->arrays, NULL, 0, &why);
    const char *colon =
        strncmp(why.text, "kernel 'add' cannot run by", 26) == 0 ? strstr(why.text, ": ") : NULL;
    return r < 0 ? acre_fail(err, r, "%s", colon != NULL ? colon + 2 : why.text) : 0;
}

/* --- figures by parts of the interface ------------------------------------------------------ */

static int take_memory(struct bench *bench, struct acre_error *err) {
    struct acre_stream *stream = bench->target.stream;
    int r = acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, COPY_BYTES, &bench->device, err);
    r = r == 0 ? acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, COPY_BYTES, &bench->other, err) : r;
    r = r == 0 ? acre_buffer_alloc(stream, ACRE_MEMORY_PINNED, COPY_BYTES, &bench->host, err) : r;
    r = r == 0 ? acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, 4, &bench->word, err) : r;
    if (r == 0) {
        memset(acre_buffer_host(bench->target.context, bench->host), 1, COPY_BYTES);
    }
    return r;
}

static void bench_graph(struct bench *bench) {
    struct acre_error err = {0};
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof(name), "graph of %d kernels", GRAPH_KERNELS);
    int r = acre_graph_begin(bench->target.stream, &err);
    for (uint32_t i = 0; i < GRAPH_KERNELS && r == 0; i++) {
        r = launch(bench, &err);
    }
    r = r == 0 ? acre_graph_end(bench->target.stream, &bench->graph, &err) : r;
    if (r < 0) {
        cannot(bench, name, &err);
        return;
    }
    bool is_whole = (target_device(&bench->target)->capabilities & ACRE_CAN_GRAPH) != 0;
    measure(bench, name, UNIT_US, 1, launch_graph, is_whole ? "" : "step by step on this device");
    acre_graph_destroy(bench->graph);
}

static void bench_ring(struct bench *bench) {
    struct acre_error err = {0};
    const struct acre_source source = {
        .text = ring_text, .name = "bench", .language = ACRE_LANGUAGE_PORTABLE};
    const struct acre_ring_options options = {.in_words = 1, .out_words = 1};
    struct acre_ring_report report;
    char note[sizeof(report.reason) + 32];
    if (acre_ring_create(bench->target.context, &source, &options, &bench->ring, &err) < 0) {
        cannot(bench, "ring round trip", &err);
        return;
    }
    acre_ring_report(bench->ring, &report);
    snprintf(note, sizeof(note), "%s%s",
             report.path == ACRE_RING_RESIDENT ? "resident" : "by a worker: ", report.reason);
    measure(bench, "ring round trip", UNIT_US, 1, call_ring, note);
    acre_ring_destroy(bench->ring);
}

static void bench_ways(struct bench *bench) {
    static const uint32_t sizes[] = {1000, 1000000, ADD_ITEMS_MAX};
    static const char *const words[] = {"1000", "1 M", "16 M"};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        /* On the CPU there is one way only. */
        for (uint32_t way = bench->cpu != NULL ? 0 : ACRE_WAY_CPU; way < ACRE_WAY_COUNT; way++) {
            char name[NAME_MAX_BYTES];
            bench->items = sizes[i];
            bench->way = (enum acre_way)way;
            snprintf(name, sizeof(name), "add %s floats, %s", words[i],
                     acre_way_name((enum acre_way)way));
            measure(bench, name, UNIT_US, 1, add_by_way, "");
        }
    }
}

/* Vector add on arrays of this program, by each way there is. */
static void bench_auto(struct bench *bench) {
    static const struct acre_auto_array arrays[] = {{.in_bytes = 4}, {.in_bytes = 4}, {0, 4}};
    const struct acre_source source = {
        .text = source_text, .name = "bench", .language = ACRE_LANGUAGE_PORTABLE};
    const struct acre_auto_options options = {
        .device = bench->cpu != NULL ? bench->target.context : NULL,
        .cpu = bench->cpu != NULL ? bench->cpu : bench->target.context,
        .source = &source,
        .kernel = "add",
        .arrays = arrays,
        .array_count = ACRE_COUNT(arrays),
        .learned = "",
    };
    struct acre_error err = {0};
    const size_t bytes = ADD_ITEMS_MAX * sizeof(float);
    char *memory = mmap(NULL, ACRE_COUNT(arrays) * bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        acre_fail(&err, ACRE_ENOMEM, "%zu bytes", ACRE_COUNT(arrays) * bytes);
        cannot(bench, "add", &err);
        return;
    }
    for (size_t i = 0; i < ACRE_COUNT(arrays); i++) {
        bench->arrays[i] = memory + i * bytes;
        memset(bench->arrays[i], 1, bytes);
    }
    if (acre_auto_create(&options, &bench->automatic, &err) < 0) {
        cannot(bench, "add", &err);
    } else {
        bench_ways(bench);
        acre_auto_destroy(bench->automatic);
    }
    munmap(memory, ACRE_COUNT(arrays) * bytes);
}

static int bench_all(struct bench *bench, struct acre_error *err) {
    const struct acre_source source = {
        .text = source_text, .name = "bench", .language = ACRE_LANGUAGE_PORTABLE};
    int r = target_open(bench->options->device, NULL, NULL, &bench->target, err);
    r = r == 0 && !target_is_cpu(&bench->target) ? target_open_cpu(&bench->target, &bench->cpu, err)
                                                 : r;
    r = r == 0 ? source_build(&bench->target, &source, &bench->progress, &bench->program, NULL, err)
               : r;
    r = r == 0 ? acre_kernel_find(bench->program, "touch", &bench->touch, err) : r;
    r = r == 0 ? take_memory(bench, err) : r;
    if (r < 0) {
        return r;
    }
    measure(bench, "copy to the device, 64 MiB", UNIT_GB_S, COPY_BYTES, copy_in, "pinned memory");
    measure(bench, "copy from the device, 64 MiB", UNIT_GB_S, COPY_BYTES, copy_out,
            "pinned memory");
    measure(bench, "copy on the device, 64 MiB", UNIT_GB_S, COPY_BYTES, copy_within,
            "twice as many bytes move");
    measure(bench, "launch, and wait", UNIT_US, 1, launch_one, "");
    measure(bench, "launch, 64 at once", UNIT_US, BATCH, launch_many, "of each");
    bench_graph(bench);
    bench_ring(bench);
    measure(bench, "allocate and free 64 KiB", UNIT_US, BATCH, use_pool, "device memory");
    bench_auto(bench);
    return 0;
}

/* --- showing -------------------------------------------------------------------------------- */

static void print_json(const struct bench *bench, struct acre_buf *out) {
    struct acre_json json;
    char name[NAME_MAX_BYTES];
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_put_string(&json, "device", target_name(&bench->target, name, sizeof(name)));
    acre_json_put_string(&json, "name", target_device(&bench->target)->name);
    acre_json_key(&json, "figures");
    acre_json_array(&json);
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct figure *figure = &bench->figures[i];
        acre_json_object(&json);
        acre_json_put_string(&json, "name", figure->name);
        acre_json_put_string(&json, "unit", figure->unit == UNIT_US ? "us" : "GB/s");
        acre_json_put_double(&json, "p50", figure->p50 < 0 ? (double)NAN : figure->p50, 3);
        acre_json_put_double(&json, "p99", figure->p99 < 0 ? (double)NAN : figure->p99, 3);
        acre_json_put_u64(&json, "samples", figure->samples);
        acre_json_put_string(&json, "note", figure->note[0] != '\0' ? figure->note : NULL);
        acre_json_object_end(&json);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static void add_cell(struct text_table *table, const struct figure *figure, double value) {
    char text[ACRE_FIGURE_MAX];
    if (figure->unit == UNIT_US) {
        figure_us(value, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "%.1f GB/s", value);
    }
    table_cell(table, ACRE_COLOUR_NONE, text);
}

/* What could not be measured, and why; each reason once. */
static void print_absent(const struct bench *bench, const struct term *term, struct acre_buf *out) {
    const char *before = "\n";
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct figure *figure = &bench->figures[i];
        uint32_t same = 0;
        while (same < i && (bench->figures[same].p50 >= 0 ||
                            strcmp(bench->figures[same].note, figure->note) != 0)) {
            same++;
        }
        if (figure->p50 < 0 && same == i) {
            figure_absent(term, out, &before, 27, figure->name, figure->note);
        }
    }
}

static void print_text(const struct bench *bench, struct acre_buf *out) {
    static const struct table_column columns[] = {
        {.heading = "WHAT"},
        {.heading = "MEDIAN", .right = true},
        {.heading = "P99", .right = true},
        {.heading = "NOTE", .shrink_to = 24, .cut_end = true},
    };
    struct term term = term_detect(STDOUT_FILENO);
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    char name[NAME_MAX_BYTES], shown[256];
    for (uint32_t i = 0; i < bench->count; i++) {
        const struct figure *figure = &bench->figures[i];
        if (figure->p50 < 0) {
            continue;
        }
        table_row(table);
        table_cell(table, ACRE_COLOUR_NONE, figure->name);
        add_cell(table, figure, figure->p50);
        add_cell(table, figure, figure->p99);
        table_cell(table, figure->note[0] != '\0' ? ACRE_COLOUR_DIM : ACRE_COLOUR_NONE,
                   acre_str_show_text(acre_str_from(figure->note), shown, sizeof(shown)));
    }
    acre_buf_printf(out, "%s, %s\n\n", target_name(&bench->target, name, sizeof(name)),
                    target_device(&bench->target)->name);
    table_print(table, &term, out);
    table_destroy(table);
    print_absent(bench, &term, out);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    struct bench *bench = acre_calloc(1, sizeof(*bench));
    struct acre_error err = {0};
    struct acre_buf out;
    bench->options = target;
    bench->samples = acre_calloc(SAMPLES_MAX, sizeof(*bench->samples));
    acre_buf_init(&out, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    progress_begin(&bench->progress, "bench", bench->options->quiet);
    progress_show(&bench->progress, "compiling");
    int r = bench_all(bench, &err);
    progress_end(&bench->progress);
    if (r == 0) {
        (bench->options->json ? print_json : print_text)(bench, &out);
    }
    int code = r < 0 ? cli_fail(&err) : cli_write(&out);
    target_close(&bench->target);
    acre_buf_finish(&out);
    free(bench->samples);
    free(bench);
    return code;
}

#define AT(member) offsetof(struct compute_bench_options, member)
static const struct acre_opt rows[] = {
    {.name = "device",
     .letter = 'd',
     .kind = ACRE_OPT_STRING,
     .offset = AT(device),
     .value = "DEVICE",
     .help = "cuda:0, opencl, cpu, or a number from 'acre compute devices' (default: the first)",
     .check = device_check},
    {.name = "json", .kind = ACRE_OPT_FLAG, .offset = AT(json), .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(quiet),
     .help = "show no progress"},
};

const struct acre_command command_compute_bench = {
    .name = "compute bench",
    .summary = "measure copies, launches and calls on this machine, in a few seconds",
    .usage = "acre compute bench [--device DEVICE] [options]",
    .details =
        "Times run from a call until its result is known, as a program sees it: the median, and\n"
        "the value that 1 in 100 is worse than. Other load on this machine affects the\n"
        "results.\n"
        "\n"
        "Examples:\n"
        "  acre compute bench --device cpu\n",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .run = run,
    .options_size = sizeof(struct compute_bench_options),
};
