/* The loop: timers in order, signals, and posts from other threads that are neither lost nor
 * reordered. */
#include "core/loop.h"
#include "support/dies.h"
#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PRODUCERS = 2, POSTS_EACH = 20000, ROUND_TRIPS = 2000 };

static struct acre_loop *create(void) {
    struct acre_error err = {0};
    struct acre_loop *loop = NULL;
    REQUIRE_EQ(acre_loop_create(&loop, &err), 0);
    REQUIRE(loop != NULL);
    return loop;
}

struct journal {
    struct acre_loop *loop;
    struct acre_timer *timer;
    struct journal *other;
    char text[32];
    unsigned count;
};

static void note(struct journal *journal, char what) {
    REQUIRE(journal->count + 1 < sizeof(journal->text));
    journal->text[journal->count++] = what;
}

static void note_a(void *context) {
    note(context, 'a');
}

static void note_b(void *context) {
    note(context, 'b');
}

static void note_and_stop(void *context) {
    struct journal *journal = context;
    note(journal, 's');
    acre_loop_stop(journal->loop);
}

static void an_empty_loop_ends_at_once(void) {
    struct acre_loop *loop = create();
    CHECK_EQ(acre_loop_run(loop), 0);
    CHECK_EQ(acre_loop_run(loop), 0);
    acre_loop_destroy(loop);
    acre_loop_destroy(NULL);
}

static void timers_fire_by_time_and_the_loop_ends_after_the_last(void) {
    struct journal journal = {.loop = create()};
    acre_loop_timer(journal.loop, 20, 0, note_b, &journal);
    acre_loop_timer(journal.loop, 1, 0, note_a, &journal);
    acre_loop_timer(journal.loop, 0, 0, note_a, &journal);
    CHECK_EQ(acre_loop_run(journal.loop), 0);
    CHECK_STR(journal.text, "aab");
    acre_loop_destroy(journal.loop);
}

static void cancel_after_three(void *context) {
    struct journal *journal = context;
    note(journal, 'p');
    if (journal->count == 3) {
        acre_timer_cancel(journal->timer);
    }
}

static void a_period_repeats_until_cancelled_by_its_own_function(void) {
    struct journal journal = {.loop = create()};
    journal.timer = acre_loop_timer(journal.loop, 1, 1, cancel_after_three, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "ppp");
    acre_loop_destroy(journal.loop);
}

static void cancel_own(void *context) {
    struct journal *journal = context;
    note(journal, 'c');
    acre_timer_cancel(journal->timer);
}

static void a_single_timer_may_cancel_itself(void) {
    struct journal journal = {.loop = create()};
    journal.timer = acre_loop_timer(journal.loop, 1, 0, cancel_own, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "c");
    acre_loop_destroy(journal.loop);
}

static void cancelled_timers_never_fire(void) {
    struct journal journal = {.loop = create()};
    struct acre_timer *first = acre_loop_timer(journal.loop, 1, 0, note_a, &journal);
    struct acre_timer *middle = acre_loop_timer(journal.loop, 1, 0, note_a, &journal);
    acre_loop_timer(journal.loop, 2, 0, note_b, &journal);
    acre_timer_cancel(middle);
    acre_timer_cancel(first);
    acre_timer_cancel(NULL);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "b");
    acre_loop_destroy(journal.loop);
}

static void stop_ends_the_run_and_the_next_run_goes_on(void) {
    struct journal journal = {.loop = create()};
    acre_loop_timer(journal.loop, 1, 0, note_and_stop, &journal);
    acre_loop_timer(journal.loop, 30, 0, note_b, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "s");
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "sb");
    acre_loop_destroy(journal.loop);
}

static void destroy_stops_what_still_waits(void) {
    struct journal journal = {.loop = create()};
    struct acre_error err = {0};
    acre_loop_timer(journal.loop, 3600000, 1000, note_a, &journal);
    CHECK_EQ(acre_loop_signal(journal.loop, SIGUSR1, note_a, &journal, &err), 0);
    acre_loop_post(journal.loop, note_a, &journal);
    acre_loop_destroy(journal.loop); /* leak checkers see the rest */
    CHECK_EQ(journal.count, 0);
}

static void raise_signal(void *context) {
    (void)context;
    raise(SIGUSR1);
}

