/* tail.h - copies one log of a job to a file descriptor: what is there, or as it is written.
 *
 * Programs only, one thread. A broken stream resumes where it stopped. On a terminal, escape
 * sequences are made visible (screen.h), unless raw bytes are asked for. */
#ifndef ACRE_CLI_TAIL_H
#define ACRE_CLI_TAIL_H

#include "cli/common.h"
#include "cli/screen.h"

struct tail {
    struct session *session;
    uint64_t job, attempt; /* attempt 0: the last one */
    const char *name;      /* "stdout" or "stderr" */
    int fd;
    bool follow;
    bool patient;        /* ask again when the daemon refuses: it has too many followers */
    bool raw;            /* also on a terminal */
    int64_t offset;      /* of the next byte; negative: so many before the end */
    uint64_t got;        /* bytes of the stream under way */
    bool broken;         /* the reader has gone, or the disk is full: nothing more can be written */
    bool *erase;         /* a line that waits to be erased before anything is written; NULL: none */
    uint64_t refused_ms; /* when it last did, monotonic; 0: it did not */
    struct feed *stream;
    bool is_screened; /* found out when it is opened */
    struct screen screen;
};

/* Ask for the log from tail->offset on. False: told in session->result. */
bool tail_open(struct tail *tail);
void tail_close(struct tail *tail);
/* After client_wait: true when the log is at its end. A broken stream is opened again. */
bool tail_ended(struct tail *tail);

#endif
