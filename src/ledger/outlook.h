/* outlook.h - would a request fit if some of what is held now were given back, and where?
 *
 * An outlook is a what-if next to the books: allocations are given back in it one by one, in any
 * order the caller likes (as they are expected to end, as they would be preempted), and it says
 * when the request fits. Then it can choose the place and keep it: a veil hides from all others
 * just what the place needs beyond what the given-back allocations still hold. Core thread only.
 * The ledger is changed by the veil alone, which no one may leave on. */
#ifndef ACRE_LEDGER_OUTLOOK_H
#define ACRE_LEDGER_OUTLOOK_H

#include "ledger/ledger.h"

struct acre_outlook;

/* NULL: not a valid request, or one that draws on a reservation. */
struct acre_outlook *acre_outlook_create(struct acre_ledger *ledger,
                                         const struct acre_request *request);
void acre_outlook_destroy(struct acre_outlook *outlook); /* NULL is fine; it must not be veiled */
size_t acre_outlook_bytes(const struct acre_outlook *outlook);
/* Forget what was given back and chosen: the ledger as it is now. */
void acre_outlook_reset(struct acre_outlook *outlook);

/* As if the allocation were released; one that is not live changes nothing. Costs what it holds,
 * not what the cluster has. Returns true when the request fits now. */
bool acre_outlook_give(struct acre_outlook *outlook, uint64_t allocation);
bool acre_outlook_fits(const struct acre_outlook *outlook);

/* Choose the place. Call when it fits, once after a reset. */
void acre_outlook_choose(struct acre_outlook *outlook);
/* The place chosen; valid until reset. */
const struct acre_part *acre_outlook_parts(const struct acre_outlook *outlook, uint32_t *ret_count);
/* The allocations given back that hold something on a node of the place, in the order given. */
const uint64_t *acre_outlook_given(const struct acre_outlook *outlook, uint32_t *ret_count);
/* Does the place still hold: is what it needs free, or held by what was given back? */
bool acre_outlook_stands(const struct acre_outlook *outlook);

/* Between these two nobody finds the room that the place needs. Nothing else may change the ledger
 * but new allocations. */
void acre_outlook_veil(struct acre_outlook *outlook);
void acre_outlook_unveil(struct acre_outlook *outlook);

/* Could this node take one member of the request now, as far as a look at it alone can tell? A
 * node that cannot will not before something of it is given back. */
bool acre_ledger_may_fit_on(struct acre_ledger *ledger, const struct acre_request *request,
                            uint32_t node);
/* Could the nodes there are, all idle, serve it? ACRE_ENOFIT: never, and why; and as
 * acre_ledger_plan for requests that are wrong. Drained nodes count: they come back. */
int acre_ledger_could_fit(struct acre_ledger *ledger, const struct acre_request *request,
                          struct acre_error *err);

#endif
