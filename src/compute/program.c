/* program.c - from a source to kernels that can be launched, and back after a loss.
 *
 * Building: read the signatures, write the text for the back end's compiler, look it up in the disk
 * cache, compile it if it is not there, load the module. The compiled bytes stay in memory: a
 * rebuilt context has no modules, and each program loads its own again when one of its kernels is
 * next used, in whichever thread comes first.
 *
 * A kernel's handle is valid for one epoch of the context. While a thread holds the gate for
 * reading, the epoch does not change. Handle and facts are written before `epoch`, so every thread
 * that sees the current epoch there reads them without a lock. */
#include "compute/program.h"

#include "compute/cache.h"
#include "compute/context.h"
#include "compute/graph.h"
#include "compute/process.h"
#include "compute/quiet.h"
#include "compute/source/dialect.h"
#include "compute/source/lexer.h"
#include "core/clock.h"

#include <acre/parameter.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX_BYTES = 2 * SOURCE_MAX_BYTES, /* prelude and all */
    LOG_MAX_BYTES = 1 << 20,
    OPTIONS_MAX_BYTES = 64 << 10,
    MESSAGE_SHOWN = 400,
    NAME_SHOWN = 96,
};

struct acre_program {
    struct acre_context *context;
    struct acre_program *next; /* of the context */
    struct acre_kernel *kernels;
    uint32_t count;
    acre_native_function *function; /* NULL: compiled */
    struct acre_buf binary;         /* what `load` takes */
    pthread_mutex_t lock;           /* loading: the next two, and the kernels' handles */
    uint64_t module;
    uint32_t module_epoch; /* 0: not loaded */
};

/* --- loading -------------------------------------------------------------------------------- */

/* The gate for reading, while the context works. */
static int enter(struct acre_context *context, struct acre_error *err) {
    context_read(context);
    if (atomic_load(&context->failed) == 0) {
        return 0;
    }
    int r = context_failure(context, err);
    pthread_rwlock_unlock(&context->gate);
    return r;
}

static void leave(struct acre_context *context) {
    pthread_rwlock_unlock(&context->gate);
}

/* The program's module in the present epoch. Gate and the program's lock held. */
static int load_module(struct acre_program *program, const struct quiet *quiet,
                       struct acre_error *err) {
    struct acre_context *context = program->context;
    uint32_t epoch = atomic_load(&context->epoch);
    if (program->module_epoch == epoch) {
        return 0;
    }
    int r = quiet_load(quiet, program->binary.data, program->binary.length, &program->module, err);
    if (r == 0) {
        program->module_epoch = epoch;
    }
    return r;
}

/* Whether the compiler has its values as they were read. What a struct is only it knows. */
static int check_values(const struct signature *signature, const struct kernel_facts *facts,
                        struct acre_error *err) {
    if (facts->parameters != 0 && facts->parameters != signature->count) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "kernel '%s': the source shows %u parameters, but the compiler counts %u; "
                         "a macro must not stand for several parameters",
                         signature->name, signature->count, facts->parameters);
    }
    for (uint32_t i = 0; i < signature->count; i++) {
        const struct parameter *parameter = &signature->parameters[i];
        uint32_t bytes = facts->value_bytes[i];
        if (parameter->kind >= PARAMETER_SIGNED && parameter->kind <= PARAMETER_VECTOR &&
            bytes != 0 && bytes != parameter->bytes) {
            return acre_fail(err, ACRE_EUNSUPPORTED,
                             "kernel '%s': parameter %u '%s' (%s) looks like %u bytes in the "
                             "source, but has %u for the compiler; use the type's own name",
                             signature->name, i + 1, parameter->name, parameter->type,
                             parameter->bytes, bytes);
        }
    }
    return 0;
}

