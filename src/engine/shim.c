/* shim.c - the supervisor of one run.
 *
 * Forked from the spawner, it makes the run's cgroup and view, starts its processes, and waits:
 * for them, for signals from the daemon, for deadlines, for output. It needs no other process:
 * limits and warnings come at their time with or without a daemon. In the end everything the run
 * started has ended, the record says how, and only then is it reported to the daemon.
 *
 * It is a subreaper. So whatever the job starts, however it detaches itself, ends as a child of
 * this process: no children left means that nothing of the job is left, without asking a cgroup,
 * and one waitpid says so. Killing goes through the cgroup where there is one, and through the
 * process tree where there is none.
 *
 * `started` is reported a few milliseconds late, so that the many jobs that are over by then cost
 * one message instead of two; the daemon makes up the first from the second.
 *
 * Nothing of the user's may hold it up. A child that is on its way to its command is waited for
 * like everything else, in the one loop; if that takes long, the daemon is notified that there is a
 * supervisor to send signals to (STARTING). Members start one after the other: the first that
 * cannot be started ends the run. */
#include "engine/shim.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/units.h"
#include "engine/descendants.h"
#include "engine/output.h"
#include "engine/pids.h"
#include "engine/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TELL_AFTER_MS = 3,
    OUTPUT_BYTES_A_MS = 4 << 10, /* 4 MB/s: thousands of lines a second, and no disk is kept busy */
    OUTPUT_BURST_MS = 4000,      /* 16 MB at once */
    CPU_FROM_GROUP_MS = 500,     /* shorter runs: what wait() says is near enough, and cheaper */
};
#define NEVER UINT64_MAX
/* How soon the kernel ends a process when memory is short, from -1000 to 1000. A child has the
 * supervisor's while they share memory; so the supervisor takes the job's for that time. */
#define JOB_OOM_SCORE "200"
#define OWN_OOM_SCORE "-900"

struct member {
    pid_t pid;
    bool done;
};

struct supervisor {
    const struct acre_shim *shim;
    struct wire_job job; /* what it points to: only until all members run */
    char *start;         /* where that is; NULL: no longer */
    size_t start_bytes;
    struct cgroup_run group;
    struct output output[2];
    uint64_t output_due_us; /* when what was written would have been, at the rate allowed */
    uint64_t output_at_ms;  /* nothing is read before; monotonic */
    struct member *members;
    uint32_t begun;            /* members that were begun */
    uint32_t running;          /* members not done */
    struct child_start *child; /* the last of them, while it is on its way; NULL: it is not */
    bool watches_child;        /* its end matters now, not only when the next thing happens */
    int input;                 /* memory file with standard input; -1: none */
    int job_ends[2];           /* of the output pipes, until all have begun */
    int proc;                  /* /proc as the daemon sees it, in a PID namespace; -1 */
    int signals;               /* signalfd */
    uint64_t begun_ms, tell_at_ms, warn_at_ms, limit_at_ms, kill_at_ms; /* monotonic */
    bool began;         /* all members were started */
    bool told;          /* something, for the first time */
    bool waits_to_tell; /* `started` did not fit into the FIFO */
    bool ended;         /* by the daemon or at its limit, not by itself */
    bool out_of_time;
    bool killing;
    bool all_gone;
    bool failed;     /* by `status`, the first one */
    int status;      /* of the first member that failed */
    int last_signal; /* that we sent to end it; 0: none */
    struct fact fact;
    struct acre_error error; /* why it could not begin */
};

static uint64_t monotonic_ms(void) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_monotonic_ns(&clock) / 1000000;
}

static uint64_t wall_ms(void) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_wall_ms(&clock);
}

/* ---- telling ---- */

/* False: the FIFO is full and `wait` was not asked for. Without a daemon there is nobody to tell
 * (EPIPE): the record says it all, and the next one reads it. */
static bool tell(struct supervisor *self, bool wait) {
    while (write(self->shim->facts, &self->fact, sizeof(self->fact)) < 0 && errno == EAGAIN) {
        struct pollfd room = {.fd = self->shim->facts, .events = POLLOUT};
        if (!wait) {
            return false;
        }
        poll(&room, 1, -1);
    }
    return true;
}

