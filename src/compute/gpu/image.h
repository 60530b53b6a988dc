/* image.h - compiled GPU programs as bytes: whether they are complete, and their kernels.
 *
 * CUDA's and AMD's ELF files, clang's bundles of these, PTX text with its NUL. Pure. */
#ifndef ACRE_COMPUTE_GPU_IMAGE_H
#define ACRE_COMPUTE_GPU_IMAGE_H

#include "core/buf.h"

/* Drivers take images without a length: one that was cut off would be read past its end.
 * ACRE_ECORRUPT: not a whole one. */
int gpu_image_check(const void *image, size_t length, struct acre_error *err);
/* The kernels in a checked image. Initialises `kernels`. */
void gpu_image_kernels(const void *image, size_t length, struct acre_buf *kernels);
/* Their names as drivers know them, one after the other: NULL before the first, NULL at the end. */
const char *gpu_image_next(const struct acre_buf *kernels, const char *before);
/* The one of that name, or which C++ made of it (the first, if it is overloaded); NULL: none. */
const char *gpu_image_find(const struct acre_buf *kernels, const char *name);
/* How many parameters one of these has, as the compiler wrote it down. */
enum { GPU_IMAGE_UNCOUNTED = 255 };
uint32_t gpu_image_parameters(const char *kernel);

#endif
