/* memory.c - the store in memory: for tests, the simulator, and daemons that may forget.
 *
 * Rows are the operations that made them (batch.h), in arrays sorted by key and found by binary
 * search. Jobs get growing ids, so a new one goes to the end; a search costs less than the commit
 * around it. A mutex keeps the writer and the readers apart: it is held for as long as a
 * transaction or a read takes, and there is no disk to wait for.
 *
 * A batch is checked as a whole before anything is changed, which makes it atomic: its only
 * possible faults are a job added twice and an update of one that is not there.
 *
 * "memory:fail=3,7" makes the third and the seventh batch fail with ACRE_EIO, as a full disk
 * would: that batch and those given with it change nothing. Batches are counted from 1, in the
 * order they reach the driver (those refused by a store that waits for resume do not). */
#include "store/batch.h"
#include "store/store_driver.h"
#include "store/tally.h"

#include "core/units.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_MAX = 64 };

enum shelf_name { JOBS, ACCOUNTS, SETTINGS, TOKENS, RESERVATIONS, DRAINS, SHELF_COUNT };

/* Rows sorted by key. */
struct shelf {
    struct op **rows;
    size_t count;
    uint32_t capacity;
};

struct memory {
    pthread_mutex_t lock; /* all below; recursive: a visit may read something else */
    unsigned readers;     /* under way; a visit must not commit */
    struct shelf shelves[SHELF_COUNT];
    struct shelf audit; /* by seq */
    struct audit_hasher *hasher;
    struct audit_head head;
    uint64_t batches;
    uint64_t failures[FAILURES_MAX];
    size_t failure_count;
};

/* --- rows ----------------------------------------------------------------------------------- */

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_jobs(const union op_record *a, const union op_record *b) {
    return compare_numbers(a->job.id, b->job.id);
}

static int compare_accounts(const union op_record *a, const union op_record *b) {
    int order = strcmp(a->account.project, b->account.project);
    return order != 0 ? order : strcmp(a->account.user, b->account.user);
}

static int compare_settings(const union op_record *a, const union op_record *b) {
    return strcmp(a->setting.name, b->setting.name);
}

static int compare_tokens(const union op_record *a, const union op_record *b) {
    return compare_numbers(a->token.id, b->token.id);
}

static int compare_reservations(const union op_record *a, const union op_record *b) {
    return compare_numbers(a->reservation.id, b->reservation.id);
}

static int compare_drains(const union op_record *a, const union op_record *b) {
    return strcmp(a->drain.target, b->drain.target);
}

typedef int compare_rows(const union op_record *a, const union op_record *b);

static compare_rows *const orders[SHELF_COUNT] = {
    [JOBS] = compare_jobs,     [ACCOUNTS] = compare_accounts, [SETTINGS] = compare_settings,
    [TOKENS] = compare_tokens, [DRAINS] = compare_drains,     [RESERVATIONS] = compare_reservations,
};

/* Which shelf an operation is about; audit has its own way. */
static const enum shelf_name shelf_of[] = {
    [ACRE_OP_ADD_JOB] = JOBS,
    [ACRE_OP_UPDATE_JOB] = JOBS,
    [ACRE_OP_PUT_ACCOUNT] = ACCOUNTS,
    [ACRE_OP_PUT_SETTING] = SETTINGS,
    [ACRE_OP_PUT_TOKEN] = TOKENS,
    [ACRE_OP_REMOVE_TOKEN] = TOKENS,
    [ACRE_OP_PUT_RESERVATION] = RESERVATIONS,
    [ACRE_OP_PUT_DRAIN] = DRAINS,
    [ACRE_OP_REMOVE_DRAIN] = DRAINS,
};
_Static_assert(ACRE_COUNT(shelf_of) == ACRE_OP_AUDIT, "every kind but audit has a shelf");

