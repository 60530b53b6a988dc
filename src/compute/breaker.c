/* breaker.c - a window of twelve buckets of ten seconds each counts calls and failures.
 *
 * Buckets are found by time, so old ones disappear by being overwritten; no timer is needed. Calls
 * that were in progress when the breaker opened and end later are counted, but change no state. */
#include "compute/breaker.h"

#include <inttypes.h>
#include <string.h>

enum {
    BUCKET_MS = 10000,
    WINDOW_MS = BREAKER_BUCKETS * BUCKET_MS, /* 2 minutes */
    CALLS_MIN = 10,                          /* where the owner does not say */
    REST_MS = 60000,                         /* the same */
};

void breaker_init(struct breaker *breaker, uint32_t rest_ms, uint32_t calls_min) {
    memset(breaker, 0, sizeof(*breaker));
    breaker->rest_ms = rest_ms != 0 ? rest_ms : REST_MS;
    breaker->calls_min = calls_min != 0 ? calls_min : CALLS_MIN;
    pthread_mutex_init(&breaker->lock, NULL);
}

void breaker_finish(struct breaker *breaker) {
    pthread_mutex_destroy(&breaker->lock);
}

static void sum(const struct breaker *breaker, uint64_t now_ms, uint32_t *ret_calls,
                uint32_t *ret_failures) {
    *ret_calls = *ret_failures = 0;
    for (size_t i = 0; i < BREAKER_BUCKETS; i++) {
        if (breaker->buckets[i].from_ms + WINDOW_MS > now_ms) {
            *ret_calls += breaker->buckets[i].calls;
            *ret_failures += breaker->buckets[i].failures;
        }
    }
}

static bool has_rested(const struct breaker *breaker, uint64_t now_ms) {
    return breaker->state == BREAKER_OPEN && now_ms >= breaker->opened_ms + breaker->rest_ms;
}

static int refusal(const struct breaker *breaker, uint64_t now_ms, struct acre_error *err) {
    if (breaker->state == BREAKER_OPEN && !has_rested(breaker, now_ms)) {
        uint32_t calls, failures;
        sum(breaker, breaker->opened_ms, &calls, &failures);
        return acre_fail(
            err, ACRE_EUNAVAILABLE,
            "the context rests for another %" PRIu64 " s, because %u of its last %u calls failed",
            (breaker->opened_ms + breaker->rest_ms - now_ms + 999) / 1000, failures, calls);
    }
    if (breaker->state == BREAKER_HALF_OPEN && breaker->is_trying) {
        return acre_fail(err, ACRE_EUNAVAILABLE,
                         "the context rests while one call tests whether the device works again");
    }
    return 0;
}

int breaker_ask(struct breaker *breaker, uint64_t now_ms, struct acre_error *err) {
    pthread_mutex_lock(&breaker->lock);
    if (has_rested(breaker, now_ms)) {
        breaker->state = BREAKER_HALF_OPEN;
        breaker->is_trying = false;
    }
    int r = refusal(breaker, now_ms, err);
    if (r == 0 && breaker->state == BREAKER_HALF_OPEN) {
        breaker->is_trying = true;
    }
    pthread_mutex_unlock(&breaker->lock);
    return r;
}

int breaker_look(struct breaker *breaker, uint64_t now_ms, struct acre_error *err) {
    pthread_mutex_lock(&breaker->lock);
    int r = refusal(breaker, now_ms, err);
    pthread_mutex_unlock(&breaker->lock);
    return r;
}

void breaker_tell(struct breaker *breaker, uint64_t now_ms, bool ok) {
    pthread_mutex_lock(&breaker->lock);
    uint64_t from_ms = now_ms - now_ms % BUCKET_MS;
    size_t at = now_ms / BUCKET_MS % BREAKER_BUCKETS;
    if (breaker->buckets[at].from_ms != from_ms) {
        breaker->buckets[at].from_ms = from_ms;
        breaker->buckets[at].calls = breaker->buckets[at].failures = 0;
    }
    breaker->buckets[at].calls++;
    breaker->buckets[at].failures += !ok;
    uint32_t calls, failures;
    sum(breaker, now_ms, &calls, &failures);
    if (breaker->state == BREAKER_HALF_OPEN && breaker->is_trying) {
        breaker->is_trying = false;
        breaker->state = ok ? BREAKER_CLOSED : BREAKER_OPEN;
        breaker->opened_ms = now_ms;
        if (ok) {
            memset(breaker->buckets, 0, sizeof(breaker->buckets)); /* a new life */
        }
    } else if (breaker->state == BREAKER_CLOSED && calls >= breaker->calls_min &&
               2 * failures >= calls && breaker->calls_min != UINT32_MAX) {
        breaker->state = BREAKER_OPEN;
        breaker->opened_ms = now_ms;
    }
    pthread_mutex_unlock(&breaker->lock);
}

void breaker_pass(struct breaker *breaker) {
    pthread_mutex_lock(&breaker->lock);
    breaker->is_trying = false;
    pthread_mutex_unlock(&breaker->lock);
}

enum breaker_state breaker_state(struct breaker *breaker) {
    pthread_mutex_lock(&breaker->lock);
    enum breaker_state state = breaker->state;
    pthread_mutex_unlock(&breaker->lock);
    return state;
}
