/* spin.h - how long to poll before going to sleep.
 *
 * Sleeping and being woken takes 5 us at best (a turn in test_core_futex.c), and several times that
 * on a processor that has to wake up itself. For anything sooner polling is better, and polling for
 * about that long costs at most twice as much as sleeping would have. So that is the smallest
 * limit; the others are longer where a delay costs more. */
#ifndef ACRE_CORE_SPIN_H
#define ACRE_CORE_SPIN_H

#include "core/clock.h"

enum {
    ACRE_SPIN_ANSWER_NS = 20000, /* for another thread that answers at once */
    ACRE_SPIN_WORK_NS = 50000,   /* after work, for more of it: a gap between two calls */
    ACRE_SPIN_KERNEL_NS =
        100000, /* for the end of work: a small kernel, and what starting it takes */
    /* For a device that wakes no one: on, but letting others run, while a sleep's end would come
     * late by more than a hundredth of the time waited. */
    ACRE_SPIN_YIELD_NS = 2000000,
    /* A runner's queue, which all streams of its callers come through: a program that does
     * something else between two launches for less than this is not held up by waking it. */
    ACRE_SPIN_QUEUE_NS = 1000000,
    ACRE_SPIN_QUEUE_BUSY_NS = 20000000, /* the same while the device works on what came */

    ACRE_SPIN_LOOKS = 64, /* between two readings of the clock, which cost as much as a look */
};

/* Between two looks: leaves the core to its other thread, and the memory bus to who writes. */
static inline void acre_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* One wait; all zero at its beginning. */
struct acre_spin {
    uint64_t begun_ns;
    uint32_t looks;
    bool is_over;
};

/* Between two looks of a wait: true after a moment; false when it has gone on for `limit_ns` (0: at
 * once), and from then on: time to sleep. */
static inline bool acre_spin(struct acre_spin *spin, uint64_t limit_ns) {
    if (spin->looks++ % ACRE_SPIN_LOOKS == 0 && !spin->is_over) {
        uint64_t now_ns = acre_monotonic_ns();
        spin->begun_ns = spin->begun_ns != 0 ? spin->begun_ns : now_ns;
        spin->is_over = now_ns - spin->begun_ns >= limit_ns;
    }
    if (!spin->is_over) {
        acre_cpu_relax();
    }
    return !spin->is_over;
}

#endif
