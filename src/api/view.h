/* view.h - a job as people and programs see it: the JOB object of the API, from wherever it comes.
 *
 * A view is filled from a submission, from a live job and its spec, or from a row of the store; the
 * JSON is the same. Unknown is null. Strings are borrowed. Loop thread only. */
#ifndef ACRE_API_VIEW_H
#define ACRE_API_VIEW_H

#include "desk/record.h"
#include "sched/why.h"

struct job_view {
    const struct acre_job *job; /* its numbers; names are looked up below */
    const char *user, *project, *name;
    const char *command; /* one line */
    const char *vendor, *models[ACRE_REQUEST_MODELS_MAX], *labels[ACRE_REQUEST_LABELS_MAX];
    const struct acre_recorded_part *parts;
    uint32_t part_count;
    const char *exit_text;
    bool exited;
    const struct acre_why *why; /* NULL: not asked, or not waiting */
    const struct acre_when *when;
    bool external, simulated;
    uint64_t now_ms; /* for how long it has waited or run */
};

/* Names, constraints and command of a live job from the ledger and its spec; `exit_text` is set. */
void view_live(struct job_view *view, const struct acre_ledger *ledger, const struct acre_job *job,
               const struct acre_recipe *recipe, struct acre_arena *arena);
/* All of a row that was read back. */
void view_recorded(struct job_view *view, const struct acre_store_job *row,
                   const struct acre_recorded_job *recorded, struct acre_arena *arena);

void view_write(const struct job_view *view, struct acre_json *json);    /* an object */
void view_write_why(struct acre_json *json, const struct acre_why *why); /* NULL: null */
void view_write_when(struct acre_json *json, const struct acre_when *when);
/* "key": "2026-11-15T02:30:00.123Z", or null for 0. */
void view_put_time(struct acre_json *json, const char *key, uint64_t wall_ms);
/* "key": value, or null for ACRE_UNKNOWN. */
void view_put_known(struct acre_json *json, const char *key, uint64_t value);

#endif
