/* base.c - asserts that stay on, and allocations that cannot fail quietly. */
#include "core/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CACHE_LINE_BYTES ((size_t)64)
#define HUGE_PAGE_BYTES  ((size_t)2 << 20)

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

void *acre_grow(void *array, size_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) {
        return array;
    }
    ACRE_ASSERT(*capacity < UINT32_MAX / 2);
    *capacity = ACRE_MAX(2 * *capacity, 16U);
    return acre_realloc(array, *capacity, size);
}

void *acre_grow_table(void *old, size_t old_count, size_t count, size_t size) {
    size_t bytes;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    ACRE_ASSERT(!overflow && old_count <= count && bytes < SIZE_MAX - HUGE_PAGE_BYTES);
    size_t unit = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : CACHE_LINE_BYTES;
    bytes = (bytes + unit - 1) / unit * unit;
    void *memory = aligned_alloc(unit, bytes);
    ACRE_ASSERT(memory != NULL);
    if (unit == HUGE_PAGE_BYTES) {
        (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a hint: fewer TLB misses, nothing more */
    }
    if (old_count > 0) {
        memcpy(memory, old, old_count * size);
    }
    free(old);
    return memory;
}
