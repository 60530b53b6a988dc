/* cgroup_inner.h - what the files of cgroup*.c share. Included by them only. */
#ifndef ACRE_ENGINE_CGROUP_INNER_H
#define ACRE_ENGINE_CGROUP_INNER_H

#include "engine/cgroup.h"

enum { ACRE_CGROUP_RUN_PATH_MAX = ACRE_CGROUP_PATH_MAX + ACRE_RUN_NAME_MAX + 8 };

/* Write `text` to <directory>/<file>: 0 or errno. */
int cgroup_put(const char *directory, const char *file, const char *text);
/* The same, as an error that names the file and the value. */
int cgroup_limit(const char *directory, const char *file, const char *text, struct acre_error *err);
/* The number after `key` at the start of a line of the file ("": at its very start); UINT64_MAX:
 * there is none. */
uint64_t cgroup_number(const char *directory, const char *file, const char *key);

/* cgroup_memory.c */

/* How much there is on this machine, and how much of it jobs may use together. */
void cgroup_limit_all_memory(struct cgroup *cgroup);
int cgroup_limit_memory(const char *path, bool v1, uint64_t ram_mib, struct acre_error *err);
void cgroup_read_memory(const char *path, bool v1, bool with_kills, struct cgroup_use *use);

/* v1: a group that an earlier run with the same limit left becomes `path`, the run's; false: there
 * is none. */
bool cgroup_take_idle(const struct cgroup_run *group, const char *path);
/* Leave the empty group `path` to a later run; false: it must be removed. */
bool cgroup_leave_idle(const struct cgroup_run *group, const char *path);
void cgroup_remove_idle(const struct cgroup *cgroup);

#endif