/* Gate and the program's lock held. */
static int load_kernel(struct acre_kernel *kernel, const struct quiet *quiet,
                       struct acre_error *err) {
    struct acre_program *program = kernel->program;
    struct acre_context *context = program->context;
    uint64_t handle = 0;
    struct kernel_facts facts = {0};
    int r;
    if (program->function != NULL) {
        r = context->table->native(context->seat, program->function, &handle, err);
    } else {
        r = load_module(program, quiet, err);
        r = r == 0 ? context->table->kernel(context->seat, program->module, kernel->signature.name,
                                            &handle, &facts, err)
                   : r;
        r = r == 0 ? check_values(&kernel->signature, &facts, err) : r;
    }
    if (r < 0) {
        return r;
    }
    kernel->handle = handle;
    kernel->facts = facts;
    /* Pairs with the load in kernel_handle: who sees the epoch sees the two above. */
    atomic_store_explicit(&kernel->epoch, atomic_load(&context->epoch), memory_order_release);
    return 0;
}

static bool is_loaded(const struct acre_kernel *kernel) {
    /* Pairs with the store in load_kernel. */
    return atomic_load_explicit(&kernel->epoch, memory_order_acquire) ==
           atomic_load_explicit(&kernel->program->context->epoch, memory_order_relaxed);
}

int kernel_ready(struct acre_kernel *kernel, struct acre_error *err) {
    if (is_loaded(kernel)) {
        return 0;
    }
    struct acre_program *program = kernel->program;
    struct quiet quiet;
    quiet_begin(&quiet, program->context);
    int r = enter(program->context, err);
    if (r == 0) {
        pthread_mutex_lock(&program->lock);
        r = is_loaded(kernel) ? 0 : load_kernel(kernel, &quiet, err);
        pthread_mutex_unlock(&program->lock);
        leave(program->context);
    }
    quiet_end(&quiet);
    return r;
}

int kernel_handle(struct acre_kernel *kernel, uint64_t *ret_handle, struct acre_error *err) {
    if (!is_loaded(kernel)) { /* it was, a moment ago */
        return context_loss(kernel->program->context, err);
    }
    *ret_handle = kernel->handle;
    return 0;
}

int kernel_check(const struct acre_kernel *kernel, struct acre_error *err) {
    return kernel != NULL && process_is_ours(kernel->program->context->process)
               ? 0
               : process_refuse("kernel", kernel, err);
}

struct acre_context *kernel_context(const struct acre_kernel *kernel) {
    return kernel->program->context;
}

/* --- programs ------------------------------------------------------------------------------- */

/* Takes over the signatures when it succeeds. */
static int create(struct acre_context *context, const struct signature *all, uint32_t count,
                  struct acre_program **ret_program, struct acre_error *err) {
    struct acre_program *program = calloc(1, sizeof(*program));
    struct acre_kernel *kernels = calloc(count, sizeof(*kernels));
    if (program == NULL || kernels == NULL) {
        free(program);
        free(kernels);
        return acre_fail(err, ACRE_ENOMEM, "program");
    }
    *program = (struct acre_program){.context = context, .kernels = kernels, .count = count};
    pthread_mutex_init(&program->lock, NULL);
    for (uint32_t i = 0; i < count; i++) {
        kernels[i].program = program;
        kernels[i].signature = all[i];
    }
    *ret_program = program;
    return 0;
}

static void release(struct acre_program *program) {
    for (uint32_t i = 0; i < program->count; i++) {
        free(program->kernels[i].signature.parameters);
    }
    if (program->binary.data != NULL) {
        acre_buf_finish(&program->binary);
    }
    pthread_mutex_destroy(&program->lock);
    free(program->kernels);
    free(program);
}

static void add_to_context(struct acre_program *program) {
    struct acre_context *context = program->context;
    pthread_mutex_lock(&context->lock);
    program->next = context->programs;
    context->programs = program;
    pthread_mutex_unlock(&context->lock);
}

/* What the back end has of it in the present epoch. Gate held. */
static void unload(struct acre_program *program, const struct quiet *quiet) {
    struct acre_context *context = program->context;
    bool is_native = program->function != NULL;
    uint32_t epoch = is_native ? atomic_load(&program->kernels[0].epoch) : program->module_epoch;
    if (epoch == 0 || epoch != atomic_load(&context->epoch)) {
        return;
    }
    graphs_forget(quiet);
    if (is_native) {
        context->table->native_destroy(context->seat, program->kernels[0].handle);
    } else {
        quiet_unload(quiet, program->module);
    }
}

