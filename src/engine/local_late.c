/* local_late.c - a run that should have ended and has not is ended from here.
 *
 * Supervisors keep limits and obey signals by themselves. This is for the one that does not, for
 * whatever reason: it was stopped, or the kernel does not let go of it. Every order to end, and
 * every time limit, has a moment by which the end must have been reported, with a margin. Then the
 * run's processes are killed; a supervisor that is well sees that and reports the end as usual.
 * When they have ended and still nothing was reported, the supervisor is killed too, and the end
 * is made up here.
 *
 * A run is over when its processes are, and never before: a process that the kernel does not end
 * (it hangs in a dead disk or driver) is killed again every second, and its run goes on. The loop
 * never waits for it.
 *
 * A supervisor can end before its lock is released: a child that it was just starting has a copy
 * of the descriptor, and the kernel may be slow to end that one. Nothing reports when the lock is
 * free, so it is looked at again and again, every second in the end. */
#include "engine/local_late.h"

#include "core/clock.h"
#include "engine/descendants.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MARGIN_MS = 5000, /* a supervisor needs milliseconds; a machine that swaps needs seconds */
    AGAIN_MS = 1000,
    SOON_MS = 10,  /* after a kill: the kernel takes a few milliseconds to end processes */
    DOUBLINGS = 7, /* of that, up to AGAIN_MS */
};

static uint64_t margin_of(const struct local *self) {
    return self->margin_ms > 0 ? self->margin_ms : MARGIN_MS;
}

static uint64_t now_ms(void) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_monotonic_ns(&clock) / 1000000;
}

/* SIGKILL to all processes of the run but its supervisor; how many there were. */
static uint32_t kill_processes(struct local *self, struct local_run *run) {
    struct cgroup_run group;
    uint32_t count = 0;
    if (cgroup_lists(&self->cgroup)) {
        if (cgroup_find(&self->cgroup, run->run, &group)) {
            count = cgroup_pids(&group, NULL, 0);
            cgroup_kill(&group);
            cgroup_shut(&group);
        }
    } else if (run->shim_pid > 0 && !run->supervisor_gone && local_is_live(self, run)) {
        count = descendants_find(run->shim_pid, NULL, 0);
        descendants_kill(run->shim_pid);
    }
    return count;
}

static void on_late(void *context);

static void arm(struct local_run *run, uint64_t in_ms) {
    acre_timer_cancel(run->late);
    run->late = acre_loop_timer(run->owner->loop, in_ms, 0, on_late, run);
}

static void on_late(void *context) {
    struct local_run *run = context;
    struct local *self = run->owner;
    run->late = NULL;
    if (run->supervisor_gone) {
        local_check(self, run); /* ends it, or comes back here */
        return;
    }
    if (run->stage < ACRE_LOCAL_SENT) {
        run->ordered_ms = 0;
        return; /* nothing was started; what it was told waits for that */
    }
    bool was_empty = run->was_empty;
    run->overdue = true;
    arm(run, AGAIN_MS);
    run->was_empty = kill_processes(self, run) == 0;
    if (run->was_empty && was_empty) { /* it had a second to report the end, and did not */
        local_kill_supervisor(self, run);
        local_check(self, run); /* maybe it was gone, and nobody said so */
    }
}

/* From now on it ends by the earlier of its two deadlines, unless it is being ended already. */
static void arm_deadline(struct local_run *run) {
    uint64_t at_ms = run->ordered_ms == 0 || run->limited_ms == 0
                         ? ACRE_MAX(run->ordered_ms, run->limited_ms)
                         : ACRE_MIN(run->ordered_ms, run->limited_ms);
    uint64_t from_ms = now_ms();
    if (at_ms != 0 && run->stage != ACRE_LOCAL_ENDED && !run->overdue && !run->supervisor_gone) {
        arm(run, at_ms > from_ms ? at_ms - from_ms : 0);
    }
}

/* So many ms from then, and the margin; 0: beyond all time. */
static uint64_t deadline(const struct local_run *run, uint64_t from_ms, uint64_t in_ms) {
    uint64_t at_ms;
    bool never = __builtin_add_overflow(from_ms, in_ms, &at_ms) ||
                 __builtin_add_overflow(at_ms, margin_of(run->owner), &at_ms);
    return never ? 0 : at_ms;
}

void local_expect_end(struct local_run *run, uint64_t in_ms) {
    uint64_t at_ms = deadline(run, now_ms(), in_ms);
    if (at_ms != 0 && (run->ordered_ms == 0 || at_ms < run->ordered_ms)) {
        run->ordered_ms = at_ms;
        arm_deadline(run);
    }
}

void local_expect_limit(struct local_run *run) {
    uint64_t last_ms;
    if (run->plan_known && run->limit_ms != 0 &&
        !__builtin_add_overflow(run->limit_ms, run->grace_ms, &last_ms)) {
        run->limited_ms = deadline(run, run->begun_ms, last_ms);
        arm_deadline(run);
    }
}

/* Soon, then later and later. */
static uint64_t next_try(uint8_t *tries) {
    uint64_t in_ms = *tries < DOUBLINGS ? (uint64_t)SOON_MS << *tries : AGAIN_MS;
    *tries = (uint8_t)ACRE_MIN(*tries + 1, DOUBLINGS);
    return in_ms;
}

bool local_is_empty(struct local *self, struct local_run *run) {
    run->supervisor_gone = true;
    if (kill_processes(self, run) == 0) {
        return true;
    }
    run->left_behind = true;
    arm(run, next_try(&run->late_tries));
    return false;
}

void local_await_lock(struct local *self, struct local_run *run) {
    if (local_is_empty(self, run)) {
        arm(run, next_try(&run->late_tries));
    }
}

static void on_again(void *context) {
    struct local_run *run = context;
    run->again = NULL;
    if (run->shim_pid == 0) {
        local_check(run->owner, run); /* ends it, or comes back here */
    }
}

void local_await_word(struct local_run *run) {
    if (run->again == NULL) {
        run->again =
            acre_loop_timer(run->owner->loop, next_try(&run->again_tries), 0, on_again, run);
    }
}
