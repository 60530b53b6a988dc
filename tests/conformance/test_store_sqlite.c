/* STO-1, SEC-3 where it hurts: kill -9, a second daemon, read-only places, full disks, damaged,
 * foreign and newer files, and a past that somebody changed. */
#include "core/clock.h"
#include "store/store.h"

#include "support/store_kit.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

static const struct bed plain = {.name = "sqlite"};
static const struct bed looped = {.name = "sqlite with a loop", .with_loop = true};
static const struct acre_job_filter everything = {.limit = 1000};

/* What an outsider does to the file. */
static void run_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    char *text = NULL;
    REQUIRE_EQ(sqlite3_open(path, &db), SQLITE_OK);
    int r = sqlite3_exec(db, sql, NULL, NULL, &text);
    CHECK_STR(text != NULL ? text : "", "");
    REQUIRE_EQ(r, SQLITE_OK);
    sqlite3_close(db);
}

static void overwrite(const char *path, off_t offset, const void *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ((int64_t)pwrite(fd, bytes, length, offset), (int64_t)length);
    close(fd);
}

static int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/* --- one writer, many readers --------------------------------------------------------------- */

/* Open in a child and send the code and the text back. */
static int open_elsewhere(const struct bed *bed, struct acre_error *err) {
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct bed other = *bed;
        struct acre_error answer = {0};
        other.loop = NULL;
        answer.code = bed_try_open(&other, &answer);
        bed_close(&other);
        ssize_t sent = write(ends[1], &answer, sizeof(answer));
        _exit(sent == sizeof(answer) ? 0 : 1);
    }
    close(ends[1]);
    REQUIRE_EQ(read(ends[0], err, sizeof(*err)), (int64_t)sizeof(*err));
    close(ends[0]);
    wait_for(child);
    return err->code;
}

static void a_second_writer_is_refused_by_name(void) {
    struct bed bed = bed_make(&plain);
    struct acre_error err = {0};
    char process[32];
    snprintf(process, sizeof(process), "process %d;", (int)getpid());
    bed_add_jobs(&bed, 1, 2);
    CHECK_EQ(open_elsewhere(&bed, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, process);
    CHECK_HAS(err.text, bed.path);
    bed_add_jobs(&bed, 3, 3); /* nobody was disturbed */
    bed_close(&bed);
    CHECK_EQ(open_elsewhere(&bed, &err), 0);
    bed_open(&bed);
    bed_remove(&bed);
}

static int read_only_open(const char *path, struct acre_store **ret_store, struct acre_error *err) {
    char url[160];
    snprintf(url, sizeof(url), "sqlite:%s", path);
    struct acre_store_options options = {.url = url, .read_only = true};
    return acre_store_open(&options, ret_store, err);
}

static void readers_see_commits_while_a_writer_is_there(void) {
    struct bed bed = bed_make(&looped);
    struct acre_store *reader = NULL;
    struct acre_error err = {0};
    bed_add_jobs(&bed, 1, 2);
    REQUIRE_EQ(read_only_open(bed.path, &reader, &err), 0);
    CHECK_STR(kit_ids(reader, &everything), "1 2");
    bed_add_jobs(&bed, 3, 3);
    CHECK_STR(kit_ids(reader, &everything), "1 2 3");
    uint64_t count;
    uint8_t head[32];
    CHECK_EQ(acre_store_verify_audit(reader, &count, head, &err), 0);
    acre_store_close(reader);
    bed_close(&bed);
    REQUIRE_EQ(read_only_open(bed.path, &reader, &err), 0); /* and when there is none */
    CHECK_STR(kit_ids(reader, &everything), "1 2 3");
    acre_store_close(reader);
    bed_open(&bed);
    bed_remove(&bed);
}

static void a_file_is_its_owners_alone(void) {
    struct bed bed = bed_make(&plain);
    static const char *const names[] = {"acre.db", "acre.db-wal", "acre.db-lock"};
    bed_add_jobs(&bed, 1, 1);
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        struct stat info;
        acre_test_context("%s", names[i]);
        REQUIRE_EQ(stat(tree_path(&bed.tree, names[i]), &info), 0);
        CHECK_EQ(info.st_mode & 0777, 0600);
    }
    bed_remove(&bed);
}

