/* compute.c - see compute.h; and `acre compute devices`.
 *
 * Opens only the back ends asked for: a GPU driver takes a second to start, which --device cpu
 * should not wait for. */
#include "cli/compute.h"

#include "cli/cli.h"
#include "core/str.h"
#include "core/units.h"
#include "opencl/pocl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_SHOWN = 96, BACKEND_MAX = 16, NUMBER_MAX = 1024 };

/* --- figures -------------------------------------------------------------------------------- */

char *figure_bytes(uint64_t bytes, char *text, size_t size) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < ACRE_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    bool is_whole = unit == 0 || value >= 100 || value == (double)(uint64_t)value;
    snprintf(text, size, "%.*f %s", is_whole ? 0 : 1, value, units[unit]);
    return text;
}

char *figure_us(double us, char *text, size_t size) {
    static const char *const units[] = {"us", "ms", "s"};
    size_t unit = 0;
    while (us >= 1000 && unit + 1 < ACRE_COUNT(units)) {
        us /= 1000;
        unit++;
    }
    snprintf(text, size, "%.*f %s", us >= 100 ? 0 : us >= 10 ? 1 : 2, us, units[unit]);
    return text;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

void figures_sort(double *figures, size_t count) {
    if (count > 0) { /* none may be NULL, which qsort does not take */
        qsort(figures, count, sizeof(*figures), compare);
    }
}

void figure_absent(const struct term *term, struct acre_buf *out, const char **before, int width,
                   const char *name, const char *why) {
    char label[NAME_SHOWN], shown[ACRE_ERROR_TEXT_MAX];
    snprintf(label, sizeof(label), "%sno %-*s", *before, width, name);
    term_put(term, out, ACRE_COLOUR_DIM, label);
    term_wrap(term, out, (uint32_t)width + 3,
              acre_str_show_text(acre_str_from(why), shown, sizeof(shown)));
    *before = "";
}

/* --- targets --------------------------------------------------------------------------------- */

/* "cuda:0" is back end and number in it; "2" a number in the whole list. */
struct device_wanted {
    char backend[BACKEND_MAX]; /* "": any */
    uint32_t number;
};

static bool read_wanted(const char *text, struct device_wanted *ret_wanted) {
    const char *colon = strchr(text, ':'), *digits = colon != NULL ? colon + 1 : text;
    struct acre_str name = {text, colon != NULL ? (size_t)(colon - text) : strlen(text)};
    struct device_wanted wanted = {.number = 0};
    const char *backend;
    for (uint32_t i = 0; (backend = acre_backend_name(i)) != NULL; i++) {
        if (acre_str_is(name, backend)) {
            acre_str_copy(wanted.backend, sizeof(wanted.backend), name);
        }
    }
    uint64_t number = 0;
    bool is_named = wanted.backend[0] != '\0';
    bool has_number = colon != NULL || !is_named;
    if ((colon != NULL && !is_named) ||
        (has_number && acre_parse_count("", digits, 0, NUMBER_MAX, &number, NULL) < 0)) {
        return false;
    }
    wanted.number = (uint32_t)number;
    *ret_wanted = wanted;
    return true;
}

int device_check(const char *option, const char *value, struct acre_error *err) {
    struct device_wanted wanted;
    char shown[NAME_SHOWN], names[NAME_SHOWN] = "";
    if (read_wanted(value, &wanted)) {
        return 0;
    }
    const char *backend;
    size_t length = 0;
    for (uint32_t i = 0; (backend = acre_backend_name(i)) != NULL && length < sizeof(names); i++) {
        length += (size_t)snprintf(names + length, sizeof(names) - length, "%s, ", backend);
    }
    return acre_fail(
        err, ACRE_EINVALID,
        "%s: '%s' is not a device; accepted: %sone of these with a number ('%s:0'), or "
        "a number from 'acre compute devices'",
        option, acre_str_show(acre_str_from(value), shown, sizeof(shown)), names,
        acre_backend_name(0));
}

static char *name_device(const struct acre_compute *compute, uint32_t device, char *text,
                         size_t size) {
    const struct acre_compute_device *self = acre_compute_device(compute, device);
    uint32_t number = 0;
    for (uint32_t i = 0; i < device; i++) {
        number += strcmp(acre_compute_device(compute, i)->backend, self->backend) == 0;
    }
    snprintf(text, size, "%s:%u", self->backend, number);
    return text;
}

static int refuse_device(const struct acre_compute *compute, const struct device_wanted *wanted,
                         struct acre_error *err) {
    const char *absent =
        wanted->backend[0] != '\0' ? acre_compute_absent(compute, wanted->backend) : NULL;
    if (absent != NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "no %s device here: %s", wanted->backend, absent);
    }
    char list[256] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < acre_compute_count(compute) && length < sizeof(list); i++) {
        char name[NAME_SHOWN];
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? ", " : "",
                                   name_device(compute, i, name, sizeof(name)));
    }
    return acre_fail(err, ACRE_ENOTFOUND, "--device: no device %s%s%u; available: %s",
                     wanted->backend, wanted->backend[0] != '\0' ? ":" : "", wanted->number, list);
}

