/* npy.c - see npy.h.
 *
 * A file consists of the magic number, a version, the length of a header, the header and the data.
 * The header is a Python dictionary with three keys, in any order. It is read by hand, one token
 * at a time, and may contain only strings, False and True, and tuples of whole numbers. */
#include "cli/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAGIC_BYTES = 6,
    HEADER_ALIGN = 64,
    SHOWN_MAX = 64,
    PATH_SHOWN = 200,
    READ_MAX = 1 << 30, /* of one read(2), which takes no more than 2 GiB */
};

static const char magic[MAGIC_BYTES] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y'};

static const struct {
    const char *name, *code;
    uint32_t bytes;
    char kind;
} types[] = {
#define X(type, name, code, bytes, kind) {name, code, bytes, kind},
    ACRE_NPY_TYPES(X)
#undef X
};

#define TYPE_NAMES                                                                                 \
    "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64"

const char *npy_type_name(enum npy_type type) {
    return types[type].name;
}

char npy_type_kind(enum npy_type type) {
    return types[type].kind;
}

uint32_t npy_type_bytes(enum npy_type type) {
    return types[type].bytes;
}

char *npy_format(const struct npy *npy, char *text, size_t size) {
    ACRE_ASSERT(size >= ACRE_NPY_SHAPE_MAX);
    size_t length = (size_t)snprintf(text, size, "%s[", types[npy->type].name);
    for (uint32_t i = 0; i < npy->dimensions; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s%" PRIu64, i > 0 ? "," : "",
                                   npy->shape[i]);
    }
    snprintf(text + length, size - length, "]");
    return text;
}

/* One more length. False: too many of them, or too many bytes. */
static bool add_dimension(struct npy *npy, uint64_t length) {
    uint64_t count, bytes;
    if (npy->dimensions == ACRE_NPY_DIMENSIONS_MAX || length > ACRE_NPY_BYTES_MAX ||
        __builtin_mul_overflow(npy->count, length, &count) ||
        __builtin_mul_overflow(count, types[npy->type].bytes, &bytes) ||
        bytes > ACRE_NPY_BYTES_MAX) {
        return false;
    }
    npy->shape[npy->dimensions++] = length;
    npy->count = count;
    npy->bytes = bytes;
    return true;
}

static struct npy empty_array(enum npy_type type) {
    return (struct npy){.type = type, .count = 1, .bytes = types[type].bytes};
}

static bool read_number(struct acre_str text, uint64_t *ret_value) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' ||
            __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value)) {
            return false;
        }
    }
    *ret_value = value;
    return text.length > 0;
}

/* --- "float32[1000]" ------------------------------------------------------------------------ */

int npy_parse(const char *field, struct acre_str text, struct npy *ret_npy,
              struct acre_error *err) {
    char shown[SHOWN_MAX];
    acre_str_show(text, shown, sizeof(shown));
    const char *bracket = memchr(text.data, '[', text.length);
    size_t type = ACRE_NPY_TYPE_COUNT;
    if (bracket != NULL && text.data[text.length - 1] == ']') {
        struct acre_str name = {text.data, (size_t)(bracket - text.data)};
        for (type = 0; type < ACRE_NPY_TYPE_COUNT && !acre_str_is(name, types[type].name);) {
            type++;
        }
    }
    if (type == ACRE_NPY_TYPE_COUNT) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: '%s' is not an array; accepted: TYPE[COUNT] or TYPE[COUNT,COUNT...], "
                         "where TYPE is one of " TYPE_NAMES,
                         field, shown);
    }
    struct npy npy = empty_array((enum npy_type)type);
    struct acre_str inside = {bracket + 1, (size_t)(text.data + text.length - 2 - bracket)};
    struct acre_split split = acre_split_begin(inside, ',');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        uint64_t length = 0;
        if (!read_number(part, &length) || length == 0 || !add_dimension(&npy, length)) {
            char bad[SHOWN_MAX];
            return acre_fail(
                err, ACRE_EINVALID,
                "%s: invalid length '%s' in '%s'; accepted: at most %d lengths of 1 or "
                "more, and 2^48 bytes in total",
                field, acre_str_show(part, bad, sizeof(bad)), shown, ACRE_NPY_DIMENSIONS_MAX);
        }
    }
    *ret_npy = npy;
    return 0;
}