static void write_record(struct supervisor *self, enum fact_kind kind) {
    self->fact.kind = kind;
    fact_seal(&self->fact);
    /* One page or less, at once: a reader sees the old or the new, or a checksum that fails.
     * When the disk is full there is nothing to be done: the daemon may still hear it. */
    ssize_t wrote = pwrite(self->shim->record, &self->fact, sizeof(self->fact), 0);
    (void)wrote;
}

static bool put_score(const char *score) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    bool put = fd >= 0 && write(fd, score, strlen(score)) > 0;
    if (fd >= 0) {
        close(fd);
    }
    return put;
}

static void tell_again(struct supervisor *self) {
    self->waits_to_tell = !tell(self, false);
}

/* What is true now: that it has started, or only that somebody is there. */
static void tell_stand(struct supervisor *self) {
    self->tell_at_ms = NEVER;
    self->told = self->watches_child = true;
    if (self->began && !put_score(OWN_OOM_SCORE)) {
        (void)put_score("0"); /* without root: as any process */
    }
    write_record(self, self->began ? ACRE_FACT_STARTED : ACRE_FACT_STARTING);
    tell_again(self);
}

/* ---- ending ---- */

static uint32_t list_pids(void *context, int64_t *pids, uint32_t max) {
    const struct supervisor *self = context;
    return cgroup_lists(&self->shim->hello->cgroup) ? cgroup_pids(&self->group, pids, max)
                                                    : descendants_find(getpid(), pids, max);
}

/* Does the process catch the signal, or wait for it? Its default meaning would end it. */
static bool expects_warning(void *context, int64_t pid) {
    const struct supervisor *self = context;
    char path[64], text[4096];
    if (self->child != NULL && pid == child_start_pid(self->child)) {
        return false; /* everything is blocked until it is the user's */
    }
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
    acre_file_peek(path, text, sizeof(text));
    uint64_t bit = UINT64_C(1) << (self->job.warn_signal - 1), set = 0;
    const char *const keys[] = {"SigBlk:", "SigIgn:", "SigCgt:"};
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        const char *found = strstr(text, keys[i]);
        set |= found != NULL ? strtoull(found + strlen(keys[i]), NULL, 16) : 0;
    }
    return (set & bit) != 0;
}

static void warn(struct supervisor *self) {
    pids_signal(list_pids, expects_warning, self, self->job.warn_signal);
}

static void kill_all(struct supervisor *self) {
    self->killing = self->watches_child = true;
    self->kill_at_ms = NEVER;
    if (cgroup_lists(&self->shim->hello->cgroup)) {
        cgroup_kill(&self->group);
    } else {
        descendants_kill(getpid());
    }
}

static void terminate(struct supervisor *self) {
    if (self->killing || self->kill_at_ms != NEVER || self->all_gone) {
        return; /* under way */
    }
    self->last_signal = SIGTERM;
    pids_signal(list_pids, NULL, self, SIGTERM);
    uint64_t now_ms = monotonic_ms();
    bool never = __builtin_add_overflow(now_ms, self->job.grace_ms, &self->kill_at_ms);
    if (never) {
        self->kill_at_ms = NEVER;
    }
}

static void end_now(struct supervisor *self) {
    if (!self->all_gone) {
        self->last_signal = SIGKILL;
        kill_all(self);
    }
}

/* ---- waiting ---- */

static void settle(struct supervisor *self);

static void member_ended(struct supervisor *self, struct member *member, int status) {
    member->done = true;
    self->running--;
    if (status != 0 && !self->failed) {
        self->failed = true;
        self->status = status;
        if (self->running > 0) {
            terminate(self); /* the first that fails ends the others */
        }
    }
}

static void reap(struct supervisor *self) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (self->child != NULL && pid == child_start_pid(self->child)) {
            settle(self); /* is it the command's end, or did it never become that? */
        }
        for (uint32_t i = 0; i < self->job.member_count; i++) {
            if (self->members[i].pid == pid && !self->members[i].done) {
                member_ended(self, &self->members[i], status);
                break;
            }
        }
    }
    self->all_gone = pid < 0 && errno == ECHILD;
    bool again = self->killing && !self->shim->hello->cgroup.kills;
    if (!self->all_gone && (self->running == 0 || again)) {
        if (!self->killing || again) {
            kill_all(self); /* what the job left behind; and who was just forked */
        }
    }
}

