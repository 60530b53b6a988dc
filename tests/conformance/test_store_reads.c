/* JOB-3, SEC-3: lists, statistics and the audit trail read the same from every store. */
#include "store/store.h"

#include "support/store_kit.h"
#include "support/test.h"

#include <stdio.h>

static const struct acre_job_filter everything = {.limit = 1000};

/* --- lists ---------------------------------------------------------------------------------- */

/* Jobs 1 ... 12; the even ones have ended. Users are id % 3, projects id % 2, arrays of 5. */
static void add_history(struct bed *bed) {
    bed_add_jobs(bed, 1, 12);
    struct acre_batch *batch = acre_batch_create();
    for (uint64_t id = 2; id <= 12; id += 2) {
        struct acre_store_job job = kit_job(id);
        job.live = false;
        job.state = id % 4 == 0 ? "completed" : "failed";
        job.ended_ms = 1000 * id;
        acre_batch_update_job(batch, &job);
    }
    bed_commit_ok(bed, batch);
}

static void filter_jobs(struct bed *bed) {
    static const struct {
        struct acre_job_filter filter;
        const char *ids;
    } rows[] = {
        {{.limit = 1000}, "1 2 3 4 5 6 7 8 9 10 11 12"},
        {{.limit = 4}, "1 2 3 4"},
        {{.limit = 4, .newest_first = true}, "12 11 10 9"},
        {{.limit = 3, .after_id = 4}, "5 6 7"},
        {{.limit = 3, .after_id = 4, .newest_first = true}, "3 2 1"},
        {{.limit = 3, .after_id = 1, .newest_first = true}, ""},
        {{.limit = 3, .after_id = 12}, ""},
        {{.limit = 3, .after_id = UINT64_MAX}, ""},
        {{.limit = 3, .after_id = UINT64_MAX, .newest_first = true}, "12 11 10"},
        {{.limit = 9, .live_only = true}, "1 3 5 7 9 11"},
        {{.limit = 2, .live_only = true, .newest_first = true, .after_id = 8}, "7 5"},
        {{.limit = 9, .ended_only = true}, "2 4 6 8 10 12"},
        {{.limit = 2, .ended_only = true, .newest_first = true}, "12 10"},
        {{.limit = 9, .ended_only = true, .live_only = true}, ""},
        {{.limit = 9, .user = "user-0"}, "3 6 9 12"},
        {{.limit = 9, .user = "user-0", .newest_first = true}, "12 9 6 3"},
        {{.limit = 2, .user = "user-0", .newest_first = true, .after_id = 12}, "9 6"},
        {{.limit = 2, .user = "user-0", .after_id = 3}, "6 9"},
        {{.limit = 9, .user = "user-0", .live_only = true}, "3 9"},
        {{.limit = 9, .user = "user-0", .ended_only = true}, "6 12"},
        {{.limit = 9, .user = "nobody"}, ""},
        {{.limit = 9, .project = "project-1"}, "1 3 5 7 9 11"},
        {{.limit = 9, .user = "user-1", .project = "project-1"}, "1 7"},
        {{.limit = 9, .state = "failed"}, "2 6 10"},
        {{.limit = 9, .state = "completed", .user = "user-2"}, "8"},
        {{.limit = 9, .name = "name-7"}, "7"},
        {{.limit = 9, .name = "name"}, ""},
        {{.limit = 9, .array = 5}, "6 7 8 9"},
        {{.limit = 9, .array = 5, .live_only = true}, "7 9"},
        {{.limit = 9, .array = 5, .user = "user-0"}, "6 9"},
        {{.limit = 9, .user = "' OR 1 --"}, ""},
    };
    add_history(bed);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s, row %zu", bed->name, i);
        CHECK_STR(kit_ids(bed->store, &rows[i].filter), rows[i].ids);
    }
}

static bool stop_at_once(void *context, const struct acre_store_job *job) {
    unsigned *seen = context;
    (void)job;
    ++*seen;
    return false;
}

struct nested {
    struct bed *bed;
    unsigned seen;
};

