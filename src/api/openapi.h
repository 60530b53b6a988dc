/* openapi.h - the OpenAPI 3.1 document of a route table.
 *
 * Pure. Paths, parameters, request bodies as JSON schema, roles, security schemes and the problem
 * object; nothing that is not in the table. */
#ifndef ACRE_API_OPENAPI_H
#define ACRE_API_OPENAPI_H

#include "api/route.h"

/* ACRE_ELIMIT when `buf` is too small. */
int openapi_write(const struct acre_route *routes, size_t count, const char *version,
                  struct acre_buf *buf);

#endif
