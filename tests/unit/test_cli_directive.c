/* Options written in scripts: read from the top, refused by file and line, below the flags. */
#include "cli/directive.h"

#include "support/test.h"

struct options {
    bool hold;
    const char *gpus, *name, *level;
    struct acre_opt_list env;
};

static int check_gpus(const char *field, const char *value, struct acre_error *err) {
    return value[0] == '9' ? acre_fail(err, ACRE_EINVALID, "%s: '%s' is too many", field, value)
                           : 0;
}

#define AT(field) offsetof(struct options, field)
static const struct acre_opt rows[] = {
    {.name = "gpus", .kind = ACRE_OPT_STRING, .offset = AT(gpus), .check = check_gpus},
    {.name = "name", .kind = ACRE_OPT_STRING, .offset = AT(name)},
    {.name = "level", .kind = ACRE_OPT_CHOICE, .offset = AT(level), .choices = "low,high"},
    {.name = "hold", .kind = ACRE_OPT_FLAG, .offset = AT(hold)},
    {.name = "env", .kind = ACRE_OPT_LIST, .offset = AT(env)},
};
static const struct acre_opt shared[] = {{.name = "json", .kind = ACRE_OPT_FLAG}};
static const struct acre_command command = {
    .name = "submit",
    .usage = "acre submit",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = shared,
    .shared_count = 1,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .options_size = sizeof(struct options),
};

static int read(const char *text, struct options *options, struct acre_arena *arena,
                struct acre_error *err) {
    return directive_read("job.sh", acre_str_from(text), &command, options, arena, err);
}

static void directives_of_the_first_comments_are_options(void) {
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct options options;
    struct acre_error err = {0};
    const char *text = "#!/bin/sh\n"
                       "# A job about Acre, and ACRE in capitals.\n"
                       "\n"
                       "#ACRE --gpus 0.5 --hold # half is enough\n"
                       "#ACRE\t--name 'two words' --level=high\r\n"
                       "#ACRE\n"
                       "#ACREAGE --gpus 3\n"
                       "#ACRE --env A=1\n"
                       "#ACRE --env \"B=x y\" --env C=''\n"
                       "echo hi\n"
                       "# ACRE --gpus 4\n";
    REQUIRE_EQ(read(text, &options, arena, &err), 0);
    CHECK_STR(options.gpus, "0.5");
    CHECK(options.hold);
    CHECK_STR(options.name, "two words");
    CHECK_STR(options.level, "high");
    REQUIRE_EQ(options.env.count, 3);
    CHECK_STR(options.env.items[0], "A=1");
    CHECK_STR(options.env.items[1], "B=x y");
    CHECK_STR(options.env.items[2], "C=");
    acre_arena_destroy(arena);
}

static void a_script_without_directives_asks_for_nothing(void) {
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct options options = {.gpus = "x"};
    struct acre_error err = {0};
    REQUIRE_EQ(read("#!/bin/sh\necho hi", &options, arena, &err), 0);
    CHECK(options.gpus == NULL && options.env.count == 0);
    REQUIRE_EQ(read("", &options, arena, &err), 0);
    acre_arena_destroy(arena);
}

static void bad_directives_are_refused_by_file_and_line(void) {
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"#!/bin/sh\n#ACRE --gpsu 1\n", "job.sh:2: unknown option '--gpsu'; did you mean --gpus?"},
        {"#ACRE --gpus 9\n", "job.sh:1: --gpus: '9' is too many"},
        {"\n\n#ACRE --gpus\n", "job.sh:3: --gpus needs a value"},
        {"#ACRE --gpus 1\n#ACRE --gpus 2\n", "job.sh:2: --gpus: given twice"},
        {"#ACRE --hold --hold\n", "job.sh:1: --hold: given twice"},
        {"#ACRE train.py\n",
         "job.sh:1: got 1 argument ('train.py' is one too many); accepted: none"},
        {"#ACRE --json\n", "job.sh:1: unknown option '--json'"},
        {"#ACRE --help\n", "job.sh:1: --help works only on the command line"},
        {"#ACRE --name 'open\n", "job.sh:1: unclosed quote"},
        {"#ACRE --level middle\n", "job.sh:1: --level: unknown value 'middle'; accepted: low"},
        {"# ACRE --gpus 1\n", "job.sh:1: write #ACRE, without a space"},
        {"#!/bin/sh\ntrue\n#ACRE --gpus 1\n",
         "job.sh:3: this directive comes after the first command"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_arena *arena = acre_arena_create(1 << 20);
        struct options options;
        struct acre_error err = {0};
        acre_test_context("%s", cases[i].text);
        CHECK_EQ(read(cases[i].text, &options, arena, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
        acre_arena_destroy(arena);
    }
}

static void odd_bytes_are_refused_not_run(void) {
    static const char nul[] = "#ACRE --name a\0b\n";
    struct acre_arena *arena = acre_arena_create(16 << 20);
    struct options options;
    struct acre_error err = {0};
    CHECK_EQ(directive_read("a\x1b.sh", (struct acre_str){nul, sizeof(nul) - 1}, &command, &options,
                            arena, &err),
             ACRE_EINVALID);
    CHECK_HAS(err.text, "a\\x1b.sh:1: the directive contains a NUL byte");
    struct acre_buf many;
    acre_buf_init(&many, 1 << 20);
    acre_buf_puts(&many, "#ACRE");
    for (int i = 0; i < 65; i++) {
        acre_buf_puts(&many, " --hold");
    }
    CHECK_EQ(read(many.data, &options, arena, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "more than 64 words");
    acre_buf_clear(&many);
    for (int i = 0; i < 65; i++) {
        acre_buf_puts(&many, "#ACRE --env A=1\n");
    }
    CHECK_EQ(read(many.data, &options, arena, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "job.sh:65: --env: given more than 64 times");
    acre_buf_finish(&many);
    acre_arena_destroy(arena);
}

static void flags_win_over_directives(void) {
    struct options flags = {.gpus = "2", .env = {.items = {"A=flag"}, .count = 1}};
    struct options directives = {
        .gpus = "1", .name = "n", .hold = true, .env = {.items = {"B=1"}, .count = 1}};
    directive_under(&command, &flags, &directives);
    CHECK_STR(flags.gpus, "2");
    CHECK_STR(flags.name, "n");
    CHECK(flags.hold && flags.level == NULL);
    CHECK_U64(flags.env.count, 1);
    CHECK_STR(flags.env.items[0], "A=flag");
}

static const struct acre_test tests[] = {
    {"directives_of_the_first_comments_are_options", directives_of_the_first_comments_are_options,
     0},
    {"a_script_without_directives_asks_for_nothing", a_script_without_directives_asks_for_nothing,
     0},
    {"bad_directives_are_refused_by_file_and_line", bad_directives_are_refused_by_file_and_line, 0},
    {"odd_bytes_are_refused_not_run", odd_bytes_are_refused_not_run, 0},
    {"flags_win_over_directives", flags_win_over_directives, 0},
};

ACRE_TEST_MAIN(tests)
