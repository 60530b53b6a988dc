/* test_engine_isolation.c - what a job cannot do to others, to the machine, or to its end.
 * SEC-2: jobs run as the submitting user, without new privileges, inside cgroup limits, with their
 * own process tree killed as a whole. Needs root; over each cgroup layout that this machine can
 * show. */
#include "core/file.h"
#include "core/str.h"
#include "engine/sandbox.h"
#include "support/engine_rig.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a short shell script needs; the sanitizer's own memory is charged to its first moments. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { SMALL_MIB = 256 };
#define HAS_SMALL
#endif
#endif
#ifndef HAS_SMALL
enum { SMALL_MIB = 16 };
#endif

enum { TURNS_MAX = 20000 }; /* of 5 ms, for what never happens: a busy machine may be slow */

/* Outside /tmp, which jobs see their own of: so that what is refused is refused by rights. */
static char directory[64];

static void open_rig(struct rig *rig) {
    if (geteuid() != 0) {
        acre_test_skip("isolation needs root");
    }
    rig_init(rig, &acre_engine_local);
    snprintf(directory, sizeof(directory), "/run/acre-test-%d", (int)getpid());
    REQUIRE(mkdir(directory, 0755) == 0 || errno == EEXIST);
    snprintf(rig->state, sizeof(rig->state), "%s/state", directory);
}

static void close_rig(struct rig *rig) {
    static const char *const made[] = {"/node", "/id", "/mountinfo", ""};
    rig_finish(rig);
    for (size_t i = 0; i < ACRE_COUNT(made); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", directory, made[i]);
        remove(path); /* most tests make none */
    }
}

/* How many processes have `text` in their command line. */
static uint32_t count_processes(const char *text) {
    DIR *proc = opendir("/proc");
    REQUIRE(proc != NULL);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char path[300], line[4096];
        snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = fd >= 0 ? read(fd, line, sizeof(line) - 1) : 0;
        if (fd >= 0) {
            close(fd);
        }
        for (ssize_t i = 0; i + 1 < got; i++) {
            line[i] = line[i] == '\0' ? ' ' : line[i];
        }
        line[got > 0 ? got : 0] = '\0';
        count += strtol(entry->d_name, NULL, 10) > 0 && strstr(line, text) != NULL;
    }
    closedir(proc);
    return count;
}

/* A marker that only this test's jobs have in their command lines. */
static const char *marker(void) {
    static char text[32];
    snprintf(text, sizeof(text), "98%d", (int)getpid());
    return text;
}

/* ---- layouts ---- */

static char layout_file[96];

/* This machine's mounts, without those of cgroup2, or of both versions, or of cgroup2 and the
 * controller that has a group for every run. */
static void hide_mounts(struct rig *rig, const char *hidden) {
    struct acre_buf text, kept;
    acre_buf_init(&text, 1 << 20);
    acre_buf_init(&kept, 1 << 20);
    REQUIRE_EQ(acre_file_read("/proc/self/mountinfo", 1 << 20, &text, NULL), 0);
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    for (struct acre_str line; acre_split_next(&lines, &line);) {
        char copy[1024];
        REQUIRE(acre_str_copy(copy, sizeof(copy), line));
        bool v1 = strstr(copy, " - cgroup ") != NULL, v2 = strstr(copy, " - cgroup2 ") != NULL;
        bool is_pids = strcmp(hidden, "pids") == 0 && strstr(copy, "pids") != NULL;
        if (!v2 && !(v1 && (is_pids || strcmp(hidden, "both") == 0))) {
            acre_buf_printf(&kept, "%s\n", copy);
        }
    }
    snprintf(layout_file, sizeof(layout_file), "%s/mountinfo", directory);
    REQUIRE_EQ(acre_file_write(layout_file, kept.data, kept.length, NULL), 0);
    rig->local.mountinfo = layout_file;
    acre_buf_finish(&text);
    acre_buf_finish(&kept);
}

static bool has_layout(struct rig *rig, const char *name) {
    struct acre_buf text;
    acre_buf_init(&text, 4096);
    rig->driver->describe(rig->engine, &text);
    char line[64];
    snprintf(line, sizeof(line), "cgroups: %s", name);
    bool has = strstr(text.data, line) != NULL;
    acre_buf_finish(&text);
    return has;
}

