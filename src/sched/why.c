/* why.c - why a job waits: a table of questions in order of precedence, the first "yes" answers.
 *
 * Each question looks at the state there is (the job's place, its account's quotas, the ledger's
 * numbers for its request) and fills in the sentence, the advice and the numbers. Nothing is kept
 * from earlier passes, so an answer is never older than the question.
 *
 * The ledger's numbers distinguish enough in total but not in one place (fragmented) from too
 * little (busy). To find the run whose end makes room, an outlook releases runs, soonest expected
 * end first, until the request fits. */
#include "sched/why.h"

#include "core/units.h"
#include "ledger/nodes.h"
#include "ledger/reservation.h"
#include "ledger/supply.h"
#include "sched/inner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIVES_MAX = 4096, WHAT_MAX = 160, SHOWN_MAX = 32 };

/* One question about one job. */
struct inquiry {
    struct acre_sched *sched;
    const struct job *job;
    const struct acre_request *request;
    struct account_load load;
    struct acre_supply supply;
    uint64_t now_ms;
    bool has_room;             /* the ledger has a place for it now */
    struct acre_error refusal; /* else: what it says */
    struct acre_why *why;
};

const char *acre_reason_name(enum acre_reason reason) {
    static const char *const names[] = {
#define X(name, text) text,
        ACRE_REASONS(X)
#undef X
    };
    ACRE_ASSERT((unsigned)reason < ACRE_COUNT(names));
    return names[reason];
}

static void say(char *text, const char *format, ...) ACRE_PRINTF(2, 3);
static void say(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, ACRE_WHY_TEXT_MAX, format, arguments);
    va_end(arguments);
}

static void add(char *text, const char *format, ...) ACRE_PRINTF(2, 3);
static void add(char *text, const char *format, ...) {
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, ACRE_WHY_TEXT_MAX - length, format, arguments);
    va_end(arguments);
}

static void count(struct inquiry *inquiry, uint64_t asked, uint64_t available, const char *unit) {
    inquiry->why->asked = asked;
    inquiry->why->available = available;
    inquiry->why->unit = unit;
}

/* At least a second: by the time this is read, milliseconds have passed. */
static char *show_after(const struct inquiry *inquiry, uint64_t at_ms, char text[SHOWN_MAX]) {
    uint64_t now_ms = inquiry->now_ms, left_ms = at_ms > now_ms ? at_ms - now_ms : 0;
    return acre_format_span(ACRE_MAX(left_ms, UINT64_C(1000)), text, SHOWN_MAX);
}

static char *show_gpus(uint64_t milli, char text[SHOWN_MAX]) {
    return acre_format_amount(milli, "GPU", text, SHOWN_MAX);
}

/* "ask for less" is the ledger's advice after the last semicolon of its reasons. */
static void split_advice(struct acre_why *why, const char *reason) {
    const char *cut = strrchr(reason, ';');
    size_t length = cut != NULL ? (size_t)(cut - reason) : strlen(reason);
    say(why->text, "%.*s", (int)length, reason);
    say(why->advice, "%s", cut != NULL ? cut + 2 : "");
}

/* "1 GPU is", "2 GPUs are". */
static char *show_free(uint64_t milli, char text[SHOWN_MAX]) {
    show_gpus(milli, text);
    size_t length = strlen(text);
    snprintf(text + length, SHOWN_MAX - length, milli == 1000 ? " is" : " are");
    return text;
}

static uint64_t asked_milli(const struct inquiry *inquiry) {
    const struct acre_request *request = inquiry->request;
    return (uint64_t)request->replicas * request->gpus * inquiry->supply.asked_milli;
}

