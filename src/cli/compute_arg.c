/* compute_arg.c - see compute_arg.h.
 *
 * Arrays live in pinned host memory of the device's context: it copies at full speed, and running
 * out of it is an error rather than the end of the program. Each array leaves room for the header
 * of a .npy file in front, so that a result is written in one piece. */
#include "cli/compute_arg.h"

#include "core/file.h"
#include "core/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHOWN_MAX = 96, WHAT_MAX = 256, LOCAL_MAX_BYTES = 1 << 30 };

#define ARRAYS_ACCEPTED "@FILE.npy, or zeros as in float32[1000]"

/* --- names ---------------------------------------------------------------------------------- */

static char *name_of(const struct acre_parameter *parameter, uint32_t index, char *text,
                     size_t size) {
    if (parameter->name[0] != '\0') {
        snprintf(text, size, "%s", parameter->name);
    } else {
        snprintf(text, size, "%u", index + 1);
    }
    return text;
}

char *binding_name(const struct bindings *bindings, uint32_t index, char *text, size_t size) {
    return name_of(&bindings->all[index].parameter, index, text, size);
}

static int refuse_name(const struct bindings *bindings, const char *option, struct acre_str name,
                       struct acre_error *err) {
    char shown[SHOWN_MAX], list[256] = "";
    size_t length = 0;
    acre_str_show(name, shown, sizeof(shown));
    if (bindings->count == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "--%s: '%s' was given, but kernel '%s' has no parameters", option, shown,
                         bindings->kernel);
    }
    for (uint32_t i = 0; i < bindings->count && length < sizeof(list); i++) {
        char one[SHOWN_MAX];
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i > 0 ? ", " : "",
                                   binding_name(bindings, i, one, sizeof(one)));
    }
    return acre_fail(err, ACRE_EINVALID,
                     "--%s: kernel '%s' has no parameter '%s'; accepted: %s, or a number from 1 "
                     "to %u",
                     option, bindings->kernel, shown, list, bindings->count);
}

/* The parameter that "NAME=VALUE" is for, by its name or else its number; and the value. */
static int find_parameter(struct bindings *bindings, const char *option, const char *text,
                          uint32_t *ret_index, const char **ret_value, struct acre_error *err) {
    char shown[SHOWN_MAX];
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        return acre_fail(err, ACRE_EINVALID, "--%s: '%s'; accepted: NAME=%s", option,
                         acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                         strcmp(option, "out") == 0 ? "@FILE.npy"
                                                    : "VALUE, where NAME is a parameter");
    }
    struct acre_str name = {text, (size_t)(equals - text)};
    *ret_value = equals + 1;
    for (uint32_t i = 0; i < bindings->count; i++) {
        if (acre_str_is(name, bindings->all[i].parameter.name)) {
            *ret_index = i;
            return 0;
        }
    }
    char number[8];
    uint64_t index = 0;
    if (bindings->count > 0 && acre_str_copy(number, sizeof(number), name) &&
        acre_parse_count("", number, 1, bindings->count, &index, NULL) == 0) {
        *ret_index = (uint32_t)index - 1;
        return 0;
    }
    return refuse_name(bindings, option, name, err);
}

/* --- numbers -------------------------------------------------------------------------------- */

static int refuse_number(const char *what, const struct acre_parameter *parameter, const char *text,
                         const char *accepted, struct acre_error *err) {
    char shown[SHOWN_MAX];
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not a valid '%s'; accepted: %s", what,
                     acre_str_show(acre_str_from(text), shown, sizeof(shown)), parameter->type,
                     accepted);
}

static bool begins_number(const char *text) {
    return text[0] != '\0' && strchr("+ \t\n\v\f\r", text[0]) == NULL;
}