static int find_device(const struct acre_compute *compute, const struct device_wanted *wanted,
                       uint32_t *ret_device, struct acre_error *err) {
    uint32_t number = 0;
    for (uint32_t i = 0; i < acre_compute_count(compute); i++) {
        bool is_one = wanted->backend[0] == '\0' ||
                      strcmp(acre_compute_device(compute, i)->backend, wanted->backend) == 0;
        if (is_one && number++ == wanted->number) {
            *ret_device = i;
            return 0;
        }
    }
    return refuse_device(compute, wanted, err);
}

/* The last of the list, and always there. */
static const char *cpu_name(void) {
    uint32_t number = 0;
    while (acre_backend_name(number + 1) != NULL) {
        number++;
    }
    return acre_backend_name(number);
}

int target_open(const char *device, const char *prefer, const struct acre_context_options *context,
                struct target *ret_target, struct acre_error *err) {
    struct device_wanted wanted = {.number = 0};
    struct target target = {0};
    if (device != NULL) {
        bool ok = read_wanted(device, &wanted);
        ACRE_ASSERT(ok); /* checked when it was parsed */
    } else if (prefer != NULL) {
        snprintf(wanted.backend, sizeof(wanted.backend), "%s", prefer);
    }
    char names[2 * BACKEND_MAX + 1];
    const char *cpu = cpu_name();
    bool is_cpu = strcmp(wanted.backend, cpu) == 0;
    snprintf(names, sizeof(names), "%s%s%s", wanted.backend, is_cpu ? "" : ",", is_cpu ? "" : cpu);
    struct acre_compute_options options = {.backends = wanted.backend[0] != '\0' ? names : NULL};
    acre_pocl_settle();
    int r = acre_compute_open(&options, &target.compute, err);
    r = r == 0 ? find_device(target.compute, &wanted, &target.device, err) : r;
    r = r == 0 ? acre_context_open(target.compute, target.device, context, &target.context, err)
               : r;
    r = r == 0 ? acre_stream_create(target.context, &target.stream, err) : r;
    if (r < 0) {
        target_close(&target);
        return r;
    }
    *ret_target = target;
    return 0;
}

int target_open_cpu(const struct target *target, struct acre_context **ret_context,
                    struct acre_error *err) {
    uint32_t device = acre_compute_count(target->compute) - 1; /* it is always there, and last */
    return acre_context_open(target->compute, device, NULL, ret_context, err);
}

bool target_is_cpu(const struct target *target) {
    return strcmp(target_device(target)->backend, cpu_name()) == 0;
}

void target_close(struct target *target) {
    acre_stream_destroy(target->stream);
    acre_context_close(target->context);
    acre_compute_close(target->compute);
    *target = (struct target){0};
}

const struct acre_compute_device *target_device(const struct target *target) {
    return acre_compute_device(target->compute, target->device);
}

char *target_name(const struct target *target, char *text, size_t size) {
    return name_device(target->compute, target->device, text, size);
}

/* --- acre compute devices ------------------------------------------------------------------- */

struct devices_options {
    bool json;
};

static const struct {
    uint32_t bit;
    const char *word;
} capabilities[] = {
    {ACRE_CAN_SOURCE, "source"},   {ACRE_CAN_NATIVE, "native"}, {ACRE_CAN_GRAPH, "graph"},
    {ACRE_CAN_RING, "ring"},       {ACRE_CAN_DOUBLE, "double"}, {ACRE_CAN_ATOMIC64, "atomic64"},
    {ACRE_CAN_STORAGE, "storage"},
};

