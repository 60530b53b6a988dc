/* policy.c - the rules of the queue as rows: a key, a kind, where its value lives, its range.
 *
 * One table for the policy, one for a quota, one for a share; reading, writing and the list of
 * accepted keys all walk them, so a key is written down once. Reading fills a copy and hands it
 * over only when every key is right. Everything is written so that it reads back exactly:
 * durations in words ("1h30m"), memory in MiB, shares of GPUs with their decimals. */
#include "sched/policy.h"

#include "core/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 64, ROWS_MAX = 32 };
#define MILLI_MAX (UINT64_C(1000) * 1000 * 1000 * 1000) /* 10^9 GPUs: far above any cluster */
#define HOURS_MAX (UINT64_C(1000) * 1000 * 1000 * 1000) /* 10^9 GPUs for 40 days */
#define DAY_MS    (UINT64_C(24) * 3600 * 1000)

static const struct acre_policy defaults = {
    .kind = ACRE_POLICY_FAIR_SHARE,
    .backfill = true,
    .preemption = true,
    .half_life_ms = 7 * DAY_MS,
    .priority_age_ms = DAY_MS,
    .preempt_min_run_ms = 60 * 1000,
    .preempt_grace_ms = 30 * 1000,
    .retry_base_ms = 10 * 1000,
    .retry_max_ms = 30 * 60 * 1000,
    .default_estimate_ms = 3600 * 1000,
    .idle = ACRE_IDLE_ON_PRESSURE,
    .idle_below_milli = 50,
    .idle_after_ms = 10 * 60 * 1000,
    .idle_warn_ms = 2 * 60 * 1000,
    .limits = {.queued_jobs = 10000,
               .queued_mib = 64,
               .array = 1000,
               .names = 10000,
               .tokens = 100,
               .followers = 128,
               .connections = 200,
               .logs_mib = 10 * 1024,
               .grace_ms = 10 * 60 * 1000,
               .memory_milli = 500},
};

const struct acre_policy *acre_policy_default(void) {
    return &defaults;
}

static const char *const policy_names[] = {
#define X(name, text, meaning) text,
    ACRE_POLICIES(X)
#undef X
};
static const char *const idle_names[] = {
    [ACRE_IDLE_ON_PRESSURE] = "on-pressure",
    [ACRE_IDLE_ALWAYS] = "always",
    [ACRE_IDLE_NEVER] = "never",
};

const char *acre_policy_name(enum acre_policy_kind kind) {
    ACRE_ASSERT((unsigned)kind < ACRE_POLICY_COUNT);
    return policy_names[kind];
}

enum policy_value_kind {
    KIND_POLICY,   /* a name of policy_names */
    KIND_IDLE,     /* a name of idle_names */
    KIND_BOOL,     /* true or false */
    KIND_DURATION, /* "7d", or a number of seconds */
    KIND_MILLI,    /* a number with at most three decimals, kept in thousandths */
    KIND_MIB,      /* "160GiB", or a number of MiB */
    KIND_COUNT,    /* a whole number */
    KIND_WHO,      /* "user:ada"; "user:*" where the range says so */
    KIND_QUOTAS,   /* lists of objects */
    KIND_SHARES,
};

struct policy_row {
    const char *key;
    enum policy_value_kind kind;
    uint16_t size; /* of the field */
    uint32_t offset;
    uint64_t min, max;
};
#define ROW(record, key, kind, field, min, max)                                                    \
    { key, kind, sizeof(((struct record *)0)->field), offsetof(struct record, field), min, max }
#define POLICY(key, kind, field, min, max) ROW(acre_policy, key, kind, field, min, max)
#define QUOTA(key, kind, field, min, max)  ROW(acre_quota, key, kind, field, min, max)
#define SHARE(key, kind, field, min, max)  ROW(acre_share, key, kind, field, min, max)

