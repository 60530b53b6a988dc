/* cgroup.c - finding the layout, making a run's directories, killing and reading them.
 *
 * Names instead of descriptors: a path below /sys/fs/cgroup resolves in about a microsecond, and
 * nothing has to be kept open, handed over or found again after a restart.
 *
 * Two things that cost far more than they seem to are avoided. Writing a pid to cgroup.procs
 * takes the lock that every fork on the machine takes for reading (0.4 ms here); so v2 groups are
 * entered by clone3(CLONE_INTO_CGROUP), and v1 groups by the child writing "0" to `tasks`: one
 * thread moving itself needs no such lock. And loading a device filter for each run: all runs
 * without devices share the one on their common parent, plain/.
 *
 * A v1 memory group costs more to make (0.09 ms) than all the rest together: see
 * cgroup_memory.c. */
#include "engine/cgroup_inner.h"

#include "core/file.h"
#include "core/str.h"
#include "core/units.h"
#include "engine/pids.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOUNTS_MAX_BYTES = 1 << 20,
    SMALL_FILE = 4096,
    CFS_PERIOD_US = 100000, /* the kernel's default */
    /* A memory group that never held more is as good as new. A shell that starts a few programs
     * stays below; what it leaves charged (kernel objects, pages of files) is a part of it. */
    CLEAN_MAX_MIB = 8,
};

static const char *const controller_names[ACRE_CGROUP_CONTROLLERS] = {"cpu", "memory", "pids",
                                                                      "devices"};

/* ---- files ---- */

int cgroup_put(const char *directory, const char *file, const char *text) {
    char path[ACRE_CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    ssize_t wrote = write(fd, text, strlen(text));
    int error = wrote < 0 ? errno : 0;
    close(fd);
    return error;
}

/* The file's text, cut to `size`; "" when it cannot be read. */
static const char *get(const char *directory, const char *file, char *text, size_t size) {
    char path[ACRE_CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    return acre_file_peek(path, text, size);
}

/* The number after `key` at the start of a line ("" : at the very start); UINT64_MAX: none. */
static uint64_t number_after(const char *text, const char *key) {
    size_t length = strlen(key);
    while (text != NULL && strncmp(text, key, length) != 0) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    if (text == NULL) {
        return UINT64_MAX;
    }
    text += length;
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 10);
    return end != text ? value : UINT64_MAX;
}

uint64_t cgroup_number(const char *directory, const char *file, const char *key) {
    char text[SMALL_FILE];
    return number_after(get(directory, file, text, sizeof(text)), key);
}

int cgroup_limit(const char *directory, const char *file, const char *text,
                 struct acre_error *err) {
    int error = cgroup_put(directory, file, text);
    return error == 0 ? 0 : acre_fail_errno(err, error, "%s/%s = %s", directory, file, text);
}

char *run_make_name(struct acre_run run, char name[ACRE_RUN_NAME_MAX]) {
    snprintf(name, ACRE_RUN_NAME_MAX, "%" PRIu64 ".%" PRIu32, run.job, run.attempt);
    return name;
}

bool run_parse(const char *name, struct acre_run *ret_run) {
    char *end = NULL;
    errno = 0;
    uint64_t job = strtoull(name, &end, 10);
    uint64_t attempt = *end == '.' ? strtoull(end + 1, NULL, 10) : 0;
    struct acre_run run = {.job = job, .attempt = (uint32_t)attempt};
    char again[ACRE_RUN_NAME_MAX];
    if (errno != 0 || attempt > UINT32_MAX || strcmp(run_make_name(run, again), name) != 0) {
        return false;
    }
    *ret_run = run;
    return true;
}

/* ---- the layout ---- */

static bool has_token(struct acre_str list, const char *token) {
    struct acre_split split = acre_split_begin(list, ',');
    for (struct acre_str part; acre_split_next(&split, &part);) {
        if (acre_str_is(part, token)) {
            return true;
        }
    }
    return false;
}

/* One line of mountinfo: "36 35 98:0 / /mnt rw,noatime master:1 - type source options". */
static void read_mount(struct acre_str line, const char *name, struct cgroup *cgroup) {
    struct acre_split split = acre_split_begin(line, ' ');
    struct acre_str part, mount = {0}, type = {0}, options = {0};
    size_t field = 0, after = 0;
    while (acre_split_next(&split, &part)) {
        field++;
        mount = field == 5 ? part : mount;
        after += after > 0 || (field > 6 && acre_str_is(part, "-"));
        type = after == 2 ? part : type;
        options = after == 4 ? part : options;
    }
    char path[ACRE_CGROUP_PATH_MAX];
    int length = snprintf(path, sizeof(path), "%.*s/%s", (int)mount.length, mount.data, name);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return;
    }
    if (acre_str_is(type, "cgroup2") && cgroup->unified[0] == '\0') {
        acre_str_copy(cgroup->unified, sizeof(cgroup->unified), acre_str_from(path));
    }
    for (size_t i = 0; acre_str_is(type, "cgroup") && i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (has_token(options, controller_names[i]) && cgroup->v1[i][0] == '\0') {
            acre_str_copy(cgroup->v1[i], sizeof(cgroup->v1[i]), acre_str_from(path));
        }
    }
}

