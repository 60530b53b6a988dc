/* pass.c - one pass over the queue: which jobs start now.
 *
 * Jobs of one class fit or do not fit together, so a pass never walks the queue: it asks the ledger
 * once per class that may have room, in the order of the policy, and goes on with a class as long
 * as its next job is placed. A class without room is shut and stays so until something is freed on
 * a node that could take one of its members (a look at one node, not at the cluster).
 *
 * The candidates are a heap of classes by their first job, put right lazily at its top, since keys
 * only grow during a pass; with fair share, the accounts in the order of their ranking, each with
 * its best line among the open classes.
 *
 * The first job in order without room is the head. Up to there jobs are placed as they come. Beyond
 * it (POL-6), what the head's place needs is veiled: a job that still finds room cannot delay it.
 * Then the veil is lifted and those who end before the head begins may use its place in the
 * meantime. Accounts over a soft quota come last. */
#include "core/heap.h"
#include "sched/inner.h"

#include <stdlib.h>

enum {
    WAKE_EVERY_MS = 60000, /* looking again where only time changes things */
    MANY_CLASSES = 16,
    SEEK_MAX = 64, /* jobs looked at in order before lines are looked up */
};

enum mode {
    MODE_AHEAD,  /* before the head */
    MODE_VEILED, /* behind the head, its place veiled */
    MODE_SHORT,  /* behind the head: only those who end before it begins */
    MODE_FREE,   /* behind a head that nothing known will make room for */
};

/* A class by the first job of its first line. */
struct class_front {
    int64_t key;
    uint64_t id;
    uint32_t at;
};

struct pass {
    struct acre_sched *sched;
    uint64_t now_ms;
    uint32_t tries_left;
    uint32_t placed;
    enum mode mode;
    bool is_fair;
    bool is_over; /* strict order, or no tries left */
    bool soft;    /* those over a soft quota have their turn */
    uint32_t head;
    bool head_is_soft;        /* it is over a soft quota: it takes what is idle, from nobody */
    uint32_t limit_s;         /* who takes no longer ends before the head begins */
    struct class_front *heap; /* of classes; not with fair share */
    uint32_t heap_count;
    uint32_t cursor; /* fair share: in the ranking */
    bool is_veiled;  /* the head's place is */
    bool is_swept;   /* since the last placement */
    uint64_t *open;  /* a bit per open class */
    uint32_t open_count;
    uint32_t *late; /* classes for MODE_SHORT */
    uint32_t late_count;
    uint32_t *deferred; /* lines over a soft quota */
    uint32_t deferred_count, deferred_capacity;
};

struct acre_part *parts_room(struct acre_sched *sched, uint32_t count) {
    if (sched->part_capacity < count) {
        sched->part_capacity = count;
        sched->parts = acre_realloc(sched->parts, count, sizeof(*sched->parts));
    }
    return sched->parts;
}

struct acre_request job_request(const struct acre_sched *sched, const struct job *job,
                                uint64_t now_ms) {
    struct acre_request request = sched->classes[job->class].request;
    request.owner = job->id;
    request.tenant = job->project;
    request.pending = true;
    if (job->limit_ms != 0) {
        request.expires_ms = now_ms + job->limit_ms;
        request.overstays = true; /* only the engine knows when it is gone */
    }
    return request;
}

/* The job leaves the queue for this allocation. */
static void begin(struct acre_sched *sched, uint32_t index, uint64_t allocation,
                  const struct acre_part *parts, uint32_t count, uint64_t now_ms) {
    queue_leave(sched, index);
    if (sched->jobs[index].run == NONE) {
        uint32_t run = run_add(sched);
        sched->jobs[index].run = run;
    }
    struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    run->attempt++;
    run->scheduled_ms = now_ms;
    run->started_ms = run->ended_ms = 0;
    run->reclaimed = false;
    accounts_unqueue(sched->accounts, job->account);
    parts_take(sched, index, allocation, parts, count, now_ms, now_ms);
    bool moved = job_move(sched, job, MOVE_PLACE);
    ACRE_ASSERT(moved);
    tell(sched, ACRE_SCHED_SCHEDULED, now_ms, job->id, 0);
    act(sched, ACRE_ACTION_START, job);
}

