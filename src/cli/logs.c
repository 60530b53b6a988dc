/* logs.c - `acre logs`: copies a job's standard output to ours, and its standard error to ours.
 *
 * With --follow both are copied at once; otherwise one after the other, so that the result does not
 * depend on timing. */
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/tail.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct logs_options {
    struct common common;
    bool follow;
    bool raw;
    const char *stream;
    uint64_t tail_bytes;
    uint64_t attempt;
};

enum { WAIT_MS = 60000, STATUS_INTERRUPTED = 130 };

static const struct {
    const char *name;
    int fd;
} streams[] = {{"stdout", STDOUT_FILENO}, {"stderr", STDERR_FILENO}};

/* Copy the open ones until they are at their end, or a signal. */
static void copy_all(struct session *session, struct tail *tails, size_t count, int signals) {
    struct acre_error err = {0};
    bool ended = false;
    while (!ended) {
        bool signaled = false;
        if (client_wait(session->client, signals, WAIT_MS, &signaled, &err) < 0) {
            session_fail(session, &err);
            return;
        }
        if (signaled) {
            session->result = STATUS_INTERRUPTED;
            return;
        }
        ended = true;
        for (size_t i = 0; i < count; i++) {
            ended = tail_ended(&tails[i]) && ended;
        }
    }
}

static void show_logs(struct session *session, const struct logs_options *options, uint64_t job) {
    struct tail tails[ACRE_COUNT(streams)];
    size_t count = 0;
    int signals = follow_signals();
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        if (strcmp(options->stream, "both") != 0 && strcmp(options->stream, streams[i].name) != 0) {
            continue;
        }
        tails[count] = (struct tail){
            .session = session,
            .job = job,
            .attempt = options->attempt,
            .name = streams[i].name,
            .fd = strcmp(options->stream, "both") == 0 ? streams[i].fd : STDOUT_FILENO,
            .follow = options->follow,
            .raw = options->raw,
            .offset = -(int64_t)options->tail_bytes,
        };
        if (!tail_open(&tails[count])) {
            break;
        }
        count++;
        if (!options->follow) {
            copy_all(session, &tails[count - 1], 1, signals);
        }
        if (session->result != 0) {
            break; /* told once is enough */
        }
    }
    if (options->follow && session->result == 0) {
        copy_all(session, tails, count, signals);
    }
    for (size_t i = 0; i < count; i++) {
        tail_close(&tails[i]);
    }
    close(signals);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    const struct logs_options *options = target;
    struct session session;
    struct acre_error err = {0};
    uint64_t job;
    if (acre_parse_count("job", arguments[0], 1, INT64_MAX, &job, &err) < 0) {
        return cli_fail(&err);
    }
    if (session_open(&session, &options->common)) {
        show_logs(&session, options, job);
    }
    session_close(&session);
    return session.result;
}

#define AT(field) offsetof(struct logs_options, field)
static const struct acre_opt rows[] = {
    {.name = "follow",
     .letter = 'f',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(follow),
     .help = "keep printing until the run ends"},
    {.name = "stream",
     .kind = ACRE_OPT_CHOICE,
     .offset = AT(stream),
     .value = "NAME",
     .choices = "both,stdout,stderr",
     .help = "which log (default: both); stderr alone goes to standard output too"},
    {.name = "tail",
     .letter = 'n',
     .kind = ACRE_OPT_COUNT,
     .offset = AT(tail_bytes),
     .value = "BYTES",
     .help = "print only the last BYTES bytes (default: all)",
     .min = 1,
     .max = INT64_MAX},
    {.name = "attempt",
     .kind = ACRE_OPT_COUNT,
     .offset = AT(attempt),
     .value = "N",
     .help = "logs of the Nth run (default: the last)",
     .min = 1,
     .max = INT32_MAX},
    {.name = "raw",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(raw),
     .help = "print the bytes unchanged, on a terminal too"},
};

static const struct logs_options defaults = {.stream = "both"};

const struct acre_command command_logs = {
    .name = "logs",
    .summary = "print the output of a job; --follow streams it",
    .usage = "acre logs [options] JOB",
    .details = "On a terminal, colors pass through, but other escape sequences are shown as text\n"
               "(\\x1b[2J), because a terminal would obey them. Pipes and files get the bytes\n"
               "unchanged.\n"
               "\n"
               "Examples:\n"
               "  acre logs 1\n"
               "  acre logs --follow 1\n"
               "  acre logs --stream stderr --tail 2000 1",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = "jobs",
    .run = run,
    .options_size = sizeof(struct logs_options),
    .defaults = &defaults,
};
