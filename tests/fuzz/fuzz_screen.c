/* Bytes for a terminal: whatever they are and however they are cut, the same comes out, and of it
 * nothing but text, colours and the controls that may pass. */
#include "cli/screen.h"
#include "fuzz.h"

static void show(const uint8_t *data, size_t size, size_t piece, struct acre_buf *out) {
    struct screen screen;
    screen_init(&screen, "\n\t\r\b");
    for (size_t at = 0; at < size; at += piece) {
        struct acre_str part = {(const char *)data + at, ACRE_MIN(piece, size - at)};
        screen_put(&screen, part, out);
        ACRE_ASSERT(screen.held_length <= ACRE_SCREEN_HELD_MAX);
    }
    screen_end(&screen, out);
}

/* The length of the colour at the front; 0: there is none. */
static size_t colour(struct acre_str text) {
    size_t at = 2;
    if (text.length < 3 || memcmp(text.data, "\033[", 2) != 0) {
        return 0;
    }
    while (at < text.length && text.data[at] != '\0' && strchr("0123456789;:", text.data[at])) {
        at++;
    }
    return at < text.length && text.data[at] == 'm' ? at + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_buf whole, parts;
    size_t piece = size > 0 ? data[0] % 7 + 1U : 1;
    acre_buf_init(&whole, 64 << 20);
    acre_buf_init(&parts, 64 << 20);
    show(data, size, size + 1, &whole);
    show(data, size, piece, &parts);
    ACRE_ASSERT(whole.length == parts.length);
    ACRE_ASSERT(whole.length == 0 || memcmp(whole.data, parts.data, whole.length) == 0);
    for (struct acre_str rest = {whole.data, whole.length}; rest.length > 0;) {
        size_t length = colour(rest);
        length = length > 0 ? length : acre_str_utf8(rest);
        ACRE_ASSERT(length > 0);
        unsigned char c = (unsigned char)rest.data[0];
        ACRE_ASSERT(length > 1 || (c >= ' ' && c < 0x7f) || strchr("\n\t\r\b", c) != NULL);
        bool is_c1 = c == 0xc2 && (unsigned char)rest.data[1] < 0xa0;
        ACRE_ASSERT(!is_c1 && c != '\0');
        rest.data += length;
        rest.length -= length;
    }
    acre_buf_finish(&whole);
    acre_buf_finish(&parts);
    return 0;
}
