/* Files of earlier versions are opened, brought up to date, and lose nothing. */
#include "store/store.h"

#include "support/store_kit.h"
#include "support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

/* As the first version made it; 0x61637265 is "acre". */
/* clang-format off */
static const char first_schema[] =
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
    "INSERT INTO meta VALUES(1, 0, zeroblob(32));"
    "PRAGMA application_id = 0x61637265; PRAGMA user_version = 1;";
/* clang-format on */

static void run_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    char *text = NULL;
    REQUIRE_EQ(sqlite3_open(path, &db), SQLITE_OK);
    int r = sqlite3_exec(db, sql, NULL, NULL, &text);
    CHECK_STR(text != NULL ? text : "", "");
    REQUIRE_EQ(r, SQLITE_OK);
    sqlite3_close(db);
}

static bool keep_spec(void *context, const struct acre_store_job *job) {
    char *text = context;
    size_t used = strlen(text);
    snprintf(text + used, 128 - used, "%llu %llu %.*s;", (unsigned long long)job->id,
             (unsigned long long)job->spec_id, (int)job->spec.length, job->spec.data);
    return true;
}

static bool check_token(void *context, const struct acre_store_token *token) {
    unsigned *seen = context;
    ++*seen;
    CHECK_U64(token->id, *seen);
    CHECK_STR(token->user, "ada");
    CHECK_U64(token->revoked_ms, 7);
    CHECK_U64(token->parent, 0);
    return true;
}

/* STO-1. Then every member of an array had a spec of its own, and tokens had no parents. */
static void a_file_of_the_first_version_opens(void) {
    struct bed bed = bed_make(&(struct bed){.name = "sqlite"});
    struct acre_job_filter filter = {.live_only = true, .limit = 10};
    char text[128] = "";
    bed_close(&bed);
    unlink(bed.path);
    run_sql(bed.path, first_schema);
    run_sql(bed.path,
            "INSERT INTO jobs VALUES(1,'ada','lab','a','queued',1,2,1,0,5,0,0,'{}'),"
            " (2,'ada','lab','a','queued',1,2,1,0,5,0,0,'{}'),"
            " (3,'bob','lab','','queued',1,2,0,0,5,0,0,'{}');"
            "INSERT INTO job_specs VALUES(1,'{\"a\":1}'), (2,'{\"a\":1}'), (3,'{\"b\":1}');"
            "INSERT INTO tokens VALUES(1,zeroblob(32),'ada','vision','admin','laptop',5,6,7),"
            " (2,zeroblob(32),'ada','vision','user','',5,6,7);");
    bed_open(&bed);
    CHECK_EQ(acre_store_jobs(bed.store, &filter, keep_spec, text, NULL), 0);
    CHECK_STR(text, "1 0 {\"a\":1};2 0 {\"a\":1};3 0 {\"b\":1};");
    text[0] = '\0';
    CHECK_EQ(acre_store_job(bed.store, 2, keep_spec, text, NULL), 0);
    CHECK_STR(text, "2 0 {\"a\":1};");
    unsigned seen = 0;
    CHECK_EQ(acre_store_tokens(bed.store, check_token, &seen, NULL), 0);
    CHECK_U64(seen, 2);
    bed_add_jobs(&bed, 4, 5);
    bed_close(&bed);
    bed_open(&bed); /* it is up to date now */
    CHECK_STR(kit_ids(bed.store, &(struct acre_job_filter){.limit = 10}), "1 2 3 4 5");
    bed_remove(&bed);
}

static const struct acre_test tests[] = {
    {"a_file_of_the_first_version_opens", a_file_of_the_first_version_opens, 0},
};

ACRE_TEST_MAIN(tests)
