/* Command lines: each line of the input is a word of argv. Values stored are within their
 * rows' limits, arguments are words that were given, refusals can be shown. */
#include "core/opt.h"
#include "core/units.h"
#include "fuzz.h"

#include <stdlib.h>

enum { WORDS_MAX = 24 };

struct options {
    bool flag;
    const char *string;
    uint64_t count;
    uint64_t mib;
    uint64_t ms;
    uint32_t milli;
    const char *choice;
};

#define ROW(row_name, row_letter, row_kind, field)                                                 \
    .name = row_name, .letter = row_letter, .kind = row_kind,                                      \
    .offset = offsetof(struct options, field), .value = "VALUE", .help = "what it does"

static const struct acre_opt rows[] = {
    {ROW("json", 'j', ACRE_OPT_FLAG, flag)},
    {ROW("nodes", 'n', ACRE_OPT_STRING, string)},
    {ROW("seeds", 0, ACRE_OPT_COUNT, count), .min = 1, .max = 100},
    {ROW("memory", 'm', ACRE_OPT_MIB, mib)},
    {ROW("time-limit", 0, ACRE_OPT_DURATION, ms)},
    {ROW("share", 's', ACRE_OPT_MILLI, milli), .min = 100, .max = 1000},
    {ROW("strategy", 0, ACRE_OPT_CHOICE, choice), .choices = "first-fit, best-fit"},
};

static const struct options defaults = {.count = 1, .mib = 1, .milli = 100, .choice = "best-fit"};

static const struct acre_command packing = {
    .name = "simulate packing",
    .summary = "replay",
    .usage = "acre simulate packing [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .max_arguments = 3,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};
static const struct acre_command gpus = {.name = "gpus", .max_arguments = WORDS_MAX};
static const struct acre_command *const commands[] = {&packing, &gpus};

static void check_parse(int argc, char **argv) {
    char *given[WORDS_MAX];
    memcpy(given, argv, sizeof(given));
    struct options options;
    struct acre_error err = {0};
    int count = -1;
    int r = acre_opt_parse(&packing, argc, argv, &options, &count, &err);
    if (r < 0) {
        ACRE_ASSERT(count == -1 && (r == ACRE_EINVALID || r == ACRE_ENOTFOUND));
        acre_fuzz_check_error(&err, r);
        return;
    }
    ACRE_ASSERT(count >= 0 && count <= argc && count <= (int)packing.max_arguments);
    ACRE_ASSERT(options.count >= 1 && options.count <= 100);
    ACRE_ASSERT(options.mib >= 1 && options.mib <= ACRE_MIB_MAX);
    ACRE_ASSERT(options.ms <= ACRE_DURATION_MAX_MS);
    ACRE_ASSERT(options.milli >= 100 && options.milli <= 1000);
    ACRE_ASSERT(strcmp(options.choice, "first-fit") == 0 ||
                strcmp(options.choice, "best-fit") == 0);
    for (int i = 0, from = 0; i < count; i++, from++) { /* in the order given */
        while (from < argc && given[from] != argv[i]) {
            from++;
        }
        ACRE_ASSERT(from < argc);
    }
}

static void check_find(int argc, char **argv) {
    struct acre_error err = {0};
    int words = -1;
    const struct acre_command *found =
        acre_command_find(commands, ACRE_COUNT(commands), argc, argv, &words, &err);
    if (found == NULL) {
        ACRE_ASSERT(words == -1);
        acre_fuzz_check_error(&err, ACRE_EINVALID);
    } else {
        ACRE_ASSERT(words == (found == &packing ? 2 : 1) && words <= argc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1);
    ACRE_ASSERT(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    char *argv[WORDS_MAX] = {0};
    int argc = 0;
    for (char *at = text; at < text + size && argc < WORDS_MAX;) {
        argv[argc++] = at;
        at += strcspn(at, "\n");
        *at++ = '\0';
    }
    check_find(argc, argv);
    check_parse(argc, argv); /* last: it moves argv */
    free(text);
    return 0;
}
