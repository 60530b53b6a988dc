/* Futexes: sleeping on words, in one process and between two, with and without a limit. */
#include "core/clock.h"
#include "core/futex.h"
#include "core/thread.h"
#include "support/test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLEEPERS = 4, ROUNDS = 20000, LIMIT_MS = 30 };

static const enum acre_futex_scope scopes[] = {ACRE_FUTEX_PRIVATE, ACRE_FUTEX_SHARED};

static void a_word_that_has_changed_is_not_slept_on(void) {
    for (size_t s = 0; s < ACRE_COUNT(scopes); s++) {
        _Atomic uint32_t word = 7;
        CHECK(acre_futex_wait(&word, 6, ACRE_FUTEX_NO_LIMIT, scopes[s]));
        CHECK_EQ(acre_futex_wake(&word, ACRE_FUTEX_ALL, scopes[s]), 0);
    }
}

static void a_sleep_ends_with_its_limit(void) {
    static const uint64_t limits_ns[] = {0, 1, 2000000, LIMIT_MS * 1000000, 1100000000};
    for (size_t i = 0; i < ACRE_COUNT(limits_ns); i++) {
        for (size_t s = 0; s < ACRE_COUNT(scopes); s++) {
            acre_test_context("limit %zu, scope %zu", i, s);
            _Atomic uint32_t word = 7;
            uint64_t begun_ns = acre_monotonic_ns();
            CHECK(!acre_futex_wait(&word, 7, limits_ns[i], scopes[s]));
            CHECK(acre_monotonic_ns() - begun_ns >= limits_ns[i]);
        }
    }
}

struct crowd {
    _Atomic uint32_t word, asleep, awake;
    enum acre_futex_scope scope;
};

static void *sleep_once(void *argument) {
    struct crowd *crowd = argument;
    atomic_fetch_add(&crowd->asleep, 1);
    while (atomic_load(&crowd->word) == 0 &&
           acre_futex_wait(&crowd->word, 0, ACRE_FUTEX_NO_LIMIT, crowd->scope)) {
        if (atomic_load(&crowd->word) == 0) {
            break; /* woken, though nothing changed: it is one of those that were counted */
        }
    }
    atomic_fetch_add(&crowd->awake, 1);
    return NULL;
}

/* Wakes as many as are asked for; the word stays, so that none wakes by itself. */
static void as_many_are_woken_as_asked_for(void) {
    static const uint32_t counts[] = {1, 2, ACRE_FUTEX_ALL};
    for (size_t c = 0; c < ACRE_COUNT(counts) * ACRE_COUNT(scopes); c++) {
        uint32_t count = counts[c / ACRE_COUNT(scopes)];
        struct crowd crowd = {.scope = scopes[c % ACRE_COUNT(scopes)]};
        pthread_t threads[SLEEPERS];
        acre_test_context("wake %u, scope %u", count, crowd.scope);
        for (uint32_t i = 0; i < SLEEPERS; i++) {
            REQUIRE_EQ(acre_thread_start(&threads[i], "sleeper", sleep_once, &crowd), 0);
        }
        uint32_t woken = 0;
        while (atomic_load(&crowd.asleep) < SLEEPERS) {
            acre_test_rest();
        }
        for (uint32_t left = SLEEPERS; left > 0;) { /* some are on their way to sleep */
            uint32_t now = acre_futex_wake(&crowd.word, count, crowd.scope);
            CHECK(now <= count && now <= left);
            left -= now;
            woken += now;
            acre_test_rest();
        }
        CHECK_EQ(woken, SLEEPERS);
        for (uint32_t i = 0; i < SLEEPERS; i++) {
            REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
        }
        CHECK_EQ(atomic_load(&crowd.awake), SLEEPERS);
    }
}

/* Two take turns on one word; a wake-up that is lost ends in the test's time limit. */
struct turns {
    _Atomic uint64_t count;
    enum acre_futex_scope scope;
};

static void take_turns(struct turns *turns, uint64_t own) {
    _Atomic uint32_t *word = acre_futex_low_half(&turns->count);
    for (uint64_t at = own; at < ROUNDS; at += 2) {
        for (uint64_t seen; (seen = atomic_load(&turns->count)) != UINT32_MAX + at;) {
            acre_futex_wait(word, (uint32_t)seen, ACRE_FUTEX_NO_LIMIT, turns->scope);
        }
        atomic_fetch_add(&turns->count, 1); /* across 2^32, too */
        acre_futex_wake(word, 1, turns->scope);
    }
}

static void *take_odd_turns(void *argument) {
    take_turns(argument, 1);
    return NULL;
}

static void threads_take_turns(void) {
    for (size_t s = 0; s < ACRE_COUNT(scopes); s++) {
        struct turns turns = {.count = UINT32_MAX, .scope = scopes[s]};
        pthread_t thread;
        REQUIRE_EQ(acre_thread_start(&thread, "turns", take_odd_turns, &turns), 0);
        take_turns(&turns, 0);
        REQUIRE_EQ(pthread_join(thread, NULL), 0);
        CHECK_U64(atomic_load(&turns.count), UINT64_C(0xffffffff) + ROUNDS);
    }
}

static void processes_take_turns(void) {
    struct turns *turns =
        mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(turns != MAP_FAILED);
    atomic_store(&turns->count, UINT32_MAX);
    turns->scope = ACRE_FUTEX_SHARED;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(60); /* never stays behind */
        take_turns(turns, 1);
        _exit(0);
    }
    take_turns(turns, 0);
    int status = -1;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_U64(atomic_load(&turns->count), UINT64_C(0xffffffff) + ROUNDS);
    munmap(turns, sizeof(*turns));
}

static const struct acre_test tests[] = {
    {"a_word_that_has_changed_is_not_slept_on", a_word_that_has_changed_is_not_slept_on, 10},
    {"a_sleep_ends_with_its_limit", a_sleep_ends_with_its_limit, 30},
    {"as_many_are_woken_as_asked_for", as_many_are_woken_as_asked_for, 60},
    {"threads_take_turns", threads_take_turns, 60},
    {"processes_take_turns", processes_take_turns, 60},
};
ACRE_TEST_MAIN(tests)
