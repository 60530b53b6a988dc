/* sched.c - what one event, one pass and one placement cost, by the size of cluster and queue.
 *
 *   build/bench/sched --json
 *
 * At --nodes x 8 devices and --jobs in the queue, and at 10 and 100 times less: thousands of users
 * submit jobs of several hundred different requests (tenths of a device, 1 to 8 of one node, gangs
 * over nodes; four zones and two models, half of the jobs ask for one; CPU and RAM in two
 * proportions), users and requests both far from evenly. Then
 *
 *   bytes_per_job     memory of the scheduler when all wait, over their number;
 *   placements_per_s  the pass that fills the empty cluster, by the number it placed;
 *   event_us          a submission, or an exit in the order of real ends, each with the pass after
 *                     it, on the full cluster with a full queue;
 *   pass_ms           a pass over everything, as after a change of the cluster.
 *
 * The policy is the default: fair share with backfill and preemption. */
#include "sched/sched.h"
#include "bench.h"

#include "core/rand.h"
#include "ledger/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEVICES_PER_NODE = 8,
    MEMORY_MIB = 81559,
    PROJECT_USERS = 20,
    PASSES = 5,
    ZONES = 4,
    MODELS = 2,
    CHECKPOINT_MS = 5000, /* a run told to yield takes so long */
};
#define START_MS UINT64_C(1700000000000)

struct options {
    bool json; /* bench_main's */
    uint64_t nodes, jobs, users, events, seed;
    const char *policy;
    bool varied_cpu;
};

/* When a run really ends. */
struct end {
    uint64_t at_ms, job;
    uint32_t attempt;
};

struct bench {
    const struct options *options;
    uint64_t nodes, jobs, users;
    struct acre_rand rand;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms, next_id, preemptions;
    uint32_t *user_names, *project_names;
    uint32_t zones[ZONES], models[MODELS];
    struct end *ends; /* heap */
    uint32_t end_count, end_capacity;
    struct acre_sched_action *starts;
    uint32_t start_count, start_capacity;
    struct bench_times submit, exit, event, cpu;
};