/* "2 GPUs of model H100 on one node", "4 members, each with 0.5 of a GPU". */
static char *describe(const struct inquiry *inquiry, char text[WHAT_MAX]) {
    const struct acre_request *request = inquiry->request;
    const struct acre_names *names = acre_ledger_names(inquiry->sched->ledger);
    char gpus[80], share[SHOWN_MAX], model[64] = "", members[32] = "";
    bool whole = inquiry->supply.asked_milli == 1000;
    if (request->mib > 0 && !whole) {
        acre_format_mib(request->mib, share, sizeof(share));
        snprintf(gpus, sizeof(gpus),
                 request->gpus == 1 ? "%s of GPU memory" : "%s on each of %u GPUs", share,
                 request->gpus);
    } else if (whole) {
        show_gpus((uint64_t)request->gpus * 1000, gpus);
    } else {
        acre_format_milli(request->milli, share, sizeof(share));
        snprintf(gpus, sizeof(gpus), request->gpus == 1 ? "%s of a GPU" : "%s of each of %u GPUs",
                 share, request->gpus);
    }
    if (request->gpus == 0) {
        snprintf(gpus, sizeof(gpus), "CPUs and memory");
    }
    if (request->models[0] != 0) {
        snprintf(model, sizeof(model), " of model %s%s", acre_names_text(names, request->models[0]),
                 request->models[1] != 0 ? " (or another)" : "");
    }
    if (request->replicas > 1) {
        snprintf(members, sizeof(members), "%u members, each with ", request->replicas);
    }
    snprintf(text, WHAT_MAX, "%s%s%s%s", members, gpus, model,
             request->gpus > 1 || request->gpus == 0 ? " on one node" : "");
    return text;
}

/* The run whose end makes room, when the runs end as asked; NULL: none, or not found in time. */
static const struct job *find_blocker(const struct inquiry *inquiry) {
    struct acre_sched *sched = inquiry->sched;
    struct acre_outlook *outlook = acre_outlook_create(sched->ledger, inquiry->request);
    const struct job *found = NULL;
    for (uint32_t rank = 0; outlook != NULL && found == NULL && rank < GIVES_MAX; rank++) {
        uint32_t at = tree_at(&line_by_key, sched, &sched->ends, rank);
        if (at == TREE_NONE) {
            break;
        }
        const struct job *job = &sched->jobs[at];
        if (acre_outlook_give(outlook, job_run(sched, job)->allocation)) {
            found = job;
        }
    }
    acre_outlook_destroy(outlook);
    return found;
}

/* "it fits when job 41 ends, in 12 min by its estimate", and what would start sooner. This quotes
 * the estimates people gave; when.c predicts. */
static void advise(struct inquiry *inquiry) {
    struct acre_why *why = inquiry->why;
    char shown[SHOWN_MAX];
    const struct job *blocker = find_blocker(inquiry);
    why->other = blocker != NULL ? blocker->id : 0;
    if (blocker == NULL) {
        say(why->advice, "it fits when enough running jobs have ended");
    } else if (blocker->limit_ms == 0 && blocker->estimate_ms == 0) {
        say(why->advice, "it fits when job %" PRIu64 " ends, which has no estimate", why->other);
    } else if ((uint64_t)blocker->key > inquiry->now_ms) {
        say(why->advice, "it fits when job %" PRIu64 " ends, in %s by its %s", why->other,
            show_after(inquiry, (uint64_t)blocker->key, shown),
            blocker->limit_ms != 0 ? "time limit" : "estimate");
    } else {
        say(why->advice, "it fits when job %" PRIu64 " ends, which has exceeded its estimate",
            why->other);
    }
    const struct acre_request *request = inquiry->request;
    const struct acre_supply *supply = &inquiry->supply;
    if (request->gpus > 1 && supply->most_fitting > 0 && supply->most_fitting < request->gpus) {
        add(why->advice, ", or now with --gpus %u", supply->most_fitting);
    } else if (request->gpus == 1 && supply->fitting == 0 && request->mib == 0 &&
               supply->largest_milli >= 100) {
        add(why->advice, ", or now with --gpus %s",
            acre_format_milli(supply->largest_milli, shown, sizeof(shown)));
    } else if (request->replicas > 1 && supply->members > 0 &&
               supply->members < request->replicas) {
        add(why->advice, ", or now with --nodes %" PRIu64, supply->members);
    }
}