static int parse_signed(const char *what, const struct acre_parameter *parameter, const char *text,
                        struct acre_arg *ret_arg, struct acre_error *err) {
    char accepted[96], *end = NULL;
    uint32_t unused = 64 - 8 * parameter->bytes;
    int64_t most = (int64_t)(UINT64_MAX >> 1 >> unused);
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (!begins_number(text) || *end != '\0' || errno != 0 || value > most || value < -most - 1) {
        snprintf(accepted, sizeof(accepted), "a whole number from %" PRId64 " to %" PRId64,
                 -most - 1, most);
        return refuse_number(what, parameter, text, accepted, err);
    }
    *ret_arg = ACRE_ARG_OF(INTEGER, parameter->bytes, .i64 = value);
    return 0;
}

static int parse_unsigned(const char *what, const struct acre_parameter *parameter,
                          const char *text, struct acre_arg *ret_arg, struct acre_error *err) {
    char accepted[96], *end = NULL;
    uint64_t most = UINT64_MAX >> (64 - 8 * parameter->bytes);
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (!begins_number(text) || text[0] == '-' || *end != '\0' || errno != 0 || value > most) {
        snprintf(accepted, sizeof(accepted), "a whole number from 0 to %" PRIu64, most);
        return refuse_number(what, parameter, text, accepted, err);
    }
    *ret_arg = ACRE_ARG_OF(INTEGER, parameter->bytes, .u64 = value);
    return 0;
}

static int parse_float(const char *what, const struct acre_parameter *parameter, const char *text,
                       struct acre_arg *ret_arg, struct acre_error *err) {
    char *end = NULL;
    double value = strtod(text, &end);
    bool is_single = parameter->bytes == 4;
    bool is_beyond = isinf(is_single ? (double)(float)value : value) && strpbrk(text, "iI") == NULL;
    if (parameter->bytes < 4) {
        return refuse_number(what, parameter, text, "@FILE.npy with one number", err);
    }
    if (!begins_number(text) || *end != '\0' || is_beyond) {
        return refuse_number(what, parameter, text,
                             is_single ? "a number, at most 3.4e38" : "a number", err);
    }
    if (is_single) {
        *ret_arg = ACRE_F32((float)value);
    } else {
        *ret_arg = ACRE_F64(value);
    }
    return 0;
}

int binding_number(const char *what, const struct acre_parameter *parameter, const char *text,
                   struct acre_arg *ret_arg, struct acre_error *err) {
    switch (parameter->kind) {
    case ACRE_PARAMETER_SIGNED:
        return parse_signed(what, parameter, text, ret_arg, err);
    case ACRE_PARAMETER_UNSIGNED:
        return parse_unsigned(what, parameter, text, ret_arg, err);
    case ACRE_PARAMETER_FLOAT:
        return parse_float(what, parameter, text, ret_arg, err);
    case ACRE_PARAMETER_LOCAL: {
        uint64_t bytes = 0;
        if (acre_parse_count("", text, 1, LOCAL_MAX_BYTES, &bytes, NULL) < 0) {
            return refuse_number(what, parameter, text, "a number of bytes of local memory", err);
        }
        *ret_arg = ACRE_LOCAL((uint32_t)bytes);
        return 0;
    }
    case ACRE_PARAMETER_BUFFER:
        return refuse_number(what, parameter, text, ARRAYS_ACCEPTED, err);
    case ACRE_PARAMETER_VECTOR:
    case ACRE_PARAMETER_STRUCT:
    default:
        return refuse_number(what, parameter, text, "@FILE.npy of the same size", err);
    }
}

/* --- arrays --------------------------------------------------------------------------------- */

/* The numbers that the words of a type name. */
struct numbers {
    char kind;      /* 'f', 'i'; 0: it does not say (structs, void) */
    uint32_t lanes; /* of a vector; else 1 */
};

