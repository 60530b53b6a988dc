/* sqlite_write.c - a group of batches as one transaction, on the writer's connection.
 *
 * Statements are prepared once. A group is: begin, the operations of every batch in order, the
 * head of the audit trail (once), commit. When a batch is at fault the transaction is rolled back
 * and made again from the batches before it: that costs the good case nothing, where a savepoint
 * around every batch would cost two statements each.
 *
 * An update of a job that stays live does not name the column `live`, because SQLite rewrites a
 * partial index whenever a column of its condition is assigned, changed or not. Only when no live
 * row was there (or it ends now) the full statement runs.
 *
 * The log is taken into the database (checkpoint) after a group has been reported, not within its
 * commit: only batches that come while these two syncs run wait for them. At 1,000 pages this
 * takes 5 ms here; at 4,000 it is rarer and takes 18. */
#include "store/sqlite.h"

#include <inttypes.h>
#include <string.h>

enum { CHECKPOINT_PAGES = 1000 };

/* clang-format off */
static const char *const sql[ACRE_WRITE_COUNT] = {
    [ACRE_WRITE_BEGIN] = "BEGIN IMMEDIATE",
    [ACRE_WRITE_COMMIT] = "COMMIT",
    [ACRE_WRITE_ROLLBACK] = "ROLLBACK",
    [ACRE_WRITE_ADD_JOB] =
        "INSERT INTO jobs(id, state, live, priority, attempt, submitted_ms, started_ms, ended_ms,"
        " detail, user, project, name, array, spec_id) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [ACRE_WRITE_ADD_SPEC] = "INSERT INTO job_specs(id, spec) VALUES(?,?)",
    [ACRE_WRITE_UPDATE_LIVE_JOB] =
        "UPDATE jobs SET state = ?2, priority = ?4, attempt = ?5, submitted_ms = ?6,"
        " started_ms = ?7, ended_ms = ?8, detail = ?9 WHERE id = ?1 AND live = ?3",
    [ACRE_WRITE_UPDATE_JOB] =
        "UPDATE jobs SET state = ?2, live = ?3, priority = ?4, attempt = ?5, submitted_ms = ?6,"
        " started_ms = ?7, ended_ms = ?8, detail = ?9 WHERE id = ?1",
    [ACRE_WRITE_PUT_ACCOUNT] =
        "INSERT OR REPLACE INTO accounts(project, user, charged_ms, use, at_ms) VALUES(?,?,?,?,?)",
    [ACRE_WRITE_PUT_SETTING] = "INSERT OR REPLACE INTO settings(name, value) VALUES(?,?)",
    [ACRE_WRITE_PUT_TOKEN] =
        "INSERT OR REPLACE INTO tokens(id, hash, user, project, role, note, created_ms,"
        " expires_ms, revoked_ms, parent) VALUES(?,?,?,?,?,?,?,?,?,?)",
    [ACRE_WRITE_REMOVE_TOKEN] = "DELETE FROM tokens WHERE id = ?",
    [ACRE_WRITE_PUT_RESERVATION] =
        "INSERT OR REPLACE INTO reservations(id, user, state, start_ms, end_ms, detail)"
        " VALUES(?,?,?,?,?,?)",
    [ACRE_WRITE_PUT_DRAIN] =
        "INSERT OR REPLACE INTO drains(target, reason, since_ms) VALUES(?,?,?)",
    [ACRE_WRITE_REMOVE_DRAIN] = "DELETE FROM drains WHERE target = ?",
    [ACRE_WRITE_ADD_AUDIT] =
        "INSERT INTO audit(seq, at_ms, actor, origin, action, target, result, detail, hash)"
        " VALUES(?,?,?,?,?,?,?,?,?)",
    [ACRE_WRITE_PUT_HEAD] = "UPDATE meta SET audit_count = ?, audit_head = ? WHERE id = 1",
};
/* clang-format on */

static int note_log_size(void *context, sqlite3 *db, const char *name, int pages) {
    struct sqlite *self = context;
    (void)db;
    (void)name;
    self->wal_pages = pages;
    return SQLITE_OK;
}

