/* The disk cache of compiled programs (GPU-1): real files, really damaged; directories that are
 * full, read-only, in the way or open to others; processes that write at once. */
#include "compute/cache.h"
#include "core/file.h"
#include "core/rand.h"
#include "support/test.h"
#include "support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cache_source base = {.text = {"kernel void f() {}", 18},
                                         .options = "-O2",
                                         .backend = "opencl",
                                         .identity = "OpenCL 3.0 pocl 3.1",
                                         .name = "f.c"};

static struct cache_key key_of(const struct cache_source *source) {
    struct cache_key key;
    REQUIRE_EQ(cache_key_of(source, &key, NULL), 0);
    return key;
}

static const char *path_of(const struct tree *tree, const struct cache_key *key) {
    char file[CACHE_FILE_MAX + 8] = "";
    for (size_t i = 0; i < sizeof(key->bytes); i++) {
        snprintf(file + 2 * i, sizeof(file) - 2 * i, "%02x", key->bytes[i]);
    }
    snprintf(file + 64, sizeof(file) - 64, ".kernel");
    return tree_path(tree, file);
}

/* What `cache_read` finds; "" and its code when there is nothing. */
static int read_text(const char *directory, const struct cache_key *key, char text[64],
                     struct acre_error *err) {
    struct acre_buf binary;
    acre_buf_init(&binary, 1 << 20);
    int r = cache_read(directory, key, &binary, err);
    snprintf(text, 64, "%s", binary.data);
    acre_buf_finish(&binary);
    return r;
}

