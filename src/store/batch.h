/* batch.h - the operations of a batch, one after the other. Private to src/store.
 *
 * An operation is a record and a kind, in one piece of memory together with its strings. Drivers
 * read batches; only batch.c and store.c change them. A batch belongs to one thread at a time:
 * the loop's until it is committed, then the writer's, then the loop's again. */
#ifndef ACRE_STORE_BATCH_H
#define ACRE_STORE_BATCH_H

#include "core/arena.h"
#include "core/index.h"
#include "store/store.h"

struct acre_store_setting {
    const char *name;
    struct acre_str value;
};

enum op_kind {
    ACRE_OP_ADD_JOB,
    ACRE_OP_UPDATE_JOB, /* user, project, name, array, spec and spec_id are not there */
    ACRE_OP_PUT_ACCOUNT,
    ACRE_OP_PUT_SETTING,
    ACRE_OP_PUT_TOKEN,
    ACRE_OP_REMOVE_TOKEN, /* a token with an id and nothing else */
    ACRE_OP_PUT_RESERVATION,
    ACRE_OP_PUT_DRAIN,
    ACRE_OP_REMOVE_DRAIN, /* a drain with a target and nothing else */
    ACRE_OP_AUDIT,
    ACRE_OP_KIND_COUNT,
};

union op_record {
    struct acre_store_job job;
    struct acre_store_account account;
    struct acre_store_setting setting;
    struct acre_store_token token;
    struct acre_store_reservation reservation;
    struct acre_store_drain drain;
    struct acre_store_audit audit;
};

struct op {
    enum op_kind kind;
    union op_record record;
    char text[]; /* what the strings of the record point at, each with a NUL */
};

/* Copy a record: op_size bytes, filled by op_fill. NULL strings become "". */
size_t op_size(enum op_kind kind, const void *record);
void op_fill(struct op *op, enum op_kind kind, const void *record);
/* What a job is after an update: `job` with the fields of `update` that an update has. */
struct acre_store_job op_updated(const struct acre_store_job *job,
                                 const struct acre_store_job *update);

struct acre_batch {
    struct acre_arena *arena;
    struct op **ops; /* in the order they were given */
    uint32_t count, capacity;
    struct acre_index jobs; /* of the one operation of each job, by its id */
    bool too_large;

    /* Of store.c, from the commit on. */
    struct acre_batch *next;
    acre_store_done *done;
    void *context;
    uint64_t generation;     /* how often the store had been resumed */
    struct acre_error *fail; /* NULL: committed */
};

/* Memory held, for the limit on what waits for the disk. */
size_t batch_bytes(const struct acre_batch *batch);

#endif
