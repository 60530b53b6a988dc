/* compute_run.c - `acre compute run`: runs one kernel of a file on arrays and numbers from the
 * command line, and reports its times.
 *
 * The device measures the times (acre_stream_timings), not this program. The kernel runs in a
 * runner, on the CPU too: a bad write is reported as an error, and an endless kernel can be
 * ended. */
#include "cli/cli.h"

#include "cli/compute_arg.h"
#include "cli/show.h"
#include "core/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REPEAT_MAX = 1000000,
    LAUNCHES_AT_ONCE = 64, /* between two looks at the times */
    TIMINGS_MAX = 2 * ACRE_BINDINGS_MAX + LAUNCHES_AT_ONCE,
    FIRST_MAX = 6, /* values that are shown of an array */
    GROUPS_MAX = INT32_MAX,
    GROUPS_BESIDE_MAX = 65535, /* along y and z, on GPUs */
    GROUP_SLOW = 32,           /* items that GPUs run at once anyway */
    RATE_MIN_BYTES = 1 << 20,  /* less takes as long as it takes to begin */
    SHOWN_MAX = 96,
};

struct compute_run_options {
    const char *kernel, *device, *compiler;
    const char *grid, *group, *items;
    struct acre_opt_list args, outs;
    uint64_t repeat, limit_ms;
    bool json;
    bool quiet;
};

struct moved {
    uint64_t bytes;
    double us;
};

struct compute_run_call {
    const struct compute_run_options *options;
    struct target target;
    struct acre_kernel *kernel;
    struct bindings bindings;
    struct acre_build_report build;
    struct acre_grid grid;
    bool has_only_group; /* its source requires it */
    char why_grid[2 * SHOWN_MAX];
    char note[3 * SHOWN_MAX]; /* "": none */
    bool is_timed;
    struct moved in, out;
    double *kernel_us; /* of each launch, then sorted */
    uint64_t launches;
};

/* --- the grid ------------------------------------------------------------------------------- */

/* "8", "8,8", "8,8,2". */
static int parse_axes(const char *option, const char *text, uint64_t max, uint64_t axes[3],
                      uint32_t *ret_count, struct acre_error *err) {
    struct acre_split split = acre_split_begin(acre_str_from(text), ',');
    struct acre_str part;
    uint32_t count = 0;
    char shown[SHOWN_MAX], one[24];
    while (acre_split_next(&split, &part)) {
        if (count == 3 || !acre_str_copy(one, sizeof(one), part) ||
            acre_parse_count("", one, 1, max, &axes[count], NULL) < 0) {
            return acre_fail(err, ACRE_EINVALID,
                             "--%s: invalid '%s'; accepted: one to three numbers from 1 to %" PRIu64
                             ", as in 64 or 8,8",
                             option, acre_str_show(acre_str_from(text), shown, sizeof(shown)), max);
        }
        count++;
    }
    *ret_count = count;
    return 0;
}

/* Items as a kernel counts them, when nobody says how many. */
static int largest_array(struct compute_run_call *call, uint64_t *ret_items,
                         struct acre_error *err) {
    const struct bindings *bindings = &call->bindings;
    uint64_t items = 0;
    for (uint32_t i = 0; i < bindings->count; i++) {
        const struct binding *binding = &bindings->all[i];
        if (binding->is_array && binding->parameter.kind == ACRE_PARAMETER_BUFFER &&
            binding_items(binding) > items) {
            char name[SHOWN_MAX];
            items = binding_items(binding);
            snprintf(call->why_grid, sizeof(call->why_grid),
                     "%" PRIu64 " item%s, from the largest array, '%s'", items,
                     items == 1 ? "" : "s", binding_name(bindings, i, name, sizeof(name)));
        }
    }
    if (items == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "--items is missing: kernel '%s' has no array to infer it from; give "
                         "--items N, or --grid and --group",
                         bindings->kernel);
    }
    *ret_items = items;
    return 0;
}

static uint64_t largest_divisor(uint64_t count, uint64_t most) {
    uint64_t divisor = ACRE_MIN(most, count);
    while (count % divisor != 0) {
        divisor--;
    }
    return divisor;
}

/* Groups that divide the items, so that no more run than there are: nobody can see from here
 * whether the kernel looks at its number. Only where that were too many groups they do not. */
