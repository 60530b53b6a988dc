/* engines.h - the engines there are, in order. Any thread. */
#ifndef ACRE_ENGINE_ENGINES_H
#define ACRE_ENGINE_ENGINES_H

#include "engine/engine.h"

extern const struct acre_engine_driver acre_engine_local; /* own options: local.h */
extern const struct acre_engine_driver acre_engine_fake;  /* own options: fake.h */

/* NULL-terminated; the first is the default. */
extern const struct acre_engine_driver *const acre_engines[];

/* "ray" or "ray=ADDRESS". ACRE_EINVALID lists the names there are. */
int acre_engine_find(const char *text, const struct acre_engine_driver **ret_driver,
                     const char **ret_address, struct acre_error *err);

#endif
