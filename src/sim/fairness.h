/* fairness.h - how evenly tenants were served, measured against max-min fairness. Pure.
 *
 * At every moment the tenants' demands (what they hold and wait for) have a max-min fair division:
 * everybody gets what they ask for up to a level that uses up the capacity. A tenant's
 * satisfaction is the part of its fair division that it really held, over time; what it held
 * beyond that counts nothing. Jain's index over satisfactions is 1 when all are served equally. */
#ifndef ACRE_SIM_FAIRNESS_H
#define ACRE_SIM_FAIRNESS_H

#include "core/base.h"

struct acre_fairness;

struct acre_fairness *acre_fairness_create(uint32_t tenants, uint64_t capacity);
void acre_fairness_destroy(struct acre_fairness *fairness); /* NULL is fine */

/* Changes of what a tenant holds and waits for, in units of the capacity. */
void acre_fairness_hold(struct acre_fairness *fairness, uint32_t tenant, int64_t change);
void acre_fairness_want(struct acre_fairness *fairness, uint32_t tenant, int64_t change);
/* So much time passed since the last change. */
void acre_fairness_pass(struct acre_fairness *fairness, uint64_t ms);

/* Over the tenants that ever asked for something. */
double acre_fairness_jain(const struct acre_fairness *fairness);
double acre_jain(const double *values, uint32_t count); /* (sum x)^2 / (n sum x^2); 1 when empty */

#endif
