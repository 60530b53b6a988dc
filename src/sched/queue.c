/* queue.c - where a queued job stands, and the lines of those who may start.
 *
 * A queued job stands aside while something must be cured that placing cannot cure (held,
 * dependencies, a time ahead, the limit of its array); else it is in the order of the policy and in
 * the line of its account and class. Of an array with a limit only as many members are in line as
 * may still run: the others wait in the array's own tree, so that a start or an end moves one job
 * and not a hundred thousand.
 *
 * A line whose owner is over a quota is parked under the user or project that holds too much and
 * comes back when something of that blocker ends. */
#include "sched/inner.h"

uint64_t duration_ms(const struct job *job) {
    return (uint64_t)job->duration_s * 1000;
}

/* Limit, else estimate, else what the policy says; in seconds, rounded up. */
uint32_t plan_duration(const struct acre_sched *sched, const struct job *job) {
    uint64_t ms = job->limit_ms != 0      ? job->limit_ms
                  : job->estimate_ms != 0 ? job->estimate_ms
                                          : sched->policy.default_estimate_ms;
    return (uint32_t)ACRE_MIN(ms / 1000 + (ms % 1000 != 0), (uint64_t)UINT32_MAX - 1);
}

static enum stand stand_of(const struct acre_sched *sched, const struct job *job, uint64_t now_ms) {
    if (job->held) {
        return STAND_HELD;
    }
    if (job->needs != NONE) {
        return STAND_DEPENDENCY;
    }
    if (job->begin_ms > now_ms) {
        return STAND_BEGIN;
    }
    if (job->not_before_ms > now_ms) {
        return STAND_RETRY;
    }
    if (job->array != NONE) {
        const struct array *array = &sched->arrays[job->array];
        if (array->limit != 0 && array->open >= array->limit) {
            return STAND_ARRAY;
        }
    }
    return STAND_LINE;
}

/* How many jobs stand there, as acre_sched_counts tells it. */
static uint32_t *count_of(struct acre_sched *sched, enum stand stand) {
    uint32_t *const counts[STAND_COUNT] = {
        [STAND_HELD] = &sched->counts.held,
        [STAND_DEPENDENCY] = &sched->counts.waiting_dependency,
        [STAND_ARRAY] = &sched->counts.waiting_dependency,
        [STAND_BEGIN] = &sched->counts.waiting_begin,
        [STAND_RETRY] = &sched->counts.waiting_retry,
        [STAND_LINE] = &sched->counts.eligible,
        [STAND_PROMISED] = &sched->counts.eligible,
    };
    return counts[stand];
}

static void set_bit(struct acre_sched *sched, const struct line *line, bool open) {
    uint64_t *word =
        &sched->open_lines[(size_t)line->account * sched->open_words + line->class / 64];
    uint64_t bit = UINT64_C(1) << line->class % 64;
    *word = open ? *word | bit : *word & ~bit;
}

static uint32_t line_least(struct acre_sched *sched, const struct line *line) {
    return tree_least(&line_by_key, sched, &line->jobs);
}

/* Into and out of the class's tree of lines. */
static void show_line(struct acre_sched *sched, uint32_t at) {
    struct line *line = &sched->lines[at];
    line->filed_key = line->first_key;
    line->filed_id = line->first_id;
    line->filed_s = line_least(sched, line);
    tree_insert(&lines_by_first, sched, &sched->classes[line->class].lines, at);
    set_bit(sched, line, true);
}

static void hide_line(struct acre_sched *sched, uint32_t at) {
    struct line *line = &sched->lines[at];
    tree_remove(&lines_by_first, sched, &sched->classes[line->class].lines, at);
    set_bit(sched, line, false);
}

static void refile_duration(struct acre_sched *sched, uint32_t at) {
    struct line *line = &sched->lines[at];
    line->filed_s = line_least(sched, line);
    tree_refresh(&lines_by_first, sched, &sched->classes[line->class].lines, at);
}

static void set_first(struct acre_sched *sched, struct line *line) {
    line->first = tree_first(&line_by_key, sched, &line->jobs);
    if (line->first != TREE_NONE) {
        line->first_key = sched->jobs[line->first].key;
        line->first_id = sched->jobs[line->first].id;
    }
}

static void line_enter(struct acre_sched *sched, uint32_t index) {
    uint32_t at = line_add(sched, sched->jobs[index].account, sched->jobs[index].class);
    struct job *job = &sched->jobs[index];
    struct line *line = &sched->lines[at];
    bool is_empty = line->jobs.root == TREE_NONE;
    bool is_first = is_empty || key_precedes(job->key, job->id, line->first_key, line->first_id);
    bool shown = line->blocker == NONE;
    bool is_refiled =
        is_empty || (is_first && key_precedes(job->key, job->id, line->filed_key, line->filed_id));
    if (is_refiled && shown && !is_empty) {
        hide_line(sched, at);
    }
    tree_insert(&line_by_key, sched, &line->jobs, index);
    job->line = at;
    sched->classes[line->class].waiting++;
    if (is_first) {
        set_first(sched, line);
    }
    if (is_refiled && shown) {
        show_line(sched, at);
    } else if (shown && job->duration_s < line->filed_s) {
        refile_duration(sched, at);
    }
}