/* "float4": 'f', 4 lanes; "uint32_t": 'i', 1. */
static struct numbers read_word(struct acre_str word) {
    static const char *const reals[] = {"float", "double", "half"};
    static const char *const wholes[] = {"char", "short", "int",  "long",     "uchar", "ushort",
                                         "uint", "ulong", "bool", "unsigned", "signed"};
    uint32_t digits = 0;
    bool is_sized = word.length > 2 && memcmp(word.data + word.length - 2, "_t", 2) == 0;
    word.length -= is_sized ? 2 : 0;
    size_t end = word.length;
    while (word.length > 0 && strchr("0123456789", word.data[word.length - 1]) != NULL) {
        word.length--;
    }
    for (size_t i = word.length; i < end && digits < 100; i++) {
        digits = 10 * digits + (uint32_t)(word.data[i] - '0');
    }
    struct numbers numbers = {.lanes = is_sized || digits == 0 ? 1 : digits};
    for (size_t i = 0; i < ACRE_COUNT(reals); i++) {
        numbers.kind = acre_str_is(word, reals[i]) ? 'f' : numbers.kind;
    }
    for (size_t i = 0; i < ACRE_COUNT(wholes); i++) {
        numbers.kind = acre_str_is(word, wholes[i]) ? 'i' : numbers.kind;
    }
    return numbers;
}

static struct numbers read_type(const char *type) {
    struct acre_split words = acre_split_begin(acre_str_from(type), ' ');
    struct acre_str word;
    struct numbers numbers = {0};
    while (numbers.kind == 0 && acre_split_next(&words, &word)) {
        numbers = read_word(word);
    }
    return numbers;
}

/* Whether the array has the numbers that the parameter points to. */
static int judge_numbers(const char *what, const struct acre_parameter *parameter,
                         const struct npy *npy, struct acre_error *err) {
    struct numbers numbers = read_type(parameter->type);
    uint32_t bytes = npy_type_bytes(npy->type);
    bool is_real = npy_type_kind(npy->type) == 'f';
    if (numbers.kind == 0 || parameter->bytes == 0) {
        return 0; /* a struct's, perhaps with a number's name */
    }
    /* A vector of 3 is 4 long in OpenCL. */
    uint32_t lanes = numbers.lanes == 3 && parameter->bytes % 3 != 0 ? 4 : numbers.lanes;
    uint32_t wanted = parameter->bytes / lanes;
    if (bytes == wanted && is_real == (numbers.kind == 'f')) {
        return 0;
    }
    return acre_fail(err, ACRE_EINVALID,
                     "%s: type %s does not match '%s'; accepted: %s of %u byte%s", what,
                     npy_type_name(npy->type), parameter->type,
                     numbers.kind == 'f' ? "floating-point numbers" : "whole numbers", wanted,
                     wanted == 1 ? "" : "s");
}

/* An array in place of a value: one number of its kind, or the bytes of a vector or struct. */
static int judge_one(const char *what, const struct acre_parameter *parameter,
                     const struct npy *npy, struct acre_error *err) {
    char text[ACRE_NPY_SHAPE_MAX];
    npy_format(npy, text, sizeof(text));
    bool is_whole =
        parameter->kind == ACRE_PARAMETER_SIGNED || parameter->kind == ACRE_PARAMETER_UNSIGNED;
    bool is_real = npy_type_kind(npy->type) == 'f';
    if ((is_whole && is_real) || (parameter->kind == ACRE_PARAMETER_FLOAT && !is_real)) {
        return acre_fail(err, ACRE_EINVALID, "%s: %s does not match '%s'; accepted: one %s number",
                         what, text, parameter->type, is_whole ? "whole" : "floating-point");
    }
    bool fits = parameter->bytes == npy->bytes || parameter->kind == ACRE_PARAMETER_STRUCT;
    return fits && npy->bytes <= UINT32_MAX
               ? 0
               : acre_fail(err, ACRE_EINVALID,
                           "%s: %s has %" PRIu64 " bytes; accepted: %u, the size of '%s'", what,
                           text, npy->bytes, parameter->bytes, parameter->type);
}

