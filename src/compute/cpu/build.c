/* build.c - kernels compiled by the system's compiler.
 *
 * Runs cc, gcc or clang, whichever comes first in PATH (no shell), on a file in a temporary
 * directory, which is removed afterwards. The compiler's messages are the log, in English and
 * without colors.
 *
 * Results are the same with every compiler, and what C says: each operation is rounded by itself
 * (-ffp-contract=off; GPUs fuse a*b+c, the one difference in the last bit to expect; write fma()
 * where it matters), and nothing is reordered (no -ffast-math). errno and traps of math functions
 * are given up so that loops can be vectorized. Libraries are named by files that every system has,
 * so no development package is needed. */
#include "compute/cpu/module.h"
#include "compute/source/dialect_cpu.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OBJECT_MAX_BYTES = 256 << 20,
    WORDS_MAX_OPTIONS = 64,
    ENVIRONMENT_MAX = 4096,
    LIMIT_S = 120, /* a kernel takes some 100 ms, and one that was written by a program seconds */
    LIMIT_MAX_S = 86400,
    END_LIMIT_S = 2, /* what was killed is gone in a moment, unless the system holds it */
};

static const char *const frame_max = "-Wframe-larger-than=32768"; /* DIALECT_CPU_FIBERS */
_Static_assert(CPU_FIBER_STACK_BYTES >= 32768 + 16384, "room");

static const char *const before[] = {
    "-std=gnu17",
    "-O3",
#if defined(__aarch64__) /* the one word that gcc and clang both take there */
    "-mcpu=native",
#else
    "-march=native",
#endif
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fgnu89-inline",
    "-fsigned-char", /* as on GPUs; on arm64 C has it otherwise */
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-fstack-clash-protection", /* no frame reaches over the tripwire of a stack */
    "-fno-strict-aliasing",
    "-fno-semantic-interposition",
    "-Werror=implicit-function-declaration",
};
static const char *const after[] = {
    "-fdiagnostics-color=never",
    "-shared",
    "-nostdlib",
    "-nostartfiles",
    "-l:libm.so.6",
    "-l:libc.so.6",
    "-lgcc",
};

void cpu_temporary(char *path, size_t size) {
    const char *directory = getenv("TMPDIR");
    bool fits = directory != NULL && directory[0] == '/' && strlen(directory) + 16 < size;
    snprintf(path, size, "%s/acre-XXXXXX", fits ? directory : "/tmp");
}

/* --- finding it ----------------------------------------------------------------------------- */

static bool find_in_path(const char *name, char *ret_path, size_t size) {
    const char *path = getenv("PATH");
    struct acre_split parts = acre_split_begin(acre_str_from(path), ':');
    struct acre_str part;
    while (acre_split_next(&parts, &part)) {
        struct stat info;
        int length =
            snprintf(ret_path, size, "%.*s/%s", (int)ACRE_MIN(part.length, size), part.data, name);
        if (part.length > 0 && part.data[0] == '/' && length > 0 && (size_t)length < size &&
            access(ret_path, X_OK) == 0 && stat(ret_path, &info) == 0 && S_ISREG(info.st_mode)) {
            return true;
        }
    }
    ret_path[0] = '\0';
    return false;
}

void cpu_find_compiler(struct cpu *cpu) {
    static const char *const names[] = {"cc", "gcc", "clang"};
    bool found = false;
    for (size_t i = 0; i < ACRE_COUNT(names) && !found; i++) {
        found = find_in_path(names[i], cpu->compiler, sizeof(cpu->compiler));
    }
    struct stat info;
    char real[PATH_MAX];
    if (!found || stat(cpu->compiler, &info) < 0 || realpath(cpu->compiler, real) == NULL) {
        cpu->compiler[0] = '\0';
        return;
    }
    const char *slash = strrchr(real, '/');
    snprintf(cpu->compiler_version, sizeof(cpu->compiler_version), "%.24s %" PRIx64 " %" PRIx64,
             slash + 1, (uint64_t)info.st_size, (uint64_t)info.st_mtime);
}

/* --- running it ----------------------------------------------------------------------------- */

struct command {
    char directory[256], source[288], object[288];
    char *words[WORDS_MAX_OPTIONS + 48];
    size_t count;
    char *options; /* cut into words */
    char temporary[288], language[16];
    char *environment[ENVIRONMENT_MAX];
};

static void add_words(struct command *command, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        command->words[command->count++] = (char *)(uintptr_t)words[i]; /* exec's old type */
    }
}

/* The user's own words; what would name files is ours. */
static int add_options(struct command *command, const char *options, struct acre_error *err) {
    command->options = strdup(options);
    if (command->options == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: options");
    }
    size_t count = 0;
    for (char *at = command->options; *at != '\0';) {
        char *end = at + strcspn(at, " ");
        bool is_last = *end == '\0';
        *end = '\0';
        if (*at != '\0') {
            if (*at != '-' || strncmp(at, "-o", 2) == 0 || ++count > WORDS_MAX_OPTIONS) {
                char shown[96];
                return acre_fail(err, ACRE_EINVALID,
                                 "options: '%s' is not accepted; accepted: up to %d options that "
                                 "start with '-', except -o",
                                 acre_str_show(acre_str_from(at), shown, sizeof(shown)),
                                 WORDS_MAX_OPTIONS);
            }
            command->words[command->count++] = at;
        }
        at = is_last ? end : end + 1;
    }
    return 0;
}

