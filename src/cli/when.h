/* when.h - times as people write them: "3m ago", "in 1h20m", "14:05", "Nov 14 09:30".
 *
 * Programs only: the time zone is that of the process. Callers pass now_ms. */
#ifndef ACRE_CLI_WHEN_H
#define ACRE_CLI_WHEN_H

#include "core/error.h"

enum { ACRE_WHEN_MAX = 48 }; /* any of the texts below fits */

/* "2026-11-15T02:30:00.123Z", or with an offset instead of Z; the fraction may be missing. */
bool when_parse(const char *text, uint64_t *ret_ms);

/* For rows of options (opt.h): a duration; a duration from now on, or a time. */
int when_check_span(const char *field, const char *value, struct acre_error *err);
int when_check_time(const char *field, const char *value, struct acre_error *err);

/* The two largest units: "45s", "3m20s", "1h05m", "2d3h"; under a second "0s". */
char *when_span(uint64_t ms, char *text, size_t size);
/* What is guessed or long ago, no finer than that is worth: "40s", "5m", "1h20m", "2d". */
char *when_about(uint64_t ms, char *text, size_t size);
/* "3m ago", "in 3m", "now". */
char *when_relative(uint64_t then_ms, uint64_t now_ms, char *text, size_t size);
/* Local: "14:05:09" today, "Nov 14 14:05" this year, else "2025-11-14". */
char *when_clock(uint64_t then_ms, uint64_t now_ms, char *text, size_t size);
/* "14:05:09 (3m ago)" */
char *when_both(uint64_t then_ms, uint64_t now_ms, char *text, size_t size);

#endif
