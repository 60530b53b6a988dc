/* base.c - asserts that stay on, and allocations that cannot fail quietly. */
#include "core/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void acre_assert_failed(const char *condition, const char *file, int line, const char *function) {
    fprintf(stderr, "acre: %s:%d: %s: assertion failed: %s\n", file, line, function, condition);
    abort();
}

void *acre_calloc(size_t count, size_t size) {
    void *memory = calloc(count, size);
    ACRE_ASSERT(memory != NULL || count == 0 || size == 0);
    return memory;
}

void *acre_realloc(void *old, size_t count, size_t size) {
    void *memory = reallocarray(old, count, size);
    ACRE_ASSERT(memory != NULL || count == 0 || size == 0);
    return memory;
}

char *acre_strdup(const char *text) {
    char *copy = strdup(text);
    ACRE_ASSERT(copy != NULL);
    return copy;
}
