/* signature.c - kernels found among the declarations of a source, and their parameters.
 *
 * Declarations at file scope are read one by one. Bodies, initializers and brackets are skipped by
 * counting; namespaces and extern "C" blocks are entered; typedefs of numbers are remembered. A
 * declaration with the word of a kernel is read in full, and must be understood.
 *
 * This reads only declarations, and no macros: what cannot be seen without a compiler (templates,
 * kernels made by macros) is refused with its line rather than guessed. */
#include "compute/source/signature.h"

#include "compute/source/token_reader.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_SHOWN = 96 };

struct scan {
    struct reader reader;
    struct signature *all;
    uint32_t count, capacity;
    bool scopes_c[NESTING_MAX]; /* whether each open namespace or extern block is extern "C" */
    uint32_t depth;
};

/* What is known of a declaration before its kernel word. */
struct prefix {
    uint32_t offset;
    bool is_conditional;
    bool is_template, is_static, is_c, is_first, returns_void;
};

/* --- language ------------------------------------------------------------------------------- */

/* hipThreadIdx_x, and not "hipass". */
static bool is_hip_word(struct acre_str word) {
    return word.length > 3 && memcmp(word.data, "hip", 3) == 0 && word.data[3] >= 'A' &&
           word.data[3] <= 'Z';
}

enum acre_language language_of(struct acre_str text) {
    static const char *const opencl[] = {"__kernel",     "get_global_id", "get_local_id",
                                         "__global",     "__local",       "get_global_size",
                                         "get_group_id", "__constant"};
    bool is_opencl = false, is_cuda = false, is_hip = false;
    struct lexer lexer = lexer_begin("", text);
    struct source_token token;
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (token.kind == TOKEN_DIRECTIVE) {
            is_hip |= memmem(token.text.data, token.text.length, "hip/hip_", 8) != NULL;
        } else if (token.kind == TOKEN_WORD) {
            is_cuda |= acre_str_is(token.text, "__global__");
            is_hip |= is_hip_word(token.text);
            for (size_t i = 0; i < ACRE_COUNT(opencl); i++) {
                is_opencl |= acre_str_is(token.text, opencl[i]);
            }
        }
    }
    if (is_cuda) {
        return is_hip ? ACRE_LANGUAGE_HIP : ACRE_LANGUAGE_CUDA;
    }
    return is_opencl ? ACRE_LANGUAGE_OPENCL : ACRE_LANGUAGE_PORTABLE;
}

/* --- one kernel ----------------------------------------------------------------------------- */

/* Behind the ')': an #if there is not among them. */
static int leave_parameters(struct reader *reader, struct acre_error *err) {
    reader->in_parameters = false;
    return reader_advance(reader, err);
}

static int read_parameters(struct reader *reader, struct signature *signature,
                           struct acre_error *err) {
    struct source_token open = reader->token;
    reader->in_parameters = true;
    int r = reader_advance(reader, err);
    if (r == 0 && token_is(&reader->token, "void")) {
        struct lexer lexer = reader->lexer;
        struct source_token token = reader->token;
        r = reader_advance(reader, err);
        if (r == 0 && !token_is(&reader->token, ")")) { /* void *p */
            reader->lexer = lexer;
            reader->token = token;
        }
    }
    if (r < 0 || token_is(&reader->token, ")")) {
        return r < 0 ? r : leave_parameters(reader, err);
    }
    for (;;) {
        if (signature->count == SIGNATURE_PARAMETERS_MAX) {
            return acre_fail(err, ACRE_ELIMIT, "%s:%u: kernel '%s' has more than %d parameters",
                             reader->lexer.name, reader->token.line, signature->name,
                             SIGNATURE_PARAMETERS_MAX);
        }
        r = parameter_read(reader, signature->count + 1, &signature->parameters[signature->count],
                           err);
        reader->parameter = 0;
        if (r < 0) {
            return r;
        }
        signature->count++;
        if (token_is(&reader->token, ")")) {
            return leave_parameters(reader, err);
        }
        if (!token_is(&reader->token, ",")) {
            reader->token = open;
            return reader_refuse(reader, err, "the '%s' before its parameters is never closed");
        }
        r = reader_advance(reader, err);
        if (r < 0) {
            return r;
        }
    }
}