static const struct {
    const char *hidden; /* NULL: nothing */
    const char *name;   /* what must result, or it is not to be had here; NULL: whatever */
} layouts[] = {{NULL, NULL}, {"cgroup2", "v1"}, {"both", "none"}};

static void over_layouts(void (*test)(struct rig *rig)) {
    for (size_t i = 0; i < ACRE_COUNT(layouts); i++) {
        struct rig rig;
        open_rig(&rig);
        if (layouts[i].hidden != NULL) {
            hide_mounts(&rig, layouts[i].hidden);
        }
        rig_open(&rig);
        const char *expected = getenv("ACRE_TEST_LAYOUT"); /* where it was booted for that */
        CHECK(i > 0 || expected == NULL || has_layout(&rig, expected));
        acre_test_context("cgroups %s", layouts[i].name != NULL ? layouts[i].name : "as they are");
        if (layouts[i].name == NULL || has_layout(&rig, layouts[i].name)) {
            test(&rig);
        }
        close_rig(&rig);
    }
}

/* ---- the tree of processes ---- */

/* Double forks, new sessions, closed streams: it all ends with the run. */
static void cancel_daemons(struct rig *rig) {
    char script[256];
    snprintf(script, sizeof(script),
             "(setsid sh -c 'sleep %s & sleep %s' </dev/null >/dev/null 2>&1 &); "
             "echo ready; exec sleep %s",
             marker(), marker(), marker());
    rig_run(rig, 1, script);
    rig_run(rig, 2, "echo other; exec sleep 1000");
    rig_wait_output(rig, 1, "ready");
    rig_wait_output(rig, 2, "other");
    for (int i = 0; i < TURNS_MAX && count_processes(marker()) < 3; i++) {
        rig_turn(rig, 5);
    }
    CHECK(count_processes(marker()) >= 3); /* three sleeps, and maybe the shell in between */
    rig_signal(rig, 1, ACRE_RUN_KILL);
    rig_expect(rig, 1, ACRE_RUN_SIGNALED, SIGKILL);
    CHECK_U64(count_processes(marker()), 0);
    CHECK_EQ(rig->seen[2].exited, 0); /* others untouched */
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_expect(rig, 2, ACRE_RUN_SIGNALED, SIGKILL);
}

static void a_cancelled_run_takes_its_daemons_with_it(void) {
    over_layouts(cancel_daemons);
}

/* What the command leaves behind does not outlive it. */
static void leave_behind(struct rig *rig) {
    char script[128];
    snprintf(script, sizeof(script), "setsid sleep %s </dev/null >/dev/null 2>&1 & exit 4",
             marker());
    rig_run(rig, 1, script);
    rig_expect(rig, 1, ACRE_RUN_EXITED, 4);
    CHECK_U64(count_processes(marker()), 0);
}

static void nothing_outlives_the_command(void) {
    over_layouts(leave_behind);
}

/* Some v1 machines limit CPUs and RAM, and have no group that lists all processes of a run. */
static void without_a_list_runs_end_all_the_same(void) {
    struct rig rig;
    open_rig(&rig);
    hide_mounts(&rig, "pids");
    rig_open(&rig);
    if (!has_layout(&rig, "v1")) {
        close_rig(&rig);
        acre_test_skip("no cgroup v1 here");
    }
    struct acre_run_spec spec = rig_spec(&rig, 3, "exec sleep 1000");
    spec.ram_mib = 64;
    rig_start(&rig, &spec);
    rig_wait_start(&rig, 3);
    int64_t pid = 0;
    CHECK_U64(rig.driver->pids(rig.engine, spec.run, &pid, 1), 1);
    CHECK_EQ(pid, rig.seen[3].pid);
    rig_signal(&rig, 3, ACRE_RUN_KILL);
    rig_expect(&rig, 3, ACRE_RUN_SIGNALED, SIGKILL);
    cancel_daemons(&rig);
    close_rig(&rig);
}

