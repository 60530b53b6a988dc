/* notice.c - one copy of each eventfd, however many notices of however many streams are pending.
 *
 * The copy belongs to the context, so back ends may identify a file by its number until they are
 * asked to forget it. A copy without pending notices stays, because most are used again, unless the
 * program has closed its own. Each new eventfd checks two old ones in turn, so there are never more
 * copies than the program has open or has notices pending for. */
#include "compute/notice.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM_MIN = 8, LOOKS = 2 };

/* --- files: all with their lock held -------------------------------------------------------- */

static bool is_of(const struct notice_file *file, int event_fd) {
    return file->fd >= 0 && file->of == event_fd && acre_file_is_same(file->fd, event_fd);
}

/* Unless something is under way for it, or the program still has it. */
static void close_if_gone(struct notice_files *files, uint32_t index) {
    struct notice_file *file = &files->list[index];
    if (file->fd < 0 || file->pending > 0 || is_of(file, file->of)) {
        return;
    }
    if (files->forget != NULL) {
        files->forget(files->with, file->fd);
    }
    close(file->fd);
    file->fd = -1;
}

/* A free one; with none, a new one. */
static int take_file(struct notice_files *files, uint32_t *ret_file, struct acre_error *err) {
    for (uint32_t i = 0; i < LOOKS && files->count > 0; i++) {
        close_if_gone(files, files->hand++ % files->count);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->list[i].fd < 0) {
            *ret_file = i;
            return 0;
        }
    }
    if (files->count == files->room) {
        uint32_t room = ACRE_MAX(2 * files->room, (uint32_t)ROOM_MIN);
        struct notice_file *list = realloc(files->list, room * sizeof(*list));
        if (list == NULL) {
            return acre_fail(err, ACRE_ENOMEM, "event_fd: no memory for more than %u eventfds",
                             files->count);
        }
        files->list = list;
        files->room = room;
    }
    files->list[files->count] = (struct notice_file){.of = -1, .fd = -1};
    *ret_file = files->count++;
    return 0;
}

static int refuse(int event_fd, const char *what, struct acre_error *err) {
    return acre_fail(err, ACRE_EINVALID, "event_fd: %d is %s; accepted: an eventfd", event_fd,
                     what);
}

/* Its copy is an eventfd, as far as the system tells. */
static int check(int event_fd, int fd, struct acre_error *err) {
    char path[32], what[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, what, sizeof(what) - 1);
    what[length > 0 ? length : 0] = '\0';
    return length <= 0 || strcmp(what, "anon_inode:[eventfd]") == 0 ? 0
                                                                    : refuse(event_fd, what, err);
}

static int copy_file(struct notice_files *files, int event_fd, uint32_t *ret_file,
                     struct acre_error *err) {
    int fd = fcntl(event_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return errno == EBADF ? refuse(event_fd, "not an open file", err)
                              : acre_fail_errno(err, errno, "event_fd: %d", event_fd);
    }
    uint32_t file = 0;
    int r = check(event_fd, fd, err);
    r = r == 0 ? take_file(files, &file, err) : r;
    if (r < 0) {
        close(fd);
        return r;
    }
    files->list[file] = (struct notice_file){.of = event_fd, .fd = fd};
    *ret_file = file;
    return 0;
}

static int find_or_copy(struct notice_files *files, int event_fd, uint32_t *ret_file,
                        struct acre_error *err) {
    for (uint32_t i = 0; i < files->count; i++) {
        if (is_of(&files->list[i], event_fd)) {
            *ret_file = i;
            return 0;
        }
    }
    return copy_file(files, event_fd, ret_file, err);
}

void notice_files_init(struct notice_files *files, void (*forget)(void *with, int fd), void *with) {
    *files = (struct notice_files){.forget = forget, .with = with};
    pthread_mutex_init(&files->lock, NULL);
}

