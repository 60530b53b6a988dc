/* job.c - commands on jobs by id: show, why, cancel, hold, release, priority.
 *
 * One row per command; each handles all its ids, and exits with the status of the first failure. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/units.h"

#include <stddef.h>
#include <string.h>

static int ask_jobs(int count, char **ids, const struct common *common, const char *method,
                    const char *after, show_function *view) {
    struct session_question question = {.method = method,
                                        .before = "/jobs/",
                                        .after = after,
                                        .number = "job",
                                        .view = view,
                                        .brief = show_job_ids};
    return cli_ask_each(common, &question, count, ids);
}

static int run_show(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "GET", "", show_job);
}

/* People get the sentence also for a job that does not wait; programs the daemon's own object. */
static int run_why(int count, char **ids, void *target) {
    const struct common *common = target;
    return ask_jobs(count, ids, common, "GET", common->json ? "/why" : "", show_why);
}

/* --- changes: of jobs, or with --array of all live members of arrays --- */

struct change_options {
    struct common common;
    bool array;
};

static const struct acre_opt change_rows[] = {
    {.name = "array",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct change_options, array),
     .help = "JOB is an array: apply to all its jobs that have not ended"},
};

static int ask_change(int count, char **ids, const struct change_options *change,
                      struct session_question *question) {
    question->before = change->array ? "/arrays/" : "/jobs/";
    question->number = change->array ? "array" : "job";
    question->brief = show_job_ids;
    return cli_ask_each(&change->common, question, count, ids);
}

/* A job's state, or the members of an array that were changed. */
static void view_change(const struct show *view, const json_t *answer, const char *done) {
    char id[32];
    size_t count = json_array_size(answer_at(answer, "jobs"));
    if (count == 0) {
        show_job_line(view, answer);
        return;
    }
    acre_buf_printf(view->out, "array %s: %zu job%s %s\n",
                    answer_count(answer, "array", id, sizeof(id)), count, count == 1 ? "" : "s",
                    done);
}

static void view_canceled(const struct show *view, const json_t *answer) {
    view_change(view, answer, "canceled");
}

static void view_held(const struct show *view, const json_t *answer) {
    view_change(view, answer, "held");
}

static void view_released(const struct show *view, const json_t *answer) {
    view_change(view, answer, "released");
}

static void view_priority(const struct show *view, const json_t *answer) {
    char id[32], level[32];
    if (answer_at(answer, "jobs") != NULL) {
        view_change(view, answer, "changed");
        return;
    }
    acre_buf_printf(view->out, "job %s now has priority %s\n",
                    answer_count(answer, "job.id", id, sizeof(id)),
                    answer_count(answer, "job.priority", level, sizeof(level)));
}

static int run_cancel(int count, char **ids, void *target) {
    struct session_question question = {.method = "DELETE", .after = "", .view = view_canceled};
    return ask_change(count, ids, target, &question);
}

static int run_hold(int count, char **ids, void *target) {
    struct session_question question = {.method = "POST", .after = "/hold", .view = view_held};
    return ask_change(count, ids, target, &question);
}

static int run_release(int count, char **ids, void *target) {
    struct session_question question = {
        .method = "POST", .after = "/release", .view = view_released};
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
                  "priority: unknown level '%s'; accepted: 1 to 4, or low, normal, high, critical",
                  acre_str_show(acre_str_from(word), shown, sizeof(shown)));
        return cli_fail(&err);
    }
    struct session_question question = {.method = "PATCH",
                                        .after = "/priority",
                                        .body = json_pack("{s:I}", "priority", (json_int_t)level),
                                        .view = view_priority};
    int status = ask_change(count - 1, arguments, target, &question);
    json_decref(question.body);
    return status;
}

#define JOBS_COMMAND(command_name, least, command_run)                                             \
    .name = command_name, .shared = common_rows, .shared_count = ACRE_COMMON_ROWS,                 \
    .min_arguments = least, .max_arguments = UINT32_MAX, .takes = "jobs", .run = command_run
#define SHOW_COMMAND(command_name, command_run)                                                    \
    JOBS_COMMAND(command_name, 1, command_run), .options_size = sizeof(struct common)
#define CHANGE_COMMAND(command_name, least, command_run)                                           \
    JOBS_COMMAND(command_name, least, command_run), .options = change_rows,                        \
                                                    .option_count = ACRE_COUNT(change_rows),       \
                                                    .options_size = sizeof(struct change_options)

const struct acre_command command_show = {
    SHOW_COMMAND("show", run_show),
    .summary = "show all details of jobs, whether waiting, running or ended",
    .usage = "acre show [options] JOB...",
    .details = "Examples:\n"
               "  acre show 1\n"
               "  acre show --json 1 | jq .job.exit",
};

const struct acre_command command_why = {
    SHOW_COMMAND("why", run_why),
    .summary = "explain why a job is waiting, what would help, and when it will start",
    .usage = "acre why [options] JOB...",
    .details =
        "Shows the first reason that keeps the job from starting, with its numbers. The start\n"
        "time is estimated from all running and waiting jobs; nine jobs in ten start within the\n"
        "interval.\n"
        "\n"
        "Examples:\n"
        "  acre why 1\n"
        "  acre why --json 3",
};

const struct acre_command command_cancel = {
    CHANGE_COMMAND("cancel", 1, run_cancel),
    .summary = "cancel jobs, waiting or running",
    .usage = "acre cancel [options] JOB...",
    .details =
        "A running job gets SIGTERM, and SIGKILL after its grace period. All its processes end\n"
        "with it, and its GPUs are free again.\n"
        "\n"
        "Examples:\n"
        "  acre cancel 2\n"
        "  acre cancel --array 4",
};

const struct acre_command command_hold = {
    CHANGE_COMMAND("hold", 1, run_hold),
    .summary = "keep waiting jobs from starting",
    .usage = "acre hold [options] JOB...",
    .details = "Example:\n"
               "  acre hold 3",
};

const struct acre_command command_release = {
    CHANGE_COMMAND("release", 1, run_release),
    .summary = "let held jobs start",
    .usage = "acre release [options] JOB...",
    .details = "Example:\n"
               "  acre release 3",
};

const struct acre_command command_priority = {
    CHANGE_COMMAND("priority", 2, run_priority),
    .summary = "change the priority of waiting jobs",
    .usage = "acre priority [options] JOB... LEVEL",
    .details =
        "LEVEL is low, normal, high, critical or 1 to 4; critical requires the operator role.\n"
        "\n"
        "Example:\n"
        "  acre priority 3 high",
};
