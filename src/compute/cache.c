/* cache.c - entries of the disk cache.
 *
 * An entry is a header followed by the program. The checksum covers the whole file except itself,
 * so a flipped bit anywhere, a truncated file or a file of zeros (what a crash leaves of a file
 * that was not synced) is detected. The header contains the key, so a renamed entry is detected
 * too. Both use SHA-256: keys must not collide by accident or on purpose, and hashing a program of
 * a few hundred KiB takes less than a millisecond.
 *
 * The file's modification time says when an entry was last used: reading sets it. On a file system
 * mounted noatime or read-only, only the order of pruning changes. */
#include "compute/cache.h"

#include "core/clock.h"
#include "core/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT = 1, ABANDONED_MS = 60 * 60 * 1000, PATH_SHOWN = 100, ORIGIN_BYTES = 24 };

static const char suffix[] = ".kernel"; /* of an entry's file, after its key in hexadecimal */
static const char magic[8] = {'A', 'C', 'R', 'E', 'K', 'E', 'R', 'N'};

struct cache_header {
    char magic[8];
    uint32_t format, header_bytes;
    uint8_t key[CACHE_KEY_BYTES];
    uint64_t length; /* of the program */
    char backend[16], name[48];
    uint8_t origin[ORIGIN_BYTES]; /* hash of all but the compiler; zeros: not good without it */
    uint8_t checksum[CACHE_KEY_BYTES];
};
_Static_assert(sizeof(struct cache_header) == CACHE_HEADER_BYTES, "it is on disk");
_Static_assert(offsetof(struct cache_header, checksum) == CACHE_HEADER_BYTES - CACHE_KEY_BYTES,
               "the checksum covers what is before and after it");

/* --- hashing -------------------------------------------------------------------------------- */

