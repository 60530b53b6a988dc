/* show.h - the server's answers as text for people: tables, pages, sentences.
 *
 * No I/O: JSON in, text out, so that canned answers test them. What is unknown is "-". */
#ifndef ACRE_CLI_SHOW_H
#define ACRE_CLI_SHOW_H

#include "cli/answer.h"
#include "cli/common.h"

/* {"jobs": [JOB...]} as a table; {"job": JOB} as a page, a paragraph, or one line. */
void acre_show_jobs(const struct acre_show *view, const json_t *answer);
void acre_show_job(const struct acre_show *view, const json_t *answer);
void acre_show_why(const struct acre_show *view, const json_t *answer);
void acre_show_job_line(const struct acre_show *view, const json_t *answer);
/* Quiet: the ids, one a line; of "job", "jobs" or both. */
void acre_show_job_ids(const struct acre_show *view, const json_t *answer);
/* "job 42 queued, position 3, starts in about 5m (...)" */
void acre_show_submitted(const struct acre_show *view, const json_t *answer);

/* Words for parts of a job; they return `text`. */
char *acre_show_gpus(const json_t *job, char *text, size_t size);  /* "2", "0.5", "2x8", "-" */
char *acre_show_exit(const json_t *job, char *text, size_t size);  /* "0", "3", "signal 9", ... */
char *acre_show_where(const json_t *job, char *text, size_t size); /* "gpu-a:0,1 gpu-b:0" */
char *acre_show_start(const struct acre_show *view, const json_t *job, char *text, size_t size);
const char *acre_show_state(const json_t *job);
enum acre_colour acre_show_state_colour(const char *state);
enum { ACRE_SHOW_TEXT_MAX = 512 };

void acre_show_nodes(const struct acre_show *view, const json_t *answer);
void acre_show_gpus_table(const struct acre_show *view, const json_t *answer);
void acre_show_reservations(const struct acre_show *view, const json_t *answer);
void acre_show_reservation(const struct acre_show *view, const json_t *answer);
void acre_show_policy(const struct acre_show *view, const json_t *answer);
void acre_show_quotas(const struct acre_show *view, const json_t *answer);
void acre_show_usage(const struct acre_show *view, const json_t *answer);
void acre_show_tokens(const struct acre_show *view, const json_t *answer);
void acre_show_token(const struct acre_show *view, const json_t *answer);
void acre_show_audit(const struct acre_show *view, const json_t *answer);
void acre_show_audit_verdict(const struct acre_show *view, const json_t *answer);
void acre_show_stats(const struct acre_show *view, const json_t *answer);

void acre_show_node_names(const struct acre_show *view, const json_t *answer); /* quiet */
void acre_show_gpu_ids(const struct acre_show *view, const json_t *answer);
/* Quiet: the "id" of each item of the list `key`, one a line. */
void acre_show_ids(const struct acre_show *view, const json_t *answer, const char *key);

/* "label    text", wrapped beside the label; nothing when `text` is NULL, "" or "-". */
void acre_show_fact(const struct acre_show *view, const char *label, const char *text);
/* A cell of `text`, dim when it is "-". */
void acre_show_cell(struct acre_table *table, const char *text);
/* Print the table, or `empty` and a newline when it has no rows; destroys it. */
void acre_show_table(const struct acre_show *view, struct acre_table *table, const char *empty);
/* "[####......]" for the part of 1000 that is used. */
char *acre_show_bar(uint64_t used_milli, char *text, size_t size);

#endif
