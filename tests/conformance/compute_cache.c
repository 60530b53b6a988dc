/* compute_cache.c - the cache of compiled programs: used, damaged, read-only, full, shared.
 *
 * Read-only and full directories are small file systems mounted for the case alone, in a name
 * space of its own (for root a mode of 0555 is no obstacle); where that is not allowed the case is
 * skipped. */
#include "conformance/compute_suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "kernel void answer(global uint *out) {\n    out[0] = NUMBER;\n}\n";

static char *directory_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", kit_choice.scratch, name);
    return path;
}

/* Build with this cache, run, and tell how it went. */
static struct acre_build_report build_once(const char *cache, uint32_t number) {
    struct kit kit = {0};
    struct acre_compute_options how = kit_options();
    how.cache = cache;
    acre_rand_seed(&kit.rand, kit_choice.seed);
    OK(acre_compute_open(&how, &kit.compute, ERR));
    kit.device = kit_choice.device;
    kit.context = kit_context(&kit, (struct acre_context_options){0});
    OK(acre_stream_create(kit.context, &kit.stream, ERR));
    char options[32];
    snprintf(options, sizeof(options), "-DNUMBER=%uu", number);
    struct acre_source source = {.text = text, .name = "answer.acl", .options = options};
    struct acre_build_report report = {0};
    struct acre_program *program = NULL;
    struct acre_kernel *kernel = NULL;
    uint32_t got = 0;
    OK(acre_program_build(kit.context, &source, &program, &report, ERR));
    OK(acre_kernel_find(program, "answer", &kernel, ERR));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4);
    OK(acre_launch(kit.stream, kernel, kit_grid(1, 1), ARGS(ACRE_BUFFER(out)), ERR));
    kit_get(&kit, &got, out, 4);
    REQUIRE_EQ(got, number);
    acre_program_destroy(program);
    kit_free(&kit, out);
    kit_close(&kit);
    struct acre_build_report told = report;
    acre_build_report_finish(&report);
    told.log = NULL;
    return told;
}

static void cache_second_build_is_cached(void) {  /* GPU-1 */
    char *cache = directory_of("cache-new/deep"); /* made when it is not there */
    struct acre_build_report first = build_once(cache, 1);
    struct acre_build_report second = build_once(cache, 1);
    struct acre_build_report other = build_once(cache, 2); /* other options, another program */
    struct acre_build_report third = build_once(cache, 2);
    CHECK(!first.was_cached);
    CHECK_STR(first.cache, "");
    CHECK(second.was_cached);
    CHECK(!other.was_cached);
    CHECK(third.was_cached);
    printf("cold %.1f ms, cached %.2f ms\n", first.build_ms, second.build_ms);
    struct acre_build_report none = build_once("", 1);
    CHECK(!none.was_cached);
    CHECK(!build_once("", 1).was_cached);
}

enum damage { DAMAGE_BYTE, DAMAGE_SHORT, DAMAGE_EMPTY, DAMAGE_NOISE, DAMAGE_COUNT };
static enum damage damage_to_do;
static uint32_t damaged_files;

static int damage_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)where;
    if (kind != FTW_F || status->st_size == 0) {
        return 0;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    damaged_files++;
    off_t size = status->st_size;
    uint8_t byte = 0;
    switch (damage_to_do) {
    case DAMAGE_BYTE:
        REQUIRE_EQ(pread(fd, &byte, 1, size * 2 / 3), 1);
        byte ^= 0x10;
        REQUIRE_EQ(pwrite(fd, &byte, 1, size * 2 / 3), 1);
        break;
    case DAMAGE_SHORT:
        REQUIRE_EQ(ftruncate(fd, size - size / 3), 0);
        break;
    case DAMAGE_EMPTY:
        REQUIRE_EQ(ftruncate(fd, 0), 0);
        break;
    case DAMAGE_NOISE:
        for (off_t i = 0; i < size; i++) {
            byte = (uint8_t)(i * 131 + 7);
            REQUIRE_EQ(pwrite(fd, &byte, 1, i), 1);
        }
        break;
    case DAMAGE_COUNT:
    default:
        break;
    }
    close(fd);
    return 0;
}