static bool make_directory(const char *path) {
    return mkdir(path, 0755) == 0 || (errno == EEXIST && access(path, W_OK) == 0);
}

/* "<parent>/<name>" -> "<parent><own cgroup>/<name>": what a service or session was delegated. */
static bool below_own_cgroup(char path[ACRE_CGROUP_PATH_MAX]) {
    char text[SMALL_FILE];
    const char *own = strstr(get("/proc/self", "cgroup", text, sizeof(text)), "0::/");
    char *name = strrchr(path, '/');
    if (own == NULL || name == NULL) {
        return false;
    }
    own += strlen("0::");
    int own_length = (int)strcspn(own, "\n");
    char nested[ACRE_CGROUP_PATH_MAX];
    int length = snprintf(nested, sizeof(nested), "%.*s%.*s%s", (int)(name - path), path,
                          own_length, own, name);
    if (own_length < 2 || length < 0 || (size_t)length >= sizeof(nested) ||
        !make_directory(nested)) {
        return false;
    }
    /* A group with controllers has no processes of its own: this one goes into a leaf. */
    char leaf[ACRE_CGROUP_PATH_MAX + 16];
    snprintf(leaf, sizeof(leaf), "%s-daemon", nested);
    if (make_directory(leaf)) {
        cgroup_put(leaf, "cgroup.procs", "0");
    }
    memcpy(path, nested, sizeof(nested));
    return true;
}

static void open_unified(struct cgroup *cgroup) {
    char *parent = cgroup->unified;
    if (parent[0] != '\0' && !make_directory(parent) && !below_own_cgroup(parent)) {
        parent[0] = '\0';
    }
    if (parent[0] == '\0') {
        return;
    }
    char above[ACRE_CGROUP_PATH_MAX], run[ACRE_CGROUP_PATH_MAX + 8],
        plain[ACRE_CGROUP_PATH_MAX + 8], path[ACRE_CGROUP_PATH_MAX + 8];
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(parent, '/') - parent), parent);
    snprintf(run, sizeof(run), "%s/run", parent);
    snprintf(plain, sizeof(plain), "%s/plain", parent);
    snprintf(path, sizeof(path), "%s/shim", parent);
    if (!make_directory(run) || !make_directory(plain) || !make_directory(path)) {
        parent[0] = '\0';
        return;
    }
    for (size_t i = 0; i < ACRE_CGROUP_DEVICES; i++) {
        char enable[16];
        snprintf(enable, sizeof(enable), "+%s", controller_names[i]);
        cgroup_put(above, "cgroup.subtree_control", enable);
        cgroup->limits[i] = cgroup_put(parent, "cgroup.subtree_control", enable) == 0 &&
                            cgroup_put(run, "cgroup.subtree_control", enable) == 0 &&
                            cgroup_put(plain, "cgroup.subtree_control", enable) == 0;
    }
    snprintf(path, sizeof(path), "%s/cgroup.kill", run);
    cgroup->kills = access(path, W_OK) == 0;
    int fd = open(plain, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cgroup->filters = fd >= 0 && bpf_attach(fd, NULL, 0, NULL) == 0;
    if (fd >= 0) {
        close(fd);
    }
}