/* A fork bomb stays within its number of processes, and is gone when it is cancelled. */
static void fork_bomb(struct rig *rig) {
    bool limited = !has_layout(rig, "none");
    char script[256];
    /* One that fills its room and one that multiplies. Without a limit (said so) they would take
     * the machine: a hundred processes will do there. */
    snprintf(script, sizeof(script),
             limited ? "(while :; do sleep %s & done) 2>/dev/null & echo ready; exec sleep %s"
                     : "i=0; while [ $i -lt 100 ]; do sleep %s & i=$((i+1)); done; echo ready; "
                       "exec sleep %s",
             marker(), marker());
    struct acre_run_spec spec = rig_spec(rig, 1, script);
    spec.pids_max = 40;
    rig_start(rig, &spec);
    rig_wait_output(rig, 1, "ready");
    int64_t pids[256];
    uint32_t count = 0;
    for (int i = 0; i < TURNS_MAX && count < 39; i++) { /* until it is full */
        rig_turn(rig, 5);
        count = rig->driver->pids(rig->engine, spec.run, pids, 256);
        CHECK(!limited || count <= 40);
    }
    CHECK(count >= 39);
    snprintf(script, sizeof(script), "(b() { b | b & b; }; b) & echo ready; exec sleep %s",
             marker());
    spec = rig_spec(rig, 2, limited ? script : "exec sleep 1000");
    spec.pids_max = 200;
    rig_start(rig, &spec);
    rig_wait_start(rig, 2);
    rig_signal(rig, 1, ACRE_RUN_KILL);
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_wait_exit(rig, 1);
    rig_wait_exit(rig, 2);
    CHECK_U64(count_processes(marker()), 0);
    CHECK_EQ(rig->driver->pids(rig->engine, spec.run, pids, 256), 0);
}

static void a_fork_bomb_is_contained_and_ends(void) {
    over_layouts(fork_bomb);
}

/* The kernel ends the one that takes too much, and nobody else. */
static void memory_hog(struct rig *rig) {
    bool limited = !has_layout(rig, "none");
    rig_run(rig, 2, "echo other; exec sleep 1000");
    rig_wait_start(rig, 2);
    struct acre_run_spec spec = rig_spec(rig, 1, "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done");
    spec.ram_mib = 64;
    rig_start(rig, &spec);
    const struct rig_seen *seen = rig_wait_exit(rig, 1);
    if (limited) {
        CHECK_EQ((int)seen->result.ending, ACRE_RUN_OUT_OF_MEMORY);
        CHECK_EQ(seen->result.code, SIGKILL);
        CHECK_HAS(seen->result.text, "64 MiB");
        CHECK(seen->result.peak_ram_mib >= 32 && seen->result.peak_ram_mib <= 65);
    } else {
        CHECK(seen->result.code != 0); /* each process by itself, by RLIMIT_DATA */
    }
    CHECK_EQ(rig->seen[2].exited, 0);
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_wait_exit(rig, 2);
}

static void a_memory_hog_is_ended_alone(void) {
    over_layouts(memory_hog);
}

/* The limit of the run that printed its groups, as a number; 0: none. With `of_all`, the one that
 * all runs have together. */
static uint64_t find_memory_limit(struct rig *rig, uint64_t job, bool of_all) {
    char path[512], text[64] = "";
    const char *groups = rig_output(rig, job, 1);
    const char *v1 = strstr(groups, ":memory:"), *v2 = strstr(groups, "0::");
    const char *at = v1 != NULL ? v1 + strlen(":memory:") : v2 != NULL ? v2 + strlen("0::") : "";
    const char *end = of_all ? strstr(at, rig->cgroup) : NULL;
    int length = (int)(end != NULL ? (size_t)(end - at) + strlen(rig->cgroup) : strcspn(at, "\n"));
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s%.*s/%s", v1 != NULL ? "/memory" : "", length, at,
             v1 != NULL ? "memory.limit_in_bytes" : "memory.max");
    return strtoull(acre_file_peek(path, text, sizeof(text)), NULL, 10);
}

