/* submit.c - what may enter the queue.
 *
 * Checks go from what is wrong in itself, over what could never run here, to what its owner may
 * not have; nothing changes before all have passed. Whether the cluster could ever serve a request
 * is asked once per class: hardware that was there does not go away, it is only drained. */
#include "sched/inner.h"

#include "core/units.h"
#include "ledger/reservation.h"
#include "sched/burden.h"

int spec_check(const struct acre_sched *sched, const struct acre_job_spec *spec,
               uint64_t begin_max_ms, struct acre_error *err) {
    uint64_t id_max = (uint64_t)INT64_MAX; /* allocations in the ledger end there too */
    const struct {
        const char *field;
        uint64_t value, min, max;
    } ranges[] = {
        {"id", spec->id, sched->last_id + 1, id_max},
        {"user", spec->user, 1, UINT32_MAX},
        {"project", spec->project, 1, UINT32_MAX},
        {"priority", spec->priority, ACRE_PRIORITY_LOW, ACRE_PRIORITY_CRITICAL},
        {"max_retries", spec->max_retries, 0, ACRE_JOB_RETRIES_MAX},
        {"estimate_ms", spec->estimate_ms, 0, ACRE_DURATION_MAX_MS},
        {"limit_ms", spec->limit_ms, 0, ACRE_DURATION_MAX_MS},
        {"begin_ms", spec->begin_ms, 0, begin_max_ms},
        {"array", spec->array, 0, spec->id},
        {"array_index", spec->array_index, 0, spec->array != 0 ? UINT32_MAX : 0},
        {"array_limit", spec->array_limit, 0, spec->array != 0 ? ACRE_JOB_ARRAY_MAX : 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(ranges); i++) {
        if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
            return acre_fail(err, ACRE_EINVALID, "%s: %llu is out of range; accepted: %llu to %llu",
                             ranges[i].field, (unsigned long long)ranges[i].value,
                             (unsigned long long)ranges[i].min, (unsigned long long)ranges[i].max);
        }
    }
    return 0;
}

static int check_array(const struct acre_sched *sched, const struct acre_job_spec *spec,
                       struct acre_error *err) {
    uint32_t array = acre_map_get(&sched->array_of_id, spec->array);
    if (array != ACRE_MAP_NONE && sched->arrays[array].members >= ACRE_JOB_ARRAY_MAX) {
        return acre_fail(
            err, ACRE_EINVALID, "array: array %llu has %u members; accepted: at most %d",
            (unsigned long long)spec->array, sched->arrays[array].members, ACRE_JOB_ARRAY_MAX);
    }
    return 0;
}

static int check_reservation(const struct acre_sched *sched, const struct acre_job_spec *spec,
                             struct acre_error *err) {
    struct acre_reservation reservation;
    unsigned long long id = spec->request.reservation;
    if (id == 0) {
        return 0;
    }
    if (!acre_ledger_find_reservation(sched->ledger, id, &reservation)) {
        return acre_fail(err, ACRE_EINVALID, "reservation: there is no reservation %llu", id);
    }
    if (reservation.user != spec->user) {
        return acre_fail(err, ACRE_EDENIED, "reservation: reservation %llu belongs to another user",
                         id);
    }
    if (reservation.state != ACRE_RESERVATION_PENDING &&
        reservation.state != ACRE_RESERVATION_ACTIVE) {
        return acre_fail(err, ACRE_EINVALID, "reservation: reservation %llu has ended (%s)", id,
                         acre_reservation_state_name(reservation.state));
    }
    char gpus[24];
    uint64_t whole = (uint64_t)spec->request.replicas * spec->request.gpus;
    if (spec->request.milli == 1000 && whole > reservation.device_count) {
        return acre_fail(err, ACRE_ENOFIT,
                         "reservation: reservation %llu has %s; this job asks for %llu", id,
                         acre_format_count(reservation.device_count, "GPU", gpus, sizeof(gpus)),
                         (unsigned long long)whole);
    }
    return 0;
}

