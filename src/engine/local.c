/* local.c - jobs as processes of this machine, each under its own supervisor.
 *
 * This process starts nothing itself: a spawner does (local_spawn.c), and the supervisors (shim.c)
 * live on when this process ends. What is true of a run is in its record file; what happens is
 * reported through a FIFO. After a restart: take the lock that the old spawner shared (so that it
 * can make no more records), open the FIFO, then read the records. A supervisor writes its record
 * before it reports; so whatever was not yet in the record when we read it comes through the FIFO,
 * and nothing is missed and nothing started twice. */
#include "engine/local_shares.h"

#include "core/file.h"
#include "core/str.h"
#include "engine/descendants.h"
#include "engine/local_late.h"
#include "engine/machine.h"
#include "engine/sandbox.h"
#include "engine/syscalls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FIFO_BYTES = 1 << 20,   /* thousands of facts wait while this thread is busy */
    OLD_SPAWNER_MS = 10000, /* it has at most a window of forks to finish */
    CGROUP_END_MS = 2000,
    CLOSE_MS = 1000,
    LOG_MAX_BYTES = 64 << 20,
    PIDS_MAX_DEFAULT = 4096, /* a training job with data loaders and thread pools has hundreds */
    SHOWN = 200,
    FILTER_MAX_BYTES = 32768,
};

/* ---- opening ---- */

static int make_directory(int parent, const char *path, struct acre_error *err) {
    if (mkdirat(parent, path, 0700) != 0 && errno != EEXIST) {
        char shown[SHOWN];
        return acre_fail_errno(err, errno, "%s",
                               acre_str_show(acre_str_from(path), shown, sizeof(shown)));
    }
    return 0;
}

/* The lock file names the process that has it. A dead one's spawner may still hold the lock for
 * the moment it takes to finish; a living one is the owner. */
static int lock_state(struct local *self, struct acre_error *err) {
    char text[32] = "";
    self->lock =
        openat(self->state, "engine.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (self->lock < 0) {
        return acre_fail_errno(err, errno, "%s/engine.lock", self->state_path);
    }
    while (flock(self->lock, LOCK_EX | LOCK_NB) != 0) {
        long pids[2] = {0, 0}; /* daemon, spawner */
        ssize_t got = pread(self->lock, text, sizeof(text) - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        char *rest = text;
        pids[0] = strtol(rest, &rest, 10);
        pids[1] = strtol(rest, NULL, 10);
        bool alive = pids[0] > 0 && kill((pid_t)pids[0], 0) == 0;
        if (alive || pids[1] <= 0) {
            return acre_fail(err, ACRE_ECONFLICT, "%s is in use by process %ld", self->state_path,
                             pids[0]);
        }
        struct pollfd spawner = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pids[1], 0),
                                 .events = POLLIN};
        int ended = spawner.fd >= 0 ? poll(&spawner, 1, OLD_SPAWNER_MS) : 1;
        if (spawner.fd >= 0) {
            close(spawner.fd);
        }
        if (ended <= 0) {
            return acre_fail(err, ACRE_ETIMEOUT,
                             "%s: process %ld of a previous daemon is still running",
                             self->state_path, pids[1]);
        }
    }
    return 0;
}

