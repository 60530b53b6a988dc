/* single.h - the measure for group commit: SQLite, one row a transaction, synced.
 *
 * Programs only, one thread. */
#ifndef ACRE_BENCH_SINGLE_H
#define ACRE_BENCH_SINGLE_H

#include "bench.h"

/* A new directory inside `parent` (NULL: the current one) to measure in; and away with it and the
 * files in it. Failures end the program. */
struct bench_place {
    char path[4096];
};
struct bench_place bench_place_make(const char *parent);
void bench_place_remove(const struct bench_place *place);

/* Insert rows of `row_bytes` in `folder`, each in a transaction of its own (WAL, synchronous=FULL,
 * one prepared statement, nothing else: as fast as SQLite commits here), until there are `rows` or
 * `seconds` are over. Returns rows a second; the times go to `times`, which has room for them
 * (NULL: not wanted). */
double bench_single_commits(const char *folder, uint64_t rows, double seconds, size_t row_bytes,
                            struct bench_times *times);

#endif
