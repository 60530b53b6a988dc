/* Names: the same text always gives the same id, ids count from 1, texts stay where they are;
 * names that were taken are forgotten when all of them were given back. */
#include "core/names.h"
#include "support/dies.h"
#include "support/test.h"

#include <stdio.h>

static void ids_count_from_one_in_order_of_first_use(void) {
    struct acre_names *names = acre_names_create();
    CHECK_EQ(acre_names_count(names), 0);
    CHECK_EQ(acre_names_find(names, ACRE_STR("a")), 0);
    CHECK_EQ(acre_names_intern(names, ACRE_STR("a")), 1);
    CHECK_EQ(acre_names_intern(names, ACRE_STR("b")), 2);
    CHECK_EQ(acre_names_intern(names, ACRE_STR("a")), 1);
    CHECK_EQ(acre_names_intern(names, ACRE_STR("ab")), 3);
    CHECK_EQ(acre_names_find(names, ACRE_STR("b")), 2);
    CHECK_EQ(acre_names_find(names, ACRE_STR("c")), 0);
    CHECK_EQ(acre_names_count(names), 3);
    CHECK_STR(acre_names_text(names, 3), "ab");
    acre_names_destroy(names);
    acre_names_destroy(NULL);
}

static void none_is_zero_and_empty(void) {
    struct acre_names *names = acre_names_create();
    CHECK_EQ(acre_names_intern(names, ACRE_STR("")), 0);
    CHECK_EQ(acre_names_intern(names, (struct acre_str){NULL, 0}), 0);
    CHECK_EQ(acre_names_find(names, ACRE_STR("")), 0);
    CHECK_STR(acre_names_text(names, 0), "");
    CHECK_EQ(acre_names_count(names), 0);
    acre_names_destroy(names);
}

static void views_need_no_nul_and_are_copied(void) {
    struct acre_names *names = acre_names_create();
    char text[] = "gpu-12";
    uint32_t id = acre_names_intern(names, (struct acre_str){text, 5});
    memset(text, 'x', sizeof(text) - 1);
    CHECK_STR(acre_names_text(names, id), "gpu-1");
    CHECK_EQ(acre_names_find(names, ACRE_STR("gpu-1")), id);
    acre_names_destroy(names);
}

static void many_names_keep_ids_and_addresses(void) {
    enum { COUNT = 50000 };
    struct acre_names *names = acre_names_create();
    size_t empty_bytes = acre_names_bytes(names);
    char text[32];
    uint32_t first = acre_names_intern(names, ACRE_STR("node-0"));
    const char *first_text = acre_names_text(names, first);
    for (uint32_t i = 1; i < COUNT; i++) {
        snprintf(text, sizeof(text), "node-%u", i);
        REQUIRE_EQ(acre_names_intern(names, acre_str_from(text)), i + 1);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof(text), "node-%u", i);
        REQUIRE_EQ(acre_names_find(names, acre_str_from(text)), i + 1);
        CHECK_STR(acre_names_text(names, i + 1), text);
    }
    CHECK(acre_names_text(names, first) == first_text);
    CHECK_EQ(acre_names_count(names), COUNT);
    CHECK_EQ(acre_names_find(names, ACRE_STR("node-50000")), 0);
    CHECK(acre_names_bytes(names) > empty_bytes + COUNT * 16);
    CHECK(acre_names_bytes(names) < COUNT * 100);
    acre_names_destroy(names);
}

static void ask_for_an_id_never_given(void) {
    struct acre_names *names = acre_names_create();
    acre_names_text(names, 1);
}

static void ids_never_given_assert(void) {
    CHECK(acre_dies(ask_for_an_id_never_given));
}

static void a_name_given_back_as_often_as_taken_is_forgotten(void) {
    struct acre_names *names = acre_names_create();
    uint32_t id = acre_names_take(names, ACRE_STR("train"));
    uint32_t hash = acre_names_hash(names, id);
    CHECK_EQ(acre_names_take(names, ACRE_STR("train")), id);
    acre_names_take_again(names, id);
    acre_names_give(names, id);
    acre_names_give(names, id);
    CHECK_EQ(acre_names_find(names, ACRE_STR("train")), id);
    acre_names_give(names, id);
    CHECK_EQ(acre_names_find(names, ACRE_STR("train")), 0);
    CHECK_EQ(acre_names_count(names), 0);
    CHECK_EQ(acre_names_take(names, ACRE_STR("other")), id); /* used again */
    CHECK_STR(acre_names_text(names, id), "other");
    CHECK(acre_names_hash(names, id) != hash);
    CHECK_EQ(acre_names_hash(names, acre_names_take(names, ACRE_STR("train"))), hash);
    CHECK_EQ(acre_names_take(names, ACRE_STR("")), 0);
    acre_names_take_again(names, 0);
    acre_names_give(names, 0);
    CHECK_EQ(acre_names_hash(names, 0), 0);
    acre_names_destroy(names);
}

static void an_interned_name_stays(void) {
    struct acre_names *names = acre_names_create();
    uint32_t before = acre_names_intern(names, ACRE_STR("h100"));
    uint32_t after = acre_names_take(names, ACRE_STR("vision"));
    CHECK_EQ(acre_names_take(names, ACRE_STR("h100")), before);
    CHECK_EQ(acre_names_intern(names, ACRE_STR("vision")), after);
    acre_names_give(names, before);
    acre_names_give(names, after);
    CHECK_EQ(acre_names_find(names, ACRE_STR("h100")), before);
    CHECK_EQ(acre_names_find(names, ACRE_STR("vision")), after);
    acre_names_destroy(names);
}

/* A thousand at a time never take more memory than the first thousand did. */
static void names_that_come_and_go_keep_the_table_small(void) {
    enum { COUNT = 1000, TURNS = 300 };
    struct acre_names *names = acre_names_create();
    uint32_t ids[COUNT];
    char text[32];
    size_t most_bytes = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            snprintf(text, sizeof(text), "job-%04u-%04u", turn, i);
            if (turn > 0) {
                acre_names_give(names, ids[i]);
            }
            ids[i] = acre_names_take(names, acre_str_from(text));
        }
        for (uint32_t i = 0; i < COUNT; i += 7) { /* deletion left every chain whole */
            snprintf(text, sizeof(text), "job-%04u-%04u", turn, i);
            REQUIRE_EQ(acre_names_find(names, acre_str_from(text)), ids[i]);
        }
        CHECK_EQ(acre_names_count(names), COUNT);
        most_bytes = turn == 0 ? acre_names_bytes(names) : most_bytes;
    }
    CHECK_EQ(acre_names_bytes(names), most_bytes);
    acre_names_destroy(names);
}

static const struct acre_test tests[] = {
    {"ids_count_from_one_in_order_of_first_use", ids_count_from_one_in_order_of_first_use, 0},
    {"none_is_zero_and_empty", none_is_zero_and_empty, 0},
    {"views_need_no_nul_and_are_copied", views_need_no_nul_and_are_copied, 0},
    {"many_names_keep_ids_and_addresses", many_names_keep_ids_and_addresses, 0},
    {"ids_never_given_assert", ids_never_given_assert, 0},
    {"a_name_given_back_as_often_as_taken_is_forgotten",
     a_name_given_back_as_often_as_taken_is_forgotten, 0},
    {"an_interned_name_stays", an_interned_name_stays, 0},
    {"names_that_come_and_go_keep_the_table_small", names_that_come_and_go_keep_the_table_small, 0},
};

ACRE_TEST_MAIN(tests)
