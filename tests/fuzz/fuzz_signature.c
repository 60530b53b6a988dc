/* Kernel signatures: whatever the text, reading ends, stays within its limits, and places what it
 * found inside the text. What was read as a signature reads the same again from its own writing. */
#include "compute/source/signature.h"
#include "fuzz.h"

#include <stdlib.h>

static void check_again(const struct signature *signature) {
    struct acre_buf text;
    struct signature again;
    acre_buf_init(&text, 1 << 16);
    signature_write(signature, &text);
    ACRE_ASSERT(!acre_buf_failed(&text));
    /* Types are cut for messages and template arguments left out, so it need not be readable; but
     * a signature that is has as many parameters. */
    if (signature_read((struct acre_str){text.data, text.length}, &again, NULL) == 0) {
        ACRE_ASSERT(again.count == signature->count);
        ACRE_ASSERT(strcmp(again.name, signature->name) == 0);
        free(again.parameters);
    }
    acre_buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    enum acre_language language = (enum acre_language)(data[0] % (ACRE_LANGUAGE_OPENCL + 1));
    struct acre_str text = {(const char *)data + 1, size - 1};
    struct acre_error err = {0};
    struct signature *all = NULL;
    uint32_t count = 0;
    int r = signatures_read("file", text, language, &all, &count, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(all == NULL && strncmp(err.text, "file:", 5) == 0);
        return 0;
    }
    ACRE_ASSERT(count <= SIGNATURES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        ACRE_ASSERT(all[i].name[0] != '\0' && all[i].count <= SIGNATURE_PARAMETERS_MAX);
        ACRE_ASSERT(all[i].line >= 1 && all[i].declarations >= 1);
        for (uint32_t k = 0; k < all[i].declarations; k++) {
            ACRE_ASSERT(all[i].offsets[k] < text.length &&
                        (k == 0 || all[i].offsets[k] > all[i].offsets[k - 1]));
        }
        check_again(&all[i]);
    }
    signatures_free(all, count);
    return 0;
}
