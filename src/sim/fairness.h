/* fairness.h - measures how evenly tenants were served, against max-min fairness. Pure.
 *
 * At every moment the tenants' demands (what they hold and wait for) have a max-min fair division:
 * each gets what it asks for, up to a level that uses up the capacity. A tenant's satisfaction is
 * the part of its fair share that it actually held, over time; anything beyond that does not count.
 * Jain's index over satisfactions is 1 if all are served equally. */
#ifndef ACRE_SIM_FAIRNESS_H
#define ACRE_SIM_FAIRNESS_H

#include "core/base.h"

struct fairness;

struct fairness *fairness_create(uint32_t tenants, uint64_t capacity);
void fairness_destroy(struct fairness *fairness); /* NULL is fine */

/* Changes of what a tenant holds and waits for, in units of the capacity. */
void fairness_add(struct fairness *fairness, uint32_t tenant, int64_t change);
void fairness_want(struct fairness *fairness, uint32_t tenant, int64_t change);
/* So much time passed since the last change. */
void fairness_pass(struct fairness *fairness, uint64_t ms);

/* Over the tenants that ever asked for something. */
double fairness_jain(const struct fairness *fairness);
double jain_index(const double *values, uint32_t count); /* (sum x)^2 / (n sum x^2); 1 when empty */

#endif