static void obey(struct supervisor *self, const struct signalfd_siginfo *info) {
    if ((int)info->ssi_signo == SIGTERM) {
        self->ended = true;
        terminate(self);
    } else if ((int)info->ssi_signo == ACRE_WIRE_SIGNAL) {
        switch ((enum acre_run_signal)info->ssi_int) {
        case ACRE_RUN_CHECKPOINT:
            warn(self);
            break;
        case ACRE_RUN_TERMINATE:
            self->ended = true;
            terminate(self);
            break;
        case ACRE_RUN_KILL:
        default:
            self->ended = true;
            end_now(self);
            break;
        }
    }
}

static void read_signals(struct supervisor *self) {
    struct signalfd_siginfo infos[8];
    ssize_t got = read(self->signals, infos, sizeof(infos));
    reap(self);
    for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(infos[0]); i++) {
        obey(self, &infos[i]);
    }
}

static void check_deadlines(struct supervisor *self) {
    uint64_t now_ms = monotonic_ms();
    if (now_ms >= self->tell_at_ms) {
        settle(self);
        tell_stand(self);
    }
    if (now_ms >= self->warn_at_ms) {
        self->warn_at_ms = NEVER;
        warn(self);
    }
    if (now_ms >= self->limit_at_ms) {
        self->limit_at_ms = NEVER;
        self->out_of_time = self->ended = true;
        terminate(self);
    }
    if (now_ms >= self->kill_at_ms) {
        end_now(self);
    }
}

static int next_timeout(const struct supervisor *self) {
    uint64_t at_ms = ACRE_MIN(ACRE_MIN(self->tell_at_ms, self->warn_at_ms),
                              ACRE_MIN(self->limit_at_ms, self->kill_at_ms));
    uint64_t now_ms = monotonic_ms();
    if (self->output_at_ms > now_ms) {
        at_ms = ACRE_MIN(at_ms, self->output_at_ms);
    }
    return at_ms == NEVER    ? -1
           : at_ms <= now_ms ? 0
                             : (int)ACRE_MIN(at_ms - now_ms, (uint64_t)INT32_MAX);
}

/* A job that writes faster than that for long waits: its log is rotated anyway, and the disk is
 * everybody's. */
static void drain(struct supervisor *self, size_t stream) {
    uint64_t before = self->output[stream].total, now_us = monotonic_ms() * 1000;
    output_drain(&self->output[stream]);
    uint64_t cost_us = (self->output[stream].total - before) * 1000 / OUTPUT_BYTES_A_MS;
    self->output_due_us = ACRE_MAX(self->output_due_us, now_us) + cost_us;
    if (self->output_due_us > now_us + OUTPUT_BURST_MS * 1000) {
        self->output_at_ms = self->output_due_us / 1000 - OUTPUT_BURST_MS + 1;
    }
}

static void wait_for_end(struct supervisor *self) {
    while (!self->all_gone) {
        bool reads = monotonic_ms() >= self->output_at_ms;
        struct pollfd fds[] = {
            {.fd = self->signals, .events = POLLIN},
            {.fd = reads ? self->output[0].pipe : -1, .events = POLLIN},
            {.fd = reads ? self->output[1].pipe : -1, .events = POLLIN},
            {.fd = self->waits_to_tell ? self->shim->facts : -1, .events = POLLOUT},
            {.fd = self->child != NULL && self->watches_child ? child_start_descriptor(self->child)
                                                              : -1,
             .events = POLLIN},
        };
        if (poll(fds, ACRE_COUNT(fds), next_timeout(self)) < 0) {
            continue;
        }
        for (size_t i = 0; i < 2; i++) {
            if (fds[1 + i].revents != 0) {
                drain(self, i);
            }
        }
        if (fds[0].revents != 0) {
            read_signals(self);
        }
        if (fds[3].revents != 0) {
            tell_again(self);
        }
        if (fds[4].revents != 0) {
            settle(self);
        }
        check_deadlines(self);
    }
}

/* ---- beginning ---- */

