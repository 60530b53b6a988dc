/* runs.h - the runs that an engine knows, found by job and attempt. Private to src/engine.
 *
 * The records are the engine's; each begins with its struct acre_run and stays where it is. The
 * array of them is in no order: when one is removed, the last takes its place, so who removes while
 * walking walks from the end. One thread at a time; all zero is empty. */
#ifndef ACRE_ENGINE_RUNS_H
#define ACRE_ENGINE_RUNS_H

#include "core/index.h"
#include "engine/engine.h"

struct runs {
    struct acre_run **all; /* the beginnings of records */
    uint32_t count, capacity;
    struct acre_index index;
};

void runs_finish(struct runs *runs); /* frees no records */
/* The record; NULL: not known. */
void *runs_find(const struct runs *runs, struct acre_run run);
void runs_add(struct runs *runs, struct acre_run *record); /* must not be known yet */
/* What to free; NULL: not known. */
void *runs_remove(struct runs *runs, struct acre_run run);

#endif
