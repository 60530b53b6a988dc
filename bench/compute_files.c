/* compute_files.c - programs and files: compiling cold and out of the cache; a file to the device
 * by each way. Files are measured twice: in the page cache (read just before), and dropped from it
 * before every read. */
#include "compute.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- compiling ------------------------------------------------------------------------------ */

enum { TEXT_MAX = 8192 };

struct programs {
    bool is_cold;
    uint32_t last; /* number of the last text that had not been seen before */
};

static void make_text(uint32_t number, char *text) {
    snprintf(text, TEXT_MAX, "%s// %u\n", compute_text, number);
}

static int compile_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct programs *programs = user;
    char text[TEXT_MAX];
    make_text(programs->is_cold ? ++programs->last : 0, text);
    const struct acre_source source = {
        .text = text, .name = "bench", .language = ACRE_LANGUAGE_PORTABLE};
    struct acre_program *program = NULL;
    struct acre_build_report report = {0};
    int r = acre_program_build(bench->context, &source, &program, &report, err);
    if (r == 0 && report.was_cached == programs->is_cold) {
        r = acre_fail(err, ACRE_ECORRUPT, "the program was %s the cache: %s",
                      report.was_cached ? "in" : "not in", report.cache);
    }
    acre_program_destroy(program);
    acre_build_report_finish(&report);
    return r;
}

static int compile_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct programs *programs = user;
    char text[TEXT_MAX];
    make_text(++programs->last, text);
    return bench->raw->compile(bench->raw_self, text, err);
}

void compute_compile(struct compute_bench *bench) {
    struct compute_figure figure = {.name = "compile, cold",
                                    .what = "4 kernels, never seen before, compiled and loaded",
                                    .unit = "ms",
                                    .unit_ns = 1e6};
    struct programs programs = {.is_cold = true};
    struct compute_pair pair = {.acre = {.call = compile_by_acre},
                                .user = &programs,
                                .rounds = (uint32_t)compute_pick(bench, 5, 1),
                                .calls = (uint32_t)compute_pick(bench, 2, 1),
                                .warm = (uint32_t)compute_pick(bench, 1, 0)};
    if (bench->raw != NULL && bench->raw->compile != NULL) {
        pair.raw.call = compile_raw;
    }
    compute_measure(bench, &pair, figure);
    struct acre_error err = {0};
    snprintf(figure.name, sizeof(figure.name), "compile, cached");
    figure.what = "the same out of the cache; raw: compiled all the same";
    programs.is_cold = false;
    compile_by_acre(bench, &programs, &err); /* puts it there */
    pair.calls = (uint32_t)compute_pick(bench, 10, 2);
    compute_measure(bench, &pair, figure);
}

/* --- files ---------------------------------------------------------------------------------- */

struct file {
    char path[300];
    int fd;
    uint64_t bytes;
    bool is_dropped;
    enum acre_storage_path way;
    struct acre_storage_report report;
};

static int make_file(struct compute_bench *bench, struct file *file, struct acre_error *err) {
    snprintf(file->path, sizeof(file->path), "%s/data", bench->scratch);
    file->fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    uint64_t *piece = acre_calloc(1, COMPUTE_PIECE_BYTES);
    int r = file->fd < 0 ? acre_fail_errno(err, errno, "%s", file->path) : 0;
    for (uint64_t at = 0; at < file->bytes && r == 0; at += COMPUTE_PIECE_BYTES) {
        for (uint64_t i = 0; i < COMPUTE_PIECE_BYTES / sizeof(*piece); i++) {
            piece[i] = at + i * sizeof(*piece); /* each word is its place */
        }
        ssize_t written = pwrite(file->fd, piece, COMPUTE_PIECE_BYTES, (off_t)at);
        if (written != COMPUTE_PIECE_BYTES) {
            r = written < 0 ? acre_fail_errno(err, errno, "%s", file->path)
                            : acre_fail(err, ACRE_EIO, "%s: the disk is full", file->path);
        }
    }
    free(piece);
    if (r == 0 && fsync(file->fd) < 0) {
        r = acre_fail_errno(err, errno, "%s", file->path);
    }
    return r;
}

static void finish_file(struct file *file) {
    if (file->fd >= 0) {
        close(file->fd);
        unlink(file->path);
    }
}

