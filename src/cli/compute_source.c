/* compute_source.c - kernel files: finds the language, builds them for a device, picks the kernel.
 *
 * Compiler messages are shown unchanged; where they do not quote the source line, we do. */
#include "cli/compute.h"

#include "core/file.h"
#include "core/str.h"

#include <stdio.h>
#include <string.h>

enum { SOURCE_MAX = 4 << 20, NAME_SHOWN = 96 };

static const struct {
    const char *end;
    enum acre_language language;
} languages[] = {{".acl", ACRE_LANGUAGE_PORTABLE},
                 {".cu", ACRE_LANGUAGE_CUDA},
                 {".hip", ACRE_LANGUAGE_HIP},
                 {".cl", ACRE_LANGUAGE_OPENCL}};

int source_read(const char *path, struct acre_buf *text, struct acre_source *ret_source,
                struct acre_error *err) {
    char shown[NAME_SHOWN];
    size_t length = strlen(path), i = 0;
    while (i < ACRE_COUNT(languages) &&
           (length < strlen(languages[i].end) ||
            strcmp(path + length - strlen(languages[i].end), languages[i].end) != 0)) {
        i++;
    }
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    if (i == ACRE_COUNT(languages)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: unknown language; accepted: a name that ends in .acl (portable), "
                         ".cu (CUDA), .hip (HIP) or .cl (OpenCL)",
                         shown);
    }
    int r = acre_file_read(path, SOURCE_MAX, text, err);
    if (r < 0) {
        return r;
    }
    if (memchr(text->data, '\0', text->length) != NULL || text->length == 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: %s; accepted: kernel source", shown,
                         text->length == 0 ? "is empty" : "contains a NUL byte");
    }
    *ret_source = (struct acre_source){
        .text = acre_str_after_mark(text->data), .name = path, .language = languages[i].language};
    return 0;
}

/* "FILE:12:5" or "FILE(12)" somewhere in a log; column 0: not told. */
static bool find_position(const char *log, const char *file, uint32_t *ret_line,
                          uint32_t *ret_column) {
    size_t length = strlen(file);
    for (const char *at = strstr(log, file); at != NULL; at = strstr(at + length, file)) {
        unsigned line = 0, column = 0;
        int found = sscanf(at + length, ":%9u:%9u", &line, &column);
        if (found < 1) {
            found = sscanf(at + length, "(%9u)", &line);
        }
        if (found >= 1 && line > 0) {
            *ret_line = line;
            *ret_column = column;
            return true;
        }
    }
    return false;
}

/* The line of the source that the first message is about, as compilers show it that do. */
static void show_line(const struct acre_source *source, const char *log) {
    uint32_t line = 0, column = 0;
    char shown[2 * ACRE_ERROR_TEXT_MAX];
    if (strchr(log, '^') != NULL || !find_position(log, source->name, &line, &column)) {
        return;
    }
    struct acre_split lines = acre_split_begin(acre_str_from(source->text), '\n');
    struct acre_str text = {0};
    for (uint32_t i = 0; i < line; i++) {
        if (!acre_split_next(&lines, &text)) {
            return;
        }
    }
    text.length -= text.length > 0 && text.data[text.length - 1] == '\r'; /* of a CRLF */
    fprintf(stderr, "%5u | %s\n", line, acre_str_show_text(text, shown, sizeof(shown)));
    if (column > 0 && column <= text.length + 1) {
        struct acre_str before = {text.data, column - 1};
        acre_str_show_text(before, shown, sizeof(shown));
        fprintf(stderr, "      | %*s^\n", (int)strlen(shown), "");
    }
}

static void show_log(const struct acre_source *source, const char *log, bool has_failed) {
    fputs(log, stderr); /* its lines are numbered as in the source */
    fputs(log[strlen(log) - 1] == '\n' ? "" : "\n", stderr);
    if (has_failed) {
        show_line(source, log);
    }
}

int source_build(struct target *target, const struct acre_source *source, struct progress *progress,
                 struct acre_program **ret_program, struct acre_build_report *ret_report,
                 struct acre_error *err) {
    struct acre_source mine = *source;
    struct acre_build_report report = {0};
    /* Kernels of CUDA are kernels of HIP. */
    if (mine.language == ACRE_LANGUAGE_CUDA &&
        strcmp(target_device(target)->backend, acre_language_backend(ACRE_LANGUAGE_HIP)) == 0) {
        mine.language = ACRE_LANGUAGE_HIP;
    }
    int r = acre_program_build(target->context, &mine, ret_program, &report, err);
    if (report.log != NULL && report.log[0] != '\0') {
        progress_end(progress); /* its line is in the way */
        show_log(source, report.log, r < 0);
        if (r < 0) { /* all of it was told: not the first message again */
            char shown[NAME_SHOWN];
            acre_fail(err, r, "%s does not compile for %s",
                      acre_str_show(acre_str_from(source->name), shown, sizeof(shown)),
                      target_device(target)->name);
        }
    }
    if (r == 0 && ret_report != NULL) {
        *ret_report = report;
        return r;
    }
    acre_build_report_finish(&report);
    return r;
}

int source_kernel(struct acre_program *program, const char *name, struct acre_kernel **ret_kernel,
                  struct acre_error *err) {
    if (name != NULL) {
        return acre_kernel_find(program, name, ret_kernel, err);
    }
    struct acre_kernel *kernel = acre_program_kernel(program, 0);
    if (kernel == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND,
                         "no kernel was compiled; is every kernel inside an #if?");
    }
    if (acre_program_kernel(program, 1) != NULL) {
        struct acre_error list = {0};
        struct acre_kernel *none;
        acre_kernel_find(program, "", &none, &list);
        const char *names = strstr(list.text, "its kernels: ");
        return acre_fail(err, ACRE_EINVALID, "--kernel: choose one; accepted: %s",
                         names != NULL ? names + strlen("its kernels: ") : "the name of a kernel");
    }
    *ret_kernel = kernel;
    return 0;
}
