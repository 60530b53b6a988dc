/* mps_try.c - shares of a real GPU without the daemon: mps.c, visible.c and bpf.c put together.
 *
 *   mps_try --directory DIR --gpu UUID --pci ID [--cgroup DIR] --share MILLI:MIB:UID ...
 *           -- COMMAND ...
 *
 * Runs the command once for each share, all at the same time, each as its user, with the
 * environment of a run that holds the share; with --cgroup (a v2 directory) each in a cgroup of its
 * own that may open the nodes of this GPU and no other. {N} in an argument is the share's number.
 * Output goes to DIR/out.<number>. Prints one JSON object for each event; exits with 0 when the
 * daemon came up and went, and with 1 otherwise (the command's exit codes are in the events). */
#include "core/clock.h"
#include "engine/mps.h"
#include "engine/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHARES_MAX = 10, ARGUMENTS_MAX = 64, ENVIRONMENT_MAX = 64, DOWN_LOOK_MS = 20 };

struct try;

struct share {
    struct try *try;
    uint32_t number;
    struct acre_run_device device;
    uid_t user;
    pid_t pid;
    int pidfd;
    struct acre_watch *watch;
};

struct try {
    const char *directory, *gpu, *pci, *cgroup;
    char **command;
    struct share shares[SHARES_MAX];
    uint32_t share_count, running;
    struct acre_loop *loop;
    struct mps *mps;
    uint64_t began_ms;
    bool failed;
};

static uint64_t passed_ms(const struct try *try) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_wall_ms(&clock) - try->began_ms;
}

static void say(const struct try *try, const char *event, uint32_t share, int64_t value,
                const char *text) {
    printf("{\"event\":\"%s\",\"ms\":%" PRIu64 ",\"share\":%u,\"value\":%" PRId64
           ",\"text\":\"%s\"}\n",
           event, passed_ms(try), share, value, text);
    fflush(stdout);
}

static void fail(struct try *try, const char *event, uint32_t share, const char *text) {
    try->failed = true;
    say(try, event, share, -1, text);
}

static void look_down(void *context) {
    struct try *try = context;
    uint32_t lost;
    if (mps_count(try->mps, &lost) == 0) {
        say(try, "down", 0, lost, "");
        acre_loop_stop(try->loop);
    }
}

static void ended(struct share *share) {
    struct try *try = share->try;
    mps_give(try->mps, try->gpu, share->number);
    if (--try->running == 0) {
        say(try, "all ended", 0, 0, "");
        acre_loop_timer(try->loop, 0, DOWN_LOOK_MS, look_down, try);
    }
}

static void on_exit_of(void *context) {
    struct share *share = context;
    int status;
    if (waitpid(share->pid, &status, WNOHANG) != share->pid) {
        return;
    }
    acre_watch_cancel(share->watch);
    close(share->pidfd);
    say(share->try, "exit", share->number,
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), "");
    ended(share);
}

/* A cgroup for the share that may open this GPU's nodes and no other. Returns its cgroup.procs. */
static int enclose(struct try *try, const struct share *share) {
    char path[256];
    struct acre_error err = {0};
    struct visible_nodes nodes = {0};
    struct bpf_rule rules[32];
    snprintf(path, sizeof(path), "%s/acre-try-%u", try->cgroup, share->number);
    mkdir(path, 0755);
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        fail(try, "cgroup", share->number, strerror(errno));
        return -1;
    }
    int r = visible_find_nodes(NULL, &share->device, 1, 0, &nodes, &err);
    for (uint32_t i = 0; r == 0 && i < nodes.count && i < ACRE_COUNT(rules); i++) {
        rules[i] = nodes.items[i].rule;
        say(try, "node", share->number, rules[i].minor, nodes.items[i].path);
    }
    if (r == 0) {
        r = bpf_attach(directory, rules, nodes.count, &err);
    }
    if (r < 0) {
        fail(try, "filter", share->number, err.text);
    } else {
        say(try, "filter", share->number, nodes.count, "in force");
    }
    int procs = openat(directory, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    visible_nodes_finish(&nodes);
    close(directory);
    return procs;
}

_Noreturn static void become(const struct share *share, int procs, char **env) {
    struct try *try = share->try;
    static char texts[ARGUMENTS_MAX][256];
    char *argv[ARGUMENTS_MAX + 1] = {NULL};
    char path[256];
    for (uint32_t i = 0; i < ARGUMENTS_MAX && try->command[i] != NULL; i++) {
        const char *mark = strstr(try->command[i], "{N}");
        int before = mark != NULL ? (int)(mark - try->command[i]) : (int)strlen(try->command[i]);
        snprintf(texts[i], sizeof(texts[i]), "%.*s", before, try->command[i]);
        if (mark != NULL) {
            snprintf(texts[i] + before, sizeof(texts[i]) - (size_t)before, "%u%s", share->number,
                     mark + 3);
        }
        argv[i] = texts[i];
    }
    snprintf(path, sizeof(path), "%s/out.%u", try->directory, share->number);
    int output = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if ((procs >= 0 && write(procs, "0", 1) != 1) || output < 0 || dup2(output, 1) < 0 ||
        dup2(output, 2) < 0) {
        _exit(126);
    }
    if (share->user != geteuid() &&
        (setgroups(0, NULL) != 0 || setgid((gid_t)share->user) != 0 || setuid(share->user) != 0)) {
        _exit(126);
    }
    execve(argv[0], argv, env);
    _exit(127);
}

