/* fairness.c - water filling: to find the level, give the smallest demands what they ask for, as
 * long as that is below an equal part of what is left. There are few tenants (a dozen virtual
 * clusters), so they are sorted again each time. */
#include "sim/fairness.h"

#include <stdlib.h>

struct tenant {
    uint64_t held, waiting;
    double got, owed; /* capacity x ms */
};

struct fairness {
    uint64_t capacity;
    uint32_t count;
    struct tenant *tenants;
    uint64_t *demands; /* scratch, sorted */
};

struct fairness *fairness_create(uint32_t tenants, uint64_t capacity) {
    struct fairness *fairness = acre_calloc(1, sizeof(*fairness));
    fairness->capacity = capacity;
    fairness->count = tenants;
    fairness->tenants = acre_calloc(tenants, sizeof(*fairness->tenants));
    fairness->demands = acre_calloc(tenants, sizeof(*fairness->demands));
    return fairness;
}

void fairness_destroy(struct fairness *fairness) {
    if (fairness != NULL) {
        free(fairness->tenants);
        free(fairness->demands);
        free(fairness);
    }
}

static void add(uint64_t *value, int64_t change) {
    ACRE_ASSERT(change >= 0 || *value >= (uint64_t)-change);
    *value += (uint64_t)change;
}

void fairness_add(struct fairness *fairness, uint32_t tenant, int64_t change) {
    ACRE_ASSERT(tenant < fairness->count);
    add(&fairness->tenants[tenant].held, change);
}

void fairness_want(struct fairness *fairness, uint32_t tenant, int64_t change) {
    ACRE_ASSERT(tenant < fairness->count);
    add(&fairness->tenants[tenant].waiting, change);
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Everybody gets min(demand, level). */
static double find_level(struct fairness *fairness) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < fairness->count; i++) {
        uint64_t demand = fairness->tenants[i].held + fairness->tenants[i].waiting;
        if (demand > 0) {
            fairness->demands[count++] = demand;
        }
    }
    qsort(fairness->demands, count, sizeof(*fairness->demands), compare_u64);
    double left = (double)fairness->capacity;
    for (uint32_t i = 0; i < count; i++) {
        double equal = left / (double)(count - i);
        if ((double)fairness->demands[i] >= equal) {
            return equal;
        }
        left -= (double)fairness->demands[i];
    }
    return (double)fairness->capacity; /* enough for everybody */
}

void fairness_pass(struct fairness *fairness, uint64_t ms) {
    if (ms == 0) {
        return;
    }
    double level = find_level(fairness);
    for (uint32_t i = 0; i < fairness->count; i++) {
        struct tenant *tenant = &fairness->tenants[i];
        double fair = ACRE_MIN((double)(tenant->held + tenant->waiting), level);
        tenant->owed += fair * (double)ms;
        tenant->got += ACRE_MIN((double)tenant->held, fair) * (double)ms;
    }
}

double jain_index(const double *values, uint32_t count) {
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    return squares > 0 ? sum * sum / ((double)count * squares) : 1;
}

double fairness_jain(const struct fairness *fairness) {
    double *parts = acre_calloc(fairness->count, sizeof(*parts));
    uint32_t count = 0;
    for (uint32_t i = 0; i < fairness->count; i++) {
        const struct tenant *tenant = &fairness->tenants[i];
        if (tenant->owed > 0) {
            parts[count++] = tenant->got / tenant->owed;
        }
    }
    double jain = jain_index(parts, count);
    free(parts);
    return jain;
}
