/* breaker.h - stop calling what keeps failing (GPU-6).
 *
 * Closed: calls go through. When at least half of ten or more calls in the last two minutes failed,
 * it opens: calls are refused for a minute. Then one call may try (half-open): success closes it,
 * failure opens it for another minute. The owner may change the ten and the minute. Any thread; it
 * has its own lock. The caller passes the time. */
#ifndef ACRE_COMPUTE_BREAKER_H
#define ACRE_COMPUTE_BREAKER_H

#include "core/error.h"

#include <pthread.h>

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

enum { BREAKER_BUCKETS = 12 };

struct breaker {
    pthread_mutex_t lock;
    _Atomic enum breaker_state state; /* read without the lock by those who only look */
    uint32_t rest_ms, calls_min;
    uint64_t opened_ms;
    bool is_trying;
    struct {
        uint64_t from_ms;
        uint32_t calls, failures;
    } buckets[BREAKER_BUCKETS]; /* ten seconds each */
};

/* 0: a minute, and ten. With UINT32_MAX for `calls_min` it never opens. */
void breaker_init(struct breaker *breaker, uint32_t rest_ms, uint32_t calls_min);
void breaker_finish(struct breaker *breaker);
/* 0: call, and tell how it went. ACRE_EUNAVAILABLE: not now; the text says why and until when. */
int breaker_ask(struct breaker *breaker, uint64_t now_ms, struct acre_error *err);
/* What it would answer; nobody has to tell how it went. */
int breaker_look(struct breaker *breaker, uint64_t now_ms, struct acre_error *err);
void breaker_tell(struct breaker *breaker, uint64_t now_ms, bool ok);
/* It ended, and says nothing of the device (the caller was wrong): the next one may try. */
void breaker_pass(struct breaker *breaker);
enum breaker_state breaker_state(struct breaker *breaker);

#endif
