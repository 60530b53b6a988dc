/* shim.c - the supervisor of one run.
 *
 * Forked from the spawner, it makes the run's cgroup and view, starts its processes, and waits:
 * for them, for signals from the daemon, for deadlines, for output. It needs nobody: limits and
 * warnings come at their time with or without a daemon. In the end everything the run started is
 * gone, the record says how it ended, and only then the daemon is told.
 *
 * It is a subreaper. So whatever the job starts, however it detaches itself, ends as a child of
 * this process: no children left means that nothing of the job is left, without asking a cgroup,
 * and one waitpid says so. Killing goes through the cgroup where there is one, and through the
 * process tree where there is none.
 *
 * `started` is told a few milliseconds late, so that the many jobs that are over by then cost one
 * message instead of two; the daemon makes up the first from the second. */
#include "engine/shim.h"

#include "core/clock.h"
#include "core/file.h"
#include "engine/output.h"
#include "engine/sandbox.h"
#include "engine/tree.h"

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
    PIDS_MAX = 65536,        /* of one run, when all are signalled */
    CPU_FROM_GROUP_MS = 500, /* shorter runs: what wait() says is near enough, and cheaper */
};
#define NEVER UINT64_MAX

struct member {
    pid_t pid;
    bool done;
};

struct supervisor {
    const struct acre_shim *shim;
    struct acre_wire_job job;
    struct acre_cgroup_run group;
    struct acre_output output[2];
    struct member *members;
    uint32_t running;                                                   /* members not done */
    int signals;                                                        /* signalfd */
    uint64_t begun_ms, tell_at_ms, warn_at_ms, limit_at_ms, kill_at_ms; /* monotonic */
    bool began;                                                         /* the first member runs */
    bool waits_to_tell; /* `started` did not fit into the FIFO */
    bool ended;         /* by the daemon or at its limit, not by itself */
    bool out_of_time;
    bool killing;
    bool all_gone;
    bool failed;     /* by `status`, the first one */
    int status;      /* of the first member that failed */
    int last_signal; /* that we sent to end it; 0: none */
    struct acre_fact fact;
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

static void write_record(struct supervisor *self, enum acre_fact_kind kind) {
    self->fact.kind = kind;
    acre_fact_seal(&self->fact);
    /* One page or less, at once: a reader sees the old or the new, or a checksum that fails.
     * When the disk is full there is nothing to be done: the daemon may still hear it. */
    ssize_t wrote = pwrite(self->shim->record, &self->fact, sizeof(self->fact), 0);
    (void)wrote;
}

static void tell_started(struct supervisor *self) {
    self->tell_at_ms = NEVER;
    self->waits_to_tell = !tell(self, false);
}

/* ---- ending ---- */

static uint32_t list_pids(struct supervisor *self, int64_t *pids) {
    uint32_t count = acre_cgroup_lists(&self->shim->hello->cgroup)
                         ? acre_cgroup_pids(&self->group, pids, PIDS_MAX)
                         : acre_tree_pids(getpid(), pids, PIDS_MAX);
    return ACRE_MIN(count, (uint32_t)PIDS_MAX);
}

/* Does the process catch the signal, or wait for it? Its default meaning would end it. */
static bool expects(int64_t pid, int number) {
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
    acre_file_peek(path, text, sizeof(text));
    uint64_t bit = UINT64_C(1) << (number - 1), set = 0;
    const char *const keys[] = {"SigBlk:", "SigIgn:", "SigCgt:"};
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        const char *found = strstr(text, keys[i]);
        set |= found != NULL ? strtoull(found + strlen(keys[i]), NULL, 16) : 0;
    }
    return (set & bit) != 0;
}

static void signal_all(struct supervisor *self, int number, bool only_expected) {
    int64_t *pids = acre_calloc(PIDS_MAX, sizeof(*pids));
    uint32_t count = list_pids(self, pids);
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] > 1 && (!only_expected || expects(pids[i], number))) {
            kill((pid_t)pids[i], number);
        }
    }
    free(pids);
}

