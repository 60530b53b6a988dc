/* jobs.c - time jobs that do nothing, from submission to recorded exit, against other queues.
 *
 *   build/bench/jobs --json [--jobs 2000] [--slots 8] [--directory DIR]
 *
 * "jobs_per_s": submitted over HTTP by 64 clients to the real daemon, each job under its supervisor
 * in its cgroup, every change of state on disk before the next step, until the last exit is
 * recorded. "ratio_tsp": the same number of jobs through task-spooler (`tsp`, not durable) in the
 * same run, with as many slots, until its list has no job that is not finished. "ratio_slurm": an
 * array of as many jobs through a Slurm started for it (bench/slurm, from Debian's packages), one
 * of as many CPUs. Figures of a queue that is not here are null. */
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    bool json; /* bench_main's */
    uint64_t jobs, slots;
    const char *directory;
};

static const struct options defaults = {.jobs = 2000, .slots = 8, .directory = "."};

static const struct acre_opt table[] = {
    {.name = "jobs",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, jobs),
     .value = "N",
     .help = "number of jobs (default 2000)",
     .min = 1,
     .max = 1000000},
    {.name = "slots",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, slots),
     .value = "N",
     .help = "jobs at once (default 8)",
     .min = 1,
     .max = 64},
    {.name = "directory",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, directory),
     .value = "DIR",
     .help = "directory on the disk to use (default .)"},
};

static uint64_t number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Is any job left that has not ended? (The answer waits for the commits it has seen.) */
static bool is_busy(const struct bench_daemon *daemon) {
    int status = 0;
    char *text = bench_ask(daemon, "GET", "/jobs?limit=1", "", &status);
    bool busy = strstr(text, "\"jobs\":[]") == NULL;
    free(text);
    return busy;
}

/* How many are in the record as completed. */
static uint64_t count_completed(const struct bench_daemon *daemon) {
    int status = 0;
    char *text = bench_ask(daemon, "GET", "/queue/statistics", "", &status);
    uint64_t completed = number_after(text, "\"totalCompleted\":");
    if (number_after(text, "\"totalFailed\":") > 0) {
        bench_fail("jobs failed: %s", text);
    }
    free(text);
    return completed;
}

static double run_acre(const struct options *options, struct acre_json *json) {
    struct bench_daemon daemon;
    char sim[] = "/tmp/acre-bench-sim-XXXXXX";
    char node[160];
    int fd = mkstemp(sim);
    int length = snprintf(node, sizeof(node),
                          "node bench cpus 64 ram 512GiB\n    gpu %llu x H100 "
                          "memory 80GiB vendor NVIDIA\n",
                          (unsigned long long)options->slots);
    if (fd < 0 || write(fd, node, (size_t)length) != length) {
        bench_fail("%s: %s", sim, strerror(errno));
    }
    close(fd);
    bench_daemon_start(&daemon, options->directory, sim);
    unlink(sim);
    struct bench_times times = {.ns = acre_calloc(options->jobs, sizeof(double))};
    struct bench_load load = {.daemon = &daemon,
                              .connections = (uint32_t)ACRE_MIN(options->jobs, UINT64_C(64)),
                              .over_tcp = true,
                              .method = "POST",
                              .path = "/jobs",
                              .body = "{\"command\": [\"/bin/true\"], \"gpus\": 1}",
                              .status = 201,
                              .seconds = 3600,
                              .most = options->jobs};
    double cpu_s = bench_daemon_cpu_s(&daemon);
    double began_ns = bench_now_ns();
    bench_load_run(&load, &times, options->jobs);
    double submitted_ns = bench_now_ns();
    while (is_busy(&daemon)) {
        bench_wait_ms(5);
    }
    double took_s = (bench_now_ns() - began_ns) / 1e9;
    cpu_s = bench_daemon_cpu_s(&daemon) - cpu_s;
    if (count_completed(&daemon) != options->jobs) {
        bench_fail("not all jobs completed");
    }
    acre_json_put_double(json, "jobs_per_s", (double)options->jobs / took_s, 1);
    acre_json_put_double(json, "submit_s", (submitted_ns - began_ns) / 1e9, 3);
    acre_json_put_double(json, "total_s", took_s, 3);
    acre_json_put_double(json, "daemon_cpu_us_each", cpu_s * 1e6 / (double)options->jobs, 1);
    bench_daemon_stop(&daemon);
    free(times.ns);
    return (double)options->jobs / took_s;
}