static bool look_again(void *context, const struct acre_store_job *job) {
    struct nested *nested = context;
    unsigned inner = 0;
    CHECK_EQ(acre_store_job(nested->bed->store, job->id, stop_at_once, &inner, NULL), 0);
    CHECK_EQ(acre_store_jobs(nested->bed->store, &everything, stop_at_once, &inner, NULL), 0);
    CHECK_U64(inner, 2);
    nested->seen++;
    return true;
}

static void visit_jobs(struct bed *bed) {
    bed_add_jobs(bed, 1, 5);
    unsigned seen = 0;
    struct nested nested = {.bed = bed};
    CHECK_EQ(acre_store_jobs(bed->store, &everything, stop_at_once, &seen, NULL), 0);
    CHECK_U64(seen, 1);
    CHECK_EQ(acre_store_jobs(bed->store, &everything, look_again, &nested, NULL), 0);
    CHECK_U64(nested.seen, 5);
    static const uint32_t bad[] = {0, 1001, UINT32_MAX};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        struct acre_error err = {0};
        struct acre_job_filter filter = {.limit = bad[i]};
        struct acre_audit_filter audit = {.limit = bad[i]};
        CHECK_EQ(acre_store_jobs(bed->store, &filter, stop_at_once, &seen, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "accepted: 1 to 1000");
        CHECK_EQ(acre_store_audit(bed->store, &audit, NULL, NULL, NULL), ACRE_EINVALID);
    }
}

static void lists_follow_their_filters(void) {
    bed_each(filter_jobs);
}

static void a_visit_may_stop_or_read_on(void) {
    bed_each(visit_jobs);
}

/* --- statistics ----------------------------------------------------------------------------- */

/* JOB-3: waits 1 ... 100 s, runs of 10 s; 3 were never started. */
static void count_jobs(struct bed *bed) {
    struct acre_job_statistics s;
    CHECK_EQ(acre_store_statistics(bed->store, 0, &s, NULL), 0);
    CHECK_U64(s.completed + s.failed + s.canceled + s.wait_p99_ms + s.run_mean_ms, 0);
    struct acre_batch *batch = acre_batch_create();
    for (uint64_t id = 1; id <= 104; id++) {
        struct acre_store_job job = kit_job(id);
        job.state = id <= 80 ? "completed" : id <= 100 ? "failed" : "canceled";
        job.live = false;
        job.started_ms = id <= 100 ? job.submitted_ms + 1000 * id : 0;
        job.ended_ms = id <= 100 ? job.started_ms + 10000 : 2000000000000;
        if (id == 104) { /* alive, though an attempt of it has ended */
            job.state = "queued";
            job.live = true;
        }
        acre_batch_add_job(batch, &job);
    }
    bed_commit_ok(bed, batch);
    CHECK_EQ(acre_store_statistics(bed->store, 0, &s, NULL), 0);
    CHECK_U64(s.completed, 80);
    CHECK_U64(s.failed, 20);
    CHECK_U64(s.canceled, 3);
    CHECK_U64(s.wait_p50_ms, 50000);
    CHECK_U64(s.wait_p90_ms, 90000);
    CHECK_U64(s.wait_p99_ms, 99000);
    CHECK_U64(s.wait_mean_ms, 50500);
    CHECK_U64(s.run_mean_ms, 10000);
    struct acre_store_job job = kit_job(91);
    CHECK_EQ(acre_store_statistics(bed->store, job.submitted_ms + 101000, &s, NULL), 0);
    CHECK_U64(s.failed, 10); /* those that ended at or after the 91st */
    CHECK_U64(s.completed, 0);
    CHECK_U64(s.wait_p50_ms, 95000);
    CHECK_EQ(acre_store_statistics(bed->store, UINT64_MAX, &s, NULL), 0);
    CHECK_U64(s.canceled, 0);
}

static void statistics_count_what_ended(void) {
    bed_each(count_jobs);
}