void acre_program_destroy(struct acre_program *program) {
    if (program == NULL || !process_is_ours(program->context->process)) {
        return;
    }
    struct acre_context *context = program->context;
    pthread_mutex_lock(&context->lock);
    struct acre_program **at = &context->programs;
    while (*at != program) {
        ACRE_ASSERT(*at != NULL); /* destroyed twice */
        at = &(*at)->next;
    }
    *at = program->next;
    pthread_mutex_unlock(&context->lock);
    struct quiet quiet;
    quiet_begin(&quiet, context);
    context_read(context);
    if (atomic_load(&context->failed) == 0) { /* else nobody is there, or it may run still */
        unload(program, &quiet);
    }
    pthread_rwlock_unlock(&context->gate);
    quiet_end(&quiet);
    release(program);
}

void programs_destroy(struct acre_context *context) {
    while (context->programs != NULL) {
        acre_program_destroy(context->programs);
    }
}

int acre_kernel_find(struct acre_program *program, const char *name,
                     struct acre_kernel **ret_kernel, struct acre_error *err) {
    if (program == NULL) {
        return process_refuse("program", NULL, err);
    }
    char shown[NAME_SHOWN], names[256] = "";
    acre_str_show(acre_str_from(name), shown, sizeof(shown));
    size_t length = 0;
    for (uint32_t i = 0; i < program->count; i++) {
        struct acre_kernel *kernel = &program->kernels[i];
        bool is_there = atomic_load(&kernel->epoch) != 0;
        if (name != NULL && strcmp(kernel->signature.name, name) == 0) {
            if (!is_there) {
                return acre_fail(err, ACRE_ENOTFOUND,
                                 "kernel '%s' is in the source (line %u), but was not compiled; is "
                                 "it inside an #if?",
                                 shown, kernel->signature.line);
            }
            *ret_kernel = kernel;
            return 0;
        }
        if (is_there && length < sizeof(names)) {
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                       length > 0 ? ", " : "", kernel->signature.name);
        }
    }
    return acre_fail(err, ACRE_ENOTFOUND, "no kernel '%s' in the program; %s%s%s", shown,
                     length > 0 ? "its kernels: " : "none of its kernels was compiled", names,
                     length < sizeof(names) ? "" : "...");
}

/* --- what there is -------------------------------------------------------------------------- */

struct acre_kernel *acre_program_kernel(struct acre_program *program, uint32_t index) {
    for (uint32_t i = 0; program != NULL && i < program->count; i++) {
        if (atomic_load(&program->kernels[i].epoch) != 0 && index-- == 0) {
            return &program->kernels[i];
        }
    }
    return NULL;
}

const char *acre_kernel_name(const struct acre_kernel *kernel) {
    return kernel != NULL ? kernel->signature.name : "";
}

_Static_assert((int)PARAMETER_BUFFER == (int)ACRE_PARAMETER_BUFFER &&
                   (int)PARAMETER_LOCAL == (int)ACRE_PARAMETER_LOCAL &&
                   (int)PARAMETER_SIGNED == (int)ACRE_PARAMETER_SIGNED &&
                   (int)PARAMETER_UNSIGNED == (int)ACRE_PARAMETER_UNSIGNED &&
                   (int)PARAMETER_FLOAT == (int)ACRE_PARAMETER_FLOAT &&
                   (int)PARAMETER_VECTOR == (int)ACRE_PARAMETER_VECTOR &&
                   (int)PARAMETER_STRUCT == (int)ACRE_PARAMETER_STRUCT,
               "one list of kinds");

bool acre_kernel_parameter(const struct acre_kernel *kernel, uint32_t index,
                           struct acre_parameter *ret_parameter) {
    if (kernel == NULL || index >= kernel->signature.count) {
        return false;
    }
    const struct parameter *parameter = &kernel->signature.parameters[index];
    *ret_parameter = (struct acre_parameter){.kind = (enum acre_parameter_kind)parameter->kind,
                                             .bytes = parameter->bytes,
                                             .is_const = parameter->is_const,
                                             .name = parameter->name,
                                             .type = parameter->type};
    return true;
}

/* --- native --------------------------------------------------------------------------------- */

