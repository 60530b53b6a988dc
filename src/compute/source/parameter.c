/* parameter.c - the type and the name of one parameter.
 *
 * A parameter is read word by word, with qualifiers in any order: words that do not affect the size
 * are skipped, the basic ones ("unsigned", "long") are collected as bits, and of the rest the first
 * is a type and the second the name. A type that is in no table is a struct of unknown size:
 * launches then accept bytes of any length. */
#include "compute/source/token_reader.h"

#include <stdio.h>
#include <string.h>

enum {
    MACRO_DEPTH_MAX = 4,  /* macros of macros: a word behind them is what it is */
    MACRO_WORDS_MAX = 64, /* from macros, in one parameter */
};

enum {
    BASIC_SIGNED = 1 << 0,
    BASIC_UNSIGNED = 1 << 1,
    BASIC_CHAR = 1 << 2,
    BASIC_SHORT = 1 << 3,
    BASIC_INT = 1 << 4,
    BASIC_LONG = 1 << 5,
    BASIC_FLOAT = 1 << 6,
    BASIC_DOUBLE = 1 << 7,
    BASIC_VOID = 1 << 8,
    BASIC_BOOL = 1 << 9,
};

/* clang-format off */
static const struct { const char *word; uint32_t bit; } basics[] = {
    {"signed", BASIC_SIGNED}, {"__signed__", BASIC_SIGNED}, {"unsigned", BASIC_UNSIGNED},
    {"char", BASIC_CHAR},     {"short", BASIC_SHORT},       {"int", BASIC_INT},
    {"long", BASIC_LONG},     {"float", BASIC_FLOAT},       {"double", BASIC_DOUBLE},
    {"void", BASIC_VOID},     {"bool", BASIC_BOOL},         {"_Bool", BASIC_BOOL},
};

static const struct { const char *word; enum parameter_kind kind; uint16_t bytes; } scalars[] = {
    {"uchar", PARAMETER_UNSIGNED, 1},    {"ushort", PARAMETER_UNSIGNED, 2},
    {"uint", PARAMETER_UNSIGNED, 4},     {"ulong", PARAMETER_UNSIGNED, 8},
    {"size_t", PARAMETER_UNSIGNED, 8},   {"ptrdiff_t", PARAMETER_SIGNED, 8},
    {"intptr_t", PARAMETER_SIGNED, 8},   {"uintptr_t", PARAMETER_UNSIGNED, 8},
    {"int8_t", PARAMETER_SIGNED, 1},     {"uint8_t", PARAMETER_UNSIGNED, 1},
    {"int16_t", PARAMETER_SIGNED, 2},    {"uint16_t", PARAMETER_UNSIGNED, 2},
    {"int32_t", PARAMETER_SIGNED, 4},    {"uint32_t", PARAMETER_UNSIGNED, 4},
    {"int64_t", PARAMETER_SIGNED, 8},    {"uint64_t", PARAMETER_UNSIGNED, 8},
    {"half", PARAMETER_FLOAT, 2},        {"__half", PARAMETER_FLOAT, 2},
    {"_Float16", PARAMETER_FLOAT, 2},    {"__nv_bfloat16", PARAMETER_FLOAT, 2},
    {"__half2", PARAMETER_VECTOR, 4},    {"__nv_bfloat162", PARAMETER_VECTOR, 4},
    {"dim3", PARAMETER_VECTOR, 12},
};

