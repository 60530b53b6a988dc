/* mps.c - the life of the MPS control daemons: one state machine a GPU.
 *
 *   down -> starting -> confirming -> up -> quitting -> dying -> down
 *
 * starting: the program forks its daemon and ends. confirming: a process of ours must listen on
 * the socket, and answer. up: asked every check_ms; two silences or its end mean it is lost, and
 * with it everything its clients had on the GPU; it is started again as long as shares are held.
 * quitting: asked to quit. dying: has so long to end, then is killed; servers it left are, too.
 *
 * Users may enter the pipe directory in the state "up" and in no other: those who hold shares,
 * from the moment the daemon has made its files until their last share is given back.
 *
 * Daemons outlive us, because jobs do. So "start" first looks whether one is there already; it
 * keeps its users until it has answered.
 * What is asked goes through the program's own client (ask.h): its protocol is the
 * vendor's and changes. */
#include "engine/mps.h"

#include "core/clock.h"
#include "core/str.h"
#include "engine/ask.h"
#include "engine/mps_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CHECK_MS = 5000,
    ANSWER_MS = 10000,
    CONFIRM_MS = 20,  /* between looks at a daemon that is coming up: takes about 10 ms */
    SILENCES_MAX = 2, /* one may be a busy machine */
    DEVICE_MAX = 72,
    OUTPUT_SHOWN = 160,
};

enum mps_state { DOWN, STARTING, CONFIRMING, UP, QUITTING, DYING };

struct mps_holder {
    uint64_t number;
    uid_t user;
    bool waiting; /* to be told */
    mps_ready *ready;
    void *context;
};

struct server {
    pid_t pid;
    int pidfd; /* whoever gets the number later is not killed */
};

struct mps_control {
    struct mps *mps;
    struct mps_control *next;
    char device[DEVICE_MAX];
    struct mps_paths paths;
    enum mps_state state;
    struct mps_holder *holders;
    uint32_t holder_count, holder_capacity;
    struct ask *ask;          /* one question at a time */
    struct acre_timer *timer; /* what the state waits for */
    struct acre_timer *soon;  /* tells holders that came while it was up */
    pid_t pid;
    int pidfd; /* -1: no process */
    struct acre_watch *watch;
    uint64_t deadline_ms; /* of starting */
    uint64_t up_since_ms;
    uint64_t pause_ms; /* before the next start */
    uint32_t silences;
    struct server servers[ACRE_MPS_SERVERS]; /* as last reported */
    uint32_t server_count;
};

struct mps {
    struct acre_loop *loop;
    struct mps_options options;
    char *directory, *program;
    struct mps_control *controls;
    uint32_t lost;
};

static void begin_again(void *context);
static void confirm(void *context);
static void on_end(void *context);

static uint64_t now_ms(void) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_monotonic_ns(&clock) / 1000000;
}

static void set_timer(struct mps_control *control, uint64_t delay_ms,
                      acre_loop_function *function) {
    acre_timer_cancel(control->timer);
    control->timer = acre_loop_timer(control->mps->loop, delay_ms, 0, function, control);
}

static void stop_waiting(struct mps_control *control) {
    acre_timer_cancel(control->timer);
    control->timer = NULL;
    ask_cancel(control->ask);
    control->ask = NULL;
}

/* --- holders --- */

static struct mps_holder *find_holder(const struct mps_control *control, uint64_t number) {
    for (uint32_t i = 0; i < control->holder_count; i++) {
        if (control->holders[i].number == number) {
            return &control->holders[i];
        }
    }
    return NULL;
}

static void remove_holder(struct mps_control *control, struct mps_holder *holder) {
    *holder = control->holders[--control->holder_count];
}

static struct mps_holder *find_waiting(const struct mps_control *control) {
    for (uint32_t i = 0; i < control->holder_count; i++) {
        if (control->holders[i].waiting) {
            return &control->holders[i];
        }
    }
    return NULL;
}

/* Tell all that wait; those told of a failure hold nothing. They may take and give meanwhile, so
 * each round starts anew. */
