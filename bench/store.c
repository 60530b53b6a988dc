/* store.c - what a durable submission costs, alone and in company.
 *
 *   build/bench/store --json [--rows 20000] [--spec 500] [--directory DIR]
 *
 * All on the same disk in the same run. "single": SQLite alone, one row a transaction
 * (single.h). "groups": our store without a loop, batches of 1, 32 and 128 submissions. "clients":
 * our store with its writer thread and a loop, so many submissions under way at any time, each a
 * batch of its own: what an HTTP server does; times are from commit to `done`. "life": with 128
 * under way, a submission and three changes of state each. A submission is a job and an audit
 * record. "ratio_single_commit" is 128 clients over single: the median of five rounds in which both
 * take turns, because a disk that others use is not the same a minute later. */
#include "bench.h"
#include "single.h"

#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    bool json; /* bench_main's */
    uint64_t rows;
    uint64_t spec;
    const char *directory;
};

enum { CLIENTS_MAX = 128, CHANGES = 3, ROUNDS = 5 };

#define US_NS 1000.0

struct run {
    const struct options *options;
    struct bench_place place;
    struct acre_loop *loop;
    struct acre_store *store;
    struct bench_times *times;
    char *spec;
    uint64_t next_id, last_id, under_way;
    bool whole_life;
};

struct client {
    struct run *run;
    double start_ns;
    uint64_t id;
    unsigned changes;
};

static void open_store(struct run *run, bool with_loop) {
    char url[sizeof(run->place.path) + 32];
    struct acre_error err = {0};
    run->place = bench_place_make(run->options->directory);
    snprintf(url, sizeof(url), "sqlite:%s/acre.db", run->place.path);
    if (with_loop && acre_loop_create(&run->loop, &err) < 0) {
        bench_fail("%s", err.text);
    }
    struct acre_store_options options = {.url = url, .loop = run->loop};
    if (acre_store_open(&options, &run->store, &err) < 0) {
        bench_fail("%s", err.text);
    }
}

static void close_store(struct run *run) {
    acre_store_close(run->store);
    acre_loop_destroy(run->loop);
    bench_place_remove(&run->place);
    run->store = NULL;
    run->loop = NULL;
}

static struct acre_store_job job_of(const struct run *run, uint64_t id) {
    static const char *const users[] = {"ada", "bob", "cem", "dov", "eve", "fay", "gil", "hua"};
    return (struct acre_store_job){
        .id = id,
        .user = users[id * 7919 % ACRE_COUNT(users)],
        .project = "vision",
        .name = "train",
        .state = "queued",
        .live = true,
        .priority = 2,
        .submitted_ms = UINT64_C(1700000000000) + id,
        .spec = {run->spec, run->options->spec},
        .detail = ACRE_STR("{\"retries\":0,\"preemptions\":0,\"eligible_ms\":1700000000000,"
                           "\"held\":false,\"after\":[]}"),
    };
}

static void put_submission(struct acre_batch *batch, const struct run *run, uint64_t id) {
    char target[32];
    snprintf(target, sizeof(target), "job:%llu", (unsigned long long)id);
    struct acre_store_job job = job_of(run, id);
    struct acre_store_audit audit = {.at_ms = job.submitted_ms,
                                     .actor = "user:ada",
                                     .origin = "unix:1000",
                                     .action = "job submitted",
                                     .target = target,
                                     .result = "ok",
                                     .detail = ""};
    acre_batch_add_job(batch, &job);
    acre_batch_audit(batch, &audit);
}

static void expect_committed(void *context, int code, const struct acre_error *err) {
    (void)context;
    if (code < 0) {
        bench_fail("%s", err->text);
    }
}

/* --- groups of one size --------------------------------------------------------------------- */

static void bench_group(struct acre_json *json, struct run *run, uint64_t size) {
    uint64_t rows = ACRE_MAX(run->options->rows / size, (uint64_t)1) * size;
    open_store(run, false);
    run->times->count = 0;
    double begin_ns = bench_now_ns();
    for (uint64_t id = 1; id <= rows;) {
        double start_ns = bench_now_ns();
        struct acre_batch *batch = acre_batch_create();
        for (uint64_t i = 0; i < size; i++) {
            put_submission(batch, run, id++);
        }
        acre_store_commit(run->store, batch, expect_committed, NULL);
        run->times->ns[run->times->count++] = bench_now_ns() - start_ns;
    }
    double taken_ns = bench_now_ns() - begin_ns;
    close_store(run);
    acre_json_object(json);
    acre_json_put_u64(json, "group", size);
    acre_json_put_double(json, "submits_per_s", (double)rows / taken_ns * 1e9, 0);
    bench_put_times(json, "commit_us", run->times, US_NS);
    acre_json_object_end(json);
}

/* --- clients with a loop -------------------------------------------------------------------- */

static void client_step(struct client *client);

static void on_committed(void *context, int code, const struct acre_error *err) {
    struct client *client = context;
    struct run *run = client->run;
    expect_committed(NULL, code, err);
    if (client->changes == 0) {
        run->times->ns[run->times->count++] = bench_now_ns() - client->start_ns;
    }
    run->under_way--;
    client->changes = run->whole_life && client->changes < CHANGES ? client->changes + 1 : 0;
    client_step(client);
    if (run->under_way == 0) {
        acre_loop_stop(run->loop);
    }
}

