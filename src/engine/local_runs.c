/* local_runs.c - the runs that are known and their record files.
 *
 * Whether a supervisor lives is asked of its lock on the record, which the kernel gives back
 * when the process ends, however it ends; pids can be reused, locks cannot. */
#include "engine/local_shares.h"

#include "core/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LIST_NAME_MAX = ACRE_RUN_NAME_MAX + 8 };

struct local_run *local_find(const struct local *self, struct acre_run run) {
    return runs_find(&self->known, run);
}

struct local_run *local_add(struct local *self, struct acre_run run) {
    struct local_run *added = acre_calloc(1, sizeof(*added));
    added->run = run;
    added->owner = self;
    added->watch_fd = -1;
    runs_add(&self->known, &added->run);
    return added;
}

static void free_run(struct local_run *run) {
    acre_timer_cancel(run->late);
    acre_timer_cancel(run->again);
    acre_watch_cancel(run->watch);
    if (run->watch_fd >= 0) {
        close(run->watch_fd);
    }
    free(run->result);
    free(run->mps_devices);
    free(run->cu_list);
    acre_buf_finish(&run->message);
    free(run);
}

void local_remove(struct local *self, struct local_run *run) {
    void *known = runs_remove(&self->known, run->run);
    ACRE_ASSERT(known == run);
    char name[ACRE_RUN_NAME_MAX];
    unlinkat(self->runs, run_make_name(run->run, name), 0); /* some never had one */
    free_run(run);
}

void local_free_runs(struct local *self) {
    for (uint32_t i = 0; i < self->known.count; i++) {
        free_run((struct local_run *)self->known.all[i]);
    }
    runs_finish(&self->known);
}

enum local_found local_look(const struct local *self, struct acre_run run, struct fact *ret_fact) {
    char name[ACRE_RUN_NAME_MAX];
    memset(ret_fact, 0, sizeof(*ret_fact));
    ret_fact->run = run;
    int fd = openat(self->runs, run_make_name(run, name), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return ACRE_LOCAL_ABSENT;
    }
    /* First the lock, then the content: a supervisor that lets go has written its end before. */
    bool lives = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct fact fact;
    ssize_t got = pread(fd, &fact, sizeof(fact), 0);
    close(fd);
    if (got == (ssize_t)sizeof(fact) && fact_is_whole(&fact) && fact.run.job == run.job &&
        fact.run.attempt == run.attempt) {
        *ret_fact = fact;
    }
    return ret_fact->kind == ACRE_FACT_EXITED ? ACRE_LOCAL_OVER
           : lives                            ? ACRE_LOCAL_LIVE
                                              : ACRE_LOCAL_DEAD;
}

/* ---- lists beside the records ---- */

static const char *list_name(struct acre_run run, const char *suffix, char name[LIST_NAME_MAX]) {
    char run_name[ACRE_RUN_NAME_MAX];
    snprintf(name, LIST_NAME_MAX, "%s%s", run_make_name(run, run_name), suffix);
    return name;
}

int local_write_list(const struct local *self, struct acre_run run, const char *suffix,
                     const char *text, struct acre_error *err) {
    char name[LIST_NAME_MAX];
    list_name(run, suffix, name);
    int fd = openat(self->runs, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t length = (ssize_t)strlen(text);
    int r = fd >= 0 && write(fd, text, (size_t)length) == length
                ? 0
                : acre_fail_errno(err, errno, "runs/%s", name);
    if (fd >= 0) {
        close(fd);
    }
    return r;
}

char *local_read_list(const struct local *self, struct acre_run run, const char *suffix) {
    char name[LIST_NAME_MAX];
    int fd = openat(self->runs, list_name(run, suffix, name), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    char *text = acre_calloc(ACRE_LOCAL_LIST_MAX, 1);
    ssize_t got = read(fd, text, ACRE_LOCAL_LIST_MAX - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

void local_remove_list(const struct local *self, struct acre_run run, const char *suffix) {
    char name[LIST_NAME_MAX];
    unlinkat(self->runs, list_name(run, suffix, name), 0);
}

void local_each_list(struct local *self, const char *suffix,
                     void (*function)(struct local *self, struct acre_run run)) {
    int fd = openat(self->state, ACRE_RUNS_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        const char *end = strrchr(entry->d_name, '.');
        char name[ACRE_RUN_NAME_MAX];
        struct acre_run run;
        if (end != NULL && strcmp(end, suffix) == 0 &&
            acre_str_copy(name, sizeof(name),
                          (struct acre_str){entry->d_name, (size_t)(end - entry->d_name)}) &&
            run_parse(name, &run)) {
            function(self, run);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    } else if (fd >= 0) {
        close(fd);
    }
}
