/* loop.c - libuv for timers, signals and descriptors; a lock-free stack for posts.
 *
 * Posting: producers push onto a stack (compare-and-swap on its head); the loop takes the
 * whole stack with one exchange and reverses it, which restores the order of each producer.
 * There is no pop, so no ABA problem, and no producer ever waits for another.
 *
 * Waking costs a system call, so it happens only when the loop may sleep. Before it polls, the
 * loop sets `may_sleep` and then looks at the stack; a producer pushes and then looks at
 * `may_sleep`. All four are sequentially consistent, so at least one of the two sees what the
 * other did: either the loop finds the post, or the producer wakes the loop. Each sleep is
 * ended by at most one producer, because the flag is taken with an exchange. */
#include "core/loop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uv.h>

struct post {
    struct post *next;
    acre_loop_function *function;
    void *context;
};

/* A timer, a signal or a descriptor: a libuv handle and what to call. */
struct loop_watch {
    union {
        uv_handle_t handle;
        uv_timer_t timer;
        uv_signal_t signal;
        uv_poll_t poll;
    } uv; /* first: a handle is its watch */
    struct acre_loop *loop;
    struct loop_watch *next;
    struct loop_watch **previous; /* what points at us */
    acre_loop_function *function;
    void *context;
};

struct acre_timer {
    struct loop_watch watch; /* first */
};

struct acre_watch {
    struct loop_watch watch; /* first */
};

enum { CACHE_LINE_BYTES = 64 };

struct acre_loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    struct loop_watch *watches;
    acre_loop_function *each_turn;
    void *each_turn_context;
    struct post *due; /* taken from `posts` and not yet run; oldest first */
    bool stopped;
    pthread_t owner; /* while `running` */
    _Atomic bool running;

    /* Written by producers; on a line of its own. Allocated with that alignment. */
    _Alignas(CACHE_LINE_BYTES) _Atomic(struct post *) posts; /* newest first */
    _Atomic bool may_sleep;
};

static void assert_owner(const struct acre_loop *loop) {
    ACRE_ASSERT(!atomic_load_explicit(&loop->running, memory_order_acquire) ||
                pthread_equal(loop->owner, pthread_self()));
}

