/* logs.c - a run's output: a range of it, or all that comes until the run ends.
 *
 * A stream is at most two files: the newest, and before it the one it took the place of (".1").
 * Offsets count from the start of the older one. A follower keeps its file open: when the name
 * belongs to another file it has been rotated, so the rest is read and then the new one. The
 * kernel tells of changes (inotify); the desk tells of the end. What a slow client has not taken
 * is not read from the file either. */
#include "api/logs.h"

#include "api/handlers.h"
#include "api/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    RANGE_MAX_BYTES = 1 << 20, /* kept for each client until it has taken it: 1 GB for 1,000 */
    CHUNK_BYTES = 64 << 10,
    WAITING_MAX_BYTES = 256 << 10, /* below what http.h cuts a client for */
    PACE_MS = 20,                  /* between looks at a client that is behind */
    FOLLOWERS_MAX = 256,
    PATH_BYTES = 4096,
};

static const char *const streams[] = {"stdout", "stderr", NULL};

const struct acre_field acre_logs_fields[] = {
    {.name = "stream", .kinds = ACRE_KIND_STRING, .words = streams, .help = "default stdout"},
    {.name = "offset",
     .kinds = ACRE_KIND_INTEGER,
     .min = -ACRE_FIELD_NUMBER_MAX,
     .max = ACRE_FIELD_NUMBER_MAX,
     .help = "where to begin; below 0: so many bytes before the end"},
    {.name = "limit", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = RANGE_MAX_BYTES},
    {.name = "follow", .kinds = ACRE_KIND_BOOL, .help = "until the run has ended"},
    {.name = "attempt",
     .kinds = ACRE_KIND_INTEGER,
     .min = 1,
     .max = UINT32_MAX,
     .help = "which run; the last one when absent"},
    {0},
};

struct acre_follower {
    struct acre_follower *next, **previous;
    struct acre_api *api;
    struct acre_exchange *exchange;
    struct acre_run run;
    int stream;
    int file; /* -1: none yet */
    int notify;
    struct acre_watch *watch;
    struct acre_timer *pace;
    uint64_t skip; /* bytes still to pass over */
    bool over;     /* the run has ended: what is there is all */
    bool ended;    /* the stream has been ended */
};

/* --- files ---------------------------------------------------------------------------------- */

