/* cache.h - compiled programs on disk, by everything they depend on.
 *
 * One file for each, named by its key. An entry is written to a temporary file and renamed, so that
 * readers in any process see all of it or nothing, and it has a checksum, so that damage on disk is
 * noticed. A cache that cannot be used only costs the caching: no caller fails because of it.
 *
 * Entries are code that will run, so a directory that others may write to, or that belongs to
 * another user, is not used. Any thread, any number of processes. It compiles nothing. The
 * functions that list and remove entries are public (acre/cache.h). */
#ifndef ACRE_COMPUTE_CACHE_H
#define ACRE_COMPUTE_CACHE_H

#include "core/buf.h"
#include "core/str.h"

#include <acre/cache.h>

enum {
    CACHE_KEY_BYTES = 32,
    CACHE_FILE_MAX = sizeof(((struct acre_cache_entry *)0)->file),
    CACHE_ENTRY_MAX_BYTES = 256 << 20, /* no compiled program comes near it */
    CACHE_HEADER_BYTES = 176,
};
#define CACHE_LIMIT_BYTES (UINT64_C(1) << 30) /* what writing prunes to */

struct cache_key {
    uint8_t bytes[CACHE_KEY_BYTES];
};

/* What a compiled program is made of. */
struct cache_source {
    struct acre_str text; /* as the compiler gets it */
    const char *options;
    const char *backend;
    const char *identity; /* of the device: architecture, compiler, driver */
    /* The identity less the compiler, where programs are good without the one that made them;
     * "": they are not. Not part of the key. */
    struct acre_str machine;
    const char *name; /* for people only: not part of the key */
};

/* ACRE_EINTERNAL: the library that hashes failed. */
int cache_key_of(const struct cache_source *source, struct cache_key *ret_key,
                 struct acre_error *err);
/* Append the compiled program. ACRE_ENOTFOUND: there is none; ACRE_ECORRUPT: it was damaged, and is
 * removed; ACRE_EDENIED, ACRE_EIO ...: the directory cannot be used. */
int cache_read(const char *directory, const struct cache_key *key, struct acre_buf *binary,
               struct acre_error *err);
/* The same where no compiler is here now: what any of them made of this source for this machine,
 * the one that was used last. `ret_key` is its key. */
int cache_read_any(const char *directory, const struct cache_source *source,
                   struct cache_key *ret_key, struct acre_buf *binary, struct acre_error *err);
/* The directory is made when it is missing. Entries that were used least recently go when all would
 * be more than CACHE_LIMIT_BYTES. */
int cache_write(const char *directory, const struct cache_key *key,
                const struct cache_source *source, const void *binary, size_t length,
                struct acre_error *err);
/* The entry is of no use (a driver refused it). */
void cache_remove(const char *directory, const struct cache_key *key);

/* An entry's bytes, checked: the program in it. `key` NULL: any. ACRE_ECORRUPT says what is wrong.
 * Pure. */
int cache_entry_read(struct acre_str bytes, const struct cache_key *key,
                     struct acre_cache_entry *ret_entry, struct acre_str *ret_binary,
                     struct acre_error *err);

#endif
