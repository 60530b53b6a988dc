/* sqlite_read.c - reads, on the reader's connection.
 *
 * Lists are built as SQL from the filter and prepared again each time (30 us): a list is for
 * people. Which index serves is said in the statement, not left to a planner without statistics:
 * pages are always in the order of ids and end at their limit, so sorting would be a mistake.
 *
 *   live only              jobs_live, which holds nothing else
 *   a user's ended jobs    jobs_user
 *   a user's jobs          both of these, merged by id
 *   anything else          the table in the order of ids, tested row by row; 100,000 rows of
 *                          history take some 30 ms when nothing matches
 *
 * Statistics read the index jobs_ended alone and never touch the table. */
#include "store/sqlite.h"
#include "store/tally.h"

#include <inttypes.h>
#include <string.h>

enum { SQL_MAX_BYTES = 4096 };

#define JOB_COLUMNS                                                                                \
    "j.id, j.user, j.project, j.name, j.state, j.live, j.priority, j.array, j.attempt,"            \
    " j.submitted_ms, j.started_ms, j.ended_ms, s.spec, j.detail, j.spec_id"
#define AUDIT_COLUMNS "seq, at_ms, actor, origin, action, target, result, detail, hash"

static const char *text_at(sqlite3_stmt *statement, int column) {
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : ""; /* NULL: another job has it, or no memory */
}

static uint64_t number_at(sqlite3_stmt *statement, int column) {
    return (uint64_t)sqlite3_column_int64(statement, column);
}

static struct acre_str view_at(sqlite3_stmt *statement, int column) {
    const char *text = text_at(statement, column);
    return (struct acre_str){text, (size_t)sqlite3_column_bytes(statement, column)};
}

/* Zeros when it is not a hash: then it does not match anything. */
static void hash_at(sqlite3_stmt *statement, int column, uint8_t hash[32]) {
    memset(hash, 0, ACRE_AUDIT_HASH_BYTES);
    if (sqlite3_column_bytes(statement, column) == ACRE_AUDIT_HASH_BYTES) {
        memcpy(hash, sqlite3_column_blob(statement, column), ACRE_AUDIT_HASH_BYTES);
    }
}

static void bind_text(sqlite3_stmt *statement, int parameter, const char *text) {
    if (text != NULL) {
        sqlite3_bind_text(statement, parameter, text, -1, SQLITE_STATIC);
    }
}

/* As SQLite orders numbers: what is larger is the largest. */
static void bind_number(sqlite3_stmt *statement, int parameter, uint64_t value) {
    sqlite3_bind_int64(statement, parameter, (int64_t)ACRE_MIN(value, (uint64_t)INT64_MAX));
}

/* Whom to show a row to; the kind goes with the statement. */
union visitor {
    acre_job_visit *job;
    acre_account_visit *account;
    acre_token_visit *token;
    acre_reservation_visit *reservation;
    acre_drain_visit *drain;
    audit_visit *audit;
};

/* Visit every row of a prepared statement and finalize it. `give` returns false to stop. */
typedef bool give_row(sqlite3_stmt *statement, union visitor visitor, void *context);

static int each_row(const struct sqlite *self, sqlite3_stmt *statement, give_row *give,
                    union visitor visitor, void *context, uint64_t *ret_rows,
                    struct acre_error *err) {
    int step;
    uint64_t rows = 0;
    bool go_on = true;
    while (go_on && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        rows++;
        go_on = give(statement, visitor, context);
    }
    int r = !go_on || step == SQLITE_DONE
                ? 0
                : sqlite_fail(self, sqlite3_db_handle(statement), "cannot read", err);
    sqlite3_finalize(statement);
    if (ret_rows != NULL) {
        *ret_rows = rows;
    }
    return r;
}

/* --- jobs ----------------------------------------------------------------------------------- */

static bool give_job(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_job job = {
        .id = number_at(statement, 0),
        .user = text_at(statement, 1),
        .project = text_at(statement, 2),
        .name = text_at(statement, 3),
        .state = text_at(statement, 4),
        .live = number_at(statement, 5) != 0,
        .priority = (uint32_t)number_at(statement, 6),
        .array = number_at(statement, 7),
        .attempt = (uint32_t)number_at(statement, 8),
        .submitted_ms = number_at(statement, 9),
        .started_ms = number_at(statement, 10),
        .ended_ms = number_at(statement, 11),
        .spec = view_at(statement, 12),
        .detail = view_at(statement, 13),
        .spec_id = number_at(statement, 14),
    };
    return visitor.job(context, &job);
}