/* Up to the '(' of its parameters: attributes, words, `void`, the name. */
static int read_head(struct reader *reader, struct prefix *prefix, struct source_token *ret_name,
                     struct acre_error *err) {
    bool is_special = false; /* f<int> */
    struct source_token name = {.kind = TOKEN_END};
    int r = 0;
    while (r == 0 && !token_is(&reader->token, "(")) {
        const struct source_token *token = &reader->token;
        if (reader_at_attribute(reader)) {
            r = reader_skip_attribute(reader, err);
            continue;
        }
        prefix->is_static |= token_is(token, "static");
        prefix->returns_void |= token_is(token, "void");
        is_special = token_is(token, "<") && name.kind == TOKEN_WORD;
        if (is_special) {
            break;
        }
        if (token->kind == TOKEN_STRING) {
            prefix->is_c = true; /* extern "C" behind the word */
        } else if (token->kind != TOKEN_WORD) {
            return reader_refuse(reader, err, "expected a kernel's name instead of '%s'");
        }
        name = *token;
        r = reader_advance(reader, err);
    }
    if (r < 0) {
        return r;
    }
    reader->in = name.kind == TOKEN_WORD ? name.text : reader->in;
    if (prefix->is_template || is_special) {
        return reader_refuse(
            reader, err,
            "is a template; write one kernel for each type (it may call a template function)");
    }
    if (prefix->is_static) {
        return reader_refuse(reader, err, "is static, so it cannot be found; remove static");
    }
    if (!prefix->returns_void || name.kind != TOKEN_WORD || token_is(&name, "void")) {
        return reader_refuse(reader, err,
                             "expected 'void', the kernel's name, then its parameters");
    }
    *ret_name = name;
    return 0;
}

static int read_signature(struct reader *reader, struct prefix *prefix,
                          struct signature *ret_signature, struct acre_error *err) {
    struct source_token name = {.kind = TOKEN_END};
    int r = read_head(reader, prefix, &name, err);
    if (r < 0) {
        return r;
    }
    struct signature signature = {.line = name.line,
                                  .offsets = {prefix->offset},
                                  .are_c = {prefix->is_c},
                                  .declarations = 1,
                                  .is_conditional = prefix->is_conditional};
    if (!acre_str_copy(signature.name, sizeof(signature.name), name.text)) {
        return acre_fail(err, ACRE_ELIMIT, "%s:%u: a kernel's name is longer than %d bytes",
                         reader->lexer.name, name.line, SIGNATURE_NAME_MAX - 1);
    }
    struct parameter *parameters = calloc(SIGNATURE_PARAMETERS_MAX, sizeof(*parameters));
    if (parameters == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "signatures");
    }
    signature.parameters = parameters;
    r = read_parameters(reader, &signature, err);
    while (r == 0 && reader_at_attribute(reader)) {
        r = reader_skip_attribute(reader, err);
    }
    if (r == 0 && token_is(&reader->token, "(")) {
        r = reader_refuse(reader, err,
                          "unexpected '%s' after the parameters; is the kernel's name a macro?");
    }
    if (r < 0) {
        free(parameters);
        return r;
    }
    /* Most kernels have few; a failure to give back the rest costs nothing. */
    parameters = realloc(parameters, ACRE_MAX(signature.count, 1U) * sizeof(*parameters));
    signature.parameters = parameters != NULL ? parameters : signature.parameters;
    *ret_signature = signature;
    return 0;
}