/* A run that asks for no memory has the default; what one of them leaves is not the next one's. */
static void default_memory(struct rig *rig) {
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t milli = (uint32_t)ACRE_MAX((UINT64_C(64) << 20) * 1000 / total, 1); /* 64 MiB or so */
    struct acre_engine_limits limits = {.memory_milli = milli};
    rig->driver->limit(rig->engine, &limits);
    if (has_layout(rig, "none")) {
        rig_run(rig, 1, "ulimit -d");
        rig_expect(rig, 1, ACRE_RUN_EXITED, 0);
        CHECK_STR(rig_output(rig, 1, 1), "unlimited\n"); /* address space is not memory */
        return;
    }
    rig_run(rig, 1, "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done");
    const struct rig_seen *seen = rig_wait_exit(rig, 1);
    CHECK_EQ((int)seen->result.ending, ACRE_RUN_OUT_OF_MEMORY);
    CHECK_HAS(seen->result.text,
              "ran out of memory: its limit was 48 MiB, the default; ask for more with --memory");
    CHECK_HAS(seen->result.text, "iB, the default; ask for more with --memory");
    for (uint64_t job = 2; job < 20; job++) { /* with v1 some are in groups of earlier ones */
        rig_run(rig, job, "cat /proc/self/cgroup; read line; exit 3");
        rig_expect(rig, job, ACRE_RUN_EXITED, 3);
        CHECK(rig->seen[job].result.peak_ram_mib <= SMALL_MIB);
    }
    rig_run(rig, 20, "cat /proc/self/cgroup; echo ready; exec sleep 1000");
    rig_wait_output(rig, 20, "ready");
    uint64_t own = find_memory_limit(rig, 20, false), all = find_memory_limit(rig, 20, true);
    CHECK(own <= total * milli / 1000 && own + (2 << 20) > total * milli / 1000);
    CHECK(all >= total / 2 - (1 << 20) && all < total);
    rig_signal(rig, 20, ACRE_RUN_KILL);
    rig_expect(rig, 20, ACRE_RUN_SIGNALED, SIGKILL);
    limits.memory_milli = milli * 2; /* another limit: not the groups of before */
    rig->driver->limit(rig->engine, &limits);
    rig_run(rig, 21, "cat /proc/self/cgroup; echo ready; exec sleep 1000");
    rig_wait_output(rig, 21, "ready");
    CHECK(find_memory_limit(rig, 21, false) > own + own / 2);
    rig_signal(rig, 21, ACRE_RUN_KILL);
    rig_expect(rig, 21, ACRE_RUN_SIGNALED, SIGKILL);
}

static void a_run_that_asks_for_no_memory_has_the_default(void) {
    over_layouts(default_memory);
}

/* However its supervisor is protected. */
static void jobs_are_killed_before_others(void) {
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    /* The supervisor takes its own score back when the job has lived for some milliseconds. */
    rig_run(&rig, 1,
            "score() { cat /proc/$1/oom_score_adj; }; score self;"
            "until [ $(score $PPID) -lt $(score self) ]; do :; done; score $PPID");
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    int job = 0, supervisor = 0;
    CHECK_EQ(sscanf(rig_output(&rig, 1, 1), "%d %d", &job, &supervisor), 2);
    CHECK(job > 0 && supervisor < job);
    close_rig(&rig);
}

static void a_cpu_hog_gets_its_share(void) {
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    if (has_layout(&rig, "none")) {
        close_rig(&rig);
        acre_test_skip("no cgroups here");
    }
    struct acre_run_spec spec = rig_spec(&rig, 1, "while :; do :; done");
    spec.cpu_milli = 200;
    spec.limit_ms = 1500;
    spec.grace_ms = 0;
    rig_start(&rig, &spec);
    const struct rig_seen *seen = rig_wait_exit(&rig, 1);
    CHECK_EQ((int)seen->result.ending, ACRE_RUN_TIME_LIMIT);
    CHECK(seen->result.cpu_ms > 50 && seen->result.cpu_ms < 600); /* 0.2 of 1.5 s, and a period */
    close_rig(&rig);
}

/* ---- rights ---- */

/* The script prints "refused" where it should, and nothing else. */
static void check_refused(const char *script, bool no_network) {
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1, script);
    spec.no_network = no_network;
    rig_start(&rig, &spec);
    rig_wait_exit(&rig, 1);
    acre_test_context("%.120s", script);
    CHECK_STR(rig_output(&rig, 1, 1), "refused\n");
    close_rig(&rig);
}