/* ?1 user, ?2 project, ?3 state, ?4 name, ?5 array, ?6 cursor, ?7 limit */
static void put_arm(struct acre_buf *out, const struct acre_job_filter *filter, const char *table,
                    const char *condition) {
    acre_buf_printf(out,
                    "SELECT " JOB_COLUMNS " FROM jobs j %s LEFT JOIN job_specs s ON s.id = j.id"
                    " WHERE %s",
                    table, condition);
    acre_buf_puts(out, filter->user != NULL ? " AND j.user = ?1" : "");
    acre_buf_puts(out, filter->project != NULL ? " AND j.project = ?2" : "");
    acre_buf_puts(out, filter->state != NULL ? " AND j.state = ?3" : "");
    acre_buf_puts(out, filter->name != NULL ? " AND j.name = ?4" : "");
    /* the array's id is that of its first job */
    acre_buf_puts(out, filter->array != 0 ? " AND j.array = ?5 AND j.id >= ?5" : "");
    if (filter->after_id != 0) {
        acre_buf_puts(out, filter->newest_first ? " AND j.id < ?6" : " AND j.id > ?6");
    }
}

static void put_jobs_sql(struct acre_buf *out, const struct acre_job_filter *filter) {
    const char *const live = "INDEXED BY jobs_live";
    const char *const of_user = "INDEXED BY jobs_user";
    bool by_user = filter->user != NULL;
    if (filter->live_only) {
        put_arm(out, filter, live, filter->ended_only ? "j.live = 1 AND j.live = 0" : "j.live = 1");
    } else if (by_user) {
        put_arm(out, filter, of_user, "j.live = 0");
        if (!filter->ended_only) {
            acre_buf_puts(out, " UNION ALL ");
            put_arm(out, filter, live, "j.live = 1");
        }
    } else {
        put_arm(out, filter, "NOT INDEXED", filter->ended_only ? "j.live = 0" : "1");
    }
    acre_buf_printf(out, " ORDER BY 1 %s LIMIT ?7", filter->newest_first ? "DESC" : "ASC");
}

int sqlite_jobs(void *context, const struct acre_job_filter *filter, acre_job_visit *visit,
                void *visit_context, struct acre_error *err) {
    struct sqlite *self = context;
    struct acre_buf text;
    sqlite3_stmt *statement;
    acre_buf_init(&text, SQL_MAX_BYTES);
    put_jobs_sql(&text, filter);
    ACRE_ASSERT(!acre_buf_failed(&text));
    int r = sqlite_prepare(self, self->reader, text.data, &statement, err);
    acre_buf_finish(&text);
    if (r < 0) {
        return r;
    }
    bind_text(statement, 1, filter->user);
    bind_text(statement, 2, filter->project);
    bind_text(statement, 3, filter->state);
    bind_text(statement, 4, filter->name);
    bind_number(statement, 5, filter->array);
    bind_number(statement, 6, filter->after_id);
    bind_number(statement, 7, filter->limit);
    union visitor visitor = {.job = visit};
    return each_row(self, statement, give_job, visitor, visit_context, NULL, err);
}

int sqlite_job(void *context, uint64_t id, acre_job_visit *visit, void *visit_context,
               struct acre_error *err) {
    struct sqlite *self = context;
    sqlite3_stmt *statement;
    uint64_t rows = 0;
    int r = sqlite_prepare(self, self->reader,
                           "SELECT " JOB_COLUMNS " FROM jobs j LEFT JOIN job_specs s"
                           " ON s.id = iif(j.spec_id = 0, j.id, j.spec_id) WHERE j.id = ?1",
                           &statement, err);
    if (r < 0) {
        return r;
    }
    sqlite3_bind_int64(statement, 1, (int64_t)id); /* exact: negative ones do not exist */
    union visitor visitor = {.job = visit};
    r = each_row(self, statement, give_job, visitor, visit_context, &rows, err);
    if (r == 0 && rows == 0) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no job %" PRIu64, id);
    }
    return r;
}

uint64_t sqlite_last_job(void *context) {
    struct sqlite *self = context;
    uint64_t id = 0;
    sqlite_number(self, self->reader, "SELECT max(id) FROM jobs", &id, NULL);
    return id;
}

static bool tally_row(sqlite3_stmt *statement, union visitor visitor, void *tally) {
    (void)visitor;
    tally_add(tally, text_at(statement, 0), number_at(statement, 1), number_at(statement, 2),
              number_at(statement, 3));
    return true;
}

