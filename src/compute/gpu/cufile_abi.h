/* cufile_abi.h - the part of cuFile's binary interface that Acre uses: libcufile.so.0.
 *
 * Our own declarations; a test compares them with NVIDIA's header if installed. */
#ifndef ACRE_COMPUTE_GPU_CUFILE_ABI_H
#define ACRE_COMPUTE_GPU_CUFILE_ABI_H

#include "core/base.h"

#include <sys/types.h>

enum cufile_value { CUFILE_HANDLE_FD = 1 };

struct cufile_error { /* CUfileError_t */
    int code;
    int cuda;
};

struct cufile_file { /* CUfileDescr_t */
    int type;
    union {
        int fd;
        void *other;
    };
    const void *operations;
};

/* clang-format off */
#define CUFILE_SYMBOLS(X)                                                                     \
    X(true, struct cufile_error, driver_open, "cuFileDriverOpen",       (void))               \
    X(true, struct cufile_error, enlist,      "cuFileHandleRegister",                         \
      (void **, struct cufile_file *))                                                        \
    X(true, void,                drop,        "cuFileHandleDeregister", (void *))             \
    X(true, ssize_t,             read,        "cuFileRead",                                   \
      (void *, void *base, size_t bytes, off_t file_offset, off_t offset))                    \
    X(true, ssize_t,             write,       "cuFileWrite",                                  \
      (void *, const void *base, size_t bytes, off_t file_offset, off_t offset))
/* clang-format on */

struct cufile_library {
#define X(required, result, member, symbol, arguments) result(*member) arguments;
    CUFILE_SYMBOLS(X)
#undef X
};

#endif
