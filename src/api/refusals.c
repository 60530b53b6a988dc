/* refusals.c - two small tables, of users and of addresses, emptied every minute.
 *
 * They are separate because addresses cost nothing: an attacker with many of them could otherwise
 * use up the records of the users. When a table is full, further callers are counted together, so
 * its size also limits the number of sums. */
#include "api/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 72, ADDRESS_BYTES = 64 };

struct refused_caller {
    char name[NAME_BYTES];
    char address[ADDRESS_BYTES];
    uint32_t recorded;
    uint64_t more;
};

struct refused_callers {
    struct refused_caller *rows;
    uint32_t count, kept;
    uint32_t recorded, most;
    uint64_t others; /* of callers that are in no row */
};

struct acre_refusals {
    struct refused_callers users, strangers;
};

static void init(struct refused_callers *callers, uint32_t kept, uint32_t most) {
    *callers = (struct refused_callers){
        .rows = acre_calloc(kept, sizeof(*callers->rows)), .kept = kept, .most = most};
}

struct acre_refusals *refusals_create(void) {
    struct acre_refusals *refusals = acre_calloc(1, sizeof(*refusals));
    init(&refusals->users, ACRE_REFUSALS_USERS_KEPT, ACRE_REFUSALS_USERS);
    init(&refusals->strangers, ACRE_REFUSALS_STRANGERS_KEPT, ACRE_REFUSALS_STRANGERS);
    return refusals;
}

void refusals_destroy(struct acre_refusals *refusals) {
    if (refusals != NULL) {
        free(refusals->users.rows);
        free(refusals->strangers.rows);
        free(refusals);
    }
}

/* NULL: there is no room for another. */
static struct refused_caller *row_of(struct refused_callers *callers, const char *name) {
    for (uint32_t i = 0; i < callers->count; i++) {
        if (strncmp(callers->rows[i].name, name, NAME_BYTES - 1) == 0) {
            return &callers->rows[i];
        }
    }
    if (callers->count == callers->kept) {
        return NULL;
    }
    struct refused_caller *row = &callers->rows[callers->count++];
    *row = (struct refused_caller){0};
    snprintf(row->name, sizeof(row->name), "%s", name);
    return row;
}

bool refusals_note(struct acre_refusals *refusals, const char *user, const char *address) {
    struct refused_callers *callers = user != NULL ? &refusals->users : &refusals->strangers;
    struct refused_caller *row = row_of(callers, user != NULL ? user : address);
    if (row == NULL) {
        callers->others++;
        return false;
    }
    snprintf(row->address, sizeof(row->address), "%s", address);
    if (row->recorded >= ACRE_REFUSALS_EACH || callers->recorded >= callers->most) {
        row->more++;
        return false;
    }
    row->recorded++;
    callers->recorded++;
    return true;
}

static void turn(struct refused_callers *callers, bool are_known, refusals_visit *visit,
                 void *context) {
    for (uint32_t i = 0; i < callers->count; i++) {
        const struct refused_caller *row = &callers->rows[i];
        if (row->more > 0) {
            visit(context,
                  &(struct refusals_sum){are_known ? row->name : NULL, row->address, row->more});
        }
    }
    if (callers->others > 0) {
        visit(context, &(struct refusals_sum){are_known ? "" : NULL, "", callers->others});
    }
    callers->count = callers->recorded = 0;
    callers->others = 0;
}

void refusals_turn(struct acre_refusals *refusals, refusals_visit *visit, void *context) {
    turn(&refusals->users, true, visit, context);
    turn(&refusals->strangers, false, visit, context);
}
