/* queue.c - `acre queue`: the live jobs in the order they will be considered, or the history.
 *
 * --watch draws again when the daemon tells of a change (never more than five times a second), and
 * every interval, since times pass. Where there is no terminal to redraw, each change is a line;
 * with --json each event, as it came. */
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

struct options {
    struct acre_common common;
    bool all, watch, until_done;
    const char *state, *user, *project, *name;
    uint64_t limit, interval_ms, count;
};

struct watch {
    struct acre_session *session;
    const struct options *options;
    const char *path; /* of the list */
    struct acre_clock clock;
    struct acre_events events;
    struct acre_feed *stream;
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
static void add_reasons(struct acre_session *session, const json_t *answer) {
    json_t *job;
    size_t i, asked = 0;
    json_array_foreach(json_object_get(answer, "jobs"), i, job) {
        char path[64];
        uint64_t id;
        json_t *reason = NULL;
        if (asked == REASONS_MAX || strcmp(acre_answer_text(job, "state", ""), "queued") != 0 ||
            acre_answer_at(job, "why") != NULL || !acre_answer_u64(job, "id", &id)) {
            continue;
        }
        snprintf(path, sizeof(path), "/jobs/%" PRIu64 "/why", id);
        if (acre_client_call(session->client, "GET", path, NULL, &reason, NULL) == 0) {
            json_object_set(job, "why", json_object_get(reason, "why"));
            json_object_set(job, "when", json_object_get(reason, "when"));
        }
        json_decref(reason);
        asked++;
    }
}

/* What there is to say about a job in this state, beyond the state. */
static void put_remark(struct acre_buf *out, const json_t *job, const char *state) {
    char text[ACRE_SHOW_TEXT_MAX], shown[ACRE_SHOW_TEXT_MAX];
    bool undecided = strcmp(acre_answer_text(job, "why.reason", "evaluating"), "evaluating") == 0;
    acre_show_exit(job, text, sizeof(text));
    if (strcmp(state, "running") == 0) {
        acre_buf_printf(out, " on %s", acre_show_where(job, text, sizeof(text)));
    } else if (strcmp(state, "queued") == 0 && !undecided) {
        acre_str_show_text(acre_str_from(acre_answer_text(job, "why.text", "-")), shown,
                           sizeof(shown));
        acre_buf_printf(out, ": %s", shown);
    } else if ((strcmp(state, "failed") == 0 || strcmp(state, "completed") == 0) &&
               strcmp(text, "-") != 0) {
        acre_buf_printf(out, ", exit %s", text);
    }
}

/* One line for one change: "14:05:09  job 3    train         started on gpu-a:0". */
static void add_line(struct watch *watch, const json_t *job, uint64_t at_ms, const char *what,
                     const char *state) {
    char clock[ACRE_WHEN_MAX], id[32], name[64];
    const char *called = acre_answer_text(job, "name", acre_answer_text(job, "command", "-"));
    acre_when_clock(at_ms, acre_clock_wall_ms(&watch->clock), clock, sizeof(clock));
    acre_buf_printf(&watch->lines, "%s  job %-5s %-14s %s", clock,
                    acre_answer_count(job, "id", id, sizeof(id)),
                    acre_str_show_text(acre_str_from(called), name, sizeof(name)), what);
    put_remark(&watch->lines, job, state);
    acre_buf_putc(&watch->lines, '\n');
    watch->drawn++;
}

/* An event as a line; what else is known of the job is asked for. That a place was found and the
 * engine asked is the scheduler's business: "started" follows at once. */
static void tell_event(struct watch *watch, const json_t *data, uint64_t id) {
    json_t *answer = NULL;
    uint64_t at_ms = acre_clock_wall_ms(&watch->clock), other;
    char path[64], what[96];
    const char *kind = acre_answer_text(data, "kind", "-");
    kind += strncmp(kind, "job ", 4) == 0 ? 4 : 0;
    if (strcmp(kind, "scheduled") == 0 || strcmp(kind, "launched") == 0) {
        return;
    }
    snprintf(what, sizeof(what), "%s", kind);
    if (acre_answer_u64(data, "other", &other)) {
        snprintf(what, sizeof(what), "%s for job %" PRIu64, kind, other);
    }
    snprintf(path, sizeof(path), "/jobs/%" PRIu64, id);
    acre_client_call(watch->session->client, "GET", path, NULL, &answer, NULL);
    acre_answer_time(data, "at", &at_ms);
    add_line(watch, acre_answer_at(answer, "job"), at_ms, what,
             acre_answer_text(data, "state", "-"));
    json_decref(answer);
}

/* Tell the events that came. */
static void tell_events(struct watch *watch) {
    struct acre_split split =
        acre_split_begin((struct acre_str){watch->pending.data, watch->pending.length}, '\n');
    struct acre_str line;
    while (acre_split_next(&split, &line)) {
        json_t *data = json_loadb(line.data, line.length, 0, NULL);
        uint64_t id;
        if (acre_answer_u64(data, "job", &id) && watch->options->common.json) {
            acre_buf_printf(&watch->lines, "%.*s\n", (int)line.length, line.data);
            watch->drawn++;
        } else if (acre_answer_u64(data, "job", &id)) {
            tell_event(watch, data, id);
        }
        json_decref(data);
    }
    acre_buf_clear(&watch->pending);
}

/* Called while libcurl works: only note it. */
static void on_event(void *context, const struct acre_server_event *event) {
    struct watch *watch = context;
    watch->changed = true;
    if (!watch->in_place && strcmp(event->name, "job") == 0) {
        acre_buf_printf(&watch->pending, "%s\n", event->data);
    }
}

static void on_bytes(void *context, struct acre_str bytes) {
    acre_events_feed(&((struct watch *)context)->events, bytes);
}

static void count_live(struct watch *watch, const json_t *answer) {
    const json_t *job;
    size_t i;
    watch->live = 0;
    json_array_foreach(acre_answer_at(answer, "jobs"), i, job) {
        watch->live += acre_follow_is_live(job);
    }
}

static void draw(struct watch *watch) {
    struct acre_buf picture;
    json_t *answer = acre_session_list(watch->session, watch->path, "jobs", watch->options->limit);
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
        json_array_foreach(acre_answer_at(answer, "jobs"), i, job) { /* how it is at first */
            add_line(watch, job, acre_clock_wall_ms(&watch->clock), acre_show_state(job),
                     acre_answer_text(job, "state", "-"));
        }
    }
    watch->begun = true;
    if (watch->in_place) {
        acre_buf_init(&picture, ACRE_OUTPUT_MAX_BYTES);
        struct acre_show view = {.term = acre_term_detect(STDOUT_FILENO),
                                 .now_ms = acre_clock_wall_ms(&watch->clock),
                                 .out = &picture};
        acre_show_jobs(&view, answer);
        watch->session->result = acre_cli_redraw(&view.term, &picture, &watch->height);
        acre_buf_finish(&picture);
        watch->drawn++;
    }
    json_decref(answer);
}