static void signals_arrive_as_calls(void) {
    struct journal journal = {.loop = create()};
    struct acre_error err = {0};
    REQUIRE_EQ(acre_loop_signal(journal.loop, SIGUSR1, note_and_stop, &journal, &err), 0);
    acre_loop_timer(journal.loop, 1, 0, raise_signal, NULL);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "s");
    acre_loop_destroy(journal.loop);
}

static void signals_that_cannot_be_caught_are_refused(void) {
    static const int signals[] = {SIGKILL, 0, 9999};
    struct acre_loop *loop = create();
    for (size_t i = 0; i < ACRE_COUNT(signals); i++) {
        struct acre_error err = {0};
        CHECK(acre_loop_signal(loop, signals[i], note_a, NULL, &err) < 0);
        CHECK_HAS(err.text, "signal ");
    }
    acre_loop_run(loop); /* nothing was left behind to wait for */
    acre_loop_destroy(loop);
}

static void no_descriptors_left_is_an_error(void) {
    struct rlimit kept;
    REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &kept), 0);
    struct rlimit none = {3, kept.rlim_max};
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct acre_error err = {0};
    struct acre_loop *loop = NULL;
    CHECK_EQ(acre_loop_create(&loop, &err), ACRE_EIO);
    CHECK(loop == NULL);
    CHECK_HAS(err.text, "event loop: ");
    setrlimit(RLIMIT_NOFILE, &kept);
}

static void post_b(void *context) {
    struct journal *journal = context;
    note(journal, 'a');
    acre_loop_post(journal->loop, note_b, journal);
}

static void posts_run_without_anything_else_to_wait_for(void) {
    struct journal journal = {.loop = create()};
    acre_loop_post(journal.loop, note_a, &journal);
    acre_loop_post(journal.loop, post_b, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "aab");
    acre_loop_destroy(journal.loop);
}

static void a_post_can_stop_the_loop(void) {
    struct journal journal = {.loop = create()};
    acre_loop_timer(journal.loop, 3600000, 0, note_b, &journal);
    acre_loop_post(journal.loop, note_and_stop, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "s");
    acre_loop_destroy(journal.loop);
}

static void unpost_the_other(void *context) {
    struct journal *journal = context;
    note(journal, 'u');
    acre_loop_unpost(journal->loop, journal->other);
}

/* What was posted and has not run is forgotten, from outside and while posts are being run; the
 * posts of others stay, in their order. */
static void an_unposted_function_never_runs(void) {
    struct journal other = {.loop = create()};
    struct journal journal = {.loop = other.loop, .other = &other};
    acre_loop_post(journal.loop, note_a, &journal);
    acre_loop_post(journal.loop, note_a, &other);
    acre_loop_post(journal.loop, note_b, &journal);
    acre_loop_unpost(journal.loop, &other);
    acre_loop_post(journal.loop, unpost_the_other, &journal);
    acre_loop_post(journal.loop, note_b, &other);
    acre_loop_post(journal.loop, note_a, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "abua");
    CHECK_STR(other.text, "");
    acre_loop_post(journal.loop, note_b, &journal);
    acre_loop_unpost(journal.loop, &other); /* nothing of its is there */
    acre_loop_destroy(journal.loop);        /* and what is left is freed */
    CHECK_STR(journal.text, "abua");
}

struct repeat {
    struct journal journal;
    unsigned left;
};

static void post_self(void *context) {
    struct repeat *repeat = context;
    if (repeat->left-- > 0) {
        acre_loop_post(repeat->journal.loop, post_self, repeat);
    }
}

static void posts_that_post_do_not_starve_timers(void) {
    struct repeat repeat = {.journal = {.loop = create()}, .left = UINT32_MAX};
    acre_loop_timer(repeat.journal.loop, 5, 0, note_and_stop, &repeat.journal);
    acre_loop_post(repeat.journal.loop, post_self, &repeat);
    acre_loop_run(repeat.journal.loop);
    CHECK_STR(repeat.journal.text, "s");
    CHECK(repeat.left > 0);
    acre_loop_destroy(repeat.journal.loop);
}

/* Each producer posts its numbers in order; the loop checks the order and stops at the end. */
struct item {
    struct collector *collector;
    uint32_t producer;
    uint32_t number;
};

struct collector {
    struct acre_loop *loop;
    uint32_t next[PRODUCERS]; /* plain: written by posted functions only */
    uint32_t total;
    uint32_t out_of_order;
};