/* clang-format off */
static const struct policy_row policy_rows[] = {
    POLICY("policy",           KIND_POLICY,   kind,                0,    0),
    POLICY("backfill",         KIND_BOOL,     backfill,            0,    0),
    POLICY("preemption",       KIND_BOOL,     preemption,          0,    0),
    POLICY("half_life",        KIND_DURATION, half_life_ms,        1000, ACRE_DURATION_MAX_MS),
    POLICY("priority_age",     KIND_DURATION, priority_age_ms,     1000, ACRE_DURATION_MAX_MS),
    POLICY("preempt_min_run",  KIND_DURATION, preempt_min_run_ms,  0,    ACRE_DURATION_MAX_MS),
    POLICY("preempt_grace",    KIND_DURATION, preempt_grace_ms,    0,    DAY_MS),
    POLICY("retry_base",       KIND_DURATION, retry_base_ms,       1,    ACRE_DURATION_MAX_MS),
    POLICY("retry_max",        KIND_DURATION, retry_max_ms,        1,    ACRE_DURATION_MAX_MS),
    POLICY("default_estimate", KIND_DURATION, default_estimate_ms, 1000, ACRE_DURATION_MAX_MS),
    POLICY("idle",             KIND_IDLE,     idle,                0,    0),
    POLICY("idle_below",       KIND_MILLI,    idle_below_milli,    1,    1000),
    POLICY("idle_after",       KIND_DURATION, idle_after_ms,       1000, ACRE_DURATION_MAX_MS),
    POLICY("idle_warn",        KIND_DURATION, idle_warn_ms,        0,    ACRE_DURATION_MAX_MS),
    POLICY("private_processes", KIND_BOOL,   private_processes,   0,    0),
    POLICY("max_queued_jobs",  KIND_COUNT,    limits.queued_jobs,  1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_queued_size",  KIND_MIB,      limits.queued_mib,   1,    ACRE_MIB_MAX),
    POLICY("max_array",        KIND_COUNT,    limits.array,        1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_names",        KIND_COUNT,    limits.names,        1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_tokens",       KIND_COUNT,    limits.tokens,       1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_followers",    KIND_COUNT,    limits.followers,    1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_connections",  KIND_COUNT,    limits.connections,  1,    ACRE_POLICY_JOBS_MAX),
    POLICY("max_logs",         KIND_MIB,      limits.logs_mib,     1,    ACRE_MIB_MAX),
    POLICY("max_grace",        KIND_DURATION, limits.grace_ms,     0,    DAY_MS),
    POLICY("default_memory",   KIND_MILLI,    limits.memory_milli, 1,    1000),
    POLICY("quotas",           KIND_QUOTAS,   quotas,              0,    ACRE_POLICY_QUOTAS_MAX),
    POLICY("shares",           KIND_SHARES,   shares,              0,    ACRE_POLICY_SHARES_MAX),
};
static const struct policy_row quota_rows[] = {
    QUOTA("who",       KIND_WHO,   who,       1, 0),
    QUOTA("gpus",      KIND_MILLI, gpu_milli, 1, MILLI_MAX),
    QUOTA("memory",    KIND_MIB,   gpu_mib,   1, ACRE_MIB_MAX),
    QUOTA("running",   KIND_COUNT, running,   1, UINT32_MAX),
    QUOTA("queued",    KIND_COUNT, queued,    1, UINT32_MAX),
    QUOTA("gpu_hours", KIND_COUNT, gpu_hours, 1, HOURS_MAX),
    QUOTA("soft",      KIND_BOOL,  soft,      0, 0),
};
static const struct policy_row share_rows[] = {
    SHARE("who",    KIND_WHO,   who,    0, 0),
    SHARE("weight", KIND_COUNT, weight, 1, 1000 * 1000),
};
/* clang-format on */
_Static_assert(ACRE_COUNT(policy_rows) <= ROWS_MAX, "raise ROWS_MAX");

static uint64_t load(const void *record, const struct policy_row *row) {
    const char *at = (const char *)record + row->offset;
    if (row->size == sizeof(uint64_t)) {
        uint64_t wide;
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
    if (row->size == sizeof(uint32_t)) {
        uint32_t narrow;
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
    }
    ACRE_ASSERT(row->size == sizeof(bool));
    return *at != 0;
}

static void save(void *record, const struct policy_row *row, uint64_t value) {
    char *at = (char *)record + row->offset;
    if (row->size == sizeof(uint64_t)) {
        memcpy(at, &value, sizeof(value));
    } else if (row->size == sizeof(uint32_t)) {
        ACRE_ASSERT(value <= UINT32_MAX);
        uint32_t narrow = (uint32_t)value;
        memcpy(at, &narrow, sizeof(narrow));
    } else {
        ACRE_ASSERT(row->size == sizeof(bool));
        *at = value != 0;
    }
}

/* "key: 'value'; accepted: ..." */
static int refuse(const struct policy_row *row, const json_t *value, const char *accepted,
                  struct acre_error *err) {
    char shown[SHOWN_BYTES];
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    acre_str_show(acre_str_from(text != NULL ? text : json_string_value(value)), shown,
                  sizeof(shown));
    free(text);
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not valid; accepted: %s", row->key, shown,
                     accepted);
}

static int read_name(const struct policy_row *row, const json_t *value, const char *const *names,
                     size_t count, void *record, struct acre_error *err) {
    char choices[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), names[i]) == 0) {
            save(record, row, i);
            return 0;
        }
        used += (size_t)snprintf(choices + used, sizeof(choices) - used, "%s%s", i > 0 ? ", " : "",
                                 names[i]);
        ACRE_ASSERT(used < sizeof(choices));
    }
    return refuse(row, value, choices, err);
}

