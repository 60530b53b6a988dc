/* fake.c - a table of runs and a heap of what happens when.
 *
 * An event is a run's beginning, its end, or a fact to report. Beginning and end are of the
 * world and happen with or without an engine; telling needs one, and what is due while there is
 * none is dropped: adopt asks for it. A run whose end was moved (signals) leaves its old event in
 * the heap; each run knows the number of the one that counts. Events of the same time go in the
 * order they were made, so a seed gives the same story every time. */
#include "engine/fake.h"

#include "core/clock.h"
#include "core/heap.h"
#include "core/rand.h"
#include "core/str.h"
#include "engine/machine.h"
#include "engine/runs.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_STARTED = 1, TELL_EXITED = 2 };

enum event_kind { BEGIN, END, TELL };

struct fake_event {
    uint64_t due_ms, number;
    struct acre_run run;
    enum event_kind kind;
    int what; /* TELL */
};

struct fake_run {
    struct acre_run run; /* first: runs.h */
    struct fake_plan plan;
    struct acre_run_result result;
    uint64_t limit_ms, grace_ms;
    uint64_t end_number, end_ms; /* of the END event that counts; 0: none yet */
    int64_t pid;
    bool began, ended, wanted, told; /* told: `started`, to the engine that is open */
};

struct fake_world {
    struct fake_world_options options;
    struct acre_rand rand;
    uint64_t now_ms, numbers, began, running;
    struct runs runs; /* struct fake_run */
    struct fake_event *heap;
    uint32_t event_count, event_capacity;
    struct fake *engine; /* NULL: none open */
};

struct fake {
    struct fake_world *world;
    struct acre_loop *loop;
    bool owns_world;
    struct acre_engine_sink sink;
    struct acre_timer *timer;
};

/* ---- the heap: the earliest event first ---- */

static bool is_before(const void *a, const void *b, const void *context) {
    (void)context;
    const struct fake_event *x = a, *y = b;
    return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->number < y->number;
}

static const struct acre_heap_kind by_time = {sizeof(struct fake_event), is_before, NULL};

static uint64_t push(struct fake_world *world, struct fake_event event) {
    world->heap =
        acre_grow(world->heap, world->event_count, &world->event_capacity, sizeof(*world->heap));
    event.number = ++world->numbers;
    acre_heap_push(&by_time, world->heap, &world->event_count, &event, NULL);
    return event.number;
}

static struct fake_event pop(struct fake_world *world) {
    struct fake_event first = world->heap[0];
    acre_heap_remove_first(&by_time, world->heap, &world->event_count, NULL);
    return first;
}

/* ---- runs ---- */

static struct fake_run *find_run(const struct fake_world *world, struct acre_run run) {
    return runs_find(&world->runs, run);
}

static void remove_run(struct fake_world *world, struct acre_run token) {
    struct fake_run *run = runs_remove(&world->runs, token);
    if (run != NULL) {
        world->running -= run->began && !run->ended;
        free(run);
    }
}

/* ---- what happens ---- */

static bool strikes(struct fake_world *world, uint32_t milli) {
    return milli > 0 && acre_rand_below(&world->rand, 1000) < milli;
}

static void reset_timer(struct fake *self);

static void tell(struct fake_world *world, struct acre_run run, int what) {
    const struct fake_faults *faults = &world->options.faults;
    if (strikes(world, faults->lost_milli)) {
        return;
    }
    uint64_t late_ms = faults->late_ms > 0 && strikes(world, faults->late_milli)
                           ? acre_rand_below(&world->rand, faults->late_ms + 1)
                           : 0;
    struct fake_event event = {
        .due_ms = world->now_ms + late_ms, .run = run, .kind = TELL, .what = what};
    push(world, event);
    if (strikes(world, faults->repeated_milli)) {
        push(world, event);
    }
}

static void end_at(struct fake_world *world, struct fake_run *run, uint64_t at_ms,
                   enum run_ending ending, int code) {
    run->result.ending = ending;
    run->result.code = code;
    run->end_ms = at_ms;
    run->end_number =
        push(world, (struct fake_event){.due_ms = at_ms, .run = run->run, .kind = END});
}