int acre_program_native(struct acre_context *context, const char *signature,
                        acre_native_function *function, struct acre_program **ret_program,
                        struct acre_error *err) {
    int r = context_check(context, err);
    if (r < 0) {
        return r;
    }
    if (signature == NULL || function == NULL) {
        return acre_fail(err, ACRE_EINVALID, "%s: must not be NULL; accepted: %s",
                         signature == NULL ? "signature" : "function",
                         signature == NULL ? "\"void name(parameters)\"" : "a function");
    }
    if (context->table->native == NULL) {
        return acre_fail(
            err, ACRE_EUNSUPPORTED,
            "%s cannot run C functions as kernels; accepted: a CPU context in this process",
            context_device(context)->name);
    }
    struct signature parsed;
    struct acre_program *program = NULL;
    r = signature_read(acre_str_from(signature), &parsed, err);
    if (r < 0) {
        return r;
    }
    r = create(context, &parsed, 1, &program, err);
    if (r < 0) {
        free(parsed.parameters);
        return r;
    }
    program->function = function;
    r = kernel_ready(&program->kernels[0], err);
    if (r < 0) {
        release(program);
        return r;
    }
    add_to_context(program);
    *ret_program = program;
    return 0;
}

/* --- building ------------------------------------------------------------------------------- */

struct build {
    struct acre_context *context;
    struct acre_source source;
    const char *name, *backend, *options;
    enum acre_language language;
    struct signature *all;
    uint32_t count;
    bool reads_files; /* that are no part of the cache's key, and may change */
    struct acre_buf text, binary, log;
    struct cache_key key;
    struct acre_build_report report;
};

static int check_source(struct build *build, struct acre_error *err) {
    struct acre_source *source = &build->source;
    if (source->text == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "source.text: must not be NULL; accepted: the text of the kernels");
    }
    source->text = acre_str_after_mark(source->text);
    if ((uint32_t)source->language > ACRE_LANGUAGE_OPENCL) {
        return acre_fail(err, ACRE_EINVALID, "unknown source.language %d; accepted: 0 to %d",
                         (int)source->language, ACRE_LANGUAGE_OPENCL);
    }
    if (build->context->table->compile == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "%s (%s) cannot compile source",
                         context_device(build->context)->name, build->backend);
    }
    build->name = source->name != NULL ? source->name : "kernel";
    build->language = source->language;
    if (build->language == ACRE_LANGUAGE_AUTO) {
        build->language = language_of(acre_str_from(source->text));
        const struct backend *backend = backend_find(acre_str_from(build->backend));
        if (backend != NULL && backend->also == build->language) {
            build->language = backend->language;
        }
    }
    return 0;
}

static bool begins(struct acre_str text, const char *with) {
    return text.length >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

static bool begins_with_one(struct acre_str word, const char *const *with, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (begins(word, with[i])) {
            return true;
        }
    }
    return false;
}

/* What options name: directories to look for files in; and perhaps files, for all but those that
 * are known to have no business with any. */
static void read_options(struct acre_str options, bool *ret_has_path_options, bool *ret_has_files) {
    static const char *const path_options[] = {"-I", "-isystem", "-iquote", "-idirafter",
                                               "--include-path"};
    static const char *const with_files[] = {"-Wp,",      "-Wa,",     "-Wl,",      "-fplugin",
                                             "-fprofile", "-fmodule", "-fsanitize"};
    static const char *const harmless[] = {"-D",
                                           "-U",
                                           "-O",
                                           "-f",
                                           "-m",
                                           "-W",
                                           "-w",
                                           "-g",
                                           "-std",
                                           "--std",
                                           "-cl-",
                                           "-ansi",
                                           "-arch",
                                           "--gpu-architecture",
                                           "-use",
                                           "-lineinfo",
                                           "--use_fast_math",
                                           "--fmad",
                                           "--maxrregcount",
                                           "-pedantic"};
    for (size_t at = 0; at < options.length;) {
        size_t length = 0;
        while (at + length < options.length &&
               strchr(" \t\r\n\v\f", options.data[at + length]) == NULL) {
            length++;
        }
        struct acre_str word = {options.data + at, length};
        bool is_path_option = begins_with_one(word, path_options, ACRE_COUNT(path_options));
        *ret_has_path_options |= is_path_option;
        *ret_has_files |= length > 0 && !is_path_option &&
                          (!begins_with_one(word, harmless, ACRE_COUNT(harmless)) ||
                           begins_with_one(word, with_files, ACRE_COUNT(with_files)));
        at += length + 1;
    }
}

