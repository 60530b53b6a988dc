/* notice.h - the eventfds that streams will notify, kept so that a loss notifies them too.
 *
 * Files belong to a context: any thread. Notices belong to a stream: the thread that uses the
 * stream, or after a loss the thread that holds the gate for writing. */
#ifndef ACRE_COMPUTE_NOTICE_H
#define ACRE_COMPUTE_NOTICE_H

#include "core/error.h"

#include <pthread.h>

struct notice_file {
    int of;           /* its number in the program, which may close it, or open another as that */
    int fd;           /* our copy; -1: it is free */
    uint32_t pending; /* notices of all streams */
};

struct notice_files {
    pthread_mutex_t lock;
    struct notice_file *list;
    uint32_t count, room;
    uint32_t hand; /* whose turn it is to be looked at */
    /* The copy is about to be closed; all its notices have fired. NULL: nobody wants to know. */
    void (*forget)(void *with, int fd);
    void *with;
};

struct notice {
    uint64_t sequence; /* of the stream's work; fired when that is done */
    uint32_t file;
};

struct notices {
    struct notice_files *files;
    struct notice *list; /* in order of sequence; those before `first` are over */
    uint32_t first, count, room;
};

void notice_files_init(struct notice_files *files, void (*forget)(void *with, int fd), void *with);
void notice_files_finish(struct notice_files *files); /* forgets nothing: who knew them is gone */
/* In a child of the process that has them: close its copies. */
void notice_files_let_go(struct notice_files *files);

/* Room for one more, of this eventfd; `done`: those up to there have fired. `ret_fd` is the copy to
 * notify. Then one of the next two. */
int notices_prepare(struct notices *notices, int event_fd, uint64_t done, uint32_t *ret_file,
                    int *ret_fd, struct acre_error *err);
/* The one that was prepared is under way. */
void notices_add(struct notices *notices, uint64_t sequence, uint32_t file);
/* It is not. */
void notices_cancel(struct notices *notices, uint32_t file);
/* Those above `done` were lost: they fire now, and none is left. `may_come`: some may fire once
 * more, some day, so that their files stay. */
void notices_fire(struct notices *notices, uint64_t done, bool may_come);
/* All have fired. */
void notices_finish(struct notices *notices);

#endif