/* --- surviving ------------------------------------------------------------------------------ */

static void reopening_finds_everything(void) {
    struct bed bed = bed_make(&looped);
    uint64_t count;
    uint8_t head[32];
    for (uint64_t round = 0; round < 5; round++) {
        bed_add_jobs(&bed, 10 * round + 1, 10 * round + 10);
        struct acre_batch *batch = acre_batch_create();
        struct acre_store_audit audit = kit_audit("round", "all");
        acre_batch_audit(batch, &audit);
        acre_batch_audit(batch, &audit);
        bed_commit_ok(&bed, batch);
        bed_close(&bed);
        bed_open(&bed);
        CHECK_U64(acre_store_last_job(bed.store), 10 * round + 10);
        struct acre_job_filter newest = {.limit = 2, .newest_first = true};
        char expected[32];
        snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIu64, 10 * round + 10,
                 10 * round + 9);
        CHECK_STR(kit_ids(bed.store, &newest), expected);
        CHECK_EQ(acre_store_verify_audit(bed.store, &count, head, NULL), 0);
        CHECK_U64(count, 2 * round + 2);
    }
    bed_remove(&bed);
}

enum { IN_FLIGHT = 16 };

struct worker {
    struct bed bed;
    uint64_t next;
    int acknowledge_fd;
};

struct flight {
    struct worker *worker;
    uint64_t id;
};

static void submit_next(struct flight *flight);

static void acknowledge(void *context, int code, const struct acre_error *err) {
    struct flight *flight = context;
    (void)err;
    if (code < 0 || write(flight->worker->acknowledge_fd, &flight->id, sizeof(flight->id)) !=
                        sizeof(flight->id)) {
        _exit(1);
    }
    submit_next(flight);
}

static void submit_next(struct flight *flight) {
    struct acre_batch *batch = acre_batch_create();
    flight->id = flight->worker->next++;
    struct acre_store_job job = kit_job(flight->id);
    struct acre_store_audit audit = kit_audit("job submitted", job.name);
    acre_batch_add_job(batch, &job);
    acre_batch_audit(batch, &audit);
    acre_store_commit(flight->worker->bed.store, batch, acknowledge, flight);
}

static void nothing_to_do(void *context) {
    (void)context;
}

/* Submits for ever and says so on a pipe, until it is killed. */
static void work(struct worker *worker) {
    struct flight flights[IN_FLIGHT];
    bed_open(&worker->bed);
    worker->next = acre_store_last_job(worker->bed.store) + 1;
    acre_loop_timer(worker->bed.loop, 3600000, 0, nothing_to_do, NULL);
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        flights[i].worker = worker;
        submit_next(&flights[i]);
    }
    acre_loop_run(worker->bed.loop);
    _exit(1);
}

static bool mark_job(void *context, const struct acre_store_job *job) {
    uint64_t *expected = context;
    CHECK_U64(job->id, *expected); /* no holes: they were submitted in order */
    ++*expected;
    struct acre_store_job original = kit_job(job->id);
    kit_check_job(job, &original);
    return true;
}

static void check_jobs_up_to(struct bed *bed, uint64_t acknowledged) {
    uint64_t expected = 1;
    uint64_t count;
    uint8_t head[32];
    struct acre_error err = {0};
    uint64_t last = acre_store_last_job(bed->store);
    CHECK(last >= acknowledged);
    CHECK(last <= acknowledged + IN_FLIGHT * 2); /* not more than can have been under way */
    while (expected <= last) {
        struct acre_job_filter page = {.limit = 1000, .after_id = expected - 1};
        uint64_t before = expected;
        REQUIRE_EQ(acre_store_jobs(bed->store, &page, mark_job, &expected, NULL), 0);
        REQUIRE(expected > before);
    }
    CHECK_EQ(acre_store_verify_audit(bed->store, &count, head, &err), 0);
    CHECK_U64(count, last); /* job and audit record came together */
}

