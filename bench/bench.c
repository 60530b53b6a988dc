/* bench.c - samples are kept raw and sorted at the end: exact percentiles, no buckets. */
#include "bench.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUTPUT_MAX_BYTES = 1 << 20 };

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

void bench_put_times(struct acre_json *json, const char *key, struct bench_times *times,
                     double unit_ns) {
    ACRE_ASSERT(times->count > 0);
    double clock_ns = bench_clock_ns();
    double sum = 0;
    for (size_t i = 0; i < times->count; i++) {
        times->ns[i] = ACRE_MAX(times->ns[i] - clock_ns, 0.0) / unit_ns;
        sum += times->ns[i];
    }
    qsort(times->ns, times->count, sizeof(*times->ns), compare_doubles);
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", sum / (double)times->count, 1);
    acre_json_put_double(json, "p50", times->ns[times->count / 2], 1);
    acre_json_put_double(json, "p99", times->ns[times->count * 99 / 100], 1);
    acre_json_put_double(json, "p999", times->ns[times->count * 999 / 1000], 1);
    acre_json_put_double(json, "max", times->ns[times->count - 1], 1);
    acre_json_object_end(json);
}

int bench_main(const struct acre_command *command, size_t json_flag_offset, int argc, char **argv,
               void *options, void (*run)(const void *options, struct acre_json *json)) {
    struct acre_error err = {0};
    struct acre_buf out;
    int arguments;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    int r = acre_opt_parse(command, argc - 1, argv + 1, options, &arguments, &err);
    if (r == ACRE_ENOTFOUND) {
        acre_opt_help(command, &out);
    } else if (r < 0) {
        fprintf(stderr, "%s: %s\n", command->name, err.text);
    } else {
        struct acre_json json;
        acre_json_begin(&json, &out, !*(const bool *)((const char *)options + json_flag_offset));
        acre_json_object(&json);
        acre_json_put_string(&json, "bench", command->name);
        run(options, &json);
        acre_json_object_end(&json);
        acre_json_end(&json);
        acre_buf_putc(&out, '\n');
    }
    fputs(out.data, stdout);
    acre_buf_finish(&out);
    return r == ACRE_ENOTFOUND ? 0 : acre_error_exit(r);
}
