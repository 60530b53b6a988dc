/* Whole files: read with a limit, written all or nothing, refused by name. */
#include "core/file.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

/* A new empty directory, and the working one: names in the tests are relative. */
static void enter_directory(void) {
    snprintf(directory, sizeof(directory), "/tmp/acre-test-XXXXXX");
    REQUIRE(mkdtemp(directory) != NULL);
    REQUIRE_EQ(chdir(directory), 0);
}

static unsigned count_files(void) {
    unsigned count = 0;
    DIR *listing = opendir(".");
    REQUIRE(listing != NULL);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(listing);
    return count;
}

static void leave_directory(void) {
    DIR *listing = opendir(".");
    REQUIRE(listing != NULL);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (unlink(entry->d_name) != 0) {
            rmdir(entry->d_name); /* fails for "." and "..", as it should */
        }
    }
    closedir(listing);
    CHECK_EQ(rmdir(directory), 0);
}

static void put_file(const char *path, const char *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, bytes, length) == (ssize_t)length);
    close(fd);
}

static void files_are_appended_byte_for_byte(void) {
    enter_directory();
    static char big[50000];
    for (size_t i = 0; i < sizeof(big); i++) {
        big[i] = (char)(i * 7 % 251);
    }
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, sizeof(big)};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        acre_test_context("%zu bytes", sizes[i]);
        struct acre_error err = {0};
        struct acre_buf buf;
        acre_buf_init(&buf, SIZE_MAX);
        acre_buf_puts(&buf, "before:");
        put_file("f", big, sizes[i]);
        CHECK_EQ(acre_file_read("f", sizes[i], &buf, &err), 0);
        CHECK_EQ(buf.length, 7 + sizes[i]);
        CHECK_EQ(memcmp(buf.data, "before:", 7), 0);
        CHECK_EQ(memcmp(buf.data + 7, big, sizes[i]), 0);
        acre_buf_finish(&buf);
    }
    leave_directory();
}

static void proc_files_are_read_though_their_size_is_zero(void) {
    struct acre_error err = {0};
    struct acre_buf buf;
    acre_buf_init(&buf, 1 << 20);
    CHECK_EQ(acre_file_read("/proc/self/status", 1 << 20, &buf, &err), 0);
    CHECK_HAS(buf.data, "Name:");
    acre_buf_finish(&buf);
}

static void a_peek_is_a_beginning_or_nothing(void) {
    enter_directory();
    put_file("f", "beginning", 9);
    char text[16];
    CHECK_STR(acre_file_peek("f", text, sizeof(text)), "beginning");
    CHECK_STR(acre_file_peek("f", text, 4), "beg");
    CHECK_STR(acre_file_peek("f", text, 1), "");
    CHECK_STR(acre_file_peek("/proc/self/comm", text, 4), "tes");
    CHECK_STR(acre_file_peek("nothing", text, sizeof(text)), "");
    CHECK_STR(acre_file_peek(".", text, sizeof(text)), "");
    leave_directory();
}

