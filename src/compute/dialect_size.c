/* dialect_size.c - how long a struct is that a kernel takes by value, told by its compiler.
 *
 * OpenCL's drivers are not asked for it, and some take any size. But all of them tell with which
 * group a kernel must be launched, which may be any constant: so behind the source stand kernels
 * that do nothing, with the size in digits. A group of 4 x 4 x 4 is one that no device refuses. */
#include "compute/dialect_text.h"

#include <string.h>

/* Whether a name means the same at the end of the text. */
static bool is_undefined(struct acre_str text, struct acre_str name) {
    struct lexer lexer = lexer_begin("", text);
    struct token token = {.kind = TOKEN_END};
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        struct acre_str rest;
        if (token.kind == TOKEN_DIRECTIVE &&
            acre_str_is(directive_word(token.text, &rest), "undef")) {
            struct lexer words = lexer_begin("", rest);
            struct token word;
            words.in_line = true;
            if (lexer_next(&words, &word, NULL) == 0 && acre_str_equal(word.text, name)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_size(struct acre_str text, const struct parameter *parameter) {
    struct lexer lexer = lexer_begin("", acre_str_from(parameter->type));
    struct token token = {.kind = TOKEN_END};
    bool has = parameter->kind == PARAMETER_STRUCT &&
               strlen(parameter->type) < sizeof(parameter->type) - 1; /* it was not cut */
    while (has && lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        has = !is_undefined(text, token.text);
    }
    return has;
}

static void write_size(const struct signature *signature, uint32_t index, struct acre_buf *out) {
    for (uint32_t part = 0; part < DIALECT_SIZE_PARTS; part++) {
        acre_buf_puts(out, "\n__kernel __attribute__((reqd_work_group_size(");
        for (uint32_t digit = 0; digit < 3; digit++) {
            const char *type = signature->parameters[index].type;
            acre_buf_printf(out, "%s(sizeof(%s) < %u ? sizeof(%s) / %u %% 4 : 0) + 1",
                            digit > 0 ? ", " : "", type, 1U << 6 * DIALECT_SIZE_PARTS, type,
                            1U << 2 * (3 * part + digit));
        }
        acre_buf_printf(out, "))) void " DIALECT_SIZE_NAME "(void) {}", index, part,
                        signature->name);
    }
}

/* Those under an #if may not be there, nor their types. */
void dialect_sizes(struct acre_str text, const struct signature *all, uint32_t count,
                   struct acre_buf *out) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < all[i].count && !all[i].is_conditional; k++) {
            if (has_size(text, &all[i].parameters[k])) {
                write_size(&all[i], k, out);
            }
        }
    }
}