static void unpark(struct acre_sched *sched, uint32_t at) {
    struct line *line = &sched->lines[at];
    if (line->previous_parked != NONE) {
        sched->lines[line->previous_parked].next_parked = line->next_parked;
    } else {
        sched->blockers[line->blocker].first = line->next_parked;
    }
    if (line->next_parked != NONE) {
        sched->lines[line->next_parked].previous_parked = line->previous_parked;
    }
    line->blocker = NONE;
    line->next_parked = line->previous_parked = NONE;
}

static void line_leave(struct acre_sched *sched, uint32_t index) {
    struct job *job = &sched->jobs[index];
    uint32_t at = job->line;
    struct line *line = &sched->lines[at];
    bool is_first = line->first == index;
    bool shown = line->blocker == NONE;
    bool is_last = tree_size(&line_by_key, sched, &line->jobs) == 1;
    if (is_last && shown) {
        hide_line(sched, at);
    }
    tree_remove(&line_by_key, sched, &line->jobs, index);
    job->line = NONE;
    struct job_class *class = &sched->classes[line->class];
    if (--class->waiting == 0) {
        class->state = CLASS_OPEN; /* nobody looks what is freed for a class without jobs */
        class->is_local = false;
    }
    if (is_last) {
        if (!shown) {
            unpark(sched, at);
        }
        line_remove(sched, at);
        return;
    }
    if (is_first) {
        set_first(sched, line);
    }
}

/* Lines are filed where they once belonged; their first jobs only go later from there. */
uint32_t class_first(struct acre_sched *sched, uint32_t class) {
    for (;;) {
        uint32_t at = tree_first(&lines_by_first, sched, &sched->classes[class].lines);
        if (at == TREE_NONE || (sched->lines[at].filed_id == sched->lines[at].first_id &&
                                sched->lines[at].filed_key == sched->lines[at].first_key)) {
            return at;
        }
        hide_line(sched, at);
        show_line(sched, at);
    }
}

uint32_t class_first_within(struct acre_sched *sched, uint32_t class, uint32_t most_s) {
    for (;;) {
        uint32_t at =
            tree_first_within(&lines_by_first, sched, &sched->classes[class].lines, most_s);
        if (at == TREE_NONE || line_least(sched, &sched->lines[at]) <= most_s) {
            return at;
        }
        refile_duration(sched, at);
    }
}

void line_park(struct acre_sched *sched, uint32_t at, uint32_t blocker) {
    ACRE_ASSERT(blocker < sched->blocker_count);
    struct line *line = &sched->lines[at];
    ACRE_ASSERT(line->blocker == NONE);
    hide_line(sched, at);
    line->blocker = blocker;
    line->next_parked = sched->blockers[blocker].first;
    if (line->next_parked != NONE) {
        sched->lines[line->next_parked].previous_parked = at;
    }
    sched->blockers[blocker].first = at;
}

void lines_unpark(struct acre_sched *sched, uint32_t blocker) {
    while (blocker < sched->blocker_count && sched->blockers[blocker].first != NONE) {
        uint32_t at = sched->blockers[blocker].first;
        unpark(sched, at);
        show_line(sched, at);
        if (blocker != BLOCKER_PASS) {
            class_open(sched, sched->lines[at].class);
        }
    }
}

static uint64_t blocker_key(bool project, uint32_t name) {
    return (project ? UINT64_C(2) : UINT64_C(1)) << 32 | name;
}

void lines_unpark_owner(struct acre_sched *sched, const struct job *job) {
    lines_unpark(sched, acre_map_get(&sched->blocker_of_name, blocker_key(false, job->user)));
    lines_unpark(sched, acre_map_get(&sched->blocker_of_name, blocker_key(true, job->project)));
}

uint32_t blocker_of(struct acre_sched *sched, bool project, uint32_t name) {
    uint64_t key = blocker_key(project, name);
    uint32_t at = acre_map_get(&sched->blocker_of_name, key);
    if (at == ACRE_MAP_NONE) {
        sched->blockers = acre_grow(sched->blockers, sched->blocker_count, &sched->blocker_capacity,
                                    sizeof(*sched->blockers));
        at = sched->blocker_count++;
        sched->blockers[at] = (struct blocker){NONE};
        acre_map_put(&sched->blocker_of_name, key, at);
    }
    return at;
}

/* Something changed for the class's jobs: the next pass tries them. A class that had no room has
 * none for one more job either. */
void class_open(struct acre_sched *sched, uint32_t at) {
    ACRE_ASSERT(at < sched->class_limit);
    struct job_class *class = &sched->classes[at];
    sched->is_dirty = true;
    if (class->state == CLASS_BEHIND || class->state == CLASS_OPEN) {
        class->state = CLASS_OPEN;
        class->is_local = false;
        sched->has_open = true;
    }
}