/* --- values --------------------------------------------------------------------------------- */

/* IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction. */
static double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

/* A number of any type, as wide as they get: which of the three follows from the kind. */
union npy_number {
    int64_t i;
    uint64_t u;
    double f;
};

static union npy_number number_at(const struct npy *npy, const void *data, uint64_t index) {
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } value = {0};
    uint32_t bytes = types[npy->type].bytes;
    memcpy(&value, (const char *)data + index * bytes, bytes);
    switch (npy->type) {
    case ACRE_NPY_BOOL:
        return (union npy_number){.u = value.u8 != 0};
    case ACRE_NPY_INT8:
        return (union npy_number){.i = value.i8};
    case ACRE_NPY_UINT8:
        return (union npy_number){.u = value.u8};
    case ACRE_NPY_INT16:
        return (union npy_number){.i = value.i16};
    case ACRE_NPY_UINT16:
        return (union npy_number){.u = value.u16};
    case ACRE_NPY_INT32:
        return (union npy_number){.i = value.i32};
    case ACRE_NPY_UINT32:
        return (union npy_number){.u = value.u32};
    case ACRE_NPY_INT64:
        return (union npy_number){.i = value.i64};
    case ACRE_NPY_UINT64:
        return (union npy_number){.u = value.u64};
    case ACRE_NPY_FLOAT16:
        return (union npy_number){.f = half_value(value.u16)};
    case ACRE_NPY_FLOAT32:
        return (union npy_number){.f = (double)value.f32};
    case ACRE_NPY_FLOAT64:
        return (union npy_number){.f = value.f64};
    case ACRE_NPY_TYPE_COUNT:
    default:
        ACRE_ASSERT(false);
        return (union npy_number){0};
    }
}

double npy_value(const struct npy *npy, const void *data, uint64_t index) {
    union npy_number number = number_at(npy, data, index);
    char kind = types[npy->type].kind;
    return kind == 'f' ? number.f : kind == 'i' ? (double)number.i : (double)number.u;
}

bool npy_is_less(const struct npy *npy, const void *data, uint64_t one, uint64_t other) {
    union npy_number a = number_at(npy, data, one), b = number_at(npy, data, other);
    char kind = types[npy->type].kind;
    return kind == 'f' ? a.f < b.f : kind == 'i' ? a.i < b.i : a.u < b.u;
}

char *npy_show(const struct npy *npy, const void *data, uint64_t index, int figures, char *text,
               size_t size) {
    union npy_number number = number_at(npy, data, index);
    char kind = types[npy->type].kind;
    if (kind == 'f') {
        snprintf(text, size, "%.*g", figures, number.f);
    } else if (kind == 'i') {
        snprintf(text, size, "%" PRId64, number.i);
    } else {
        snprintf(text, size, "%" PRIu64, number.u);
    }
    return text;
}

/* --- the header ----------------------------------------------------------------------------- */

struct npy_header {
    const char *name; /* of the file */
    struct acre_str rest;
    struct acre_str descr, shape;
    bool has_descr, has_order, has_shape, is_fortran;
};

static int refuse_for(const struct npy_header *header, struct acre_error *err, const char *what,
                      const char *accepted) {
    char shown[SHOWN_MAX];
    struct acre_str at = {header->rest.data, ACRE_MIN(header->rest.length, (size_t)24)};
    return acre_fail(err, ACRE_EINVALID, "%s: bad .npy header: %s at '%s'%s", header->name, what,
                     acre_str_show(at, shown, sizeof(shown)), accepted);
}

static int refuse(const struct npy_header *header, struct acre_error *err, const char *what) {
    return refuse_for(header, err, what, "");
}

