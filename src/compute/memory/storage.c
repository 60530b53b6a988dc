/* storage.c - files to and from buffers.
 *
 * Direct: the back end's transfer (cuFile). Staged: two pinned pieces take turns, one at the file,
 * the other at the device, so the slower of the two sets the pace. Both wait for the work queued on
 * the stream before, and for their own end. */
#include <acre/storage.h>

#include "compute/context.h"
#include "compute/memory/buffer.h"
#include "compute/process.h"
#include "compute/stream.h"
#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 8 << 20 };

struct storage_transfer {
    struct acre_stream *stream;
    const char *file;
    uint64_t file_offset;
    struct acre_buffer buffer;
    uint64_t offset, bytes;
    bool is_write;
};

/* --- direct ----------------------------------------------------------------------------------- */

/* Whether there is such a way at all. */
static int check_direct(const struct acre_context *context, const struct buffer_range *range,
                        struct acre_error *err) {
    if (context->table->transfer == NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "back end %s has no direct path from files to the device",
                         context_device(context)->backend);
    }
    return range->kind == ACRE_MEMORY_DEVICE
               ? 0
               : acre_fail(err, ACRE_EUNSUPPORTED, "the buffer is host memory");
}

static int go_direct(const struct storage_transfer *transfer, char *how, struct acre_error *err) {
    struct acre_context *context = transfer->stream->context;
    int r = acre_stream_sync(transfer->stream, ACRE_FOREVER, err);
    r = r == 0 ? context_enter(context, err) : r;
    if (r < 0) {
        return r;
    }
    struct buffer_range range;
    r = buffer_resolve(context, transfer->buffer, transfer->offset, transfer->bytes, "buffer",
                       &range, err);
    r = r == 0 ? check_direct(context, &range, err) : r;
    r = r == 0 ? context->table->transfer(context->seat, transfer->file, transfer->file_offset,
                                          range.region, range.offset + transfer->offset,
                                          transfer->bytes, transfer->is_write, how, err)
               : r;
    context_leave(context, r);
    return r;
}

/* --- staged ----------------------------------------------------------------------------------- */

struct storage_piece {
    struct acre_buffer pinned;
    uint8_t *host;
    struct acre_event done; /* of its copy; stream NULL: none under way */
    uint64_t at, bytes;     /* of the transfer */
};

