/* store.c - opening by URL, the writer thread and its queue.
 *
 * Group commit. A committed batch is put at the end of a list under a mutex; the writer takes the
 * whole list, makes one transaction of it, and takes what has come meanwhile. There is no timer
 * and no waiting for company: groups grow by themselves as far as the disk is slower than the
 * callers. A wake-up is a system call and some 30 us, so the writer is woken only when it waits
 * (`writer_waits`, under the mutex), and the loop by acre_loop_post, once a group. The mutex is
 * held for a few pointers; no thread waits for the disk while holding it.
 *
 * Failure. When a batch fails, whatever was given after it was decided in the belief that it would
 * hold, and must fail too, however far it got. Batches carry the number of times the store was
 * resumed before them (`generation`); the writer refuses all up to the generation that failed.
 * acre_store_resume begins a new one, but only once the failure was reported: otherwise batches
 * after one that is about to fail would slip through.
 *
 * Memory. What waits for the disk is limited to QUEUE_MAX_BYTES: past that, acre_store_commit
 * waits for the writer. Failing instead would throw away the state of a daemon whose only trouble
 * is a slow disk. */
#include "core/thread.h"
#include "store/batch.h"
#include "store/store_driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* 15,000 small batches a second are 130 MB/s of arenas: half a second of a disk that stands still.
 * More clients than that wait at the socket. */
#define QUEUE_MAX_BYTES ((size_t)64 << 20)

enum { LIMIT_MAX = 1000 };

static const struct store_driver *const drivers[] = {
    &store_sqlite,
    &store_memory,
};

struct acre_store {
    const struct store_driver *driver;
    void *self;
    struct acre_loop *loop; /* NULL: no writer thread */
    bool read_only;

    /* Loop thread only. */
    uint64_t generation;
    bool reported; /* a failure of this generation was told */
    bool delivering;

    /* Writer only (the caller, without a loop). */
    uint64_t failed_generation; /* all up to this are refused; 0: none */
    struct acre_error failure;
    struct acre_batch **group;
    uint32_t group_capacity;

    pthread_t writer;
    pthread_mutex_t lock; /* the rest */
    pthread_cond_t work;  /* the writer waits: queue is empty */
    pthread_cond_t room;  /* the loop thread waits: queue is full */
    struct acre_batch *queue, **queue_end;
    size_t queue_bytes; /* with the group being committed */
    bool writer_waits, closing;
    struct acre_batch *finished, **finished_end;
    bool posted; /* deliver_finished is on its way */
};

/* --- committing ----------------------------------------------------------------------------- */

static void refuse(struct acre_batch *batch, const struct acre_error *err) {
    ACRE_ASSERT(batch->fail == NULL && err->code < 0);
    batch->fail = acre_calloc(1, sizeof(*batch->fail));
    *batch->fail = *err;
}

/* The batches of a list that are not refused already, as an array. */
static size_t gather(struct acre_store *store, struct acre_batch *first) {
    size_t count = 0;
    for (struct acre_batch *batch = first; batch != NULL; batch = batch->next) {
        if (batch->generation <= store->failed_generation) {
            refuse(batch, &store->failure);
            continue;
        }
        store->group =
            acre_grow(store->group, count, &store->group_capacity, sizeof(struct acre_batch *));
        store->group[count++] = batch;
    }
    return count;
}

/* Commit a list of batches; each knows afterwards how it went. */
static void run_group(struct acre_store *store, struct acre_batch *first) {
    size_t count = gather(store, first);
    size_t good = 0;
    while (good < count && !store->group[good]->too_large) {
        good++;
    }
    size_t applied = good;
    struct acre_error err = {0};
    int r = 0;
    if (good > 0) {
        r = store->driver->apply(store->self, store->group, good, &applied, &err);
    }
    ACRE_ASSERT(r == 0 ? applied == good : applied < good);
    if (r == 0 && good < count) {
        acre_fail(&err, ACRE_ELIMIT, "store: one change is larger than 512 MiB");
    }
    if (applied < count) {
        store->failed_generation = store->group[applied]->generation;
        store->failure = err;
    }
    for (size_t i = applied; i < count; i++) {
        refuse(store->group[i], &err);
    }
}

static void deliver(struct acre_store *store, struct acre_batch *batch) {
    static const struct acre_error success = {0};
    const struct acre_error *err = batch->fail != NULL ? batch->fail : &success;
    if (err->code != 0 && batch->generation == store->generation) {
        store->reported = true;
    }
    if (batch->done != NULL) {
        batch->done(batch->context, err->code, err);
    }
    acre_batch_destroy(batch);
}

/* On the loop: tell what happened to all batches that are done with, in order. */
static void deliver_finished(void *context) {
    struct acre_store *store = context;
    pthread_mutex_lock(&store->lock);
    struct acre_batch *batch = store->finished;
    store->finished = NULL;
    store->finished_end = &store->finished;
    store->posted = false;
    pthread_mutex_unlock(&store->lock);
    store->delivering = true;
    while (batch != NULL) {
        struct acre_batch *next = batch->next;
        deliver(store, batch);
        batch = next;
    }
    store->delivering = false;
}

