/* messages.c - map the compiler's messages about our text to the user's source.
 *
 * The source is compiled after a prelude whose macros are the words of the dialect. A mistake in
 * the use of one may be reported at the macro (gcc, which then names the use in a note) or at the
 * use (clang, which names the macro in a note). Here a message is a line with "error:" or
 * "warning:" and everything up to the next. A message in our file gets the location of its use;
 * notes in our file are dropped, because they name what the user never sees. Anything that looks
 * like neither compiler is left as it is. */
#include "compute/cpu/module.h"

#include <stdio.h>
#include <string.h>

enum { EXCERPT_LINES = 3 }; /* of a note: the line, marks below it, and perhaps what to write */

struct lines {
    struct acre_str text;
    size_t at;
    struct acre_str ours; /* "/tmp/acre-x/kernel.c:" */
};

static bool next_line(struct lines *lines, struct acre_str *ret_line) {
    if (lines->at >= lines->text.length) {
        return false;
    }
    const char *begin = lines->text.data + lines->at;
    const char *end = memchr(begin, '\n', lines->text.length - lines->at);
    size_t length = end != NULL ? (size_t)(end - begin) : lines->text.length - lines->at;
    *ret_line = (struct acre_str){begin, length};
    lines->at += length + 1;
    return true;
}

static const char *find(struct acre_str line, const char *word) {
    return memmem(line.data, line.length, word, strlen(word));
}

static bool is_ours(const struct lines *lines, struct acre_str line) {
    return line.length >= lines->ours.length &&
           memcmp(line.data, lines->ours.data, lines->ours.length) == 0;
}

static bool begins_message(struct acre_str line) {
    return find(line, ": error:") != NULL || find(line, ": fatal error:") != NULL ||
           find(line, ": warning:") != NULL;
}

static bool is_note(struct acre_str line) {
    return find(line, ": note:") != NULL;
}

/* From `line` to the end of what is between two marks behind `before`: 'word'. */
static struct acre_str quoted(struct acre_str line, const char *before) {
    const char *at = find(line, before);
    if (at == NULL) {
        return (struct acre_str){0};
    }
    at += strlen(before);
    size_t left = line.length - (size_t)(at - line.data);
    const char *end = memchr(at, '\'', left);
    return end != NULL ? (struct acre_str){at, (size_t)(end - at)} : (struct acre_str){0};
}

struct use {
    struct acre_str position; /* "my.k:3:9"; "": not known */
    struct acre_str word;     /* of the dialect, as the user wrote it; "" */
};

/* Of the message `head`, whose notes are the lines that follow. */
static struct use find_use(struct lines lines, struct acre_str head) {
    struct use use = {0};
    struct acre_str line;
    if (!is_ours(&lines, head)) {
        const char *end = find(head, ": error:");
        use.position = end != NULL ? (struct acre_str){head.data, (size_t)(end - head.data)}
                                   : (struct acre_str){0};
    }
    while (next_line(&lines, &line) && !begins_message(line)) {
        struct acre_str word = quoted(line, "note: expanded from macro '");
        if (use.word.length == 0 && word.length > 0) {
            use.word = word;
        }
        word = quoted(line, "note: in expansion of macro '");
        if (use.position.length == 0 && word.length > 0 && !is_ours(&lines, line)) {
            const char *end = find(line, ": note:");
            use = (struct use){{line.data, (size_t)(end - line.data)}, word};
        }
    }
    return use;
}

/* The rest of a message; with its own notes, or without all. */
static void copy_rest(struct lines *lines, bool is_whole, struct acre_buf *out) {
    struct acre_str line;
    size_t before = lines->at;
    uint32_t dropped = is_whole ? 0 : UINT32_MAX;
    while (next_line(lines, &line) && !begins_message(line)) {
        if (is_whole && is_note(line)) {
            dropped = is_ours(lines, line) ? EXCERPT_LINES + 1 : 0;
        }
        if (dropped > 0) {
            dropped--;
        } else {
            acre_buf_append(out, line.data, line.length);
            acre_buf_puts(out, "\n");
        }
        before = lines->at;
    }
    lines->at = before;
}

static void write_message(struct lines *lines, struct acre_str head, struct acre_buf *out) {
    struct use use = find_use(*lines, head);
    const char *said = find(head, ": error:");
    bool is_item = find(head, "'acre_item'") != NULL && use.word.length > 0;
    bool is_moved = use.position.length > 0 && said != NULL && (is_item || is_ours(lines, head));
    if (!is_moved) {
        acre_buf_append(out, head.data, head.length);
    } else if (is_item) {
        acre_buf_printf(out,
                        "%.*s: error: %.*s() works only in the kernel itself; pass its value to "
                        "functions as a parameter",
                        (int)use.position.length, use.position.data, (int)use.word.length,
                        use.word.data);
    } else {
        acre_buf_append(out, use.position.data, use.position.length);
        acre_buf_append(out, said, head.length - (size_t)(said - head.data));
    }
    acre_buf_puts(out, "\n");
    copy_rest(lines, !is_moved, out);
}

void cpu_messages(struct acre_buf *log, size_t from, const char *file) {
    struct acre_buf out;
    char ours[300];
    int length = snprintf(ours, sizeof(ours), "%s:", file);
    struct lines lines = {{log->data + from, log->length - from}, 0, {ours, (size_t)length}};
    struct acre_str line;
    size_t last = 0; /* bytes of the one before */
    acre_buf_init(&out, log->max - from);
    while (next_line(&lines, &line)) {
        size_t begin = out.length;
        if (begins_message(line)) {
            write_message(&lines, line, &out);
        } else {
            acre_buf_append(&out, line.data, line.length);
            acre_buf_puts(&out, "\n");
        }
        /* One use has a message for each time its macro names the item. */
        size_t bytes = out.length - begin;
        if (bytes == last && memcmp(out.data + begin - last, out.data + begin, bytes) == 0) {
            out.length = begin;
        } else {
            last = bytes;
        }
    }
    if (!acre_buf_failed(&out) && !acre_buf_failed(log)) {
        log->length = from;
        acre_buf_append(log, out.data, out.length);
    }
    acre_buf_finish(&out);
}