static void on_ready(void *context, int result, const struct acre_error *err) {
    struct share *share = context;
    struct try *try = share->try;
    char pipe_path[108];
    char *env[ENVIRONMENT_MAX] = {NULL};
    struct acre_buf text;
    struct acre_error failure = {0};
    if (result < 0) {
        fail(try, "not ready", share->number, err->text);
        ended(share);
        return;
    }
    say(try, "ready", share->number, 0, "");
    mps_pipe(try->mps, try->gpu, pipe_path);
    acre_buf_init(&text, 65536);
    const char *libraries = getenv("LD_LIBRARY_PATH");
    acre_buf_printf(&text, "LD_LIBRARY_PATH=%s", libraries != NULL ? libraries : "");
    acre_buf_putc(&text, '\0');
    if (visible_environment(NULL, &share->device, 1, 0, pipe_path, &text, &failure) < 0) {
        fail(try, "environment", share->number, failure.text);
    }
    uint32_t count = 0;
    for (char *p = text.data; p < text.data + text.length && count + 1 < ENVIRONMENT_MAX;
         p += strlen(p) + 1) {
        env[count++] = p;
    }
    int procs = try->cgroup != NULL ? enclose(try, share) : -1;
    share->pid = fork();
    if (share->pid == 0) {
        become(share, procs, env);
    }
    if (procs >= 0) {
        close(procs);
    }
    acre_buf_finish(&text);
    share->pidfd = (int)syscall(SYS_pidfd_open, share->pid, 0);
    share->watch = acre_loop_watch(try->loop, share->pidfd, on_exit_of, share, NULL);
}

static void on_lost(void *context, const char *device, const char *text) {
    (void)device;
    fail(context, "lost", 0, text);
}

static bool parse_share(struct try *try, const char *text) {
    unsigned milli, mib, user;
    if (try->share_count == SHARES_MAX || sscanf(text, "%u:%u:%u", &milli, &mib, &user) != 3) {
        return false;
    }
    struct share *share = &try->shares[try->share_count];
    *share = (struct share){.try = try, .number = try->share_count++, .user = user};
    share->device = (struct acre_run_device){
        .vendor = "nvidia", .milli = milli, .mib = mib, .isolation = "mps"};
    return true;
}

static bool parse(struct try *try, int argc, char **argv) {
    const struct {
        const char *name;
        const char **value;
    } options[] = {{"--directory", &try->directory},
                   {"--gpu", &try->gpu},
                   {"--pci", &try->pci},
                   {"--cgroup", &try->cgroup}};
    int i = 1;
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        bool known = strcmp(argv[i], "--share") == 0 && parse_share(try, argv[i + 1]);
        for (size_t k = 0; k < ACRE_COUNT(options); k++) {
            if (strcmp(argv[i], options[k].name) == 0) {
                *options[k].value = argv[i + 1];
                known = true;
            }
        }
        if (!known) {
            return false;
        }
    }
    try->command = argv + i + 1;
    return i + 1 < argc && try->directory != NULL && try->gpu != NULL && try->pci != NULL &&
           try->share_count > 0;
}

int main(int argc, char **argv) {
    static struct try try;
    struct acre_clock clock = acre_clock_real();
    struct acre_error err = {0};
    try.began_ms = acre_clock_wall_ms(&clock);
    if (!parse(&try, argc, argv)) {
        fprintf(stderr, "usage: mps_try --directory DIR --gpu UUID --pci ID [--cgroup DIR] "
                        "--share MILLI:MIB:UID ... -- COMMAND ...\n");
        return 2;
    }
    struct mps_options options = {
        .directory = try.directory, .sink = {on_lost, &try}, .multiuser = true};
    if (acre_loop_create(&try.loop, &err) < 0 ||
        mps_create(&options, try.loop, &try.mps, &err) < 0) {
        fprintf(stderr, "mps_try: %s\n", err.text);
        return 1;
    }
    for (uint32_t i = 0; i < try.share_count; i++) {
        struct share *share = &try.shares[i];
        share->device.id = try.gpu;
        share->device.pci = try.pci;
        if (mps_take(try.mps, try.gpu, i, share->user, on_ready, share, &err) < 0) {
            fail(&try, "not taken", i, err.text);
        } else {
            try.running++;
        }
    }
    acre_loop_run(try.loop);
    mps_destroy(try.mps);
    acre_loop_destroy(try.loop);
    return try.failed;
}