static bool is_same(const struct signature *a, const struct signature *b) {
    bool same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && same; i++) {
        same = a->parameters[i].kind == b->parameters[i].kind &&
               a->parameters[i].bytes == b->parameters[i].bytes;
    }
    return same;
}

static bool has_a_body(const struct signature *kernel) {
    bool has = false;
    for (uint32_t i = 0; i < kernel->declarations; i++) {
        has |= kernel->have_bodies[i];
    }
    return has;
}

/* Another declaration of a kernel. */
static int add_declaration(struct scan *scan, struct signature *kernel,
                           const struct signature *again, struct acre_error *err) {
    if (!is_same(kernel, again)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s:%u: kernel '%s' has other parameters than on line %u; give each "
                         "kernel its own name",
                         scan->reader.lexer.name, again->line, again->name, kernel->line);
    }
    if (kernel->declarations == SIGNATURE_DECLARATIONS_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "%s:%u: kernel '%s' is declared more than %d times",
                         scan->reader.lexer.name, again->line, again->name,
                         SIGNATURE_DECLARATIONS_MAX);
    }
    bool has_body = has_a_body(kernel);
    if (has_body == again->have_bodies[0]) {
        kernel->is_conditional &= again->is_conditional;
    } else if (!has_body) {
        kernel->is_conditional = again->is_conditional;
    }
    for (uint32_t i = 0; i < kernel->count; i++) { /* void f(float *); */
        if (kernel->parameters[i].name[0] == '\0') {
            kernel->parameters[i] = again->parameters[i];
        }
    }
    kernel->offsets[kernel->declarations] = again->offsets[0];
    kernel->have_bodies[kernel->declarations] = again->have_bodies[0];
    kernel->are_c[kernel->declarations++] = again->are_c[0];
    return 0;
}

/* Takes over the signature, or frees it. */
static int add_signature(struct scan *scan, struct signature *signature, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < scan->count; i++) {
        if (strcmp(scan->all[i].name, signature->name) == 0) {
            r = add_declaration(scan, &scan->all[i], signature, err);
            free(signature->parameters);
            return r;
        }
    }
    if (scan->count == scan->capacity) {
        uint32_t capacity = ACRE_MAX(scan->capacity * 2, 4U);
        struct signature *all = realloc(scan->all, capacity * sizeof(*all));
        r = all == NULL ? acre_fail(err, ACRE_ENOMEM, "signatures") : 0;
        scan->all = all != NULL ? all : scan->all;
        scan->capacity = all != NULL ? capacity : scan->capacity;
    }
    if (r == 0 && scan->count == SIGNATURES_MAX) {
        r = acre_fail(err, ACRE_ELIMIT, "%s:%u: more than %d kernels", scan->reader.lexer.name,
                      signature->line, SIGNATURES_MAX);
    }
    if (r < 0) {
        free(signature->parameters);
        return r;
    }
    scan->all[scan->count++] = *signature;
    return 0;
}

static int read_kernel(struct scan *scan, struct prefix *prefix, struct acre_error *err) {
    struct reader *reader = &scan->reader;
    if (reader->is_strict && !prefix->is_first) {
        return reader_refuse(reader, err, "unexpected '%s' at the start of a kernel's declaration");
    }
    struct signature signature;
    int r = reader_advance(reader, err);
    r = r == 0 ? read_signature(reader, prefix, &signature, err) : r;
    if (r < 0) {
        return r;
    }
    if (token_is(&reader->token, "{")) {
        signature.have_bodies[0] = true;
        r = reader_skip_brackets(reader, err);
    } else if (token_is(&reader->token, ";")) {
        r = reader_advance(reader, err);
    } else {
        r = reader_refuse(reader, err, "expected '{' after the parameters, not '%s'");
    }
    reader->in = (struct acre_str){"", 0};
    if (r < 0) {
        free(signature.parameters);
        return r;
    }
    return add_signature(scan, &signature, err);
}

/* --- declarations --------------------------------------------------------------------------- */

