/* pocl.h - where PoCL keeps what it compiles.
 *
 * PoCL, OpenCL for CPUs, needs that directory: if it cannot be created PoCL lists no device, and if
 * the disk is full its compiler ends the process. */
#ifndef ACRE_OPENCL_POCL_H
#define ACRE_OPENCL_POCL_H

#include <limits.h>
#include <stdbool.h>

/* As PoCL finds it; it may be missing yet. False: there is no such path. Any thread. */
bool acre_pocl_directory(char path[PATH_MAX]);
/* Why nothing can be kept in it, as an errno; 0: it can. Any thread. */
int acre_pocl_trouble(const char *directory);
/* Where there is trouble, and nobody has said which directory (POCL_CACHE_DIR), let it be one of
 * this user's in TMPDIR. It changes the environment: before there are threads. */
void acre_pocl_settle(void);
/* The same in somebody's program: only while it has one thread. Before PoCL is loaded. */
void acre_pocl_settle_alone(void);

#endif