static int open_stdin(const struct supervisor *self) {
    if (self->input < 0) {
        return fcntl(self->shim->null, F_DUPFD_CLOEXEC, 3);
    }
    char path[64]; /* opened anew: each member reads from the start */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", self->input);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int fill_stdin(struct supervisor *self, struct acre_error *err) {
    const struct wire_job *job = &self->job;
    if (!job->has_stdin) {
        return 0;
    }
    int fd = memfd_create("stdin", MFD_CLOEXEC);
    for (uint64_t done = 0; fd >= 0 && done < job->stdin_bytes;) {
        ssize_t wrote = write(fd, job->stdin_text + done, job->stdin_bytes - done);
        if (wrote < 0) {
            close(fd);
            fd = -1;
        } else {
            done += (uint64_t)wrote;
        }
    }
    self->input = fd;
    return fd >= 0 ? 0 : acre_fail_errno(err, errno, "standard input");
}

static int start_member(struct supervisor *self, struct acre_error *err) {
    struct wire_job *job = &self->job;
    uint32_t index = self->begun;
    bool limited = self->shim->hello->cgroup.limits[ACRE_CGROUP_MEMORY];
    struct sandbox sandbox = {
        .group = &self->group,
        .change_user = self->shim->hello->is_root,
        .uid = job->uid,
        .gid = job->gid,
        .groups = job->groups,
        .group_count = job->group_count,
        .filter = self->shim->filter,
        .filter_length = self->shim->filter_length,
        .directory = job->directory,
        .any_directory = job->any_directory,
        .streams = {open_stdin(self), self->job_ends[0], self->job_ends[1]},
        /* It counts what is mapped, not what is used: only for those who asked for a limit. */
        .data_mib = limited || job->ram_is_default ? 0 : job->ram_mib,
        .proc = self->proc,
        .arguments = job->arguments,
        .environment = wire_environment(job, index),
    };
    int r = sandbox_start(&sandbox, &self->child, err);
    close(sandbox.streams[0]);
    if (r == 0) {
        self->members[index] = (struct member){.pid = child_start_pid(self->child)};
        self->begun++;
        self->running++;
    }
    return r;
}

static void close_streams(struct supervisor *self) {
    int *const fds[] = {&self->input, &self->job_ends[0], &self->job_ends[1]};
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
        }
        *fds[i] = -1;
    }
}

/* Nobody is on the way to a command any more. A run can last for weeks, and this memory is in no
 * job's limit; so it does not stay. */
static void forget_start(struct supervisor *self) {
    wire_job_finish(&self->job);
    if (self->start != NULL && self->start_bytes > ACRE_WIRE_INLINE_MAX) {
        munmap(self->start, self->start_bytes);
    }
    self->start = NULL;
}

/* It cannot begin: what was started ends. */
static void fail_start(struct supervisor *self, uint32_t index, int r) {
    if (self->job.member_count > 1) {
        acre_fail_in(&self->error, r, "member %" PRIu32, index);
    }
    self->fact.pid = 0; /* nothing has begun */
    close_streams(self);
    forget_start(self);
    kill_all(self);
}

/* The child on its way has arrived, or failed: then the next one, or all are there. */
static void settle(struct supervisor *self) {
    while (self->child != NULL && child_start_is_over(self->child)) {
        uint32_t index = self->begun - 1;
        int64_t pid = 0;
        int r = child_start_finish(self->child, &pid, &self->error);
        self->child = NULL;
        self->fact.pid = index == 0 ? pid : self->fact.pid;
        if (r < 0) {
            self->members[index].done = true; /* it says nothing about the command */
            self->running--;
            fail_start(self, index, r);
            return;
        }
        if (self->killing) {
            kill_all(self); /* it was not in its group yet when the others were killed */
        }
        bool goes_on = !self->ended && !self->failed && !self->killing;
        if (self->begun < self->job.member_count && goes_on) {
            r = start_member(self, &self->error);
            if (r < 0) {
                fail_start(self, self->begun, r);
                return;
            }
        }
    }
    if (self->child == NULL && !self->began && self->error.text[0] == '\0') {
        self->began = true;
        close_streams(self);
        forget_start(self);
        if (self->told) {
            self->tell_at_ms = 0; /* it took long: at once */
        }
    }
}

static int open_streams(struct supervisor *self, struct acre_error *err) {
    for (int i = 0; i < 2; i++) {
        int error = output_open(&self->output[i], self->shim->logs_directory, self->job.run,
                                self->job.uid, i == 0 ? "out" : "err",
                                self->shim->hello->log_max_bytes, &self->job_ends[i]);
        if (error != 0) {
            return acre_fail_errno(err, error, "pipe"); /* this process ends soon */
        }
    }
    return fill_stdin(self, err);
}

