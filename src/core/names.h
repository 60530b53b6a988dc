/* names.h - interns strings as small integers, so that tables hold 4 bytes and compare ints.
 *
 * Ids count from 1 in order of first use; 0 means "none". An interned name stays forever: use this
 * for names of the machine and its users. Names that users make up (names of jobs) are taken and
 * given back instead: a name that is no longer taken is forgotten, and its id may be used for
 * another. One thread at a time; pure (no I/O). */
#ifndef ACRE_CORE_NAMES_H
#define ACRE_CORE_NAMES_H

#include "core/str.h"

struct acre_names;

struct acre_names *acre_names_create(void);
void acre_names_destroy(struct acre_names *names); /* NULL is fine */

uint32_t acre_names_intern(struct acre_names *names, struct acre_str text);     /* "" gives 0 */
uint32_t acre_names_find(const struct acre_names *names, struct acre_str text); /* 0: unknown */
const char *acre_names_text(const struct acre_names *names, uint32_t id);       /* "" for 0 */

/* As acre_names_intern, until it is given back as often as it was taken. */
uint32_t acre_names_take(struct acre_names *names, struct acre_str text);
void acre_names_take_again(struct acre_names *names, uint32_t id); /* 0 is fine */
void acre_names_give(struct acre_names *names, uint32_t id);       /* 0 is fine */
/* The same for the same text, also when it was forgotten in between. 0 for 0. */
uint32_t acre_names_hash(const struct acre_names *names, uint32_t id);

int acre_names_compare_ids(const void *a, const void *b);  /* uint32_t ids, for qsort */
uint32_t acre_names_count(const struct acre_names *names); /* names there are */
size_t acre_names_bytes(const struct acre_names *names);   /* memory held */

#endif
