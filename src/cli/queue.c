/* queue.c - `acre queue`: lists live jobs in the order they will be considered, or the history.
 *
 * --watch redraws when the daemon reports a change (at most five times a second) and after every
 * interval, because the times shown change. Without a terminal each change is a line; with --json
 * each event is printed as it came. */
#include "cli/cli.h"
#include "cli/events.h"
#include "cli/follow.h"
#include "cli/show.h"
#include "cli/when.h"
#include "core/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SHORTEST_MS = 200, /* a picture stands at least so long */
    REASONS_MAX = 50,  /* a screenful; each is one question more */
};

struct queue_options {
    struct common common;
    bool all, watch, until_done;
    const char *state, *user, *project, *name;
    uint64_t limit, interval_ms, count;
};

struct queue_watch {
    struct session *session;
    const struct queue_options *options;
    const char *path; /* of the list */
    struct acre_clock clock;
    struct events events;
    struct feed *stream;
    int signals;
    bool in_place; /* a picture, not lines */
    bool changed;
    bool begun;              /* the list was read once */
    uint64_t drawn;          /* pictures, or lines */
    uint32_t height;         /* of the last picture */
    uint64_t live;           /* jobs that have not ended, at the last look */
    struct acre_buf pending; /* events that came, one a line */
    struct acre_buf lines;   /* to be written */
};

/* Ask why the first waiting jobs wait: the list itself does not say, since it may be long. */
static void add_reasons(struct session *session, const json_t *answer) {
    json_t *job;
    size_t i, asked = 0;
    json_array_foreach(json_object_get(answer, "jobs"), i, job) {
        char path[64];
        uint64_t id;
        json_t *reason = NULL;
        if (asked == REASONS_MAX || strcmp(answer_string(job, "state", ""), "queued") != 0 ||
            answer_at(job, "why") != NULL || !answer_u64(job, "id", &id)) {
            continue;
        }
        snprintf(path, sizeof(path), "/jobs/%" PRIu64 "/why", id);
        if (client_call(session->client, "GET", path, NULL, &reason, NULL) == 0) {
            json_object_set(job, "why", json_object_get(reason, "why"));
            json_object_set(job, "when", json_object_get(reason, "when"));
        }
        json_decref(reason);
        asked++;
    }
}

/* Nothing when there is nothing to say ("-"). */
static void put_known(struct acre_buf *out, const char *before, const char *text) {
    if (strcmp(text, "-") != 0) {
        acre_buf_printf(out, "%s%s", before, text);
    }
}

/* What there is to say about a job in this state, beyond the state. */
static void put_remark(struct acre_buf *out, const json_t *job, const char *state) {
    char text[ACRE_SHOW_TEXT_MAX], shown[ACRE_SHOW_TEXT_MAX];
    bool undecided = strcmp(answer_string(job, "why.reason", "evaluating"), "evaluating") == 0;
    if (strcmp(state, "running") == 0) {
        put_known(out, " on ", show_where(job, text, sizeof(text))); /* it may be over */
    } else if (strcmp(state, "queued") == 0 && !undecided) {
        acre_str_show_text(acre_str_from(answer_string(job, "why.text", "-")), shown,
                           sizeof(shown));
        acre_buf_printf(out, ": %s", shown);
    } else if (strcmp(state, "failed") == 0 || strcmp(state, "completed") == 0) {
        show_exit(job, text, sizeof(text));
        put_known(out, ", exit ", text);
    }
}

/* One line for one change: "14:05:09  job 3    train         started on gpu-a:0". */
static void add_line(struct queue_watch *watch, const json_t *job, uint64_t at_ms, const char *what,
                     const char *state) {
    char clock[ACRE_WHEN_MAX], id[32], name[64];
    const char *called = answer_string(job, "name", answer_string(job, "command", "-"));
    when_clock(at_ms, acre_clock_wall_ms(&watch->clock), clock, sizeof(clock));
    acre_buf_printf(&watch->lines, "%s  job %-5s %-14s %s", clock,
                    answer_count(job, "id", id, sizeof(id)),
                    acre_str_show_text(acre_str_from(called), name, sizeof(name)), what);
    put_remark(&watch->lines, job, state);
    acre_buf_putc(&watch->lines, '\n');
    watch->drawn++;
}

/* An event as a line; what else is known of the job is asked for. That a place was found and the
 * engine asked is the scheduler's business: "started" follows at once. */
