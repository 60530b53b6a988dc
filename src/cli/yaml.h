/* yaml.h - one YAML document as JSON, through libyaml.
 *
 * For what people keep in files for Kubernetes. Scalars become text as they stand ("0.5", "yes"),
 * empty ones and null become null: what a value means is for its reader to say. Aliases, several
 * documents, keys that are not text or come twice, and very deep documents are refused.
 *
 * libyaml is opened when it is needed. One thread. */
#ifndef ACRE_CLI_YAML_H
#define ACRE_CLI_YAML_H

#include "core/error.h"
#include "core/str.h"

#include <jansson.h>

enum { ACRE_YAML_DEPTH_MAX = 24 };

/* The document must be a mapping. `name` begins the message, with the line. ACRE_EINVALID;
 * ACRE_EUNAVAILABLE without libyaml. The caller json_decref()s the result. */
int yaml_parse(const char *name, struct acre_str text, json_t **ret_root, struct acre_error *err);

#endif