bool job_place(struct acre_sched *sched, uint32_t index, const struct acre_part *parts,
               uint32_t count, uint64_t now_ms) {
    struct acre_request request = job_request(sched, &sched->jobs[index], now_ms);
    uint64_t allocation;
    if (acre_ledger_place(sched->ledger, &request, parts, count, 0, now_ms, &allocation, NULL) <
        0) {
        return false;
    }
    begin(sched, index, allocation, parts, count, now_ms);
    return true;
}

static bool comes_before(const void *a, const void *b, const void *context) {
    (void)context;
    const struct class_front *x = a, *y = b;
    return key_precedes(x->key, x->id, y->key, y->id);
}

static const struct acre_heap_kind by_order = {sizeof(struct class_front), comes_before, NULL};

static bool fits_where_freed(const struct acre_sched *sched, const struct job_class *class) {
    for (uint32_t i = 0; i < sched->freed_count; i++) {
        if (acre_ledger_may_fit_on(sched->ledger, &class->request, sched->freed[i])) {
            return true;
        }
    }
    return false;
}

static void mark_open(struct pass *pass, uint32_t class) {
    pass->open[class / 64] |= UINT64_C(1) << class % 64;
    pass->open_count++;
}

/* Are the nodes where something was freed all there is to look at for this class? */
static bool is_local(const struct pass *pass, const struct job_class *class) {
    return class->is_local && (pass->is_veiled || !class->was_behind);
}

/* Which classes may have room since the last pass. */
static void open_classes(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t i = 0; i < sched->class_limit; i++) {
        struct job_class *class = &sched->classes[i];
        if (class->jobs == 0 || class->waiting == 0) {
            continue;
        }
        if (class->state != CLASS_OPEN) {
            class->is_local = !sched->all_changed;
            class->was_behind = class->state == CLASS_BEHIND;
            if (sched->all_changed || fits_where_freed(sched, class)) {
                class->state = CLASS_OPEN;
            }
        }
        if (class->state == CLASS_OPEN) {
            mark_open(pass, i);
        }
    }
}

/* Looking for the first job in order that is of an open class, or of another. */
struct seeking {
    const struct acre_sched *sched;
    bool open;
    uint32_t left;
    uint32_t found;
};

static bool seek(void *visitor, uint32_t index) {
    struct seeking *seeking = visitor;
    const struct acre_sched *sched = seeking->sched;
    const struct job *job = &sched->jobs[index];
    if (job->stand == STAND_LINE && sched->lines[job->line].blocker == NONE &&
        (sched->classes[job->class].state == CLASS_OPEN) == seeking->open) {
        seeking->found = job->line;
    }
    return seeking->found == NONE && --seeking->left > 0;
}

/* The account's line with the first job in order among open (or among closed) classes; NONE: it has
 * none. With many such classes that job is near the front of the account's order; with few, or when
 * it is not, the lines are looked up by class. */
static uint32_t best_line(const struct pass *pass, uint32_t account, bool open) {
    struct acre_sched *sched = pass->sched;
    const uint64_t *row = &sched->open_lines[(size_t)account * sched->open_words];
    uint32_t count = 0;
    for (uint32_t w = 0; w < sched->open_words; w++) {
        count += (uint32_t)__builtin_popcountll(row[w] & (open ? pass->open[w] : ~pass->open[w]));
    }
    if (count >= MANY_CLASSES) {
        struct seeking seeking = {sched, open, SEEK_MAX, NONE};
        tree_visit(&order_by_key, sched, &sched->owners[account].order, seek, &seeking);
        if (seeking.found != NONE) {
            return seeking.found;
        }
    }
    uint32_t best = NONE;
    for (uint32_t w = 0; w < sched->open_words && count > 0; w++) {
        uint64_t bits = row[w] & (open ? pass->open[w] : ~pass->open[w]);
        for (; bits != 0; bits &= bits - 1, count--) {
            uint32_t at = line_find(sched, account, 64 * w + (uint32_t)__builtin_ctzll(bits));
            best = best == NONE || line_is_before(sched, at, best) ? at : best;
        }
    }
    return best;
}

