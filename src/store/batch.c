/* batch.c - operations copied into an arena, one per job.
 *
 * Every operation is one allocation: the record, then its strings. Which members of a record are
 * strings is a table, so there is one function that copies, for all kinds; the memory store keeps
 * its rows in the same form.
 *
 * A job has at most one operation in a batch: an update of a job that was added or updated in the
 * same batch is folded into that operation (the batch is atomic, so the difference is invisible).
 * A turn of the loop that schedules a job and asks the engine for it costs one row, not two. A
 * job's operation is found through an index of ids. */
#include "store/batch.h"

#include <stdlib.h>
#include <string.h>

/* An array of 100,000 jobs, each with its event, takes a tenth of it. */
#define BATCH_MAX_BYTES ((size_t)512 << 20)

enum { STRINGS_MAX = 6, VIEWS_MAX = 2 };

/* Where a kind's strings are: `const char *` members, and struct acre_str members. */
struct op_layout {
    size_t size;
    uint8_t string_count, view_count;
    size_t strings[STRINGS_MAX], views[VIEWS_MAX];
};

#define AT(type, member) offsetof(struct acre_store_##type, member)
/* clang-format off */
static const struct op_layout layouts[] = {
    [ACRE_OP_ADD_JOB] = {sizeof(struct acre_store_job), 4, 2,
        {AT(job, user), AT(job, project), AT(job, name), AT(job, state)},
        {AT(job, spec), AT(job, detail)}},
    [ACRE_OP_UPDATE_JOB] = {sizeof(struct acre_store_job), 1, 1,
        {AT(job, state)}, {AT(job, detail)}},
    [ACRE_OP_PUT_ACCOUNT] = {sizeof(struct acre_store_account), 2, 0,
        {AT(account, project), AT(account, user)}, {0}},
    [ACRE_OP_PUT_SETTING] = {sizeof(struct acre_store_setting), 1, 1,
        {AT(setting, name)}, {AT(setting, value)}},
    [ACRE_OP_PUT_TOKEN] = {sizeof(struct acre_store_token), 4, 0,
        {AT(token, user), AT(token, project), AT(token, role), AT(token, note)}, {0}},
    [ACRE_OP_REMOVE_TOKEN] = {sizeof(struct acre_store_token), 0, 0, {0}, {0}},
    [ACRE_OP_PUT_RESERVATION] = {sizeof(struct acre_store_reservation), 2, 1,
        {AT(reservation, user), AT(reservation, state)}, {AT(reservation, detail)}},
    [ACRE_OP_PUT_DRAIN] = {sizeof(struct acre_store_drain), 2, 0,
        {AT(drain, target), AT(drain, reason)}, {0}},
    [ACRE_OP_REMOVE_DRAIN] = {sizeof(struct acre_store_drain), 1, 0, {AT(drain, target)}, {0}},
    [ACRE_OP_AUDIT] = {sizeof(struct acre_store_audit), 6, 0,
        {AT(audit, actor), AT(audit, origin), AT(audit, action), AT(audit, target),
         AT(audit, result), AT(audit, detail)}, {0}},
};
/* clang-format on */
_Static_assert(ACRE_COUNT(layouts) == ACRE_OP_KIND_COUNT, "every kind has its strings");

static struct acre_str string_at(const void *record, size_t offset) {
    const char *text;
    memcpy(&text, (const char *)record + offset, sizeof(text));
    return acre_str_from(text);
}

static struct acre_str view_at(const void *record, size_t offset) {
    struct acre_str view;
    memcpy(&view, (const char *)record + offset, sizeof(view));
    return view;
}

size_t op_size(enum op_kind kind, const void *record) {
    ACRE_ASSERT((unsigned)kind < ACRE_OP_KIND_COUNT);
    const struct op_layout *layout = &layouts[kind];
    size_t size = sizeof(struct op);
    for (uint8_t i = 0; i < layout->string_count; i++) {
        size += string_at(record, layout->strings[i]).length + 1;
    }
    for (uint8_t i = 0; i < layout->view_count; i++) {
        size += view_at(record, layout->views[i]).length + 1;
    }
    return size;
}

