/* clock.h - time, real or virtual, always read through a clock.
 *
 * The core never reads a clock: callers pass now_ms. Programs hold one acre_clock; tests and
 * the simulator hold a virtual one and move it by hand. */
#ifndef ACRE_CORE_CLOCK_H
#define ACRE_CORE_CLOCK_H

#include "core/base.h"

struct acre_clock {
    bool is_virtual;
    uint64_t virtual_ms; /* wall and monotonic alike */
};

struct acre_clock acre_clock_real(void);
struct acre_clock acre_clock_virtual(uint64_t start_ms);
void acre_clock_advance(struct acre_clock *clock, uint64_t ms); /* virtual only */

uint64_t acre_clock_wall_ms(const struct acre_clock *clock);      /* since 1970 */
uint64_t acre_clock_monotonic_ns(const struct acre_clock *clock); /* never goes back */
/* The machine's own, for who waits for devices, which know no virtual time. */
uint64_t acre_monotonic_ns(void);

/* "2026-11-15T02:30:00.123Z"; `text` has room for 25 bytes. */
char *acre_format_time(uint64_t wall_ms, char text[25]);

#endif
