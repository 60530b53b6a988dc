/* follow.c - one thread waits for the job's events, its two logs, and signals.
 *
 * An event only says that something changed; the job itself is then read, and every few seconds
 * anyway, so that a missed event costs nothing. Runs are followed one after the other (a retry is
 * the next run), each until both its logs end. If the daemon stops, this waits for it: the job does
 * not need the daemon. */
#include "cli/follow.h"

#include "cli/cli.h"
#include "cli/events.h"
#include "cli/show.h"
#include "cli/tail.h"
#include "core/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    REFRESH_MS = 5000,     /* without any event */
    LINE_MS = 1000,        /* the waiting line counts down */
    LOGS_GRACE_MS = 5000,  /* for logs to end after the job has */
    AWAY_MAX_MS = 120000,  /* a daemon that restarts is back long before */
    STATUS_CANCELED = 130, /* as a shell says of an interrupted command */
    STATUS_NOT_STARTED = 126,
    SIGNAL_BASE = 128,
};

struct follow {
    struct session *session;
    uint64_t id;
    bool logs;
    struct acre_clock clock;
    struct term term; /* of standard error: the waiting line */
    struct events events;
    struct feed *stream;
    int signals;
    uint32_t signal_count;
    json_t *job;
    bool changed;          /* read the job again */
    bool line_shown;       /* the waiting line is on the screen */
    char last_reason[256]; /* told, where there is no terminal */
    struct tail tails[2];
    bool tailing;
    uint64_t tailed; /* attempts whose logs were followed */
    uint64_t read_ms, away_since_ms, ended_ms;
    uint64_t refused_ms; /* when the daemon refused the events; 0: it did not */
    bool said_refused;   /* that it refused a log */
    bool left;           /* the user went away */
};

int follow_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int follow_status(const json_t *job) {
    const char *kind = answer_string(job, "exit.kind", "");
    int code = (int)json_integer_value(answer_at(job, "exit.code"));
    if (strcmp(answer_string(job, "state", ""), "canceled") == 0) {
        return STATUS_CANCELED;
    }
    if (strcmp(kind, "exited") == 0) {
        return code & 0xff;
    }
    if (strcmp(kind, "not started") == 0) {
        return STATUS_NOT_STARTED;
    }
    if (strcmp(kind, "lost") == 0) {
        return acre_error_exit(ACRE_EUNAVAILABLE);
    }
    return code > 0 && code < 64 ? SIGNAL_BASE + code : acre_error_exit(ACRE_EINTERNAL);
}

static uint64_t now_ms(const struct follow *follow) {
    return acre_clock_monotonic_ns(&follow->clock) / 1000000;
}

static void erase_line(struct follow *follow) {
    if (follow->line_shown) {
        fprintf(stderr, "\r\033[K");
        follow->line_shown = false;
    }
}

static void say(struct follow *follow, const char *text) {
    erase_line(follow);
    if (!follow->session->common->quiet) {
        fprintf(stderr, "acre: %s\n", text);
    }
}

