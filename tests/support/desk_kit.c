/* desk_kit.c - wiring as in src/daemon/serve.c, without a network. */
#include "support/desk_kit.h"

#include "desk/commands.h"
#include "support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static void on_event(void *context, const struct acre_desk_event *event) {
    struct desk_kit *kit = context;
    REQUIRE(kit->event_count < KIT_EVENTS_MAX);
    kit->events[kit->event_count++] = *event;
}

static void on_trouble(void *context, const char *what, const struct acre_error *err) {
    struct desk_kit *kit = context;
    snprintf(kit->trouble, sizeof(kit->trouble), "%s: %s", what, err != NULL ? err->text : "");
    kit->troubles += err != NULL;
    kit->recoveries += err == NULL;
}

static void plan(void *context, const struct acre_run_spec *spec, struct fake_plan *to) {
    struct desk_kit *kit = context;
    *to = kit->plan;
    to->run_ms = kit->run_ms;
    if (kit->started != NULL) {
        kit->started(kit, spec);
    }
}

static void on_begin(void *context, struct acre_run run, const struct acre_run_device *devices,
                     uint32_t count) {
    struct desk_kit *kit = context;
    if (kit->begin != NULL) {
        kit->begin(kit->watcher, run, devices, count);
    }
}

static void on_end(void *context, struct acre_run run, struct acre_job_exit *exit) {
    struct desk_kit *kit = context;
    if (kit->end != NULL) {
        kit->end(kit->watcher, run, exit);
    }
}

/* The engine's context is its own; the kit that is at work is remembered here. */
static _Thread_local struct desk_kit *at_work;

static uint32_t tell_pids(void *self, struct acre_run run, int64_t *pids, uint32_t max) {
    (void)self;
    bool is_it = at_work->pid_job != 0 && run.job == at_work->pid_job && max > 0;
    if (is_it) {
        pids[0] = at_work->pids[0];
    }
    return is_it;
}

static void make_nodes(struct desk_kit *kit) {
    static const char *const names[] = {"gpu-a", "gpu-b"};
    for (uint32_t n = 0; n < KIT_NODES; n++) {
        for (uint32_t d = 0; d < KIT_DEVICES; d++) {
            snprintf(kit->ids[n][d], sizeof(kit->ids[n][d]), "sim:%s/%u", names[n], d);
            kit->devices[n][d] = (struct acre_engine_device){.id = kit->ids[n][d],
                                                             .model = "H100",
                                                             .memory_mib = 81920,
                                                             .simulated = !kit->real};
        }
        kit->nodes[n] = (struct acre_engine_node){.name = names[n],
                                                  .cpu_milli = 64000,
                                                  .ram_mib = 524288,
                                                  .devices = kit->devices[n],
                                                  .device_count = KIT_DEVICES,
                                                  .simulated = !kit->real};
    }
    kit->node_count = KIT_NODES;
}

void desk_kit_prepare(struct desk_kit *kit) {
    struct acre_error err = {0};
    if (kit->loop == NULL) {
        if (kit->on_disk) {
            snprintf(kit->folder, sizeof(kit->folder), "/tmp/acre-desk-XXXXXX");
            REQUIRE(mkdtemp(kit->folder) != NULL);
            snprintf(kit->file_url, sizeof(kit->file_url), "sqlite:%s/acre.db", kit->folder);
            kit->url = kit->file_url;
        }
        kit->clock = acre_clock_virtual(KIT_WALL_MS);
        make_nodes(kit);
        struct fake_world_options world = {.seed = 1, .plan = plan, .context = kit};
        kit->world = fake_world_create(&world);
        kit->second_world = kit->two_engines ? fake_world_create(&world) : NULL;
        REQUIRE_EQ(acre_loop_create(&kit->loop, &err), 0);
    }
}

