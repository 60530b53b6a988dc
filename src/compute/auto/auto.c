/* auto.c - create, report and destroy automatic calls. auto_run.c runs them.
 *
 * The kernel is built for the device and for the CPU. An error in the source fails the call. If
 * only one of the two can run the kernel, the other leaves its reason. */
#include "compute/auto/inner.h"

#include "compute/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 256 };

static const char *const way_names[] = {"ring", "graph", "launch", "cpu"};
_Static_assert(ACRE_COUNT(way_names) == ACRE_WAY_COUNT, "a name for each");

const char *acre_way_name(enum acre_way way) {
    return (uint32_t)way < ACRE_WAY_COUNT ? way_names[way] : "none";
}

/* --- making --------------------------------------------------------------------------------- */

static int check_options(const struct acre_auto_options *options, struct acre_error *err) {
    if (options == NULL) {
        return acre_fail(err, ACRE_EINVALID, "options: must not be NULL");
    }
    const struct acre_context *cpu = options->cpu;
    int r = options->device != NULL ? context_check(options->device, err) : 0;
    r = r == 0 && cpu != NULL ? context_check(cpu, err) : r;
    if (r < 0) {
        return r;
    }
    if (options->device == NULL && cpu == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "device and cpu are both NULL; at least one context is required");
    }
    if (cpu != NULL && cpu->table != &backend_cpu) {
        return acre_fail(err, ACRE_EINVALID,
                         "cpu: the context is on %s%s; accepted: a CPU context in this process",
                         context_device(cpu)->backend,
                         cpu->is_remote ? ", in a separate process" : "");
    }
    if (options->source == NULL || options->source->text == NULL || options->kernel == NULL) {
        return acre_fail(err, ACRE_EINVALID, "%s: must not be NULL; accepted: the %s",
                         options->kernel == NULL ? "kernel" : "source",
                         options->kernel == NULL ? "name of a kernel" : "text of the kernels");
    }
    if (options->arrays == NULL || options->array_count == 0 ||
        options->array_count > PIECES_ARRAYS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "array_count: %u; accepted: 1 to %d",
                         options->arrays == NULL ? 0 : options->array_count, PIECES_ARRAYS_MAX);
    }
    return 0;
}

static int find_signature(struct acre_auto *automatic, const char *kernel, struct acre_error *err) {
    const struct acre_source *source = &automatic->source;
    const char *name = source->name != NULL ? source->name : "kernel";
    int r = signatures_read(name, acre_str_from(source->text), source->language,
                            &automatic->signatures, &automatic->signature_count, err);
    if (r < 0) {
        return r;
    }
    char shown[SIGNATURE_NAME_MAX], names[NAMES_SHOWN] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < automatic->signature_count; i++) {
        const struct signature *signature = &automatic->signatures[i];
        if (strcmp(signature->name, kernel) == 0) {
            automatic->signature = signature;
            return 0;
        }
        if (length < sizeof(names)) {
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                       i > 0 ? ", " : "", signature->name);
        }
    }
    acre_str_show(acre_str_from(kernel), shown, sizeof(shown));
    return acre_fail(err, ACRE_ENOTFOUND, "no kernel '%s' in %s; its kernels: %s%s", shown, name,
                     names, length < sizeof(names) ? "" : "...");
}

static int check_array(struct acre_auto *automatic, uint32_t index, struct acre_error *err) {
    const struct signature *signature = automatic->signature;
    const struct parameter *parameter = &signature->parameters[index];
    const struct acre_auto_array *array = &automatic->arrays[index];
    uint32_t bytes = ACRE_MAX(array->in_bytes, array->out_bytes);
    if (parameter->kind != PARAMETER_BUFFER) {
        return acre_fail(
            err, ACRE_EINVALID,
            "kernel '%s': parameter %u '%s' is %s; the first %u parameters must be arrays",
            signature->name, index + 1, parameter->name, parameter->type, automatic->array_count);
    }
    if (bytes == 0 ||
        (array->in_bytes != 0 && array->out_bytes != 0 && array->in_bytes != array->out_bytes)) {
        return acre_fail(err, ACRE_EINVALID,
                         "kernel '%s': array %u '%s': in_bytes is %u and out_bytes is %u; set one "
                         "of them, or both to the same size",
                         signature->name, index + 1, parameter->name, array->in_bytes,
                         array->out_bytes);
    }
    if (parameter->bytes != 0 && bytes % parameter->bytes != 0) {
        return acre_fail(
            err, ACRE_EINVALID,
            "kernel '%s': array %u '%s': an item has %u bytes; accepted: multiples of %u",
            signature->name, index + 1, parameter->name, bytes, parameter->bytes);
    }
    if (parameter->is_const && array->out_bytes != 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "kernel '%s': array %u '%s' is const, but out_bytes is %u; accepted: 0",
                         signature->name, index + 1, parameter->name, array->out_bytes);
    }
    uint32_t alignment = parameter->bytes != 0 ? parameter->bytes & -(uint32_t)parameter->bytes : 1;
    automatic->misalignment[index] = ACRE_MIN(alignment, 16U) - 1;
    automatic->is_in_place |= array->in_bytes != 0 && array->out_bytes != 0;
    return 0;
}