int sqlite_statistics(void *context, uint64_t since_ms, struct acre_job_statistics *ret_statistics,
                      struct acre_error *err) {
    struct sqlite *self = context;
    sqlite3_stmt *statement;
    struct row_tally tally = {0};
    int r = sqlite_prepare(self, self->reader,
                           "SELECT state, submitted_ms, started_ms, ended_ms FROM jobs"
                           " INDEXED BY jobs_ended WHERE live = 0 AND ended_ms >= ?1",
                           &statement, err);
    if (r < 0) {
        return r;
    }
    bind_number(statement, 1, since_ms);
    r = each_row(self, statement, tally_row, (union visitor){0}, &tally, NULL, err);
    struct acre_job_statistics statistics = tally_finish(&tally);
    if (r == 0) {
        *ret_statistics = statistics;
    }
    return r;
}

/* --- small tables --------------------------------------------------------------------------- */

static bool give_account(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_account account = {
        .project = text_at(statement, 0),
        .user = text_at(statement, 1),
        .charged_ms = number_at(statement, 2),
        .use = sqlite3_column_double(statement, 3),
        .at_ms = number_at(statement, 4),
    };
    return visitor.account(context, &account);
}

static bool give_token(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_token token = {
        .id = number_at(statement, 0),
        .user = text_at(statement, 2),
        .project = text_at(statement, 3),
        .role = text_at(statement, 4),
        .note = text_at(statement, 5),
        .created_ms = number_at(statement, 6),
        .expires_ms = number_at(statement, 7),
        .revoked_ms = number_at(statement, 8),
        .parent = number_at(statement, 9),
    };
    hash_at(statement, 1, token.hash);
    return visitor.token(context, &token);
}

static bool give_reservation(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_reservation reservation = {
        .id = number_at(statement, 0),
        .user = text_at(statement, 1),
        .state = text_at(statement, 2),
        .start_ms = number_at(statement, 3),
        .end_ms = number_at(statement, 4),
        .detail = view_at(statement, 5),
    };
    return visitor.reservation(context, &reservation);
}

static bool give_drain(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_drain drain = {
        .target = text_at(statement, 0),
        .reason = text_at(statement, 1),
        .since_ms = number_at(statement, 2),
    };
    return visitor.drain(context, &drain);
}

static int read_all(struct sqlite *self, const char *sql, give_row *give, union visitor visitor,
                    void *context, struct acre_error *err) {
    sqlite3_stmt *statement;
    int r = sqlite_prepare(self, self->reader, sql, &statement, err);
    return r < 0 ? r : each_row(self, statement, give, visitor, context, NULL, err);
}

int sqlite_accounts(void *self, acre_account_visit *visit, void *context, struct acre_error *err) {
    return read_all(self,
                    "SELECT project, user, charged_ms, use, at_ms FROM accounts"
                    " ORDER BY project, user",
                    give_account, (union visitor){.account = visit}, context, err);
}

int sqlite_tokens(void *self, acre_token_visit *visit, void *context, struct acre_error *err) {
    return read_all(self,
                    "SELECT id, hash, user, project, role, note, created_ms, expires_ms,"
                    " revoked_ms, parent FROM tokens ORDER BY id",
                    give_token, (union visitor){.token = visit}, context, err);
}

int sqlite_reservations(void *self, acre_reservation_visit *visit, void *context,
                        struct acre_error *err) {
    return read_all(self,
                    "SELECT id, user, state, start_ms, end_ms, detail FROM reservations"
                    " ORDER BY id",
                    give_reservation, (union visitor){.reservation = visit}, context, err);
}

int sqlite_drains(void *self, acre_drain_visit *visit, void *context, struct acre_error *err) {
    return read_all(self, "SELECT target, reason, since_ms FROM drains ORDER BY target", give_drain,
                    (union visitor){.drain = visit}, context, err);
}

static bool append_value(sqlite3_stmt *statement, union visitor visitor, void *value) {
    (void)visitor;
    struct acre_str view = view_at(statement, 0);
    acre_buf_append(value, view.data, view.length);
    return true;
}