/* Take the queue, waiting for it; NULL when the store is closing and nothing is left. */
static struct acre_batch *take_queue(struct acre_store *store, size_t *ret_bytes) {
    pthread_mutex_lock(&store->lock);
    while (store->queue == NULL && !store->closing) {
        store->writer_waits = true;
        pthread_cond_wait(&store->work, &store->lock);
    }
    store->writer_waits = false;
    struct acre_batch *first = store->queue;
    *ret_bytes = store->queue_bytes;
    store->queue = NULL;
    store->queue_end = &store->queue;
    pthread_mutex_unlock(&store->lock);
    return first;
}

/* Hand a list over to the loop; true when the loop must be told. */
static bool finish(struct acre_store *store, struct acre_batch *first, size_t bytes) {
    ACRE_ASSERT(first != NULL);
    struct acre_batch *last = first;
    while (last->next != NULL) {
        last = last->next;
    }
    pthread_mutex_lock(&store->lock);
    *store->finished_end = first;
    store->finished_end = &last->next;
    bool was_posted = store->posted;
    store->posted = true;
    ACRE_ASSERT(store->queue_bytes >= bytes && *store->finished_end == NULL);
    store->queue_bytes -= bytes;
    pthread_cond_signal(&store->room);
    pthread_mutex_unlock(&store->lock);
    return !was_posted;
}

static void *write_groups(void *context) {
    struct acre_store *store = context;
    struct acre_batch *first;
    size_t bytes;
    while ((first = take_queue(store, &bytes)) != NULL) {
        run_group(store, first);
        if (finish(store, first, bytes)) {
            acre_loop_post(store->loop, deliver_finished, store);
        }
        if (store->driver->rest != NULL) {
            store->driver->rest(store->self);
        }
    }
    return NULL;
}

static void enqueue(struct acre_store *store, struct acre_batch *batch) {
    size_t bytes = batch_bytes(batch);
    pthread_mutex_lock(&store->lock);
    while (store->queue_bytes > 0 && store->queue_bytes + bytes > QUEUE_MAX_BYTES &&
           !store->closing) {
        pthread_cond_wait(&store->room, &store->lock);
    }
    ACRE_ASSERT(*store->queue_end == NULL);
    *store->queue_end = batch;
    store->queue_end = &batch->next;
    store->queue_bytes += bytes;
    bool wake = store->writer_waits;
    store->writer_waits = false; /* one signal is enough */
    pthread_mutex_unlock(&store->lock);
    if (wake) {
        pthread_cond_signal(&store->work);
    }
}

void acre_store_commit(struct acre_store *store, struct acre_batch *batch, acre_store_done *done,
                       void *context) {
    ACRE_ASSERT(!store->read_only && batch->next == NULL && batch->fail == NULL);
    batch->done = done;
    batch->context = context;
    batch->generation = store->generation;
    if (store->loop != NULL) {
        enqueue(store, batch);
        return;
    }
    run_group(store, batch);
    deliver(store, batch);
    if (store->driver->rest != NULL) {
        store->driver->rest(store->self);
    }
}

void acre_store_resume(struct acre_store *store) {
    if (store->reported) {
        store->generation++;
        store->reported = false;
    }
}

/* --- opening and closing -------------------------------------------------------------------- */

static const struct store_driver *find_driver(const char *url, const char **ret_where,
                                              struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(drivers); i++) {
        size_t length = strlen(drivers[i]->scheme);
        if (strncmp(url, drivers[i]->scheme, length) == 0 && url[length] == ':') {
            *ret_where = url + length + 1;
            return drivers[i];
        }
    }
    struct acre_buf accepted;
    char shown[128];
    acre_buf_init(&accepted, 256);
    for (size_t i = 0; i < ACRE_COUNT(drivers); i++) {
        acre_buf_printf(&accepted, "%s%s", i > 0 ? ", " : "", drivers[i]->usage);
    }
    acre_fail(err, ACRE_EINVALID, "store: '%s' is not a store; accepted: %s",
              acre_str_show(acre_str_from(url), shown, sizeof(shown)), accepted.data);
    acre_buf_finish(&accepted);
    return NULL;
}

static int start_writer(struct acre_store *store, struct acre_error *err) {
    int error = acre_thread_start(&store->writer, "acre-store", write_groups, store);
    return error == 0 ? 0 : acre_fail_errno(err, error, "store: thread");
}

