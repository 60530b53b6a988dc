/* output.c - read from the pipe, write to the file, begin a new file when it is full.
 *
 * One older file is kept, so a stream never takes more than twice the limit. Names are stable:
 * <run>.out is always the newest. What cannot be written (full disk, no such directory) is
 * counted and dropped, and tried again with the next piece. */
#include "engine/output.h"

#include "engine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 65536, PIECES_AT_ONCE = 16 }; /* a pipe's size; then others have a turn */

int output_open(struct output *stream, int directory, struct acre_run run, uid_t owner,
                const char *suffix, uint64_t max, int *ret_job_end) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* ours alone: the job's end stays ordinary */
    *stream = (struct output){
        .directory = directory, .owner = owner, .pipe = ends[0], .file = -1, .max = max};
    char name[ACRE_RUN_NAME_MAX];
    snprintf(stream->name, sizeof(stream->name), "%s.%s", run_make_name(run, name), suffix);
    *ret_job_end = ends[1];
    return 0;
}

static void rotate(struct output *stream) {
    char older[sizeof(stream->name) + 2];
    snprintf(older, sizeof(older), "%s.1", stream->name);
    renameat(stream->directory, stream->name, stream->directory, older);
    close(stream->file);
    stream->file = -1;
    stream->gone += stream->older;
    stream->older = stream->size;
    stream->size = 0;
}

static void put(struct output *stream, const char *bytes, size_t length) {
    if (stream->file >= 0 && stream->size >= stream->max) {
        rotate(stream);
    }
    if (stream->file < 0) {
        stream->file = openat(stream->directory, stream->name,
                              O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        /* The account's, so that it is known, and counted, whose log it is (log_room.h). It cannot
         * reach it: the directory is closed. Without root it is ours, and so is the account. */
        if (stream->file >= 0 && fchown(stream->file, stream->owner, (gid_t)-1) != 0) {
            stream->owner = geteuid();
        }
    }
    while (length > 0) {
        ssize_t wrote = stream->file >= 0 ? write(stream->file, bytes, length) : -1;
        if (wrote < 0 && stream->file >= 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            stream->dropped += length;
            return;
        }
        bytes += wrote;
        length -= (size_t)wrote;
        stream->size += (uint64_t)wrote;
    }
}

bool output_drain(struct output *stream) {
    for (int i = 0; stream->pipe >= 0; i++) {
        char piece[PIECE_BYTES];
        ssize_t got = read(stream->pipe, piece, sizeof(piece));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && errno == EAGAIN) {
            return false;
        }
        if (got <= 0) {
            close(stream->pipe);
            stream->pipe = -1;
            break;
        }
        stream->total += (uint64_t)got;
        put(stream, piece, (size_t)got);
        if (i + 1 == PIECES_AT_ONCE) {
            return false;
        }
    }
    return true;
}

void output_close(struct output *stream) {
    if (stream->pipe >= 0) {
        close(stream->pipe);
    }
    if (stream->file >= 0) {
        close(stream->file);
    }
    stream->pipe = stream->file = -1;
}
