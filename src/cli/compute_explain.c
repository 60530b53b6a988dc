/* compute_explain.c - `acre compute explain`: shows what automatic choice (acre/auto.h) has learned
 * about a kernel on this machine, or learns it now.
 *
 * Results are kept per source, kernel, arrays and devices, so the command names all of them as a
 * calling program would. Learning runs every way at every power of two, as often as the choice
 * itself would try it; a slow way runs only often enough to discount its first run, which has to
 * prepare graphs and memory. */
#include "cli/cli.h"

#include "cli/compute_arg.h"
#include "core/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LEARN_ITEMS_MAX = 1 << 24,
    LEARN_TRIES = 12, /* a way has at most three variants, each tried three times */
    LEARN_TRIES_MIN = 4,
    LEARN_MS = 100, /* after which those are enough */
    COSTS_MAX = 64, /* octaves of items; there are 32 */
    SHOWN_MAX = 96,
};

struct compute_explain_options {
    const char *kernel, *device;
    struct acre_opt_list args, inouts;
    bool learn;
    bool json;
    bool quiet;
};

struct compute_question {
    const struct compute_explain_options *options;
    struct target target;
    struct acre_auto *automatic;
    struct progress progress;
    char kernel[128];
    struct acre_parameter parameters[ACRE_BINDINGS_MAX];
    uint32_t parameter_count;
    struct acre_auto_array arrays[ACRE_BINDINGS_MAX];
    uint32_t array_count;
    struct acre_arg values[ACRE_BINDINGS_MAX];
    uint32_t value_count;
    struct acre_auto_cost costs[COSTS_MAX];
    uint32_t cost_count;
};

/* --- what the kernel is given --------------------------------------------------------------- */

