/* submit.c - `acre submit` and `acre run`: the same job, the one left to itself, the other followed
 * to its end. */
#include "cli/submit.h"

#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/show.h"

#include <string.h>

enum { WORDS_MAX_BYTES = 64 << 20 };

/* The answer to the submission, NULL after a failure (told in the session). */
static json_t *submit(struct acre_session *session, const struct acre_command *command,
                      struct acre_submit *options, int argument_count, char **arguments) {
    struct acre_arena *arena = acre_arena_create(WORDS_MAX_BYTES);
    struct acre_error err = {0};
    json_t *answer = NULL;
    json_t *body = acre_submit_body(command, options, argument_count, arguments, arena, &err);
    if (body == NULL) {
        session->result = acre_cli_fail(&err);
    } else if (acre_session_open(session, &options->common)) {
        answer = acre_session_call(session, "POST", "/jobs", body);
    } else {
        json_decref(body);
    }
    acre_arena_destroy(arena);
    return answer;
}

/* 0: no such thing (an array). */
static uint64_t id_of(const json_t *answer) {
    uint64_t id = 0;
    acre_answer_u64(answer, "job.id", &id);
    return id;
}

static int run_submit(int argument_count, char **arguments, void *target) {
    struct acre_submit *options = target;
    struct acre_session session = {0};
    json_t *answer = submit(&session, &acre_command_submit, options, argument_count, arguments);
    if (answer != NULL) {
        acre_session_show(&session, answer, acre_show_submitted, acre_show_job_ids);
    }
    int status = session.result;
    if (answer != NULL && status == 0 && options->wait && id_of(answer) > 0) {
        status = acre_follow(&session, id_of(answer), false);
    }
    json_decref(answer);
    acre_session_close(&session);
    return status;
}

static int run_run(int argument_count, char **arguments, void *target) {
    struct acre_submit *options = target;
    struct acre_session session = {0};
    struct acre_error err = {0};
    if (options->array != NULL) {
        acre_fail(&err, ACRE_EINVALID, "--array: 'run' follows one job; use 'submit'");
        return acre_cli_fail(&err);
    }
    json_t *answer = submit(&session, &acre_command_run, options, argument_count, arguments);
    int status = session.result;
    if (answer != NULL && id_of(answer) > 0) {
        status = acre_follow(&session, id_of(answer), true);
    }
    json_decref(answer);
    acre_session_close(&session);
    return status;
}

const struct acre_command acre_command_submit = {
    .name = "submit",
    .summary = "put a job into the queue",
    .usage = "acre submit [options] -- COMMAND [ARG...]  |  acre submit [options] SCRIPT",
    .details =
        "A script begins with #! and may hold options of its own, in the comments it begins with:\n"
        "\n"
        "  #!/bin/sh\n"
        "  #ACRE --gpus 0.5 --time 2h\n"
        "\n"
        "The command line wins over the script. A job begins with a clean environment (HOME, "
        "USER,\n"
        "PATH, the devices it was given) and what --env and --export add.\n"
        "\n"
        "Examples:\n"
        "  acre submit --gpus 1 --time 2h -- echo train\n"
        "  acre submit --gpus 0.5 --gpu-memory 20GiB --name half -- echo half a GPU\n"
        "  acre submit --nodes 2 --gpus 4 --retries 2 -- sh -c 'echo member $ACRE_RANK'",
    .options = acre_submit_rows,
    .option_count = ACRE_SUBMIT_ROWS,
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .takes = "files",
    .run = run_submit,
    .options_size = sizeof(struct acre_submit),
};

const struct acre_command acre_command_run = {
    .name = "run",
    .summary = "put a job into the queue, show its output, and exit with its status",
    .usage = "acre run [options] -- COMMAND [ARG...]  |  acre run [options] SCRIPT",
    .details = "Standard output and error arrive as they are written (on a terminal, as\n"
               "'acre logs' shows them). Ctrl-C cancels the job; pressed again, it leaves it. The\n"
               "exit status is the job's own; 128 + N when signal N ended it, 126 when it could\n"
               "not be started, 130 when it was canceled. Options and scripts are those of\n"
               "'acre submit'.\n"
               "\n"
               "Examples:\n"
               "  acre run --gpus 1 -- env\n"
               "  acre run --gpus 0.5 --time 10m -- sh -c 'echo $CUDA_VISIBLE_DEVICES'",
    .options = acre_submit_rows,
    .option_count = ACRE_SUBMIT_ROWS - 1, /* all but --wait */
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .takes = "files",
    .run = run_run,
    .options_size = sizeof(struct acre_submit),
};
