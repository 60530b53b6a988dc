/* answer.h - reading the server's JSON leniently: what is missing, null or of another type is
 * unknown, and shown as "-".
 *
 * One thread; no I/O. (Requests are judged strictly, by the server; answers are shown as they
 * come, so that an older program can talk to a newer daemon.) */
#ifndef ACRE_CLI_ANSWER_H
#define ACRE_CLI_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value at a path like "request.gpus"; NULL when it is unknown. Borrowed. */
const json_t *acre_answer_at(const json_t *root, const char *path);
bool acre_answer_u64(const json_t *root, const char *path, uint64_t *ret_value);
bool acre_answer_number(const json_t *root, const char *path, double *ret_value);
bool acre_answer_true(const json_t *root, const char *path); /* false when unknown */
const char *acre_answer_text(const json_t *root, const char *path, const char *fallback);
bool acre_answer_time(const json_t *root, const char *path, uint64_t *ret_ms);

/* For tables: "-" when unknown. */
char *acre_answer_count(const json_t *root, const char *path, char *text, size_t size);
char *acre_answer_mib(const json_t *root, const char *path, char *text, size_t size);
char *acre_answer_milli(const json_t *root, const char *path, char *text, size_t size);
char *acre_answer_span(const json_t *root, const char *path, char *text, size_t size);
char *acre_answer_ago(const json_t *root, const char *path, uint64_t now_ms, char *text,
                      size_t size);

#endif