static void skip_blanks(struct npy_header *header) {
    while (header->rest.length > 0 && strchr(" \t\n", header->rest.data[0]) != NULL &&
           header->rest.data[0] != '\0') {
        header->rest.data++;
        header->rest.length--;
    }
}

static bool take(struct npy_header *header, const char *word) {
    size_t length = strlen(word);
    skip_blanks(header);
    if (header->rest.length < length || memcmp(header->rest.data, word, length) != 0) {
        return false;
    }
    header->rest.data += length;
    header->rest.length -= length;
    return true;
}

/* What is between `open` and `close`; no escapes, no nesting. */
static bool take_until(struct npy_header *header, char open, char close,
                       struct acre_str *ret_inside) {
    skip_blanks(header);
    if (header->rest.length == 0 || header->rest.data[0] != open) {
        return false;
    }
    const char *begin = header->rest.data + 1;
    const char *end = memchr(begin, close, header->rest.length - 1);
    if (end == NULL) {
        return false;
    }
    *ret_inside = (struct acre_str){begin, (size_t)(end - begin)};
    header->rest.length -= (size_t)(end + 1 - header->rest.data);
    header->rest.data = end + 1;
    return true;
}

static bool take_string(struct npy_header *header, struct acre_str *ret_text) {
    return take_until(header, '\'', '\'', ret_text) || take_until(header, '"', '"', ret_text);
}

static int take_value(struct npy_header *header, struct acre_str key, struct acre_error *err) {
    if (acre_str_is(key, "descr") && !header->has_descr) {
        header->has_descr = take_string(header, &header->descr);
        return header->has_descr ? 0
                                 : refuse_for(header, err, "not a plain type",
                                              "; accepted: a type such as '<f4'");
    }
    if (acre_str_is(key, "fortran_order") && !header->has_order) {
        header->is_fortran = take(header, "True");
        header->has_order = header->is_fortran || take(header, "False");
        return header->has_order ? 0 : refuse(header, err, "neither True nor False");
    }
    if (acre_str_is(key, "shape") && !header->has_shape) {
        header->has_shape = take_until(header, '(', ')', &header->shape);
        return header->has_shape ? 0 : refuse(header, err, "not a tuple of lengths");
    }
    char shown[SHOWN_MAX];
    return acre_fail(err, ACRE_EINVALID,
                     "%s: unknown or repeated key '%s' in the .npy header; accepted: descr, "
                     "fortran_order and shape, each once",
                     header->name, acre_str_show(key, shown, sizeof(shown)));
}

static int read_dictionary(struct npy_header *header, struct acre_error *err) {
    if (!take(header, "{")) {
        return refuse(header, err, "missing '{'");
    }
    while (!take(header, "}")) {
        struct acre_str key;
        if (!take_string(header, &key)) {
            return refuse(header, err, "missing key");
        }
        if (!take(header, ":")) {
            return refuse(header, err, "missing ':'");
        }
        int r = take_value(header, key, err);
        if (r < 0) {
            return r;
        }
        bool has_comma = take(header, ",");
        skip_blanks(header);
        if (!has_comma && (header->rest.length == 0 || header->rest.data[0] != '}')) {
            return refuse(header, err, "missing ',' or '}'");
        }
    }
    skip_blanks(header);
    if (header->rest.length > 0) {
        return refuse(header, err, "extra text after the end");
    }
    if (!header->has_descr || !header->has_order || !header->has_shape) {
        return acre_fail(err, ACRE_EINVALID, "%s: bad .npy header: %s is missing", header->name,
                         !header->has_descr   ? "descr"
                         : !header->has_order ? "fortran_order"
                                              : "shape");
    }
    return 0;
}

