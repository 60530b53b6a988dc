/* Accounts: decayed use, shares, levels (POL-1), quotas (POL-7). */
#include "core/rand.h"
#include "sched/account.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>

#define HOUR_MS  UINT64_C(3600000)
#define DAY_MS   (24 * HOUR_MS)
#define START_MS UINT64_C(1700000000000)
#define HALF_MS  (7 * DAY_MS)

static struct acre_names *names;
static struct acre_policy policy;

static uint32_t name(const char *text) {
    return acre_names_intern(names, acre_str_from(text));
}

static struct accounts *create(const char *json) {
    names = acre_names_create();
    struct acre_error err;
    int r = acre_policy_load("test", acre_str_from(json), acre_policy_default(), &policy, &err);
    REQUIRE_EQ(r, 0);
    return accounts_create(names, &policy);
}

static void destroy(struct accounts *accounts) {
    accounts_destroy(accounts);
    acre_names_destroy(names);
}

static uint32_t open(struct accounts *accounts, const char *project, const char *user) {
    return accounts_intern(accounts, name(project), name(user));
}

static struct account_summary get(const struct accounts *accounts, uint32_t account,
                                  uint64_t now_ms) {
    struct account_summary out;
    accounts_get(accounts, account, now_ms, &out);
    return out;
}

static const struct account_load one_gpu = {1000, 80000};

/* A run of one GPU from START_MS on. */
static void run(struct accounts *accounts, uint32_t account, uint64_t ms) {
    accounts_take(accounts, account, one_gpu, START_MS, START_MS);
    accounts_release(accounts, account, one_gpu, START_MS, START_MS + ms);
}

static void a_pair_has_one_account(void) {
    struct accounts *accounts = create("{}");
    uint32_t a = open(accounts, "vision", "ada");
    CHECK_EQ(open(accounts, "vision", "ada"), a);
    CHECK(open(accounts, "vision", "bob") != a);
    CHECK(open(accounts, "speech", "ada") != a);
    CHECK_EQ(accounts_count(accounts), 3);
    CHECK_EQ(accounts_find(accounts, name("vision"), name("ada")), a);
    CHECK(accounts_find(accounts, name("ada"), name("vision")) == UINT32_MAX);
    CHECK_EQ(get(accounts, a, START_MS).project, name("vision"));
    CHECK_EQ(get(accounts, a, START_MS).user, name("ada"));
    for (int i = 0; i < 10000; i++) {
        char text[16];
        snprintf(text, sizeof(text), "u%d", i);
        open(accounts, "crowd", text);
    }
    CHECK_EQ(accounts_find(accounts, name("vision"), name("ada")), a);
    CHECK_EQ(accounts_count(accounts), 10003);
    CHECK(accounts_bytes(accounts) < 5 * 1024 * 1024);
    destroy(accounts);
}

/* POL-1: use halves in every half-life. */
static void use_halves_in_a_half_life(void) {
    struct accounts *accounts = create("{}");
    uint32_t a = open(accounts, "p", "u");
    run(accounts, a, HOUR_MS);
    uint64_t end_ms = START_MS + HOUR_MS;
    double at_end = get(accounts, a, end_ms).use_milli_ms;
    CHECK_NEAR(at_end / 3.6e9, 1.0, 0.003); /* an hour decays by 0.2 % while it runs */
    CHECK_NEAR(get(accounts, a, end_ms + HALF_MS).use_milli_ms / at_end, 0.5, 1e-12);
    CHECK_NEAR(get(accounts, a, end_ms + 3 * HALF_MS).use_milli_ms / at_end, 0.125, 1e-12);
    CHECK_U64(get(accounts, a, end_ms + HALF_MS).charged_milli_ms, 1000 * HOUR_MS);
    CHECK_NEAR(get(accounts, a, end_ms - 1000).use_milli_ms, at_end, 0); /* the clock went back */
    destroy(accounts);
}