static bool never_fits(struct inquiry *inquiry) {
    struct acre_error err;
    if (acre_ledger_could_fit(inquiry->sched->ledger, inquiry->request, &err) == 0) {
        return false;
    }
    split_advice(inquiry->why, err.text);
    count(inquiry, inquiry->load.milli, (uint64_t)inquiry->supply.devices * 1000, "milli-GPU");
    return true;
}

static void show_hit(struct inquiry *inquiry, const struct quota_hit *hit) {
    quota_hit_show(hit, inquiry->why->text, ACRE_WHY_TEXT_MAX);
    uint64_t left = hit->allowed > hit->held ? hit->allowed - hit->held : 0;
    count(inquiry, hit->asked, left, hit->unit);
}

static bool hard_quota(struct inquiry *inquiry) {
    struct quota_hit hit;
    if (accounts_may_ever(inquiry->sched->accounts, inquiry->job->account, inquiry->load, &hit)) {
        return false;
    }
    show_hit(inquiry, &hit);
    say(inquiry->why->advice, "ask for less, or ask an administrator to raise the quota of %s",
        hit.who);
    return true;
}

static bool held(struct inquiry *inquiry) {
    if (inquiry->job->stand != STAND_HELD) {
        return false;
    }
    say(inquiry->why->text, "it is held");
    say(inquiry->why->advice, "run 'acre release %" PRIu64 "'", inquiry->job->id);
    return true;
}

static bool dependency(struct inquiry *inquiry) {
    const struct acre_sched *sched = inquiry->sched;
    if (inquiry->job->stand != STAND_DEPENDENCY || inquiry->job->needs == NONE) {
        return false;
    }
    static const char *const until[] = {
        [ACRE_DEPENDENCY_AFTER] = "start",
        [ACRE_DEPENDENCY_AFTER_OK] = "complete",
        [ACRE_DEPENDENCY_AFTER_ANY] = "end",
    };
    const struct edge *edge = &sched->edges[inquiry->job->needs];
    const struct job *target = &sched->jobs[edge->target];
    uint32_t open = 0;
    for (uint32_t at = inquiry->job->needs; at != NONE; at = sched->edges[at].next_need) {
        open++;
    }
    say(inquiry->why->text, "it waits for job %" PRIu64 " to %s (now %s)", target->id,
        until[edge->kind], acre_job_state_name((enum acre_job_state)target->state));
    if (open > 1) {
        add(inquiry->why->text, " and for %u other%s", open - 1, open == 2 ? "" : "s");
    }
    say(inquiry->why->advice, "see 'acre why %" PRIu64 "'", target->id);
    inquiry->why->other = target->id;
    count(inquiry, open, 0, "jobs");
    return true;
}

static bool begins_later(struct inquiry *inquiry) {
    const struct job *job = inquiry->job;
    char shown[SHOWN_MAX];
    if (job->stand == STAND_BEGIN) {
        say(inquiry->why->text, "its begin time is in %s",
            show_after(inquiry, job->begin_ms, shown));
        say(inquiry->why->advice, "submit it without --begin to start sooner");
        count(inquiry, job->begin_ms > inquiry->now_ms ? job->begin_ms - inquiry->now_ms : 0, 0,
              "ms");
        return true;
    }
    if (job->stand == STAND_RETRY) {
        const struct run *run = job_run(inquiry->sched, job);
        if (run != NULL && run->exit.kind == ACRE_EXIT_LOST) {
            say(inquiry->why->text, "its last run was lost");
        } else if (job->retries == 0 || (run != NULL && run->reclaimed)) {
            say(inquiry->why->text, "its last run was stopped because its GPUs were idle");
        } else {
            say(inquiry->why->text, "try %u of %u failed", job->retries, job->max_retries + 1U);
        }
        add(inquiry->why->text, "; the next try is in %s",
            show_after(inquiry, job->not_before_ms, shown));
        say(inquiry->why->advice, "run 'acre logs %" PRIu64 "' to see its output", job->id);
        count(inquiry,
              job->not_before_ms > inquiry->now_ms ? job->not_before_ms - inquiry->now_ms : 0, 0,
              "ms");
        return true;
    }
    return false;
}

