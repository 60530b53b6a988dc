/* test_daemon_directory.c - a daemon keeps its state where nobody else can put anything. SEC-2. */
#include "daemon/directory.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct directory_entry entries[] = {
    {"file", ACRE_ENTRY_FILE}, {"below", ACRE_ENTRY_DIRECTORY}, {"pipe", ACRE_ENTRY_FIFO}};

static int open_directory(const char *path, struct acre_error *err) {
    struct directory directory = {.what = "state directory",
                                  .option = "--state",
                                  .path = path,
                                  .mode = 0700,
                                  .is_ours = true};
    int fd = -1;
    int r = directory_open(&directory, &fd, err);
    if (r == 0) {
        r = directory_check(&directory, fd, entries, ACRE_COUNT(entries), err);
        close(fd);
    }
    return r;
}

static void what_is_lacking_is_made(void) {
    struct tree tree = tree_create(NULL);
    struct acre_error err = {0};
    struct stat info;
    REQUIRE_EQ(open_directory(tree_path(&tree, "a/b//./c/"), &err), 0);
    CHECK_EQ(stat(tree_path(&tree, "a/b/c"), &info), 0);
    CHECK_EQ((int)(info.st_mode & 07777), 0700);
    CHECK_EQ(stat(tree_path(&tree, "a/b"), &info), 0);
    CHECK_EQ((int)(info.st_mode & 07777), 0755);
    /* One that is ours and that others may only look at is closed. */
    CHECK_EQ(chmod(tree_path(&tree, "a/b/c"), 0755), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "a/b/c"), &err), 0);
    CHECK_EQ(stat(tree_path(&tree, "a/b/c"), &info), 0);
    CHECK_EQ((int)(info.st_mode & 07777), 0700);
    /* From the working directory, and back up. */
    REQUIRE_EQ(chdir(tree_path(&tree, "a")), 0);
    CHECK_EQ(open_directory("b/../d", &err), 0);
    CHECK_EQ(open_directory("./d/./", &err), 0);
    CHECK_EQ(open_directory(".", &err), 0);
    CHECK_EQ(stat(tree_path(&tree, "a/d"), &info), 0);
    tree_erase(&tree);
}

static void links_of_our_own_lead_on_but_are_no_place(void) {
    struct tree tree = tree_create(NULL);
    struct acre_error err = {0};
    struct stat info;
    tree_make_directory(&tree, "real/deep");
    REQUIRE_EQ(symlink("real/deep", tree_path(&tree, "near")), 0);
    REQUIRE_EQ(symlink(tree_path(&tree, "near"), tree_path(&tree, "far")), 0);
    REQUIRE_EQ(symlink("loop", tree_path(&tree, "loop")), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "far/state"), &err), 0);
    CHECK_EQ(stat(tree_path(&tree, "real/deep/state"), &info), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "near"), &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "near is a link; give the directory itself with --state");
    CHECK(open_directory(tree_path(&tree, "loop/state"), &err) < 0);
    CHECK_HAS(err.text, "symbolic links");
    tree_erase(&tree);
}

static void what_others_may_write_to_is_refused(void) {
    struct tree tree = tree_create(NULL);
    struct acre_error err = {0};
    tree_make_directory(&tree, "open/state");
    REQUIRE_EQ(chmod(tree_path(&tree, "open/state"), 0702), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "state directory /");
    CHECK_HAS(err.text, "open/state (mode 702); run 'chmod go-w ");
    REQUIRE_EQ(chmod(tree_path(&tree, "open/state"), 0700), 0);
    REQUIRE_EQ(chmod(tree_path(&tree, "open"), 0777), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "open (mode 777)");
    REQUIRE_EQ(chmod(tree_path(&tree, "open"), 01777), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), 0);
    /* A group's, unless it is root's or our own. */
    REQUIRE_EQ(chmod(tree_path(&tree, "open"), 0775), 0);
    CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), 0);
    if (geteuid() == 0) {
        REQUIRE_EQ(chown(tree_path(&tree, "open"), 0, 12345), 0);
        CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), ACRE_EDENIED);
        REQUIRE_EQ(chown(tree_path(&tree, "open"), 12345, 0), 0);
        CHECK_EQ(open_directory(tree_path(&tree, "open/state"), &err), ACRE_EDENIED);
        CHECK_HAS(err.text, "belongs to uid 12345, not to root; chown it");
    }
    tree_erase(&tree);
}

static void entries_must_be_what_they_are_for(void) {
    struct tree tree = tree_create(NULL);
    struct acre_error err = {0};
    char state[96]; /* tree_path's buffers are used again */
    snprintf(state, sizeof(state), "%s/state", tree.root);
    tree_put(&tree, "state/file", "x");
    tree_make_directory(&tree, "state/below");
    REQUIRE_EQ(mkfifo(tree_path(&tree, "state/pipe"), 0600), 0);
    CHECK_EQ(open_directory(state, &err), 0);
    tree_delete(&tree, "state/pipe");
    tree_put(&tree, "state/pipe", "x");
    CHECK_EQ(open_directory(state, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "pipe is something else, not a FIFO; remove it");
    tree_delete(&tree, "state/pipe");
    REQUIRE_EQ(chmod(tree_path(&tree, "state/file"), 0666), 0);
    CHECK_EQ(open_directory(state, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "other users can write to file (mode 666)");
    tree_delete(&tree, "state/file");
    REQUIRE_EQ(symlink("elsewhere", tree_path(&tree, "state/file")), 0);
    CHECK_EQ(open_directory(state, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "file is a link, not a file");
    tree_erase(&tree);
}

static void names_that_cannot_be_are_said(void) {
    static char path[8192];
    struct acre_error err = {0};
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    CHECK(open_directory(path, &err) < 0);
    CHECK_HAS(err.text, "too long");
    struct tree tree = tree_create(NULL);
    struct stat info;
    snprintf(path, sizeof(path), "%s/%0300d", tree.root, 1);
    REQUIRE_EQ(chmod(tree.root, 0711), 0);
    CHECK(open_directory(path, &err) < 0);
    CHECK_HAS(err.text, "too long");
    CHECK_EQ(stat(tree.root, &info), 0);
    CHECK_EQ((int)(info.st_mode & 07777), 0711); /* what is on the way is left alone */
    snprintf(path, sizeof(path), "%s/..", tree.root);
    CHECK_EQ(open_directory(path, &err), ACRE_EINVALID);
    CHECK_EQ(open_directory("/", &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "the path must end with the name of a directory");
    tree_erase(&tree);
    CHECK(open_directory("/proc/nothing/here", &err) < 0);
    CHECK_HAS(err.text, "/proc/nothing: No such file");
}

static const struct acre_test tests[] = {
    {"what_is_lacking_is_made", what_is_lacking_is_made, 0},
    {"links_of_our_own_lead_on_but_are_no_place", links_of_our_own_lead_on_but_are_no_place, 0},
    {"what_others_may_write_to_is_refused", what_others_may_write_to_is_refused, 0},
    {"entries_must_be_what_they_are_for", entries_must_be_what_they_are_for, 0},
    {"names_that_cannot_be_are_said", names_that_cannot_be_are_said, 0},
};

ACRE_TEST_MAIN(tests)