/* The closed form against a sum of small steps, with runs that overlap. */
static void use_equals_the_integral(void) {
    struct accounts *accounts = create("{\"half_life\":\"1h\"}");
    uint32_t a = open(accounts, "p", "u");
    const struct account_load loads[] = {{1000, 0}, {500, 0}, {8000, 0}};
    const uint64_t from_min[] = {0, 30, 45}, to_min[] = {60, 50, 200};
    double expected = 0; /* steps of 10 s, in the middle of each */
    uint64_t end_ms = 240 * 60000;
    for (int i = 0; i < 3; i++) {
        for (uint64_t ms = from_min[i] * 60000; ms < to_min[i] * 60000; ms += 10000) {
            double ago = (double)(end_ms - ms) - 5000;
            expected += (double)loads[i].milli * 10000 * exp2(-ago / (double)HOUR_MS);
        }
    }
    accounts_take(accounts, a, loads[0], START_MS, START_MS);
    accounts_take(accounts, a, loads[1], START_MS + 30 * 60000, START_MS + 30 * 60000);
    accounts_take(accounts, a, loads[2], START_MS + 45 * 60000, START_MS + 45 * 60000);
    accounts_release(accounts, a, loads[1], START_MS + 30 * 60000, START_MS + 50 * 60000);
    accounts_release(accounts, a, loads[0], START_MS, START_MS + 60 * 60000);
    CHECK_U64(get(accounts, a, START_MS + 60 * 60000).held_milli, 8000);
    accounts_release(accounts, a, loads[2], START_MS + 45 * 60000, START_MS + 200 * 60000);
    struct account_summary end = get(accounts, a, START_MS + end_ms);
    CHECK_NEAR(end.use_milli_ms / expected, 1.0, 1e-6);
    CHECK_NEAR(end.use_milli_ms, end.stored_use_milli_ms, 0); /* nothing is live */
    CHECK_U64(end.held_milli, 0);
    CHECK_U64(end.running, 0);
    destroy(accounts);
}

/* A restart in the middle of a run: ended runs come from the record, live ones accrue again. */
static void a_restart_changes_no_use(void) {
    struct accounts *accounts = create("{}");
    uint32_t a = open(accounts, "p", "u");
    run(accounts, a, 5 * HOUR_MS);
    uint64_t since_ms = START_MS + 6 * HOUR_MS, now_ms = START_MS + DAY_MS;
    accounts_take(accounts, a, one_gpu, since_ms, since_ms);
    struct account_summary before = get(accounts, a, now_ms);
    destroy(accounts);

    accounts = create("{}");
    a = open(accounts, "p", "u");
    accounts_take(accounts, a, one_gpu, since_ms, now_ms); /* either order */
    accounts_restore(accounts, a, before.charged_milli_ms, before.stored_use_milli_ms, now_ms);
    struct account_summary after = get(accounts, a, now_ms);
    CHECK_NEAR(after.use_milli_ms / before.use_milli_ms, 1.0, 1e-9);
    CHECK_U64(after.charged_milli_ms, 5 * 1000 * HOUR_MS);
    CHECK_U64(after.held_milli, 1000);
    destroy(accounts);

    accounts = create("{}");
    a = open(accounts, "p", "u");
    accounts_take(accounts, a, one_gpu, now_ms, now_ms);
    accounts_restore(accounts, a, 7, 1e12, now_ms - HALF_MS); /* recorded long ago */
    CHECK_NEAR(get(accounts, a, now_ms).use_milli_ms, 0.5e12, 1);
    accounts_restore(accounts, a, UINT64_MAX, (double)NAN, now_ms);
    CHECK_NEAR(get(accounts, a, now_ms).use_milli_ms, 0.5e12, 1);
    CHECK_U64(get(accounts, a, now_ms).charged_milli_ms, UINT64_MAX);
    destroy(accounts);
}

