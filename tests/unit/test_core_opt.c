/* Command lines: parsed by table, refused with a hint, and --help printed from the same rows. */
#include "core/opt.h"
#include "support/dies.h"
#include "support/test.h"

#include <stdio.h>

struct options {
    bool json;
    bool quiet;
    const char *nodes;
    uint64_t seeds;
    uint64_t memory_mib;
    uint64_t limit_ms;
    uint32_t share_milli;
    const char *strategy;
};

static const struct acre_opt rows[] = {
    {.name = "json",
     .letter = 'j',
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, quiet),
     .help = "say nothing while the experiment runs, and only the result when it has ended"},
    {.name = "nodes",
     .letter = 'n',
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct options, nodes),
     .value = "FILE",
     .help = "the nodes of the cluster",
     .required = true},
    {.name = "seeds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seeds),
     .value = "N",
     .help = "how many seeds",
     .min = 1,
     .max = 1000},
    {.name = "memory",
     .letter = 'm',
     .kind = ACRE_OPT_MIB,
     .offset = offsetof(struct options, memory_mib),
     .value = "SIZE",
     .help = "memory"},
    {.name = "time-limit",
     .kind = ACRE_OPT_DURATION,
     .offset = offsetof(struct options, limit_ms),
     .value = "TIME",
     .help = "time",
     .min = 10,
     .max = 24 * 3600 * 1000},
    {.name = "share",
     .kind = ACRE_OPT_MILLI,
     .offset = offsetof(struct options, share_milli),
     .value = "SHARE",
     .help = "share",
     .min = 100,
     .max = 1000},
    {.name = "strategy",
     .kind = ACRE_OPT_CHOICE,
     .offset = offsetof(struct options, strategy),
     .value = "NAME",
     .help = "how to place",
     .choices = "first-fit, best-fit,worst-fit"},
};

static const struct options defaults = {.seeds = 10, .share_milli = 500, .strategy = "best-fit"};

static const struct acre_command packing = {
    .name = "simulate packing",
    .summary = "replay a packing experiment",
    .usage = "acre simulate packing --nodes FILE [options] [TASKS...]",
    .details = "Example:\n  acre simulate packing --nodes nodes.csv tasks.csv",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .max_arguments = 2,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

enum { WORDS_MAX = 16 };

/* Cut `line` at blanks into argv; "''" is an empty word. */
static int cut(const char *line, char *copy, size_t size, char **argv) {
    snprintf(copy, size, "%s", line);
    int argc = 0;
    for (char *word = copy; *word != '\0' && argc < WORDS_MAX;) {
        char *end = word + strcspn(word, " ");
        bool last = *end == '\0';
        *end = '\0';
        argv[argc++] = strcmp(word, "''") == 0 ? end : word;
        word = last ? end : end + 1;
    }
    return argc;
}

static void every_kind_is_parsed_in_every_form(void) {
    static const char *const lines[] = {
        "--json --nodes n.csv --seeds 3 --memory 1GiB --time-limit 90m --share 0.25 --strategy "
        "worst-fit a b",
        "a --strategy=worst-fit --share=0.25 --time-limit=90m --memory=1GiB --seeds=3 "
        "--nodes=n.csv --json b",
        "-j -n n.csv -m 1GiB --seeds 3 --share 0.25 --strategy worst-fit --time-limit 90m -- a b",
    };
    for (size_t i = 0; i < ACRE_COUNT(lines); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(lines[i], copy, sizeof(copy), argv);
        struct options options;
        struct acre_error err = {0};
        int count = -1;
        acre_test_context("%s", lines[i]);
        REQUIRE_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, &err), 0);
        CHECK(options.json);
        CHECK(!options.quiet);
        CHECK_STR(options.nodes, "n.csv");
        CHECK_U64(options.seeds, 3);
        CHECK_U64(options.memory_mib, 1024);
        CHECK_U64(options.limit_ms, 5400000);
        CHECK_U64(options.share_milli, 250);
        CHECK_STR(options.strategy, "worst-fit");
        REQUIRE_EQ(count, 2);
        CHECK_STR(argv[0], "a");
        CHECK_STR(argv[1], "b");
    }
}

