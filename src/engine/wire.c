/* wire.c - a start as one block of bytes: the fixed part, then arrays, then strings.
 *
 * The fixed part is struct acre_wire_job with its pointers left out of account; what they point
 * to follows in a fixed order, strings with their NULs. Decoding walks the same order and checks
 * every length against what is left: a block that is too short, or lacks a NUL, is refused. */
#include "engine/wire.h"

#include "core/str.h"

#include <stdlib.h>
#include <string.h>

/* Strings one after the other; how many there are until `end`. */
static uint32_t count_strings(const char *text, const char *end) {
    uint32_t count = 0;
    while (text < end) {
        text += strlen(text) + 1;
        count++;
    }
    return count;
}

int acre_wire_encode(const struct acre_wire_job *job, const struct acre_buf *environment,
                     struct acre_buf *out, struct acre_error *err) {
    acre_buf_append(out, job, sizeof(*job));
    acre_buf_append(out, job->groups, job->group_count * sizeof(*job->groups));
    acre_buf_append(out, job->rules, job->rule_count * sizeof(*job->rules));
    for (uint32_t i = 0; i < job->member_count; i++) {
        uint64_t length = environment[i].length;
        acre_buf_append(out, &length, sizeof(length));
        acre_buf_append(out, environment[i].data, environment[i].length);
    }
    for (uint32_t i = 0; i < job->argument_count; i++) {
        acre_buf_append(out, job->arguments[i], strlen(job->arguments[i]) + 1);
    }
    acre_buf_append(out, job->directory, strlen(job->directory) + 1);
    if (job->has_stdin) {
        acre_buf_append(out, job->stdin_text, job->stdin_bytes);
    }
    if (acre_buf_failed(out)) {
        return acre_fail(err, ACRE_ELIMIT,
                         "command, environment and input together are over %zu bytes", out->max);
    }
    return 0;
}

struct cursor {
    char *at, *end;
    bool failed;
};

static void *take(struct cursor *from, uint64_t size) {
    if (from->failed || size > (uint64_t)(from->end - from->at)) {
        from->failed = true;
        return NULL;
    }
    void *taken = from->at;
    from->at += size;
    return taken;
}

static char *take_string(struct cursor *from) {
    char *end = from->failed ? NULL : memchr(from->at, '\0', (size_t)(from->end - from->at));
    if (end == NULL) {
        from->failed = true;
        return NULL;
    }
    return take(from, (uint64_t)(end - from->at) + 1);
}

static char **take_environment(struct cursor *from) {
    uint64_t length = 0;
    const void *bytes = take(from, sizeof(length));
    if (bytes != NULL) {
        memcpy(&length, bytes, sizeof(length));
    }
    char *text = take(from, length);
    if (text == NULL || (length > 0 && text[length - 1] != '\0')) {
        from->failed = true;
        return NULL;
    }
    uint32_t count = count_strings(text, text + length);
    char **strings = acre_calloc((size_t)count + 1, sizeof(*strings));
    for (uint32_t i = 0; i < count; i++) {
        strings[i] = text;
        text += strlen(text) + 1;
    }
    return strings;
}

int acre_wire_decode(char *bytes, size_t length, struct acre_wire_job *ret_job,
                     struct acre_error *err) {
    struct cursor from = {.at = bytes, .end = bytes + length};
    struct acre_wire_job job;
    const void *head = take(&from, sizeof(job));
    if (head == NULL) {
        return acre_fail(err, ACRE_ECORRUPT, "a start of %zu bytes is too short", length);
    }
    memcpy(&job, head, sizeof(job));
    if (job.member_count == 0 || job.member_count > length || job.argument_count == 0 ||
        job.argument_count > length) {
        return acre_fail(err, ACRE_ECORRUPT, "a start without command or members");
    }
    job.groups = take(&from, (uint64_t)job.group_count * sizeof(*job.groups));
    job.rules = take(&from, (uint64_t)job.rule_count * sizeof(*job.rules));
    job.environment = acre_calloc(job.member_count, sizeof(*job.environment));
    for (uint32_t i = 0; i < job.member_count && !from.failed; i++) {
        job.environment[i] = take_environment(&from);
    }
    job.arguments = acre_calloc((size_t)job.argument_count + 1, sizeof(*job.arguments));
    for (uint32_t i = 0; i < job.argument_count; i++) {
        job.arguments[i] = take_string(&from);
    }
    job.directory = take_string(&from);
    job.stdin_text = job.has_stdin ? take(&from, job.stdin_bytes) : NULL;
    if (from.failed || from.at != from.end) {
        acre_wire_job_finish(&job);
        return acre_fail(err, ACRE_ECORRUPT, "a start of %zu bytes is damaged", length);
    }
    *ret_job = job;
    return 0;
}

void acre_wire_job_finish(struct acre_wire_job *job) {
    for (uint32_t i = 0; i < job->member_count; i++) {
        free(job->environment[i]);
    }
    free(job->environment);
    free(job->arguments);
}

void acre_fact_seal(struct acre_fact *fact) {
    fact->magic = ACRE_WIRE_MAGIC;
    fact->checksum = acre_hash_bytes(fact, offsetof(struct acre_fact, checksum));
}

bool acre_fact_is_whole(const struct acre_fact *fact) {
    return fact->magic == ACRE_WIRE_MAGIC &&
           fact->checksum == acre_hash_bytes(fact, offsetof(struct acre_fact, checksum)) &&
           memchr(fact->result.text, '\0', sizeof(fact->result.text)) != NULL;
}
