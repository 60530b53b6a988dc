/* storage.h - files to and from buffers, by the shortest way there is.
 *
 * cuFile moves data between storage and device without a copy in host memory where driver and
 * file system can; elsewhere two pinned pieces take turns (one is read while the other is copied).
 * Same results; the report says which way it went. Waits for the end. */
#ifndef ACRE_STORAGE_H
#define ACRE_STORAGE_H

#include <acre/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

enum acre_storage_path { ACRE_STORAGE_AUTO, ACRE_STORAGE_DIRECT, ACRE_STORAGE_STAGED };

struct acre_storage_report {
    enum acre_storage_path path; /* taken */
    char how[96];                /* "cuFile", "cuFile (compatible)", "two pinned pieces" */
    char reason[160];            /* why not direct; "" */
    uint64_t bytes;
    double seconds;
};

/* `path` asks for a way; ACRE_EUNSUPPORTED when DIRECT is asked for and there is none. A file
 * that is too short is ACRE_EIO, and says how long it is. The report may be NULL. */
ACRE_API int acre_storage_read(struct acre_stream *stream, const char *file, uint64_t file_offset,
                               struct acre_buffer to, uint64_t to_offset, uint64_t bytes,
                               enum acre_storage_path path, struct acre_storage_report *ret_report,
                               struct acre_error *err);
/* The file is made where there is none, and removed again when that fails; what it has before and
 * behind those bytes stays. */
ACRE_API int acre_storage_write(struct acre_stream *stream, const char *file, uint64_t file_offset,
                                struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
                                enum acre_storage_path path, struct acre_storage_report *ret_report,
                                struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