static void tell(struct mps_control *control, int result, const struct acre_error *err) {
    struct mps_holder *holder;
    while ((holder = find_waiting(control)) != NULL) {
        struct mps_holder told = *holder;
        if (result < 0) {
            remove_holder(control, holder);
        } else {
            holder->waiting = false;
        }
        if (told.ready != NULL) {
            told.ready(told.context, result, err);
        }
    }
}

static void tell_soon(void *context) {
    struct mps_control *control = context;
    control->soon = NULL;
    if (control->state == UP) { /* otherwise told when it is again */
        tell(control, 0, NULL);
    }
}

static int compare_users(const void *a, const void *b) {
    uid_t left = *(const uid_t *)a, right = *(const uid_t *)b;
    return left < right ? -1 : left > right;
}

static int admit_holders(struct mps_control *control, struct acre_error *err) {
    uid_t *users = acre_calloc(control->holder_count + 1, sizeof(*users));
    uint32_t count = 0;
    for (uint32_t i = 0; i < control->holder_count; i++) {
        users[i] = control->holders[i].user;
    }
    qsort(users, control->holder_count, sizeof(*users), compare_users);
    for (uint32_t i = 0; i < control->holder_count; i++) {
        if (count == 0 || users[count - 1] != users[i]) {
            users[count++] = users[i];
        }
    }
    int r = mps_paths_admit(&control->paths, users, count, err);
    free(users);
    return r;
}

/* --- the process --- */

/* Watch the daemon's process; false when it is gone already. */
static bool follow(struct mps_control *control, pid_t pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) {
        return false;
    }
    struct acre_watch *watch = acre_loop_watch(control->mps->loop, fd, on_end, control, NULL);
    if (watch == NULL || /* or the number was reused */
        !mps_process_is_daemon(&control->paths, control->mps->program, pid)) {
        acre_watch_cancel(watch);
        close(fd);
        return false;
    }
    control->pid = pid;
    control->pidfd = fd;
    control->watch = watch;
    return true;
}

static void unfollow(struct mps_control *control) {
    acre_watch_cancel(control->watch);
    control->watch = NULL;
    if (control->pidfd >= 0) {
        close(control->pidfd);
    }
    control->pidfd = -1;
    control->pid = 0;
}

static void kill_process(const struct mps_control *control) {
    if (control->pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, control->pidfd, SIGKILL, NULL, 0);
    }
}

static void forget_servers(struct mps_control *control) {
    for (uint32_t i = 0; i < control->server_count; i++) {
        close(control->servers[i].pidfd);
    }
    control->server_count = 0;
}

/* Servers of a daemon that is gone serve nobody. */
static void kill_servers(struct mps_control *control) {
    for (uint32_t i = 0; i < control->server_count; i++) {
        syscall(SYS_pidfd_send_signal, control->servers[i].pidfd, SIGKILL, NULL, 0);
    }
    forget_servers(control);
}

/* Of the processes that the daemon calls its servers, keep those that are. */
static void keep_servers(struct mps_control *control, const int64_t *pids, uint32_t count) {
    forget_servers(control);
    for (uint32_t i = 0; i < count; i++) {
        pid_t pid = (pid_t)pids[i];
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd >= 0 && mps_process_is_server(&control->paths, control->pid, pid)) {
            control->servers[control->server_count++] = (struct server){pid, fd};
        } else if (fd >= 0) {
            close(fd);
        }
    }
}

static void on_stubborn(void *context);

/* No daemon any more: a process that is left is killed, and waited for before the next one is
 * started (it would be taken for a living one). `pause_ms` before that, unless somebody waits. */
static void put_down(struct mps_control *control, uint64_t pause_ms) {
    stop_waiting(control);
    mps_paths_close(&control->paths);
    kill_servers(control);
    control->pause_ms = pause_ms;
    control->state = DOWN;
    if (control->pidfd >= 0) {
        kill_process(control);
        control->state = DYING;
        set_timer(control, control->mps->options.answer_ms, on_stubborn);
    }
}

