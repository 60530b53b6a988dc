/* cost.c - the cost model of automatic calls.
 *
 * The cost of a variant is a smooth function of the size except for steps, so a table of buckets,
 * four per octave, is as good as any formula and assumes nothing. In each bucket every variant is
 * tried three times, and the fastest counts: disturbances only ever add time. A hopeless variant is
 * skipped: one that took four times the best, here or within an octave. After that the cheapest
 * variant runs. One in 16 of its calls is measured, into a moving average; every 512th call goes to
 * the second best, if that is close, so that a change is noticed.
 *
 * A single disturbed measurement must not displace the best variant, which would then return only
 * when it is the second's turn. So a value far above the average counts little until it comes three
 * times in a row. If the second best turns out faster than believed, that counts at once: it is
 * chosen, and averaged like any other. */
#include "compute/auto/cost.h"

#include <inttypes.h>
#include <string.h>

enum {
    TRIES = 3,
    TRIES_HOPELESS = 2, /* the first may have met a device that slept */
    HOPELESS_TIMES = 4,
    OCTAVE = 4, /* buckets */
    MEASURE_EACH = 16,
    SECOND_EACH = 512,
    OTHER_EACH = 8192, /* a multiple of MEASURE_EACH */
    OTHER_TIMES = 64,  /* what is worse costs more than it may bring */
    OUTLIER_TIMES = 4,
    STRIKES = 3, /* high ones in a row: not by chance */
    AVERAGE_OVER = 8,
    COLUMNS = 5,
};
#define SECOND_TIMES 1.5
#define HIGH_TIMES   1.25
#define PS_MAX       UINT64_C(1000000000000000000) /* 11 days */
#define CALLS_MAX    (UINT64_C(1) << 62)

static const char magic[] = "acre-costs 1";

static const struct {
    const char *name;
    enum acre_way way;
} variants[] = {
#define X(variant, name, way) {name, ACRE_WAY_##way},
    COST_VARIANTS(X)
#undef X
};

const char *cost_variant_name(enum cost_variant variant) {
    return variants[variant].name;
}

enum acre_way cost_variant_way(enum cost_variant variant) {
    return variants[variant].way;
}

uint32_t cost_way_variants(enum acre_way way) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        mask |= variants[i].way == way ? UINT32_C(1) << i : 0;
    }
    return mask;
}

uint32_t cost_bucket(uint32_t items, enum cost_memory memory) {
    ACRE_ASSERT(items > 0);
    uint32_t octave = 31 - (uint32_t)__builtin_clz(items);
    uint32_t quarter = (uint32_t)(((uint64_t)items << 2) >> octave) & 3;
    return octave * OCTAVE + quarter + (uint32_t)memory * COST_SIZES;
}

uint32_t cost_bucket_items(uint32_t bucket) {
    uint32_t octave = bucket % COST_SIZES / OCTAVE;
    uint64_t quarters = (uint64_t)(4 + bucket % OCTAVE) << octave;
    return (uint32_t)((quarters + 3) / 4); /* below 4 items some buckets hold none */
}

void costs_init(struct costs *costs) {
    memset(costs, 0, sizeof(*costs));
    for (size_t i = 0; i < COST_BUCKETS; i++) {
        for (size_t j = 0; j < COST_VARIANTS_COUNT; j++) {
            costs->all[i][j].us = -1;
        }
    }
}

/* --- choosing ------------------------------------------------------------------------------- */

static bool is_in(uint32_t mask, uint32_t variant) {
    return (mask >> variant & 1) != 0;
}

/* The cheapest of those known, but for `except`; COST_VARIANTS_COUNT: none. */
static uint32_t cheapest(const struct cost *row, uint32_t possible, uint32_t except) {
    uint32_t best = COST_VARIANTS_COUNT;
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        if (is_in(possible, i) && i != except && row[i].us >= 0 &&
            (best == COST_VARIANTS_COUNT || row[i].us < row[best].us)) {
            best = i;
        }
    }
    return best;
}

