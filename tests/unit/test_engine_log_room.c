/* test_engine_log_room.c - logs of one account stay within their limit; whose go, and whose stay.
 * SEC-2. */
#include "engine/log_room.h"
#include "support/test.h"
#include "support/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 256 << 10, ADA = 12345, BOB = 12346, TURNS_MAX = 3000 };

struct world {
    struct tree tree;
    struct acre_loop *loop;
    int logs, runs;
    struct log_room *room;
    uint32_t expected; /* files */
    uint32_t turns;
};

static void open_world(struct world *world) {
    if (geteuid() != 0) {
        acre_test_skip("giving files to others needs root");
    }
    *world = (struct world){.tree = tree_create(NULL)};
    tree_make_directory(&world->tree, "logs");
    tree_make_directory(&world->tree, "runs");
    world->logs = open(tree_path(&world->tree, "logs"), O_RDONLY | O_DIRECTORY);
    world->runs = open(tree_path(&world->tree, "runs"), O_RDONLY | O_DIRECTORY);
    REQUIRE_EQ(acre_loop_create(&world->loop, NULL), 0);
    world->room = log_room_create(world->loop, world->logs, world->runs);
}

static void close_world(struct world *world) {
    log_room_destroy(world->room);
    acre_loop_destroy(world->loop);
    close(world->logs);
    close(world->runs);
    tree_erase(&world->tree);
}

/* A log of `bytes`, last written at second `at`. */
static void put_log(const struct world *world, const char *name, uid_t uid, size_t bytes,
                    time_t at) {
    static const char zeros[PIECE];
    int fd = openat(world->logs, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0 && bytes <= PIECE);
    REQUIRE_EQ(write(fd, zeros, bytes), (ssize_t)bytes);
    REQUIRE_EQ(fchown(fd, uid, (gid_t)-1), 0);
    const struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};
    REQUIRE_EQ(futimens(fd, times), 0);
    close(fd);
}