static const struct { const char *word; uint16_t bytes; } elements[] = { /* of vectors */
    {"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"half", 2}, {"int", 4}, {"uint", 4},
    {"float", 4}, {"long", 8}, {"ulong", 8}, {"longlong", 8}, {"ulonglong", 8}, {"double", 8},
};

static const char *const ignored[] = {
    "volatile", "__volatile__", "restrict", "__restrict__", "__restrict", "register", "typename",
    "__grid_constant__", "private", "__private", "generic", "__generic", "__device__",
};
static const char *const objects[] = { /* of OpenCL, which are no memory */
    "sampler_t", "event_t", "queue_t", "clk_event_t", "reserve_id_t", "pipe", "image1d_t",
    "image1d_buffer_t", "image1d_array_t", "image2d_t", "image2d_array_t", "image2d_depth_t",
    "image2d_msaa_t", "image3d_t", "read_only", "write_only", "read_write", "__read_only",
    "__write_only", "__read_write", "cudaTextureObject_t", "cudaSurfaceObject_t",
};
/* clang-format on */

enum space { SPACE_NONE, SPACE_GLOBAL, SPACE_LOCAL, SPACE_CONSTANT };

struct typing {
    struct parameter parameter;
    uint32_t basic; /* bits */
    uint32_t longs;
    uint32_t pointers;
    enum space space;
    bool is_named;     /* a type by one word: kind and bytes are set */
    bool is_three;     /* a vector of three, whose size depends on the language */
    bool is_size;      /* size_t or bool by another name: their size depends on the device */
    bool is_scoped;    /* of a class or a namespace, where it may be anything */
    uint32_t expanded; /* words that came from macros */
    bool has_name;
};

static bool is_in(struct acre_str word, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (acre_str_is(word, words[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t basic_bit(struct acre_str word) {
    for (size_t i = 0; i < ACRE_COUNT(basics); i++) {
        if (acre_str_is(word, basics[i].word)) {
            return basics[i].bit;
        }
    }
    return 0;
}

static enum space space_of(struct acre_str word) {
    static const struct {
        const char *word;
        enum space space;
    } spaces[] = {{"global", SPACE_GLOBAL},     {"__global", SPACE_GLOBAL},
                  {"local", SPACE_LOCAL},       {"__local", SPACE_LOCAL},
                  {"constant", SPACE_CONSTANT}, {"__constant", SPACE_CONSTANT}};
    for (size_t i = 0; i < ACRE_COUNT(spaces); i++) {
        if (acre_str_is(word, spaces[i].word)) {
            return spaces[i].space;
        }
    }
    return SPACE_NONE;
}

/* float4: 16 bytes. A vector of 3 is 4 long in OpenCL, and 3 in CUDA and HIP. */
static uint16_t vector_bytes(enum acre_language language, struct acre_str word, bool *ret_three) {
    size_t digits = 0;
    uint32_t width = 0;
    while (digits < 2 && word.length > digits + 1 && word.data[word.length - 1 - digits] >= '0' &&
           word.data[word.length - 1 - digits] <= '9') {
        digits++;
    }
    for (size_t i = word.length - digits; i < word.length; i++) {
        width = width * 10 + (uint32_t)(word.data[i] - '0');
    }
    bool is_c = reader_is_c(language);
    bool is_width = (width >= 2 && width <= 4) || (width == 1 && !is_c) ||
                    ((width == 8 || width == 16) && is_c);
    struct acre_str element = {word.data, word.length - digits};
    for (size_t i = 0; is_width && i < ACRE_COUNT(elements); i++) {
        if (acre_str_is(element, elements[i].word)) {
            *ret_three = width == 3;
            return (uint16_t)(elements[i].bytes * (width == 3 && is_c ? 4 : width));
        }
    }
    return 0;
}

/* A type of which nothing is known here: a struct, for us. */
static void name_unknown(struct typing *typing) {
    typing->is_named = true;
    typing->is_three = typing->is_size = false;
    typing->parameter.kind = PARAMETER_STRUCT;
    typing->parameter.bytes = 0;
    typing->parameter.is_named = true;
}

/* The type a single word names; a struct when it is in no table. */
static void name_type(const struct reader *reader, struct acre_str word, struct typing *typing) {
    struct parameter *parameter = &typing->parameter;
    typing->is_named = true;
    typing->is_three = false;
    typing->is_size = acre_str_is(word, "size_t");
    for (uint32_t i = reader->alias_count; i > 0; i--) {
        if (acre_str_is(word, reader->aliases[i - 1].name)) {
            parameter->kind = reader->aliases[i - 1].kind;
            parameter->bytes = reader->aliases[i - 1].bytes;
            typing->is_three = reader->aliases[i - 1].is_three;
            typing->is_size = reader->aliases[i - 1].is_size;
            parameter->is_named = true;
            return;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(scalars); i++) {
        if (acre_str_is(word, scalars[i].word)) {
            parameter->kind = scalars[i].kind;
            parameter->bytes = scalars[i].bytes;
            return;
        }
    }
    parameter->bytes = vector_bytes(reader->language, word, &typing->is_three);
    parameter->kind = parameter->bytes > 0 ? PARAMETER_VECTOR : PARAMETER_STRUCT;
    parameter->is_named = parameter->kind == PARAMETER_STRUCT;
}

/* Whether a scope, as it was written so far, has the types that everybody knows. */
static bool is_common_scope(const char *type) {
    static const char *const scopes[] = {"", "std", "cuda", "cuda::std", "const std"};
    for (size_t i = 0; i < ACRE_COUNT(scopes); i++) {
        if (strcmp(type, scopes[i]) == 0) {
            return true;
        }
    }
    return strncmp(type, "::", 2) == 0 && is_common_scope(type + 2);
}

/* "unsigned long long" and the like, once all words are known. */
static int name_basic(struct reader *reader, struct typing *typing, struct acre_error *err) {
    struct parameter *parameter = &typing->parameter;
    uint32_t bits = typing->basic & ~(uint32_t)(BASIC_SIGNED | BASIC_UNSIGNED | BASIC_INT);
    bool is_real = (bits & (BASIC_FLOAT | BASIC_DOUBLE)) != 0;
    bool is_alone = (bits & (bits - 1)) == 0 && typing->longs <= 2;
    bool takes_sign = (bits & ~(uint32_t)(BASIC_CHAR | BASIC_SHORT | BASIC_LONG)) == 0;
    bool has_sign = (typing->basic & (BASIC_SIGNED | BASIC_UNSIGNED)) != 0;
    if (!is_alone || (has_sign && !takes_sign) ||
        (typing->basic & (BASIC_SIGNED | BASIC_UNSIGNED)) == (BASIC_SIGNED | BASIC_UNSIGNED)) {
        return reader_refuse(reader, err, "before '%s': no such type");
    }
    bool is_unsigned = (typing->basic & BASIC_UNSIGNED) != 0 || bits == BASIC_BOOL;
    parameter->kind = is_real       ? PARAMETER_FLOAT
                      : is_unsigned ? PARAMETER_UNSIGNED
                                    : PARAMETER_SIGNED;
    switch (bits) {
    case BASIC_VOID:
        parameter->bytes = 0;
        break;
    case BASIC_CHAR:
    case BASIC_BOOL:
        parameter->bytes = 1;
        break;
    case BASIC_SHORT:
        parameter->bytes = 2;
        break;
    case BASIC_LONG:
    case BASIC_DOUBLE:
        parameter->bytes = 8;
        break;
    default:
        parameter->bytes = 4;
        break;
    }
    return 0;
}

/* The type as written, but for the name, and with what macros stand for, which may mean nothing at
 * the end of the text: words are kept apart, a '*' only from what is before. */
static void add_type(struct parameter *parameter, struct acre_str word) {
    char *type = parameter->type;
    size_t length = strlen(type), room = sizeof(parameter->type) - 1;
    if (length + sizeof("...") + 1 > room) {
        return; /* long enough for a message */
    }
    bool is_mark = word.data[0] == ':' || word.data[0] == '<' || word.data[0] == '[';
    bool is_open = length == 0 || strchr("*:<", type[length - 1]) != NULL;
    if (!is_open && !is_mark && length < room) {
        type[length++] = ' ';
    }
    acre_str_show(word, type + length, room + 1 - length);
}

/* Words of OpenCL, which are names like any other in CUDA and HIP. */
static bool is_opencl_word(struct acre_str word) {
    static const char *const words[] = {"global", "local",     "constant",   "private",   "generic",
                                        "pipe",   "read_only", "write_only", "read_write"};
    return is_in(word, words, ACRE_COUNT(words));
}

bool parameter_ignores(struct acre_str word) {
    return is_in(word, ignored, ACRE_COUNT(ignored));
}

static int take_word(struct reader *reader, struct acre_str word, struct typing *typing,
                     bool *ret_is_name, struct acre_error *err) {
    uint32_t bit = basic_bit(word);
    enum space space = space_of(word);
    bool has_type = typing->is_named || typing->basic != 0;
    bool is_free = has_type && !typing->has_name && !reader_is_c(reader->language) &&
                   is_opencl_word(word); /* `float constant` */
    if (acre_str_is(word, "const") || acre_str_is(word, "__const__")) {
        typing->parameter.is_const |= typing->pointers == 0;
    } else if (!is_free && parameter_ignores(word)) {
        /* says nothing about the size */
    } else if (!is_free && is_in(word, objects, ACRE_COUNT(objects))) {
        return reader_refuse(reader, err,
                             "'%s': images, textures, samplers, pipes and queues are not "
                             "supported; use buffers and values");
    } else if (!is_free && space != SPACE_NONE && !typing->has_name) {
        typing->space = space;
    } else if (bit != 0) {
        if (typing->is_named || typing->pointers > 0 || typing->has_name) {
            return reader_refuse(reader, err,
                                 "unexpected '%s' after a type (is a word before it a macro?)");
        }
        typing->longs += bit == BASIC_LONG;
        typing->basic |= bit;
    } else if (!has_type && typing->is_scoped) {
        name_unknown(typing);
    } else if (!has_type) {
        name_type(reader, word, typing);
    } else if (!typing->has_name) {
        typing->has_name = *ret_is_name = true;
        acre_str_show(word, typing->parameter.name, sizeof(typing->parameter.name));
    } else {
        return reader_refuse(
            reader, err,
            "unexpected '%s' after a parameter's name (is the word before it a macro?)");
    }
    return 0;
}

/* A word, or what the macro of that name has in its place. */
static int take_words(struct reader *reader, struct acre_str word, uint32_t depth,
                      struct typing *typing, bool *ret_is_name, struct acre_error *err) {
    const struct macro *macro = depth < MACRO_DEPTH_MAX ? reader_macro(reader, word) : NULL;
    bool has_type = typing->is_named || typing->basic != 0;
    if (macro != NULL && macro->is_odd) {
        return reader_refuse(reader, err,
                             "the macro '%s' stands for more than a type; accepted among "
                             "parameters: types and qualifiers");
    }
    if (macro != NULL && macro->is_unknown && !has_type) {
        name_unknown(typing);
        add_type(&typing->parameter, word);
        return 0;
    }
    if (macro == NULL || macro->is_unknown) {
        int r = take_word(reader, word, typing, ret_is_name, err);
        if (r == 0 && !*ret_is_name) {
            add_type(&typing->parameter, word);
        }
        return r;
    }
    struct lexer lexer = lexer_begin("", macro->body);
    struct source_token token;
    int r = 0;
    lexer.in_line = true;
    while (r == 0 && lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (++typing->expanded > MACRO_WORDS_MAX) {
            r = reader_refuse(reader, err, "the macro '%s' has too many words");
        } else if (token.kind == TOKEN_WORD) {
            r = take_words(reader, token.text, depth + 1, typing, ret_is_name, err);
        } else if (typing->has_name || (!typing->is_named && typing->basic == 0)) {
            r = reader_refuse(reader, err, "the macro '%s' has a '*' that does not follow a type");
        } else {
            typing->pointers++;
            add_type(&typing->parameter, token.text);
        }
    }
    return r;
}

/* struct S, union U, enum E: the next word is a tag. */
static int take_tag(struct reader *reader, struct typing *typing, struct acre_error *err) {
    bool is_enum = token_is(&reader->token, "enum");
    add_type(&typing->parameter, reader->token.text);
    int r = reader_advance(reader, err);
    if (r < 0) {
        return r;
    }
    if (reader->token.kind != TOKEN_WORD || typing->is_named || typing->basic != 0) {
        return reader_refuse(reader, err, "expected the name of a type instead of '%s'");
    }
    typing->is_named = true;
    is_enum = is_enum && reader_is_c(reader->language); /* in C++ of any size */
    typing->parameter.kind = is_enum ? PARAMETER_SIGNED : PARAMETER_STRUCT;
    typing->parameter.bytes = is_enum ? 4 : 0;
    typing->parameter.is_named = true;
    add_type(&typing->parameter, reader->token.text);
    return reader_advance(reader, err);
}

/* `= 3`: every launch gives all arguments, so a default says nothing. */
static int skip_default(struct reader *reader, struct acre_error *err) {
    int r = 0;
    while (r == 0 && reader->token.kind != TOKEN_END && !token_is(&reader->token, ",") &&
           !token_is(&reader->token, ")") && !token_is(&reader->token, ";")) {
        bool opens = token_is(&reader->token, "(") || token_is(&reader->token, "{");
        r = opens ? reader_skip_brackets(reader, err) : reader_advance(reader, err);
    }
    return r;
}

/* [[maybe_unused]] */
static bool at_attribute(const struct reader *reader) {
    struct lexer lexer = reader->lexer;
    struct source_token token;
    return lexer_next(&lexer, &token, NULL) == 0 && token_is(&token, "[");
}

static int take_mark(struct reader *reader, struct typing *typing, struct acre_error *err) {
    const struct source_token *token = &reader->token;
    bool has_type = typing->is_named || typing->basic != 0;
    if (token_is(token, "*") && has_type && !typing->has_name) {
        typing->pointers++;
    } else if (token_is(token, ":") && typing->basic == 0 && !typing->has_name) {
        /* std::size_t: the word behind it counts */
        size_t length = strlen(typing->parameter.type);
        bool is_second = length > 0 && typing->parameter.type[length - 1] == ':';
        typing->is_scoped |= !is_second && !is_common_scope(typing->parameter.type);
        typing->is_named = false;
    } else if (token_is(token, "[") && at_attribute(reader)) {
        return reader_skip_brackets(reader, err);
    } else if (token_is(token, "[") && has_type) {
        typing->pointers += typing->pointers == 0;
        add_type(&typing->parameter, ACRE_STR("[]"));
        return reader_skip_brackets(reader, err);
    } else if (token_is(token, "<") && typing->is_named && typing->pointers == 0) {
        add_type(&typing->parameter, ACRE_STR("<...>"));
        return reader_skip_angles(reader, err);
    } else if (token_is(token, "=") && has_type) {
        return skip_default(reader, err);
    } else if (token_is(token, "&")) {
        return reader_refuse(reader, err, "references are not supported; use a pointer or a value");
    } else if (token_is(token, "(")) {
        return reader_refuse(
            reader, err,
            "'(' in a parameter: kernels cannot take functions (or is a word before it a macro?)");
    } else {
        return reader_refuse(reader, err, "unexpected '%s' in a parameter");
    }
    add_type(&typing->parameter, token->text);
    return reader_advance(reader, err);
}

static int check_portable(const struct reader *reader, const struct typing *typing,
                          struct acre_error *err) {
    if (typing->space == SPACE_LOCAL || typing->parameter.kind == PARAMETER_LOCAL) {
        return reader_refuse(reader, err,
                             "before '%s': a parameter in local memory is not portable; declare a "
                             "'local' array in the kernel");
    }
    if (typing->pointers > 1) {
        return reader_refuse(reader, err, "before '%s': a pointer to a pointer is not portable");
    }
    if (typing->pointers == 1 && typing->space == SPACE_NONE) {
        return reader_refuse(reader, err,
                             "before '%s': the pointer has no address space; put global or "
                             "constant before its type");
    }
    if (typing->is_three) {
        return reader_refuse(reader, err,
                             "before '%s': vectors of three have 12 bytes on some devices and 16 "
                             "on others; use vectors of 2 or 4");
    }
    if (typing->pointers == 0 && ((typing->basic & BASIC_BOOL) != 0 || typing->is_size)) {
        return reader_refuse(reader, err,
                             "before '%s': the size of bool and size_t differs between devices; "
                             "use int, uint, long or ulong");
    }
    return 0;
}

static int finish_parameter(struct reader *reader, struct typing *typing, struct acre_error *err) {
    struct parameter *parameter = &typing->parameter;
    if (!typing->is_named && typing->basic == 0) {
        return reader_refuse(reader, err, "before '%s': a parameter without a type");
    }
    int r = typing->basic != 0 ? name_basic(reader, typing, err) : 0;
    if (r == 0 && reader->is_strict) {
        r = check_portable(reader, typing, err);
    }
    if (r < 0) {
        return r;
    }
    if (typing->pointers > 0) {
        bool is_pointer = parameter->kind == PARAMETER_BUFFER || parameter->kind == PARAMETER_LOCAL;
        parameter->bytes = typing->pointers > 1 || is_pointer ? 8 : parameter->bytes;
        parameter->kind = typing->space == SPACE_LOCAL ? PARAMETER_LOCAL : PARAMETER_BUFFER;
        parameter->is_const |= typing->space == SPACE_CONSTANT;
        return 0;
    }
    parameter->is_const = false;
    if (strlen(parameter->type) + sizeof("...") + 1 >= sizeof(parameter->type)) {
        return reader_refuse(reader, err, "before '%s': the type is too long; use a typedef");
    }
    if ((typing->basic & BASIC_VOID) != 0) {
        return reader_refuse(reader, err, "before '%s': a parameter of type void");
    }
    if (typing->space == SPACE_LOCAL || typing->space == SPACE_CONSTANT) {
        return reader_refuse(reader, err, "before '%s': only pointers can be local or constant");
    }
    return 0;
}

/* Up to the ',' ')' or ';' behind it. */
static int read_words(struct reader *reader, struct typing *typing, struct acre_error *err) {
    int r = 0;
    while (r == 0) {
        const struct source_token *token = &reader->token;
        if (token_is(token, ",") || token_is(token, ")") || token_is(token, ";") ||
            token->kind == TOKEN_END) {
            break;
        }
        bool is_name = false;
        if (reader_at_attribute(reader) && !token_is(token, "[")) {
            r = reader_skip_attribute(reader, err);
        } else if (token_is(token, "struct") || token_is(token, "union") ||
                   token_is(token, "class") || token_is(token, "enum")) {
            r = take_tag(reader, typing, err);
        } else if (token->kind == TOKEN_WORD) {
            r = take_words(reader, token->text, 0, typing, &is_name, err);
            r = r == 0 ? reader_advance(reader, err) : r;
        } else if (token->kind == TOKEN_MARK) {
            r = take_mark(reader, typing, err);
        } else {
            r = reader_refuse(reader, err, "expected a parameter instead of '%s'");
        }
    }
    return r;
}

int parameter_read(struct reader *reader, uint32_t number, struct parameter *ret_parameter,
                   struct acre_error *err) {
    struct typing typing = {0};
    reader->parameter = number;
    int r = read_words(reader, &typing, err);
    r = r == 0 ? finish_parameter(reader, &typing, err) : r;
    if (r == 0) {
        *ret_parameter = typing.parameter;
    }
    return r;
}

/* --- names of types ------------------------------------------------------------------------- */

/* "#ifdef D  typedef double real;  #else  typedef float real;": nobody can tell from here. */
static void add_alias(struct reader *reader, const struct typing *typing) {
    const struct parameter *parameter = &typing->parameter;
    struct alias *alias = reader->aliases;
    struct alias *end = reader->aliases + reader->alias_count;
    while (alias < end && strcmp(alias->name, parameter->name) != 0) {
        alias++;
    }
    if (alias < end) {
        bool differs = alias->kind != parameter->kind || alias->bytes != parameter->bytes;
        alias->kind = differs ? PARAMETER_STRUCT : alias->kind;
        alias->bytes = differs ? 0 : alias->bytes;
    } else if (reader->alias_count < ALIASES_MAX && parameter->name[0] != '\0') {
        bool is_value = parameter->kind != PARAMETER_BUFFER && parameter->kind != PARAMETER_LOCAL;
        *alias = (struct alias){.kind = parameter->kind,
                                .bytes = parameter->bytes,
                                .is_three = is_value && typing->is_three,
                                .is_size = is_value &&
                                           (typing->is_size || (typing->basic & BASIC_BOOL) != 0)};
        memcpy(alias->name, parameter->name, sizeof(alias->name));
        reader->alias_count++;
    }
}

/* One or more names for a type; `name` is that of `using`, "": each has its own. */
static int read_names(struct reader *reader, const char *name, struct acre_error *err) {
    struct typing typing = {0};
    bool goes_on = true;
    int r = 0;
    while (r == 0 && goes_on) {
        r = read_words(reader, &typing, err);
        struct typing one = typing; /* "float real, *pointer": the star is of one of them */
        r = r == 0 ? finish_parameter(reader, &one, err) : r;
        goes_on = r == 0 && token_is(&reader->token, ",");
        if (r == 0 && (goes_on || token_is(&reader->token, ";"))) {
            if (name[0] != '\0') {
                snprintf(one.parameter.name, sizeof(one.parameter.name), "%s", name);
            }
            add_alias(reader, &one);
        }
        typing.pointers = 0;
        typing.has_name = false;
        typing.parameter.name[0] = '\0';
        r = goes_on ? reader_advance(reader, err) : r;
    }
    return r;
}

/* What was not understood is a struct by the last word before its ';', unless `name` is. */
static int pass_over(struct reader *reader, const char *name, struct acre_error *err) {
    struct typing typing = {.parameter = {.kind = PARAMETER_STRUCT}};
    struct parameter *parameter = &typing.parameter;
    int r = 0;
    while (r == 0 && reader->token.kind != TOKEN_END && !token_is(&reader->token, ";") &&
           !token_is(&reader->token, "}")) {
        const struct source_token *token = &reader->token;
        if (token->kind == TOKEN_WORD) {
            acre_str_copy(parameter->name, sizeof(parameter->name), token->text);
        }
        bool opens = token_is(token, "{") || token_is(token, "(") || token_is(token, "[");
        r = opens ? reader_skip_brackets(reader, err) : reader_advance(reader, err);
    }
    if (name[0] != '\0') {
        snprintf(parameter->name, sizeof(parameter->name), "%s", name);
    }
    add_alias(reader, &typing);
    return r;
}

static int read_loosely(struct reader *reader, const char *name, struct acre_error *err) {
    bool is_strict = reader->is_strict;
    struct acre_error why = {0};
    reader->is_strict = false;
    reader->parameter = 0;
    int r = read_names(reader, name, &why);
    reader->is_strict = is_strict;
    if (r < 0 && reader->token.kind == TOKEN_END) { /* a bracket that is never closed */
        return acre_fail(err, r, "%s", why.text);
    }
    return r < 0 ? pass_over(reader, name, err) : 0;
}

void tag_read(struct reader *reader, struct acre_str name) {
    struct typing typing = {.parameter = {.kind = PARAMETER_STRUCT}};
    if (acre_str_copy(typing.parameter.name, sizeof(typing.parameter.name), name)) {
        add_alias(reader, &typing);
    }
}

int typedef_read(struct reader *reader, struct acre_error *err) {
    return read_loosely(reader, "", err);
}

int using_read(struct reader *reader, struct acre_error *err) {
    char name[sizeof(reader->aliases[0].name)];
    bool is_word =
        reader->token.kind == TOKEN_WORD && acre_str_copy(name, sizeof(name), reader->token.text);
    int r = is_word ? reader_advance(reader, err) : 0;
    if (r < 0 || !is_word || !token_is(&reader->token, "=")) {
        return r; /* using namespace std */
    }
    r = reader_advance(reader, err);
    return r == 0 ? read_loosely(reader, name, err) : r;
}
