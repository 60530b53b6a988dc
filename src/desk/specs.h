/* specs.h - the specs of the jobs submitted last, so that a job that starts at once is not read
 * back from the store.
 *
 * Bounded by number and bytes: what is not here is in the store. Loop thread only; pure. */
#ifndef ACRE_DESK_SPECS_H
#define ACRE_DESK_SPECS_H

#include "core/str.h"

struct specs;

struct specs *specs_create(uint32_t max_count, size_t max_bytes);
void specs_destroy(struct specs *specs); /* NULL is fine */

/* Copied. The oldest go when there are too many. */
void specs_put(struct specs *specs, uint64_t job, struct acre_str text);
/* False: not here. Good until the next put. */
bool specs_find(const struct specs *specs, uint64_t job, struct acre_str *ret_text);
void specs_remove(struct specs *specs, uint64_t job);

#endif
