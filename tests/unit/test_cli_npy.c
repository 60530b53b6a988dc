/* Arrays in .npy files: read as numpy writes them, refused with what is wrong, written back. */
#include "cli/npy.h"

#include "core/file.h"
#include "support/test.h"
#include "support/tree.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { FILE_MAX = 1024 };

/* Magic number, version, length, header. */
static struct acre_str make(char *to, uint8_t version, const char *header) {
    size_t length = strlen(header), prefix = version == 1 ? 10 : 12;
    memset(to, 0, FILE_MAX);
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (char)version;
    to[8] = (char)(length & 255);
    to[9] = (char)(length >> 8);
    memcpy(to + prefix, header, length);
    return (struct acre_str){to, prefix + length};
}

static void headers_are_read(void) {
    static const struct {
        uint8_t version;
        const char *header;
        const char *expect;
        uint64_t bytes;
    } rows[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }  \n", "float32[256]",
         1024},
        {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }\n", "float32[256]", 1024},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n", "float64[3,4]", 96},
        {1, "{'descr':'<i8','fortran_order':False,'shape':(2,3,4)}\n", "int64[2,3,4]", 192},
        {1, "{\"shape\": (7,), \"descr\": \"|u1\", \"fortran_order\": True}", "uint8[7]", 7},
        {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n", "bool[]", 1},
        {1, "{'descr': '<u1', 'fortran_order': False, 'shape': (5,), }\n", "uint8[5]", 5},
        {1, "{'descr': '<f2', 'fortran_order': False, 'shape': (0,), }\n", "float16[0]", 0},
        {1, "{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,9), }\n",
         "int16[1,1,1,1,1,1,1,9]", 18},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char bytes[FILE_MAX], text[ACRE_NPY_SHAPE_MAX];
        struct npy npy = {0};
        struct acre_error err = {0};
        uint32_t length = 0;
        acre_test_context("%s", rows[i].header);
        struct acre_str all = make(bytes, rows[i].version, rows[i].header);
        CHECK_EQ(npy_read_header("x", all, &npy, &length, &err), 0);
        CHECK_STR(err.text, "");
        CHECK_STR(npy_format(&npy, text, sizeof(text)), rows[i].expect);
        CHECK_U64(npy.bytes, rows[i].bytes);
        CHECK_U64(length, all.length);
    }
}

static void bad_headers_are_refused_with_what_is_wrong(void) {
    static const struct {
        uint8_t version;
        const char *header;
        const char *message;
    } rows[] = {
        {3, "{}", "x: .npy version 3.0; accepted: 1.0 and 2.0"},
        {1, "", "missing '{'"},
        {1, "{", "missing key"},
        {1, "{}", "descr is missing"},
        {1, "{'descr': '<f4', 'shape': (1,)}", "fortran_order is missing"},
        {1, "{'descr': '<f4', 'fortran_order': False}", "shape is missing"},
        {1, "{'descr' '<f4'}", "missing ':'"},
        {1, "{'descr': '<f4' 'shape': (1,)}", "missing ',' or '}'"},
        {1, "{'descr': '<f4'", "missing ',' or '}'"},
        {1, "{'descr': '<f4", "not a plain type"},
        {1, "{'descr': [('a', '<f4')], }",
         "not a plain type at '[('a', '<f4')], }'; accepted: a type such as"},
        {1, "{'fortran_order': Maybe}", "neither True nor False"},
        {1, "{'shape': 3}", "not a tuple"},
        {1, "{'shape': (3", "not a tuple"},
        {1, "{'descr': '<f4', 'descr': '<f4'}",
         "repeated key 'descr' in the .npy header; "
         "accepted: descr,"},
        {1, "{'extra': 1}", "unknown or repeated key 'extra' in the .npy header; accepted"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
         "extra text after the end"},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "'>f4'; accepted: little"},
        {1, "{'descr': '=f4', 'fortran_order': False, 'shape': (1,)}", "'=f4'"},
        {1, "{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", "'|f4'"},
        {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "'<c8'"},
        {1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "'|O'"},
        {1, "{'descr': '<U10', 'fortran_order': False, 'shape': (1,)}", "'<U10'"},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2,2)}", "numpy.ascontiguousarray"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "shape (3)"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "shape (,)"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2)}", "shape (1,,2)"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
         "shape (-1,); accepted: at "
         "most 8 whole numbers"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}", "shape (1.0,)"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         "at most 8 whole numbers"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (70368744177665,)}", "2^48 bytes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}",
         "2^48 bytes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,18446744073709551616)}",
         "2^48 bytes"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char bytes[FILE_MAX];
        struct npy npy;
        struct acre_error err = {0};
        uint32_t length = 7;
        acre_test_context("%s", rows[i].header);
        struct acre_str all = make(bytes, rows[i].version, rows[i].header);
        CHECK_EQ(npy_read_header("x", all, &npy, &length, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].message);
        CHECK(strncmp(err.text, "x: ", 3) == 0);
        CHECK_U64(length, 7);
    }
}

