/* output.h - a run's output, from pipes to files of bounded size.
 *
 * The job writes to a pipe, the supervisor to the file: so the size is bounded whatever the job
 * does, and a full disk costs output, not the job. The file is made with the first byte: silent
 * jobs leave nothing. Shim only, one thread. */
#ifndef ACRE_ENGINE_OUTPUT_H
#define ACRE_ENGINE_OUTPUT_H

#include "engine/engine.h"

#include <sys/types.h>

struct output {
    int directory;    /* of the logs; not owned */
    char name[48];    /* "42.1.out" */
    uid_t owner;      /* of the file, where we may give it away */
    int pipe;         /* to read from; -1: ended */
    int file;         /* -1: not made yet */
    uint64_t size;    /* of the file */
    uint64_t max;     /* then it becomes <name>.1 and another is begun */
    uint64_t total;   /* bytes read */
    uint64_t older;   /* size of <name>.1 */
    uint64_t gone;    /* bytes written and no longer there: of the <name>.1 before */
    uint64_t dropped; /* bytes that could not be written */
};

/* The end of the job's pipe is in ret_job_end (close-on-exec). 0 or errno. */
int output_open(struct output *stream, int directory, struct acre_run run, uid_t owner,
                const char *suffix, uint64_t max, int *ret_job_end);
/* Move what there is, at most a mebibyte. True: ended, nobody can write any more. */
bool output_drain(struct output *stream);
void output_close(struct output *stream);

#endif