/* When CPUs are short, they go by weight. */
static void weigh(const char *path, bool v1, uint64_t cpu_milli) {
    char text[32];
    uint64_t v1_weight = ACRE_MAX(ACRE_MIN(cpu_milli, UINT64_C(256000)) * 1024 / 1000, 2);
    uint64_t v2_weight = ACRE_MAX(ACRE_MIN(cpu_milli / 10, UINT64_C(10000)), 1);
    snprintf(text, sizeof(text), "%" PRIu64, v1 ? v1_weight : v2_weight);
    cgroup_put(path, v1 ? "cpu.shares" : "cpu.weight", text);
}

/* All runs together are one group to the scheduler. With the default weight they would count as
 * one process against each other one of the machine; so: as one for each CPU. */
static void weigh_parent(const struct cgroup *cgroup) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t cpu_milli = cpus > 0 ? (uint64_t)cpus * 1000 : 1000;
    bool v1 = cgroup->v1[ACRE_CGROUP_CPU][0] != '\0';
    if (v1 || cgroup->limits[ACRE_CGROUP_CPU]) {
        weigh(v1 ? cgroup->v1[ACRE_CGROUP_CPU] : cgroup->unified, v1, cpu_milli);
    }
}

/* Each run may have some thousands; many of them must not take the numbers of all others, root's
 * included. In a container or a service, what that one has is the machine. */
static void limit_all_processes(struct cgroup *cgroup) {
    bool v1 = cgroup->v1[ACRE_CGROUP_PIDS][0] != '\0';
    const char *parent = v1 ? cgroup->v1[ACRE_CGROUP_PIDS] : cgroup->unified;
    if (!cgroup->limits[ACRE_CGROUP_PIDS]) {
        return;
    }
    char above[ACRE_CGROUP_PATH_MAX], text[32];
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(parent, '/') - parent), parent);
    uint64_t most = ACRE_MIN(cgroup_number("/proc/sys/kernel", "pid_max", ""),
                             cgroup_number("/proc/sys/kernel", "threads-max", ""));
    most = ACRE_MIN(most, cgroup_number(above, "pids.max", ""));
    if (most == UINT64_MAX) {
        return; /* nobody knows */
    }
    most = ACRE_MAX(most / 2, 1);
    snprintf(text, sizeof(text), "%" PRIu64, most);
    cgroup->jobs_pids = cgroup_put(parent, "pids.max", text) == 0 ? most : 0;
}

void cgroup_open(const char *mountinfo, const char *name, struct cgroup *ret_cgroup) {
    struct cgroup cgroup = {.layout = ACRE_CGROUP_NONE};
    struct acre_buf text;
    acre_buf_init(&text, MOUNTS_MAX_BYTES);
    acre_file_read(mountinfo != NULL ? mountinfo : "/proc/self/mountinfo", MOUNTS_MAX_BYTES, &text,
                   NULL); /* unreadable: nothing is there */
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    for (struct acre_str line; text.length > 0 && acre_split_next(&lines, &line);) {
        read_mount(line, name, &cgroup);
    }
    acre_buf_finish(&text);
    open_unified(&cgroup);
    bool v1 = false;
    if (cgroup.filters) {
        cgroup.v1[ACRE_CGROUP_DEVICES][0] = '\0'; /* one filter is enough */
    }
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (cgroup.v1[i][0] != '\0' && (cgroup.limits[i] || !make_directory(cgroup.v1[i]))) {
            cgroup.v1[i][0] = '\0';
        }
        bool here = cgroup.v1[i][0] != '\0';
        cgroup.limits[i] = cgroup.limits[i] || here;
        v1 = v1 || (here && i != ACRE_CGROUP_DEVICES);
    }
    cgroup.filters = cgroup.filters || cgroup.v1[ACRE_CGROUP_DEVICES][0] != '\0';
    weigh_parent(&cgroup);
    cgroup_remove_idle(&cgroup); /* their limit may be another one now */
    cgroup_limit_all_memory(&cgroup);
    limit_all_processes(&cgroup);
    bool v2 = cgroup.unified[0] != '\0';
    cgroup.layout =
        v2 ? (v1 ? ACRE_CGROUP_HYBRID : ACRE_CGROUP_V2) : (v1 ? ACRE_CGROUP_V1 : ACRE_CGROUP_NONE);
    *ret_cgroup = cgroup;
}

