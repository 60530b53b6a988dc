/* Submissions: whatever the body, a job within every limit, or a refusal that can be read. */
#include "api/submit.h"
#include "fuzz.h"

#include <jansson.h>

enum { NOW_MS = 1000000, BODY_MAX_BYTES = 1 << 20 };

/* Jobs 1 to 5 exist, one for each way to have ended or not. */
static bool find_job(void *context, uint64_t job, enum acre_job_state *ret_state) {
    (void)context;
    *ret_state = job % 2 == 0 ? ACRE_JOB_COMPLETED : ACRE_JOB_FAILED;
    return job >= 1 && job <= 5;
}

/* Within the limits, and what is written for the store is read back. */
static void check(const struct acre_submission *submission, const struct acre_names *names) {
    ACRE_ASSERT(submission->count >= 1 && submission->count <= ACRE_JOB_ARRAY_MAX);
    ACRE_ASSERT(submission->spec.dependency_count <= ACRE_JOB_DEPENDENCIES_MAX);
    ACRE_ASSERT(submission->recipe.command != NULL || submission->recipe.script != NULL);
    struct acre_buf out;
    acre_buf_init(&out, ACRE_RECORD_SPEC_MAX);
    ACRE_ASSERT(acre_record_write_spec(names, &submission->spec, &submission->recipe, &out) == 0);
    json_t *json = NULL;
    struct acre_recipe recipe;
    struct acre_str text = {out.data, out.length};
    ACRE_ASSERT(acre_json_parse("spec", text, ACRE_RECORD_SPEC_MAX, &json, NULL) == 0);
    ACRE_ASSERT(acre_record_read_recipe(json, &recipe, NULL) == 0);
    ACRE_ASSERT(strcmp(recipe.directory, submission->recipe.directory) == 0);
    ACRE_ASSERT(recipe.no_network == submission->recipe.no_network &&
                recipe.warn_signal == submission->recipe.warn_signal &&
                recipe.grace_ms == submission->recipe.grace_ms);
    json_decref(json);
    acre_buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_inventory *inventory = inventory_create();
    struct acre_engine_device device = {.id = "g0", .model = "NVIDIA H100", .vendor = "NVIDIA"};
    struct acre_engine_node node = {.name = "gpu-a",
                                    .cpu_milli = 64000,
                                    .ram_mib = 1 << 20,
                                    .devices = &device,
                                    .device_count = 1};
    uint32_t index;
    inventory_put(inventory, 0, &node, &index, NULL);
    struct acre_names *names = acre_names_create();
    acre_names_intern(names, acre_str_from(device.model));
    acre_names_intern(names, acre_str_from(device.vendor));
    acre_names_intern(names, ACRE_STR("zone=a"));
    struct acre_submission *submission = acre_calloc(1, sizeof(*submission));
    struct submit_context context = {.names = names,
                                     .inventory = inventory,
                                     .now_ms = NOW_MS,
                                     .max_grace_ms = 600000,
                                     .find = find_job};
    struct acre_str text = {(const char *)data, size};
    struct acre_error err = {0};
    json_t *body = NULL;
    int r = acre_json_parse("body", text, BODY_MAX_BYTES, &body, &err);
    r = r == 0 ? fields_check_body(submit_fields, body, &err) : r;
    r = r == 0 ? submit_read(body, &context, submission, &err) : r;
    if (r == 0) {
        check(submission, names);
    } else {
        acre_fuzz_check_error(&err, r);
    }
    json_decref(body);
    free(submission);
    acre_names_destroy(names);
    inventory_destroy(inventory);
    return 0;
}