static void what_is_not_given_keeps_its_default(void) {
    char copy[64], *argv[WORDS_MAX];
    int argc = cut("--nodes n.csv", copy, sizeof(copy), argv);
    struct options options;
    int count = -1;
    REQUIRE_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, NULL), 0);
    CHECK_EQ(count, 0);
    CHECK(!options.json);
    CHECK_U64(options.seeds, 10);
    CHECK_U64(options.memory_mib, 0);
    CHECK_U64(options.share_milli, 500);
    CHECK_STR(options.strategy, "best-fit");
    struct acre_command plain = packing;
    plain.defaults = NULL;
    argc = cut("--nodes n.csv", copy, sizeof(copy), argv);
    REQUIRE_EQ(acre_opt_parse(&plain, argc, argv, &options, &count, NULL), 0);
    CHECK_U64(options.seeds, 0);
    CHECK(options.strategy == NULL);
}

static void values_may_look_odd(void) {
    static const struct {
        const char *line, *nodes;
        int count;
    } cases[] = {
        {"--nodes -", "-", 0},   {"--nodes=--json", "--json", 0}, {"--nodes=", "", 0},
        {"--nodes ''", "", 0},   {"--nodes a=b", "a=b", 0},       {"--nodes=a=b", "a=b", 0},
        {"--nodes -x", "-x", 0}, {"--nodes x - ''", "x", 2},      {"--nodes x -- -j --", "x", 2},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(cases[i].line, copy, sizeof(copy), argv);
        struct options options;
        int count = -1;
        acre_test_context("%s", cases[i].line);
        REQUIRE_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, NULL), 0);
        CHECK_STR(options.nodes, cases[i].nodes);
        CHECK_EQ(count, cases[i].count);
        CHECK(!options.json);
    }
}

static void bad_lines_are_refused_with_what_is_accepted(void) {
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"", "--nodes is missing; usage: acre simulate packing --nodes FILE"},
        {"--jsno", "unknown option '--jsno'; did you mean --json?"},
        {"--jsn=1", "unknown option '--jsn=1'; did you mean --json?"},
        {"--sedes 3", "unknown option '--sedes'; did you mean --seeds?"},
        {"--time_limit 3", "did you mean --time-limit?"},
        {"--hlep", "did you mean --help?"},
        {"--JSON", "unknown option '--JSON'; --help lists what 'simulate packing' accepts"},
        {"--zz", "unknown option '--zz'; --help lists"},
        {"--js", "unknown option '--js'; --help lists"}, /* two letters missing of four: a guess */
        {"--averyveryveryveryveryveryveryveryveryverylongoption",
         "unknown option '--averyveryveryveryveryveryveryveryveryverylongoption'; --help"},
        {"-x", "unknown option '-x'; --help lists"},
        {"-jq", "unknown option '-jq'; --help lists"}, /* no bundles */
        {"-m=1", "unknown option '-m=1'"},
        {"--=x", "unknown option '--=x'"},
        {"--json=yes", "--json takes no value, but got 'yes'"},
        {"--json=", "--json takes no value, but got ''"},
        {"--json --json", "--json: given twice"},
        {"--json -j", "--json: given twice"},
        {"--nodes", "--nodes needs a value: --nodes FILE"},
        {"-n", "--nodes needs a value: --nodes FILE"},
        {"--nodes --json", "--nodes needs a value: --nodes FILE"},
        {"--nodes --", "--nodes needs a value: --nodes FILE"},
        {"--seeds 0", "--seeds: '0' is not a valid count; accepted: whole numbers from 1 to 1000"},
        {"--seeds -1", "--seeds: '-1' is not a valid count"},
        {"--seeds ''", "--seeds: '' is not a valid count"},
        {"--memory half", "--memory: 'half' is not a valid size; accepted: 1 MiB to 1 EiB"},
        {"-m -1", "--memory: '-1' is not a valid size"},
        {"--time-limit 90", "--time-limit: '90' is not a valid duration"},
        {"--time-limit 9ms", "--time-limit: '9ms' is out of range; accepted: 10ms to 1d"},
        {"--time-limit 86400001ms", "--time-limit: '86400001ms' is out of range"},
        {"--share 0.05",
         "--share: '0.05' is not a valid share; accepted: 0.1 to 1.0 in steps of 0.001"},
        {"--strategy best", "--strategy: unknown value 'best'; accepted: first-fit, best-fit, "
                            "worst-fit"},
        {"--strategy ''", "--strategy: unknown value ''"},
        {"--nodes x a b c", "got 3 arguments ('c' is one too many); accepted: 0 to 2; usage: acre"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(cases[i].line, copy, sizeof(copy), argv);
        struct options options;
        struct acre_error err = {0};
        int count = -1;
        acre_test_context("%s", cases[i].line);
        CHECK_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(count, -1);
        argc = cut(cases[i].line, copy, sizeof(copy), argv);
        CHECK_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, NULL), ACRE_EINVALID);
    }
}

