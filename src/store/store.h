/* store.h - durable state: jobs, accounts, policy, tokens, reservations, drained nodes, audit.
 *
 * One interface of domain verbs. Writes are gathered in a batch; acre_store_commit hands it to the
 * store's own thread, which makes one transaction of everything that arrived while the last one
 * was being synced (group commit), and notifies the loop when it is on disk. Batches commit in the
 * order they were given, each whole or not at all; when one fails, it and all that were given
 * after it fail, until acre_store_resume. Reads see what is committed.
 *
 * Loop thread only. (A store opened read-only belongs to the thread that opened it: a long walk,
 * as of the audit trail, may have a thread and a store of its own.) Strings in records are borrowed
 * for the call (batches copy). Nothing here decides anything. */
#ifndef ACRE_STORE_STORE_H
#define ACRE_STORE_STORE_H

#include "core/buf.h"
#include "core/loop.h"
#include "store/rows.h"

struct acre_store;
struct acre_batch;

struct acre_store_options {
    const char *url;        /* "sqlite:DIR/acre.db", "memory:"; see sqlite.c, memory.c */
    struct acre_loop *loop; /* where `done` functions run; NULL: acre_store_commit waits */
    bool read_only;         /* `acre audit --verify` on a store in use */
};

/* Opens, checks (SQLite: integrity, foreign versions, one writer), brings the schema up to date.
 * ACRE_ECORRUPT says how to restore; ACRE_ECONFLICT: another process has it open for writing;
 * ACRE_EINVALID: an unknown URL, another program's file; ACRE_EUNSUPPORTED: a newer acre's;
 * ACRE_EDENIED, ACRE_ENOTFOUND, ACRE_EIO: the path and what the system said. Damage in a file over
 * 4 MiB may be found only after opening: then every commit fails with ACRE_ECORRUPT. */
int acre_store_open(const struct acre_store_options *options, struct acre_store **ret_store,
                    struct acre_error *err);
/* Commits what was given and runs the `done` functions that have not run, then closes. NULL is
 * fine; not from a `done` function. */
void acre_store_close(struct acre_store *store);

/* --- writing -------------------------------------------------------------------------------- */

struct acre_batch *acre_batch_create(void);
void acre_batch_destroy(struct acre_batch *batch); /* NULL is fine; not after commit */

void acre_batch_add_job(struct acre_batch *batch, const struct acre_store_job *job);
/* state, live, priority, attempt, times and detail of a job that is there */
void acre_batch_update_job(struct acre_batch *batch, const struct acre_store_job *job);
void acre_batch_put_account(struct acre_batch *batch, const struct acre_store_account *account);
void acre_batch_put_setting(struct acre_batch *batch, const char *name, struct acre_str value);
void acre_batch_put_token(struct acre_batch *batch, const struct acre_store_token *token);
void acre_batch_remove_token(struct acre_batch *batch, uint64_t id);
void acre_batch_put_reservation(struct acre_batch *batch,
                                const struct acre_store_reservation *reservation);
void acre_batch_put_drain(struct acre_batch *batch, const struct acre_store_drain *drain);
void acre_batch_remove_drain(struct acre_batch *batch, const char *target);
void acre_batch_audit(struct acre_batch *batch, const struct acre_store_audit *audit);

/* code 0: on disk. The batch is taken. `done` (NULL: none) runs in the order of the commits, never
 * within this call unless there is no loop; `err` is never NULL. ACRE_EEXISTS, ACRE_ENOTFOUND: a
 * job added twice, an update of one that is not there; ACRE_ELIMIT: over 512 MiB. When 64 MiB wait
 * for the disk already, this waits for it too. */
typedef void acre_store_done(void *context, int code, const struct acre_error *err);
void acre_store_commit(struct acre_store *store, struct acre_batch *batch, acre_store_done *done,
                       void *context);
/* After a failure everything is refused with it; this accepts again what is given from now on (the
 * caller has thrown away what it believed and read the store anew). Before a failure was told, it
 * does nothing. */
void acre_store_resume(struct acre_store *store);

/* --- reading -------------------------------------------------------------------------------- */

struct acre_job_filter {
    const char *user, *project, *state, *name; /* NULL: any */
    uint64_t array;
    bool live_only, ended_only;
    uint64_t after_id; /* cursor; 0: from the beginning */
    bool newest_first; /* then after_id 0 means from the newest */
    uint32_t limit;    /* 1 ... 1000 */
};
/* Return false to stop. The record is good until the function returns. In lists a job whose spec is
 * another's (spec_id) comes without it: a thousand members of an array would be a thousand copies.
 */
typedef bool acre_job_visit(void *context, const struct acre_store_job *job);
int acre_store_jobs(struct acre_store *store, const struct acre_job_filter *filter,
                    acre_job_visit *visit, void *context, struct acre_error *err);
int acre_store_job(struct acre_store *store, uint64_t id, acre_job_visit *visit, void *context,
                   struct acre_error *err);             /* always with its spec; ACRE_ENOTFOUND */
uint64_t acre_store_last_job(struct acre_store *store); /* largest id ever given; 0: none */

/* JOB-3 statistics of jobs that ended at or after since_ms, counted by the store. */
struct acre_job_statistics {
    uint64_t completed, failed, canceled;
    uint64_t wait_mean_ms, wait_p50_ms, wait_p90_ms, wait_p99_ms;
    uint64_t run_mean_ms;
};
int acre_store_statistics(struct acre_store *store, uint64_t since_ms,
                          struct acre_job_statistics *ret_statistics, struct acre_error *err);

int acre_store_accounts(struct acre_store *store,
                        bool (*visit)(void *, const struct acre_store_account *), void *context,
                        struct acre_error *err);
/* ACRE_ENOTFOUND: never set. Appends to `ret_value`. */
int acre_store_setting(struct acre_store *store, const char *name, struct acre_buf *ret_value,
                       struct acre_error *err);
int acre_store_tokens(struct acre_store *store,
                      bool (*visit)(void *, const struct acre_store_token *), void *context,
                      struct acre_error *err);
int acre_store_reservations(struct acre_store *store,
                            bool (*visit)(void *, const struct acre_store_reservation *),
                            void *context, struct acre_error *err);
int acre_store_drains(struct acre_store *store,
                      bool (*visit)(void *, const struct acre_store_drain *), void *context,
                      struct acre_error *err);

struct acre_audit_filter {
    const char *actor, *action, *target; /* NULL: any; action matches its beginning */
    uint64_t after_seq;
    bool newest_first;
    uint32_t limit;
};
int acre_store_audit(struct acre_store *store, const struct acre_audit_filter *filter,
                     bool (*visit)(void *, const struct acre_store_audit *), void *context,
                     struct acre_error *err);
/* Walk the whole chain. ACRE_ECORRUPT names the first record that does not follow from the one
 * before it, or the record missing at the end. */
int acre_store_verify_audit(struct acre_store *store, uint64_t *ret_count, uint8_t ret_head[32],
                            struct acre_error *err);

#endif
