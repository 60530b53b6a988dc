/* The rules of the queue as JSON (POL-7, POL-10): read strictly, written so that it reads back. */
#include "sched/policy.h"
#include "support/test.h"

#include <stdlib.h>

static struct acre_policy got;

static int load(const char *text, struct acre_error *err) {
    return acre_policy_load("p.json", acre_str_from(text), acre_policy_default(), &got, err);
}

/* SPEC's figures: half-life 7 d, 5 % for 10 min. */
static void the_default_is_the_specs(void) {
    const struct acre_policy *policy = acre_policy_default();
    CHECK_STR(acre_policy_name(policy->kind), "fair-share");
    CHECK(policy->backfill && policy->preemption);
    CHECK_U64(policy->half_life_ms, UINT64_C(604800000));
    CHECK_U64(policy->idle_below_milli, 50);
    CHECK_U64(policy->idle_after_ms, 600000);
    CHECK_EQ(policy->idle, ACRE_IDLE_ON_PRESSURE);
    CHECK_U64(policy->quota_count + policy->share_count, 0);
}

static void an_empty_object_changes_nothing(void) {
    REQUIRE_EQ(load("{}", NULL), 0);
    CHECK(memcmp(&got, acre_policy_default(), sizeof(got)) == 0);
    REQUIRE_EQ(load("{\"quotas\": null, \"half_life\": null}", NULL), 0);
    CHECK(memcmp(&got, acre_policy_default(), sizeof(got)) == 0);
}

static void every_key_is_read(void) {
    REQUIRE_EQ(load("{\"policy\":\"sjf\",\"backfill\":false,\"preemption\":false,"
                    "\"half_life\":\"1h30m\",\"priority_age\":90,\"preempt_min_run\":\"5s\","
                    "\"preempt_grace\":0,\"retry_base\":0.25,\"retry_max\":\"2m\","
                    "\"default_estimate\":\"10m\",\"idle\":\"never\",\"idle_below\":0.125,"
                    "\"idle_after\":\"1h\",\"idle_warn\":\"1m\",\"private_processes\":true,"
                    "\"max_queued_jobs\":5,\"max_queued_size\":\"1GiB\",\"max_names\":6,"
                    "\"max_array\":4,"
                    "\"max_tokens\":7,\"max_followers\":8,\"max_connections\":9,"
                    "\"max_logs\":\"2GiB\",\"max_grace\":\"1m\",\"default_memory\":0.25,"
                    "\"quotas\":[{\"who\":\"user:*\",\"gpus\":0.5,\"memory\":\"160GiB\","
                    "\"running\":8,\"queued\":1000,\"gpu_hours\":500,\"soft\":true},"
                    "{\"who\":\"project:vision\",\"gpus\":4,\"memory\":1024}],"
                    "\"shares\":[{\"who\":\"project:vision\",\"weight\":3},{\"who\":\"user:a\"}]}",
                    NULL),
               0);
    CHECK_EQ(got.kind, ACRE_POLICY_SJF);
    CHECK(!got.backfill && !got.preemption);
    CHECK_U64(got.half_life_ms, 5400000);
    CHECK_U64(got.priority_age_ms, 90000);
    CHECK_U64(got.preempt_min_run_ms, 5000);
    CHECK_U64(got.preempt_grace_ms, 0);
    CHECK_U64(got.retry_base_ms, 250);
    CHECK_U64(got.retry_max_ms, 120000);
    CHECK_U64(got.default_estimate_ms, 600000);
    CHECK_EQ(got.idle, ACRE_IDLE_NEVER);
    CHECK_U64(got.idle_below_milli, 125);
    CHECK_U64(got.idle_after_ms, 3600000);
    CHECK_U64(got.idle_warn_ms, 60000);
    CHECK(got.private_processes);
    CHECK_U64(got.limits.queued_jobs, 5);
    CHECK_U64(got.limits.queued_mib, 1024);
    CHECK_U64(got.limits.array, 4);
    CHECK_U64(got.limits.names, 6);
    CHECK_U64(got.limits.tokens, 7);
    CHECK_U64(got.limits.followers, 8);
    CHECK_U64(got.limits.connections, 9);
    CHECK_U64(got.limits.logs_mib, 2048);
    CHECK_U64(got.limits.grace_ms, 60000);
    CHECK_U64(got.limits.memory_milli, 250);
    REQUIRE_EQ(got.quota_count, 2);
    CHECK_STR(got.quotas[0].who, "user:*");
    CHECK_U64(got.quotas[0].gpu_milli, 500);
    CHECK_U64(got.quotas[0].gpu_mib, 163840);
    CHECK_U64(got.quotas[0].running, 8);
    CHECK_U64(got.quotas[0].queued, 1000);
    CHECK_U64(got.quotas[0].gpu_hours, 500);
    CHECK(got.quotas[0].soft && !got.quotas[1].soft);
    CHECK_U64(got.quotas[1].gpu_milli, 4000);
    CHECK_U64(got.quotas[1].gpu_mib, 1024);
    CHECK_U64(got.quotas[1].running, 0);
    REQUIRE_EQ(got.share_count, 2);
    CHECK_U64(got.shares[0].weight, 3);
    CHECK_U64(got.shares[1].weight, 1);
}