static uint64_t after(uint64_t from_ms, uint64_t ms) {
    uint64_t at_ms;
    return ms == 0 || __builtin_add_overflow(from_ms, ms, &at_ms) ? NEVER : at_ms;
}

static int isolate(struct supervisor *self, struct acre_error *err) {
    const struct wire_job *job = &self->job;
    struct sandbox_view view = {.tmp_mib = job->ram_mib,
                                .no_network = job->no_network,
                                .private_processes = job->private_processes,
                                .directory = job->directory,
                                .uid = job->uid,
                                .gid = job->gid,
                                .groups = job->groups,
                                .group_count = job->group_count,
                                .group = &self->group};
    if (!self->shim->hello->is_root) {
        return 0;
    }
    if (sandbox_may_hang(&view)) {
        tell_stand(self); /* so that it can be killed meanwhile */
    }
    return sandbox_isolate(&view, err);
}

static int begin(struct supervisor *self, struct acre_error *err) {
    const struct wire_job *job = &self->job;
    struct cgroup_limits limits = {.cpu_milli = job->cpu_milli,
                                   .ram_mib = job->ram_mib,
                                   .ram_is_default = job->ram_is_default,
                                   .pids_max = job->pids_max,
                                   .rules = job->rules,
                                   .rule_count = job->rule_count};
    self->fact.started_ms = wall_ms();
    self->fact.plan.is_known = 1;
    self->fact.plan.begun_ms = monotonic_ms();
    self->fact.plan.limit_ms = job->limit_ms;
    self->fact.plan.grace_ms = job->grace_ms;
    int r = cgroup_make(&self->shim->hello->cgroup, job->run, &limits, &self->group, err);
    r = r == 0 ? isolate(self, err) : r;
    r = r == 0 ? open_streams(self, err) : r;
    if (r < 0) {
        return r;
    }
    self->fact.started_ms = wall_ms();
    self->begun_ms = self->fact.plan.begun_ms = monotonic_ms();
    self->tell_at_ms = self->begun_ms + TELL_AFTER_MS;
    self->limit_at_ms = after(self->begun_ms, job->limit_ms);
    if (job->warn_ms > 0 && job->limit_ms > job->warn_ms) {
        self->warn_at_ms = after(self->begun_ms, job->limit_ms - job->warn_ms);
    }
    self->watches_child = job->member_count > 1;
    (void)put_score(JOB_OOM_SCORE);
    r = start_member(self, err);
    if (r == 0 && job->member_count == 1) {
        close_streams(self); /* the child has its own; so an end of output is seen */
    }
    return r;
}

/* ---- the result ---- */

static void measure(struct supervisor *self, struct acre_run_result *result,
                    struct cgroup_use *use) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    uint64_t cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    bool is_long = monotonic_ms() - self->begun_ms > CPU_FROM_GROUP_MS;
    cgroup_read(&self->group, is_long, self->failed, use);
    result->cpu_ms = use->cpu_ms != UINT64_MAX ? ACRE_MAX(use->cpu_ms, cpu_ms) : cpu_ms;
    uint64_t largest_mib = ((uint64_t)usage.ru_maxrss + 1023) / 1024;
    result->peak_ram_mib = use->peak_mib != UINT64_MAX ? use->peak_mib : largest_mib;
    result->log_bytes = self->output[0].total + self->output[1].total;
}

/* A log that lacks something looks whole: so it is said where people look first. */
static void tell_lost_output(const struct supervisor *self, struct acre_run_result *result) {
    uint64_t dropped = self->output[0].dropped + self->output[1].dropped;
    uint64_t gone = self->output[0].gone + self->output[1].gone;
    if (dropped > 0) {
        snprintf(result->text, sizeof(result->text),
                 "%" PRIu64 " bytes of output could not be written", dropped);
    } else if (gone > 0) {
        snprintf(result->text, sizeof(result->text),
                 "too much output: the first %" PRIu64 " bytes were not kept", gone);
    }
}

