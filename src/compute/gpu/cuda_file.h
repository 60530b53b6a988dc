/* cuda_file.h - files to and from device memory by cuFile.
 *
 * Any thread; the memory's context must be current. */
#ifndef ACRE_COMPUTE_GPU_CUDA_FILE_H
#define ACRE_COMPUTE_GPU_CUDA_FILE_H

#include "compute/gpu/cufile_abi.h"
#include "core/error.h"

struct cuda_file {
    struct cufile_library library;
    bool is_loaded, is_open;
    char absent[160]; /* why not */
};

/* Load the library (nothing is started). On failure `absent` says why. */
void cuda_file_load(struct cuda_file *file);
/* Start it, once; the caller holds a lock. ACRE_EUNSUPPORTED with the reason. */
int cuda_file_open(struct cuda_file *file, struct acre_error *err);
/* As `transfer` of backend.h. ACRE_EIO: the file is too short, or cannot be read or written. */
int cuda_file_move(const struct cuda_file *file, const char *path, uint64_t file_offset,
                   uintptr_t address, uint64_t bytes, bool is_write, char *ret_how,
                   struct acre_error *err);

#endif