static bool is_in_environment(void) {
    static const char *const names[] = {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"};
    bool is_set = false;
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        is_set |= value != NULL && value[0] != '\0';
    }
    return is_set;
}

/* A directive that may bring a file in: all but those that are known to bring none, and <x.h> where
 * only the compiler's own files, which change with its version, are. */
static bool brings_file(struct acre_str directive, bool has_path_options) {
    static const char *const others[] = {"define", "undef",   "if",       "ifdef",   "ifndef",
                                         "elif",   "elifdef", "elifndef", "else",    "endif",
                                         "pragma", "line",    "error",    "warning", ""};
    struct acre_str rest, word = directive_word(directive, &rest);
    for (size_t i = 0; i < ACRE_COUNT(others); i++) {
        if (acre_str_is(word, others[i])) {
            return false;
        }
    }
    bool is_path = begins(rest, "</") || memmem(rest.data, rest.length, "..", 2) != NULL;
    return !acre_str_is(word, "include") || has_path_options || !begins(rest, "<") || is_path;
}

/* Whether the compiler reads files of the user's: "x.h", <x.h> where somebody says where to look,
 * those of the options; or asks whether there are any. */
static bool reads_files(struct acre_str text, struct acre_str options) {
    struct lexer lexer = lexer_begin("", text);
    struct source_token token;
    bool has_path_options = is_in_environment();
    bool has_files = memmem(text.data, text.length, "__has_include", 13) != NULL ||
                     memmem(text.data, text.length, "__has_embed", 11) != NULL ||
                     memmem(text.data, text.length, "%:", 2) != NULL; /* a '#' */
    read_options(options, &has_path_options, &has_files);
    while (!has_files && lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        has_files = token.kind == TOKEN_DIRECTIVE && brings_file(token.text, has_path_options);
    }
    return has_files;
}

/* Everything before the compiler: signatures, text, options. */
static int prepare(struct build *build, struct acre_error *err) {
    const struct acre_source *source = &build->source;
    int r = signatures_read(build->name, acre_str_from(source->text), build->language, &build->all,
                            &build->count, err);
    if (r < 0) {
        return r;
    }
    if (build->count == 0) {
        char shown[NAME_SHOWN];
        static const char *const words[] = {"", "kernel", "__global__", "__global__", "__kernel"};
        return acre_fail(err, ACRE_EINVALID, "%s has no kernel; expected '%s void name(...)'",
                         acre_str_show(acre_str_from(build->name), shown, sizeof(shown)),
                         words[build->language]);
    }
    r = dialect_write(build->backend, source, build->language, build->all, build->count,
                      &build->text, err);
    if (r < 0) {
        return r;
    }
    build->options = source->options != NULL ? source->options : "";
    build->reads_files = reads_files(acre_str_from(source->text), acre_str_from(build->options));
    return strlen(build->options) <= OPTIONS_MAX_BYTES
               ? 0
               : acre_fail(err, ACRE_ELIMIT, "source.options: %zu bytes; accepted: at most %d",
                           strlen(build->options), OPTIONS_MAX_BYTES);
}

/* The first line of the log that tells of an error; else the first that tells anything. */
static struct acre_str first_message(struct acre_str log) {
    struct acre_str line, first = {"", 0};
    struct acre_split lines = acre_split_begin(log, '\n');
    while (acre_split_next(&lines, &line)) {
        line = acre_str_trim(line);
        if (line.length > 0 && memmem(line.data, line.length, "error", 5) != NULL) {
            return line;
        }
        first = first.length == 0 ? line : first;
    }
    return first;
}

