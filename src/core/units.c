/* units.c - sizes, durations, shares and counts: one scanner, then tables of units.
 *
 * scan_number reads digits and an optional decimal part into two integers. There is no floating
 * point, so "0.1" is exactly 100 thousandths. Each row of a unit table gives a factor; products and
 * sums use the overflow builtins and a limit, so a number that is too large is refused and never
 * wraps. Decimals are limited to six: 999999 * 2^40 still fits 64 bits. */
#include "core/units.h"

#include "core/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS_MAX = 6, VALUE_SHOWN = 64 };

static const uint64_t powers_of_ten[DECIMALS_MAX + 1] = {1, 10, 100, 1000, 10000, 100000, 1000000};

struct decimal {
    uint64_t whole;
    uint64_t decimals; /* "1.05": 5 */
    unsigned places;   /* "1.05": 2 */
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Read "12" or "1.5" at *at and move it on. False: not a number, or it does not fit. */
static bool scan_number(const char **at, struct decimal *ret_number) {
    struct decimal number = {0};
    const char *p = *at;
    if (!is_digit(*p)) {
        return false;
    }
    for (; is_digit(*p); p++) {
        if (__builtin_mul_overflow(number.whole, 10, &number.whole) ||
            __builtin_add_overflow(number.whole, *p - '0', &number.whole)) {
            return false;
        }
    }
    if (*p == '.') {
        p++;
        if (!is_digit(*p)) {
            return false;
        }
        for (; is_digit(*p); p++) {
            if (++number.places > DECIMALS_MAX) {
                return false;
            }
            number.decimals = number.decimals * 10 + (uint64_t)(*p - '0');
        }
    }
    *at = p;
    *ret_number = number;
    return true;
}

/* number * factor, rounded down. False when it does not fit. */
static bool scale(struct decimal number, uint64_t factor, uint64_t *ret_value) {
    ACRE_ASSERT(factor <= UINT64_C(1) << 40);
    uint64_t part = number.decimals * factor / powers_of_ten[number.places];
    uint64_t value;
    if (__builtin_mul_overflow(number.whole, factor, &value) ||
        __builtin_add_overflow(value, part, &value)) {
        return false;
    }
    *ret_value = value;
    return true;
}

static int refuse(const char *field, const char *text, const char *what, const char *accepted,
                  struct acre_error *err) {
    char shown[VALUE_SHOWN];
    acre_str_show(acre_str_from(text), shown, sizeof(shown));
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not %s; accepted: %s", field, shown, what,
                     accepted);
}

static const struct {
    const char *name;
    uint64_t bytes;
    bool decimals; /* "1.5KiB" is a slip, not a size */
} size_units[] = {
    {"", UINT64_C(1) << 20, false},        {"KiB", UINT64_C(1) << 10, false},
    {"MiB", UINT64_C(1) << 20, false},     {"GiB", UINT64_C(1) << 30, true},
    {"TiB", UINT64_C(1) << 40, true},      {"KB", UINT64_C(1000), false},
    {"MB", UINT64_C(1000000), false},      {"GB", UINT64_C(1000000000), true},
    {"TB", UINT64_C(1000000000000), true},
};

int acre_parse_mib(const char *field, const char *text, uint64_t *ret_mib, struct acre_error *err) {
    ACRE_ASSERT(field != NULL && text != NULL);
    static const char accepted[] = "1 MiB to 1 EiB, e.g. 512MiB or 80GiB";
    const char *at = text;
    struct decimal number;
    if (!scan_number(&at, &number)) {
        return refuse(field, text, "a valid size", accepted, err);
    }
    for (size_t i = 0; i < ACRE_COUNT(size_units); i++) {
        uint64_t bytes;
        if (strcmp(at, size_units[i].name) != 0 || (number.places > 0 && !size_units[i].decimals) ||
            !scale(number, size_units[i].bytes, &bytes)) {
            continue;
        }
        uint64_t mib = bytes >> 20;
        if (mib >= 1 && mib <= ACRE_MIB_MAX) {
            *ret_mib = mib;
            return 0;
        }
    }
    return refuse(field, text, "a valid size", accepted, err);
}

static const struct {
    const char *name;
    uint64_t ms;
} time_units[] = {
    {"d", 24 * 3600 * 1000}, {"h", 3600 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1},
};

/* The unit at *at, among those from *next on; moves both on. */
static bool scan_time_unit(const char **at, size_t *next, uint64_t *ret_ms) {
    size_t length = strspn(*at, "dhms");
    for (size_t i = *next; i < ACRE_COUNT(time_units); i++) {
        if (strlen(time_units[i].name) == length && strncmp(*at, time_units[i].name, length) == 0) {
            *at += length;
            *next = i + 1;
            *ret_ms = time_units[i].ms;
            return true;
        }
    }
    return false;
}

int acre_parse_duration(const char *field, const char *text, uint64_t *ret_ms,
                        struct acre_error *err) {
    ACRE_ASSERT(field != NULL && text != NULL);
    static const char accepted[] =
        "numbers with d, h, m, s or ms, at most 36600d, e.g. 90s, 1h30m or 7d";
    uint64_t total_ms = 0;
    size_t next = 0;
    const char *at = text;
    do {
        struct decimal number;
        uint64_t unit_ms, part_ms;
        if (!scan_number(&at, &number) || number.places > 0 ||
            !scan_time_unit(&at, &next, &unit_ms) || !scale(number, unit_ms, &part_ms) ||
            __builtin_add_overflow(total_ms, part_ms, &total_ms) ||
            total_ms > ACRE_DURATION_MAX_MS) {
            return refuse(field, text, "a valid duration", accepted, err);
        }
    } while (*at != '\0');
    *ret_ms = total_ms;
    return 0;
}