static uint32_t count_files(const struct world *world) {
    int fd = openat(world->logs, ".", O_RDONLY | O_DIRECTORY);
    DIR *directory = fdopendir(fd);
    uint32_t count = 0;
    REQUIRE(directory != NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

static bool has_log(const struct world *world, const char *name) {
    return faccessat(world->logs, name, F_OK, 0) == 0;
}

static void look(void *context) {
    struct world *world = context;
    if (count_files(world) == world->expected || ++world->turns == TURNS_MAX) {
        acre_loop_stop(world->loop);
    }
}

/* Let the loop run until so many files are there. */
static void wait_for_files(struct world *world, uint32_t count) {
    world->expected = count;
    world->turns = 0;
    struct acre_timer *timer = acre_loop_timer(world->loop, 0, 5, look, world);
    acre_loop_run(world->loop);
    acre_timer_cancel(timer);
    CHECK_U64(count_files(world), count);
}

static void the_oldest_runs_of_who_has_too_much_go(void) {
    struct world world;
    open_world(&world);
    /* 5 x 256 KiB of 1 MiB. The oldest is 7.1; of 3.1 one file is old and one is new. */
    put_log(&world, "3.1.out.1", ADA, PIECE, 10);
    put_log(&world, "3.1.out", ADA, PIECE, 90);
    put_log(&world, "7.1.out", ADA, PIECE, 20);
    put_log(&world, "8.1.err", ADA, PIECE, 30);
    put_log(&world, "9.2.out", ADA, PIECE, 40);
    put_log(&world, "1.1.out", BOB, PIECE, 1);
    put_log(&world, "notes.txt", ADA, PIECE, 1); /* not ours to judge */
    log_room_limit(world.room, 1);
    wait_for_files(&world, 5); /* down to nine tenths: two of them */
    CHECK(!has_log(&world, "7.1.out") && !has_log(&world, "8.1.err"));
    CHECK(has_log(&world, "1.1.out") && has_log(&world, "notes.txt"));
    CHECK(has_log(&world, "3.1.out.1") && has_log(&world, "9.2.out"));
    /* More ends: it is added, and too much again. */
    put_log(&world, "10.1.out", ADA, PIECE, 100);
    put_log(&world, "10.1.err", ADA, PIECE, 100);
    log_room_add(world.room, (struct acre_run){10, 1});
    wait_for_files(&world, 4);
    CHECK(!has_log(&world, "9.2.out") && !has_log(&world, "3.1.out") &&
          has_log(&world, "10.1.out"));
    close_world(&world);
}

static void runs_that_live_and_root_are_spared(void) {
    struct world world;
    open_world(&world);
    static const char *const names[] = {"1.1", "2.1", "3.1", "4.1", "5.1"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s.out", names[i]);
        put_log(&world, name, ADA, PIECE, (time_t)i + 1);
        snprintf(name, sizeof(name), "1%s.out", names[i]);
        put_log(&world, name, 0, PIECE, (time_t)i + 1);
        snprintf(name, sizeof(name), "runs/%s", names[i]);
        if (i != 3) {
            tree_put(&world.tree, name, "lives");
        }
    }
    log_room_limit(world.room, 1);
    wait_for_files(&world, 9);
    CHECK(!has_log(&world, "4.1.out"));
    tree_delete(&world.tree, "runs/2.1"); /* it has ended: found without being told */
    log_room_limit(world.room, 0);
    log_room_limit(world.room, 1);
    put_log(&world, "6.1.out", ADA, PIECE, 10);
    log_room_add(world.room, (struct acre_run){6, 1});
    wait_for_files(&world, 8); /* 2.1, and 6.1 itself: nothing else may go */
    CHECK(!has_log(&world, "2.1.out") && has_log(&world, "1.1.out"));
    close_world(&world);
}

/* What a run that lives has put aside is not being written any more: that can go. */
static void old_files_of_runs_that_live_go(void) {
    struct world world;
    open_world(&world);
    static const char *const names[] = {"1.1.out",   "1.1.out.1", "1.1.err",
                                        "1.1.err.1", "2.1.out",   "2.1.out.1"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        put_log(&world, names[i], ADA, PIECE, (time_t)i + 1);
    }
    put_log(&world, "3.1.out.1", BOB, PIECE, 1);
    tree_put(&world.tree, "runs/1.1", "lives");
    tree_put(&world.tree, "runs/2.1", "lives");
    tree_put(&world.tree, "runs/3.1", "lives");
    log_room_limit(world.room, 1);
    wait_for_files(&world, 4); /* 6 x 256 KiB of 1 MiB: all three must go */
    CHECK(has_log(&world, "1.1.out") && has_log(&world, "1.1.err") && has_log(&world, "2.1.out"));
    CHECK(has_log(&world, "3.1.out.1"));
    close_world(&world);
}

/* A few bytes need no block of their own on some file systems; an inode they do need. */
static void small_files_count(void) {
    struct world world;
    open_world(&world);
    for (int i = 1; i <= 300; i++) { /* 300 x 4 KiB */
        char name[32];
        snprintf(name, sizeof(name), "%d.1.out", i);
        put_log(&world, name, ADA, 0, i);
    }
    log_room_limit(world.room, 1);
    wait_for_files(&world, 230); /* nine tenths of 1 MiB */
    CHECK(!has_log(&world, "1.1.out") && has_log(&world, "300.1.out"));
    close_world(&world);
}

/* Closing does not wait for the end of a long sweep, nor does anything come after. */
static void it_can_be_closed_at_any_time(void) {
    struct world world;
    open_world(&world);
    for (int i = 1; i <= 2000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%d.1.out", i);
        put_log(&world, name, ADA, 1, i);
    }
    log_room_limit(world.room, 1); /* each takes a block: too much */
    log_room_add(world.room, (struct acre_run){1, 1});
    close_world(&world);
}

static const struct acre_test tests[] = {
    {"the_oldest_runs_of_who_has_too_much_go", the_oldest_runs_of_who_has_too_much_go, 0},
    {"runs_that_live_and_root_are_spared", runs_that_live_and_root_are_spared, 0},
    {"old_files_of_runs_that_live_go", old_files_of_runs_that_live_go, 0},
    {"small_files_count", small_files_count, 0},
    {"it_can_be_closed_at_any_time", it_can_be_closed_at_any_time, 0},
};

ACRE_TEST_MAIN(tests)
