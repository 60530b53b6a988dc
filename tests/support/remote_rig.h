/* remote_rig.h - a seat in a runner, with one stream and some host memory, under test. */
#ifndef ACRE_REMOTE_RIG_H
#define ACRE_REMOTE_RIG_H

#include "compute/runner/remote_inner.h"

struct rig {
    const struct backend *table;
    void *self, *seat;
    _Atomic uint64_t *words; /* of host memory: 512 words, then numbers */
    uint32_t *numbers;
    uint64_t host; /* region */
    uint64_t stream;
    uint64_t issued;
};
enum { HOST_BYTES = 1 << 16, NUMBERS_AT = 4096 };

/* "double": of runner_double.c; others in acre-runner. Skips the test where there is none. */
struct rig rig_open(const char *backend, uint32_t device);
/* The same in this process. */
struct rig rig_open_here(const struct backend *table);
void rig_close(struct rig *rig);
void rig_restart(struct rig *rig);
/* A kernel of the double by its name. */
uint64_t rig_find(struct rig *rig, const char *name);
struct native_launch rig_launch_of(uint64_t kernel); /* one work item, no arguments */
int rig_launch(struct rig *rig, const char *name, struct acre_error *err);
/* Launch "add". */
int rig_add(struct rig *rig, uint64_t region, uint64_t offset, uint64_t count, uint32_t value,
            struct acre_error *err);
/* Signal and wait for it, or for the runner's end; what became of the work. */
int rig_reach(struct rig *rig, struct acre_error *err);
void rig_await_end(struct rig *rig);
void rig_check_works(struct rig *rig); /* "add" gives the right result */

#endif