/* Copy with a NUL; returns the copy and moves `*at` behind it. */
static const char *put_text(char **at, struct acre_str text) {
    char *copy = *at;
    if (text.length > 0) {
        memcpy(copy, text.data, text.length);
    }
    copy[text.length] = '\0';
    *at = copy + text.length + 1;
    return copy;
}

void op_fill(struct op *op, enum op_kind kind, const void *record) {
    ACRE_ASSERT((unsigned)kind < ACRE_OP_KIND_COUNT);
    const struct op_layout *layout = &layouts[kind];
    char *at = op->text;
    op->kind = kind;
    memcpy(&op->record, record, layout->size);
    for (uint8_t i = 0; i < layout->string_count; i++) {
        const char *copy = put_text(&at, string_at(record, layout->strings[i]));
        memcpy((char *)&op->record + layout->strings[i], &copy, sizeof(copy));
    }
    for (uint8_t i = 0; i < layout->view_count; i++) {
        struct acre_str view = view_at(record, layout->views[i]);
        view.data = put_text(&at, view);
        memcpy((char *)&op->record + layout->views[i], &view, sizeof(view));
    }
}

struct acre_store_job op_updated(const struct acre_store_job *job,
                                 const struct acre_store_job *update) {
    struct acre_store_job result = *update;
    result.user = job->user;
    result.project = job->project;
    result.name = job->name;
    result.array = job->array;
    result.spec = job->spec;
    result.spec_id = job->spec_id;
    return result;
}

struct acre_batch *acre_batch_create(void) {
    struct acre_batch *batch = acre_calloc(1, sizeof(*batch));
    batch->arena = acre_arena_create(BATCH_MAX_BYTES);
    return batch;
}

void acre_batch_destroy(struct acre_batch *batch) {
    if (batch == NULL) {
        return;
    }
    acre_index_finish(&batch->jobs);
    free(batch->ops);
    free(batch->fail);
    acre_arena_destroy(batch->arena);
    free(batch);
}

size_t batch_bytes(const struct acre_batch *batch) {
    const size_t block_bytes = 8192; /* what the arena takes at least */
    return sizeof(*batch) + ACRE_MAX(acre_arena_used(batch->arena), block_bytes) +
           batch->capacity * sizeof(*batch->ops) + acre_index_bytes(&batch->jobs);
}

/* NULL when the batch is full: the commit will say so. */
static struct op *copy_record(struct acre_batch *batch, enum op_kind kind, const void *record) {
    struct op *op = acre_arena_try(batch->arena, op_size(kind, record));
    if (op == NULL) {
        batch->too_large = true;
        return NULL;
    }
    op_fill(op, kind, record);
    return op;
}

static void append(struct acre_batch *batch, enum op_kind kind, const void *record) {
    ACRE_ASSERT(batch->done == NULL && batch->generation == 0);
    struct op *op = copy_record(batch, kind, record);
    if (op == NULL) {
        return;
    }
    batch->ops = acre_grow(batch->ops, batch->count, &batch->capacity, sizeof(struct op *));
    batch->ops[batch->count++] = op;
}

static uint32_t job_hash(uint32_t number, const void *context) {
    return acre_hash_u64(((const struct acre_batch *)context)->ops[number]->record.job.id);
}

static bool job_is(uint32_t number, const void *key, const void *context) {
    const struct acre_batch *batch = context;
    return batch->ops[number]->record.job.id == *(const uint64_t *)key;
}

static const struct acre_index_kind by_job = {job_hash, job_is};

/* The operation of this job; ACRE_INDEX_NONE: none yet. */
static uint32_t find_job(const struct acre_batch *batch, uint64_t id) {
    return acre_index_find(&by_job, &batch->jobs, acre_hash_u64(id), &id, batch);
}

