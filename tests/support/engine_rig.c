/* engine_rig.c - opens engines, collects facts, waits. */
#include "support/engine_rig.h"

#include "core/file.h"
#include "support/test.h"

#include <errno.h>
#include <ftw.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The deadline is only for what never happens: a busy machine may be slow. */
enum { DEADLINE_MS = 120000, OUTPUT_MAX = 65536, PROGRAM_MAX = 256 << 20 };

static void on_started(void *context, struct acre_run run, uint64_t now_ms, int64_t pid) {
    struct rig *rig = context;
    REQUIRE(run.job < RIG_RUNS);
    struct rig_seen *seen = &rig->seen[run.job];
    seen->started++;
    seen->in_order = seen->exited == 0 || seen->in_order;
    seen->pid = pid;
    seen->started_ms = now_ms;
    if (rig->waits_for == seen && rig->waits_for_start) {
        acre_loop_stop(rig->loop);
    }
}

static void on_exited(void *context, struct acre_run run, const struct acre_run_result *result) {
    struct rig *rig = context;
    REQUIRE(run.job < RIG_RUNS);
    struct rig_seen *seen = &rig->seen[run.job];
    seen->exited++;
    seen->in_order = seen->in_order || seen->started == 0;
    seen->result = *result;
    if (!rig->keep) {
        rig->driver->forget(rig->engine, run);
    }
    if (rig->waits_for == seen) {
        acre_loop_stop(rig->loop);
    }
}

/* What the fake makes of the scripts the tests use. */
static void plan(void *context, const struct acre_run_spec *spec, struct fake_plan *ret_plan) {
    static const struct {
        const char *script;
        struct fake_plan plan;
    } known[] = {
        {"exit 3", {.code = 3}},
        {"kill -9 $$", {.ending = ACRE_RUN_SIGNALED, .code = SIGKILL}},
        {"sleep 1000", {.run_ms = 1000000}},
        {"trap '' TERM; echo ready; while :; do sleep 1; done",
         {.run_ms = 1000000, .term_ms = 1000000}},
        {"sleep 0.3; exit 5", {.run_ms = 300, .code = 5}},
    };
    (void)context;
    const char *script = spec->argv[1] != NULL ? spec->argv[2] : "";
    for (size_t i = 0; i < ACRE_COUNT(known); i++) {
        if (strcmp(script, known[i].script) == 0) {
            *ret_plan = known[i].plan;
        }
    }
    if (spec->argv[0][0] == '/' && access(spec->argv[0], X_OK) != 0) {
        ret_plan->ending = ACRE_RUN_NOT_STARTED;
        snprintf(ret_plan->text, sizeof(ret_plan->text), "command %.40s: no such file",
                 spec->argv[0]);
    }
}

void rig_init(struct rig *rig, const struct acre_engine_driver *driver) {
    *rig = (struct rig){.driver = driver, .user = "nobody"};
    const struct passwd *me = getpwuid(geteuid());
    if (geteuid() != 0) {
        rig->user = me != NULL ? me->pw_name : "";
    }
    if (driver == &acre_engine_local && getpwnam(rig->user) == NULL) {
        acre_test_skip("there is no account '%s' to run jobs as", rig->user);
    }
    snprintf(rig->state, sizeof(rig->state), "/tmp/acre-test-%d", (int)getpid());
    snprintf(rig->cgroup, sizeof(rig->cgroup), "acre-test-%d", (int)getpid());
    rig->local = (struct local_options){
        .state_directory = rig->state, .program = ACRE_SHIM, .cgroup_name = rig->cgroup};
    struct fake_world_options world = {.plan = plan};
    rig->world = driver == &acre_engine_fake ? fake_world_create(&world) : NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_loop_create(&rig->loop, &err), 0);
}

void rig_become(struct rig *rig, uid_t user) {
    struct acre_buf program;
    snprintf(rig->shared, sizeof(rig->shared), "/tmp/acre-test-shared-XXXXXX");
    REQUIRE(mkdtemp(rig->shared) != NULL);
    snprintf(rig->program, sizeof(rig->program), "%s/acre-shim", rig->shared);
    acre_buf_init(&program, PROGRAM_MAX);
    REQUIRE_EQ(acre_file_read(ACRE_SHIM, PROGRAM_MAX, &program, NULL), 0);
    REQUIRE_EQ(acre_file_write(rig->program, program.data, program.length, NULL), 0);
    acre_buf_finish(&program);
    REQUIRE_EQ(chmod(rig->program, 0755), 0);
    REQUIRE_EQ(chmod(rig->shared, 0755), 0);
    REQUIRE_EQ(chown(rig->shared, user, (gid_t)user), 0); /* the user removes it */
    rig->local.program = rig->program;
    REQUIRE_EQ(setgroups(0, NULL), 0);
    REQUIRE_EQ(setresgid((gid_t)user, (gid_t)user, (gid_t)user), 0);
    REQUIRE_EQ(setresuid(user, user, user), 0);
}