static void headers_that_are_cut_are_refused(void) {
    char bytes[FILE_MAX];
    struct npy npy;
    uint32_t length = 0;
    struct acre_str all =
        make(bytes, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (256,), }");
    for (size_t i = 0; i < all.length; i++) {
        struct acre_error err = {0};
        acre_test_context("%zu bytes", i);
        CHECK_EQ(npy_read_header("x", (struct acre_str){bytes, i}, &npy, &length, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, i < 8 ? "x: not a .npy file" : "x: truncated in the .npy header");
    }
    bytes[10] = 1; /* 64 KiB more than there are */
    struct acre_error err = {0};
    CHECK_EQ(npy_read_header("x", all, &npy, &length, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "the .npy header has 65595 bytes; accepted: at most 65524");
}

static void arrays_in_words_are_read(void) {
    static const struct {
        const char *text;
        int expect;
        uint64_t bytes;
        const char *message;
    } rows[] = {
        {"float32[1000]", 0, 4000, ""},
        {"int8[2,3]", 0, 6, ""},
        {"bool[1]", 0, 1, ""},
        {"float32", ACRE_EINVALID, 0, "--arg x: 'float32' is not an array; accepted: TYPE[COUNT]"},
        {"float[3]", ACRE_EINVALID, 0, "where TYPE is one of bool, int8"},
        {"float32[]", ACRE_EINVALID, 0, "'' in 'float32[]'"},
        {"float32[0]", ACRE_EINVALID, 0,
         "invalid length '0' in 'float32[0]'; accepted: at most 8 lengths of 1 or more"},
        {"float32[-1]", ACRE_EINVALID, 0, "'-1'"},
        {"float32[1,]", ACRE_EINVALID, 0, "''"},
        {"float32[1] ", ACRE_EINVALID, 0, "is not an array"},
        {"float32[18446744073709551617]", ACRE_EINVALID, 0, "2^48 bytes"},
        {"float64[35184372088833]", ACRE_EINVALID, 0, "2^48 bytes"},
        {"", ACRE_EINVALID, 0, "is not an array"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct npy npy = {0};
        struct acre_error err = {0};
        acre_test_context("%s", rows[i].text);
        CHECK_EQ(npy_parse("--arg x", acre_str_from(rows[i].text), &npy, &err), rows[i].expect);
        CHECK_U64(npy.bytes, rows[i].bytes);
        CHECK_HAS(err.text, rows[i].message);
    }
}

static void values_are_those_of_their_type(void) {
    static const struct {
        enum npy_type type;
        const char *bytes;
        double expect;
    } rows[] = {
        {ACRE_NPY_BOOL, "\x02", 1},
        {ACRE_NPY_INT8, "\xff", -1},
        {ACRE_NPY_UINT8, "\xff", 255},
        {ACRE_NPY_INT16, "\xfe\xff", -2},
        {ACRE_NPY_UINT16, "\xfe\xff", 65534},
        {ACRE_NPY_INT32, "\x00\x00\x00\x80", -2147483648.0},
        {ACRE_NPY_UINT32, "\x00\x00\x00\x80", 2147483648.0},
        {ACRE_NPY_INT64, "\xff\xff\xff\xff\xff\xff\xff\xff", -1},
        {ACRE_NPY_UINT64, "\x00\x00\x00\x00\x00\x00\x00\x80", 9223372036854775808.0},
        {ACRE_NPY_FLOAT16, "\x00\x3c", 1},
        {ACRE_NPY_FLOAT16, "\x00\xc0", -2},
        {ACRE_NPY_FLOAT16, "\xff\x7b", 65504},
        {ACRE_NPY_FLOAT16, "\x01\x00", 0x1p-24},
        {ACRE_NPY_FLOAT16, "\x00\xfc", -(double)INFINITY},
        {ACRE_NPY_FLOAT32, "\x00\x00\xc0\x3f", 1.5},
        {ACRE_NPY_FLOAT64, "\x00\x00\x00\x00\x00\x00\xf8\xbf", -1.5},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        char bytes[17] = "";
        uint32_t size = npy_type_bytes(rows[i].type);
        struct npy npy = {.type = rows[i].type};
        memcpy(bytes + size + 1, rows[i].bytes, size); /* the second, and not aligned */
        acre_test_context("%s", npy_type_name(rows[i].type));
        CHECK(npy_value(&npy, bytes + 1, 1) == rows[i].expect);
    }
    struct npy wide = {.type = ACRE_NPY_UINT64}, narrow = {.type = ACRE_NPY_INT64};
    const uint64_t high[] = {UINT64_MAX - 1, UINT64_MAX};
    const int64_t low[] = {(INT64_C(1) << 53) + 1, INT64_C(1) << 53, INT64_MIN};
    char text[32];
    CHECK_STR(npy_show(&wide, high, 1, 6, text, sizeof(text)), "18446744073709551615");
    CHECK_STR(npy_show(&narrow, low, 0, 6, text, sizeof(text)), "9007199254740993");
    CHECK_STR(npy_show(&narrow, low, 2, 6, text, sizeof(text)), "-9223372036854775808");
    CHECK(npy_is_less(&wide, high, 0, 1) && !npy_is_less(&wide, high, 1, 0));
    CHECK(npy_is_less(&narrow, low, 1, 0) && npy_is_less(&narrow, low, 2, 1));
    CHECK(!npy_is_less(&narrow, low, 1, 1));
    struct npy half = {.type = ACRE_NPY_FLOAT16};
    CHECK(isnan(npy_value(&half, "\x01\x7e", 0)));
}

static void what_is_written_is_read_again(void) {
    static const char *const arrays[] = {"float32[256]", "int8[2,3]", "float64[1,1,1,1,1,1,1,8]",
                                         "uint16[4294967296]"};
    for (size_t i = 0; i < ACRE_COUNT(arrays); i++) {
        char header[ACRE_NPY_WRITTEN_MAX], text[ACRE_NPY_SHAPE_MAX];
        struct npy npy = {0}, again = {0};
        uint32_t length = 0;
        acre_test_context("%s", arrays[i]);
        REQUIRE_EQ(npy_parse("x", acre_str_from(arrays[i]), &npy, NULL), 0);
        uint32_t written = npy_write_header(&npy, header);
        CHECK_U64(written % 64, 0);
        CHECK_EQ(header[written - 1], '\n');
        CHECK_EQ(npy_read_header("x", (struct acre_str){header, written}, &again, &length, NULL),
                 0);
        CHECK_U64(length, written);
        CHECK_STR(npy_format(&again, text, sizeof(text)), arrays[i]);
    }
}

static void write_file(const char *path, const struct npy *npy, size_t data_bytes) {
    char bytes[FILE_MAX] = "";
    uint32_t length = npy_write_header(npy, bytes);
    memset(bytes + length, 7, data_bytes);
    REQUIRE_EQ(acre_file_write(path, bytes, length + data_bytes, NULL), 0);
}

static void files_are_read_whole_or_not_at_all(void) {
    struct tree tree = tree_create(NULL);
    struct npy npy = {0}, read = {0};
    struct acre_error err = {0};
    char data[64], message[128];
    int fd = -1;
    REQUIRE_EQ(npy_parse("x", ACRE_STR("uint8[8]"), &npy, NULL), 0);
    const char *path = tree_path(&tree, "a.npy");
    write_file(path, &npy, 8);
    REQUIRE_EQ(npy_open(path, &read, &fd, &err), 0);
    CHECK_U64(read.bytes, 8);
    CHECK_EQ(npy_load(path, fd, &read, data, &err), 0);
    CHECK_EQ(data[7], 7);
    CHECK_EQ(npy_load(path, fd, &read, data, &err), ACRE_EIO); /* it is at the end */
    CHECK_HAS(err.text, "got shorter");
    close(fd);
    for (size_t bytes = 7; bytes <= 9; bytes += 2) {
        write_file(path, &npy, bytes);
        CHECK_EQ(npy_open(path, &read, &fd, &err), ACRE_EINVALID);
        snprintf(message, sizeof(message), "has %zu bytes of data; uint8[8] has 8", bytes);
        CHECK_HAS(err.text, message);
    }
    tree_put(&tree, "text.npy", "hello");
    CHECK_EQ(npy_open(tree_path(&tree, "text.npy"), &read, &fd, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "not a .npy file");
    CHECK_EQ(npy_open(tree_path(&tree, "none"), &read, &fd, &err), ACRE_ENOTFOUND);
    CHECK_EQ(npy_open(tree.root, &read, &fd, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "not a regular file");
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"headers_are_read", headers_are_read, 0},
    {"bad_headers_are_refused_with_what_is_wrong", bad_headers_are_refused_with_what_is_wrong, 0},
    {"headers_that_are_cut_are_refused", headers_that_are_cut_are_refused, 0},
    {"arrays_in_words_are_read", arrays_in_words_are_read, 0},
    {"values_are_those_of_their_type", values_are_those_of_their_type, 0},
    {"what_is_written_is_read_again", what_is_written_is_read_again, 0},
    {"files_are_read_whole_or_not_at_all", files_are_read_whole_or_not_at_all, 0},
};

ACRE_TEST_MAIN(tests)
