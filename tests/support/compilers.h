/* compilers.h - the real compilers of the back ends, where this machine has them.
 *
 * Loaded by name at run time; nothing of them is linked. For tests only. */
#ifndef ACRE_TEST_COMPILERS_H
#define ACRE_TEST_COMPILERS_H

#include "core/buf.h"

/* 0: compiled, `out` has the PTX (CUDA) or nothing; 1: it does not compile; -1: no such compiler,
 * and `log` says why. The log is appended. */
int compile_cuda(const char *text, struct acre_buf *log, struct acre_buf *out);
int compile_opencl(const char *text, struct acre_buf *log, struct acre_buf *out);
/* clang's HIP for one GPU, with the few declarations of HIP's headers that our prelude uses. */
int compile_hip(const char *text, struct acre_buf *log, struct acre_buf *out);

#endif