static int settle_cache(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct file *file = user;
    (void)bench;
    int code = file->is_dropped ? posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED) : 0;
    return code == 0 ? 0 : acre_fail_errno(err, code, "%s", file->path);
}

static int read_by_acre(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct file *file = user;
    return acre_storage_read(bench->stream, file->path, 0, bench->device_memory[0], 0, file->bytes,
                             file->way, &file->report, err);
}

static int read_raw(struct compute_bench *bench, void *user, struct acre_error *err) {
    struct file *file = user;
    return bench->raw->load(bench->raw_self, file->fd, file->bytes, err);
}

static int check_file(struct compute_bench *bench, struct file *file, struct acre_error *err) {
    for (uint64_t at = 0; at < file->bytes; at += file->bytes - sizeof(at)) {
        uint64_t word = 0;
        int r = acre_copy_out(bench->stream, &word, bench->device_memory[0], at, sizeof(word), err);
        if (r < 0 || word != at) {
            return r < 0 ? r
                         : acre_fail(err, ACRE_ECORRUPT, "at %llu of the file: %llu",
                                     (unsigned long long)at, (unsigned long long)word);
        }
    }
    return 0;
}

/* A way there is not here is told, and no failure. */
static void measure_file(struct compute_bench *bench, struct file *file,
                         struct compute_figure figure) {
    struct acre_error err = {0};
    int r = read_by_acre(bench, file, &err);
    if (r == ACRE_EUNSUPPORTED) {
        figure.acre = figure.raw = figure.p99 = figure.raw_p99 = -1;
        snprintf(figure.note, sizeof(figure.note), "not here: %.200s", err.text);
        compute_keep(bench, figure);
        return;
    }
    r = r == 0 ? check_file(bench, file, &err) : r;
    if (r < 0) {
        compute_fail(bench, figure, &err);
        return;
    }
    struct statfs facts;
    bool is_memory = fstatfs(file->fd, &facts) == 0 && facts.f_type == 0x01021994; /* tmpfs */
    snprintf(figure.note, sizeof(figure.note), "%s%s%.160s%s", file->report.how,
             file->report.reason[0] != '\0' ? ": " : "", file->report.reason,
             is_memory ? "; the file is in tmpfs: always in memory" : "");
    const struct compute_pair pair = {
        .acre = {.call = read_by_acre, .enter = settle_cache},
        .raw = {.call = read_raw, .enter = settle_cache},
        .user = file,
        .rounds = (uint32_t)compute_pick(bench, 4, 2),
        .calls = 1,
        .warm = file->is_dropped ? 0 : 1,
    };
    compute_measure(bench, &pair, figure);
}

#define READ_BY_HAND "read to the host, then copied, piece by piece"

void compute_storage(struct compute_bench *bench) {
    static const struct {
        const char *name, *what;
        enum acre_storage_path way;
        bool is_dropped;
    } rows[] = {
        {"storage, direct", "file in the page cache; raw: " READ_BY_HAND, ACRE_STORAGE_DIRECT,
         false},
        {"storage, staged", "file in the page cache; raw: " READ_BY_HAND, ACRE_STORAGE_STAGED,
         false},
        {"storage, direct, dropped", "page cache dropped before; raw: " READ_BY_HAND,
         ACRE_STORAGE_DIRECT, true},
        {"storage, staged, dropped", "page cache dropped before; raw: " READ_BY_HAND,
         ACRE_STORAGE_STAGED, true},
    };
    struct file file = {.fd = -1, .bytes = compute_pick(bench, 1024, 16) * COMPUTE_MIB};
    const struct compute_memory memory = {.device_bytes = {file.bytes},
                                          .host_bytes = {COMPUTE_PIECE_BYTES}};
    struct acre_error err = {0};
    int r = compute_reserve(bench, &memory, &err);
    int made = r == 0 ? make_file(bench, &file, &err) : r;
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct compute_figure figure = {
            .what = rows[i].what, .unit = "GB/s", .amount = (double)file.bytes};
        snprintf(figure.name, sizeof(figure.name), "%s", rows[i].name);
        file.way = rows[i].way;
        file.is_dropped = rows[i].is_dropped;
        if (made < 0) {
            compute_fail(bench, figure, &err);
        } else {
            measure_file(bench, &file, figure);
        }
    }
    finish_file(&file);
    if (r == 0) {
        compute_release(bench);
    }
}