int sqlite_write_open(struct sqlite *self, struct acre_error *err) {
    int r = sqlite_head(self, self->writer, &self->head, err);
    uint64_t last = 0;
    r = r < 0 ? r : sqlite_number(self, self->writer, "SELECT max(seq) FROM audit", &last, err);
    if (r == 0 && last > self->head.count) { /* the next record would not find its place */
        r = acre_fail(err, ACRE_ECORRUPT,
                      "%s: audit record %" PRIu64 " was not written by acre (it wrote %" PRIu64
                      "); restore the file from a backup",
                      self->path, last, self->head.count);
    }
    for (size_t i = 0; r == 0 && i < ACRE_WRITE_COUNT; i++) {
        r = sqlite_prepare(self, self->writer, sql[i], &self->writes[i], err);
    }
    if (r < 0) {
        return r;
    }
    self->hasher = audit_hasher_create();
    sqlite3_wal_hook(self->writer, note_log_size, self);
    return 0;
}

void sqlite_write_close(struct sqlite *self) {
    for (size_t i = 0; i < ACRE_WRITE_COUNT; i++) {
        sqlite3_finalize(self->writes[i]);
        self->writes[i] = NULL;
    }
    audit_hasher_destroy(self->hasher);
    self->hasher = NULL;
}

/* --- statements ----------------------------------------------------------------------------- */

/* Parameters are bound one after the other; what is bound lives as long as the batch. */
struct bound_row {
    sqlite3_stmt *statement;
    int bound;
};

static struct bound_row row_of(struct sqlite *self, enum sqlite_write which) {
    ACRE_ASSERT((unsigned)which < ACRE_WRITE_COUNT && self->writes[which] != NULL);
    return (struct bound_row){.statement = self->writes[which]};
}

static void put_number(struct bound_row *row, uint64_t value) {
    sqlite3_bind_int64(row->statement, ++row->bound, (int64_t)value);
}

static void put_view(struct bound_row *row, struct acre_str text) {
    sqlite3_bind_text64(row->statement, ++row->bound, text.data, text.length, SQLITE_STATIC,
                        SQLITE_UTF8);
}

static void put_text(struct bound_row *row, const char *text) {
    put_view(row, acre_str_from(text));
}

static void put_hash(struct bound_row *row, const uint8_t hash[32]) {
    sqlite3_bind_blob(row->statement, ++row->bound, hash, ACRE_AUDIT_HASH_BYTES, SQLITE_STATIC);
}

/* SQLITE_DONE or the error. */
static int run(struct bound_row *row) {
    ACRE_ASSERT(row->bound == sqlite3_bind_parameter_count(row->statement));
    int step = sqlite3_step(row->statement);
    sqlite3_reset(row->statement);
    return step;
}

static int run_or_fail(struct sqlite *self, struct bound_row *row, struct acre_error *err) {
    return run(row) == SQLITE_DONE ? 0 : sqlite_fail(self, self->writer, "commit", err);
}

/* --- operations ----------------------------------------------------------------------------- */

static void put_job_state(struct bound_row *row, const struct acre_store_job *job) {
    put_number(row, job->id);
    put_text(row, job->state);
    put_number(row, job->live);
    put_number(row, job->priority);
    put_number(row, job->attempt);
    put_number(row, job->submitted_ms);
    put_number(row, job->started_ms);
    put_number(row, job->ended_ms);
    put_view(row, job->detail);
}

static int add_job(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    const struct acre_store_job *job = &record->job;
    struct bound_row row = row_of(self, ACRE_WRITE_ADD_JOB);
    put_job_state(&row, job);
    put_text(&row, job->user);
    put_text(&row, job->project);
    put_text(&row, job->name);
    put_number(&row, job->array);
    put_number(&row, job->spec_id);
    int step = run(&row);
    if ((step & 0xff) == SQLITE_CONSTRAINT) {
        return acre_fail(err, ACRE_EEXISTS, "store: job %" PRIu64 " already exists", job->id);
    }
    if (step != SQLITE_DONE) {
        return sqlite_fail(self, self->writer, "commit", err);
    }
    if (job->spec_id != 0) {
        return 0;
    }
    struct bound_row spec = row_of(self, ACRE_WRITE_ADD_SPEC);
    put_number(&spec, job->id);
    put_view(&spec, job->spec);
    return run_or_fail(self, &spec, err);
}

