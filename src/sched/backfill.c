/* backfill.c - the shadow of the head: when it begins at the latest, and where (POL-6, EASY).
 *
 * Runs are given back in an outlook in the order of their expected ends until the head fits: the
 * last one's end is when it begins, and the outlook chooses the place. A run that overstays is
 * expected to take another tenth of its time, a minute at least. Looking stops after STEPS_MAX
 * runs; then nothing is known but that the head does not begin before that run's end, and only
 * jobs that end earlier may pass. The look is kept until the head changes or something that it
 * depends on.
 */
#include "sched/inner.h"

enum {
    STEPS_MAX = 1024, /* about 0.5 us each */
    OVERSTAY_MS = 60000,
    REPORT_MS = 10000, /* an exit may be told so late */
};

struct looking {
    struct acre_sched *sched;
    uint64_t now_ms;
    uint64_t end_ms; /* of the last run given back */
    uint32_t steps;
    bool fits;
};

static uint64_t expected_end_ms(const struct job *job, uint64_t now_ms) {
    uint64_t end_ms = (uint64_t)ACRE_MAX(job->key, INT64_C(0));
    if (end_ms + REPORT_MS >= now_ms) {
        return ACRE_MAX(end_ms, now_ms);
    }
    return now_ms + ACRE_MAX(duration_ms(job) / 10, (uint64_t)OVERSTAY_MS);
}

static bool give_back(void *visitor, uint32_t index) {
    struct looking *looking = visitor;
    struct acre_sched *sched = looking->sched;
    const struct job *job = &sched->jobs[index];
    const struct run *run = job_run(sched, job);
    if (run->preempted_for != 0 && promise_of(sched, run->preempted_for) != NULL) {
        return true; /* that room is spoken for */
    }
    uint64_t end_ms = expected_end_ms(job, looking->now_ms);
    looking->end_ms = ACRE_MAX(looking->end_ms, end_ms);
    looking->fits = acre_outlook_give(sched->shadow.outlook, run->allocation);
    return !looking->fits && ++looking->steps < STEPS_MAX;
}

/* A number that differs when the place does. */
static uint64_t mark_of(const struct shadow *shadow) {
    uint64_t mark = shadow->is_complete;
    uint32_t count = 0;
    const struct acre_part *parts =
        shadow->is_complete ? acre_outlook_parts(shadow->outlook, &count) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t place = (uint64_t)parts[i].node << 32 | parts[i].device;
        mark = (mark ^ place) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return mark;
}

void shadow_drop(struct acre_sched *sched) {
    acre_outlook_destroy(sched->shadow.outlook);
    sched->shadow = (struct shadow){.start_ms = UINT64_MAX, .is_stale = true};
}

void shadow_look(struct acre_sched *sched, uint32_t head, uint64_t now_ms) {
    struct shadow *shadow = &sched->shadow;
    const struct job *job = &sched->jobs[head];
    if (!shadow->is_stale && shadow->head == job->id && shadow->start_ms > now_ms) {
        return;
    }
    const struct job_class *class = &sched->classes[job->class];
    if (shadow->outlook == NULL || shadow->hash != class->hash) {
        shadow_drop(sched);
        shadow->outlook = acre_outlook_create(sched->ledger, &class->request);
        shadow->hash = class->hash;
    } else {
        acre_outlook_reset(shadow->outlook);
    }
    shadow->head = job->id;
    shadow->start_ms = UINT64_MAX;
    shadow->is_complete = false;
    shadow->is_stale = false;
    if (shadow->outlook != NULL) {
        struct looking looking = {.sched = sched, .now_ms = now_ms};
        tree_visit(&line_by_key, sched, &sched->ends, give_back, &looking);
        if (looking.fits) {
            acre_outlook_choose(shadow->outlook);
            shadow->is_complete = true;
            shadow->start_ms = looking.end_ms;
        } else if (looking.steps == STEPS_MAX) {
            shadow->start_ms = looking.end_ms;
        }
    }
    shadow->mark = mark_of(shadow);
}