static void cache_damaged_entries_are_rebuilt(void) { /* GPU-1 */
    char cache[256];
    snprintf(cache, sizeof(cache), "%s", directory_of("cache-damaged"));
    (void)build_once(cache, 7);
    for (int damage = 0; damage < DAMAGE_COUNT; damage++) {
        acre_test_context("damage %d", damage);
        CHECK(build_once(cache, 7).was_cached);
        damage_to_do = (enum damage)damage;
        damaged_files = 0;
        nftw(cache, damage_one, 16, FTW_PHYS);
        CHECK(damaged_files > 0);
        struct acre_build_report report = build_once(cache, 7); /* and runs right */
        CHECK(!report.was_cached);
        CHECK(damage == DAMAGE_EMPTY || strstr(report.cache, "damaged") != NULL);
        CHECK(build_once(cache, 7).was_cached);
    }
}

static void write_map(const char *path, const char *content) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t written = write(fd, content, strlen(content));
        CHECK(written == (ssize_t)strlen(content));
        close(fd);
    }
}

/* A file system of its own over `directory`. */
static void mount_small(const char *directory, const char *options, unsigned long flags) {
    char map[64];
    uid_t user = geteuid();
    gid_t group = getegid();
    mkdir(directory, 0700);
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            acre_test_skip("no name space for a small file system: %s", strerror(errno));
        }
        write_map("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "0 %u 1", user);
        write_map("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "0 %u 1", group);
        write_map("/proc/self/gid_map", map);
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("acre", directory, "tmpfs", flags, options) != 0) {
        acre_test_skip("no small file system here: %s", strerror(errno));
    }
}

static void cache_that_is_read_only_is_told(void) {
    char *cache = directory_of("cache-read-only");
    mount_small(cache, "size=1m,mode=0700", MS_RDONLY);
    for (int i = 0; i < 2; i++) {
        struct acre_build_report report = build_once(cache, 3);
        CHECK(!report.was_cached);
        CHECK_HAS(report.cache, "read-only");
    }
}

static void cache_that_is_full_is_told(void) {
    char *cache = directory_of("cache-full");
    mount_small(cache, "size=4k,mode=0700", 0);
    char filler[300];
    snprintf(filler, sizeof(filler), "%s/filler", cache);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static const char page[4096];
    REQUIRE_EQ(write(fd, page, sizeof(page)), (ssize_t)sizeof(page));
    close(fd);
    for (int i = 0; i < 2; i++) {
        struct acre_build_report report = build_once(cache, 3);
        CHECK(!report.was_cached);
        CHECK(report.cache[0] != '\0');
        printf("%s\n", report.cache);
    }
    REQUIRE_EQ(unlink(filler), 0); /* nothing half-written is left behind */
    uint32_t entries = 0;
    DIR *directory = opendir(cache);
    REQUIRE(directory != NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        entries += entry->d_type == DT_REG;
    }
    closedir(directory);
    CHECK_EQ(entries, 0);
}

static void cache_that_is_no_directory_is_told(void) {
    char *cache = directory_of("cache-file");
    int fd = open(cache, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    close(fd);
    struct acre_build_report report = build_once(cache, 3);
    CHECK(!report.was_cached);
    CHECK(report.cache[0] != '\0');
}

static void cache_is_shared_by_processes(void) { /* GPU-1 */
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    char *cache = directory_of("cache-shared");
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            for (uint32_t j = 0; j < 2; j++) {
                (void)build_once(cache, 10 + j); /* a failure exits with another code */
            }
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ(status, 0);
    }
    CHECK(build_once(cache, 10).was_cached);
    CHECK(build_once(cache, 11).was_cached);
}

static const struct acre_test tests[] = {
    TEST(cache_second_build_is_cached),       TEST(cache_damaged_entries_are_rebuilt),
    TEST(cache_that_is_read_only_is_told),    TEST(cache_that_is_full_is_told),
    TEST(cache_that_is_no_directory_is_told), TEST(cache_is_shared_by_processes),
};
SUITE(compute_cache_suite, tests);
