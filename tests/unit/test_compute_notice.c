/* test_compute_notice.c - notices: those that have fired are forgotten, those that are lost fire
 * once each, and each file is the one that was given. */
#include "compute/notice.h"
#include "core/file.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int make(void) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    REQUIRE(fd >= 0);
    return fd;
}

/* 0: it has not fired. */
static uint64_t fired(int fd) {
    uint64_t count = 0;
    return read(fd, &count, sizeof(count)) == 8 ? count : 0;
}

static struct notices begin(struct notice_files *files) {
    notice_files_init(files, NULL, NULL);
    return (struct notices){.files = files};
}

static void end(struct notices *notices) {
    struct notice_files *files = notices->files;
    notices_finish(notices);
    notice_files_finish(files);
}

static uint32_t add(struct notices *notices, int fd, uint64_t done, uint64_t sequence) {
    struct acre_error err = {0};
    uint32_t file = UINT32_MAX;
    int copy = -1;
    int r = notices_prepare(notices, fd, done, &file, &copy, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    acre_test_context("%s", "");
    CHECK_EQ(copy, notices->files->list[file].fd);
    notices_add(notices, sequence, file);
    return file;
}

static void lost_ones_fire_once_each(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    int fds[20];
    uint64_t sequence = 0;
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        fds[i] = make();
    }
    for (uint32_t i = 0; i < 1000; i++) {
        add(&notices, fds[i % ACRE_COUNT(fds)], 0, ++sequence);
    }
    notices_fire(&notices, 990, false); /* the last ten are lost */
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        acre_test_context("eventfd %zu", i);
        CHECK_U64(fired(fds[i]), i < 10 ? 0 : 1);
    }
    acre_test_context("%s", "");
    notices_fire(&notices, 990, false); /* none is left */
    add(&notices, fds[0], sequence, sequence + 1);
    add(&notices, fds[0], sequence, sequence + 5);
    add(&notices, fds[3], sequence, sequence + 5);
    notices_fire(&notices, sequence, false);
    for (size_t i = 0; i < ACRE_COUNT(fds); i++) {
        CHECK_U64(fired(fds[i]), i == 0 ? 2 : i == 3 ? 1 : 0);
        close(fds[i]);
    }
    notices_finish(&notices);
    end(&notices); /* is empty, and may be used again */
}

/* Numbers of both sides: nothing fires that has fired, nothing is forgotten that has not. */
static void counts_are_exact_at_every_moment(void) {
    enum { COUNT = 40 };
    for (uint64_t done = 0; done <= COUNT; done++) {
        struct notice_files files;
        struct notices notices = begin(&files);
        int fds[3] = {make(), make(), make()};
        uint64_t expected[3] = {0};
        for (uint64_t i = 1; i <= COUNT; i++) { /* `done` is seen late */
            add(&notices, fds[i % 3], i > 20 ? ACRE_MIN(done, i - 10) : 0, i);
            expected[i % 3] += i > done;
        }
        notices_fire(&notices, done, false);
        for (size_t i = 0; i < 3; i++) {
            acre_test_context("done %llu, eventfd %zu", (unsigned long long)done, i);
            CHECK_U64(fired(fds[i]), expected[i]);
            close(fds[i]);
        }
        end(&notices);
    }
}

static void what_has_fired_takes_no_room(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    uint32_t before = acre_test_open_files();
    int keeps = make();
    add(&notices, keeps, 0, 1);
    for (uint64_t i = 2; i < 20000; i++) { /* each of its own file, which is closed */
        int fd = make();
        add(&notices, fd, i - 4, i);
        close(fd);
    }
    CHECK(notices.room <= 64);
    CHECK(files.room <= 64);
    CHECK(acre_test_open_files() <= before + 64);
    notices_fire(&notices, 20000, false);
    CHECK_U64(fired(keeps), 0);
    end(&notices);
    close(keeps);
    CHECK_EQ(acre_test_open_files(), before);
}