/* The first row not before `key`; its index may be the count. */
static size_t find_place(const struct memory *memory, enum shelf_name name,
                         const union op_record *key, bool *ret_found) {
    const struct shelf *shelf = &memory->shelves[name];
    size_t low = 0;
    size_t high = shelf->count;
    if (high > 0 && orders[name](&shelf->rows[high - 1]->record, key) < 0) {
        low = high; /* a new one at the end: the usual case for jobs */
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (orders[name](&shelf->rows[middle]->record, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *ret_found = low < shelf->count && orders[name](&shelf->rows[low]->record, key) == 0;
    return low;
}

static struct op *copy_row(enum op_kind kind, const void *record) {
    struct op *row = acre_calloc(1, op_size(kind, record));
    op_fill(row, kind, record);
    return row;
}

static void insert_row(struct shelf *shelf, size_t at, struct op *row) {
    ACRE_ASSERT(at <= shelf->count && row != NULL);
    shelf->rows = acre_grow(shelf->rows, shelf->count, &shelf->capacity, sizeof(struct op *));
    memmove(&shelf->rows[at + 1], &shelf->rows[at], (shelf->count - at) * sizeof(struct op *));
    shelf->rows[at] = row;
    shelf->count++;
}

static void remove_row(struct shelf *shelf, size_t at) {
    ACRE_ASSERT(at < shelf->count);
    free(shelf->rows[at]);
    shelf->count--;
    memmove(&shelf->rows[at], &shelf->rows[at + 1], (shelf->count - at) * sizeof(struct op *));
}

static void free_rows(struct shelf *shelf) {
    for (size_t i = 0; i < shelf->count; i++) {
        free(shelf->rows[i]);
    }
    free(shelf->rows);
}

/* --- opening -------------------------------------------------------------------------------- */

static int parse_failures(struct memory *memory, struct acre_str list, struct acre_error *err) {
    struct acre_split split = acre_split_begin(list, ',');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        char text[24] = "";
        uint64_t number;
        if (!acre_str_copy(text, sizeof(text), part)) {
            return acre_fail(err, ACRE_EINVALID,
                             "memory:fail: a number with %zu digits is too long", part.length);
        }
        int r = acre_parse_count("memory:fail", text, 1, UINT64_MAX, &number, err);
        if (r < 0) {
            return r;
        }
        if (memory->failure_count == FAILURES_MAX) {
            return acre_fail(err, ACRE_ELIMIT,
                             "memory:fail: too many numbers; accepted: at most %d", FAILURES_MAX);
        }
        memory->failures[memory->failure_count++] = number;
    }
    return 0;
}

static void close_memory(void *self) {
    struct memory *memory = self;
    for (size_t i = 0; i < SHELF_COUNT; i++) {
        free_rows(&memory->shelves[i]);
    }
    free_rows(&memory->audit);
    audit_hasher_destroy(memory->hasher);
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static int open_memory(const char *where, bool read_only, void **ret_self, struct acre_error *err) {
    const char option[] = "fail=";
    char shown[64];
    if (read_only) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "memory: another process cannot read it");
    }
    struct memory *memory = acre_calloc(1, sizeof(*memory));
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&memory->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    memory->hasher = audit_hasher_create();
    int r = 0;
    if (strncmp(where, option, sizeof(option) - 1) == 0) {
        r = parse_failures(memory, acre_str_from(where + sizeof(option) - 1), err);
    } else if (where[0] != '\0') {
        r = acre_fail(err, ACRE_EINVALID, "store: 'memory:%s' is not valid; accepted: %s",
                      acre_str_show(acre_str_from(where), shown, sizeof(shown)),
                      store_memory.usage);
    }
    if (r < 0) {
        close_memory(memory);
        return r;
    }
    *ret_self = memory;
    return 0;
}

/* --- writing -------------------------------------------------------------------------------- */

static int check_batch(const struct memory *memory, const struct acre_batch *batch,
                       struct acre_error *err) {
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct op *op = batch->ops[i];
        if (op->kind != ACRE_OP_ADD_JOB && op->kind != ACRE_OP_UPDATE_JOB) {
            continue;
        }
        bool found;
        find_place(memory, JOBS, &op->record, &found);
        if (found && op->kind == ACRE_OP_ADD_JOB) {
            return acre_fail(err, ACRE_EEXISTS, "store: job %" PRIu64 " already exists",
                             op->record.job.id);
        }
        if (!found && op->kind == ACRE_OP_UPDATE_JOB) {
            return acre_fail(err, ACRE_ENOTFOUND, "store: there is no job %" PRIu64,
                             op->record.job.id);
        }
    }
    return 0;
}

