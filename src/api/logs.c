/* logs.c - a run's output: a range of it, or all that comes until the run ends.
 *
 * A stream is at most two files: the newest, and before it the one it took the place of (".1").
 * Offsets count from the start of the older one. A follower keeps its file open: when the name
 * belongs to another file it has been rotated, so the rest is read and then the new one. The
 * kernel reports changes (inotify); the desk reports the end. What a slow client has not taken
 * is not read from the file either.
 *
 * All followers share one inotify instance: Linux allows a user, root included, 128 of them by
 * default. Followers of the same file share its watch. */
#include "api/logs.h"

#include "api/followers.h"
#include "api/handlers.h"
#include "api/jobs.h"
#include "core/units.h"

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
    TURN_MAX_BYTES = 512 << 10,    /* of one follower, before others have a turn */
    WAITING_MAX_BYTES = 256 << 10, /* below what http.h cuts a client for */
    PACE_MS = 20,                  /* between looks at a client that is behind */
    PATH_BYTES = 4096,
    NOTIFY_BYTES = 16 << 10,
    NOTIFY_READS = 16, /* before others have a turn */
};

static const char *const streams[] = {"stdout", "stderr", NULL};

const struct field logs_fields[] = {
    {.name = "stream", .kinds = ACRE_KIND_STRING, .words = streams, .help = "default: stdout"},
    {.name = "offset",
     .kinds = ACRE_KIND_INTEGER,
     .min = -ACRE_FIELD_NUMBER_MAX,
     .max = ACRE_FIELD_NUMBER_MAX,
     .help = "where to start, in bytes; negative: this many bytes before the end"},
    {.name = "limit", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = RANGE_MAX_BYTES},
    {.name = "follow", .kinds = ACRE_KIND_BOOL, .help = "keep sending until the run ends"},
    {.name = "attempt",
     .kinds = ACRE_KIND_INTEGER,
     .min = 1,
     .max = UINT32_MAX,
     .help = "which run (default: the last)"},
    {0},
};

struct acre_follower {
    struct acre_follower *next, **previous;
    struct acre_api *api;
    struct acre_exchange *exchange;
    struct acre_follow_count *count;
    struct acre_run run;
    int stream;
    int file;    /* -1: none yet */
    int watched; /* inotify's number; -1: nothing */
    bool is_due; /* what it watches has changed */
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
    uint64_t offset = begin_at(call_query_i64(call, "offset", 0), size);
    uint64_t limit = (uint64_t)call_query_i64(call, "limit", RANGE_MAX_BYTES);
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
    acre_api_answer(api, call->exchange, 200, "text/plain; charset=utf-8", &body);
    acre_buf_finish(&body);
}

/* --- following ------------------------------------------------------------------------------ */

/* Forget the watch, unless another follower has the same one. */
static void unwatch(struct acre_follower *follower) {
    int watched = follower->watched;
    follower->watched = -1;
    for (const struct acre_follower *f = follower->api->followers; f != NULL; f = f->next) {
        if (f->watched == watched) {
            return;
        }
    }
    if (watched >= 0) {
        inotify_rm_watch(follower->api->logs_notify, watched); /* refused: the file is gone */
    }
}

static void follower_gone(void *context) {
    struct acre_follower *follower = context;
    struct acre_api *api = follower->api;
    unwatch(follower);
    *follower->previous = follower->next;
    if (follower->next != NULL) {
        follower->next->previous = follower->previous;
    }
    if (api->followers == NULL) {
        acre_watch_cancel(api->logs_watch);
        api->logs_watch = NULL;
        close(api->logs_notify);
        api->logs_notify = -1;
    }
    follow_end(follower->count);
    acre_timer_cancel(follower->pace);
    if (follower->file >= 0) {
        close(follower->file);
    }
    free(follower);
}