/* Gate held. */
static int compile(struct build *build, const struct acre_program *program,
                   struct acre_error *err) {
    struct acre_context *context = build->context;
    const char *kernels[SIGNATURES_MAX];
    for (uint32_t i = 0; i < program->count; i++) {
        kernels[i] = program->kernels[i].signature.name;
    }
    const struct native_source native = {.text = build->text.data,
                                         .length = build->text.length,
                                         .options = build->options,
                                         .kernels = kernels,
                                         .kernel_count = program->count};
    acre_buf_clear(&build->binary);
    int r = enter(context, err);
    if (r < 0) {
        return r;
    }
    r = context->table->compile(context->seat, &native, &build->binary, &build->log, err);
    leave(context);
    if (r == 0 && acre_buf_failed(&build->binary)) {
        r = acre_fail(err, ACRE_ELIMIT, "%s: more than %d bytes of compiled code", build->name,
                      CACHE_ENTRY_MAX_BYTES);
    }
    struct acre_str message = first_message((struct acre_str){build->log.data, build->log.length});
    if (r == ACRE_EINVALID && message.length > 0) {
        char shown[MESSAGE_SHOWN];
        acre_fail(err, r, "%s", acre_str_show_text(message, shown, sizeof(shown)));
    }
    return r;
}

static void tell_cache(struct build *build, const char *format, const char *why) {
    int length = snprintf(build->report.cache, sizeof(build->report.cache), "%s: ", format);
    snprintf(build->report.cache + length, sizeof(build->report.cache) - (size_t)length, "%s", why);
}

static struct cache_source cache_source_of(const struct build *build) {
    const char *identity = context_device(build->context)->identity;
    const char *compiler = strstr(identity, ACRE_IDENTITY_COMPILER);
    size_t length = compiler != NULL ? (size_t)(compiler - identity) : 0;
    return (struct cache_source){.text = {build->text.data, build->text.length},
                                 .options = build->options,
                                 .backend = build->backend,
                                 .identity = identity,
                                 .machine = {identity, length},
                                 .name = build->name};
}

/* The compiled program from the cache; false: there is none. */
static bool find_cached(struct build *build) {
    const char *directory = build->context->compute->cache;
    const struct cache_source source = cache_source_of(build);
    struct acre_error why = {0};
    if (directory[0] == '\0') {
        tell_cache(build, "off", "no cache directory is set");
        return false;
    }
    if (build->reads_files) {
        tell_cache(build, "off", "the source includes files that may change");
        return false;
    }
    int r = cache_key_of(&source, &build->key, &why);
    r = r == 0 ? cache_read(directory, &build->key, &build->binary, &why) : r;
    if (r == ACRE_ENOTFOUND &&
        (context_device(build->context)->capabilities & ACRE_CAN_SOURCE) == 0) {
        r = cache_read_any(directory, &source, &build->key, &build->binary, &why);
    }
    if (r == ACRE_ECORRUPT) {
        tell_cache(build, "damaged and rebuilt", why.text);
    } else if (r < 0 && r != ACRE_ENOTFOUND) {
        tell_cache(build, "not used", why.text);
    }
    return r == 0;
}

static void keep_cached(struct build *build) {
    const char *directory = build->context->compute->cache;
    const struct cache_source source = cache_source_of(build);
    struct acre_error why = {0};
    if (directory[0] != '\0' && !build->reads_files &&
        cache_write(directory, &build->key, &source, build->binary.data, build->binary.length,
                    &why) < 0) {
        tell_cache(build, "not cached", why.text);
    }
}

/* Load the module and ask for all kernels. One that is not in it (under an #if) keeps epoch 0. */
static int load_all(struct acre_program *program, const struct quiet *quiet,
                    struct acre_error *err) {
    pthread_mutex_lock(&program->lock);
    int r = load_module(program, quiet, err);
    for (uint32_t i = 0; i < program->count && r == 0; i++) {
        struct acre_error why = {0};
        r = load_kernel(&program->kernels[i], quiet, &why);
        r = r == ACRE_ENOTFOUND ? 0 : r;
        r = r < 0 ? acre_fail(err, r, "%s", why.text) : 0;
    }
    pthread_mutex_unlock(&program->lock);
    return r;
}