/* Where the oldest never ends: all behind it are kept. */
static void what_is_under_way_is_kept(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    enum { COUNT = 10000 };
    int fds[2] = {make(), make()};
    for (uint64_t i = 1; i <= COUNT; i++) {
        CHECK_EQ(add(&notices, fds[i % 10 == 0], 0, i), i >= 10 && i % 10 == 0);
    }
    CHECK_EQ(files.count, 2);
    notices_fire(&notices, 0, false);
    CHECK_U64(fired(fds[0]), COUNT - COUNT / 10);
    CHECK_U64(fired(fds[1]), COUNT / 10);
    end(&notices);
    close(fds[0]);
    close(fds[1]);
}

/* A number that another file has now is another file; the first one's notices are still its. */
static void a_number_used_again_is_another_file(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    int first = make();
    int copy = fcntl(first, F_DUPFD_CLOEXEC, 0);
    REQUIRE(copy >= 0);
    uint32_t a = add(&notices, first, 0, 1);
    CHECK(files.list[a].fd != first);
    int second = make();
    REQUIRE_EQ(dup3(second, first, O_CLOEXEC), first);
    uint32_t b = add(&notices, first, 0, 2);
    CHECK(a != b);
    CHECK(files.list[a].fd != files.list[b].fd);
    close(first); /* nothing has the number; the copies stay */
    notices_fire(&notices, 0, false);
    CHECK_U64(fired(copy), 1);
    CHECK_U64(fired(second), 1);
    end(&notices);
    close(copy);
    close(second);
}

/* In this process a notice that was given up may fire after all: its file stays the same. */
static void files_of_what_may_come_stay(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    int fd = make();
    uint32_t file = add(&notices, fd, 0, 1);
    int copy = files.list[file].fd;
    notices_fire(&notices, 0, true);
    CHECK_U64(fired(fd), 1);
    for (uint64_t i = 2; i < 100; i++) {
        int other = make();
        CHECK(add(&notices, other, i - 1, i) != file);
        close(other);
    }
    CHECK_EQ(files.list[file].fd, copy);
    CHECK(fcntl(copy, F_GETFD) >= 0);
    end(&notices);
    close(fd);
}

static uint32_t forgotten;

static void count_forgotten(void *with, int fd) {
    CHECK(with == &forgotten);
    CHECK(fcntl(fd, F_GETFD) >= 0); /* not closed yet */
    forgotten++;
}

/* All streams of a context have one copy of a file; it goes when the program's own has gone and
 * nothing is under way. */
static void streams_share_the_copy_of_a_file(void) {
    enum { STREAMS = 40 };
    struct notice_files files;
    struct notices notices[STREAMS];
    uint32_t before = acre_test_open_files();
    forgotten = 0;
    notice_files_init(&files, count_forgotten, &forgotten);
    int fd = make();
    for (uint32_t i = 0; i < STREAMS; i++) {
        notices[i] = (struct notices){.files = &files};
        add(&notices[i], fd, 0, 1);
    }
    CHECK_EQ(files.count, 1);
    CHECK_EQ(acre_test_open_files(), before + 2);
    for (uint32_t i = 1; i < STREAMS; i++) {
        notices_finish(&notices[i]);
    }
    close(fd);
    CHECK_EQ(forgotten, 0);
    CHECK_EQ(acre_test_open_files(), before + 1); /* the first stream's is under way */
    notices_finish(&notices[0]);
    CHECK_EQ(forgotten, 1);
    CHECK_EQ(acre_test_open_files(), before);
    notice_files_finish(&files);
}

/* Also while the stream goes on with others. */
static void copies_go_when_they_have_fired(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    uint32_t before = acre_test_open_files();
    int gone = make();
    int stays = make();
    add(&notices, gone, 0, 1);
    add(&notices, stays, 0, 2);
    close(gone);
    add(&notices, stays, 0, 3);
    CHECK_EQ(acre_test_open_files(), before + 3);
    add(&notices, stays, 1, 4);
    CHECK_EQ(acre_test_open_files(), before + 2);
    end(&notices);
    close(stays);
    CHECK_EQ(acre_test_open_files(), before);
}