/* May its owner hold so much more? Else the line is parked. */
static bool is_within_quota(struct pass *pass, uint32_t at, struct account_load load) {
    struct acre_sched *sched = pass->sched;
    const struct line *line = &sched->lines[at];
    const struct job *job = &sched->jobs[line->first];
    struct quota_hit hit;
    enum quota_answer answer =
        accounts_may_run(sched->accounts, line->account, load, pass->now_ms, &hit);
    if (answer == ACRE_QUOTA_WITHIN || (answer == ACRE_QUOTA_OVER_SOFT && pass->soft)) {
        bool is_promised = quota_is_promised(sched, job, load, pass->now_ms);
        if (is_promised && line->blocker == NONE) {
            line_park(sched, at, BLOCKER_PASS); /* until that one has its place */
        }
        return !is_promised;
    }
    if (line->blocker != NONE) {
        return false; /* parked until the pass is over */
    }
    if (answer == ACRE_QUOTA_OVER_SOFT) {
        line_park(sched, at, BLOCKER_PASS);
        pass->deferred = acre_grow(pass->deferred, pass->deferred_count, &pass->deferred_capacity,
                                   sizeof(*pass->deferred));
        pass->deferred[pass->deferred_count++] = at;
        return false;
    }
    uint32_t blocker =
        hit.limit == ACRE_QUOTA_GPU_HOURS
            ? BLOCKER_TIME
            : blocker_of(sched, hit.of_project, hit.of_project ? job->project : job->user);
    line_park(sched, at, blocker);
    return false;
}

/* May this line have the head? Only within its quotas: else it would keep room it may not take. */
static bool may_have_head(struct pass *pass, uint32_t at) {
    return is_within_quota(pass, at, pass->sched->classes[pass->sched->lines[at].class].load);
}

/* A class that is only behind the head cannot have the head: it is open again, and has room. */
static bool open_if_behind(struct pass *pass, uint32_t at) {
    struct job_class *class = &pass->sched->classes[at];
    if (class->state != CLASS_BEHIND) {
        return false;
    }
    class->state = CLASS_OPEN;
    class->is_local = false;
    mark_open(pass, at);
    return true;
}

/* The first account in order with a line in a closed class has the head. */
static void find_head_by_account(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t i = 0; i < sched->ranking_count && pass->head == NONE;) {
        uint32_t at = best_line(pass, sched->ranking[i], false);
        if (at == NONE) {
            i++;
        } else if (may_have_head(pass, at) && !open_if_behind(pass, sched->lines[at].class)) {
            pass->head = sched->lines[at].first;
        }
    }
}

/* The first line of all closed classes has the head. */
static void find_head_by_class(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    uint32_t head;
    do {
        head = NONE;
        for (uint32_t i = 0; i < sched->class_limit; i++) {
            const struct job_class *class = &sched->classes[i];
            if (class->jobs == 0 || class->state == CLASS_OPEN || class->lines.root == TREE_NONE) {
                continue;
            }
            uint32_t at = class_first(sched, i);
            head = head == NONE || line_is_before(sched, at, head) ? at : head;
        }
    } while (head != NONE &&
             (!may_have_head(pass, head) || open_if_behind(pass, sched->lines[head].class)));
    pass->head = head != NONE ? sched->lines[head].first : NONE;
}

static void collect_classes(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t i = 0; i < sched->class_limit; i++) {
        const struct job_class *class = &sched->classes[i];
        if (class->jobs > 0 && class->state == CLASS_OPEN && class->lines.root != TREE_NONE) {
            const struct line *line = &sched->lines[class_first(sched, i)];
            pass->heap[pass->heap_count++] =
                (struct class_front){line->first_key, line->first_id, i};
        }
    }
    acre_heap_build(&by_order, pass->heap, pass->heap_count, NULL);
}

static void collect(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    pass->heap = acre_calloc(ACRE_MAX(sched->class_limit, 1U), sizeof(*pass->heap));
    pass->open = acre_calloc(ACRE_MAX(sched->open_words, 1U), sizeof(*pass->open));
    pass->late = acre_calloc(ACRE_MAX(sched->class_limit, 1U), sizeof(*pass->late));
    open_classes(pass);
    if (pass->is_fair) {
        find_head_by_account(pass);
        return;
    }
    find_head_by_class(pass);
    collect_classes(pass);
}

/* The next line to try; NONE: there is none. An account that was served moves back in the ranking
 * behind the cursor's account, never before it. */
static uint32_t next_of_accounts(struct pass *pass) {
    const struct acre_sched *sched = pass->sched;
    for (; pass->cursor < sched->ranking_count; pass->cursor++) {
        uint32_t at = best_line(pass, sched->ranking[pass->cursor], true);
        if (at != NONE) {
            return at;
        }
    }
    return NONE;
}