static int open_scope(struct scan *scan, bool is_c, struct acre_error *err) {
    if (scan->depth == NESTING_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "%s:%u: namespaces nested more than %d deep",
                         scan->reader.lexer.name, scan->reader.token.line, NESTING_MAX);
    }
    scan->scopes_c[scan->depth++] = is_c;
    return reader_advance(&scan->reader, err);
}

/* extern "C" {, namespace a::b {: their scope is opened. True: one was, the declaration is over. */
static int read_scope(struct scan *scan, struct prefix *prefix, bool *ret_is_scope,
                      struct acre_error *err) {
    struct reader *reader = &scan->reader;
    bool is_namespace = token_is(&reader->token, "namespace");
    int r = reader_advance(reader, err);
    if (r == 0 && !is_namespace && reader->token.kind == TOKEN_STRING) {
        prefix->is_c = acre_str_is(reader->token.text, "\"C\"");
        r = reader_advance(reader, err);
        is_namespace = r == 0 && token_is(&reader->token, "{");
    }
    while (r == 0 && is_namespace &&
           (reader->token.kind == TOKEN_WORD || token_is(&reader->token, ":"))) {
        r = reader_advance(reader, err);
    }
    *ret_is_scope = r == 0 && is_namespace && token_is(&reader->token, "{");
    return *ret_is_scope ? open_scope(scan, prefix->is_c, err) : r;
}

static int close_scope(struct scan *scan, struct acre_error *err) {
    if (scan->depth == 0) {
        return reader_refuse(&scan->reader, err, "unmatched '%s' (is its '{' inside another #if?)");
    }
    scan->depth--;
    return reader_advance(&scan->reader, err);
}

/* struct half { ... }: in C++ its name is a type's. */
static int read_tag(struct reader *reader, struct acre_error *err) {
    int r = reader_advance(reader, err);
    struct acre_str name = reader->token.text;
    if (r < 0 || reader->token.kind != TOKEN_WORD) {
        return r;
    }
    r = reader_advance(reader, err);
    if (r == 0 && (token_is(&reader->token, "{") || token_is(&reader->token, ";") ||
                   token_is(&reader->token, ":"))) {
        tag_read(reader, name);
    }
    return r;
}

static int read_declaration(struct scan *scan, struct acre_error *err) {
    struct reader *reader = &scan->reader;
    struct prefix prefix = {.offset = reader->token.offset,
                            .is_conditional = reader->lexer.conditions > 0,
                            .is_c = scan->depth > 0 && scan->scopes_c[scan->depth - 1]};
    int r = 0;
    while (r == 0 && reader->token.kind != TOKEN_END) {
        const struct source_token *token = &reader->token;
        bool is_scope = false;
        prefix.is_first = token->offset == prefix.offset;
        if (reader->after_branch && !prefix.is_first) {
            return 0; /* what was before it may be the prose of a branch that is never compiled */
        }
        if (token_is(token, ";")) {
            return reader_advance(reader, err);
        } else if (token_is(token, "}")) {
            return close_scope(scan, err);
        } else if (token_is(token, "{")) {
            return reader_skip_brackets(reader, err);
        } else if (token_is(token, "(") || token_is(token, "[")) {
            r = reader_skip_brackets(reader, err);
        } else if (token->kind == TOKEN_WORD &&
                   reader_is_kernel_word(reader->language, token->text)) {
            return read_kernel(scan, &prefix, err);
        } else if (token_is(token, "template")) {
            prefix.is_template = true;
            r = reader_advance(reader, err);
            r = r == 0 && token_is(&reader->token, "<") ? reader_skip_angles(reader, err) : r;
        } else if (token_is(token, "extern") || token_is(token, "namespace")) {
            r = read_scope(scan, &prefix, &is_scope, err);
        } else if (token_is(token, "typedef")) {
            r = reader_advance(reader, err);
            r = r == 0 ? typedef_read(reader, err) : r;
        } else if (!reader_is_c(reader->language) &&
                   (token_is(token, "struct") || token_is(token, "class") ||
                    token_is(token, "union"))) {
            r = read_tag(reader, err);
        } else if (token_is(token, "using") && prefix.is_first && !reader_is_c(reader->language)) {
            r = reader_advance(reader, err);
            r = r == 0 ? using_read(reader, err) : r;
        } else {
            prefix.is_static |= token_is(token, "static");
            prefix.returns_void |= token_is(token, "void");
            r = reader_advance(reader, err);
        }
        if (is_scope) {
            return r;
        }
    }
    return r;
}

