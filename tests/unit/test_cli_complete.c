/* What Tab offers comes from the tables, and only where it fits (UI-2). */
#include "cli/complete.h"

#include "support/test.h"

#include <stdio.h>

static const struct acre_opt rows[] = {
    {.name = "isolation",
     .letter = 'i',
     .kind = ACRE_OPT_CHOICE,
     .choices = "none, mps,mig",
     .help = "how"},
    {.name = "file", .kind = ACRE_OPT_STRING, .value = "FILE"},
    {.name = "count", .letter = 'n', .kind = ACRE_OPT_COUNT, .value = "N"},
    {.name = "env", .kind = ACRE_OPT_LIST, .value = "NAME"},
};
static const struct acre_opt shared[] = {{.name = "json", .kind = ACRE_OPT_FLAG, .help = "JSON"}};

#define ROWS .options = rows, .option_count = ACRE_COUNT(rows), .shared = shared, .shared_count = 1
static const struct acre_command submit = {.name = "submit",
                                           .summary = "put",
                                           ROWS,
                                           .options_first = true,
                                           .takes = "files",
                                           .max_arguments = UINT32_MAX};
static const struct acre_command show = {
    .name = "show", .summary = "facts", ROWS, .takes = "jobs", .max_arguments = 2};
static const struct acre_command reserve = {.name = "reserve", .summary = "keep", ROWS};
static const struct acre_command list = {.name = "reserve list", .summary = "all", ROWS};
static const struct acre_command drop = {.name = "reserve cancel", .summary = "back", ROWS};
static const struct acre_command token = {.name = "token list", .summary = "tokens", ROWS};
static const struct acre_command grant = {.name = "token create", .summary = "grant", ROWS};
static const struct acre_command secret = {.name = "__secret", .hidden = true};
static const struct acre_command *const commands[] = {&submit, &show,  &reserve, &list,
                                                      &drop,   &token, &grant,   &secret};

static void live(void *context, const char *kind, struct acre_buf *out) {
    (void)context;
    acre_buf_puts(out, strcmp(kind, "jobs") == 0 ? "41\ttrain\n42\ttest\n7\tother\n" : "");
}

/* Words are separated by blanks; the last one may be empty. The answer has ',' between lines. */
static void check(const char *line, const char *expect) {
    char copy[256];
    char *words[16];
    int count = 0;
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *at = copy; at != NULL && count < 16;) {
        words[count++] = at;
        at = strchr(at, ' ');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    struct acre_buf out;
    acre_buf_init(&out, 1 << 16);
    complete_words(commands, ACRE_COUNT(commands), count, words, live, NULL, &out);
    struct acre_buf names;
    acre_buf_init(&names, 1 << 16);
    for (char *at = out.data; *at != '\0'; at = strchr(at, '\n') + 1) {
        acre_buf_printf(&names, "%.*s,", (int)strcspn(at, "\t\n"), at);
    }
    acre_test_context("%s", line);
    CHECK_STR(names.data, expect);
    acre_buf_finish(&out);
    acre_buf_finish(&names);
}

static void commands_complete_word_by_word(void) {
    check("", "submit,show,reserve,token,");
    check("s", "submit,show,");
    check("sh", "show,");
    check("x", "");
    check("__", "");
    check("token ", "list,create,");
    check("token c", "create,");
    check("reserve ", "list,cancel,");
    check("nothing ", "");
}

static void options_complete_once(void) {
    check("submit --", "--isolation,--file,--count,--env,--json,--help,");
    check("submit --j", "--json,");
    check("submit --json --j", "");
    check("submit -i mps --is", "");
    check("submit --isolation=mps --is", "");
    check("submit --env A --en", "--env,");
    check("show 1 --js", "--json,");
    check("token list --js", "--json,");
}

static void values_complete_by_their_kind(void) {
    check("submit --isolation ", "none,mps,mig,");
    check("submit -i m", "mps,mig,");
    check("submit --isolation=m", "--isolation=mps,--isolation=mig,");
    check("submit --file ", ":files,");
    check("submit --count ", "");
    check("submit --count 3 --is", "--isolation,");
}

static void arguments_complete_by_what_they_are(void) {
    check("show ", "41,42,7,");
    check("show 4", "41,42,");
    check("show --count 3 4", "41,42,");
    check("show 1 2 ", ""); /* it takes two */
    check("submit ", ":files,");
    check("submit -- ", ":files,");
    check("submit -- python --is", ":files,"); /* the command's own option */
    check("submit job.sh --is", ":files,");
    check("token list ", "");
}

static const struct acre_test tests[] = {
    {"commands_complete_word_by_word", commands_complete_word_by_word, 0},
    {"options_complete_once", options_complete_once, 0},
    {"values_complete_by_their_kind", values_complete_by_their_kind, 0},
    {"arguments_complete_by_what_they_are", arguments_complete_by_what_they_are, 0},
};

ACRE_TEST_MAIN(tests)