/* POL-10: a policy replaced at run time keeps what it does not name; lists are whole. */
static void a_key_that_is_absent_keeps_its_value(void) {
    struct acre_policy base;
    REQUIRE_EQ(load("{\"policy\":\"gang\",\"half_life\":\"3d\","
                    "\"quotas\":[{\"who\":\"user:a\",\"gpus\":1},{\"who\":\"user:b\",\"gpus\":1}],"
                    "\"shares\":[{\"who\":\"user:a\",\"weight\":9}]}",
                    NULL),
               0);
    base = got;
    REQUIRE_EQ(
        acre_policy_load("p", ACRE_STR("{\"quotas\":[{\"who\":\"user:c\"}]}"), &base, &got, NULL),
        0);
    CHECK_EQ(got.kind, ACRE_POLICY_GANG);
    CHECK_U64(got.half_life_ms, 3 * UINT64_C(86400000));
    CHECK_U64(got.quota_count, 1);
    CHECK_STR(got.quotas[0].who, "user:c");
    CHECK_U64(got.quotas[0].gpu_milli, 0);
    CHECK_STR(got.quotas[1].who, "");
    CHECK_U64(got.share_count, 1);
}

static const struct {
    const char *text, *part;
} bad[] = {
    {"{\"policy\":\"fair\"}",
     "p.json: policy: 'fair' is not valid; accepted: fair-share, priority, fcfs, sjf, gang"},
    {"{\"policy\":7}",
     "p.json: policy: '7' is not valid; accepted: fair-share, priority, fcfs, sjf, gang"},
    {"{\"idle\":\"sometimes\"}",
     "p.json: idle: 'sometimes' is not valid; accepted: on-pressure, always, never"},
    {"{\"halflife\":\"7d\"}", "halflife: unknown key; accepted: policy, backfill"},
    {"{\"backfill\":1}", "p.json: backfill: '1' is not valid; accepted: true or false"},
    {"{\"half_life\":0}", "p.json: half_life: '0' is not valid; accepted: a number of seconds or a "
                          "duration like 1h30m, from 1s to 36600d"},
    {"{\"half_life\":-5}", "half_life: '-5'"},
    {"{\"half_life\":\"7 days\"}", "half_life: '7 days'"},
    {"{\"half_life\":1e300}", "half_life"},
    {"{\"half_life\":\"40000d\"}", "half_life: '40000d'"},
    {"{\"half_life\":4000000000}", "half_life: '4000000000'"},
    {"{\"half_life\":[1]}", "half_life: '[1]'"},
    {"{\"retry_base\":0.0001}", "retry_base"},
    {"{\"max_queued_jobs\":0}",
     "p.json: max_queued_jobs: '0' is not valid; accepted: whole numbers from 1 to 100000000"},
    {"{\"max_grace\":\"25h\"}", "max_grace: '25h'"},
    {"{\"default_memory\":0}", "p.json: default_memory: '0' is not valid; accepted: a number from "
                               "0.001 to 1.0 in steps of 0.001"},
    {"{\"idle_below\":1.001}",
     "is not valid; accepted: a number from 0.001 to 1.0 in steps of 0.001"},
    {"{\"idle_below\":0}", "idle_below: '0'"},
    {"{\"idle_below\":0.0505}", "idle_below"},
    {"{\"retry_base\":\"1h\",\"retry_max\":\"30m\"}",
     "p.json: retry_base: 1h is longer than retry_max; accepted: at most 30m"},
    {"{\"idle_warn\":\"11m\"}",
     "p.json: idle_warn: 11m is longer than idle_after; accepted: at most 10m"},
    {"{\"quotas\":{}}",
     "p.json: quotas: '{}' is not valid; accepted: a list of at most 256 objects"},
    {"{\"quotas\":[7]}", "p.json: quotas[0]: not an object; accepted: {\"name\": value, ...}"},
    {"{\"quotas\":[{}]}", "p.json: quotas[0]: who: required"},
    {"{\"quotas\":[{\"who\":\"user:a\"},{\"who\":\"user:b\",\"gpus\":0}]}",
     "p.json: quotas[1]: gpus: '0' is not valid; accepted: a number from 0.001 to 1000000000.0 in "
     "steps of 0.001"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"gpus\":0.0005}]}", "quotas[0]: gpus"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"gpus\":1000000001}]}", "quotas[0]: gpus: '1000000001'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"gpus\":\"4\"}]}", "quotas[0]: gpus: '4'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"memory\":\"lots\"}]}",
     "p.json: quotas[0]: memory: 'lots' is not valid; accepted: a number of MiB or a size like "
     "160GiB, at least 1 MiB"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"memory\":0}]}", "quotas[0]: memory: '0'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"memory\":1.5}]}", "quotas[0]: memory: '1.5'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"running\":4294967296}]}",
     "p.json: quotas[0]: running: '4294967296' is not valid; accepted: whole numbers from 1 to "
     "4294967295"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"running\":-1}]}", "running: '-1'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"gpu_hours\":2.5}]}", "gpu_hours: '2.5'"},
    {"{\"quotas\":[{\"who\":\"user:a\",\"limit\":2}]}", "quotas[0]: limit: unknown key"},
    {"{\"quotas\":[{\"who\":\"ada\"}]}", "p.json: quotas[0]: who: 'ada' is not valid; accepted: "
                                         "user:NAME, project:NAME, user:* or project:*"},
    {"{\"quotas\":[{\"who\":\"user:\"}]}", "who: 'user:'"},
    {"{\"quotas\":[{\"who\":\"user:a\\nb\"}]}", "who: 'user:a\\nb'"},
    {"{\"quotas\":[{\"who\":7}]}", "who: '7'"},
    {"{\"quotas\":[{\"who\":\"user:a\"},{\"who\":\"user:a\"}]}",
     "p.json: quotas[1]: who: 'user:a' appears twice"},
    {"{\"shares\":[{\"who\":\"project:*\",\"weight\":2}]}",
     "p.json: shares[0]: who: 'project:*' is not valid; accepted: user:NAME or project:NAME"},
    {"{\"shares\":[{\"who\":\"user:a\",\"weight\":0}]}", "shares[0]: weight: '0'"},
    {"{\"shares\":[{\"weight\":2}]}", "shares[0]: who: required"},
    {"[]", "not an object; accepted: {\"name\": value, ...}"},
    {"{\"policy\":\"fcfs\",\"policy\":\"sjf\"}", "duplicate"},
    {"{", "p.json"},
};

