/* screen.c - filters one unit at a time: a color, a control, a character, or an invalid byte.
 *
 * Of all escape sequences only SGR passes, ESC [ digits ; : m. With any other character among the
 * parameters (ESC [ > 4 m) many terminals take it for a different command, so it does not pass. A
 * unit cut off at the end of the bytes is held until more arrive; units are short. The one-byte
 * forms of the same commands (0x80 to 0x9f) are not UTF-8, and acre_str_show_unit treats their
 * two-byte forms as controls: both are made visible like ESC. */
#include "cli/screen.h"

#include <string.h>

static const char escape = '\033';
static const char reset[] = "\033[0m";

void screen_init(struct screen *screen, const char *controls) {
    *screen = (struct screen){.controls = controls};
}

/* What stands at the front of the bytes. */
enum screen_unit { UNIT_SHOWN, UNIT_PASSES, UNIT_COLOUR, UNIT_CUT };

/* `bytes` begins with ESC. */
static enum screen_unit judge_escape(struct acre_str bytes, size_t *ret_length) {
    size_t at = 1;
    if (at < bytes.length && bytes.data[at] != '[') {
        return UNIT_SHOWN;
    }
    at++;
    while (at < bytes.length && at < ACRE_SCREEN_HELD_MAX - 1 &&
           ((bytes.data[at] >= '0' && bytes.data[at] <= '9') || bytes.data[at] == ';' ||
            bytes.data[at] == ':')) {
        at++;
    }
    if (at >= bytes.length) {
        return UNIT_CUT;
    }
    *ret_length = at + 1;
    return bytes.data[at] == 'm' ? UNIT_COLOUR : UNIT_SHOWN;
}

/* Whether these few bytes are the beginning of a character of more. */
static bool is_cut_character(struct acre_str bytes) {
    unsigned char lead = (unsigned char)bytes.data[0];
    size_t length = lead >= 0xf0 && lead <= 0xf4  ? 4
                    : lead >= 0xe0 && lead < 0xf0 ? 3
                    : lead >= 0xc2 && lead < 0xe0 ? 2
                                                  : 1;
    bool is_cut = bytes.length < length;
    for (size_t i = 1; i < bytes.length && is_cut; i++) {
        is_cut = ((unsigned char)bytes.data[i] & 0xc0) == 0x80;
    }
    return is_cut;
}

static enum screen_unit judge(const struct screen *screen, struct acre_str bytes,
                              size_t *ret_length) {
    char c = bytes.data[0];
    *ret_length = 1;
    if (c == escape) {
        return judge_escape(bytes, ret_length);
    }
    if ((c >= ' ' && c < 0x7f) || (c != '\0' && strchr(screen->controls, c) != NULL)) {
        return UNIT_PASSES;
    }
    return is_cut_character(bytes) ? UNIT_CUT : UNIT_SHOWN;
}

/* A unit that passes as it is. */
static size_t pass(struct screen *screen, enum screen_unit unit, struct acre_str bytes,
                   size_t length, struct acre_buf *out) {
    if (unit == UNIT_COLOUR) {
        bool resets = length == 3 || (length == 4 && bytes.data[2] == '0');
        screen->coloured = !resets;
    } else {
        while (length < bytes.length && bytes.data[length] >= ' ' && bytes.data[length] < 0x7f) {
            length++; /* most of what is ever shown, in one step */
        }
    }
    acre_buf_append(out, bytes.data, length);
    return length;
}

/* Returns how many bytes were used; the rest is one cut unit. */
static size_t put(struct screen *screen, struct acre_str bytes, bool is_end, struct acre_buf *out) {
    size_t done = 0;
    while (done < bytes.length) {
        struct acre_str rest = {bytes.data + done, bytes.length - done};
        size_t length;
        enum screen_unit unit = judge(screen, rest, &length);
        if (unit == UNIT_CUT && !is_end) {
            break;
        }
        if (unit == UNIT_PASSES || unit == UNIT_COLOUR) {
            done += pass(screen, unit, rest, length, out);
        } else {
            char shown[ACRE_SHOW_UNIT_MAX];
            acre_buf_append(out, shown, acre_str_show_unit(rest, shown, &length));
            done += length;
        }
    }
    return done;
}

void screen_put(struct screen *screen, struct acre_str bytes, struct acre_buf *out) {
    while (screen->held_length > 0 && bytes.length > 0) { /* until it is whole, or none */
        screen->held[screen->held_length++] = *bytes.data++;
        bytes.length--;
        struct acre_str held = {screen->held, screen->held_length};
        size_t done = put(screen, held, false, out);
        screen->held_length -= done;
        memmove(screen->held, screen->held + done, screen->held_length);
    }
    size_t done = put(screen, bytes, false, out);
    ACRE_ASSERT(bytes.length - done <= ACRE_SCREEN_HELD_MAX);
    if (done < bytes.length) {
        screen->held_length = bytes.length - done;
        memcpy(screen->held, bytes.data + done, screen->held_length);
    }
}

void screen_end(struct screen *screen, struct acre_buf *out) {
    put(screen, (struct acre_str){screen->held, screen->held_length}, true, out);
    screen->held_length = 0;
    if (screen->coloured) {
        acre_buf_puts(out, reset);
        screen->coloured = false;
    }
}
