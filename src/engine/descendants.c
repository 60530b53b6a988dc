/* descendants.c - one pass over /proc gives (pid, parent) pairs; descendants are those whose chain
 * of parents reaches the root.
 *
 * Marking repeats until nothing new is marked. /proc lists pids in rising order and children
 * mostly have higher ones than their parents, so two rounds are usual. */
#include "engine/descendants.h"

#include "core/file.h"
#include "engine/pids.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILL_PASSES = 64 };

struct process {
    int64_t pid, parent;
    bool below;
};

struct snapshot {
    struct process *processes;
    uint32_t count, capacity;
};

/* "123 (any) name) S 1 ...": the parent is the second field after the last ')'. 0: gone. */
static int64_t read_parent(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    const char *after = strrchr(acre_file_peek(path, text, sizeof(text)), ')');
    /* A zombie runs and forks no more; its children have another parent already. */
    return after != NULL && strlen(after) > 4 && after[2] != 'Z' ? strtoll(after + 4, NULL, 10) : 0;
}

static struct snapshot take_snapshot(void) {
    struct snapshot taken = {0};
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        int64_t pid = strtoll(entry->d_name, NULL, 10);
        int64_t parent = pid > 0 ? read_parent(entry->d_name) : 0;
        if (parent <= 0) {
            continue;
        }
        taken.processes =
            acre_grow(taken.processes, taken.count, &taken.capacity, sizeof(*taken.processes));
        taken.processes[taken.count++] = (struct process){.pid = pid, .parent = parent};
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return taken;
}

static int compare_pids(const void *a, const void *b) {
    const struct process *one = a, *other = b;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

static bool is_below(const struct snapshot *all, int64_t root, int64_t parent) {
    struct process key = {.pid = parent};
    const struct process *found =
        bsearch(&key, all->processes, all->count, sizeof(key), compare_pids);
    return parent == root || (found != NULL && found->below);
}

uint32_t descendants_find(int64_t root, int64_t *pids, uint32_t max) {
    struct snapshot all = take_snapshot();
    if (all.count > 0) {
        qsort(all.processes, all.count, sizeof(*all.processes), compare_pids);
    }
    uint32_t count = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < all.count; i++) {
            struct process *process = &all.processes[i];
            if (!process->below && is_below(&all, root, process->parent)) {
                process->below = more = true;
                if (count < max) {
                    pids[count] = process->pid;
                }
                count++;
            }
        }
    }
    free(all.processes);
    return count;
}

static uint32_t list_below(void *root, int64_t *pids, uint32_t max) {
    return descendants_find(*(const int64_t *)root, pids, max);
}

void descendants_kill(int64_t root) {
    uint32_t count = 0;
    uint32_t before = UINT32_MAX;
    for (int pass = 0; pass < KILL_PASSES && count != before; pass++) {
        before = count;
        count = pids_signal(list_below, NULL, &root, SIGSTOP);
    }
    pids_signal(list_below, NULL, &root, SIGKILL);
}
