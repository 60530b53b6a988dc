/* Sizes, durations, shares and counts: whatever the bytes, a value within its range that reads
 * back as itself, or a refusal that names the field. */
#include "core/units.h"
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_BYTES = 600 };

static void check_refusal(const struct acre_error *err, int code) {
    acre_fuzz_check_error(err, code);
    ACRE_ASSERT(code == ACRE_EINVALID && strncmp(err->text, "field: '", 8) == 0);
    ACRE_ASSERT(strstr(err->text, "; accepted: ") != NULL);
}

static void check_mib(const char *text) {
    struct acre_error err = {0};
    uint64_t mib = UINT64_MAX;
    int r = acre_parse_mib("field", text, &mib, &err);
    if (r < 0) {
        check_refusal(&err, r);
        ACRE_ASSERT(mib == UINT64_MAX);
        return;
    }
    ACRE_ASSERT(mib >= 1 && mib <= ACRE_MIB_MAX);
    char plain[32];
    uint64_t again = 0;
    snprintf(plain, sizeof(plain), "%" PRIu64 "MiB", mib);
    ACRE_ASSERT(acre_parse_mib("field", plain, &again, NULL) == 0 && again == mib);
    acre_format_mib(mib, plain, sizeof(plain));
}

static void check_duration(const char *text) {
    struct acre_error err = {0};
    uint64_t ms = UINT64_MAX;
    int r = acre_parse_duration("field", text, &ms, &err);
    if (r < 0) {
        check_refusal(&err, r);
        ACRE_ASSERT(ms == UINT64_MAX);
        return;
    }
    ACRE_ASSERT(ms <= ACRE_DURATION_MAX_MS);
    char written[64];
    uint64_t again = 0;
    acre_format_duration(ms, written, sizeof(written));
    ACRE_ASSERT(acre_parse_duration("field", written, &again, NULL) == 0 && again == ms);
}

static void check_milli(const char *text, uint32_t min, uint32_t max) {
    struct acre_error err = {0};
    uint32_t milli = UINT32_MAX;
    int r = acre_parse_milli("field", text, min, max, &milli, &err);
    if (r < 0) {
        check_refusal(&err, r);
        ACRE_ASSERT(milli == UINT32_MAX);
        return;
    }
    ACRE_ASSERT(milli >= min && milli <= max);
    char written[32];
    uint32_t again = 0;
    acre_format_milli(milli, written, sizeof(written));
    ACRE_ASSERT(acre_parse_milli("field", written, min, max, &again, NULL) == 0 && again == milli);
}

static void check_count(const char *text, uint64_t min, uint64_t max) {
    struct acre_error err = {0};
    uint64_t count = 12345;
    int r = acre_parse_count("field", text, min, max, &count, &err);
    if (r < 0) {
        check_refusal(&err, r);
        ACRE_ASSERT(count == 12345);
        return;
    }
    ACRE_ASSERT(count >= min && count <= max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[TEXT_BYTES];
    size_t length = ACRE_MIN(size, sizeof(text) - 1);
    memcpy(text, data, length);
    text[length] = '\0';
    check_mib(text);
    check_duration(text);
    check_milli(text, 100, 1000);
    check_milli(text, 0, UINT32_MAX);
    check_count(text, 1, 8);
    check_count(text, 0, UINT64_MAX);
    return 0;
}