static void apply_audit(struct memory *memory, const struct op *op) {
    struct acre_store_audit audit = op->record.audit;
    audit_extend(memory->hasher, &memory->head, &audit);
    audit.seq = memory->head.count;
    ACRE_ASSERT(audit.seq == memory->audit.count + 1);
    memcpy(audit.hash, memory->head.hash, sizeof(audit.hash));
    insert_row(&memory->audit, memory->audit.count, copy_row(ACRE_OP_AUDIT, &audit));
}

static void apply_op(struct memory *memory, const struct op *op) {
    if (op->kind == ACRE_OP_AUDIT) {
        apply_audit(memory, op);
        return;
    }
    enum shelf_name name = shelf_of[op->kind];
    struct shelf *shelf = &memory->shelves[name];
    bool found;
    size_t at = find_place(memory, name, &op->record, &found);
    if (op->kind == ACRE_OP_REMOVE_DRAIN || op->kind == ACRE_OP_REMOVE_TOKEN) {
        if (found) {
            remove_row(shelf, at);
        }
        return;
    }
    enum op_kind kind = op->kind;
    union op_record record = op->record;
    if (kind == ACRE_OP_UPDATE_JOB) {
        ACRE_ASSERT(found);
        record.job = op_updated(&shelf->rows[at]->record.job, &op->record.job);
        kind = ACRE_OP_ADD_JOB;
    }
    struct op *row = copy_row(kind, &record);
    if (found) {
        free(shelf->rows[at]);
        shelf->rows[at] = row;
    } else {
        insert_row(shelf, at, row);
    }
}

/* Is one of the next `count` batches to fail? */
static bool is_to_fail(const struct memory *memory, size_t count) {
    for (size_t i = 0; i < memory->failure_count; i++) {
        uint64_t number = memory->failures[i];
        if (number > memory->batches && number - memory->batches <= count) {
            return true;
        }
    }
    return false;
}

static int apply_memory(void *self, struct acre_batch *const *batches, size_t count,
                        size_t *applied, struct acre_error *err) {
    struct memory *memory = self;
    int r = 0;
    size_t at = 0;
    pthread_mutex_lock(&memory->lock);
    ACRE_ASSERT(memory->readers == 0);
    if (is_to_fail(memory, count)) {
        r = acre_fail(err, ACRE_EIO, "store: failure asked for by memory:fail=");
    }
    memory->batches += count;
    while (r == 0 && at < count) {
        r = check_batch(memory, batches[at], err);
        for (uint32_t i = 0; r == 0 && i < batches[at]->count; i++) {
            apply_op(memory, batches[at]->ops[i]);
        }
        at += r == 0;
    }
    pthread_mutex_unlock(&memory->lock);
    *applied = at;
    return r;
}

/* --- reading -------------------------------------------------------------------------------- */

static void begin_read(struct memory *memory) {
    pthread_mutex_lock(&memory->lock);
    memory->readers++;
}

static void end_read(struct memory *memory) {
    ACRE_ASSERT(memory->readers > 0);
    memory->readers--;
    pthread_mutex_unlock(&memory->lock);
}

static bool is_same(const char *wanted, const char *text) {
    return wanted == NULL || strcmp(wanted, text) == 0;
}