int sqlite_setting(void *context, const char *name, struct acre_buf *ret_value,
                   struct acre_error *err) {
    struct sqlite *self = context;
    sqlite3_stmt *statement;
    uint64_t rows = 0;
    int r = sqlite_prepare(self, self->reader, "SELECT value FROM settings WHERE name = ?1",
                           &statement, err);
    if (r < 0) {
        return r;
    }
    bind_text(statement, 1, name);
    r = each_row(self, statement, append_value, (union visitor){0}, ret_value, &rows, err);
    if (r == 0 && rows == 0) {
        return acre_fail(err, ACRE_ENOTFOUND, "setting '%s' is not set", name);
    }
    if (r == 0 && acre_buf_failed(ret_value)) {
        return acre_fail(err, ACRE_ELIMIT, "setting '%s' is too long", name);
    }
    return r;
}

/* --- audit ---------------------------------------------------------------------------------- */

static bool give_audit(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct acre_store_audit audit = {
        .seq = number_at(statement, 0),
        .at_ms = number_at(statement, 1),
        .actor = text_at(statement, 2),
        .origin = text_at(statement, 3),
        .action = text_at(statement, 4),
        .target = text_at(statement, 5),
        .result = text_at(statement, 6),
        .detail = text_at(statement, 7),
    };
    hash_at(statement, 8, audit.hash);
    return visitor.audit(context, &audit);
}

int sqlite_audit(void *context, const struct acre_audit_filter *filter, audit_visit *visit,
                 void *visit_context, struct acre_error *err) {
    struct sqlite *self = context;
    struct acre_buf text;
    sqlite3_stmt *statement;
    acre_buf_init(&text, SQL_MAX_BYTES);
    acre_buf_puts(&text, "SELECT " AUDIT_COLUMNS " FROM audit WHERE 1");
    acre_buf_puts(&text, filter->actor != NULL ? " AND actor = ?1" : "");
    acre_buf_puts(&text, filter->action != NULL ? " AND substr(action, 1, length(?2)) = ?2" : "");
    acre_buf_puts(&text, filter->target != NULL ? " AND target = ?3" : "");
    if (filter->after_seq != 0) {
        acre_buf_puts(&text, filter->newest_first ? " AND seq < ?4" : " AND seq > ?4");
    }
    acre_buf_printf(&text, " ORDER BY seq %s LIMIT ?5", filter->newest_first ? "DESC" : "ASC");
    ACRE_ASSERT(!acre_buf_failed(&text));
    int r = sqlite_prepare(self, self->reader, text.data, &statement, err);
    acre_buf_finish(&text);
    if (r < 0) {
        return r;
    }
    bind_text(statement, 1, filter->actor);
    bind_text(statement, 2, filter->action);
    bind_text(statement, 3, filter->target);
    bind_number(statement, 4, filter->after_seq);
    bind_number(statement, 5, filter->limit);
    union visitor visitor = {.audit = visit};
    return each_row(self, statement, give_audit, visitor, visit_context, NULL, err);
}

static bool give_head(sqlite3_stmt *statement, union visitor visitor, void *context) {
    struct audit_head *head = context;
    (void)visitor;
    head->count = number_at(statement, 0);
    hash_at(statement, 1, head->hash);
    return true;
}

int sqlite_head(const struct sqlite *self, sqlite3 *db, struct audit_head *ret_head,
                struct acre_error *err) {
    sqlite3_stmt *statement;
    uint64_t rows = 0;
    struct audit_head head = {0};
    int r = sqlite_prepare(self, db, "SELECT audit_count, audit_head FROM meta WHERE id = 1",
                           &statement, err);
    if (r < 0) {
        return r;
    }
    r = each_row(self, statement, give_head, (union visitor){0}, &head, &rows, err);
    if (r == 0 && rows == 0) {
        return acre_fail(
            err, ACRE_ECORRUPT,
            "%s: the count of audit records is missing; restore the file from a backup",
            self->path);
    }
    if (r == 0) {
        *ret_head = head;
    }
    return r;
}

int sqlite_trail(void *context, struct audit_head *ret_head, audit_visit *visit,
                 void *visit_context, struct acre_error *err) {
    struct sqlite *self = context;
    int r = sqlite_exec(self, self->reader, "BEGIN", err);
    if (r < 0) {
        return r;
    }
    r = sqlite_head(self, self->reader, ret_head, err);
    r = r < 0 ? r
              : read_all(self, "SELECT " AUDIT_COLUMNS " FROM audit ORDER BY seq", give_audit,
                         (union visitor){.audit = visit}, visit_context, err);
    sqlite3_exec(self->reader, "COMMIT", NULL, NULL, NULL);
    return r;
}