static void killed_in_the_middle_nothing_acknowledged_is_lost(void) {
    struct bed bed = bed_make(&looped);
    bed_close(&bed);
    uint64_t acknowledged = 0;
    for (unsigned round = 0; round < 10; round++) {
        int ends[2];
        REQUIRE_EQ(pipe(ends), 0);
        pid_t child = fork();
        if (child == 0) {
            struct worker worker = {.bed = bed, .acknowledge_fd = ends[1]};
            close(ends[0]);
            work(&worker);
        }
        close(ends[1]);
        uint64_t id;
        for (unsigned seen = 0; seen < 100 * round + 37; seen++) {
            REQUIRE_EQ(read(ends[0], &id, sizeof(id)), (int64_t)sizeof(id));
            acknowledged = ACRE_MAX(acknowledged, id);
        }
        kill(child, SIGKILL);
        while (read(ends[0], &id, sizeof(id)) == (ssize_t)sizeof(id)) { /* told before it died */
            acknowledged = ACRE_MAX(acknowledged, id);
        }
        close(ends[0]);
        CHECK_EQ(WTERMSIG(wait_for(child)), SIGKILL);
        bed_open(&bed); /* its lock died with it */
        acre_test_context("round %u", round);
        check_jobs_up_to(&bed, acknowledged);
        acknowledged = acre_store_last_job(bed.store);
        bed_close(&bed);
    }
    fprintf(stderr, "%" PRIu64 " jobs survived 10 kills\n", acknowledged);
    bed_open(&bed);
    bed_remove(&bed);
}

/* --- places that refuse --------------------------------------------------------------------- */