/* A daemon that is down and has holders is started again. */
static void start_again(struct mps_control *control) {
    if (control->state == DOWN && control->holder_count > 0 && control->timer == NULL) {
        bool wanted = find_waiting(control) != NULL;
        set_timer(control, wanted ? 0 : control->pause_ms, begin_again);
    }
}

/* --- questions --- */

/* Run the program for this GPU: with `arguments` the daemon, without any the client. */
static int run_program(struct mps_control *control, const char *const *arguments, const char *input,
                       ask_done *done, struct acre_error *err) {
    const struct mps *mps = control->mps;
    char program[256], path[512], libraries[1024], device[DEVICE_MAX + 24];
    char pipe_line[ACRE_MPS_PATH + 32], log_line[ACRE_MPS_PATH + 48];
    int r = mps_find(mps->program, program, err);
    if (r < 0) {
        return r;
    }
    const char *own_path = getenv("PATH"), *own_libraries = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof(path), "PATH=%s", own_path != NULL ? own_path : "/usr/bin:/bin");
    snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s",
             own_libraries != NULL ? own_libraries : "");
    snprintf(device, sizeof(device), "CUDA_VISIBLE_DEVICES=%s", control->device);
    snprintf(pipe_line, sizeof(pipe_line), "CUDA_MPS_PIPE_DIRECTORY=%s", control->paths.pipe);
    snprintf(log_line, sizeof(log_line), "CUDA_MPS_LOG_DIRECTORY=%s", control->paths.log);
    const char *const env[] = {path,
                               device,
                               pipe_line,
                               log_line,
                               "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                               own_libraries != NULL ? libraries : NULL,
                               NULL};
    const char *const argv[] = {program, arguments[0], arguments[0] != NULL ? arguments[1] : NULL,
                                NULL};
    return ask_start(mps->loop, argv, env, input, mps->options.answer_ms, done, control,
                     &control->ask, err);
}

static int ask_client(struct mps_control *control, const char *command, ask_done *done,
                      struct acre_error *err) {
    static const char *const none[] = {NULL, NULL};
    return run_program(control, none, command, done, err);
}

/* What went wrong, with what the program said. */
static int explain(struct mps_control *control, const char *what, int result, int exit_code,
                   struct acre_str output, struct acre_error *err) {
    char shown[OUTPUT_SHOWN];
    acre_str_show(acre_str_trim(output), shown, sizeof(shown));
    if (result < 0) {
        return acre_fail(err, ACRE_ETIMEOUT, "MPS of %s: %s: no answer within the time limit",
                         control->device, what);
    }
    return acre_fail(err, ACRE_EUNAVAILABLE, "MPS of %s: %s: exit code %d: %s (logs in %s)",
                     control->device, what, exit_code, shown, control->paths.log);
}

static bool note_servers(struct mps_control *control, int result, int exit_code,
                         struct acre_str output) {
    int64_t pids[ACRE_MPS_SERVERS];
    uint32_t count;
    if (result != 0 || exit_code != 0 ||
        !mps_parse_servers(output.data, output.length, pids, &count)) {
        return false;
    }
    keep_servers(control, pids, count);
    return true;
}

/* --- starting --- */

static void start_failed(struct mps_control *control, const struct acre_error *err) {
    put_down(control, control->mps->options.check_ms);
    tell(control, err->code, err);
    start_again(control);
}

static void quit(struct mps_control *control);
static void check(void *context);

static void come_up(struct mps_control *control) {
    control->state = UP;
    control->silences = 0;
    control->up_since_ms = now_ms();
    struct acre_error err = {0};
    if (control->holder_count == 0) { /* given back meanwhile */
        quit(control);
    } else if (admit_holders(control, &err) < 0) {
        start_failed(control, &err);
    } else {
        set_timer(control, control->mps->options.check_ms, check);
        tell(control, 0, NULL);
    }
}

static void on_confirmed(void *context, int result, int exit_code, struct acre_str output) {
    struct mps_control *control = context;
    control->ask = NULL;
    if (note_servers(control, result, exit_code, output)) {
        come_up(control);
    } else if (now_ms() >= control->deadline_ms) {
        struct acre_error err = {0};
        explain(control, "get_server_list", result, exit_code, output, &err);
        start_failed(control, &err);
    } else {
        set_timer(control, CONFIRM_MS, confirm);
    }
}