static void who_used_less_for_its_share_is_lower(void) {
    struct accounts *accounts = create("{\"shares\":[{\"who\":\"project:big\",\"weight\":3}]}");
    uint32_t big = open(accounts, "big", "ada");
    uint32_t small = open(accounts, "small", "bob");
    accounts_queue(accounts, big);
    accounts_queue(accounts, small);
    uint64_t now_ms = START_MS + 10 * HOUR_MS;
    CHECK_NEAR(get(accounts, big, now_ms).level, 0, 0); /* nobody used anything */
    run(accounts, small, HOUR_MS);
    run(accounts, big, 2 * HOUR_MS); /* twice the use, three times the share */
    CHECK(get(accounts, big, now_ms).level < get(accounts, small, now_ms).level);
    struct account_summary row = get(accounts, big, now_ms);
    CHECK_NEAR(row.share, 0.75, 1e-12);
    CHECK_NEAR(row.used, 2.0 / 3, 1e-3);
    CHECK_NEAR(row.level, row.used / row.share, 1e-12); /* alone in its project */
    run(accounts, big, 2 * HOUR_MS);
    CHECK(get(accounts, big, now_ms).level > get(accounts, small, now_ms).level);
    accounts_unqueue(accounts, small); /* all of the share goes to who is here */
    CHECK_NEAR(get(accounts, big, now_ms).share, 1.0, 1e-12);
    CHECK_NEAR(get(accounts, small, now_ms).share, 0.25, 1e-12); /* as if it came back */
    destroy(accounts);
}

/* The classic formula, by hand: used 0.6 and 0.2 in a project, 0.2 in another. */
static void levels_follow_the_formula(void) {
    struct accounts *accounts = create("{\"shares\":[{\"who\":\"user:ada\",\"weight\":2}]}");
    uint32_t ada = open(accounts, "p", "ada"), bob = open(accounts, "p", "bob");
    uint32_t eve = open(accounts, "q", "eve");
    uint32_t all[] = {ada, bob, eve};
    const double use[] = {6e12, 2e12, 2e12};
    for (int i = 0; i < 3; i++) {
        accounts_queue(accounts, all[i]);
        accounts_restore(accounts, all[i], 0, use[i], START_MS);
    }
    CHECK_NEAR(get(accounts, ada, START_MS).level, (0.6 + 0.2 * 2 / 3) / (1.0 / 3), 1e-9);
    CHECK_NEAR(get(accounts, bob, START_MS).level, (0.2 + 0.6 / 3) / (1.0 / 6), 1e-9);
    CHECK_NEAR(get(accounts, eve, START_MS).level, 0.2 / 0.5, 1e-9);
    /* Somebody new answers for part of what the project used. */
    uint32_t new_p = open(accounts, "p", "new"), new_q = open(accounts, "q", "new");
    CHECK(get(accounts, new_p, START_MS).level > get(accounts, new_q, START_MS).level);
    destroy(accounts);
}

static void a_new_policy_weighs_at_once(void) {
    struct accounts *accounts = create("{}");
    uint32_t a = open(accounts, "a", "x"), b = open(accounts, "b", "y");
    accounts_queue(accounts, a);
    accounts_queue(accounts, b);
    accounts_queue(accounts, b);
    run(accounts, a, HOUR_MS);
    double use = get(accounts, a, START_MS + HOUR_MS + HALF_MS).use_milli_ms;
    uint64_t now_ms = START_MS + HOUR_MS + HALF_MS;
    REQUIRE_EQ(acre_policy_load("new",
                                ACRE_STR("{\"half_life\":\"1d\",\"shares\":[{\"who\":"
                                         "\"project:a\",\"weight\":4}],\"quotas\":[{\"who\":"
                                         "\"user:y\",\"queued\":2}]}"),
                                acre_policy_default(), &policy, NULL),
               0);
    accounts_set_policy(accounts, &policy, now_ms);
    CHECK_NEAR(get(accounts, a, now_ms).share, 0.8, 1e-12);
    CHECK_NEAR(get(accounts, a, now_ms).use_milli_ms, use, 1e-3); /* decayed by the old one */
    CHECK_NEAR(get(accounts, a, now_ms + DAY_MS).use_milli_ms, use / 2, 1e-3);
    struct quota_hit hit;
    CHECK(!accounts_may_queue(accounts, b, &hit));
    accounts_unqueue(accounts, b);
    accounts_unqueue(accounts, b);
    CHECK_NEAR(get(accounts, a, now_ms).share, 1.0, 1e-12);
    destroy(accounts);
}