/* Events have come: write their lines. */
static void flush(struct watch *watch) {
    tell_events(watch);
    if (watch->lines.length > 0) {
        int r = acre_cli_write(&watch->lines);
        watch->session->result = watch->session->result != 0 ? watch->session->result : r;
        acre_buf_clear(&watch->lines);
    }
}

static bool is_over(const struct watch *watch) {
    const struct options *options = watch->options;
    return watch->session->result != 0 || (options->count > 0 && watch->drawn >= options->count) ||
           (options->until_done && watch->live == 0 && !watch->changed);
}

/* Wait for news, but not shorter than pictures should stand nor longer than the interval. */
static bool wait_for_news(struct watch *watch) {
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
        if (acre_client_wait(watch->session->client, watch->signals,
                             (uint32_t)ACRE_MIN(wanted_ms - passed_ms, UINT64_C(60000)), &signaled,
                             &err) < 0 ||
            (acre_feed_ended(watch->stream, &result, &err) &&
             (result < 0 || acre_fail(&err, ACRE_EUNAVAILABLE, "the daemon has ended") < 0))) {
            acre_session_fail(watch->session, &err);
            return false;
        }
        flush(watch);
        if (signaled || is_over(watch)) {
            return false;
        }
    }
}

static void watch_jobs(struct acre_session *session, const struct options *options,
                       const char *path) {
    struct acre_error err = {0};
    struct acre_term term = acre_term_detect(STDOUT_FILENO);
    struct watch watch = {.session = session, .options = options, .path = path};
    watch.clock = acre_clock_real();
    watch.in_place = term.is_terminal && !options->common.json;
    watch.height = options->until_done ? 0 : ACRE_TERM_CLEAR; /* what was before stays in sight */
    watch.signals = acre_follow_signals();
    acre_events_init(&watch.events, on_event, &watch);
    acre_buf_init(&watch.lines, ACRE_OUTPUT_MAX_BYTES);
    acre_buf_init(&watch.pending, ACRE_OUTPUT_MAX_BYTES);
    if (acre_client_stream(session->client, "/events", NULL, on_bytes, &watch, &watch.stream,
                           &err) < 0) {
        acre_session_fail(session, &err);
    }
    while (session->result == 0) {
        draw(&watch);
        flush(&watch);
        if (is_over(&watch) || !wait_for_news(&watch)) {
            break;
        }
    }
    flush(&watch);
    acre_feed_close(watch.stream);
    acre_events_finish(&watch.events);
    acre_buf_finish(&watch.lines);
    acre_buf_finish(&watch.pending);
    close(watch.signals);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct options *options = target;
    struct acre_session session;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    const struct acre_filter filters[] = {{"all", options->all ? "1" : NULL},
                                          {"state", options->state},
                                          {"user", options->user},
                                          {"project", options->project},
                                          {"name", options->name}};
    if (acre_cli_query(path, "/jobs", filters, ACRE_COUNT(filters), &err) < 0) {
        return acre_cli_fail(&err);
    }
    if (!acre_session_open(&session, &options->common)) {
        return session.result;
    }
    if (options->watch || options->until_done) {
        watch_jobs(&session, options, path);
    } else {
        json_t *answer = acre_session_list(&session, path, "jobs", options->limit);
        if (answer != NULL) {
            if (!options->common.json && !options->common.quiet) {
                add_reasons(&session, answer);
            }
            acre_session_show(&session, answer, acre_show_jobs, acre_show_job_ids);
        }
        json_decref(answer);
    }
    acre_session_close(&session);
    return session.result;
}