static void tell_event(struct queue_watch *watch, const json_t *data, uint64_t id) {
    json_t *answer = NULL;
    uint64_t at_ms = acre_clock_wall_ms(&watch->clock), other;
    char path[64], what[96];
    const char *kind = answer_string(data, "kind", "-");
    kind += strncmp(kind, "job ", 4) == 0 ? 4 : 0;
    if (strcmp(kind, "scheduled") == 0 || strcmp(kind, "launched") == 0) {
        return;
    }
    snprintf(what, sizeof(what), "%s", kind);
    if (answer_u64(data, "other", &other)) {
        snprintf(what, sizeof(what), "%s for job %" PRIu64, kind, other);
    }
    snprintf(path, sizeof(path), "/jobs/%" PRIu64, id);
    client_call(watch->session->client, "GET", path, NULL, &answer, NULL);
    answer_time(data, "at", &at_ms);
    add_line(watch, answer_at(answer, "job"), at_ms, what, answer_string(data, "state", "-"));
    json_decref(answer);
}

/* Tell the events that came. */
static void tell_events(struct queue_watch *watch) {
    struct acre_split split =
        acre_split_begin((struct acre_str){watch->pending.data, watch->pending.length}, '\n');
    struct acre_str line;
    while (acre_split_next(&split, &line)) {
        json_t *data = json_loadb(line.data, line.length, 0, NULL);
        uint64_t id;
        if (answer_u64(data, "job", &id) && watch->options->common.json) {
            acre_buf_printf(&watch->lines, "%.*s\n", (int)line.length, line.data);
            watch->drawn++;
        } else if (answer_u64(data, "job", &id)) {
            tell_event(watch, data, id);
        }
        json_decref(data);
    }
    acre_buf_clear(&watch->pending);
}

/* Called while libcurl works: only note it. */
static void on_event(void *context, const struct server_event *event) {
    struct queue_watch *watch = context;
    watch->changed = true;
    if (!watch->in_place && strcmp(event->name, "job") == 0) {
        acre_buf_printf(&watch->pending, "%s\n", event->data);
    }
}

static void on_bytes(void *context, struct acre_str bytes) {
    events_feed(&((struct queue_watch *)context)->events, bytes);
}

static void count_live(struct queue_watch *watch, const json_t *answer) {
    const json_t *job;
    size_t i;
    watch->live = 0;
    json_array_foreach(answer_at(answer, "jobs"), i, job) {
        watch->live += follow_is_live(job);
    }
}

static void draw(struct queue_watch *watch) {
    struct acre_buf picture;
    json_t *answer = session_list(watch->session, watch->path, "jobs", watch->options->limit);
    watch->changed = false;
    if (answer == NULL) {
        return;
    }
    count_live(watch, answer);
    if (!watch->options->common.json) {
        add_reasons(watch->session, answer);
    }
    if (!watch->in_place && !watch->begun && !watch->options->common.json) {
        const json_t *job;
        size_t i;
        json_array_foreach(answer_at(answer, "jobs"), i, job) { /* how it is at first */
            add_line(watch, job, acre_clock_wall_ms(&watch->clock), show_state(job),
                     answer_string(job, "state", "-"));
        }
    }
    watch->begun = true;
    if (watch->in_place) {
        acre_buf_init(&picture, ACRE_OUTPUT_MAX_BYTES);
        struct show view = {.term = term_detect(STDOUT_FILENO),
                            .now_ms = acre_clock_wall_ms(&watch->clock),
                            .out = &picture};
        show_jobs(&view, answer);
        watch->session->result = cli_redraw(&view.term, &picture, &watch->height);
        acre_buf_finish(&picture);
        watch->drawn++;
    }
    json_decref(answer);
}

/* Events have come: write their lines. */
static void flush(struct queue_watch *watch) {
    tell_events(watch);
    if (watch->lines.length > 0) {
        int r = cli_write(&watch->lines);
        watch->session->result = watch->session->result != 0 ? watch->session->result : r;
        acre_buf_clear(&watch->lines);
    }
}

static bool is_over(const struct queue_watch *watch) {
    const struct queue_options *options = watch->options;
    return watch->session->result != 0 || (options->count > 0 && watch->drawn >= options->count) ||
           (options->until_done && watch->live == 0 && !watch->changed);
}

/* Wait for news, but not shorter than pictures should stand nor longer than the interval. */
static bool wait_for_news(struct queue_watch *watch) {
    struct acre_error err = {0};
    uint64_t began_ns = acre_clock_monotonic_ns(&watch->clock);
    while (true) {
        uint64_t passed_ms = (acre_clock_monotonic_ns(&watch->clock) - began_ns) / 1000000;
        uint64_t wanted_ms = watch->changed
                                 ? ACRE_MIN((uint64_t)SHORTEST_MS, watch->options->interval_ms)
                                 : watch->options->interval_ms;
        bool signaled = false;
        int result = 0;
        if (passed_ms >= wanted_ms) {
            return true;
        }
        if (client_wait(watch->session->client, watch->signals,
                        (uint32_t)ACRE_MIN(wanted_ms - passed_ms, UINT64_C(60000)), &signaled,
                        &err) < 0 ||
            (feed_ended(watch->stream, &result, &err) &&
             (result < 0 || acre_fail(&err, ACRE_EUNAVAILABLE, "the daemon has stopped") < 0))) {
            session_fail(watch->session, &err);
            return false;
        }
        flush(watch);
        if (signaled || is_over(watch)) {
            return false;
        }
    }
}

