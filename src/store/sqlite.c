/* sqlite.c - one file, SQLite with a write-ahead log: opening, schema, one writer, errors.
 *
 * Every commit is synced before it is reported (journal_mode=WAL, synchronous=FULL): one write and
 * one sync of the log, then the pages themselves go into the database when the log has 1,000
 * pages (see sqlite_write.c). Readers have a connection of their own and see the last commit; the
 * log lets them do so without waiting. Other processes may read at any time (`acre audit
 * --verify`), but only one may write: it holds a record lock on "<path>-lock". SQLite's own
 * exclusive mode would shut readers out. A record lock is not inherited by the children that
 * supervise jobs and outlive the daemon, the kernel drops it when the process dies, however it
 * dies, and knows its holder's pid. (One process must not open the same file for writing twice.)
 *
 * The schema has a number (user_version) and a table of steps; each step is one transaction. A
 * newer number than ours is refused. Measured choices (60,000 submissions of 0.5 KB, groups of
 * 128, best of 3): every index costs, so there are three, and all are partial. A plain index on
 * users alone takes submissions from 134,000/s to 75,000/s; on ended jobs only, submissions do
 * not pay for it. The specification is written once and lives in a table of its own, so that a
 * change of state does not copy it: -15 % on submissions, +30 % on changes at 0.5 KB, and no limit
 * to what it saves when scripts are long. Members of an array point at that of the first one
 * (spec_id); it must stay for as long as one of them does. Pages of 4 KiB beat 8 and 16; a cache
 * over 2 MiB gains nothing, because new rows go to the end. */
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 5000 }; /* somebody looks at the file with the sqlite3 shell */

/* clang-format off */
static const char *const migrations[] = {
    /* 1 */
    "CREATE TABLE jobs(id INTEGER PRIMARY KEY, user TEXT NOT NULL, project TEXT NOT NULL,"
    " name TEXT NOT NULL, state TEXT NOT NULL, live INTEGER NOT NULL, priority INTEGER NOT NULL,"
    " array INTEGER NOT NULL, attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;"
    "CREATE TABLE job_specs(id INTEGER PRIMARY KEY, spec TEXT NOT NULL) STRICT;"
    "CREATE INDEX jobs_live ON jobs(id) WHERE live = 1;"
    "CREATE INDEX jobs_user ON jobs(user) WHERE live = 0;"
    "CREATE INDEX jobs_ended ON jobs(ended_ms, state, submitted_ms, started_ms, live)"
    " WHERE live = 0;"
    "CREATE TABLE accounts(project TEXT NOT NULL, user TEXT NOT NULL, charged_ms INTEGER NOT NULL,"
    " use REAL NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY(project, user)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE tokens(id INTEGER PRIMARY KEY, hash BLOB NOT NULL, user TEXT NOT NULL,"
    " project TEXT NOT NULL, role TEXT NOT NULL, note TEXT NOT NULL, created_ms INTEGER NOT NULL,"
    " expires_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL) STRICT;"
    "CREATE TABLE reservations(id INTEGER PRIMARY KEY, user TEXT NOT NULL, state TEXT NOT NULL,"
    " start_ms INTEGER NOT NULL, end_ms INTEGER NOT NULL, detail TEXT NOT NULL) STRICT;"
    "CREATE TABLE drains(target TEXT PRIMARY KEY, reason TEXT NOT NULL,"
    " since_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE audit(seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT NOT NULL,"
    " origin TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL, result TEXT NOT NULL,"
    " detail TEXT NOT NULL, hash BLOB NOT NULL) STRICT;"
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id = 1), audit_count INTEGER NOT NULL,"
    " audit_head BLOB NOT NULL) STRICT;"
    "INSERT INTO meta VALUES(1, 0, zeroblob(32));",
    /* 2: members of an array share a spec; those of before keep their own copies */
    "ALTER TABLE jobs ADD COLUMN spec_id INTEGER NOT NULL DEFAULT 0;",
    /* 3: which token a token was made with; those that are there have no parent */
    "ALTER TABLE tokens ADD COLUMN parent INTEGER NOT NULL DEFAULT 0;",
};
/* clang-format on */

/* --- errors --------------------------------------------------------------------------------- */

int sqlite_fail_damaged(const struct sqlite *self, const char *what, struct acre_error *err) {
    return acre_fail(err, ACRE_ECORRUPT,
                     "%s is damaged (%s). Nothing was changed. Restore it from a backup, or move "
                     "it and its -wal file away together and recover what can be read: sqlite3 "
                     "MOVED .recover | sqlite3 acre.db",
                     self->path, what);
}

