/* when.c - formats times with two units: the seconds of a three-hour wait do not matter.
 *
 * Days are computed from the civil calendar (with years that start in March), not with timegm, so
 * that a wrong date is refused instead of rolled over. */
#include "cli/when.h"

#include "core/str.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Read `count` digits; false when one is missing. */
static bool digits(const char **at, int count, int *ret_value) {
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (**at < '0' || **at > '9') {
            return false;
        }
        value = value * 10 + (*(*at)++ - '0');
    }
    *ret_value = value;
    return true;
}

static bool literal(const char **at, char c) {
    return **at == c && (*at)++ != NULL;
}

static int64_t days_before(int year, int month, int day) {
    year -= month <= 2;
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_of(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* "Z", "+01:00" or "-01:00", in minutes. */
static bool offset(const char **at, int *ret_minutes) {
    *ret_minutes = 0;
    if (literal(at, 'Z')) {
        return true;
    }
    int sign = **at == '+' ? 1 : -1, hours, minutes;
    if (!literal(at, '+') && !literal(at, '-')) {
        return false;
    }
    if (!digits(at, 2, &hours) || !literal(at, ':') || !digits(at, 2, &minutes) || hours > 23 ||
        minutes > 59) {
        return false;
    }
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

bool when_parse(const char *text, uint64_t *ret_ms) {
    const char *at = text;
    int year, month, day, hour, minute, second, milli = 0, minutes;
    if (!digits(&at, 4, &year) || !literal(&at, '-') || !digits(&at, 2, &month) ||
        !literal(&at, '-') || !digits(&at, 2, &day) || !literal(&at, 'T') ||
        !digits(&at, 2, &hour) || !literal(&at, ':') || !digits(&at, 2, &minute) ||
        !literal(&at, ':') || !digits(&at, 2, &second)) {
        return false;
    }
    if (literal(&at, '.') && !digits(&at, 3, &milli)) {
        return false;
    }
    if (!offset(&at, &minutes) || *at != '\0' || year < 1970 || month < 1 || month > 12 ||
        day < 1 || day > days_of(year, month) || hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    int64_t seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute - minutes) * 60 +
                      ACRE_MIN(second, 59);
    if (seconds < 0) {
        return false;
    }
    *ret_ms = (uint64_t)seconds * 1000 + (uint64_t)milli;
    return true;
}

int when_check_span(const char *field, const char *value, struct acre_error *err) {
    uint64_t ms;
    return acre_parse_duration(field, value, &ms, err);
}

int when_check_time(const char *field, const char *value, struct acre_error *err) {
    uint64_t ms;
    if (acre_parse_duration(field, value, &ms, NULL) == 0 || when_parse(value, &ms)) {
        return 0;
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID,
                     "%s: '%s' is not a time; accepted: a delay such as 2h30m, or a time such as "
                     "2026-11-15T20:00:00Z",
                     field, acre_str_show(acre_str_from(value), shown, sizeof(shown)));
}

char *when_span(uint64_t ms, char *text, size_t size) {
    uint64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
    if (days >= 10) {
        snprintf(text, size, "%" PRIu64 "d", days);
    } else if (days > 0) {
        snprintf(text, size, "%" PRIu64 "d%" PRIu64 "h", days, hours % 24);
    } else if (hours > 0) {
        snprintf(text, size, "%" PRIu64 "h%02" PRIu64 "m", hours, minutes % 60);
    } else if (minutes > 0) {
        snprintf(text, size, "%" PRIu64 "m%02" PRIu64 "s", minutes, seconds % 60);
    } else {
        snprintf(text, size, "%" PRIu64 "s", seconds);
    }
    return text;
}

/* Seconds up to 90, then minutes, then tens of minutes, then days: a guess is no finer. */
char *when_about(uint64_t ms, char *text, size_t size) {
    enum { MINUTE = 60000, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
    if (ms < UINT64_C(90) * 1000) {
        snprintf(text, size, "%" PRIu64 "s", (ms + 500) / 1000);
    } else if (ms < UINT64_C(90) * MINUTE) {
        snprintf(text, size, "%" PRIu64 "m", (ms + MINUTE / 2) / MINUTE);
    } else if (ms < UINT64_C(2) * DAY) {
        uint64_t minutes = (ms + 5 * MINUTE) / (10 * MINUTE) * 10;
        snprintf(text, size, "%" PRIu64 "h%02" PRIu64 "m", minutes / 60, minutes % 60);
    } else {
        snprintf(text, size, "%" PRIu64 "d", (ms + DAY / 2) / DAY);
    }
    return text;
}

char *when_relative(uint64_t then_ms, uint64_t now_ms, char *text, size_t size) {
    char span[ACRE_WHEN_MAX];
    bool past = then_ms <= now_ms;
    uint64_t apart = past ? now_ms - then_ms : then_ms - now_ms;
    if (apart < 1000) {
        snprintf(text, size, "now");
    } else {
        when_about(apart, span, sizeof(span));
        snprintf(text, size, past ? "%s ago" : "in %s", span);
    }
    return text;
}

char *when_clock(uint64_t then_ms, uint64_t now_ms, char *text, size_t size) {
    time_t then = (time_t)(then_ms / 1000), now = (time_t)(now_ms / 1000);
    struct tm at, today;
    if (localtime_r(&then, &at) == NULL || localtime_r(&now, &today) == NULL) {
        snprintf(text, size, "-");
        return text;
    }
    bool same_year = at.tm_year == today.tm_year;
    const char *format = same_year && at.tm_yday == today.tm_yday ? "%H:%M:%S"
                         : same_year                              ? "%b %e %H:%M"
                                                                  : "%Y-%m-%d";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* one of the three above */
    if (strftime(text, size, format, &at) == 0) {
        snprintf(text, size, "-");
    }
#pragma GCC diagnostic pop
    return text;
}

char *when_both(uint64_t then_ms, uint64_t now_ms, char *text, size_t size) {
    char at[ACRE_WHEN_MAX], ago[ACRE_WHEN_MAX];
    snprintf(text, size, "%s (%s)", when_clock(then_ms, now_ms, at, sizeof(at)),
             when_relative(then_ms, now_ms, ago, sizeof(ago)));
    return text;
}
