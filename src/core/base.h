/* base.h - the few things every file needs: asserts, sizes of arrays, attributes.
 *
 * Any thread. Nothing here allocates or does I/O, except that a failed ACRE_ASSERT
 * prints one line to standard error and aborts. */
#ifndef ACRE_CORE_BASE_H
#define ACRE_CORE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACRE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A number that nobody measured. */
#define ACRE_UNKNOWN UINT64_MAX

#define ACRE_MIN(a, b) ((a) < (b) ? (a) : (b))
#define ACRE_MAX(a, b) ((a) > (b) ? (a) : (b))

#define ACRE_PRINTF(format_at, arguments_at)                                                       \
    __attribute__((format(printf, format_at, arguments_at)))

/* Programmer errors only; stays on in release builds. */
#define ACRE_ASSERT(condition)                                                                     \
    ((condition) ? (void)0 : acre_assert_failed(#condition, __FILE__, __LINE__, __func__))

_Noreturn void acre_assert_failed(const char *condition, const char *file, int line,
                                  const char *function);

/* Small host allocations: abort when memory is gone (programs cannot go on without them).
 * Code that must survive (the grain library, device memory) uses calloc and ACRE_ENOMEM. */
void *acre_calloc(size_t count, size_t size);
void *acre_realloc(void *old, size_t count, size_t size); /* overflow of count*size aborts */
char *acre_strdup(const char *text);

/* Room for one more in an array of `count` items: the array, or a larger copy with *capacity so. */
void *acre_grow(void *array, size_t count, uint32_t *capacity, size_t size);

/* A table of records grown from `old_count` to `count`, moved to memory that starts on a cache
 * line, and on huge pages once it is large: for records that are read at random. free() it. */
void *acre_grow_table(void *old, size_t old_count, size_t count, size_t size);

#endif