/* f(arrays..., values..., uint n) */
static int check_signature(struct acre_auto *automatic, struct acre_error *err) {
    const struct signature *signature = automatic->signature;
    if (signature->count <= automatic->array_count) {
        return acre_fail(
            err, ACRE_EINVALID,
            "kernel '%s' has %u parameters; required: %u arrays, then values, then uint n",
            signature->name, signature->count, automatic->array_count);
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        int r = check_array(automatic, i, err);
        if (r < 0) {
            return r;
        }
        bytes += ACRE_MAX(automatic->arrays[i].in_bytes, automatic->arrays[i].out_bytes);
    }
    if (bytes > UINT32_MAX / 2) {
        return acre_fail(err, ACRE_EINVALID,
                         "kernel '%s': an item has %" PRIu64
                         " bytes in all; accepted: less than 2 GiB",
                         signature->name, bytes);
    }
    automatic->item_bytes = (uint32_t)bytes;
    for (uint32_t i = automatic->array_count; i < signature->count; i++) {
        const struct parameter *parameter = &signature->parameters[i];
        bool is_last = i + 1 == signature->count;
        bool is_pointer = parameter->kind == PARAMETER_BUFFER || parameter->kind == PARAMETER_LOCAL;
        if (is_pointer || (is_last && (parameter->kind != PARAMETER_UNSIGNED ||
                                       parameter->bytes != sizeof(uint32_t)))) {
            return acre_fail(
                err, ACRE_EINVALID, "kernel '%s': parameter %u '%s' is %s; accepted: %s",
                signature->name, i + 1, parameter->name, parameter->type,
                is_last ? "uint (the number of items)" : "a value (arrays come first)");
        }
    }
    automatic->value_count = signature->count - automatic->array_count - 1;
    if (automatic->value_count > ACRE_ARGS_MAX - PIECES_ARRAYS_MAX - 2) {
        return acre_fail(err, ACRE_ELIMIT, "kernel '%s': %u values; accepted: at most %d",
                         signature->name, automatic->value_count,
                         ACRE_ARGS_MAX - PIECES_ARRAYS_MAX - 2);
    }
    return 0;
}

/* A C function in place of the source. */
static int make_native(struct acre_auto *automatic, struct acre_context *context,
                       acre_native_function *native, struct acre_program **ret_program,
                       struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, SOURCE_MAX_BYTES);
    signature_write(automatic->signature, &text);
    int r = acre_buf_failed(&text)
                ? acre_fail(err, ACRE_ELIMIT, "kernel '%s'", automatic->signature->name)
                : acre_program_native(context, text.data, native, ret_program, err);
    acre_buf_finish(&text);
    return r;
}

static int open_side(struct acre_auto *automatic, struct auto_side *side,
                     struct acre_context *context, acre_native_function *native,
                     struct acre_error *err) {
    side->context = context;
    int r = native != NULL
                ? make_native(automatic, context, native, &side->program, err)
                : acre_program_build(context, &automatic->source, &side->program, NULL, err);
    r = r == 0 ? acre_stream_create(context, &side->stream, err) : r;
    return r == 0 ? acre_kernel_find(side->program, automatic->signature->name, &side->kernel, err)
                  : r;
}

/* What is wrong with the source or with us ends it; what is wrong with the device does not, when
 * there is another. */
static bool is_of_device(int result) {
    return result == ACRE_EUNAVAILABLE || result == ACRE_EUNSUPPORTED || result == ACRE_EIO ||
           result == ACRE_ETIMEOUT || result == ACRE_EINTERNAL;
}