static void bad_input_is_refused_by_name(void) {
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        acre_test_context("%s", bad[i].text);
        struct acre_error err = {0};
        memset(&got, 0x5a, sizeof(got));
        CHECK_EQ(load(bad[i].text, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, bad[i].part);
        CHECK_HAS(err.text, "p.json");
        CHECK(got.half_life_ms == UINT64_C(0x5a5a5a5a5a5a5a5a)); /* untouched */
    }
}

static char *write(const struct acre_policy *policy) {
    struct acre_buf buf;
    struct acre_json json;
    acre_buf_init(&buf, ACRE_POLICY_BYTES_MAX);
    acre_json_begin(&json, &buf, false);
    acre_policy_write(policy, &json);
    REQUIRE_EQ(acre_json_end(&json), 0);
    char *text = acre_strdup(buf.data);
    acre_buf_finish(&buf);
    return text;
}

static void what_is_written_reads_back_exactly(void) {
    static const char *const texts[] = {
        "{}",
        "{\"policy\":\"priority\",\"half_life\":\"36600d\",\"retry_base\":0.001,"
        "\"retry_max\":1.234,\"idle_below\":0.001,\"idle\":\"always\"}",
        "{\"quotas\":[{\"who\":\"user:*\",\"gpus\":0.001,\"memory\":1,\"running\":4294967295,"
        "\"queued\":1,\"gpu_hours\":1000000000000,\"soft\":true},"
        "{\"who\":\"project:*\",\"gpus\":999999999.999,\"memory\":\"1048576TiB\"},"
        "{\"who\":\"user:b@x.org\"}],\"shares\":[{\"who\":\"user:a b\",\"weight\":1000000}]}",
    };
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        acre_test_context("%s", texts[i]);
        REQUIRE_EQ(load(texts[i], NULL), 0);
        struct acre_policy first = got;
        char *text = write(&first);
        struct acre_policy blank = *acre_policy_default();
        blank.kind = ACRE_POLICY_FCFS; /* what is written says everything */
        blank.idle_below_milli = 999;
        REQUIRE_EQ(acre_policy_load("again", acre_str_from(text), &blank, &got, NULL), 0);
        CHECK(memcmp(&first, &got, sizeof(got)) == 0);
        free(text);
    }
    REQUIRE_EQ(load("{}", NULL), 0);
    char *text = write(&got);
    CHECK_HAS(text, "{\"policy\":\"fair-share\",\"backfill\":true");
    CHECK_HAS(text, "\"half_life\":\"7d\"");
    CHECK_HAS(text, "\"idle_below\":0.050");
    free(text);
}

