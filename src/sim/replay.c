/* replay.c - a loop over three kinds of events: a submission, the end of a run, and a timer of the
 * scheduler. The scheduler gets all events of one moment and then decides once. Ends are kept in a
 * heap; a run that was stopped earlier leaves a stale entry, recognized by its attempt. */
#include "sim/replay.h"

#include "core/heap.h"
#include "ledger/nodes.h"
#include "sched/sched.h"
#include "sched/why.h"
#include "sim/fairness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKED_EVERY = 64 };

static const struct acre_replay_policy policies[] = {
    {"fcfs", "first come, first served, without backfill", ACRE_POLICY_FCFS, false, false},
    {"easy", "first come, first served, with backfill", ACRE_POLICY_FCFS, true, false},
    {"fair-share", "least decayed use first, with backfill", ACRE_POLICY_FAIR_SHARE, true, false},
    {"sjf", "shortest first, with backfill", ACRE_POLICY_SJF, true, false},
    {"priority", "priority with aging and preemption, with backfill", ACRE_POLICY_PRIORITY, true,
     true},
    {"gang", "most GPUs first, with backfill", ACRE_POLICY_GANG, true, false},
};

const struct acre_replay_policy *acre_replay_policy(size_t index) {
    return index < ACRE_COUNT(policies) ? &policies[index] : NULL;
}

struct replay_end {
    uint64_t at_ms;
    uint32_t job; /* index in the trace; its id is one more */
    uint32_t attempt;
};

/* One job of the trace on its way through. */
struct passage {
    uint64_t left_ms;    /* of its duration */
    uint64_t started_ms; /* of the present run */
    uint64_t first_start_ms, ended_ms;
    uint64_t eta_ms, eta_earliest_ms, eta_latest_ms; /* 0: got none */
    uint32_t attempt;
    bool started, running, refused;
};

struct replay {
    const struct acre_job_trace *trace;
    const struct acre_replay_options *options;
    struct acre_replay_result *result;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct fairness *fairness;
    uint32_t *clusters; /* name of the trace -> name of the ledger */
    struct passage *passages;
    struct replay_end *ends; /* heap by time */
    uint32_t end_count, end_capacity;
    uint32_t next_submit;
    uint64_t now_ms;
    uint64_t held_gpus, waiting_gpus;
    double used_gpu_ms; /* until the last submission */
    uint32_t curve_at;
    uint32_t *ended; /* to be dropped after the call that ended them */
    uint32_t ended_count, ended_capacity;
    struct acre_sched_action *actions; /* told, to be carried out */
    uint32_t action_count, action_capacity;
};

static bool is_before(const void *a, const void *b, const void *context) {
    (void)context;
    const struct replay_end *x = a, *y = b;
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->job < y->job;
}

static const struct acre_heap_kind by_time = {sizeof(struct replay_end), is_before, NULL};

static void push_end(struct replay *replay, struct replay_end end) {
    replay->ends =
        acre_grow(replay->ends, replay->end_count, &replay->end_capacity, sizeof(*replay->ends));
    acre_heap_push(&by_time, replay->ends, &replay->end_count, &end, NULL);
}

static struct replay_end pop_end(struct replay *replay) {
    struct replay_end top = replay->ends[0];
    acre_heap_remove_first(&by_time, replay->ends, &replay->end_count, NULL);
    return top;
}

static bool is_stale(const struct replay *replay, const struct replay_end *end) {
    const struct passage *passage = &replay->passages[end->job];
    return !passage->running || passage->attempt != end->attempt;
}

/* What a job holds and waits for, in the books of fairness and use. */
static void note_use(struct replay *replay, uint32_t job, bool begins) {
    const struct trace_job *record = &replay->trace->jobs[job];
    int64_t gpus = begins ? (int64_t)record->gpus : -(int64_t)record->gpus;
    fairness_add(replay->fairness, record->cluster - 1, gpus);
    replay->held_gpus += (uint64_t)gpus;
}

static void note_wait(struct replay *replay, uint32_t job, bool begins) {
    const struct trace_job *record = &replay->trace->jobs[job];
    int64_t gpus = begins ? (int64_t)record->gpus : -(int64_t)record->gpus;
    fairness_want(replay->fairness, record->cluster - 1, gpus);
    replay->waiting_gpus += (uint64_t)gpus;
}

static void note_ended(struct replay *replay, uint32_t job) {
    replay->ended = acre_grow(replay->ended, replay->ended_count, &replay->ended_capacity,
                              sizeof(*replay->ended));
    replay->ended[replay->ended_count++] = job;
}

