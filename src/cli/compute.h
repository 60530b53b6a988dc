/* compute.h - shared by the `acre compute` commands: choosing a device, working on it, and
 * readable figures.
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
int device_check(const char *option, const char *value, struct acre_error *err);

/* A runtime, a device of it, a context and a stream there. */
struct target {
    struct acre_compute *compute;
    uint32_t device;
    struct acre_context *context;
    struct acre_stream *stream;
};

/* `device` is "cuda:0", "opencl", "2", or NULL: the first one of the back end `prefer` (NULL: of
 * any). ACRE_ENOTFOUND lists what there is, or why the back end is absent. */
int target_open(const char *device, const char *prefer,
                const struct acre_context_options *context, /* NULL: defaults */
                struct target *ret_target, struct acre_error *err);
void target_close(struct target *target);
bool target_is_cpu(const struct target *target);
/* A context on the CPU of the same runtime, which closes it. */
int target_open_cpu(const struct target *target, struct acre_context **ret_context,
                    struct acre_error *err);
const struct acre_compute_device *target_device(const struct target *target);
/* "cuda:0", as --device takes it; returns `text`. */
char *target_name(const struct target *target, char *text, size_t size);

/* A kernel source: the language follows from the end of its name. `text` holds it. */
int source_read(const char *path, struct acre_buf *text, struct acre_source *ret_source,
                struct acre_error *err);
/* Build it; what the compiler said goes to standard error, in place of the
 * progress. The report (NULL: not wanted) is to be
 * finished after success. */
int source_build(struct target *target, const struct acre_source *source, struct progress *progress,
                 struct acre_program **ret_program, struct acre_build_report *ret_report,
                 struct acre_error *err);
/* The kernel of that name, or the only one there is (NULL). */
int source_kernel(struct acre_program *program, const char *name, struct acre_kernel **ret_kernel,
                  struct acre_error *err);

/* "1.5 GiB", "20 KiB", "3 bytes"; "12.3 us", "4.56 ms". They return `text`. */
char *figure_bytes(uint64_t bytes, char *text, size_t size);
char *figure_us(double us, char *text, size_t size);
void figures_sort(double *figures, size_t count);
/* "no NAME   why", wrapped beside the name, which takes `width` columns. `*before` is "\n" for the
 * first of them: a line stays free above. */
void figure_absent(const struct term *term, struct acre_buf *out, const char **before, int width,
                   const char *name, const char *why);

#endif