static bool is_hopeless_in(const struct cost *row, uint32_t variant, uint32_t possible) {
    uint32_t best = cheapest(row, possible, COST_VARIANTS_COUNT);
    return row[variant].tries >= TRIES_HOPELESS && best < COST_VARIANTS_COUNT &&
           row[variant].us > HOPELESS_TIMES * row[best].us;
}

static bool is_hopeless(const struct costs *costs, uint32_t bucket, uint32_t variant,
                        uint32_t possible) {
    uint32_t size = bucket % COST_SIZES;
    uint32_t low = size < OCTAVE ? 0 : size - OCTAVE;
    uint32_t high = ACRE_MIN(size + OCTAVE, (uint32_t)COST_SIZES - 1);
    for (uint32_t i = low; i <= high; i++) {
        if (is_hopeless_in(costs->all[bucket - size + i], variant, possible)) {
            return true;
        }
    }
    return false;
}

/* One that has to be tried, rather one that was begun: in a row they find the caches as they would
 * be if it was chosen. COST_VARIANTS_COUNT: none. */
static uint32_t untried(struct costs *costs, uint32_t bucket, uint32_t possible) {
    const struct cost *row = costs->all[bucket];
    uint32_t found = COST_VARIANTS_COUNT;
    if (costs->settled[bucket] == possible) {
        return found; /* looking takes longer than the smallest calls */
    }
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        bool is_better = found == COST_VARIANTS_COUNT || row[i].tries > row[found].tries;
        if (is_in(possible, i) && row[i].tries < TRIES && is_better &&
            !is_hopeless(costs, bucket, i, possible)) {
            found = i;
        }
    }
    if (found == COST_VARIANTS_COUNT && cheapest(row, possible, found) < found) {
        costs->settled[bucket] = possible;
    }
    return found;
}

struct cost_choice costs_choose(struct costs *costs, uint32_t bucket, uint32_t possible) {
    ACRE_ASSERT(possible != 0);
    struct cost *row = costs->all[bucket];
    uint32_t chosen = untried(costs, bucket, possible);
    uint32_t best = cheapest(row, possible, COST_VARIANTS_COUNT);
    if (chosen == COST_VARIANTS_COUNT && best == COST_VARIANTS_COUNT) {
        chosen = (uint32_t)__builtin_ctz(possible); /* each hopeless somewhere else */
    }
    if (chosen < COST_VARIANTS_COUNT) {
        return (struct cost_choice){.variant = chosen, .is_measured = true, .is_trial = true};
    }
    uint32_t turn = ++costs->turns[bucket];
    uint32_t second = cheapest(row, possible, best);
    bool is_seconds = turn % SECOND_EACH == 0 && second < COST_VARIANTS_COUNT &&
                      row[second].us <= SECOND_TIMES * row[best].us;
    /* All in turn, at long last: the machine may not be what it was when they were tried. */
    uint32_t other = turn / OTHER_EACH % COST_VARIANTS_COUNT;
    bool is_others = turn % OTHER_EACH == 0 && is_in(possible, other) && other != best &&
                     row[other].us <= OTHER_TIMES * row[best].us;
    return (struct cost_choice){.variant = is_others    ? other
                                           : is_seconds ? second
                                                        : best,
                                .is_measured = turn % MEASURE_EACH == 0,
                                .is_trial = is_others || is_seconds};
}

uint32_t costs_free_calls(struct costs *costs, uint32_t bucket, uint32_t possible,
                          enum cost_variant variant) {
    bool is_settled = untried(costs, bucket, possible) == COST_VARIANTS_COUNT &&
                      cheapest(costs->all[bucket], possible, COST_VARIANTS_COUNT) == variant;
    return is_settled ? MEASURE_EACH - 1 - costs->turns[bucket] % MEASURE_EACH : 0;
}

void costs_count(struct costs *costs, uint32_t bucket, enum cost_variant variant, uint32_t calls,
                 bool is_free) {
    costs->all[bucket][variant].calls += calls;
    costs->turns[bucket] += is_free ? calls : 0;
}