/* Until the kernel says that the group is empty. v1 tells nobody: one look is all. */
static void wait_until_empty(const struct cgroup_run *group, int wait_ms) {
    int fd = group->directory >= 0 ? openat(group->directory, "cgroup.events", O_RDONLY | O_CLOEXEC)
                                   : -1;
    char text[SMALL_FILE];
    for (bool populated = fd >= 0; populated;) {
        ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
        text[got > 0 ? got : 0] = '\0';
        struct pollfd wait = {.fd = fd, .events = POLLPRI};
        populated = strstr(text, "populated 1") != NULL && poll(&wait, 1, wait_ms) > 0;
    }
    if (fd >= 0) {
        close(fd);
    }
}

void cgroup_close(const struct cgroup *cgroup, int wait_ms) {
    struct cgroup_run shims = {.cgroup = cgroup, .directory = -1};
    char shim[ACRE_CGROUP_PATH_MAX + 8];
    snprintf(shim, sizeof(shim), "%s/shim", cgroup->unified);
    if (wait_ms > 0 && cgroup->unified[0] != '\0') {
        shims.directory = open(shim, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        wait_until_empty(&shims, wait_ms);
    }
    if (shims.directory >= 0) {
        close(shims.directory);
    }
    static const char *const parts[] = {"/run", "/plain", "/shim", ""};
    for (size_t i = 0; cgroup->unified[0] != '\0' && i < ACRE_COUNT(parts); i++) {
        char path[ACRE_CGROUP_PATH_MAX + 8];
        snprintf(path, sizeof(path), "%s%s", cgroup->unified, parts[i]);
        rmdir(path);
    }
    cgroup_remove_idle(cgroup);
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (cgroup->v1[i][0] != '\0') {
            rmdir(cgroup->v1[i]);
        }
    }
}

void cgroup_leave(const struct cgroup *cgroup) {
    if (cgroup->unified[0] != '\0') {
        cgroup_put(cgroup->unified, "shim/cgroup.procs", "0");
    }
}

/* ---- one run ---- */

static void unified_path(const struct cgroup_run *group, char *path, size_t size) {
    snprintf(path, size, "%s/%s/%s", group->cgroup->unified, group->plain ? "plain" : "run",
             group->name);
}

static void v1_path(const struct cgroup_run *group, size_t controller, char *path, size_t size) {
    snprintf(path, size, "%s/%s", group->cgroup->v1[controller], group->name);
}

/* Where the files of a controller are for this run; false: nowhere. */
static bool controller_path(const struct cgroup_run *group, size_t controller, char *path,
                            size_t size) {
    if (group->cgroup->v1[controller][0] != '\0') {
        v1_path(group, controller, path, size);
        return true;
    }
    unified_path(group, path, size);
    return group->cgroup->unified[0] != '\0' && group->cgroup->limits[controller];
}

static int limit_cpu(const char *path, bool v1, uint64_t cpu_milli, struct acre_error *err) {
    /* A quota under 1 ms is refused by the kernel. */
    uint64_t quota_us = ACRE_MAX(ACRE_MIN(cpu_milli, UINT32_MAX) * (CFS_PERIOD_US / 1000), 1000);
    char text[64];
    snprintf(text, sizeof(text), v1 ? "%" PRIu64 : "%" PRIu64 " 100000", quota_us);
    if (cpu_milli != 1000) { /* one CPU has the default weight */
        weigh(path, v1, cpu_milli);
    }
    return cgroup_limit(path, v1 ? "cpu.cfs_quota_us" : "cpu.max", text, err);
}

