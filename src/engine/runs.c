/* runs.c - an array of records, and an index of it. */
#include "engine/runs.h"

#include "core/str.h"

#include <stdlib.h>

static uint32_t hash_of(struct acre_run run) {
    uint64_t key[2] = {run.job, run.attempt};
    return (uint32_t)acre_hash_bytes(key, sizeof(key));
}

static uint32_t record_hash(uint32_t number, const void *context) {
    return hash_of(*((const struct runs *)context)->all[number]);
}

static bool record_is(uint32_t number, const void *key, const void *context) {
    const struct acre_run *run = ((const struct runs *)context)->all[number];
    const struct acre_run *wanted = key;
    return run->job == wanted->job && run->attempt == wanted->attempt;
}

static const struct acre_index_kind by_run = {record_hash, record_is};

void runs_finish(struct runs *runs) {
    free(runs->all);
    acre_index_finish(&runs->index);
    *runs = (struct runs){0};
}

static uint32_t number_of(const struct runs *runs, struct acre_run run) {
    return acre_index_find(&by_run, &runs->index, hash_of(run), &run, runs);
}

void *runs_find(const struct runs *runs, struct acre_run run) {
    uint32_t number = number_of(runs, run);
    return number != ACRE_INDEX_NONE ? runs->all[number] : NULL;
}

void runs_add(struct runs *runs, struct acre_run *record) {
    ACRE_ASSERT(runs_find(runs, *record) == NULL);
    runs->all = acre_grow(runs->all, runs->count, &runs->capacity, sizeof(struct acre_run *));
    runs->all[runs->count] = record;
    acre_index_add(&by_run, &runs->index, hash_of(*record), runs->count++, runs);
}

void *runs_remove(struct runs *runs, struct acre_run run) {
    uint32_t number = number_of(runs, run);
    if (number == ACRE_INDEX_NONE) {
        return NULL;
    }
    struct acre_run *record = runs->all[number];
    acre_index_remove(&by_run, &runs->index, hash_of(run), number, runs);
    uint32_t last = runs->count - 1;
    if (number != last) {
        uint32_t hash = hash_of(*runs->all[last]);
        acre_index_remove(&by_run, &runs->index, hash, last, runs);
        runs->all[number] = runs->all[last];
        acre_index_add(&by_run, &runs->index, hash, number, runs);
    }
    runs->count--;
    return record;
}
