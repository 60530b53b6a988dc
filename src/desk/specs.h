/* specs.h - the specs of the jobs submitted last, so that a job that starts at once is not read
 * back from the store.
 *
 * Bounded by number and bytes: what is not here is in the store. Loop thread only; pure. */
#ifndef ACRE_DESK_SPECS_H
#define ACRE_DESK_SPECS_H

#include "core/str.h"

struct acre_specs;

struct acre_specs *acre_specs_create(uint32_t max_count, size_t max_bytes);
void acre_specs_destroy(struct acre_specs *specs); /* NULL is fine */

/* Copied. The oldest go when there are too many. */
void acre_specs_put(struct acre_specs *specs, uint64_t job, struct acre_str text);
/* False: not here. Good until the next put. */
bool acre_specs_find(const struct acre_specs *specs, uint64_t job, struct acre_str *ret_text);
void acre_specs_remove(struct acre_specs *specs, uint64_t job);

#endif