static int file_read(int fd, const struct storage_transfer *transfer, struct storage_piece *stage,
                     struct acre_error *err) {
    for (uint64_t done = 0; done < stage->bytes;) {
        ssize_t n = pread(fd, stage->host + done, stage->bytes - done,
                          (off_t)(transfer->file_offset + stage->at + done));
        if (n < 0 && errno != EINTR) {
            return acre_fail_errno(err, errno, "%s", transfer->file);
        }
        if (n == 0) {
            return acre_fail(err, ACRE_EIO, "%s ends at byte %" PRIu64, transfer->file,
                             transfer->file_offset + stage->at + done);
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

static int file_write(int fd, const struct storage_transfer *transfer,
                      const struct storage_piece *stage, struct acre_error *err) {
    for (uint64_t done = 0; done < stage->bytes;) {
        ssize_t n = pwrite(fd, stage->host + done, stage->bytes - done,
                           (off_t)(transfer->file_offset + stage->at + done));
        if (n < 0 && errno != EINTR) {
            return acre_fail_errno(err, errno, "%s", transfer->file);
        }
        if (n == 0) {
            return acre_fail(err, ACRE_EIO, "%s: cannot write beyond byte %" PRIu64, transfer->file,
                             transfer->file_offset + stage->at + done);
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

/* The copy of a stage is over; what it brought goes to the file. */
static int finish_stage(int fd, const struct storage_transfer *transfer,
                        struct storage_piece *stage, struct acre_error *err) {
    if (stage->done.stream == NULL) {
        return 0;
    }
    int r = acre_event_wait(stage->done, ACRE_FOREVER, err);
    stage->done.stream = NULL;
    return r == 0 && transfer->is_write ? file_write(fd, transfer, stage, err) : r;
}

static int begin_stage(int fd, const struct storage_transfer *transfer, struct storage_piece *stage,
                       struct acre_error *err) {
    uint64_t at = transfer->offset + stage->at;
    int r = 0;
    if (transfer->is_write) {
        r = acre_copy_out(transfer->stream, stage->host, transfer->buffer, at, stage->bytes, err);
    } else {
        r = file_read(fd, transfer, stage, err);
        r = r == 0 ? acre_copy_in(transfer->stream, transfer->buffer, at, stage->host, stage->bytes,
                                  err)
                   : r;
    }
    return r == 0 ? acre_event_record(transfer->stream, &stage->done, err) : r;
}

static int run_stages(int fd, const struct storage_transfer *transfer, struct storage_piece *stages,
                      struct acre_error *err) {
    int r = 0;
    uint32_t turn = 0;
    for (uint64_t at = 0; at < transfer->bytes && r == 0; at += PIECE_BYTES, turn ^= 1) {
        struct storage_piece *stage = &stages[turn];
        r = finish_stage(fd, transfer, stage, err);
        stage->at = at;
        stage->bytes = ACRE_MIN(transfer->bytes - at, (uint64_t)PIECE_BYTES);
        r = r == 0 ? begin_stage(fd, transfer, stage, err) : r;
    }
    for (uint32_t i = 0; i < 2; i++, turn ^= 1) {
        /* The older one first; both are waited for, whatever happened. */
        int last = finish_stage(fd, transfer, &stages[turn], r == 0 ? err : NULL);
        r = r == 0 ? last : r;
    }
    return r;
}

static int check_length(int fd, const struct storage_transfer *transfer, struct acre_error *err) {
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return acre_fail_errno(err, errno, "%s", transfer->file);
    }
    if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s is a pipe or a socket; accepted: files and block devices",
                         transfer->file);
    }
    uint64_t end = transfer->file_offset + transfer->bytes; /* checked before: no overflow */
    if (S_ISREG(status.st_mode) && !transfer->is_write && (uint64_t)status.st_size < end) {
        return acre_fail(err, ACRE_EIO,
                         "%s has %" PRIu64 " bytes; bytes %" PRIu64 " to %" PRIu64
                         " were requested",
                         transfer->file, (uint64_t)status.st_size, transfer->file_offset, end);
    }
    return 0;
}

static int file_open(const struct storage_transfer *transfer, int *ret_fd, bool *ret_is_new,
                     struct acre_error *err) {
    /* A pipe without another end would be waited for. */
    int flags = (transfer->is_write ? O_WRONLY | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
    int fd = transfer->is_write ? open(transfer->file, flags | O_EXCL, 0644) : -1;
    bool is_new = fd >= 0;
    fd = is_new ? fd : open(transfer->file, flags, 0644);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", transfer->file);
    }
    int r = check_length(fd, transfer, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    *ret_is_new = is_new;
    return 0;
}

static int go_staged(const struct storage_transfer *transfer, int fd, struct acre_error *err) {
    struct acre_context *context = transfer->stream->context;
    struct storage_piece stages[2] = {0};
    int r = 0;
    uint64_t piece = ACRE_MIN(transfer->bytes, (uint64_t)PIECE_BYTES);
    for (size_t i = 0; i < ACRE_COUNT(stages) && r == 0; i++) {
        r = acre_buffer_alloc(transfer->stream, ACRE_MEMORY_PINNED, piece, &stages[i].pinned, err);
        stages[i].host = r == 0 ? acre_buffer_host(context, stages[i].pinned) : NULL;
    }
    r = r == 0 ? run_stages(fd, transfer, stages, err) : r;
    for (size_t i = 0; i < ACRE_COUNT(stages); i++) {
        if (stages[i].pinned.id != 0) {
            acre_buffer_free(transfer->stream, stages[i].pinned, NULL);
        }
    }
    return r;
}

/* --- both ------------------------------------------------------------------------------------- */

/* All that can be known before a file is made for nothing. */
static int check(const struct storage_transfer *transfer, enum acre_storage_path path,
                 struct acre_error *err) {
    uint64_t end;
    if ((uint32_t)path > ACRE_STORAGE_STAGED) {
        return acre_fail(err, ACRE_EINVALID, "unknown path %d; accepted: 0 to %d", (int)path,
                         ACRE_STORAGE_STAGED);
    }
    if (transfer->stream->recording != NULL) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "stream: is recording a graph; end the recording first");
    }
    if (transfer->bytes == 0) {
        return acre_fail(err, ACRE_EINVALID, "bytes: 0; accepted: 1 or more");
    }
    if (__builtin_add_overflow(transfer->file_offset, transfer->bytes, &end) ||
        end > (uint64_t)INT64_MAX) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: offset %" PRIu64 " plus %" PRIu64 " bytes; accepted: less than 2^63",
                         transfer->file, transfer->file_offset, transfer->bytes);
    }
    struct acre_context *context = transfer->stream->context;
    struct buffer_range range;
    int r = context_enter(context, err);
    if (r == 0) {
        r = buffer_resolve(context, transfer->buffer, transfer->offset, transfer->bytes, "buffer",
                           &range, err);
        r = r == 0 && path == ACRE_STORAGE_DIRECT ? check_direct(context, &range, err) : r;
        context_pass(context);
    }
    return r;
}

