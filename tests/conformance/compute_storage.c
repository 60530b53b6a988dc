/* compute_storage.c - files to buffers and back, by every path there is; all exact. */
#include "conformance/compute_suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 5000003 };

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", kit_choice.scratch, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

static void read_file(const char *path, void *to, size_t length) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(read(fd, to, length), (ssize_t)length);
    close(fd);
}

/* False: there is no such path here, with its reason. */
static bool read_by(struct kit *kit, struct acre_buffer to, enum acre_storage_path path,
                    uint64_t file_offset, uint64_t to_offset, uint64_t bytes) {
    struct acre_storage_report report = {0};
    struct acre_error *err = ERR;
    int r = acre_storage_read(kit->stream, path_of("data"), file_offset, to, to_offset, bytes, path,
                              &report, err);
    if (path == ACRE_STORAGE_DIRECT && r == ACRE_EUNSUPPORTED) {
        CHECK(err->text[0] != '\0');
        return false;
    }
    OK(r);
    CHECK_U64(report.bytes, bytes);
    CHECK(report.seconds >= 0);
    CHECK(report.how[0] != '\0');
    CHECK(report.path != ACRE_STORAGE_AUTO);
    CHECK((report.path == ACRE_STORAGE_DIRECT) == (report.reason[0] == '\0') ||
          path == ACRE_STORAGE_STAGED);
    CHECK(path == ACRE_STORAGE_AUTO || report.path == path);
    return true;
}

static void storage_reads_by_every_path(void) { /* GPU-5 */
    static const uint64_t rows[][3] = {
        /* in the file, in the buffer, bytes */
        {0, 0, BYTES},         {4096, 0, 65536},          {1, 3, 1},
        {12345, 678, 1000001}, {BYTES - 1, BYTES - 1, 1}, {0, 4096, 4000000}};
    static const enum acre_storage_path paths[] = {ACRE_STORAGE_AUTO, ACRE_STORAGE_STAGED,
                                                   ACRE_STORAGE_DIRECT};
    struct kit kit;
    kit_open(&kit);
    uint8_t *data = malloc(BYTES);
    uint8_t *back = malloc(BYTES);
    REQUIRE(data != NULL && back != NULL);
    kit_random(&kit, data, BYTES);
    write_file(path_of("data"), data, BYTES);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, BYTES);
    for (size_t p = 0; p < ACRE_COUNT(paths); p++) {
        for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
            const uint64_t *row = rows[i];
            acre_test_context("path %zu, row %zu", p, i);
            OK(acre_fill(kit.stream, buffer, 0, BYTES, 0xa5, 1, ERR));
            if (!read_by(&kit, buffer, paths[p], row[0], row[1], row[2])) {
                printf("no direct path here\n");
                break;
            }
            kit_get(&kit, back, buffer, BYTES);
            CHECK_SAME(back + row[1], data + row[0], row[2]);
            CHECK(row[1] == 0 || back[row[1] - 1] == 0xa5);
            CHECK(row[1] + row[2] == BYTES || back[row[1] + row[2]] == 0xa5);
        }
    }
    kit_free(&kit, buffer);
    free(data);
    free(back);
    kit_close(&kit);
}

