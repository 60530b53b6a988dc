/* cache.h - the directory of compiled programs: list, verify, prune, clear.
 *
 * acre_program_build fills and reads the cache by itself; these functions only look after the
 * directory. Other processes may use it at the same time. Any thread. */
#ifndef ACRE_CACHE_H
#define ACRE_CACHE_H

#include <acre/acre.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_cache_entry {
    char file[80]; /* its name in the directory */
    char backend[16], name[48];
    uint64_t bytes;   /* size of the file */
    uint64_t used_ms; /* last use, in ms since 1970 */
};

struct acre_cache_count {
    uint32_t entries, damaged; /* damaged ones are removed */
    uint64_t bytes;
};

/* The default directory: $XDG_CACHE_HOME/acre or ~/.cache/acre.
 * ACRE_ENOTFOUND: no home directory; ACRE_ELIMIT: the path is longer than `size`. */
ACRE_API int acre_cache_directory(char *ret_path, size_t size, struct acre_error *err);
/* Most recently used first; the caller frees the list with free(). A missing directory has no
 * entries. */
ACRE_API int acre_cache_list(const char *directory, struct acre_cache_entry **ret_entries,
                             uint32_t *ret_count, struct acre_error *err);
/* Reads every entry and removes damaged ones. */
ACRE_API int acre_cache_verify(const char *directory, struct acre_cache_count *ret_checked,
                               struct acre_error *err);
/* Removes the least recently used entries until at most `limit_bytes` are left, and the temporary
 * files of writers that died. */
ACRE_API int acre_cache_prune(const char *directory, uint64_t limit_bytes,
                              struct acre_cache_count *ret_removed, struct acre_error *err);
/* Removes all entries. */
ACRE_API int acre_cache_clear(const char *directory, struct acre_cache_count *ret_removed,
                              struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