static void places_that_cannot_be_opened_are_named(void) {
    static const struct {
        const char *url, *text;
        int code;
    } rows[] = {
        {"sqlite:", "does not name a file", ACRE_EINVALID},
        {"sqlite::memory:", "does not name a file", ACRE_EINVALID},
        {"sqlite:/nonexistent/acre.db", "/nonexistent/acre.db-lock: No such file", ACRE_ENOTFOUND},
        {"sqlite:/dev/null/acre.db", "/dev/null/acre.db-lock: Not a directory", ACRE_ENOTFOUND},
        {"postgres://db",
         "'postgres://db' is not a store; accepted: sqlite:PATH, memory:", ACRE_EINVALID},
        {"", "'' is not a store", ACRE_EINVALID},
        {"sqlite", "'sqlite' is not a store", ACRE_EINVALID},
        {"a\x1b[2J", "'a\\x1b[2J' is not a store", ACRE_EINVALID},
        {"memory:x", "'memory:x' is not valid", ACRE_EINVALID},
        {"memory:fail=", "memory:fail", ACRE_EINVALID},
        {"memory:fail=0", "memory:fail", ACRE_EINVALID},
        {"memory:fail=2,,3", "memory:fail", ACRE_EINVALID},
        {"memory:fail=-1", "memory:fail", ACRE_EINVALID},
        {"memory:fail=111111111111111111111111111", "27 digits", ACRE_EINVALID},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        struct acre_store *store = NULL;
        struct acre_store_options options = {.url = rows[i].url};
        acre_test_context("%s", rows[i].url);
        CHECK_EQ(acre_store_open(&options, &store, &err), rows[i].code);
        CHECK_HAS(err.text, rows[i].text);
        CHECK(store == NULL);
    }
    acre_test_context("%s", "");
    struct acre_store *store = NULL;
    struct acre_error err = {0};
    CHECK_EQ(read_only_open("/nonexistent/acre.db", &store, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "/nonexistent/acre.db");
    struct acre_store_options memory = {.url = "memory:", .read_only = true};
    CHECK_EQ(acre_store_open(&memory, &store, &err), ACRE_EUNSUPPORTED);
    char many[256] = "memory:fail=1";
    for (int i = 0; i < 64; i++) {
        strncat(many, ",1", sizeof(many) - strlen(many) - 1);
    }
    memory = (struct acre_store_options){.url = many};
    CHECK_EQ(acre_store_open(&memory, &store, &err), ACRE_ELIMIT);
}

/* Root may write everywhere: be somebody else. */
static int open_as_nobody(const struct bed *bed, struct acre_error *err) {
    uid_t before = geteuid();
    if (before == 0 && seteuid(65534) != 0) {
        acre_test_skip("cannot give up root: %s", strerror(errno));
    }
    int code = open_elsewhere(bed, err);
    REQUIRE_EQ(seteuid(before), 0);
    return code;
}

static void a_read_only_directory_is_named(void) {
    struct bed bed = bed_make(&plain);
    struct acre_error err = {0};
    bed_add_jobs(&bed, 1, 1);
    bed_close(&bed);
    struct bed fresh = bed;
    tree_make_directory(&bed.tree, "locked");
    snprintf(fresh.path, sizeof(fresh.path), "%s", tree_path(&bed.tree, "locked/acre.db"));
    REQUIRE_EQ(chmod(tree_path(&bed.tree, "locked"), 0555), 0);
    REQUIRE_EQ(chmod(bed.tree.root, 0755), 0);
    CHECK_EQ(open_as_nobody(&fresh, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "locked/acre.db-lock: Permission denied");
    if (geteuid() != 0) { /* it is one's own: as good as somebody else's */
        REQUIRE_EQ(chmod(tree_path(&bed.tree, "acre.db-lock"), 0400), 0);
    }
    CHECK_EQ(open_as_nobody(&bed, &err), ACRE_EDENIED); /* somebody else's file */
    CHECK_HAS(err.text, "acre.db-lock: Permission denied");
    REQUIRE_EQ(chmod(tree_path(&bed.tree, "acre.db-lock"), 0600), 0);
    bed_open(&bed);
    bed_remove(&bed);
}

/* --- disks that fill up --------------------------------------------------------------------- */

static void fill_up(struct bed *bed, int code, const char *text) {
    static char big[256 << 10];
    memset(big, 'z', sizeof(big));
    struct acre_error err = {0};
    uint64_t good = 0;
    int r = 0;
    for (uint64_t id = 1; id <= 200 && r == 0; id++) {
        struct acre_batch *batch = acre_batch_create();
        struct acre_store_job job = kit_job(id);
        struct acre_store_audit audit = kit_audit("job submitted", "");
        job.spec = (struct acre_str){big, sizeof(big)};
        acre_batch_add_job(batch, &job);
        acre_batch_audit(batch, &audit);
        r = bed_commit(bed, batch, &err);
        good += r == 0;
    }
    CHECK_EQ(r, code);
    CHECK_HAS(err.text, bed->path);
    CHECK_HAS(err.text, text);
    CHECK(good >= 1);
    CHECK_U64(acre_store_last_job(bed->store), good);           /* reads go on */
    CHECK_EQ(bed_commit(bed, acre_batch_create(), NULL), code); /* and writes do not */
}

/* With room again the store goes on, without a hole and with a whole chain. */
static void go_on(struct bed *bed) {
    uint64_t good = acre_store_last_job(bed->store);
    uint64_t count;
    uint8_t head[32];
    struct acre_error err = {0};
    acre_store_resume(bed->store);
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_job job = kit_job(good + 1);
    struct acre_store_audit audit = kit_audit("job submitted", "");
    acre_batch_add_job(batch, &job);
    acre_batch_audit(batch, &audit);
    bed_commit_ok(bed, batch);
    for (int again = 0; again < 2; again++) {
        CHECK_EQ(acre_store_verify_audit(bed->store, &count, head, &err), 0);
        CHECK_U64(count, good + 1);
        CHECK_U64(acre_store_last_job(bed->store), good + 1);
        bed_close(bed);
        bed_open(bed);
    }
}

static void a_full_disk_refuses_and_recovers(void) {
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) {
        acre_test_skip("needs root for a small file system of its own");
    }
    struct tree tree = tree_create(NULL);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", tree.root, "tmpfs", 0, "size=6m") != 0) {
        acre_test_skip("cannot mount a tmpfs: %s", strerror(errno));
    }
    struct bed bed = looped;
    REQUIRE_EQ(acre_loop_create(&bed.loop, NULL), 0);
    snprintf(bed.path, sizeof(bed.path), "%s", tree_path(&tree, "acre.db"));
    bed_open(&bed);
    fill_up(&bed, ACRE_EIO, "full");
    REQUIRE_EQ(mount("tmpfs", tree.root, "tmpfs", MS_REMOUNT, "size=60m"), 0);
    go_on(&bed);
    bed_close(&bed);
    acre_loop_destroy(bed.loop);
    umount(tree.root);
    tree_erase(&tree);
}

