/* cgroup_memory.c - limits on RAM: of one run, and of all runs together.
 *
 * Every run has a limit, its own or the default of the policy. With v1 a memory group costs more to
 * make and to remove (0.14 ms) than all the other groups of a run together, a tenth of what a short
 * job takes in all. So the empty group of a run that had the default limit and needed little is not
 * removed: it is renamed to idle.<limit>.<slot>, and a later run with the same limit renames it to
 * its own name. Renaming is atomic and fails when the new name is taken: supervisors need not talk
 * to each other, and a group has the name of its run as long as anything is in it. Every open costs
 * (9 us with read and close), so a few slots are tried, not all, and whether a group is as good as
 * new is judged by its peak alone, which is read anyway. Runs that ask for memory, and all runs
 * with v2, have groups of their own.
 *
 * With v1 the supervisors are outside of these groups; with v2 they are in shim/, below the parent
 * that is limited. They need little, and the kernel kills jobs before them (shim.c). */
#include "engine/cgroup_inner.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum {
    /* Left to the system, whatever jobs do: kernel, sshd, this daemon and its database. A small
     * server idles with 200 to 400 MiB; page tables and network buffers grow with the machine. On
     * a tiny machine jobs still get half. */
    RESERVE_MIN_MIB = 512,
    RESERVE_MILLI = 50,
    /* With as many runs at once as slots, half of the slots are in use; then three tries find a
     * group, or a place for one, seven times out of eight. */
    IDLE_SLOTS = 8,
    IDLE_TRIES = 3,
    NEAR_BYTES = 1 << 20, /* of a limit: the charge that failed is seldom more than a page */
    IDLE_PATH_MAX = ACRE_CGROUP_PATH_MAX + 48,
};
#define IDLE_PREFIX "idle."

static uint64_t machine_mib(void) {
    struct sysinfo info;
    return sysinfo(&info) == 0 ? ((uint64_t)info.totalram * info.mem_unit) >> 20 : 0;
}

void cgroup_limit_all_memory(struct cgroup *cgroup) {
    bool v1 = cgroup->v1[ACRE_CGROUP_MEMORY][0] != '\0';
    const char *parent = v1 ? cgroup->v1[ACRE_CGROUP_MEMORY] : cgroup->unified;
    const char *file = v1 ? "memory.limit_in_bytes" : "memory.max";
    cgroup->ram_mib = machine_mib();
    if (!cgroup->limits[ACRE_CGROUP_MEMORY] || cgroup->ram_mib == 0) {
        return;
    }
    /* In a container or a service, what that one has is the machine. */
    char above[ACRE_CGROUP_PATH_MAX], text[32];
    snprintf(above, sizeof(above), "%.*s", (int)(strrchr(parent, '/') - parent), parent);
    uint64_t outer = cgroup_number(above, file, "");
    cgroup->ram_mib = ACRE_MAX(ACRE_MIN(cgroup->ram_mib, outer >> 20), 1);
    uint64_t reserve = ACRE_MAX(cgroup->ram_mib * RESERVE_MILLI / 1000, (uint64_t)RESERVE_MIN_MIB);
    cgroup->jobs_mib = cgroup->ram_mib - ACRE_MIN(reserve, cgroup->ram_mib / 2);
    snprintf(text, sizeof(text), "%" PRIu64, cgroup->jobs_mib << 20);
    if (cgroup_put(parent, file, text) != 0) {
        cgroup->jobs_mib = 0; /* describe says so */
    }
}

int cgroup_limit_memory(const char *path, bool v1, uint64_t ram_mib, struct acre_error *err) {
    char text[64];
    snprintf(text, sizeof(text), "%" PRIu64, ACRE_MIN(ram_mib, UINT64_C(1) << 40) << 20);
    int r = cgroup_limit(path, v1 ? "memory.limit_in_bytes" : "memory.max", text, err);
    if (r < 0) {
        return r;
    }
    /* Without swap these files are not there: then there is nothing to forbid. */
    cgroup_put(path, v1 ? "memory.memsw.limit_in_bytes" : "memory.swap.max", v1 ? text : "0");
    if (!v1) {
        cgroup_put(path, "memory.oom.group", "1");
    }
    return 0;
}

void cgroup_read_memory(const char *path, bool v1, bool with_kills, struct cgroup_use *use) {
    uint64_t peak = cgroup_number(path, v1 ? "memory.max_usage_in_bytes" : "memory.peak", "");
    use->peak_mib = peak != UINT64_MAX ? (peak + (1 << 20) - 1) >> 20 : UINT64_MAX;
    const char *events = v1 ? "memory.oom_control" : "memory.events";
    uint64_t kills = with_kills ? cgroup_number(path, events, "oom_kill ") : 0;
    use->oom_kills = kills != UINT64_MAX ? kills : 0;
    if (use->oom_kills > 0) {
        /* v1 counts failures too, but not those of the limit with swap, which is met first. */
        use->at_own_limit =
            v1 ? peak + NEAR_BYTES > cgroup_number(path, "memory.limit_in_bytes", "")
               : cgroup_number(path, events, "oom ") > 0;
    }
}

/* ---- idle groups ---- */

/* Is its directory of no other controller? Others leave limits in it. */
static bool keeps_idle(const struct cgroup *cgroup) {
    const char *memory = cgroup->v1[ACRE_CGROUP_MEMORY];
    bool alone = memory[0] != '\0';
    for (size_t i = 0; i < ACRE_CGROUP_CONTROLLERS; i++) {
        alone = alone && (i == ACRE_CGROUP_MEMORY || strcmp(cgroup->v1[i], memory) != 0);
    }
    return alone;
}

/* Runs begin to look at different slots. */
static const char *idle_path(const struct cgroup_run *group, unsigned try,
                             char path[IDLE_PATH_MAX]) {
    unsigned long long job = strtoull(group->name, NULL, 10);
    snprintf(path, IDLE_PATH_MAX, "%s/" IDLE_PREFIX "%" PRIu64 ".%llu",
             group->cgroup->v1[ACRE_CGROUP_MEMORY], group->idle_mib, (job + try) % IDLE_SLOTS);
    return path;
}

bool cgroup_take_idle(const struct cgroup_run *group, const char *path) {
    char idle[IDLE_PATH_MAX];
    bool taken = false;
    for (unsigned i = 0; i < IDLE_TRIES && !taken && keeps_idle(group->cgroup); i++) {
        taken = rename(idle_path(group, i, idle), path) == 0;
    }
    return taken;
}

bool cgroup_leave_idle(const struct cgroup_run *group, const char *path) {
    char idle[IDLE_PATH_MAX];
    bool left = false;
    for (unsigned i = 0; i < IDLE_TRIES && !left && keeps_idle(group->cgroup); i++) {
        left = rename(path, idle_path(group, i, idle)) == 0;
    }
    return left;
}

void cgroup_remove_idle(const struct cgroup *cgroup) {
    const char *parent = cgroup->v1[ACRE_CGROUP_MEMORY];
    DIR *directory = parent[0] != '\0' ? opendir(parent) : NULL;
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, IDLE_PREFIX, strlen(IDLE_PREFIX)) == 0) {
            unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}
