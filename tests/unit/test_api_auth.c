/* SEC-1: tokens and their families: what is good, what goes with what, what is forgotten. */
#include "api/auth.h"

#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { HOUR_MS = 3600000 };

struct world {
    struct acre_clock clock;
    struct acre_auth *auth;
    char revoked[200]; /* "2 3" */
};

static void begin(struct world *world) {
    *world = (struct world){.clock = acre_clock_virtual(1000)};
    struct acre_auth_options options = {.clock = &world->clock};
    world->auth = auth_create(&options);
}

static uint64_t make(struct world *world, const char *user, uint64_t parent, uint64_t expires_ms) {
    struct acre_token token = {.user = user,
                               .project = "p",
                               .note = "",
                               .role = ACRE_ROLE_USER,
                               .created_ms = acre_clock_wall_ms(&world->clock),
                               .expires_ms = expires_ms,
                               .parent = parent};
    struct acre_store_token row;
    char text[ACRE_TOKEN_TEXT_MAX];
    struct acre_error err = {0};
    REQUIRE_EQ(auth_make(world->auth, &token, &row, text, &err), 0);
    CHECK_U64(row.parent, parent);
    return row.id;
}

static void note(void *context, const struct acre_store_token *row) {
    struct world *world = context;
    size_t used = strlen(world->revoked);
    CHECK(row->revoked_ms > 0);
    snprintf(world->revoked + used, sizeof(world->revoked) - used, "%s%llu", used > 0 ? " " : "",
             (unsigned long long)row->id);
}

static int revoke(struct world *world, uint64_t id) {
    world->revoked[0] = '\0';
    return auth_revoke(world->auth, id, acre_clock_wall_ms(&world->clock), note, world, NULL);
}

static void a_family_is_revoked_together(void) {
    struct world world;
    begin(&world);
    make(&world, "ada", 0, 0);       /* 1 */
    make(&world, "ada", 1, 0);       /* 2 */
    make(&world, "bob", 0, 0);       /* 3: a stranger */
    make(&world, "ada", 2, 0);       /* 4: a grandchild */
    make(&world, "ada", 1, HOUR_MS); /* 5: expires first */
    make(&world, "ada", 4, 0);       /* 6 */
    make(&world, "bob", 3, 0);       /* 7 */
    acre_clock_advance(&world.clock, 2 * HOUR_MS);
    CHECK_EQ(revoke(&world, 4), 0);
    CHECK_STR(world.revoked, "4 6");
    CHECK_EQ(revoke(&world, 6), ACRE_ECONFLICT);
    CHECK_STR(world.revoked, "");
    CHECK_EQ(revoke(&world, 1), 0);
    CHECK_STR(world.revoked, "1 2"); /* the others are of no use already */
    CHECK_EQ(revoke(&world, 3), 0);
    CHECK_STR(world.revoked, "3 7");
    CHECK_EQ(revoke(&world, 99), ACRE_ENOTFOUND);
    auth_destroy(world.auth);
}

static void only_good_ones_count(void) {
    struct world world;
    begin(&world);
    make(&world, "ada", 0, 0);
    make(&world, "ada", 0, HOUR_MS);
    make(&world, "bob", 0, 0);
    CHECK_U64(auth_count_good(world.auth, "ada"), 2);
    CHECK_U64(auth_count_good(world.auth, "bob"), 1);
    CHECK_U64(auth_count_good(world.auth, "eve"), 0);
    acre_clock_advance(&world.clock, 2 * HOUR_MS);
    CHECK_U64(auth_count_good(world.auth, "ada"), 1);
    CHECK_EQ(revoke(&world, 1), 0);
    CHECK_U64(auth_count_good(world.auth, "ada"), 0);
    auth_destroy(world.auth);
}

static void the_oldest_dead_are_forgotten(void) {
    enum { MADE = 30, KEPT = 20 };
    struct world world;
    begin(&world);
    uint64_t id = 0;
    make(&world, "bob", 0, 0); /* 1 */
    make(&world, "ada", 0, 0); /* 2: good for ever */
    for (uint64_t i = 0; i < MADE; i++) {
        CHECK_EQ(revoke(&world, make(&world, "ada", 0, 0)), 0);
    }
    make(&world, "ada", 0, 0);
    for (uint64_t i = 0; i < MADE - KEPT; i++) {
        REQUIRE(auth_forget(world.auth, "ada", &id));
        CHECK_U64(id, 3 + i);
    }
    CHECK(!auth_forget(world.auth, "ada", &id));
    CHECK(!auth_forget(world.auth, "bob", &id));
    CHECK_U64(auth_count(world.auth), KEPT + 3);
    CHECK_U64(auth_count_good(world.auth, "ada"), 2);
    CHECK_EQ(revoke(&world, 2), 0); /* those that are left are still found */
    CHECK_EQ(revoke(&world, 3), ACRE_ENOTFOUND);
    CHECK_U64(make(&world, "bob", 0, 0), MADE + 4);
    auth_destroy(world.auth);
}

static const struct acre_test tests[] = {
    {"a_family_is_revoked_together", a_family_is_revoked_together, 0},
    {"only_good_ones_count", only_good_ones_count, 0},
    {"the_oldest_dead_are_forgotten", the_oldest_dead_are_forgotten, 0},
};

ACRE_TEST_MAIN(tests)
