/* jobs.h - finding, showing and submitting jobs: what several routes share. Loop thread only. */
#ifndef ACRE_API_JOBS_H
#define ACRE_API_JOBS_H

#include "api/api.h"
#include "api/submit.h"
#include "api/view.h"

/* Write the JOB object of a live job. `explain`: with why and when. */
void jobs_write_live(struct acre_api *api, struct acre_call *call, const struct acre_job *job,
                     bool explain, struct acre_json *json);
/* Read a row to show it, with the spec that it may share; the caller json_decref()s
 * `ret_recorded->spec`. */
int jobs_read_row(struct acre_api *api, struct acre_arena *arena, const struct acre_store_job *row,
                  struct acre_recorded_job *ret_recorded, struct acre_error *err);
/* Write the JOB of a row. */
int jobs_write_row(struct acre_api *api, struct acre_call *call, const struct acre_store_job *row,
                   struct acre_json *json, struct acre_error *err);

/* A live job that the caller may change; anything else was answered, and false is returned. */
bool jobs_own(struct acre_api *api, struct acre_call *call, uint64_t id);
/* The owner of a job, live or ended, in the arena. ACRE_ENOTFOUND. */
int jobs_owner(struct acre_api *api, struct acre_call *call, uint64_t id, const char **ret_owner,
               uint32_t *ret_attempt, bool *ret_live, struct acre_error *err);
/* May the caller's jobs have this priority? ACRE_EDENIED. */
int jobs_may_have(const struct acre_call *call, enum acre_job_priority priority,
                  struct acre_error *err);
/* A job that runs elsewhere and takes its devices now, or not at all (acre_desk_allocate): who owns
 * it is filled in. */
int jobs_allocate(struct acre_api *api, struct acre_call *call, struct acre_submission *submission,
                  struct acre_job *ret_job, struct acre_error *err);

extern const struct field jobs_priority_fields[];

#endif