static int hash(const struct acre_str *parts, size_t count, uint8_t ret_hash[CACHE_KEY_BYTES],
                struct acre_error *err) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < count && ok; i++) {
        ok = EVP_DigestUpdate(context, parts[i].data, parts[i].length) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(context, ret_hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok ? 0 : acre_fail(err, ACRE_EINTERNAL, "libcrypto: SHA-256 failed");
}

static int hash_source(const struct cache_source *source, struct acre_str identity,
                       uint8_t ret_hash[CACHE_KEY_BYTES], struct acre_error *err) {
    const struct acre_str parts[] = {acre_str_from(source->backend), identity,
                                     acre_str_from(source->options), source->text};
    uint64_t lengths[ACRE_COUNT(parts) + 1] = {FORMAT};
    struct acre_str all[ACRE_COUNT(parts) + 1] = {{(const char *)lengths, sizeof(lengths)}};
    for (size_t i = 0; i < ACRE_COUNT(parts); i++) {
        lengths[i + 1] = parts[i].length; /* so that "ab" "c" is not "a" "bc" */
        all[i + 1] = parts[i];
    }
    return hash(all, ACRE_COUNT(all), ret_hash, err);
}

int cache_key_of(const struct cache_source *source, struct cache_key *ret_key,
                 struct acre_error *err) {
    return hash_source(source, acre_str_from(source->identity), ret_key->bytes, err);
}

static int origin_of(const struct cache_source *source, uint8_t ret_origin[ORIGIN_BYTES],
                     struct acre_error *err) {
    uint8_t whole[CACHE_KEY_BYTES] = {0};
    int r = source->machine.length > 0 ? hash_source(source, source->machine, whole, err) : 0;
    memcpy(ret_origin, whole, ORIGIN_BYTES);
    return r;
}

static int checksum(const struct cache_header *header, struct acre_str binary,
                    uint8_t ret_checksum[CACHE_KEY_BYTES], struct acre_error *err) {
    const struct acre_str parts[] = {
        {(const char *)header, offsetof(struct cache_header, checksum)}, binary};
    return hash(parts, ACRE_COUNT(parts), ret_checksum, err);
}

/* --- entries -------------------------------------------------------------------------------- */

int cache_entry_read(struct acre_str bytes, const struct cache_key *key,
                     struct acre_cache_entry *ret_entry, struct acre_str *ret_binary,
                     struct acre_error *err) {
    struct cache_header header;
    uint8_t sum[CACHE_KEY_BYTES];
    if (bytes.length < sizeof(header)) {
        return acre_fail(err, ACRE_ECORRUPT, "a file of %zu bytes is too short for a cache entry",
                         bytes.length);
    }
    memcpy(&header, bytes.data, sizeof(header));
    struct acre_str binary = {bytes.data + sizeof(header), bytes.length - sizeof(header)};
    if (memcmp(header.magic, magic, sizeof(magic)) != 0 || header.format != FORMAT ||
        header.header_bytes != sizeof(header)) {
        return acre_fail(err, ACRE_ECORRUPT, "not a cache entry of this format");
    }
    if (header.length != binary.length) {
        return acre_fail(err, ACRE_ECORRUPT, "the program has %zu bytes; its header says %llu",
                         binary.length, (unsigned long long)header.length);
    }
    if (key != NULL && memcmp(key->bytes, header.key, sizeof(header.key)) != 0) {
        return acre_fail(err, ACRE_ECORRUPT, "the entry is for another program");
    }
    int r = checksum(&header, binary, sum, err);
    if (r < 0) {
        return r;
    }
    if (memcmp(sum, header.checksum, sizeof(sum)) != 0) {
        return acre_fail(err, ACRE_ECORRUPT, "the checksum does not match");
    }
    if (ret_entry != NULL) {
        snprintf(ret_entry->backend, sizeof(ret_entry->backend), "%.*s",
                 (int)sizeof(header.backend) - 1, header.backend);
        snprintf(ret_entry->name, sizeof(ret_entry->name), "%.*s", (int)sizeof(header.name) - 1,
                 header.name);
    }
    *ret_binary = binary;
    return 0;
}

static void file_of(const struct cache_key *key, char file[CACHE_FILE_MAX]) {
    size_t length = 0;
    for (size_t i = 0; i < CACHE_KEY_BYTES; i++) {
        length += (size_t)snprintf(file + length, CACHE_FILE_MAX - length, "%02x", key->bytes[i]);
    }
    snprintf(file + length, CACHE_FILE_MAX - length, "%s", suffix);
}

/* <64 hexadecimal digits>.kernel, and what acre_file_write makes of it while it writes. */
static bool is_entry_name(const char *name, bool *ret_is_temporary) {
    size_t digits = strspn(name, "0123456789abcdef");
    if (digits != 2 * CACHE_KEY_BYTES || strncmp(name + digits, suffix, strlen(suffix)) != 0) {
        return false;
    }
    const char *rest = name + digits + strlen(suffix);
    size_t length = strlen(rest);
    *ret_is_temporary = length > 4 && rest[0] == '.' && strcmp(rest + length - 4, ".tmp") == 0;
    return length == 0 || *ret_is_temporary;
}

static int join(const char *directory, const char *file, char path[PATH_MAX],
                struct acre_error *err) {
    int length = snprintf(path, PATH_MAX, "%s/%s", directory, file);
    return length < PATH_MAX ? 0 : acre_fail_errno(err, ENAMETOOLONG, "the cache directory");
}

/* --- the directory -------------------------------------------------------------------------- */

/* mkdir -p, all of them for this user alone. */
static int make_directory(const char *directory, struct acre_error *err) {
    char path[PATH_MAX], shown[PATH_SHOWN];
    acre_str_show(acre_str_from(directory), shown, sizeof(shown));
    if (!acre_str_copy(path, sizeof(path), acre_str_from(directory))) {
        return acre_fail_errno(err, ENAMETOOLONG, "%s", shown);
    }
    for (size_t at = 1; path[at] != '\0'; at++) {
        if (path[at] == '/') {
            path[at] = '\0';
            mkdir(path, 0700); /* what cannot be made is told by the last */
            path[at] = '/';
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : acre_fail_errno(err, errno, "%s", shown);
}

/* Nobody else may put code here. ACRE_ENOTFOUND: it is not there. */
static int check_directory(const char *directory, struct acre_error *err) {
    char shown[PATH_SHOWN];
    struct stat info;
    acre_str_show(acre_str_from(directory), shown, sizeof(shown));
    if (stat(directory, &info) != 0) {
        return acre_fail_errno(err, errno, "%s", shown);
    }
    if (!S_ISDIR(info.st_mode)) {
        return acre_fail(err, ACRE_EINVALID, "%s is not a directory", shown);
    }
    if (info.st_uid != geteuid()) {
        return acre_fail(err, ACRE_EDENIED, "%s belongs to another user", shown);
    }
    if ((info.st_mode & 022) != 0) {
        return acre_fail(err, ACRE_EDENIED, "%s is writable by other users", shown);
    }
    return 0;
}

/* --- one program ---------------------------------------------------------------------------- */

static int read_entry(const char *path, const struct cache_key *key, struct acre_buf *file,
                      struct acre_cache_entry *ret_entry, struct acre_str *ret_binary,
                      struct acre_error *err) {
    int r = acre_file_read(path, CACHE_ENTRY_MAX_BYTES, file, err);
    return r == 0 ? cache_entry_read((struct acre_str){file->data, file->length}, key, ret_entry,
                                     ret_binary, err)
                  : r;
}

int cache_read(const char *directory, const struct cache_key *key, struct acre_buf *binary,
               struct acre_error *err) {
    char file[CACHE_FILE_MAX], path[PATH_MAX];
    struct acre_buf bytes;
    struct acre_str found;
    file_of(key, file);
    int r = check_directory(directory, err);
    r = r == 0 ? join(directory, file, path, err) : r;
    if (r < 0) {
        return r;
    }
    acre_buf_init(&bytes, CACHE_ENTRY_MAX_BYTES);
    r = read_entry(path, key, &bytes, NULL, &found, err);
    if (r == 0 && acre_buf_append(binary, found.data, found.length) < 0) {
        r = acre_fail(err, ACRE_ELIMIT, "the cached program is too long");
    }
    if (r == 0) {
        utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    } else if (r == ACRE_ECORRUPT || r == ACRE_ELIMIT) {
        unlink(path); /* it will never be read: make room for a good one */
    }
    acre_buf_finish(&bytes);
    return r;
}

int cache_write(const char *directory, const struct cache_key *key,
                const struct cache_source *source, const void *binary, size_t length,
                struct acre_error *err) {
    char file[CACHE_FILE_MAX], path[PATH_MAX];
    struct cache_header header = {
        .format = FORMAT, .header_bytes = sizeof(header), .length = length};
    memcpy(header.magic, magic, sizeof(magic));
    memcpy(header.key, key->bytes, sizeof(header.key));
    snprintf(header.backend, sizeof(header.backend), "%s", source->backend);
    acre_str_show(acre_str_from(source->name), header.name, sizeof(header.name));
    file_of(key, file);
    int r = origin_of(source, header.origin, err);
    r = r == 0 ? make_directory(directory, err) : r;
    r = r == 0 ? check_directory(directory, err) : r;
    r = r == 0 ? join(directory, file, path, err) : r;
    r = r == 0 ? checksum(&header, (struct acre_str){binary, length}, header.checksum, err) : r;
    if (r == 0 && length > CACHE_ENTRY_MAX_BYTES - sizeof(header)) {
        r = acre_fail(err, ACRE_ELIMIT, "a program of %zu bytes is too large to cache", length);
    }
    if (r < 0) {
        return r;
    }
    struct acre_buf bytes;
    acre_buf_init(&bytes, sizeof(header) + length);
    acre_buf_reserve(&bytes, sizeof(header) + length);
    acre_buf_append(&bytes, &header, sizeof(header));
    acre_buf_append(&bytes, binary, length);
    r = acre_file_write(path, bytes.data, bytes.length, err);
    acre_buf_finish(&bytes);
    struct acre_cache_count removed;
    return r == 0 ? acre_cache_prune(directory, CACHE_LIMIT_BYTES, &removed, err) : r;
}

void cache_remove(const char *directory, const struct cache_key *key) {
    char file[CACHE_FILE_MAX], path[PATH_MAX];
    file_of(key, file);
    if (join(directory, file, path, NULL) == 0) {
        unlink(path);
    }
}

/* --- all of them ---------------------------------------------------------------------------- */

struct cache_listing {
    struct acre_cache_entry *entries;
    uint32_t count, capacity;
    struct acre_cache_count
        abandoned; /* temporary files of writers that died, removed on the way */
};

static int compare_used(const void *a, const void *b) {
    const struct acre_cache_entry *left = a, *right = b;
    return left->used_ms != right->used_ms ? (left->used_ms < right->used_ms ? 1 : -1)
                                           : strcmp(left->file, right->file);
}

static int add_entry(struct cache_listing *listing, const char *file, const struct stat *info,
                     struct acre_error *err) {
    if (listing->count == listing->capacity) {
        uint32_t capacity = ACRE_MAX(listing->capacity * 2, 64U);
        struct acre_cache_entry *entries = realloc(listing->entries, capacity * sizeof(*entries));
        if (entries == NULL) {
            return acre_fail(err, ACRE_ENOMEM, "list of cached programs");
        }
        listing->entries = entries;
        listing->capacity = capacity;
    }
    struct acre_cache_entry *entry = &listing->entries[listing->count++];
    *entry = (struct acre_cache_entry){.bytes = (uint64_t)info->st_size,
                                       .used_ms = (uint64_t)info->st_mtim.tv_sec * 1000 +
                                                  (uint64_t)info->st_mtim.tv_nsec / 1000000};
    snprintf(entry->file, sizeof(entry->file), "%s", file);
    return 0;
}

/* Files that are not ours are not touched. */
static int scan_file(DIR *stream, const char *file, bool sweep, struct cache_listing *listing,
                     struct acre_error *err) {
    bool is_temporary;
    struct stat info;
    if (!is_entry_name(file, &is_temporary) ||
        fstatat(dirfd(stream), file, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return 0;
    }
    if (!is_temporary) {
        return add_entry(listing, file, &info, err);
    }
    struct acre_clock clock = acre_clock_real();
    uint64_t written_ms = (uint64_t)info.st_mtim.tv_sec * 1000;
    if (sweep && written_ms + ABANDONED_MS < acre_clock_wall_ms(&clock) &&
        unlinkat(dirfd(stream), file, 0) == 0) {
        listing->abandoned.entries++;
        listing->abandoned.bytes += (uint64_t)info.st_size;
    }
    return 0;
}

static int scan(const char *directory, bool sweep, struct cache_listing *ret_listing,
                struct acre_error *err) {
    struct cache_listing listing = {0};
    int r = check_directory(directory, err);
    if (r < 0) {
        *ret_listing = listing;
        return r == ACRE_ENOTFOUND ? 0 : r;
    }
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        char shown[PATH_SHOWN];
        return acre_fail_errno(err, errno, "%s",
                               acre_str_show(acre_str_from(directory), shown, sizeof(shown)));
    }
    const struct dirent *file;
    while (r == 0 && (file = readdir(stream)) != NULL) {
        r = scan_file(stream, file->d_name, sweep, &listing, err);
    }
    closedir(stream);
    if (r < 0) {
        free(listing.entries);
        return r;
    }
    if (listing.count > 1) {
        qsort(listing.entries, listing.count, sizeof(*listing.entries), compare_used);
    }
    *ret_listing = listing;
    return 0;
}

/* The header alone, unchecked. False: it is none. */
static bool read_header(const char *directory, const char *file, struct cache_header *ret_header) {
    char path[PATH_MAX];
    int fd = join(directory, file, path, NULL) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_read = fd >= 0 &&
                   read(fd, ret_header, sizeof(*ret_header)) == (ssize_t)sizeof(*ret_header) &&
                   memcmp(ret_header->magic, magic, sizeof(magic)) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is_read;
}

/* Names of back end and source; "" when it is no entry. */
static void read_names(const char *directory, struct acre_cache_entry *entry) {
    struct cache_header header;
    if (read_header(directory, entry->file, &header)) {
        header.backend[sizeof(header.backend) - 1] = header.name[sizeof(header.name) - 1] = '\0';
        acre_str_show_text(acre_str_from(header.backend), entry->backend, sizeof(entry->backend));
        acre_str_show_text(acre_str_from(header.name), entry->name, sizeof(entry->name));
    }
}

int cache_read_any(const char *directory, const struct cache_source *source,
                   struct cache_key *ret_key, struct acre_buf *binary, struct acre_error *err) {
    struct cache_listing listing;
    uint8_t origin[ORIGIN_BYTES];
    int r = origin_of(source, origin, err);
    r = r == 0 ? scan(directory, false, &listing, err) : r;
    if (r < 0) {
        return r;
    }
    r = ACRE_ENOTFOUND;
    for (uint32_t i = 0; i < listing.count && r < 0 && source->machine.length > 0; i++) {
        struct cache_header header;
        if (read_header(directory, listing.entries[i].file, &header) &&
            memcmp(header.origin, origin, sizeof(origin)) == 0) {
            memcpy(ret_key->bytes, header.key, sizeof(header.key));
            r = cache_read(directory, ret_key, binary, NULL); /* whether the header is true */
        }
    }
    free(listing.entries);
    return r == 0 ? 0
                  : acre_fail(err, ACRE_ENOTFOUND,
                              "the cache has no version of this program for this machine");
}

int acre_cache_list(const char *directory, struct acre_cache_entry **ret_entries,
                    uint32_t *ret_count, struct acre_error *err) {
    struct cache_listing listing;
    int r = scan(directory, false, &listing, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < listing.count; i++) {
        read_names(directory, &listing.entries[i]);
    }
    *ret_entries = listing.entries;
    *ret_count = listing.count;
    return 0;
}

int acre_cache_verify(const char *directory, struct acre_cache_count *ret_checked,
                      struct acre_error *err) {
    struct cache_listing listing;
    struct acre_cache_count count = {0};
    int r = scan(directory, false, &listing, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < listing.count; i++) {
        char path[PATH_MAX];
        struct acre_buf bytes;
        struct acre_str binary;
        acre_buf_init(&bytes, CACHE_ENTRY_MAX_BYTES);
        r = join(directory, listing.entries[i].file, path, NULL);
        r = r == 0 ? read_entry(path, NULL, &bytes, NULL, &binary, NULL) : r;
        count.entries += r != ACRE_ENOTFOUND; /* else somebody removed it meanwhile */
        count.bytes += r != ACRE_ENOTFOUND ? listing.entries[i].bytes : 0;
        if ((r == ACRE_ECORRUPT || r == ACRE_ELIMIT) && unlink(path) == 0) {
            count.damaged++;
        }
        acre_buf_finish(&bytes);
    }
    free(listing.entries);
    *ret_checked = count;
    return 0;
}

int acre_cache_prune(const char *directory, uint64_t limit_bytes,
                     struct acre_cache_count *ret_removed, struct acre_error *err) {
    struct cache_listing listing;
    int r = scan(directory, true, &listing, err);
    if (r < 0) {
        return r;
    }
    struct acre_cache_count removed = listing.abandoned;
    uint64_t kept = 0;
    bool is_full = false; /* all that were used before the first that does not fit go */
    for (uint32_t i = 0; i < listing.count; i++) {
        const struct acre_cache_entry *entry = &listing.entries[i];
        char path[PATH_MAX];
        is_full |= limit_bytes == 0 || entry->bytes > limit_bytes - kept; /* empty files too */
        if (!is_full) {
            kept += entry->bytes;
        } else if (join(directory, entry->file, path, NULL) == 0 && unlink(path) == 0) {
            removed.entries++;
            removed.bytes += entry->bytes;
        }
    }
    free(listing.entries);
    *ret_removed = removed;
    return 0;
}

int acre_cache_clear(const char *directory, struct acre_cache_count *ret_removed,
                     struct acre_error *err) {
    return acre_cache_prune(directory, 0, ret_removed, err);
}