bool follow_is_live(const json_t *job) {
    static const char *const ended[] = {"completed", "failed", "canceled"};
    const char *state = answer_string(job, "state", "");
    for (size_t i = 0; i < ACRE_COUNT(ended); i++) {
        if (strcmp(state, ended[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* "job 42 queued, position 3, starts in about 5m (why)" without its newline. */
static void describe(const struct follow *follow, struct acre_buf *out) {
    struct show view = {.now_ms = acre_clock_wall_ms(&follow->clock), .out = out};
    json_t *answer = json_pack("{s:O}", "job", follow->job);
    show_submitted(&view, answer);
    json_decref(answer);
    if (out->length > 0) {
        out->data[--out->length] = '\0';
    }
}

/* On a terminal one line that is redrawn; elsewhere a line for each new reason. */
static void show_waiting(struct follow *follow) {
    struct acre_buf text;
    bool waiting = strcmp(answer_string(follow->job, "state", ""), "queued") == 0;
    if (!waiting || follow->session->common->quiet || !follow_is_live(follow->job)) {
        erase_line(follow);
        return;
    }
    acre_buf_init(&text, 4096);
    describe(follow, &text);
    char shown[4096];
    acre_str_show_text((struct acre_str){text.data, text.length}, shown, sizeof(shown));
    const char *reason = answer_string(follow->job, "why.reason", "");
    if (follow->term.is_terminal) {
        fprintf(stderr, "\r\033[K%.*s", (int)follow->term.width - 1, shown);
        follow->line_shown = true;
    } else if (strcmp(reason, follow->last_reason) != 0 && strcmp(reason, "evaluating") != 0) {
        snprintf(follow->last_reason, sizeof(follow->last_reason), "%s", reason);
        fprintf(stderr, "acre: %s\n", shown);
    }
    acre_buf_finish(&text);
}

static void on_event(void *context, const struct server_event *event) {
    (void)event;
    ((struct follow *)context)->changed = true;
}

static void on_bytes(void *context, struct acre_str bytes) {
    struct follow *follow = context;
    events_feed(&follow->events, bytes);
}

/* A failure that may pass: the daemon is away. False when it has been for too long. */
static bool still_patient(struct follow *follow, const struct acre_error *err) {
    uint64_t now = now_ms(follow);
    bool passing =
        err->code == ACRE_EUNAVAILABLE || err->code == ACRE_EIO || err->code == ACRE_ETIMEOUT;
    if (passing && follow->away_since_ms == 0) {
        char text[128];
        snprintf(text, sizeof(text), "the daemon is not answering; job %" PRIu64 " keeps running",
                 follow->id);
        say(follow, text);
        follow->away_since_ms = now;
    }
    return passing && now - follow->away_since_ms < AWAY_MAX_MS;
}

/* Read the job; false when following has come to an end (told). */
static bool refresh(struct follow *follow) {
    char path[64];
    struct acre_error err = {0};
    json_t *answer = NULL;
    snprintf(path, sizeof(path), "/jobs/%" PRIu64, follow->id);
    int r = client_call(follow->session->client, "GET", path, NULL, &answer, &err);
    follow->read_ms = now_ms(follow);
    if (r < 0) {
        if (!still_patient(follow, &err)) {
            erase_line(follow);
            session_fail(follow->session, &err);
            return false;
        }
        return true;
    }
    json_t *job = json_incref(json_object_get(answer, "job"));
    json_decref(answer);
    json_decref(follow->job);
    follow->job = job;
    follow->changed = false;
    follow->away_since_ms = 0;
    return true;
}

static void open_events(struct follow *follow) {
    char path[64];
    struct acre_error err = {0};
    snprintf(path, sizeof(path), "/events?job=%" PRIu64, follow->id);
    follow->refused_ms = 0;
    events_restart(&follow->events);
    client_stream(follow->session->client, path, follow->events.last_id, on_bytes, follow,
                  &follow->stream, &err);
}

/* An ended event stream is opened again: at the next look, but a moment later when the daemon is
 * away or refused it (too many followers). */
static void mend_events(struct follow *follow) {
    struct acre_error err = {0};
    int result = 0;
    if (follow->stream != NULL && feed_ended(follow->stream, &result, &err)) {
        feed_close(follow->stream);
        follow->stream = NULL;
        follow->changed = follow->changed || result == 0;
        follow->refused_ms = result < 0 ? now_ms(follow) : 0;
    }
}

static bool may_open_events(const struct follow *follow) {
    return follow->stream == NULL && follow->away_since_ms == 0 &&
           (follow->refused_ms == 0 || now_ms(follow) - follow->refused_ms >= LINE_MS);
}

/* A run that failed and comes again, in one line. */
static void tell_run(struct follow *follow, uint64_t attempt) {
    char text[160], ended[64];
    if (attempt > 1) {
        snprintf(text, sizeof(text), "run %" PRIu64 " of job %" PRIu64 " (the previous run: %s)",
                 attempt, follow->id, show_exit(follow->job, ended, sizeof(ended)));
        say(follow, text);
    }
}

static bool has_refused_log(const struct follow *follow) {
    return follow->tails[0].refused_ms != 0 || follow->tails[1].refused_ms != 0;
}

/* Follow the logs of the next run that has begun, when the last one's are at their end. */
static void tend_logs(struct follow *follow) {
    static const struct {
        const char *name;
        int fd;
    } names[] = {{"stdout", STDOUT_FILENO}, {"stderr", STDERR_FILENO}};
    uint64_t attempt = 0;
    const char *state = answer_string(follow->job, "state", "");
    bool starting = strcmp(state, "scheduled") == 0 || strcmp(state, "allocating") == 0;
    answer_u64(follow->job, "attempt", &attempt);
    attempt -= starting && attempt > 0; /* it has not begun */
    if (follow->tailing) {
        bool ended = true;
        for (size_t i = 0; i < ACRE_COUNT(names); i++) {
            /* What has ended is only read, for which there is no limit. */
            follow->tails[i].follow = follow_is_live(follow->job);
            ended = tail_ended(&follow->tails[i]) && ended;
        }
        if (has_refused_log(follow) && !follow->said_refused) {
            say(follow,
                "too many logs are being followed (policy max_followers); output is delayed");
            follow->said_refused = true;
        }
        follow->tailing = !ended;
        follow->changed = follow->changed || ended;
    }
    if (!follow->logs || follow->tailing || follow->tailed >= attempt) {
        return;
    }
    follow->tailed++;
    follow->tailing = true;
    tell_run(follow, follow->tailed);
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        follow->tails[i] = (struct tail){.session = follow->session,
                                         .job = follow->id,
                                         .attempt = follow->tailed,
                                         .name = names[i].name,
                                         .fd = names[i].fd,
                                         .follow = true,
                                         .patient = true,
                                         .erase = &follow->line_shown};
        tail_open(&follow->tails[i]);
    }
}

/* The first one cancels the job, the second leaves it to itself. */
static void take_signal(struct follow *follow) {
    struct signalfd_siginfo info;
    char path[64], text[128];
    struct acre_error err = {0};
    while (read(follow->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        follow->signal_count++;
    }
    follow->left = follow->signal_count > 1;
    if (follow->left) {
        snprintf(text, sizeof(text),
                 "leaving job %" PRIu64 " to itself; see 'acre show %" PRIu64 "'", follow->id,
                 follow->id);
        say(follow, text);
        return;
    }
    snprintf(text, sizeof(text),
             "canceling job %" PRIu64 "; press Ctrl-C again to stop waiting for it", follow->id);
    say(follow, text);
    snprintf(path, sizeof(path), "/jobs/%" PRIu64, follow->id);
    if (client_call(follow->session->client, "DELETE", path, NULL, NULL, &err) < 0 &&
        err.code != ACRE_ECONFLICT) {
        session_fail(follow->session, &err);
    }
    follow->changed = true;
}

/* Whether there is nothing left to follow. */
static bool is_done(struct follow *follow) {
    if (follow->left) {
        return true;
    }
    if (follow->job == NULL || follow_is_live(follow->job)) {
        return false;
    }
    uint64_t now = now_ms(follow);
    follow->ended_ms = follow->ended_ms != 0 ? follow->ended_ms : now;
    uint64_t attempt = 0;
    answer_u64(follow->job, "attempt", &attempt);
    bool logs_over = !follow->logs || (!follow->tailing && follow->tailed >= attempt);
    return logs_over || now - follow->ended_ms > LOGS_GRACE_MS;
}

/* How it ended, where its own output does not say. */
static void tell_end(struct follow *follow) {
    char ended[64], text[512], shown[512];
    const char *state = answer_string(follow->job, "state", "-");
    const char *detail = answer_string(follow->job, "exit.text", NULL);
    show_exit(follow->job, ended, sizeof(ended));
    erase_line(follow);
    bool own = ended[0] >= '0' && ended[0] <= '9'; /* its status says it all */
    if (strcmp(state, "completed") == 0 || (own && follow->session->common->quiet)) {
        return;
    }
    snprintf(text, sizeof(text), "job %" PRIu64 " %s (%s%s%s%s)", follow->id, state,
             own ? "status " : "", strcmp(ended, "-") == 0 ? "before it ran" : ended,
             detail != NULL ? ": " : "", detail != NULL ? detail : "");
    fprintf(stderr, "acre: %s\n", acre_str_show_text(acre_str_from(text), shown, sizeof(shown)));
}

static void follow_on(struct follow *follow) {
    struct acre_error err = {0};
    bool going = refresh(follow);
    while (going && !is_done(follow)) {
        bool signaled = false;
        uint64_t now = now_ms(follow);
        if (may_open_events(follow)) {
            open_events(follow);
        }
        show_waiting(follow);
        bool often = follow->line_shown || follow->away_since_ms != 0 || follow->refused_ms != 0 ||
                     has_refused_log(follow);
        uint32_t pause = often ? LINE_MS : REFRESH_MS;
        if (client_wait(follow->session->client, follow->signals, pause, &signaled, &err) < 0) {
            session_fail(follow->session, &err);
            return;
        }
        if (signaled) {
            take_signal(follow);
        }
        mend_events(follow);
        bool due = now_ms(follow) - follow->read_ms >= pause || now_ms(follow) - now >= pause;
        if (follow->changed || due) {
            going = refresh(follow);
        }
        tend_logs(follow);
    }
}

int follow_job(struct session *session, uint64_t id, bool logs) {
    struct follow *follow = acre_calloc(1, sizeof(*follow));
    *follow = (struct follow){.session = session, .id = id, .logs = logs};
    follow->clock = acre_clock_real();
    follow->term = term_detect(STDERR_FILENO);
    follow->signals = follow_signals();
    events_init(&follow->events, on_event, follow);
    follow_on(follow);
    erase_line(follow);
    int status = session->result;
    if (follow->left) {
        status = STATUS_CANCELED;
    } else if (follow->job != NULL && !follow_is_live(follow->job)) {
        tell_end(follow);
        int own = follow_status(follow->job);
        status = own != 0 ? own : session->result; /* its output may be incomplete */
    }
    for (size_t i = 0; i < ACRE_COUNT(follow->tails); i++) {
        tail_close(&follow->tails[i]);
    }
    feed_close(follow->stream);
    events_finish(&follow->events);
    json_decref(follow->job);
    close(follow->signals);
    free(follow);
    return status;
}
