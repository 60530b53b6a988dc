/* budget.h - what one user may add to the record, and take of the loop, by time (SEC-1).
 *
 * Jobs, audit rows, tokens and reservations stay on disk when what they were about is over, so no
 * number of live things bounds them. Operators have no budget. Loop thread only. Canceling is
 * always allowed: it happens once to each job, whose own cost covers it. */
#ifndef ACRE_API_BUDGET_H
#define ACRE_API_BUDGET_H

#include "api/api.h"

enum { ACRE_JOB_KIB = 1 }; /* a job's row, its changes and its audit rows, on disk */

/* Has the caller a budget, and the other limits of users? */
bool budget_limits(const struct acre_call *call);

struct record_cost {
    uint32_t kib;     /* on disk */
    uint32_t members; /* of an array, changed in one step; otherwise 1 */
};

/* Could the caller pay this now? ACRE_ELIMIT, which says when. Nothing is paid. */
int budget_check(struct acre_api *api, const struct acre_call *call, struct record_cost cost,
                 struct acre_error *err);
void budget_pay(struct acre_api *api, const struct acre_call *call, struct record_cost cost);
/* Pay for a change of so many jobs, or of one other thing. False: it was refused. */
bool budget_take(struct acre_api *api, struct acre_call *call, uint32_t count);

#endif