/* It uses a reservation that has not started yet, or has ended. */
static bool own_reservation(struct inquiry *inquiry) {
    struct acre_reservation reservation;
    uint64_t id = inquiry->request->reservation;
    char shown[SHOWN_MAX];
    if (!acre_ledger_find_reservation(inquiry->sched->ledger, id, &reservation) ||
        (reservation.state != ACRE_RESERVATION_PENDING &&
         reservation.state != ACRE_RESERVATION_ACTIVE)) {
        say(inquiry->why->text, "its reservation %" PRIu64 " has ended", id);
        say(inquiry->why->advice, "submit it again with another reservation or none");
    } else if (reservation.state == ACRE_RESERVATION_PENDING) {
        say(inquiry->why->text, "its reservation %" PRIu64 " starts in %s", id,
            show_after(inquiry, reservation.start_ms, shown));
        say(inquiry->why->advice, "submit it without the reservation to start sooner");
    } else {
        return false;
    }
    inquiry->why->other = id;
    return true;
}

/* What is reserved of each device, now or soon enough to keep a run off it; 0 of most. */
static uint16_t *reserved_milli(const struct inquiry *inquiry, struct acre_reservation *ret_first) {
    const struct acre_ledger *ledger = inquiry->sched->ledger;
    uint16_t *milli = acre_calloc(acre_ledger_device_count(ledger) + 1U, sizeof(*milli));
    struct acre_reservation reservation;
    *ret_first = (struct acre_reservation){0};
    for (uint64_t id = 0; acre_ledger_next_reservation(ledger, id, &reservation);
         id = reservation.id) {
        bool is_live = reservation.state == ACRE_RESERVATION_PENDING ||
                       reservation.state == ACRE_RESERVATION_ACTIVE;
        for (uint32_t i = 0; is_live && i < reservation.device_count; i++) {
            uint16_t *sum = &milli[reservation.devices[i]];
            *sum = (uint16_t)ACRE_MIN(*sum + reservation.milli, 1000U);
        }
        if (is_live && (ret_first->id == 0 || reservation.start_ms < ret_first->start_ms)) {
            *ret_first = reservation;
        }
    }
    return milli;
}

/* How many members the devices of a node would take if nothing of them were reserved. */
static uint32_t members_unreserved(const struct inquiry *inquiry, uint32_t index,
                                   const uint16_t *reserved) {
    struct acre_ledger *ledger = inquiry->sched->ledger;
    struct acre_ledger_node node;
    uint64_t slots;
    uint32_t asked, fitting = 0;
    acre_ledger_node_info(ledger, index, &node);
    if (node.drained ||
        !acre_ledger_kind_serves(ledger, inquiry->request, acre_ledger_kind_of(ledger, index),
                                 &slots, &asked)) {
        return 0;
    }
    for (uint32_t i = node.first_device; i < node.first_device + node.device_count; i++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, i, &device);
        bool serves = (slots >> acre_ledger_slot_of(ledger, i) & 1) != 0 && !device.drained;
        fitting += serves && device.largest_milli + (uint32_t)reserved[i] >= asked;
    }
    return inquiry->request->gpus > 0 ? fitting / inquiry->request->gpus : 0;
}