static int judge_array(const char *what, const struct binding *binding, struct acre_error *err) {
    const struct acre_parameter *parameter = &binding->parameter;
    const struct npy *npy = &binding->npy;
    char text[ACRE_NPY_SHAPE_MAX];
    npy_format(npy, text, sizeof(text));
    if (npy->count == 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: %s has no items; accepted: 1 or more", what,
                         text);
    }
    if (parameter->kind != ACRE_PARAMETER_BUFFER) {
        return judge_one(what, parameter, npy, err);
    }
    int r = judge_numbers(what, parameter, npy, err);
    if (r == 0 && parameter->bytes > 0 && npy->bytes % parameter->bytes != 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: the %" PRIu64
                         " bytes of %s are not a multiple of %u, the size of '%s'",
                         what, npy->bytes, text, parameter->bytes, parameter->type);
    }
    return r;
}

uint64_t binding_items(const struct binding *binding) {
    uint32_t bytes = binding->parameter.bytes;
    return bytes > 0 ? binding->npy.bytes / bytes : binding->npy.count;
}

static int judge_value(const struct bindings *bindings, uint32_t index, struct binding *binding,
                       struct acre_error *err) {
    char what[WHAT_MAX], name[SHOWN_MAX], shown[SHOWN_MAX];
    binding_name(bindings, index, name, sizeof(name));
    snprintf(what, sizeof(what), "--arg %s", name);
    if (binding->value == NULL) {
        bool is_buffer = binding->parameter.kind == ACRE_PARAMETER_BUFFER;
        return acre_fail(err, ACRE_EINVALID,
                         "--arg %s is missing (parameter %u of kernel '%s', '%s'); accepted: "
                         "%s=%s",
                         name, index + 1, bindings->kernel, binding->parameter.type, name,
                         is_buffer ? ARRAYS_ACCEPTED : "NUMBER");
    }
    int r = 0;
    if (binding->value[0] == '@' && binding->value[1] != '\0' &&
        binding->parameter.kind != ACRE_PARAMETER_LOCAL) {
        r = npy_open(binding->value + 1, &binding->npy, &binding->fd, err);
        r = r < 0 ? acre_fail_in(err, r, "%s", what) : 0;
        binding->is_array = r == 0;
        acre_str_show(acre_str_from(binding->value + 1), shown, sizeof(shown));
        snprintf(what, sizeof(what), "--arg %s: %s", name, shown);
    } else if (binding->parameter.kind == ACRE_PARAMETER_BUFFER &&
               strchr(binding->value, '[') != NULL) {
        r = npy_parse(what, acre_str_from(binding->value), &binding->npy, err);
        binding->is_array = r == 0;
    } else {
        r = binding_number(what, &binding->parameter, binding->value, &binding->arg, err);
    }
    return r == 0 && binding->is_array ? judge_array(what, binding, err) : r;
}

/* Whether two paths are one file, which need not be there: "y.npy" and "./y.npy". */
static bool is_one_file(const char *a, const char *b) {
    const char *paths[2] = {a, b}, *names[2];
    struct stat folders[2];
    for (size_t i = 0; i < 2; i++) {
        char folder[PATH_MAX] = ".";
        const char *slash = strrchr(paths[i], '/');
        names[i] = slash != NULL ? slash + 1 : paths[i];
        struct acre_str before = {paths[i], (size_t)(names[i] - paths[i])};
        if ((slash != NULL && !acre_str_copy(folder, sizeof(folder), before)) ||
            stat(folder, &folders[i]) < 0) {
            return false;
        }
    }
    return strcmp(names[0], names[1]) == 0 && folders[0].st_dev == folders[1].st_dev &&
           folders[0].st_ino == folders[1].st_ino;
}