/* Take what was posted until now, behind what is due already. */
static void take_posts(struct acre_loop *loop) {
    /* acquire: pairs with the release of the push, so that what the producer wrote before
     * posting is seen by the function. */
    struct post *newest = atomic_exchange_explicit(&loop->posts, NULL, memory_order_acquire);
    struct post *oldest = NULL;
    while (newest != NULL) {
        struct post *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    struct post **end = &loop->due;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = oldest;
}

/* Run what was posted until now; true when there was something. */
static bool run_posts(struct acre_loop *loop) {
    take_posts(loop);
    bool any = loop->due != NULL;
    while (loop->due != NULL) {
        struct post post = *loop->due;
        free(loop->due);
        loop->due = post.next;
        post.function(post.context);
    }
    return any;
}

void acre_loop_unpost(struct acre_loop *loop, const void *context) {
    assert_owner(loop);
    take_posts(loop);
    struct post **at = &loop->due;
    while (*at != NULL) {
        struct post *post = *at;
        if (post->context == context) {
            *at = post->next;
            free(post);
        } else {
            at = &post->next;
        }
    }
}

static void on_before_poll(uv_prepare_t *handle) {
    struct acre_loop *loop = handle->data;
    if (loop->each_turn != NULL) {
        loop->each_turn(loop->each_turn_context);
    }
    /* seq_cst, both: pairs with the push and the exchange in acre_loop_post. */
    atomic_store(&loop->may_sleep, true);
    if (atomic_load(&loop->posts) != NULL || loop->due != NULL) {
        uv_async_send(&loop->wake); /* the poll that comes now returns at once */
    }
}

static void on_after_poll(uv_check_t *handle) {
    struct acre_loop *loop = handle->data;
    /* relaxed: a producer that still sees true sends one wake too many, which is harmless. */
    atomic_store_explicit(&loop->may_sleep, false, memory_order_relaxed);
    run_posts(loop);
}

static void on_wake(uv_async_t *handle) {
    (void)handle; /* ending the poll was all; on_after_poll does the work */
}

void acre_loop_post(struct acre_loop *loop, acre_loop_function *function, void *context) {
    ACRE_ASSERT(function != NULL);
    struct post *post = acre_calloc(1, sizeof(*post));
    post->function = function;
    post->context = context;
    post->next = atomic_load_explicit(&loop->posts, memory_order_relaxed);
    /* seq_cst on success: a release for run_posts, and ordered before the exchange below. */
    while (!atomic_compare_exchange_weak(&loop->posts, &post->next, post)) {
    }
    /* The plain load spares producers a write to the shared line while the loop is awake. */
    if (atomic_load(&loop->may_sleep) && atomic_exchange(&loop->may_sleep, false)) {
        uv_async_send(&loop->wake);
    }
}

int acre_loop_create(struct acre_loop **ret_loop, struct acre_error *err) {
    struct acre_loop *loop = aligned_alloc(CACHE_LINE_BYTES, sizeof(*loop));
    ACRE_ASSERT(loop != NULL);
    *loop = (struct acre_loop){0};
    int r = uv_loop_init(&loop->uv);
    if (r != 0) {
        free(loop);
        return acre_fail_errno(err, -r, "event loop");
    }
    r = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (r != 0) {
        uv_loop_close(&loop->uv);
        free(loop);
        return acre_fail_errno(err, -r, "event loop");
    }
    uv_prepare_init(&loop->uv, &loop->before_poll); /* these four cannot fail */
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_prepare_start(&loop->before_poll, on_before_poll);
    uv_check_start(&loop->after_poll, on_after_poll);
    loop->before_poll.data = loop;
    loop->after_poll.data = loop;
    uv_unref((uv_handle_t *)&loop->wake); /* our own handles are nothing to wait for */
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    *ret_loop = loop;
    return 0;
}

static void free_watch(uv_handle_t *handle) {
    free(handle);
}

/* Take the watch out of the loop; libuv frees it through free_watch when it is done with it. */
static void close_watch(struct loop_watch *watch) {
    *watch->previous = watch->next;
    if (watch->next != NULL) {
        watch->next->previous = watch->previous;
    }
    uv_close(&watch->uv.handle, free_watch);
}

void acre_loop_destroy(struct acre_loop *loop) {
    if (loop == NULL) {
        return;
    }
    ACRE_ASSERT(!atomic_load(&loop->running));
    while (loop->watches != NULL) {
        close_watch(loop->watches);
    }
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->before_poll, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) { /* runs only the closing */
    }
    int r = uv_loop_close(&loop->uv);
    ACRE_ASSERT(r == 0);
    take_posts(loop);
    struct post *post = loop->due;
    while (post != NULL) { /* never run: nobody is left to run them for */
        struct post *next = post->next;
        free(post);
        post = next;
    }
    free(loop);
}

int acre_loop_run(struct acre_loop *loop) {
    ACRE_ASSERT(!atomic_load(&loop->running)); /* neither nested nor on two threads */
    loop->owner = pthread_self();
    /* release: pairs with the acquire in assert_owner. */
    atomic_store_explicit(&loop->running, true, memory_order_release);
    do { /* libuv does not know of posts: what came while it was leaving is run here */
        uv_run(&loop->uv, UV_RUN_DEFAULT);
    } while (!loop->stopped && (run_posts(loop) || uv_loop_alive(&loop->uv)));
    loop->stopped = false;
    atomic_store_explicit(&loop->running, false, memory_order_release);
    return 0;
}

void acre_loop_stop(struct acre_loop *loop) {
    assert_owner(loop);
    loop->stopped = true;
    uv_stop(&loop->uv);
}

static void add_watch(struct acre_loop *loop, struct loop_watch *watch,
                      acre_loop_function *function, void *context) {
    watch->loop = loop;
    watch->function = function;
    watch->context = context;
    watch->next = loop->watches;
    watch->previous = &loop->watches;
    if (watch->next != NULL) {
        watch->next->previous = &watch->next;
    }
    loop->watches = watch;
}