static void storage_writes_what_it_reads(void) {
    struct kit kit;
    kit_open(&kit);
    uint8_t *data = malloc(BYTES);
    uint8_t *back = malloc(BYTES + 100);
    REQUIRE(data != NULL && back != NULL);
    kit_random(&kit, data, BYTES);
    struct acre_buffer buffer = kit_data(&kit, data, BYTES);
    struct acre_storage_report report;
    OK(acre_storage_write(kit.stream, path_of("written"), 0, buffer, 0, BYTES, ACRE_STORAGE_AUTO,
                          &report, ERR));
    CHECK_U64(report.bytes, BYTES);
    read_file(path_of("written"), back, BYTES);
    CHECK_SAME(back, data, BYTES);
    OK(acre_storage_write(kit.stream, path_of("written"), 1000, buffer, 7, 333, ACRE_STORAGE_STAGED,
                          &report, ERR));
    memmove(back + 1000, data + 7, 333);
    uint8_t *again = malloc(BYTES);
    REQUIRE(again != NULL);
    read_file(path_of("written"), again, BYTES); /* as long as before, the rest unchanged */
    CHECK_SAME(again, back, BYTES);
    OK(acre_storage_read(kit.stream, path_of("written"), 1000, buffer, 0, 333, ACRE_STORAGE_AUTO,
                         NULL, ERR));
    kit_get(&kit, again, buffer, 333);
    CHECK_SAME(again, data + 7, 333);
    free(again);
    free(data);
    free(back);
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void storage_of_host_memory_and_nothing(void) {
    struct kit kit;
    kit_open(&kit);
    static uint8_t data[100000], back[100000];
    kit_random(&kit, data, sizeof(data));
    write_file(path_of("host"), data, sizeof(data));
    for (int kind = ACRE_MEMORY_PINNED; kind <= ACRE_MEMORY_MAPPED; kind++) {
        struct acre_buffer buffer = kit_buffer(&kit, (enum acre_memory)kind, sizeof(data));
        acre_test_context("kind %d", kind);
        OK(acre_storage_read(kit.stream, path_of("host"), 0, buffer, 0, sizeof(data),
                             ACRE_STORAGE_AUTO, NULL, ERR));
        kit_get(&kit, back, buffer, sizeof(back));
        CHECK_SAME(back, data, sizeof(data));
        FAILS(acre_storage_read(kit.stream, path_of("host"), 5, buffer, 5, 0, ACRE_STORAGE_AUTO,
                                NULL, ERR),
              ACRE_EINVALID, "0", "accepted");
        kit_free(&kit, buffer);
    }
    kit_close(&kit);
}

static void storage_that_cannot_be_is_refused(void) {
    struct kit kit;
    kit_open(&kit);
    static uint8_t data[5000];
    char directory[256];
    snprintf(directory, sizeof(directory), "%s", kit_choice.scratch);
    write_file(path_of("short"), data, sizeof(data));
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 10000);
    struct kit_held before = kit_held(kit.context);
    struct acre_stream *s = kit.stream;
    enum acre_storage_path how = ACRE_STORAGE_AUTO;
    FAILS(acre_storage_read(s, path_of("none"), 0, buffer, 0, 10, how, NULL, ERR), ACRE_ENOTFOUND,
          "none");
    FAILS(acre_storage_read(s, path_of("short"), 0, buffer, 0, 5001, how, NULL, ERR), ACRE_EIO,
          "short", "5000");
    FAILS(acre_storage_read(s, path_of("short"), 4990, buffer, 0, 11, how, NULL, ERR), ACRE_EIO,
          "5000");
    FAILS(acre_storage_read(s, path_of("short"), 1 << 30, buffer, 0, 1, how, NULL, ERR), ACRE_EIO,
          "5000");
    FAILS(acre_storage_read(s, path_of("short"), UINT64_MAX, buffer, 0, 1, how, NULL, ERR),
          ACRE_EINVALID, "18446744073709551615");
    FAILS(acre_storage_read(s, path_of("short"), 0, buffer, 9999, 2, how, NULL, ERR), ACRE_EINVALID,
          "10000");
    FAILS(acre_storage_write(s, path_of("short"), 0, buffer, 9999, 2, how, NULL, ERR),
          ACRE_EINVALID, "10000");
    CHECK(acre_storage_read(s, directory, 0, buffer, 0, 10, how, NULL, ERR) < 0);
    REQUIRE_EQ(mkfifo(path_of("pipe"), 0600), 0); /* which nobody else opens */
    FAILS(acre_storage_read(s, path_of("pipe"), 0, buffer, 0, 10, how, NULL, ERR), ACRE_EINVALID,
          "pipe", "accepted");
    CHECK(acre_storage_write(s, path_of("pipe"), 0, buffer, 0, 10, how, NULL, ERR) < 0);
    CHECK(acre_storage_write(s, path_of("no/such/place"), 0, buffer, 0, 10, how, NULL, ERR) < 0);
    FAILS(acre_storage_read(s, path_of("short"), 0, buffer, 0, 1, (enum acre_storage_path)9, NULL,
                            ERR),
          ACRE_EINVALID, "9", "accepted");
    CHECK_HELD(kit.context, &before);
    OK(acre_storage_read(s, path_of("short"), 0, buffer, 0, 5000, how, NULL, ERR));
    kit_free(&kit, buffer);
    FAILS(acre_storage_read(s, path_of("short"), 0, buffer, 0, 1, how, NULL, ERR), ACRE_ENOTFOUND,
          "freed");
    kit_close(&kit);
}