static void kill_all(struct supervisor *self) {
    self->killing = true;
    self->kill_at_ms = NEVER;
    if (acre_cgroup_lists(&self->shim->hello->cgroup)) {
        acre_cgroup_kill(&self->group);
    } else {
        acre_tree_kill(getpid());
    }
}

static void terminate(struct supervisor *self) {
    if (self->killing || self->kill_at_ms != NEVER || self->all_gone) {
        return; /* under way */
    }
    self->last_signal = SIGTERM;
    signal_all(self, SIGTERM, false);
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
            signal_all(self, self->job.warn_signal, true);
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
        tell_started(self);
    }
    if (now_ms >= self->warn_at_ms) {
        self->warn_at_ms = NEVER;
        signal_all(self, self->job.warn_signal, true);
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
    return at_ms == NEVER    ? -1
           : at_ms <= now_ms ? 0
                             : (int)ACRE_MIN(at_ms - now_ms, (uint64_t)INT32_MAX);
}

static void wait_for_end(struct supervisor *self) {
    while (!self->all_gone) {
        struct pollfd fds[] = {
            {.fd = self->signals, .events = POLLIN},
            {.fd = self->output[0].pipe, .events = POLLIN},
            {.fd = self->output[1].pipe, .events = POLLIN},
            {.fd = self->waits_to_tell ? self->shim->facts : -1, .events = POLLOUT},
        };
        if (poll(fds, ACRE_COUNT(fds), next_timeout(self)) < 0) {
            continue;
        }
        for (size_t i = 0; i < 2; i++) {
            if (fds[1 + i].revents != 0) {
                acre_output_drain(&self->output[i]);
            }
        }
        if (fds[0].revents != 0) {
            read_signals(self);
        }
        if (fds[3].revents != 0) {
            tell_started(self);
        }
        check_deadlines(self);
    }
}

/* ---- beginning ---- */