/* POL-7 */
static const struct {
    const char *quota;
    struct account_load held, asked;
    enum quota_answer answer;
    const char *text;
} may_run[] = {
    {"{\"who\":\"user:ada\",\"gpus\":4}", {3500, 0}, {500, 0}, ACRE_QUOTA_WITHIN, NULL},
    {"{\"who\":\"user:ada\",\"gpus\":4}",
     {3500, 0},
     {501, 0},
     ACRE_QUOTA_OVER_HARD,
     "user:ada holds 3.5 GPUs, the limit is 4 GPUs, and this asks for 0.501 GPUs"},
    {"{\"who\":\"user:*\",\"gpus\":4}",
     {3500, 0},
     {1000, 0},
     ACRE_QUOTA_OVER_HARD,
     "user:ada holds 3.5 GPUs, the limit is 4 GPUs, and this asks for 1 GPU"},
    {"{\"who\":\"user:*\",\"gpus\":1},{\"who\":\"user:ada\",\"gpus\":8}",
     {3500, 0},
     {1000, 0},
     ACRE_QUOTA_WITHIN,
     NULL},
    {"{\"who\":\"project:vision\",\"gpus\":4,\"soft\":true}",
     {3500, 0},
     {1000, 0},
     ACRE_QUOTA_OVER_SOFT,
     "project:vision holds 3.5 GPUs, the limit is 4 GPUs, and this asks for 1 GPU"},
    {"{\"who\":\"user:ada\",\"gpus\":4,\"soft\":true},{\"who\":\"project:*\",\"running\":1}",
     {3500, 0},
     {1000, 0},
     ACRE_QUOTA_OVER_HARD,
     "project:vision has 1 of at most 1 jobs running"},
    {"{\"who\":\"user:ada\",\"memory\":\"160GiB\"}",
     {2000, 122880},
     {1000, 81920},
     ACRE_QUOTA_OVER_HARD,
     "user:ada holds 120 GiB of GPU memory, the limit is 160 GiB, and this asks for 80 GiB"},
    {"{\"who\":\"user:ada\",\"memory\":\"160GiB\"}",
     {2000, 122880},
     {1000, UINT64_MAX},
     ACRE_QUOTA_OVER_HARD,
     "user:ada may hold 160 GiB of GPU memory at once; this asks for 16777215.9 EiB"},
    {"{\"who\":\"user:eve\",\"gpus\":1}", {3500, 0}, {1000, 0}, ACRE_QUOTA_WITHIN, NULL},
    {"{\"who\":\"user:ada\",\"gpus\":1}", {3500, 0}, {0, 0}, ACRE_QUOTA_WITHIN, NULL},
    {"{\"who\":\"user:ada\",\"queued\":1}", {3500, 0}, {1000, 0}, ACRE_QUOTA_WITHIN, NULL},
};

static struct accounts *create_with(const char *quotas) {
    char json[512];
    snprintf(json, sizeof(json), "{\"quotas\":[%s]}", quotas);
    return create(json);
}

static void a_quota_says_what_may_run_now(void) {
    for (size_t i = 0; i < ACRE_COUNT(may_run); i++) {
        acre_test_context("%s", may_run[i].quota);
        struct accounts *accounts = create_with(may_run[i].quota);
        uint32_t a = open(accounts, "vision", "ada");
        accounts_take(accounts, a, may_run[i].held, START_MS, START_MS);
        struct quota_hit hit = {0};
        char text[160];
        CHECK_EQ(accounts_may_run(accounts, a, may_run[i].asked, START_MS, &hit),
                 may_run[i].answer);
        if (may_run[i].text != NULL) {
            CHECK_HAS(quota_hit_show(&hit, text, sizeof(text)), may_run[i].text);
        }
        destroy(accounts);
    }
}