static void on_event(void *context, const struct acre_sched_event *event) {
    struct replay *replay = context;
    uint32_t job = (uint32_t)(event->job - 1);
    if (event->kind == ACRE_SCHED_COMPLETED || event->kind == ACRE_SCHED_FAILED ||
        event->kind == ACRE_SCHED_CANCELED) {
        replay->passages[job].ended_ms = event->now_ms;
        note_ended(replay, job);
    } else if (event->kind == ACRE_SCHED_REQUEUED) {
        note_wait(replay, job, true);
    } else if (event->kind == ACRE_SCHED_PREEMPTED) {
        replay->result->preemptions++;
    }
}

/* The scheduler may not be called from its own callbacks: actions wait until it has returned. */
static void on_action(void *context, const struct acre_sched_action *action) {
    struct replay *replay = context;
    replay->actions = acre_grow(replay->actions, replay->action_count, &replay->action_capacity,
                                sizeof(*replay->actions));
    replay->actions[replay->action_count++] = *action;
}

static void start_run(struct replay *replay, uint32_t job, uint32_t attempt) {
    struct passage *passage = &replay->passages[job];
    note_wait(replay, job, false);
    note_use(replay, job, true);
    passage->attempt = attempt;
    passage->running = true;
    passage->started_ms = replay->now_ms;
    if (!passage->started) {
        passage->started = true;
        passage->first_start_ms = replay->now_ms;
    }
    push_end(replay, (struct replay_end){replay->now_ms + passage->left_ms, job, attempt});
    acre_sched_dispatched(replay->sched, (uint64_t)job + 1, attempt, replay->now_ms);
    acre_sched_started(replay->sched, (uint64_t)job + 1, attempt, replay->now_ms);
}

static void end_run(struct replay *replay, uint32_t job, enum acre_exit_kind kind, int code) {
    struct passage *passage = &replay->passages[job];
    uint64_t ran_ms = replay->now_ms - passage->started_ms;
    passage->left_ms -= ACRE_MIN(ran_ms, passage->left_ms);
    passage->running = false;
    note_use(replay, job, false);
    struct acre_job_exit exit = {
        .kind = kind, .code = code, .peak_gpu_mib = ACRE_UNKNOWN, .gpu_use_milli = UINT32_MAX};
    acre_sched_exited(replay->sched, (uint64_t)job + 1, passage->attempt, &exit, replay->now_ms);
}

/* Carry out what the scheduler wants; false when that was nothing. */
static bool act(struct replay *replay) {
    bool any = replay->action_count > 0;
    for (uint32_t i = 0; i < replay->action_count; i++) { /* grows while it is walked */
        struct acre_sched_action action = replay->actions[i];
        uint32_t job = (uint32_t)(action.job - 1);
        switch (action.kind) {
        case ACRE_ACTION_START:
            start_run(replay, job, action.attempt);
            break;
        case ACRE_ACTION_TERMINATE:
        case ACRE_ACTION_KILL:
            if (replay->passages[job].running && replay->passages[job].attempt == action.attempt) {
                end_run(replay, job, ACRE_EXIT_SIGNAL, 15);
            }
            break;
        case ACRE_ACTION_CHECKPOINT:
        case ACRE_ACTION_FORGET:
            break;
        }
    }
    replay->action_count = 0;
    for (uint32_t i = 0; i < replay->ended_count; i++) {
        acre_sched_drop(replay->sched, (uint64_t)replay->ended[i] + 1);
    }
    replay->ended_count = 0;
    return any;
}

/* The largest part of `gpus` that is equal on every member and fits a node. */
static uint32_t member_gpus(uint32_t gpus, uint32_t per_node) {
    for (uint32_t each = ACRE_MIN(gpus, per_node); each > 1; each--) {
        if (gpus % each == 0) {
            return each;
        }
    }
    return 1;
}

/* Trace jobs have no priority: one in ten is high, two in ten are low, by their number. */
static enum acre_job_priority priority_of(uint32_t job) {
    uint64_t draw = acre_hash_bytes(&job, sizeof(job)) % 10;
    return draw == 0 ? ACRE_PRIORITY_HIGH : draw <= 2 ? ACRE_PRIORITY_LOW : ACRE_PRIORITY_NORMAL;
}

