/* module.h - the bytes of compiled kernels: build.c makes them, module.c loads them. */
#ifndef ACRE_COMPUTE_CPU_MODULE_H
#define ACRE_COMPUTE_CPU_MODULE_H

#include "compute/cpu/cpu.h"
#include "core/str.h"

enum { CPU_BOUNDED_ITEM_PS = 400 }; /* a guess until measured: a few operations */

/* Append `object`, a shared object, with what tells it from damaged bytes. */
int cpu_module_pack(const void *object, size_t length, struct acre_buf *out);
/* Bytes of local arrays, all kernels together. */
uint32_t cpu_module_local_bytes(const void *object, size_t length);
/* "/tmp/acre-XXXXXX", for mkstemp or mkdtemp. */
void cpu_temporary(char *path, size_t size);
/* What a compiler said of `file`, in the log from `from` on: about the user's source instead. */
void cpu_messages(struct acre_buf *log, size_t from, const char *file);

#endif
