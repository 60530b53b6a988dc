/* futex.h - sleeps until a word changes, and wakes those that sleep on it.
 *
 * Any thread. The waker changes the word first; the sleeper passes the value it saw, so that a
 * change in between is not missed. A sleep may end for no reason: callers check again. */
#ifndef ACRE_CORE_FUTEX_H
#define ACRE_CORE_FUTEX_H

#include "core/base.h"

#include <stdatomic.h>

enum acre_futex_scope {
    ACRE_FUTEX_PRIVATE, /* all are threads of this process: cheaper */
    ACRE_FUTEX_SHARED,  /* the word may lie in memory that other processes have, too */
};

#define ACRE_FUTEX_NO_LIMIT UINT64_MAX
#define ACRE_FUTEX_ALL      ((uint32_t)INT32_MAX)

/* Sleep while the word is `seen`, for `timeout_ns` at most. False: that time is over. */
bool acre_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns,
                     enum acre_futex_scope scope);

/* Wake up to `count` of those that sleep; how many there were. */
uint32_t acre_futex_wake(_Atomic uint32_t *word, uint32_t count, enum acre_futex_scope scope);

/* The half of a counter that every step changes: to sleep on numbers of 64 bits. */
static inline _Atomic uint32_t *acre_futex_low_half(_Atomic uint64_t *word) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
    return (_Atomic uint32_t *)word;
}

#endif