/* A user's quota counts over all projects, a project's over all users. */
static void quotas_count_over_accounts(void) {
    struct accounts *accounts =
        create_with("{\"who\":\"user:ada\",\"gpus\":2},{\"who\":\"project:p\",\"gpus\":3}");
    uint32_t ada_p = open(accounts, "p", "ada"), ada_q = open(accounts, "q", "ada");
    uint32_t bob_p = open(accounts, "p", "bob");
    struct quota_hit hit;
    accounts_take(accounts, ada_q, one_gpu, START_MS, START_MS);
    accounts_take(accounts, ada_p, one_gpu, START_MS, START_MS);
    CHECK_EQ(accounts_may_run(accounts, ada_p, one_gpu, START_MS, &hit), ACRE_QUOTA_OVER_HARD);
    CHECK_STR(hit.who, "user:ada");
    accounts_take(accounts, bob_p, one_gpu, START_MS, START_MS);
    accounts_take(accounts, bob_p, one_gpu, START_MS, START_MS);
    CHECK_EQ(accounts_may_run(accounts, bob_p, one_gpu, START_MS, &hit), ACRE_QUOTA_OVER_HARD);
    CHECK_STR(hit.who, "project:p");
    CHECK_U64(hit.held, 3000);
    CHECK_U64(hit.allowed, 3000);
    CHECK_STR(hit.unit, "milli-GPU");
    accounts_release(accounts, ada_q, one_gpu, START_MS, START_MS + 1);
    accounts_release(accounts, bob_p, one_gpu, START_MS, START_MS + 1);
    CHECK_EQ(accounts_may_run(accounts, ada_p, one_gpu, START_MS, &hit), ACRE_QUOTA_WITHIN);
    destroy(accounts);
}

static void what_alone_is_too_much_may_never_run(void) {
    struct accounts *accounts = create_with("{\"who\":\"user:*\",\"gpus\":4,\"memory\":1000},{"
                                            "\"who\":\"project:s\",\"gpus\":2,\"soft\":true}");
    uint32_t a = open(accounts, "p", "ada"), s = open(accounts, "s", "ada");
    struct quota_hit hit;
    char text[160];
    accounts_take(accounts, a, (struct account_load){4000, 1000}, START_MS, START_MS);
    CHECK(accounts_may_ever(accounts, a, (struct account_load){4000, 1000}, &hit));
    CHECK(!accounts_may_ever(accounts, a, (struct account_load){4001, 0}, &hit));
    CHECK_STR(quota_hit_show(&hit, text, sizeof(text)),
              "user:ada may hold 4 GPUs at once; this asks for 4.001 GPUs");
    CHECK(!accounts_may_ever(accounts, a, (struct account_load){0, 1001}, &hit));
    CHECK(accounts_may_ever(accounts, s, (struct account_load){3000, 0}, &hit)); /* soft */
    destroy(accounts);
}

static void queued_jobs_are_limited_at_submission(void) {
    struct accounts *accounts = create_with("{\"who\":\"user:ada\",\"queued\":3,\"soft\":true}");
    uint32_t a = open(accounts, "p", "ada");
    struct quota_hit hit;
    char text[160];
    accounts_queue(accounts, a);
    accounts_queue(accounts, a);
    CHECK(accounts_may_queue(accounts, a, &hit));
    accounts_queue(accounts, a);
    CHECK(!accounts_may_queue(accounts, a, &hit));
    CHECK(!hit.soft); /* always hard */
    CHECK_STR(quota_hit_show(&hit, text, sizeof(text)),
              "user:ada has 3 of at most 3 jobs waiting and submits 1 more");
    accounts_unqueue(accounts, a);
    CHECK(accounts_may_queue(accounts, a, &hit));
    destroy(accounts);
}

