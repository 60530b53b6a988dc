/* npy.h - reads and writes arrays as numpy.save does: .npy versions 1 and 2, little endian, C
 * order, plain numbers.
 *
 * Programs only, any thread. Strict: anything else is refused, and the error names it. The caller
 * provides the memory for the data. */
#ifndef ACRE_CLI_NPY_H
#define ACRE_CLI_NPY_H

#include "core/error.h"
#include "core/str.h"

enum {
    ACRE_NPY_DIMENSIONS_MAX = 8,
    ACRE_NPY_HEADER_MAX = 64 << 10, /* read; numpy's own are 64 to 128 bytes */
    ACRE_NPY_WRITTEN_MAX = 384,     /* written: 8 lengths of 20 digits, and the words */
    ACRE_NPY_SHAPE_MAX = 200,       /* "float32[1000,20]" */
};
#define ACRE_NPY_BYTES_MAX (UINT64_C(1) << 48) /* of data: more than any device has */

/* clang-format off */
#define ACRE_NPY_TYPES(X)                         \
    /* type      name       code   bytes  kind */ \
    X(BOOL,      "bool",    "b1",  1,     'b')    \
    X(INT8,      "int8",    "i1",  1,     'i')    \
    X(UINT8,     "uint8",   "u1",  1,     'u')    \
    X(INT16,     "int16",   "i2",  2,     'i')    \
    X(UINT16,    "uint16",  "u2",  2,     'u')    \
    X(INT32,     "int32",   "i4",  4,     'i')    \
    X(UINT32,    "uint32",  "u4",  4,     'u')    \
    X(INT64,     "int64",   "i8",  8,     'i')    \
    X(UINT64,    "uint64",  "u8",  8,     'u')    \
    X(FLOAT16,   "float16", "f2",  2,     'f')    \
    X(FLOAT32,   "float32", "f4",  4,     'f')    \
    X(FLOAT64,   "float64", "f8",  8,     'f')
/* clang-format on */

enum npy_type {
#define X(type, name, code, bytes, kind) ACRE_NPY_##type,
    ACRE_NPY_TYPES(X)
#undef X
        ACRE_NPY_TYPE_COUNT
};

struct npy {
    enum npy_type type;
    uint32_t dimensions; /* 0: one number */
    uint64_t shape[ACRE_NPY_DIMENSIONS_MAX];
    uint64_t count; /* of numbers */
    uint64_t bytes; /* of all of them */
};

const char *npy_type_name(enum npy_type type); /* "float32" */
char npy_type_kind(enum npy_type type);        /* 'f' */
uint32_t npy_type_bytes(enum npy_type type);
/* "float32[1000,20]"; returns `text`. */
char *npy_format(const struct npy *npy, char *text, size_t size);
/* The same, read: TYPE[N] to TYPE[N,...]. ACRE_EINVALID names `field`, the text and what is
 * accepted. */
int npy_parse(const char *field, struct acre_str text, struct npy *ret_npy, struct acre_error *err);
/* The number at `index` of the data (not aligned); whole ones are rounded above 2^53. */
double npy_value(const struct npy *npy, const void *data, uint64_t index);
/* These are exact: whether one number is less than another; a number in figures, of floating-point
 * ones so many. Returns `text`. */
bool npy_is_less(const struct npy *npy, const void *data, uint64_t one, uint64_t other);
char *npy_show(const struct npy *npy, const void *data, uint64_t index, int figures, char *text,
               size_t size);

/* What begins a file; its data begins at `ret_header_bytes`. ACRE_EINVALID begins with `name`. */
int npy_read_header(const char *name, struct acre_str bytes, struct npy *ret_npy,
                    uint32_t *ret_header_bytes, struct acre_error *err);
/* Open the file and read its header; `ret_fd` stands at the data, all of which is there. */
int npy_open(const char *path, struct npy *ret_npy, int *ret_fd, struct acre_error *err);
/* The data of an open file; `to` has room for npy->bytes. */
int npy_load(const char *path, int fd, const struct npy *npy, void *to, struct acre_error *err);
/* What begins a file of this array; returns its length, a multiple of 64. */
uint32_t npy_write_header(const struct npy *npy, char header[ACRE_NPY_WRITTEN_MAX]);

#endif