static void begin(struct fake_world *world, struct fake_run *run) {
    const struct fake_plan *plan = &run->plan;
    if (run->ended) {
        return; /* killed before */
    }
    if (strikes(world, world->options.faults.refused_milli)) {
        run->plan.ending = ACRE_RUN_NOT_STARTED;
        snprintf(run->plan.text, sizeof(run->plan.text), "refused, as the seed decided");
    }
    if (plan->ending == ACRE_RUN_NOT_STARTED) {
        end_at(world, run, world->now_ms, ACRE_RUN_NOT_STARTED, 0);
        snprintf(run->result.text, sizeof(run->result.text), "%s", plan->text);
        return;
    }
    if (strikes(world, world->options.faults.vanished_milli)) {
        end_at(world, run, world->now_ms, ACRE_RUN_LOST, 0);
        return;
    }
    run->began = true;
    world->running++;
    run->pid = (int64_t)++world->began;
    run->result.started_ms = world->now_ms;
    if (run->end_number != 0) {
        /* A signal came before it: its end is decided. */
    } else if (run->limit_ms > 0 && plan->run_ms > run->limit_ms) {
        uint64_t more_ms = ACRE_MIN(plan->term_ms, run->grace_ms);
        end_at(world, run, world->now_ms + run->limit_ms + more_ms, ACRE_RUN_TIME_LIMIT,
               plan->term_ms > run->grace_ms ? SIGKILL : SIGTERM);
    } else {
        end_at(world, run, world->now_ms + plan->run_ms, plan->ending, plan->code);
    }
    tell(world, run->run, TELL_STARTED);
}

static void end(struct fake_world *world, struct fake_run *run) {
    world->running -= run->began;
    run->ended = true;
    run->result.ended_ms = world->now_ms;
    run->result.peak_ram_mib = run->began ? run->plan.peak_ram_mib : UINT64_MAX;
    run->result.cpu_ms = run->plan.cpu_ms;
    tell(world, run->run, TELL_EXITED);
}

/* The sink may do anything: nothing is kept over its calls. */
static void deliver(struct fake_world *world, struct acre_run token, int what) {
    struct fake_run *run = find_run(world, token);
    if (world->engine == NULL || run == NULL || !run->wanted) {
        return;
    }
    struct acre_engine_sink sink = world->engine->sink;
    bool due = (what & TELL_STARTED) != 0 || !run->told; /* it comes before the end */
    if (due && run->began && sink.started != NULL) {
        run->told = true;
        sink.started(sink.context, token, run->result.started_ms, run->pid);
        run = find_run(world, token);
    }
    if (run != NULL && (what & TELL_EXITED) != 0 && run->ended && sink.exited != NULL) {
        struct acre_run_result result = run->result;
        sink.exited(sink.context, token, &result);
    }
}

uint64_t fake_world_next_ms(const struct fake_world *world) {
    return world->event_count > 0 ? ACRE_MAX(world->heap[0].due_ms, world->now_ms) : UINT64_MAX;
}

void fake_world_advance(struct fake_world *world, uint64_t now_ms) {
    while (world->event_count > 0 && world->heap[0].due_ms <= now_ms) {
        struct fake_event event = pop(world);
        world->now_ms = ACRE_MAX(world->now_ms, event.due_ms);
        struct fake_run *run = find_run(world, event.run);
        if (event.kind == TELL) {
            deliver(world, event.run, event.what);
        } else if (run != NULL && event.kind == BEGIN) {
            begin(world, run);
        } else if (run != NULL && !run->ended && run->end_number == event.number) {
            end(world, run);
        }
    }
    world->now_ms = ACRE_MAX(world->now_ms, now_ms);
}

struct fake_world *fake_world_create(const struct fake_world_options *options) {
    struct fake_world *world = acre_calloc(1, sizeof(*world));
    world->options = *options;
    world->now_ms = options->now_ms;
    acre_rand_seed(&world->rand, options->seed);
    return world;
}