static void help_is_an_option_of_every_command(void) {
    static const char *const lines[] = {"--help", "-h", "a b c d --help", "--json -h --nope"};
    for (size_t i = 0; i < ACRE_COUNT(lines); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(lines[i], copy, sizeof(copy), argv);
        struct options options;
        int count;
        acre_test_context("%s", lines[i]);
        CHECK_EQ(acre_opt_parse(&packing, argc, argv, &options, &count, NULL), ACRE_ENOTFOUND);
    }
}

static void rows_without_a_range_take_what_fits(void) {
    static const struct acre_opt loose[] = {
        {.name = "n", .kind = ACRE_OPT_COUNT, .offset = offsetof(struct options, seeds)},
        {.name = "s", .kind = ACRE_OPT_MILLI, .offset = offsetof(struct options, share_milli)},
        {.name = "bad", .kind = (enum acre_opt_kind)99},
    };
    struct acre_command command = packing;
    command.options = loose;
    command.option_count = ACRE_COUNT(loose);
    command.min_arguments = 1;
    char copy[256], *argv[WORDS_MAX];
    struct options options;
    struct acre_error err = {0};
    int count;
    int argc = cut("--n 18446744073709551615 --s 0.001 x", copy, sizeof(copy), argv);
    REQUIRE_EQ(acre_opt_parse(&command, argc, argv, &options, &count, &err), 0);
    CHECK_U64(options.seeds, UINT64_MAX);
    CHECK_U64(options.share_milli, 1);
    argc = cut("--n 1", copy, sizeof(copy), argv);
    CHECK_EQ(acre_opt_parse(&command, argc, argv, &options, &count, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "got 0 arguments; accepted: 1 to 2; usage: acre");
    argc = cut("--n", copy, sizeof(copy), argv);
    CHECK_EQ(acre_opt_parse(&command, argc, argv, &options, &count, &err), ACRE_EINVALID);
    CHECK_STR(err.text, "--n needs a value: --n VALUE");
    argc = cut("--bad 1", copy, sizeof(copy), argv);
    CHECK_EQ(acre_opt_parse(&command, argc, argv, &options, &count, &err), ACRE_EINTERNAL);
}

static void many_choices_are_cut(void) {
    static char choices[1000];
    memset(choices, 'x', sizeof(choices) - 1);
    for (size_t i = 20; i < sizeof(choices) - 1; i += 20) {
        choices[i] = ',';
    }
    struct acre_opt row = {.name = "c", .kind = ACRE_OPT_CHOICE, .choices = choices};
    struct acre_command command = packing;
    command.options = &row;
    command.option_count = 1;
    char copy[256], *argv[WORDS_MAX];
    struct options options;
    struct acre_error err = {0};
    int count;
    int argc = cut("--c y", copy, sizeof(copy), argv);
    CHECK_EQ(acre_opt_parse(&command, argc, argv, &options, &count, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "x, ...");
}

static void help_is_aligned_and_wrapped(void) {
    struct acre_buf out;
    acre_buf_init(&out, 10000);
    acre_opt_help(&packing, &out);
    CHECK_STR(out.data,
              "Usage: acre simulate packing --nodes FILE [options] [TASKS...]\n"
              "\n"
              "replay a packing experiment\n"
              "\n"
              "Options:\n"
              "  -j, --json             print JSON\n"
              "  -q, --quiet            say nothing while the experiment runs, and only the\n"
              "                         result when it has ended\n"
              "  -n, --nodes FILE       the nodes of the cluster (required)\n"
              "      --seeds N          how many seeds\n"
              "  -m, --memory SIZE      memory\n"
              "      --time-limit TIME  time\n"
              "      --share SHARE      share\n"
              "      --strategy NAME    how to place: first-fit, best-fit, worst-fit\n"
              "  -h, --help             print this help\n"
              "\n"
              "Example:\n"
              "  acre simulate packing --nodes nodes.csv tasks.csv\n");
    acre_buf_finish(&out);
}

static void long_names_and_words_do_not_break_the_table(void) {
    static const struct acre_opt long_rows[] = {
        {.name = "a-name-too-long-for-the-left-column",
         .kind = ACRE_OPT_STRING,
         .help = "text below"},
        {.name = "bare", .kind = ACRE_OPT_FLAG},
        {.name = "url",
         .kind = ACRE_OPT_STRING,
         .value = "URL",
         .help = "see "
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaa "
                 "end"},
    };
    const struct acre_command command = {.name = "x",
                                         .summary = "one two",
                                         .usage = "acre x",
                                         .details = "ends\n",
                                         .options = long_rows,
                                         .option_count = ACRE_COUNT(long_rows)};
    struct acre_buf out;
    acre_buf_init(&out, 10000);
    acre_opt_help(&command, &out);
    CHECK_HAS(out.data, "      --a-name-too-long-for-the-left-column VALUE\n"
                        "                                text below\n");
    CHECK_HAS(out.data, "      --bare\n");
    CHECK_HAS(out.data, "      --url URL                 see\n"
                        "                                aaaa");
    CHECK_HAS(out.data, "aaa\n                                end\n");
    CHECK_HAS(out.data, "\n\nends\n");
    acre_buf_finish(&out);
    acre_buf_init(&out, 50);
    acre_opt_help(&command, &out);
    CHECK(acre_buf_failed(&out));
    acre_buf_finish(&out);
}

static const struct acre_command gpus = {.name = "gpus"};
static const struct acre_command doctor = {.name = "doctor"};
static const struct acre_command simulate = {.name = "simulate"};
static const struct acre_command replay = {.name = "trace replay"};
static const struct acre_command show = {.name = "trace show"};
static const struct acre_command *const commands[] = {&gpus,    &doctor, &simulate,
                                                      &packing, &replay, &show};

static void the_longest_match_names_the_command(void) {
    static const struct {
        const char *line;
        const struct acre_command *command;
        int words;
    } cases[] = {
        {"gpus", &gpus, 1},
        {"gpus doctor", &gpus, 1},
        {"simulate", &simulate, 1},
        {"simulate --json", &simulate, 1},
        {"simulate packing", &packing, 2},
        {"simulate packing a b", &packing, 2},
        {"simulate pack", &simulate, 1},
        {"trace replay x", &replay, 2},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(cases[i].line, copy, sizeof(copy), argv);
        struct acre_error err = {0};
        int words = -1;
        acre_test_context("%s", cases[i].line);
        const struct acre_command *found =
            acre_command_find(commands, ACRE_COUNT(commands), argc, argv, &words, &err);
        CHECK(found == cases[i].command);
        CHECK_EQ(words, cases[i].words);
    }
}

static void unknown_commands_are_answered_with_the_nearest(void) {
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"", "no command given; --help lists the commands"},
        {"gpsu", "unknown command 'gpsu'; did you mean 'gpus'?"},
        {"gpu", "unknown command 'gpu'; did you mean 'gpus'?"},
        {"docter --json", "unknown command 'docter'; did you mean 'doctor'?"},
        {"trace reply x", "unknown command 'trace reply'; did you mean 'trace replay'?"},
        {"trcae replay", "did you mean 'trace replay'?"},
        {"trace", "unknown command 'trace'; accepted: trace replay, trace show"},
        {"trace frobnicate", "unknown command 'trace frobnicate'; accepted: trace replay, "
                             "trace show"},
        {"frobnicate", "unknown command 'frobnicate'; --help lists the commands"},
        {"x", "unknown command 'x'; --help lists the commands"},
        {"''", "unknown command ''; --help lists the commands"},
        {"a\x1b[2J", "unknown command 'a\\x1b[2J'"},
        {"averyveryveryveryveryveryveryveryverylongcommandindeedwithnoend x", "unknown command 'a"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(cases[i].line, copy, sizeof(copy), argv);
        struct acre_error err = {0};
        int words = -1;
        acre_test_context("%s", cases[i].line);
        CHECK(acre_command_find(commands, ACRE_COUNT(commands), argc, argv, &words, &err) == NULL);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(words, -1);
    }
}

struct shared {
    bool json;
    const char *server;
};
struct submit {
    struct shared shared;
    struct acre_opt_list env;
    const char *gpus;
};

static int check_gpus(const char *field, const char *value, struct acre_error *err) {
    return value[0] == '0' ? acre_fail(err, ACRE_EINVALID, "%s: '%s' is refused", field, value) : 0;
}

static const struct acre_opt shared_rows[] = {
    {.name = "server",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct shared, server),
     .value = "URL",
     .help = "where it listens"},
    {.name = "json", .kind = ACRE_OPT_FLAG, .offset = offsetof(struct shared, json)},
};
static const struct acre_opt submit_rows[] = {
    {.name = "env", .letter = 'e', .kind = ACRE_OPT_LIST, .offset = offsetof(struct submit, env)},
    {.name = "gpus",
     .kind = ACRE_OPT_STRING,
     .offset = offsetof(struct submit, gpus),
     .check = check_gpus},
};
static const struct acre_command submit = {
    .name = "submit",
    .summary = "put a job into the queue",
    .usage = "acre submit [options] -- COMMAND",
    .options = submit_rows,
    .option_count = ACRE_COUNT(submit_rows),
    .shared = shared_rows,
    .shared_count = ACRE_COUNT(shared_rows),
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .options_size = sizeof(struct submit),
};