static void the_longest_policy_fits_its_limit(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, ACRE_POLICY_BYTES_MAX);
    acre_buf_puts(&buf, "{\"quotas\":[");
    for (int i = 0; i < ACRE_POLICY_QUOTAS_MAX; i++) {
        acre_buf_printf(&buf,
                        "%s{\"who\":\"project:%064d\",\"gpus\":999999999.999,"
                        "\"memory\":1099511627776,\"running\":4294967295,\"queued\":4294967295,"
                        "\"gpu_hours\":1000000000000,\"soft\":false}",
                        i > 0 ? "," : "", i);
    }
    acre_buf_puts(&buf, "]}");
    REQUIRE(!acre_buf_failed(&buf));
    REQUIRE_EQ(load(buf.data, NULL), 0);
    CHECK_U64(got.quota_count, ACRE_POLICY_QUOTAS_MAX);
    struct acre_policy first = got;
    char *text = write(&first);
    REQUIRE_EQ(load(text, NULL), 0);
    CHECK(memcmp(&first, &got, sizeof(got)) == 0);
    free(text);
    acre_buf_finish(&buf);
}

static const struct acre_test tests[] = {
    {"the_default_is_the_specs", the_default_is_the_specs, 0},
    {"an_empty_object_changes_nothing", an_empty_object_changes_nothing, 0},
    {"every_key_is_read", every_key_is_read, 0},
    {"a_key_that_is_absent_keeps_its_value", a_key_that_is_absent_keeps_its_value, 0},
    {"bad_input_is_refused_by_name", bad_input_is_refused_by_name, 0},
    {"what_is_written_reads_back_exactly", what_is_written_reads_back_exactly, 0},
    {"the_longest_policy_fits_its_limit", the_longest_policy_fits_its_limit, 0},
};

ACRE_TEST_MAIN(tests)
