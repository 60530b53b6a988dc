/* local_facts.c - what supervisors report, what the engine finds out itself, and passing it on.
 *
 * Facts of supervisors are passed on as they come. Those that this side makes up itself (a run
 * that cannot be started, one that is lost, one that is reported again) wait for the next turn of
 * the loop: the sink is never called from inside start, signal or adopt.
 *
 * Supervisors of this process's spawner need no watching: the spawner waits for them. Others
 * (adopted ones, and those whose spawner died) are watched through a pidfd each. */
#include "engine/local_late.h"
#include "engine/local_shares.h"

#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FACTS_AT_ONCE = 128 };

/* ---- telling ---- */

static void tell_started(struct local *self, struct local_run *run) {
    if (run->wanted && self->sink.started != NULL) {
        run->told = true;
        self->sink.started(self->sink.context, run->run, run->started_ms, run->pid);
    }
}

/* Runs may be forgotten or started by the sink: look them up anew after each call. */
static void tell_now(struct local *self, struct acre_run token, bool started, bool exited) {
    struct local_run *run = local_find(self, token);
    if (run != NULL && run->pid != 0 && (started || (exited && !run->told))) {
        tell_started(self, run);
        run = local_find(self, token);
    }
    if (run == NULL || !exited || run->result == NULL) {
        return;
    }
    if (!run->wanted) {
        local_remove(self, run); /* reaped */
    } else if (self->sink.exited != NULL) {
        struct acre_run_result result = *run->result;
        self->sink.exited(self->sink.context, token, &result);
    }
}

static void on_telling(void *context) {
    struct local *self = context;
    self->telling = NULL;
    struct local_fact *all = self->to_tell;
    self->to_tell = NULL;
    self->to_tell_last = &self->to_tell;
    while (all != NULL) {
        struct local_fact fact = *all;
        free(all);
        all = fact.next;
        tell_now(self, fact.run, fact.started, fact.exited);
    }
}

void local_tell(struct local *self, struct acre_run run, bool started, bool exited) {
    struct local_fact *fact = acre_calloc(1, sizeof(*fact));
    *fact = (struct local_fact){.run = run, .started = started, .exited = exited};
    *self->to_tell_last = fact;
    self->to_tell_last = &fact->next;
    if (self->telling == NULL) {
        self->telling = acre_loop_timer(self->loop, 0, 0, on_telling, self);
    }
}

static void stop_watching(struct local_run *run) {
    acre_watch_cancel(run->watch);
    run->watch = NULL;
    if (run->watch_fd >= 0) {
        close(run->watch_fd);
        run->watch_fd = -1;
    }
}

static void keep_result(struct local_run *run, const struct acre_run_result *result) {
    bool was_sent = run->stage >= ACRE_LOCAL_SENT;
    run->stage = ACRE_LOCAL_ENDED;
    if (run->result == NULL) {
        run->result = acre_calloc(1, sizeof(*run->result));
    }
    *run->result = *result;
    if (was_sent) { /* what a lost one wrote, nobody said */
        log_room_add(run->owner->log_room, run->run);
    }
    acre_timer_cancel(run->late);
    run->late = NULL;
    acre_timer_cancel(run->again);
    run->again = NULL;
    stop_watching(run);
}

static void end(struct local *self, struct local_run *run, const struct acre_run_result *result) {
    keep_result(run, result);
    local_give_mps(self, run);
    local_give_cu(self, run);
    local_tell(self, run->run, false, true);
}

static void end_without(struct local *self, struct local_run *run, enum run_ending ending, int code,
                        const char *text) {
    struct acre_clock clock = acre_clock_real();
    struct acre_run_result result = {.ending = ending,
                                     .code = code,
                                     .started_ms = run->started_ms,
                                     .ended_ms = acre_clock_wall_ms(&clock),
                                     .peak_ram_mib = UINT64_MAX};
    snprintf(result.text, sizeof(result.text), "%s", text);
    end(self, run, &result);
}

void local_not_started(struct local *self, struct local_run *run, const char *text) {
    end_without(self, run, ACRE_RUN_NOT_STARTED, 0, text);
}

/* Its supervisor is gone without a word. If that was our doing, it is no loss: the run was to end.
 */
static void lose(struct local *self, struct local_run *run) {
    if (!local_is_empty(self, run)) {
        return; /* not over yet */
    }
    cgroup_end(&self->cgroup, run->run, 0); /* its directories */
    if (!run->overdue) {
        end_without(self, run, ACRE_RUN_LOST, 0,
                    run->left_behind
                        ? "its supervisor died; the processes it had started were killed"
                        : "its supervisor died");
        return;
    }
    end_without(self, run, run->told_to_end ? ACRE_RUN_SIGNALED : ACRE_RUN_TIME_LIMIT, SIGKILL,
                "its supervisor did not respond; the daemon killed the run");
}

/* ---- facts from supervisors ---- */

void local_learn(struct local_run *run, const struct fact *fact) {
    run->shim_pid = fact->shim_pid;
    run->pid = fact->pid;
    run->started_ms = fact->started_ms;
    if (fact->kind == ACRE_FACT_STARTING || fact->kind == ACRE_FACT_STARTED) {
        run->plan_known = fact->plan.is_known != 0;
        run->begun_ms = fact->plan.begun_ms;
        run->limit_ms = fact->plan.limit_ms;
        run->grace_ms = fact->plan.grace_ms;
    }
}