static int read_bool(const struct policy_row *row, const json_t *value, void *record,
                     struct acre_error *err) {
    if (!json_is_boolean(value)) {
        return refuse(row, value, "true or false", err);
    }
    save(record, row, json_is_true(value));
    return 0;
}

/* A number with at most three decimals, in thousandths. A double holds 15 digits: three of them
 * behind a point are exact up to the largest value accepted, so the test for a fourth is sound. */
static bool thousandths(const json_t *value, uint64_t *ret_milli) {
    double scaled = json_number_value(value) * 1000.0;
    if (!json_is_number(value) || !(scaled >= 0 && scaled <= 4e15) ||
        fabs(scaled - round(scaled)) > 1e-3) {
        return false;
    }
    *ret_milli = (uint64_t)llround(scaled);
    return true;
}

static int read_duration(const struct policy_row *row, const json_t *value, void *record,
                         struct acre_error *err) {
    uint64_t ms = UINT64_MAX;
    bool good = json_is_string(value)
                    ? acre_parse_duration(row->key, json_string_value(value), &ms, NULL) == 0
                    : thousandths(value, &ms);
    if (!good || ms < row->min || ms > row->max) {
        char low[32], high[32], accepted[160];
        snprintf(accepted, sizeof(accepted),
                 "a number of seconds or a duration like 1h30m, from %s to %s",
                 acre_format_duration(row->min, low, sizeof(low)),
                 acre_format_duration(row->max, high, sizeof(high)));
        return refuse(row, value, accepted, err);
    }
    save(record, row, ms);
    return 0;
}

static int read_milli(const struct policy_row *row, const json_t *value, void *record,
                      struct acre_error *err) {
    uint64_t milli = UINT64_MAX;
    if (!thousandths(value, &milli) || milli < row->min || milli > row->max) {
        char low[32], high[32], accepted[96];
        snprintf(accepted, sizeof(accepted), "a number from %s to %s in steps of 0.001",
                 acre_format_milli(row->min, low, sizeof(low)),
                 acre_format_milli(row->max, high, sizeof(high)));
        return refuse(row, value, accepted, err);
    }
    save(record, row, milli);
    return 0;
}

static bool whole(const struct policy_row *row, const json_t *value, uint64_t *ret_count) {
    json_int_t number = json_integer_value(value); /* 0 when it is something else */
    *ret_count = (uint64_t)number;
    return json_is_integer(value) && number >= 0 && (uint64_t)number >= row->min &&
           (uint64_t)number <= row->max;
}

static int read_mib(const struct policy_row *row, const json_t *value, void *record,
                    struct acre_error *err) {
    uint64_t mib;
    bool good = json_is_string(value)
                    ? acre_parse_mib(row->key, json_string_value(value), &mib, NULL) == 0
                    : whole(row, value, &mib);
    if (!good) {
        return refuse(row, value, "a number of MiB or a size like 160GiB, at least 1 MiB", err);
    }
    save(record, row, mib);
    return 0;
}

static int read_count(const struct policy_row *row, const json_t *value, void *record,
                      struct acre_error *err) {
    uint64_t count;
    if (!whole(row, value, &count)) {
        char accepted[80];
        snprintf(accepted, sizeof(accepted), "whole numbers from %" PRIu64 " to %" PRIu64, row->min,
                 row->max);
        return refuse(row, value, accepted, err);
    }
    save(record, row, count);
    return 0;
}