static void the_job_runs_as_its_user_and_gains_nothing(void) {
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    char script[512], path[96];
    snprintf(path, sizeof(path), "%s/id", directory);
    FILE *from = fopen("/usr/bin/id", "re");
    if (from == NULL) {
        close_rig(&rig);
        acre_test_skip("no /usr/bin/id to make setuid");
    }
    FILE *to = fopen(path, "we");
    REQUIRE(to != NULL);
    char piece[65536];
    for (size_t got; (got = fread(piece, 1, sizeof(piece), from)) > 0;) {
        REQUIRE(fwrite(piece, 1, got, to) == got);
    }
    fclose(from);
    fclose(to);
    REQUIRE_EQ(chmod(path, 04755), 0);
    snprintf(script, sizeof(script),
             "id -u; %s -u; grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; "
             "test -z \"$(id -G | grep -w 0)\" && echo no root group",
             path);
    rig_run(&rig, 1, script);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    CHECK_STR(rig_output(&rig, 1, 1), "65534\n65534\nNoNewPrivs:\t1\nSeccomp:\t2\nno root group\n");
    close_rig(&rig);
}

static void need_private_files(void) {
    if (!sandbox_can_mount()) {
        acre_test_skip("no private /tmp in a chroot");
    }
}

/* A root that is no mount point (a chroot) cannot hide /tmp; jobs run all the same. */
static void a_chroot_is_told_from_a_machine(void) {
    struct rig rig;
    open_rig(&rig);
    pid_t child = fork();
    if (child == 0) {
        struct sandbox_view view = {.directory = ""};
        bool ok = chroot(directory) == 0 && chdir("/") == 0 && !sandbox_can_mount() &&
                  sandbox_isolate(&view, NULL) == 0;
        _exit(ok ? 0 : 1);
    }
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close_rig(&rig);
}

static void another_jobs_files_are_out_of_reach(void) {
    need_private_files();
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    rig_run(&rig, 1,
            "umask 0; echo secret | tee /tmp/s /var/tmp/s2 /dev/shm/s3; echo done; sleep 1000");
    rig_wait_output(&rig, 1, "done");
    char script[512];
    snprintf(script, sizeof(script),
             "ls /tmp /var/tmp /dev/shm | grep -v : | grep .; cat /tmp/s; "
             "cat %s/logs/1.1.out; ls %s; echo x > %s/facts; true",
             rig.state, rig.state, rig.state);
    rig_run(&rig, 2, script);
    rig_expect(&rig, 2, ACRE_RUN_EXITED, 0);
    CHECK_STR(rig_output(&rig, 2, 1), "");
    CHECK_HAS(rig_output(&rig, 2, 2), "denied");
    rig_signal(&rig, 1, ACRE_RUN_KILL);
    rig_wait_exit(&rig, 1);
    CHECK(access("/tmp/s", F_OK) != 0);
    close_rig(&rig);
}

/* Whoever submits from below /tmp finds that directory, and nothing else of /tmp; a link is
 * followed with the user's rights alone. */
