/* notice.c - one copy of each eventfd, however many notices are under way for it. */
#include "compute/notice.h"

#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM_MIN = 8 };

static void drop_done(struct notices *notices, uint64_t done) {
    while (notices->first < notices->count && notices->list[notices->first].sequence <= done) {
        notices->files[notices->list[notices->first++].file].pending--;
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
        return acre_fail(err, ACRE_ENOMEM, "event_fd: %u notices under way", left);
    }
    notices->list = list;
    notices->room = room;
    return 0;
}

/* A place for another file: one that nothing is under way for, or a new one. */
static int take_file(struct notices *notices, uint32_t *ret_file, struct acre_error *err) {
    for (uint32_t i = 0; i < notices->file_count; i++) {
        if (notices->files[i].pending == 0) {
            close(notices->files[i].fd);
            notices->files[i] = (struct notice_file){.of = -1, .fd = -1};
            *ret_file = i;
            return 0;
        }
    }
    if (notices->file_count == notices->file_room) {
        uint32_t room = ACRE_MAX(2 * notices->file_room, (uint32_t)ROOM_MIN);
        struct notice_file *files = realloc(notices->files, room * sizeof(*files));
        if (files == NULL) {
            return acre_fail(err, ACRE_ENOMEM, "event_fd: %u of them", notices->file_count);
        }
        notices->files = files;
        notices->file_room = room;
    }
    *ret_file = notices->file_count++;
    notices->files[*ret_file] = (struct notice_file){.of = -1, .fd = -1};
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

int notices_prepare(struct notices *notices, int event_fd, uint64_t done, uint32_t *ret_file,
                    struct acre_error *err) {
    drop_done(notices, done);
    int r = make_room(notices, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < notices->file_count; i++) {
        if (notices->files[i].of == event_fd && acre_file_is_same(notices->files[i].fd, event_fd)) {
            *ret_file = i;
            return 0;
        }
    }
    int fd = fcntl(event_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return errno == EBADF ? refuse(event_fd, "no open file", err)
                              : acre_fail_errno(err, errno, "event_fd: %d", event_fd);
    }
    r = check(event_fd, fd, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    r = take_file(notices, ret_file, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    notices->files[*ret_file] = (struct notice_file){.of = event_fd, .fd = fd};
    return 0;
}

void notices_add(struct notices *notices, uint64_t sequence, uint32_t file) {
    notices->list[notices->count++] = (struct notice){.sequence = sequence, .file = file};
    notices->files[file].pending++;
}

int notices_fd(const struct notices *notices, uint32_t file) {
    return notices->files[file].fd;
}

void notices_fire(struct notices *notices, uint64_t done, bool may_come) {
    drop_done(notices, done);
    for (uint32_t i = 0; i < notices->file_count; i++) {
        struct notice_file *file = &notices->files[i];
        uint64_t lost = file->pending;
        ssize_t written = lost > 0 ? write(file->fd, &lost, sizeof(lost)) : 0;
        (void)written; /* full: then it wakes already */
        file->pending = may_come ? file->pending : 0;
    }
    notices->first = notices->count = 0;
}

void notices_finish(struct notices *notices) {
    for (uint32_t i = 0; i < notices->file_count; i++) {
        close(notices->files[i].fd);
    }
    free(notices->files);
    free(notices->list);
    *notices = (struct notices){0};
}