static uint64_t estimate_of(const struct replay *replay, uint32_t job) {
    uint64_t duration_ms = ACRE_MAX(replay->trace->jobs[job].duration_ms, UINT64_C(1));
    uint64_t salt[2] = {job, 1};
    switch (replay->options->estimates) {
    case ACRE_REPLAY_TRUE:
        return duration_ms;
    case ACRE_REPLAY_ROUGH:
        return duration_ms * (1000 + acre_hash_bytes(salt, sizeof(salt)) % 4001) / 1000;
    case ACRE_REPLAY_NONE:
        return 0;
    }
    return 0;
}

static void submit(struct replay *replay, uint32_t job) {
    const struct trace_job *record = &replay->trace->jobs[job];
    uint32_t each = member_gpus(record->gpus, replay->options->gpus_per_node);
    uint32_t cluster = replay->clusters[record->cluster];
    struct acre_job_spec spec = {
        .id = (uint64_t)job + 1,
        .user = cluster,
        .project = cluster,
        .request = {.replicas = record->gpus / each, .gpus = each, .milli = 1000},
        .priority = priority_of(job),
        .estimate_ms = estimate_of(replay, job),
    };
    if (acre_sched_submit(replay->sched, &spec, replay->now_ms, NULL) < 0) {
        replay->passages[job].refused = true;
        replay->result->never++;
    } else {
        note_wait(replay, job, true);
    }
}

/* What a job that has to wait is told when it comes. With long queues that is most of the work, so
 * some are asked for all. */
static void ask_when(struct replay *replay, uint32_t job) {
    struct passage *passage = &replay->passages[job];
    struct acre_when when;
    if (job % ASKED_EVERY == 0 && !passage->started && !passage->refused &&
        acre_sched_when(replay->sched, (uint64_t)job + 1, replay->now_ms, &when, NULL) == 0 &&
        when.known) {
        passage->eta_ms = when.start_ms;
        passage->eta_earliest_ms = when.earliest_ms;
        passage->eta_latest_ms = when.latest_ms;
    }
}

static uint64_t last_submit_ms(const struct replay *replay) {
    return replay->trace->jobs[replay->trace->count - 1].submit_ms;
}

static void move_to(struct replay *replay, uint64_t now_ms) {
    uint64_t first_ms = replay->trace->jobs[0].submit_ms, last_ms = last_submit_ms(replay);
    fairness_pass(replay->fairness, now_ms - replay->now_ms);
    if (replay->now_ms < last_ms) {
        uint64_t until_ms = ACRE_MIN(now_ms, last_ms);
        replay->used_gpu_ms += (double)replay->held_gpus * (double)(until_ms - replay->now_ms);
    }
    double gpus = (double)replay->options->nodes * replay->options->gpus_per_node;
    while (replay->curve_at < ACRE_REPLAY_CURVE &&
           first_ms + (last_ms - first_ms) * replay->curve_at / ACRE_REPLAY_CURVE <= now_ms) {
        replay->result->waiting_curve[replay->curve_at++] = (double)replay->waiting_gpus / gpus;
    }
    replay->now_ms = now_ms;
}

/* The next moment at which something happens; UINT64_MAX when nothing is left. */
static uint64_t next_moment(struct replay *replay) {
    while (replay->end_count > 0 && is_stale(replay, &replay->ends[0])) {
        pop_end(replay);
    }
    bool over = replay->end_count == 0 && replay->next_submit == replay->trace->count &&
                replay->waiting_gpus == 0;
    uint64_t at_ms = over ? UINT64_MAX : acre_sched_next_ms(replay->sched);
    if (replay->end_count > 0) {
        at_ms = ACRE_MIN(at_ms, replay->ends[0].at_ms);
    }
    if (replay->next_submit < replay->trace->count) {
        at_ms = ACRE_MIN(at_ms, replay->trace->jobs[replay->next_submit].submit_ms);
    }
    return at_ms;
}

static void run_moment(struct replay *replay) {
    while (replay->end_count > 0 && replay->ends[0].at_ms <= replay->now_ms) {
        struct replay_end end = pop_end(replay);
        if (!is_stale(replay, &end)) {
            end_run(replay, end.job, ACRE_EXIT_CODE, 0);
        }
    }
    uint32_t first = replay->next_submit;
    while (replay->next_submit < replay->trace->count &&
           replay->trace->jobs[replay->next_submit].submit_ms <= replay->now_ms) {
        submit(replay, replay->next_submit++);
    }
    do { /* what was stopped to make room lets others in at the same moment */
        acre_sched_pass(replay->sched, replay->now_ms, 0);
        replay->result->passes++;
    } while (act(replay));
    for (uint32_t job = first; job < replay->next_submit; job++) {
        ask_when(replay, job);
    }
}

