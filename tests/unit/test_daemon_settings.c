/* Settings: flags over variables over the file over defaults, and every bad value refused. */
#include "daemon/settings.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>

static int read_settings(const struct acre_settings_given *given, struct settings *settings,
                         struct acre_error *err) {
    *settings = (struct settings){0};
    *err = (struct acre_error){0};
    return settings_read(given, settings, err);
}

static void defaults_hold(void) {
    struct acre_settings_given given = {0};
    struct settings settings;
    struct acre_error err;
    REQUIRE_EQ(read_settings(&given, &settings, &err), 0);
    CHECK_U64(settings.rate, 20000);
    CHECK_U64(settings.failures, 60);
    CHECK_U64(settings.min_uid, 1000);
    CHECK_U64(settings.sample, 2000);
    CHECK_STR(settings.log_level, "info");
    CHECK_STR(settings.project, "default");
    CHECK(settings.state == NULL && settings.listen == NULL && settings.sim.count == 0);
    CHECK(!settings.no_tcp && !settings.allow_root);
    settings_finish(&settings);
}

static void a_flag_wins_over_a_variable_over_the_file(void) {
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "acre.conf",
             "# what we run\n\n rate = 1 \nfailures=2\nproject = from file\nsim = a\nsim = b\r\n"
             "allow-root = true\nno-tcp = 0");
    struct acre_settings_given given = {.config = tree_path(&tree, "acre.conf"), .rate = "3"};
    struct settings settings;
    struct acre_error err;
    setenv("ACRE_RATE", "4", 1);
    setenv("ACRE_FAILURES", "5", 1);
    setenv("ACRE_LOG_LEVEL", "warn", 1);
    int r = read_settings(&given, &settings, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    CHECK_U64(settings.rate, 3);
    CHECK_U64(settings.failures, 5);
    CHECK_STR(settings.project, "from file");
    CHECK_STR(settings.log_level, "warn");
    CHECK(settings.allow_root && !settings.no_tcp);
    REQUIRE(settings.sim.count == 2);
    CHECK_STR(settings.sim.items[1], "b");
    settings_finish(&settings);
    setenv("ACRE_SIM", "c", 1);
    REQUIRE_EQ(read_settings(&given, &settings, &err), 0);
    REQUIRE(settings.sim.count == 1);
    CHECK_STR(settings.sim.items[0], "c");
    settings_finish(&settings);
    given.sim = (struct acre_opt_list){.items = {"d"}, .count = 1};
    REQUIRE_EQ(read_settings(&given, &settings, &err), 0);
    CHECK_STR(settings.sim.items[0], "d");
    settings_finish(&settings);
    tree_erase(&tree);
}

static void bad_values_say_where_they_come_from(void) {
    static const struct {
        const char *file, *variable, *value;
        const char *says;
    } rows[] = {
        {"rate = fast\n", NULL, NULL, "acre.conf:1: rate: 'fast'"},
        {"\nspeed = 1\n", NULL, NULL, "acre.conf:2: unknown setting 'speed'"},
        {"rate\n", NULL, NULL, "acre.conf:1: malformed line 'rate'; accepted: name = value"},
        {"rate = 1\nrate = 2\n", NULL, NULL, "acre.conf:2: 'rate' is given twice"},
        {"allow-root = maybe\n", NULL, NULL, "'maybe'; accepted: true or false"},
        {"tls-cert = x\n", NULL, NULL, "both tls-cert and tls-key"},
        {"tls-key = x\n", NULL, NULL, "both tls-cert and tls-key"},
        {"sample = 10ms\n", NULL, NULL, "sample: '10ms' is too short; accepted: 100ms or more"},
        {"", "ACRE_RATE", "0", "ACRE_RATE: '0'"},
        {"", "ACRE_SAMPLE", "5", "ACRE_SAMPLE: '5'"},
        {"", "ACRE_LOG_LEVEL", "loud", "log-level: unknown level 'loud'"},
        {"", "ACRE_NO_TCP", "perhaps", "ACRE_NO_TCP"},
    };
    struct tree tree = tree_create(NULL);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct settings settings;
        struct acre_error err;
        tree_put(&tree, "acre.conf", rows[i].file);
        setenv("ACRE_CONFIG", tree_path(&tree, "acre.conf"), 1);
        if (rows[i].variable != NULL) {
            setenv(rows[i].variable, rows[i].value, 1);
        }
        acre_test_context("%s%s", rows[i].file, rows[i].value != NULL ? rows[i].value : "");
        CHECK_EQ(read_settings(&(struct acre_settings_given){0}, &settings, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        if (rows[i].variable != NULL) {
            unsetenv(rows[i].variable);
        }
    }
    struct settings settings;
    struct acre_error err;
    char many[ACRE_OPT_LIST_MAX * 8 + 16] = "";
    for (size_t i = 0; i <= ACRE_OPT_LIST_MAX; i++) {
        snprintf(many + 8 * i, sizeof(many) - 8 * i, "sim = x\n");
    }
    tree_put(&tree, "acre.conf", many);
    CHECK_EQ(read_settings(&(struct acre_settings_given){0}, &settings, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "sim: 'x' is one too many; accepted: at most 64");
    setenv("ACRE_CONFIG", tree_path(&tree, "none"), 1);
    CHECK_EQ(read_settings(&(struct acre_settings_given){0}, &settings, &err), ACRE_ENOTFOUND);
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"defaults_hold", defaults_hold, 0},
    {"a_flag_wins_over_a_variable_over_the_file", a_flag_wins_over_a_variable_over_the_file, 0},
    {"bad_values_say_where_they_come_from", bad_values_say_where_they_come_from, 0},
};
ACRE_TEST_MAIN(tests)
