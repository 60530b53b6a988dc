/* simulation.c - see simulation.h. */
#include "cli/simulation.h"

#include "core/file.h"
#include "core/str.h"

#include <stdio.h>
#include <unistd.h>

enum { PERIOD_MS = 200, NAME_MAX_BYTES = 64 };

void progress_begin(struct progress *progress, const char *what, bool quiet) {
    *progress = (struct progress){
        .what = what, .clock = acre_clock_real(), .shown = !quiet && isatty(STDERR_FILENO)};
    progress->began_ns = acre_clock_monotonic_ns(&progress->clock);
}

void progress_show(struct progress *progress, const char *format, ...) {
    uint64_t now_ns = acre_clock_monotonic_ns(&progress->clock);
    if (!progress->shown || now_ns - progress->last_ns < PERIOD_MS * UINT64_C(1000000)) {
        return;
    }
    progress->last_ns = now_ns;
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "\r%s: %s\x1b[K", progress->what, text);
}

void progress_stage(struct progress *progress, const char *text) {
    progress->last_ns = 0;
    progress_show(progress, "%s", text);
}

double progress_end(struct progress *progress) {
    if (progress->shown) {
        fputs("\r\x1b[K", stderr);
    }
    return (double)(acre_clock_monotonic_ns(&progress->clock) - progress->began_ns) / 1e9;
}

int each_name(const char *option, const char *names, size_t max, name_function *run, void *context,
              size_t *ret_count, struct acre_error *err) {
    struct acre_split split = acre_split_begin(acre_str_from(names), ',');
    struct acre_str part;
    size_t count = 0;
    while (acre_split_next(&split, &part)) {
        char name[NAME_MAX_BYTES];
        if (count == max) {
            return acre_fail(err, ACRE_EINVALID, "--%s: more than %zu names", option, max);
        }
        if (!acre_str_copy(name, sizeof(name), part)) {
            return acre_fail(err, ACRE_EINVALID, "--%s: a name has %zu bytes; accepted: at most %d",
                             option, part.length, NAME_MAX_BYTES - 1);
        }
        int r = run(context, count, name, err);
        if (r < 0) {
            return r;
        }
        count++;
    }
    *ret_count = count;
    return 0;
}

int write_picture(const char *path, const struct acre_buf *svg, int drawn, struct acre_error *err) {
    if (drawn < 0) {
        return acre_fail(err, drawn, "--plot: the plot is larger than %zu bytes", svg->max);
    }
    return acre_file_write(path, svg->data, svg->length, err);
}
