/* workers.c - the threads that run the work queued on streams of a seat.
 *
 * A worker takes a stream and runs its tasks one after the other. A large task (a launch of many
 * groups, a large copy) is opened as a job: every idle worker takes some of its units, then some
 * more, until none are left; the one that finishes last continues with the stream. No worker ever
 * waits for another, or for a counter: a stream that must wait is parked, and the signal it waits
 * for makes it ready again. Workers on a long job regularly look for streams that became ready, and
 * after serving a stream they return to the jobs: neither starves.
 *
 * Waking a sleeping thread takes microseconds, so one worker that has just worked spins for a
 * moment before it sleeps, and picks up new work without being woken. A thread that queues work
 * leaves it to the spinner; a worker that takes work while there is more wakes the next one. No
 * worker spins in an idle seat. */
#include "compute/cpu/cpu.h"
#include "core/futex.h"
#include "core/spin.h"
#include "core/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE_NS = 20000,          /* tasks shorter than this are not worth waking others */
    CHUNKS_A_WORKER = 8,       /* enough that unequal ones even out */
    FOREIGN_STEP_NS = 1000000, /* between looks at words whose writers do not tell us */
};

/* --- sleeping and waking -------------------------------------------------------------------- */

/* Not under the lock: the woken would run into it. */
static void wake(struct cpu_pool *pool, uint32_t count) {
    if (count == 0 || (count == 1 && atomic_load(&pool->has_spinner))) {
        return;
    }
    atomic_fetch_add(&pool->bell, 1);
    if (atomic_load(&pool->sleepers) > 0) {
        acre_futex_wake(&pool->bell, count, ACRE_FUTEX_PRIVATE);
    }
}

static bool look_for_more(struct cpu_pool *pool) {
    if (pool->worker_max < 2 || atomic_exchange(&pool->has_spinner, true)) {
        return false;
    }
    struct acre_spin spin = {0};
    bool found = false;
    while (!found && acre_spin(&spin, ACRE_SPIN_WORK_NS)) {
        found = atomic_load(&pool->work_count) > 0;
    }
    atomic_store(&pool->has_spinner, false);
    return found || atomic_load(&pool->work_count) > 0;
}

/* Lock held, and given up meanwhile. */
static void rest(struct cpu_pool *pool) {
    pthread_mutex_unlock(&pool->lock);
    bool found = look_for_more(pool);
    pthread_mutex_lock(&pool->lock);
    if (found || pool->is_ending) {
        return;
    }
    bool is_watcher = pool->foreign_count > 0 && !pool->has_watcher;
    pool->has_watcher |= is_watcher;
    uint32_t seen = atomic_load(&pool->bell);
    atomic_fetch_add(&pool->sleepers, 1);
    if (atomic_load(&pool->work_count) == 0) {
        pthread_mutex_unlock(&pool->lock);
        uint64_t limit_ns = is_watcher ? FOREIGN_STEP_NS : ACRE_FUTEX_NO_LIMIT;
        acre_futex_wait(&pool->bell, seen, limit_ns, ACRE_FUTEX_PRIVATE);
        pthread_mutex_lock(&pool->lock);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    pool->has_watcher &= !is_watcher;
}

/* --- streams that are ready or parked; lock held --------------------------------------------- */

static void make_ready(struct cpu_pool *pool, struct cpu_stream *stream) {
    stream->state = CPU_READY;
    stream->next_waiting = NULL;
    *pool->ready_tail = stream;
    pool->ready_tail = &stream->next_waiting;
    atomic_fetch_add(&pool->ready_count, 1);
    atomic_fetch_add(&pool->work_count, 1);
}

static struct cpu_stream *take_ready(struct cpu_pool *pool) {
    struct cpu_stream *stream = pool->ready;
    pool->ready = stream->next_waiting;
    if (pool->ready == NULL) {
        pool->ready_tail = &pool->ready;
    }
    atomic_fetch_sub(&pool->ready_count, 1);
    atomic_fetch_sub(&pool->work_count, 1);
    stream->state = CPU_RUNNING;
    return stream;
}

static bool is_reached(const struct cpu_task *task) {
    return atomic_load(task->wait.word) >= task->wait.value;
}

static uint32_t unpark(struct cpu_pool *pool) {
    uint32_t count = 0;
    struct cpu_stream **link = &pool->parked;
    while (*link != NULL) {
        struct cpu_stream *stream = *link;
        if (!is_reached(stream->running)) {
            link = &stream->next_waiting;
            continue;
        }
        *link = stream->next_waiting;
        atomic_fetch_sub(&pool->parked_count, 1);
        pool->foreign_count -= stream->is_foreign;
        make_ready(pool, stream);
        count++;
    }
    return count;
}

void cpu_pool_wake_parked(struct cpu_pool *pool) {
    if (atomic_load(&pool->parked_count) == 0) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    uint32_t count = unpark(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, count);
}

/* Put the stream aside unless the word has just been written. The count is raised before the word
 * is looked at; a signal writes the word before it looks at the count. */
static bool park(struct cpu_pool *pool, struct cpu_stream *stream) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->parked_count, 1);
    bool is_parked = !is_reached(stream->running);
    if (is_parked) {
        stream->state = CPU_PARKED;
        stream->next_waiting = pool->parked;
        pool->parked = stream;
        stream->is_foreign = stream->running->wait.is_foreign;
        pool->foreign_count += stream->is_foreign;
    } else {
        atomic_fetch_sub(&pool->parked_count, 1);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_parked;
}