static bool is_inout(const struct compute_explain_options *options, const char *name) {
    for (uint32_t i = 0; i < options->inouts.count; i++) {
        if (strcmp(options->inouts.items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int check_inouts(const struct compute_question *question, struct acre_error *err) {
    for (uint32_t i = 0; i < question->options->inouts.count; i++) {
        const char *name = question->options->inouts.items[i];
        char shown[SHOWN_MAX];
        uint32_t at = 0;
        while (at < question->array_count && (strcmp(question->parameters[at].name, name) != 0 ||
                                              question->parameters[at].is_const)) {
            at++;
        }
        if (at == question->array_count) {
            return acre_fail(err, ACRE_EINVALID,
                             "--inout: '%s' is not an array that kernel '%s' can write; accepted: "
                             "its arrays that "
                             "are not const",
                             acre_str_show(acre_str_from(name), shown, sizeof(shown)),
                             question->kernel);
        }
    }
    return 0;
}

/* What --arg says of a parameter; NULL: it is about another one. */
static const char *value_in(const char *arg, const struct acre_parameter *parameter) {
    size_t length = strlen(parameter->name);
    bool is_it = strncmp(arg, parameter->name, length) == 0 && arg[length] == '=';
    return is_it ? arg + length + 1 : NULL;
}

/* The value of a parameter: what --arg says, or 1. */
static int take_value(const struct compute_question *question,
                      const struct acre_parameter *parameter, struct acre_arg *ret_arg,
                      struct acre_error *err) {
    const struct acre_opt_list *args = &question->options->args;
    char what[2 * SHOWN_MAX];
    const char *text = "1";
    for (uint32_t i = 0; i < args->count; i++) {
        const char *value = value_in(args->items[i], parameter);
        text = value != NULL ? value : text;
    }
    snprintf(what, sizeof(what), "--arg %s", parameter->name);
    return binding_number(what, parameter, text, ret_arg, err);
}

static int check_args(const struct compute_question *question, struct acre_error *err) {
    for (uint32_t i = 0; i < question->options->args.count; i++) {
        const char *text = question->options->args.items[i];
        char shown[SHOWN_MAX];
        bool is_known = false;
        for (uint32_t j = 0; j < question->value_count && !is_known; j++) {
            is_known = value_in(text, &question->parameters[question->array_count + j]) != NULL;
        }
        if (!is_known) {
            return acre_fail(err, ACRE_EINVALID,
                             "--arg: '%s'; accepted: NAME=NUMBER for a value of kernel '%s' "
                             "(arrays and n are set by the command)",
                             acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                             question->kernel);
        }
    }
    return 0;
}

/* f(arrays..., values..., uint n) */
static int take_parameters(struct compute_question *question, const struct acre_kernel *kernel,
                           struct acre_error *err) {
    struct acre_parameter *all = question->parameters;
    uint32_t count = 0;
    snprintf(question->kernel, sizeof(question->kernel), "%s", acre_kernel_name(kernel));
    while (count < ACRE_BINDINGS_MAX && acre_kernel_parameter(kernel, count, &all[count])) {
        count++;
    }
    while (question->array_count < count &&
           all[question->array_count].kind == ACRE_PARAMETER_BUFFER) {
        const struct acre_parameter *array = &all[question->array_count];
        if (array->bytes == 0) {
            return acre_fail(err, ACRE_EINVALID,
                             "kernel '%s': array '%s' is '%s', whose items have no known size; "
                             "accepted: arrays of numbers and vectors",
                             question->kernel, array->name, array->type);
        }
        bool is_read = array->is_const || is_inout(question->options, array->name);
        question->arrays[question->array_count++] =
            (struct acre_auto_array){.in_bytes = is_read ? array->bytes : 0,
                                     .out_bytes = array->is_const ? 0 : array->bytes};
    }
    uint32_t rest = count - question->array_count;
    if (question->array_count == 0 || rest == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "kernel '%s' does not fit automatic choice; accepted: kernels "
                         "f(arrays..., values..., uint n)",
                         question->kernel);
    }
    question->parameter_count = count;
    question->value_count = rest - 1;
    int r = check_inouts(question, err);
    r = r == 0 ? check_args(question, err) : r;
    for (uint32_t i = 0; i < question->value_count && r == 0; i++) {
        r = take_value(question, &all[question->array_count + i], &question->values[i], err);
    }
    return r;
}

static int prepare(struct compute_question *question, const struct acre_source *source,
                   struct acre_error *err) {
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    struct acre_context *cpu = NULL;
    bool is_cpu = target_is_cpu(&question->target);
    int r = source_build(&question->target, source, &question->progress, &program, NULL, err);
    r = r == 0 ? source_kernel(program, question->options->kernel, &kernel, err) : r;
    r = r == 0 ? take_parameters(question, kernel, err) : r;
    r = r == 0 && !is_cpu ? target_open_cpu(&question->target, &cpu, err) : r;
    if (r < 0) {
        return r;
    }
    const struct acre_auto_options options = {
        .device = is_cpu ? NULL : question->target.context,
        .cpu = is_cpu ? question->target.context : cpu,
        .source = source,
        .kernel = question->kernel,
        .arrays = question->arrays,
        .array_count = question->array_count,
    };
    return acre_auto_create(&options, &question->automatic, err);
}

/* --- learning ------------------------------------------------------------------------------- */

static int learn_way(struct compute_question *question, enum acre_way way, uint32_t items,
                     void *const *arrays, struct acre_error *err) {
    struct acre_clock clock = acre_clock_real();
    uint64_t end_ns = acre_clock_monotonic_ns(&clock) + LEARN_MS * UINT64_C(1000000);
    int r = 0;
    for (uint32_t i = 0; i < LEARN_TRIES && r == 0; i++) {
        r = acre_auto_run_by(question->automatic, way, items, arrays, question->values,
                             question->value_count, err);
        if (i + 1 >= LEARN_TRIES_MIN && acre_clock_monotonic_ns(&clock) > end_ns) {
            break;
        }
    }
    return r == ACRE_EUNSUPPORTED ? 0 : r; /* the reason is in the report */
}

static int learn_all(struct compute_question *question, void *const *arrays,
                     struct acre_error *err) {
    int r = 0;
    for (uint32_t items = 1; items <= LEARN_ITEMS_MAX && r == 0; items *= 2) {
        for (uint32_t way = 0; way < ACRE_WAY_COUNT && r == 0; way++) {
            progress_show(&question->progress, "%u items, %s", items, acre_way_name(way));
            r = learn_way(question, (enum acre_way)way, items, arrays, err);
        }
    }
    return r;
}

/* Memory as programs have it, all pages there. */
static int learn(struct compute_question *question, struct acre_error *err) {
    void *arrays[ACRE_BINDINGS_MAX] = {NULL};
    size_t bytes[ACRE_BINDINGS_MAX];
    int r = 0;
    uint32_t count = 0;
    while (count < question->array_count && r == 0) {
        uint64_t item = question->parameters[count].bytes;
        bytes[count] = item * LEARN_ITEMS_MAX;
        arrays[count] = mmap(NULL, bytes[count], PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arrays[count] == MAP_FAILED) {
            r = acre_fail(err, ACRE_ENOMEM, "--learn: %zu bytes for array '%s'", bytes[count],
                          question->parameters[count].name);
            break;
        }
        memset(arrays[count], 0, bytes[count]);
        count++;
    }
    r = r == 0 ? learn_all(question, arrays, err) : r;
    for (uint32_t i = 0; i < count; i++) {
        munmap(arrays[i], bytes[i]);
    }
    return r;
}

/* --- showing -------------------------------------------------------------------------------- */

static void print_json(const struct compute_question *question, struct acre_buf *out) {
    struct acre_json json;
    char name[SHOWN_MAX];
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_put_string(&json, "kernel", question->kernel);
    acre_json_put_string(&json, "device", target_name(&question->target, name, sizeof(name)));
    const char *note = acre_auto_note(question->automatic);
    acre_json_put_string(&json, "note", note[0] != '\0' ? note : NULL);
    acre_json_key(&json, "sizes");
    acre_json_array(&json);
    for (uint32_t i = 0; i < question->cost_count; i++) {
        const struct acre_auto_cost *cost = &question->costs[i];
        acre_json_object(&json);
        acre_json_put_u64(&json, "items", cost->items);
        acre_json_put_string(&json, "chosen", acre_way_name(cost->chosen));
        acre_json_key(&json, "ways");
        acre_json_object(&json);
        for (uint32_t way = 0; way < ACRE_WAY_COUNT; way++) {
            acre_json_key(&json, acre_way_name((enum acre_way)way));
            acre_json_object(&json);
            acre_json_put_double(&json, "us", cost->us[way] < 0 ? (double)NAN : cost->us[way], 3);
            acre_json_put_u64(&json, "calls", cost->calls[way]);
            acre_json_put_string(&json, "reason",
                                 cost->reason[way][0] != '\0' ? cost->reason[way] : NULL);
            acre_json_object_end(&json);
        }
        acre_json_object_end(&json);
        acre_json_object_end(&json);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static void add_row(struct text_table *table, const struct acre_auto_cost *cost) {
    char text[ACRE_FIGURE_MAX], marked[ACRE_FIGURE_MAX + 2];
    table_row(table);
    snprintf(text, sizeof(text), "%u", cost->items);
    table_cell(table, ACRE_COLOUR_NONE, text);
    uint64_t calls = 0;
    for (uint32_t way = 0; way < ACRE_WAY_COUNT; way++) {
        bool is_chosen = (enum acre_way)way == cost->chosen;
        calls += cost->calls[way];
        if (cost->us[way] < 0) {
            table_cell(table, ACRE_COLOUR_DIM, "-");
            continue;
        }
        snprintf(marked, sizeof(marked), "%s%s", is_chosen ? "* " : "",
                 figure_us(cost->us[way], text, sizeof(text)));
        table_cell(table, is_chosen ? ACRE_COLOUR_GREEN : ACRE_COLOUR_NONE, marked);
    }
    table_cell(table, ACRE_COLOUR_BOLD, acre_way_name(cost->chosen));
    snprintf(text, sizeof(text), "%" PRIu64, calls);
    table_cell(table, ACRE_COLOUR_NONE, text);
}

/* But for the numbers in them: "64 items; accepted: at most 32". */
static bool is_same_reason(const char *a, const char *b) {
    for (;;) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
        a++;
        b++;
    }
}

/* Each reason once, with the size it begins at. */
static void print_reasons(const struct compute_question *question, const struct term *term,
                          struct acre_buf *out) {
    const char *before = "\n";
    for (uint32_t way = 0; way < ACRE_WAY_COUNT; way++) {
        const char *last = "";
        for (uint32_t i = 0; i < question->cost_count; i++) {
            const char *reason = question->costs[i].reason[way];
            if (reason[0] != '\0' && !is_same_reason(reason, last)) {
                char line[256];
                snprintf(line, sizeof(line), i == 0 ? "%s" : "%s (from %u items on)", reason,
                         question->costs[i].items);
                figure_absent(term, out, &before, 8, acre_way_name((enum acre_way)way), line);
            }
            last = reason;
        }
    }
}

static void print_text(const struct compute_question *question, struct acre_buf *out) {
    static const struct table_column columns[] = {
        {.heading = "ITEMS", .right = true},
        {.heading = "RING", .right = true},
        {.heading = "GRAPH", .right = true},
        {.heading = "LAUNCH", .right = true},
        {.heading = "CPU", .right = true},
        {.heading = "CHOSEN"},
        {.heading = "CALLS", .right = true, .rank = 7},
    };
    _Static_assert(ACRE_COUNT(columns) == ACRE_WAY_COUNT + 3, "one column for each way");
    struct term term = term_detect(STDOUT_FILENO);
    char name[SHOWN_MAX];
    acre_buf_printf(out, "kernel '%s' on %s, %s\n", question->kernel,
                    target_name(&question->target, name, sizeof(name)),
                    target_device(&question->target)->name);
    const char *note = acre_auto_note(question->automatic);
    if (note[0] != '\0') {
        char line[SHOWN_MAX + ACRE_ERROR_TEXT_MAX];
        snprintf(line, sizeof(line), "Earlier measurements are ignored: %s", note);
        term_wrap(&term, out, 0, line);
    }
    if (question->cost_count == 0) {
        term_wrap(&term, out, 0,
                  "No measurements yet: programs take them as they call the kernel; --learn "
                  "takes them now.");
        return;
    }
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    for (uint32_t i = 0; i < question->cost_count; i++) {
        add_row(table, &question->costs[i]);
    }
    acre_buf_putc(out, '\n');
    table_print(table, &term, out);
    table_destroy(table);
    print_reasons(question, &term, out);
}

/* --- the command ---------------------------------------------------------------------------- */

static int answer(struct compute_question *question, const char *path, struct acre_buf *text,
                  struct acre_error *err) {
    struct acre_source source;
    int r = source_read(path, text, &source, err);
    if (r == 0 && source.language != ACRE_LANGUAGE_PORTABLE) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: automatic choice is for portable kernels only; accepted: FILE.acl",
                         path);
    }
    r = r == 0 ? target_open(question->options->device, NULL, NULL, &question->target, err) : r;
    r = r == 0 ? prepare(question, &source, err) : r;
    r = r == 0 && question->options->learn ? learn(question, err) : r;
    if (r == 0) {
        question->cost_count = acre_auto_costs(question->automatic, question->costs, COSTS_MAX);
    }
    return r;
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    struct compute_question *question = acre_calloc(1, sizeof(*question));
    struct acre_error err = {0};
    struct acre_buf out, text;
    question->options = target;
    acre_buf_init(&out, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    acre_buf_init(&text, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    progress_begin(&question->progress, "explain", question->options->quiet);
    progress_show(&question->progress, "compiling");
    int r = answer(question, arguments[0], &text, &err);
    progress_end(&question->progress);
    if (r == 0) {
        (question->options->json ? print_json : print_text)(question, &out);
    }
    int code = r < 0 ? cli_fail(&err) : cli_write(&out);
    acre_auto_destroy(question->automatic);
    target_close(&question->target);
    acre_buf_finish(&out);
    acre_buf_finish(&text);
    free(question);
    return code;
}

#define AT(member) offsetof(struct compute_explain_options, member)
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
     .help = "device to compare with the CPU: cuda:0, opencl, or a number (default: the first)",
     .check = device_check},
    {.name = "inout",
     .kind = ACRE_OPT_LIST,
     .offset = AT(inouts),
     .value = "NAME",
     .help =
         "an array that is read and written (by default, const arrays are read, others written)"},
    {.name = "learn",
     .letter = 'l',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(learn),
     .help = "measure every way now, for 1 to 16 M items (a few seconds), and keep the results"},
    {.name = "arg",
     .letter = 'a',
     .kind = ACRE_OPT_LIST,
     .offset = AT(args),
     .value = "NAME=NUMBER",
     .help = "value of a parameter while measuring (default: 1)"},
    {.name = "json", .kind = ACRE_OPT_FLAG, .offset = AT(json), .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(quiet),
     .help = "show no progress"},
};

const struct acre_command command_compute_explain = {
    .name = "compute explain",
    .summary = "show what each way to call a kernel costs, and which is chosen",
    .usage = "acre compute explain KERNEL.acl [options]",
    .details =
        "acre_auto_run picks the cheapest of four ways: ring (a resident kernel), graph (copies\n"
        "and kernel, recorded), launch (the same one by one, or in pieces) and cpu. Costs are\n"
        "measured per kernel, device and number of items, and kept between programs. The kernel\n"
        "must be f(arrays..., values..., uint n).\n"
        "\n"
        "Examples:\n"
        "  acre compute explain examples/add.acl --device cpu\n"
        "  acre compute explain examples/add.acl --device cpu --learn\n",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = "files",
    .run = run,
    .options_size = sizeof(struct compute_explain_options),
};