/* What the back end refused is not under way. */
static void what_is_cancelled_does_not_fire(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    struct acre_error err = {0};
    uint32_t file = 0;
    int copy = -1;
    int fd = make();
    REQUIRE_EQ(notices_prepare(&notices, fd, 0, &file, &copy, &err), 0);
    notices_cancel(&notices, file);
    CHECK_EQ(files.list[file].pending, 0);
    notices_fire(&notices, 0, false);
    CHECK_U64(fired(fd), 0);
    end(&notices);
    close(fd);
}

/* As filters of containers do, for good: only in a child. */
static void deny_kcmp(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = ACRE_COUNT(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        _exit(77);
    }
}

/* 0: all is well there; else which was wrong. */
static int use_without_kcmp(void) {
    deny_kcmp();
    struct notice_files files;
    struct notices notices = begin(&files);
    int fds[2] = {make(), make()};
    for (uint64_t i = 1; i <= 100; i++) {
        add(&notices, fds[i % 2], 0, i);
    }
    if (files.count != 2) {
        return 1;
    }
    if (!acre_file_is_same(fds[0], files.list[1].fd) || !acre_file_is_same(fds[0], fds[0])) {
        return 2;
    }
    if (acre_file_is_same(fds[0], 9999) || acre_file_is_same(fds[0], 0)) {
        return 3;
    }
    notices_fire(&notices, 0, false);
    return fired(fds[0]) == 50 && fired(fds[1]) == 50 ? 0 : 4;
}

static void files_are_told_apart_without_kcmp(void) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(use_without_kcmp());
    }
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        acre_test_skip("system calls cannot be filtered here");
    }
    CHECK_EQ(status, 0);
}

static void other_files_are_refused_by_number(void) {
    struct notice_files files;
    struct notices notices = begin(&files);
    struct acre_error err = {0};
    uint32_t file = 77;
    int copy = 78;
    uint32_t before = acre_test_open_files();
    int ends[2];
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    REQUIRE_EQ(pipe2(ends, O_CLOEXEC), 0);
    CHECK_EQ(notices_prepare(&notices, -1, 0, &file, &copy, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "event_fd: -1 is not an open file; accepted: an eventfd");
    CHECK_EQ(notices_prepare(&notices, null, 0, &file, &copy, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, " is /dev/null; accepted: an eventfd");
    CHECK_EQ(notices_prepare(&notices, ends[1], 0, &file, &copy, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, " is pipe:[");
    CHECK_EQ(file, 77);
    CHECK_EQ(copy, 78);
    CHECK_EQ(files.count, 0);
    close(null);
    close(ends[0]);
    close(ends[1]);
    end(&notices);
    CHECK_EQ(acre_test_open_files(), before);
}

static const struct acre_test tests[] = {
    {"lost_ones_fire_once_each", lost_ones_fire_once_each, 0},
    {"counts_are_exact_at_every_moment", counts_are_exact_at_every_moment, 0},
    {"what_has_fired_takes_no_room", what_has_fired_takes_no_room, 0},
    {"what_is_under_way_is_kept", what_is_under_way_is_kept, 0},
    {"a_number_used_again_is_another_file", a_number_used_again_is_another_file, 0},
    {"files_of_what_may_come_stay", files_of_what_may_come_stay, 0},
    {"streams_share_the_copy_of_a_file", streams_share_the_copy_of_a_file, 0},
    {"copies_go_when_they_have_fired", copies_go_when_they_have_fired, 0},
    {"what_is_cancelled_does_not_fire", what_is_cancelled_does_not_fire, 0},
    {"files_are_told_apart_without_kcmp", files_are_told_apart_without_kcmp, 0},
    {"other_files_are_refused_by_number", other_files_are_refused_by_number, 0},
};
ACRE_TEST_MAIN(tests)