int sqlite_fail(const struct sqlite *self, sqlite3 *db, const char *what, struct acre_error *err) {
    static const struct {
        int sqlite, ours;
    } codes[] = {
        {SQLITE_FULL, ACRE_EIO},         {SQLITE_IOERR, ACRE_EIO},
        {SQLITE_READONLY, ACRE_EDENIED}, {SQLITE_PERM, ACRE_EDENIED},
        {SQLITE_CANTOPEN, ACRE_EDENIED}, {SQLITE_BUSY, ACRE_ECONFLICT},
        {SQLITE_LOCKED, ACRE_ECONFLICT}, {SQLITE_NOMEM, ACRE_ENOMEM},
        {SQLITE_TOOBIG, ACRE_ELIMIT},
    };
    int extended = db != NULL ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    int code = extended & 0xff;
    const char *text = db != NULL ? sqlite3_errmsg(db) : "out of memory";
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        return sqlite_fail_damaged(self, text, err);
    }
    int system = db != NULL ? sqlite3_system_errno(db) : 0;
    bool is_system = system != 0 && (code == SQLITE_IOERR || code == SQLITE_CANTOPEN);
    int ours = ACRE_EINTERNAL;
    for (size_t i = 0; i < ACRE_COUNT(codes); i++) {
        ours = codes[i].sqlite == code ? codes[i].ours : ours;
    }
    if (is_system && system == ENOENT) {
        ours = ACRE_ENOTFOUND;
    }
    return acre_fail(err, ours, "%s: %s: %s%s%s (SQLite %d)", self->path, what, text,
                     is_system ? ": " : "", is_system ? strerror(system) : "", extended);
}

/* --- small helpers -------------------------------------------------------------------------- */

int sqlite_prepare(const struct sqlite *self, sqlite3 *db, const char *sql,
                   sqlite3_stmt **ret_statement, struct acre_error *err) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) {
        return sqlite_fail(self, db, "cannot prepare", err);
    }
    *ret_statement = statement;
    return 0;
}

int sqlite_exec(const struct sqlite *self, sqlite3 *db, const char *sql, struct acre_error *err) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return sqlite_fail(self, db, "cannot set up", err);
    }
    return 0;
}

int sqlite_number(const struct sqlite *self, sqlite3 *db, const char *sql, uint64_t *ret_number,
                  struct acre_error *err) {
    sqlite3_stmt *statement;
    int r = sqlite_prepare(self, db, sql, &statement, err);
    if (r < 0) {
        return r;
    }
    int step = sqlite3_step(statement);
    uint64_t number = step == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    r = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : sqlite_fail(self, db, "cannot read", err);
    sqlite3_finalize(statement);
    if (r == 0) {
        *ret_number = number;
    }
    return r;
}

/* --- one writer ----------------------------------------------------------------------------- */

static int lock_file(struct sqlite *self, struct acre_error *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s-lock", self->path);
    self->lock_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (self->lock_fd < 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(self->lock_fd, F_SETLK, &lock) == 0) {
        return 0;
    }
    if (errno != EAGAIN && errno != EACCES) {
        return acre_fail_errno(err, errno, "%s: lock", path);
    }
    char who[48] = "another process";
    if (fcntl(self->lock_fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0) {
        snprintf(who, sizeof(who), "process %ld", (long)lock.l_pid);
    }
    return acre_fail(err, ACRE_ECONFLICT,
                     "%s is in use by %s; two daemons cannot share one state directory: stop that "
                     "one, or choose another directory",
                     self->path, who);
}

/* Made by us for its mode: it holds hashes of tokens and the environment of jobs. Only when it is
 * not there: closing a second descriptor would drop SQLite's locks. */
static int create_file(const struct sqlite *self, struct acre_error *err) {
    int fd = open(self->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) {
        return acre_fail_errno(err, errno, "%s", self->path);
    }
    if (fd >= 0) {
        close(fd);
    }
    return 0;
}

/* --- opening -------------------------------------------------------------------------------- */

static int open_connection(const struct sqlite *self, bool read_only, sqlite3 **ret_db,
                           struct acre_error *err) {
    int flags = SQLITE_OPEN_NOMUTEX | (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    if (sqlite3_open_v2(self->path, ret_db, flags, NULL) != SQLITE_OK) {
        return sqlite_fail(self, *ret_db, "cannot open", err);
    }
    sqlite3_extended_result_codes(*ret_db, 1);
    sqlite3_busy_timeout(*ret_db, BUSY_MS);
    return sqlite_exec(self, *ret_db,
                       "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                       "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -2000;",
                       err);
}

static int set_journal(const struct sqlite *self, struct acre_error *err) {
    sqlite3_stmt *statement;
    int r = sqlite_prepare(self, self->writer, "PRAGMA journal_mode = WAL", &statement, err);
    if (r < 0) {
        return r;
    }
    if (sqlite3_step(statement) != SQLITE_ROW) {
        r = sqlite_fail(self, self->writer, "cannot open", err);
    } else if (strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0) {
        r = acre_fail(err, ACRE_EUNSUPPORTED,
                      "%s: this file system does not support a write-ahead log; choose a local one",
                      self->path);
    }
    sqlite3_finalize(statement);
    return r < 0 ? r
                 : sqlite_exec(self, self->writer,
                               "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                               "PRAGMA journal_size_limit = 16777216;",
                               err);
}

/* Whose file it is and of which version; 0 for one that is new. */
static int read_version(const struct sqlite *self, sqlite3 *db, uint64_t *ret_version,
                        struct acre_error *err) {
    uint64_t application = 0;
    uint64_t version = 0;
    uint64_t tables = 0;
    int r = sqlite_number(self, db, "PRAGMA application_id", &application, err);
    r = r < 0 ? r : sqlite_number(self, db, "PRAGMA user_version", &version, err);
    r = r < 0 ? r : sqlite_number(self, db, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (r < 0) {
        return r;
    }
    bool is_new = application == 0 && version == 0 && tables == 0;
    if (!is_new && application != ACRE_SQLITE_APPLICATION_ID) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s is a database of another program (application id 0x%08" PRIx64
                         "); choose another file",
                         self->path, application & UINT32_MAX);
    }
    if (version > ACRE_COUNT(migrations)) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "%s was written by a newer acre (schema %" PRIu64
                         ", this one supports up to %zu); use the newer acre, or an older backup",
                         self->path, version, ACRE_COUNT(migrations));
    }
    *ret_version = version;
    return 0;
}