/* There is room, but it is reserved for someone else. */
static bool reserved(struct inquiry *inquiry) {
    const struct acre_ledger *ledger = inquiry->sched->ledger;
    if (inquiry->request->reservation != 0) {
        return own_reservation(inquiry);
    }
    struct acre_reservation first;
    if (inquiry->has_room || inquiry->job->stand != STAND_LINE ||
        !acre_ledger_next_reservation(ledger, 0, &first)) {
        return false;
    }
    uint16_t *milli = reserved_milli(inquiry, &first);
    uint32_t members = 0;
    for (uint32_t i = 0; first.id != 0 && i < acre_ledger_node_count(ledger); i++) {
        members += members_unreserved(inquiry, i, milli);
    }
    free(milli);
    if (members < inquiry->request->replicas) {
        return false;
    }
    char shown[SHOWN_MAX], what[WHAT_MAX], gpus[SHOWN_MAX];
    bool is_active = first.state == ACRE_RESERVATION_ACTIVE;
    say(inquiry->why->text, "it asks for %s; that would fit, but reservation %" PRIu64 " %s %s%s%s",
        describe(inquiry, what), first.id, is_active ? "holds" : "needs",
        show_gpus((uint64_t)first.device_count * first.milli, gpus), is_active ? "" : " in ",
        is_active ? "" : show_after(inquiry, first.start_ms, shown));
    say(inquiry->why->advice, "the reservation ends in %s%s",
        show_after(inquiry, first.end_ms, shown),
        is_active ? "" : "; with a shorter time limit it may fit before the reservation");
    inquiry->why->other = first.id;
    count(inquiry, asked_milli(inquiry), inquiry->supply.free_milli, "milli-GPU");
    return true;
}

static bool over_quota(struct inquiry *inquiry) {
    const struct acre_sched *sched = inquiry->sched;
    const struct job *job = inquiry->job;
    if (job->stand == STAND_ARRAY) {
        const struct array *array = &sched->arrays[job->array];
        say(inquiry->why->text,
            "array %" PRIu64 " may run %u at once, and %u of its jobs are running or next",
            array->id, array->limit, array->open);
        say(inquiry->why->advice, "it starts when one of them ends");
        inquiry->why->other = array->id;
        count(inquiry, 1, array->limit > array->open ? array->limit - array->open : 0, "jobs");
        return true;
    }
    struct quota_hit hit;
    enum quota_answer answer =
        accounts_may_run(sched->accounts, job->account, inquiry->load, inquiry->now_ms, &hit);
    if (answer == ACRE_QUOTA_WITHIN || (answer == ACRE_QUOTA_OVER_SOFT && !inquiry->has_room)) {
        return false;
    }
    show_hit(inquiry, &hit);
    if (answer == ACRE_QUOTA_OVER_SOFT) {
        say(inquiry->why->advice, "it starts when no job within its quota needs the room");
    } else {
        say(inquiry->why->advice, "it can start when other jobs of %s end", hit.who);
    }
    return true;
}

/* A promised job's room is coming: neither of the next three is what it waits for. */
static bool lacks_room(const struct inquiry *inquiry) {
    return !inquiry->has_room && inquiry->job->stand == STAND_LINE;
}

static bool fragmented(struct inquiry *inquiry) {
    const struct acre_request *request = inquiry->request;
    const struct acre_supply *supply = &inquiry->supply;
    uint64_t asked = asked_milli(inquiry);
    bool beside = supply->most_fitting >= request->gpus && supply->members == 0; /* CPU, RAM */
    if (!lacks_room(inquiry) || request->gpus == 0 || supply->free_milli < asked || beside) {
        return false;
    }
    char what[WHAT_MAX], in_sum[SHOWN_MAX], largest[SHOWN_MAX];
    say(inquiry->why->text, "it asks for %s; %s free in total, but ", describe(inquiry, what),
        show_free(supply->free_milli, in_sum));
    if (supply->fitting == 0) {
        add(inquiry->why->text, "at most %s on any one GPU (%s)",
            acre_format_milli(supply->largest_milli, largest, sizeof(largest)), supply->largest_at);
        count(inquiry, supply->asked_milli, supply->largest_milli, "milli-GPU");
    } else if (supply->most_fitting < request->gpus) {
        add(inquiry->why->text, "at most %u on any one node (%s)", supply->most_fitting,
            supply->most_at);
        count(inquiry, (uint64_t)request->gpus * 1000, (uint64_t)supply->most_fitting * 1000,
              "milli-GPU");
    } else {
        add(inquiry->why->text, "there is room for only %" PRIu64 " of its %u members",
            supply->members, request->replicas);
        count(inquiry, request->replicas, supply->members, "members");
    }
    advise(inquiry);
    return true;
}

