/* test_core_thread.c - threads of a library: named, and without the program's signals. */
#include "core/thread.h"

#include "support/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic uint32_t caught;

static void count(int number) {
    (void)number;
    atomic_fetch_add(&caught, 1);
}

struct seen {
    sigset_t blocked;
    int user;
};

static void *look(void *argument) {
    struct seen *seen = argument;
    pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
    seen->user++;
    return seen;
}

static void threads_have_no_signals(void) {
    struct seen seen = {.user = 41};
    sigset_t before, after;
    pthread_t thread;
    void *answer = NULL;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    REQUIRE_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    REQUIRE_EQ(acre_thread_start(&thread, "acre-test", look, &seen), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    REQUIRE_EQ(pthread_join(thread, &answer), 0);
    CHECK(answer == &seen);
    CHECK_EQ(seen.user, 42);
    static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGALRM, SIGCHLD,
                                  SIGUSR1, SIGUSR2, SIGPIPE, SIGWINCH};
    for (size_t i = 0; i < ACRE_COUNT(signals); i++) {
        acre_test_context("signal %d", signals[i]);
        CHECK_EQ(sigismember(&seen.blocked, signals[i]), 1);
        CHECK_EQ(sigismember(&after, signals[i]), signals[i] == SIGUSR2); /* as it was */
    }
}

struct held {
    pthread_mutex_t lock;
};

static void *wait_for_lock(void *argument) {
    struct held *held = argument;
    pthread_mutex_lock(&held->lock);
    pthread_mutex_unlock(&held->lock);
    return NULL;
}

static void threads_have_their_names(void) {
    struct held held;
    pthread_t thread;
    char name[16] = "";
    pthread_mutex_init(&held.lock, NULL);
    pthread_mutex_lock(&held.lock); /* so that it is there to be looked at */
    REQUIRE_EQ(acre_thread_start(&thread, "acre-of-fifteen", wait_for_lock, &held), 0);
    CHECK_EQ(pthread_getname_np(thread, name, sizeof(name)), 0);
    CHECK_STR(name, "acre-of-fifteen");
    /* A signal for the process is this thread's. */
    REQUIRE(signal(SIGUSR1, count) != SIG_ERR);
    for (uint32_t i = 1; i <= 20; i++) {
        kill(getpid(), SIGUSR1);
        CHECK_EQ(atomic_load(&caught), i); /* at once: nobody else takes it */
    }
    pthread_mutex_unlock(&held.lock);
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&held.lock);
}

static const struct acre_test tests[] = {
    {"threads_have_no_signals", threads_have_no_signals, 0},
    {"threads_have_their_names", threads_have_their_names, 0},
};
ACRE_TEST_MAIN(tests)