static void run_all(struct replay *replay) {
    uint64_t at_ms;
    while ((at_ms = next_moment(replay)) != UINT64_MAX) {
        move_to(replay, ACRE_MAX(at_ms, replay->now_ms));
        run_moment(replay);
        if (replay->options->progress != NULL) {
            replay->options->progress(replay->options->context, replay->next_submit,
                                      replay->trace->count);
        }
    }
}

/* --- what came of it ------------------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_part(const double *sorted, uint32_t count, double part) {
    return count == 0 ? 0 : sorted[ACRE_MIN((uint32_t)(part * count), count - 1)];
}

static struct acre_replay_times times_of(double *values, uint32_t count) {
    struct acre_replay_times times = {0};
    qsort(values, count, sizeof(*values), compare_doubles);
    for (uint32_t i = 0; i < count; i++) {
        times.mean_s += values[i] / count;
    }
    times.p50_s = at_part(values, count, 0.5);
    times.p99_s = at_part(values, count, 0.99);
    times.max_s = at_part(values, count, 1);
    return times;
}

static void measure_times(struct replay *replay, double *values) {
    struct acre_replay_result *result = replay->result;
    uint32_t count = 0;
    double longest_s = -1;
    for (uint32_t i = 0; i < replay->trace->count; i++) {
        const struct passage *passage = &replay->passages[i];
        if (passage->refused) {
            continue;
        }
        const struct trace_job *record = &replay->trace->jobs[i];
        double wait_s = (double)(passage->first_start_ms - record->submit_ms) / 1000;
        if (wait_s > longest_s) {
            longest_s = wait_s;
            acre_str_copy(result->longest_wait, sizeof(result->longest_wait),
                          acre_str_from(acre_names_text(replay->trace->names, record->cluster)));
        }
        values[count++] = wait_s;
    }
    result->jobs = count;
    result->wait = times_of(values, count);
    count = 0;
    for (uint32_t i = 0; i < replay->trace->count; i++) {
        if (!replay->passages[i].refused) {
            values[count++] =
                (double)(replay->passages[i].ended_ms - replay->trace->jobs[i].submit_ms) / 1000;
        }
    }
    result->completion = times_of(values, count);
}

static void measure_slowdown(struct replay *replay) {
    uint32_t clusters = acre_names_count(replay->trace->names);
    double *sums = acre_calloc(clusters, sizeof(*sums));
    double *counts = acre_calloc(clusters, sizeof(*counts));
    for (uint32_t i = 0; i < replay->trace->count; i++) {
        const struct trace_job *record = &replay->trace->jobs[i];
        if (!replay->passages[i].refused) {
            double took_ms = (double)(replay->passages[i].ended_ms - record->submit_ms);
            sums[record->cluster - 1] += took_ms / ACRE_MAX((double)record->duration_ms, 60000.0);
            counts[record->cluster - 1]++;
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < clusters; i++) {
        if (counts[i] > 0) {
            sums[count++] = sums[i] / counts[i];
        }
    }
    replay->result->jain_slowdown = jain_index(sums, count);
    free(sums);
    free(counts);
}

static void measure_estimates(struct replay *replay, double *values) {
    struct acre_replay_result *result = replay->result;
    uint32_t count = 0, inside = 0;
    double sum_s = 0;
    for (uint32_t i = 0; i < replay->trace->count; i++) {
        const struct passage *passage = &replay->passages[i];
        if (passage->eta_ms != 0 && passage->started) {
            double error_s = ((double)passage->first_start_ms - (double)passage->eta_ms) / 1000;
            sum_s += error_s;
            values[count++] = error_s < 0 ? -error_s : error_s;
            inside += passage->first_start_ms >= passage->eta_earliest_ms &&
                      passage->first_start_ms <= passage->eta_latest_ms;
        }
    }
    qsort(values, count, sizeof(*values), compare_doubles);
    result->estimates = count;
    result->eta_median_abs_s = at_part(values, count, 0.5);
    result->eta_p90_abs_s = at_part(values, count, 0.9);
    result->eta_mean_s = count > 0 ? sum_s / count : 0;
    result->eta_inside = count > 0 ? (double)inside / count : 0;
}

static void measure(struct replay *replay) {
    const struct acre_job_trace *trace = replay->trace;
    double *values = acre_calloc(trace->count, sizeof(*values));
    measure_times(replay, values);
    measure_estimates(replay, values);
    measure_slowdown(replay);
    double asked = 0;
    for (uint32_t i = 0; i < trace->count; i++) {
        asked += (double)trace->jobs[i].gpus * (double)trace->jobs[i].duration_ms;
    }
    double span_ms = (double)(last_submit_ms(replay) - trace->jobs[0].submit_ms);
    double there = span_ms * replay->options->nodes * replay->options->gpus_per_node;
    replay->result->load = there > 0 ? asked / there : 0;
    replay->result->use = there > 0 ? replay->used_gpu_ms / there : 0;
    replay->result->makespan_days = (double)(replay->now_ms - trace->jobs[0].submit_ms) / 86400e3;
    replay->result->jain = fairness_jain(replay->fairness);
    free(values);
}

/* --- the cluster ---------------------------------------------------------------------------- */