static void shared_rows_are_like_the_commands_own(void) {
    char copy[256], *argv[WORDS_MAX];
    int argc = cut("--json -e A=1 --server=x --env B=2 run --json -- x", copy, sizeof(copy), argv);
    struct submit options;
    struct acre_error err = {0};
    int count = -1;
    REQUIRE_EQ(acre_opt_parse(&submit, argc, argv, &options, &count, &err), 0);
    CHECK(options.shared.json);
    CHECK_STR(options.shared.server, "x");
    CHECK_U64(options.env.count, 2);
    CHECK_STR(options.env.items[0], "A=1");
    CHECK_STR(options.env.items[1], "B=2");
    REQUIRE_EQ(count, 4); /* options end at the first argument */
    CHECK_STR(argv[0], "run");
    CHECK_STR(argv[1], "--json");
    CHECK_STR(argv[2], "--");
    struct acre_buf help;
    acre_buf_init(&help, 1 << 16);
    acre_opt_help(&submit, &help);
    CHECK_HAS(help.data, "--gpus VALUE");
    CHECK_HAS(help.data, "--server URL  where it listens");
    acre_buf_finish(&help);
    CHECK_STR(acre_command_row(&submit, 1)->name, "gpus");
    CHECK_STR(acre_command_row(&submit, 2)->name, "server");
    CHECK(acre_command_row(&submit, 4) == NULL);
}