static void choose_divisors(const uint64_t axes[3], uint64_t group[3]) {
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t divisor = largest_divisor(axes[i], group[i]);
        if (axes[i] / divisor <= (i == 0 ? GROUPS_MAX : GROUPS_BESIDE_MAX)) {
            group[i] = divisor;
        }
    }
}

static int choose_group(struct compute_run_call *call, const uint64_t axes[3], uint32_t dimensions,
                        uint64_t group[3], struct acre_error *err) {
    static const uint64_t chosen[3][3] = {{256, 1, 1}, {16, 16, 1}, {8, 8, 4}};
    uint32_t count = 0, only[3] = {0};
    if (call->options->group != NULL) {
        return parse_axes("group", call->options->group, 65536, group, &count, err);
    }
    int r = acre_kernel_group(call->kernel, only, err);
    call->has_only_group = only[0] > 0;
    if (r < 0 || call->has_only_group) {
        for (uint32_t i = 0; i < 3 && r == 0; i++) {
            group[i] = only[i];
        }
        return r;
    }
    memcpy(group, chosen[dimensions - 1], sizeof(chosen[0]));
    uint64_t most = target_device(&call->target)->group_max;
    for (uint32_t i = 3; i-- > 0;) {
        while (group[i] > 1 && group[0] * group[1] * group[2] > most) {
            group[i] /= 2;
        }
    }
    if (call->options->grid == NULL) {
        choose_divisors(axes, group);
    }
    return 0;
}

/* What is not as one would have it. */
static void note_grid(struct compute_run_call *call, const uint64_t axes[3],
                      const uint64_t group[3]) {
    uint64_t wanted = axes[0] * axes[1] * axes[2];
    uint64_t together = group[0] * group[1] * group[2];
    uint64_t run = 1;
    bool is_over = false;
    for (uint32_t i = 0; i < 3; i++) {
        run *= (axes[i] + group[i] - 1) / group[i] * group[i];
        is_over |= axes[i] % group[i] != 0;
    }
    if (is_over) {
        snprintf(call->note, sizeof(call->note),
                 "whole groups run %" PRIu64 " items for %" PRIu64
                 ": the kernel must skip those past "
                 "the end, as in 'if (i < n)'",
                 run, wanted);
    } else if (call->options->group == NULL && !call->has_only_group && together < GROUP_SLOW &&
               wanted > GROUP_SLOW &&
               !target_is_cpu(&call->target)) { /* which makes one loop of them */
        snprintf(call->note, sizeof(call->note),
                 "groups of %" PRIu64
                 " are slow, but none larger divides the items; --group 256 is "
                 "faster if the kernel skips items past the end, as in 'if (i < n)'",
                 together);
    }
}

static int choose_grid(struct compute_run_call *call, struct acre_error *err) {
    const struct compute_run_options *options = call->options;
    uint64_t axes[3] = {1, 1, 1}, group[3] = {1, 1, 1};
    uint32_t dimensions = 1;
    int r;
    if (options->grid != NULL && options->items != NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "--grid and --items exclude each other; give only one");
    }
    if (options->grid != NULL) {
        r = parse_axes("grid", options->grid, GROUPS_MAX, axes, &dimensions, err);
    } else if (options->items != NULL) {
        r = parse_axes("items", options->items, UINT64_C(1) << 40, axes, &dimensions, err);
    } else {
        r = largest_array(call, &axes[0], err);
    }
    r = r == 0 ? choose_group(call, axes, dimensions, group, err) : r;
    for (uint32_t i = 0; i < 3 && r == 0; i++) {
        uint64_t groups = options->grid != NULL ? axes[i] : (axes[i] + group[i] - 1) / group[i];
        if (groups > GROUPS_MAX) {
            return acre_fail(err, ACRE_EINVALID,
                             "--items: %" PRIu64 " items in groups of %" PRIu64
                             " make too many groups; accepted: at most %d",
                             axes[i], group[i], GROUPS_MAX);
        }
        call->grid.groups[i] = (uint32_t)groups;
        call->grid.group[i] = (uint32_t)group[i];
    }
    if (r == 0 && options->grid == NULL) {
        note_grid(call, axes, group);
    }
    return r;
}

