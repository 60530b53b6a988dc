/* Scripts with directives: whatever is in them, values are within their rows' rules, words are
 * whole strings of the arena, and refusals can be shown. */
#include "cli/directive.h"
#include "fuzz.h"

struct options {
    bool hold;
    const char *gpus, *level;
    struct acre_opt_list env;
};

static int check_gpus(const char *field, const char *value, struct acre_error *err) {
    return value[0] == '0' ? 0 : acre_fail(err, ACRE_EINVALID, "%s: refused", field);
}

#define AT(field) offsetof(struct options, field)
static const struct acre_opt rows[] = {
    {.name = "gpus",
     .letter = 'g',
     .kind = ACRE_OPT_STRING,
     .offset = AT(gpus),
     .check = check_gpus},
    {.name = "level", .kind = ACRE_OPT_CHOICE, .offset = AT(level), .choices = "low,high"},
    {.name = "hold", .kind = ACRE_OPT_FLAG, .offset = AT(hold)},
    {.name = "env", .letter = 'e', .kind = ACRE_OPT_LIST, .offset = AT(env)},
};
static const struct acre_command command = {
    .name = "submit",
    .usage = "acre submit",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_arena *arena = acre_arena_create(64 << 20);
    struct options options = {0}, flags = {.gpus = "0.5"};
    struct acre_error err = {0};
    struct acre_str text = {size > 0 ? (const char *)data : "", size};
    int r = directive_read("fuzz.sh", text, &command, &options, arena, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, ACRE_EINVALID);
        ACRE_ASSERT(strncmp(err.text, "fuzz.sh:", 8) == 0);
    } else {
        ACRE_ASSERT(options.gpus == NULL || options.gpus[0] == '0');
        ACRE_ASSERT(options.level == NULL || strcmp(options.level, "low") == 0 ||
                    strcmp(options.level, "high") == 0);
        ACRE_ASSERT(options.env.count <= ACRE_OPT_LIST_MAX);
        size_t bytes = 0;
        for (uint32_t i = 0; i < options.env.count; i++) {
            bytes += strlen(options.env.items[i]);
        }
        ACRE_ASSERT(bytes <= size);
        directive_under(&command, &flags, &options);
        ACRE_ASSERT(strcmp(flags.gpus, "0.5") == 0 && flags.hold == options.hold);
    }
    acre_arena_destroy(arena);
    return 0;
}