static void what_is_not_a_file_is_refused_by_name(void) {
    enter_directory();
    REQUIRE_EQ(mkdir("directory", 0755), 0);
    REQUIRE_EQ(mkfifo("fifo", 0644), 0);
    REQUIRE_EQ(symlink("loop", "loop"), 0);
    static const struct {
        const char *path;
        int code;
        const char *says;
    } cases[] = {
        {"missing", ACRE_ENOTFOUND, "missing: No such file"},
        {"missing/deeper", ACRE_ENOTFOUND, "missing/deeper: No such file"},
        {"directory", ACRE_EINVALID, "directory: is a directory; accepted: a file"},
        {"fifo", ACRE_EINVALID, "fifo: is not a regular file; accepted: a file"},
        {"/dev/null", ACRE_EINVALID, "/dev/null: is not a regular file"},
        {"loop", ACRE_EIO, "loop: "},
        {"", ACRE_ENOTFOUND, ": No such file"},
        {"a\nb", ACRE_ENOTFOUND, "a\\nb: No such file"},
        {"/proc/self/mem", ACRE_EIO, "/proc/self/mem: "}, /* opens, but reading at 0 fails */
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("'%s'", cases[i].path);
        struct acre_error err = {0};
        struct acre_buf buf;
        acre_buf_init(&buf, 1000);
        acre_buf_puts(&buf, "kept");
        CHECK_EQ(acre_file_read(cases[i].path, 1000, &buf, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_STR(buf.data, "kept");
        CHECK_EQ(acre_file_read(cases[i].path, 1000, &buf, NULL), cases[i].code);
        acre_buf_finish(&buf);
    }
    leave_directory();
}

static void files_over_the_limit_are_refused_and_change_nothing(void) {
    enter_directory();
    static char big[40000];
    put_file("f", big, sizeof(big));
    static const struct {
        size_t max_bytes, buffer_max;
        const char *says;
    } cases[] = {
        {sizeof(big) - 1, SIZE_MAX, "f: too large; accepted: at most 39999 bytes"},
        {0, SIZE_MAX, "at most 0 bytes"},
        {20000, 100000, "at most 20000 bytes"},
        {SIZE_MAX, 20000, "at most 20000 bytes"}, /* what the buffer itself can hold */
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        struct acre_error err = {0};
        struct acre_buf buf;
        acre_buf_init(&buf, cases[i].buffer_max);
        acre_buf_puts(&buf, "kept");
        CHECK_EQ(acre_file_read("f", cases[i].max_bytes, &buf, &err), ACRE_ELIMIT);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_STR(buf.data, "kept");
        CHECK_EQ(buf.length, 4);
        CHECK(!acre_buf_failed(&buf));
        acre_buf_finish(&buf);
    }
    leave_directory();
}

static void check_content(const char *path, const char *expect) {
    struct acre_buf buf;
    acre_buf_init(&buf, 100000);
    CHECK_EQ(acre_file_read(path, 100000, &buf, NULL), 0);
    CHECK_STR(buf.data, expect);
    acre_buf_finish(&buf);
}

static void writing_replaces_the_file_and_leaves_nothing_else(void) {
    enter_directory();
    struct acre_error err = {0};
    CHECK_EQ(acre_file_write("f", "first", 5, &err), 0);
    check_content("f", "first");
    CHECK_EQ(acre_file_write("f", "2", 1, &err), 0);
    check_content("f", "2");
    CHECK_EQ(acre_file_write("f", "", 0, &err), 0);
    check_content("f", "");
    CHECK_EQ(count_files(), 1);
    leave_directory();
}

static void modes_are_the_umasks_or_the_old_files(void) {
    enter_directory();
    umask(027);
    struct stat info;
    CHECK_EQ(acre_file_write("f", "x", 1, NULL), 0);
    REQUIRE_EQ(stat("f", &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0640);
    REQUIRE_EQ(chmod("f", 0600), 0);
    CHECK_EQ(acre_file_write("f", "y", 1, NULL), 0); /* a secret stays one */
    REQUIRE_EQ(stat("f", &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0600);
    leave_directory();
}

static void writing_what_cannot_be_written_is_refused(void) {
    enter_directory();
    REQUIRE_EQ(mkdir("directory", 0755), 0);
    REQUIRE_EQ(mkfifo("fifo", 0644), 0);
    REQUIRE_EQ(symlink("nowhere", "link"), 0);
    static char endless[PATH_MAX + 10];
    memset(endless, 'x', sizeof(endless) - 1);
    const struct {
        const char *path;
        int code;
        const char *says;
    } cases[] = {
        {"directory", ACRE_EINVALID, "directory: is a directory; accepted: a file"},
        {"fifo", ACRE_EINVALID, "fifo: is not a regular file"},
        {"/dev/null", ACRE_EINVALID, "/dev/null: is not a regular file"},
        {"link", ACRE_EINVALID, "link: is a symbolic link; accepted: a file"},
        {"missing/f", ACRE_ENOTFOUND, "missing/f: No such file"},
        {endless, ACRE_EIO, "xxx...: File name too long"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        struct acre_error err = {0};
        CHECK_EQ(acre_file_write(cases[i].path, "x", 1, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].says);
    }
    CHECK_EQ(count_files(), 3);
    leave_directory();
}

static void names_may_be_as_long_as_any(void) {
    enter_directory();
    static const char *const letters[] = {"n", "\xc3\xa4", "\xe2\x82\xac"};
    for (size_t i = 0; i < ACRE_COUNT(letters); i++) {
        char name[NAME_MAX + 8] = "";
        size_t length = strlen(letters[i]);
        for (size_t at = 0; at + length <= NAME_MAX; at += length) {
            memcpy(name + at, letters[i], length + 1);
        }
        acre_test_context("%s", name);
        CHECK_EQ(acre_file_write(name, "x", 1, NULL), 0);
        check_content(name, "x");
        memset(name + strlen(name), 'n', 6); /* the rest of it is 0 */
        struct acre_draft draft = {0};
        CHECK_EQ(acre_draft_begin(&draft, name, NULL), ACRE_EIO);
    }
    CHECK_EQ(count_files(), ACRE_COUNT(letters));
    leave_directory();
}

static void drafts_appear_when_they_are_committed(void) {
    struct acre_draft one = {0}, other = {0}, none = {0};
    enter_directory();
    CHECK_EQ(acre_draft_begin(&one, "one", NULL), 0);
    CHECK_EQ(acre_draft_begin(&other, "other", NULL), 0);
    CHECK_EQ(acre_draft_write(&one, "1", 1, NULL), 0);
    CHECK(access("one", F_OK) != 0 && access("other", F_OK) != 0);
    CHECK_EQ(acre_draft_commit(&one, NULL), 0);
    acre_draft_drop(&one);
    acre_draft_drop(&other);
    acre_draft_drop(&other);
    acre_draft_drop(&none);
    check_content("one", "1");
    CHECK_EQ(count_files(), 1);
    leave_directory();
}

/* What a program that is killed while it writes leaves behind. */
static void drafts_have_no_name_until_they_are_whole(void) {
    struct acre_draft draft = {0}, beside = {0};
    enter_directory();
    int fd = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0) {
        leave_directory();
        acre_test_skip("this file system has no files without a name");
    }
    close(fd);
    REQUIRE_EQ(mkdir("in", 0755), 0);
    CHECK_EQ(acre_draft_begin(&draft, "f", NULL), 0);
    CHECK_EQ(acre_draft_begin(&beside, "in/f", NULL), 0);
    CHECK_EQ(acre_draft_write(&draft, "1", 1, NULL), 0);
    CHECK_EQ(acre_draft_write(&beside, "2", 1, NULL), 0);
    CHECK_EQ(count_files(), 1);
    CHECK_EQ(rmdir("in"), 0); /* nothing is there */
    CHECK_EQ(acre_draft_name(&beside, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_draft_name(&draft, NULL), 0);
    CHECK_EQ(count_files(), 1);
    CHECK(access("f", F_OK) != 0);
    acre_draft_drop(&draft);
    acre_draft_drop(&beside);
    CHECK_EQ(count_files(), 0);
    leave_directory();
}

static void a_full_disk_keeps_the_old_file(void) {
    enter_directory();
    CHECK_EQ(acre_file_write("f", "old", 3, NULL), 0);
    static char big[100000];
    struct rlimit small = {4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct acre_error err = {0};
    CHECK_EQ(acre_file_write("f", big, sizeof(big), &err), ACRE_EIO);
    CHECK_HAS(err.text, "f: File too large");
    check_content("f", "old");
    CHECK_EQ(count_files(), 1);
    leave_directory();
}

static const struct acre_test tests[] = {
    {"files_are_appended_byte_for_byte", files_are_appended_byte_for_byte, 0},
    {"proc_files_are_read_though_their_size_is_zero", proc_files_are_read_though_their_size_is_zero,
     0},
    {"a_peek_is_a_beginning_or_nothing", a_peek_is_a_beginning_or_nothing, 0},
    {"what_is_not_a_file_is_refused_by_name", what_is_not_a_file_is_refused_by_name, 0},
    {"files_over_the_limit_are_refused_and_change_nothing",
     files_over_the_limit_are_refused_and_change_nothing, 0},
    {"writing_replaces_the_file_and_leaves_nothing_else",
     writing_replaces_the_file_and_leaves_nothing_else, 0},
    {"modes_are_the_umasks_or_the_old_files", modes_are_the_umasks_or_the_old_files, 0},
    {"writing_what_cannot_be_written_is_refused", writing_what_cannot_be_written_is_refused, 0},
    {"names_may_be_as_long_as_any", names_may_be_as_long_as_any, 0},
    {"drafts_appear_when_they_are_committed", drafts_appear_when_they_are_committed, 0},
    {"drafts_have_no_name_until_they_are_whole", drafts_have_no_name_until_they_are_whole, 0},
    {"a_full_disk_keeps_the_old_file", a_full_disk_keeps_the_old_file, 0},
};

ACRE_TEST_MAIN(tests)