/* --- outside -------------------------------------------------------------------------------- */

static int check_text(const char *shown, struct acre_str text, struct acre_error *err) {
    return text.length <= SOURCE_MAX_BYTES
               ? 0
               : acre_fail(err, ACRE_ELIMIT, "%s: %zu bytes; accepted: at most %d", shown,
                           text.length, SOURCE_MAX_BYTES);
}

int signatures_read(const char *name, struct acre_str text, enum acre_language language,
                    struct signature **ret_all, uint32_t *ret_count, struct acre_error *err) {
    char shown[NAME_SHOWN];
    acre_str_show(acre_str_from(name), shown, sizeof(shown));
    int r = check_text(shown, text, err);
    struct scan *scan = r == 0 ? calloc(1, sizeof(*scan)) : NULL;
    if (scan == NULL) {
        return r < 0 ? r : acre_fail(err, ACRE_ENOMEM, "signatures");
    }
    language = language == ACRE_LANGUAGE_AUTO ? language_of(text) : language;
    r = reader_begin(&scan->reader, shown, text, language, err);
    while (r == 0 && scan->reader.token.kind != TOKEN_END) {
        r = read_declaration(scan, err);
    }
    if (r == 0 && scan->depth > 0) {
        r = reader_refuse(&scan->reader, err, "%s inside a namespace or extern block");
    }
    if (r == 0) {
        *ret_all = scan->all;
        *ret_count = scan->count;
    } else {
        signatures_free(scan->all, scan->count);
    }
    free(scan);
    return r;
}

int signature_read(struct acre_str text, struct signature *ret_signature, struct acre_error *err) {
    struct prefix prefix = {0};
    struct reader reader;
    struct signature signature;
    int r = check_text("signature", text, err);
    r = r == 0 ? reader_begin(&reader, "signature", text, ACRE_LANGUAGE_PORTABLE, err) : r;
    if (r == 0) {
        reader.is_strict = false; /* C functions: any type of C */
        if (token_is(&reader.token, "kernel")) {
            r = reader_advance(&reader, err);
        }
    }
    r = r == 0 ? read_signature(&reader, &prefix, &signature, err) : r;
    if (r < 0) {
        return r;
    }
    if (token_is(&reader.token, ";")) {
        r = reader_advance(&reader, err);
    }
    if (r == 0 && reader.token.kind != TOKEN_END) {
        r = reader_refuse(&reader, err, "unexpected '%s' after the signature");
    }
    if (r < 0) {
        free(signature.parameters);
        return r;
    }
    *ret_signature = signature;
    return 0;
}

void signatures_free(struct signature *all, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free(all[i].parameters);
    }
    free(all);
}

void signature_write(const struct signature *signature, struct acre_buf *out) {
    acre_buf_printf(out, "void %s(", signature->name);
    for (uint32_t i = 0; i < signature->count; i++) {
        const struct parameter *parameter = &signature->parameters[i];
        size_t length = strlen(parameter->type);
        bool is_open = length > 0 && parameter->type[length - 1] == '*';
        acre_buf_printf(out, "%s%s%s%s", i > 0 ? ", " : "", parameter->type,
                        is_open || parameter->name[0] == '\0' ? "" : " ", parameter->name);
    }
    acre_buf_putc(out, ')');
}