static uint32_t next_of_classes(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    while (pass->heap_count > 0) {
        const struct class_front *top = &pass->heap[0];
        const struct job_class *class = &sched->classes[top->at];
        uint32_t at = class->state == CLASS_OPEN ? class_first(sched, top->at) : NONE;
        if (at == NONE) {
            acre_heap_remove_first(&by_order, pass->heap, &pass->heap_count, NULL);
            continue;
        }
        const struct line *line = &sched->lines[at];
        if (line->first_id == top->id) {
            return at;
        }
        struct class_front next = {line->first_key, line->first_id, top->at};
        acre_heap_replace(&by_order, pass->heap, pass->heap_count, 0, &next, NULL);
    }
    return NONE;
}

/* Seconds until the head begins. */
static uint32_t seconds_left(const struct acre_sched *sched, uint64_t now_ms) {
    uint64_t start_ms = sched->shadow.start_ms;
    return (uint32_t)ACRE_MIN((start_ms > now_ms ? start_ms - now_ms : 0) / 1000,
                              (uint64_t)UINT32_MAX - 1);
}

/* Beyond the head: when it begins, and a veil over its place. */
static void go_behind(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    shadow_look(sched, pass->head, pass->now_ms);
    const struct shadow *shadow = &sched->shadow;
    pass->limit_s = seconds_left(sched, pass->now_ms);
    if (shadow->start_ms == UINT64_MAX) {
        pass->mode = MODE_FREE;
    } else if (!shadow->is_complete) {
        pass->mode = MODE_SHORT;
    } else {
        pass->mode = MODE_VEILED;
        acre_outlook_veil(shadow->outlook);
        pass->is_veiled = true;
    }
}

/* No room for the class (or none that this mode allows). */
static void close_class(struct pass *pass, uint32_t at) {
    struct acre_sched *sched = pass->sched;
    struct job_class *class = &sched->classes[at];
    class->state = CLASS_SHUT;
    if (pass->mode == MODE_VEILED || pass->mode == MODE_SHORT) {
        class->state = CLASS_BEHIND;
        sched->behind_s = sched->has_behind ? ACRE_MIN(sched->behind_s, pass->limit_s)
                                            : pass->limit_s; /* the least any was told */
        sched->has_behind = true;
        if (tree_least(&lines_by_first, sched, &class->lines) <= pass->limit_s) {
            pass->late[pass->late_count++] = at;
        }
    }
    pass->open[at / 64] &= ~(UINT64_C(1) << at % 64);
    pass->open_count--;
}

/* One class found no room where something was freed: most of the others will not either. Looking
 * at those nodes for all of them is cheaper than coming to each in its turn. */
static void sweep(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t w = 0; w < sched->open_words; w++) {
        for (uint64_t bits = pass->open[w]; bits != 0; bits &= bits - 1) {
            uint32_t at = 64 * w + (uint32_t)__builtin_ctzll(bits);
            const struct job_class *class = &sched->classes[at];
            if (is_local(pass, class) && !fits_where_freed(sched, class)) {
                close_class(pass, at);
            }
        }
    }
    pass->is_swept = true;
}

static void fail(struct pass *pass, uint32_t class, uint32_t job) {
    bool was_local = is_local(pass, &pass->sched->classes[class]);
    if (pass->mode == MODE_AHEAD) {
        pass->head = job; /* candidates come in order: this is the first without room */
        pass->head_is_soft = pass->soft;
    }
    close_class(pass, class);
    if (was_local && !pass->is_swept && pass->mode != MODE_SHORT) {
        sweep(pass);
    }
    if (--pass->tries_left == 0) {
        pass->is_over = true;
        pass->sched->has_more = true;
    }
}

/* Find room for this job, as far as the mode lets it see. A class that is open because of what was
 * freed has no room elsewhere: those nodes are all there is to look at. */