static int read_type(const struct npy_header *header, enum npy_type *ret_type,
                     struct acre_error *err) {
    char shown[SHOWN_MAX];
    struct acre_str descr = header->descr;
    for (size_t i = 0; descr.length == 3 && i < ACRE_NPY_TYPE_COUNT; i++) {
        bool is_plain = descr.data[0] == '<' || (descr.data[0] == '|' && types[i].bytes == 1);
        if (is_plain && memcmp(descr.data + 1, types[i].code, 2) == 0) {
            *ret_type = (enum npy_type)i;
            return 0;
        }
    }
    return acre_fail(err, ACRE_EINVALID,
                     "%s: unsupported type '%s'; accepted: little endian ('<f4') " TYPE_NAMES,
                     header->name, acre_str_show(descr, shown, sizeof(shown)));
}

static int read_shape(const struct npy_header *header, struct npy *npy, struct acre_error *err) {
    char shown[SHOWN_MAX];
    struct acre_split split = acre_split_begin(header->shape, ',');
    struct acre_str part;
    bool ended = false, ok = true,
         has_comma = memchr(header->shape.data, ',', header->shape.length) != NULL;
    while (ok && acre_split_next(&split, &part)) {
        uint64_t length = 0;
        part = acre_str_trim(part);
        if (part.length == 0) {
            ok = !ended; /* "(3,)" and "()": the last part is empty */
            ended = true;
            continue;
        }
        ok = !ended && read_number(part, &length) && add_dimension(npy, length);
    }
    ok = ok && (has_comma ? npy->dimensions > 0 : npy->dimensions == 0);
    if (!ok) {
        return acre_fail(
            err, ACRE_EINVALID,
            "%s: invalid shape (%s); accepted: at most %d whole numbers, and 2^48 bytes "
            "in total",
            header->name, acre_str_show(header->shape, shown, sizeof(shown)),
            ACRE_NPY_DIMENSIONS_MAX);
    }
    if (header->is_fortran && npy->dimensions > 1) {
        return acre_fail(
            err, ACRE_EINVALID,
            "%s: the array is in Fortran order; accepted: C order (numpy.ascontiguousarray)",
            header->name);
    }
    return 0;
}

/* How long version and length are, and what they say. */
static int read_prefix(const char *name, struct acre_str bytes, uint32_t *ret_prefix_bytes,
                       uint32_t *ret_length, struct acre_error *err) {
    if (bytes.length < MAGIC_BYTES + 2 || memcmp(bytes.data, magic, MAGIC_BYTES) != 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: not a .npy file (wrong magic number)", name);
    }
    const unsigned char *at = (const unsigned char *)bytes.data + MAGIC_BYTES;
    if ((at[0] != 1 && at[0] != 2) || at[1] != 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: .npy version %u.%u; accepted: 1.0 and 2.0", name,
                         at[0], at[1]);
    }
    uint32_t prefix = MAGIC_BYTES + 2 + (at[0] == 1 ? 2U : 4U), length = 0;
    for (uint32_t i = MAGIC_BYTES + 2; i < prefix && i < bytes.length; i++) {
        length |= (uint32_t)(unsigned char)bytes.data[i] << 8 * (i - MAGIC_BYTES - 2);
    }
    if (bytes.length >= prefix && length > ACRE_NPY_HEADER_MAX - prefix) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: the .npy header has %u bytes; accepted: at most %u", name, length,
                         ACRE_NPY_HEADER_MAX - prefix);
    }
    if (bytes.length < prefix || bytes.length - prefix < length) {
        return acre_fail(err, ACRE_EINVALID, "%s: truncated in the .npy header", name);
    }
    *ret_prefix_bytes = prefix;
    *ret_length = length;
    return 0;
}

int npy_read_header(const char *name, struct acre_str bytes, struct npy *ret_npy,
                    uint32_t *ret_header_bytes, struct acre_error *err) {
    uint32_t prefix = 0, length = 0;
    enum npy_type type = ACRE_NPY_BOOL;
    int r = read_prefix(name, bytes, &prefix, &length, err);
    if (r < 0) {
        return r;
    }
    struct npy_header header = {.name = name, .rest = {bytes.data + prefix, length}};
    r = read_dictionary(&header, err);
    r = r == 0 ? read_type(&header, &type, err) : r;
    struct npy npy = empty_array(type);
    r = r == 0 ? read_shape(&header, &npy, err) : r;
    if (r == 0) {
        *ret_npy = npy;
        *ret_header_bytes = prefix + length;
    }
    return r;
}

