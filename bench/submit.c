/* submit.c - measure durable submissions over HTTP, from outside, to the real daemon.
 *
 *   build/bench/submit --json [--seconds 5] [--connections 64] [--unix] [--directory DIR]
 *
 * Each client has one request under way on a connection it keeps: POST /jobs, answered when the
 * job is on disk. "submits_per_s" over the whole time; "p50_ms" and "p99_ms" are what a client
 * waits. In the same run and on the same disk: one row in one SQLite transaction at a time
 * (write-ahead log, full sync), "single_commits_per_s"; "ratio_single_commit" is what gathering
 * commits buys. Clients and daemon share the machine. */
#include "daemon.h"
#include "single.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    bool json; /* bench_main's */
    uint64_t seconds, connections;
    const char *directory;
    bool over_unix;
};

static const struct options defaults = {.seconds = 5, .connections = 64, .directory = "."};

static const struct acre_opt table[] = {
    {.name = "seconds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seconds),
     .value = "N",
     .help = "duration (default 5)",
     .min = 1,
     .max = 600},
    {.name = "connections",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, connections),
     .value = "N",
     .help = "submissions at once (default 64)",
     .min = 1,
     .max = 900},
    {.name = "unix",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, over_unix),
     .help = "use the unix socket instead of TCP with a token"},
    {.name = "directory",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, directory),
     .value = "DIR",
     .help = "directory on the disk to use (default .)"},
};

static const char body[] =
    "{\"command\": [\"python3\", \"train.py\", \"--epochs\", \"10\", \"--seed\", \"1234\"], "
    "\"name\": \"train\", \"gpus\": 1, \"cpus\": 4, \"memory\": \"16GiB\", "
    "\"environment\": {\"OMP_NUM_THREADS\": \"4\"}, \"estimate\": \"30m\", \"time_limit\": \"2h\"}";

/* Something must hold the only GPU, so that the jobs wait. */
static void fill_cluster(const struct bench_daemon *daemon) {
    int status = 0;
    free(bench_ask(daemon, "POST", "/jobs", "{\"command\": \"sleep 3600\", \"gpus\": 1}", &status));
    if (status != 201) {
        bench_fail("submitting the first job returned %d", status);
    }
}

static bool is_ended(const struct bench_daemon *daemon) {
    int status = 0;
    char *text = bench_ask(daemon, "GET", "/jobs/1", "", &status);
    bool ended = strstr(text, "\"canceled\"") != NULL;
    free(text);
    return ended;
}

/* Jobs outlive their daemon: the one that holds the GPU is ended, and no other may follow it. */
static void empty_cluster(const struct bench_daemon *daemon) {
    int drained = 0;
    int canceled = 0;
    free(bench_ask(daemon, "POST", "/nodes/bench/drain", "{}", &drained));
    free(bench_ask(daemon, "DELETE", "/jobs/1", "", &canceled));
    if (drained != 200 || canceled != 202) {
        bench_fail("draining returned %d, canceling %d", drained, canceled);
    }
    double began_ns = bench_now_ns();
    while (!is_ended(daemon)) {
        if (bench_now_ns() - began_ns > 30e9) {
            bench_fail("job 1 does not end");
        }
        bench_wait_ms(20);
    }
}

static double percentile_ms(struct bench_times *times, double part) {
    size_t at = (size_t)((double)times->count * part);
    return times->count > 0 ? times->ns[ACRE_MIN(at, times->count - 1)] / 1e6 : 0;
}

static void run(const void *target, struct acre_json *json) {
    const struct options *options = target;
    struct bench_daemon daemon;
    size_t most = options->seconds * 200000;
    struct bench_times times = {.ns = acre_calloc(most, sizeof(double))};
    bench_daemon_start(&daemon, options->directory, ACRE_ONE_GPU);
    fill_cluster(&daemon);
    double single = bench_single_commits(daemon.folder, UINT64_MAX, 2, strlen(body), NULL);
    struct bench_load load = {.daemon = &daemon,
                              .connections = (uint32_t)options->connections,
                              .over_tcp = !options->over_unix,
                              .method = "POST",
                              .path = "/jobs",
                              .body = body,
                              .status = 201,
                              .seconds = (double)options->seconds};
    double cpu_s = bench_daemon_cpu_s(&daemon);
    double began_ns = bench_now_ns();
    uint64_t count = bench_load_run(&load, &times, most);
    double took_s = (bench_now_ns() - began_ns) / 1e9;
    cpu_s = bench_daemon_cpu_s(&daemon) - cpu_s;
    bench_sort(times.ns, times.count);
    acre_json_put_double(json, "submits_per_s", (double)count / took_s, 0);
    acre_json_put_double(json, "p50_ms", percentile_ms(&times, 0.5), 3);
    acre_json_put_double(json, "p99_ms", percentile_ms(&times, 0.99), 3);
    acre_json_put_double(json, "max_ms", percentile_ms(&times, 1.0), 3);
    acre_json_put_double(json, "single_commits_per_s", single, 0);
    acre_json_put_double(json, "ratio_single_commit", (double)count / took_s / single, 2);
    acre_json_put_u64(json, "submitted", count);
    acre_json_put_u64(json, "connections", options->connections);
    acre_json_put_string(json, "transport", options->over_unix ? "unix" : "tcp with a token");
    acre_json_put_double(json, "daemon_cpu_us_each", cpu_s * 1e6 / (double)count, 1);
    acre_json_put_u64(json, "daemon_resident_kib", bench_daemon_resident_kib(&daemon));
    empty_cluster(&daemon);
    bench_daemon_stop(&daemon);
    free(times.ns);
}

static const struct acre_command command = {
    .name = "submit",
    .summary = "measure durable submissions over HTTP",
    .usage = "build/bench/submit [options]",
    .options = table,
    .option_count = ACRE_COUNT(table),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