/* A clock that went back makes a wait of 0, not of centuries. */
static void count_backwards(struct bed *bed) {
    struct acre_job_statistics s;
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_job job = kit_job(1);
    job.state = "completed";
    job.live = false;
    job.started_ms = job.submitted_ms - 5;
    job.ended_ms = job.submitted_ms - 10;
    acre_batch_add_job(batch, &job);
    bed_commit_ok(bed, batch);
    CHECK_EQ(acre_store_statistics(bed->store, 0, &s, NULL), 0);
    CHECK_U64(s.completed, 1);
    CHECK_U64(s.wait_p99_ms, 0);
    CHECK_U64(s.run_mean_ms, 0);
}

static void a_clock_that_went_back_counts_as_no_time(void) {
    bed_each(count_backwards);
}

/* --- audit ---------------------------------------------------------------------------------- */

static bool check_audit(void *context, const struct acre_store_audit *audit) {
    uint8_t *hashes = context;
    CHECK_U64(audit->at_ms, 1700000000000);
    CHECK_STR(audit->actor, "user:ada");
    CHECK_STR(audit->origin, "unix:1000");
    CHECK_STR(audit->action, "job submitted");
    CHECK_STR(audit->target, audit->seq == 1 ? "job:1" : "");
    CHECK_STR(audit->result, "ok");
    CHECK_STR(audit->detail, "on paper");
    memcpy(hashes + 32 * (audit->seq - 1), audit->hash, 32);
    return true;
}

/* SHA-256 of the bytes that audit.c describes, worked out apart from it with Python's hashlib. */
static const uint8_t first_hash[32] = {
    0x9b, 0x7a, 0x83, 0xf9, 0x39, 0xb6, 0x55, 0x4b, 0x81, 0x93, 0xc1, 0x87, 0xea, 0x74, 0x8c, 0xb3,
    0x97, 0x4c, 0xd1, 0xc9, 0xfc, 0x3a, 0xd4, 0x47, 0x2e, 0x4c, 0x6a, 0x5f, 0xd6, 0xc2, 0x19, 0x20};

static void write_audit(struct bed *bed) {
    uint8_t head[32] = {1};
    uint8_t hashes[64] = {0};
    uint64_t count = 99;
    CHECK_EQ(acre_store_verify_audit(bed->store, &count, head, NULL), 0);
    CHECK_U64(count, 0);
    CHECK_U64(head[0], 0);
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_audit audit = kit_audit("job submitted", "job:1");
    acre_batch_audit(batch, &audit);
    audit.target = NULL; /* as "" */
    acre_batch_audit(batch, &audit);
    bed_commit_ok(bed, batch);
    struct acre_audit_filter all = {.limit = 10};
    CHECK_EQ(acre_store_audit(bed->store, &all, check_audit, hashes, NULL), 0);
    CHECK_EQ(acre_store_verify_audit(bed->store, &count, head, NULL), 0);
    CHECK_U64(count, 2);
    CHECK(memcmp(hashes, first_hash, 32) == 0);
    CHECK(memcmp(hashes + 32, head, 32) == 0);
}

