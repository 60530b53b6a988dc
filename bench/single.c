/* single.c - what a program gets that commits each row for itself. Written against SQLite, not
 * against our store, so that the comparison does not flatter us with our own overhead. */
#include "single.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bench_place bench_place_make(const char *parent) {
    struct bench_place place;
    snprintf(place.path, sizeof(place.path), "%s/acre-bench-XXXXXX", parent != NULL ? parent : ".");
    if (mkdtemp(place.path) == NULL) {
        bench_fail("%s: %s", place.path, strerror(errno));
    }
    return place;
}

void bench_place_remove(const struct bench_place *place) {
    DIR *directory = opendir(place->path);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        unlinkat(dirfd(directory), entry->d_name, 0); /* "." and ".." refuse */
    }
    if (directory != NULL) {
        closedir(directory);
    }
    rmdir(place->path);
}

static void run_sql(sqlite3 *db, const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        bench_fail("%s: %s", sql, sqlite3_errmsg(db));
    }
}

double bench_single_commits(const char *folder, uint64_t rows, double seconds, size_t row_bytes,
                            struct bench_times *times) {
    char path[PATH_MAX + 16];
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    char *text = acre_calloc(1, row_bytes + 1);
    memset(text, 's', row_bytes);
    snprintf(path, sizeof(path), "%s/single.db", folder);
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        bench_fail("%s: %s", path, sqlite3_errmsg(db));
    }
    run_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "CREATE TABLE rows(id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    if (sqlite3_prepare_v2(db, "INSERT INTO rows VALUES(?, ?)", -1, &insert, NULL) != SQLITE_OK) {
        bench_fail("%s: %s", path, sqlite3_errmsg(db));
    }
    double start_ns = bench_now_ns();
    double row_ns = start_ns;
    uint64_t count = 0;
    while (count < rows && row_ns - start_ns < seconds * 1e9) {
        sqlite3_bind_int64(insert, 1, (int64_t)count++);
        sqlite3_bind_text(insert, 2, text, (int)row_bytes, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) {
            bench_fail("%s: %s", path, sqlite3_errmsg(db));
        }
        sqlite3_reset(insert);
        double now_ns = bench_now_ns();
        if (times != NULL) {
            times->ns[times->count++] = now_ns - row_ns;
        }
        row_ns = now_ns;
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
    free(text);
    return (double)count / (row_ns - start_ns) * 1e9;
}