/* --- times ---------------------------------------------------------------------------------- */

/* Add up what was measured since the last look. */
static int take_times(struct compute_run_call *call, struct acre_error *err) {
    struct acre_timing timings[TIMINGS_MAX];
    uint32_t count = 0;
    if (!call->is_timed) {
        return acre_stream_sync(call->target.stream, ACRE_FOREVER, err);
    }
    int r = acre_stream_timings(call->target.stream, timings, ACRE_COUNT(timings), &count, err);
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct moved *moved = strcmp(timings[i].name, "copy in") == 0    ? &call->in
                              : strcmp(timings[i].name, "copy out") == 0 ? &call->out
                                                                         : NULL;
        if (moved != NULL) {
            moved->bytes += timings[i].bytes;
            moved->us += timings[i].running_us;
        } else if (strcmp(timings[i].name, call->bindings.kernel) == 0 &&
                   call->launches < call->options->repeat) {
            call->kernel_us[call->launches++] = timings[i].running_us;
        }
    }
    return r;
}

static int launch_all(struct compute_run_call *call, struct progress *progress,
                      struct acre_error *err) {
    struct acre_arg args[ACRE_BINDINGS_MAX];
    int r = 0;
    for (uint32_t i = 0; i < call->bindings.count; i++) {
        args[i] = call->bindings.all[i].arg;
    }
    for (uint64_t i = 0; i < call->options->repeat && r == 0; i++) {
        r = acre_launch(call->target.stream, call->kernel, call->grid, args, call->bindings.count,
                        err);
        if (r == 0 && (i + 1) % LAUNCHES_AT_ONCE == 0) {
            r = take_times(call, err);
            progress_show(progress, "%" PRIu64 " of %" PRIu64 " launches", i + 1,
                          call->options->repeat);
        }
    }
    r = r == 0 ? take_times(call, err) : r;
    figures_sort(call->kernel_us, call->launches);
    return r;
}

static int work(struct compute_run_call *call, struct progress *progress, struct acre_error *err) {
    struct acre_stream *stream = call->target.stream;
    int r = acre_stream_profile(stream, true, err);
    call->is_timed = r == 0;
    r = r == ACRE_EUNSUPPORTED ? 0 : r;
    progress_show(progress, "copying to the device");
    r = r == 0 ? bindings_load(&call->bindings, &call->target, err) : r;
    r = r == 0 ? take_times(call, err) : r;
    progress_stage(progress, "running the kernel");
    r = r == 0 ? launch_all(call, progress, err) : r;
    r = r == 0 ? bindings_fetch(&call->bindings, &call->target, err) : r;
    r = r == 0 ? take_times(call, err) : r;
    r = r == 0 ? bindings_check(&call->bindings, &call->target, err) : r;
    return r == 0 ? bindings_write(&call->bindings, err) : r;
}

/* --- results -------------------------------------------------------------------------------- */

struct summary {
    uint64_t min, max; /* which of them, of those that are numbers; all are none: any */
    double mean;
    uint64_t nans;
};

static struct summary sum_up(const struct binding *binding) {
    const struct npy *npy = &binding->npy;
    struct summary summary = {0};
    double sum = 0;
    bool has_any = false;
    for (uint64_t i = 0; i < npy->count; i++) {
        double value = npy_value(npy, binding->data, i);
        if (isnan(value)) {
            summary.nans++;
            continue;
        }
        sum += value;
        bool is_less = !has_any || npy_is_less(npy, binding->data, i, summary.min);
        bool is_more = !has_any || npy_is_less(npy, binding->data, summary.max, i);
        summary.min = is_less ? i : summary.min;
        summary.max = is_more ? i : summary.max;
        has_any = true;
    }
    summary.mean = sum / (double)(npy->count - summary.nans);
    return summary;
}

static bool is_output(const struct binding *binding) {
    return binding->device.id != 0 && !binding->parameter.is_const;
}

static char *show_value(const struct binding *binding, uint64_t index, char *text, size_t size) {
    return npy_show(&binding->npy, binding->data, index, 6, text, size);
}