/* --- running -------------------------------------------------------------------------------- */

/* The next of its tasks; NULL: none, and the stream is idle: another's, or gone, from then on. */
static struct cpu_task *next_task(struct cpu_pool *pool, struct cpu_stream *stream) {
    struct cpu_task *task = stream->running;
    if (task == NULL) {
        pthread_mutex_lock(&pool->lock);
        task = stream->running = stream->head;
        stream->head = NULL;
        stream->tail = &stream->head;
        if (task == NULL) {
            stream->state = CPU_IDLE;
            if (pool->settling > 0) {
                pthread_cond_broadcast(&pool->settled);
            }
        }
        pthread_mutex_unlock(&pool->lock);
    }
    return task;
}

static void end_task(struct cpu_stream *stream, struct cpu_task *task) {
    uint64_t now_ns = task->begun_ns != 0 ? acre_monotonic_ns() : 0;
    cpu_task_record(task, now_ns);
    stream->running = task->next;
    bool is_signal = task->kind == CPU_SIGNAL;
    uint64_t value = is_signal ? task->value : 0;
    free(task);
    /* Before the signal: whoever sees that finds the stream at rest, and may run small work
     * itself. Words only grow, so it does not matter that a later signal may overtake this one. */
    atomic_fetch_sub_explicit(&stream->pending, 1, memory_order_release);
    if (is_signal) {
        cpu_signal(stream, value);
    }
}

/* Take units of an open job until there are none or a stream is ready. True: the caller was the
 * last, and finishes the task. */
static bool help(struct cpu_worker *worker, struct cpu_task *task) {
    struct cpu_pool *pool = worker->pool;
    uint64_t done = 0;
    uint64_t begun_ns = acre_monotonic_ns();
    uint64_t first = atomic_fetch_add(&task->taken, task->chunk);
    while (first < task->units) {
        uint64_t end = task->units - first > task->chunk ? first + task->chunk : task->units;
        cpu_task_run(worker, task, first, end);
        done += end - first;
        if (atomic_load_explicit(&pool->ready_count, memory_order_relaxed) > 0) {
            break;
        }
        first = atomic_fetch_add(&task->taken, task->chunk);
    }
    cpu_task_measured(task, done, acre_monotonic_ns() - begun_ns);
    pthread_mutex_lock(&pool->lock);
    bool is_taken = atomic_load(&task->taken) >= task->units;
    struct cpu_task **link = &pool->jobs;
    while (is_taken && *link != NULL && *link != task) {
        link = &(*link)->next_job;
    }
    if (is_taken && *link == task) {
        *link = task->next_job;
        atomic_fetch_sub(&pool->work_count, 1);
    }
    bool is_last = --task->users == 0 && is_taken;
    pthread_mutex_unlock(&pool->lock);
    return is_last;
}