static int run(const struct storage_transfer *transfer, enum acre_storage_path path,
               struct acre_storage_report *ret_report, struct acre_error *err) {
    struct acre_storage_report report = {.bytes = transfer->bytes};
    int fd = -1;
    bool is_new = false;
    int r = check(transfer, path, err);
    r = r == 0 ? file_open(transfer, &fd, &is_new, err) : r;
    if (r < 0) {
        return r;
    }
    uint64_t begun_ns = acre_monotonic_ns();
    struct acre_error why = {0};
    report.path = ACRE_STORAGE_DIRECT;
    r = path == ACRE_STORAGE_STAGED
            ? acre_fail(&why, ACRE_EUNSUPPORTED, "the caller asked for the staged path")
            : go_direct(transfer, report.how, &why);
    if (r == ACRE_EUNSUPPORTED && path != ACRE_STORAGE_DIRECT) {
        report.path = ACRE_STORAGE_STAGED;
        snprintf(report.how, sizeof(report.how), "two pinned pieces");
        snprintf(report.reason, sizeof(report.reason), "%s", why.text);
        r = go_staged(transfer, fd, err);
    } else if (r < 0) {
        acre_fail(err, r, "%s", why.text);
    }
    if (close(fd) < 0 && transfer->is_write && r == 0) {
        r = acre_fail_errno(err, errno, "%s", transfer->file);
    }
    if (r < 0 && is_new) {
        unlink(transfer->file);
    }
    report.seconds = (double)(acre_monotonic_ns() - begun_ns) / 1e9;
    if (r == 0 && ret_report != NULL) {
        *ret_report = report;
    }
    return r;
}

int acre_storage_read(struct acre_stream *stream, const char *file, uint64_t file_offset,
                      struct acre_buffer to, uint64_t to_offset, uint64_t bytes,
                      enum acre_storage_path path, struct acre_storage_report *ret_report,
                      struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    const struct storage_transfer transfer = {.stream = stream,
                                              .file = file,
                                              .file_offset = file_offset,
                                              .buffer = to,
                                              .offset = to_offset,
                                              .bytes = bytes};
    return run(&transfer, path, ret_report, err);
}

int acre_storage_write(struct acre_stream *stream, const char *file, uint64_t file_offset,
                       struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
                       enum acre_storage_path path, struct acre_storage_report *ret_report,
                       struct acre_error *err) {
    int r = stream_check(stream, err);
    if (r < 0) {
        return r;
    }
    const struct storage_transfer transfer = {.stream = stream,
                                              .file = file,
                                              .file_offset = file_offset,
                                              .buffer = from,
                                              .offset = from_offset,
                                              .bytes = bytes,
                                              .is_write = true};
    return run(&transfer, path, ret_report, err);
}