void rig_open(struct rig *rig) {
    struct acre_error err = {0};
    struct acre_engine_sink sink = {.started = on_started, .exited = on_exited, .context = rig};
    struct fake_options fake = {.world = rig->world};
    struct acre_engine_options options = {.own = rig->world != NULL ? (const void *)&fake
                                                                    : (const void *)&rig->local};
    int r = rig->driver->open(&options, rig->loop, &sink, &rig->engine, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
}

void rig_close(struct rig *rig) {
    rig->driver->close(rig->engine);
    rig->engine = NULL;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *ftw) {
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void rig_finish(struct rig *rig) {
    if (rig->engine != NULL) {
        rig_close(rig);
    }
    acre_loop_destroy(rig->loop);
    fake_world_destroy(rig->world);
    nftw(rig->state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (rig->shared[0] != '\0') {
        nftw(rig->shared, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

struct acre_run_spec rig_spec(struct rig *rig, uint64_t job, const char *script) {
    static const char *argv[4] = {"sh", "-c"}; /* one spec at a time is enough for tests */
    argv[2] = script;
    static const char *const nodes[] = {"here", "here", "here", "here"};
    return (struct acre_run_spec){.run = {.job = job, .attempt = 1},
                                  .user = rig->user,
                                  .argv = argv,
                                  .directory = "/",
                                  .nodes = nodes,
                                  .members = 1,
                                  .grace_ms = 500};
}

void rig_start(struct rig *rig, const struct acre_run_spec *spec) {
    struct acre_error err = {0};
    REQUIRE(spec->run.job < RIG_RUNS);
    CHECK_EQ(rig->driver->start(rig->engine, spec, &err), 0);
    CHECK_STR(err.text, "");
}

void rig_run(struct rig *rig, uint64_t job, const char *script) {
    struct acre_run_spec spec = rig_spec(rig, job, script);
    rig_start(rig, &spec);
}

void rig_signal(struct rig *rig, uint64_t job, enum acre_run_signal signal) {
    struct acre_error err = {0};
    CHECK_EQ(rig->driver->signal(rig->engine, (struct acre_run){job, 1}, signal, &err), 0);
    CHECK_STR(err.text, "");
}

static void on_deadline(void *context) {
    struct rig *rig = context;
    rig->timed_out = true;
    acre_loop_stop(rig->loop);
}

static void wait_for(struct rig *rig, uint64_t job, bool start) {
    const struct rig_seen *seen = &rig->seen[job];
    if (start ? seen->started > 0 || seen->exited > 0 : seen->exited > 0) {
        return;
    }
    struct acre_timer *timer = acre_loop_timer(rig->loop, DEADLINE_MS, 0, on_deadline, rig);
    rig->waits_for = seen;
    rig->waits_for_start = start;
    acre_loop_run(rig->loop);
    rig->waits_for = NULL;
    REQUIRE(!rig->timed_out);
    acre_timer_cancel(timer);
}

const struct rig_seen *rig_wait_start(struct rig *rig, uint64_t job) {
    wait_for(rig, job, true);
    return &rig->seen[job];
}

const struct rig_seen *rig_wait_exit(struct rig *rig, uint64_t job) {
    wait_for(rig, job, false);
    return &rig->seen[job];
}

static void on_turn(void *context) {
    struct rig *rig = context;
    acre_loop_stop(rig->loop);
}

void rig_turn(struct rig *rig, uint64_t ms) {
    acre_loop_timer(rig->loop, ms, 0, on_turn, rig);
    acre_loop_run(rig->loop);
}

void rig_expect(struct rig *rig, uint64_t job, enum run_ending ending, int code) {
    const struct rig_seen *seen = rig_wait_exit(rig, job);
    CHECK_EQ((int)seen->result.ending, (int)ending);
    CHECK_EQ(seen->result.code, code);
    CHECK_EQ(seen->exited, 1);
    CHECK(seen->in_order);
}

const char *rig_output(struct rig *rig, uint64_t job, int stream) {
    static char text[OUTPUT_MAX];
    char path[256] = "";
    struct acre_error err = {0};
    int r = rig->driver->log_path(rig->engine, (struct acre_run){job, 1}, stream, path,
                                  sizeof(path), &err);
    REQUIRE_EQ(r, 0);
    FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
    size_t got = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[got] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

void rig_wait_output(struct rig *rig, uint64_t job, const char *part) {
    for (int i = 0; i < DEADLINE_MS / 5 && strstr(rig_output(rig, job, 1), part) == NULL; i++) {
        rig_turn(rig, 5);
    }
    CHECK_HAS(rig_output(rig, job, 1), part);
}
