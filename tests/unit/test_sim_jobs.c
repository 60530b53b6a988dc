/* Recorded jobs: what is read, and every way to refuse (Bad input). */
#include "sim/job_trace.h"

#include "support/test.h"

#define HEADER "timestamp,duration,num_gpus,gpu_time,cluster\n"

static int parse(const char *text, struct acre_job_trace **ret_trace, struct acre_error *err) {
    return job_trace_parse("t.csv", acre_str_from(text), ret_trace, err);
}

static void jobs_are_read_as_written(void) {
    struct acre_job_trace *trace = NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(parse(HEADER "1970-01-01 00:00:00,0,1,0.0,a\n"
                            "2000-02-29 23:59:59,1.5,8,12.0,b\n"
                            "2017-09-04 10:30:41,2240194.0,16,17921552.0,7f04ca\n"
                            "2017-09-04 10:30:41,0.0009,4096,0,a\n",
                     &trace, &err),
               0);
    REQUIRE_EQ(trace->count, 4);
    static const struct {
        uint64_t submit_ms, duration_ms;
        uint32_t gpus;
        const char *cluster;
    } expect[] = {
        {0, 0, 1, "a"},
        {UINT64_C(951868799000), 1500, 8, "b"},
        {UINT64_C(1504521041000), UINT64_C(2240194000), 16, "7f04ca"},
        {UINT64_C(1504521041000), 0, 4096, "a"},
    };
    for (size_t i = 0; i < ACRE_COUNT(expect); i++) {
        acre_test_context("row %zu", i);
        CHECK_U64(trace->jobs[i].submit_ms, expect[i].submit_ms);
        CHECK_U64(trace->jobs[i].duration_ms, expect[i].duration_ms);
        CHECK_U64(trace->jobs[i].gpus, expect[i].gpus);
        CHECK_STR(acre_names_text(trace->names, trace->jobs[i].cluster), expect[i].cluster);
    }
    job_trace_destroy(trace);
    job_trace_destroy(NULL);
}

static void every_bad_row_is_refused_by_name(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {HEADER, "no jobs"},
        {HEADER "2017-09-04T10:30:41,1,1,1,a\n", "'2017-09-04T10:30:41' is not a valid time"},
        {HEADER "2017-13-04 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-09-00 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-04-31 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-02-29 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-12-32 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-09-04 24:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "1969-09-04 10:30:41,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-09-04 10:30,1,1,1,a\n", "is not a valid time"},
        {HEADER "2017-09-04 10:30:41,,1,1,a\n", "column 'duration': '' is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,-1,1,1,a\n", "'-1' is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,1.,1,1,a\n", "is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,.5,1,1,a\n", "is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,1e9,1,1,a\n", "is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,99999999999,1,1,a\n", "is not a valid duration"},
        {HEADER "2017-09-04 10:30:41,1,0,1,a\n", "column 'num_gpus'"},
        {HEADER "2017-09-04 10:30:41,1,4097,1,a\n", "column 'num_gpus'"},
        {HEADER "2017-09-04 10:30:41,1,1,1,\n", "column 'cluster': '' is not a valid name"},
        {HEADER "2017-09-04 10:30:41,1,1,1,a\n2017-09-04 10:30:40,1,1,1,a\n",
         "t.csv:3: column 'timestamp': '2017-09-04 10:30:40' is earlier than the row above it"},
        {"timestamp,duration,num_gpus\n", "cluster"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_job_trace *trace = NULL;
        struct acre_error err = {0};
        acre_test_context("%s", rows[i].text);
        CHECK_EQ(parse(rows[i].text, &trace, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        CHECK_HAS(err.text, "t.csv");
        CHECK(trace == NULL);
    }
}

static void a_file_that_is_not_there_is_named(void) {
    struct acre_job_trace *trace = NULL;
    struct acre_error err = {0};
    CHECK_EQ(job_trace_load("/nowhere/jobs.csv", &trace, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "/nowhere/jobs.csv");
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(jobs_are_read_as_written),
    TEST(every_bad_row_is_refused_by_name),
    TEST(a_file_that_is_not_there_is_named),
};

ACRE_TEST_MAIN(tests)