static void make_environment(struct command *command) {
    size_t count = 0;
    snprintf(command->language, sizeof(command->language), "LC_ALL=C");
    command->environment[count++] = command->language;
    command->environment[count++] = command->temporary;
    for (char **at = environ; *at != NULL && count < ENVIRONMENT_MAX - 1; at++) {
        if (strncmp(*at, "LC_ALL=", 7) != 0 && strncmp(*at, "TMPDIR=", 7) != 0) {
            command->environment[count++] = *at;
        }
    }
    command->environment[count] = NULL;
}

/* 0: as long as it likes. */
static int read_limit(uint64_t *ret_s, struct acre_error *err) {
    const char *text = getenv("ACRE_COMPILE_LIMIT_S");
    *ret_s = LIMIT_S;
    return text == NULL || text[0] == '\0'
               ? 0
               : acre_parse_count("ACRE_COMPILE_LIMIT_S", text, 0, LIMIT_MAX_S, ret_s, err);
}

/* A part of what it says; what is too much is read and dropped. False: its end is closed. */
static bool read_part(int fd, struct acre_buf *log) {
    char part[4096];
    ssize_t n = read(fd, part, sizeof(part));
    if (n > 0) {
        (void)acre_buf_append(log, part, (size_t)n);
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

/* All it says until `until_ns` (0: for ever), or until it has ended: then nothing is left to read.
 * Where there is no pidfd, which is so when others collected it, until all have closed its end.
 * Whether that came. */
static bool hear(int fd, int pidfd, uint64_t until_ns, struct acre_buf *log) {
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
    for (;;) {
        uint64_t now_ns = acre_monotonic_ns();
        uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        if (until_ns != 0 && left_ns == 0) {
            return false;
        }
        int wait_ms = until_ns == 0 ? -1 : (int)ACRE_MIN(left_ns / 1000000 + 1, (uint64_t)INT_MAX);
        if (poll(fds, ACRE_COUNT(fds), wait_ms) <= 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            fds[0].fd = read_part(fd, log) ? fd : -1;
        } else if (fds[1].revents != 0) {
            return true;
        }
        if (fds[0].fd < 0 && pidfd < 0) {
            return true;
        }
    }
}

static int spawn(const char *program, struct command *command, int out, pid_t *ret_pid,
                 struct acre_error *err) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0); /* its own: it is ended with all it started */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, out, 2);
    int e =
        posix_spawn(ret_pid, program, &actions, &attributes, command->words, command->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return e == 0 ? 0 : acre_fail_errno(err, e, "cpu: %s", program);
}

/* It and all it started, which share its group; those are waited for by what they hold open. */
static void end(pid_t pid, int pidfd, int fd) {
    struct acre_buf rest;
    uint64_t until_ns = acre_monotonic_ns() + (uint64_t)END_LIMIT_S * 1000000000;
    kill(-pid, SIGKILL);
    acre_buf_init(&rest, 0);
    (void)hear(fd, pidfd, until_ns, &rest);
    (void)hear(fd, -1, until_ns, &rest);
    acre_buf_finish(&rest);
}

static int collect(pid_t pid, bool is_killed, int *ret_status) {
    pid_t ended;
    do {
        ended = waitpid(pid, ret_status, is_killed ? WNOHANG : 0); /* stuck in the system: left */
    } while (ended < 0 && errno == EINTR);
    return ended == pid ? 0 : -1;
}

/* `ret_failed`: it ended with something else than 0. */
static int run(const char *program, struct command *command, struct acre_buf *log, bool *ret_failed,
               struct acre_error *err) {
    int ends[2], status = 0;
    uint64_t limit_s = 0;
    int r = read_limit(&limit_s, err);
    if (r < 0) {
        return r;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return acre_fail_errno(err, errno, "cpu: pipe");
    }
    pid_t pid = 0;
    uint64_t until_ns = limit_s != 0 ? acre_monotonic_ns() + limit_s * 1000000000 : 0;
    r = spawn(program, command, ends[1], &pid, err);
    close(ends[1]);
    if (r == 0) {
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        bool is_late = !hear(ends[0], pidfd, until_ns, log);
        if (is_late) {
            end(pid, pidfd, ends[0]);
            r = acre_fail(err, ACRE_ETIMEOUT,
                          "cpu: the compiler %s was killed after %" PRIu64
                          " s; set another limit with ACRE_COMPILE_LIMIT_S",
                          program, limit_s);
        }
        /* Where the program ignores SIGCHLD its status is unknown: what it made says it. */
        *ret_failed =
            collect(pid, is_late, &status) == 0 ? status != 0 : access(command->object, R_OK) < 0;
        if (pidfd >= 0) {
            close(pidfd);
        }
    }
    close(ends[0]);
    return r;
}