/* Files may not grow: an error of the system that is not "full". */
static void an_io_error_refuses_and_recovers(void) {
    struct bed bed = bed_make(&looped);
    struct rlimit limit;
    struct rlimit before;
    REQUIRE_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3 << 20;
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill_up(&bed, ACRE_EIO, "disk I/O error");
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    go_on(&bed);
    bed_remove(&bed);
}

/* --- files that are not what they should be ------------------------------------------------- */

static void make_pages(struct bed *bed) {
    struct acre_store_audit audit = kit_audit("job submitted", "");
    for (uint64_t i = 0; i < 10; i++) {
        bed_add_jobs(bed, 100 * i + 1, 100 * i + 100);
        struct acre_batch *batch = acre_batch_create();
        acre_batch_audit(batch, &audit);
        bed_commit_ok(bed, batch);
    }
    bed_close(bed);
}

/* What is written to a file without a name is gone with the daemon. */
static void a_removed_file_takes_nothing_more(void) {
    struct bed bed = bed_make(&plain);
    char aside[sizeof(bed.path) + 8];
    struct acre_error err = {0};
    bed_add_jobs(&bed, 1, 3);
    snprintf(aside, sizeof(aside), "%s.aside", bed.path);
    REQUIRE_EQ(rename(bed.path, aside), 0);
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_audit audit = kit_audit("job submitted", "");
    acre_batch_audit(batch, &audit);
    CHECK_EQ(bed_commit(&bed, batch, &err), ACRE_EIO);
    CHECK_HAS(err.text, "was removed or replaced");
    REQUIRE_EQ(rename(aside, bed.path), 0);
    acre_store_resume(bed.store);
    bed_add_jobs(&bed, 4, 4);
    bed_remove(&bed);
}

static void damaged_files_are_refused_with_advice(void) {
    static const struct {
        const char *what;
        off_t offset;
        size_t length;
        int code;
        const char *text;
    } rows[] = {
        {"header", 0, 64, ACRE_ECORRUPT, "is damaged"},
        {"schema", 100, 3900, ACRE_ECORRUPT, "is damaged"},
        {"second page", 4096, 4096, ACRE_ECORRUPT, "is damaged"},
        {"a page in the middle", 20 * 4096, 4096, ACRE_ECORRUPT, "is damaged"},
    };
    static char garbage[4096];
    memset(garbage, 0xa5, sizeof(garbage));
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bed bed = bed_make(&plain);
        struct acre_error err = {0};
        acre_test_context("%s", rows[i].what);
        make_pages(&bed);
        overwrite(bed.path, rows[i].offset, garbage, rows[i].length);
        CHECK_EQ(bed_try_open(&bed, &err), rows[i].code);
        CHECK_HAS(err.text, rows[i].text);
        CHECK_HAS(err.text, bed.path);
        CHECK_HAS(err.text, ".recover");
        CHECK(bed.store == NULL);
        bed_remove(&bed);
    }
}

static void a_file_cut_short_is_refused(void) {
    struct bed bed = bed_make(&plain);
    struct acre_error err = {0};
    make_pages(&bed);
    REQUIRE_EQ(truncate(bed.path, 10 * 4096), 0);
    CHECK_EQ(bed_try_open(&bed, &err), ACRE_ECORRUPT);
    CHECK_HAS(err.text, "is damaged");
    bed_remove(&bed);
}

