/* log_room.c - totals on the loop, sweeps on a thread.
 *
 * A sweep looks at every file (some 2 us each) and adds up what each account has. Of those that
 * have too much it lists the runs, oldest first, and removes whole runs until a tenth of the limit
 * is free: so a user who is always at the limit costs a sweep for each tenth of it, not for each
 * run. A run that has a record in runs/ lives, or its end is not yet known everywhere (records
 * are made before logs and go after the end was committed): of that one only the older files go,
 * which are no longer written to.
 *
 * What ends during a sweep may be counted twice, until the next one. When too much is left (it all
 * belongs to runs that live), the next sweep comes later and later. Blocks are counted, not bytes,
 * and one at least, because small files may be kept in their inodes: a million logs of one byte are
 * 4 GiB. */
#include "engine/log_room.h"

#include "core/clock.h"
#include "core/str.h"
#include "core/thread.h"
#include "engine/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SUFFIXES = 4,
    NAME_BYTES = ACRE_RUN_NAME_MAX + 8,
    BLOCK_BYTES = 512, /* of st_blocks */
    FILE_MIN_BYTES = 4096,
    FREE_TENTHS = 1,
    PAUSE_TIMES = 10, /* a sweep may take so much of the time: a tenth of one CPU */
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 60000,
    NICE = 10,
};

static const char *const suffixes[SUFFIXES] = {".out", ".out.1", ".err", ".err.1"};

struct total {
    uid_t uid;
    uint64_t bytes;
    uint64_t added; /* of it, since the sweep began that is under way */
};

struct totals {
    struct total *items;
    uint32_t count, capacity;
};

struct log_room {
    struct acre_loop *loop;
    int logs, runs;
    uint64_t limit_bytes; /* 0: none */
    struct totals totals;
    bool sweeping, again; /* again: somebody has too much since */
    struct acre_timer *timer;
    uint64_t pause_ms; /* after the last sweep */
    uint64_t not_before_ms;
    pthread_t thread;
    /* The thread's, from its start to its post. */
    atomic_bool stopping; /* the loop's store, seen by the thread's loads; nothing goes with it */
    uint64_t sweep_limit, sweep_ms;
    struct totals swept;
};

/* All files of one run. */
struct run_logs {
    struct acre_run run;
    uid_t uid;
    uint64_t bytes;
    uint64_t old_bytes; /* of it, in files that are not written to any more */
    int64_t written_ns; /* the latest */
};

struct entries {
    struct run_logs *items;
    uint32_t count, capacity;
};

static uint64_t now_ms(void) {
    return acre_monotonic_ns() / 1000000;
}

static struct total *total_of(struct totals *totals, uid_t uid) {
    for (uint32_t i = 0; i < totals->count; i++) {
        if (totals->items[i].uid == uid) {
            return &totals->items[i];
        }
    }
    totals->items =
        acre_grow(totals->items, totals->count, &totals->capacity, sizeof(*totals->items));
    totals->items[totals->count] = (struct total){.uid = uid};
    return &totals->items[totals->count++];
}

/* Root is not held to it: whoever is root has the whole disk. */
static bool has_too_much(const struct total *total, uint64_t limit) {
    return limit > 0 && total->uid != 0 && total->bytes > limit;
}

static bool has_anybody_too_much(const struct totals *totals, uint64_t limit) {
    bool any = false;
    for (uint32_t i = 0; i < totals->count; i++) {
        any = any || has_too_much(&totals->items[i], limit);
    }
    return any;
}

/* ---- the thread ---- */

static uint64_t bytes_of(const struct stat *info) {
    return ACRE_MAX((uint64_t)info->st_blocks * BLOCK_BYTES, (uint64_t)FILE_MIN_BYTES);
}

static bool is_old(size_t suffix) {
    return suffix % 2 == 1;
}

/* "42.1.err.1" is of run 42.1, and old. */
static bool parse_name(const char *name, struct acre_run *ret_run, bool *ret_old) {
    for (size_t i = 0; i < SUFFIXES; i++) {
        size_t length = strlen(name), suffix = strlen(suffixes[i]);
        char run[ACRE_RUN_NAME_MAX];
        if (length > suffix && strcmp(name + length - suffix, suffixes[i]) == 0 &&
            acre_str_copy(run, sizeof(run), (struct acre_str){name, length - suffix}) &&
            run_parse(run, ret_run)) {
            *ret_old = is_old(i);
            return true;
        }
    }
    return false;
}