static void tell_out_of_memory(const struct supervisor *self, const struct cgroup_use *use,
                               struct acre_run_result *result) {
    char limit[32];
    if (use->at_own_limit) {
        acre_format_mib(self->job.ram_mib, limit, sizeof(limit));
        snprintf(result->text, sizeof(result->text),
                 "ran out of memory: its limit was %s%s; ask for more with --memory", limit,
                 self->job.ram_is_default ? ", the default" : "");
    } else {
        uint64_t all_mib = self->shim->hello->cgroup.jobs_mib;
        acre_format_mib(all_mib, limit, sizeof(limit));
        snprintf(result->text, sizeof(result->text),
                 "ran out of memory: it was below its own limit, but all jobs together had used "
                 "all the memory this machine has for jobs%s%s%s",
                 all_mib > 0 ? " (" : "", all_mib > 0 ? limit : "", all_mib > 0 ? ")" : "");
    }
}

static void conclude(struct supervisor *self) {
    struct acre_run_result *result = &self->fact.result;
    struct cgroup_use use = {0};
    memset(result, 0, sizeof(*result)); /* the plan was there */
    result->ended_ms = wall_ms();
    if (!self->began) {
        result->ending = ACRE_RUN_NOT_STARTED;
        result->peak_ram_mib = UINT64_MAX;
        snprintf(result->text, sizeof(result->text), "%s", self->error.text);
        return;
    }
    result->started_ms = self->fact.started_ms;
    measure(self, result, &use);
    tell_lost_output(self, result);
    bool signaled = self->failed && WIFSIGNALED(self->status);
    if (self->out_of_time) {
        result->ending = ACRE_RUN_TIME_LIMIT;
        result->code = self->last_signal;
    } else if (self->failed && !self->ended && use.oom_kills > 0) {
        result->ending = ACRE_RUN_OUT_OF_MEMORY;
        result->code = SIGKILL;
        tell_out_of_memory(self, &use, result);
    } else {
        result->ending = signaled ? ACRE_RUN_SIGNALED : ACRE_RUN_EXITED;
        result->code = signaled       ? WTERMSIG(self->status)
                       : self->failed ? WEXITSTATUS(self->status)
                                      : 0;
    }
}

/* The numbers the daemon knows us by. In a PID namespace ours are others. */
static void find_self(struct supervisor *self) {
    char text[24] = "";
    if (self->job.private_processes) {
        self->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        ssize_t length = readlinkat(self->proc, "self", text, sizeof(text) - 1);
        text[length > 0 ? length : 0] = '\0';
        self->fact.shim_pid = strtoll(text, NULL, 10);
    }
}

static void supervise(struct supervisor *self) {
    int r = wire_decode(self->start, self->start_bytes, &self->job, &self->error);
    if (r == 0) {
        find_self(self);
        self->members = acre_calloc(self->job.member_count, sizeof(*self->members));
        r = begin(self, &self->error);
    }
    if (r < 0) {
        close_streams(self);
        forget_start(self);
        reap(self); /* and kill what is there: a process that should find the directory */
    }
    wait_for_end(self);
    settle(self);
    for (size_t i = 0; i < 2; i++) {
        output_drain(&self->output[i]); /* a pipe holds no more than this moves */
        output_close(&self->output[i]);
    }
}

_Noreturn void acre_shim_supervise(const struct acre_shim *shim, char *start, size_t length) {
    struct supervisor self = {
        .shim = shim,
        .start = start,
        .start_bytes = length,
        .output = {{.pipe = -1, .file = -1}, {.pipe = -1, .file = -1}},
        .input = -1,
        .job_ends = {-1, -1},
        .proc = -1,
        .tell_at_ms = NEVER,
        .warn_at_ms = NEVER,
        .limit_at_ms = NEVER,
        .kill_at_ms = NEVER,
    };
    memset(&self.fact, 0, sizeof(self.fact)); /* padding too: it is written to files */
    prctl(PR_SET_CHILD_SUBREAPER, 1);         /* the spawner's session is ours: nobody leads it */
    prctl(PR_SET_NAME, "acre-shim");
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, ACRE_WIRE_SIGNAL);
    self.signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    self.fact.shim_pid = getpid();
    memcpy(&self.fact.run, start + offsetof(struct wire_job, run), sizeof(self.fact.run));
    self.group = cgroup_run_none(&shim->hello->cgroup, self.fact.run);
    supervise(&self);
    conclude(&self);
    cgroup_drop(&self.group);
    write_record(&self, ACRE_FACT_EXITED);
    tell(&self, true);
    exit(0);
}