/* The daemon must be there (its socket comes a moment after its parent has gone) and answer. */
static void confirm(void *context) {
    struct mps_control *control = context;
    struct acre_error err = {0};
    control->timer = NULL;
    if (control->pidfd < 0) {
        pid_t pid = mps_process_find(&control->paths, control->mps->program);
        if (pid == 0 || !follow(control, pid)) {
            if (now_ms() < control->deadline_ms) {
                set_timer(control, CONFIRM_MS, confirm);
                return;
            }
            acre_fail(&err, ACRE_EUNAVAILABLE, "MPS of %s: its daemon is not running (logs in %s)",
                      control->device, control->paths.log);
            start_failed(control, &err);
            return;
        }
    }
    if (ask_client(control, "get_server_list\n", on_confirmed, &err) < 0) {
        start_failed(control, &err);
    }
}

static void on_started(void *context, int result, int exit_code, struct acre_str output) {
    struct mps_control *control = context;
    control->ask = NULL;
    if (result < 0 || exit_code != 0) {
        struct acre_error err = {0};
        explain(control, "start", result, exit_code, output, &err);
        start_failed(control, &err);
        return;
    }
    control->state = CONFIRMING;
    set_timer(control, 0, confirm);
}

/* Start the daemon of a GPU that has none, or adopt the one an earlier process left. */
static int begin(struct mps_control *control, struct acre_error *err) {
    ACRE_ASSERT(control->state == DOWN && control->ask == NULL);
    static const char *const alone[] = {"-d", NULL};
    static const char *const for_all[] = {"-d", "-multiuser-server"};
    acre_timer_cancel(control->timer);
    control->timer = NULL;
    control->deadline_ms = now_ms() + control->mps->options.answer_ms;
    pid_t pid = mps_process_find(&control->paths, control->mps->program);
    if (pid != 0 && follow(control, pid)) {
        control->state = CONFIRMING;
        set_timer(control, 0, confirm);
        return 0;
    }
    int r = mps_paths_renew(&control->paths, err);
    if (r == 0) {
        bool multiuser = control->mps->options.multiuser && geteuid() == 0;
        r = run_program(control, multiuser ? for_all : alone, "", on_started, err);
    }
    if (r == 0) {
        control->state = STARTING;
    }
    return r;
}

static void begin_again(void *context) {
    struct mps_control *control = context;
    struct acre_error err = {0};
    control->timer = NULL;
    if (begin(control, &err) < 0) {
        start_failed(control, &err);
    }
}

/* --- running --- */

/* Its clients have lost what they had. Start again for those to come, but not in a tight loop. */
static void lose(struct mps_control *control, const char *why) {
    const struct mps_sink *sink = &control->mps->options.sink;
    uint64_t check_ms = control->mps->options.check_ms;
    bool young = now_ms() - control->up_since_ms < check_ms;
    char text[160];
    snprintf(text, sizeof(text), "the MPS daemon of %s %s; its clients lost their GPU memory",
             control->device, why);
    put_down(control, young ? check_ms : 0);
    control->mps->lost++;
    if (sink->lost != NULL) {
        sink->lost(sink->context, control->device, text);
    }
    start_again(control);
}

static void on_checked(void *context, int result, int exit_code, struct acre_str output) {
    struct mps_control *control = context;
    control->ask = NULL;
    bool answered = note_servers(control, result, exit_code, output);
    control->silences = answered ? 0 : control->silences + 1;
    if (control->silences >= SILENCES_MAX) {
        lose(control, "no longer answers");
        return;
    }
    set_timer(control, control->mps->options.check_ms, check);
}

static void check(void *context) {
    struct mps_control *control = context;
    control->timer = NULL;
    if (ask_client(control, "get_server_list\n", on_checked, NULL) < 0) {
        on_checked(control, ACRE_EUNAVAILABLE, 0, ACRE_STR(""));
    }
}

/* --- stopping --- */