int acre_parse_milli(const char *field, const char *text, uint32_t min_milli, uint32_t max_milli,
                     uint32_t *ret_milli, struct acre_error *err) {
    ACRE_ASSERT(field != NULL && text != NULL && min_milli <= max_milli);
    const char *at = text;
    struct decimal number;
    uint64_t milli;
    if (!scan_number(&at, &number) || *at != '\0' || number.places > 3 ||
        !scale(number, 1000, &milli) || milli < min_milli || milli > max_milli) {
        char low[24], high[24], accepted[80];
        snprintf(accepted, sizeof(accepted), "%s to %s in steps of 0.001",
                 acre_format_milli(min_milli, low, sizeof(low)),
                 acre_format_milli(max_milli, high, sizeof(high)));
        return refuse(field, text, "a valid share", accepted, err);
    }
    *ret_milli = (uint32_t)milli;
    return 0;
}

int acre_parse_count(const char *field, const char *text, uint64_t min, uint64_t max,
                     uint64_t *ret_count, struct acre_error *err) {
    ACRE_ASSERT(field != NULL && text != NULL && min <= max);
    const char *at = text;
    struct decimal number;
    if (!scan_number(&at, &number) || *at != '\0' || number.places > 0 || number.whole < min ||
        number.whole > max) {
        char accepted[80];
        if (max == UINT64_MAX) {
            snprintf(accepted, sizeof(accepted), "whole numbers from %" PRIu64, min);
        } else {
            snprintf(accepted, sizeof(accepted), "whole numbers from %" PRIu64 " to %" PRIu64, min,
                     max);
        }
        return refuse(field, text, "a valid count", accepted, err);
    }
    *ret_count = number.whole;
    return 0;
}

/* Rounded down: what is shown as free is there. "1 GiB" is exact, "1.0 GiB" is not. */
char *acre_format_mib(uint64_t mib, char *text, size_t size) {
    static const char *const names[] = {"MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (unit + 1 < ACRE_COUNT(names) && mib >> (10 * unit) >= 1024) {
        unit++;
    }
    unsigned shift = (unsigned)(10 * unit);
    uint64_t rest = mib & ((UINT64_C(1) << shift) - 1);
    if (rest == 0) {
        snprintf(text, size, "%" PRIu64 " %s", mib >> shift, names[unit]);
    } else {
        snprintf(text, size, "%" PRIu64 ".%" PRIu64 " %s", mib >> shift, rest * 10 >> shift,
                 names[unit]);
    }
    return text;
}

/* Always exact; acre_parse_duration reads it back. */
char *acre_format_duration(uint64_t ms, char *text, size_t size) {
    ACRE_ASSERT(size > 0);
    snprintf(text, size, "0s");
    size_t used = 0;
    for (size_t i = 0; i < ACRE_COUNT(time_units) && used < size; i++) {
        uint64_t count = ms / time_units[i].ms;
        ms %= time_units[i].ms;
        if (count > 0) {
            int length =
                snprintf(text + used, size - used, "%" PRIu64 "%s", count, time_units[i].name);
            used += (size_t)length;
        }
    }
    return text;
}

/* At least one decimal, so that a share reads as one: "1.0", "0.25". */
char *acre_format_milli(uint64_t milli, char *text, size_t size) {
    uint64_t rest = milli % 1000;
    int places = rest % 100 == 0 ? 1 : rest % 10 == 0 ? 2 : 3;
    rest = places == 1 ? rest / 100 : places == 2 ? rest / 10 : rest;
    snprintf(text, size, "%" PRIu64 ".%0*" PRIu64, milli / 1000, places, rest);
    return text;
}

char *acre_format_span(uint64_t ms, char *text, size_t size) {
    enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
    static const struct {
        uint64_t from_ms, step_ms; /* spans from here on are rounded up to steps of that */
    } steps[] = {{DAY, HOUR}, {10 * MINUTE, MINUTE}, {SECOND, SECOND}, {0, 1}};
    size_t row = 0;
    while (ms < steps[row].from_ms) {
        row++;
    }
    uint64_t step_ms = steps[row].step_ms, over = ms % step_ms;
    ms = over == 0 || ms > UINT64_MAX - step_ms ? ms - over : ms - over + step_ms;
    uint64_t large = 0, small = ms;
    const char *large_name = "", *small_name = "ms";
    if (ms >= DAY) {
        large = ms / DAY, small = ms % DAY / HOUR;
        large_name = large == 1 ? "day" : "days", small_name = "h";
    } else if (ms >= HOUR) {
        large = ms / HOUR, small = ms % HOUR / MINUTE;
        large_name = "h", small_name = "min";
    } else if (ms >= MINUTE) {
        large = ms / MINUTE, small = ms % MINUTE / SECOND;
        large_name = "min", small_name = "s";
    } else if (ms >= SECOND || ms == 0) {
        small = ms / SECOND, small_name = "s";
    }
    if (large == 0) {
        snprintf(text, size, "%" PRIu64 " %s", small, small_name);
    } else if (small == 0) {
        snprintf(text, size, "%" PRIu64 " %s", large, large_name);
    } else {
        snprintf(text, size, "%" PRIu64 " %s %" PRIu64 " %s", large, large_name, small, small_name);
    }
    return text;
}

char *acre_format_count(uint64_t count, const char *noun, char *text, size_t size) {
    snprintf(text, size, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
    return text;
}

char *acre_format_amount(uint64_t milli, const char *noun, char *text, size_t size) {
    if (milli % 1000 == 0) {
        return acre_format_count(milli / 1000, noun, text, size);
    }
    char number[32];
    snprintf(text, size, "%s %ss", acre_format_milli(milli, number, sizeof(number)), noun);
    return text;
}
