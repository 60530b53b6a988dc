/* compute.h - what the commands `acre compute ...` share: choosing a device, a place to work on it,
 * figures for people.
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_COMPUTE_H
#define ACRE_CLI_COMPUTE_H

#include "cli/simulation.h"
#include "cli/term.h"
#include "core/json.h"
#include "core/opt.h"

#include <acre/compute.h>

enum { ACRE_COMPUTE_OUTPUT_MAX_BYTES = 16 << 20, ACRE_FIGURE_MAX = 32 };

/* For rows of options: a device as people name it. */
int acre_device_check(const char *field, const char *value, struct acre_error *err);

/* A runtime, a device of it, a context and a stream there. */
struct acre_place {
    struct acre_compute *compute;
    uint32_t device;
    struct acre_context *context;
    struct acre_stream *stream;
};

/* `device` is "cuda:0", "opencl", "2", or NULL: the first one of the back end `prefer` (NULL: of
 * any). ACRE_ENOTFOUND lists what there is, or why the back end is absent. */
int acre_place_open(const char *device, const char *prefer,
                    const struct acre_context_options *context, /* NULL: defaults */
                    struct acre_place *ret_place, struct acre_error *err);
void acre_place_close(struct acre_place *place);
bool acre_place_is_cpu(const struct acre_place *place);
/* A context on the CPU of the same runtime, which closes it. */
int acre_place_open_cpu(const struct acre_place *place, struct acre_context **ret_context,
                        struct acre_error *err);
const struct acre_compute_device *acre_place_device(const struct acre_place *place);
/* "cuda:0", as --device takes it; returns `text`. */
char *acre_place_name(const struct acre_place *place, char *text, size_t size);

/* A kernel source: the language follows from the end of its name. `text` holds it. */
int acre_source_read(const char *path, struct acre_buf *text, struct acre_source *ret_source,
                     struct acre_error *err);
/* Build it; what the compiler said goes to standard error, in place of the
 * progress. The report (NULL: not wanted) is to be
 * finished after success. */
int acre_source_build(struct acre_place *place, const struct acre_source *source,
                      struct acre_progress *progress, struct acre_program **ret_program,
                      struct acre_build_report *ret_report, struct acre_error *err);
/* The kernel of that name, or the only one there is (NULL). */
int acre_source_kernel(struct acre_program *program, const char *name,
                       struct acre_kernel **ret_kernel, struct acre_error *err);

/* "1.5 GiB", "20 KiB", "3 bytes"; "12.3 us", "4.56 ms". They return `text`. */
char *acre_figure_bytes(uint64_t bytes, char *text, size_t size);
char *acre_figure_us(double us, char *text, size_t size);
void acre_figures_sort(double *figures, size_t count);
/* "no NAME   why", wrapped beside the name, which takes `width` columns. `*before` is "\n" for the
 * first of them: a line stays free above. */
void acre_figure_absent(const struct acre_term *term, struct acre_buf *out, const char **before,
                        int width, const char *name, const char *why);

#endif