/* Before the kernel runs, perhaps for hours: is it an array of its own, a file that can be? */
static int judge_out(const struct bindings *bindings, uint32_t index, struct acre_error *err) {
    const struct binding *binding = &bindings->all[index];
    char name[SHOWN_MAX], shown[SHOWN_MAX];
    binding_name(bindings, index, name, sizeof(name));
    acre_str_show(acre_str_from(binding->out), shown, sizeof(shown));
    if (binding->parameter.kind != ACRE_PARAMETER_BUFFER || binding->parameter.is_const) {
        return acre_fail(err, ACRE_EINVALID,
                         "--out %s: the kernel does not write '%s'; accepted: arrays that are "
                         "not const",
                         name, binding->parameter.type);
    }
    if (binding->out[0] != '@' || binding->out[1] == '\0') {
        return acre_fail(err, ACRE_EINVALID, "--out %s: '%s'; accepted: %s=@FILE.npy", name, shown,
                         name);
    }
    for (uint32_t i = 0; i < index; i++) {
        const char *other = bindings->all[i].out;
        if (other != NULL && is_one_file(other + 1, binding->out + 1)) {
            return acre_fail(
                err, ACRE_EINVALID,
                "--out %s: '%s' is already the output of another array; give each its own file",
                name, shown + 1);
        }
    }
    struct acre_draft draft = {0};
    int r = acre_draft_begin(&draft, binding->out + 1, err);
    acre_draft_drop(&draft);
    return r == 0 ? 0 : acre_fail_in(err, r, "--out %s", name);
}

/* One of the two options, each parameter at most once. */
static int take_list(struct bindings *bindings, const char *option,
                     const struct acre_opt_list *list, size_t offset, struct acre_error *err) {
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t index = 0;
        const char *value = NULL;
        int r = find_parameter(bindings, option, list->items[i], &index, &value, err);
        if (r < 0) {
            return r;
        }
        const char **at = (const char **)(void *)((char *)&bindings->all[index] + offset);
        if (*at != NULL) {
            char name[SHOWN_MAX];
            return acre_fail(err, ACRE_EINVALID, "--%s %s: given twice", option,
                             binding_name(bindings, index, name, sizeof(name)));
        }
        *at = value;
    }
    return 0;
}

int bindings_init(struct bindings *bindings, const struct acre_kernel *kernel,
                  const struct acre_opt_list *args, const struct acre_opt_list *outs,
                  struct acre_error *err) {
    *bindings = (struct bindings){.kernel = acre_kernel_name(kernel)};
    while (
        bindings->count < ACRE_BINDINGS_MAX &&
        acre_kernel_parameter(kernel, bindings->count, &bindings->all[bindings->count].parameter)) {
        bindings->all[bindings->count++].fd = -1;
    }
    int r = take_list(bindings, "arg", args, offsetof(struct binding, value), err);
    r = r == 0 ? take_list(bindings, "out", outs, offsetof(struct binding, out), err) : r;
    for (uint32_t i = 0; i < bindings->count && r == 0; i++) {
        r = judge_value(bindings, i, &bindings->all[i], err);
        r = r == 0 && bindings->all[i].out != NULL ? judge_out(bindings, i, err) : r;
    }
    return r;
}

void bindings_finish(struct bindings *bindings) {
    for (uint32_t i = 0; i < bindings->count; i++) {
        if (bindings->all[i].fd >= 0) {
            close(bindings->all[i].fd);
            bindings->all[i].fd = -1;
        }
    }
}

/* --- memory --------------------------------------------------------------------------------- */

static int take_memory(struct binding *binding, struct acre_stream *stream,
                       struct acre_context *context, struct acre_error *err) {
    uint64_t bytes = binding->npy.bytes;
    int r = acre_buffer_alloc(stream, ACRE_MEMORY_PINNED, ACRE_NPY_WRITTEN_MAX + bytes,
                              &binding->host, err);
    if (r < 0) {
        return r;
    }
    binding->data = (char *)acre_buffer_host(context, binding->host) + ACRE_NPY_WRITTEN_MAX;
    if (binding->parameter.kind != ACRE_PARAMETER_BUFFER) {
        binding->arg = ACRE_BYTES(binding->data, (uint32_t)bytes);
        return 0;
    }
    r = acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, bytes, &binding->device, err);
    binding->arg = ACRE_BUFFER(binding->device);
    return r;
}

