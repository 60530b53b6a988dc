/* store_driver.h - what a backend of the store is: one const table. Private to src/store.
 *
 * Threads: open and close run on the thread that opens the store; apply and rest on the store's
 * writer thread (without a loop: on the caller's); all reads on the caller's, at the same time as
 * apply. So a backend needs two connections, or a lock. Reads see what was committed before they
 * began and never wait for a commit that is being synced.
 *
 * All slots are mandatory but `rest`. Filters were checked by store.c (limit 1 ... 1000).
 *
 * PostgreSQL fits in like this: `self` holds two connections, one for apply, one for reads. open
 * takes the leader row (epoch = epoch + 1) and remembers its epoch. apply sends in pipeline mode
 * BEGIN, "SELECT FROM leader WHERE epoch = $1 FOR SHARE" (the fence: no row, the group fails with
 * ACRE_ECONFLICT and the store refuses everything from then on), the prepared statements of all
 * batches, the head of the audit trail and COMMIT, with one sync at the end: one round trip a
 * group. The first error ends the transaction; its batch is known by counting answers. Records,
 * order, failure and the chain are the same, so store.c and the conformance suite do not change. */
#ifndef ACRE_STORE_STORE_DRIVER_H
#define ACRE_STORE_STORE_DRIVER_H

#include "store/audit.h"
#include "store/batch.h"

typedef bool acre_account_visit(void *context, const struct acre_store_account *account);
typedef bool acre_token_visit(void *context, const struct acre_store_token *token);
typedef bool acre_reservation_visit(void *context, const struct acre_store_reservation *r);
typedef bool acre_drain_visit(void *context, const struct acre_store_drain *drain);
typedef bool audit_visit(void *context, const struct acre_store_audit *audit);

struct store_driver {
    const char *scheme; /* "sqlite" of "sqlite:DIR/acre.db" */
    const char *usage;  /* "sqlite:PATH" */

    /* `where` is the URL after "scheme:". */
    int (*open)(const char *where, bool read_only, void **ret_self, struct acre_error *err);
    void (*close)(void *self);

    /* Commit these batches, in order, as one transaction; 0: all are on disk. When the fault is
     * that of one batch (a job added twice, an update of a job that is not there), those before
     * it are committed without it. On failure `*applied` says how many from the front are
     * committed; the others have changed nothing. ACRE_EEXISTS, ACRE_ENOTFOUND: a batch's own
     * fault; any other code: nothing was applied. */
    int (*apply)(void *self, struct acre_batch *const *batches, size_t count, size_t *applied,
                 struct acre_error *err);
    /* Optional. Called when a group has been reported: housekeeping nobody should wait for. */
    void (*rest)(void *self);

    int (*jobs)(void *self, const struct acre_job_filter *filter, acre_job_visit *visit,
                void *context, struct acre_error *err);
    int (*job)(void *self, uint64_t id, acre_job_visit *visit, void *context,
               struct acre_error *err);
    uint64_t (*last_job)(void *self);
    int (*statistics)(void *self, uint64_t since_ms, struct acre_job_statistics *ret_statistics,
                      struct acre_error *err);
    int (*accounts)(void *self, acre_account_visit *visit, void *context, struct acre_error *err);
    int (*setting)(void *self, const char *name, struct acre_buf *ret_value,
                   struct acre_error *err);
    int (*tokens)(void *self, acre_token_visit *visit, void *context, struct acre_error *err);
    int (*reservations)(void *self, acre_reservation_visit *visit, void *context,
                        struct acre_error *err);
    int (*drains)(void *self, acre_drain_visit *visit, void *context, struct acre_error *err);
    int (*audit)(void *self, const struct acre_audit_filter *filter, audit_visit *visit,
                 void *context, struct acre_error *err);
    /* Every record in the order of seq, and the head, from one moment. */
    int (*trail)(void *self, struct audit_head *ret_head, audit_visit *visit, void *context,
                 struct acre_error *err);
};

extern const struct store_driver store_sqlite;
extern const struct store_driver store_memory;

#endif
