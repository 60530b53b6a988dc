/* The index: against an array that is searched, with hashes that spread and hashes that crowd. */
#include "core/index.h"
#include "core/rand.h"
#include "support/test.h"

enum { RECORDS = 300, STEPS = 100000 };

struct records {
    uint64_t keys[RECORDS]; /* 0: not in the index */
    uint32_t hash_mask;
};

static uint32_t hash_of(const struct records *records, uint64_t key) {
    return acre_hash_u64(key) & records->hash_mask;
}

static uint32_t record_hash(uint32_t number, const void *context) {
    const struct records *records = context;
    return hash_of(records, records->keys[number]);
}

static bool record_is(uint32_t number, const void *key, const void *context) {
    const struct records *records = context;
    return records->keys[number] == *(const uint64_t *)key;
}

static const struct acre_index_kind kind = {record_hash, record_is};

static uint32_t find(const struct acre_index *index, const struct records *records, uint64_t key) {
    return acre_index_find(&kind, index, hash_of(records, key), &key, records);
}

static uint32_t search(const struct records *records, uint64_t key) {
    for (uint32_t i = 0; i < RECORDS; i++) {
        if (records->keys[i] == key) {
            return i;
        }
    }
    return ACRE_INDEX_NONE;
}

/* Twice as many keys as records: hits and misses. */
static void step_once(struct acre_index *index, struct records *records, struct acre_rand *rand) {
    uint32_t i = (uint32_t)acre_rand_below(rand, RECORDS);
    uint64_t key = 1 + acre_rand_below(rand, UINT64_C(2) * RECORDS);
    CHECK_EQ(find(index, records, key), search(records, key));
    if (records->keys[i] != 0) {
        acre_index_remove(&kind, index, record_hash(i, records), i, records);
        records->keys[i] = 0;
    } else if (search(records, key) == ACRE_INDEX_NONE) {
        records->keys[i] = key;
        acre_index_add(&kind, index, hash_of(records, key), i, records);
    }
}

static void check_all(const struct acre_index *index, const struct records *records) {
    uint32_t count = 0;
    for (uint64_t key = 1; key <= UINT64_C(2) * RECORDS; key++) {
        CHECK_EQ(find(index, records, key), search(records, key));
        count += search(records, key) != ACRE_INDEX_NONE;
    }
    CHECK_EQ(index->count, count);
    CHECK(index->slots == NULL || 2 * index->count <= index->mask + 1);
}

static void it_does_what_a_search_does(void) {
    static const uint32_t hash_masks[] = {UINT32_MAX, 0xff0000ff, 7, 0}; /* 0: all have one home */
    for (size_t m = 0; m < ACRE_COUNT(hash_masks); m++) {
        struct acre_index index = {0};
        struct records records = {.hash_mask = hash_masks[m]};
        struct acre_rand rand;
        acre_rand_seed(&rand, m);
        uint32_t steps = hash_masks[m] > RECORDS ? STEPS : STEPS / 10;
        for (uint32_t step = 0; step < steps; step++) {
            acre_test_context("hashes & %#x, step %u", hash_masks[m], step);
            step_once(&index, &records, &rand);
            if (step % 1000 == 0) {
                check_all(&index, &records);
            }
        }
        check_all(&index, &records);
        acre_index_finish(&index);
        CHECK_U64(acre_index_bytes(&index), 0);
    }
}

static void an_empty_one_has_nothing(void) {
    struct records records = {.hash_mask = UINT32_MAX};
    struct acre_index index = {0};
    CHECK_EQ(find(&index, &records, 7), ACRE_INDEX_NONE);
    acre_index_clear(&index);
    records.keys[0] = 7;
    acre_index_add(&kind, &index, hash_of(&records, 7), 0, &records);
    CHECK_EQ(find(&index, &records, 7), 0);
    CHECK_EQ(find(&index, &records, 8), ACRE_INDEX_NONE);
    acre_index_clear(&index);
    CHECK_EQ(find(&index, &records, 7), ACRE_INDEX_NONE);
    CHECK_EQ(index.count, 0);
    CHECK(acre_index_bytes(&index) > 0);
    acre_index_finish(&index);
    CHECK_EQ(find(&index, &records, 7), ACRE_INDEX_NONE);
}

static const struct acre_test tests[] = {
    {"it_does_what_a_search_does", it_does_what_a_search_does, 0},
    {"an_empty_one_has_nothing", an_empty_one_has_nothing, 0},
};
ACRE_TEST_MAIN(tests)
