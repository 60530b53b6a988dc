/* run.c - what it costs to run a job that does nothing, with everything around it.
 *
 *   build/bench/run --json [--jobs 2000] [--at-once 32] [--ram-mib 256] [--cpu-milli 1000]
 *
 * "jobs_per_s" is the local engine alone: from start to reported end, each job under its
 * supervisor, in its cgroups, with its own /tmp, account and system call filter; no queue, no
 * store. In the same run and on the same machine: "fork_exec_per_s", the same command by plain fork
 * and exec from a small process, as many at once; "ratio_fork_exec" is the first by the second, and
 * says what supervision and containment leave. "cpu_us" are the processor times of one job in both,
 * all processes together: on a busy machine they say more than the rates. The lines of "contained"
 * say what was in force. */
#include "bench.h"

#include "core/loop.h"
#include "engine/local.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    bool json; /* bench_main's */
    uint64_t jobs, at_once, ram_mib, cpu_milli;
    const char *command, *user, *program;
};

static const struct options defaults = {
    .jobs = 2000, .at_once = 32, .ram_mib = 256, .cpu_milli = 1000, .command = "/bin/true"};

static const struct acre_opt table[] = {
    {"jobs", 0, ACRE_OPT_COUNT, offsetof(struct options, jobs), "N", "number of runs", 1, 1000000,
     NULL, false, NULL},
    {"at-once", 0, ACRE_OPT_COUNT, offsetof(struct options, at_once), "N", "runs at once", 1, 10000,
     NULL, false, NULL},
    {"ram-mib", 0, ACRE_OPT_COUNT, offsetof(struct options, ram_mib), "MIB",
     "limit of each, 0: none", 0, 1 << 20, NULL, false, NULL},
    {"cpu-milli", 0, ACRE_OPT_COUNT, offsetof(struct options, cpu_milli), "MILLI",
     "limit of each, 0: none", 0, 1 << 20, NULL, false, NULL},
    {"command", 0, ACRE_OPT_STRING, offsetof(struct options, command), "PATH", "what to run", 0, 0,
     NULL, false, NULL},
    {"user", 0, ACRE_OPT_STRING, offsetof(struct options, user), "NAME",
     "user to run as (default: 'nobody' if you are root, otherwise you)", 0, 0, NULL, false, NULL},
    {"program", 0, ACRE_OPT_STRING, offsetof(struct options, program), "PATH",
     "supervisor (default: the one in this build)", 0, 0, NULL, false, NULL},
};

static const struct acre_command command = {.name = "run",
                                            .summary = "measure the cost of running jobs",
                                            .usage = "run [options]",
                                            .options = table,
                                            .option_count = ACRE_COUNT(table),
                                            .options_size = sizeof(struct options),
                                            .defaults = &defaults};

struct state {
    const struct options *options;
    const char *user;
    struct acre_loop *loop;
    void *engine;
    uint64_t next, ended, failed;
    double *started_ns, *taken_ns;
};

static void start_one(struct state *state) {
    const char *argv[] = {state->options->command, NULL};
    struct acre_run_spec spec = {.run = {.job = ++state->next, .attempt = 1},
                                 .user = state->user,
                                 .argv = argv,
                                 .directory = "/",
                                 .members = 1,
                                 .cpu_milli = state->options->cpu_milli,
                                 .ram_mib = state->options->ram_mib};
    state->started_ns[spec.run.job - 1] = bench_now_ns();
    acre_engine_local.start(state->engine, &spec, NULL);
}

static void on_exited(void *context, struct acre_run run, const struct acre_run_result *result) {
    struct state *state = context;
    state->taken_ns[run.job - 1] = bench_now_ns() - state->started_ns[run.job - 1];
    state->ended++;
    if (result->ending != ACRE_RUN_EXITED || result->code != 0) {
        if (state->failed++ == 0) {
            fprintf(stderr, "run: ending %d, code %d: %s\n", (int)result->ending, result->code,
                    result->text);
        }
    }
    acre_engine_local.forget(state->engine, run);
    if (state->next < state->options->jobs) {
        start_one(state);
    } else if (state->ended == state->options->jobs) {
        acre_loop_stop(state->loop);
    }
}

