/* .npy: a header that is taken describes an array within the limits, and is written back as one
 * that reads the same; refusals name the file. Arrays in words ("float32[8]") likewise. */
#include "cli/npy.h"

#include "fuzz.h"

static void check_array(const struct npy *npy) {
    uint64_t count = 1;
    ACRE_ASSERT(npy->type < ACRE_NPY_TYPE_COUNT && npy->dimensions <= ACRE_NPY_DIMENSIONS_MAX);
    for (uint32_t i = 0; i < npy->dimensions; i++) {
        ACRE_ASSERT(!__builtin_mul_overflow(count, npy->shape[i], &count));
    }
    ACRE_ASSERT(npy->count == count && npy->bytes == count * npy_type_bytes(npy->type));
    ACRE_ASSERT(npy->bytes <= ACRE_NPY_BYTES_MAX);
    char header[ACRE_NPY_WRITTEN_MAX], text[ACRE_NPY_SHAPE_MAX];
    struct npy again;
    uint32_t length = npy_write_header(npy, header), read = 0;
    ACRE_ASSERT(length % 64 == 0 && length <= sizeof(header));
    int r = npy_read_header("file", (struct acre_str){header, length}, &again, &read, NULL);
    ACRE_ASSERT(r == 0 && read == length && again.type == npy->type && again.bytes == npy->bytes &&
                again.dimensions == npy->dimensions &&
                memcmp(again.shape, npy->shape, sizeof(again.shape)) == 0);
    npy_format(npy, text, sizeof(text));
    if (npy->dimensions > 0 && npy->count > 0) {
        ACRE_ASSERT(npy_parse("x", acre_str_from(text), &again, NULL) == 0);
        ACRE_ASSERT(again.bytes == npy->bytes && again.count == npy->count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str bytes = {size > 0 ? (const char *)data : "", size};
    struct acre_error err = {0};
    struct npy npy;
    uint32_t length = UINT32_MAX;
    int r = npy_read_header("file", bytes, &npy, &length, &err);
    if (r == 0) {
        ACRE_ASSERT(length <= size && length <= ACRE_NPY_HEADER_MAX);
        check_array(&npy);
    } else {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(strncmp(err.text, "file: ", 6) == 0 && length == UINT32_MAX);
    }
    r = npy_parse("--arg x", bytes, &npy, &err);
    if (r == 0) {
        check_array(&npy);
    } else {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(strncmp(err.text, "--arg x: ", 9) == 0);
    }
    return 0;
}