static int set_limit(size_t controller, bool v1, const char *path,
                     const struct cgroup_limits *limits, struct acre_error *err) {
    char text[16];
    switch ((enum cgroup_controller)controller) {
    case ACRE_CGROUP_CPU:
        return limits->cpu_milli > 0 ? limit_cpu(path, v1, limits->cpu_milli, err) : 0;
    case ACRE_CGROUP_MEMORY:
        return limits->ram_mib > 0 ? cgroup_limit_memory(path, v1, limits->ram_mib, err) : 0;
    case ACRE_CGROUP_PIDS:
        snprintf(text, sizeof(text), "%" PRIu32, limits->pids_max);
        return cgroup_limit(path, "pids.max", text, err);
    case ACRE_CGROUP_DEVICES: {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? acre_fail_errno(err, errno, "%s", path)
                       : bpf_allow_v1(fd, limits->rules, limits->rule_count, err);
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    case ACRE_CGROUP_CONTROLLERS:
    default:
        break;
    }
    return 0;
}

static bool wants(size_t controller, const struct cgroup_limits *limits) {
    return controller == ACRE_CGROUP_CPU      ? limits->cpu_milli > 0
           : controller == ACRE_CGROUP_MEMORY ? limits->ram_mib > 0
                                              : true;
}

static int make_unified(struct cgroup_run *group, const struct cgroup_limits *limits,
                        struct acre_error *err) {
    const struct cgroup *cgroup = group->cgroup;
    char path[ACRE_CGROUP_RUN_PATH_MAX];
    unified_path(group, path, sizeof(path));
    if (mkdir(path, 0755) != 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    group->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group->directory < 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    for (size_t i = 0; i < ACRE_CGROUP_DEVICES; i++) {
        if (cgroup->limits[i] && cgroup->v1[i][0] == '\0') {
            int r = set_limit(i, false, path, limits, err);
            if (r < 0) {
                return r;
            }
        }
    }
    bool own_filter =
        cgroup->filters && !group->plain && cgroup->v1[ACRE_CGROUP_DEVICES][0] == '\0';
    return own_filter ? bpf_attach(group->directory, limits->rules, limits->rule_count, err) : 0;
}

static int make_v1(struct cgroup_run *group, const struct cgroup_limits *limits,
                   struct acre_error *err) {
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (group->cgroup->v1[i][0] == '\0' || !wants(i, limits)) {
            continue;
        }
        char path[ACRE_CGROUP_RUN_PATH_MAX], tasks[ACRE_CGROUP_RUN_PATH_MAX + 8];
        v1_path(group, i, path, sizeof(path));
        snprintf(tasks, sizeof(tasks), "%s/tasks", path);
        bool used = i == ACRE_CGROUP_MEMORY && group->idle_mib > 0 && cgroup_take_idle(group, path);
        /* Two controllers may be mounted together: the second finds the directory made. */
        if (!used && mkdir(path, 0755) != 0 && errno != EEXIST) {
            return acre_fail_errno(err, errno, "%s", path);
        }
        group->used = group->used || used;
        int r = used ? 0 : set_limit(i, true, path, limits, err);
        if (r < 0) {
            return r;
        }
        group->tasks[i] = open(tasks, O_WRONLY | O_CLOEXEC);
        if (group->tasks[i] < 0) {
            return acre_fail_errno(err, errno, "%s", tasks);
        }
    }
    return 0;
}

struct cgroup_run cgroup_run_none(const struct cgroup *cgroup, struct acre_run run) {
    struct cgroup_run group = {.cgroup = cgroup, .directory = -1};
    run_make_name(run, group.name);
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        group.tasks[i] = -1;
    }
    return group;
}

int cgroup_make(const struct cgroup *cgroup, struct acre_run run,
                const struct cgroup_limits *limits, struct cgroup_run *ret_group,
                struct acre_error *err) {
    struct cgroup_run group = cgroup_run_none(cgroup, run);
    group.plain = limits->rule_count == 0;
    group.idle_mib = limits->ram_is_default ? limits->ram_mib : 0;
    int r = cgroup->unified[0] != '\0' ? make_unified(&group, limits, err) : 0;
    r = r == 0 ? make_v1(&group, limits, err) : r;
    if (r < 0) {
        cgroup_drop(&group);
        return r;
    }
    *ret_group = group;
    return 0;
}

int cgroup_join(const struct cgroup_run *group) {
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (group->tasks[i] >= 0 && write(group->tasks[i], "0", 1) != 1) {
            return errno;
        }
    }
    return 0;
}

/* Those of the other v1 controllers are made for runs with a limit only. */
bool cgroup_lists(const struct cgroup *cgroup) {
    return cgroup->unified[0] != '\0' || cgroup->v1[ACRE_CGROUP_PIDS][0] != '\0';
}

