/* compute.c - what the compute runtime costs, compared with raw driver calls in the same run.
 *
 *   build/bench/compute --backend cuda --json
 *   build/bench/compute --only launch,ring --markdown
 *
 * One object per figure: acre and raw are medians, p99 is worse than 99 of 100 samples (the worst
 * one if there are fewer), ratio is acre / raw. Limits (for an H200) are checked on CUDA at full
 * size only: elsewhere the figures mean something else, and the sizes are chosen to finish in
 * seconds. A figure that fails says so and the others continue; the exit code is then 1. */
#include "compute.h"

#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_MAX_BYTES = 1 << 20 };

struct options {
    bool json; /* bench_options' */
    bool markdown, quick;
    const char *backend;
    const char *only;
    const char *isolation;
};

static const struct {
    const char *name;
    void (*run)(struct compute_bench *bench);
} groups[] = {
#define X(function, name) {(name), compute_##function},
    COMPUTE_GROUPS(X)
#undef X
};

/* --- opening -------------------------------------------------------------------------------- */

/* The runner is built one directory up; a program finds it beside itself. */
static void name_runner(void) {
    char path[PATH_MAX];
    char runner[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    snprintf(runner, sizeof(runner), "%s/../acre-runner", dirname(path));
    if (access(runner, X_OK) == 0) {
        setenv("ACRE_RUNNER", runner, 0);
    }
}

static int make_scratch(struct compute_bench *bench, struct acre_error *err) {
    const char *parent = getenv("TMPDIR");
    snprintf(bench->scratch, sizeof(bench->scratch), "%s/acre-bench-XXXXXX",
             parent != NULL && parent[0] == '/' ? parent : "/tmp");
    return mkdtemp(bench->scratch) != NULL ? 0 : acre_fail(err, ACRE_EIO, "%s", bench->scratch);
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *where) {
    (void)facts;
    (void)kind;
    (void)where;
    return remove(path);
}

static int find_device(struct compute_bench *bench, const char *backend, struct acre_error *err) {
    char cache[sizeof(bench->scratch) + 8];
    snprintf(cache, sizeof(cache), "%s/cache", bench->scratch);
    const struct acre_compute_options options = {.backends = backend, .cache = cache};
    int r = acre_compute_open(&options, &bench->compute, err);
    if (r < 0) {
        return r;
    }
    if (acre_compute_count(bench->compute) == 0) {
        const char *absent = acre_compute_absent(bench->compute, backend != NULL ? backend : "cpu");
        return acre_fail(err, ACRE_EUNAVAILABLE, "%s", absent != NULL ? absent : "no device");
    }
    bench->backend = acre_compute_device(bench->compute, 0)->backend;
    return 0;
}

static int open_acre(struct compute_bench *bench, const char *isolation, struct acre_error *err) {
    const struct acre_source source = {
        .text = compute_text, .name = "bench", .language = ACRE_LANGUAGE_PORTABLE};
    struct acre_context_options options = {.tenant = "bench"};
    if (isolation != NULL) {
        options.isolation = strcmp(isolation, "none") == 0 ? ACRE_CONTEXT_ISOLATION_NONE
                                                           : ACRE_CONTEXT_ISOLATION_PROCESS;
    }
    int r = acre_context_open(bench->compute, bench->device, &options, &bench->context, err);
    r = r == 0 ? acre_stream_create(bench->context, &bench->stream, err) : r;
    r = r == 0 ? acre_program_build(bench->context, &source, &bench->program, NULL, err) : r;
    const struct {
        struct acre_kernel **to;
        const char *name;
    } kernels[] = {{&bench->tick, "tick"},
                   {&bench->add, "add"},
                   {&bench->multiply, "multiply"},
                   {&bench->batch, "batch"}};
    for (size_t i = 0; i < ACRE_COUNT(kernels) && r == 0; i++) {
        r = acre_kernel_find(bench->program, kernels[i].name, kernels[i].to, err);
    }
    return r;
}

/* Without it the figures of acre stand alone; that is said, and no reason to end. */
static void open_raw(struct compute_bench *bench) {
    static const struct {
        const char *backend;
        const struct compute_raw *raw;
    } raws[] = {
        {"cuda", &compute_raw_cuda}, {"opencl", &compute_raw_opencl}, {"cpu", &compute_raw_cpu}};
    for (size_t i = 0; i < ACRE_COUNT(raws); i++) {
        struct acre_error err = {0};
        if (strcmp(raws[i].backend, bench->backend) != 0) {
            continue;
        }
        if (raws[i].raw->open(&bench->raw_self, &err) == 0) {
            bench->raw = raws[i].raw;
        } else {
            fprintf(stderr, "bench: no raw %s: %s\n", raws[i].raw->name, err.text);
        }
    }
}

static void close_bench(struct compute_bench *bench) {
    if (bench->raw != NULL) {
        bench->raw->close(bench->raw_self);
    }
    acre_program_destroy(bench->program);
    acre_stream_destroy(bench->stream);
    acre_context_close(bench->context);
    acre_compute_close(bench->compute);
    if (bench->scratch[0] != '\0') {
        nftw(bench->scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* --- printing ------------------------------------------------------------------------------- */

static double ratio_of(const struct compute_figure *figure) {
    return figure->acre >= 0 && figure->raw > 0 ? figure->acre / figure->raw : -1;
}

static bool has_limit(const struct compute_bench *bench, const struct compute_figure *figure) {
    bool is_ratio =
        figure->limit_kind == COMPUTE_RATIO_MOST || figure->limit_kind == COMPUTE_RATIO_LEAST;
    return bench->is_full && strcmp(bench->backend, "cuda") == 0 &&
           figure->limit_kind != COMPUTE_NO_LIMIT && figure->acre >= 0 &&
           (!is_ratio || figure->raw > 0);
}

static bool holds(const struct compute_figure *figure) {
    switch (figure->limit_kind) {
    case COMPUTE_RATIO_MOST:
        return ratio_of(figure) <= figure->limit;
    case COMPUTE_RATIO_LEAST:
        return ratio_of(figure) >= figure->limit;
    case COMPUTE_MOST:
        return figure->acre <= figure->limit;
    case COMPUTE_LEAST:
        return figure->acre >= figure->limit;
    case COMPUTE_NO_LIMIT:
        break;
    }
    return true;
}

static void write_limit(const struct compute_figure *figure, char *text, size_t size) {
    bool is_ratio =
        figure->limit_kind == COMPUTE_RATIO_MOST || figure->limit_kind == COMPUTE_RATIO_LEAST;
    bool is_most = figure->limit_kind == COMPUTE_RATIO_MOST || figure->limit_kind == COMPUTE_MOST;
    snprintf(text, size, "%s%s %.10g%s%s", is_ratio ? "ratio " : "",
             is_most ? "<=" : ">=", figure->limit, is_ratio ? "" : " ",
             is_ratio ? "" : figure->unit);
}

static void put_number(struct acre_json *json, const char *key, double value, int decimals) {
    if (value < 0) {
        acre_json_put_null(json, key);
    } else {
        acre_json_put_double(json, key, value, decimals);
    }
}

static void put_figure(const struct compute_bench *bench, const struct compute_figure *figure,
                       struct acre_json *json) {
    acre_json_object(json);
    acre_json_put_string(json, "name", figure->name);
    if (figure->has_failed) {
        acre_json_put_string(json, "error", figure->note);
        acre_json_object_end(json);
        return;
    }
    put_number(json, "acre", figure->acre, 3);
    put_number(json, "raw", figure->raw, 3);
    put_number(json, "ratio", ratio_of(figure), 3);
    acre_json_put_string(json, "unit", figure->unit);
    put_number(json, "p99", figure->p99, 3);
    put_number(json, "raw_p99", figure->raw_p99, 3);
    acre_json_put_u64(json, "samples", figure->samples);
    acre_json_put_string(json, "what", figure->what);
    if (has_limit(bench, figure)) {
        char limit[64];
        write_limit(figure, limit, sizeof(limit));
        acre_json_put_string(json, "limit", limit);
        acre_json_put_bool(json, "holds", holds(figure));
    }
    if (figure->note[0] != '\0') {
        acre_json_put_string(json, "note", figure->note);
    }
    acre_json_object_end(json);
}

static void put_json(const struct compute_bench *bench, struct acre_buf *out) {
    const struct acre_compute_device *device = acre_compute_device(bench->compute, bench->device);
    struct acre_context_report report;
    struct acre_json json;
    acre_context_report(bench->context, &report);
    acre_json_begin(&json, out, false);
    acre_json_object(&json);
    acre_json_put_string(&json, "bench", "compute");
    acre_json_put_string(&json, "backend", bench->backend);
    acre_json_put_string(&json, "device", device->name);
    acre_json_put_string(&json, "identity", device->identity);
    acre_json_put_string(&json, "raw", bench->raw != NULL ? bench->raw->name : NULL);
    acre_json_put_bool(&json, "full_size", bench->is_full);
    acre_json_put_bool(&json, "isolated", report.is_isolated);
    acre_json_key(&json, "figures");
    acre_json_array(&json);
    for (uint32_t i = 0; i < bench->count; i++) {
        put_figure(bench, &bench->figures[i], &json);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

/* Three digits that count; "-" for none. */
static const char *show(double value, char *text, size_t size) {
    if (value < 0) {
        snprintf(text, size, "-");
    } else {
        snprintf(text, size, "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
    }
    return text;
}

static void put_row(const struct compute_bench *bench, const struct compute_figure *figure,
                    bool is_markdown, struct acre_buf *out) {
    char numbers[5][32];
    char limit[80] = "";
    show(figure->acre, numbers[0], sizeof(numbers[0]));
    show(figure->p99, numbers[1], sizeof(numbers[1]));
    show(figure->raw, numbers[2], sizeof(numbers[2]));
    show(figure->raw_p99, numbers[3], sizeof(numbers[3]));
    show(ratio_of(figure), numbers[4], sizeof(numbers[4]));
    if (has_limit(bench, figure)) {
        write_limit(figure, limit, sizeof(limit));
        size_t length = strlen(limit);
        snprintf(limit + length, sizeof(limit) - length, ": %s", holds(figure) ? "holds" : "FAILS");
    }
    bool has_what = figure->what != NULL && figure->what[0] != '\0';
    const char *note = figure->note;
    acre_buf_printf(out,
                    is_markdown ? "| %s | %s | %s | %s | %s | %s | %s | %s | %s%s%s |\n"
                                : "%-26s %-8s %10s %10s %10s %10s %8s  %-28s %s%s%s\n",
                    figure->name, figure->unit, numbers[0], numbers[1], numbers[2], numbers[3],
                    numbers[4], limit, has_what ? figure->what : "",
                    has_what && note[0] != '\0' ? "; " : "", note);
}

static void put_table(const struct compute_bench *bench, bool is_markdown, struct acre_buf *out) {
    const struct acre_compute_device *device = acre_compute_device(bench->compute, bench->device);
    struct acre_context_report report;
    acre_context_report(bench->context, &report);
    acre_buf_printf(out, "%s: %s (%s), %s, raw: %s%s\n\n", bench->backend, device->name,
                    device->identity, report.is_isolated ? "in a runner" : "in this process",
                    bench->raw != NULL ? bench->raw->name : "none",
                    bench->is_full ? "" : "; small sizes, no limits");
    if (is_markdown) {
        acre_buf_puts(out, "| figure | unit | acre p50 | acre p99 | raw p50 | raw p99 | ratio | "
                           "limit | what |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | "
                           "--- |\n");
    } else {
        acre_buf_printf(out, "%-26s %-8s %10s %10s %10s %10s %8s  %-28s %s\n", "FIGURE", "UNIT",
                        "ACRE P50", "P99", "RAW P50", "P99", "RATIO", "LIMIT", "WHAT");
    }
    for (uint32_t i = 0; i < bench->count; i++) {
        put_row(bench, &bench->figures[i], is_markdown, out);
    }
}

/* --- running -------------------------------------------------------------------------------- */

static bool is_wanted(const char *only, const char *name) {
    struct acre_str part;
    struct acre_split split = acre_split_begin(acre_str_from(only), ',');
    while (only != NULL && acre_split_next(&split, &part)) {
        if (acre_str_is(acre_str_trim(part), name)) {
            return true;
        }
    }
    return only == NULL;
}

static int check_only(const char *field, const char *value, struct acre_error *err) {
    struct acre_str part;
    struct acre_split split = acre_split_begin(acre_str_from(value), ',');
    while (acre_split_next(&split, &part)) {
        bool is_known = false;
        for (size_t i = 0; i < ACRE_COUNT(groups); i++) {
            is_known |= acre_str_is(acre_str_trim(part), groups[i].name);
        }
        if (!is_known) {
            char shown[64];
            char names[256] = "";
            for (size_t i = 0; i < ACRE_COUNT(groups); i++) {
                size_t length = strlen(names);
                snprintf(names + length, sizeof(names) - length, "%s%s", i > 0 ? ", " : "",
                         groups[i].name);
            }
            return acre_fail(err, ACRE_EINVALID, "%s: '%s'; accepted: %s", field,
                             acre_str_show(part, shown, sizeof(shown)), names);
        }
    }
    return 0;
}

static int run(const struct options *options, struct compute_bench *bench, struct acre_buf *out,
               struct acre_error *err) {
    int r = make_scratch(bench, err);
    r = r == 0 ? find_device(bench, options->backend, err) : r;
    r = r == 0 ? open_acre(bench, options->isolation, err) : r;
    if (r < 0) {
        return r;
    }
    bool is_gpu = strcmp(bench->backend, "cuda") == 0 || strcmp(bench->backend, "hip") == 0;
    bench->is_full = is_gpu && !options->quick;
    open_raw(bench);
    for (size_t i = 0; i < ACRE_COUNT(groups); i++) {
        if (is_wanted(options->only, groups[i].name)) {
            double start_ns = bench_now_ns();
            groups[i].run(bench);
            fprintf(stderr, "bench: %s: %.1f s\n", groups[i].name,
                    (bench_now_ns() - start_ns) / 1e9);
        }
    }
    if (options->json) {
        put_json(bench, out);
    } else {
        put_table(bench, options->markdown, out);
    }
    bool has_failed = false;
    for (uint32_t i = 0; i < bench->count; i++) {
        has_failed |= bench->figures[i].has_failed;
    }
    return has_failed ? acre_fail(err, ACRE_EINTERNAL, "some figures could not be measured") : 0;
}

static const struct acre_opt rows[] = {
    {.name = "backend",
     .kind = ACRE_OPT_CHOICE,
     .offset = offsetof(struct options, backend),
     .value = "NAME",
     .choices = "cuda,hip,opencl,cpu",
     .help = "back end (default: the first that has a device)"},
    {.name = "only",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, only),
     .value = "NAME,..",
     .check = check_only,
     .help = "only these figures (default: all)"},
    {.name = "isolation",
     .kind = ACRE_OPT_CHOICE,
     .offset = offsetof(struct options, isolation),
     .value = "KIND",
     .choices = "process,none",
     .help = "isolation of acre's context (default: auto); none shows what a runner costs"},
    {.name = "quick",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, quick),
     .help = "small sizes and few rounds: shows that everything runs, not how fast"},
    {.name = "markdown",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, markdown),
     .help = "a table in Markdown"},
};

int main(int argc, char **argv) {
    static const struct acre_command command = {
        .name = "compute",
        .summary = "Measure the compute runtime against the raw driver.",
        .usage = "compute [--backend NAME] [--only NAME,..] [--isolation KIND] [--quick] [--json | "
                 "--markdown]",
        .options = rows,
        .option_count = ACRE_COUNT(rows),
        .options_size = sizeof(struct options),
    };
    struct options options = {0};
    struct acre_error err = {0};
    int code = 0;
    if (!bench_options(&command, argc, argv, &options, &code)) {
        return code;
    }
    struct compute_bench *bench = acre_calloc(1, sizeof(*bench));
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    name_runner();
    int r = run(&options, bench, &out, &err);
    close_bench(bench);
    fputs(out.data, stdout);
    if (r < 0) {
        fprintf(stderr, "bench: %s\n", err.text);
    }
    acre_buf_finish(&out);
    free(bench);
    return acre_error_exit(r);
}