static int over_quota(const struct quota_hit *hit, struct acre_error *err) {
    char text[ACRE_ERROR_TEXT_MAX];
    return acre_fail(err, ACRE_EDENIED, "%s", quota_hit_show(hit, text, sizeof(text)));
}

static int check_quotas(struct acre_sched *sched, const struct acre_job_spec *spec, uint32_t class,
                        struct acre_error *err) {
    uint32_t account = accounts_intern(sched->accounts, spec->project, spec->user);
    struct quota_hit hit;
    struct account_load load =
        class != ACRE_MAP_NONE ? sched->classes[class].load : request_load(sched, &spec->request);
    if (!accounts_may_ever(sched->accounts, account, load, &hit) ||
        !accounts_may_queue(sched->accounts, account, &hit)) {
        return over_quota(&hit, err);
    }
    return 0;
}

static int check(struct acre_sched *sched, const struct acre_job_spec *spec, uint64_t now_ms,
                 struct acre_error *err) {
    uint32_t class = class_find(sched, &spec->request);
    int r =
        spec_check(sched, spec, now_ms + ACRE_MIN(ACRE_DURATION_MAX_MS, UINT64_MAX - now_ms), err);
    if (r == 0) {
        r = check_array(sched, spec, err);
    }
    if (r == 0) {
        r = depend_check(sched, spec, err);
    }
    if (r == 0) {
        r = check_reservation(sched, spec, err);
    }
    if (r == 0 && class == ACRE_MAP_NONE) {
        r = acre_ledger_could_fit(sched->ledger, &spec->request, err);
    }
    return r == 0 ? check_quotas(sched, spec, class, err) : r;
}

/* The record of a job, as submitted; it stands nowhere yet. */
uint32_t job_make(struct acre_sched *sched, const struct acre_job_spec *spec) {
    ACRE_ASSERT(spec->id > sched->last_id);
    ACRE_ASSERT(spec->user != 0 && spec->project != 0);
    uint32_t class = class_take(sched, &spec->request);
    uint32_t array = spec->array != 0 ? array_take(sched, spec) : NONE;
    uint32_t account = accounts_intern(sched->accounts, spec->project, spec->user);
    owner_at(sched, account);
    uint32_t index = job_add(sched, spec->id);
    struct job *job = &sched->jobs[index];
    job->class = class;
    job->array = array;
    job->array_index = spec->array_index;
    job->account = account;
    job->user = spec->user;
    job->project = spec->project;
    job->name = spec->name;
    job->bytes = spec->bytes;
    job->priority = (uint8_t)spec->priority;
    job->estimate_ms = spec->estimate_ms;
    job->limit_ms = spec->limit_ms;
    job->begin_ms = spec->begin_ms;
    job->max_retries = (uint8_t)spec->max_retries;
    job->held = spec->held;
    job->fixed = spec->fixed;
    job->smaller_on_oom = spec->smaller_on_oom;
    job->state = ACRE_JOB_QUEUED;
    sched->last_id = ACRE_MAX(sched->last_id, spec->id);
    depend_add(sched, index, spec);
    acre_burden_add(sched, &sched->jobs[index]);
    return index;
}

int acre_sched_submit(struct acre_sched *sched, const struct acre_job_spec *spec, uint64_t now_ms,
                      struct acre_error *err) {
    int r = check(sched, spec, now_ms, err);
    if (r < 0) {
        return r;
    }
    uint32_t index = job_make(sched, spec);
    sched->jobs[index].submitted_ms = now_ms;
    sched->counts.jobs[ACRE_JOB_QUEUED]++;
    accounts_queue(sched->accounts, sched->jobs[index].account);
    queue_enter(sched, index, now_ms);
    acre_ledger_expect(sched->ledger, &spec->request);
    forecast_submitted(sched->forecast, spec->id);
    tell(sched, ACRE_SCHED_SUBMITTED, now_ms, spec->id, 0);
    return 0;
}
