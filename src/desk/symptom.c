/* symptom.c - a table of words and a search for each. Failures are rare, and the text is short. */
#include "desk/symptom.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const struct {
    const char *words;
    enum acre_exit_kind kind;
} symptoms[] = {
    {"CUDA out of memory",                   ACRE_EXIT_OUT_OF_MEMORY}, /* PyTorch */
    {"HIP out of memory",                    ACRE_EXIT_OUT_OF_MEMORY},
    {"CUDA_ERROR_OUT_OF_MEMORY",             ACRE_EXIT_OUT_OF_MEMORY}, /* driver API, TensorFlow */
    {"cudaErrorMemoryAllocation",            ACRE_EXIT_OUT_OF_MEMORY}, /* runtime API */
    {"CUBLAS_STATUS_ALLOC_FAILED",           ACRE_EXIT_OUT_OF_MEMORY},
    {"CUDNN_STATUS_ALLOC_FAILED",            ACRE_EXIT_OUT_OF_MEMORY},
    {"hipErrorOutOfMemory",                  ACRE_EXIT_OUT_OF_MEMORY},
    {"RESOURCE_EXHAUSTED: Out of memory",    ACRE_EXIT_OUT_OF_MEMORY}, /* JAX, XLA */
    {"CL_MEM_OBJECT_ALLOCATION_FAILURE",     ACRE_EXIT_OUT_OF_MEMORY},
    {"CUDA-capable device(s) is/are busy",   ACRE_EXIT_DEVICE_BUSY},   /* runtime API */
    {"devices are busy or unavailable",      ACRE_EXIT_DEVICE_BUSY},
    {"CUDA_ERROR_DEVICE_UNAVAILABLE",        ACRE_EXIT_DEVICE_BUSY},
    {"cudaErrorDevicesUnavailable",          ACRE_EXIT_DEVICE_BUSY},
    {"CUDA_ERROR_MPS_SERVER_NOT_READY",      ACRE_EXIT_DEVICE_BUSY},
    {"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",   ACRE_EXIT_DEVICE_BUSY},
};
/* clang-format on */

enum acre_exit_kind symptom_of(struct acre_str text, const char **ret_words) {
    for (size_t i = 0; text.data != NULL && i < ACRE_COUNT(symptoms); i++) {
        const char *words = symptoms[i].words;
        if (memmem(text.data, text.length, words, strlen(words)) != NULL) {
            *ret_words = words;
            return symptoms[i].kind;
        }
    }
    *ret_words = "";
    return ACRE_EXIT_CODE;
}

enum acre_exit_kind symptom_of_file(const char *path, const char **ret_words) {
    char tail[ACRE_SYMPTOM_TAIL_BYTES];
    ssize_t length = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        off_t size = lseek(fd, 0, SEEK_END);
        off_t from = size > (off_t)sizeof(tail) ? size - (off_t)sizeof(tail) : 0;
        length = size > 0 ? pread(fd, tail, sizeof(tail), from) : 0;
        close(fd);
    }
    return symptom_of((struct acre_str){tail, length > 0 ? (size_t)length : 0}, ret_words);
}