static bool find_room(struct pass *pass, uint32_t index, uint32_t *ret_count) {
    struct acre_sched *sched = pass->sched;
    const struct job *job = &sched->jobs[index];
    const struct job_class *class = &sched->classes[job->class];
    struct acre_request request = job_request(sched, job, pass->now_ms);
    uint32_t count = acre_request_parts(&request);
    struct acre_part *parts = parts_room(sched, count);
    if (is_local(pass, class) && !fits_where_freed(sched, class)) {
        return false;
    }
    if (is_local(pass, class) && request.replicas == 1 &&
        acre_ledger_plan_on(sched->ledger, &request, sched->freed, sched->freed_count, parts, count,
                            ret_count, NULL) == 0) {
        return true;
    }
    return acre_ledger_plan(sched->ledger, &request, pass->now_ms, parts, count, ret_count, NULL) ==
           0;
}

/* What comes with a share (its memory) or with memory (its share) is known with the place only. */
enum outcome { PLACED, NO_ROOM, OVER_QUOTA };

static enum outcome place(struct pass *pass, uint32_t index) {
    struct acre_sched *sched = pass->sched;
    uint32_t count;
    if (!find_room(pass, index, &count)) {
        return NO_ROOM;
    }
    if (!is_within_quota(pass, sched->jobs[index].line, load_of_parts(sched->parts, count))) {
        return OVER_QUOTA;
    }
    if (!job_place(sched, index, sched->parts, count, pass->now_ms)) {
        return NO_ROOM;
    }
    pass->placed++;
    pass->is_swept = false;
    /* What was placed behind the head leaves its place alone. */
    sched->shadow.is_stale |= pass->mode == MODE_AHEAD;
    return PLACED;
}

/* Try the first job of a line; false: nothing more to be had of this line in this mode. */
static bool try_line(struct pass *pass, uint32_t at) {
    struct acre_sched *sched = pass->sched;
    uint32_t class = sched->lines[at].class;
    uint32_t index = sched->lines[at].first;
    if (!is_within_quota(pass, at, sched->classes[class].load)) {
        return false;
    }
    if (pass->mode == MODE_AHEAD && pass->head != NONE && order_before(sched, pass->head, index)) {
        if (!sched->policy.backfill) {
            pass->is_over = true;
            return false;
        }
        go_behind(pass);
    }
    enum outcome outcome = pass->mode == MODE_SHORT ? NO_ROOM : place(pass, index);
    if (outcome == NO_ROOM) {
        fail(pass, class, index);
    }
    return outcome == PLACED;
}

/* The first of the lines over a soft quota, of closed classes: when nobody else waits for room it
 * has the head of those who follow, so that small ones do not pass it for ever. */
static void find_soft_head(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t i = 0; i < pass->deferred_count && pass->head == NONE; i++) {
        const struct line *line = &sched->lines[pass->deferred[i]];
        if (sched->classes[line->class].state == CLASS_SHUT) {
            pass->head = line->first;
            pass->head_is_soft = true;
        } else {
            open_if_behind(pass, line->class);
        }
    }
}

/* Accounts over a soft quota may have what nobody else could use. */
static void run_deferred(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    pass->soft = true;
    pass->is_swept = true;
    if (pass->deferred_count > 0 && pass->head != NONE && pass->mode == MODE_AHEAD) {
        if (!sched->policy.backfill) {
            pass->is_over = true;
        } else {
            go_behind(pass);
        }
    }
    find_soft_head(pass);
    for (uint32_t i = 0; i < pass->deferred_count && !pass->is_over; i++) {
        uint32_t at = pass->deferred[i];
        while (sched->lines[at].account != NONE &&
               sched->classes[sched->lines[at].class].state == CLASS_OPEN && !pass->is_over &&
               try_line(pass, at)) {
        }
    }
    pass->soft = false;
}

/* Those who end before the head begins, wherever there is room. */
static void run_late(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    for (uint32_t i = 0; i < pass->late_count; i++) {
        struct job_class *class = &sched->classes[pass->late[i]];
        uint32_t at;
        while ((at = class_first_within(sched, pass->late[i], pass->limit_s)) != NONE) {
            uint32_t index =
                tree_first_within(&line_by_key, sched, &sched->lines[at].jobs, pass->limit_s);
            if (is_within_quota(pass, at, class->load) && place(pass, index) == NO_ROOM) {
                class->state = CLASS_SHUT;
                break;
            }
        }
    }
}

static void run(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    while (pass->open_count > 0 && !pass->is_over) {
        uint32_t at = pass->is_fair ? next_of_accounts(pass) : next_of_classes(pass);
        if (at == NONE) {
            break;
        }
        try_line(pass, at);
    }
    run_deferred(pass);
    if (pass->is_veiled) {
        acre_outlook_unveil(sched->shadow.outlook);
        pass->is_veiled = false;
    }
    run_late(pass);
    lines_unpark(sched, BLOCKER_PASS);
}

