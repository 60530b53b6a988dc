/* Compiled programs: whatever the bytes, what is taken for a whole image is listed without a look
 * outside of it, and each kernel of the list is found by its name. */
#include "compute/gpu/image.h"
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_error err = {0};
    int r = gpu_image_check(data, size, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(r == ACRE_ECORRUPT);
        return 0;
    }
    struct acre_buf kernels;
    gpu_image_kernels(data, size, &kernels);
    size_t bytes = 0;
    const char *kernel = gpu_image_next(&kernels, NULL);
    for (uint32_t i = 0; kernel != NULL; kernel = gpu_image_next(&kernels, kernel), i++) {
        ACRE_ASSERT(gpu_image_parameters(kernel) <= GPU_IMAGE_UNCOUNTED);
        ACRE_ASSERT(i >= 64 || strcmp(gpu_image_find(&kernels, kernel), kernel) == 0);
        bytes += strlen(kernel) + 2;
    }
    ACRE_ASSERT(bytes == kernels.length);
    acre_buf_finish(&kernels);
    return 0;
}
