/* test_engine_parts.c - the pieces of the engines that can be looked at alone: names, messages,
 * layouts, process trees, and the fake engine's faults. ENG-1. */
#include "core/file.h"
#include "core/rand.h"
#include "engine/cgroup.h"
#include "engine/descendants.h"
#include "engine/fake.h"
#include "engine/shim_wire.h"
#include "support/test.h"
#include "support/tree.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_names_are_exact(void) {
    static const struct {
        const char *name;
        bool ok;
        uint64_t job;
        uint32_t attempt;
    } rows[] = {
        {"1.1", true, 1, 1},
        {"18446744073709551615.4294967295", true, UINT64_MAX, UINT32_MAX},
        {"42.7", true, 42, 7},
        {"", false, 0, 0},
        {"1", false, 0, 0},
        {"1.", false, 0, 0},
        {".1", false, 0, 0},
        {"01.1", false, 0, 0},
        {"1.1x", false, 0, 0},
        {"1.1.mps", false, 0, 0},
        {"-1.1", false, 0, 0},
        {"+1.1", false, 0, 0},
        {" 1.1", false, 0, 0},
        {"1.4294967296", false, 0, 0},
        {"18446744073709551616.1", false, 0, 0},
        {"..", false, 0, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_run run = {0};
        char name[ACRE_RUN_NAME_MAX];
        acre_test_context("'%s'", rows[i].name);
        CHECK_EQ(run_parse(rows[i].name, &run), rows[i].ok);
        CHECK_U64(run.job, rows[i].job);
        CHECK_U64(run.attempt, rows[i].attempt);
        if (rows[i].ok) {
            CHECK_STR(run_make_name(run, name), rows[i].name);
        }
    }
}

/* ---- messages ---- */

static void encode(struct acre_buf *out) {
    static const uint32_t groups[] = {5, 6, 7};
    static const struct bpf_rule rules[] = {{'c', 3, 195, 0}};
    static const char *const arguments[] = {"sh", "-c", "", NULL};
    struct wire_job job;
    memset(&job, 0, sizeof(job));
    job.run = (struct acre_run){9, 2};
    job.groups = groups;
    job.group_count = 3;
    job.rules = rules;
    job.rule_count = 1;
    job.member_count = 2;
    job.argument_count = 3;
    job.arguments = (char **)(uintptr_t)arguments;
    job.directory = "/data";
    job.has_stdin = true;
    job.stdin_text = "in";
    job.stdin_bytes = 2;
    struct acre_buf environment[2];
    acre_buf_init(&environment[0], 100);
    acre_buf_init(&environment[1], 100);
    acre_buf_append(&environment[0], "A=1\0B=", 7);
    job.common = (char[]){"C=3\0B=2\0BB="};
    job.common_bytes = sizeof("C=3\0B=2\0BB=");
    CHECK_EQ(wire_encode(&job, environment, out, NULL), 0);
    acre_buf_finish(&environment[0]);
    acre_buf_finish(&environment[1]);
}

static void a_start_arrives_as_it_was(void) {
    struct acre_buf out;
    acre_buf_init(&out, 1 << 16);
    encode(&out);
    struct wire_job job;
    REQUIRE_EQ(wire_decode(out.data, out.length, &job, NULL), 0);
    CHECK_U64(job.run.job, 9);
    CHECK_U64(job.groups[2], 7);
    CHECK_U64(job.rules[0].major, 195);
    static const char *const expected[2][5] = {{"A=1", "B=", "C=3", "BB="}, {"C=3", "B=2", "BB="}};
    for (uint32_t member = 0; member < 2; member++) {
        char **environment = wire_environment(&job, member);
        size_t count = 0;
        for (; expected[member][count] != NULL && environment[count] != NULL; count++) {
            CHECK_STR(environment[count], expected[member][count]);
        }
        CHECK(expected[member][count] == NULL && environment[count] == NULL);
    }
    CHECK_STR(job.arguments[1], "-c");
    CHECK_STR(job.arguments[2], "");
    CHECK(job.arguments[3] == NULL);
    CHECK_STR(job.directory, "/data");
    CHECK_EQ(memcmp(job.stdin_text, "in", 2), 0);
    wire_job_finish(&job);
    acre_buf_finish(&out);
}