/* Too large to be read before the start: it is checked behind it, and then refuses to go on. */
static void damage_in_a_large_file_is_found_behind_the_start(void) {
    static char big[64 << 10];
    static char garbage[4096];
    memset(big, 'z', sizeof(big));
    memset(garbage, 0xa5, sizeof(garbage));
    struct bed bed = bed_make(&looped);
    struct acre_error err = {0};
    bed_add_jobs(&bed, 1, 500);
    for (uint64_t i = 0; i < 40; i++) {
        struct acre_batch *batch = acre_batch_create();
        for (uint64_t k = 0; k < 10; k++) {
            struct acre_store_job job = kit_job(1000 + 10 * i + k);
            job.spec = (struct acre_str){big, sizeof(big)};
            acre_batch_add_job(batch, &job);
        }
        bed_commit_ok(&bed, batch);
    }
    bed_close(&bed);
    struct stat info;
    REQUIRE_EQ(stat(bed.path, &info), 0);
    CHECK(info.st_size > (off_t)4 << 20);
    bed_open(&bed);
    bed_commit_ok(&bed, acre_batch_create()); /* good so far; and it can be closed meanwhile */
    bed_close(&bed);
    overwrite(bed.path, 20 * 4096, garbage, sizeof(garbage));
    bed_open(&bed);
    struct acre_clock clock = acre_clock_real();
    uint64_t end_ns = acre_clock_monotonic_ns(&clock) + UINT64_C(30000000000);
    int r = 0;
    while (r == 0 && acre_clock_monotonic_ns(&clock) < end_ns) {
        r = bed_commit(&bed, acre_batch_create(), &err);
    }
    CHECK_EQ(r, ACRE_ECORRUPT);
    CHECK_HAS(err.text, "is damaged");
    CHECK_HAS(err.text, ".recover");
    acre_store_resume(bed.store);
    CHECK_EQ(bed_commit(&bed, acre_batch_create(), NULL), ACRE_ECORRUPT); /* for good */
    bed_remove(&bed);
}