static void put(const char *directory, const struct cache_key *key, const char *text) {
    struct acre_error err = {0};
    int r = cache_write(directory, key, &base, text, strlen(text), &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
}

static void keys_depend_on_everything_but_the_name(void) { /* GPU-1 */
    struct cache_source others[6];
    for (size_t i = 0; i < ACRE_COUNT(others); i++) {
        others[i] = base;
    }
    others[0].text = ACRE_STR("kernel void g() {}");
    others[1].options = "-O3";
    others[2].backend = "cuda";
    others[3].identity = "OpenCL 3.0 pocl 3.2";
    others[4].options = "-O2k"; /* what one part ends with does not go over to the next */
    others[4].text = ACRE_STR("ernel void f() {}");
    others[5].options = NULL;
    struct cache_key key = key_of(&base);
    for (size_t i = 0; i < ACRE_COUNT(others); i++) {
        struct cache_key other = key_of(&others[i]);
        acre_test_context("%zu", i);
        CHECK(memcmp(&key, &other, sizeof(key)) != 0);
    }
    struct cache_source renamed = base;
    renamed.name = "other.c";
    struct cache_key same = key_of(&renamed);
    CHECK(memcmp(&key, &same, sizeof(key)) == 0);
}

static void what_is_kept_is_found(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    const char *directory = tree_path(&tree, "a/b/cache");
    struct cache_key key = key_of(&base);
    struct acre_error err = {0};
    struct stat info;
    char text[64];
    CHECK_EQ(read_text(directory, &key, text, &err), ACRE_ENOTFOUND);
    put(directory, &key, "compiled");
    REQUIRE(stat(directory, &info) == 0);
    CHECK_EQ(info.st_mode & 0777, 0700);
    CHECK_EQ(read_text(directory, &key, text, &err), 0);
    CHECK_STR(text, "compiled");
    put(directory, &key, "compiled again");
    CHECK_EQ(read_text(directory, &key, text, &err), 0);
    CHECK_STR(text, "compiled again");
    put(directory, &key, "");
    CHECK_EQ(read_text(directory, &key, text, &err), 0);
    cache_remove(directory, &key);
    CHECK_EQ(read_text(directory, &key, text, &err), ACRE_ENOTFOUND);
    tree_erase(&tree);
}

/* Where no compiler is left, what any of them made for this machine is found, and nothing else. */
static void programs_are_found_without_their_compiler(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    const char *directory = tree_path(&tree, "cache");
    struct cache_source made = base, wanted = base;
    struct cache_key found;
    struct acre_buf binary;
    acre_buf_init(&binary, 1 << 20);
    made.identity = "x86-64 1; compiler: gcc";
    made.machine = ACRE_STR("x86-64 1");
    wanted.identity = "x86-64 1; compiler: none";
    CHECK_EQ(cache_read_any(directory, &made, &found, &binary, NULL), ACRE_ENOTFOUND);
    struct cache_key key = key_of(&made);
    REQUIRE_EQ(cache_write(directory, &key, &made, "compiled", 8, NULL), 0);
    put(directory, &(struct cache_key){.bytes = {1}}, "good with its compiler only");
    CHECK_EQ(cache_read_any(directory, &wanted, &found, &binary, NULL), ACRE_ENOTFOUND);
    wanted.machine = ACRE_STR("x86-64 2");
    CHECK_EQ(cache_read_any(directory, &wanted, &found, &binary, NULL), ACRE_ENOTFOUND);
    wanted.machine = ACRE_STR("x86-64 1");
    CHECK_EQ(cache_read_any(directory, &wanted, &found, &binary, NULL), 0);
    CHECK_STR(binary.data, "compiled");
    CHECK(memcmp(&found, &key, sizeof(key)) == 0);
    wanted.options = "-O1";
    CHECK_EQ(cache_read_any(directory, &wanted, &found, &binary, NULL), ACRE_ENOTFOUND);
    acre_buf_finish(&binary);
    tree_erase(&tree);
}

/* --- damage --------------------------------------------------------------------------------- */

static void write_bytes(const char *path, const char *bytes, size_t length) {
    REQUIRE_EQ(acre_file_write(path, bytes, length, NULL), 0);
}

static void damage_is_found_wherever_it_is(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct acre_buf good;
    char text[64];
    acre_buf_init(&good, 1 << 20);
    put(tree.root, &key, "a program");
    const char *path = path_of(&tree, &key);
    REQUIRE_EQ(acre_file_read(path, 1 << 20, &good, NULL), 0);
    REQUIRE_EQ(good.length, CACHE_HEADER_BYTES + 9);
    for (size_t bit = 0; bit < good.length * 8; bit++) { /* each flipped in turn */
        char bad[CACHE_HEADER_BYTES + 9];
        struct acre_str binary;
        memcpy(bad, good.data, sizeof(bad));
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        acre_test_context("bit %zu", bit);
        CHECK_EQ(cache_entry_read((struct acre_str){bad, sizeof(bad)}, &key, NULL, &binary, NULL),
                 ACRE_ECORRUPT);
    }
    for (size_t length = 0; length < good.length; length++) { /* each length it may be cut to */
        struct acre_error err = {0};
        acre_test_context("cut to %zu", length);
        write_bytes(path, good.data, length);
        CHECK_EQ(read_text(tree.root, &key, text, &err), ACRE_ECORRUPT);
        CHECK(err.text[0] != '\0');
        CHECK(access(path, F_OK) != 0); /* removed */
        CHECK_EQ(read_text(tree.root, &key, text, &err), ACRE_ENOTFOUND);
    }
    char zeros[CACHE_HEADER_BYTES + 9] = {0};
    write_bytes(path, zeros, sizeof(zeros));
    CHECK_EQ(read_text(tree.root, &key, text, NULL), ACRE_ECORRUPT);
    struct cache_source other = base;
    other.options = "";
    struct cache_key moved = key_of(&other);
    write_bytes(path_of(&tree, &moved), good.data, good.length); /* under another's name */
    struct acre_error err = {0};
    CHECK_EQ(read_text(tree.root, &moved, text, &err), ACRE_ECORRUPT);
    CHECK_HAS(err.text, "for another program");
    put(tree.root, &key, "rebuilt");
    CHECK_EQ(read_text(tree.root, &key, text, NULL), 0);
    CHECK_STR(text, "rebuilt");
    acre_buf_finish(&good);
    tree_erase(&tree);
}

/* --- directories that cannot be used -------------------------------------------------------- */

static void a_file_in_its_place_is_told(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct acre_error err = {0};
    char text[64];
    struct acre_cache_entry *entries;
    uint32_t count;
    tree_put(&tree, "file", "x");
    const char *file = tree_path(&tree, "file");
    CHECK_EQ(read_text(file, &key, text, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "is not a directory");
    CHECK_EQ(cache_write(file, &key, &base, "x", 1, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "is not a directory");
    CHECK_EQ(acre_cache_list(file, &entries, &count, &err), ACRE_EINVALID);
    CHECK(cache_write(tree_path(&tree, "file/below"), &key, &base, "x", 1, &err) < 0);
    CHECK_HAS(err.text, "Not a directory");
    tree_erase(&tree);
}

static void a_directory_of_others_is_not_used(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct acre_error err = {0};
    char text[64];
    put(tree.root, &key, "mine");
    REQUIRE(chmod(tree.root, 0777) == 0);
    CHECK_EQ(read_text(tree.root, &key, text, &err), ACRE_EDENIED);
    CHECK_HAS(err.text, "is writable by other users");
    CHECK_EQ(cache_write(tree.root, &key, &base, "x", 1, &err), ACRE_EDENIED);
    REQUIRE(chmod(tree.root, 0700) == 0);
    if (geteuid() == 0) {
        REQUIRE(chown(tree.root, 12345, 12345) == 0);
        CHECK_EQ(read_text(tree.root, &key, text, &err), ACRE_EDENIED);
        CHECK_HAS(err.text, "belongs to another user");
    }
    tree_erase(&tree);
}

/* A small file system of our own, or the reason why not. */
static void mount_small(const char *at, const char *options) {
    /* In a name space of this test, so that nothing is left when it fails. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", at, "tmpfs", 0, options) != 0) {
        acre_test_skip("mount a tmpfs: %s", strerror(errno));
    }
}

static void a_full_disk_keeps_nothing_and_loses_nothing(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct cache_source other = base;
    other.options = "";
    struct cache_key large = key_of(&other);
    struct acre_error err = {0};
    char text[64];
    struct acre_cache_entry *entries = NULL;
    uint32_t count = 0;
    char *program = acre_calloc(1 << 20, 1);
    tree_make_directory(&tree, "small");
    const char *small = tree_path(&tree, "small");
    mount_small(small, "size=64k,mode=0700");
    put(small, &key, "small");
    int r = cache_write(small, &large, &base, program, 1 << 20, &err);
    CHECK_EQ(r, ACRE_EIO);
    CHECK_HAS(err.text, "No space left");
    CHECK_EQ(read_text(small, &key, text, NULL), 0);
    CHECK_STR(text, "small");
    CHECK_EQ(read_text(small, &large, text, NULL), ACRE_ENOTFOUND);
    REQUIRE_EQ(acre_cache_list(small, &entries, &count, NULL), 0);
    CHECK_EQ(count, 1);
    put(small, &key, "and goes on"); /* no half entry takes its room */
    free(entries);
    free(program);
    REQUIRE(umount(small) == 0);
    tree_erase(&tree);
}

static void a_read_only_disk_is_read(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct cache_source other = base;
    other.options = "";
    struct cache_key another = key_of(&other);
    struct acre_error err = {0};
    char text[64];
    tree_make_directory(&tree, "small");
    const char *small = tree_path(&tree, "small");
    mount_small(small, "size=64k,mode=0700");
    put(small, &key, "kept before");
    put(small, &another, "kept before, and damaged");
    char path[256];
    snprintf(path, sizeof(path), "small/%s", strrchr(path_of(&tree, &another), '/') + 1);
    REQUIRE(truncate(tree_path(&tree, path), 20) == 0);
    REQUIRE(mount(NULL, small, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK_EQ(read_text(small, &key, text, NULL), 0);
    CHECK_STR(text, "kept before");
    CHECK_EQ(read_text(small, &another, text, NULL), ACRE_ECORRUPT);
    CHECK(cache_write(small, &another, &base, "x", 1, &err) < 0);
    CHECK_HAS(err.text, "Read-only file system");
    REQUIRE(umount(small) == 0);
    tree_erase(&tree);
}

/* --- all of them ---------------------------------------------------------------------------- */

/* Entries of 1000 bytes, used at 1, 2, 3 ... seconds after 1970. */
static void put_many(const struct tree *tree, struct cache_key *keys, uint32_t count) {
    char program[1000 - CACHE_HEADER_BYTES];
    memset(program, 'p', sizeof(program));
    for (uint32_t i = 0; i < count; i++) {
        char options[16];
        snprintf(options, sizeof(options), "%u", i);
        struct cache_source source = base;
        source.options = options;
        keys[i] = key_of(&source);
        REQUIRE_EQ(cache_write(tree->root, &keys[i], &base, program, sizeof(program), NULL), 0);
        const struct timespec times[2] = {{.tv_sec = i + 1}, {.tv_sec = i + 1}};
        REQUIRE(utimensat(AT_FDCWD, path_of(tree, &keys[i]), times, 0) == 0);
    }
}

static void the_least_recently_used_go_first(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key keys[5];
    struct acre_cache_entry *entries = NULL;
    uint32_t count = 0;
    struct acre_cache_count removed;
    struct acre_buf binary;
    put_many(&tree, keys, ACRE_COUNT(keys));
    tree_put(&tree, "notes.txt", "not ours");
    tree_put(&tree, "0123.kernel", "not ours either");
    acre_buf_init(&binary, 4096);
    CHECK_EQ(cache_read(tree.root, &keys[0], &binary, NULL), 0); /* the oldest, used now */
    REQUIRE_EQ(acre_cache_list(tree.root, &entries, &count, NULL), 0);
    REQUIRE_EQ(count, 5);
    CHECK_STR(entries[0].file, strrchr(path_of(&tree, &keys[0]), '/') + 1);
    CHECK_STR(entries[1].file, strrchr(path_of(&tree, &keys[4]), '/') + 1);
    CHECK_STR(entries[4].file, strrchr(path_of(&tree, &keys[1]), '/') + 1);
    CHECK_U64(entries[4].used_ms, 2000);
    CHECK_U64(entries[4].bytes, 1000);
    CHECK_STR(entries[0].backend, "opencl");
    CHECK_STR(entries[0].name, "f.c");
    free(entries);
    REQUIRE_EQ(acre_cache_prune(tree.root, 5000, &removed, NULL), 0);
    CHECK_EQ(removed.entries, 0);
    REQUIRE_EQ(acre_cache_prune(tree.root, 2999, &removed, NULL), 0);
    CHECK_EQ(removed.entries, 3);
    CHECK_U64(removed.bytes, 3000);
    CHECK_EQ(cache_read(tree.root, &keys[0], &binary, NULL), 0);
    CHECK_EQ(cache_read(tree.root, &keys[4], &binary, NULL), 0);
    CHECK_EQ(cache_read(tree.root, &keys[3], &binary, NULL), ACRE_ENOTFOUND);
    tree_put(&tree, strrchr(path_of(&tree, &keys[3]), '/') + 1, ""); /* what a crash may leave */
    REQUIRE_EQ(acre_cache_clear(tree.root, &removed, NULL), 0);
    CHECK_EQ(removed.entries, 3);
    CHECK(access(tree_path(&tree, "notes.txt"), F_OK) == 0);
    CHECK(access(tree_path(&tree, "0123.kernel"), F_OK) == 0);
    acre_buf_finish(&binary);
    tree_erase(&tree);
}

static void what_writers_left_behind_goes_after_an_hour(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key key = key_of(&base);
    struct acre_cache_count removed;
    char old[160], fresh[160];
    const char *file = strrchr(path_of(&tree, &key), '/') + 1;
    snprintf(old, sizeof(old), "%s.0123456789abcdef.tmp", file);
    snprintf(fresh, sizeof(fresh), "%s.fedcba9876543210.tmp", file);
    tree_put(&tree, old, "half");
    tree_put(&tree, fresh, "half");
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    REQUIRE(utimensat(AT_FDCWD, tree_path(&tree, old), times, 0) == 0);
    REQUIRE_EQ(acre_cache_prune(tree.root, 1 << 20, &removed, NULL), 0);
    CHECK_EQ(removed.entries, 1);
    CHECK(access(tree_path(&tree, old), F_OK) != 0);
    CHECK(access(tree_path(&tree, fresh), F_OK) == 0);
    tree_erase(&tree);
}

static void verify_removes_what_is_damaged(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    struct cache_key keys[4];
    struct acre_cache_count count;
    struct acre_buf binary;
    put_many(&tree, keys, ACRE_COUNT(keys));
    REQUIRE(truncate(path_of(&tree, &keys[1]), 999) == 0);
    REQUIRE(truncate(path_of(&tree, &keys[2]), 0) == 0);
    REQUIRE_EQ(acre_cache_verify(tree.root, &count, NULL), 0);
    CHECK_EQ(count.entries, 4);
    CHECK_EQ(count.damaged, 2);
    CHECK_U64(count.bytes, 2999);
    REQUIRE_EQ(acre_cache_verify(tree.root, &count, NULL), 0);
    CHECK_EQ(count.entries, 2);
    CHECK_EQ(count.damaged, 0);
    acre_buf_init(&binary, 4096);
    CHECK_EQ(cache_read(tree.root, &keys[3], &binary, NULL), 0);
    acre_buf_finish(&binary);
    REQUIRE_EQ(acre_cache_verify(tree_path(&tree, "nowhere"), &count, NULL), 0);
    CHECK_EQ(count.entries, 0);
    tree_erase(&tree);
}

/* --- several processes ---------------------------------------------------------------------- */

enum { RACERS = 4, RACE_ROUNDS = 60, RACE_BYTES = 100000 };

/* Write, read and remove the same two entries; never see anything but a whole one. */
static int race(const char *directory, const struct cache_key *keys, uint64_t seed) {
    struct acre_rand rand;
    struct acre_buf binary;
    char *program = acre_calloc(RACE_BYTES, 1);
    int bad = 0;
    acre_rand_seed(&rand, seed);
    acre_buf_init(&binary, 2 * RACE_BYTES);
    for (int i = 0; i < RACE_ROUNDS; i++) {
        const struct cache_key *key = &keys[acre_rand_below(&rand, 2)];
        size_t length = 1 + acre_rand_below(&rand, RACE_BYTES - 1);
        memset(program, 'a' + (int)seed, length);
        bad += cache_write(directory, key, &base, program, length, NULL) != 0;
        acre_buf_clear(&binary);
        int r = cache_read(directory, key, &binary, NULL);
        bad += r != 0 && r != ACRE_ENOTFOUND;
        for (size_t j = 1; j < binary.length; j++) {
            bad += binary.data[j] != binary.data[0];
        }
        if (acre_rand_below(&rand, 8) == 0) {
            cache_remove(directory, key);
        }
    }
    acre_buf_finish(&binary);
    free(program);
    return bad;
}

static void processes_share_it(void) { /* GPU-1 */
    struct tree tree = tree_create(NULL);
    const char *directory = tree_path(&tree, "made/by/whoever/is/first");
    struct cache_source other = base;
    other.options = "";
    const struct cache_key keys[2] = {key_of(&base), key_of(&other)};
    pid_t racers[RACERS];
    struct acre_cache_count count;
    for (int i = 0; i < RACERS; i++) {
        racers[i] = fork();
        REQUIRE(racers[i] >= 0);
        if (racers[i] == 0) {
            _exit(race(directory, keys, (uint64_t)i) != 0);
        }
    }
    for (int i = 0; i < RACERS; i++) {
        int status = -1;
        REQUIRE(waitpid(racers[i], &status, 0) == racers[i]);
        CHECK_EQ(status, 0);
    }
    REQUIRE_EQ(acre_cache_verify(directory, &count, NULL), 0);
    CHECK_EQ(count.damaged, 0);
    CHECK(count.entries <= 2);
    tree_erase(&tree);
}

static void the_directory_is_below_the_users_own(void) {
    static const struct {
        const char *cache, *home, *expect;
    } rows[] = {
        {"/var/c", "/h", "/var/c/acre"},
        {NULL, "/h", "/h/.cache/acre"},
        {"", "/h", "/h/.cache/acre"},
        {"relative", "/h", "/h/.cache/acre"}, /* as the XDG rules say: not to be used */
    };
    char path[64];
    struct acre_error err = {0};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        unsetenv("XDG_CACHE_HOME");
        if (rows[i].cache != NULL) {
            setenv("XDG_CACHE_HOME", rows[i].cache, 1);
        }
        setenv("HOME", rows[i].home, 1);
        acre_test_context("%s", rows[i].expect);
        CHECK_EQ(acre_cache_directory(path, sizeof(path), &err), 0);
        CHECK_STR(path, rows[i].expect);
    }
    CHECK_EQ(acre_cache_directory(path, sizeof("/h/.cache/acre") - 1, &err), ACRE_ELIMIT);
    CHECK_EQ(acre_cache_directory(path, sizeof("/h/.cache/acre"), &err), 0);
}

static const struct acre_test tests[] = {
    {"the_directory_is_below_the_users_own", the_directory_is_below_the_users_own, 0},
    {"keys_depend_on_everything_but_the_name", keys_depend_on_everything_but_the_name, 0},
    {"what_is_kept_is_found", what_is_kept_is_found, 0},
    {"programs_are_found_without_their_compiler", programs_are_found_without_their_compiler, 0},
    {"damage_is_found_wherever_it_is", damage_is_found_wherever_it_is, 0},
    {"a_file_in_its_place_is_told", a_file_in_its_place_is_told, 0},
    {"a_directory_of_others_is_not_used", a_directory_of_others_is_not_used, 0},
    {"a_full_disk_keeps_nothing_and_loses_nothing", a_full_disk_keeps_nothing_and_loses_nothing, 0},
    {"a_read_only_disk_is_read", a_read_only_disk_is_read, 0},
    {"the_least_recently_used_go_first", the_least_recently_used_go_first, 0},
    {"what_writers_left_behind_goes_after_an_hour", what_writers_left_behind_goes_after_an_hour, 0},
    {"verify_removes_what_is_damaged", verify_removes_what_is_damaged, 0},
    {"processes_share_it", processes_share_it, 0},
};

ACRE_TEST_MAIN(tests)
