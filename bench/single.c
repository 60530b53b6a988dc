/* single.c - what a program gets that commits each row for itself. Written against SQLite, not
 * against our store, so that the comparison does not flatter us with our own overhead. */
#include "single.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void give_up(const char *what, const char *why) {
    fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1);
}

struct bench_place bench_place_make(const char *parent) {
    struct bench_place place;
    snprintf(place.path, sizeof(place.path), "%s/acre-bench-XXXXXX", parent != NULL ? parent : ".");
    if (mkdtemp(place.path) == NULL) {
        give_up(place.path, strerror(errno));
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
        give_up(sql, sqlite3_errmsg(db));
    }
}

double bench_single_commits(const struct bench_place *place, uint64_t rows, size_t row_bytes,
                            struct bench_times *times) {
    char path[sizeof(place->path) + 16];
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    char *text = acre_calloc(1, row_bytes + 1);
    memset(text, 's', row_bytes);
    snprintf(path, sizeof(path), "%s/single.db", place->path);
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        give_up(path, sqlite3_errmsg(db));
    }
    run_sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                "CREATE TABLE rows(id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
    if (sqlite3_prepare_v2(db, "INSERT INTO rows VALUES(?, ?)", -1, &insert, NULL) != SQLITE_OK) {
        give_up(path, sqlite3_errmsg(db));
    }
    double start_ns = bench_now_ns();
    for (uint64_t i = 0; i < rows; i++) {
        double row_ns = bench_now_ns();
        sqlite3_bind_int64(insert, 1, (int64_t)i);
        sqlite3_bind_text(insert, 2, text, (int)row_bytes, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) {
            give_up(path, sqlite3_errmsg(db));
        }
        sqlite3_reset(insert);
        if (times != NULL) {
            times->ns[times->count++] = bench_now_ns() - row_ns;
        }
    }
    double taken_ns = bench_now_ns() - start_ns;
    sqlite3_finalize(insert);
    sqlite3_close(db);
    free(text);
    return (double)rows / taken_ns * 1e9;
}