bool local_is_live(const struct local *self, const struct local_run *run) {
    struct fact fact;
    return local_look(self, run->run, &fact) == ACRE_LOCAL_LIVE;
}

/* With a signal through a descriptor. The lock was held by this pid before, and is held still: so
 * the descriptor is the shim's, unless that is known to be gone. */
static bool signal_shim(struct local *self, struct local_run *run, int number, siginfo_t *info) {
    int fd = run->shim_pid > 0 && !run->supervisor_gone
                 ? (int)syscall(SYS_pidfd_open, run->shim_pid, 0)
                 : -1;
    bool sent = fd >= 0 && local_is_live(self, run) &&
                syscall(SYS_pidfd_send_signal, fd, number, info, 0) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return sent;
}

void local_kill_supervisor(struct local *self, struct local_run *run) {
    (void)signal_shim(self, run, SIGKILL, NULL); /* its end is noticed, or was */
}

bool local_send_signal(struct local *self, struct local_run *run, int value) {
    siginfo_t info = {.si_signo = ACRE_WIRE_SIGNAL, .si_code = SI_QUEUE};
    info.si_value.sival_int = value;
    info.si_pid = getpid();
    info.si_uid = getuid();
    if (value == ACRE_RUN_KILL) {
        local_expect_end(run, 0);
    } else if (value == ACRE_RUN_TERMINATE && run->plan_known) {
        local_expect_end(run, run->grace_ms);
    }
    return signal_shim(self, run, ACRE_WIRE_SIGNAL, &info);
}

static void send_pending(struct local *self, struct local_run *run) {
    for (int value = 0; run->signals != 0; value++) {
        if ((run->signals & (1U << value)) != 0) {
            run->signals &= (uint8_t) ~(1U << value);
            local_send_signal(self, run, value); /* gone: then its end comes */
        }
    }
}

static void watch_shim(struct local *self, struct local_run *run);

static void take_fact(struct local *self, const struct fact *fact) {
    struct local_run *run = local_find(self, fact->run);
    if (run == NULL || run->stage == ACRE_LOCAL_ENDED) {
        return; /* told again, or forgotten meanwhile */
    }
    local_learn(run, fact);
    if (fact->kind == ACRE_FACT_STARTED || fact->kind == ACRE_FACT_STARTING) {
        run->stage = ACRE_LOCAL_RUNNING;
        if (run->orphan) {
            watch_shim(self, run);
        }
        local_expect_limit(run);
        send_pending(self, run);
        tell_now(self, fact->run, !run->told, false); /* nothing, before it has a process */
    } else if (fact->kind == ACRE_FACT_EXITED) {
        keep_result(run, &fact->result);
        local_give_mps(self, run);
        local_give_cu(self, run);
        tell_now(self, fact->run, false, true);
    }
}

void local_read_facts(struct local *self) {
    struct fact facts[FACTS_AT_ONCE];
    for (;;) {
        ssize_t got = read(self->facts, facts, sizeof(facts));
        for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(facts[0]); i++) {
            if (fact_is_whole(&facts[i])) {
                take_fact(self, &facts[i]);
            }
        }
        if (got < (ssize_t)sizeof(facts)) {
            return;
        }
    }
}

static void on_shim_gone(void *context) {
    struct local_run *run = context;
    struct local *self = run->owner;
    struct acre_run token = run->run;
    stop_watching(run); /* it would be told again and again, until the run has ended */
    run->supervisor_gone = true;
    local_read_facts(self); /* usually its end; the sink may have forgotten it then */
    run = local_find(self, token);
    if (run != NULL && run->stage != ACRE_LOCAL_ENDED) {
        local_check(self, run);
    }
}

static void watch_shim(struct local *self, struct local_run *run) {
    if (run->watch != NULL || run->shim_pid == 0) {
        return;
    }
    run->watch_fd = (int)syscall(SYS_pidfd_open, run->shim_pid, 0);
    if (run->watch_fd >= 0) {
        run->watch = acre_loop_watch(self->loop, run->watch_fd, on_shim_gone, run, NULL);
    } else if (errno == ESRCH) {
        local_await_lock(self, run);
    }
}

void local_check(struct local *self, struct local_run *run) {
    struct fact fact;
    switch (local_look(self, run->run, &fact)) {
    case ACRE_LOCAL_OVER:
        local_learn(run, &fact);
        end(self, run, &fact.result);
        break;
    case ACRE_LOCAL_LIVE:
        if (run->supervisor_gone) {
            local_await_lock(self, run);
        } else if (fact.kind == ACRE_FACT_NONE) {
            local_await_word(run);
        } else {
            local_learn(run, &fact);
            local_expect_limit(run);
            watch_shim(self, run);
        }
        break;
    case ACRE_LOCAL_ABSENT:
        if (run->stage == ACRE_LOCAL_SENT) {
            break; /* the spawner has not come to it yet */
        }
        lose(self, run);
        break;
    case ACRE_LOCAL_DEAD:
    default:
        if (run->stage == ACRE_LOCAL_SENT && run->message.data != NULL) {
            break; /* the spawner is just making its record, and has not locked it yet */
        }
        lose(self, run);
        break;
    }
}