static void append_job(struct acre_batch *batch, enum op_kind kind,
                       const struct acre_store_job *job) {
    uint32_t before = batch->count;
    append(batch, kind, job);
    if (batch->count > before) {
        acre_index_add(&by_job, &batch->jobs, acre_hash_u64(job->id), before, batch);
    }
}

/* The database orders ids and times as signed numbers. */
static void check_job(const struct acre_store_job *job) {
    ACRE_ASSERT(job->id >= 1 && job->id <= INT64_MAX && job->array <= INT64_MAX);
    ACRE_ASSERT(job->submitted_ms <= INT64_MAX && job->started_ms <= INT64_MAX &&
                job->ended_ms <= INT64_MAX);
}

void acre_batch_add_job(struct acre_batch *batch, const struct acre_store_job *job) {
    check_job(job);
    ACRE_ASSERT(find_job(batch, job->id) == ACRE_INDEX_NONE); /* added twice */
    append_job(batch, ACRE_OP_ADD_JOB, job);
}

void acre_batch_update_job(struct acre_batch *batch, const struct acre_store_job *job) {
    check_job(job);
    ACRE_ASSERT(batch->done == NULL && batch->generation == 0);
    uint32_t number = find_job(batch, job->id);
    if (number == ACRE_INDEX_NONE) {
        struct acre_store_job update = op_updated(&(struct acre_store_job){0}, job);
        append_job(batch, ACRE_OP_UPDATE_JOB, &update);
        return;
    }
    const struct op *old = batch->ops[number];
    ACRE_ASSERT(old->kind == ACRE_OP_ADD_JOB || old->kind == ACRE_OP_UPDATE_JOB);
    struct acre_store_job merged = op_updated(&old->record.job, job);
    struct op *op = copy_record(batch, old->kind, &merged);
    if (op != NULL) {
        batch->ops[number] = op;
    }
}

void acre_batch_put_account(struct acre_batch *batch, const struct acre_store_account *account) {
    ACRE_ASSERT(account->at_ms <= INT64_MAX);
    append(batch, ACRE_OP_PUT_ACCOUNT, account);
}

void acre_batch_put_setting(struct acre_batch *batch, const char *name, struct acre_str value) {
    ACRE_ASSERT(name != NULL && name[0] != 0);
    append(batch, ACRE_OP_PUT_SETTING, &(struct acre_store_setting){name, value});
}

void acre_batch_put_token(struct acre_batch *batch, const struct acre_store_token *token) {
    ACRE_ASSERT(token->id <= INT64_MAX && token->parent < token->id);
    append(batch, ACRE_OP_PUT_TOKEN, token);
}

void acre_batch_remove_token(struct acre_batch *batch, uint64_t id) {
    ACRE_ASSERT(id >= 1 && id <= INT64_MAX);
    append(batch, ACRE_OP_REMOVE_TOKEN, &(struct acre_store_token){.id = id});
}

void acre_batch_put_reservation(struct acre_batch *batch,
                                const struct acre_store_reservation *reservation) {
    ACRE_ASSERT(reservation->id <= INT64_MAX);
    append(batch, ACRE_OP_PUT_RESERVATION, reservation);
}

void acre_batch_put_drain(struct acre_batch *batch, const struct acre_store_drain *drain) {
    ACRE_ASSERT(drain->target != NULL && drain->since_ms <= INT64_MAX);
    append(batch, ACRE_OP_PUT_DRAIN, drain);
}

void acre_batch_remove_drain(struct acre_batch *batch, const char *target) {
    ACRE_ASSERT(target != NULL);
    append(batch, ACRE_OP_REMOVE_DRAIN, &(struct acre_store_drain){.target = target});
}

void acre_batch_audit(struct acre_batch *batch, const struct acre_store_audit *audit) {
    ACRE_ASSERT(audit->at_ms <= INT64_MAX);
    append(batch, ACRE_OP_AUDIT, audit);
}