void fake_world_destroy(struct fake_world *world) {
    if (world == NULL) {
        return;
    }
    ACRE_ASSERT(world->engine == NULL);
    for (uint32_t i = 0; i < world->runs.count; i++) {
        free(world->runs.all[i]);
    }
    runs_finish(&world->runs);
    free(world->heap);
    free(world);
}

uint64_t fake_world_began(const struct fake_world *world) {
    return world->began;
}

uint64_t fake_world_running(const struct fake_world *world) {
    return world->running;
}

/* ---- the engine ---- */

static void sync_time(struct fake *self) {
    if (self->loop != NULL) {
        struct acre_clock clock = acre_clock_real();
        self->world->now_ms = ACRE_MAX(self->world->now_ms, acre_clock_wall_ms(&clock));
    }
}

static void on_timer(void *context) {
    struct fake *self = context;
    self->timer = NULL;
    sync_time(self);
    fake_world_advance(self->world, self->world->now_ms);
    reset_timer(self);
}

/* With a loop: one timer, for the next event. */
static void reset_timer(struct fake *self) {
    uint64_t next_ms = fake_world_next_ms(self->world);
    if (self->loop == NULL) {
        return;
    }
    acre_timer_cancel(self->timer);
    self->timer = next_ms != UINT64_MAX ? acre_loop_timer(self->loop, next_ms - self->world->now_ms,
                                                          0, on_timer, self)
                                        : NULL;
}

/* Everything is a simulation here, so nodes can only come from files. */
static int report_nodes(struct fake *self, const struct acre_engine_options *options,
                        struct acre_error *err) {
    const struct fake_options *own = options->own;
    acre_machine_found *found = self->sink.node;
    int r = 0;
    for (uint32_t i = 0; found != NULL && own != NULL && i < own->node_count; i++) {
        found(self->sink.context, &own->nodes[i]);
    }
    for (uint32_t i = 0; found != NULL && own == NULL && i < options->sim_count && r == 0; i++) {
        r = acre_machine_simulated(options->sim[i], found, self->sink.context, err);
    }
    return r;
}

static void fake_close(void *engine) {
    struct fake *self = engine;
    acre_timer_cancel(self->timer);
    self->world->engine = NULL;
    if (self->owns_world) {
        fake_world_destroy(self->world);
    }
    free(self);
}

static int fake_open(const struct acre_engine_options *options, struct acre_loop *loop,
                     const struct acre_engine_sink *sink, void **ret_self, struct acre_error *err) {
    const struct fake_options *own = options->own;
    if (own == NULL && options->sim_count == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "engine fake: it has no nodes of its own; add some with --sim FILE");
    }
    if (own != NULL && own->world->engine != NULL) {
        return acre_fail(err, ACRE_ECONFLICT, "the world is in use by another engine");
    }
    struct fake_world_options world = {.seed = 1};
    struct fake *self = acre_calloc(1, sizeof(*self));
    *self = (struct fake){.world = own != NULL ? own->world : fake_world_create(&world),
                          .owns_world = own == NULL,
                          .loop = loop,
                          .sink = *sink};
    self->world->engine = self;
    for (uint32_t i = 0; i < self->world->runs.count; i++) {
        struct fake_run *run = (struct fake_run *)self->world->runs.all[i];
        run->wanted = run->told = false; /* until it is adopted */
    }
    sync_time(self);
    reset_timer(self);
    int r = report_nodes(self, options, err);
    if (r < 0) {
        fake_close(self);
        return r;
    }
    *ret_self = self;
    return 0;
}

void fake_join(struct fake_world *world, const struct acre_engine_node *node) {
    world->engine->sink.node(world->engine->sink.context, node);
}

void fake_lose(struct fake_world *world, const char *node, const char *why) {
    world->engine->sink.node_lost(world->engine->sink.context, node, why);
}

void fake_write(struct fake_world *world, struct acre_run run, int stream, uint64_t offset,
                const char *text) {
    world->engine->sink.output(world->engine->sink.context, run, stream, offset, text,
                               strlen(text));
}