/* --- task-spooler --------------------------------------------------------------------------- */

/* Run a command; what it wrote goes to `text` when there is one. */
static int run_command(const char *const *argv, char *const *env, char *text, size_t size) {
    int ends[2];
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        bench_fail("pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int r = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t length = 0;
    char rest[4096];
    for (ssize_t got = 1; got > 0;) {
        bool keep = text != NULL && length + 1 < size;
        got = read(ends[0], keep ? text + length : rest, keep ? size - 1 - length : sizeof(rest));
        length += keep && got > 0 ? (size_t)got : 0;
    }
    close(ends[0]);
    if (text != NULL) {
        text[length] = '\0';
    }
    int status = -1;
    if (r == 0) {
        waitpid(pid, &status, 0);
    }
    return r == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Jobs per second; 0: there is no tsp. */
static double run_tsp(const struct options *options) {
    char folder[] = "/tmp/acre-bench-tsp-XXXXXX";
    if (mkdtemp(folder) == NULL) {
        bench_fail("%s: %s", folder, strerror(errno));
    }
    char socket[64], temporary[64], slots[16];
    char finished[] = "TS_MAXFINISHED=10";
    snprintf(socket, sizeof(socket), "TS_SOCKET=%s/sock", folder);
    snprintf(temporary, sizeof(temporary), "TMPDIR=%s", folder);
    snprintf(slots, sizeof(slots), "%llu", (unsigned long long)options->slots);
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    char *const env[] = {socket, temporary, finished, path, NULL};
    double rate = 0;
    if (run_command((const char *const[]){"tsp", "-S", slots, NULL}, env, NULL, 0) == 0) {
        char *list = acre_calloc(1, 1 << 20);
        double began_ns = bench_now_ns();
        for (uint64_t i = 0; i < options->jobs; i++) {
            run_command((const char *const[]){"tsp", "-n", "true", NULL}, env, NULL, 0);
        }
        do {
            run_command((const char *const[]){"tsp", "-l", NULL}, env, list, 1 << 20);
        } while (strstr(list, "queued") != NULL || strstr(list, "running") != NULL);
        rate = (double)options->jobs / (bench_now_ns() - began_ns) * 1e9;
        run_command((const char *const[]){"tsp", "-K", NULL}, env, NULL, 0);
        free(list);
    }
    rmdir(folder);
    return rate;
}

/* --- Slurm ---------------------------------------------------------------------------------- */

/* Jobs per second; 0: there is no Slurm, and it has said why. */
static double run_slurm(const struct options *options) {
    char jobs[32], slots[32], said[4096];
    snprintf(jobs, sizeof(jobs), "%llu", (unsigned long long)options->jobs);
    snprintf(slots, sizeof(slots), "%llu", (unsigned long long)options->slots);
    run_command((const char *const[]){ACRE_SLURM, "--jobs", jobs, "--slots", slots, NULL}, environ,
                said, sizeof(said));
    const char *key = "\"jobs_per_s\": ";
    const char *at = strstr(said, key);
    if (at == NULL) {
        fprintf(stderr, "bench: no Slurm to compare with: %s", said);
        return 0;
    }
    return strtod(at + strlen(key), NULL);
}

static void put_peer(struct acre_json *json, const char *rate_key, const char *ratio_key,
                     double ours, double peer) {
    if (peer > 0) {
        acre_json_put_double(json, rate_key, peer, 1);
        acre_json_put_double(json, ratio_key, ours / peer, 2);
    } else {
        acre_json_put_null(json, rate_key);
        acre_json_put_null(json, ratio_key);
    }
}

static void run(const void *target, struct acre_json *json) {
    const struct options *options = target;
    double ours = run_acre(options, json);
    put_peer(json, "tsp_jobs_per_s", "ratio_tsp", ours, run_tsp(options));
    put_peer(json, "slurm_jobs_per_s", "ratio_slurm", ours, run_slurm(options));
    acre_json_put_u64(json, "jobs", options->jobs);
    acre_json_put_u64(json, "slots", options->slots);
}

static const struct acre_command command = {
    .name = "jobs",
    .summary = "time jobs that do nothing, from submission to recorded exit",
    .usage = "build/bench/jobs [options]",
    .options = table,
    .option_count = ACRE_COUNT(table),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