static void add_nodes(struct acre_ledger *ledger, const struct acre_replay_options *options) {
    for (uint32_t n = 0; n < options->nodes; n++) {
        struct acre_device_spec devices[64] = {0};
        char ids[64][32], name[32];
        for (uint32_t d = 0; d < options->gpus_per_node; d++) {
            snprintf(ids[d], sizeof(ids[d]), "sim:%u/%u", n, d);
            devices[d] = (struct acre_device_spec){.id = ids[d], .model = "GPU"};
        }
        snprintf(name, sizeof(name), "node-%u", n);
        struct acre_node_spec spec = {
            .name = name,
            .cpu_milli = 1000,
            .ram_mib = 1,
            .devices = devices,
            .device_count = options->gpus_per_node,
        };
        uint32_t index;
        int r = acre_ledger_add_node(ledger, &spec, &index, NULL);
        ACRE_ASSERT(r == 0);
    }
}

static void set_up(struct replay *replay, const struct acre_job_trace *trace,
                   const struct acre_replay_options *options, struct acre_replay_result *result) {
    uint32_t clusters = acre_names_count(trace->names);
    *replay = (struct replay){
        .trace = trace,
        .options = options,
        .result = result,
        .ledger = acre_ledger_create(&(struct acre_ledger_options){0}),
        .clusters = acre_calloc((size_t)clusters + 1, sizeof(uint32_t)),
        .passages = acre_calloc(trace->count, sizeof(struct passage)),
        .fairness = fairness_create(clusters, (uint64_t)options->nodes * options->gpus_per_node),
        .now_ms = trace->jobs[0].submit_ms,
    };
    add_nodes(replay->ledger, options);
    for (uint32_t i = 1; i <= clusters; i++) {
        replay->clusters[i] = acre_names_intern(acre_ledger_names(replay->ledger),
                                                acre_str_from(acre_names_text(trace->names, i)));
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        replay->passages[i].left_ms = trace->jobs[i].duration_ms;
    }
    struct acre_policy policy = *acre_policy_default();
    policy.kind = options->policy->kind;
    policy.backfill = options->policy->backfill;
    policy.preemption = options->policy->preemption;
    policy.idle = ACRE_IDLE_NEVER;
    replay->sched = acre_sched_create(&(struct acre_sched_options){
        .ledger = replay->ledger,
        .policy = &policy,
        .event = on_event,
        .action = on_action,
        .context = replay,
    });
}

static void tear_down(struct replay *replay) {
    acre_sched_destroy(replay->sched);
    acre_ledger_destroy(replay->ledger);
    fairness_destroy(replay->fairness);
    free(replay->clusters);
    free(replay->passages);
    free(replay->ends);
    free(replay->ended);
    free(replay->actions);
    free(replay);
}

int acre_replay_run(const struct acre_job_trace *trace, const struct acre_replay_options *options,
                    struct acre_replay_result *ret_result, struct acre_error *err) {
    if (options->nodes == 0 || options->nodes > 100000 || options->gpus_per_node == 0 ||
        options->gpus_per_node > 64) {
        return acre_fail(err, ACRE_EINVALID,
                         "nodes: invalid %ux%u; accepted: 1 to 100000 nodes of 1 to 64 GPUs",
                         options->nodes, options->gpus_per_node);
    }
    struct acre_replay_result result = {.policy = options->policy->name};
    struct replay *replay = acre_calloc(1, sizeof(*replay));
    set_up(replay, trace, options, &result);
    run_all(replay);
    measure(replay);
    tear_down(replay);
    *ret_result = result;
    return 0;
}
