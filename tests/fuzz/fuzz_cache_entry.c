/* Entries of the disk cache: whatever the bytes, reading looks at nothing outside of them; what it
 * accepts is a program inside of them, and stops being one when any byte is changed. */
#include "compute/cache.h"
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str bytes = {(const char *)data, size}, binary = {NULL, 0};
    struct acre_cache_entry entry = {0};
    struct acre_error err = {0};
    int r = cache_entry_read(bytes, NULL, &entry, &binary, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(r == ACRE_ECORRUPT && binary.data == NULL);
        return 0;
    }
    ACRE_ASSERT(binary.data + binary.length == bytes.data + bytes.length);
    ACRE_ASSERT(size == binary.length + CACHE_HEADER_BYTES);
    ACRE_ASSERT(memchr(entry.backend, '\0', sizeof(entry.backend)) != NULL);
    ACRE_ASSERT(memchr(entry.name, '\0', sizeof(entry.name)) != NULL);
    char *changed = malloc(size);
    ACRE_ASSERT(changed != NULL);
    memcpy(changed, data, size);
    changed[data[size / 2] % size] ^= 1;
    r = cache_entry_read((struct acre_str){changed, size}, NULL, NULL, &binary, NULL);
    ACRE_ASSERT(r == ACRE_ECORRUPT);
    free(changed);
    return 0;
}