static int open_stdin(const struct supervisor *self, int memory) {
    if (memory < 0) {
        return fcntl(self->shim->null, F_DUPFD_CLOEXEC, 3);
    }
    char path[64]; /* opened anew: each member reads from the start */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int fill_stdin(const struct acre_wire_job *job, int *ret_memory, struct acre_error *err) {
    *ret_memory = -1;
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
    *ret_memory = fd;
    return fd >= 0 ? 0 : acre_fail_errno(err, errno, "standard input");
}

static int start_member(struct supervisor *self, uint32_t index, int memory, const int job_ends[2],
                        struct acre_error *err) {
    const struct acre_wire_job *job = &self->job;
    bool limited = self->shim->hello->cgroup.limits[ACRE_CGROUP_MEMORY];
    struct acre_sandbox sandbox = {
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
        .streams = {open_stdin(self, memory), job_ends[0], job_ends[1]},
        .data_mib = limited ? 0 : job->ram_mib,
        .arguments = job->arguments,
        .environment = job->environment[index],
    };
    pid_t pid = 0;
    int r = acre_sandbox_start(&sandbox, &pid, err);
    close(sandbox.streams[0]);
    if (r < 0) {
        return job->member_count > 1 ? acre_fail_in(err, r, "member %" PRIu32, index) : r;
    }
    self->members[index] = (struct member){.pid = pid};
    self->running++;
    return 0;
}

static int start_members(struct supervisor *self, struct acre_error *err) {
    int job_ends[2] = {-1, -1};
    int memory = -1;
    for (int i = 0; i < 2; i++) {
        int error = acre_output_open(&self->output[i], self->shim->logs_directory, self->job.run,
                                     i == 0 ? "out" : "err", self->shim->hello->log_max_bytes,
                                     &job_ends[i]);
        if (error != 0) {
            return acre_fail_errno(err, error, "pipe"); /* this process ends soon */
        }
    }
    int r = fill_stdin(&self->job, &memory, err);
    self->fact.started_ms = wall_ms();
    self->begun_ms = monotonic_ms();
    for (uint32_t i = 0; i < self->job.member_count; i++) {
        self->members[i].done = true; /* until it runs */
    }
    for (uint32_t i = 0; i < self->job.member_count && r == 0; i++) {
        r = start_member(self, i, memory, job_ends, err);
    }
    if (memory >= 0) {
        close(memory);
    }
    close(job_ends[0]);
    close(job_ends[1]);
    return r;
}

static uint64_t after(uint64_t from_ms, uint64_t ms) {
    uint64_t at_ms;
    return ms == 0 || __builtin_add_overflow(from_ms, ms, &at_ms) ? NEVER : at_ms;
}

static int begin(struct supervisor *self, struct acre_error *err) {
    const struct acre_wire_job *job = &self->job;
    struct acre_cgroup_limits limits = {.cpu_milli = job->cpu_milli,
                                        .ram_mib = job->ram_mib,
                                        .pids_max = job->pids_max,
                                        .rules = job->rules,
                                        .rule_count = job->rule_count};
    int r = acre_cgroup_make(&self->shim->hello->cgroup, job->run, &limits, &self->group, err);
    if (r == 0 && self->shim->hello->is_root) {
        struct acre_sandbox_view view = {.tmp_mib = job->ram_mib,
                                         .no_network = job->no_network,
                                         .directory = job->directory,
                                         .uid = job->uid,
                                         .gid = job->gid};
        r = acre_sandbox_isolate(&view, err);
    }
    r = r == 0 ? start_members(self, err) : r;
    if (r < 0) {
        return r;
    }
    self->began = true;
    self->fact.pid = self->members[0].pid;
    write_record(self, ACRE_FACT_STARTED);
    self->tell_at_ms = self->begun_ms + TELL_AFTER_MS;
    self->limit_at_ms = after(self->begun_ms, job->limit_ms);
    if (job->warn_ms > 0 && job->limit_ms > job->warn_ms) {
        self->warn_at_ms = after(self->begun_ms, job->limit_ms - job->warn_ms);
    }
    return 0;
}

/* ---- the result ---- */

static void measure(struct supervisor *self, struct acre_run_result *result,
                    struct acre_cgroup_use *use) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    uint64_t cpu_ms = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                      (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    bool is_long = monotonic_ms() - self->begun_ms > CPU_FROM_GROUP_MS;
    acre_cgroup_read(&self->group, is_long, use);
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

static void conclude(struct supervisor *self, const struct acre_error *err) {
    struct acre_run_result *result = &self->fact.result;
    struct acre_cgroup_use use = {0};
    result->ended_ms = wall_ms();
    if (!self->began) {
        result->ending = ACRE_RUN_NOT_STARTED;
        result->peak_ram_mib = UINT64_MAX;
        snprintf(result->text, sizeof(result->text), "%s", err->text);
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
        snprintf(result->text, sizeof(result->text),
                 "killed by the kernel at its limit of %" PRIu64 " MiB", self->job.ram_mib);
    } else {
        result->ending = signaled ? ACRE_RUN_SIGNALED : ACRE_RUN_EXITED;
        result->code = signaled       ? WTERMSIG(self->status)
                       : self->failed ? WEXITSTATUS(self->status)
                                      : 0;
    }
}

_Noreturn void acre_shim_supervise(const struct acre_shim *shim, char *start, size_t length) {
    struct supervisor self = {
        .shim = shim,
        .output = {{.pipe = -1, .file = -1}, {.pipe = -1, .file = -1}},
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

    struct acre_error err = {0};
    memcpy(&self.fact.run, start + offsetof(struct acre_wire_job, run), sizeof(self.fact.run));
    self.fact.shim_pid = getpid();
    self.group = acre_cgroup_run_none(&shim->hello->cgroup, self.fact.run);
    int r = acre_wire_decode(start, length, &self.job, &err);
    if (r == 0) {
        self.members = acre_calloc(self.job.member_count, sizeof(*self.members));
        r = begin(&self, &err);
    }
    if (r < 0 && self.running > 0) {
        kill_all(&self); /* a gang that is not complete */
    }
    if (self.running > 0) {
        wait_for_end(&self);
    }
    for (size_t i = 0; i < 2; i++) {
        acre_output_drain(&self.output[i]); /* a pipe holds no more than this moves */
        acre_output_close(&self.output[i]);
    }
    conclude(&self, &err);
    acre_cgroup_drop(&self.group);
    write_record(&self, ACRE_FACT_EXITED);
    tell(&self, true);
    exit(0);
}
