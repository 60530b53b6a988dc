/* syscalls.h - the system calls a job may not make, compiled once.
 *
 * Daemon only (libseccomp); the shim gets the finished program and loads it into each job. What
 * is not in the table is allowed: jobs are ordinary programs, and what they may touch is decided
 * by user, cgroup and mounts. Any thread. */
#ifndef ACRE_ENGINE_SYSCALLS_H
#define ACRE_ENGINE_SYSCALLS_H

#include "core/buf.h"

/* Append the program (struct sock_filter[]) for this machine. */
int syscalls_build(struct acre_buf *out, struct acre_error *err);

#endif
