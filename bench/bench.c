/* bench.c - samples are kept raw and sorted at the end: exact percentiles, no buckets. */
#include "bench.h"

#include "core/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUTPUT_MAX_BYTES = 1 << 20 };

void bench_fail(const char *format, ...) {
    va_list arguments;
    fputs("bench: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

double bench_now_ns(void) {
    struct acre_clock clock = acre_clock_real();
    return (double)acre_clock_monotonic_ns(&clock);
}

double bench_clock_ns(void) {
    double least_ns = 1e9;
    for (int i = 0; i < 10000; i++) {
        double start_ns = bench_now_ns();
        double taken_ns = bench_now_ns() - start_ns;
        least_ns = ACRE_MIN(least_ns, taken_ns);
    }
    return least_ns;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *values, size_t count) {
    qsort(values, count, sizeof(*values), compare_doubles);
}

void bench_put_times(struct acre_json *json, const char *key, struct bench_times *times,
                     double unit_ns) {
    ACRE_ASSERT(times->count > 0);
    double clock_ns = bench_clock_ns();
    double sum = 0;
    for (size_t i = 0; i < times->count; i++) {
        times->ns[i] = ACRE_MAX(times->ns[i] - clock_ns, 0.0) / unit_ns;
        sum += times->ns[i];
    }
    bench_sort(times->ns, times->count);
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", sum / (double)times->count, 1);
    acre_json_put_double(json, "p50", times->ns[times->count / 2], 1);
    acre_json_put_double(json, "p99", times->ns[times->count * 99 / 100], 1);
    acre_json_put_double(json, "p999", times->ns[times->count * 999 / 1000], 1);
    acre_json_put_double(json, "max", times->ns[times->count - 1], 1);
    acre_json_object_end(json);
}

bool bench_options(const struct acre_command *command, int argc, char **argv, void *options,
                   int *ret_exit) {
    static const struct acre_opt json_row = {
        .name = "json", .kind = ACRE_OPT_FLAG, .help = "one line of JSON"};
    struct acre_command whole = *command;
    whole.shared = &json_row;
    whole.shared_count = 1;
    struct acre_error err = {0};
    int arguments;
    int r = acre_opt_parse(&whole, argc - 1, argv + 1, options, &arguments, &err);
    if (r == ACRE_ENOTFOUND) {
        struct acre_buf out;
        acre_buf_init(&out, OUTPUT_MAX_BYTES);
        acre_opt_help(&whole, &out);
        fputs(out.data, stdout);
        acre_buf_finish(&out);
    } else if (r < 0) {
        fprintf(stderr, "%s: %s\n", command->name, err.text);
    }
    *ret_exit = r == ACRE_ENOTFOUND ? 0 : acre_error_exit(r);
    return r == 0;
}

int bench_main(const struct acre_command *command, int argc, char **argv,
               void (*run)(const void *options, struct acre_json *json)) {
    bool *options = acre_calloc(1, command->options_size);
    int code = 0;
    if (bench_options(command, argc, argv, options, &code)) {
        struct acre_buf out;
        struct acre_json json;
        acre_buf_init(&out, OUTPUT_MAX_BYTES);
        acre_json_begin(&json, &out, !*options);
        acre_json_object(&json);
        acre_json_put_string(&json, "bench", command->name);
        run(options, &json);
        acre_json_object_end(&json);
        acre_json_end(&json);
        acre_buf_putc(&out, '\n');
        fputs(out.data, stdout);
        acre_buf_finish(&out);
    }
    free(options);
    return code;
}