void costs_tell(struct costs *costs, uint32_t bucket, struct cost_choice choice, double us) {
    struct cost *cost = &costs->all[bucket][choice.variant];
    double least = 1e-6; /* a clock may show nothing; costs are more than that */
    us = us > least ? us : least;
    if (cost->tries < TRIES) {
        cost->us = cost->us < 0 || us < cost->us ? us : cost->us;
        cost->tries++;
        return;
    }
    if (choice.is_trial && us < cost->us) {
        cost->us = us;
        return;
    }
    cost->strikes = us > HIGH_TIMES * cost->us ? cost->strikes + 1 : 0;
    double most = (cost->strikes < STRIKES ? HIGH_TIMES : OUTLIER_TIMES) * cost->us;
    cost->us += ((us < most ? us : most) - cost->us) / AVERAGE_OVER;
}

/* --- reporting ------------------------------------------------------------------------------ */

/* The means of the buckets in which a way was gone, each with its cheapest variant there. */
static bool report_octave(const struct costs *costs, uint32_t octave,
                          struct acre_auto_cost *ret_cost) {
    struct acre_auto_cost cost = {.items = cost_bucket_items(octave * OCTAVE),
                                  .chosen = ACRE_WAY_COUNT};
    for (int way = 0; way < ACRE_WAY_COUNT; way++) {
        uint32_t mask = cost_way_variants((enum acre_way)way);
        uint32_t known = 0;
        double sum = 0;
        for (uint32_t i = 0; i < COST_MEMORY_COUNT * OCTAVE; i++) {
            const struct cost *row =
                costs->all[octave * OCTAVE + i % OCTAVE + i / OCTAVE * COST_SIZES];
            uint32_t best = cheapest(row, mask, COST_VARIANTS_COUNT);
            known += best < COST_VARIANTS_COUNT;
            sum += best < COST_VARIANTS_COUNT ? row[best].us : 0;
            for (uint32_t j = 0; j < COST_VARIANTS_COUNT; j++) {
                cost.calls[way] += is_in(mask, j) ? row[j].calls : 0;
            }
        }
        cost.us[way] = known > 0 ? sum / known : -1;
        if (known > 0 && (cost.chosen == ACRE_WAY_COUNT || cost.us[way] < cost.us[cost.chosen])) {
            cost.chosen = (enum acre_way)way;
        }
    }
    *ret_cost = cost;
    return cost.chosen < ACRE_WAY_COUNT;
}

uint32_t costs_report(const struct costs *costs, struct acre_auto_cost *ret_costs, uint32_t max) {
    uint32_t count = 0;
    for (uint32_t octave = 0; octave < COST_SIZES / OCTAVE && count < max; octave++) {
        struct acre_auto_cost cost;
        if (report_octave(costs, octave, &cost)) {
            ret_costs[count++] = cost;
        }
    }
    return count;
}

/* --- as text -------------------------------------------------------------------------------- */

void costs_write(const struct costs *costs, const struct cost_owner *owner, struct acre_buf *out) {
    char kernel[COST_NAME_MAX], device[COST_NAME_MAX], cpu[COST_NAME_MAX];
    acre_buf_printf(out, "%s\nkey %016" PRIx64 "\nkernel %s\ndevice %s\ncpu %s\n", magic,
                    owner->key, acre_str_show(acre_str_from(owner->kernel), kernel, sizeof(kernel)),
                    acre_str_show(acre_str_from(owner->device), device, sizeof(device)),
                    acre_str_show(acre_str_from(owner->cpu), cpu, sizeof(cpu)));
    acre_buf_puts(out, "# bucket variant picoseconds tries calls\n");
    for (uint32_t i = 0; i < COST_BUCKETS; i++) {
        for (uint32_t j = 0; j < COST_VARIANTS_COUNT; j++) {
            const struct cost *cost = &costs->all[i][j];
            if (cost->us >= 0) {
                double ps = cost->us * 1e6;
                acre_buf_printf(out, "%u %s %" PRIu64 " %u %" PRIu64 "\n", i, variants[j].name,
                                ps < (double)PS_MAX ? (uint64_t)ps : PS_MAX, cost->tries,
                                ACRE_MIN(cost->calls, CALLS_MAX));
            }
        }
    }
    acre_buf_puts(out, "end\n");
}