static int update_job(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    const struct acre_store_job *job = &record->job;
    for (int full = !job->live; full < 2; full++) {
        struct bound_row row =
            row_of(self, full ? ACRE_WRITE_UPDATE_JOB : ACRE_WRITE_UPDATE_LIVE_JOB);
        put_job_state(&row, job);
        int r = run_or_fail(self, &row, err);
        if (r < 0 || sqlite3_changes(self->writer) > 0) {
            return r;
        }
    }
    return acre_fail(err, ACRE_ENOTFOUND, "store: there is no job %" PRIu64, job->id);
}

static int put_account(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    const struct acre_store_account *account = &record->account;
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_ACCOUNT);
    put_text(&row, account->project);
    put_text(&row, account->user);
    put_number(&row, account->charged_ms);
    sqlite3_bind_double(row.statement, ++row.bound, account->use);
    put_number(&row, account->at_ms);
    return run_or_fail(self, &row, err);
}

static int put_setting(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_SETTING);
    put_text(&row, record->setting.name);
    put_view(&row, record->setting.value);
    return run_or_fail(self, &row, err);
}

static int put_token(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    const struct acre_store_token *token = &record->token;
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_TOKEN);
    put_number(&row, token->id);
    put_hash(&row, token->hash);
    put_text(&row, token->user);
    put_text(&row, token->project);
    put_text(&row, token->role);
    put_text(&row, token->note);
    put_number(&row, token->created_ms);
    put_number(&row, token->expires_ms);
    put_number(&row, token->revoked_ms);
    put_number(&row, token->parent);
    return run_or_fail(self, &row, err);
}

static int remove_token(struct sqlite *self, const union op_record *record,
                        struct acre_error *err) {
    struct bound_row row = row_of(self, ACRE_WRITE_REMOVE_TOKEN);
    put_number(&row, record->token.id);
    return run_or_fail(self, &row, err);
}

static int put_reservation(struct sqlite *self, const union op_record *record,
                           struct acre_error *err) {
    const struct acre_store_reservation *reservation = &record->reservation;
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_RESERVATION);
    put_number(&row, reservation->id);
    put_text(&row, reservation->user);
    put_text(&row, reservation->state);
    put_number(&row, reservation->start_ms);
    put_number(&row, reservation->end_ms);
    put_view(&row, reservation->detail);
    return run_or_fail(self, &row, err);
}

static int put_drain(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_DRAIN);
    put_text(&row, record->drain.target);
    put_text(&row, record->drain.reason);
    put_number(&row, record->drain.since_ms);
    return run_or_fail(self, &row, err);
}

static int remove_drain(struct sqlite *self, const union op_record *record,
                        struct acre_error *err) {
    struct bound_row row = row_of(self, ACRE_WRITE_REMOVE_DRAIN);
    put_text(&row, record->drain.target);
    return run_or_fail(self, &row, err);
}

static int add_audit(struct sqlite *self, const union op_record *record, struct acre_error *err) {
    const struct acre_store_audit *audit = &record->audit;
    audit_extend(self->hasher, &self->head, audit);
    struct bound_row row = row_of(self, ACRE_WRITE_ADD_AUDIT);
    put_number(&row, self->head.count);
    put_number(&row, audit->at_ms);
    put_text(&row, audit->actor);
    put_text(&row, audit->origin);
    put_text(&row, audit->action);
    put_text(&row, audit->target);
    put_text(&row, audit->result);
    put_text(&row, audit->detail);
    put_hash(&row, self->head.hash);
    return run_or_fail(self, &row, err);
}