static void storage_makes_no_file_for_nothing(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 64);
    static const enum acre_storage_path paths[] = {ACRE_STORAGE_AUTO, ACRE_STORAGE_STAGED,
                                                   ACRE_STORAGE_DIRECT};
    for (size_t i = 0; i < ACRE_COUNT(paths); i++) {
        acre_test_context("path %zu", i);
        FAILS(acre_storage_write(kit.stream, path_of("nothing"), 0, buffer, 0, 0, paths[i], NULL,
                                 ERR),
              ACRE_EINVALID, "0", "accepted");
        CHECK(access(path_of("nothing"), F_OK) != 0);
    }
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void storage_makes_no_file_when_refused(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer host = kit_buffer(&kit, ACRE_MEMORY_PINNED, 64);
    struct acre_buffer device = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 64);
    struct acre_graph *graph = NULL;
    OK(acre_fill(kit.stream, device, 0, 64, 0, 8, ERR));
    FAILS(acre_storage_write(kit.stream, path_of("refused"), 0, host, 0, 64, ACRE_STORAGE_DIRECT,
                             NULL, ERR),
          ACRE_EUNSUPPORTED, "");
    CHECK(access(path_of("refused"), F_OK) != 0);
    OK(acre_graph_begin(kit.stream, ERR));
    for (int path = ACRE_STORAGE_AUTO; path <= ACRE_STORAGE_STAGED; path++) {
        acre_test_context("path %d", path);
        FAILS(acre_storage_write(kit.stream, path_of("refused"), 0, device, 0, 64,
                                 (enum acre_storage_path)path, NULL, ERR),
              ACRE_ECONFLICT, "recording a graph");
        CHECK(access(path_of("refused"), F_OK) != 0);
    }
    OK(acre_graph_end(kit.stream, &graph, ERR));
    acre_graph_destroy(graph);
    kit_free(&kit, host);
    kit_free(&kit, device);
    kit_close(&kit);
}

static void storage_leaves_no_file_when_writing_fails(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer device = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 64);
    struct rlimit before;
    REQUIRE_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit limit = {.rlim_cur = (rlim_t)1 << 40, .rlim_max = before.rlim_max};
    OK(acre_fill(kit.stream, device, 0, 64, 0, 8, ERR));
    write_file(path_of("kept"), "kept", 4);
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    static const char *const names[] = {"failed", "kept"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        FAILS(acre_storage_write(kit.stream, path_of(names[i]), (uint64_t)limit.rlim_cur, device, 0,
                                 64, ACRE_STORAGE_STAGED, NULL, ERR),
              ACRE_EIO, names[i]);
    }
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK(access(path_of("failed"), F_OK) != 0);
    char text[5] = "";
    read_file(path_of("kept"), text, 4);
    CHECK_STR(text, "kept");
    kit_free(&kit, device);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(storage_reads_by_every_path),
    TEST(storage_writes_what_it_reads),
    TEST(storage_of_host_memory_and_nothing),
    TEST(storage_that_cannot_be_is_refused),
    TEST(storage_makes_no_file_for_nothing),
    TEST(storage_makes_no_file_when_refused),
    TEST(storage_leaves_no_file_when_writing_fails),
};
SUITE(compute_storage_suite, tests);