static void put_json_device(struct acre_json *json, const struct acre_compute *compute,
                            uint32_t index) {
    const struct acre_compute_device *device = acre_compute_device(compute, index);
    char name[NAME_SHOWN];
    acre_json_object(json);
    acre_json_put_u64(json, "number", index);
    acre_json_put_string(json, "device", name_device(compute, index, name, sizeof(name)));
    acre_json_put_string(json, "backend", device->backend);
    acre_json_put_string(json, "name", device->name);
    acre_json_put_string(json, "uuid", device->uuid[0] != '\0' ? device->uuid : NULL);
    acre_json_put_string(json, "identity", device->identity);
    acre_json_put_u64(json, "memory_bytes", device->memory_bytes);
    acre_json_put_u64(json, "units", device->units);
    acre_json_put_u64(json, "group_max", device->group_max);
    acre_json_put_u64(json, "local_bytes", device->local_bytes);
    acre_json_key(json, "capabilities");
    acre_json_array(json);
    for (size_t i = 0; i < ACRE_COUNT(capabilities); i++) {
        if ((device->capabilities & capabilities[i].bit) != 0) {
            acre_json_string(json, capabilities[i].word);
        }
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
}

static void print_devices_json(const struct acre_compute *compute, struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_key(&json, "devices");
    acre_json_array(&json);
    for (uint32_t i = 0; i < acre_compute_count(compute); i++) {
        put_json_device(&json, compute, i);
    }
    acre_json_array_end(&json);
    acre_json_key(&json, "absent");
    acre_json_object(&json);
    const char *backend;
    for (uint32_t i = 0; (backend = acre_backend_name(i)) != NULL; i++) {
        const char *reason = acre_compute_absent(compute, backend);
        if (reason != NULL) {
            acre_json_put_string(&json, backend, reason);
        }
    }
    acre_json_object_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static void add_device_row(struct text_table *table, const struct acre_compute *compute,
                           uint32_t index) {
    const struct acre_compute_device *device = acre_compute_device(compute, index);
    char text[NAME_SHOWN], shown[NAME_SHOWN], can[128] = "";
    size_t length = 0;
    table_row(table);
    snprintf(text, sizeof(text), "%u", index);
    table_cell(table, ACRE_COLOUR_NONE, text);
    table_cell(table, ACRE_COLOUR_BOLD, name_device(compute, index, text, sizeof(text)));
    table_cell(table, ACRE_COLOUR_NONE,
               acre_str_show_text(acre_str_from(device->name), shown, sizeof(shown)));
    table_cell(table, ACRE_COLOUR_NONE, figure_bytes(device->memory_bytes, text, sizeof(text)));
    const uint32_t counts[] = {device->units, device->group_max};
    for (size_t i = 0; i < ACRE_COUNT(counts); i++) {
        snprintf(text, sizeof(text), "%u", counts[i]);
        table_cell(table, ACRE_COLOUR_NONE, text);
    }
    table_cell(table, ACRE_COLOUR_NONE, figure_bytes(device->local_bytes, text, sizeof(text)));
    for (size_t i = 0; i < ACRE_COUNT(capabilities); i++) {
        if ((device->capabilities & capabilities[i].bit) != 0) {
            length += (size_t)snprintf(can + length, sizeof(can) - length, "%s%s",
                                       length > 0 ? " " : "", capabilities[i].word);
        }
    }
    table_cell(table, ACRE_COLOUR_NONE, can);
}

static void print_devices(const struct acre_compute *compute, struct acre_buf *out) {
    static const struct table_column columns[] = {
        {.heading = "#", .right = true, .rank = 5},
        {.heading = "DEVICE"},
        {.heading = "NAME", .shrink_to = 16},
        {.heading = "MEMORY", .right = true},
        {.heading = "UNITS", .right = true},
        {.heading = "GROUP", .right = true, .rank = 6},
        {.heading = "LOCAL", .right = true, .rank = 7},
        {.heading = "CAN", .shrink_to = 20, .cut_end = true},
    };
    struct term term = term_detect(STDOUT_FILENO);
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    for (uint32_t i = 0; i < acre_compute_count(compute); i++) {
        add_device_row(table, compute, i);
    }
    table_print(table, &term, out);
    table_destroy(table);
    const char *before = "\n", *backend;
    for (uint32_t i = 0; (backend = acre_backend_name(i)) != NULL; i++) {
        const char *reason = acre_compute_absent(compute, backend);
        if (reason != NULL) {
            figure_absent(&term, out, &before, 7, backend, reason);
        }
    }
}

static int run_devices(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct devices_options *options = target;
    struct acre_error err = {0};
    struct acre_compute *compute = NULL;
    acre_pocl_settle();
    if (acre_compute_open(NULL, &compute, &err) < 0) {
        return cli_fail(&err);
    }
    struct acre_buf out;
    acre_buf_init(&out, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    (options->json ? print_devices_json : print_devices)(compute, &out);
    int r = cli_write(&out);
    acre_buf_finish(&out);
    acre_compute_close(compute);
    return r;
}

static const struct acre_opt devices_rows[] = {
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct devices_options, json),
     .help = "print JSON"},
};

const struct acre_command command_compute_devices = {
    .name = "compute devices",
    .summary = "list the devices kernels can run on, and which are missing",
    .usage = "acre compute [devices] [--json]",
    .details =
        "'acre compute run' runs a kernel, 'bench' measures the machine, 'explain' shows what a\n"
        "kernel costs on the CPU and on a GPU, 'cache' lists compiled kernels.\n"
        "\n"
        "GROUP is the largest work group, LOCAL the memory that its work items share.\n"
        "Capabilities:\n"
        "  source     compile kernels from their source\n"
        "  native     run C functions as kernels\n"
        "  graph      replay recorded work in one go (other devices replay it step by step)\n"
        "  ring       keep a kernel resident that answers messages\n"
        "  double     64-bit floating point\n"
        "  atomic64   64-bit atomics\n"
        "  storage    read files directly into device memory\n"
        "\n"
        "Examples:\n"
        "  acre compute devices\n"
        "  acre compute devices --json | jq '.devices[].name'",
    .options = devices_rows,
    .option_count = ACRE_COUNT(devices_rows),
    .run = run_devices,
    .options_size = sizeof(struct devices_options),
};