/* Be told when the open file grows or is renamed; before there is one, when it is made. */
static void watch_file(struct acre_follower *follower) {
    struct acre_api *api = follower->api;
    char path[PATH_BYTES];
    unwatch(follower);
    if (follower->file >= 0) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", follower->file);
        follower->watched =
            inotify_add_watch(api->logs_notify, path, IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF);
    } else if (api->logs_directory != NULL) {
        follower->watched = inotify_add_watch(api->logs_notify, api->logs_directory, IN_CREATE);
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

/* Pass over what the client does not want: in this file, as far as it goes. */
static void skip_some(struct acre_follower *follower) {
    struct stat info;
    if (follower->skip == 0 || follower->file < 0 || fstat(follower->file, &info) != 0) {
        return;
    }
    off_t at = lseek(follower->file, 0, SEEK_CUR);
    uint64_t left = at >= 0 && info.st_size > at ? (uint64_t)(info.st_size - at) : 0;
    uint64_t passed = ACRE_MIN(follower->skip, left);
    if (passed > 0 && lseek(follower->file, (off_t)passed, SEEK_CUR) >= 0) {
        follower->skip -= passed;
    }
}

/* Send what there is; false when the client, or the loop, has enough for now. */
static bool send_some(struct acre_follower *follower) {
    char chunk[CHUNK_BYTES];
    for (size_t sent = 0;;) {
        if (acre_http_waiting(follower->exchange) > WAITING_MAX_BYTES || sent > TURN_MAX_BYTES) {
            return false;
        }
        skip_some(follower);
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
        sent += (size_t)got;
        uint64_t passed = ACRE_MIN(follower->skip, (uint64_t)got); /* it has grown meanwhile */
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

/* -1: events were lost, so all files may have changed. */
static void note_change(struct acre_api *api, int watched) {
    for (struct acre_follower *follower = api->followers; follower != NULL;
         follower = follower->next) {
        follower->is_due = follower->is_due || follower->watched == watched || watched < 0;
    }
}

static void on_notify(void *context) {
    struct acre_api *api = context;
    _Alignas(struct inotify_event) char events[NOTIFY_BYTES];
    int last = INT_MIN;
    for (int i = 0; i < NOTIFY_READS; i++) {
        ssize_t got = read(api->logs_notify, events, sizeof(events));
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(events + at);
            if (event->wd != last) {
                note_change(api, event->wd);
            }
            last = event->wd;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
        if (got <= 0) {
            break;
        }
    }
    for (struct acre_follower *follower = api->followers; follower != NULL;
         follower = follower->next) {
        if (follower->is_due) {
            follower->is_due = false;
            tend(follower);
        }
    }
}

static int open_notify(struct acre_api *api, struct acre_error *err) {
    if (api->logs_watch != NULL) {
        return 0;
    }
    api->logs_notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (api->logs_notify < 0) {
        return acre_fail_errno(err, errno, "inotify");
    }
    api->logs_watch = acre_loop_watch(api->loop, api->logs_notify, on_notify, api, err);
    if (api->logs_watch == NULL) {
        close(api->logs_notify);
        api->logs_notify = -1;
        return err->code;
    }
    return 0;
}

void logs_ended(struct acre_api *api, uint64_t job, uint32_t attempt) {
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
    struct acre_follow_count *count = follow_begin(api, call);
    if (count == NULL) {
        return;
    }
    if (open_notify(api, &err) < 0) {
        follow_end(count);
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_follower *follower = acre_calloc(1, sizeof(*follower));
    *follower = (struct acre_follower){.api = api,
                                       .exchange = call->exchange,
                                       .count = count,
                                       .run = run,
                                       .stream = stream,
                                       .over = over,
                                       .watched = -1};
    int newest = open_part(api, run, stream, false);
    follower->file = open_part(api, run, stream, true); /* from the oldest that is kept */
    uint64_t size = size_of(follower->file) + size_of(newest);
    follower->skip = ACRE_MIN(begin_at(call_query_i64(call, "offset", 0), size), size);
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
    put_headers(call->exchange, follower->skip, size);
    acre_http_stream(call->exchange, 200, "text/plain; charset=utf-8", follower_gone, follower);
    watch_file(follower);
    tend(follower);
}

/* --- removed ones --------------------------------------------------------------------------- */

struct written {
    struct acre_api *api;
    struct acre_arena *arena;
    uint64_t bytes;
};

static bool read_written(void *context, const struct acre_store_job *row) {
    struct written *written = context;
    struct acre_recorded_job recorded;
    if (jobs_read_row(written->api, written->arena, row, &recorded, NULL) == 0) {
        written->bytes = recorded.job.exit.log_bytes;
        json_decref(recorded.spec);
    }
    return false;
}

/* A job that has ended wrote something with its last run, and nothing of it is there. */
static int check_removed(struct acre_api *api, struct acre_call *call, struct acre_run run,
                         struct acre_error *err) {
    char path[PATH_BYTES], limit[32];
    struct acre_job job;
    struct written written = {.api = api, .arena = call->arena};
    for (int stream = 1; stream <= 2; stream++) {
        if (acre_desk_log_path(api->desk, run, stream, path, sizeof(path), NULL) < 0 ||
            path[0] != '\0') {
            return 0;
        }
    }
    if (acre_sched_find(acre_desk_sched(api->desk), run.job, &job)) {
        written.bytes = job.exit.log_bytes;
    } else {
        acre_store_job(acre_desk_store(api->desk), run.job, read_written, &written, NULL);
    }
    if (written.bytes == 0) {
        return 0;
    }
    acre_format_mib(acre_desk_policy(api->desk)->limits.logs_mib, limit, sizeof(limit));
    return acre_fail(err, ACRE_ENOTFOUND,
                     "the log of job %llu was removed: each user keeps only the newest %s of logs "
                     "(max_logs in the policy)",
                     (unsigned long long)run.job, limit);
}

void handle_job_logs(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    uint64_t id = 0;
    const char *owner = "";
    uint32_t last = 0;
    bool live = false;
    int r = call_id(call, "id", &id, &err);
    if (r == 0) {
        r = jobs_owner(api, call, id, &owner, &last, &live, &err);
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
    const char *name = call_query(call, "stream");
    int stream = name != NULL && strcmp(name, "stderr") == 0 ? 2 : 1;
    uint32_t attempt = (uint32_t)call_query_i64(call, "attempt", last > 0 ? (int64_t)last : 1);
    struct acre_run run = {id, attempt};
    if (!live && attempt == last && check_removed(api, call, run, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    if (call_query_bool(call, "follow")) {
        struct acre_job job;
        bool runs = live && acre_sched_find(acre_desk_sched(api->desk), id, &job) &&
                    (acre_job_state_holds(job.state) || job.attempt == 0);
        follow(api, call, run, stream, !runs || attempt < last);
    } else {
        answer_range(api, call, run, stream);
    }
}
