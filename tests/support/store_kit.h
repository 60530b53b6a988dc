/* store_kit.h - stores to test: beds to open them in, rows, and commits that wait.
 *
 * Failures end the test. One thread. */
#ifndef ACRE_TEST_STORE_KIT_H
#define ACRE_TEST_STORE_KIT_H

#include "store/store.h"

#include "support/tree.h"

struct bed {
    const char *name; /* of the driver and whether there is a loop */
    const char *url;  /* NULL: SQLite, in the tree */
    bool with_loop;

    struct tree tree;
    struct acre_loop *loop;
    struct acre_store *store;
    char path[96]; /* of the SQLite file */
};

extern const struct bed kit_beds[];
extern const size_t kit_bed_count;

/* A bed with its store open; and its end. */
struct bed bed_make(const struct bed *kind);
void bed_remove(struct bed *bed);
/* Run a test in every bed. */
void bed_each(void (*test)(struct bed *bed));

void bed_open(struct bed *bed);
int bed_try_open(struct bed *bed, struct acre_error *err);
void bed_close(struct bed *bed);

/* A job with every field set, different for different ids. The strings are good until the next
 * call but fifteen. */
struct acre_store_job kit_job(uint64_t id);
struct acre_store_audit kit_audit(const char *action, const char *target);
void kit_check_job(const struct acre_store_job *job, const struct acre_store_job *expected);

/* Commit and wait for the answer. */
int bed_commit(struct bed *bed, struct acre_batch *batch, struct acre_error *err);
/* It must be 0. */
void bed_commit_ok(struct bed *bed, struct acre_batch *batch);
void bed_add_jobs(struct bed *bed, uint64_t first, uint64_t last);
/* Run the loop until `*count` is `wanted`; nothing without a loop. `count` is increased by
 * kit_count_done, whose context it is. */
struct kit_count {
    struct acre_loop *loop;
    unsigned done, failed, wanted;
};
void kit_count_done(void *context, int code, const struct acre_error *err);
void kit_wait(struct kit_count *count, unsigned wanted);

/* "1 2 3": the ids a filter gives, in a buffer of its own until the next call but three. */
const char *kit_ids(struct acre_store *store, const struct acre_job_filter *filter);
const char *kit_seqs(struct acre_store *store, const struct acre_audit_filter *filter);

#endif
