/* clock.c - the only place that reads the system clock. */
#include "core/clock.h"

#include <time.h>

struct acre_clock acre_clock_real(void) {
    return (struct acre_clock){0};
}

struct acre_clock acre_clock_virtual(uint64_t start_ms) {
    return (struct acre_clock){.is_virtual = true, .virtual_ms = start_ms};
}

void acre_clock_advance(struct acre_clock *clock, uint64_t ms) {
    ACRE_ASSERT(clock->is_virtual);
    ACRE_ASSERT(!__builtin_add_overflow(clock->virtual_ms, ms, &clock->virtual_ms));
}

static struct timespec read_clock(clockid_t id) {
    struct timespec now;
    int r = clock_gettime(id, &now);
    ACRE_ASSERT(r == 0 && now.tv_sec >= 0);
    return now;
}

uint64_t acre_clock_wall_ms(const struct acre_clock *clock) {
    if (clock->is_virtual) {
        return clock->virtual_ms;
    }
    struct timespec now = read_clock(CLOCK_REALTIME);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t acre_monotonic_ns(void) {
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t acre_clock_monotonic_ns(const struct acre_clock *clock) {
    if (clock->is_virtual) {
        ACRE_ASSERT(clock->virtual_ms <= UINT64_MAX / 1000000); /* 584 years */
        return clock->virtual_ms * 1000000;
    }
    return acre_monotonic_ns();
}

static char *put_digits(char *to, uint32_t value, uint32_t count) {
    for (uint32_t i = count; i-- > 0; value /= 10) {
        to[i] = (char)('0' + value % 10);
    }
    return to + count;
}

char *acre_format_time(uint64_t wall_ms, char text[25]) {
    /* Four digits of year: later times show as the last moment of 9999. */
    wall_ms = ACRE_MIN(wall_ms, UINT64_C(253402300799999));
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;
    ACRE_ASSERT(gmtime_r(&seconds, &utc) != NULL);
    const struct {
        int value;
        uint32_t digits;
        char after;
    } parts[] = {{utc.tm_year + 1900, 4, '-'},   {utc.tm_mon + 1, 2, '-'}, {utc.tm_mday, 2, 'T'},
                 {utc.tm_hour, 2, ':'},          {utc.tm_min, 2, ':'},     {utc.tm_sec, 2, '.'},
                 {(int)(wall_ms % 1000), 3, 'Z'}};
    char *to = text;
    for (size_t i = 0; i < ACRE_COUNT(parts); i++) {
        to = put_digits(to, (uint32_t)parts[i].value, parts[i].digits);
        *to++ = parts[i].after;
    }
    *to = '\0';
    return text;
}
