/* engines.c - the array of engines: a new one is one more row. */
#include "engine/engines.h"

#include "core/str.h"

#include <stdio.h>

#include <string.h>

const struct acre_engine_driver *const acre_engines[] = {
    &acre_engine_local,
    &acre_engine_fake,
    NULL,
};

int acre_engine_find(const char *text, const struct acre_engine_driver **ret_driver,
                     const char **ret_address, struct acre_error *err) {
    size_t length = strcspn(text, "=");
    char shown[64], names[128] = "";
    for (size_t i = 0; acre_engines[i] != NULL; i++) {
        const char *name = acre_engines[i]->name;
        if (strlen(name) == length && strncmp(name, text, length) == 0) {
            *ret_driver = acre_engines[i];
            *ret_address = text[length] == '=' ? text + length + 1 : NULL;
            return 0;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return acre_fail(err, ACRE_EINVALID, "unknown engine '%s'; accepted: %s",
                     acre_str_show((struct acre_str){text, length}, shown, sizeof(shown)), names);
}