static void watch_jobs(struct session *session, const struct queue_options *options,
                       const char *path) {
    struct acre_error err = {0};
    struct term term = term_detect(STDOUT_FILENO);
    struct queue_watch watch = {.session = session, .options = options, .path = path};
    watch.clock = acre_clock_real();
    watch.in_place = term.is_terminal && !options->common.json;
    watch.height = options->until_done ? 0 : ACRE_TERM_CLEAR; /* what was before stays in sight */
    watch.signals = follow_signals();
    events_init(&watch.events, on_event, &watch);
    acre_buf_init(&watch.lines, ACRE_OUTPUT_MAX_BYTES);
    acre_buf_init(&watch.pending, ACRE_OUTPUT_MAX_BYTES);
    if (client_stream(session->client, "/events", NULL, on_bytes, &watch, &watch.stream, &err) <
        0) {
        session_fail(session, &err);
    }
    while (session->result == 0) {
        draw(&watch);
        flush(&watch);
        if (is_over(&watch) || !wait_for_news(&watch)) {
            break;
        }
    }
    flush(&watch);
    feed_close(watch.stream);
    events_finish(&watch.events);
    acre_buf_finish(&watch.lines);
    acre_buf_finish(&watch.pending);
    close(watch.signals);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct queue_options *options = target;
    struct session session;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    const struct filter filters[] = {{"all", options->all ? "1" : NULL},
                                     {"state", options->state},
                                     {"user", options->user},
                                     {"project", options->project},
                                     {"name", options->name}};
    if (cli_query(path, "/jobs", filters, ACRE_COUNT(filters), &err) < 0) {
        return cli_fail(&err);
    }
    if (!session_open(&session, &options->common)) {
        return session.result;
    }
    if (options->watch || options->until_done) {
        watch_jobs(&session, options, path);
    } else {
        json_t *answer = session_list(&session, path, "jobs", options->limit);
        if (answer != NULL) {
            if (!options->common.json && !options->common.quiet) {
                add_reasons(&session, answer);
            }
            session_show(&session, answer, show_jobs, show_job_ids);
        }
        json_decref(answer);
    }
    session_close(&session);
    return session.result;
}

#define AT(field) offsetof(struct queue_options, field)
#define FILTER(row_name, row_letter, row_field, row_value, row_help)                               \
    {                                                                                              \
        .name = row_name, .letter = row_letter, .kind = ACRE_OPT_STRING, .offset = AT(row_field),  \
        .value = row_value, .help = row_help                                                       \
    }
/* clang-format off */
static const struct acre_opt rows[] = {
    {.name = "all", .letter = 'a', .kind = ACRE_OPT_FLAG, .offset = AT(all),
     .help = "include ended jobs, newest first"},
    {.name = "state", .letter = 's', .kind = ACRE_OPT_CHOICE, .offset = AT(state), .value = "STATE",
     .choices = "queued,scheduled,allocating,running,preempted,completed,failed,canceled",
     .help = "only jobs in this state"},
    FILTER("user", 'u', user, "NAME", "only this user's jobs"),
    FILTER("project", 'P', project, "NAME", "only this project's jobs"),
    FILTER("name", 'n', name, "NAME", "only jobs with this name"),
    {.name = "limit", .kind = ACRE_OPT_COUNT, .offset = AT(limit), .value = "N",
     .help = "show at most N jobs; 0 shows all (default: 100)", .max = INT64_MAX},
    {.name = "watch", .letter = 'w', .kind = ACRE_OPT_FLAG, .offset = AT(watch),
     .help = "keep updating; without a terminal, print a line per change"},
    {.name = "until-done", .kind = ACRE_OPT_FLAG, .offset = AT(until_done),
     .help = "watch until no job is waiting or running"},
    {.name = "interval", .kind = ACRE_OPT_DURATION, .offset = AT(interval_ms), .value = "TIME",
     .help = "update at least this often with --watch (default: 2s)"},
    {.name = "count", .kind = ACRE_OPT_COUNT, .offset = AT(count), .value = "N",
     .help = "stop after N updates or lines with --watch", .min = 1, .max = INT64_MAX},
};
/* clang-format on */

static const struct queue_options defaults = {.limit = 100, .interval_ms = 2000};

const struct acre_command command_queue = {
    .name = "queue",
    .summary = "list running and waiting jobs, and why they wait",
    .usage = "acre queue [options]",
    .details = "TIME is how long a job has run or waited; START is when it started or will start.\n"
               "\n"
               "Examples:\n"
               "  acre queue\n"
               "  acre queue --all --state failed\n"
               "  acre queue --watch --count 1",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run,
    .options_size = sizeof(struct queue_options),
    .defaults = &defaults,
};
