/* backends.c - the one list of back ends, from the rows of backend.h, and its public queries. */
#include "compute/backend.h"

#include <acre/context.h>
#include <acre/kernel.h>
#include <stdio.h>

#define ADDRESS(name) &backend_##name,
const struct backend *const all_backends[ACRE_BACKEND_COUNT] = {ACRE_BACKENDS(ADDRESS)};
#undef ADDRESS

const struct backend *backend_find(struct acre_str name) {
    for (size_t i = 0; i < ACRE_BACKEND_COUNT; i++) {
        if (acre_str_is(name, all_backends[i]->name)) {
            return all_backends[i];
        }
    }
    return NULL;
}

const char *backend_name_list(char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ACRE_BACKEND_COUNT && length < size; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "",
                                   all_backends[i]->name);
    }
    return text;
}

const char *acre_backend_name(uint32_t number) {
    return number < ACRE_BACKEND_COUNT ? all_backends[number]->name : NULL;
}

const char *acre_language_backend(enum acre_language language) {
    for (size_t i = 0; i < ACRE_BACKEND_COUNT && language != ACRE_LANGUAGE_PORTABLE; i++) {
        if (all_backends[i]->language == language) {
            return all_backends[i]->name;
        }
    }
    return NULL;
}
