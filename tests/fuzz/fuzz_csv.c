/* CSV: every row has every cell inside the text and free of quotes and controls, lines count
 * up, and refusals name the file. */
#include "core/csv.h"
#include "fuzz.h"

static const char *const wanted[] = {"a", "bb", "c"};

static void check_refusal(const struct acre_error *err, int code) {
    acre_fuzz_check_error(err, code);
    ACRE_ASSERT(strncmp(err->text, "file:", 5) == 0);
}

static void check_field(const struct acre_csv *csv, uint32_t index, struct acre_str text) {
    struct acre_str cell = acre_csv_cell(csv, index);
    ACRE_ASSERT(cell.data >= text.data && cell.data + cell.length <= text.data + text.length);
    for (size_t i = 0; i < cell.length; i++) {
        unsigned char c = (unsigned char)cell.data[i];
        ACRE_ASSERT(c != ',' && c != '"' && c != 0x7f && (c >= ' ' || c == '\t'));
    }
    struct acre_error err = {0};
    uint64_t value = 99;
    int r = acre_csv_u64(csv, index, 1, 8, &value, &err);
    if (r < 0) {
        check_refusal(&err, r);
        ACRE_ASSERT(value == 99);
    } else {
        ACRE_ASSERT(value >= 1 && value <= 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str text = {(const char *)data, size};
    struct acre_csv csv;
    struct acre_error err = {0};
    int r = acre_csv_begin(&csv, "file", text, wanted, ACRE_COUNT(wanted), &err);
    uint32_t line = 1;
    if (r == 0) {
        while ((r = acre_csv_next(&csv, &err)) == 1) {
            ACRE_ASSERT(csv.line == ++line);
            for (uint32_t i = 0; i < ACRE_COUNT(wanted); i++) {
                check_field(&csv, i, text);
            }
        }
        ACRE_ASSERT(r < 0 || csv.rest.length == 0);
    }
    if (r < 0) {
        check_refusal(&err, r);
    }
    return 0;
}