struct producer {
    struct collector *collector;
    uint32_t index;
    struct item items[POSTS_EACH];
};

static void collect(void *context) {
    const struct item *item = context;
    struct collector *collector = item->collector;
    collector->out_of_order += collector->next[item->producer] != item->number;
    collector->next[item->producer] = item->number + 1;
    if (++collector->total == PRODUCERS * POSTS_EACH) {
        acre_loop_stop(collector->loop);
    }
}

static void *produce(void *context) {
    struct producer *producer = context;
    for (uint32_t i = 0; i < POSTS_EACH; i++) {
        producer->items[i] = (struct item){producer->collector, producer->index, i};
        acre_loop_post(producer->collector->loop, collect, &producer->items[i]);
    }
    return NULL;
}

static void posts_of_two_threads_keep_each_threads_order(void) {
    static struct producer producers[PRODUCERS];
    struct collector collector = {.loop = create()};
    pthread_t threads[PRODUCERS];
    /* Only there to keep the loop alive: a lost wake-up shows as the test's time-out. */
    acre_loop_timer(collector.loop, 3600000, 0, note_a, NULL);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i].collector = &collector;
        producers[i].index = i;
        REQUIRE_EQ(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    acre_loop_run(collector.loop);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(collector.total, PRODUCERS * POSTS_EACH);
    CHECK_EQ(collector.out_of_order, 0);
    acre_loop_destroy(collector.loop);
}

/* Each producer waits for its post to be run before the next: the loop falls asleep between
 * them, and every post must wake it. */
struct caller {
    struct acre_loop *loop;
    uint32_t *running; /* callers not done; touched by posted functions only */
    uint32_t answers;
    sem_t answered;
};

static void answer(void *context) {
    struct caller *caller = context;
    caller->answers++;
    sem_post(&caller->answered);
}

static void caller_is_done(void *context) {
    struct caller *caller = context;
    if (--*caller->running == 0) {
        acre_loop_stop(caller->loop);
    }
}

static void *call_and_wait(void *context) {
    struct caller *caller = context;
    for (uint32_t i = 0; i < ROUND_TRIPS; i++) {
        acre_loop_post(caller->loop, answer, caller);
        while (sem_wait(&caller->answered) != 0) {
        }
    }
    acre_loop_post(caller->loop, caller_is_done, caller);
    return NULL;
}

static void a_sleeping_loop_is_woken_by_a_post(void) {
    struct acre_loop *loop = create();
    struct caller callers[PRODUCERS] = {0};
    pthread_t threads[PRODUCERS];
    uint32_t running = PRODUCERS;
    acre_loop_timer(loop, 3600000, 0, note_a, NULL);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        callers[i] = (struct caller){.loop = loop, .running = &running};
        sem_init(&callers[i].answered, 0, 0);
        REQUIRE_EQ(pthread_create(&threads[i], NULL, call_and_wait, &callers[i]), 0);
    }
    acre_loop_run(loop);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(callers[i].answers, ROUND_TRIPS);
        sem_destroy(&callers[i].answered);
    }
    acre_loop_destroy(loop);
}

struct channel {
    struct journal journal;
    struct acre_watch *watch;
    int fds[2];
};

static void read_one(void *context) {
    struct channel *channel = context;
    char byte = 0;
    REQUIRE_EQ(read(channel->fds[0], &byte, 1), 1);
    note(&channel->journal, byte);
    if (byte == 'z') {
        acre_watch_cancel(channel->watch);
    }
}

static void a_descriptor_is_read_until_it_is_empty(void) {
    struct channel channel = {.journal = {.loop = create()}};
    REQUIRE_EQ(pipe(channel.fds), 0);
    struct acre_error err = {0};
    channel.watch = acre_loop_watch(channel.journal.loop, channel.fds[0], read_one, &channel, &err);
    REQUIRE(channel.watch != NULL);
    REQUIRE_EQ(write(channel.fds[1], "xyz", 3), 3);
    CHECK_EQ(acre_loop_run(channel.journal.loop), 0); /* the watch was all it waited for */
    CHECK_STR(channel.journal.text, "xyz");
    CHECK(acre_loop_watch(channel.journal.loop, -1, read_one, &channel, &err) == NULL);
    CHECK_HAS(err.text, "descriptor -1");
    acre_watch_cancel(NULL);
    acre_loop_destroy(channel.journal.loop);
}