/* Only time has passed: look again at what only time changes. */
static void wake(struct acre_sched *sched, uint64_t now_ms) {
    if (now_ms < sched->wake_ms) {
        return;
    }
    sched->wake_ms = UINT64_MAX;
    sched->is_dirty = true;
    sched->has_open = true;
    sched->shadow.is_stale = true;
    lines_unpark(sched, BLOCKER_TIME);
}

/* The nodes of the head's place, before it may move. */
static uint32_t place_nodes(const struct acre_sched *sched, struct acre_part *nodes) {
    uint32_t count = 0;
    uint32_t part_count = 0;
    const struct acre_part *parts =
        sched->shadow.is_complete ? acre_outlook_parts(sched->shadow.outlook, &part_count) : NULL;
    for (uint32_t i = 0; i < part_count && count <= FREED_MAX; i++) {
        if (count == 0 || nodes[count - 1].node != parts[i].node) {
            nodes[count++] = parts[i];
        }
    }
    return count;
}

/* The head's place is another one now: the old one is nobody's. When there was none yet, those
 * behind were not even tried. */
static void another_chance(struct acre_sched *sched, const struct acre_part *old, uint32_t count) {
    bool is_stale = sched->shadow.is_stale;
    if (count > 0) {
        note_freed(sched, old, count);
    }
    for (uint32_t i = 0; i < sched->class_limit && count == 0; i++) {
        if (sched->classes[i].jobs > 0 && sched->classes[i].state == CLASS_BEHIND) {
            class_open(sched, i);
        }
    }
    sched->shadow.is_stale = is_stale;
}

/* The head begins later than some were told who would have been in time. */
static void open_shorter(struct acre_sched *sched, uint64_t now_ms) {
    uint32_t left_s = seconds_left(sched, now_ms);
    if (!sched->has_behind || left_s <= sched->behind_s) {
        return;
    }
    sched->behind_s = left_s;
    for (uint32_t i = 0; i < sched->class_limit; i++) {
        struct job_class *class = &sched->classes[i];
        if (class->jobs > 0 && class->state == CLASS_BEHIND &&
            tree_least(&lines_by_first, sched, &class->lines) <= left_s) {
            class_open(sched, i);
        }
    }
}

/* What was placed last may have taken the head's quota: then it keeps room that it may not take,
 * and another has the head. */
static void check_head(const struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    if (pass->head == NONE || pass->placed == 0 || pass->head_is_soft ||
        sched->policy.quota_count == 0) {
        return;
    }
    const struct job *head = &sched->jobs[pass->head];
    struct quota_hit hit;
    if (accounts_may_run(sched->accounts, head->account, sched->classes[head->class].load,
                         pass->now_ms, &hit) != ACRE_QUOTA_WITHIN) {
        sched->is_dirty = true;
        sched->has_open = true;
    }
}

/* Placing moved accounts back: somebody who was behind may be first now. */
static void check_order(struct pass *pass) {
    struct acre_sched *sched = pass->sched;
    uint32_t at = NONE;
    bool moved = pass->is_fair && pass->placed > 0;
    for (uint32_t i = 0; moved && i < sched->ranking_count && at == NONE; i++) {
        at = best_line(pass, sched->ranking[i], false);
    }
    bool is_behind = at != NONE && sched->classes[sched->lines[at].class].state == CLASS_BEHIND;
    if (is_behind || (at != NONE && sched->has_behind && sched->lines[at].first != pass->head)) {
        sched->is_dirty = true;
        sched->has_open = true;
    }
}

static void set_wake(struct acre_sched *sched, uint32_t head, uint64_t now_ms) {
    uint64_t at_ms = UINT64_MAX;
    if (sched->has_behind && sched->shadow.start_ms != UINT64_MAX) {
        at_ms = ACRE_MAX(sched->shadow.start_ms, now_ms + 1000);
    }
    bool order_moves = sched->policy.kind == ACRE_POLICY_FAIR_SHARE && head != NONE;
    if (order_moves || sched->blockers[BLOCKER_TIME].first != NONE) {
        at_ms = ACRE_MIN(at_ms, now_ms + WAKE_EVERY_MS);
    }
    sched->wake_ms = at_ms;
}