static void the_working_directory_stays_visible(void) {
    need_private_files();
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    char base[64], here[96], trap[96], kept[] = "/run/acre-kept-XXXXXX";
    snprintf(base, sizeof(base), "/tmp/acre-cwd-%d", (int)getpid());
    snprintf(here, sizeof(here), "%s/a/b", base);
    snprintf(trap, sizeof(trap), "%s/a/trap", base);
    REQUIRE(mkdtemp(kept) != NULL); /* mode 0700: root's alone */
    char inside[96];
    snprintf(inside, sizeof(inside), "%s/inside", kept);
    REQUIRE_EQ(mkdir(inside, 0777), 0);
    mode_t mask = umask(0);
    REQUIRE_EQ(mkdir(base, 0755), 0);
    snprintf(here, sizeof(here), "%s/a", base);
    REQUIRE_EQ(mkdir(here, 0755), 0);
    snprintf(here, sizeof(here), "%s/a/b", base);
    REQUIRE_EQ(mkdir(here, 0777), 0);
    umask(mask);
    REQUIRE_EQ(symlink(inside, trap), 0);

    struct acre_run_spec spec = rig_spec(&rig, 1, "echo mine > left; pwd; ls /tmp; ls ..");
    spec.directory = here;
    rig_start(&rig, &spec);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    char expect[256];
    snprintf(expect, sizeof(expect), "%s\n%s\nb\n", here, base + strlen("/tmp/"));
    CHECK_STR(rig_output(&rig, 1, 1), expect);
    char left[128];
    snprintf(left, sizeof(left), "%s/left", here);
    CHECK_EQ(unlink(left), 0); /* written to the real one */

    spec = rig_spec(&rig, 2, "echo mine > left");
    spec.directory = trap;
    rig_start(&rig, &spec);
    CHECK_EQ(rig_wait_exit(&rig, 2)->result.ending, ACRE_RUN_NOT_STARTED);
    snprintf(left, sizeof(left), "%s/left", inside);
    CHECK(access(left, F_OK) != 0);

    unlink(trap);
    rmdir(here);
    snprintf(here, sizeof(here), "%s/a", base);
    rmdir(here);
    rmdir(base);
    rmdir(inside);
    rmdir(kept);
    close_rig(&rig);
}

static void another_device_node_is_refused(void) {
    struct rig rig;
    open_rig(&rig);
    rig_open(&rig);
    struct acre_buf text;
    acre_buf_init(&text, 4096);
    rig.driver->describe(rig.engine, &text);
    bool filters = strstr(text.data, "a run opens its own GPUs only") != NULL;
    acre_buf_finish(&text);
    rig_close(&rig);
    if (!filters) {
        close_rig(&rig);
        acre_test_skip("devices cannot be filtered here");
    }
    char path[96], script[256];
    snprintf(path, sizeof(path), "%s/node", directory);
    mode_t mask = umask(0);
    REQUIRE_EQ(mknod(path, S_IFCHR | 0666, makedev(1, 11)), 0); /* the kernel's log */
    umask(mask);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(fd >= 0); /* for us it is a device like any other */
    close(fd);
    rig_open(&rig);
    snprintf(script, sizeof(script),
             "head -c 1 %s 2>&1 >/dev/null | grep -o 'not permitted'; "
             "head -c 1 /dev/zero | wc -c; echo x > /dev/null && echo fine",
             path);
    rig_run(&rig, 1, script);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    CHECK_STR(rig_output(&rig, 1, 1), "not permitted\n1\nfine\n");
    close_rig(&rig);
}

static void namespaces_and_mounts_are_refused(void) {
    check_refused("unshare -U true 2>/dev/null && echo made || echo refused", false);
    check_refused("mount -t tmpfs x /mnt 2>/dev/null && echo made || echo refused", false);
    check_refused("echo 1 > /proc/sys/kernel/sysrq 2>/dev/null && echo made || echo refused",
                  false);
}

static void a_job_can_be_cut_off_the_network(void) {
    /* One interface, loopback, and it is up. */
    check_refused("n=$(grep -c : /proc/net/dev); test $n = 1 && grep -q lo: /proc/net/dev && "
                  "grep -q 7f000001 /proc/net/fib_trie 2>/dev/null; test $n = 1 && echo refused",
                  true);
}

static void private_processes(struct rig *rig) {
    char script[128], path[64], text[4096];
    snprintf(script, sizeof(script), "echo $$; ls -d /proc/[0-9]*; echo end; sleep %s", marker());
    struct acre_run_spec spec = rig_spec(rig, 1, script);
    spec.private_processes = true;
    rig_start(rig, &spec);
    /* Outside, its number is the daemon's. */
    int64_t pid = rig_wait_start(rig, 1)->pid;
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/cmdline", pid);
    CHECK_STR(acre_file_peek(path, text, sizeof(text)), "sh");
    rig_wait_output(rig, 1, "end");
    /* Inside there are the supervisor and the shell, which makes the list. */
    CHECK_STR(rig_output(rig, 1, 1), "2\n/proc/1\n/proc/2\nend\n");
    int64_t pids[8];
    uint32_t count = 0;
    for (int turn = 0; turn < TURNS_MAX && count != 2; turn++) { /* until it sleeps */
        rig_turn(rig, 5);
        count = rig->driver->pids(rig->engine, spec.run, pids, ACRE_COUNT(pids));
    }
    CHECK_EQ(count, 2);
    rig_close(rig);
    rig_open(rig);
    rig->driver->adopt(rig->engine, spec.run);
    rig_signal(rig, 1, ACRE_RUN_TERMINATE);
    rig_expect(rig, 1, ACRE_RUN_SIGNALED, SIGTERM);
    CHECK_EQ(count_processes(marker()), 0);
}

