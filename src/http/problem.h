/* problem.h - failures as RFC 9457 problem objects.
 *
 *   {"type":"about:blank","title":"invalid request","status":400,
 *    "detail":"gpus: '0.05' is out of range; accepted: 0.1 to 64","code":"INVALID","field":"gpus"}
 *
 * `field` is there when the text begins with the name of one and ": ". Loop thread only (the writer
 * is pure). Statuses that no error code has (401, 405, 429, 431 ...) are rows of one table. */
#ifndef ACRE_HTTP_PROBLEM_H
#define ACRE_HTTP_PROBLEM_H

#include "http/http.h"

#define ACRE_PROBLEM_TYPE "application/problem+json"

/* Answer with the status of err->code. */
void acre_problem_answer(struct acre_exchange *exchange, const struct acre_error *err);
/* Answer with another: acre_problem_answer_as(exchange, 401, &err). */
void acre_problem_answer_as(struct acre_exchange *exchange, int status,
                            const struct acre_error *err);
/* acre_fail and answer in one: for handlers. */
void acre_problem_fail(struct acre_exchange *exchange, int code, const char *format, ...)
    ACRE_PRINTF(3, 4);

/* Append the object to `buf`. */
void acre_problem_write(struct acre_buf *buf, int status, const struct acre_error *err);
const char *acre_http_reason(int status); /* "Not Found"; "Unknown" */

#endif