static int fake_start(void *engine, const struct acre_run_spec *spec, struct acre_error *err) {
    struct fake *self = engine;
    struct fake_world *world = self->world;
    (void)err;
    ACRE_ASSERT(spec->members > 0 && spec->argv != NULL && spec->argv[0] != NULL);
    sync_time(self);
    struct fake_run *run = find_run(world, spec->run);
    if (run != NULL) {
        run->wanted = true;
        tell(world, spec->run, TELL_STARTED | TELL_EXITED);
        reset_timer(self);
        return 0;
    }
    run = acre_calloc(1, sizeof(*run));
    *run = (struct fake_run){
        .run = spec->run, .limit_ms = spec->limit_ms, .grace_ms = spec->grace_ms, .wanted = true};
    if (world->options.plan != NULL) {
        world->options.plan(world->options.context, spec, &run->plan);
    }
    runs_add(&world->runs, &run->run);
    push(world, (struct fake_event){
                    .due_ms = world->now_ms + run->plan.start_ms, .run = spec->run, .kind = BEGIN});
    reset_timer(self);
    return 0;
}

static int fake_signal(void *engine, struct acre_run token, enum acre_run_signal signal,
                       struct acre_error *err) {
    struct fake *self = engine;
    struct fake_run *run = find_run(self->world, token);
    if (run == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "run %" PRIu64 ".%" PRIu32 " is unknown", token.job,
                         token.attempt);
    }
    sync_time(self);
    uint64_t now_ms = self->world->now_ms;
    if (!run->ended && signal == ACRE_RUN_KILL) {
        end_at(self->world, run, now_ms, ACRE_RUN_SIGNALED, SIGKILL);
    } else if (!run->ended && signal == ACRE_RUN_TERMINATE) {
        bool kill = run->plan.term_ms > run->grace_ms;
        uint64_t at_ms = now_ms + ACRE_MIN(run->plan.term_ms, run->grace_ms);
        if (run->end_number == 0 || at_ms < run->end_ms) { /* else it ends by itself before */
            end_at(self->world, run, at_ms, ACRE_RUN_SIGNALED, kill ? SIGKILL : SIGTERM);
        }
    }
    reset_timer(self);
    return 0;
}

static void fake_adopt(void *engine, struct acre_run token) {
    struct fake *self = engine;
    struct fake_world *world = self->world;
    sync_time(self);
    struct fake_run *run = find_run(world, token);
    if (run == NULL) {
        run = acre_calloc(1, sizeof(*run));
        *run = (struct fake_run){.run = token, .ended = true};
        run->result = (struct acre_run_result){
            .ending = ACRE_RUN_LOST, .ended_ms = world->now_ms, .peak_ram_mib = UINT64_MAX};
        runs_add(&world->runs, &run->run);
    }
    run->wanted = true;
    tell(world, token, TELL_STARTED | TELL_EXITED);
    reset_timer(self);
}

static uint32_t fake_reap(void *engine) {
    struct fake *self = engine;
    uint32_t count = 0;
    for (uint32_t i = self->world->runs.count; i-- > 0;) {
        const struct fake_run *run = (const struct fake_run *)self->world->runs.all[i];
        if (!run->wanted) {
            remove_run(self->world, run->run);
            count++;
        }
    }
    return count;
}

static void fake_forget(void *engine, struct acre_run token) {
    struct fake *self = engine;
    struct fake_run *run = find_run(self->world, token);
    if (run != NULL && run->ended) {
        remove_run(self->world, token);
    }
}

static void fake_describe(void *engine, struct acre_buf *out) {
    (void)engine;
    acre_buf_puts(out, "this engine runs nothing; it only reports runs\n");
}

const struct acre_engine_driver acre_engine_fake = {
    .name = "fake",
    .what = "runs nothing; for trying out a policy or measuring the queue",
    .remembers_nodes = true,
    .open = fake_open,
    .close = fake_close,
    .start = fake_start,
    .signal = fake_signal,
    .adopt = fake_adopt,
    .reap = fake_reap,
    .forget = fake_forget,
    .describe = fake_describe,
};