/* The file of the stream; the older one with ".1". -1: there is none. */
static int open_part(struct acre_api *api, struct acre_run run, int stream, bool older) {
    char path[PATH_BYTES];
    char whole[PATH_BYTES + 4];
    if (acre_desk_log_path(api->desk, run, stream, path, sizeof(path), NULL) < 0 ||
        path[0] == '\0') {
        return -1;
    }
    snprintf(whole, sizeof(whole), "%s%s", path, older ? ".1" : "");
    return open(whole, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static uint64_t size_of(int file) {
    struct stat info;
    return file >= 0 && fstat(file, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Up to `length` bytes from `offset` of the file into `out`. */
static void read_range(int file, uint64_t offset, uint64_t length, struct acre_buf *out) {
    char chunk[CHUNK_BYTES];
    while (file >= 0 && length > 0) {
        ssize_t got = pread(file, chunk, ACRE_MIN(sizeof(chunk), length), (off_t)offset);
        if (got <= 0) {
            return;
        }
        acre_buf_append(out, chunk, (size_t)got);
        offset += (uint64_t)got;
        length -= (uint64_t)got;
    }
}

static uint64_t begin_at(int64_t offset, uint64_t size) {
    if (offset >= 0) {
        return (uint64_t)offset;
    }
    uint64_t back = (uint64_t)-offset;
    return back < size ? size - back : 0;
}

static void put_headers(struct acre_exchange *exchange, uint64_t offset, uint64_t size) {
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)offset);
    acre_http_add_header(exchange, "X-Log-Offset", text);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
    acre_http_add_header(exchange, "X-Log-Size", text);
}

static void answer_range(struct acre_api *api, struct acre_call *call, struct acre_run run,
                         int stream) {
    int older = open_part(api, run, stream, true);
    int newest = open_part(api, run, stream, false);
    uint64_t before = size_of(older);
    uint64_t size = before + size_of(newest);
    uint64_t offset = begin_at(acre_call_query_i64(call, "offset", 0), size);
    uint64_t limit = (uint64_t)acre_call_query_i64(call, "limit", RANGE_MAX_BYTES);
    struct acre_buf body;
    acre_buf_init(&body, RANGE_MAX_BYTES + 1);
    offset = ACRE_MIN(offset, size);
    if (offset < before) {
        read_range(older, offset, ACRE_MIN(limit, before - offset), &body);
    }
    uint64_t at = offset + body.length;
    if (at >= before && body.length < limit) {
        read_range(newest, at - before, limit - body.length, &body);
    }
    if (older >= 0) {
        close(older);
    }
    if (newest >= 0) {
        close(newest);
    }
    put_headers(call->exchange, offset, size);
    acre_desk_answer(api->desk, call->exchange, 200, "text/plain; charset=utf-8", &body);
    acre_buf_finish(&body);
}

/* --- following ------------------------------------------------------------------------------ */

static void follower_gone(void *context) {
    struct acre_follower *follower = context;
    *follower->previous = follower->next;
    if (follower->next != NULL) {
        follower->next->previous = follower->previous;
    }
    follower->api->follower_count--;
    acre_watch_cancel(follower->watch);
    acre_timer_cancel(follower->pace);
    close(follower->notify);
    if (follower->file >= 0) {
        close(follower->file);
    }
    free(follower);
}

/* Be told when the open file grows or is renamed; before there is one, when it is made. */
static void watch_file(struct acre_follower *follower) {
    char path[PATH_BYTES];
    if (follower->file >= 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", follower->file);
        inotify_add_watch(follower->notify, path, IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF);
    } else if (follower->api->logs_directory != NULL) {
        inotify_add_watch(follower->notify, follower->api->logs_directory, IN_CREATE);
    }
}

/* Has the name gone to another file? Then that is the next one. */
static bool open_next(struct acre_follower *follower) {
    struct stat old;
    struct stat new;
    int file = open_part(follower->api, follower->run, follower->stream, false);
    if (file < 0) {
        return false;
    }
    if (follower->file >= 0 && fstat(follower->file, &old) == 0 && fstat(file, &new) == 0 &&
        old.st_ino == new.st_ino && old.st_dev == new.st_dev) {
        close(file);
        return false;
    }
    if (follower->file >= 0) {
        close(follower->file);
    }
    follower->file = file;
    watch_file(follower);
    return true;
}

/* Send what there is; false when the client has enough for now. */
static bool send_some(struct acre_follower *follower) {
    char chunk[CHUNK_BYTES];
    for (;;) {
        if (acre_http_waiting(follower->exchange) > WAITING_MAX_BYTES) {
            return false;
        }
        ssize_t got = follower->file >= 0 ? read(follower->file, chunk, sizeof(chunk)) : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            if (!open_next(follower)) {
                return true;
            }
            continue;
        }
        uint64_t passed = ACRE_MIN(follower->skip, (uint64_t)got);
        follower->skip -= passed;
        acre_http_send(follower->exchange,
                       (struct acre_str){chunk + passed, (size_t)got - (size_t)passed});
    }
}

static void tend(struct acre_follower *follower);

static void pace(void *context) {
    struct acre_follower *follower = context;
    follower->pace = NULL; /* gone when this returns */
    tend(follower);
}

static void tend(struct acre_follower *follower) {
    if (follower->ended) {
        return;
    }
    if (!send_some(follower)) {
        if (follower->pace == NULL) {
            follower->pace = acre_loop_timer(follower->api->loop, PACE_MS, 0, pace, follower);
        }
    } else if (follower->over) {
        follower->ended = true;
        acre_http_end(follower->exchange);
    }
}

static void on_notify(void *context) {
    struct acre_follower *follower = context;
    char events[4096];
    while (read(follower->notify, events, sizeof(events)) > 0) {
    }
    tend(follower);
}

void acre_logs_ended(struct acre_api *api, uint64_t job, uint32_t attempt) {
    for (struct acre_follower *follower = api->followers; follower != NULL;
         follower = follower->next) {
        if (follower->run.job == job && follower->run.attempt <= attempt) {
            follower->over = true;
            tend(follower);
        }
    }
}

static void follow(struct acre_api *api, struct acre_call *call, struct acre_run run, int stream,
                   bool over) {
    struct acre_error err = {0};
    if (api->follower_count >= FOLLOWERS_MAX) {
        acre_fail(&err, ACRE_EUNAVAILABLE, "%u logs are being followed; accepted: at most %u",
                  api->follower_count, (unsigned)FOLLOWERS_MAX);
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_follower *follower = acre_calloc(1, sizeof(*follower));
    *follower = (struct acre_follower){.api = api,
                                       .exchange = call->exchange,
                                       .run = run,
                                       .stream = stream,
                                       .over = over,
                                       .notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    if (follower->notify >= 0) {
        follower->watch = acre_loop_watch(api->loop, follower->notify, on_notify, follower, &err);
    } else {
        acre_fail_errno(&err, errno, "inotify");
    }
    if (follower->watch == NULL) {
        if (follower->notify >= 0) {
            close(follower->notify);
        }
        free(follower);
        acre_api_fail(api, call, &err);
        return;
    }
    int newest = open_part(api, run, stream, false);
    follower->file = open_part(api, run, stream, true); /* from the oldest that is kept */
    uint64_t size = size_of(follower->file) + size_of(newest);
    follower->skip = ACRE_MIN(begin_at(acre_call_query_i64(call, "offset", 0), size), size);
    if (follower->file < 0) {
        follower->file = newest;
    } else if (newest >= 0) {
        close(newest);
    }
    follower->next = api->followers;
    follower->previous = &api->followers;
    if (follower->next != NULL) {
        follower->next->previous = &follower->next;
    }
    api->followers = follower;
    api->follower_count++;
    put_headers(call->exchange, follower->skip, size);
    acre_http_stream(call->exchange, 200, "text/plain; charset=utf-8", follower_gone, follower);
    watch_file(follower);
    tend(follower);
}

void acre_handle_job_logs(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    uint64_t id = 0;
    const char *owner = "";
    uint32_t last = 0;
    bool live = false;
    int r = acre_call_id(call, "id", &id, &err);
    if (r == 0) {
        r = acre_jobs_owner(api, call, id, &owner, &last, &live, &err);
    }
    if (r == 0) {
        char what[40];
        snprintf(what, sizeof(what), "job %llu", (unsigned long long)id);
        r = acre_api_owns(call, owner, what, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    const char *name = acre_call_query(call, "stream");
    int stream = name != NULL && strcmp(name, "stderr") == 0 ? 2 : 1;
    uint32_t attempt = (uint32_t)acre_call_query_i64(call, "attempt", last > 0 ? (int64_t)last : 1);
    struct acre_run run = {id, attempt};
    if (acre_call_query_bool(call, "follow")) {
        struct acre_job job;
        bool runs = live && acre_sched_find(acre_desk_sched(api->desk), id, &job) &&
                    (acre_job_state_holds(job.state) || job.attempt == 0);
        follow(api, call, run, stream, !runs || attempt < last);
    } else {
        answer_range(api, call, run, stream);
    }
}
