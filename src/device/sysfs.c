/* sysfs.c - open, read, close; no file is kept open, because sysfs files go stale.
 *
 * Duplicate notes are found by searching the buffer: it is small, and bad files are rare. */
#include "device/sysfs.h"

#include "core/file.h"
#include "device/value.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sysfs_init(struct acre_sysfs *fs, const char *root) {
    ACRE_ASSERT(strlen(root) < sizeof(fs->root));
    *fs = (struct acre_sysfs){0};
    snprintf(fs->root, sizeof(fs->root), "%s", root);
    acre_buf_init(&fs->text, ACRE_SYSFS_FILE_MAX);
    acre_buf_init(&fs->notes, ACRE_SYSFS_NOTES_MAX);
}

void sysfs_finish(struct acre_sysfs *fs) {
    acre_buf_finish(&fs->text);
    acre_buf_finish(&fs->notes);
}

void sysfs_at(struct acre_sysfs *fs, const char *format, ...) {
    int length = snprintf(fs->path, sizeof(fs->path), "%s/", fs->root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fs->path + length, sizeof(fs->path) - (size_t)length, format, arguments);
    va_end(arguments);
}

void sysfs_note(struct acre_sysfs *fs, const struct acre_error *err) {
    char line[ACRE_SYSFS_PATH_MAX + ACRE_ERROR_TEXT_MAX];
    bool named = strstr(err->text, fs->path) != NULL; /* errors of acre_file_read name it */
    snprintf(line, sizeof(line), "%s%s%s\n", named ? "" : fs->path, named ? "" : ": ", err->text);
    if (fs->notes.length == 0 || strstr(fs->notes.data, line) == NULL) {
        acre_buf_puts(&fs->notes, line);
    }
}

/* Note what is worth it, hand the code on. */
static int noted(struct acre_sysfs *fs, int r, const struct acre_error *err) {
    if (r < 0 && r != ACRE_ENOTFOUND) {
        sysfs_note(fs, err);
    }
    return r;
}

int sysfs_text(struct acre_sysfs *fs, struct acre_str *ret_text) {
    struct acre_error err = {0};
    acre_buf_clear(&fs->text);
    int r = acre_file_read(fs->path, ACRE_SYSFS_FILE_MAX, &fs->text, &err);
    if (r < 0) {
        return noted(fs, r, &err);
    }
    *ret_text = (struct acre_str){fs->text.data, fs->text.length};
    return 0;
}

int sysfs_line(struct acre_sysfs *fs, struct acre_str *ret_line) {
    struct acre_error err = {0};
    struct acre_str text;
    int r = sysfs_text(fs, &text);
    return r < 0 ? r : noted(fs, value_line(text, ret_line, &err), &err);
}

int sysfs_u64(struct acre_sysfs *fs, uint64_t max, uint64_t *ret_value) {
    struct acre_error err = {0};
    struct acre_str text;
    int r = sysfs_text(fs, &text);
    return r < 0 ? r : noted(fs, value_u64(text, max, ret_value, &err), &err);
}

int sysfs_i64(struct acre_sysfs *fs, int64_t min, int64_t max, int64_t *ret_value) {
    struct acre_error err = {0};
    struct acre_str text;
    int r = sysfs_text(fs, &text);
    return r < 0 ? r : noted(fs, value_i64(text, min, max, ret_value, &err), &err);
}

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t sysfs_numbers(struct acre_sysfs *fs, const char *prefix, uint32_t *ret_numbers,
                       uint32_t max) {
    DIR *directory = opendir(fs->path);
    if (directory == NULL) {
        return 0;
    }
    uint32_t count = 0;
    size_t prefix_length = strlen(prefix);
    const struct dirent *entry;
    while (count < max && (entry = readdir(directory)) != NULL) {
        uint64_t number = 0;
        if (strncmp(entry->d_name, prefix, prefix_length) == 0 &&
            value_u64(acre_str_from(entry->d_name + prefix_length), UINT32_MAX, &number, NULL) ==
                0) {
            ret_numbers[count++] = (uint32_t)number;
        }
    }
    closedir(directory);
    qsort(ret_numbers, count, sizeof(*ret_numbers), compare_numbers);
    return count;
}