static void stopped(struct mps_control *control) {
    put_down(control, control->pause_ms);
    start_again(control); /* taken again meanwhile */
}

static void on_stubborn(void *context) {
    struct mps_control *control = context;
    struct acre_error err = {0};
    control->timer = NULL;
    kill_process(control);
    set_timer(control, control->mps->options.answer_ms, on_stubborn);
    acre_fail(&err, ACRE_EUNAVAILABLE, "MPS of %s: the previous daemon does not stop",
              control->device);
    tell(control, err.code, &err);
}

static void on_quit(void *context, int result, int exit_code, struct acre_str output) {
    struct mps_control *control = context;
    (void)result, (void)exit_code, (void)output; /* whether it ended is what counts */
    control->ask = NULL;
    control->state = DYING;
    set_timer(control, control->mps->options.answer_ms, on_stubborn);
}

/* With a time: servers whose clients do not go are ended, too. */
static void quit(struct mps_control *control) {
    stop_waiting(control);
    mps_paths_close(&control->paths);
    control->pause_ms = 0;
    control->state = QUITTING;
    if (ask_client(control, "quit -t 2\n", on_quit, NULL) < 0) {
        on_quit(control, ACRE_EUNAVAILABLE, 0, ACRE_STR(""));
    }
}

/* The daemon's process ended. */
static void on_end(void *context) {
    struct mps_control *control = context;
    struct acre_error err = {0};
    unfollow(control);
    switch (control->state) {
    case UP:
        lose(control, "died");
        break;
    case QUITTING:
    case DYING:
        stopped(control);
        break;
    case CONFIRMING:
        acre_fail(&err, ACRE_EUNAVAILABLE,
                  "MPS of %s: its daemon died right after it started (logs in %s)", control->device,
                  control->paths.log);
        start_failed(control, &err);
        break;
    case DOWN:
    case STARTING:
        ACRE_ASSERT(false); /* no process is followed then */
    }
}

/* --- what others call --- */

int mps_create(const struct mps_options *options, struct acre_loop *loop, struct mps **ret_mps,
               struct acre_error *err) {
    struct mps_paths paths;
    int r =
        mps_paths_init(&paths, options->directory, "GPU-00000000-0000-0000-0000-000000000000", err);
    if (r < 0) {
        return r;
    }
    if (options->directory[0] != '/') {
        char shown[ACRE_MPS_PATH];
        return acre_fail(
            err, ACRE_EINVALID,
            "MPS directory '%s' is not an absolute path; accepted: a path that starts with /",
            acre_str_show(acre_str_from(options->directory), shown, sizeof(shown)));
    }
    r = mps_paths_make_home(options->directory, err);
    if (r < 0) {
        return r;
    }
    struct mps *mps = acre_calloc(1, sizeof(*mps));
    mps->loop = loop;
    mps->options = *options;
    mps->directory = acre_strdup(options->directory);
    mps->program = options->program != NULL ? acre_strdup(options->program) : NULL;
    mps->options.directory = mps->directory;
    mps->options.program = mps->program;
    mps->options.check_ms = options->check_ms > 0 ? options->check_ms : CHECK_MS;
    mps->options.answer_ms = options->answer_ms > 0 ? options->answer_ms : ANSWER_MS;
    *ret_mps = mps;
    return 0;
}

void mps_destroy(struct mps *mps) {
    if (mps == NULL) {
        return;
    }
    while (mps->controls != NULL) {
        struct mps_control *control = mps->controls;
        mps->controls = control->next;
        stop_waiting(control);
        acre_timer_cancel(control->soon);
        unfollow(control);
        forget_servers(control);
        free(control->holders);
        free(control);
    }
    free(mps->directory);
    free(mps->program);
    free(mps);
}

static struct mps_control *find_control(const struct mps *mps, const char *device) {
    struct mps_control *control = mps->controls;
    while (control != NULL && strcmp(control->device, device) != 0) {
        control = control->next;
    }
    return control;
}

