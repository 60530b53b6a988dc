/* gpu_image.h - compiled programs of GPUs as bytes: whole or not, and the kernels in them.
 *
 * CUDA's and AMD's ELF files, clang's bundles of these, PTX text with its NUL. Pure. */
#ifndef ACRE_COMPUTE_GPU_IMAGE_H
#define ACRE_COMPUTE_GPU_IMAGE_H

#include "core/buf.h"

/* Drivers take images without a length: one that was cut off would be read past its end.
 * ACRE_ECORRUPT: not a whole one. */
int gpu_image_check(const void *image, size_t length, struct acre_error *err);
/* Names of the kernels in a checked image, each with its NUL. Initialises `names`. */
void gpu_image_kernels(const void *image, size_t length, struct acre_buf *names);
/* The one that C++ made of `name` (the first, if it is overloaded); NULL: none. */
const char *gpu_image_find(const struct acre_buf *names, const char *name);

#endif
