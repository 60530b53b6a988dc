/* backends.c - the one list of back ends, from the rows of backend.h; and what programs may ask. */
#include "compute/backend.h"

#include <acre/context.h>
#include <acre/kernel.h>
#include <stdio.h>

#define ADDRESS(name) &acre_backend_##name,
const struct acre_backend *const acre_backends[ACRE_BACKEND_COUNT] = {ACRE_BACKENDS(ADDRESS)};
#undef ADDRESS

const struct acre_backend *acre_backend_find(struct acre_str name) {
    for (size_t i = 0; i < ACRE_BACKEND_COUNT; i++) {
        if (acre_str_is(name, acre_backends[i]->name)) {
            return acre_backends[i];
        }
    }
    return NULL;
}

const char *acre_backend_names(char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ACRE_BACKEND_COUNT && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "",
                                   acre_backends[i]->name);
    }
    return text;
}

const char *acre_backend_name(uint32_t number) {
    return number < ACRE_BACKEND_COUNT ? acre_backends[number]->name : NULL;
}

const char *acre_language_backend(enum acre_language language) {
    for (size_t i = 0; i < ACRE_BACKEND_COUNT && language != ACRE_LANGUAGE_PORTABLE; i++) {
        if (acre_backends[i]->language == language) {
            return acre_backends[i]->name;
        }
    }
    return NULL;
}
