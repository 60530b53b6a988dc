/* show.h - formats the server's answers for people: tables, pages, sentences.
 *
 * No I/O: JSON in, text out, so that tests can use canned answers. Unknown values are "-". */
#ifndef ACRE_CLI_SHOW_H
#define ACRE_CLI_SHOW_H

#include "cli/answer.h"
#include "cli/common.h"

/* {"jobs": [JOB...]} as a table; {"job": JOB} as a page, a paragraph, or one line. */
void show_jobs(const struct show *view, const json_t *answer);
void show_job(const struct show *view, const json_t *answer);
void show_why(const struct show *view, const json_t *answer);
void show_job_line(const struct show *view, const json_t *answer);
/* Quiet: the ids, one a line; of "job", "jobs" or both. */
void show_job_ids(const struct show *view, const json_t *answer);
/* "job 42 queued, position 3, starts in about 5m (...)" */
void show_submitted(const struct show *view, const json_t *answer);

/* Words for parts of a job; they return `text`. */
char *show_cluster_gpus(const json_t *job, char *text, size_t size); /* "2", "0.5", "2x8", "-" */
char *show_exit(const json_t *job, char *text, size_t size);         /* "0", "3", "signal 9", ... */
char *show_where(const json_t *job, char *text, size_t size);        /* "gpu-a:0,1 gpu-b:0" */
char *show_start(const struct show *view, const json_t *job, char *text, size_t size);
const char *show_state(const json_t *job);
enum colour show_state_colour(const char *state);
enum { ACRE_SHOW_TEXT_MAX = 512 };

void show_nodes(const struct show *view, const json_t *answer);
void show_capacity(const struct show *view, const json_t *answer);
void show_best(const struct show *view, const json_t *answer);
void show_best_name(const struct show *view, const json_t *answer); /* quiet */
void show_balance(const struct show *view, const json_t *answer);
void show_choice_id(const struct show *view, const json_t *answer); /* quiet */
void show_gpus_table(const struct show *view, const json_t *answer);
void show_reservation_list(const struct show *view, const json_t *answer);
void show_reservation(const struct show *view, const json_t *answer);
void show_policy(const struct show *view, const json_t *answer);
void show_quotas(const struct show *view, const json_t *answer);
void show_usage(const struct show *view, const json_t *answer);
void show_tokens(const struct show *view, const json_t *answer);
void show_token(const struct show *view, const json_t *answer);
void show_audit(const struct show *view, const json_t *answer);
void show_audit_verdict(const struct show *view, const json_t *answer);
void show_stats(const struct show *view, const json_t *answer);

void show_node_names(const struct show *view, const json_t *answer); /* quiet */
void show_gpu_ids(const struct show *view, const json_t *answer);
/* Quiet: the "id" of each item of the list `key`, one a line. */
void show_id_list(const struct show *view, const json_t *answer, const char *key);

/* "label    text", wrapped beside the label; nothing when `text` is NULL, "" or "-". */
void show_fact(const struct show *view, const char *label, const char *text);
/* A cell of `text`, dim when it is "-". */
void show_cell(struct text_table *table, const char *text);
/* Mark what is simulated, in a cell of its own. */
void show_simulated(struct text_table *table, const json_t *item);
/* Print the table, or `empty` and a newline when it has no rows; destroys it. */
void show_table(const struct show *view, struct text_table *table, const char *empty);
/* "[####......]" for the part of 1000 that is used. */
char *show_bar(uint64_t used_milli, char *text, size_t size);

#endif