static int load(struct binding *binding, struct target *target, struct acre_error *err) {
    int r = take_memory(binding, target->stream, target->context, err);
    if (r == 0 && binding->fd >= 0) {
        r = npy_load(binding->value + 1, binding->fd, &binding->npy, binding->data, err);
    }
    if (r < 0 || binding->parameter.kind != ACRE_PARAMETER_BUFFER) {
        return r;
    }
    return binding->fd >= 0
               ? acre_copy_in(target->stream, binding->device, 0, binding->data, binding->npy.bytes,
                              err)
               : acre_fill(target->stream, binding->device, 0, binding->npy.bytes, 0, 1, err);
}

int bindings_load(struct bindings *bindings, struct target *target, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < bindings->count && r == 0; i++) {
        char name[SHOWN_MAX];
        if (bindings->all[i].is_array) {
            r = load(&bindings->all[i], target, err);
            r = r < 0 ? acre_fail_in(err, r, "--arg %s",
                                     binding_name(bindings, i, name, sizeof(name)))
                      : 0;
        }
    }
    return r;
}

int bindings_fetch(struct bindings *bindings, struct target *target, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < bindings->count && r == 0; i++) {
        struct binding *binding = &bindings->all[i];
        if (binding->device.id != 0 && !binding->parameter.is_const) {
            r = acre_copy_out(target->stream, binding->data, binding->device, 0, binding->npy.bytes,
                              err);
        }
    }
    return r;
}

int bindings_check(struct bindings *bindings, struct target *target, struct acre_error *err) {
    struct acre_context_report report;
    int r = 0;
    for (uint32_t i = 0; i < bindings->count && r == 0; i++) {
        char name[SHOWN_MAX];
        if (bindings->all[i].device.id != 0) {
            r = acre_buffer_free(target->stream, bindings->all[i].device, err);
            r = r == ACRE_ECORRUPT
                    ? acre_fail_in(err, r, "kernel '%s' wrote outside of '%s'", bindings->kernel,
                                   binding_name(bindings, i, name, sizeof(name)))
                    : r;
        }
    }
    r = r == 0 ? acre_memory_trim(target->context, 0, err) : r;
    acre_context_report(target->context, &report);
    return r < 0 || report.rebuilt == 0 ? r
                                        : acre_fail(err, ACRE_EUNAVAILABLE, "after kernel '%s': %s",
                                                    bindings->kernel, report.failure);
}

static int draft_out(const struct binding *binding, struct acre_draft *draft,
                     struct acre_error *err) {
    char header[ACRE_NPY_WRITTEN_MAX];
    uint32_t length = npy_write_header(&binding->npy, header);
    char *begin = (char *)binding->data - length;
    memcpy(begin, header, length);
    int r = acre_draft_begin(draft, binding->out + 1, err);
    return r == 0 ? acre_draft_write(draft, begin, length + binding->npy.bytes, err) : r;
}

int bindings_write(struct bindings *bindings, struct acre_error *err) {
    struct acre_draft *drafts = acre_calloc(ACRE_BINDINGS_MAX, sizeof(*drafts));
    int r = 0;
    for (uint32_t step = 0; step < 3; step++) { /* all are written before the first appears */
        for (uint32_t i = 0; i < bindings->count && r == 0; i++) {
            const struct binding *binding = &bindings->all[i];
            char name[SHOWN_MAX];
            if (binding->out == NULL) {
                continue;
            }
            r = step == 0   ? draft_out(binding, &drafts[i], err)
                : step == 1 ? acre_draft_name(&drafts[i], err)
                            : acre_draft_commit(&drafts[i], err);
            r = r < 0 ? acre_fail_in(err, r, "--out %s",
                                     binding_name(bindings, i, name, sizeof(name)))
                      : 0;
        }
    }
    for (uint32_t i = 0; i < bindings->count; i++) {
        acre_draft_drop(&drafts[i]);
    }
    free(drafts);
    return r;
}
