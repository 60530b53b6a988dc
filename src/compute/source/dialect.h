/* dialect.h - one kernel source for all back ends: what is put before it, and around it.
 *
 * The portable dialect has the words of OpenCL C that C programmers expect and the others can map:
 *   kernel global local constant; uchar ushort uint ulong; global_id(d) local_id(d) group_id(d)
 *   global_size(d) local_size(d) group_count(d) (each a ulong, d is 0, 1 or 2, called in the kernel
 *   itself); barrier(); atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor
 *   atomic_exchange atomic_compare (int, uint), atomic_add_float; as_uint as_float; popcount, clz;
 *   the float and double functions of C without suffix (sqrt, sin, fma ...), min, max, clamp.
 * Local arrays are declared in the kernel with a constant size. A prelude for each back end maps
 * these; `#line` makes the compiler's line numbers match the source. Pure. */
#ifndef ACRE_COMPUTE_SOURCE_DIALECT_H
#define ACRE_COMPUTE_SOURCE_DIALECT_H

#include "compute/source/signature.h"
#include "core/buf.h"

/* The text for the compiler of the back end of that name. ACRE_EUNSUPPORTED: a plain source of
 * another one (the text says which would take it). `all` are its signatures. */
int dialect_write(const char *backend, const struct acre_source *source,
                  enum acre_language language, const struct signature *all, uint32_t count,
                  struct acre_buf *out, struct acre_error *err);
/* How the size of a value is in a program of OpenCL: kernels without a body, named by parameter,
 * part and kernel, whose group, as it is required, has three digits of it, lowest first, each
 * and 1. */
#define DIALECT_SIZE_NAME "acre_size_%u_%u_%s"
enum { DIALECT_SIZE_PARTS = 2, DIALECT_SIZE_BASE = 6, DIALECT_SIZES = 6 * 6 * 6 * 6 * 6 * 6 };
/* The prelude alone. */
void dialect_prelude(const char *backend, struct acre_buf *out);
/* For the CPU: C with one acre_native_function `acre_entry_NAME` for each kernel (dialect_cpu.c).
 */
int dialect_write_cpu(const struct acre_source *source, const struct signature *all, uint32_t count,
                      struct acre_buf *out, struct acre_error *err);

#endif