static void filter_audit(struct bed *bed) {
    static const char *const actions[] = {"job submitted", "job started", "job canceled", "token"};
    static const struct {
        struct acre_audit_filter filter;
        const char *seqs;
    } rows[] = {
        {{.limit = 99}, "1 2 3 4 5 6 7 8 9 10 11 12"},
        {{.limit = 3, .newest_first = true}, "12 11 10"},
        {{.limit = 3, .after_seq = 5}, "6 7 8"},
        {{.limit = 3, .after_seq = 5, .newest_first = true}, "4 3 2"},
        {{.limit = 3, .after_seq = 1, .newest_first = true}, ""},
        {{.limit = 3, .after_seq = 12}, ""},
        {{.limit = 3, .after_seq = 13}, ""},
        {{.limit = 3, .after_seq = UINT64_MAX}, ""},
        {{.limit = 2, .after_seq = UINT64_MAX, .newest_first = true}, "12 11"},
        {{.limit = 2, .after_seq = 13, .newest_first = true}, "12 11"},
        {{.limit = 99, .action = "job started"}, "2 6 10"},
        {{.limit = 99, .action = "job"}, "1 2 3 5 6 7 9 10 11"},
        {{.limit = 99, .action = "%"}, ""},
        {{.limit = 99, .action = ""}, "1 2 3 4 5 6 7 8 9 10 11 12"},
        {{.limit = 99, .target = "job:1"}, "1 4 7 10"},
        {{.limit = 99, .actor = "user:bob"}, "2 4 6 8 10 12"},
        {{.limit = 1, .actor = "user:bob", .target = "job:1", .newest_first = true}, "10"},
        {{.limit = 9, .actor = "user"}, ""},
    };
    struct acre_batch *batch = acre_batch_create();
    for (unsigned i = 0; i < 12; i++) {
        struct acre_store_audit audit = kit_audit(actions[i % 4], i % 3 == 0 ? "job:1" : "job:2");
        audit.actor = i % 2 == 0 ? "user:ada" : "user:bob";
        acre_batch_audit(batch, &audit);
    }
    bed_commit_ok(bed, batch);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s, row %zu", bed->name, i);
        CHECK_STR(kit_seqs(bed->store, &rows[i].filter), rows[i].seqs);
    }
}

static void the_audit_trail_is_chained(void) { /* SEC-3 */
    bed_each(write_audit);
}

static void audit_lists_follow_their_filters(void) {
    bed_each(filter_audit);
}

/* Job 1 has the spec, 2 and 3 point at it; 4 has its own. */
static bool keep_spec(void *context, const struct acre_store_job *job) {
    char *text = context;
    snprintf(text, 64, "%llu:%.*s", (unsigned long long)job->spec_id, (int)job->spec.length,
             job->spec.data);
    return false;
}

static void share_a_spec(struct bed *bed) {
    static const char *const found[] = {"0:{}1", "1:{}1", "1:{}1", "0:{}4"};
    static const char *const listed[] = {"0:{}1", "1:", "1:", "0:{}4"};
    struct acre_batch *batch = acre_batch_create();
    for (uint64_t id = 1; id <= 4; id++) {
        struct acre_store_job job = kit_job(id);
        job.array = id < 4 ? 1 : 0;
        job.spec_id = id == 2 || id == 3 ? 1 : 0;
        job.spec = job.spec_id != 0 ? (struct acre_str){0}
                   : id == 1        ? ACRE_STR("{}1")
                                    : ACRE_STR("{}4");
        acre_batch_add_job(batch, &job);
    }
    struct acre_store_job same = kit_job(3);
    acre_batch_update_job(batch, &same); /* in the same batch, */
    bed_commit_ok(bed, batch);
    batch = acre_batch_create();
    struct acre_store_job later = kit_job(2);
    acre_batch_update_job(batch, &later); /* and in another: the spec stays whose it was */
    struct acre_store_job first = kit_job(1);
    first.live = false;
    acre_batch_update_job(batch, &first);
    bed_commit_ok(bed, batch);
    for (uint64_t id = 1; id <= 4; id++) {
        char text[64] = "";
        struct acre_job_filter filter = {.after_id = id - 1, .limit = 1};
        acre_test_context("%s, job %u", bed->name, (unsigned)id);
        CHECK_EQ(acre_store_job(bed->store, id, keep_spec, text, NULL), 0);
        CHECK_STR(text, found[id - 1]);
        CHECK_EQ(acre_store_jobs(bed->store, &filter, keep_spec, text, NULL), 0);
        CHECK_STR(text, listed[id - 1]);
    }
}

static void jobs_share_a_spec(void) {
    bed_each(share_a_spec);
}

#define TEST(name)                                                                                 \
    { #name, name, 120 }
static const struct acre_test tests[] = {
    TEST(lists_follow_their_filters),  TEST(a_visit_may_stop_or_read_on),
    TEST(statistics_count_what_ended), TEST(a_clock_that_went_back_counts_as_no_time),
    TEST(the_audit_trail_is_chained),  TEST(audit_lists_follow_their_filters),
    TEST(jobs_share_a_spec),
};

ACRE_TEST_MAIN(tests)