/* Digits of the base only, within [0, max]. */
static bool read_number(struct acre_str text, uint32_t base, uint64_t max, uint64_t *ret_number) {
    uint64_t number = 0;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                                                : 99;
        if (digit >= base || __builtin_mul_overflow(number, base, &number) ||
            __builtin_add_overflow(number, digit, &number)) {
            return false;
        }
    }
    *ret_number = number;
    return text.length > 0 && number <= max;
}

static bool read_cost(struct acre_str line, struct costs *costs) {
    struct acre_str columns[COLUMNS];
    struct acre_split split = acre_split_begin(line, ' ');
    struct acre_str column;
    uint32_t count = 0;
    while (acre_split_next(&split, &column)) {
        if (count == COLUMNS) {
            return false;
        }
        columns[count++] = column;
    }
    uint64_t bucket, ps, tries, calls;
    if (count != COLUMNS || !read_number(columns[0], 10, COST_BUCKETS - 1, &bucket) ||
        !read_number(columns[2], 10, PS_MAX, &ps) || !read_number(columns[3], 10, TRIES, &tries) ||
        !read_number(columns[4], 10, CALLS_MAX, &calls) || tries == 0 || ps == 0) {
        return false;
    }
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        struct cost *cost = &costs->all[bucket][i];
        if (acre_str_is(columns[1], variants[i].name)) {
            bool is_first = cost->us < 0;
            *cost = (struct cost){.us = (double)ps / 1e6, .tries = (uint32_t)tries, .calls = calls};
            return is_first;
        }
    }
    return false;
}

/* "name value", the value into `to`. */
static bool read_label(struct acre_str line, const char *name, char *to, size_t size) {
    size_t length = strlen(name);
    if (line.length <= length + 1 || memcmp(line.data, name, length) != 0 ||
        line.data[length] != ' ') {
        return false;
    }
    struct acre_str value = {line.data + length + 1, line.length - length - 1};
    return memchr(value.data, '\0', value.length) == NULL && acre_str_copy(to, size, value);
}

/* The lines before the costs, by number. */
static bool read_head(uint32_t number, struct acre_str line, struct cost_owner *owner) {
    char key[COST_NAME_MAX];
    switch (number) {
    case 1:
        return acre_str_is(line, magic);
    case 2:
        return read_label(line, "key", key, sizeof(key)) && strlen(key) == 16 &&
               read_number(acre_str_from(key), 16, UINT64_MAX, &owner->key);
    case 3:
        return read_label(line, "kernel", owner->kernel, sizeof(owner->kernel));
    case 4:
        return read_label(line, "device", owner->device, sizeof(owner->device));
    case 5:
        return read_label(line, "cpu", owner->cpu, sizeof(owner->cpu));
    default:
        return line.length > 0 && line.data[0] == '#';
    }
}

int costs_read(struct acre_str text, struct cost_owner *ret_owner, struct costs *ret_costs,
               struct acre_error *err) {
    enum { HEAD_LINES = 6 };
    struct cost_owner owner = {0};
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    uint32_t number = 0;
    bool is_right = true;
    costs_init(ret_costs);
    while (is_right && acre_split_next(&lines, &line)) {
        number++;
        if (number > HEAD_LINES && acre_str_is(line, "end")) {
            bool is_last = acre_split_next(&lines, &line) && line.length == 0 &&
                           !acre_split_next(&lines, &line);
            if (is_last) {
                *ret_owner = owner;
                return 0;
            }
            is_right = false;
        } else {
            is_right =
                number <= HEAD_LINES ? read_head(number, line, &owner) : read_cost(line, ret_costs);
        }
    }
    char shown[64];
    costs_init(ret_costs);
    return acre_fail(err, ACRE_ECORRUPT, "line %u: unexpected '%s'", number,
                     is_right ? "" : acre_str_show(line, shown, sizeof(shown)));
}