/* Cut anywhere, or one byte longer: refused, and nothing read beyond the end (sanitizers). */
static void a_damaged_start_is_refused(void) {
    struct acre_buf out;
    acre_buf_init(&out, 1 << 16);
    encode(&out);
    struct wire_job job;
    for (size_t length = 0; length < out.length; length++) {
        char *part = acre_calloc(1, ACRE_MAX(length, (size_t)1));
        memcpy(part, out.data, length);
        acre_test_context("%zu of %zu bytes", length, out.length);
        CHECK_EQ(wire_decode(part, length, &job, NULL), ACRE_ECORRUPT);
        free(part);
    }
    struct acre_rand rand;
    acre_rand_seed(&rand, 7);
    for (int i = 0; i < 2000; i++) { /* any answer, but no fault */
        struct acre_buf copy;
        acre_buf_init(&copy, 1 << 16);
        acre_buf_append(&copy, out.data, out.length);
        copy.data[acre_rand_below(&rand, copy.length)] = (char)acre_rand_next(&rand);
        if (wire_decode(copy.data, copy.length, &job, NULL) == 0) {
            (void)wire_environment(&job, job.member_count - 1);
            wire_job_finish(&job);
        }
        acre_buf_finish(&copy);
    }
    struct acre_buf small;
    acre_buf_init(&small, 100);
    struct acre_error err = {0};
    struct wire_job zero = {.directory = ""};
    CHECK_EQ(wire_encode(&zero, NULL, &small, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "command, environment and input together are longer than 100 bytes");
    acre_buf_finish(&small);
    acre_buf_finish(&out);
}

static void a_fact_is_whole_or_it_is_none(void) {
    struct fact fact;
    memset(&fact, 0, sizeof(fact));
    CHECK(!fact_is_whole(&fact));
    fact.run.job = 5;
    fact_seal(&fact);
    CHECK(fact_is_whole(&fact));
    for (size_t i = 0; i < sizeof(fact); i++) {
        struct fact damaged = fact;
        ((char *)&damaged)[i] ^= 1;
        CHECK(!fact_is_whole(&damaged));
    }
}

/* ---- layouts ---- */

static void layouts_are_told_apart(void) {
    static const struct {
        const char *mounts; /* @: the tree */
        enum cgroup_layout layout;
        const char *described;
    } rows[] = {
        {"", ACRE_CGROUP_NONE, "processes: NOT limited"},
        {"30 1 0:26 / @/u rw - cgroup2 cgroup2 rw\n", ACRE_CGROUP_V2, "cgroups: v2"},
        {"30 1 0:26 / @/m rw shared:9 - cgroup cgroup rw,memory\n", ACRE_CGROUP_V1, "RAM: limited"},
        {"30 1 0:26 / @/c rw master:1 shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
         "31 1 0:26 / @/u rw - cgroup2 cgroup2 rw,nsdelegate\n",
         ACRE_CGROUP_HYBRID, "CPU: limited"},
        {"30 1 0:26 / @/none rw - cgroup2 cgroup2 rw\n", ACRE_CGROUP_NONE, "cgroups: none"},
        {"30 1 0:26 / @/u rw - ext4 /dev/x rw,cpu,memory\ngarbage\n 1 2\n", ACRE_CGROUP_NONE,
         "devices: NOT filtered"},
        {"30 1 0:26 / @/m rw - cgroup cgroup rw,cpuset,name=systemd\n", ACRE_CGROUP_NONE,
         "RAM: NOT limited"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct tree tree = tree_create(NULL);
        acre_test_context("row %zu", i);
        tree_make_directory(&tree, "u");
        tree_make_directory(&tree, "m");
        tree_make_directory(&tree, "c");
        struct acre_buf mounts;
        acre_buf_init(&mounts, 1024);
        for (const char *at = rows[i].mounts; *at != '\0'; at++) {
            *at == '@' ? acre_buf_puts(&mounts, tree.root) : acre_buf_putc(&mounts, *at);
        }
        tree_put(&tree, "mountinfo", mounts.data);
        acre_buf_finish(&mounts);
        struct cgroup cgroup;
        cgroup_open(tree_path(&tree, "mountinfo"), "acre-x", &cgroup);
        CHECK_EQ((int)cgroup.layout, (int)rows[i].layout);
        struct acre_buf out;
        acre_buf_init(&out, 4096);
        cgroup_describe(&cgroup, &out);
        CHECK_HAS(out.data, rows[i].described);
        acre_buf_finish(&out);
        cgroup_close(&cgroup, 0);
        tree_erase(&tree);
    }
}

/* A limit that the kernel does not take is an error with its file, and leaves nothing. */
static void a_refused_limit_is_told(void) {
    struct tree tree = tree_create(NULL);
    tree_make_directory(&tree, "m");
    char text[256];
    snprintf(text, sizeof(text), "30 1 0:26 / %s/m rw - cgroup cgroup rw,memory\n", tree.root);
    tree_put(&tree, "mountinfo", text);
    struct cgroup cgroup;
    cgroup_open(tree_path(&tree, "mountinfo"), "acre-x", &cgroup);
    struct cgroup_limits limits = {.ram_mib = 64, .pids_max = 10};
    struct cgroup_run group;
    struct acre_error err = {0};
    CHECK_EQ(cgroup_make(&cgroup, (struct acre_run){1, 1}, &limits, &group, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "1.1/memory.limit_in_bytes = 67108864");
    CHECK(access(tree_path(&tree, "m/acre-x/1.1"), F_OK) != 0);
    tree_erase(&tree);
}

/* All runs together leave half of the processes that are possible here. */
static void processes_of_all_jobs_are_limited(void) {
    static const struct {
        const char *mount, *outer, *expected;
    } rows[] = {
        {"cgroup cgroup rw,pids", "1000\n", "500"},
        {"cgroup2 cgroup2 rw", "1000\n", "500"},
        {"cgroup cgroup rw,pids", "max\n", NULL}, /* the machine's */
    };
    static const char *const files[] = {
        "g/cgroup.subtree_control", "g/acre-x/cgroup.subtree_control",
        "g/acre-x/run/cgroup.subtree_control", "g/acre-x/plain/cgroup.subtree_control",
        "g/acre-x/pids.max"};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct tree tree = tree_create(NULL);
        char text[256], most[64], shown[96];
        for (size_t j = 0; j < ACRE_COUNT(files); j++) {
            tree_put(&tree, files[j], "");
        }
        tree_put(&tree, "g/pids.max", rows[i].outer);
        snprintf(text, sizeof(text), "30 1 0:26 / %s/g rw - %s\n", tree.root, rows[i].mount);
        tree_put(&tree, "mountinfo", text);
        struct cgroup cgroup;
        cgroup_open(tree_path(&tree, "mountinfo"), "acre-x", &cgroup);
        acre_file_peek(tree_path(&tree, "g/acre-x/pids.max"), most, sizeof(most));
        uint64_t machine =
            strtoull(acre_file_peek("/proc/sys/kernel/pid_max", text, sizeof(text)), NULL, 10);
        if (rows[i].expected != NULL) {
            CHECK_STR(most, rows[i].expected);
        } else {
            CHECK(strtoull(most, NULL, 10) > 0 && strtoull(most, NULL, 10) <= machine / 2);
        }
        struct acre_buf out;
        acre_buf_init(&out, 4096);
        cgroup_describe(&cgroup, &out);
        snprintf(shown, sizeof(shown), "processes of all jobs: at most %s\n", most);
        CHECK_HAS(out.data, shown);
        acre_buf_finish(&out);
        tree_erase(&tree);
    }
}

/* ---- trees ---- */

static void descendants_are_found_and_killed(void) {
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; i++) {
            if (fork() == 0) {
                setsid();
                fork();
                (void)!write(ends[1], "x", 1);
                pause();
                _exit(0);
            }
        }
        close(ends[1]);
        pause();
        _exit(0);
    }
    close(ends[1]);
    for (char byte, count = 0; count < 6; count++) {
        REQUIRE_EQ(read(ends[0], &byte, 1), 1);
    }
    int64_t pids[16];
    CHECK_U64(descendants_find(child, pids, 16), 6);
    CHECK_U64(descendants_find(getpid(), pids, 2), 7); /* counts on when the room is used up */
    CHECK_U64(descendants_find(999999999, pids, 16), 0);
    descendants_kill(child);
    char end;
    CHECK_EQ(read(ends[0], &end, 1), 0);             /* nobody has the other end any more */
    while (descendants_find(child, pids, 16) != 0) { /* files are closed before the end is seen */
        acre_test_rest();
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- the fake's faults ---- */

struct told {
    uint32_t started[64], exited[64], wrong;
    enum run_ending ending[64];
};

static void on_started(void *context, struct acre_run run, uint64_t now_ms, int64_t pid) {
    struct told *told = context;
    told->started[run.job]++;
    told->wrong += pid <= 0 || now_ms < 1000;
}

static void on_exited(void *context, struct acre_run run, const struct acre_run_result *result) {
    struct told *told = context;
    told->exited[run.job]++;
    told->ending[run.job] = result->ending;
    bool began = result->ending == ACRE_RUN_EXITED;
    told->wrong += began && told->started[run.job] == 0; /* the beginning comes first */
}

static void plan(void *context, const struct acre_run_spec *spec, struct fake_plan *ret_plan) {
    (void)context;
    ret_plan->start_ms = spec->run.job % 7;
    ret_plan->run_ms = 10 * spec->run.job;
}

static void start_all(struct fake_world *world, struct told *told, void **ret_engine) {
    struct acre_engine_sink sink = {.started = on_started, .exited = on_exited, .context = told};
    struct fake_options fake = {.world = world};
    struct acre_engine_options options = {.own = &fake};
    struct acre_error err = {0};
    REQUIRE_EQ(acre_engine_fake.open(&options, NULL, &sink, ret_engine, &err), 0);
    void *second;
    CHECK_EQ(acre_engine_fake.open(&options, NULL, &sink, &second, &err), ACRE_ECONFLICT);
    static const char *const argv[] = {"x", NULL};
    for (uint64_t job = 1; job < 64; job++) {
        struct acre_run_spec spec = {.run = {job, 1}, .argv = argv, .members = 1};
        CHECK_EQ(acre_engine_fake.start(*ret_engine, &spec, NULL), 0);
    }
}

static void drain(struct fake_world *world) {
    for (uint64_t next_ms; (next_ms = fake_world_next_ms(world)) != UINT64_MAX;) {
        fake_world_advance(world, next_ms);
    }
}

/* Whatever is lost, late or repeated: asking again (adopt) gives every run its one end. */
static void faults_come_by_seed_and_asking_again_repairs_them(void) {
    for (uint64_t seed = 1; seed <= 50; seed++) {
        acre_test_context("seed %" PRIu64, seed);
        struct fake_world_options options = {
            .seed = seed,
            .now_ms = 1000,
            .plan = plan,
            .faults = {.lost_milli = 300,
                       .late_milli = 300,
                       .late_ms = 100,
                       .repeated_milli = 300,
                       .vanished_milli = 100,
                       .refused_milli = 100},
        };
        struct fake_world *world = fake_world_create(&options);
        struct told told = {0};
        void *engine = NULL;
        start_all(world, &told, &engine);
        fake_world_advance(world, 1200); /* some run, some have ended */
        CHECK(fake_world_running(world) > 0);
        acre_engine_fake.close(engine);
        drain(world);
        CHECK_U64(fake_world_running(world), 0);
        uint64_t began = fake_world_began(world);
        memset(&told, 0, sizeof(told));
        start_all(world, &told, &engine); /* a restart repeats what it is not sure of */
        uint32_t ended = 0;
        for (int round = 0; round < 100 && ended < 63; round++) {
            ended = 0;
            for (uint64_t job = 1; job < 64; job++) {
                if (told.exited[job] == 0) {
                    acre_engine_fake.adopt(engine, (struct acre_run){job, 1});
                }
                ended += told.exited[job] > 0;
            }
            drain(world);
        }
        CHECK_U64(ended, 63);
        CHECK_U64(fake_world_began(world), began); /* nothing a second time */
        CHECK_U64(told.wrong, 0);
        acre_engine_fake.close(engine);
        fake_world_destroy(world);
    }
}

static void the_same_seed_tells_the_same_story(void) {
    struct told told[2] = {0};
    for (int i = 0; i < 2; i++) {
        struct fake_world_options options = {
            .seed = 11,
            .now_ms = 1000,
            .plan = plan,
            .faults = {.lost_milli = 200, .repeated_milli = 200, .vanished_milli = 200}};
        struct fake_world *world = fake_world_create(&options);
        void *engine = NULL;
        start_all(world, &told[i], &engine);
        drain(world);
        acre_engine_fake.close(engine);
        fake_world_destroy(world);
    }
    CHECK_EQ(memcmp(&told[0], &told[1], sizeof(told[0])), 0);
    uint32_t lost = 0;
    for (int job = 1; job < 64; job++) {
        lost += told[0].exited[job] > 0 && told[0].ending[job] == ACRE_RUN_LOST;
    }
    CHECK(lost > 3 && lost < 30);
}

static const struct acre_test tests[] = {
    {"run_names_are_exact", run_names_are_exact, 0},
    {"a_start_arrives_as_it_was", a_start_arrives_as_it_was, 0},
    {"a_damaged_start_is_refused", a_damaged_start_is_refused, 0},
    {"a_fact_is_whole_or_it_is_none", a_fact_is_whole_or_it_is_none, 0},
    {"layouts_are_told_apart", layouts_are_told_apart, 0},
    {"a_refused_limit_is_told", a_refused_limit_is_told, 0},
    {"processes_of_all_jobs_are_limited", processes_of_all_jobs_are_limited, 0},
    {"descendants_are_found_and_killed", descendants_are_found_and_killed, 0},
    {"faults_come_by_seed_and_asking_again_repairs_them",
     faults_come_by_seed_and_asking_again_repairs_them, 0},
    {"the_same_seed_tells_the_same_story", the_same_seed_tells_the_same_story, 0},
};

ACRE_TEST_MAIN(tests)
