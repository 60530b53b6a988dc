/* tail.c - requests a log from an offset, and moves the offset by what arrives.
 *
 * Without `follow` the daemon may answer in pieces of any size: it is asked again until a piece is
 * empty. With `follow` the stream lasts until the run ends. */
#include "cli/tail.h"

#include "cli/cli.h"
#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_MS = 1000 };

static void erase_line(struct tail *tail) {
    if (tail->erase != NULL && *tail->erase) {
        fprintf(stderr, "\r\033[K");
        *tail->erase = false;
    }
}

/* A reader that went away is no error; a disk that is full is one. */
static void stop_copying(struct tail *tail, int number) {
    struct acre_error err = {0};
    tail->broken = true;
    if (number != EPIPE) {
        acre_fail_errno(&err, number, "standard %s",
                        tail->fd == STDERR_FILENO ? "error" : "output");
        session_fail(tail->session, &err);
    }
}

static void write_out(struct tail *tail, struct acre_str bytes) {
    size_t done = 0;
    erase_line(tail);
    while (done < bytes.length && !tail->broken) {
        ssize_t wrote = write(tail->fd, bytes.data + done, bytes.length - done);
        if (wrote >= 0) {
            done += (size_t)wrote;
        } else if (errno == EAGAIN) { /* somebody else's terminal or pipe is not blocking */
            poll(&(struct pollfd){.fd = tail->fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            stop_copying(tail, errno);
        }
    }
}

static void copy(void *context, struct acre_str bytes) {
    struct tail *tail = context;
    tail->got += bytes.length;
    tail->offset += tail->offset >= 0 ? (int64_t)bytes.length : 0;
    if (!tail->is_screened) {
        write_out(tail, bytes);
        return;
    }
    struct acre_buf shown;
    acre_buf_init(&shown, ACRE_OUTPUT_MAX_BYTES); /* a piece of libcurl's has some KiB */
    screen_put(&tail->screen, bytes, &shown);
    write_out(tail, (struct acre_str){shown.data, shown.length});
    acre_buf_finish(&shown);
}

static bool ask(struct tail *tail) {
    char path[ACRE_PATH_MAX], attempt[32] = "";
    struct acre_error err = {0};
    if (tail->attempt > 0) {
        snprintf(attempt, sizeof(attempt), "&attempt=%" PRIu64, tail->attempt);
    }
    snprintf(path, sizeof(path), "/jobs/%" PRIu64 "/logs?stream=%s&offset=%" PRId64 "%s%s",
             tail->job, tail->name, tail->offset, attempt, tail->follow ? "&follow=1" : "");
    tail->got = 0;
    if (client_stream(tail->session->client, path, NULL, copy, tail, &tail->stream, &err) < 0) {
        session_fail(tail->session, &err);
        return false;
    }
    return true;
}

bool tail_open(struct tail *tail) {
    tail->is_screened = !tail->raw && isatty(tail->fd);
    screen_init(&tail->screen, "\n\t\r\b"); /* lines, columns and bars of progress */
    return ask(tail);
}

static void close_stream(struct tail *tail) {
    feed_close(tail->stream);
    tail->stream = NULL;
}

void tail_close(struct tail *tail) {
    struct acre_buf rest;
    acre_buf_init(&rest, ACRE_OUTPUT_MAX_BYTES);
    screen_end(&tail->screen, &rest);
    if (rest.length > 0) {
        write_out(tail, (struct acre_str){rest.data, rest.length});
    }
    acre_buf_finish(&rest);
    close_stream(tail);
}

static uint64_t now_ms(void) {
    struct acre_clock clock = acre_clock_real();
    return acre_clock_monotonic_ns(&clock) / 1000000;
}

bool tail_ended(struct tail *tail) {
    struct acre_error err = {0};
    int result = 0;
    if (tail->refused_ms != 0 && !tail->broken) {
        if (now_ms() - tail->refused_ms < AGAIN_MS) {
            return false;
        }
        tail->refused_ms = 0;
        return !ask(tail);
    }
    if (tail->stream == NULL || tail->broken) {
        return true;
    }
    if (!feed_ended(tail->stream, &result, &err)) {
        return false;
    }
    close_stream(tail);
    bool more = result == 0 && !tail->follow && tail->got > 0 && tail->offset >= 0;
    bool cut = result == ACRE_EIO && tail->got > 0 && tail->offset >= 0;
    if (more || cut) {
        return !ask(tail);
    }
    if (result == ACRE_ELIMIT && tail->patient) {
        tail->refused_ms = now_ms();
        return false;
    }
    if (result < 0) {
        erase_line(tail);
        session_fail(tail->session, &err);
    }
    tail_close(tail);
    return true;
}
