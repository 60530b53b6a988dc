/* dialect_cpu.h - the parts of dialect_cpu.c. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_DIALECT_CPU_H
#define ACRE_COMPUTE_SOURCE_DIALECT_CPU_H

#include "compute/source/dialect.h"

/* How a text with kernels that run as fibers begins: a frame must fit in a fiber's stack
 * (cpu/fiber.h), with room for what is called from there. clang also has to be told on its command
 * line (cpu/build.c). */
#define DIALECT_CPU_FIBERS                                                                         \
    "#ifdef __clang__\n"                                                                           \
    "#pragma clang diagnostic error \"-Wframe-larger-than=\"\n"                                    \
    "#else\n"                                                                                      \
    "#pragma GCC diagnostic error \"-Wframe-larger-than=32768\"\n"                                 \
    "#endif\n"

/* The dialect's words, in C. */
void dialect_prelude_cpu(struct acre_buf *out);

/* What a kernel does, itself or in the functions and macros it uses; in doubt, all. */
enum cpu_trait {
    CPU_HAS_BARRIER = 1 << 0,
    CPU_HAS_LOOP = 1 << 1,    /* or recursion: no bound is known for its time */
    CPU_NEEDS_GROUP = 1 << 2, /* tells its group's items from those of others */
    CPU_INT_INDEX = 1 << 3,   /* keeps its number in an int */
    CPU_UINT_INDEX = 1 << 4,  /* in a uint */
    CPU_ALL_TRAITS = (1 << 5) - 1,
};

/* Read `text`, and blank the word `local` out of it where it says what a pointer points to: C has
 * no such thing, and what is left are the declarations of local arrays. For each kernel (of
 * `count`) the traits. ACRE_ENOMEM. */
int cpu_source_read(char *text, size_t length, const char *options, const struct signature *all,
                    uint32_t count, uint8_t *ret_traits, struct acre_error *err);

#endif