static int open_state(struct local *self, struct acre_error *err) {
    int r = make_directory(AT_FDCWD, self->state_path, err);
    if (r < 0) {
        return r;
    }
    self->state = open(self->state_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (self->state < 0) {
        return acre_fail_errno(err, errno, "%s", self->state_path);
    }
    r = make_directory(self->state, ACRE_RUNS_DIRECTORY, err);
    r = r == 0 ? make_directory(self->state, ACRE_LOGS_DIRECTORY, err) : r;
    r = r == 0 ? lock_state(self, err) : r;
    if (r < 0) {
        return r;
    }
    self->runs =
        openat(self->state, ACRE_RUNS_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    self->logs =
        openat(self->state, ACRE_LOGS_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool made = mkfifoat(self->state, ACRE_FACT_PIPE, 0600) == 0 || errno == EEXIST;
    /* For reading and writing: so it has a reader as long as we live, and never ends. */
    self->facts =
        made ? openat(self->state, ACRE_FACT_PIPE, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
             : -1;
    if (self->runs < 0 || self->logs < 0 || self->facts < 0) {
        return acre_fail_errno(err, errno, "%s", self->state_path);
    }
    (void)fcntl(self->facts, F_SETPIPE_SZ, FIFO_BYTES); /* the default will do, too */
    return 0;
}

static void write_pids(struct local *self) {
    char text[32];
    int length = snprintf(text, sizeof(text), "%d %d\n", getpid(), self->spawner_pid);
    if (ftruncate(self->lock, 0) == 0 && pwrite(self->lock, text, (size_t)length, 0) < 0) {
        return; /* it only serves an error message and a wait */
    }
}

/* What earlier processes left. */
static void scan(struct local *self) {
    int fd = openat(self->state, ACRE_RUNS_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    struct acre_run token;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (!run_parse(entry->d_name, &token)) {
            continue;
        }
        struct fact fact;
        struct local_run *run = local_add(self, token);
        enum local_found found = local_look(self, token, &fact);
        local_learn(run, &fact);
        run->orphan = true;
        run->stage = ACRE_LOCAL_RUNNING;
        local_expect_limit(run);
        if (found == ACRE_LOCAL_OVER) {
            run->stage = ACRE_LOCAL_ENDED;
            run->result = acre_calloc(1, sizeof(*run->result));
            *run->result = fact.result;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void on_facts(void *context) {
    local_read_facts(context);
}

static void local_close(void *engine) {
    struct local *self = engine;
    bool live = false; /* does anything run on? */
    for (uint32_t i = 0; i < self->known.count; i++) {
        live = live || acre_local_at(self, i)->stage != ACRE_LOCAL_ENDED;
    }
    local_close_spawner(self);
    acre_watch_cancel(self->facts_watch);
    acre_timer_cancel(self->telling);
    while (self->to_tell != NULL) {
        struct local_fact *fact = self->to_tell;
        self->to_tell = fact->next;
        free(fact);
    }
    mps_destroy(self->mps); /* first: it may call back with runs */
    local_free_runs(self);
    cgroup_close(&self->cgroup, live ? 0 : CLOSE_MS);
    log_room_destroy(self->log_room);
    const int fds[] = {self->facts, self->logs, self->runs, self->lock, self->state};
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    acre_buf_finish(&self->filter);
    free(self->state_path);
    free(self->program);
    free(self->run_as);
    free(self->mps_directory);
    free(self->mps_program);
    free(self);
}

static char *copy(const char *text) {
    return text != NULL ? acre_strdup(text) : NULL;
}

static struct local *create(const struct local_options *options, struct acre_loop *loop,
                            const struct acre_engine_sink *sink) {
    struct local *self = acre_calloc(1, sizeof(*self));
    self->loop = loop;
    self->sink = *sink;
    self->state_path = acre_strdup(options->state_directory);
    self->program = copy(options->program);
    self->run_as = copy(options->run_as);
    self->mps_directory =
        copy(options->mps_directory != NULL ? options->mps_directory : "/run/acre-mps");
    self->mps_program = copy(options->mps_program);
    self->allow_root = options->allow_root;
    self->min_uid = options->min_uid;
    self->is_root = geteuid() == 0;
    self->log_max_bytes = options->log_max_bytes > 0 ? options->log_max_bytes : LOG_MAX_BYTES;
    self->margin_ms = options->margin_ms;
    self->pids_max = options->pids_max > 0 ? options->pids_max : PIDS_MAX_DEFAULT;
    self->roots = options->roots;
    self->lock = self->state = self->runs = self->logs = self->facts = self->spawner = -1;
    self->to_tell_last = &self->to_tell;
    acre_buf_init(&self->filter, FILTER_MAX_BYTES);
    return self;
}

/* This machine, or what files say that simulated ones have. */
static int report_nodes(struct local *self, const struct acre_engine_options *options,
                        struct acre_error *err) {
    int r = 0;
    if (self->sink.node == NULL || options->own != NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < options->sim_count && r == 0; i++) {
        r = acre_machine_simulated(options->sim[i], self->sink.node, self->sink.context, err);
    }
    if (options->sim_count == 0) {
        acre_machine_here(self->sink.node, self->sink.context);
    }
    return r;
}

static int local_open(const struct acre_engine_options *common, struct acre_loop *loop,
                      const struct acre_engine_sink *sink, void **ret_self,
                      struct acre_error *err) {
    struct local_options plain = {.state_directory = common->state_directory,
                                  .cgroup_name = common->group,
                                  .run_as = common->run_as,
                                  .min_uid = (uid_t)common->min_uid,
                                  .allow_root = common->allow_root};
    const struct local_options *options = common->own != NULL ? common->own : &plain;
    ACRE_ASSERT(options != NULL && options->state_directory != NULL && loop != NULL);
    struct local *self = create(options, loop, sink);
    int r = open_state(self, err);
    if (r < 0) {
        goto fail;
    }
    struct acre_error lack = {0};
    if (syscalls_build(&self->filter, &lack) < 0) {
        acre_buf_clear(&self->filter);
        acre_str_show(acre_str_from(lack.text), self->filter_lack, sizeof(self->filter_lack));
    }
    cgroup_open(options->mountinfo, options->cgroup_name != NULL ? options->cgroup_name : "acre",
                &self->cgroup);
    self->facts_watch = acre_loop_watch(loop, self->facts, on_facts, self, err);
    r = self->facts_watch != NULL ? local_open_spawner(self, err) : ACRE_EIO;
    if (r < 0) {
        goto fail;
    }
    write_pids(self);
    self->log_room = log_room_create(loop, self->logs, self->runs);
    scan(self);
    r = report_nodes(self, common, err);
    if (r < 0) {
        goto fail;
    }
    *ret_self = self;
    return 0;
fail:
    local_close(self);
    return r;
}

/* ---- runs ---- */

static void tell_again(struct local *self, struct local_run *run) {
    if (run->stage == ACRE_LOCAL_RUNNING && run->orphan) {
        local_check(self, run); /* tells its end, if that is what it finds */
        local_tell(self, run->run, run->stage == ACRE_LOCAL_RUNNING, false);
    } else {
        local_tell(self, run->run, true, run->stage == ACRE_LOCAL_ENDED);
    }
}

static int local_start(void *engine, const struct acre_run_spec *spec, struct acre_error *err) {
    struct local *self = engine;
    (void)err; /* whatever cannot be started is told as a fact */
    struct local_run *run = local_find(self, spec->run);
    if (run != NULL) { /* never a second time: what is known is told again */
        run->wanted = true;
        tell_again(self, run);
        return 0;
    }
    struct acre_error why = {0};
    run = local_add(self, spec->run);
    run->wanted = true;
    uid_t user = 0;
    int r = local_need_mps(self, run, spec, &why);
    r = r == 0 ? local_prepare_cu(self, run, spec, &user, &why) : r;
    r = r == 0 ? local_take_mps(self, run, user, &why) : r;
    if (r < 0) {
        local_not_started(self, run, why.text);
    } else if (run->mps_waiting == 0) {
        local_enqueue(self, run);
    }
    return 0;
}

static int local_signal(void *engine, struct acre_run token, enum acre_run_signal signal,
                        struct acre_error *err) {
    struct local *self = engine;
    struct local_run *run = local_find(self, token);
    if (run == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "run %" PRIu64 ".%" PRIu32 " is unknown", token.job,
                         token.attempt);
    }
    if (run->stage == ACRE_LOCAL_ENDED) {
        return 0; /* its end is told, or will be */
    }
    run->told_to_end = run->told_to_end || signal != ACRE_RUN_CHECKPOINT;
    if (signal == ACRE_RUN_KILL && run->stage >= ACRE_LOCAL_SENT) {
        local_expect_end(run, 0); /* also of one that has not said a word yet */
    }
    if (run->shim_pid == 0) {
        run->signals |= (uint8_t)(1U << signal); /* sent when it is there */
        return 0;
    }
    if (!local_send_signal(self, run, (int)signal)) {
        local_check(self, run);
    }
    return 0;
}

static void local_adopt(void *engine, struct acre_run token) {
    struct local *self = engine;
    struct local_run *run = local_find(self, token);
    if (run == NULL) {
        run = local_add(self, token);
        run->orphan = true;
        run->stage = ACRE_LOCAL_RUNNING;
    }
    run->wanted = true;
    tell_again(self, run);
    if (run->stage == ACRE_LOCAL_RUNNING) {
        local_retake_mps(self, run);
        local_retake_cu(self, run);
    }
}

struct stray {
    struct local *self;
    uint32_t count;
};

static void end_stray(void *context, struct acre_run token) {
    struct stray *stray = context;
    if (local_find(stray->self, token) == NULL) {
        stray->count += cgroup_end(&stray->self->cgroup, token, CGROUP_END_MS);
    }
}

static uint32_t local_reap(void *engine) {
    struct local *self = engine;
    struct stray stray = {.self = self};
    for (uint32_t i = self->known.count; i-- > 0;) {
        struct local_run *run = acre_local_at(self, i);
        if (run->wanted) {
            continue;
        }
        stray.count++;
        if (run->stage == ACRE_LOCAL_RUNNING) {
            local_check(self, run);
        }
        if (run->stage == ACRE_LOCAL_RUNNING) { /* its end removes it */
            local_signal(self, run->run, ACRE_RUN_KILL, NULL);
        } else {
            local_tell(self, run->run, false, true);
        }
    }
    cgroup_each(&self->cgroup, end_stray, &stray);
    local_reap_mps(self);
    local_reap_cu(self);
    return stray.count;
}

static void local_forget(void *engine, struct acre_run token) {
    struct local *self = engine;
    struct local_run *run = local_find(self, token);
    if (run != NULL && run->stage == ACRE_LOCAL_ENDED) {
        local_remove(self, run);
    }
}

static int local_log_path(void *engine, struct acre_run token, int stream, char *path, size_t size,
                          struct acre_error *err) {
    struct local *self = engine;
    char name[ACRE_RUN_NAME_MAX];
    ACRE_ASSERT(stream == 1 || stream == 2);
    int length = snprintf(path, size, "%s/" ACRE_LOGS_DIRECTORY "/%s.%s", self->state_path,
                          run_make_name(token, name), stream == 1 ? "out" : "err");
    if (length < 0 || (size_t)length >= size) {
        return acre_fail(err, ACRE_ELIMIT, "log path: %d bytes are too long; accepted: at most %zu",
                         length, size);
    }
    if (access(path, F_OK) != 0) {
        path[0] = '\0';
    }
    return 0;
}

static uint32_t local_pids(void *engine, struct acre_run token, int64_t *pids, uint32_t max) {
    struct local *self = engine;
    struct cgroup_run group;
    struct local_run *run = local_find(self, token);
    if (token.job == 0) {
        return self->mps != NULL ? mps_servers(self->mps, pids, max) : 0;
    }
    if (cgroup_lists(&self->cgroup) && cgroup_find(&self->cgroup, token, &group)) {
        uint32_t count = cgroup_pids(&group, pids, max);
        cgroup_shut(&group);
        return count;
    }
    return run != NULL && run->stage == ACRE_LOCAL_RUNNING && run->shim_pid > 0
               ? descendants_find(run->shim_pid, pids, max)
               : 0;
}

static void local_limit(void *engine, const struct acre_engine_limits *limits) {
    struct local *self = engine;
    self->limits = *limits;
    log_room_limit(self->log_room, limits->logs_mib);
}

static void local_describe(void *engine, struct acre_buf *out) {
    struct local *self = engine;
    cgroup_describe(&self->cgroup, out);
    bool mounts = sandbox_can_mount();
    if (self->is_root) {
        acre_buf_printf(
            out,
            "accounts: %s%s\nfiles: %s\nshared memory: private to each run, and removed with "
            "it\nother processes: %s\nnetwork: can be cut off\n",
            self->run_as != NULL ? "users are NOT separated: all jobs run as "
                                 : "jobs run as their users",
            self->run_as != NULL ? self->run_as : "",
            mounts ? "/tmp, /var/tmp and /dev/shm are private to each run"
                   : "/tmp is NOT private: the root directory is not a mount point (a chroot)",
            mounts ? "can be hidden (private_processes in the policy)"
                   : "can NOT be hidden: the root directory is not a mount point (a chroot)");
    } else {
        acre_buf_puts(out, "accounts: only jobs of this user; they can reach the daemon "
                           "itself\nfiles: /tmp is NOT private\nshared memory: NOT private\nother "
                           "processes: can NOT be hidden\nnetwork: can NOT be cut off\n");
    }
    if (self->filter_lack[0] == '\0') {
        acre_buf_puts(out, "privileges: jobs cannot gain any; system calls are filtered\n");
    } else {
        acre_buf_printf(out,
                        "privileges: jobs cannot gain any; system calls are NOT filtered: %s\n",
                        self->filter_lack);
    }
}

const struct acre_engine_driver acre_engine_local = {
    .name = "local",
    .what = "processes on this machine, each run under its own supervisor",
    .open = local_open,
    .close = local_close,
    .start = local_start,
    .signal = local_signal,
    .adopt = local_adopt,
    .reap = local_reap,
    .forget = local_forget,
    .log_path = local_log_path,
    .pids = local_pids,
    .limit = local_limit,
    .describe = local_describe,
};
