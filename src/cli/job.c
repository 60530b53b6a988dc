/* job.c - what is asked of jobs one by one: show, why, cancel, hold, release, priority.
 *
 * One row a command; each takes ids, does all it can, and exits with the first failure. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/units.h"

#include <stddef.h>
#include <string.h>

static int ask_jobs(int count, char **ids, const struct acre_common *common, const char *method,
                    const char *after, acre_show_function *view) {
    struct acre_question question = {.method = method,
                                     .before = "/jobs/",
                                     .after = after,
                                     .number = "job",
                                     .view = view,
                                     .brief = acre_show_job_ids};
    return acre_cli_ask_each(common, &question, count, ids);
}

static int run_show(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "GET", "", acre_show_job);
}

/* People get the sentence also for a job that does not wait; programs the daemon's own object. */
static int run_why(int count, char **ids, void *target) {
    const struct acre_common *common = target;
    return ask_jobs(count, ids, common, "GET", common->json ? "/why" : "", acre_show_why);
}

/* --- changes: of jobs, or with --array of all live members of arrays --- */

struct change {
    struct acre_common common;
    bool array;
};

static const struct acre_opt change_rows[] = {
    {.name = "array",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct change, array),
     .help = "JOB is the number of an array: all its jobs that are not over"},
};

static int ask_change(int count, char **ids, const struct change *change,
                      struct acre_question *question) {
    question->before = change->array ? "/arrays/" : "/jobs/";
    question->number = change->array ? "array" : "job";
    question->brief = acre_show_job_ids;
    return acre_cli_ask_each(&change->common, question, count, ids);
}

/* A job's state, or the members of an array that were changed. */
static void view_change(const struct acre_show *view, const json_t *answer, const char *done) {
    char id[32];
    size_t count = json_array_size(acre_answer_at(answer, "jobs"));
    if (count == 0) {
        acre_show_job_line(view, answer);
        return;
    }
    acre_buf_printf(view->out, "array %s: %zu job%s %s\n",
                    acre_answer_count(answer, "array", id, sizeof(id)), count,
                    count == 1 ? "" : "s", done);
}

static void view_canceled(const struct acre_show *view, const json_t *answer) {
    view_change(view, answer, "canceled");
}

static void view_held(const struct acre_show *view, const json_t *answer) {
    view_change(view, answer, "held");
}

static void view_released(const struct acre_show *view, const json_t *answer) {
    view_change(view, answer, "released");
}

static void view_priority(const struct acre_show *view, const json_t *answer) {
    char id[32], level[32];
    if (acre_answer_at(answer, "jobs") != NULL) {
        view_change(view, answer, "changed");
        return;
    }
    acre_buf_printf(view->out, "job %s has priority %s\n",
                    acre_answer_count(answer, "job.id", id, sizeof(id)),
                    acre_answer_count(answer, "job.priority", level, sizeof(level)));
}

static int run_cancel(int count, char **ids, void *target) {
    struct acre_question question = {.method = "DELETE", .after = "", .view = view_canceled};
    return ask_change(count, ids, target, &question);
}

static int run_hold(int count, char **ids, void *target) {
    struct acre_question question = {.method = "POST", .after = "/hold", .view = view_held};
    return ask_change(count, ids, target, &question);
}

static int run_release(int count, char **ids, void *target) {
    struct acre_question question = {.method = "POST", .after = "/release", .view = view_released};
    return ask_change(count, ids, target, &question);
}

static int run_priority(int count, char **arguments, void *target) {
    static const char *const levels[] = {"low", "normal", "high", "critical"};
    const char *word = arguments[count - 1];
    uint64_t level = 0;
    struct acre_error err = {0};
    for (size_t i = 0; i < ACRE_COUNT(levels); i++) {
        level = strcmp(word, levels[i]) == 0 ? i + 1 : level;
    }
    if (level == 0 && acre_parse_count("priority", word, 1, 4, &level, NULL) < 0) {
        char shown[64];
        acre_fail(&err, ACRE_EINVALID,
                  "priority: '%s' is no level; accepted: 1 to 4, or low, normal, high, critical",
                  acre_str_show(acre_str_from(word), shown, sizeof(shown)));
        return acre_cli_fail(&err);
    }
    struct acre_question question = {.method = "PATCH",
                                     .after = "/priority",
                                     .body = json_pack("{s:I}", "priority", (json_int_t)level),
                                     .view = view_priority};
    int status = ask_change(count - 1, arguments, target, &question);
    json_decref(question.body);
    return status;
}

#define JOBS_COMMAND(command_name, least, command_run)                                             \
    .name = command_name, .shared = acre_common_rows, .shared_count = ACRE_COMMON_ROWS,            \
    .min_arguments = least, .max_arguments = UINT32_MAX, .takes = "jobs", .run = command_run
#define SHOW_COMMAND(command_name, command_run)                                                    \
    JOBS_COMMAND(command_name, 1, command_run), .options_size = sizeof(struct acre_common)
#define CHANGE_COMMAND(command_name, least, command_run)                                           \
    JOBS_COMMAND(command_name, least, command_run), .options = change_rows,                        \
                                                    .option_count = ACRE_COUNT(change_rows),       \
                                                    .options_size = sizeof(struct change)

const struct acre_command acre_command_show = {
    SHOW_COMMAND("show", run_show),
    .summary = "everything about jobs, running, waiting or ended",
    .usage = "acre show [options] JOB...",
    .details = "Examples:\n"
               "  acre show 1\n"
               "  acre show --json 1 | jq .job.exit",
};

const struct acre_command acre_command_why = {
    SHOW_COMMAND("why", run_why),
    .summary = "why a job waits, what would help, and when it will start",
    .usage = "acre why [options] JOB...",
    .details = "One reason, with its numbers: the first that stands in the way. The start is\n"
               "estimated from everything that runs and waits; nine jobs in ten start inside the\n"
               "interval.\n"
               "\n"
               "Example:\n"
               "  acre why 1",
};

const struct acre_command acre_command_cancel = {
    CHANGE_COMMAND("cancel", 1, run_cancel),
    .summary = "end jobs, waiting or running",
    .usage = "acre cancel [options] JOB...",
    .details = "A running job gets SIGTERM, then SIGKILL after its grace; everything it started\n"
               "goes with it, and its GPUs come back.\n"
               "\n"
               "Examples:\n"
               "  acre cancel 2\n"
               "  acre cancel --array 4",
};

const struct acre_command acre_command_hold = {
    CHANGE_COMMAND("hold", 1, run_hold),
    .summary = "keep waiting jobs from starting",
    .usage = "acre hold [options] JOB...",
    .details = "Example:\n"
               "  acre hold 3",
};

const struct acre_command acre_command_release = {
    CHANGE_COMMAND("release", 1, run_release),
    .summary = "let held jobs start",
    .usage = "acre release [options] JOB...",
    .details = "Example:\n"
               "  acre release 3",
};

const struct acre_command acre_command_priority = {
    CHANGE_COMMAND("priority", 2, run_priority),
    .summary = "change how urgent waiting jobs are",
    .usage = "acre priority [options] JOB... LEVEL",
    .details = "LEVEL is low, normal, high, critical or 1 to 4; critical needs an operator.\n"
               "\n"
               "Example:\n"
               "  acre priority 3 high",
};