static int put_head(struct sqlite *self, struct acre_error *err) {
    struct bound_row row = row_of(self, ACRE_WRITE_PUT_HEAD);
    put_number(&row, self->head.count);
    put_hash(&row, self->head.hash);
    return run_or_fail(self, &row, err);
}

typedef int write_op(struct sqlite *self, const union op_record *record, struct acre_error *err);

static write_op *const writers[] = {
    [ACRE_OP_ADD_JOB] = add_job,
    [ACRE_OP_UPDATE_JOB] = update_job,
    [ACRE_OP_PUT_ACCOUNT] = put_account,
    [ACRE_OP_PUT_SETTING] = put_setting,
    [ACRE_OP_PUT_TOKEN] = put_token,
    [ACRE_OP_REMOVE_TOKEN] = remove_token,
    [ACRE_OP_PUT_RESERVATION] = put_reservation,
    [ACRE_OP_PUT_DRAIN] = put_drain,
    [ACRE_OP_REMOVE_DRAIN] = remove_drain,
    [ACRE_OP_AUDIT] = add_audit,
};
_Static_assert(ACRE_COUNT(writers) == ACRE_OP_KIND_COUNT, "every kind is written");

/* --- groups --------------------------------------------------------------------------------- */

static int apply_batch(struct sqlite *self, const struct acre_batch *batch,
                       struct acre_error *err) {
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct op *op = batch->ops[i];
        int r = writers[op->kind](self, &op->record, err);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* A file without its name can be written, but nobody will ever open it again. */
static int check_place(const struct sqlite *self, struct acre_error *err) {
    int moved = 0;
    sqlite3_file_control(self->writer, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved == 0
               ? 0
               : acre_fail(err, ACRE_EIO,
                           "%s was removed or replaced while it was open; put it back", self->path);
}

/* All of these batches or none. `*ret_bad`: the one whose own fault it was, 0: nobody's or the
 * first's. */
static int apply_all(struct sqlite *self, struct acre_batch *const *batches, size_t count,
                     size_t *ret_bad, struct acre_error *err) {
    struct audit_head before = self->head;
    struct bound_row begin = row_of(self, ACRE_WRITE_BEGIN);
    struct bound_row commit = row_of(self, ACRE_WRITE_COMMIT);
    struct bound_row rollback = row_of(self, ACRE_WRITE_ROLLBACK);
    *ret_bad = 0;
    int r = run_or_fail(self, &begin, err);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = apply_batch(self, batches[i], err);
        if (r == ACRE_EEXISTS || r == ACRE_ENOTFOUND) {
            *ret_bad = i;
        }
    }
    if (r == 0 && self->head.count != before.count) {
        r = put_head(self, err);
    }
    r = r < 0 ? r : check_place(self, err);
    r = r < 0 ? r : run_or_fail(self, &commit, err);
    if (r < 0) {
        if (!sqlite3_get_autocommit(self->writer)) { /* some errors have rolled back already */
            run(&rollback);
        }
        self->head = before;
    }
    return r;
}

int sqlite_apply(void *context, struct acre_batch *const *batches, size_t count, size_t *applied,
                 struct acre_error *err) {
    struct sqlite *self = context;
    size_t bad = 0;
    size_t none = 0;
    bool empty = true;
    for (size_t i = 0; i < count; i++) {
        empty = empty && batches[i]->count == 0;
    }
    *applied = 0;
    int r = sqlite_check_result(self, err);
    if (r < 0) {
        return r;
    }
    r = empty ? 0 : apply_all(self, batches, count, &bad, err);
    if (r == 0) {
        *applied = count;
    } else if (bad > 0) {
        struct acre_error again = {0};
        if (apply_all(self, batches, bad, &none, &again) == 0) {
            *applied = bad;
        } else {
            r = acre_fail(err, again.code, "%s", again.text);
        }
    }
    return r;
}

void sqlite_rest(void *context) {
    struct sqlite *self = context;
    if (self->wal_pages >= CHECKPOINT_PAGES) {
        self->wal_pages = 0; /* if it fails, the next commit brings us here again */
        sqlite3_wal_checkpoint_v2(self->writer, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    }
}
