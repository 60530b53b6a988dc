/* Answers of the daemon as people see them: canned JSON in, text out (UI-2, POL-9, DEV-4). */
#include "cli/show.h"

#include "support/test.h"

#include <stdlib.h>
#include <time.h>

static const uint64_t now_ms = UINT64_C(1794709800000); /* 2026-11-15T02:30:00Z */

static const char running[] =
    "{\"id\":1,\"name\":\"train\",\"user\":\"ada\",\"project\":\"vision\",\"state\":\"running\","
    "\"priority\":2,\"submitted\":\"2026-11-15T02:20:00.000Z\","
    "\"started\":\"2026-11-15T02:25:00.000Z\",\"ended\":null,\"attempt\":2,\"retries\":1,"
    "\"max_retries\":3,\"preemptions\":0,\"command\":\"python train.py\","
    "\"request\":{\"nodes\":1,\"gpus\":1,\"share_milli\":500,\"gpu_memory_mib\":20480,"
    "\"cpu_milli\":4000,\"ram_mib\":0,\"isolation\":\"mps\",\"exclusive\":false,"
    "\"models\":[\"H100\"],\"labels\":[\"zone=a\"]},\"wait_ms\":300000,\"run_ms\":300000,"
    "\"held\":false,\"canceling\":false,\"allocation\":[{\"node\":\"gpu-a\","
    "\"gpu\":\"sim:gpu-a/3\",\"share_milli\":500,\"memory_mib\":20480}],\"exit\":null,"
    "\"why\":null,\"when\":null,\"simulated\":true}";

static const char waiting[] =
    "{\"id\":12,\"name\":null,\"user\":\"bob\",\"state\":\"queued\",\"priority\":4,"
    "\"submitted\":\"2026-11-15T02:29:00.000Z\",\"started\":null,\"attempt\":0,"
    "\"command\":\"sleep 5\",\"request\":{\"nodes\":2,\"gpus\":8,\"share_milli\":1000},"
    "\"wait_ms\":60000,\"run_ms\":0,\"held\":false,\"allocation\":[],\"exit\":null,"
    "\"why\":{\"reason\":\"busy\",\"text\":\"It asks for 16 GPUs; 3 are free.\","
    "\"advice\":\"Ask for 3, or wait.\",\"position\":2,\"ahead\":1},"
    "\"when\":{\"known\":true,\"start\":\"2026-11-15T02:35:00.000Z\","
    "\"earliest\":\"2026-11-15T02:33:00.000Z\",\"latest\":\"2026-11-15T02:50:00.000Z\"}}";

static const char failed[] =
    "{\"id\":3,\"name\":\"evil\\u001b[2J\",\"user\":\"eve\",\"state\":\"failed\",\"priority\":1,"
    "\"attempt\":1,\"submitted\":\"2026-11-14T02:29:00.000Z\",\"request\":{\"nodes\":1,"
    "\"gpus\":2,\"share_milli\":1000},\"array\":{\"id\":3,\"index\":7},\"wait_ms\":0,"
    "\"run_ms\":1000,\"exit\":{\"kind\":\"killed\",\"code\":9,\"text\":null,"
    "\"peak_ram_mib\":2048,\"peak_gpu_mib\":null,\"cpu_ms\":61000,\"gpu_use_milli\":870}}";

/* Show `json` (with %s filled in) on a terminal of `width`. Returned in a static buffer's place. */
static void show(struct acre_buf *out, show_function *function, uint32_t width, const char *json) {
    json_error_t error;
    json_t *root = json_loads(json, 0, &error);
    acre_test_context("%s", error.text);
    REQUIRE(root != NULL);
    acre_test_context("%s", "");
    setenv("TZ", "UTC", 1);
    tzset();
    acre_buf_init(out, 1 << 20);
    struct show view = {
        .term = {.is_terminal = width > 0, .width = width}, .now_ms = now_ms, .out = out};
    function(&view, root);
    json_decref(root);
}