/* Time this thread really ran: what else runs on the machine does not count. */
static double cpu_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void push_end(struct bench *bench, struct end end) {
    bench->ends =
        acre_grow(bench->ends, bench->end_count, &bench->end_capacity, sizeof(*bench->ends));
    uint32_t at = bench->end_count++;
    while (at > 0 && bench->ends[(at - 1) / 2].at_ms > end.at_ms) {
        bench->ends[at] = bench->ends[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    bench->ends[at] = end;
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct bench *bench = context;
    if (action->kind == ACRE_ACTION_CHECKPOINT) {
        uint64_t at_ms = bench->now_ms + CHECKPOINT_MS;
        push_end(bench, (struct end){at_ms, action->job, action->attempt});
        bench->preemptions++;
    } else if (action->kind == ACRE_ACTION_START) {
        bench->starts = acre_grow(bench->starts, bench->start_count, &bench->start_capacity,
                                  sizeof(*bench->starts));
        bench->starts[bench->start_count++] = *action;
    }
}

static void add_nodes(struct bench *bench) {
    static const char *const zones[ZONES] = {"zone=a", "zone=b", "zone=c", "zone=d"};
    static const char *const models[MODELS] = {"H100", "A100"};
    for (uint64_t n = 0; n < bench->nodes; n++) {
        char name[32];
        char ids[DEVICES_PER_NODE][48];
        struct acre_device_spec specs[DEVICES_PER_NODE];
        snprintf(name, sizeof(name), "gpu-%05u", (unsigned)n);
        for (unsigned d = 0; d < DEVICES_PER_NODE; d++) {
            snprintf(ids[d], sizeof(ids[d]), "GPU-%08x-%02x", (unsigned)n, d);
            specs[d] = (struct acre_device_spec){
                .id = ids[d],
                .model = models[n / ZONES % MODELS],
                .vendor = "nvidia",
                .memory_mib = MEMORY_MIB,
            };
        }
        struct acre_node_spec spec = {.name = name,
                                      .cpu_milli = 192000,
                                      .ram_mib = 2 << 20,
                                      .labels = &zones[n % ZONES],
                                      .label_count = 1,
                                      .devices = specs,
                                      .device_count = DEVICES_PER_NODE};
        uint32_t node;
        int r = acre_ledger_add_node(bench->ledger, &spec, &node, NULL);
        ACRE_ASSERT(r == 0);
    }
    struct acre_names *names = acre_ledger_names(bench->ledger);
    for (size_t i = 0; i < ZONES; i++) {
        bench->zones[i] = acre_names_intern(names, acre_str_from(zones[i]));
    }
    for (size_t i = 0; i < MODELS; i++) {
        bench->models[i] = acre_names_intern(names, acre_str_from(models[i]));
    }
}

static void add_names(struct bench *bench) {
    struct acre_names *names = acre_ledger_names(bench->ledger);
    bench->user_names = acre_calloc(bench->users, sizeof(uint32_t));
    bench->project_names = acre_calloc(bench->users / PROJECT_USERS + 1, sizeof(uint32_t));
    for (uint64_t i = 0; i < bench->users; i++) {
        char name[32];
        snprintf(name, sizeof(name), "user-%u", (unsigned)i);
        bench->user_names[i] = acre_names_intern(names, acre_str_from(name));
        snprintf(name, sizeof(name), "project-%u", (unsigned)(i / PROJECT_USERS));
        bench->project_names[i / PROJECT_USERS] = acre_names_intern(names, acre_str_from(name));
    }
}

/* Low numbers often, high ones rarely. */
static uint64_t skewed(struct acre_rand *rand, uint64_t bound) {
    double x = acre_rand_unit(rand);
    return (uint64_t)(x * x * x * x * (double)bound);
}

/* 20 shapes; half of the jobs ask for a zone or a model; CPU and RAM in one of two proportions to
 * the GPU, or drawn at random. */
static struct acre_request random_request(struct bench *bench) {
    static const struct {
        uint32_t replicas, gpus, milli;
    } shapes[] = {
        {1, 1, 1000}, {1, 1, 500},  {1, 1, 200},  {1, 2, 1000}, {1, 1, 300},
        {1, 1, 100},  {1, 4, 1000}, {1, 1, 400},  {1, 1, 250},  {1, 1, 600},
        {1, 8, 1000}, {1, 1, 700},  {1, 1, 800},  {1, 1, 900},  {1, 1, 750},
        {1, 3, 1000}, {2, 8, 1000}, {1, 6, 1000}, {4, 8, 1000}, {8, 1, 1000},
    };
    struct acre_rand *rand = &bench->rand;
    uint64_t at = skewed(rand, ACRE_COUNT(shapes));
    struct acre_request request = {
        .replicas = shapes[at].replicas,
        .gpus = shapes[at].gpus,
        .milli = shapes[at].milli,
    };
    uint64_t where = acre_rand_below(rand, 2 * (ZONES + MODELS));
    if (where < ZONES) {
        request.labels[0] = bench->zones[where];
    } else if (where < ZONES + MODELS) {
        request.models[0] = bench->models[where - ZONES];
    }
    uint64_t milli = (uint64_t)request.milli * request.gpus;
    uint64_t cores = acre_rand_below(rand, 4) == 0 ? 16 : 8;
    request.cpu_milli = milli * cores;
    request.ram_mib = milli * cores * 8;
    if (bench->options->varied_cpu) {
        request.cpu_milli = milli * (4 + 4 * skewed(rand, 5));
        request.ram_mib = milli * (32 + 32 * skewed(rand, 5));
    }
    return request;
}

static struct acre_job_spec random_job(struct bench *bench) {
    static const uint64_t minutes[] = {10, 60, 30, 240, 120, 480, 1440};
    uint64_t user = skewed(&bench->rand, bench->users);
    uint64_t ms = minutes[skewed(&bench->rand, ACRE_COUNT(minutes))] * 60000;
    uint64_t kind = acre_rand_below(&bench->rand, 10);
    struct acre_job_spec spec = {
        .id = ++bench->next_id,
        .user = bench->user_names[user],
        .project = bench->project_names[user / PROJECT_USERS],
        .request = random_request(bench),
        .priority = kind == 0   ? ACRE_PRIORITY_HIGH
                    : kind == 1 ? ACRE_PRIORITY_LOW
                                : ACRE_PRIORITY_NORMAL,
        .limit_ms = kind < 7 ? ms : 0,
        .estimate_ms = kind == 7 || kind == 8 ? ms : 0,
    };
    return spec;
}

static void submit(struct bench *bench) {
    struct acre_job_spec spec = random_job(bench);
    struct acre_error err = {0};
    if (acre_sched_submit(bench->sched, &spec, bench->now_ms, &err) < 0) {
        bench_fail("%s", err.text);
    }
}

static struct end pop_end(struct bench *bench) {
    struct end first = bench->ends[0];
    struct end last = bench->ends[--bench->end_count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < bench->end_count; at = child) {
        child +=
            child + 1 < bench->end_count && bench->ends[child + 1].at_ms < bench->ends[child].at_ms;
        if (bench->ends[child].at_ms >= last.at_ms) {
            break;
        }
        bench->ends[at] = bench->ends[child];
    }
    bench->ends[at] = last;
    return first;
}

/* What was placed is dispatched and starts; it will end at some part of what was said. */
static void start_placed(struct bench *bench) {
    for (uint32_t i = 0; i < bench->start_count; i++) {
        struct acre_sched_action start = bench->starts[i];
        struct acre_job job;
        acre_sched_dispatched(bench->sched, start.job, start.attempt, bench->now_ms);
        acre_sched_started(bench->sched, start.job, start.attempt, bench->now_ms);
        acre_sched_find(bench->sched, start.job, &job);
        uint64_t most_ms = job.spec.limit_ms + job.spec.estimate_ms;
        most_ms = most_ms != 0 ? most_ms : 7200000;
        push_end(bench, (struct end){bench->now_ms + 1000 + acre_rand_below(&bench->rand, most_ms),
                                     start.job, start.attempt});
    }
    bench->start_count = 0;
}

static void run_event(struct bench *bench, bool is_exit) {
    struct bench_times *times = is_exit ? &bench->exit : &bench->submit;
    struct end end = {0};
    if (is_exit) {
        end = pop_end(bench);
        bench->now_ms = ACRE_MAX(bench->now_ms, end.at_ms);
    }
    struct acre_job_exit code = {.kind = ACRE_EXIT_CODE};
    double cpu_ns = cpu_now_ns();
    double start_ns = bench_now_ns();
    if (is_exit) {
        acre_sched_exited(bench->sched, end.job, end.attempt, &code, bench->now_ms);
    } else {
        submit(bench);
    }
    acre_sched_pass(bench->sched, bench->now_ms, 0);
    double taken_ns = bench_now_ns() - start_ns;
    times->ns[times->count++] = taken_ns;
    bench->event.ns[bench->event.count++] = taken_ns;
    bench->cpu.ns[bench->cpu.count++] = cpu_now_ns() - cpu_ns;
    if (is_exit) {
        acre_sched_drop(bench->sched, end.job);
    }
    start_placed(bench);
}

static void run_events(struct bench *bench, struct acre_json *json) {
    uint64_t count = bench->options->events;
    struct bench_times *all[] = {&bench->submit, &bench->exit, &bench->event, &bench->cpu};
    for (size_t i = 0; i < ACRE_COUNT(all); i++) {
        *all[i] = (struct bench_times){acre_calloc(count, sizeof(double)), 0};
    }
    for (uint64_t i = 0; i < count && bench->end_count > 0; i++) {
        run_event(bench, i % 2 == 0);
    }
    bench_put_times(json, "event_us", &bench->event, 1000);
    bench_put_times(json, "event_cpu_us", &bench->cpu, 1000);
    bench_put_times(json, "submit_us", &bench->submit, 1000);
    bench_put_times(json, "exit_us", &bench->exit, 1000);
    for (size_t i = 0; i < ACRE_COUNT(all); i++) {
        free(all[i]->ns);
    }
}

static void run_passes(struct bench *bench, struct acre_json *json) {
    double total_ns = 0;
    for (int i = 0; i < PASSES; i++) {
        acre_sched_ledger_changed(bench->sched);
        double start_ns = cpu_now_ns();
        acre_sched_pass(bench->sched, bench->now_ms, 0);
        total_ns += cpu_now_ns() - start_ns;
        start_placed(bench);
    }
    acre_json_put_double(json, "pass_ms", total_ns / PASSES / 1e6, 3);
}

static void fill(struct bench *bench, struct acre_json *json) {
    double start_ns = cpu_now_ns();
    for (uint64_t i = 0; i < bench->jobs; i++) {
        submit(bench);
    }
    double taken_ns = cpu_now_ns() - start_ns;
    acre_json_put_double(json, "bytes_per_job",
                         (double)acre_sched_bytes(bench->sched) / (double)bench->jobs, 1);
    acre_json_put_double(json, "submits_per_s", (double)bench->jobs / taken_ns * 1e9, 0);
    start_ns = cpu_now_ns();
    uint32_t placed = acre_sched_pass(bench->sched, bench->now_ms, 0);
    taken_ns = cpu_now_ns() - start_ns;
    acre_json_put_u64(json, "placed", placed);
    acre_json_put_double(json, "placements_per_s", (double)placed / taken_ns * 1e9, 0);
    start_placed(bench);
}

static void run_scale(const struct options *options, uint64_t divisor, struct acre_json *json) {
    struct bench bench = {
        .options = options,
        .nodes = ACRE_MAX(options->nodes / divisor, UINT64_C(1)),
        .jobs = ACRE_MAX(options->jobs / divisor, UINT64_C(1)),
        .users = ACRE_MAX(options->users / divisor, UINT64_C(10)),
        .ledger = acre_ledger_create(NULL),
        .now_ms = START_MS,
    };
    struct acre_policy policy = *acre_policy_default();
    for (int kind = 0; kind < ACRE_POLICY_COUNT; kind++) {
        if (strcmp(acre_policy_name((enum acre_policy_kind)kind), options->policy) == 0) {
            policy.kind = (enum acre_policy_kind)kind;
        }
    }
    acre_rand_seed(&bench.rand, options->seed);
    add_nodes(&bench);
    add_names(&bench);
    struct acre_sched_options sched_options = {
        .ledger = bench.ledger, .policy = &policy, .action = on_action, .context = &bench};
    bench.sched = acre_sched_create(&sched_options);
    acre_json_put_u64(json, "nodes", bench.nodes);
    acre_json_put_u64(json, "devices", bench.nodes * DEVICES_PER_NODE);
    acre_json_put_u64(json, "jobs", bench.jobs);
    acre_json_put_u64(json, "users", bench.users);
    fill(&bench, json);
    run_events(&bench, json);
    run_passes(&bench, json);
    struct acre_sched_counts counts;
    acre_sched_counts(bench.sched, &counts);
    acre_json_put_u64(json, "queued", counts.jobs[ACRE_JOB_QUEUED]);
    acre_json_put_u64(json, "running", counts.jobs[ACRE_JOB_RUNNING]);
    acre_json_put_u64(json, "preemptions", bench.preemptions);
    acre_sched_destroy(bench.sched);
    acre_ledger_destroy(bench.ledger);
    free(bench.user_names);
    free(bench.project_names);
    free(bench.ends);
    free(bench.starts);
}

static void run(const void *context, struct acre_json *json) {
    const struct options *options = context;
    acre_json_put_string(json, "policy", options->policy);
    run_scale(options, 1, json);
    acre_json_key(json, "smaller");
    acre_json_array(json);
    for (uint64_t divisor = 10; divisor <= 100; divisor *= 10) {
        acre_json_object(json);
        run_scale(options, divisor, json);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

#define ROW_COUNT(field, text, least, most)                                                        \
    {                                                                                              \
        .name = #field, .kind = ACRE_OPT_COUNT, .offset = offsetof(struct options, field),         \
        .value = "N", .help = text, .min = least, .max = most                                      \
    }

static const struct acre_opt rows[] = {
    /* a hundredth of 1600 still has the nodes of the largest gang, four, in each zone */
    ROW_COUNT(nodes, "nodes of 8 devices", 1600, 1000000),
    ROW_COUNT(jobs, "jobs in the queue", 1000, 100000000),
    ROW_COUNT(users, "users, 20 to a project", 100, 1000000),
    ROW_COUNT(events, "submissions and exits to time, at each size", 1000, 100000000),
    ROW_COUNT(seed, "seed of the random mix", 0, UINT64_MAX),
    {.name = "policy",
     .kind = ACRE_OPT_CHOICE,
     .offset = offsetof(struct options, policy),
     .value = "NAME",
     .choices = "fair-share,priority,fcfs,sjf,gang",
     .help = "queue order"},
    {.name = "varied-cpu",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, varied_cpu),
     .help = "CPU and RAM in 25 proportions to the GPU instead of two: the ledger's worst case"},
};

static const struct options defaults = {.nodes = 10000,
                                        .jobs = 1000000,
                                        .users = 5000,
                                        .events = 20000,
                                        .seed = 1,
                                        .policy = "fair-share"};

static const struct acre_command command = {
    .name = "sched",
    .summary = "time the scheduler",
    .usage = "sched [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