static void add_taken(struct inquiry *inquiry) {
    const struct acre_supply *supply = &inquiry->supply;
    if (supply->devices == 1) {
        add(inquiry->why->text, "the only GPU that fits is %s",
            supply->only_is_drained ? "drained" : "in use");
    } else {
        add(inquiry->why->text, "all %u GPUs that fit are in use or drained", supply->devices);
    }
}

static bool busy(struct inquiry *inquiry) {
    const struct acre_request *request = inquiry->request;
    const struct acre_supply *supply = &inquiry->supply;
    if (!lacks_room(inquiry)) {
        return false;
    }
    if (request->gpus == 0 || supply->most_fitting >= request->gpus || supply->devices == 0) {
        split_advice(inquiry->why, inquiry->refusal.text); /* not GPUs: the ledger has the reason */
        count(inquiry, request->replicas, supply->members, "members");
        advise(inquiry);
        return true;
    }
    char what[WHAT_MAX], largest[SHOWN_MAX];
    say(inquiry->why->text, "it asks for %s; ", describe(inquiry, what));
    if (supply->free_milli == 0) {
        add_taken(inquiry);
    } else if (supply->asked_milli < 1000 || supply->fitting == 0) {
        add(inquiry->why->text, "at most %s is free on any of the GPUs that fit (%s; %u of them)",
            acre_format_milli(supply->largest_milli, largest, sizeof(largest)), supply->largest_at,
            supply->devices);
    } else {
        add(inquiry->why->text,
            "%u of the %u GPUs that fit %s free, at most %u on any one node (%s)", supply->fitting,
            supply->devices, supply->fitting == 1 ? "is" : "are", supply->most_fitting,
            supply->most_at);
    }
    count(inquiry, asked_milli(inquiry), supply->free_milli, "milli-GPU");
    advise(inquiry);
    return true;
}

/* There is room, but it is promised to another (preempt.c). */
static bool kept_for_another(struct inquiry *inquiry) {
    const struct acre_sched *sched = inquiry->sched;
    bool is_kept = sched->classes[inquiry->job->class].state == CLASS_SHUT ||
                   quota_is_promised(sched, inquiry->job, inquiry->load, inquiry->now_ms);
    if (!is_kept || sched->promise_count == 0) {
        return false;
    }
    inquiry->why->other = sched->promises[0].job;
    say(inquiry->why->text,
        "it would fit now, but the room is kept for job %" PRIu64 ", which preempts others",
        inquiry->why->other);
    say(inquiry->why->advice, "see 'acre why %" PRIu64 "'", inquiry->why->other);
    count(inquiry, ACRE_MAX(inquiry->why->ahead, 1U), 0, "jobs");
    return true;
}

static bool behind(struct inquiry *inquiry) {
    const struct acre_sched *sched = inquiry->sched;
    bool is_behind = sched->classes[inquiry->job->class].state == CLASS_BEHIND ||
                     (!sched->policy.backfill && inquiry->why->ahead > 0);
    if (inquiry->job->stand != STAND_LINE || sched->paused) {
        return false;
    }
    if (!is_behind) {
        return kept_for_another(inquiry);
    }
    uint64_t head = sched->shadow.head;
    say(inquiry->why->text, "it would fit now, but %u job%s ahead of it", inquiry->why->ahead,
        inquiry->why->ahead == 1 ? " is" : "s are");
    if (head != 0 && head != inquiry->job->id) {
        add(inquiry->why->text, ", and it would delay job %" PRIu64 ", the first in line", head);
        inquiry->why->other = head;
    }
    say(inquiry->why->advice, "%s",
        sched->policy.backfill ? "with a shorter estimate or time limit it may start ahead of them"
                               : "the policy has backfill off: jobs start in order");
    count(inquiry, inquiry->why->ahead, 0, "jobs");
    return true;
}