static void open_job(struct cpu_pool *pool, struct cpu_task *task) {
    task->chunk = ACRE_MAX(task->units / ((uint64_t)pool->worker_count * CHUNKS_A_WORKER), 1);
    uint64_t chunks = (task->units - 1) / task->chunk + 1;
    task->users = 1;
    pthread_mutex_lock(&pool->lock);
    struct cpu_task **link = &pool->jobs;
    while (*link != NULL) { /* the oldest first */
        link = &(*link)->next_job;
    }
    task->next_job = NULL;
    *link = task;
    atomic_fetch_add(&pool->work_count, 1);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, (uint32_t)ACRE_MIN(chunks, (uint64_t)pool->worker_count) - 1);
}

/* False: the stream is parked, or another worker finishes the task. */
static bool run_task(struct cpu_worker *worker, struct cpu_task *task) {
    struct cpu_pool *pool = worker->pool;
    if (task->kind == CPU_WAIT) {
        return is_reached(task) || !park(pool, task->stream);
    }
    if (task->kind == CPU_SIGNAL) {
        return true; /* by end_task */
    }
    task->begun_ns = acre_monotonic_ns();
    if (task->units < 2 || pool->worker_count < 2 || cpu_task_estimate_ns(task) < SHARE_NS) {
        cpu_task_run(worker, task, 0, task->units);
        cpu_task_measured(task, task->units, acre_monotonic_ns() - task->begun_ns);
        return true;
    }
    open_job(pool, task);
    return help(worker, task);
}

static void run_stream(struct cpu_worker *worker, struct cpu_stream *stream) {
    struct cpu_task *task = next_task(worker->pool, stream);
    while (task != NULL && run_task(worker, task)) {
        end_task(stream, task);
        task = next_task(worker->pool, stream);
    }
}

/* One turn: lock held, and given up meanwhile. False: there is nothing to do. */
static bool serve(struct cpu_worker *worker) {
    struct cpu_pool *pool = worker->pool;
    struct cpu_task *job = pool->jobs;
    if (pool->foreign_count > 0) {
        unpark(pool);
    }
    if (pool->ready == NULL && job == NULL) {
        return false;
    }
    struct cpu_stream *stream = NULL;
    worker->owes_job = pool->ready != NULL && !(worker->owes_job && job != NULL);
    if (worker->owes_job) {
        stream = take_ready(pool);
    } else {
        job->users++;
    }
    bool is_more = pool->ready != NULL;
    pthread_mutex_unlock(&pool->lock);
    wake(pool, is_more ? 1 : 0);
    if (stream == NULL && help(worker, job)) {
        stream = job->stream;
        end_task(stream, job);
    }
    if (stream != NULL) {
        run_stream(worker, stream);
    }
    pthread_mutex_lock(&pool->lock);
    return true;
}