static void on_timer(uv_timer_t *handle) {
    struct loop_watch *watch = (struct loop_watch *)handle;
    bool once = uv_timer_get_repeat(handle) == 0;
    watch->function(watch->context); /* may cancel: the memory stays until libuv closed it */
    if (once && !uv_is_closing(&watch->uv.handle)) {
        close_watch(watch);
    }
}

struct acre_timer *acre_loop_timer(struct acre_loop *loop, uint64_t delay_ms, uint64_t period_ms,
                                   acre_loop_function *function, void *context) {
    ACRE_ASSERT(function != NULL);
    assert_owner(loop);
    struct acre_timer *timer = acre_calloc(1, sizeof(*timer));
    struct loop_watch *watch = &timer->watch;
    uv_timer_init(&loop->uv, &watch->uv.timer);
    uv_update_time(&loop->uv); /* count from now, not from when this turn of the loop began */
    int r = uv_timer_start(&watch->uv.timer, on_timer, delay_ms, period_ms);
    ACRE_ASSERT(r == 0);
    add_watch(loop, watch, function, context);
    return timer;
}

void acre_timer_cancel(struct acre_timer *timer) {
    if (timer != NULL) {
        assert_owner(timer->watch.loop);
        ACRE_ASSERT(!uv_is_closing(&timer->watch.uv.handle)); /* cancelled twice */
        close_watch(&timer->watch);
    }
}

static void on_signal(uv_signal_t *handle, int signal_number) {
    struct loop_watch *watch = (struct loop_watch *)handle;
    (void)signal_number;
    watch->function(watch->context);
}

int acre_loop_signal(struct acre_loop *loop, int signal_number, acre_loop_function *function,
                     void *context, struct acre_error *err) {
    ACRE_ASSERT(function != NULL);
    assert_owner(loop);
    struct loop_watch *watch = acre_calloc(1, sizeof(*watch));
    int r = uv_signal_init(&loop->uv, &watch->uv.signal);
    if (r != 0) {
        free(watch);
        return acre_fail_errno(err, -r, "signal %d", signal_number);
    }
    add_watch(loop, watch, function, context);
    r = uv_signal_start(&watch->uv.signal, on_signal, signal_number);
    if (r != 0) {
        close_watch(watch); /* freed by the next turn of the loop, or when it is destroyed */
        return acre_fail_errno(err, -r, "signal %d", signal_number);
    }
    return 0;
}

static void on_readable(uv_poll_t *handle, int status, int events) {
    struct loop_watch *watch = (struct loop_watch *)handle;
    (void)status; /* a read tells what is wrong */
    (void)events;
    watch->function(watch->context);
}

struct acre_watch *acre_loop_watch(struct acre_loop *loop, int fd, acre_loop_function *function,
                                   void *context, struct acre_error *err) {
    ACRE_ASSERT(function != NULL);
    assert_owner(loop);
    struct acre_watch *watch = acre_calloc(1, sizeof(*watch));
    int r = uv_poll_init(&loop->uv, &watch->watch.uv.poll, fd);
    if (r != 0) {
        free(watch);
        acre_fail_errno(err, -r, "descriptor %d", fd);
        return NULL;
    }
    add_watch(loop, &watch->watch, function, context);
    r = uv_poll_start(&watch->watch.uv.poll, UV_READABLE, on_readable);
    ACRE_ASSERT(r == 0);
    return watch;
}

void acre_watch_cancel(struct acre_watch *watch) {
    if (watch != NULL) {
        assert_owner(watch->watch.loop);
        ACRE_ASSERT(!uv_is_closing(&watch->watch.uv.handle)); /* cancelled twice */
        close_watch(&watch->watch);
    }
}

void acre_loop_each_turn(struct acre_loop *loop, acre_loop_function *function, void *context) {
    assert_owner(loop);
    loop->each_turn = function;
    loop->each_turn_context = context;
}