static bool preempting(struct inquiry *inquiry) {
    if (inquiry->job->stand != STAND_PROMISED) {
        return false;
    }
    const struct promise *promise = promise_of(inquiry->sched, inquiry->job->id);
    uint32_t waiting_for = promise != NULL ? promise->waiting_for : 0;
    say(inquiry->why->text, "%u lower-priority %s stopping to make room for it", waiting_for,
        waiting_for == 1 ? "job is" : "jobs are");
    say(inquiry->why->advice, "it starts when %s stopped",
        waiting_for == 1 ? "that job has" : "they have");
    count(inquiry, waiting_for, 0, "jobs");
    return true;
}

static bool paused(struct inquiry *inquiry) {
    if (!inquiry->sched->paused) {
        return false;
    }
    say(inquiry->why->text, "scheduling is paused: no new jobs start");
    say(inquiry->why->advice, "an operator can resume it");
    return true;
}

static bool evaluating(struct inquiry *inquiry) {
    say(inquiry->why->text, "it can start; the next scheduling pass decides");
    say(inquiry->why->advice, "no action is needed");
    return true;
}

static const struct {
    bool (*holds)(struct inquiry *inquiry); /* and says so */
} questions[] = {
    [ACRE_REASON_NEVER_FITS] = {never_fits},
    [ACRE_REASON_HARD_QUOTA] = {hard_quota},
    [ACRE_REASON_HELD] = {held},
    [ACRE_REASON_DEPENDENCY] = {dependency},
    [ACRE_REASON_BEGINS_LATER] = {begins_later},
    [ACRE_REASON_RESERVED] = {reserved},
    [ACRE_REASON_OVER_QUOTA] = {over_quota},
    [ACRE_REASON_FRAGMENTED] = {fragmented},
    [ACRE_REASON_BUSY] = {busy},
    [ACRE_REASON_BEHIND] = {behind},
    [ACRE_REASON_PREEMPTING] = {preempting},
    [ACRE_REASON_PAUSED] = {paused},
    [ACRE_REASON_EVALUATING] = {evaluating},
};

static void look_for_room(struct inquiry *inquiry) {
    uint32_t part_count = acre_request_parts(inquiry->request);
    struct acre_part *parts = parts_room(inquiry->sched, part_count);
    inquiry->has_room = acre_ledger_plan(inquiry->sched->ledger, inquiry->request, inquiry->now_ms,
                                         parts, part_count, &part_count, &inquiry->refusal) == 0;
    if (inquiry->has_room) { /* with the memory of a share, and the share of memory */
        inquiry->load = load_of_parts(parts, part_count);
    }
}

int acre_sched_why(struct acre_sched *sched, uint64_t id, uint64_t now_ms, struct acre_why *ret_why,
                   struct acre_error *err) {
    const struct job *job = job_find(sched, id);
    if (job == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "job %" PRIu64 " is not in the queue", id);
    }
    if (job->stand >= STAND_HOLDING) {
        return acre_fail(err, ACRE_ECONFLICT, "job %" PRIu64 " is %s, not waiting", id,
                         acre_job_state_name((enum acre_job_state)job->state));
    }
    struct acre_why why = {.unit = ""};
    why.ahead = order_has(job) ? order_ahead(sched, job) : 0;
    why.position = order_has(job) ? why.ahead + 1 : 0;
    struct acre_request request = job_request(sched, job, now_ms);
    struct inquiry inquiry = {
        .sched = sched,
        .job = job,
        .request = &request,
        .load = sched->classes[job->class].load,
        .now_ms = now_ms,
        .supply = {.largest_at = "", .most_at = ""},
        .why = &why,
    };
    acre_ledger_supply(sched->ledger, &request, &inquiry.supply, NULL);
    look_for_room(&inquiry);
    while (!questions[why.reason].holds(&inquiry)) {
        why.reason++;
    }
    *ret_why = why;
    return 0;
}