void notice_files_finish(struct notice_files *files) {
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->list[i].fd >= 0) {
            close(files->list[i].fd);
        }
    }
    free(files->list);
    pthread_mutex_destroy(&files->lock);
    *files = (struct notice_files){0};
}

void notice_files_let_go(struct notice_files *files) {
    if (pthread_mutex_trylock(&files->lock) != 0) {
        return; /* somebody was changing them */
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->list[i].fd >= 0) {
            close(files->list[i].fd);
        }
    }
    free(files->list);
    *files = (struct notice_files){0};
}

/* --- notices -------------------------------------------------------------------------------- */

/* Files' lock held. `next_fd` is looked at by the caller anyhow. */
static void drop_done(struct notices *notices, uint64_t done, int next_fd) {
    while (notices->first < notices->count && notices->list[notices->first].sequence <= done) {
        uint32_t index = notices->list[notices->first++].file;
        struct notice_file *file = &notices->files->list[index];
        if (--file->pending == 0 && file->of != next_fd) {
            close_if_gone(notices->files, index);
        }
    }
    if (notices->first == notices->count) {
        notices->first = notices->count = 0;
    }
}

static int make_room(struct notices *notices, struct acre_error *err) {
    if (notices->count < notices->room) {
        return 0;
    }
    uint32_t left = notices->count - notices->first;
    if (notices->first >= notices->room / 2 && notices->first > 0) {
        memmove(notices->list, notices->list + notices->first, left * sizeof(*notices->list));
        notices->first = 0;
        notices->count = left;
        return 0;
    }
    uint32_t room = ACRE_MAX(2 * notices->room, (uint32_t)ROOM_MIN);
    struct notice *list = realloc(notices->list, room * sizeof(*list));
    if (list == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "event_fd: no memory for more than %u pending notices",
                         left);
    }
    notices->list = list;
    notices->room = room;
    return 0;
}

int notices_prepare(struct notices *notices, int event_fd, uint64_t done, uint32_t *ret_file,
                    int *ret_fd, struct acre_error *err) {
    struct notice_files *files = notices->files;
    pthread_mutex_lock(&files->lock);
    drop_done(notices, done, event_fd);
    int r = make_room(notices, err);
    r = r == 0 ? find_or_copy(files, event_fd, ret_file, err) : r;
    if (r == 0) {
        files->list[*ret_file].pending++; /* from here on, so that no other thread closes it */
        *ret_fd = files->list[*ret_file].fd;
    }
    pthread_mutex_unlock(&files->lock);
    return r;
}

void notices_add(struct notices *notices, uint64_t sequence, uint32_t file) {
    notices->list[notices->count++] = (struct notice){.sequence = sequence, .file = file};
}

void notices_cancel(struct notices *notices, uint32_t file) {
    pthread_mutex_lock(&notices->files->lock);
    notices->files->list[file].pending--;
    pthread_mutex_unlock(&notices->files->lock);
}

void notices_fire(struct notices *notices, uint64_t done, bool may_come) {
    struct notice_files *files = notices->files;
    pthread_mutex_lock(&files->lock);
    drop_done(notices, done, -1);
    while (notices->first < notices->count) {
        struct notice_file *file = &files->list[notices->list[notices->first++].file];
        uint64_t one = 1;
        ssize_t written = write(file->fd, &one, sizeof(one));
        (void)written; /* full: then it wakes already */
        file->pending -= may_come ? 0 : 1;
    }
    notices->first = notices->count = 0;
    pthread_mutex_unlock(&files->lock);
}

void notices_finish(struct notices *notices) {
    struct notice_files *files = notices->files;
    pthread_mutex_lock(&files->lock);
    drop_done(notices, UINT64_MAX, -1);
    for (uint32_t i = 0; i < files->count; i++) {
        close_if_gone(files, i);
    }
    pthread_mutex_unlock(&files->lock);
    free(notices->list);
    *notices = (struct notices){.files = files};
}
