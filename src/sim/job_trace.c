/* job_trace.c - reads recorded jobs strictly; see jobs.h. */
#include "sim/job_trace.h"

#include "core/csv.h"
#include "core/file.h"
#include "core/units.h"

#include <stdlib.h>

enum {
    FILE_MAX_BYTES = 256 << 20, /* some five million jobs */
    ROWS_MAX = 4 << 20,
    CLUSTER_NAME_MAX = 64,
    YEAR_MIN = 1970,
    YEAR_MAX = 2199,
};
static const uint64_t duration_max_s = ACRE_DURATION_MAX_MS / 1000;

enum { TIMESTAMP, DURATION, GPUS, CLUSTER, COLUMNS };
static const char *const columns[COLUMNS] = {"timestamp", "duration", "num_gpus", "cluster"};

/* `count` digits at `at` as a number within [min, max]; false when they are not. */
static bool read_digits(struct acre_str text, size_t at, size_t count, uint32_t min, uint32_t max,
                        uint32_t *ret_value) {
    uint32_t value = 0;
    for (size_t i = at; i < at + count; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        value = value * 10 + (uint32_t)(text.data[i] - '0');
    }
    *ret_value = value;
    return value >= min && value <= max;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. The year is counted from March, so
 * that the leap day is its last; an era is 400 years. */
static uint64_t days_since_1970(uint32_t year, uint32_t month, uint32_t day) {
    uint32_t y = month <= 2 ? year - 1 : year;
    uint32_t era = y / 400;
    uint32_t year_of_era = y % 400;
    uint32_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    uint32_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (uint64_t)era * 146097 + day_of_era - 719468;
}

static uint64_t days_of(uint32_t year, uint32_t month) {
    uint64_t next =
        month == 12 ? days_since_1970(year + 1, 1, 1) : days_since_1970(year, month + 1, 1);
    return next - days_since_1970(year, month, 1);
}

static int read_time(const struct acre_csv *csv, uint64_t *ret_ms, struct acre_error *err) {
    struct acre_str text = acre_csv_cell(csv, TIMESTAMP);
    uint32_t year, month, day, hour, minute, second;
    bool ok = text.length == 19 && text.data[4] == '-' && text.data[7] == '-' &&
              text.data[10] == ' ' && text.data[13] == ':' && text.data[16] == ':' &&
              read_digits(text, 0, 4, YEAR_MIN, YEAR_MAX, &year) &&
              read_digits(text, 5, 2, 1, 12, &month) && read_digits(text, 8, 2, 1, 31, &day) &&
              read_digits(text, 11, 2, 0, 23, &hour) && read_digits(text, 14, 2, 0, 59, &minute) &&
              read_digits(text, 17, 2, 0, 60, &second);
    ok = ok && day <= days_of(year, month);
    if (!ok) {
        char shown[64];
        return acre_csv_fail(
            csv, TIMESTAMP, err,
            "'%s' is not a valid time; accepted: a time such as \"2017-09-04 10:30:41\"",
            acre_str_show(text, shown, sizeof(shown)));
    }
    uint64_t hours = days_since_1970(year, month, day) * 24 + hour;
    *ret_ms = ((hours * 60 + minute) * 60 + second) * 1000;
    return 0;
}

/* "2240194.0": seconds; decimals below a millisecond are cut off. */
static int read_duration(const struct acre_csv *csv, uint64_t *ret_ms, struct acre_error *err) {
    struct acre_str text = acre_csv_cell(csv, DURATION);
    uint64_t whole = 0, fraction_ms = 0, unit_ms = 100;
    size_t at = 0;
    bool ok = text.length > 0;
    for (; ok && at < text.length && text.data[at] != '.'; at++) {
        ok = text.data[at] >= '0' && text.data[at] <= '9';
        whole = whole * 10 + (uint64_t)(text.data[at] - '0');
        ok = ok && whole <= duration_max_s;
    }
    ok = ok && at > 0 && at + 1 != text.length; /* neither ".5" nor "5." */
    for (at++; ok && at < text.length; at++, unit_ms /= 10) {
        ok = text.data[at] >= '0' && text.data[at] <= '9';
        fraction_ms += unit_ms * (uint64_t)(text.data[at] - '0');
    }
    if (!ok) {
        char shown[64];
        return acre_csv_fail(csv, DURATION, err,
                             "'%s' is not a valid duration; accepted: seconds, such as 90 or 90.5",
                             acre_str_show(text, shown, sizeof(shown)));
    }
    *ret_ms = whole * 1000 + fraction_ms;
    return 0;
}

static int read_job(struct acre_job_trace *trace, const struct acre_csv *csv, struct trace_job *job,
                    struct acre_error *err) {
    struct acre_str cluster = acre_csv_cell(csv, CLUSTER);
    char shown[64];
    uint64_t gpus;
    int r = read_time(csv, &job->submit_ms, err);
    r = r == 0 ? read_duration(csv, &job->duration_ms, err) : r;
    r = r == 0 ? acre_csv_u64(csv, GPUS, 1, ACRE_TRACE_JOB_GPUS_MAX, &gpus, err) : r;
    if (r < 0) {
        return r;
    }
    if (!acre_str_is_name(cluster, CLUSTER_NAME_MAX)) {
        return acre_csv_fail(
            csv, CLUSTER, err,
            "'%s' is not a valid name; accepted: 1 to %d letters, digits and -_./:@+",
            acre_str_show(cluster, shown, sizeof(shown)), CLUSTER_NAME_MAX);
    }
    if (trace->count > 0 && job->submit_ms < trace->jobs[trace->count - 1].submit_ms) {
        return acre_csv_fail(csv, TIMESTAMP, err,
                             "'%s' is earlier than the row above it; rows must be sorted by time",
                             acre_str_show(acre_csv_cell(csv, TIMESTAMP), shown, sizeof(shown)));
    }
    job->gpus = (uint32_t)gpus;
    job->cluster = acre_names_intern(trace->names, cluster);
    return 0;
}

static int read_jobs(struct acre_job_trace *trace, struct acre_csv *csv, struct acre_error *err) {
    uint32_t capacity = 0;
    int r;
    while ((r = acre_csv_next(csv, err)) > 0) {
        if (trace->count == ROWS_MAX) {
            return acre_fail(err, ACRE_ELIMIT, "%s: more than %d jobs", csv->name, ROWS_MAX);
        }
        trace->jobs = acre_grow(trace->jobs, trace->count, &capacity, sizeof(*trace->jobs));
        r = read_job(trace, csv, &trace->jobs[trace->count], err);
        if (r < 0) {
            return r;
        }
        trace->count++;
    }
    if (r == 0 && trace->count == 0) {
        r = acre_fail(err, ACRE_EINVALID, "%s: no jobs", csv->name);
    }
    return r;
}

int job_trace_parse(const char *name, struct acre_str text, struct acre_job_trace **ret_trace,
                    struct acre_error *err) {
    struct acre_csv csv;
    int r = acre_csv_begin(&csv, name, text, columns, COLUMNS, err);
    if (r < 0) {
        return r;
    }
    struct acre_job_trace *trace = acre_calloc(1, sizeof(*trace));
    trace->names = acre_names_create();
    r = read_jobs(trace, &csv, err);
    if (r < 0) {
        job_trace_destroy(trace);
        return r;
    }
    *ret_trace = trace;
    return 0;
}

int job_trace_load(const char *path, struct acre_job_trace **ret_trace, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, FILE_MAX_BYTES);
    int r = acre_file_read(path, FILE_MAX_BYTES, &text, err);
    if (r == 0) {
        r = job_trace_parse(path, (struct acre_str){text.data, text.length}, ret_trace, err);
    }
    acre_buf_finish(&text);
    return r;
}

void job_trace_destroy(struct acre_job_trace *trace) {
    if (trace != NULL) {
        acre_names_destroy(trace->names);
        free(trace->jobs);
        free(trace);
    }
}