/* Call for every log there is. */
static void each_log(struct log_room *room,
                     void (*function)(struct log_room *room, struct acre_run run, bool old,
                                      const struct stat *info, struct entries *entries),
                     struct entries *entries) {
    int fd = openat(room->logs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL &&
           !atomic_load_explicit(&room->stopping, memory_order_relaxed)) {
        struct acre_run run;
        struct stat info;
        bool old = false;
        if (parse_name(entry->d_name, &run, &old) &&
            fstatat(room->logs, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            function(room, run, old, &info, entries);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    } else if (fd >= 0) {
        close(fd);
    }
}

static void count_log(struct log_room *room, struct acre_run run, bool old, const struct stat *info,
                      struct entries *entries) {
    (void)run, (void)old, (void)entries;
    total_of(&room->swept, info->st_uid)->bytes += bytes_of(info);
}

static void list_log(struct log_room *room, struct acre_run run, bool old, const struct stat *info,
                     struct entries *entries) {
    if (!has_too_much(total_of(&room->swept, info->st_uid), room->sweep_limit)) {
        return;
    }
    entries->items =
        acre_grow(entries->items, entries->count, &entries->capacity, sizeof(*entries->items));
    entries->items[entries->count++] = (struct run_logs){
        .run = run,
        .uid = info->st_uid,
        .bytes = bytes_of(info),
        .old_bytes = old ? bytes_of(info) : 0,
        .written_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec};
}

static int by_run(const void *left, const void *right) {
    const struct run_logs *a = left, *b = right;
    return a->run.job != b->run.job
               ? (a->run.job < b->run.job ? -1 : 1)
               : (a->run.attempt > b->run.attempt) - (a->run.attempt < b->run.attempt);
}

static int by_age(const void *left, const void *right) {
    const struct run_logs *a = left, *b = right;
    return a->written_ns != b->written_ns ? (a->written_ns < b->written_ns ? -1 : 1)
                                          : by_run(left, right);
}

/* One entry for all files of a run. */
static void merge(struct entries *entries) {
    uint32_t kept = 0;
    qsort(entries->items, entries->count, sizeof(*entries->items), by_run);
    for (uint32_t i = 0; i < entries->count; i++) {
        struct run_logs *last = kept > 0 ? &entries->items[kept - 1] : NULL;
        if (last != NULL && by_run(last, &entries->items[i]) == 0) {
            last->bytes += entries->items[i].bytes;
            last->old_bytes += entries->items[i].old_bytes;
            last->written_ns = ACRE_MAX(last->written_ns, entries->items[i].written_ns);
        } else {
            entries->items[kept++] = entries->items[i];
        }
    }
    entries->count = kept;
}

static void remove_files(const struct log_room *room, struct acre_run run, bool only_old) {
    char run_name[ACRE_RUN_NAME_MAX], name[NAME_BYTES];
    run_make_name(run, run_name);
    for (size_t i = 0; i < SUFFIXES; i++) {
        snprintf(name, sizeof(name), "%s%s", run_name, suffixes[i]);
        if (!only_old || is_old(i)) {
            unlinkat(room->logs, name, 0);
        }
    }
}

static void make_room(struct log_room *room) {
    struct entries entries = {0};
    uint64_t target = room->sweep_limit / 10 * (10 - FREE_TENTHS);
    each_log(room, list_log, &entries);
    if (entries.count > 0) {
        merge(&entries);
        qsort(entries.items, entries.count, sizeof(*entries.items), by_age);
    }
    for (uint32_t i = 0;
         i < entries.count && !atomic_load_explicit(&room->stopping, memory_order_relaxed); i++) {
        const struct run_logs *entry = &entries.items[i];
        struct total *total = total_of(&room->swept, entry->uid);
        char name[ACRE_RUN_NAME_MAX];
        if (total->bytes > target) {
            bool lives = faccessat(room->runs, run_make_name(entry->run, name), F_OK, 0) == 0;
            remove_files(room, entry->run, lives);
            total->bytes -= ACRE_MIN(total->bytes, lives ? entry->old_bytes : entry->bytes);
        }
    }
    free(entries.items);
}

static void on_swept(void *context);

static void *sweep(void *context) {
    struct log_room *room = context;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone */
    uint64_t began_ms = now_ms();
    each_log(room, count_log, NULL);
    if (has_anybody_too_much(&room->swept, room->sweep_limit)) {
        make_room(room);
    }
    room->sweep_ms = now_ms() - began_ms;
    acre_loop_post(room->loop, on_swept, room);
    return NULL;
}

/* ---- the loop ---- */

static void start_sweep(struct log_room *room);

static void on_timer(void *context) {
    struct log_room *room = context;
    room->timer = NULL;
    start_sweep(room);
}

static void start_sweep(struct log_room *room) {
    uint64_t now = now_ms();
    if (room->sweeping || room->timer != NULL) {
        room->again = room->sweeping;
        return;
    }
    if (now < room->not_before_ms) {
        room->timer = acre_loop_timer(room->loop, room->not_before_ms - now, 0, on_timer, room);
        return;
    }
    for (uint32_t i = 0; i < room->totals.count; i++) {
        room->totals.items[i].added = 0;
    }
    room->sweep_limit = room->limit_bytes;
    room->sweeping = acre_thread_start(&room->thread, "acre-logs", sweep, room) == 0;
    room->again = false;
    if (!room->sweeping) { /* no thread to be had: later, maybe */
        room->not_before_ms = now + PAUSE_MAX_MS;
    }
}

static void on_swept(void *context) {
    struct log_room *room = context;
    pthread_join(room->thread, NULL);
    room->sweeping = false;
    bool is_left = has_anybody_too_much(&room->swept, room->limit_bytes);
    for (uint32_t i = 0; i < room->totals.count; i++) {
        const struct total *total = &room->totals.items[i];
        if (total->added > 0) {
            total_of(&room->swept, total->uid)->bytes += total->added;
        }
    }
    free(room->totals.items);
    room->totals = room->swept;
    room->swept = (struct totals){0};
    uint64_t usual_ms = ACRE_MAX(room->sweep_ms * PAUSE_TIMES, (uint64_t)PAUSE_MIN_MS);
    room->pause_ms = ACRE_MIN(is_left ? ACRE_MAX(room->pause_ms * 2, usual_ms) : usual_ms,
                              (uint64_t)PAUSE_MAX_MS);
    room->not_before_ms = now_ms() + room->pause_ms;
    /* Runs that ended meanwhile were judged by totals that did not have the rest. */
    if (room->again || has_anybody_too_much(&room->totals, room->limit_bytes)) {
        start_sweep(room);
    }
}

struct log_room *log_room_create(struct acre_loop *loop, int logs, int runs) {
    struct log_room *room = acre_calloc(1, sizeof(*room));
    room->loop = loop;
    room->logs = logs;
    room->runs = runs;
    return room;
}

void log_room_destroy(struct log_room *room) {
    if (room == NULL) {
        return;
    }
    acre_timer_cancel(room->timer);
    if (room->sweeping) {
        atomic_store_explicit(&room->stopping, true, memory_order_relaxed);
        pthread_join(room->thread, NULL);
        acre_loop_unpost(room->loop, room);
    }
    free(room->totals.items);
    free(room->swept.items);
    free(room);
}

void log_room_limit(struct log_room *room, uint64_t limit_mib) {
    uint64_t limit_bytes = limit_mib << 20;
    bool changed = limit_bytes != room->limit_bytes;
    room->limit_bytes = limit_bytes;
    if (changed && limit_bytes > 0) {
        start_sweep(room);
    }
}

void log_room_add(struct log_room *room, struct acre_run run) {
    char run_name[ACRE_RUN_NAME_MAX], name[NAME_BYTES];
    bool over = false;
    run_make_name(run, run_name);
    for (size_t i = 0; i < SUFFIXES && room->limit_bytes > 0; i++) {
        struct stat info;
        snprintf(name, sizeof(name), "%s%s", run_name, suffixes[i]);
        if (fstatat(room->logs, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            struct total *total = total_of(&room->totals, info.st_uid);
            total->bytes += bytes_of(&info);
            total->added += bytes_of(&info);
            over = over || has_too_much(total, room->limit_bytes);
        }
    }
    if (over) {
        start_sweep(room);
    }
}
