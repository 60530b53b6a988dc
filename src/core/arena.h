/* arena.h - memory that is freed all at once: one per request, per parse, per report.
 *
 * One thread at a time. Under AddressSanitizer every allocation is a separate malloc, so that
 * overruns are caught. Aborts when memory runs out; asserts when `max_bytes` is exceeded, unless
 * the _try form is used. */
#ifndef ACRE_CORE_ARENA_H
#define ACRE_CORE_ARENA_H

#include "core/base.h"

struct acre_arena;

struct acre_arena *acre_arena_create(size_t max_bytes);
void acre_arena_destroy(struct acre_arena *arena); /* NULL is fine */
void acre_arena_reset(struct acre_arena *arena);   /* keeps the first block */

void *acre_arena_alloc(struct acre_arena *arena, size_t size); /* zeroed, 16-byte aligned */
void *acre_arena_try(struct acre_arena *arena, size_t size);   /* NULL past the maximum */
char *acre_arena_strndup(struct acre_arena *arena, const char *text, size_t length);
char *acre_arena_printf(struct acre_arena *arena, const char *format, ...) ACRE_PRINTF(2, 3);
size_t acre_arena_used(const struct acre_arena *arena);

#endif
