/* submit.h - from the body of a submission to what the scheduler, the store and the engine need.
 *
 * Loop thread only: names and dependencies are looked up. It changes nothing, so a refused
 * submission has no effect. */
#ifndef ACRE_API_SUBMIT_H
#define ACRE_API_SUBMIT_H

#include "api/field.h"
#include "desk/commands.h"

/* The fields of POST /jobs and POST /queue/submit. */
extern const struct field submit_fields[];

/* Where an ended job stands. False: there is no such job. */
typedef bool submit_find(void *context, uint64_t job, enum acre_job_state *ret_state);

struct submit_context {
    const struct acre_names *names;         /* the ledger's: those of the hardware */
    const struct acre_inventory *inventory; /* models that are here */
    uint64_t now_ms;
    uint64_t max_grace_ms; /* the policy's */
    submit_find *find;
    void *find_context;
};

/* `body` has passed fields_check_body. ACRE_EINVALID naming the field, the value and what is
 * accepted; ACRE_ENOTFOUND for a dependency that does not exist, ACRE_ENOFIT for a model, vendor
 * or label that is not here (the model "h100" finds "NVIDIA H100 80GB HBM3"). The project is NULL
 * where none is named; user and limits are the caller's to fill. `ret_submission` is large and must
 * stay where it is. */
int submit_read(const json_t *body, const struct submit_context *context,
                struct acre_submission *ret_submission, struct acre_error *err);

/* Words of fields that others have too. */
extern const char *const acre_submit_priorities[], *const submit_isolations[];
/* A "priority" that was checked, by number or word; normal when it is absent. */
enum acre_job_priority submit_priority(const json_t *value);

#endif