static int get_control(struct mps *mps, const char *device, struct mps_control **ret_control,
                       struct acre_error *err) {
    struct mps_paths paths;
    struct mps_control *control = find_control(mps, device);
    if (control == NULL) {
        int r = mps_paths_init(&paths, mps->directory, device, err);
        if (r < 0) {
            return r;
        }
        control = acre_calloc(1, sizeof(*control));
        control->mps = mps;
        control->paths = paths;
        control->pidfd = -1;
        snprintf(control->device, sizeof(control->device), "%s", device);
        control->next = mps->controls;
        mps->controls = control;
    }
    *ret_control = control;
    return 0;
}

static void add_holder(struct mps_control *control, const struct mps_holder *holder) {
    struct mps_holder *known = find_holder(control, holder->number);
    if (known != NULL) {
        *known = *holder;
        return;
    }
    control->holders = acre_grow(control->holders, control->holder_count, &control->holder_capacity,
                                 sizeof(control->holders[0]));
    control->holders[control->holder_count++] = *holder;
}

int mps_take(struct mps *mps, const char *device, uint64_t holder, uid_t user, mps_ready *ready,
             void *context, struct acre_error *err) {
    struct mps_control *control;
    int r = get_control(mps, device, &control, err);
    if (r < 0) {
        return r;
    }
    const struct mps_holder *known = find_holder(control, holder);
    struct mps_holder before = known != NULL ? *known : (struct mps_holder){0};
    add_holder(control, &(struct mps_holder){holder, user, true, ready, context});
    if (control->state == DOWN) {
        r = begin(control, err);
    } else if (control->state == UP) {
        r = admit_holders(control, err);
    }
    if (r < 0) {
        if (known != NULL) {
            add_holder(control, &before);
        } else {
            remove_holder(control, find_holder(control, holder));
        }
        control->pause_ms = mps->options.check_ms;
        start_again(control);
        return r;
    }
    if (control->state == UP && control->soon == NULL) {
        control->soon = acre_loop_timer(mps->loop, 0, 0, tell_soon, control);
    }
    return 0;
}

void mps_give(struct mps *mps, const char *device, uint64_t holder) {
    struct mps_control *control = find_control(mps, device);
    struct mps_holder *known = control != NULL ? find_holder(control, holder) : NULL;
    if (known == NULL) {
        return;
    }
    remove_holder(control, known);
    if (control->holder_count == 0 && control->state == UP) {
        quit(control);
    } else if (control->state == UP && admit_holders(control, NULL) < 0) {
        mps_paths_close(&control->paths); /* rather nobody than one too many */
    } else if (control->holder_count == 0 && control->state == DOWN) {
        stop_waiting(control);
    }
}

void mps_pipe(const struct mps *mps, const char *device, char ret_pipe[108]) {
    struct mps_paths paths = {0};
    mps_paths_init(&paths, mps->directory, device, NULL);
    snprintf(ret_pipe, 108, "%s", paths.pipe);
}

bool mps_reap(struct mps *mps, const char *device) {
    struct mps_paths paths;
    struct mps_control *control = find_control(mps, device);
    bool busy = control != NULL && (control->state != DOWN || control->holder_count > 0);
    if (busy || mps_paths_init(&paths, mps->directory, device, NULL) < 0) {
        return false;
    }
    pid_t pid = mps_process_find(&paths, mps->program);
    if (pid == 0 || get_control(mps, device, &control, NULL) < 0 || !follow(control, pid)) {
        return false;
    }
    quit(control);
    return true;
}

uint32_t mps_servers(const struct mps *mps, int64_t *pids, uint32_t max) {
    uint32_t count = 0;
    for (const struct mps_control *control = mps->controls; control != NULL;
         control = control->next) {
        for (uint32_t i = 0; i < control->server_count; i++, count++) {
            if (count < max) {
                pids[count] = control->servers[i].pid;
            }
        }
    }
    return count;
}

uint32_t mps_count(const struct mps *mps, uint32_t *ret_lost) {
    uint32_t count = 0;
    for (const struct mps_control *control = mps->controls; control != NULL;
         control = control->next) {
        count += control->state != DOWN;
    }
    *ret_lost = mps->lost;
    return count;
}
