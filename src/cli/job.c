/* job.c - what is asked of jobs one by one: show, why, cancel, hold, release, priority.
 *
 * One row a command; each takes ids, does all it can, and exits with the first failure. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "core/units.h"

#include <string.h>

static int ask_jobs(int count, char **ids, const struct acre_common *common, const char *method,
                    const char *after, json_t *body, acre_show_function *view) {
    struct acre_question question = {.method = method,
                                     .before = "/jobs/",
                                     .after = after,
                                     .number = "job",
                                     .body = body,
                                     .view = view,
                                     .brief = acre_show_job_ids};
    return acre_cli_ask_each(common, &question, count, ids);
}

static int run_show(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "GET", "", NULL, acre_show_job);
}

/* People get the sentence also for a job that does not wait; programs the daemon's own object. */
static int run_why(int count, char **ids, void *target) {
    const struct acre_common *common = target;
    return ask_jobs(count, ids, common, "GET", common->json ? "/why" : "", NULL, acre_show_why);
}

static int run_cancel(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "DELETE", "", NULL, acre_show_job_line);
}

static int run_hold(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "POST", "/hold", NULL, acre_show_job_line);
}

static int run_release(int count, char **ids, void *target) {
    return ask_jobs(count, ids, target, "POST", "/release", NULL, acre_show_job_line);
}

static void view_priority(const struct acre_show *view, const json_t *answer) {
    char id[32], level[32];
    acre_buf_printf(view->out, "job %s has priority %s\n",
                    acre_answer_count(answer, "job.id", id, sizeof(id)),
                    acre_answer_count(answer, "job.priority", level, sizeof(level)));
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
    json_t *body = json_pack("{s:I}", "priority", (json_int_t)level);
    int status = ask_jobs(count - 1, arguments, target, "PATCH", "/priority", body, view_priority);
    json_decref(body);
    return status;
}

#define JOBS_COMMAND(command_name, least, command_run)                                             \
    .name = command_name, .shared = acre_common_rows, .shared_count = ACRE_COMMON_ROWS,            \
    .min_arguments = least, .max_arguments = UINT32_MAX, .takes = "jobs", .run = command_run,      \
    .options_size = sizeof(struct acre_common)

const struct acre_command acre_command_show = {
    JOBS_COMMAND("show", 1, run_show),
    .summary = "everything about jobs, running, waiting or ended",
    .usage = "acre show [options] JOB...",
    .details = "Examples:\n"
               "  acre show 1\n"
               "  acre show --json 1 | jq .job.exit",
};

const struct acre_command acre_command_why = {
    JOBS_COMMAND("why", 1, run_why),
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
    JOBS_COMMAND("cancel", 1, run_cancel),
    .summary = "end jobs, waiting or running",
    .usage = "acre cancel [options] JOB...",
    .details = "A running job gets SIGTERM, then SIGKILL after its grace; everything it started\n"
               "goes with it, and its GPUs come back.\n"
               "\n"
               "Example:\n"
               "  acre cancel 2",
};

const struct acre_command acre_command_hold = {
    JOBS_COMMAND("hold", 1, run_hold),
    .summary = "keep waiting jobs from starting",
    .usage = "acre hold [options] JOB...",
    .details = "Example:\n"
               "  acre hold 3",
};

const struct acre_command acre_command_release = {
    JOBS_COMMAND("release", 1, run_release),
    .summary = "let held jobs start",
    .usage = "acre release [options] JOB...",
    .details = "Example:\n"
               "  acre release 3",
};

const struct acre_command acre_command_priority = {
    JOBS_COMMAND("priority", 2, run_priority),
    .summary = "change how urgent waiting jobs are",
    .usage = "acre priority [options] JOB... LEVEL",
    .details = "LEVEL is low, normal, high, critical or 1 to 4; critical needs an operator.\n"
               "\n"
               "Example:\n"
               "  acre priority 3 high",
};
