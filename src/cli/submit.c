/* submit.c - `acre submit` queues a job; `acre run` also follows it to its end. */
#include "cli/submit.h"

#include "cli/cli.h"
#include "cli/follow.h"
#include "cli/show.h"

#include <string.h>

enum { WORDS_MAX_BYTES = 64 << 20 };

/* The answer to the submission, NULL after a failure (told in the session). */
static json_t *submit(struct session *session, const struct acre_command *command,
                      struct submit_options *options, int argument_count, char **arguments) {
    struct acre_arena *arena = acre_arena_create(WORDS_MAX_BYTES);
    struct acre_error err = {0};
    json_t *answer = NULL;
    json_t *body = submit_write_body(command, options, argument_count, arguments, arena, &err);
    if (body == NULL) {
        session->result = cli_fail(&err);
    } else if (session_open(session, &options->common)) {
        answer = session_call(session, "POST", "/jobs", body);
    } else {
        json_decref(body);
    }
    acre_arena_destroy(arena);
    return answer;
}

/* 0: no such thing (an array). */
static uint64_t id_of(const json_t *answer) {
    uint64_t id = 0;
    answer_u64(answer, "job.id", &id);
    return id;
}

static int run_submit(int argument_count, char **arguments, void *target) {
    struct submit_options *options = target;
    struct session session = {0};
    json_t *answer = submit(&session, &command_submit, options, argument_count, arguments);
    if (answer != NULL) {
        session_show(&session, answer, show_submitted, show_job_ids);
    }
    int status = session.result;
    if (answer != NULL && status == 0 && options->wait && id_of(answer) > 0) {
        status = follow_job(&session, id_of(answer), false);
    }
    json_decref(answer);
    session_close(&session);
    return status;
}

static int run_run(int argument_count, char **arguments, void *target) {
    struct submit_options *options = target;
    struct session session = {0};
    struct acre_error err = {0};
    if (options->array != NULL) {
        acre_fail(&err, ACRE_EINVALID,
                  "--array: 'acre run' follows a single job; use 'acre submit'");
        return cli_fail(&err);
    }
    json_t *answer = submit(&session, &command_run, options, argument_count, arguments);
    int status = session.result;
    if (answer != NULL && id_of(answer) > 0) {
        status = follow_job(&session, id_of(answer), true);
    }
    json_decref(answer);
    session_close(&session);
    return status;
}

const struct acre_command command_submit = {
    .name = "submit",
    .summary = "submit a job to the queue",
    .usage = "acre submit [options] -- COMMAND [ARG...]  |  acre submit [options] SCRIPT",
    .details =
        "A script starts with #! and may set options in the comments at its top:\n"
        "\n"
        "  #!/bin/sh\n"
        "  #ACRE --gpus 0.5 --time 2h\n"
        "\n"
        "Options on the command line override those in the script. A job starts with a clean\n"
        "environment (HOME, USER, PATH, its devices) plus what --env and --export add.\n"
        "\n"
        "Examples:\n"
        "  acre submit --gpus 1 --time 2h -- echo train\n"
        "  acre submit --gpus 0.5 --gpu-memory 20GiB --name half -- echo half a GPU\n"
        "  acre submit --annotations examples/pod.yaml -- echo as the manifest asks\n"
        "  acre submit --nodes 2 --gpus 4 --retries 2 -- sh -c 'echo member $ACRE_RANK'",
    .options = submit_option_rows,
    .option_count = ACRE_SUBMIT_ROWS,
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .takes = "files",
    .run = run_submit,
    .options_size = sizeof(struct submit_options),
};

const struct acre_command command_run = {
    .name = "run",
    .summary = "submit a job, show its output, and exit with its status",
    .usage = "acre run [options] -- COMMAND [ARG...]  |  acre run [options] SCRIPT",
    .details =
        "Shows the job's output as it is written (on a terminal, as 'acre logs' does). Ctrl-C\n"
        "cancels the job; a second Ctrl-C stops waiting for it. The exit status is the job's\n"
        "own; 128 + N if signal N ended it, 126 if it could not be started, 130 if it was\n"
        "canceled. Options and scripts are the same as for 'acre submit'.\n"
        "\n"
        "Examples:\n"
        "  acre run --gpus 1 -- env\n"
        "  acre run --gpus 0.5 --time 10m -- sh -c 'echo $CUDA_VISIBLE_DEVICES'",
    .options = submit_option_rows,
    .option_count = ACRE_SUBMIT_ROWS - 1, /* all but --wait */
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .takes = "files",
    .run = run_run,
    .options_size = sizeof(struct submit_options),
};
