/* STO-1, SEC-3: the same suite over every store, waiting for each commit and with a loop: what is
 * read is what was written, batches are whole and in order, failures hold until resumed. */
#include "store/store.h"

#include "support/dies.h"
#include "support/store_kit.h"
#include "support/test.h"

#include <stdlib.h>

/* --- reading back --------------------------------------------------------------------------- */

struct expected_job {
    const struct acre_store_job *job;
    unsigned seen;
};

static bool check_job(void *context, const struct acre_store_job *job) {
    struct expected_job *expected = context;
    kit_check_job(job, expected->job);
    expected->seen++;
    return true;
}

static void expect_job(struct bed *bed, const struct acre_store_job *job) {
    struct expected_job expected = {.job = job};
    REQUIRE_EQ(acre_store_job(bed->store, job->id, check_job, &expected, NULL), 0);
    CHECK_U64(expected.seen, 1);
}

static void read_jobs_back(struct bed *bed) {
    size_t long_length = 300000; /* several pages */
    char *long_text = acre_calloc(1, long_length);
    memset(long_text, 'x', long_length);
    struct acre_store_job jobs[] = {
        kit_job(1),
        {.id = 2}, /* nothing but an id: strings read back empty */
        {.id = INT64_MAX,
         .user = "u",
         .state = "completed",
         .priority = UINT32_MAX,
         .attempt = UINT32_MAX,
         .array = INT64_MAX,
         .submitted_ms = INT64_MAX,
         .started_ms = INT64_MAX,
         .ended_ms = INT64_MAX,
         .spec = {long_text, long_length},
         .detail = {long_text, 5000}},
    };
    struct acre_batch *batch = acre_batch_create();
    CHECK_U64(acre_store_last_job(bed->store), 0);
    for (size_t i = 0; i < ACRE_COUNT(jobs); i++) {
        acre_batch_add_job(batch, &jobs[i]);
    }
    bed_commit_ok(bed, batch);
    jobs[1].user = jobs[1].project = jobs[1].name = jobs[1].state = "";
    jobs[2].project = jobs[2].name = "";
    for (size_t i = 0; i < ACRE_COUNT(jobs); i++) {
        expect_job(bed, &jobs[i]);
    }
    CHECK_U64(acre_store_last_job(bed->store), INT64_MAX);
    free(long_text);
    struct acre_error err = {0};
    CHECK_EQ(acre_store_job(bed->store, 3, check_job, NULL, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "no job 3");
    CHECK_EQ(acre_store_job(bed->store, UINT64_MAX, check_job, NULL, NULL), ACRE_ENOTFOUND);
}

static bool check_account(void *context, const struct acre_store_account *account) {
    unsigned *seen = context;
    static const char *const order[] = {"a", "a", "b"};
    REQUIRE(*seen < 3);
    CHECK_STR(account->project, order[*seen]);
    CHECK_STR(account->user, *seen == 1 ? "y" : "x");
    CHECK_U64(account->charged_ms, *seen == 2 ? UINT64_MAX : 7);
    CHECK_NEAR(account->use, *seen == 0 ? 2.5 : 1.25, 0);
    CHECK_U64(account->at_ms, 99);
    return ++*seen < 3;
}

static bool check_token(void *context, const struct acre_store_token *token) {
    unsigned *seen = context;
    uint8_t hash[32];
    memset(hash, 0xab, sizeof(hash));
    CHECK_U64(token->id, *seen + 1);
    CHECK(memcmp(token->hash, hash, sizeof(hash)) == 0);
    CHECK_STR(token->user, "ada");
    CHECK_STR(token->project, "vision");
    CHECK_STR(token->role, "admin");
    CHECK_STR(token->note, "laptop");
    CHECK_U64(token->created_ms, 5);
    CHECK_U64(token->expires_ms, 6);
    CHECK_U64(token->revoked_ms, *seen == 0 ? 8 : 7);
    CHECK_U64(token->parent, *seen == 0 ? 0 : 1);
    ++*seen;
    return true;
}

static bool check_reservation(void *context, const struct acre_store_reservation *reservation) {
    unsigned *seen = context;
    CHECK_U64(reservation->id, 4);
    CHECK_STR(reservation->user, "ada");
    CHECK_STR(reservation->state, "active");
    CHECK_U64(reservation->start_ms, 10);
    CHECK_U64(reservation->end_ms, 20);
    CHECK(acre_str_is(reservation->detail, "{}"));
    ++*seen;
    return true;
}

static bool check_drain(void *context, const struct acre_store_drain *drain) {
    unsigned *seen = context;
    CHECK_STR(drain->target, "node:b");
    CHECK_STR(drain->reason, "fan");
    CHECK_U64(drain->since_ms, 31);
    ++*seen;
    return true;
}

/* Rows that are put replace those of the same key, in the same batch or a later one. */
static void put_small_tables(struct bed *bed) {
    struct acre_store_account account = {"b", "x", UINT64_MAX, 1.25, 99};
    struct acre_store_token token = {1, {0}, "ada", "vision", "admin", "laptop", 5, 6, 7, 0};
    memset(token.hash, 0xab, sizeof(token.hash));
    struct acre_store_reservation reservation = {4, "ada", "pending", 10, 20, ACRE_STR("{}")};
    struct acre_batch *batch = acre_batch_create();
    acre_batch_put_account(batch, &account);
    account = (struct acre_store_account){"a", "y", 7, 1.25, 99};
    acre_batch_put_account(batch, &account);
    account.user = "x";
    acre_batch_put_account(batch, &account);
    acre_batch_put_token(batch, &token);
    token.id = 2;
    token.parent = 1;
    acre_batch_put_token(batch, &token);
    token.id = 3;
    acre_batch_put_token(batch, &token);
    acre_batch_put_reservation(batch, &reservation);
    acre_batch_put_setting(batch, "policy", ACRE_STR("old"));
    acre_batch_put_drain(batch, &(struct acre_store_drain){"node:a", "dust", 30});
    acre_batch_put_drain(batch, &(struct acre_store_drain){"node:b", "dust", 30});
    bed_commit_ok(bed, batch);

    batch = acre_batch_create();
    account.use = 2.5;
    acre_batch_put_account(batch, &account);
    token.id = 1;
    token.revoked_ms = 8;
    token.parent = 0;
    acre_batch_put_token(batch, &token);
    acre_batch_remove_token(batch, 3);
    acre_batch_remove_token(batch, 4); /* none that is there is none to remove */
    reservation.state = "active";
    acre_batch_put_reservation(batch, &reservation);
    acre_batch_put_setting(batch, "policy", ACRE_STR("new"));
    acre_batch_remove_drain(batch, "node:a");
    acre_batch_remove_drain(batch, "node:never");
    acre_batch_put_drain(batch, &(struct acre_store_drain){"node:b", "fan", 31});
    bed_commit_ok(bed, batch);
}

static void read_small_tables_back(struct bed *bed) {
    put_small_tables(bed);
    unsigned accounts = 0;
    unsigned tokens = 0;
    unsigned reservations = 0;
    unsigned drains = 0;
    CHECK_EQ(acre_store_accounts(bed->store, check_account, &accounts, NULL), 0);
    CHECK_EQ(acre_store_tokens(bed->store, check_token, &tokens, NULL), 0);
    CHECK_EQ(acre_store_reservations(bed->store, check_reservation, &reservations, NULL), 0);
    CHECK_EQ(acre_store_drains(bed->store, check_drain, &drains, NULL), 0);
    CHECK_U64(accounts, 3);
    CHECK_U64(tokens, 2);
    CHECK_U64(reservations, 1);
    CHECK_U64(drains, 1);
}

static void read_settings_back(struct bed *bed) {
    struct acre_error err = {0};
    struct acre_buf value;
    acre_buf_init(&value, 8);
    acre_buf_puts(&value, "=");
    CHECK_EQ(acre_store_setting(bed->store, "policy", &value, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "'policy' is not set");
    struct acre_batch *batch = acre_batch_create();
    acre_batch_put_setting(batch, "policy", ACRE_STR("fair"));
    acre_batch_put_setting(batch, "long", ACRE_STR("longer than that"));
    bed_commit_ok(bed, batch);
    CHECK_EQ(acre_store_setting(bed->store, "policy", &value, NULL), 0);
    CHECK_STR(value.data, "=fair"); /* appended */
    CHECK_EQ(acre_store_setting(bed->store, "long", &value, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "'long' is too long");
    acre_buf_finish(&value);
}

static void what_was_written_is_read_back(void) {
    bed_each(read_jobs_back);
    bed_each(read_small_tables_back);
    bed_each(read_settings_back);
}

/* --- updates -------------------------------------------------------------------------------- */

static struct acre_store_job running(const struct acre_store_job *job) {
    struct acre_store_job update = *job;
    update.state = "running";
    update.priority = 4;
    update.attempt = 9;
    update.submitted_ms = 11;
    update.started_ms = 12;
    update.ended_ms = 13;
    update.detail = ACRE_STR("{\"now\": true}");
    return update;
}

static void update_jobs(struct bed *bed) {
    bed_add_jobs(bed, 1, 3);
    struct acre_store_job job = kit_job(2);
    struct acre_store_job update = running(&job);
    struct acre_store_job expected = update;
    update.user = update.project = update.name = NULL; /* what an update does not change */
    update.array = 77;
    update.spec = ACRE_STR("other");
    struct acre_batch *batch = acre_batch_create();
    acre_batch_update_job(batch, &update);
    bed_commit_ok(bed, batch);
    expect_job(bed, &expected);
    /* it ends, and comes back to life */
    for (int live = 0; live < 2; live++) {
        expected.live = update.live = live;
        expected.state = update.state = live ? "queued" : "failed";
        batch = acre_batch_create();
        acre_batch_update_job(batch, &update);
        bed_commit_ok(bed, batch);
        expect_job(bed, &expected);
        const char *others = live ? "1 2 3" : "1 3";
        CHECK_STR(kit_ids(bed->store, &(struct acre_job_filter){.live_only = true, .limit = 9}),
                  others);
        CHECK_STR(kit_ids(bed->store, &(struct acre_job_filter){.ended_only = true, .limit = 9}),
                  live ? "" : "2");
    }
    job = kit_job(1);
    expect_job(bed, &job); /* nobody else changed */
}

/* Repeated updates of a job in one batch, and updates of a job added in it, leave the last. */
static void fold_updates(struct bed *bed) {
    enum { JOBS = 200 };
    struct acre_batch *batch = acre_batch_create();
    for (uint64_t id = 1; id <= JOBS; id++) {
        struct acre_store_job job = kit_job(id);
        acre_batch_add_job(batch, &job);
        job.state = "scheduled";
        acre_batch_update_job(batch, &job);
        job = running(&job);
        acre_batch_update_job(batch, &job);
    }
    bed_commit_ok(bed, batch);
    for (uint64_t id = 1; id <= JOBS; id++) {
        struct acre_store_job job = kit_job(id);
        job = running(&job);
        expect_job(bed, &job);
    }
    batch = acre_batch_create();
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t id = JOBS; id >= 1; id--) {
            struct acre_store_job job = kit_job(id);
            job.state = round == 2 ? "completed" : "running";
            job.live = round != 2;
            job.ended_ms = round;
            acre_batch_update_job(batch, &job);
        }
    }
    bed_commit_ok(bed, batch);
    struct acre_store_job job = kit_job(77);
    job.state = "completed";
    job.live = false;
    job.ended_ms = 2;
    expect_job(bed, &job);
}

static void updates_change_what_they_may(void) {
    bed_each(update_jobs);
}

static void repeated_updates_leave_the_last(void) {
    bed_each(fold_updates);
}

/* --- failure -------------------------------------------------------------------------------- */

static struct acre_batch *batch_of_one(uint64_t id, bool update) {
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_job job = kit_job(id);
    if (update) {
        acre_batch_update_job(batch, &job);
    } else {
        acre_batch_add_job(batch, &job);
    }
    return batch;
}

static const struct acre_job_filter everything = {.limit = 1000};

static void fail_as_a_whole(struct bed *bed) {
    bed_add_jobs(bed, 1, 1);
    struct acre_error err = {0};
    struct acre_batch *batch = batch_of_one(2, false); /* good, but not alone */
    struct acre_store_job job = kit_job(1);
    struct acre_store_audit audit = kit_audit("job submitted", "job:1");
    acre_batch_audit(batch, &audit);
    acre_batch_put_setting(batch, "policy", ACRE_STR("x"));
    acre_batch_add_job(batch, &job);
    CHECK_EQ(bed_commit(bed, batch, &err), ACRE_EEXISTS);
    CHECK_HAS(err.text, "job 1 already exists");
    CHECK_STR(kit_ids(bed->store, &everything), "1");
    struct acre_buf value;
    acre_buf_init(&value, 8);
    CHECK_EQ(acre_store_setting(bed->store, "policy", &value, NULL), ACRE_ENOTFOUND);
    acre_buf_finish(&value);
    acre_store_resume(bed->store);
    CHECK_EQ(bed_commit(bed, batch_of_one(5, true), &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "no job 5");
    acre_store_resume(bed->store);
    batch = acre_batch_create();
    acre_batch_audit(batch, &audit); /* the chain goes on where it was */
    bed_commit_ok(bed, batch);
    uint64_t count;
    uint8_t head[32];
    CHECK_EQ(acre_store_verify_audit(bed->store, &count, head, &err), 0);
    CHECK_U64(count, 1);
}

struct journal {
    struct kit_count count; /* first */
    char text[4096];
    size_t length;
};

struct entry {
    struct journal *journal;
    char name;
};

static void on_entry(void *context, int code, const struct acre_error *err) {
    struct entry *entry = context;
    struct journal *journal = entry->journal;
    REQUIRE(journal->length + 3 < sizeof(journal->text));
    journal->text[journal->length++] = entry->name;
    journal->text[journal->length++] = code == 0 ? '+' : '-';
    if (code < 0) {
        CHECK_HAS(err->text, "job 1 already exists"); /* the failure that began it */
    }
    kit_count_done(&journal->count, code, err);
}

static void hold_a_failure(struct bed *bed) {
    struct journal journal = {.count = {.loop = bed->loop}};
    struct entry entries[8];
    for (size_t i = 0; i < ACRE_COUNT(entries); i++) {
        entries[i] = (struct entry){&journal, (char)('a' + i)};
    }
    bed_add_jobs(bed, 1, 1);
    const uint64_t ids[] = {2, 1, 3, 4};
    for (size_t i = 0; i < ACRE_COUNT(ids); i++) { /* the second fails, and all after it */
        acre_store_commit(bed->store, batch_of_one(ids[i], false), on_entry, &entries[i]);
        CHECK(bed->loop == NULL || journal.length == 0); /* never within the call */
    }
    kit_wait(&journal.count, 4);
    CHECK_STR(journal.text, "a+b-c-d-");
    acre_store_commit(bed->store, batch_of_one(5, false), on_entry, &entries[4]);
    kit_wait(&journal.count, 5);
    acre_store_resume(bed->store);
    acre_store_resume(bed->store); /* once more does nothing */
    acre_store_commit(bed->store, batch_of_one(6, false), on_entry, &entries[5]);
    acre_store_commit(bed->store, batch_of_one(1, false), on_entry, &entries[6]);
    kit_wait(&journal.count, 7);
    CHECK_STR(journal.text, "a+b-c-d-e-f+g-");
    CHECK_STR(kit_ids(bed->store, &everything), "1 2 6");
}

/* Nothing slips through behind a failure nobody has heard of yet. */
static void resume_too_early(struct bed *bed) {
    struct kit_count count = {.loop = bed->loop};
    if (bed->loop == NULL) {
        return; /* there a failure is told before commit returns */
    }
    bed_add_jobs(bed, 1, 1);
    acre_store_commit(bed->store, batch_of_one(1, false), kit_count_done, &count);
    acre_store_resume(bed->store);
    acre_store_commit(bed->store, batch_of_one(2, false), kit_count_done, &count);
    kit_wait(&count, 2);
    CHECK_U64(count.failed, 2);
    CHECK_STR(kit_ids(bed->store, &everything), "1");
}

struct resumer {
    struct kit_count count; /* first */
    struct bed *bed;
};

static void resume_and_go_on(void *context, int code, const struct acre_error *err) {
    struct resumer *resumer = context;
    CHECK_EQ(code, ACRE_EEXISTS);
    acre_store_resume(resumer->bed->store);
    acre_store_commit(resumer->bed->store, batch_of_one(9, false), kit_count_done, resumer);
    kit_count_done(&resumer->count, code, err);
}

/* Resumed from a done function: what was given before still fails, what comes after does not. */
static void resume_within_done(struct bed *bed) {
    struct resumer resumer = {.count = {.loop = bed->loop}, .bed = bed};
    bed_add_jobs(bed, 1, 1);
    acre_store_commit(bed->store, batch_of_one(1, false), resume_and_go_on, &resumer);
    unsigned expected = 2;
    if (bed->loop != NULL) {
        acre_store_commit(bed->store, batch_of_one(2, false), kit_count_done, &resumer);
        expected = 3;
    }
    kit_wait(&resumer.count, expected);
    CHECK_STR(kit_ids(bed->store, &everything), "1 9");
}

/* A batch over its limit fails when its turn comes, like any other. */
static void refuse_giants(struct bed *bed) {
    struct acre_error err = {0};
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_job job = kit_job(1);
    acre_batch_add_job(batch, &job);
    job.detail = (struct acre_str){"x", (size_t)1 << 30}; /* refused unread */
    acre_batch_update_job(batch, &job);
    CHECK_EQ(bed_commit(bed, batch, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "512 MiB");
    acre_store_resume(bed->store);
    batch = acre_batch_create();
    job.id = 2;
    acre_batch_add_job(batch, &job);
    CHECK_EQ(bed_commit(bed, batch, NULL), ACRE_ELIMIT);
    CHECK_STR(kit_ids(bed->store, &everything), "");
}

static void a_batch_fails_as_a_whole(void) {
    bed_each(fail_as_a_whole);
}

static void a_failure_holds_until_resumed(void) {
    bed_each(hold_a_failure);
    bed_each(resume_too_early);
    bed_each(resume_within_done);
}

/* The simulator's way to a failing disk: "memory:fail=N". */
static void failures_can_be_asked_for(void) {
    static const struct bed faulty = {.name = "faulty", .url = "memory:fail=5,2"};
    static const int codes[] = {0, ACRE_EIO, 0, 0, ACRE_EIO, 0}; /* those it refuses count not */
    struct bed bed = bed_make(&faulty);
    for (uint64_t i = 0; i < ACRE_COUNT(codes); i++) {
        struct acre_error err = {0};
        acre_test_context("batch %d", (int)i + 1);
        CHECK_EQ(bed_commit(&bed, batch_of_one(i + 1, false), &err), codes[i]);
        if (codes[i] < 0) {
            CHECK_HAS(err.text, "memory:fail=");
            CHECK_EQ(bed_commit(&bed, acre_batch_create(), NULL), codes[i]);
            acre_store_resume(bed.store);
        }
    }
    CHECK_STR(kit_ids(bed.store, &everything), "1 3 4 6");
    bed_remove(&bed);
}

static void giant_batches_are_refused(void) {
    bed_each(refuse_giants);
}

/* --- groups --------------------------------------------------------------------------------- */

struct order {
    struct kit_count count; /* first */
    uint64_t expected;
};

struct ordered {
    struct order *order;
    uint64_t number;
};

static void check_order(void *context, int code, const struct acre_error *err) {
    struct ordered *ordered = context;
    CHECK_EQ(code, 0);
    CHECK_U64(ordered->number, ordered->order->expected);
    ordered->order->expected++;
    kit_count_done(&ordered->order->count, code, err);
}

/* Every batch updates the same job: the last one given must be the one that stays. */
static void keep_order(struct bed *bed) {
    enum { BATCHES = 2000 };
    static struct ordered ordered[BATCHES];
    struct order order = {.count = {.loop = bed->loop}};
    bed_add_jobs(bed, 1, 1);
    for (uint64_t i = 0; i < BATCHES; i++) {
        struct acre_store_job job = kit_job(1);
        struct acre_batch *batch = acre_batch_create();
        ordered[i] = (struct ordered){&order, i};
        job.attempt = (uint32_t)i;
        acre_batch_update_job(batch, &job);
        acre_store_commit(bed->store, batch, check_order, &ordered[i]);
    }
    kit_wait(&order.count, BATCHES);
    struct acre_store_job job = kit_job(1);
    job.attempt = BATCHES - 1;
    expect_job(bed, &job);
}

/* More than may wait for the disk: commits wait, and all come through. */
static void flood(struct bed *bed) {
    enum { BATCHES = 100, BYTES = 2 << 20 };
    struct kit_count count = {.loop = bed->loop};
    char *text = acre_calloc(1, BYTES);
    memset(text, 'y', BYTES);
    for (unsigned i = 0; i < BATCHES; i++) {
        struct acre_batch *batch = acre_batch_create();
        acre_batch_put_setting(batch, "big", (struct acre_str){text, BYTES});
        acre_store_commit(bed->store, batch, kit_count_done, &count);
    }
    kit_wait(&count, BATCHES);
    CHECK_U64(count.failed, 0);
    free(text);
}

static void empty_batches(struct bed *bed) {
    CHECK_EQ(bed_commit(bed, acre_batch_create(), NULL), 0);
    acre_store_commit(bed->store, acre_batch_create(), NULL, NULL); /* nobody listens */
    acre_batch_destroy(acre_batch_create());
    acre_batch_destroy(NULL);
}

struct chain {
    struct bed *bed;
    unsigned left;
    uint64_t next;
};

static void commit_again(void *context, int code, const struct acre_error *err) {
    struct chain *chain = context;
    (void)err;
    CHECK_EQ(code, 0);
    if (chain->left > 0) {
        chain->left--;
        acre_store_commit(chain->bed->store, batch_of_one(chain->next++, false), commit_again,
                          chain);
    }
}

/* Close commits what was given, and what done functions give while it does. */
static void close_with_work(struct bed *bed) {
    if (bed->url != NULL) {
        return; /* nothing is left to look at */
    }
    struct chain chain = {.bed = bed, .left = 3, .next = 100};
    for (uint64_t id = 1; id <= 20; id++) {
        acre_store_commit(bed->store, batch_of_one(id, false), NULL, NULL);
    }
    commit_again(&chain, 0, NULL);
    bed_close(bed);
    CHECK_U64(chain.left, 0);
    bed_open(bed);
    CHECK_STR(kit_ids(bed->store, &everything),
              "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 100 101 102");
}

static void batches_commit_in_order(void) {
    bed_each(keep_order);
}

static void a_slow_disk_makes_commits_wait(void) {
    bed_each(flood);
}

static void empty_batches_are_fine(void) {
    bed_each(empty_batches);
}

static void close_commits_what_was_given(void) {
    bed_each(close_with_work);
}

/* --- programmer errors ---------------------------------------------------------------------- */

static void add_twice(void) {
    struct acre_batch *batch = batch_of_one(1, false);
    struct acre_store_job job = kit_job(1);
    acre_batch_add_job(batch, &job);
}

static void add_huge_id(void) {
    acre_batch_destroy(batch_of_one((uint64_t)INT64_MAX + 1, false));
}

static void add_no_id(void) {
    acre_batch_destroy(batch_of_one(0, false));
}

static void remove_no_token(void) {
    acre_batch_remove_token(acre_batch_create(), 0);
}

static void put_a_setting_without_a_name(void) {
    acre_batch_put_setting(acre_batch_create(), "", acre_str_from("on"));
}

static void remove_a_drain_of_nothing(void) {
    acre_batch_remove_drain(acre_batch_create(), NULL);
}

static void programmer_errors_are_asserted(void) {
    CHECK(acre_dies(add_twice));
    CHECK(acre_dies(add_huge_id));
    CHECK(acre_dies(add_no_id));
    CHECK(acre_dies(remove_no_token));
    CHECK(acre_dies(put_a_setting_without_a_name));
    CHECK(acre_dies(remove_a_drain_of_nothing));
}

#define TEST(name)                                                                                 \
    { #name, name, 120 }
static const struct acre_test tests[] = {
    TEST(what_was_written_is_read_back),   TEST(updates_change_what_they_may),
    TEST(repeated_updates_leave_the_last), TEST(a_batch_fails_as_a_whole),
    TEST(a_failure_holds_until_resumed),   TEST(failures_can_be_asked_for),
    TEST(giant_batches_are_refused),       TEST(batches_commit_in_order),
    TEST(a_slow_disk_makes_commits_wait),  TEST(empty_batches_are_fine),
    TEST(close_commits_what_was_given),    TEST(programmer_errors_are_asserted),
};

ACRE_TEST_MAIN(tests)
