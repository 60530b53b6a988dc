/* notice.h - the eventfds a stream will notify, kept so that a loss notifies them too.
 *
 * A stream's own, by the thread that has the stream; after a loss by who has the gate written. */
#ifndef ACRE_COMPUTE_NOTICE_H
#define ACRE_COMPUTE_NOTICE_H

#include "core/error.h"

struct notice {
    uint64_t sequence; /* of the stream's work; fired when that is done */
    uint32_t file;
};

struct notice_file {
    int of;           /* its number in the program, which may close it, or open another as that */
    int fd;           /* our copy */
    uint32_t pending; /* notices */
};

struct notices {
    struct notice *list; /* in order of sequence; `first` and those before it are over */
    uint32_t first, count, room;
    struct notice_file *files;
    uint32_t file_count, file_room;
};

/* Room for one more, of this eventfd; `done`: those up to there have fired. */
int notices_prepare(struct notices *notices, int event_fd, uint64_t done, uint32_t *ret_file,
                    struct acre_error *err);
/* The one that was prepared is under way. */
void notices_add(struct notices *notices, uint64_t sequence, uint32_t file);
/* The copy to notify. */
int notices_fd(const struct notices *notices, uint32_t file);
/* Those above `done` were lost: they fire now, and none is left. `may_come`: some may fire once
 * more, some day, so that their files stay. */
void notices_fire(struct notices *notices, uint64_t done, bool may_come);
void notices_finish(struct notices *notices);

#endif
