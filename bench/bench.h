/* bench.h - what the benchmark programs share: options, timing, figures as JSON.
 *
 * Programs only, one thread. */
#ifndef ACRE_BENCH_H
#define ACRE_BENCH_H

#include "core/json.h"
#include "core/opt.h"

struct bench_times {
    double *ns; /* room for as many as will be added */
    size_t count;
};

/* "bench: <text>" to standard error, and the end of the program. */
_Noreturn void bench_fail(const char *format, ...) ACRE_PRINTF(1, 2);

double bench_now_ns(void);
/* What one pair of clock readings costs: taken off every sample. */
double bench_clock_ns(void);

void bench_sort(double *values, size_t count);

/* "key": {"mean", "p50", "p99", "p999", "max"}, each divided by `unit_ns`. Sorts the samples. */
void bench_put_times(struct acre_json *json, const char *key, struct bench_times *times,
                     double unit_ns);

/* Parse the command line into `options` (zeroed, options_size bytes). Every program takes --json:
 * its options begin with that bool, its table leaves it out. False: help or the mistake has been
 * printed, and the program ends with *ret_exit. */
bool bench_options(const struct acre_command *command, int argc, char **argv, void *options,
                   int *ret_exit);

/* Parse, run, and print: `run` writes one JSON object's members: one line with --json, indented
 * without. Returns the exit code. */
int bench_main(const struct acre_command *command, int argc, char **argv,
               void (*run)(const void *options, struct acre_json *json));

#endif