/* Processor time of this process and of all it has waited for, and they. */
static double cpu_us(void) {
    double us = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (size_t i = 0; i < ACRE_COUNT(whose); i++) {
        struct rusage use;
        getrusage(whose[i], &use);
        us += (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
              (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    }
    return us;
}

static double bench_engine(struct state *state, const struct local_options *options,
                           struct acre_buf *contained) {
    struct acre_error err = {0};
    struct acre_engine_sink sink = {.exited = on_exited, .context = state};
    if (acre_loop_create(&state->loop, &err) < 0 ||
        acre_engine_local.open(&(struct acre_engine_options){.own = options}, state->loop, &sink,
                               &state->engine, &err) < 0) {
        bench_fail("%s", err.text);
    }
    acre_engine_local.describe(state->engine, contained);
    double begin_ns = bench_now_ns();
    for (uint64_t i = 0; i < ACRE_MIN(state->options->at_once, state->options->jobs); i++) {
        start_one(state);
    }
    acre_loop_run(state->loop);
    double seconds = (bench_now_ns() - begin_ns) / 1e9;
    acre_engine_local.close(state->engine);
    acre_loop_destroy(state->loop);
    return (double)state->options->jobs / seconds;
}

/* The same number at once, forked from this process: it is small. */
static double bench_fork(const struct options *options) {
    double begin_ns = bench_now_ns();
    uint64_t started = 0, ended = 0;
    while (ended < options->jobs) {
        while (started < options->jobs && started - ended < options->at_once) {
            pid_t child = fork();
            if (child == 0) {
                execl(options->command, options->command, (char *)NULL);
                _exit(127);
            }
            started += child > 0;
        }
        ended += wait(NULL) > 0;
    }
    return (double)options->jobs / ((bench_now_ns() - begin_ns) / 1e9);
}

static void remove_state(const char *state) {
    static const char *const parts[] = {"runs", "logs", "facts", "engine.lock", ""};
    for (size_t i = 0; i < ACRE_COUNT(parts); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", state, parts[i]);
        if (remove(path) != 0) {
            fprintf(stderr, "run: %s: %s\n", path, strerror(errno));
        }
    }
}

static void run(const void *opaque, struct acre_json *json) {
    const struct options *options = opaque;
    char directory[] = "/tmp/acre-bench-XXXXXX", name[32];
    if (mkdtemp(directory) == NULL) {
        bench_fail("%s: %s", directory, strerror(errno));
    }
    snprintf(name, sizeof(name), "acre-bench-%d", (int)getpid());
    struct local_options local = {.state_directory = directory,
                                  .program =
                                      options->program != NULL ? options->program : ACRE_SHIM,
                                  .cgroup_name = name};
    const struct passwd *me = getpwuid(geteuid());
    struct state state = {.options = options,
                          .user = options->user != NULL ? options->user
                                  : geteuid() == 0      ? "nobody"
                                  : me != NULL          ? me->pw_name
                                                        : ""};
    state.started_ns = acre_calloc(options->jobs, sizeof(double));
    state.taken_ns = acre_calloc(options->jobs, sizeof(double));
    struct acre_buf contained;
    acre_buf_init(&contained, 4096);
    double cpu[3] = {cpu_us()};
    double fork_before = bench_fork(options);
    cpu[1] = cpu_us();
    double jobs_per_s = bench_engine(&state, &local, &contained);
    cpu[2] = cpu_us();
    double fork_after = bench_fork(options);
    double fork_per_s = (fork_before + fork_after) / 2;
    acre_json_put_u64(json, "jobs", options->jobs);
    acre_json_put_u64(json, "at_once", options->at_once);
    acre_json_put_u64(json, "failed", state.failed);
    acre_json_put_double(json, "jobs_per_s", jobs_per_s, 0);
    acre_json_put_double(json, "fork_exec_per_s", fork_per_s, 0);
    acre_json_put_double(json, "ratio_fork_exec", jobs_per_s / fork_per_s, 3);
    acre_json_key(json, "cpu_us");
    acre_json_object(json);
    acre_json_put_double(json, "engine", (cpu[2] - cpu[1]) / (double)options->jobs, 0);
    acre_json_put_double(json, "fork_exec", (cpu[1] - cpu[0]) / (double)options->jobs, 0);
    acre_json_object_end(json);
    struct bench_times times = {.ns = state.taken_ns, .count = options->jobs};
    bench_put_times(json, "start_to_told_ms", &times, 1e6);
    acre_json_put_string(json, "contained", contained.data);
    acre_buf_finish(&contained);
    free(state.started_ns);
    free(state.taken_ns);
    remove_state(directory);
}

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