static int read_who(const struct policy_row *row, const json_t *value, void *record,
                    struct acre_error *err) {
    static const char *const kinds[] = {"user:", "project:"};
    bool everybody = row->min == 1;
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    for (size_t i = 0; i < ACRE_COUNT(kinds); i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(text, kinds[i], length) != 0) {
            continue;
        }
        if (acre_str_is_name(acre_str_from(text + length), ACRE_POLICY_NAME_MAX) ||
            (everybody && strcmp(text + length, "*") == 0)) {
            bool copied =
                acre_str_copy((char *)record + row->offset, row->size, acre_str_from(text));
            ACRE_ASSERT(copied);
            return 0;
        }
    }
    return refuse(row, value,
                  everybody ? "user:NAME, project:NAME, user:* or project:*"
                            : "user:NAME or project:NAME",
                  err);
}

static int read_record(const struct policy_row *rows, size_t count, const json_t *object,
                       void *record, struct acre_error *err);

/* The list of a policy: `size` bytes each at `list`. */
static int read_list(const struct policy_row *row, const json_t *value,
                     const struct policy_row *rows, size_t row_count, size_t size,
                     struct acre_policy *policy, uint32_t *ret_count, struct acre_error *err) {
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > row->max) {
        char accepted[64];
        snprintf(accepted, sizeof(accepted), "a list of at most %" PRIu64 " objects", row->max);
        return refuse(row, value, accepted, err);
    }
    char *list = (char *)policy + row->offset;
    memset(list, 0, row->max * size);
    for (size_t i = 0; i < count; i++) {
        char *record = list + i * size;
        const json_t *object = json_array_get(value, i);
        int r = read_record(rows, row_count, object, record, err);
        if (r < 0) {
            return acre_fail_in(err, r, "%s[%zu]", row->key, i);
        }
        const char *who = record + rows[0].offset;
        if (who[0] == '\0') {
            return acre_fail(err, ACRE_EINVALID, "%s[%zu]: who: required", row->key, i);
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(list + j * size + rows[0].offset, who) == 0) {
                return acre_fail(err, ACRE_EINVALID, "%s[%zu]: who: '%s' appears twice", row->key,
                                 i, who);
            }
        }
    }
    *ret_count = (uint32_t)count;
    return 0;
}

static int read_value(const struct policy_row *row, const json_t *value, void *record,
                      struct acre_error *err) {
    struct acre_policy *policy = record; /* of lists only */
    switch (row->kind) {
    case KIND_POLICY:
        return read_name(row, value, policy_names, ACRE_COUNT(policy_names), record, err);
    case KIND_IDLE:
        return read_name(row, value, idle_names, ACRE_COUNT(idle_names), record, err);
    case KIND_BOOL:
        return read_bool(row, value, record, err);
    case KIND_DURATION:
        return read_duration(row, value, record, err);
    case KIND_MILLI:
        return read_milli(row, value, record, err);
    case KIND_MIB:
        return read_mib(row, value, record, err);
    case KIND_COUNT:
        return read_count(row, value, record, err);
    case KIND_WHO:
        return read_who(row, value, record, err);
    case KIND_QUOTAS:
        return read_list(row, value, quota_rows, ACRE_COUNT(quota_rows), sizeof(struct acre_quota),
                         policy, &policy->quota_count, err);
    case KIND_SHARES:
        return read_list(row, value, share_rows, ACRE_COUNT(share_rows), sizeof(struct acre_share),
                         policy, &policy->share_count, err);
    }
    ACRE_ASSERT(false); /* a kind without a reader */
    return ACRE_EINTERNAL;
}

static int read_record(const struct policy_row *rows, size_t count, const json_t *object,
                       void *record, struct acre_error *err) {
    const char *keys[ROWS_MAX];
    for (size_t i = 0; i < count; i++) {
        keys[i] = rows[i].key;
    }
    if (!json_is_object(object)) {
        return acre_fail(err, ACRE_EINVALID, "not an object; accepted: {\"name\": value, ...}");
    }
    int r = acre_json_only_keys(object, keys, count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const json_t *value = json_object_get(object, rows[i].key);
        if (value != NULL && !json_is_null(value)) {
            r = read_value(&rows[i], value, record, err);
        }
    }
    return r;
}