/* --- the slot ------------------------------------------------------------------------------- */

static int make_directory(struct command *command, const struct native_source *source,
                          struct acre_error *err) {
    cpu_temporary(command->directory, sizeof(command->directory));
    if (mkdtemp(command->directory) == NULL) {
        return acre_fail_errno(err, errno, "cpu: cannot create directory %s for the compiler",
                               command->directory);
    }
    snprintf(command->source, sizeof(command->source), "%s/kernel.c", command->directory);
    snprintf(command->object, sizeof(command->object), "%s/kernel.so", command->directory);
    snprintf(command->temporary, sizeof(command->temporary), "TMPDIR=%s", command->directory);
    int fd = open(command->source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool is_written =
        file != NULL && fwrite(source->text, 1, source->length, file) == source->length;
    int e = errno;
    if (file == NULL && fd >= 0) {
        close(fd);
    }
    if (file != NULL && fclose(file) != 0 && is_written) { /* what it held back is written here */
        e = errno;
        is_written = false;
    }
    return is_written ? 0 : acre_fail_errno(err, e, "cpu: %s", command->source);
}

/* With what a compiler that was ended left there. */
static void remove_directory(struct command *command) {
    DIR *stream = command->source[0] != '\0' ? opendir(command->directory) : NULL;
    const struct dirent *file;
    while (stream != NULL && (file = readdir(stream)) != NULL) {
        unlinkat(dirfd(stream), file->d_name, 0); /* "." and ".." are none */
    }
    if (stream != NULL) {
        closedir(stream);
        rmdir(command->directory);
    }
}

/* The first line that is an error, for the one line people see at first. */
static int refuse(const struct acre_buf *log, size_t from, struct acre_error *err) {
    struct acre_str text = {log->data + from, log->length - from};
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    struct acre_str first = {0};
    while (acre_split_next(&lines, &line)) {
        bool is_error = memmem(line.data, line.length, "error:", 6) != NULL;
        if (first.length == 0 || is_error) {
            first = line;
        }
        if (is_error) {
            break;
        }
    }
    char shown[400];
    return acre_fail(err, ACRE_EINVALID, "%s",
                     first.length > 0 ? acre_str_show_text(first, shown, sizeof(shown))
                                      : "cpu: the compiler failed without a message");
}

static int take_object(const struct command *command, struct acre_buf *binary,
                       struct acre_error *err) {
    struct acre_buf object;
    acre_buf_init(&object, OBJECT_MAX_BYTES);
    int r = acre_file_read(command->object, OBJECT_MAX_BYTES, &object, err);
    uint32_t local_bytes = r == 0 ? cpu_module_local_bytes(object.data, object.length) : 0;
    if (r == 0 && local_bytes > CPU_LOCAL_MAX_BYTES) {
        r = acre_fail(err, ACRE_EINVALID,
                      "cpu: the local arrays have %u bytes; accepted: at most %d", local_bytes,
                      CPU_LOCAL_MAX_BYTES);
    }
    if (r == 0 && cpu_module_pack(object.data, object.length, binary) < 0) {
        r = acre_fail(err, ACRE_ELIMIT, "cpu: the compiled kernels are too large (%zu bytes)",
                      object.length);
    }
    acre_buf_finish(&object);
    return r;
}

static int build(const char *program, struct command *command, const struct native_source *source,
                 struct acre_buf *binary, struct acre_buf *log, struct acre_error *err) {
    const char *const files[] = {"-o", command->object, command->source};
    size_t from = log->length;
    add_words(command, &program, 1);
    add_words(command, before, ACRE_COUNT(before));
    if (strncmp(source->text, DIALECT_CPU_FIBERS, strlen(DIALECT_CPU_FIBERS)) == 0) {
        add_words(command, &frame_max, 1);
    }
    int r = add_options(command, source->options, err);
    r = r == 0 ? make_directory(command, source, err) : r;
    if (r < 0) {
        return r;
    }
    add_words(command, files, ACRE_COUNT(files));
    add_words(command, after, ACRE_COUNT(after));
    make_environment(command);
    bool has_failed = false;
    r = run(program, command, log, &has_failed, err);
    cpu_messages(log, from, command->source);
    if (r == 0 && has_failed) {
        r = refuse(log, from, err);
    }
    return r == 0 ? take_object(command, binary, err) : r;
}

int cpu_compile(void *seat, const struct native_source *source, struct acre_buf *binary,
                struct acre_buf *log, struct acre_error *err) {
    const struct cpu *cpu = ((struct cpu_seat *)seat)->self;
    if (cpu->compiler[0] == '\0') {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "cpu: no compiler for kernels: cc, gcc and clang are not in PATH");
    }
    struct command *command = calloc(1, sizeof(*command));
    if (command == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: compiler");
    }
    int r = build(cpu->compiler, command, source, binary, log, err);
    remove_directory(command);
    free(command->options);
    free(command);
    return r;
}
