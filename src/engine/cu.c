/* cu.c - ranges to a set of pairs, the lowest free ones, and back to ranges.
 *
 * Shares come and go in any order, so what is free may lie in pieces: a new share takes the lowest
 * pairs wherever they are, and the mask is a list. The kernel spreads consecutive units over the
 * shader engines, so low numbers are as good as any. A share is rounded down: shares that sum to
 * a whole GPU always fit, whatever was given before. */
#include "engine/cu.h"

#include "core/str.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>

enum { PAIRS_MAX = ACRE_CU_MAX / 2, SHOWN = 60 };

struct pairs {
    bool taken[PAIRS_MAX];
};

static bool parse_number(struct acre_str text, uint32_t *ret_number) {
    char copy[8];
    uint64_t number;
    if (!acre_str_copy(copy, sizeof(copy), text) ||
        acre_parse_count("unit", copy, 0, ACRE_CU_MAX - 1, &number, NULL) < 0) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

/* Mark "a-b" or "a"; a unit takes its pair with it. */
static bool mark_range(struct acre_str range, uint32_t units, struct pairs *pairs) {
    struct acre_split ends = acre_split_begin(range, '-');
    struct acre_str part;
    uint32_t first, last;
    if (!acre_split_next(&ends, &part) || !parse_number(part, &first)) {
        return false;
    }
    last = first;
    if (acre_split_next(&ends, &part) &&
        (!parse_number(part, &last) || acre_split_next(&ends, &part))) {
        return false;
    }
    if (first > last || last >= units) {
        return false;
    }
    for (uint32_t pair = first / 2; pair <= last / 2; pair++) {
        pairs->taken[pair] = true;
    }
    return true;
}

static int mark(const char *held, uint32_t units, struct pairs *pairs, struct acre_error *err) {
    struct acre_split ranges = acre_split_begin(acre_str_from(held), ',');
    struct acre_str range;
    while (acre_split_next(&ranges, &range)) {
        if (!mark_range(range, units, pairs)) {
            char shown[SHOWN];
            return acre_fail(
                err, ACRE_EINVALID,
                "'%s' is not a list of compute units; accepted: ranges below %u, like 0-29,60-79",
                acre_str_show(acre_str_from(held), shown, sizeof(shown)), units);
        }
    }
    return 0;
}

static void put_range(uint32_t first_pair, uint32_t end_pair, char *text) {
    size_t length = strlen(text);
    snprintf(text + length, ACRE_CU_RANGES_TEXT - length, "%s%u-%u", length > 0 ? "," : "",
             first_pair * 2, end_pair * 2 - 1);
}

int cu_take(const char *const *held, uint32_t held_count, uint32_t units, uint32_t milli,
            char ret_ranges[ACRE_CU_RANGES_TEXT], struct acre_error *err) {
    if (units < 2 || units > ACRE_CU_MAX || milli < 1 || milli > 1000) {
        return acre_fail(
            err, ACRE_EINVALID,
            "%u thousandths of %u compute units is out of range; accepted: 1 to 1000 of 2 to %d",
            milli, units, ACRE_CU_MAX);
    }
    struct pairs pairs = {0};
    for (uint32_t i = 0; i < held_count; i++) {
        int r = mark(held[i], units, &pairs, err);
        if (r < 0) {
            return r;
        }
    }
    uint32_t all = units / 2;
    uint32_t wanted = ACRE_MAX(1u, all * milli / 1000);
    uint32_t open = 0;
    for (uint32_t i = 0; i < all; i++) {
        open += !pairs.taken[i];
    }
    if (open < wanted) {
        return acre_fail(err, ACRE_ENOFIT, "%u compute units asked for, but only %u of %u are free",
                         wanted * 2, open * 2, units);
    }
    ret_ranges[0] = '\0';
    for (uint32_t i = 0; wanted > 0; i++) {
        uint32_t first = i;
        while (i < all && wanted > 0 && !pairs.taken[i]) {
            i++;
            wanted--;
        }
        if (i > first) {
            put_range(first, i, ret_ranges);
        }
    }
    return 0;
}