static void strange_files_are_refused(void) {
    static const struct {
        const char *what, *sql;
        int code;
        const char *text;
    } rows[] = {
        {"newer", "PRAGMA user_version = 1000", ACRE_EUNSUPPORTED, "newer acre (schema 1000"},
        {"foreign", "PRAGMA application_id = 7", ACRE_EINVALID, "of another program"},
        {"without an id", "PRAGMA application_id = 0", ACRE_EINVALID, "of another program"},
        {"no head", "DELETE FROM meta", ACRE_ECORRUPT, "count of audit records is missing"},
        {"table gone", "DROP TABLE job_specs", ACRE_EINTERNAL, "no such table"},
        {"audit after the end", "INSERT INTO audit VALUES(11, 1, '', '', '', '', '', '', x'00')",
         ACRE_ECORRUPT, "audit record 11 was not written by acre (it wrote 10)"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bed bed = bed_make(&plain);
        struct acre_error err = {0};
        acre_test_context("%s", rows[i].what);
        make_pages(&bed);
        run_sql(bed.path, rows[i].sql);
        CHECK_EQ(bed_try_open(&bed, &err), rows[i].code);
        CHECK_HAS(err.text, rows[i].text);
        CHECK_HAS(err.text, bed.path);
        bed_remove(&bed);
    }
    struct bed bed = bed_make(&plain); /* too old, for somebody who may not bring it up to date */
    struct acre_error err = {0};
    struct acre_store *reader = NULL;
    bed_close(&bed);
    run_sql(bed.path, "PRAGMA user_version = 0");
    CHECK_EQ(read_only_open(bed.path, &reader, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "start the daemon with it first");
    bed_remove(&bed);
}

/* --- the past ------------------------------------------------------------------------------- */

static void any_change_to_the_past_is_found(void) { /* SEC-3 */
    static const struct {
        const char *what, *sql, *text;
    } rows[] = {
        {"nothing", "SELECT 1", NULL},
        {"time", "UPDATE audit SET at_ms = at_ms + 1 WHERE seq = 4", "record 4 does not match"},
        {"actor", "UPDATE audit SET actor = 'user:eve' WHERE seq = 1", "record 1 does not match"},
        {"origin", "UPDATE audit SET origin = '' WHERE seq = 2", "record 2 does not match"},
        {"action", "UPDATE audit SET action = '' WHERE seq = 3", "record 3 does not match"},
        {"target", "UPDATE audit SET target = 'x' WHERE seq = 9", "record 9 does not match"},
        {"result", "UPDATE audit SET result = 'DENIED' WHERE seq = 5", "record 5 does not match"},
        {"detail", "UPDATE audit SET detail = '' WHERE seq = 10", "record 10 does not match"},
        {"text moved to the next field",
         "UPDATE audit SET actor = 'user:adaunix:', origin = '1000' WHERE seq = 6",
         "record 6 does not match"},
        {"hash", "UPDATE audit SET hash = zeroblob(32) WHERE seq = 7", "record 7 does not match"},
        {"no hash", "UPDATE audit SET hash = x'00' WHERE seq = 7", "record 7 does not match"},
        {"first deleted", "DELETE FROM audit WHERE seq = 1", "record 1 is missing"},
        {"deleted", "DELETE FROM audit WHERE seq = 5", "record 5 is missing"},
        {"deleted and closed up",
         "DELETE FROM audit WHERE seq = 5; UPDATE audit SET seq = seq - 1 WHERE seq > 5",
         "record 5 does not match"},
        {"swapped",
         "UPDATE audit SET seq = 100 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5;"
         "UPDATE audit SET seq = 5 WHERE seq = 100",
         "record 4 does not match"},
        {"put in before",
         "INSERT INTO audit SELECT 0, at_ms, actor, origin, action, target,"
         " result, detail, hash FROM audit WHERE seq = 1",
         "record 0 was inserted"},
        {"put in between",
         "UPDATE audit SET seq = seq + 100 WHERE seq > 5; UPDATE audit SET seq = seq - 99 WHERE"
         " seq > 100; INSERT INTO audit SELECT 6, at_ms, actor, origin, action, target, result,"
         " detail, hash FROM audit WHERE seq = 5",
         "record 6 does not match"},
        {"put in at the end",
         "INSERT INTO audit SELECT 11, at_ms, actor, origin, action, target,"
         " result, detail, hash FROM audit WHERE seq = 10",
         "record 11 does not match"},
        {"cut off", "DELETE FROM audit WHERE seq > 8", "record 9 and the rest are missing"},
        {"all gone", "DELETE FROM audit", "record 1 and the rest are missing"},
        {"cut off, count too", "DELETE FROM audit WHERE seq > 8; UPDATE meta SET audit_count = 8",
         "record 8 is not the one that was written"},
        {"count", "UPDATE meta SET audit_count = 7", "record 8 was added at the end"},
        {"head", "UPDATE meta SET audit_head = zeroblob(32)", "record 10 is not the one"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bed bed = bed_make(&plain);
        struct acre_error err = {0};
        struct acre_store *reader = NULL;
        uint64_t count = 99;
        uint8_t head[32];
        acre_test_context("%s", rows[i].what);
        make_pages(&bed);
        run_sql(bed.path, rows[i].sql);
        REQUIRE_EQ(read_only_open(bed.path, &reader, NULL), 0);
        int r = acre_store_verify_audit(reader, &count, head, &err);
        CHECK_EQ(r, rows[i].text != NULL ? ACRE_ECORRUPT : 0);
        CHECK_HAS(err.text, rows[i].text != NULL ? rows[i].text : "");
        CHECK_U64(count, rows[i].text != NULL ? 99 : 10); /* set only on success */
        acre_store_close(reader);
        bed_remove(&bed);
    }
}

/* --- size ----------------------------------------------------------------------------------- */

enum { HISTORY = UNDER_SANITIZER ? 10000 : 100000, QUEUED = 1000, TRIES = 3 };

static void add_history(struct bed *bed) {
    static char spec[512];
    memset(spec, 's', sizeof(spec));
    for (uint64_t id = 1; id <= HISTORY;) {
        struct acre_batch *batch = acre_batch_create();
        for (unsigned i = 0; i < 1000 && id <= HISTORY; i++, id++) {
            struct acre_store_job job = kit_job(id);
            struct acre_store_audit audit = kit_audit("job submitted", job.name);
            job.spec = (struct acre_str){spec, sizeof(spec)};
            job.live = id > HISTORY - QUEUED;
            job.state = job.live ? "queued" : id % 7 == 0 ? "failed" : "completed";
            job.started_ms = job.submitted_ms + id * 7919 % 100000;
            job.ended_ms = job.started_ms + 5000;
            acre_batch_add_job(batch, &job);
            acre_batch_audit(batch, &audit);
        }
        bed_commit_ok(bed, batch);
    }
}

static double ms_since(const struct acre_clock *clock, uint64_t start_ns) {
    return (double)(acre_clock_monotonic_ns(clock) - start_ns) / 1e6;
}

static bool count_visits(void *context, const struct acre_store_job *job) {
    (void)job;
    ++*(uint64_t *)context;
    return true;
}

/* What a daemon does first: the store, then every live job. */
static double start_ms(struct bed *bed) {
    struct acre_clock clock = acre_clock_real();
    uint64_t start_ns = acre_clock_monotonic_ns(&clock);
    uint64_t seen = 0;
    bed_open(bed);
    struct acre_job_filter live = {.limit = 1000, .live_only = true};
    CHECK_EQ(acre_store_jobs(bed->store, &live, count_visits, &seen, NULL), 0);
    CHECK_U64(seen, QUEUED);
    return ms_since(&clock, start_ns);
}

static double list_ms(struct bed *bed, struct acre_job_filter filter) {
    struct acre_clock clock = acre_clock_real();
    uint64_t start_ns = acre_clock_monotonic_ns(&clock);
    uint64_t seen = 0;
    CHECK_EQ(acre_store_jobs(bed->store, &filter, count_visits, &seen, NULL), 0);
    return ms_since(&clock, start_ns);
}

/* Of this thread alone: whoever else uses the machine does not count. */
static double cpu_ms(void) {
    struct timespec now;
    REQUIRE_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double statistics_ms(struct bed *bed) {
    double start = cpu_ms();
    struct acre_job_statistics statistics;
    CHECK_EQ(acre_store_statistics(bed->store, 0, &statistics, NULL), 0);
    CHECK_U64(statistics.completed + statistics.failed, HISTORY - QUEUED);
    return cpu_ms() - start;
}

static void history_does_not_slow_the_start(void) {
    struct bed bed = bed_make(&looped);
    add_history(&bed);
    double start = 1e9;
    double statistics = 1e9;
    for (int i = 0; i < TRIES; i++) { /* the machine may be busy: the best of three */
        bed_close(&bed);
        double took = start_ms(&bed);
        start = ACRE_MIN(start, took);
        took = statistics_ms(&bed);
        statistics = ACRE_MIN(statistics, took);
    }
    struct stat info;
    REQUIRE_EQ(stat(bed.path, &info), 0);
    fprintf(stderr,
            "%d jobs, %.0f MB: start %.1f ms, statistics %.1f ms, a user's newest 100 %.1f ms, "
            "a name nobody has %.1f ms\n",
            HISTORY, (double)info.st_size / 1e6, start, statistics,
            list_ms(&bed,
                    (struct acre_job_filter){.limit = 100, .user = "user-1", .newest_first = true}),
            list_ms(&bed, (struct acre_job_filter){.limit = 100, .name = "nobody"}));
    struct acre_clock clock = acre_clock_real();
    uint64_t start_ns = acre_clock_monotonic_ns(&clock);
    uint64_t count;
    uint8_t head[32];
    CHECK_EQ(acre_store_verify_audit(bed.store, &count, head, NULL), 0);
    CHECK_U64(count, HISTORY);
    double verify = ms_since(&clock, start_ns);
    fprintf(stderr, "audit verified in %.1f ms\n", verify);
    CHECK(start < verify); /* reading the whole past, on this machine now */
    CHECK(statistics < verify);
    bed_remove(&bed);
}

#define TEST(name)                                                                                 \
    { #name, name, 240 }
static const struct acre_test tests[] = {
    TEST(a_second_writer_is_refused_by_name),
    TEST(readers_see_commits_while_a_writer_is_there),
    TEST(a_file_is_its_owners_alone),
    TEST(reopening_finds_everything),
    TEST(killed_in_the_middle_nothing_acknowledged_is_lost),
    TEST(places_that_cannot_be_opened_are_named),
    TEST(a_read_only_directory_is_named),
    TEST(a_full_disk_refuses_and_recovers),
    TEST(an_io_error_refuses_and_recovers),
    TEST(a_removed_file_takes_nothing_more),
    TEST(damaged_files_are_refused_with_advice),
    TEST(a_file_cut_short_is_refused),
    TEST(damage_in_a_large_file_is_found_behind_the_start),
    TEST(strange_files_are_refused),
    TEST(any_change_to_the_past_is_found),
    TEST(history_does_not_slow_the_start),
};

ACRE_TEST_MAIN(tests)