static void show_first(const struct binding *binding, char *text, size_t size) {
    size_t length = 0;
    uint64_t count = ACRE_MIN(binding->npy.count, (uint64_t)FIRST_MAX);
    for (uint64_t i = 0; i < count && length < size; i++) {
        char one[ACRE_FIGURE_MAX];
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "",
                                   show_value(binding, i, one, sizeof(one)));
    }
    if (count < binding->npy.count && length < size) {
        snprintf(text + length, size - length, " ...");
    }
}

static void show_outputs(const struct compute_run_call *call, const struct show *view) {
    static const struct table_column columns[] = {
        {.heading = "ARRAY"},
        {.heading = "TYPE"},
        {.heading = "MIN", .right = true},
        {.heading = "MAX", .right = true},
        {.heading = "MEAN", .right = true},
        {.heading = "NAN", .right = true},
        {.heading = "FIRST VALUES", .shrink_to = 20, .cut_end = true},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    for (uint32_t i = 0; i < call->bindings.count; i++) {
        const struct binding *binding = &call->bindings.all[i];
        char text[256], name[SHOWN_MAX];
        if (!is_output(binding) || binding->out != NULL) {
            continue;
        }
        struct summary summary = sum_up(binding);
        table_row(table);
        table_cell(table, ACRE_COLOUR_BOLD, binding_name(&call->bindings, i, name, sizeof(name)));
        table_cell(table, ACRE_COLOUR_NONE, npy_format(&binding->npy, text, sizeof(text)));
        show_cell(table, show_value(binding, summary.min, text, sizeof(text)));
        show_cell(table, show_value(binding, summary.max, text, sizeof(text)));
        snprintf(text, sizeof(text), "%.6g", summary.mean);
        show_cell(table, text);
        snprintf(text, sizeof(text), summary.nans > 0 ? "%" PRIu64 : "-", summary.nans);
        show_cell(table, text);
        show_first(binding, text, sizeof(text));
        show_cell(table, text);
    }
    if (table_rows(table) > 0) {
        acre_buf_putc(view->out, '\n');
        table_print(table, &view->term, view->out);
    }
    table_destroy(table);
}

static void show_moved(const struct show *view, const char *label, const struct moved *moved) {
    char text[128], bytes[ACRE_FIGURE_MAX], us[ACRE_FIGURE_MAX];
    if (moved->bytes == 0) {
        return;
    }
    int length =
        snprintf(text, sizeof(text), "%s in %s", figure_bytes(moved->bytes, bytes, sizeof(bytes)),
                 figure_us(moved->us, us, sizeof(us)));
    if (moved->bytes >= RATE_MIN_BYTES && moved->us > 0) {
        snprintf(text + length, sizeof(text) - (size_t)length, " (%.1f GB/s)",
                 (double)moved->bytes / moved->us / 1e3);
    }
    show_fact(view, label, text);
}

static void show_times(const struct compute_run_call *call, const struct show *view) {
    char text[256], a[ACRE_FIGURE_MAX], b[ACRE_FIGURE_MAX], c[ACRE_FIGURE_MAX];
    snprintf(text, sizeof(text), "%s, %s%s%s", figure_us(call->build.build_ms * 1e3, a, sizeof(a)),
             call->build.was_cached ? "from the cache" : "compiled",
             call->build.cache[0] != '\0' ? "; cache: " : "", call->build.cache);
    show_fact(view, "build", text);
    show_moved(view, "copy in", &call->in);
    if (call->launches == 1) {
        show_fact(view, "run", figure_us(call->kernel_us[0], a, sizeof(a)));
    } else if (call->launches > 1) {
        const double *us = call->kernel_us;
        snprintf(text, sizeof(text), "%s (median of %" PRIu64 "; %s to %s)",
                 figure_us(us[call->launches / 2], a, sizeof(a)), call->launches,
                 figure_us(us[0], b, sizeof(b)), figure_us(us[call->launches - 1], c, sizeof(c)));
        show_fact(view, "run", text);
    } else {
        show_fact(view, "run", "this device does not measure times");
    }
    show_moved(view, "copy out", &call->out);
}

/* "8 x 4": the axes up to the last that is not 1. */
static char *show_axes(const uint32_t axes[3], char *text, size_t size) {
    int length = snprintf(text, size, "%u", axes[0]);
    for (uint32_t i = 1; i < 3 && (axes[1] > 1 || axes[2] > 1) && (i == 1 || axes[2] > 1); i++) {
        length += snprintf(text + length, size - (size_t)length, " x %u", axes[i]);
    }
    return text;
}

static void print_text(const struct compute_run_call *call, struct acre_buf *out) {
    struct show view = {.term = term_detect(STDOUT_FILENO), .out = out};
    char text[4 * SHOWN_MAX], name[SHOWN_MAX];
    char groups[ACRE_FIGURE_MAX], group[ACRE_FIGURE_MAX];
    show_fact(&view, "kernel", call->bindings.kernel);
    snprintf(text, sizeof(text), "%s, %s", target_name(&call->target, name, sizeof(name)),
             target_device(&call->target)->name);
    show_fact(&view, "device", text);
    show_axes(call->grid.groups, groups, sizeof(groups));
    show_axes(call->grid.group, group, sizeof(group));
    snprintf(text, sizeof(text), "%s group%s of %s%s%s", groups,
             strcmp(groups, "1") == 0 ? "" : "s", group, call->why_grid[0] != '\0' ? ": " : "",
             call->why_grid);
    show_fact(&view, "grid", text);
    show_times(call, &view);
    show_outputs(call, &view);
    for (uint32_t i = 0; i < call->bindings.count; i++) {
        const struct binding *binding = &call->bindings.all[i];
        if (binding->out != NULL) {
            npy_format(&binding->npy, text, ACRE_NPY_SHAPE_MAX);
            char line[6 * SHOWN_MAX], shown[2 * SHOWN_MAX];
            snprintf(line, sizeof(line), "%s as %s to %s",
                     binding_name(&call->bindings, i, name, sizeof(name)), text,
                     acre_str_show_text(acre_str_from(binding->out + 1), shown, sizeof(shown)));
            show_fact(&view, "written", line);
        }
    }
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Whole numbers to the last digit. */
static void put_value(struct acre_json *json, const struct binding *binding, uint64_t index) {
    char text[ACRE_FIGURE_MAX];
    if (isfinite(npy_value(&binding->npy, binding->data, index))) {
        npy_show(&binding->npy, binding->data, index, 17, text, sizeof(text));
        acre_json_raw(json, acre_str_from(text));
    } else {
        acre_json_null(json);
    }
}

static void put_mean(struct acre_json *json, double mean) {
    char text[ACRE_FIGURE_MAX];
    snprintf(text, sizeof(text), isfinite(mean) ? "%.17g" : "null", mean);
    acre_json_key(json, "mean");
    acre_json_raw(json, acre_str_from(text));
}

static void put_axes(struct acre_json *json, const char *key, const uint32_t axes[3]) {
    acre_json_key(json, key);
    acre_json_array(json);
    for (size_t i = 0; i < 3; i++) {
        acre_json_u64(json, axes[i]);
    }
    acre_json_array_end(json);
}

static void put_moved(struct acre_json *json, const char *key, const struct moved *moved) {
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_u64(json, "bytes", moved->bytes);
    acre_json_put_double(json, "us", moved->us, 3);
    acre_json_object_end(json);
}

static void put_output(struct acre_json *json, const struct compute_run_call *call,
                       uint32_t index) {
    const struct binding *binding = &call->bindings.all[index];
    struct summary summary = sum_up(binding);
    char name[SHOWN_MAX];
    acre_json_object(json);
    acre_json_put_string(json, "name", binding_name(&call->bindings, index, name, sizeof(name)));
    acre_json_put_string(json, "type", npy_type_name(binding->npy.type));
    acre_json_key(json, "shape");
    acre_json_array(json);
    for (uint32_t i = 0; i < binding->npy.dimensions; i++) {
        acre_json_u64(json, binding->npy.shape[i]);
    }
    acre_json_array_end(json);
    acre_json_key(json, "first");
    acre_json_array(json);
    for (uint64_t i = 0; i < ACRE_MIN(binding->npy.count, (uint64_t)FIRST_MAX); i++) {
        put_value(json, binding, i);
    }
    acre_json_array_end(json);
    acre_json_key(json, "min");
    put_value(json, binding, summary.min);
    acre_json_key(json, "max");
    put_value(json, binding, summary.max);
    put_mean(json, summary.mean);
    acre_json_put_u64(json, "nan", summary.nans);
    acre_json_put_string(json, "file", binding->out != NULL ? binding->out + 1 : NULL);
    acre_json_object_end(json);
}

static void print_json(const struct compute_run_call *call, struct acre_buf *out) {
    struct acre_json json;
    char name[SHOWN_MAX];
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_put_string(&json, "kernel", call->bindings.kernel);
    acre_json_put_string(&json, "device", target_name(&call->target, name, sizeof(name)));
    acre_json_put_string(&json, "name", target_device(&call->target)->name);
    put_axes(&json, "groups", call->grid.groups);
    put_axes(&json, "group", call->grid.group);
    acre_json_put_double(&json, "build_ms", call->build.build_ms, 3);
    acre_json_put_bool(&json, "build_was_cached", call->build.was_cached);
    acre_json_put_string(&json, "cache", call->build.cache[0] != '\0' ? call->build.cache : NULL);
    put_moved(&json, "copy_in", &call->in);
    put_moved(&json, "copy_out", &call->out);
    acre_json_key(&json, "run");
    acre_json_object(&json);
    const double *us = call->kernel_us;
    uint64_t launches = call->launches;
    acre_json_put_u64(&json, "launches", call->options->repeat);
    acre_json_put_double(&json, "min_us", launches > 0 ? us[0] : (double)NAN, 3);
    acre_json_put_double(&json, "p50_us", launches > 0 ? us[launches / 2] : (double)NAN, 3);
    acre_json_put_double(&json, "max_us", launches > 0 ? us[launches - 1] : (double)NAN, 3);
    acre_json_object_end(&json);
    acre_json_key(&json, "outputs");
    acre_json_array(&json);
    for (uint32_t i = 0; i < call->bindings.count; i++) {
        if (is_output(&call->bindings.all[i])) {
            put_output(&json, call, i);
        }
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

/* --- the command ---------------------------------------------------------------------------- */

static int prepare(struct compute_run_call *call, const char *path, struct acre_buf *text,
                   struct progress *progress, struct acre_error *err) {
    struct acre_source source;
    struct acre_program *program = NULL;
    const struct acre_context_options context = {.isolation = ACRE_CONTEXT_ISOLATION_PROCESS,
                                                 .kernel_limit_ms =
                                                     (uint32_t)call->options->limit_ms,
                                                 .debug = true};
    int r = source_read(path, text, &source, err);
    source.options = call->options->compiler;
    r = r == 0 ? target_open(call->options->device, acre_language_backend(source.language),
                             &context, &call->target, err)
               : r;
    r = r == 0 ? source_build(&call->target, &source, progress, &program, &call->build, err) : r;
    r = r == 0 ? source_kernel(program, call->options->kernel, &call->kernel, err) : r;
    r = r == 0 ? bindings_init(&call->bindings, call->kernel, &call->options->args,
                               &call->options->outs, err)
               : r;
    return r == 0 ? choose_grid(call, err) : r;
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    struct compute_run_call *call = acre_calloc(1, sizeof(*call));
    struct acre_error err = {0};
    struct acre_buf out, text;
    struct progress progress;
    call->options = target;
    call->kernel_us = acre_calloc(call->options->repeat, sizeof(*call->kernel_us));
    acre_buf_init(&out, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    acre_buf_init(&text, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    progress_begin(&progress, "run", call->options->quiet);
    progress_show(&progress, "compiling");
    int r = prepare(call, arguments[0], &text, &progress, &err);
    r = r == 0 ? work(call, &progress, &err) : r;
    progress_end(&progress);
    if (call->note[0] != '\0' && r != ACRE_EINVALID && !call->options->quiet) {
        fprintf(stderr, "acre: note: %s\n", call->note);
    }
    if (r == 0) {
        (call->options->json ? print_json : print_text)(call, &out);
    }
    int code = r < 0 ? cli_fail(&err) : call->options->quiet ? 0 : cli_write(&out);
    bindings_finish(&call->bindings);
    acre_build_report_finish(&call->build);
    target_close(&call->target);
    acre_buf_finish(&out);
    acre_buf_finish(&text);
    free(call->kernel_us);
    free(call);
    return code;
}

#define AT(member) offsetof(struct compute_run_options, member)
static const struct acre_opt rows[] = {
    {.name = "kernel",
     .letter = 'k',
     .kind = ACRE_OPT_STRING,
     .offset = AT(kernel),
     .value = "NAME",
     .help = "the kernel, if the file has several"},
    {.name = "device",
     .letter = 'd',
     .kind = ACRE_OPT_STRING,
     .offset = AT(device),
     .value = "DEVICE",
     .help = "cuda:0, opencl, cpu, or a number from 'acre compute devices' (default: the first)",
     .check = device_check},
    {.name = "arg",
     .letter = 'a',
     .kind = ACRE_OPT_LIST,
     .offset = AT(args),
     .value = "NAME=VALUE",
     .help = "a parameter: x=@FILE.npy, y=float32[1000] (zeros), n=1000; repeatable"},
    {.name = "out",
     .letter = 'o',
     .kind = ACRE_OPT_LIST,
     .offset = AT(outs),
     .value = "NAME=@FILE.npy",
     .help = "write this array to a file afterwards; repeatable"},
    {.name = "items",
     .kind = ACRE_OPT_STRING,
     .offset = AT(items),
     .value = "N[,N,N]",
     .help = "number of work items (default: the length of the largest array)"},
    {.name = "grid",
     .kind = ACRE_OPT_STRING,
     .offset = AT(grid),
     .value = "N[,N,N]",
     .help = "number of groups, instead of --items"},
    {.name = "group",
     .kind = ACRE_OPT_STRING,
     .offset = AT(group),
     .value = "N[,N,N]",
     .help = "work items per group (default: at most 256, or 16,16, or 8,8,4)"},
    {.name = "repeat",
     .kind = ACRE_OPT_COUNT,
     .offset = AT(repeat),
     .value = "N",
     .help = "launch it N times and report the times; each launch sees the results of the last",
     .min = 1,
     .max = REPEAT_MAX},
    {.name = "limit",
     .kind = ACRE_OPT_DURATION,
     .offset = AT(limit_ms),
     .value = "TIME",
     .help = "stop if a launch or a copy takes longer than this, such as 10s (default: never)",
     .min = 10,
     .max = 24 * 3600 * 1000},
    {.name = "options",
     .kind = ACRE_OPT_STRING,
     .offset = AT(compiler),
     .value = "TEXT",
     .help = "compiler options, as in --options=-DSIZE=8"},
    {.name = "json", .kind = ACRE_OPT_FLAG, .offset = AT(json), .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(quiet),
     .help = "print only errors"},
};

static const struct compute_run_options defaults = {.repeat = 1};

const struct acre_command command_compute_run = {
    .name = "compute run",
    .summary = "run a kernel on arrays from .npy files",
    .usage = "acre compute run KERNEL.{acl,cu,hip,cl} --arg NAME=VALUE... [options]",
    .details =
        "Portable kernels (.acl) run on every device; CUDA, HIP and OpenCL kernels run on their\n"
        "own. Give each parameter with --arg, by its name or its number from 1. Arrays are .npy\n"
        "files (as numpy.save writes them: C order, little endian) or zeros; vectors and structs\n"
        "are files of the same size; for local memory (.cl) give the number of bytes. Arrays\n"
        "that the kernel may write (not const) are summarized at the end, unless --out writes\n"
        "them to a file. Times are measured by the device. Writes just outside an array are\n"
        "reported, and then no file is written.\n"
        "\n"
        "By default the group size divides the number of items, so that exactly that many run.\n"
        "If --group, or a size fixed in the kernel's source, does not divide it, whole groups\n"
        "run and a note says so: the kernel must then skip the items past the end.\n"
        "\n"
        "Examples:\n"
        "  acre compute run examples/saxpy.acl --device cpu --arg n=256 --arg a=2 \\\n"
        "      --arg x=@examples/ramp.npy --arg y=float32[256]\n"
        "  acre compute run examples/saxpy.acl --device cpu --arg n=256 --arg a=2 \\\n"
        "      --arg x=@examples/ramp.npy --arg y=@examples/ramp.npy --out y=@y.npy\n",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = "files",
    .run = run,
    .options_size = sizeof(struct compute_run_options),
    .defaults = &defaults,
};
