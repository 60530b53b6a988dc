/* cache.h - the directory of compiled programs: what is in it, and tidying up.
 *
 * Programs are kept by themselves (acre_program_build); nothing here is needed for that. Other
 * processes may use the directory at the same time. Any thread. */
#ifndef ACRE_CACHE_H
#define ACRE_CACHE_H

#include <acre/acre.h>

#ifdef __cplusplus
extern "C" {
#endif

struct acre_cache_entry {
    char file[80]; /* name in the directory */
    char backend[16], name[48];
    uint64_t bytes;   /* of the file */
    uint64_t used_ms; /* last time, since 1970 */
};

struct acre_cache_count {
    uint32_t entries, damaged; /* damaged: removed */
    uint64_t bytes;
};

/* Where programs are kept when nothing else is said: $XDG_CACHE_HOME/acre or ~/.cache/acre.
 * ACRE_ENOTFOUND: there is no home; ACRE_ELIMIT: longer than `size`. */
ACRE_API int acre_cache_directory(char *ret_path, size_t size, struct acre_error *err);
/* Most recently used first; free() it. A directory that is not there has no entries. */
ACRE_API int acre_cache_list(const char *directory, struct acre_cache_entry **ret_entries,
                             uint32_t *ret_count, struct acre_error *err);
/* Read all, remove what is damaged. */
ACRE_API int acre_cache_verify(const char *directory, struct acre_cache_count *ret_checked,
                               struct acre_error *err);
/* Remove the least recently used until all is at most `limit_bytes`, and what writers that died
 * left behind. */
ACRE_API int acre_cache_prune(const char *directory, uint64_t limit_bytes,
                              struct acre_cache_count *ret_removed, struct acre_error *err);
ACRE_API int acre_cache_clear(const char *directory, struct acre_cache_count *ret_removed,
                              struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