static char *jobs_json(void) {
    struct acre_buf text;
    acre_buf_init(&text, 1 << 16);
    acre_buf_printf(&text, "{\"jobs\":[%s,%s,%s],\"next\":null}", running, waiting, failed);
    return text.data;
}

static void the_queue_fits_80_columns(void) {
    char *json = jobs_json();
    struct acre_buf out;
    show(&out, show_jobs, 80, json);
    CHECK_STR(out.data,
              "ID  NAME      USER  STATE    GPUS   TIME  START   EXIT      WHERE/WHY\n"
              " 1  train     ada   running   0.5  5m00s  5m ago  -         gpu-a:3\n"
              "12  sleep 5   bob   queued    2x8  1m00s  in 5m   -         It asks for 16 GPU..\n"
              " 3  evil..7]  eve   failed      2     1s  -       signal 9  -\n"
              "SIMULATED GPUs: the processes are real, the devices are not.\n");
    acre_buf_finish(&out);
    free(json);
}

static void pipes_get_all_columns(void) {
    char *json = jobs_json();
    struct acre_buf out;
    show(&out, show_jobs, 0, json);
    CHECK_HAS(out.data, "ID  NAME            USER  PROJECT  STATE    GPUS  PRIO  TRY");
    CHECK_HAS(out.data, " 1  train           ada   vision   running   0.5     2    2");
    CHECK_HAS(out.data, "12  sleep 5         bob   -        queued    2x8     4    -");
    CHECK_HAS(out.data, " 3  evil\\x1b[2J[7]  ");
    CHECK_HAS(out.data, "in 5m   -         It asks for 16 GPUs; 3 are free.\n");
    CHECK_HAS(out.data, "signal 9  -\n");
    CHECK_HAS(out.data, "SIMULATED GPUs");
    CHECK(strchr(out.data, '\033') == NULL);
    acre_buf_finish(&out);
    free(json);
    show(&out, show_jobs, 0, "{\"jobs\":[],\"next\":null}");
    CHECK_STR(out.data, "No jobs are queued or running. ('acre queue --all' shows ended jobs.)\n");
    acre_buf_finish(&out);
    show(&out, show_jobs, 0, "{\"jobs\":[{}],\"next\":\"x\"}"); /* nothing known: '-' */
    CHECK_HAS(out.data, "There are more jobs; raise --limit to see them.\n");
    acre_buf_finish(&out);
}

static void a_page_has_every_fact(void) {
    struct acre_buf out, json;
    acre_buf_init(&json, 1 << 16);
    acre_buf_printf(&json, "{\"job\":%s}", running);
    show(&out, show_job, 0, json.data);
    CHECK_STR(out.data,
              "job 1  train  running\n"
              "  user       ada, project vision\n"
              "  command    python train.py\n"
              "  requested  GPUs 0.5, 20 GiB of each; CPUs 4.0; H100; zone=a; isolation mps\n"
              "  priority   2 (normal)\n"
              "  submitted  02:20:00 (10m ago)\n"
              "  started    02:25:00 (5m ago)\n"
              "  waited     5m00s\n"
              "  ran        5m00s\n"
              "  runs       2 started; 1 of 3 retries used\n"
              "  runs on    gpu-a  sim:gpu-a/3  share 0.5, 20 GiB  (SIMULATED)\n");
    acre_buf_finish(&out);
    acre_buf_clear(&json);
    acre_buf_printf(&json, "{\"job\":%s}", failed);
    show(&out, show_job, 0, json.data);
    CHECK_HAS(out.data, "  exit       signal 9\n"
                        "  peak RAM   2 GiB\n"
                        "  CPU time   1m01s\n"
                        "  GPU use    87 %\n");
    CHECK(strstr(out.data, "peak GPU") == NULL); /* nobody measured */
    acre_buf_finish(&out);
    acre_buf_finish(&json);
}

