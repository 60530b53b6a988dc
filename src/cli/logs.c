/* logs.c - `acre logs`: what a job wrote, standard output to ours and standard error to ours.
 *
 * Both are copied at once while following; without, one after the other, so that the result does
 * not depend on timing. */
#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/tail.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct acre_common common;
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
static void copy_all(struct acre_session *session, struct acre_tail *tails, size_t count,
                     int signals) {
    struct acre_error err = {0};
    bool ended = false;
    while (!ended) {
        bool signaled = false;
        if (acre_client_wait(session->client, signals, WAIT_MS, &signaled, &err) < 0) {
            acre_session_fail(session, &err);
            return;
        }
        if (signaled) {
            session->result = STATUS_INTERRUPTED;
            return;
        }
        ended = true;
        for (size_t i = 0; i < count; i++) {
            ended = acre_tail_ended(&tails[i]) && ended;
        }
    }
}

static void show_logs(struct acre_session *session, const struct options *options, uint64_t job) {
    struct acre_tail tails[ACRE_COUNT(streams)];
    size_t count = 0;
    int signals = acre_follow_signals();
    for (size_t i = 0; i < ACRE_COUNT(streams); i++) {
        if (strcmp(options->stream, "both") != 0 && strcmp(options->stream, streams[i].name) != 0) {
            continue;
        }
        tails[count] = (struct acre_tail){
            .session = session,
            .job = job,
            .attempt = options->attempt,
            .name = streams[i].name,
            .fd = strcmp(options->stream, "both") == 0 ? streams[i].fd : STDOUT_FILENO,
            .follow = options->follow,
            .raw = options->raw,
            .offset = -(int64_t)options->tail_bytes,
        };
        if (!acre_tail_open(&tails[count])) {
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
        acre_tail_close(&tails[i]);
    }
    close(signals);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    const struct options *options = target;
    struct acre_session session;
    struct acre_error err = {0};
    uint64_t job;
    if (acre_parse_count("job", arguments[0], 1, INT64_MAX, &job, &err) < 0) {
        return acre_cli_fail(&err);
    }
    if (acre_session_open(&session, &options->common)) {
        show_logs(&session, options, job);
    }
    acre_session_close(&session);
    return session.result;
}

#define AT(field) offsetof(struct options, field)
static const struct acre_opt rows[] = {
    {.name = "follow",
     .letter = 'f',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(follow),
     .help = "go on until the run has ended"},
    {.name = "stream",
     .kind = ACRE_OPT_CHOICE,
     .offset = AT(stream),
     .value = "NAME",
     .choices = "both,stdout,stderr",
     .help = "which log; one alone comes to standard output"},
    {.name = "tail",
     .letter = 'n',
     .kind = ACRE_OPT_COUNT,
     .offset = AT(tail_bytes),
     .value = "BYTES",
     .help = "only so many at the end (all)",
     .min = 1,
     .max = INT64_MAX},
    {.name = "attempt",
     .kind = ACRE_OPT_COUNT,
     .offset = AT(attempt),
     .value = "N",
     .help = "of the Nth run (the last)",
     .min = 1,
     .max = INT32_MAX},
    {.name = "raw",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(raw),
     .help = "on a terminal too, every byte as it was written"},
};

static const struct options defaults = {.stream = "both"};

const struct acre_command acre_command_logs = {
    .name = "logs",
    .summary = "what a job wrote; live with --follow",
    .usage = "acre logs [options] JOB",
    .details = "On a terminal, colours pass and other escape sequences are made visible\n"
               "(\\x1b[2J): a terminal obeys whatever it is shown. Pipes and files get the bytes\n"
               "as they are.\n"
               "\n"
               "Examples:\n"
               "  acre logs 1\n"
               "  acre logs --follow 1\n"
               "  acre logs --stream stderr --tail 2000 1",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = "jobs",
    .run = run,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};