uint32_t cgroup_pids(const struct cgroup_run *group, int64_t *pids, uint32_t max) {
    char path[ACRE_CGROUP_RUN_PATH_MAX], file[ACRE_CGROUP_RUN_PATH_MAX + 16];
    if (!cgroup_lists(group->cgroup)) {
        return 0;
    }
    if (group->cgroup->unified[0] != '\0') {
        unified_path(group, path, sizeof(path));
    } else {
        v1_path(group, ACRE_CGROUP_PIDS, path, sizeof(path));
    }
    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    FILE *from = fopen(file, "re");
    char line[32];
    uint32_t count = 0;
    while (from != NULL && fgets(line, sizeof(line), from) != NULL) {
        if (count < max) {
            pids[count] = strtoll(line, NULL, 10);
        }
        count++;
    }
    if (from != NULL) {
        fclose(from);
    }
    return count;
}

static uint32_t list_group(void *group, int64_t *pids, uint32_t max) {
    return cgroup_pids(group, pids, max);
}

void cgroup_kill(const struct cgroup_run *group) {
    char path[ACRE_CGROUP_RUN_PATH_MAX];
    if (group->cgroup->kills) {
        unified_path(group, path, sizeof(path));
        cgroup_put(path, "cgroup.kill", "1");
        return;
    }
    if (controller_path(group, ACRE_CGROUP_PIDS, path, sizeof(path))) {
        cgroup_put(path, "pids.max", "0"); /* nobody forks any more: the list below is complete */
    }
    pids_signal(list_group, NULL, (void *)(uintptr_t)group, SIGKILL);
}

void cgroup_read(struct cgroup_run *group, bool with_cpu, bool with_kills,
                 struct cgroup_use *ret_use) {
    struct cgroup_use use = {.peak_mib = UINT64_MAX, .cpu_ms = UINT64_MAX};
    char path[ACRE_CGROUP_RUN_PATH_MAX];
    bool v1 = group->cgroup->v1[ACRE_CGROUP_MEMORY][0] != '\0';
    if ((v1 ? group->tasks[ACRE_CGROUP_MEMORY] >= 0 : group->directory >= 0) &&
        controller_path(group, ACRE_CGROUP_MEMORY, path, sizeof(path))) {
        cgroup_read_memory(path, v1, with_kills, &use);
        group->clean = use.peak_mib <= CLEAN_MAX_MIB && use.oom_kills == 0;
        if (group->used && use.peak_mib <= CLEAN_MAX_MIB) {
            use.peak_mib = UINT64_MAX; /* it may be that of an earlier run */
        }
    }
    if (with_cpu && group->directory >= 0) {
        unified_path(group, path, sizeof(path));
        uint64_t us = cgroup_number(path, "cpu.stat", "usage_usec ");
        use.cpu_ms = us != UINT64_MAX ? us / 1000 : UINT64_MAX;
    }
    *ret_use = use;
}

void cgroup_shut(struct cgroup_run *group) {
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (group->tasks[i] >= 0) {
            close(group->tasks[i]);
        }
        group->tasks[i] = -1;
    }
    if (group->directory >= 0) {
        close(group->directory);
    }
    group->directory = -1;
}

void cgroup_drop(struct cgroup_run *group) {
    char path[ACRE_CGROUP_RUN_PATH_MAX];
    bool empty = true; /* it is not, when a process could not be killed */
    if (group->cgroup->unified[0] != '\0') {
        unified_path(group, path, sizeof(path));
        empty = rmdir(path) == 0 || errno == ENOENT;
    }
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (group->cgroup->v1[i][0] != '\0' && i != ACRE_CGROUP_MEMORY) {
            v1_path(group, i, path, sizeof(path));
            empty = (rmdir(path) == 0 || errno == ENOENT) && empty;
        }
    }
    if (group->cgroup->v1[ACRE_CGROUP_MEMORY][0] != '\0') {
        v1_path(group, ACRE_CGROUP_MEMORY, path, sizeof(path));
        bool reusable = empty && group->clean && group->idle_mib > 0;
        if (!reusable || !cgroup_leave_idle(group, path)) {
            rmdir(path);
        }
    }
    cgroup_shut(group);
}

