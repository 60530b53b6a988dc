/* process.c - see process.h.
 *
 * The fork() handlers hold the list's lock across the fork, so that the child finds the list
 * consistent and the lock free. It holds addresses: a closed context is never dereferenced. */
#include "compute/process.h"

_Atomic uint32_t process_number;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct acre_context *open_contexts;

static void before_fork(void) {
    pthread_mutex_lock(&open_lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&open_lock);
}

static void after_fork_in_child(void) {
    atomic_fetch_add(&process_number, 1);
    pthread_mutex_unlock(&open_lock);
}

static void count_forks(void) {
    int error = pthread_atfork(before_fork, after_fork, after_fork_in_child);
    ACRE_ASSERT(error == 0); /* no memory for three addresses */
}

void process_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, count_forks);
}

void process_add(struct acre_context *context) {
    pthread_mutex_lock(&open_lock);
    context->next_open = open_contexts;
    open_contexts = context;
    pthread_mutex_unlock(&open_lock);
}

bool process_take(struct acre_context *context) {
    pthread_mutex_lock(&open_lock);
    struct acre_context **link = &open_contexts;
    while (*link != NULL && *link != context) {
        link = &(*link)->next_open;
    }
    bool is_open = *link != NULL;
    if (is_open) {
        *link = context->next_open;
    }
    pthread_mutex_unlock(&open_lock);
    return is_open;
}

int process_refuse(const char *what, const void *handle, struct acre_error *err) {
    return handle == NULL ? acre_fail(err, ACRE_EINVALID, "%s: must not be NULL", what)
                          : acre_fail(err, ACRE_ECONFLICT,
                                      "%s: belongs to the parent process; after fork(), open a new "
                                      "runtime in the child",
                                      what);
}

int process_refuse_stream(const struct acre_stream *stream, struct acre_error *err) {
    return stream != NULL && stream->magic != STREAM_MAGIC
               ? acre_fail(err, ACRE_EINVALID, "stream: already destroyed")
               : process_refuse("stream", stream, err);
}
