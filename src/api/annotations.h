/* annotations.h - the "annotations" of a submission: what Kubernetes users write (ALC-5).
 *
 * Either a flat map ("kaiwo.ai/gpu-fraction": "0.5"), or a whole manifest. Of a manifest the
 * annotations of its metadata and of its pod template count, and resources.limits of its
 * containers. ledger/annotation.h says what they mean. Any thread; pure. */
#ifndef ACRE_API_ANNOTATIONS_H
#define ACRE_API_ANNOTATIONS_H

#include "core/json.h"
#include "ledger/annotation.h"
#include "ledger/request.h"

/* ACRE_EINVALID: a bad value, two that contradict each other, or nothing that asks for a GPU. */
int annotations_read(const json_t *object, struct acre_annotation *ret_annotation,
                     struct acre_error *err);

/* Put them into a request that holds what the other fields of `body` say. ACRE_EINVALID names both
 * where they contradict each other. The vendor is the caller's to put. */
int annotations_put(const struct acre_annotation *annotation, const json_t *body,
                    struct acre_request *request, struct acre_error *err);
/* "NVIDIA", "AMD", or NULL: any. */
const char *annotations_vendor(const struct acre_annotation *annotation);

#endif