static void two_dashes_stay_where_options_come_first(void) {
    char copy[256], *argv[WORDS_MAX];
    int argc = cut("--gpus 1 -- sleep --json", copy, sizeof(copy), argv);
    struct submit options;
    struct acre_error err = {0};
    int count = -1;
    REQUIRE_EQ(acre_opt_parse(&submit, argc, argv, &options, &count, &err), 0);
    REQUIRE_EQ(count, 3);
    CHECK_STR(argv[0], "--");
    CHECK_STR(argv[1], "sleep");
    CHECK_STR(argv[2], "--json");
    CHECK(!options.shared.json);
}

static void shared_rows_refuse_alike(void) {
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--gpus 0 x", "--gpus: '0' is refused"},
        {"--servr a x", "did you mean --server?"},
        {"--json --json x", "--json: given twice"},
        {"--json", "got 0 arguments; accepted: 1 or more; usage: acre submit"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char copy[256], *argv[WORDS_MAX];
        int argc = cut(cases[i].line, copy, sizeof(copy), argv);
        struct submit options;
        struct acre_error err = {0};
        int count = -1;
        acre_test_context("%s", cases[i].line);
        CHECK_EQ(acre_opt_parse(&submit, argc, argv, &options, &count, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(count, -1);
    }
}

static void a_list_has_an_end(void) {
    static char word[] = "--env=A=1";
    char *argv[ACRE_OPT_LIST_MAX + 1];
    for (size_t i = 0; i < ACRE_COUNT(argv); i++) {
        argv[i] = word;
    }
    struct submit options;
    struct acre_error err = {0};
    int count = -1;
    CHECK_EQ(acre_opt_parse(&submit, ACRE_OPT_LIST_MAX + 1, argv, &options, &count, &err),
             ACRE_EINVALID);
    CHECK_HAS(err.text, "--env: given more than 64 times");
}

static void hidden_commands_are_found_but_not_offered(void) {
    static const struct acre_command hidden = {.name = "__complete", .hidden = true};
    static const struct acre_command *const all[] = {&hidden, &submit};
    struct acre_error err = {0};
    int words = -1;
    char *exact[] = {(char[]){"__complete"}}, *near[] = {(char[]){"__complet"}};
    CHECK(acre_command_find(all, ACRE_COUNT(all), 1, exact, &words, &err) == &hidden);
    CHECK(acre_command_find(all, ACRE_COUNT(all), 1, near, &words, &err) == NULL);
    CHECK_HAS(err.text, "--help lists the commands");
}

static void parse_with_too_many_rows(void) {
    static const struct acre_opt many[65] = {{.name = "x"}};
    const struct acre_command command = {.options = many, .option_count = 65};
    int count;
    acre_opt_parse(&command, 0, NULL, NULL, &count, NULL);
}

static void more_rows_than_bits_assert(void) {
    CHECK(acre_dies(parse_with_too_many_rows));
}

static const struct acre_test tests[] = {
    {"every_kind_is_parsed_in_every_form", every_kind_is_parsed_in_every_form, 0},
    {"what_is_not_given_keeps_its_default", what_is_not_given_keeps_its_default, 0},
    {"values_may_look_odd", values_may_look_odd, 0},
    {"bad_lines_are_refused_with_what_is_accepted", bad_lines_are_refused_with_what_is_accepted, 0},
    {"help_is_an_option_of_every_command", help_is_an_option_of_every_command, 0},
    {"rows_without_a_range_take_what_fits", rows_without_a_range_take_what_fits, 0},
    {"many_choices_are_cut", many_choices_are_cut, 0},
    {"help_is_aligned_and_wrapped", help_is_aligned_and_wrapped, 0},
    {"long_names_and_words_do_not_break_the_table", long_names_and_words_do_not_break_the_table, 0},
    {"the_longest_match_names_the_command", the_longest_match_names_the_command, 0},
    {"unknown_commands_are_answered_with_the_nearest",
     unknown_commands_are_answered_with_the_nearest, 0},
    {"shared_rows_are_like_the_commands_own", shared_rows_are_like_the_commands_own, 0},
    {"two_dashes_stay_where_options_come_first", two_dashes_stay_where_options_come_first, 0},
    {"shared_rows_refuse_alike", shared_rows_refuse_alike, 0},
    {"a_list_has_an_end", a_list_has_an_end, 0},
    {"hidden_commands_are_found_but_not_offered", hidden_commands_are_found_but_not_offered, 0},
    {"more_rows_than_bits_assert", more_rows_than_bits_assert, 0},
};

ACRE_TEST_MAIN(tests)