#define AT(field) offsetof(struct options, field)
#define FILTER(row_name, row_letter, row_field, row_value, row_help)                               \
    {                                                                                              \
        .name = row_name, .letter = row_letter, .kind = ACRE_OPT_STRING, .offset = AT(row_field),  \
        .value = row_value, .help = row_help                                                       \
    }
/* clang-format off */
static const struct acre_opt rows[] = {
    {.name = "all", .letter = 'a', .kind = ACRE_OPT_FLAG, .offset = AT(all),
     .help = "ended ones too, the newest first"},
    {.name = "state", .letter = 's', .kind = ACRE_OPT_CHOICE, .offset = AT(state), .value = "STATE",
     .choices = "queued,scheduled,allocating,running,preempted,completed,failed,canceled",
     .help = "only these"},
    FILTER("user", 'u', user, "NAME", "only this user's"),
    FILTER("project", 'P', project, "NAME", "only this project's"),
    FILTER("name", 'n', name, "NAME", "only of this name"),
    {.name = "limit", .kind = ACRE_OPT_COUNT, .offset = AT(limit), .value = "N",
     .help = "at most N (100); 0: all", .max = INT64_MAX},
    {.name = "watch", .letter = 'w', .kind = ACRE_OPT_FLAG, .offset = AT(watch),
     .help = "go on showing changes; a line each where there is no terminal"},
    {.name = "until-done", .kind = ACRE_OPT_FLAG, .offset = AT(until_done),
     .help = "watch until no job is left"},
    {.name = "interval", .kind = ACRE_OPT_DURATION, .offset = AT(interval_ms), .value = "TIME",
     .help = "draw at least so often, with --watch (2s)"},
    {.name = "count", .kind = ACRE_OPT_COUNT, .offset = AT(count), .value = "N",
     .help = "end after N pictures or lines, with --watch", .min = 1, .max = INT64_MAX},
};
/* clang-format on */

static const struct options defaults = {.limit = 100, .interval_ms = 2000};

const struct acre_command acre_command_queue = {
    .name = "queue",
    .summary = "the jobs that run and wait, and why",
    .usage = "acre queue [options]",
    .details = "TIME is how long it runs or ran, or has waited; START when it began or will.\n"
               "\n"
               "Examples:\n"
               "  acre queue\n"
               "  acre queue --all --state failed\n"
               "  acre queue --watch --count 1",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};