uint32_t npy_write_header(const struct npy *npy, char header[ACRE_NPY_WRITTEN_MAX]) {
    const uint32_t prefix = MAGIC_BYTES + 4;
    char shape[ACRE_NPY_SHAPE_MAX] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < npy->dimensions; i++) {
        at += (size_t)snprintf(shape + at, sizeof(shape) - at, "%s%" PRIu64, i > 0 ? ", " : "",
                               npy->shape[i]);
    }
    int written = snprintf(header + prefix, ACRE_NPY_WRITTEN_MAX - prefix,
                           "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
                           types[npy->type].bytes == 1 ? '|' : '<', types[npy->type].code, shape,
                           npy->dimensions == 1 ? "," : "");
    uint32_t used = prefix + (uint32_t)written + 1; /* and the newline at the end */
    uint32_t length = (used + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN;
    ACRE_ASSERT(length <= ACRE_NPY_WRITTEN_MAX);
    memset(header + used - 1, ' ', length - used);
    header[length - 1] = '\n';
    memcpy(header, magic, MAGIC_BYTES);
    header[MAGIC_BYTES] = 1;
    header[MAGIC_BYTES + 1] = 0;
    header[MAGIC_BYTES + 2] = (char)((length - prefix) & 255);
    header[MAGIC_BYTES + 3] = (char)((length - prefix) >> 8);
    return length;
}

/* --- files ---------------------------------------------------------------------------------- */

/* As many bytes as are there, up to `length`; < 0: failed. */
static int64_t read_up_to(int fd, void *to, uint64_t length) {
    uint64_t done = 0;
    while (done < length) {
        ssize_t got =
            read(fd, (char *)to + done, (size_t)ACRE_MIN(length - done, (uint64_t)READ_MAX));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (uint64_t)got;
    }
    return (int64_t)done;
}

static int read_file_header(int fd, const char *shown, struct npy *ret_npy,
                            struct acre_error *err) {
    static const uint32_t room = ACRE_NPY_HEADER_MAX;
    struct stat info;
    struct npy npy;
    uint32_t header = 0;
    if (fstat(fd, &info) < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    if (!S_ISREG(info.st_mode)) {
        return acre_fail(err, ACRE_EINVALID, "%s: not a regular file", shown);
    }
    char bytes[ACRE_NPY_HEADER_MAX];
    int64_t got = read_up_to(fd, bytes, room);
    if (got < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    int r = npy_read_header(shown, (struct acre_str){bytes, (size_t)got}, &npy, &header, err);
    if (r < 0) {
        return r;
    }
    char text[ACRE_NPY_SHAPE_MAX];
    if ((uint64_t)info.st_size != header + npy.bytes) {
        return acre_fail(err, ACRE_EINVALID, "%s: has %" PRIu64 " bytes of data; %s has %" PRIu64,
                         shown,
                         (uint64_t)ACRE_MAX((int64_t)info.st_size - (int64_t)header, INT64_C(0)),
                         npy_format(&npy, text, sizeof(text)), npy.bytes);
    }
    if (lseek(fd, (off_t)header, SEEK_SET) < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    *ret_npy = npy;
    return 0;
}

int npy_open(const char *path, struct npy *ret_npy, int *ret_fd, struct acre_error *err) {
    char shown[PATH_SHOWN];
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    int r = read_file_header(fd, shown, ret_npy, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

int npy_load(const char *path, int fd, const struct npy *npy, void *to, struct acre_error *err) {
    char shown[PATH_SHOWN];
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    int64_t got = read_up_to(fd, to, npy->bytes);
    if (got < 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    if ((uint64_t)got < npy->bytes) {
        return acre_fail(err, ACRE_EIO, "%s: got shorter while it was being read", shown);
    }
    return 0;
}
