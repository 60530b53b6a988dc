/* cuda_file.c - cuFile: the driver moves blocks between a file and the device.
 *
 * With the nvidia-fs module it does so without host memory; without it, it reads into its own
 * pinned memory and copies ("compatible"). /proc shows whether the module is loaded. The library
 * and its driver start at the first transfer: that takes tens of milliseconds, which programs that
 * read no files should not pay.
 *
 * A file is opened with O_DIRECT if offset and size are whole blocks, and normally otherwise or if
 * the file system refuses. The memory is not registered with cuFile: a region belongs to the pool
 * and outlives transfers, and registering costs more than one transfer gains. */
#include "compute/gpu/cuda_file.h"

#include "core/dl.h"
#include "core/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096, PIECE_BYTES = 1 << 30, HOW_BYTES = 96 };

static const struct acre_dl_symbol symbols[] = {
#define X(required, result, member, symbol, arguments)                                             \
    {(symbol), offsetof(struct cufile_library, member), (required)},
    CUFILE_SYMBOLS(X)
#undef X
};

void cuda_file_load(struct cuda_file *file) {
    static const char soname[] = "libcufile.so.0";
    char at_home[512] = "";
    const char *home = getenv("CUDA_HOME");
    snprintf(at_home, sizeof(at_home), "%s/lib64/%s", home != NULL ? home : "/usr/local/cuda",
             soname);
    const char *const sonames[] = {soname, at_home, "/usr/local/cuda/lib64/libcufile.so.0", NULL};
    struct acre_error said = {0};
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), &file->library, NULL, &said);
    file->is_loaded = r == 0;
    snprintf(file->absent, sizeof(file->absent), "%s",
             r == ACRE_EUNAVAILABLE ? "cuFile (libcufile.so.0) is not installed" : said.text);
}

int cuda_file_open(struct cuda_file *file, struct acre_error *err) {
    if (!file->is_loaded) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "%s", file->absent);
    }
    if (!file->is_open) {
        struct cufile_error error = file->library.driver_open();
        if (error.code != 0) {
            return acre_fail(err, ACRE_EUNSUPPORTED, "cuFileDriverOpen: error %d (CUDA error %d)",
                             error.code, error.cuda);
        }
        file->is_open = true;
    }
    return 0;
}

static int open_file(const char *path, bool is_direct, bool is_write, int *ret_fd,
                     struct acre_error *err) {
    int flags = O_CLOEXEC | (is_write ? O_RDWR | O_CREAT : O_RDONLY);
    int fd = -1;
    if (is_direct) {
        fd = open(path, flags | O_DIRECT, 0666);
    }
    if (fd < 0) {
        fd = open(path, flags, 0666);
    }
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    *ret_fd = fd;
    return 0;
}

/* Regular files only, and long enough to read from. */
static int check_file(int fd, const char *path, uint64_t offset, uint64_t bytes, bool is_write,
                      struct acre_error *err) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "%s is not a regular file", path);
    }
    uint64_t length = (uint64_t)status.st_size;
    if (!is_write && S_ISREG(status.st_mode) && (offset > length || bytes > length - offset)) {
        return acre_fail(err, ACRE_EIO,
                         "%s has %" PRIu64 " bytes; %" PRIu64 " bytes from offset %" PRIu64
                         " were requested",
                         path, length, bytes, offset);
    }
    return 0;
}

static int move_all(const struct cuda_file *file, void *handle, const char *path, uint64_t offset,
                    uintptr_t address, uint64_t bytes, bool is_write, struct acre_error *err) {
    uint64_t done = 0;
    while (done < bytes) {
        size_t piece = (size_t)ACRE_MIN(bytes - done, (uint64_t)PIECE_BYTES);
        void *memory = (void *)(address + (uintptr_t)done);
        off_t at = (off_t)(offset + done);
        ssize_t moved = is_write ? file->library.write(handle, memory, piece, at, 0)
                                 : file->library.read(handle, memory, piece, at, 0);
        if (moved == -1) {
            return acre_fail_errno(err, errno, "%s: %s", is_write ? "cuFileWrite" : "cuFileRead",
                                   path);
        }
        if (moved <= 0) {
            return acre_fail(err, ACRE_EIO, "%s: %s: error %zd after %" PRIu64 " bytes",
                             is_write ? "cuFileWrite" : "cuFileRead", path, -moved, done);
        }
        done += (uint64_t)moved;
    }
    return 0;
}

int cuda_file_move(const struct cuda_file *file, const char *path, uint64_t offset,
                   uintptr_t address, uint64_t bytes, bool is_write, char *ret_how,
                   struct acre_error *err) {
    bool is_direct = (offset | bytes | address) % BLOCK_BYTES == 0;
    int fd = -1;
    if (offset > INT64_MAX || bytes > INT64_MAX - offset) {
        return acre_fail(err, ACRE_EINVALID, "%s: no file has an offset of %" PRIu64, path, offset);
    }
    int r = open_file(path, is_direct, is_write, &fd, err);
    if (r < 0) {
        return r;
    }
    r = check_file(fd, path, offset, bytes, is_write, err);
    if (r == 0) {
        void *handle = NULL;
        struct cufile_file descriptor = {.type = CUFILE_HANDLE_FD, .fd = fd};
        struct cufile_error error = file->library.enlist(&handle, &descriptor);
        if (error.code != 0) {
            r = acre_fail(err, ACRE_EUNSUPPORTED,
                          "cuFileHandleRegister: %s: error %d (CUDA error %d)", path, error.code,
                          error.cuda);
        } else {
            r = move_all(file, handle, path, offset, address, bytes, is_write, err);
            file->library.drop(handle);
        }
    }
    close(fd);
    if (r == 0) {
        bool has_module = access("/proc/driver/nvidia-fs/stats", F_OK) == 0;
        snprintf(ret_how, HOW_BYTES, "%s", has_module ? "cuFile" : "cuFile (compatible)");
    }
    return r;
}
