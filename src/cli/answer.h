/* answer.h - reads the server's JSON leniently: what is missing, null or of another type is
 * unknown and shown as "-".
 *
 * One thread; no I/O. (The server checks requests strictly; answers are shown as they come, so that
 * an older client works with a newer daemon.) */
#ifndef ACRE_CLI_ANSWER_H
#define ACRE_CLI_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value at a path like "request.gpus"; NULL when it is unknown. Borrowed. */
const json_t *answer_at(const json_t *root, const char *path);
bool answer_u64(const json_t *root, const char *path, uint64_t *ret_value);
bool answer_number(const json_t *root, const char *path, double *ret_value);
bool answer_true(const json_t *root, const char *path); /* false when unknown */
const char *answer_string(const json_t *root, const char *path, const char *fallback);
bool answer_time(const json_t *root, const char *path, uint64_t *ret_ms);

/* For tables: "-" when unknown. */
char *answer_count(const json_t *root, const char *path, char *text, size_t size);
char *answer_mib(const json_t *root, const char *path, char *text, size_t size);
char *answer_milli(const json_t *root, const char *path, char *text, size_t size);
char *answer_span(const json_t *root, const char *path, char *text, size_t size);
char *answer_ago(const json_t *root, const char *path, uint64_t now_ms, char *text, size_t size);

#endif