static bool is_wanted_job(const struct acre_job_filter *filter, const struct acre_store_job *job) {
    return is_same(filter->user, job->user) && is_same(filter->project, job->project) &&
           is_same(filter->state, job->state) && is_same(filter->name, job->name) &&
           (filter->array == 0 || filter->array == job->array) &&
           (!filter->live_only || job->live) && (!filter->ended_only || !job->live);
}

/* Walk rows from a cursor in either direction. */
struct row_walk {
    size_t next, left;
    bool backwards;
};

static struct row_walk walk_from(size_t first_after, size_t first_not_before, size_t count,
                                 bool has_cursor, bool newest_first) {
    struct row_walk walk = {.backwards = newest_first};
    if (newest_first) {
        walk.left = has_cursor ? first_not_before : count;
        walk.next = walk.left;
    } else {
        walk.next = has_cursor ? first_after : 0;
        walk.left = count - walk.next;
    }
    return walk;
}

static bool walk_step(struct row_walk *walk, size_t *ret_at) {
    if (walk->left == 0) {
        return false;
    }
    walk->left--;
    *ret_at = walk->backwards ? --walk->next : walk->next++;
    return true;
}

static int read_jobs(void *self, const struct acre_job_filter *filter, acre_job_visit *visit,
                     void *context, struct acre_error *err) {
    struct memory *memory = self;
    (void)err;
    begin_read(memory);
    const struct shelf *shelf = &memory->shelves[JOBS];
    bool found;
    size_t place =
        find_place(memory, JOBS, &(union op_record){.job = {.id = filter->after_id}}, &found);
    struct row_walk walk =
        walk_from(place + found, place, shelf->count, filter->after_id != 0, filter->newest_first);
    uint32_t given = 0;
    size_t at;
    bool go_on = true;
    while (go_on && given < filter->limit && walk_step(&walk, &at)) {
        const struct acre_store_job *job = &shelf->rows[at]->record.job;
        if (is_wanted_job(filter, job)) {
            given++;
            go_on = visit(context, job);
        }
    }
    end_read(memory);
    return 0;
}

static int read_job(void *self, uint64_t id, acre_job_visit *visit, void *context,
                    struct acre_error *err) {
    struct memory *memory = self;
    bool found;
    begin_read(memory);
    size_t at = find_place(memory, JOBS, &(union op_record){.job = {.id = id}}, &found);
    if (found) {
        struct acre_store_job job = memory->shelves[JOBS].rows[at]->record.job;
        bool shared = false;
        if (job.spec_id != 0) {
            at = find_place(memory, JOBS, &(union op_record){.job = {.id = job.spec_id}}, &shared);
        }
        job.spec = shared ? memory->shelves[JOBS].rows[at]->record.job.spec : job.spec;
        visit(context, &job);
    }
    end_read(memory);
    return found ? 0 : acre_fail(err, ACRE_ENOTFOUND, "there is no job %" PRIu64, id);
}

static uint64_t read_last_job(void *self) {
    struct memory *memory = self;
    begin_read(memory);
    const struct shelf *shelf = &memory->shelves[JOBS];
    uint64_t id = shelf->count > 0 ? shelf->rows[shelf->count - 1]->record.job.id : 0;
    end_read(memory);
    return id;
}

static int read_statistics(void *self, uint64_t since_ms,
                           struct acre_job_statistics *ret_statistics, struct acre_error *err) {
    struct memory *memory = self;
    struct row_tally tally = {0};
    (void)err;
    begin_read(memory);
    for (size_t i = 0; i < memory->shelves[JOBS].count; i++) {
        const struct acre_store_job *job = &memory->shelves[JOBS].rows[i]->record.job;
        if (!job->live && job->ended_ms >= since_ms) {
            tally_add(&tally, job->state, job->submitted_ms, job->started_ms, job->ended_ms);
        }
    }
    end_read(memory);
    *ret_statistics = tally_finish(&tally);
    return 0;
}