/* Lends the binary to the program, and takes it back when it cannot be loaded. */
static int try_load(struct build *build, struct acre_program *program, struct acre_error *err) {
    struct acre_context *context = program->context;
    struct quiet quiet;
    quiet_begin(&quiet, context);
    int r = enter(context, err);
    if (r < 0) {
        quiet_end(&quiet);
        return r;
    }
    program->binary = build->binary;
    r = load_all(program, &quiet, err);
    if (r == 0) {
        build->binary = (struct acre_buf){0};
    } else {
        if (program->module_epoch != 0) {
            quiet_unload(&quiet, program->module);
        }
        for (uint32_t i = 0; i < program->count; i++) {
            atomic_store(&program->kernels[i].epoch, 0);
        }
        program->module_epoch = 0;
        program->binary = (struct acre_buf){0};
    }
    leave(context);
    quiet_end(&quiet);
    return r;
}

/* Whether the bytes are refused. Else the device cannot load now (no memory, the context lost):
 * that says nothing of the bytes, and with those of another compilation it would be no different.
 */
static bool is_of_entry(int result) {
    return result == ACRE_ECORRUPT || result == ACRE_EINVALID || result == ACRE_EUNSUPPORTED;
}

static int make(struct build *build, struct acre_program *program, struct acre_error *err) {
    if (find_cached(build)) {
        struct acre_error why = {0};
        int found = try_load(build, program, &why);
        if (!is_of_entry(found)) {
            build->report.was_cached = found == 0;
            return found == 0 ? 0 : acre_fail(err, found, "%s", why.text);
        }
        /* Sound as a file, but not what this device takes: it must go, or it would come again. */
        cache_remove(build->context->compute->cache, &build->key);
        tell_cache(build, "damaged and rebuilt", why.text);
    }
    int r = compile(build, program, err);
    if (r < 0) {
        return r;
    }
    r = try_load(build, program, err);
    if (r == 0) {
        struct acre_buf kept = build->binary;
        build->binary = program->binary; /* lent back, to be written */
        keep_cached(build);
        build->binary = kept;
    }
    return r;
}

static int run(struct build *build, struct acre_program **ret_program, struct acre_error *err) {
    int r = check_source(build, err);
    r = r == 0 ? prepare(build, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_program *program = NULL;
    r = create(build->context, build->all, build->count, &program, err);
    if (r < 0) {
        return r;
    }
    free(build->all); /* what is in it is the program's */
    build->all = NULL;
    r = make(build, program, err);
    if (r < 0) {
        release(program);
        return r;
    }
    add_to_context(program);
    *ret_program = program;
    return 0;
}

int acre_program_build(struct acre_context *context, const struct acre_source *source,
                       struct acre_program **ret_program, struct acre_build_report *ret_report,
                       struct acre_error *err) {
    int r = context_check(context, err);
    if (r == 0 && source == NULL) {
        r = acre_fail(err, ACRE_EINVALID,
                      "source: must not be NULL; accepted: the text of the kernels");
    }
    if (r < 0) {
        if (ret_report != NULL) {
            *ret_report = (struct acre_build_report){.log = calloc(1, 1)};
        }
        return r;
    }
    struct acre_clock clock = acre_clock_real();
    uint64_t begin_ns = acre_clock_monotonic_ns(&clock);
    struct build build = {
        .context = context, .source = *source, .backend = context_device(context)->backend};
    acre_buf_init(&build.text, TEXT_MAX_BYTES);
    acre_buf_init(&build.binary, CACHE_ENTRY_MAX_BYTES);
    acre_buf_init(&build.log, LOG_MAX_BYTES);
    r = run(&build, ret_program, err);
    if (ret_report != NULL) {
        *ret_report = build.report;
        ret_report->build_ms = (double)(acre_clock_monotonic_ns(&clock) - begin_ns) / 1e6;
        ret_report->log = build.log.data;
        build.log = (struct acre_buf){0};
    }
    signatures_free(build.all, build.all != NULL ? build.count : 0);
    acre_buf_finish(&build.text);
    acre_buf_finish(&build.binary);
    acre_buf_finish(&build.log);
    return r;
}

void acre_build_report_finish(struct acre_build_report *report) {
    if (report == NULL) {
        return;
    }
    free(report->log);
    *report = (struct acre_build_report){0};
}
