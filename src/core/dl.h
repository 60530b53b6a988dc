/* dl.h - loads vendor libraries by soname at run time into a table of function pointers.
 *
 * One row per symbol gives its name, where its pointer goes and whether it is optional. Libraries
 * are never closed: their threads may still be running. Any thread. */
#ifndef ACRE_CORE_DL_H
#define ACRE_CORE_DL_H

#include "core/error.h"

struct acre_dl_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table */
    bool required;
};

/* Try each soname (NULL-terminated) until one opens, then fill `table`. Optional symbols that
 * are missing stay NULL. ACRE_EUNAVAILABLE: none opened (the text lists what each answered);
 * ACRE_EUNSUPPORTED: a required symbol is missing (the text names library and symbol).
 * `ret_soname` (may be NULL) receives the one that opened. `table` is zeroed on failure. */
int acre_dl_load(const char *const *sonames, const struct acre_dl_symbol *symbols, size_t count,
                 void *table, const char **ret_soname, struct acre_error *err);

#endif