void order_enter(struct acre_sched *sched, uint32_t index, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    job->key = order_key(sched, job);
    tree_insert(&order_by_key, sched, order_of(sched, job), index);
    rank_enter(sched, job->account, now_ms);
}

/* Does it come after the head that others wait behind? */
static bool comes_after_head(const struct acre_sched *sched, uint32_t index) {
    const struct job *head = job_find(sched, sched->shadow.head);
    return head != NULL && head->stand == STAND_LINE &&
           order_before(sched, job_index(sched, head), index);
}

void queue_enter(struct acre_sched *sched, uint32_t index, uint64_t now_ms) {
    struct job *job = &sched->jobs[index];
    ACRE_ASSERT(job->id != 0 && job->state == ACRE_JOB_QUEUED && job->line == NONE);
    job->duration_s = plan_duration(sched, job);
    enum stand stand = stand_of(sched, job, now_ms);
    job->stand = (uint8_t)stand;
    ++*count_of(sched, stand);
    if (stand > STAND_BEGIN && job->eligible_ms == 0) {
        job->eligible_ms = ACRE_MAX(now_ms, UINT64_C(1));
    }
    if (stand != STAND_LINE) {
        tree_insert(&order_by_id, sched, &sched->aside, index);
        if (stand == STAND_ARRAY) {
            job->key = 0; /* by id */
            tree_insert(&line_by_key, sched, &sched->arrays[job->array].waiting, index);
        } else if (stand == STAND_BEGIN || stand == STAND_RETRY) {
            timer_set(sched, stand == STAND_BEGIN ? job->begin_ms : job->not_before_ms, job->id);
        }
        return;
    }
    if (job->array != NONE) {
        sched->arrays[job->array].open++;
    }
    order_enter(sched, index, now_ms);
    line_enter(sched, index);
    bool is_after = comes_after_head(sched, index);
    bool is_behind = sched->classes[sched->jobs[index].class].state == CLASS_BEHIND &&
                     sched->jobs[index].duration_s > sched->behind_s && is_after;
    if (!is_behind) {
        class_open(sched, sched->jobs[index].class);
    }
    sched->has_open |= sched->has_behind && !is_after; /* another head: some may pass this one */
    sched->is_dirty = true;                            /* it may be the head */
    sched->newest_priority = ACRE_MAX(sched->newest_priority, sched->jobs[index].priority);
}

void array_leave(struct acre_sched *sched, uint32_t at) {
    struct array *array = &sched->arrays[at];
    ACRE_ASSERT(array->open > 0);
    array->open--;
    if (array->waiting.root != TREE_NONE) {
        sched->due_arrays = acre_grow(sched->due_arrays, sched->due_array_count,
                                      &sched->due_array_capacity, sizeof(*sched->due_arrays));
        sched->due_arrays[sched->due_array_count++] = array->id;
        sched->is_dirty = true;
    }
}

void arrays_fill(struct acre_sched *sched, uint64_t now_ms) {
    while (sched->due_array_count > 0) {
        uint32_t at =
            acre_map_get(&sched->array_of_id, sched->due_arrays[--sched->due_array_count]);
        while (at != ACRE_MAP_NONE && sched->arrays[at].waiting.root != TREE_NONE &&
               sched->arrays[at].open < sched->arrays[at].limit) {
            queue_again(sched, tree_first(&line_by_key, sched, &sched->arrays[at].waiting), now_ms);
        }
    }
}

void queue_leave(struct acre_sched *sched, uint32_t index) {
    struct job *job = &sched->jobs[index];
    ACRE_ASSERT(*count_of(sched, (enum stand)job->stand) > 0);
    --*count_of(sched, (enum stand)job->stand);
    if (job->id == sched->shadow.head) { /* those behind it have another chance */
        sched->shadow.is_stale = true;
        sched->is_dirty = true;
        sched->has_open = true;
    }
    switch ((enum stand)job->stand) {
    case STAND_LINE:
    case STAND_PROMISED:
        tree_remove(&order_by_key, sched, order_of(sched, job), index);
        if (job->stand == STAND_LINE) {
            line_leave(sched, index);
        }
        if (job->array != NONE) {
            array_leave(sched, job->array);
        }
        break;
    case STAND_ARRAY:
        tree_remove(&line_by_key, sched, &sched->arrays[job->array].waiting, index);
        tree_remove(&order_by_id, sched, &sched->aside, index);
        break;
    case STAND_HELD:
    case STAND_DEPENDENCY:
    case STAND_BEGIN:
    case STAND_RETRY:
        tree_remove(&order_by_id, sched, &sched->aside, index);
        break;
    case STAND_HOLDING:
    case STAND_ENDED:
    case STAND_COUNT:
        ACRE_ASSERT(false);
    }
}

void queue_again(struct acre_sched *sched, uint32_t index, uint64_t now_ms) {
    queue_leave(sched, index);
    queue_enter(sched, index, now_ms);
}

void queue_promise(struct acre_sched *sched, uint32_t index) {
    ACRE_ASSERT(sched->jobs[index].stand == STAND_LINE);
    line_leave(sched, index);
    sched->jobs[index].stand = STAND_PROMISED;
}
