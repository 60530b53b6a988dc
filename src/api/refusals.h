/* refusals.h - which refused requests are recorded one by one, and how many more there were.
 *
 * Pure: no clock, no store. One thread at a time. Each caller, and all callers together, have a
 * number of records a minute; refusals beyond it are counted, and returned as sums when the minute
 * is over. So a flood of refusals shows in the audit trail without filling the disk. Requests that
 * change something do not come here: each of those is recorded. */
#ifndef ACRE_API_REFUSALS_H
#define ACRE_API_REFUSALS_H

#include "core/base.h"

struct acre_refusals;

enum {
    ACRE_REFUSALS_MINUTE_MS = 60 * 1000,
    ACRE_REFUSALS_EACH = 60,           /* records of one user, or of one address, a minute */
    ACRE_REFUSALS_USERS = 600,         /* of all users */
    ACRE_REFUSALS_STRANGERS = 60,      /* of all clients that are not known */
    ACRE_REFUSALS_USERS_KEPT = 128,    /* counted apart; the others together */
    ACRE_REFUSALS_STRANGERS_KEPT = 16, /* likewise */
};

struct acre_refusals *refusals_create(void);
void refusals_destroy(struct acre_refusals *refusals); /* NULL is fine */

/* One more, of a user, or of an address when `user` is NULL. True: record it. False: it is counted.
 */
bool refusals_note(struct acre_refusals *refusals, const char *user, const char *address);

/* What was counted and not recorded. */
struct refusals_sum {
    const char *user;    /* NULL: not known; "": several */
    const char *address; /* the last one; "": several */
    uint64_t more;
};
typedef void refusals_visit(void *context, const struct refusals_sum *sum);
/* The minute is over: every sum, and a new minute begins. */
void refusals_turn(struct acre_refusals *refusals, refusals_visit *visit, void *context);

#endif
