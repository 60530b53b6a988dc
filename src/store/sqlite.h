/* sqlite.h - what the files of the SQLite backend share. Private to src/store. */
#ifndef ACRE_STORE_SQLITE_H
#define ACRE_STORE_SQLITE_H

#include "store/store_driver.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/* "acre" */
#define ACRE_SQLITE_APPLICATION_ID 0x61637265

enum sqlite_write {
    ACRE_WRITE_BEGIN,
    ACRE_WRITE_COMMIT,
    ACRE_WRITE_ROLLBACK,
    ACRE_WRITE_ADD_JOB,
    ACRE_WRITE_ADD_SPEC,
    ACRE_WRITE_UPDATE_LIVE_JOB,
    ACRE_WRITE_UPDATE_JOB,
    ACRE_WRITE_PUT_ACCOUNT,
    ACRE_WRITE_PUT_SETTING,
    ACRE_WRITE_PUT_TOKEN,
    ACRE_WRITE_REMOVE_TOKEN,
    ACRE_WRITE_PUT_RESERVATION,
    ACRE_WRITE_PUT_DRAIN,
    ACRE_WRITE_REMOVE_DRAIN,
    ACRE_WRITE_ADD_AUDIT,
    ACRE_WRITE_PUT_HEAD,
    ACRE_WRITE_COUNT,
};

struct sqlite {
    char *path;
    int lock_fd; /* -1: read-only */

    /* Writer thread only, once opened. NULL: read-only. */
    sqlite3 *writer;
    sqlite3_stmt *writes[ACRE_WRITE_COUNT];
    struct audit_hasher *hasher;
    struct audit_head head;
    int wal_pages; /* after the last commit */

    sqlite3 *reader; /* the caller's thread only */

    /* The check in the background (sqlite_check.c). */
    sqlite3 *checker;
    pthread_t check_thread;
    _Atomic bool damaged;     /* release: pairs with the acquire in sqlite_check_result */
    struct acre_error damage; /* written before `damaged` */
};

/* An error of SQLite's as ours: the path, what was being done, what SQLite and the system said.
 * Damage says how to restore. */
int sqlite_fail(const struct sqlite *self, sqlite3 *db, const char *what, struct acre_error *err);
int sqlite_fail_damaged(const struct sqlite *self, const char *what, struct acre_error *err);

int sqlite_prepare(const struct sqlite *self, sqlite3 *db, const char *sql,
                   sqlite3_stmt **ret_statement, struct acre_error *err);
int sqlite_exec(const struct sqlite *self, sqlite3 *db, const char *sql, struct acre_error *err);
/* The first column of the first row; 0 when there is none. */
int sqlite_number(const struct sqlite *self, sqlite3 *db, const char *sql, uint64_t *ret_number,
                  struct acre_error *err);

/* sqlite_check.c: what can be checked at once, then the rest by a thread of its own. */
int sqlite_check(struct sqlite *self, struct acre_error *err);
void sqlite_check_stop(struct sqlite *self);
/* ACRE_ECORRUPT when the check in the background has found damage. */
int sqlite_check_result(const struct sqlite *self, struct acre_error *err);

/* sqlite_write.c */
int sqlite_write_open(struct sqlite *self, struct acre_error *err);
void sqlite_write_close(struct sqlite *self);
int sqlite_apply(void *self, struct acre_batch *const *batches, size_t count, size_t *applied,
                 struct acre_error *err);
void sqlite_rest(void *self);

/* sqlite_read.c: slots of the driver. */
int sqlite_jobs(void *self, const struct acre_job_filter *filter, acre_job_visit *visit,
                void *context, struct acre_error *err);
int sqlite_job(void *self, uint64_t id, acre_job_visit *visit, void *context,
               struct acre_error *err);
uint64_t sqlite_last_job(void *self);
int sqlite_statistics(void *self, uint64_t since_ms, struct acre_job_statistics *ret_statistics,
                      struct acre_error *err);
int sqlite_accounts(void *self, acre_account_visit *visit, void *context, struct acre_error *err);
int sqlite_setting(void *self, const char *name, struct acre_buf *ret_value,
                   struct acre_error *err);
int sqlite_tokens(void *self, acre_token_visit *visit, void *context, struct acre_error *err);
int sqlite_reservations(void *self, acre_reservation_visit *visit, void *context,
                        struct acre_error *err);
int sqlite_drains(void *self, acre_drain_visit *visit, void *context, struct acre_error *err);
int sqlite_audit(void *self, const struct acre_audit_filter *filter, audit_visit *visit,
                 void *context, struct acre_error *err);
int sqlite_trail(void *self, struct audit_head *ret_head, audit_visit *visit, void *context,
                 struct acre_error *err);
/* The head as it was written last. */
int sqlite_head(const struct sqlite *self, sqlite3 *db, struct audit_head *ret_head,
                struct acre_error *err);

#endif
