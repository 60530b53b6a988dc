/* timer.c - what happens by itself at a known time: begins, back-offs, graces, idle limits.
 *
 * A binary heap of (time, job). Nothing is taken out when a job changes: an entry only means "look
 * at this job then", and looking at a job that has no business is cheap. */
#include "core/heap.h"
#include "sched/inner.h"

static bool is_sooner(const void *a, const void *b, const void *context) {
    (void)context;
    return ((const struct timer *)a)->at_ms < ((const struct timer *)b)->at_ms;
}

static const struct acre_heap_kind by_time = {sizeof(struct timer), is_sooner, NULL};

void timer_set(struct acre_sched *sched, uint64_t at_ms, uint64_t job) {
    ACRE_ASSERT(job != 0);
    sched->timers = acre_grow(sched->timers, sched->timer_count, &sched->timer_capacity,
                              sizeof(*sched->timers));
    struct timer timer = {at_ms, job};
    acre_heap_push(&by_time, sched->timers, &sched->timer_count, &timer, NULL);
}

/* Its grace is over: SIGTERM. */
static void stop(struct acre_sched *sched, struct job *job, uint64_t now_ms) {
    struct run *run = job_run(sched, job);
    if (run->stop_ms != 0 && run->stop_ms <= now_ms) {
        run->stop_ms = 0;
        act(sched, ACRE_ACTION_TERMINATE, job);
    }
}

static void look_at(struct acre_sched *sched, uint32_t index, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    switch ((enum stand)job->stand) {
    case STAND_BEGIN:
        if (job->begin_ms <= now_ms) {
            queue_again(sched, index, now_ms);
            tell(sched, ACRE_SCHED_CHANGED, now_ms, sched->jobs[index].id, 0); /* eligible now */
        }
        break;
    case STAND_RETRY:
        if (job->not_before_ms <= now_ms) {
            queue_again(sched, index, now_ms);
        }
        break;
    case STAND_HOLDING:
        stop(sched, job, now_ms);
        break;
    case STAND_HELD:
    case STAND_DEPENDENCY:
    case STAND_ARRAY:
    case STAND_LINE:
    case STAND_PROMISED:
    case STAND_ENDED:
    case STAND_COUNT:
        break;
    }
}

void timers_run(struct acre_sched *sched, uint64_t now_ms) {
    while (sched->timer_count > 0 && sched->timers[0].at_ms <= now_ms) {
        uint64_t id = sched->timers[0].job;
        acre_heap_remove_first(&by_time, sched->timers, &sched->timer_count, NULL);
        const struct job *job = job_find(sched, id);
        if (job != NULL) {
            look_at(sched, job_index(sched, job), now_ms);
        }
    }
}
