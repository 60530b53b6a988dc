/* Addresses of stores: whatever the bytes, a store in memory that opens and closes, or a refusal
 * that can be shown. Files are not opened: what would name one is passed over. */
#include "fuzz.h"
#include "store/store.h"

enum { TEXT_BYTES = 600 };

static void check_url(const char *url) {
    struct acre_error err = {0};
    struct acre_store *store = NULL;
    struct acre_store_options options = {.url = url};
    if (strncmp(url, "sqlite:", 7) == 0) {
        return;
    }
    int r = acre_store_open(&options, &store, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT((r == ACRE_EINVALID || r == ACRE_ELIMIT) && store == NULL);
        return;
    }
    ACRE_ASSERT(strncmp(url, "memory:", 7) == 0);
    acre_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[TEXT_BYTES] = "memory:";
    size_t prefix = strlen(text);
    size_t length = ACRE_MIN(size, sizeof(text) - 1 - prefix);
    memcpy(text + prefix, data, length);
    text[prefix + length] = '\0';
    check_url(text);
    check_url(text + prefix);
    return 0;
}