static void *work(void *user) {
    struct cpu_worker *worker = user;
    struct cpu_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_ending) {
        if (!serve(worker)) {
            rest(pool);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- giving --------------------------------------------------------------------------------- */

void cpu_pool_give(struct cpu_pool *pool, struct cpu_stream *stream, struct cpu_task *task) {
    cpu_pool_see(pool);
    task->next = NULL;
    task->stream = stream;
    atomic_fetch_add_explicit(&stream->pending, 1, memory_order_relaxed);
    pthread_mutex_lock(&pool->lock);
    *stream->tail = task;
    stream->tail = &task->next;
    bool was_idle = stream->state == CPU_IDLE;
    if (was_idle) {
        make_ready(pool, stream);
    }
    pthread_mutex_unlock(&pool->lock);
    wake(pool, was_idle ? 1 : 0);
}

void cpu_pool_settle(struct cpu_pool *pool, struct cpu_stream *stream) {
    pthread_mutex_lock(&pool->lock);
    pool->settling++;
    while (stream->state != CPU_IDLE && !pool->is_ending) {
        pthread_cond_wait(&pool->settled, &pool->lock);
    }
    pool->settling--;
    pthread_mutex_unlock(&pool->lock);
}

/* --- life ----------------------------------------------------------------------------------- */

int cpu_pool_init(struct cpu_pool *pool, uint32_t cores, struct cpu_tripwires *tripwires,
                  struct acre_error *err) {
    *pool = (struct cpu_pool){.tripwires = tripwires};
    pool->ready_tail = &pool->ready;
    /* Two at least: one kernel may wait for what another writes. */
    pool->worker_max = ACRE_MIN(ACRE_MAX(cores, 2U), (uint32_t)CPU_WORKERS_MAX);
    pool->workers = calloc(pool->worker_max, sizeof(*pool->workers));
    if (pool->workers == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cpu: workers");
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->settled, NULL);
    return 0;
}

static void unequip(struct cpu_pool *pool, uint32_t first_worker) {
    for (uint32_t i = first_worker; i < pool->worker_max; i++) {
        cpu_fibers_destroy(pool->workers[i].fibers);
        free(pool->workers[i].local);
    }
}

/* Threads are of no use to a seat that runs small work only, so they come with the first task
 * that is not. */
int cpu_pool_start(struct cpu_pool *pool, struct acre_error *err) {
    if (atomic_load_explicit(&pool->is_started, memory_order_acquire)) {
        return 0;
    }
    pthread_mutex_lock(&pool->lock);
    int e = 0;
    while (pool->worker_count < pool->worker_max && e == 0) {
        struct cpu_worker *worker = &pool->workers[pool->worker_count];
        worker->pool = pool;
        e = acre_thread_start(&worker->thread, "acre-cpu", work, worker);
        pool->worker_count += e == 0;
    }
    if (e != 0 && pool->worker_count > 0) {
        unequip(pool, pool->worker_count);
        pool->worker_max = pool->worker_count; /* fewer, then */
        e = 0;
    }
    atomic_store_explicit(&pool->is_started, e == 0, memory_order_release);
    pthread_mutex_unlock(&pool->lock);
    return e == 0 ? 0 : acre_fail_errno(err, e, "cpu: cannot start a worker thread");
}

int cpu_pool_equip(struct cpu_pool *pool, bool fibers, bool local, struct acre_error *err) {
    if (!fibers && atomic_load_explicit(&pool->has_local, memory_order_acquire)) {
        return 0;
    }
    int r = 0;
    pthread_mutex_lock(&pool->lock);
    uint32_t tripwire_max = cpu_tripwires_share(pool->tripwires, pool->worker_max);
    for (uint32_t i = 0; i < pool->worker_max && r == 0; i++) {
        struct cpu_worker *worker = &pool->workers[i];
        if (fibers && worker->fibers == NULL) {
            worker->fibers = cpu_fibers_create(CPU_GROUP_MAX, pool->tripwires, tripwire_max);
            r = worker->fibers == NULL ? ACRE_ENOMEM : 0;
        }
        if (local && worker->local == NULL) {
            worker->local = aligned_alloc(64, CPU_LOCAL_MAX_BYTES);
            r = worker->local == NULL ? ACRE_ENOMEM : r;
        }
    }
    if (local && r == 0) {
        atomic_store_explicit(&pool->has_local, true, memory_order_release);
    }
    pthread_mutex_unlock(&pool->lock);
    return r == 0 ? 0
                  : acre_fail(err, r, "cpu: no memory for the local memory of %u workers",
                              pool->worker_max);
}

void cpu_pool_end(struct cpu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->is_ending = true;
    atomic_fetch_add(&pool->bell, 1);
    pthread_mutex_unlock(&pool->lock);
    acre_futex_wake(&pool->bell, ACRE_FUTEX_ALL, ACRE_FUTEX_PRIVATE);
    for (uint32_t i = 0; i < pool->worker_count; i++) {
        pthread_join(pool->workers[i].thread, NULL);
    }
}

void cpu_pool_finish(struct cpu_pool *pool) {
    unequip(pool, 0);
    free(pool->workers);
    pthread_cond_destroy(&pool->settled);
    pthread_mutex_destroy(&pool->lock);
}
