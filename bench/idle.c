/* idle.c - measure an idle daemon with a long history.
 *
 *   build/bench/idle --json [--history 100000] [--starts 5] [--seconds 10] [--directory DIR]
 *
 * Creates that many ended jobs, then restarts the daemon several times: "ready_ms" is from
 * the start of the process to its first answer that it can record changes. After the last start it
 * is left alone: "resident_kib", and "cpu_percent" of one core, once the
 * concurrent check of the database has finished. */
#include "daemon.h"

#include <stdio.h>
#include <stdlib.h>

enum { SETTLE_MS = 3000 };

struct options {
    bool json; /* bench_main's */
    uint64_t history, starts, seconds;
    const char *directory;
};

static const struct options defaults = {
    .history = 100000, .starts = 5, .seconds = 10, .directory = "."};

static const struct acre_opt table[] = {
    {.name = "history",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, history),
     .value = "N",
     .help = "number of ended jobs (default 100000)",
     .min = 1,
     .max = 100000},
    {.name = "starts",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, starts),
     .value = "N",
     .help = "number of runs (default 5)",
     .min = 1,
     .max = 100},
    {.name = "seconds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seconds),
     .value = "N",
     .help = "idle time to measure (default 10)",
     .min = 1,
     .max = 600},
    {.name = "directory",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, directory),
     .value = "DIR",
     .help = "directory on the disk to use (default .)"},
};

static void ask(const struct bench_daemon *daemon, const char *method, const char *path,
                const char *body, int expected) {
    int status = 0;
    free(bench_ask(daemon, method, path, body, &status));
    if (status != expected) {
        bench_fail("%s %s returned %d", method, path, status);
    }
}

static void make_history(const struct bench_daemon *daemon, uint64_t count) {
    char body[256];
    snprintf(body, sizeof(body),
             "{\"command\": [\"python3\", \"train.py\", \"--seed\", \"1234\"], \"gpus\": 1, "
             "\"time_limit\": \"2h\", \"hold\": true, \"array\": \"0-%llu\"}",
             (unsigned long long)count - 1);
    ask(daemon, "POST", "/jobs", body, 201);
    ask(daemon, "DELETE", "/arrays/1", "", 202);
}

static void run(const void *target, struct acre_json *json) {
    const struct options *options = target;
    struct bench_daemon daemon;
    struct bench_times ready = {.ns = acre_calloc(options->starts, sizeof(double))};
    bench_daemon_start(&daemon, options->directory, ACRE_ONE_GPU);
    make_history(&daemon, options->history);
    while (ready.count < options->starts) {
        ready.ns[ready.count++] = bench_daemon_restart(&daemon, ACRE_ONE_GPU) * 1e6;
    }
    bench_wait_ms(SETTLE_MS);
    double cpu_s = bench_daemon_cpu_s(&daemon);
    bench_wait_ms((int)options->seconds * 1000);
    cpu_s = bench_daemon_cpu_s(&daemon) - cpu_s;
    acre_json_put_u64(json, "history", options->history);
    bench_put_times(json, "ready_ms", &ready, 1e6);
    acre_json_put_u64(json, "resident_kib", bench_daemon_resident_kib(&daemon));
    acre_json_put_double(json, "cpu_percent", 100 * cpu_s / (double)options->seconds, 2);
    bench_daemon_stop(&daemon);
    free(ready.ns);
}

static const struct acre_command command = {
    .name = "idle",
    .summary = "measure an idle daemon with a long history",
    .usage = "build/bench/idle [options]",
    .options = table,
    .option_count = ACRE_COUNT(table),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