void desk_kit_start(struct desk_kit *kit) {
    struct acre_error err = {0};
    desk_kit_prepare(kit);
    at_work = kit;
    kit->driver = acre_engine_fake;
    kit->driver.pids = tell_pids;
    kit->driver.remembers_nodes = kit->remembers_nodes;
    if (kit->alter != NULL) {
        kit->alter(&kit->driver);
    }
    struct acre_desk_options options = {.loop = kit->loop,
                                        .clock = &kit->clock,
                                        .store_url = kit->url != NULL ? kit->url : "memory:",
                                        .logs_directory = kit->logs_directory,
                                        .probe_ms = kit->slow_probe ? 0 : 5,
                                        .sink = {.event = on_event,
                                                 .begin = on_begin,
                                                 .end = on_end,
                                                 .trouble = on_trouble,
                                                 .context = kit}};
    int r = acre_desk_create(&options, &kit->desk, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    struct fake_options fake = {.world = kit->world,
                                .nodes = kit->nodes,
                                .node_count = kit->two_engines ? 1 : kit->node_count};
    struct acre_engine_options engine = {.own = &fake};
    REQUIRE_EQ(acre_desk_add_engine(kit->desk, &kit->driver, &engine, &err), 0);
    if (kit->two_engines) {
        kit->second = kit->driver;
        kit->second.name = "other";
        fake = (struct fake_options){
            .world = kit->second_world, .nodes = &kit->nodes[1], .node_count = 1};
        REQUIRE_EQ(acre_desk_add_engine(kit->desk, &kit->second, &engine, &err), 0);
    }
    r = acre_desk_load(kit->desk, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    acre_desk_start(kit->desk);
}

void desk_kit_stop(struct desk_kit *kit) {
    acre_desk_destroy(kit->desk);
    kit->desk = NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void desk_kit_finish(struct desk_kit *kit) {
    desk_kit_stop(kit);
    fake_world_destroy(kit->world);
    fake_world_destroy(kit->second_world);
    acre_loop_destroy(kit->loop);
    if (kit->on_disk) {
        nftw(kit->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

int desk_kit_submit(struct desk_kit *kit, uint32_t gpus, uint32_t count, uint64_t *ret_id,
                    struct acre_error *err) {
    struct acre_submission submission = {
        .user = "ada",
        .project = "vision",
        .spec = {.request = {.replicas = 1,
                             .gpus = gpus,
                             .milli = kit->milli != 0 ? kit->milli : 1000,
                             .mib = kit->mib},
                 .priority = ACRE_PRIORITY_NORMAL,
                 .array = count > 1 ? UINT64_MAX : 0},
        .count = count,
        .limited = kit->limited,
    };
    acre_desk_set_actor(kit->desk, "user:ada", "unix:1000");
    char text[80];
    snprintf(text, sizeof(text), "{\"command\":\"true\",\"gpus\":%u,\"share_milli\":1000}", gpus);
    return acre_desk_submit(kit->desk, &submission, acre_str_from(text), ret_id, err);
}

struct waiting {
    struct desk_kit *kit;
    bool (*is_done)(struct desk_kit *kit);
    uint32_t left;
};

static void look(void *context) {
    struct waiting *waiting = context;
    if (waiting->left-- == 0 || (waiting->is_done != NULL && waiting->is_done(waiting->kit))) {
        acre_loop_stop(waiting->kit->loop);
    }
}

static bool run(struct desk_kit *kit, bool (*is_done)(struct desk_kit *), uint32_t ms) {
    struct waiting waiting = {kit, is_done, ms};
    struct acre_timer *timer = acre_loop_timer(kit->loop, 1, 1, look, &waiting);
    acre_loop_run(kit->loop);
    acre_timer_cancel(timer);
    return is_done != NULL && is_done(kit);
}

void desk_kit_until(struct desk_kit *kit, bool (*is_done)(struct desk_kit *kit)) {
    REQUIRE(run(kit, is_done, 10000));
}

void desk_kit_turns(struct desk_kit *kit, uint32_t ms) {
    run(kit, NULL, ms);
}

uint32_t desk_kit_told(const struct desk_kit *kit, enum acre_sched_event_kind kind, uint64_t job) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kit->event_count; i++) {
        count += kit->events[i].event.kind == kind && (job == 0 || kit->events[i].event.job == job);
    }
    return count;
}

static bool read_state(void *context, const struct acre_store_job *row) {
    snprintf(context, 32, "%s", row->state);
    return false;
}

const char *desk_kit_stored(struct desk_kit *kit, uint64_t job) {
    static _Thread_local char state[32];
    snprintf(state, sizeof(state), "-");
    acre_store_job(acre_desk_store(kit->desk), job, read_state, state, NULL);
    return state;
}