static void put_change(struct acre_batch *batch, const struct client *client) {
    static const char *const states[] = {"allocating", "running", "completed"};
    struct acre_store_job job = job_of(client->run, client->id);
    job.state = states[client->changes - 1];
    job.live = client->changes < CHANGES;
    job.attempt = 1;
    job.started_ms = client->changes >= 2 ? job.submitted_ms + 1000 : 0;
    job.ended_ms = client->changes == CHANGES ? job.submitted_ms + 2000 : 0;
    acre_batch_update_job(batch, &job);
}

static void client_step(struct client *client) {
    struct run *run = client->run;
    if (client->changes == 0 && run->next_id > run->last_id) {
        return;
    }
    struct acre_batch *batch = acre_batch_create();
    client->start_ns = bench_now_ns();
    if (client->changes == 0) {
        client->id = run->next_id++;
        put_submission(batch, run, client->id);
    } else {
        put_change(batch, client);
    }
    run->under_way++;
    acre_store_commit(run->store, batch, on_committed, client);
}

static void never(void *context) {
    (void)context;
}

/* Submissions a second; the times are in run->times. */
static double run_clients(struct run *run, unsigned count, uint64_t submissions) {
    struct client clients[CLIENTS_MAX];
    ACRE_ASSERT(count <= CLIENTS_MAX);
    open_store(run, true);
    run->times->count = 0;
    run->next_id = 1;
    run->last_id = submissions;
    acre_loop_timer(run->loop, 3600000, 0, never, NULL); /* a loop does not live on posts alone */
    double begin_ns = bench_now_ns();
    for (unsigned i = 0; i < count; i++) {
        clients[i] = (struct client){.run = run};
        client_step(&clients[i]);
    }
    acre_loop_run(run->loop);
    double per_s = (double)submissions / (bench_now_ns() - begin_ns) * 1e9;
    close_store(run);
    return per_s;
}

static void bench_clients(struct acre_json *json, struct run *run, unsigned count) {
    double per_s = run_clients(run, count, run->options->rows);
    acre_json_object(json);
    acre_json_put_u64(json, "clients", count);
    acre_json_put_double(json, run->whole_life ? "jobs_per_s" : "submits_per_s", per_s, 0);
    bench_put_times(json, "submit_us", run->times, US_NS);
    acre_json_object_end(json);
}

/* --- against single commits ----------------------------------------------------------------- */

static double run_single(struct run *run, uint64_t submissions) {
    run->times->count = 0;
    run->place = bench_place_make(run->options->directory);
    double per_s = bench_single_commits(run->place.path, submissions, HUGE_VAL, run->options->spec,
                                        run->times);
    bench_place_remove(&run->place);
    return per_s;
}

static double median_ratio(struct run *run) {
    double ratios[ROUNDS];
    uint64_t submissions = ACRE_MAX(run->options->rows / ROUNDS, (uint64_t)1);
    for (size_t i = 0; i < ROUNDS; i++) {
        double single = run_single(run, submissions);
        ratios[i] = run_clients(run, CLIENTS_MAX, submissions) / single;
    }
    bench_sort(ratios, ROUNDS);
    return ratios[ROUNDS / 2];
}

static void run_all(const void *context, struct acre_json *json) {
    const struct options *options = context;
    struct bench_times times = {.ns = acre_calloc(options->rows, sizeof(double))};
    struct run run = {.options = options, .times = &times};
    run.spec = acre_calloc(1, options->spec + 1);
    memset(run.spec, 's', options->spec);
    acre_json_put_u64(json, "rows", options->rows);
    acre_json_put_u64(json, "spec_bytes", options->spec);
    acre_json_put_double(json, "single_commits_per_s", run_single(&run, options->rows), 0);
    bench_put_times(json, "single_us", &times, US_NS);
    static const unsigned sizes[] = {1, 32, CLIENTS_MAX};
    acre_json_key(json, "groups");
    acre_json_array(json);
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        bench_group(json, &run, sizes[i]);
    }
    acre_json_array_end(json);
    acre_json_key(json, "clients");
    acre_json_array(json);
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        bench_clients(json, &run, sizes[i]);
    }
    acre_json_array_end(json);
    acre_json_put_double(json, "ratio_single_commit", median_ratio(&run), 2);
    run.whole_life = true;
    acre_json_key(json, "life");
    bench_clients(json, &run, CLIENTS_MAX);
    free(run.spec);
    free(times.ns);
}

static const struct acre_opt rows[] = {
    {.name = "rows",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, rows),
     .value = "N",
     .help = "submissions to make in each part (20000)",
     .min = 1,
     .max = 100000000},
    {.name = "spec",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, spec),
     .value = "BYTES",
     .help = "size of a job's specification (500)",
     .min = 1,
     .max = 1 << 20},
    {.name = "directory",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, directory),
     .value = "DIR",
     .help = "directory on the disk to use (the current directory)"},
};

static const struct options defaults = {.rows = 20000, .spec = 500};

static const struct acre_command command = {
    .name = "store",
    .summary = "time durable submissions, alone and in groups",
    .usage = "store [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run_all);
}
