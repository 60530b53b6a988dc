/* sqlite_check.c - is the file whole?
 *
 * SQLite's quick_check reads every page and row, 3 to 5 ms a MiB: 100,000 jobs of history are 85 MB
 * and would hold up the start for 300 ms. So:
 *   - at every start, before anything else: the header, the application and version (sqlite.c),
 *     and the small tables without which nothing works (settings, tokens, accounts, reservations,
 *     drains, meta);
 *   - the whole file as well, if it is small (AT_ONCE_MAX_BYTES);
 *   - otherwise the whole file in a thread of its own with a connection of its own, while the
 *     store is already in use. When it finds damage, every commit from then on is refused with
 *     ACRE_ECORRUPT: nothing more is built on a damaged file.
 * What quick_check finds is damaged structure: pages, cells, rows out of order, missing values.
 * A flipped bit inside a text is not found by it; in the audit trail it is, by its hashes. (The
 * log has checksums: a torn commit is not seen at all after a crash.)
 *
 * While the check runs, its snapshot keeps the log from starting over; it grows by what is
 * committed in these few hundred ms. */
#include "store/sqlite.h"

#include "core/thread.h"

#include <string.h>
#include <sys/stat.h>

#define AT_ONCE_MAX_BYTES ((off_t)4 << 20) /* at most 20 ms */

static const char *const small_tables[] = {
    "PRAGMA quick_check(meta)",   "PRAGMA quick_check(settings)",
    "PRAGMA quick_check(tokens)", "PRAGMA quick_check(accounts)",
    "PRAGMA quick_check(drains)", "PRAGMA quick_check(reservations)",
};

/* 0, or ACRE_ECORRUPT with the first thing that is wrong; 1 when interrupted. */
static int run_check(const struct sqlite *self, sqlite3 *db, const char *sql,
                     struct acre_error *err) {
    sqlite3_stmt *statement;
    int r = sqlite_prepare(self, db, sql, &statement, err);
    if (r < 0) {
        return r;
    }
    int step = sqlite3_step(statement);
    if (step == SQLITE_INTERRUPT) {
        r = 1;
    } else if (step != SQLITE_ROW) {
        r = sqlite_fail(self, db, "cannot check", err);
    } else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0) {
        r = sqlite_fail_damaged(self, (const char *)sqlite3_column_text(statement, 0), err);
    }
    sqlite3_finalize(statement);
    return r;
}

static void *check_in_background(void *context) {
    struct sqlite *self = context;
    int r = run_check(self, self->checker, "PRAGMA quick_check(1)", &self->damage);
    if (r == ACRE_ECORRUPT || r == ACRE_EIO) { /* no memory, say, is no damage */
        atomic_store_explicit(&self->damaged, true, memory_order_release);
    }
    sqlite3_db_release_memory(self->checker); /* closed with the store, but it needs no cache */
    return NULL;
}

static int start_thread(struct sqlite *self, struct acre_error *err) {
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX; /* interrupted from outside */
    if (sqlite3_open_v2(self->path, &self->checker, flags, NULL) != SQLITE_OK) {
        int r = sqlite_fail(self, self->checker, "cannot open", err);
        sqlite3_close(self->checker);
        self->checker = NULL;
        return r;
    }
    int r = acre_thread_start(&self->check_thread, "acre-check", check_in_background, self);
    if (r != 0) {
        sqlite3_close(self->checker);
        self->checker = NULL;
        return acre_fail_errno(err, r, "%s: thread", self->path);
    }
    return 0;
}

int sqlite_check(struct sqlite *self, struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(small_tables); i++) {
        int r = run_check(self, self->writer, small_tables[i], err);
        if (r < 0) {
            return r;
        }
    }
    struct stat file;
    if (stat(self->path, &file) == 0 && file.st_size > AT_ONCE_MAX_BYTES) {
        return start_thread(self, err);
    }
    return run_check(self, self->writer, "PRAGMA quick_check(1)", err);
}

void sqlite_check_stop(struct sqlite *self) {
    if (self->checker != NULL) {
        sqlite3_interrupt(self->checker);
        pthread_join(self->check_thread, NULL);
        sqlite3_close(self->checker);
        self->checker = NULL;
    }
}

int sqlite_check_result(const struct sqlite *self, struct acre_error *err) {
    if (!atomic_load_explicit(&self->damaged, memory_order_acquire)) {
        return 0;
    }
    return acre_fail(err, self->damage.code, "%s", self->damage.text);
}
