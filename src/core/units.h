/* units.h - sizes, durations, fractions and counts, as people write them.
 *
 * Strict: no sign, no leading or trailing blanks, no hexadecimal, no exponent; a number that
 * does not fit is an error, never wrapped or rounded silently. On failure the output is
 * untouched and `err` names the field, the value and what is accepted. Pure; any thread.
 *
 *   mib       "512MiB" "80GiB" "1.5GiB" "2TiB" (IEC), "16GB" (SI, rounded down to MiB) or a
 *             bare number of MiB; the result is 1 ... ACRE_MIB_MAX
 *   duration  "90s" "90m" "1h30m" "7d" "1500ms"; a bare number is refused (which unit?)
 *   milli     a share of one GPU: "0.1" ... "1.0", at most three decimals -> 100 ... 1000
 *   count     a whole number within [min, max] */
#ifndef ACRE_CORE_UNITS_H
#define ACRE_CORE_UNITS_H

#include "core/error.h"

/* 2^40 MiB is an exbibyte: sums over 2^20 devices still fit 63 bits. */
#define ACRE_MIB_MAX (UINT64_C(1) << 40)
/* 100 years in ms: now + duration cannot overflow. */
#define ACRE_DURATION_MAX_MS (UINT64_C(100) * 366 * 24 * 3600 * 1000)

int acre_parse_mib(const char *field, const char *text, uint64_t *ret_mib, struct acre_error *err);
int acre_parse_duration(const char *field, const char *text, uint64_t *ret_ms,
                        struct acre_error *err);
int acre_parse_milli(const char *field, const char *text, uint32_t min_milli, uint32_t max_milli,
                     uint32_t *ret_milli, struct acre_error *err);
int acre_parse_count(const char *field, const char *text, uint64_t min, uint64_t max,
                     uint64_t *ret_count, struct acre_error *err);

/* Shortest exact or one-decimal form, e.g. "80 GiB", "512 MiB", "1h30m", "0.25". They write
 * at most `size` bytes, NUL included, and return `text`. */
char *acre_format_mib(uint64_t mib, char *text, size_t size);
char *acre_format_duration(uint64_t ms, char *text, size_t size);
char *acre_format_milli(uint64_t milli, char *text, size_t size);

/* For sentences. A span is rounded up to what people need of it: "450 ms", "45 s", "3 min 20 s",
 * "59 min", "2 h 5 min", "3 days 4 h". A count and an amount have a noun: "1 job", "2 jobs";
 * "1 GPU", "0.5 GPUs". */
char *acre_format_span(uint64_t ms, char *text, size_t size);
char *acre_format_count(uint64_t count, const char *noun, char *text, size_t size);
char *acre_format_amount(uint64_t milli, const char *noun, char *text, size_t size);

#endif