static int migrate(const struct sqlite *self, uint64_t version, struct acre_error *err) {
    for (; version < ACRE_COUNT(migrations); version++) {
        char mark[128];
        snprintf(mark, sizeof(mark), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
                 ACRE_SQLITE_APPLICATION_ID, (int)version + 1);
        int r = sqlite_exec(self, self->writer, "BEGIN IMMEDIATE", err);
        r = r < 0 ? r : sqlite_exec(self, self->writer, migrations[version], err);
        r = r < 0 ? r : sqlite_exec(self, self->writer, mark, err);
        if (r < 0) {
            sqlite3_exec(self->writer, "ROLLBACK", NULL, NULL, NULL);
            return r;
        }
    }
    return 0;
}

static int open_writer(struct sqlite *self, struct acre_error *err) {
    uint64_t version = 0;
    int r = lock_file(self, err);
    r = r < 0 ? r : create_file(self, err);
    r = r < 0 ? r : open_connection(self, false, &self->writer, err);
    r = r < 0 ? r : read_version(self, self->writer, &version, err);
    r = r < 0 ? r : set_journal(self, err);
    r = r < 0 ? r : migrate(self, version, err);
    r = r < 0 ? r : sqlite_check(self, err);
    r = r < 0 ? r : sqlite_write_open(self, err);
    return r;
}

static int open_reader(struct sqlite *self, struct acre_error *err) {
    uint64_t version = 0;
    int r = open_connection(self, true, &self->reader, err);
    r = r < 0 ? r : read_version(self, self->reader, &version, err);
    if (r == 0 && version < ACRE_COUNT(migrations)) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "%s has schema %" PRIu64 ", not %zu; start the daemon with it first",
                         self->path, version, ACRE_COUNT(migrations));
    }
    return r;
}

static void close_sqlite(void *context) {
    struct sqlite *self = context;
    sqlite_check_stop(self);
    sqlite_write_close(self);
    sqlite3_close(self->reader); /* before the writer, who then takes the log in and removes it */
    int r = sqlite3_close(self->writer);
    ACRE_ASSERT(r == SQLITE_OK); /* no statement is left */
    if (self->lock_fd >= 0) {
        close(self->lock_fd);
    }
    free(self->path);
    free(self);
}

static int open_sqlite(const char *where, bool read_only, void **ret_self, struct acre_error *err) {
    char shown[128];
    if (where[0] == '\0' || where[0] == ':' || strlen(where) > PATH_MAX - 16) {
        return acre_fail(
            err, ACRE_EINVALID, "store: 'sqlite:%s' does not name a file; accepted: %s",
            acre_str_show(acre_str_from(where), shown, sizeof(shown)), store_sqlite.usage);
    }
    struct sqlite *self = acre_calloc(1, sizeof(*self));
    self->path = acre_strdup(where);
    self->lock_fd = -1;
    int r = read_only ? 0 : open_writer(self, err);
    r = r < 0 ? r : open_reader(self, err);
    if (r < 0) {
        close_sqlite(self);
        return r;
    }
    *ret_self = self;
    return 0;
}

const struct store_driver store_sqlite = {
    .scheme = "sqlite",
    .usage = "sqlite:PATH",
    .open = open_sqlite,
    .close = close_sqlite,
    .apply = sqlite_apply,
    .rest = sqlite_rest,
    .jobs = sqlite_jobs,
    .job = sqlite_job,
    .last_job = sqlite_last_job,
    .statistics = sqlite_statistics,
    .accounts = sqlite_accounts,
    .setting = sqlite_setting,
    .tokens = sqlite_tokens,
    .reservations = sqlite_reservations,
    .drains = sqlite_drains,
    .audit = sqlite_audit,
    .trail = sqlite_trail,
};