int acre_store_open(const struct acre_store_options *options, struct acre_store **ret_store,
                    struct acre_error *err) {
    ACRE_ASSERT(options->url != NULL);
    const char *where;
    const struct store_driver *driver = find_driver(options->url, &where, err);
    if (driver == NULL) {
        return ACRE_EINVALID;
    }
    struct acre_store *store = acre_calloc(1, sizeof(*store));
    store->driver = driver;
    store->loop = options->read_only ? NULL : options->loop;
    store->read_only = options->read_only;
    store->generation = 1;
    store->queue_end = &store->queue;
    store->finished_end = &store->finished;
    int r = driver->open(where, options->read_only, &store->self, err);
    if (r < 0) {
        goto fail;
    }
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->work, NULL);
    pthread_cond_init(&store->room, NULL);
    r = store->loop != NULL ? start_writer(store, err) : 0;
    if (r < 0) {
        driver->close(store->self);
        goto fail;
    }
    *ret_store = store;
    return 0;
fail:
    free(store);
    return r;
}

/* The writer ends when its queue is empty; what `done` functions still commit is done here. */
static void stop_writer(struct acre_store *store) {
    pthread_mutex_lock(&store->lock);
    store->closing = true;
    pthread_mutex_unlock(&store->lock);
    pthread_cond_signal(&store->work);
    pthread_join(store->writer, NULL);
    acre_loop_unpost(store->loop, store);
    struct acre_batch *first;
    size_t bytes;
    deliver_finished(store);
    while ((first = take_queue(store, &bytes)) != NULL) {
        run_group(store, first);
        finish(store, first, bytes);
        deliver_finished(store);
    }
}

void acre_store_close(struct acre_store *store) {
    if (store == NULL) {
        return;
    }
    ACRE_ASSERT(!store->delivering);
    if (store->loop != NULL) {
        stop_writer(store);
    }
    store->driver->close(store->self);
    pthread_cond_destroy(&store->room);
    pthread_cond_destroy(&store->work);
    pthread_mutex_destroy(&store->lock);
    free(store->group);
    free(store);
}

/* --- reading -------------------------------------------------------------------------------- */

static int check_limit(uint32_t limit, struct acre_error *err) {
    if (limit < 1 || limit > LIMIT_MAX) {
        return acre_fail(err, ACRE_EINVALID, "limit: %u is out of range; accepted: 1 to %d", limit,
                         LIMIT_MAX);
    }
    return 0;
}

int acre_store_jobs(struct acre_store *store, const struct acre_job_filter *filter,
                    acre_job_visit *visit, void *context, struct acre_error *err) {
    int r = check_limit(filter->limit, err);
    return r < 0 ? r : store->driver->jobs(store->self, filter, visit, context, err);
}

int acre_store_job(struct acre_store *store, uint64_t id, acre_job_visit *visit, void *context,
                   struct acre_error *err) {
    return store->driver->job(store->self, id, visit, context, err);
}

uint64_t acre_store_last_job(struct acre_store *store) {
    return store->driver->last_job(store->self);
}

int acre_store_statistics(struct acre_store *store, uint64_t since_ms,
                          struct acre_job_statistics *ret_statistics, struct acre_error *err) {
    return store->driver->statistics(store->self, since_ms, ret_statistics, err);
}

int acre_store_accounts(struct acre_store *store, acre_account_visit *visit, void *context,
                        struct acre_error *err) {
    return store->driver->accounts(store->self, visit, context, err);
}

int acre_store_setting(struct acre_store *store, const char *name, struct acre_buf *ret_value,
                       struct acre_error *err) {
    return store->driver->setting(store->self, name, ret_value, err);
}

int acre_store_tokens(struct acre_store *store, acre_token_visit *visit, void *context,
                      struct acre_error *err) {
    return store->driver->tokens(store->self, visit, context, err);
}

int acre_store_reservations(struct acre_store *store, acre_reservation_visit *visit, void *context,
                            struct acre_error *err) {
    return store->driver->reservations(store->self, visit, context, err);
}

int acre_store_drains(struct acre_store *store, acre_drain_visit *visit, void *context,
                      struct acre_error *err) {
    return store->driver->drains(store->self, visit, context, err);
}

int acre_store_audit(struct acre_store *store, const struct acre_audit_filter *filter,
                     audit_visit *visit, void *context, struct acre_error *err) {
    int r = check_limit(filter->limit, err);
    return r < 0 ? r : store->driver->audit(store->self, filter, visit, context, err);
}

int acre_store_verify_audit(struct acre_store *store, uint64_t *ret_count, uint8_t ret_head[32],
                            struct acre_error *err) {
    struct audit_check check;
    struct audit_head kept = {0};
    audit_check_begin(&check);
    int r = store->driver->trail(store->self, &kept, audit_check_record, &check, err);
    int found = audit_check_end(&check, &kept, r < 0 ? NULL : err);
    if (r < 0 || found < 0) {
        return r < 0 ? r : found;
    }
    *ret_count = kept.count;
    memcpy(ret_head, kept.hash, sizeof(kept.hash));
    return 0;
}