static void note_turn_once(void *context) {
    struct journal *journal = context;
    note(journal, 't');
    acre_loop_each_turn(journal->loop, NULL, NULL);
    acre_loop_post(journal->loop, note_and_stop, journal); /* must not wait for the timer */
}

static void each_turn_ends_with_its_function(void) {
    struct journal journal = {.loop = create()};
    acre_loop_timer(journal.loop, 0, 0, note_a, &journal);
    acre_loop_timer(journal.loop, 60000, 0, note_b, &journal);
    acre_loop_each_turn(journal.loop, note_turn_once, &journal);
    CHECK_EQ(acre_loop_run(journal.loop), 0);
    CHECK_STR(journal.text, "ats");
    acre_loop_destroy(journal.loop);
}

static void *stop_from_outside(void *context) {
    acre_loop_stop(context);
    return NULL;
}

static void touch_from_another_thread(void *context) {
    pthread_t thread;
    pthread_create(&thread, NULL, stop_from_outside, context);
    pthread_join(thread, NULL);
}

static void run_and_be_touched(void) {
    struct acre_loop *loop = create();
    acre_loop_post(loop, touch_from_another_thread, loop);
    acre_loop_run(loop);
}

static void run_nested(void *context) {
    acre_loop_run(context);
}

static void run_inside_run(void) {
    struct acre_loop *loop = create();
    acre_loop_post(loop, run_nested, loop);
    acre_loop_run(loop);
}

static void a_running_loop_asserts_its_thread(void) {
    CHECK(acre_dies(run_and_be_touched));
    CHECK(acre_dies(run_inside_run));
}

static void *run_elsewhere(void *context) {
    acre_loop_run(context);
    return NULL;
}

static void a_loop_at_rest_may_change_threads(void) {
    struct journal journal = {.loop = create()};
    acre_loop_timer(journal.loop, 1, 0, note_a, &journal);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, run_elsewhere, journal.loop), 0);
    pthread_join(thread, NULL);
    CHECK_STR(journal.text, "a");
    acre_loop_timer(journal.loop, 1, 0, note_b, &journal);
    acre_loop_run(journal.loop);
    CHECK_STR(journal.text, "ab");
    acre_loop_destroy(journal.loop);
}

static const struct acre_test tests[] = {
    {"an_empty_loop_ends_at_once", an_empty_loop_ends_at_once, 0},
    {"timers_fire_by_time_and_the_loop_ends_after_the_last",
     timers_fire_by_time_and_the_loop_ends_after_the_last, 0},
    {"a_period_repeats_until_cancelled_by_its_own_function",
     a_period_repeats_until_cancelled_by_its_own_function, 0},
    {"a_single_timer_may_cancel_itself", a_single_timer_may_cancel_itself, 0},
    {"cancelled_timers_never_fire", cancelled_timers_never_fire, 0},
    {"stop_ends_the_run_and_the_next_run_goes_on", stop_ends_the_run_and_the_next_run_goes_on, 0},
    {"destroy_stops_what_still_waits", destroy_stops_what_still_waits, 0},
    {"signals_arrive_as_calls", signals_arrive_as_calls, 0},
    {"signals_that_cannot_be_caught_are_refused", signals_that_cannot_be_caught_are_refused, 0},
    {"no_descriptors_left_is_an_error", no_descriptors_left_is_an_error, 0},
    {"posts_run_without_anything_else_to_wait_for", posts_run_without_anything_else_to_wait_for, 0},
    {"a_post_can_stop_the_loop", a_post_can_stop_the_loop, 0},
    {"an_unposted_function_never_runs", an_unposted_function_never_runs, 0},
    {"posts_that_post_do_not_starve_timers", posts_that_post_do_not_starve_timers, 0},
    {"posts_of_two_threads_keep_each_threads_order", posts_of_two_threads_keep_each_threads_order,
     0},
    {"a_sleeping_loop_is_woken_by_a_post", a_sleeping_loop_is_woken_by_a_post, 0},
    {"a_descriptor_is_read_until_it_is_empty", a_descriptor_is_read_until_it_is_empty, 0},
    {"each_turn_ends_with_its_function", each_turn_ends_with_its_function, 0},
    {"a_running_loop_asserts_its_thread", a_running_loop_asserts_its_thread, 0},
    {"a_loop_at_rest_may_change_threads", a_loop_at_rest_may_change_threads, 0},
};

ACRE_TEST_MAIN(tests)