static uint32_t pass_over_queue(struct acre_sched *sched, uint64_t now_ms, uint32_t tries_max) {
    struct pass pass = {
        .sched = sched,
        .now_ms = now_ms,
        .tries_left = tries_max != 0 ? tries_max : UINT32_MAX,
        .is_fair = sched->policy.kind == ACRE_POLICY_FAIR_SHARE,
        .head = NONE,
    };
    struct acre_part place[FREED_MAX + 1];
    uint32_t place_count = place_nodes(sched, place);
    uint64_t mark = sched->shadow.mark;
    sched->has_more = false;
    order_rank(sched, now_ms);
    promises_veil(sched);
    collect(&pass);
    if (sched->has_behind && sched->policy.backfill && pass.head != NONE) {
        shadow_look(sched, pass.head, now_ms);
    }
    run(&pass);
    promises_unveil(sched);
    for (uint32_t i = 0; i < sched->class_limit; i++) {
        sched->classes[i].is_local = false; /* the nodes are forgotten */
    }
    sched->is_dirty = false;
    sched->has_open = pass.open_count > 0;
    sched->all_changed = false;
    sched->freed_count = 0;
    if (pass.head == NONE) {
        shadow_drop(sched);
    } else if (sched->shadow.head != sched->jobs[pass.head].id) {
        shadow_drop(sched); /* nobody is behind it yet, so it has none */
        sched->shadow.head = sched->jobs[pass.head].id;
    }
    if (sched->has_behind && sched->policy.backfill && pass.head != NONE && pass.placed > 0) {
        shadow_look(sched, pass.head, now_ms); /* who was placed before it may have moved it */
    }
    if (sched->has_behind && sched->shadow.mark != mark) {
        another_chance(sched, place, place_count);
    }
    open_shorter(sched, now_ms);
    check_order(&pass);
    check_head(&pass);
    set_wake(sched, pass.head, now_ms);
    if (pass.head != NONE && !pass.head_is_soft) {
        preempt_for(sched, pass.head, now_ms);
    }
    free(pass.heap);
    free(pass.open);
    free(pass.late);
    free(pass.deferred);
    return pass.placed;
}

/* A reservation that is over has taken back what was drawn on it: such runs must end now. */
static bool end_if_over(void *visitor, uint32_t index) {
    struct acre_sched *sched = visitor;
    const struct job *job = &sched->jobs[index];
    struct run *run = job_run(sched, job);
    struct acre_allocation held;
    if (sched->classes[job->class].request.reservation != 0 && !run->killed &&
        !acre_ledger_find(sched->ledger, run->allocation, &held)) {
        run->killed = true;
        act(sched, ACRE_ACTION_TERMINATE, job);
    }
    return true;
}

uint32_t acre_sched_pass(struct acre_sched *sched, uint64_t now_ms, uint32_t tries_max) {
    restore_repeat(sched);
    depend_settle(sched, now_ms);
    timers_run(sched, now_ms);
    arrays_fill(sched, now_ms);
    if (sched->all_changed) {
        tree_visit(&order_by_id, sched, &sched->holding, end_if_over, sched);
    }
    if (sched->paused) {
        return 0;
    }
    uint32_t placed = promises_keep(sched, now_ms);
    wake(sched, now_ms);
    bool is_closed = !sched->has_open && !sched->all_changed && sched->freed_count == 0;
    if (sched->is_dirty && is_closed && !sched->has_more && !preempt_is_due(sched, now_ms)) {
        sched->is_dirty = false; /* nothing that waits could start */
        preempt_later(sched);
    }
    if (sched->is_dirty || sched->has_more) {
        placed += pass_over_queue(sched, now_ms, tries_max);
    }
    idle_reclaim(sched, now_ms);
    return placed;
}

uint64_t acre_sched_next_ms(const struct acre_sched *sched) {
    bool is_due = sched->repeat_count > 0 || sched->doomed_count > 0 ||
                  (!sched->paused && (sched->is_dirty || sched->has_more));
    if (is_due) {
        return 0;
    }
    uint64_t at_ms = sched->paused ? UINT64_MAX : sched->wake_ms;
    return sched->timer_count > 0 ? ACRE_MIN(at_ms, sched->timers[0].at_ms) : at_ms;
}