static int open_sides(struct acre_auto *automatic, const struct acre_auto_options *options,
                      struct acre_error *err) {
    const struct {
        struct auto_side *side;
        struct acre_context *context;
        acre_native_function *native;
        const char *what;
    } sides[] = {{&automatic->device, options->device, NULL, "device"},
                 {&automatic->cpu, options->cpu, options->native, "cpu"}};
    int last = 0;
    for (size_t i = 0; i < ACRE_COUNT(sides); i++) {
        struct auto_side *side = sides[i].side;
        struct acre_error why = {0};
        if (sides[i].context == NULL) {
            snprintf(side->reason, sizeof(side->reason), "%s: no context was given", sides[i].what);
            continue;
        }
        int r = open_side(automatic, side, sides[i].context, sides[i].native, &why);
        if (r < 0) {
            snprintf(side->reason, sizeof(side->reason), "%.95s", why.text);
            last = acre_fail(err, r, "%s", why.text);
            if (!is_of_device(r)) {
                return r;
            }
        }
    }
    bool has_one = automatic->device.kernel != NULL || automatic->cpu.kernel != NULL;
    return has_one ? 0 : last;
}

static int keep_options(struct acre_auto *automatic, const struct acre_auto_options *options,
                        struct acre_error *err) {
    automatic->source = *options->source;
    automatic->source_text = strdup(options->source->text);
    automatic->source_name = options->source->name != NULL ? strdup(options->source->name) : NULL;
    automatic->source_options =
        options->source->options != NULL ? strdup(options->source->options) : NULL;
    if (automatic->source_text == NULL ||
        (automatic->source_name == NULL) != (options->source->name == NULL) ||
        (automatic->source_options == NULL) != (options->source->options == NULL)) {
        return acre_fail(err, ACRE_ENOMEM, "source");
    }
    automatic->source.text = automatic->source_text;
    automatic->source.name = automatic->source_name;
    automatic->source.options = automatic->source_options;
    automatic->array_count = options->array_count;
    memcpy(automatic->arrays, options->arrays, options->array_count * sizeof(*options->arrays));
    return 0;
}

static int fill(struct acre_auto *automatic, const struct acre_auto_options *options,
                struct acre_error *err) {
    int r = keep_options(automatic, options, err);
    r = r == 0 ? find_signature(automatic, options->kernel, err) : r;
    r = r == 0 ? check_signature(automatic, err) : r;
    r = r == 0 ? open_sides(automatic, options, err) : r;
    if (r < 0) {
        return r;
    }
    automatic->has_native = options->native != NULL;
    bool may_hang = automatic->cpu.kernel == NULL || options->cpu->kernel_limit_ms != 0;
    automatic->function = may_hang ? NULL : options->native; /* else a worker's, who is watched */
    auto_ways_init(automatic);
    return auto_learned_open(automatic, options->learned, err);
}

int acre_auto_create(const struct acre_auto_options *options, struct acre_auto **ret_auto,
                     struct acre_error *err) {
    int r = check_options(options, err);
    if (r < 0) {
        return r;
    }
    struct acre_auto *automatic = calloc(1, sizeof(*automatic));
    if (automatic == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "automatic call");
    }
    automatic->process = atomic_load(&process_number);
    pthread_mutex_init(&automatic->lock, NULL);
    costs_init(&automatic->costs);
    r = fill(automatic, options, err);
    if (r < 0) {
        free(automatic->learned);
        automatic->learned = NULL; /* nothing to keep */
        acre_auto_destroy(automatic);
        return r;
    }
    *ret_auto = automatic;
    return 0;
}

static void close_side(struct auto_side *side) {
    acre_stream_destroy(side->stream);
    acre_program_destroy(side->program);
}

void acre_auto_destroy(struct acre_auto *automatic) {
    if (auto_check(automatic, NULL) < 0) {
        return;
    }
    auto_drain(automatic);
    auto_learned_keep(automatic);
    auto_ways_finish(automatic);
    close_side(&automatic->device);
    close_side(&automatic->cpu);
    signatures_free(automatic->signatures, automatic->signature_count);
    pthread_mutex_destroy(&automatic->lock);
    free(automatic->learned);
    free(automatic->source_text);
    free(automatic->source_name);
    free(automatic->source_options);
    free(automatic);
}

/* --- telling -------------------------------------------------------------------------------- */

uint32_t acre_auto_costs(struct acre_auto *automatic, struct acre_auto_cost *ret_costs,
                         uint32_t max) {
    if (auto_check(automatic, NULL) < 0) {
        return 0;
    }
    pthread_mutex_lock(&automatic->lock);
    auto_drain(automatic);
    uint32_t count = costs_report(&automatic->costs, ret_costs, max);
    for (uint32_t i = 0; i < count; i++) {
        for (int way = 0; way < ACRE_WAY_COUNT; way++) {
            auto_why_not(automatic, (enum acre_way)way, ret_costs[i].items,
                         ret_costs[i].reason[way], sizeof(ret_costs[i].reason[way]));
        }
    }
    pthread_mutex_unlock(&automatic->lock);
    return count;
}

const char *acre_auto_note(struct acre_auto *automatic) {
    return automatic != NULL ? automatic->note : "";
}
