/* dl.c - dlopen by soname, dlsym by table.
 *
 * RTLD_NOW: a library with unresolved symbols fails here, with its name, not in the middle of a
 * run. RTLD_LOCAL: the symbols of vendor libraries must not clash with ours. Handles are dropped on
 * purpose: these libraries start threads that would outlive a dlclose. */
#include "core/dl.h"

#include "core/buf.h"

#include <dlfcn.h>
#include <string.h>

enum { ANSWERS_MAX_BYTES = 400 }; /* leaves room for the context others put before it */

static void *open_first(const char *const *sonames, const char **ret_soname,
                        struct acre_error *err) {
    struct acre_buf answers;
    acre_buf_init(&answers, ANSWERS_MAX_BYTES);
    void *library = NULL;
    for (size_t i = 0; sonames[i] != NULL && library == NULL; i++) {
        library = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            *ret_soname = sonames[i];
        } else {
            const char *answer = dlerror();
            acre_buf_printf(&answers, "%s%s", i > 0 ? "; " : "",
                            answer != NULL ? answer : "dlopen failed");
        }
    }
    if (library == NULL) {
        acre_fail(err, ACRE_EUNAVAILABLE, "%s",
                  answers.length > 0 ? answers.data : "no library to try");
    }
    acre_buf_finish(&answers);
    return library;
}

int acre_dl_load(const char *const *sonames, const struct acre_dl_symbol *symbols, size_t count,
                 void *table, const char **ret_soname, struct acre_error *err) {
    const char *soname = NULL;
    void *library = open_first(sonames, &soname, err);
    size_t found = 0;
    while (library != NULL && found < count) {
        const struct acre_dl_symbol *symbol = &symbols[found];
        void *address = dlsym(library, symbol->name);
        if (address == NULL && symbol->required) {
            break;
        }
        /* POSIX: a function pointer has the representation of the void * that dlsym gives. */
        memcpy((char *)table + symbol->offset, &address, sizeof(address));
        found++;
    }
    if (library != NULL && found == count) {
        if (ret_soname != NULL) {
            *ret_soname = soname;
        }
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        memset((char *)table + symbols[i].offset, 0, sizeof(void *));
    }
    if (library == NULL) {
        return ACRE_EUNAVAILABLE;
    }
    return acre_fail(err, ACRE_EUNSUPPORTED, "%s lacks the symbol '%s'", soname,
                     symbols[found].name);
}