static void preemptions_are_counted_in_words(void) {
    static const struct {
        const char *json, *line;
    } rows[] = {
        {"{\"job\":{\"attempt\":2,\"max_retries\":1}}", "2 started; 0 of 1 retry used\n"},
        {"{\"job\":{\"attempt\":2,\"preemptions\":1}}",
         "2 started; 0 of 0 retries used; preempted once\n"},
        {"{\"job\":{\"attempt\":3,\"preemptions\":2}}",
         "3 started; 0 of 0 retries used; preempted 2 times\n"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_buf out;
        show(&out, show_job, 0, rows[i].json);
        CHECK_HAS(out.data, rows[i].line);
        acre_buf_finish(&out);
    }
}

static void why_is_one_paragraph_with_numbers_and_a_time(void) { /* POL-9 */
    struct acre_buf out, json;
    acre_buf_init(&json, 1 << 16);
    acre_buf_printf(&json, "{\"job\":%s}", waiting);
    show(&out, show_why, 0, json.data);
    CHECK_STR(
        out.data,
        "Job 12 is waiting (busy): It asks for 16 GPUs; 3 are free. What helps: Ask for 3, or "
        "wait. It is number 2 in the queue, with 1 ahead. It starts in about 5m (02:35:00), "
        "90 % likely between 02:33:00 and 02:50:00.\n");
    acre_buf_finish(&out);
    show(&out, show_submitted, 0, json.data);
    CHECK_STR(out.data, "job 12 queued, position 2, starts in about 5m (It asks for 16 GPUs; 3 are "
                        "free.)\n");
    acre_buf_finish(&out);
    show(&out, show_job_line, 0, json.data);
    CHECK_STR(out.data, "job 12 queued\n");
    acre_buf_finish(&out);
    acre_buf_clear(&json);
    acre_buf_printf(&json, "{\"job\":%s}", running);
    show(&out, show_why, 0, json.data);
    CHECK_STR(out.data, "Job 1 is not waiting: it is running on gpu-a:3.\n");
    acre_buf_finish(&out);
    acre_buf_finish(&json);
}

static void quiet_is_ids_alone(void) {
    struct acre_buf out;
    show(&out, show_job_ids, 0, "{\"job\":{\"id\":5}}");
    CHECK_STR(out.data, "5\n");
    acre_buf_finish(&out);
    show(&out, show_job_ids, 0, "{\"jobs\":[7,8,9],\"array\":7}");
    CHECK_STR(out.data, "7\n8\n9\n");
    acre_buf_finish(&out);
    show(&out, show_submitted, 0, "{\"jobs\":[7,8,9],\"array\":7}");
    CHECK_STR(out.data, "array 7 queued, 3 jobs: 7 to 9\n");
    acre_buf_finish(&out);
}

static void words_for_parts_of_a_job(void) {
    static const struct {
        const char *json, *state, *gpus, *exit, *where;
    } cases[] = {
        {"{\"state\":\"queued\",\"held\":true}", "held", "-", "-", "-"},
        {"{\"state\":\"running\",\"canceling\":true}", "canceling", "-", "-", "-"},
        {"{\"state\":\"canceled\",\"canceling\":true}", "canceled", "-", "-", "-"},
        {"{\"state\":\"completed\",\"request\":{\"gpus\":4,\"share_milli\":1000,\"nodes\":1},"
         "\"exit\":{\"kind\":\"exited\",\"code\":0}}",
         "completed", "4", "0", "-"},
        {"{\"state\":\"failed\",\"request\":{\"gpus\":1,\"share_milli\":0,"
         "\"gpu_memory_mib\":20480},\"exit\":{\"kind\":\"time limit\",\"code\":15}}",
         "failed", "20 GiB", "time limit", "-"},
        {"{\"state\":\"running\",\"request\":{\"gpus\":2,\"share_milli\":1000,\"nodes\":3},"
         "\"allocation\":[{\"node\":\"a\",\"gpu\":\"sim:a/0\"},{\"node\":\"a\",\"gpu\":\"sim:a/"
         "1\"},"
         "{\"node\":\"b\",\"gpu\":\"GPU-1\"},{\"node\":\"c\",\"gpu\":null}]}",
         "running", "3x2", "-", "a:0-1 b:GPU-1 c"},
        {"{\"allocation\":[{\"node\":\"a\",\"gpu\":\"s/0\"},{\"node\":\"a\",\"gpu\":\"s/2\"},"
         "{\"node\":\"a\",\"gpu\":\"s/3\"},{\"node\":\"a\",\"gpu\":\"s/4\"},{\"node\":\"a\","
         "\"gpu\":\"s/6\"},{\"node\":\"b\",\"gpu\":\"s/7\"},{\"node\":\"b\",\"gpu\":\"s/8\"}]}",
         "-", "-", "-", "a:0,2-4,6 b:7-8"},
        {"{}", "-", "-", "-", "-"},
        {"null", "-", "-", "-", "-"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char text[ACRE_SHOW_TEXT_MAX];
        json_t *job = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        REQUIRE(job != NULL);
        acre_test_context("%s", cases[i].json);
        CHECK_STR(show_state(job), cases[i].state);
        CHECK_STR(show_cluster_gpus(job, text, sizeof(text)), cases[i].gpus);
        CHECK_STR(show_exit(job, text, sizeof(text)), cases[i].exit);
        CHECK_STR(show_where(job, text, sizeof(text)), cases[i].where);
        json_decref(job);
    }
}

/* Everything else there is to show: function, canned answer, what is seen. */
static const struct {
    show_function *function;
    const char *json, *expect;
} answers[] = {
    {show_nodes,
     "{\"nodes\":[{\"name\":\"gpu-a\",\"simulated\":true,\"gpus\":8,\"free_milli\":3500,"
     "\"cpu_milli\":64000,\"cpu_free_milli\":60000,\"ram_mib\":524288,\"ram_free_mib\":1024,"
     "\"jobs\":3,\"drained\":false,\"labels\":[\"a=1\",\"b=2\"]},"
     "{\"name\":\"gpu-b\",\"gpus\":8,\"free_milli\":0,\"drained\":true,"
     "\"reason\":\"new fan\",\"cpu_milli\":4000,\"ram_mib\":2048}]}",
     "NODE   STATE    GPUS FREE  CPUS FREE          RAM FREE  JOBS  LABELS   NOTE       "
     "REASON\n"
     "gpu-a  ok        3.5 of 8   60 of 64  1 GiB of 512 GiB     3  a=1,b=2  SIMULATED  -\n"
     "gpu-b  drained     0 of 8          4             2 GiB     -  -        -          new "
     "fan\n"},
    {show_nodes, "{\"nodes\":[]}", "No nodes.\n"},
    {show_gpus_table,
     "{\"gpus\":[{\"id\":\"GPU-1\",\"node\":\"a\",\"model\":\"H200\",\"free_milli\":400,"
     "\"free_mib\":1024,\"utilization_pct\":7,\"simulated\":false,\"holders\":[{\"job\":3,"
     "\"user\":\"ada\",\"share_milli\":500},{\"reservation\":4,\"share_milli\":100}]},"
     "{\"id\":\"GPU-2\",\"state\":\"lost\"}]}",
     "NODE  GPU    MODEL  STATE  SHARE                  MEMORY FREE  USE  HELD BY"
     "                               NOTE  REASON\n"
     "a     GPU-1  H200   ok     [######....] 0.4 free        1 GiB  7 %  job 3 ada (0.5), "
     "reservation 4 (0.1)  -     -\n"
     "-     GPU-2  -      lost   -                                -    -  -"
     "                                     -     -\n"},
    {show_gpus_table, "{\"gpus\":[]}",
     "No GPUs. 'acre doctor' on the daemon's machine shows why.\n"},
    {show_reservation_list,
     "{\"reservations\":[{\"id\":1,\"user\":\"ada\",\"state\":\"pending\","
     "\"share_milli\":500,\"start\":\"2026-11-15T04:30:00.000Z\","
     "\"end\":\"2026-11-15T12:30:00.000Z\",\"devices\":[\"x\",\"y\"]}]}",
     "ID  USER  STATE    GPUS  SHARE  FROM      UNTIL      DEVICES\n"
     " 1  ada   pending     2    0.5  in 2h00m  in 10h00m  x,y\n"},
    {show_reservation,
     "{\"reservation\":{\"id\":1,\"state\":\"pending\","
     "\"start\":\"2026-11-15T04:30:00.000Z\",\"end\":\"2026-11-15T12:30:00.000Z\","
     "\"devices\":[\"x\",\"y\"]}}",
     "reservation 1 pending: 2 GPUs from 04:30:00 (in 2h00m) until 12:30:00 (in 10h00m)\n"},
    {show_reservation, "{\"reservation\":{\"id\":2,\"state\":\"active\",\"devices\":[\"x\"]}}",
     "reservation 2 active: 1 GPU from - until -\n"},
    {show_policy,
     "{\"policy\":\"fcfs\",\"backfill\":true,\"half_life\":\"7d\","
     "\"quotas\":[{},{}],\"idle_below\":0.05,\"x\":null}",
     "policy               fcfs\n"
     "backfill             true\n"
     "half_life            7d\n"
     "quotas               2 rows\n"
     "idle_below           0.05\n"
     "x                    -\n"},
    {show_quotas,
     "{\"quotas\":[{\"who\":\"user:*\",\"gpus\":4,\"memory\":\"160GiB\",\"running\":0,"
     "\"soft\":true}]}",
     "WHO     GPUS  GPU MEMORY  RUNNING  QUEUED  GPU HOURS  KIND\n"
     "user:*     4      160GiB        -       -          -  soft\n"},
    {show_usage,
     "{\"accounts\":[{\"project\":\"p\",\"user\":\"ada\",\"gpu_hours\":1.25,"
     "\"share\":0.5,\"used\":0.75,\"factor\":0.25,\"held_milli\":500,\"running\":1,"
     "\"queued\":0},{}]}",
     "PROJECT  USER  GPU HOURS    USED   SHARE  FACTOR  GPUS NOW  RUNNING  QUEUED\n"
     "p        ada         1.2  75.0 %  50.0 %   0.250       0.5        1       0\n"
     "-        -             -       -       -       -         -        -       -\n"},
    {show_tokens,
     "{\"tokens\":[{\"id\":1,\"user\":\"ada\",\"role\":\"user\",\"note\":\"n\","
     "\"created\":\"2026-11-15T02:00:00.000Z\",\"expires\":\"2026-11-15T02:20:00.000Z\"},"
     "{\"id\":2,\"revoked\":\"2026-11-15T02:20:00.000Z\"},{\"id\":3,\"parent\":2}]}",
     "ID  USER  PROJECT  ROLE  PARENT  CREATED  EXPIRES  STATE    NOTE\n"
     " 1  ada   -        user       -  30m ago  10m ago  expired  n\n"
     " 2  -     -        -          -  -        -        revoked  -\n"
     " 3  -     -        -          2  -        -        active   -\n"},
    {show_token, "{\"token\":{\"id\":2},\"secret\":\"acre_2_x\"}", "acre_2_x\n"},
    {show_audit,
     "{\"audit\":[{\"seq\":7,\"at\":\"2026-11-15T02:29:00.000Z\",\"actor\":\"user:ada\","
     "\"origin\":\"unix:1000\",\"action\":\"job submitted\",\"target\":\"job:42\","
     "\"result\":\"ok\",\"detail\":\"\"}]}",
     "SEQ  TIME      WHO       FROM       WHAT           TARGET  RESULT  DETAIL\n"
     "  7  02:29:00  user:ada  unix:1000  job submitted  job:42  ok      -\n"},
    {show_audit_verdict, "{\"ok\":true,\"count\":12,\"text\":\"\"}",
     "unchanged: 12 records checked\n"},
    {show_audit_verdict, "{\"ok\":true,\"count\":1,\"text\":\"\"}",
     "unchanged: 1 record checked\n"},
    {show_audit_verdict, "{\"ok\":false,\"count\":12,\"text\":\"record 9\"}",
     "CHANGED: record 9\n"},
    {show_stats,
     "{\"policy\":\"fcfs\",\"started\":\"2026-11-15T02:00:00.000Z\",\"simulated\":true,"
     "\"jobs\":{\"queued\":0,\"running\":3,\"completed\":9},\"wait_ms\":{\"mean\":1000,"
     "\"p50\":500,\"p90\":2000,\"p99\":61000},\"jobs_last_hour\":9,\"success_rate\":0.75,"
     "\"gpus\":{\"total\":16,\"free\":12,\"busy\":4,\"drained\":0,\"used_milli\":3500},"
     "\"scheduler\":{\"pass_last_us\":210,\"pass_max_us\":3400,\"paused\":true}}",
     "  policy     fcfs\n"
     "  up since   02:00:00 (30m ago)\n"
     "  GPUs       16 total, 12 free, 4 busy, 0 drained, 3.5 allocated; SIMULATED\n"
     "  jobs       running 3, completed 9\n"
     "  waits      mean 1s, median 0s, 90 % within 2s, 99 % within 1m01s\n"
     "  throughput 9 jobs ended in the last hour\n"
     "  success    75.0 % of the jobs that completed or failed\n"
     "  decision   last 0.21 ms, at most 3.40 ms\n"
     "  paused     no new jobs start (POST /orchestrator/start resumes)\n"},
    {show_stats, "{}", "  jobs       none\n"},
    {show_stats, "{\"jobs_last_hour\":1}",
     "  jobs       none\n  throughput 1 job ended in the last hour\n"},
    {show_why,
     "{\"job\":{\"id\":3,\"state\":\"failed\",\"exit\":{\"kind\":\"exited\",\"code\":2}}}",
     "Job 3 is not waiting: it has failed (status 2).\n"},
    {show_why, "{\"job\":{\"id\":3,\"state\":\"canceled\"}}",
     "Job 3 is not waiting: it was canceled.\n"},
    {show_submitted, "{\"array\":7,\"jobs\":[7]}", "array 7 queued, 1 job: 7 to 7\n"},
    {show_node_names, "{\"nodes\":[{\"name\":\"a\"},{\"name\":\"b\"}]}", "a\nb\n"},
    {show_gpu_ids, "{\"gpus\":[{\"id\":\"GPU-1\"}]}", "GPU-1\n"},
};

static void every_other_answer_has_its_view(void) {
    for (size_t i = 0; i < ACRE_COUNT(answers); i++) {
        struct acre_buf out;
        show(&out, answers[i].function, 0, answers[i].json);
        CHECK_STR(out.data, answers[i].expect);
        acre_buf_finish(&out);
    }
}

static void a_bar_shows_any_use(void) {
    static const struct {
        uint64_t used;
        const char *bar;
    } cases[] = {{0, "[..........]"},   {1, "[#.........]"},   {100, "[#.........]"},
                 {600, "[######....]"}, {601, "[#######...]"}, {1000, "[##########]"},
                 {5000, "[##########]"}};
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char text[32];
        CHECK_STR(show_bar(cases[i].used, text, sizeof(text)), cases[i].bar);
    }
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(the_queue_fits_80_columns),
    TEST(pipes_get_all_columns),
    TEST(a_page_has_every_fact),
    TEST(preemptions_are_counted_in_words),
    TEST(why_is_one_paragraph_with_numbers_and_a_time),
    TEST(quiet_is_ids_alone),
    TEST(words_for_parts_of_a_job),
    TEST(every_other_answer_has_its_view),
    TEST(a_bar_shows_any_use),
};

ACRE_TEST_MAIN(tests)