static void gpu_hours_run_out_and_come_back(void) {
    struct accounts *accounts = create_with("{\"who\":\"user:ada\",\"gpu_hours\":2}");
    uint32_t a = open(accounts, "p", "ada");
    struct quota_hit hit;
    char text[160];
    uint64_t now_ms = START_MS + 3 * HOUR_MS;
    accounts_take(accounts, a, one_gpu, START_MS, START_MS);
    CHECK_EQ(accounts_may_run(accounts, a, one_gpu, START_MS + HOUR_MS, &hit), ACRE_QUOTA_WITHIN);
    CHECK_EQ(accounts_may_run(accounts, a, one_gpu, now_ms, &hit), ACRE_QUOTA_OVER_HARD);
    CHECK_STR(quota_hit_show(&hit, text, sizeof(text)),
              "user:ada has used 2 of 2 GPU-hours (older use counts less)");
    CHECK_EQ(accounts_may_run(accounts, a, (struct account_load){0, 0}, now_ms, &hit),
             ACRE_QUOTA_WITHIN); /* CPU only */
    accounts_release(accounts, a, one_gpu, START_MS, now_ms);
    CHECK_EQ(accounts_may_run(accounts, a, one_gpu, now_ms + HALF_MS, &hit), ACRE_QUOTA_WITHIN);
    destroy(accounts);
}

static void over_a_soft_quota_is_seen(void) {
    struct accounts *accounts = create_with(
        "{\"who\":\"user:ada\",\"gpus\":1,\"soft\":true},{\"who\":\"user:bob\",\"gpus\":1}");
    uint32_t ada = open(accounts, "p", "ada"), bob = open(accounts, "p", "bob");
    accounts_take(accounts, ada, one_gpu, START_MS, START_MS);
    accounts_take(accounts, bob, one_gpu, START_MS, START_MS);
    CHECK(!accounts_over_soft(accounts, ada, START_MS)); /* at it, not over it */
    accounts_take(accounts, ada, one_gpu, START_MS, START_MS);
    accounts_take(accounts, bob, one_gpu, START_MS, START_MS);
    CHECK(accounts_over_soft(accounts, ada, START_MS));
    CHECK(!accounts_over_soft(accounts, bob, START_MS)); /* hard: another matter */
    destroy(accounts);
}

static void loads_are_summed_and_never_wrap(void) {
    struct acre_request request = {.replicas = 4, .gpus = 8, .milli = 1000};
    CHECK_U64(load_of_request(&request).milli, 32000);
    CHECK_U64(load_of_request(&request).mib, 0);
    request.milli = 0, request.mib = 100, request.exclusive = true;
    CHECK_U64(load_of_request(&request).milli, 32000);
    CHECK_U64(load_of_request(&request).mib, 3200);
    request.mib = UINT64_MAX / 2;
    CHECK_U64(load_of_request(&request).mib, UINT64_MAX);
    const struct acre_part parts[] = {{.device = 0, .milli = 500, .mib = 10},
                                      {.device = ACRE_DEVICE_NONE, .milli = 7, .mib = 7},
                                      {.device = 3, .milli = 250, .mib = UINT32_MAX}};
    CHECK_U64(load_of_parts(parts, 3).milli, 750);
    CHECK_U64(load_of_parts(parts, 3).mib, 10 + (uint64_t)UINT32_MAX);
}

