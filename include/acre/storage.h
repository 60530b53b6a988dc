/* storage.h - files to and from buffers, by the most direct path.
 *
 * Where the driver and the file system support it, cuFile moves data between storage and device
 * without a copy in host memory. Elsewhere two pinned pieces take turns: one is read while the
 * other is copied. The results are the same; the report says which path was taken. The calls wait
 * for the end. */
#ifndef ACRE_STORAGE_H
#define ACRE_STORAGE_H

#include <acre/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

enum acre_storage_path { ACRE_STORAGE_AUTO, ACRE_STORAGE_DIRECT, ACRE_STORAGE_STAGED };

struct acre_storage_report {
    enum acre_storage_path path; /* the one taken */
    char how[96];                /* "cuFile", "cuFile (compatible)", "two pinned pieces" */
    char reason[160];            /* why not direct; "": it was */
    uint64_t bytes;
    double seconds;
};

/* `path` asks for a path; ACRE_EUNSUPPORTED: DIRECT was asked for and is not possible. ACRE_EIO:
 * the file is too short; the text says how long it is. The report may be NULL. */
ACRE_API int acre_storage_read(struct acre_stream *stream, const char *file, uint64_t file_offset,
                               struct acre_buffer to, uint64_t to_offset, uint64_t bytes,
                               enum acre_storage_path path, struct acre_storage_report *ret_report,
                               struct acre_error *err);
/* Creates the file if it does not exist, and removes it again if the write fails. Bytes of the file
 * outside the range stay as they are. */
ACRE_API int acre_storage_write(struct acre_stream *stream, const char *file, uint64_t file_offset,
                                struct acre_buffer from, uint64_t from_offset, uint64_t bytes,
                                enum acre_storage_path path, struct acre_storage_report *ret_report,
                                struct acre_error *err);

#ifdef __cplusplus
}
#endif

#endif
