/* shim_wire.c - a start as one block of bytes: the fixed part, then arrays, then strings.
 *
 * The fixed part is struct wire_job with its pointers left out of account; what they point
 * to follows in a fixed order, strings with their NULs. Decoding walks the same order and checks
 * every length against what is left: a block that is too short, or lacks a NUL, is refused. */
#include "engine/shim_wire.h"

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

int wire_encode(const struct wire_job *job, const struct acre_buf *own, struct acre_buf *out,
                struct acre_error *err) {
    struct wire_job head;
    memcpy(&head, job, sizeof(head)); /* padding too: it travels */
    head.own_bytes = 0;
    for (uint32_t i = 0; i < job->member_count; i++) {
        head.own_bytes += own[i].length;
    }
    acre_buf_append(out, &head, sizeof(head));
    uint64_t end = 0;
    for (uint32_t i = 0; i < job->member_count; i++) {
        end += own[i].length;
        acre_buf_append(out, &end, sizeof(end));
    }
    acre_buf_append(out, job->groups, job->group_count * sizeof(*job->groups));
    acre_buf_append(out, job->rules, job->rule_count * sizeof(*job->rules));
    acre_buf_append(out, job->common, job->common_bytes);
    for (uint32_t i = 0; i < job->member_count; i++) {
        acre_buf_append(out, own[i].data, own[i].length);
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
                         "command, environment and input together are longer than %zu bytes",
                         out->max);
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

/* Strings of which the last one, too, has its NUL. */
static char *take_strings(struct cursor *from, uint64_t length) {
    char *text = take(from, length);
    if (text != NULL && length > 0 && text[length - 1] != '\0') {
        from->failed = true;
    }
    return text;
}

static char *own_part(const struct wire_job *job, uint32_t member, const char **ret_end) {
    *ret_end = job->own + job->own_ends[member];
    return job->own + (member > 0 ? job->own_ends[member - 1] : 0);
}

/* Every part of `own` lies in it, behind the one before, and ends with a NUL. */
static bool has_good_ends(const struct wire_job *job) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < job->member_count; i++) {
        uint64_t end = job->own_ends[i];
        if (end < before || end > job->own_bytes || (end > before && job->own[end - 1] != '\0')) {
            return false;
        }
        before = end;
    }
    return before == job->own_bytes;
}

static void take_environment(struct cursor *from, struct wire_job *job) {
    job->common = take_strings(from, job->common_bytes);
    job->own = take_strings(from, job->own_bytes);
    if (from->failed || !has_good_ends(job)) {
        from->failed = true;
        return;
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < job->member_count; i++) {
        const char *end;
        const char *text = own_part(job, i, &end);
        most = ACRE_MAX(most, count_strings(text, end));
    }
    size_t count = (size_t)most + count_strings(job->common, job->common + job->common_bytes);
    job->environment = acre_calloc(count + 1, sizeof(*job->environment));
}

bool wire_has_name(const char *text, size_t length, const char *assignment) {
    size_t name = strcspn(assignment, "=") + 1;
    for (const char *at = text; at < text + length; at += strlen(at) + 1) {
        if (strncmp(at, assignment, name) == 0) {
            return true;
        }
    }
    return false;
}

char **wire_environment(struct wire_job *job, uint32_t member) {
    ACRE_ASSERT(member < job->member_count);
    const char *end;
    char *own = own_part(job, member, &end);
    size_t length = (size_t)(end - own), count = 0;
    for (char *at = own; at < end; at += strlen(at) + 1) {
        job->environment[count++] = at;
    }
    for (char *at = job->common; at < job->common + job->common_bytes; at += strlen(at) + 1) {
        if (!wire_has_name(own, length, at)) {
            job->environment[count++] = at;
        }
    }
    job->environment[count] = NULL;
    return job->environment;
}

int wire_decode(char *bytes, size_t length, struct wire_job *ret_job, struct acre_error *err) {
    struct cursor from = {.at = bytes, .end = bytes + length};
    struct wire_job job;
    const void *head = take(&from, sizeof(job));
    if (head == NULL) {
        return acre_fail(err, ACRE_ECORRUPT, "a start message of %zu bytes is too short", length);
    }
    memcpy(&job, head, sizeof(job));
    if (job.member_count == 0 || job.member_count > length || job.argument_count == 0 ||
        job.argument_count > length) {
        return acre_fail(err, ACRE_ECORRUPT, "a start message without a command or members");
    }
    job.own_ends = take(&from, (uint64_t)job.member_count * sizeof(*job.own_ends));
    job.groups = take(&from, (uint64_t)job.group_count * sizeof(*job.groups));
    job.rules = take(&from, (uint64_t)job.rule_count * sizeof(*job.rules));
    job.environment = NULL; /* what came in its place means nothing here */
    take_environment(&from, &job);
    job.arguments = acre_calloc((size_t)job.argument_count + 1, sizeof(*job.arguments));
    for (uint32_t i = 0; i < job.argument_count; i++) {
        job.arguments[i] = take_string(&from);
    }
    job.directory = take_string(&from);
    job.stdin_text = job.has_stdin ? take(&from, job.stdin_bytes) : NULL;
    if (from.failed || from.at != from.end) {
        wire_job_finish(&job);
        return acre_fail(err, ACRE_ECORRUPT, "a start message of %zu bytes is damaged", length);
    }
    *ret_job = job;
    return 0;
}

void wire_job_finish(struct wire_job *job) {
    free(job->environment);
    free(job->arguments);
    job->environment = job->arguments = NULL;
}

void fact_seal(struct fact *fact) {
    fact->magic = ACRE_WIRE_MAGIC;
    fact->checksum = acre_hash_bytes(fact, offsetof(struct fact, checksum));
}

bool fact_is_whole(const struct fact *fact) {
    return fact->magic == ACRE_WIRE_MAGIC &&
           fact->checksum == acre_hash_bytes(fact, offsetof(struct fact, checksum)) &&
           memchr(fact->result.text, '\0', sizeof(fact->result.text)) != NULL;
}