/* What one key alone cannot say. */
static int check(struct acre_policy *policy, struct acre_error *err) {
    char a[32], b[32];
    if (policy->retry_base_ms > policy->retry_max_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "retry_base: %s is longer than retry_max; accepted: at most %s",
                         acre_format_duration(policy->retry_base_ms, a, sizeof(a)),
                         acre_format_duration(policy->retry_max_ms, b, sizeof(b)));
    }
    if (policy->idle_warn_ms > policy->idle_after_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "idle_warn: %s is longer than idle_after; accepted: at most %s",
                         acre_format_duration(policy->idle_warn_ms, a, sizeof(a)),
                         acre_format_duration(policy->idle_after_ms, b, sizeof(b)));
    }
    for (uint32_t i = 0; i < policy->share_count; i++) {
        struct acre_share *share = &policy->shares[i];
        share->weight = share->weight == 0 ? 1 : share->weight; /* named without a weight */
    }
    return 0;
}

int acre_policy_read(const json_t *object, const struct acre_policy *base,
                     struct acre_policy *ret_policy, struct acre_error *err) {
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    *policy = *base;
    int r = read_record(policy_rows, ACRE_COUNT(policy_rows), object, policy, err);
    if (r == 0) {
        r = check(policy, err);
    }
    if (r == 0) {
        *ret_policy = *policy;
    }
    free(policy);
    return r;
}

int acre_policy_load(const char *name, struct acre_str text, const struct acre_policy *base,
                     struct acre_policy *ret_policy, struct acre_error *err) {
    json_t *root;
    int r = acre_json_parse(name, text, ACRE_POLICY_BYTES_MAX, &root, err);
    if (r < 0) {
        return r;
    }
    r = acre_policy_read(root, base, ret_policy, err);
    json_decref(root);
    return r < 0 ? acre_fail_in(err, r, "%s", name) : 0;
}

static void write_record(const struct policy_row *rows, size_t count, const void *record,
                         struct acre_json *json);

static void write_list(const struct policy_row *rows, size_t row_count, const char *list,
                       size_t size, uint32_t count, struct acre_json *json) {
    acre_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        write_record(rows, row_count, list + i * size, json);
    }
    acre_json_array_end(json);
}

static void write_value(const struct policy_row *row, const void *record, struct acre_json *json) {
    const struct acre_policy *policy = record; /* of lists only */
    char text[32];
    switch (row->kind) {
    case KIND_POLICY:
        acre_json_string(json, policy_names[load(record, row)]);
        return;
    case KIND_IDLE:
        acre_json_string(json, idle_names[load(record, row)]);
        return;
    case KIND_BOOL:
        acre_json_bool(json, load(record, row) != 0);
        return;
    case KIND_DURATION:
        acre_json_string(json, acre_format_duration(load(record, row), text, sizeof(text)));
        return;
    case KIND_MILLI:
        if (load(record, row) % 1000 == 0) {
            acre_json_u64(json, load(record, row) / 1000);
        } else {
            acre_json_double(json, (double)load(record, row) / 1000.0, 3);
        }
        return;
    case KIND_MIB:
    case KIND_COUNT:
        acre_json_u64(json, load(record, row));
        return;
    case KIND_WHO:
        acre_json_string(json, (const char *)record + row->offset);
        return;
    case KIND_QUOTAS:
        write_list(quota_rows, ACRE_COUNT(quota_rows), (const char *)policy->quotas,
                   sizeof(struct acre_quota), policy->quota_count, json);
        return;
    case KIND_SHARES:
        write_list(share_rows, ACRE_COUNT(share_rows), (const char *)policy->shares,
                   sizeof(struct acre_share), policy->share_count, json);
        return;
    }
    ACRE_ASSERT(false); /* a kind without a writer */
}

/* 0 is written by no kind that refuses it: in a quota it means "no limit". */
static bool is_written(const struct policy_row *row, const void *record) {
    bool number = row->kind == KIND_MILLI || row->kind == KIND_MIB || row->kind == KIND_COUNT;
    return !number || load(record, row) >= row->min;
}

static void write_record(const struct policy_row *rows, size_t count, const void *record,
                         struct acre_json *json) {
    acre_json_object(json);
    for (size_t i = 0; i < count; i++) {
        if (is_written(&rows[i], record)) {
            acre_json_key(json, rows[i].key);
            write_value(&rows[i], record, json);
        }
    }
    acre_json_object_end(json);
}

void acre_policy_write(const struct acre_policy *policy, struct acre_json *json) {
    write_record(policy_rows, ACRE_COUNT(policy_rows), policy, json);
}
