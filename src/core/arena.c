/* arena.c - a list of blocks, each filled front to back.
 *
 * An allocation moves one offset; freeing walks over the few blocks. A request larger than a block
 * gets its own block. Under AddressSanitizer every block holds exactly one allocation, so that
 * overruns are caught; sizes are counted the same way in both builds, so limits do not depend on
 * the build. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

enum { ALIGNMENT = 16, BLOCK_BYTES = UNDER_ASAN ? 0 : 8192 };

struct arena_block {
    struct arena_block *next; /* older */
    size_t capacity;
    size_t used;
    size_t pad; /* keeps `bytes` aligned */
    char bytes[];
};

_Static_assert(offsetof(struct arena_block, bytes) % ALIGNMENT == 0, "allocations are aligned");

struct acre_arena {
    struct arena_block *newest;
    size_t used;
    size_t max;
};

struct acre_arena *acre_arena_create(size_t max_bytes) {
    struct acre_arena *arena = acre_calloc(1, sizeof(*arena));
    arena->max = max_bytes;
    return arena;
}

/* Free all blocks but the first, which is the last of the list; returns it. */
static struct arena_block *free_newer(struct arena_block *block) {
    while (block != NULL && block->next != NULL) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    return block;
}

void acre_arena_destroy(struct acre_arena *arena) {
    if (arena != NULL) {
        free(free_newer(arena->newest));
        free(arena);
    }
}

void acre_arena_reset(struct acre_arena *arena) {
    arena->newest = free_newer(arena->newest);
    if (arena->newest != NULL && UNDER_ASAN) {
        free(arena->newest); /* a kept block would be larger than what it holds next */
        arena->newest = NULL;
    } else if (arena->newest != NULL) {
        arena->newest->used = 0;
    }
    arena->used = 0;
}

static struct arena_block *add_block(struct acre_arena *arena, size_t size) {
    size_t capacity = ACRE_MAX(size, (size_t)BLOCK_BYTES);
    ACRE_ASSERT(capacity <= SIZE_MAX - sizeof(struct arena_block));
    struct arena_block *block = malloc(sizeof(struct arena_block) + capacity);
    ACRE_ASSERT(block != NULL);
    *block = (struct arena_block){.next = arena->newest, .capacity = capacity};
    arena->newest = block;
    return block;
}

void *acre_arena_try(struct acre_arena *arena, size_t size) {
    size = ACRE_MAX(size, (size_t)1); /* every allocation has an address of its own */
    if (size > SIZE_MAX - ALIGNMENT) {
        return NULL;
    }
    size_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > arena->max - arena->used) {
        return NULL;
    }
    struct arena_block *block = arena->newest;
    size_t taken = UNDER_ASAN ? size : rounded;
    if (block == NULL || taken > block->capacity - block->used) {
        block = add_block(arena, taken);
    }
    void *memory = block->bytes + block->used;
    block->used += taken;
    arena->used += rounded;
    return memset(memory, 0, size);
}

void *acre_arena_alloc(struct acre_arena *arena, size_t size) {
    void *memory = acre_arena_try(arena, size);
    ACRE_ASSERT(memory != NULL);
    return memory;
}

char *acre_arena_strndup(struct acre_arena *arena, const char *text, size_t length) {
    ACRE_ASSERT(length < SIZE_MAX);
    char *copy = acre_arena_alloc(arena, length + 1);
    if (length > 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

char *acre_arena_printf(struct acre_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    ACRE_ASSERT(length >= 0);
    char *text = acre_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

size_t acre_arena_used(const struct acre_arena *arena) {
    return arena->used;
}