/* Random events over many accounts: the sums are those of the parts. */
static void the_sums_are_those_of_their_parts(void) {
    struct accounts *accounts = create("{\"half_life\":\"1h\"}");
    enum { ACCOUNTS = 20, RUNS = 50 };
    struct acre_rand rand;
    acre_rand_seed(&rand, 7);
    uint32_t ids[ACCOUNTS];
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        char project[8], user[8];
        snprintf(project, sizeof(project), "p%u", i % 4);
        snprintf(user, sizeof(user), "u%u", i / 4);
        ids[i] = open(accounts, project, user);
    }
    struct {
        bool live;
        uint32_t account;
        struct account_load load;
        uint64_t since_ms;
    } runs[RUNS] = {0};
    uint64_t now_ms = START_MS;
    for (int step = 0; step < 4000; step++) {
        now_ms += acre_rand_below(&rand, 60000);
        uint32_t i = (uint32_t)acre_rand_below(&rand, RUNS);
        if (runs[i].live) {
            accounts_release(accounts, runs[i].account, runs[i].load, runs[i].since_ms, now_ms);
        } else {
            runs[i].account = ids[acre_rand_below(&rand, ACCOUNTS)];
            runs[i].load.milli = acre_rand_below(&rand, 8000);
            runs[i].since_ms = now_ms;
            accounts_take(accounts, runs[i].account, runs[i].load, now_ms, now_ms);
        }
        runs[i].live = !runs[i].live;
    }
    double used = 0;
    uint64_t held = 0, expected = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        struct account_summary row = get(accounts, ids[i], now_ms);
        used += row.used;
        held += row.held_milli;
        CHECK(row.use_milli_ms >= row.stored_use_milli_ms);
    }
    for (int i = 0; i < RUNS; i++) {
        expected += runs[i].live ? runs[i].load.milli : 0;
    }
    CHECK_NEAR(used, 1.0, 1e-6);
    CHECK_U64(held, expected);
    destroy(accounts);
}

/* STO-1: what is put back counts as it was recorded; what cannot have been used counts nothing. */
static void any_use_that_was_recorded_is_put_back(void) {
    static const struct {
        double recorded, counts;
    } rows[] = {
        {3.6e9, 3.6e9}, {1, 1},           {0.25, 0.25},          {0, 0},
        {-1, 0},        {(double)NAN, 0}, {(double)INFINITY, 0}, {-(double)INFINITY, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%g", rows[i].recorded);
        struct accounts *accounts = create("{}");
        uint32_t a = open(accounts, "p", "u");
        accounts_restore(accounts, a, 7, rows[i].recorded, START_MS);
        CHECK_NEAR(get(accounts, a, START_MS).use_milli_ms, rows[i].counts, 0);
        CHECK_U64(get(accounts, a, START_MS).charged_milli_ms, 7);
        destroy(accounts);
    }
}

static const struct acre_test tests[] = {
    {"a_pair_has_one_account", a_pair_has_one_account, 0},
    {"use_halves_in_a_half_life", use_halves_in_a_half_life, 0},
    {"use_equals_the_integral", use_equals_the_integral, 0},
    {"a_restart_changes_no_use", a_restart_changes_no_use, 0},
    {"who_used_less_for_its_share_is_lower", who_used_less_for_its_share_is_lower, 0},
    {"levels_follow_the_formula", levels_follow_the_formula, 0},
    {"a_new_policy_weighs_at_once", a_new_policy_weighs_at_once, 0},
    {"a_quota_says_what_may_run_now", a_quota_says_what_may_run_now, 0},
    {"quotas_count_over_accounts", quotas_count_over_accounts, 0},
    {"what_alone_is_too_much_may_never_run", what_alone_is_too_much_may_never_run, 0},
    {"queued_jobs_are_limited_at_submission", queued_jobs_are_limited_at_submission, 0},
    {"gpu_hours_run_out_and_come_back", gpu_hours_run_out_and_come_back, 0},
    {"over_a_soft_quota_is_seen", over_a_soft_quota_is_seen, 0},
    {"loads_are_summed_and_never_wrap", loads_are_summed_and_never_wrap, 0},
    {"the_sums_are_those_of_their_parts", the_sums_are_those_of_their_parts, 0},
    {"any_use_that_was_recorded_is_put_back", any_use_that_was_recorded_is_put_back, 0},
};

ACRE_TEST_MAIN(tests)
