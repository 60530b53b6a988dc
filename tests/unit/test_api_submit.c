/* Submissions: what is understood, and what is refused with which words (JOB-1, JOB-5, ALC-1). */
#include "api/submit.h"

#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { NOW_MS = 1000000 };

static struct acre_inventory *make_inventory(void) {
    struct acre_inventory *inventory = inventory_create();
    static const char *const models[] = {"NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "A100"};
    static const char *const ids[] = {"g0", "g1", "g2"};
    struct acre_engine_device devices[ACRE_COUNT(models)] = {0};
    for (size_t i = 0; i < ACRE_COUNT(models); i++) {
        devices[i] =
            (struct acre_engine_device){.id = ids[i], .model = models[i], .vendor = "NVIDIA"};
    }
    struct acre_engine_node node = {.name = "gpu-a",
                                    .cpu_milli = 64000,
                                    .ram_mib = 1 << 20,
                                    .devices = devices,
                                    .device_count = ACRE_COUNT(devices)};
    uint32_t index;
    REQUIRE_EQ(inventory_put(inventory, 0, &node, &index, NULL), 0);
    return inventory;
}

/* Jobs 1 to 5 exist and are completed. */
static bool find_job(void *context, uint64_t job, enum acre_job_state *ret_state) {
    (void)context;
    *ret_state = ACRE_JOB_COMPLETED;
    return job <= 5;
}

struct rig {
    struct acre_inventory *inventory;
    struct acre_names *names;
    json_t *body;
    struct acre_submission submission;
    struct acre_error err;
};

static int submit(struct rig *rig, const char *text) {
    rig->inventory = make_inventory();
    rig->names = acre_names_create();
    static const char *const here[] = {"NVIDIA", "zone=a", "rack=r 1"};
    for (size_t i = 0; i < ACRE_COUNT(here); i++) {
        acre_names_intern(rig->names, acre_str_from(here[i]));
    }
    for (uint32_t i = 0; i < inventory_devices(rig->inventory); i++) {
        acre_names_intern(rig->names, acre_str_from(inventory_device(rig->inventory, i)->model));
    }
    rig->err = (struct acre_error){0};
    int r = acre_json_parse("body", acre_str_from(text), 1 << 20, &rig->body, &rig->err);
    if (r == 0) {
        r = fields_check_body(submit_fields, rig->body, &rig->err);
    }
    struct submit_context context = {.names = rig->names,
                                     .inventory = rig->inventory,
                                     .now_ms = NOW_MS,
                                     .max_grace_ms = 600000,
                                     .find = find_job};
    return r == 0 ? submit_read(rig->body, &context, &rig->submission, &rig->err) : r;
}

static void finish(struct rig *rig) {
    json_decref(rig->body);
    acre_names_destroy(rig->names);
    inventory_destroy(rig->inventory);
    *rig = (struct rig){0};
}

static void bad_bodies_name_the_field(void) {
    static const struct {
        const char *body;
        int code;
        const char *says;
    } cases[] = {
        {"{}", ACRE_EINVALID, "command: absent"},
        {"{\"command\": \"\"}", ACRE_EINVALID, "command: empty"},
        {"{\"command\": \"  \\t\"}", ACRE_EINVALID, "command: empty"},
        {"{\"command\": []}", ACRE_EINVALID, "the program is missing"},
        {"{\"command\": [\"\"]}", ACRE_EINVALID, "the program is missing"},
        {"{\"command\": \"a\\u0000b\"}", ACRE_EINVALID, "\\u0000"},
        {"{\"command\": 7}", ACRE_EINVALID, "command"},
        {"{\"command\": \"x\", \"script\": \"y\"}", ACRE_EINVALID,
         "command: given together with script; accepted: either command or script"},
        {"{\"script\": \"\\n\"}", ACRE_EINVALID, "script: empty"},
        {"{\"command\": \"x\", \"grace\": \"601s\"}", ACRE_EINVALID,
         "grace: 10m1s is too long; accepted: at most 10m (max_grace in the policy)"},
        {"{\"command\": \"x\", \"grace\": \"3650d\"}", ACRE_EINVALID, "grace: "},
        {"{\"command\": \"x\", \"gpu\": 1}", ACRE_EINVALID, "gpu"},
        {"{\"command\": \"x\", \"gpus\": 0}", ACRE_EINVALID, "gpus: 0; accepted: 1 to 64 whole"},
        {"{\"command\": \"x\", \"gpus\": 0.05}", ACRE_EINVALID, "gpus: 0.05"},
        {"{\"command\": \"x\", \"gpus\": 0.12345}", ACRE_EINVALID, "steps of 0.001"},
        {"{\"command\": \"x\", \"gpus\": 1.5}", ACRE_EINVALID, "gpus: 1.5"},
        {"{\"command\": \"x\", \"gpus\": 65}", ACRE_EINVALID, "gpus: 65"},
        {"{\"command\": \"x\", \"gpus\": 1000000000}", ACRE_EINVALID, "gpus: 1000000000"},
        {"{\"command\": \"x\", \"gpus\": -1}", ACRE_EINVALID, "gpus"},
        {"{\"command\": \"x\", \"gpus\": \"two\"}", ACRE_EINVALID, "gpus"},
        {"{\"command\": \"x\", \"gpus\": 1, \"gpu_count\": 1}", ACRE_EINVALID,
         "also given as gpus"},
        {"{\"command\": \"x\", \"gpu_memory\": \"lots\"}", ACRE_EINVALID, "gpu_memory"},
        {"{\"command\": \"x\", \"memory_gb\": 0}", ACRE_EINVALID, "memory_gb: 0 MiB"},
        {"{\"command\": \"x\", \"memory\": \"8192TiB\"}", ACRE_EINVALID, "memory: "},
        {"{\"command\": \"x\", \"nodes\": 0}", ACRE_EINVALID, "nodes"},
        {"{\"command\": \"x\", \"priority\": 5}", ACRE_EINVALID, "priority"},
        {"{\"command\": \"x\", \"priority\": \"urgent\"}", ACRE_EINVALID, "urgent"},
        {"{\"command\": \"x\", \"isolation\": \"walls\"}", ACRE_EINVALID, "walls"},
        {"{\"command\": \"x\", \"max_retries\": 101}", ACRE_EINVALID, "max_retries"},
        {"{\"command\": \"x\", \"directory\": \"here\"}", ACRE_EINVALID, "an absolute path"},
        {"{\"command\": \"x\", \"environment\": {\"1A\": \"\"}}", ACRE_EINVALID, "'1A'"},
        {"{\"command\": \"x\", \"environment\": {\"\": \"\"}}", ACRE_EINVALID, "environment: ''"},
        {"{\"command\": \"x\", \"environment\": {\"A\": 1}}", ACRE_EINVALID, "environment"},
        {"{\"command\": \"x\", \"labels\": [\"zone\"]}", ACRE_EINVALID, "KEY=VALUE"},
        {"{\"command\": \"x\", \"labels\": [\"zone=b\"]}", ACRE_ENOFIT, "the label 'zone=b'"},
        {"{\"command\": \"x\", \"vendor\": \"zone=a\"}", ACRE_EINVALID, "vendor: 'zone=a'"},
        {"{\"command\": \"x\", \"vendor\": \"AMD\"}", ACRE_ENOFIT, "here is from 'AMD'"},
        {"{\"command\": \"x\", \"model\": \"Z9000\"}", ACRE_ENOFIT, "no GPU here is a 'Z9000'"},
        {"{\"command\": \"x\", \"model\": \"\"}", ACRE_ENOFIT, "available: NVIDIA H100"},
        {"{\"command\": \"x\", \"after\": [\"6\"]}", ACRE_ENOTFOUND, "there is no job 6"},
        {"{\"command\": \"x\", \"after\": [\"soon\"]}", ACRE_EINVALID, "after: 'soon'"},
        {"{\"command\": \"x\", \"after\": [\"bad:1\"]}", ACRE_EINVALID, "ok:ID"},
        {"{\"command\": \"x\", \"array\": \"5\"}", ACRE_EINVALID, "FIRST-LAST"},
        {"{\"command\": \"x\", \"array\": \"5-1\"}", ACRE_EINVALID, "array: '5-1'"},
        {"{\"command\": \"x\", \"array\": \"0-100000\"}", ACRE_EINVALID, "at most 100000 jobs"},
        {"{\"command\": \"x\", \"array\": \"0-9%0\"}", ACRE_EINVALID, "array: '0-9%0'"},
        {"{\"command\": \"x\", \"array\": \"0-9%\"}", ACRE_EINVALID, "array"},
        {"{\"command\": \"x\", \"name\": \"a\\nb\"}", ACRE_EINVALID, "name: 'a\\nb'"},
        {"{\"command\": \"x\", \"warn_signal\": \"KILL\"}", ACRE_EINVALID, "KILL"},
        {"{\"command\": \"x\", \"time_limit\": \"soon\"}", ACRE_EINVALID, "time_limit"},
        {"{\"command\": \"x\", \"hold\": \"yes\"}", ACRE_EINVALID, "hold"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct rig rig = {0};
        acre_test_context("%s", cases[i].body);
        CHECK_EQ(submit(&rig, cases[i].body), cases[i].code);
        CHECK_HAS(rig.err.text, cases[i].says);
        finish(&rig);
    }
}

/* ALC-1, ALC-2: by number, by fraction, by memory, by both, none. */
static void gpus_in_every_way(void) {
    static const struct {
        const char *rest;
        uint32_t gpus, milli;
        uint64_t mib;
    } cases[] = {
        {"", 1, 1000, 0},
        {", \"gpus\": 8", 8, 1000, 0},
        {", \"gpu_count\": 3", 3, 1000, 0},
        {", \"gpus\": 1.0", 1, 1000, 0},
        {", \"gpus\": 0.1", 1, 100, 0},
        {", \"gpus\": 0.3", 1, 300, 0},
        {", \"gpus\": 0.7", 1, 700, 0},
        {", \"gpus\": 0.125", 1, 125, 0},
        {", \"gpus\": 0.999", 1, 999, 0},
        {", \"gpu_memory\": \"20GiB\"", 1, 0, 20480},
        {", \"gpu_memory\": 512", 1, 0, 512},
        {", \"memory_gb\": 1.5, \"gpus\": 2", 2, 1000, 1536},
        {", \"gpus\": 0.5, \"gpu_memory\": \"8GiB\"", 1, 500, 8192},
        {", \"gpus\": 0, \"cpus\": 1", 0, 0, 0},
        {", \"gpus\": 0, \"memory\": \"1GiB\"", 0, 0, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct rig rig = {0};
        char body[200];
        snprintf(body, sizeof(body), "{\"command\": \"x\"%s}", cases[i].rest);
        acre_test_context("%s", body);
        REQUIRE_EQ(submit(&rig, body), 0);
        CHECK_U64(rig.submission.spec.request.gpus, cases[i].gpus);
        CHECK_U64(rig.submission.spec.request.milli, cases[i].milli);
        CHECK_U64(rig.submission.spec.request.mib, cases[i].mib);
        finish(&rig);
    }
}

/* Quotes as in YAML, so that the rows can be read. */
static void submit_annotated(struct rig *rig, const char *annotations, const char *rest, int code) {
    char body[1000];
    snprintf(body, sizeof(body), "{'command': 'x', 'annotations': %s%s}", annotations, rest);
    for (char *c = body; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    acre_test_context("%s", body);
    CHECK_EQ(submit(rig, body), code);
}

#define FRACTION "{'kaiwo.ai/gpu-fraction': '0.5'}"
#define POD(annotations, limits)                                                                   \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'x', 'annotations': " annotations    \
    "}, 'spec': {'containers': [{'name': 'c', 'resources': {'limits': " limits "}}]}}"

/* ALC-5 */
static void annotations_ask_as_fields_do(void) {
    static const struct {
        const char *annotations, *rest;
        uint32_t gpus, milli;
        uint64_t mib;
        enum acre_isolation isolation;
        const char *vendor;
    } rows[] = {
        {FRACTION, "", 1, 500, 0, ACRE_ISOLATION_NONE, ""},
        {"{'kaiwo.ai/gpu-fraction': 0.25, 'kaiwo.ai/gpu-memory': 4096}", "", 1, 250, 4096,
         ACRE_ISOLATION_NONE, ""},
        {"{'kaiwo.ai/gpu-memory': '4096', 'kaiwo.ai/gpu-sharing': true}", "", 1, 0, 4096,
         ACRE_ISOLATION_NONE, ""},
        {"{'kaiwo.ai/gpu-memory': '4096', 'kaiwo.ai/gpu-sharing': false}", "", 1, 1000, 4096,
         ACRE_ISOLATION_NONE, ""},
        {"{'nvidia.com/gpu': 2}", "", 2, 1000, 0, ACRE_ISOLATION_NONE, "NVIDIA"},
        {"{'nvidia.com/gpu': '1', 'kaiwo.ai/gpu-fraction': '0.3', 'kaiwo.ai/gpu-isolation': 'mps'}",
         "", 1, 300, 0, ACRE_ISOLATION_MPS, "NVIDIA"},
        {POD(FRACTION, "{'cpu': 4, 'nvidia.com/gpu': 1}"), "", 1, 500, 0, ACRE_ISOLATION_NONE,
         "NVIDIA"},
        {"{'kind': 'Job', 'spec': {'template': " POD(FRACTION, "null") "}}", "", 1, 500, 0,
         ACRE_ISOLATION_NONE, ""},
        {"{'spec': {'jobTemplate': {'spec': {'template': " POD("{}",
                                                               "{'nvidia.com/gpu': 8}") "}}}}",
         "", 8, 1000, 0, ACRE_ISOLATION_NONE, "NVIDIA"},
        {FRACTION, ", 'gpus': 0.5, 'exclusive': false", 1, 500, 0, ACRE_ISOLATION_NONE, ""},
        {FRACTION, ", 'gpu_memory': '2GiB', 'isolation': 'mps', 'vendor': 'nvidia'", 1, 500, 2048,
         ACRE_ISOLATION_MPS, "NVIDIA"},
        {"{'nvidia.com/gpu': 1}", ", 'gpu_count': 1, 'exclusive': true", 1, 1000, 0,
         ACRE_ISOLATION_NONE, "NVIDIA"},
        {"{'kaiwo.ai/gpu-memory': 2048}", ", 'memory_gb': 2", 1, 0, 2048, ACRE_ISOLATION_NONE, ""},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct rig rig = {0};
        submit_annotated(&rig, rows[i].annotations, rows[i].rest, 0);
        const struct acre_request *request = &rig.submission.spec.request;
        CHECK_STR(rig.err.text, "");
        CHECK_U64(request->gpus, rows[i].gpus);
        CHECK_U64(request->milli, rows[i].milli);
        CHECK_U64(request->mib, rows[i].mib);
        CHECK_EQ(request->isolation, rows[i].isolation);
        CHECK_STR(acre_names_text(rig.names, request->vendor), rows[i].vendor);
        finish(&rig);
    }
}

static void bad_annotations_name_the_key_and_contradictions_both(void) {
    static const struct {
        const char *annotations, *rest;
        int code;
        const char *says;
    } rows[] = {
        {"'0.5'", "", ACRE_EINVALID, "annotations"},
        {"{}", "", ACRE_EINVALID, "annotations: nothing there asks for a GPU; accepted: kaiwo.ai/"},
        {POD("{}", "{'cpu': 4}"), "", ACRE_EINVALID, "annotations: nothing there asks for a GPU"},
        {"{'kaiwo.ai/gpu-fraction': '0.05'}", "", ACRE_EINVALID,
         "annotations: kaiwo.ai/gpu-fraction: '0.05' is not a valid share; accepted: 0.1 to 1.0"},
        {"{'kaiwo.ai/gpu-fractoin': '0.5'}", "", ACRE_EINVALID,
         "annotations: unknown annotation 'kaiwo.ai/gpu-fractoin'"},
        {"{'kaiwo.ai/gpu-fraction': ['0.5']}", "", ACRE_EINVALID,
         "annotations: top level: 'kaiwo.ai/gpu-fraction' is a list; accepted: text, a number"},
        {"{'metadata': {'annotations': []}}", "", ACRE_EINVALID, "metadata.annotations: accepted"},
        {POD("{'nvidia.com/gpu': 1}", "{'nvidia.com/gpu': 1}"), "", ACRE_EINVALID, "given twice"},
        {"{'amd.com/gpu': 500}", "", ACRE_ENOFIT, "vendor: no GPU here is from 'AMD'"},
        {"{'amd.com/gpu': 1500}", "", ACRE_EINVALID,
         "amd.com/gpu: '1500' is not valid; accepted: 1 to 99"},
        {"{'nvidia.com/gpu': 65}", "", ACRE_EINVALID,
         "annotations: nvidia.com/gpu 65; accepted: at most 64 on a node"},
        {"{'kaiwo.ai/gpu-memory': 4294967296}", "", ACRE_EINVALID, "1 to 4294967295 MiB"},
        {FRACTION, ", 'gpus': 1", ACRE_EINVALID,
         "gpus: 1 contradicts kaiwo.ai/gpu-fraction 0.5 of the annotations"},
        {FRACTION, ", 'gpu_count': 0.4", ACRE_EINVALID, "gpu_count: 0.4 contradicts"},
        {FRACTION, ", 'gpus': 0, 'cpus': 1", ACRE_EINVALID, "gpus: 0 contradicts"},
        {"{'kaiwo.ai/gpu-memory': 2048}", ", 'gpus': 1", ACRE_EINVALID,
         "gpus: 1 contradicts kaiwo.ai/gpu-memory 2048"},
        {"{'kaiwo.ai/gpu-memory': 2048}", ", 'gpu_memory': '1GiB'", ACRE_EINVALID,
         "gpu_memory: 1024 MiB contradicts kaiwo.ai/gpu-memory 2048"},
        {"{'kaiwo.ai/gpu-fraction': 0.5, 'kaiwo.ai/gpu-isolation': 'mps'}",
         ", 'isolation': 'time-slicing'", ACRE_EINVALID,
         "isolation: time-slicing contradicts kaiwo.ai/gpu-isolation mps"},
        {FRACTION, ", 'exclusive': true", ACRE_EINVALID,
         "exclusive: true contradicts kaiwo.ai/gpu-fraction 0.5"},
        {"{'kaiwo.ai/gpu-fraction': 0.5, 'kaiwo.ai/gpu-sharing': 'true'}", ", 'exclusive': true",
         ACRE_EINVALID, "exclusive: true contradicts kaiwo.ai/gpu-sharing true"},
        {"{'nvidia.com/gpu': 1, 'kaiwo.ai/gpu-sharing': 'false'}", ", 'exclusive': false",
         ACRE_EINVALID, "exclusive: false contradicts kaiwo.ai/gpu-sharing false"},
        {"{'nvidia.com/gpu': 1}", ", 'vendor': 'AMD'", ACRE_EINVALID,
         "vendor: AMD contradicts nvidia.com/gpu"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct rig rig = {0};
        submit_annotated(&rig, rows[i].annotations, rows[i].rest, rows[i].code);
        CHECK_HAS(rig.err.text, rows[i].says);
        finish(&rig);
    }
}

static void every_field_is_understood(void) {
    struct rig rig = {0};
    REQUIRE_EQ(submit(&rig,
                      "{\"command\": [\"a\", \"b\"], \"name\": \"n\", \"project\": \"p\","
                      "\"environment\": {\"_A1\": \"x y\"}, \"directory\": \"/d\", \"gpus\": 2,"
                      "\"nodes\": 3, \"cpus\": 1.5, \"memory\": \"2GiB\", \"model\": [\"h100\"],"
                      "\"vendor\": \"NVIDIA\", \"labels\": [\"zone=a\", \"rack=r 1\"],"
                      "\"priority\": \"high\", \"estimate\": \"30m\", \"time_limit\": 3600,"
                      "\"max_retries\": 3, \"isolation\": \"mps\", \"exclusive\": true,"
                      "\"hold\": true, \"begin\": \"1h\", \"after\": [\"1\", \"ok:2\", \"any:3\"],"
                      "\"array\": \"10-19%2\", \"network\": false, \"smaller_on_oom\": true,"
                      "\"reservation\": 4, \"preemptible\": false, \"warn\": \"1m\","
                      "\"warn_signal\": \"USR2\", \"grace\": 5}"),
               0);
    const struct acre_job_spec *spec = &rig.submission.spec;
    const struct acre_request *request = &spec->request;
    CHECK_STR(rig.submission.project, "p");
    CHECK_STR(rig.submission.name, "n");
    CHECK_U64(request->replicas, 3);
    CHECK_U64(request->cpu_milli, 1500);
    CHECK_U64(request->ram_mib, 2048);
    CHECK_STR(acre_names_text(rig.names, request->models[0]), "NVIDIA H100 80GB HBM3");
    CHECK_STR(acre_names_text(rig.names, request->models[1]), "NVIDIA H100 PCIe");
    CHECK_U64(request->models[2], 0);
    CHECK_STR(acre_names_text(rig.names, request->vendor), "NVIDIA");
    CHECK_STR(acre_names_text(rig.names, request->labels[1]), "rack=r 1");
    CHECK_EQ(request->isolation, ACRE_ISOLATION_MPS);
    CHECK(request->exclusive);
    CHECK_U64(request->reservation, 4);
    CHECK_EQ(spec->priority, ACRE_PRIORITY_HIGH);
    CHECK_U64(spec->estimate_ms, 1800000);
    CHECK_U64(spec->limit_ms, 3600000);
    CHECK_U64(spec->max_retries, 3);
    CHECK(spec->held && spec->fixed && spec->smaller_on_oom);
    CHECK_U64(spec->begin_ms, NOW_MS + 3600000);
    REQUIRE(spec->dependency_count == 3);
    CHECK_EQ(spec->dependencies[0].kind, ACRE_DEPENDENCY_AFTER);
    CHECK_EQ(spec->dependencies[1].kind, ACRE_DEPENDENCY_AFTER_OK);
    CHECK_EQ(spec->dependencies[2].kind, ACRE_DEPENDENCY_AFTER_ANY);
    CHECK_U64(spec->dependencies[2].job, 3);
    CHECK_EQ(spec->dependencies[2].state, ACRE_JOB_COMPLETED);
    CHECK(spec->array != 0);
    CHECK_U64(spec->array_index, 10);
    CHECK_U64(spec->array_limit, 2);
    CHECK_U64(rig.submission.count, 10);
    CHECK(rig.submission.recipe.no_network);
    CHECK_U64(rig.submission.recipe.warn_ms, 60000);
    CHECK_U64(rig.submission.recipe.grace_ms, 5000);
    CHECK_EQ(rig.submission.recipe.warn_signal, SIGUSR2);
    CHECK_STR(rig.submission.recipe.directory, "/d");
    CHECK_U64(json_array_size(rig.submission.recipe.command), 2);
    finish(&rig);
}

static void a_begin_that_is_past_is_now(void) {
    struct rig rig = {0};
    REQUIRE_EQ(submit(&rig, "{\"command\": \"x\", \"begin\": \"1970-01-01T00:10:00Z\"}"), 0);
    CHECK_U64(rig.submission.spec.begin_ms, 0);
    finish(&rig);
    REQUIRE_EQ(submit(&rig, "{\"command\": \"x\", \"begin\": \"1970-01-01T00:20:00Z\"}"), 0);
    CHECK_U64(rig.submission.spec.begin_ms, 1200000);
    finish(&rig);
}

static const struct acre_test tests[] = {
    {"bad_bodies_name_the_field", bad_bodies_name_the_field, 0},
    {"gpus_in_every_way", gpus_in_every_way, 0},
    {"annotations_ask_as_fields_do", annotations_ask_as_fields_do, 0},
    {"bad_annotations_name_the_key_and_contradictions_both",
     bad_annotations_name_the_key_and_contradictions_both, 0},
    {"every_field_is_understood", every_field_is_understood, 0},
    {"a_begin_that_is_past_is_now", a_begin_that_is_past_is_now, 0},
};
ACRE_TEST_MAIN(tests)