bool cgroup_find(const struct cgroup *cgroup, struct acre_run run, struct cgroup_run *ret_group) {
    struct cgroup_run group = cgroup_run_none(cgroup, run);
    char path[ACRE_CGROUP_RUN_PATH_MAX];
    for (int plain = 0; plain < 2 && cgroup->unified[0] != '\0' && group.directory < 0; plain++) {
        group.plain = plain != 0;
        unified_path(&group, path, sizeof(path));
        group.directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    bool found = group.directory >= 0;
    for (size_t i = 0; !found && i < ACRE_CGROUP_CONTROLLERS; i++) {
        v1_path(&group, i, path, sizeof(path));
        found = cgroup->v1[i][0] != '\0' && access(path, F_OK) == 0;
    }
    if (found) {
        *ret_group = group;
    }
    return found;
}

bool cgroup_end(const struct cgroup *cgroup, struct acre_run run, int wait_ms) {
    struct cgroup_run group;
    if (!cgroup_find(cgroup, run, &group)) {
        return false;
    }
    cgroup_kill(&group);
    wait_until_empty(&group, wait_ms);
    cgroup_drop(&group);
    return true;
}

void cgroup_each(const struct cgroup *cgroup, void (*function)(void *context, struct acre_run run),
                 void *context) {
    char paths[ACRE_CGROUP_CONTROLLERS + 2][ACRE_CGROUP_PATH_MAX + 8] = {{0}};
    size_t count = 0;
    if (cgroup->unified[0] != '\0') {
        snprintf(paths[count++], sizeof(paths[0]), "%s/run", cgroup->unified);
        snprintf(paths[count++], sizeof(paths[0]), "%s/plain", cgroup->unified);
    }
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        if (cgroup->v1[i][0] != '\0') {
            snprintf(paths[count++], sizeof(paths[0]), "%s", cgroup->v1[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        DIR *directory = opendir(paths[i]);
        struct dirent *entry;
        struct acre_run run;
        while (directory != NULL && (entry = readdir(directory)) != NULL) {
            if (run_parse(entry->d_name, &run)) {
                function(context, run);
            }
        }
        if (directory != NULL) {
            closedir(directory);
        }
    }
}

void cgroup_describe(const struct cgroup *cgroup, struct acre_buf *out) {
    static const char *const layouts[] = {"none", "v1", "hybrid (v1 and v2)", "v2"};
    static const struct {
        enum cgroup_controller controller;
        const char *what;
        const char *lack;
    } rows[] = {
        {ACRE_CGROUP_CPU, "CPU", "a run may use all CPUs"},
        {ACRE_CGROUP_MEMORY, "RAM", "a run's limit applies to each of its processes separately"},
        {ACRE_CGROUP_PIDS, "processes", "a run may start any number"},
    };
    acre_buf_printf(out, "cgroups: %s\n", layouts[cgroup->layout]);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (cgroup->limits[rows[i].controller]) {
            acre_buf_printf(out, "%s: limited\n", rows[i].what);
        } else {
            acre_buf_printf(out, "%s: NOT limited; %s\n", rows[i].what, rows[i].lack);
        }
    }
    if (cgroup->jobs_mib > 0) {
        char jobs[32], all[32];
        acre_buf_printf(out, "RAM of all jobs: at most %s of %s\n",
                        acre_format_mib(cgroup->jobs_mib, jobs, sizeof(jobs)),
                        acre_format_mib(cgroup->ram_mib, all, sizeof(all)));
    } else {
        acre_buf_puts(out, "RAM of all jobs: NOT limited; they may leave none for the system\n");
    }
    if (cgroup->jobs_pids > 0) {
        acre_buf_printf(out, "processes of all jobs: at most %" PRIu64 "\n", cgroup->jobs_pids);
    } else {
        acre_buf_puts(out, "processes of all jobs: NOT limited; they may leave none for others\n");
    }
    acre_buf_puts(
        out, cgroup->filters
                 ? "devices: a run can open only its own GPUs\n"
                 : "devices: NOT filtered; only environment variables name a run's own GPUs\n");
    acre_buf_puts(out, cgroup->kills ? "ending: all processes of a run at once\n"
                                     : "ending: all processes of a run, one by one\n");
}