static void other_processes_can_be_hidden(void) {
    need_private_files();
    over_layouts(private_processes);
}

static void the_environment_is_clean(void) {
    struct rig rig;
    setenv("ACRE_TEST_SECRET", "leaks", 1);
    open_rig(&rig);
    rig_open(&rig);
    struct acre_run_spec spec = rig_spec(&rig, 1,
                                         "env | sort | grep -v '^PWD='; pwd; umask; "
                                         "ls /proc/self/fd | wc -l");
    const char *env[] = {"MINE=1", "ACRE_RANK=9", "HOME=/elsewhere", "EMPTY=", NULL};
    spec.env = env;
    rig_start(&rig, &spec);
    rig_expect(&rig, 1, ACRE_RUN_EXITED, 0);
    const char *text = rig_output(&rig, 1, 1);
    static const char *const has[] = {
        "ACRE_ATTEMPT=1\n",     "ACRE_JOB_ID=1\n",  "ACRE_MEMBERS=1\n",  "ACRE_NODE=here\n",
        "ACRE_RANK=0\n",        "EMPTY=\n",         "HOME=/elsewhere\n", "MINE=1\n",
        "USER=nobody\n",        "LOGNAME=nobody\n", "TMPDIR=/tmp\n",     "PATH=/usr/local/bin",
        "CUDA_VISIBLE_DEVICES", "\n/\n0022\n4\n", /* 0, 1, 2 and ls's own */
    };
    for (size_t i = 0; i < ACRE_COUNT(has); i++) {
        CHECK_HAS(text, has[i]);
    }
    CHECK(strstr(text, "ACRE_TEST_SECRET") == NULL);
    CHECK(strstr(text, "ACRE_RANK=9") == NULL);
    close_rig(&rig);
}

static const struct acre_test tests[] = {
    {"a_cancelled_run_takes_its_daemons_with_it", a_cancelled_run_takes_its_daemons_with_it, 0},
    {"without_a_list_runs_end_all_the_same", without_a_list_runs_end_all_the_same, 0},
    {"nothing_outlives_the_command", nothing_outlives_the_command, 0},
    {"a_fork_bomb_is_contained_and_ends", a_fork_bomb_is_contained_and_ends, 0},
    {"a_memory_hog_is_ended_alone", a_memory_hog_is_ended_alone, 0},
    {"a_run_that_asks_for_no_memory_has_the_default", a_run_that_asks_for_no_memory_has_the_default,
     0},
    {"jobs_are_killed_before_others", jobs_are_killed_before_others, 0},
    {"a_cpu_hog_gets_its_share", a_cpu_hog_gets_its_share, 0},
    {"the_job_runs_as_its_user_and_gains_nothing", the_job_runs_as_its_user_and_gains_nothing, 0},
    {"a_chroot_is_told_from_a_machine", a_chroot_is_told_from_a_machine, 0},
    {"another_jobs_files_are_out_of_reach", another_jobs_files_are_out_of_reach, 0},
    {"the_working_directory_stays_visible", the_working_directory_stays_visible, 0},
    {"another_device_node_is_refused", another_device_node_is_refused, 0},
    {"namespaces_and_mounts_are_refused", namespaces_and_mounts_are_refused, 0},
    {"a_job_can_be_cut_off_the_network", a_job_can_be_cut_off_the_network, 0},
    {"other_processes_can_be_hidden", other_processes_can_be_hidden, 0},
    {"the_environment_is_clean", the_environment_is_clean, 0},
};

ACRE_TEST_MAIN(tests)