static int read_setting(void *self, const char *name, struct acre_buf *ret_value,
                        struct acre_error *err) {
    struct memory *memory = self;
    bool found;
    int r = 0;
    begin_read(memory);
    size_t at = find_place(memory, SETTINGS, &(union op_record){.setting = {.name = name}}, &found);
    if (found) {
        struct acre_str value = memory->shelves[SETTINGS].rows[at]->record.setting.value;
        r = acre_buf_append(ret_value, value.data, value.length);
    }
    end_read(memory);
    if (!found) {
        return acre_fail(err, ACRE_ENOTFOUND, "setting '%s' is not set", name);
    }
    return r < 0 ? acre_fail(err, r, "setting '%s' is too long", name) : 0;
}

/* The small tables are visited whole. */
#define READ_ALL(name, shelf, member)                                                              \
    static int read_##name(void *self, acre_##member##_visit *visit, void *context,                \
                           struct acre_error *err) {                                               \
        struct memory *memory = self;                                                              \
        (void)err;                                                                                 \
        begin_read(memory);                                                                        \
        for (size_t i = 0; i < memory->shelves[shelf].count; i++) {                                \
            if (!visit(context, &memory->shelves[shelf].rows[i]->record.member)) {                 \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        end_read(memory);                                                                          \
        return 0;                                                                                  \
    }
READ_ALL(accounts, ACCOUNTS, account)
READ_ALL(tokens, TOKENS, token)
READ_ALL(reservations, RESERVATIONS, reservation)
READ_ALL(drains, DRAINS, drain)
#undef READ_ALL

static bool is_wanted_audit(const struct acre_audit_filter *filter,
                            const struct acre_store_audit *audit) {
    return is_same(filter->actor, audit->actor) && is_same(filter->target, audit->target) &&
           (filter->action == NULL ||
            strncmp(filter->action, audit->action, strlen(filter->action)) == 0);
}

static int read_audit(void *self, const struct acre_audit_filter *filter, audit_visit *visit,
                      void *context, struct acre_error *err) {
    struct memory *memory = self;
    (void)err;
    begin_read(memory);
    size_t count = memory->audit.count; /* seq n is at n - 1 */
    size_t after = (size_t)ACRE_MIN(filter->after_seq, (uint64_t)count);
    size_t before = filter->after_seq > count ? count : after - (after > 0);
    struct row_walk walk =
        walk_from(after, before, count, filter->after_seq != 0, filter->newest_first);
    uint32_t given = 0;
    size_t at;
    bool go_on = true;
    while (go_on && given < filter->limit && walk_step(&walk, &at)) {
        const struct acre_store_audit *audit = &memory->audit.rows[at]->record.audit;
        if (is_wanted_audit(filter, audit)) {
            given++;
            go_on = visit(context, audit);
        }
    }
    end_read(memory);
    return 0;
}

static int read_trail(void *self, struct audit_head *ret_head, audit_visit *visit, void *context,
                      struct acre_error *err) {
    struct memory *memory = self;
    (void)err;
    begin_read(memory);
    for (size_t i = 0; i < memory->audit.count; i++) {
        if (!visit(context, &memory->audit.rows[i]->record.audit)) {
            break;
        }
    }
    *ret_head = memory->head;
    end_read(memory);
    return 0;
}

const struct store_driver store_memory = {
    .scheme = "memory",
    .usage = "memory: (memory:fail=N,... makes commits fail)",
    .open = open_memory,
    .close = close_memory,
    .apply = apply_memory,
    .jobs = read_jobs,
    .job = read_job,
    .last_job = read_last_job,
    .statistics = read_statistics,
    .accounts = read_accounts,
    .setting = read_setting,
    .tokens = read_tokens,
    .reservations = read_reservations,
    .drains = read_drains,
    .audit = read_audit,
    .trail = read_trail,
};
