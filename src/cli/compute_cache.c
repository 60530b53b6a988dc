/* compute_cache.c - `acre compute cache`: lists and cleans up the cache of compiled programs. */
#include "cli/cli.h"

#include "cli/compute.h"
#include "cli/when.h"
#include "core/clock.h"
#include "core/str.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct compute_cache_options {
    const char *directory;
    uint64_t to_mib; /* 0: not given */
    bool json;
};

struct compute_cache_call {
    const struct compute_cache_options *options;
    const char *directory;
    struct acre_buf *out;
};

static void begin_json(const struct compute_cache_call *call, struct acre_json *json) {
    acre_json_begin(json, call->out, true);
    acre_json_object(json);
    acre_json_put_string(json, "directory", call->directory);
}

static void end_json(const struct compute_cache_call *call, struct acre_json *json) {
    acre_json_object_end(json);
    acre_json_end(json);
    acre_buf_putc(call->out, '\n');
}

/* --- list ----------------------------------------------------------------------------------- */

static void list_json(const struct compute_cache_call *call, const struct acre_cache_entry *entries,
                      uint32_t count, uint64_t bytes) {
    struct acre_json json;
    begin_json(call, &json);
    acre_json_put_u64(&json, "bytes", bytes);
    acre_json_key(&json, "entries");
    acre_json_array(&json);
    for (uint32_t i = 0; i < count; i++) {
        char time[25];
        acre_json_object(&json);
        acre_json_put_string(&json, "file", entries[i].file);
        acre_json_put_string(&json, "backend", entries[i].backend);
        acre_json_put_string(&json, "name", entries[i].name);
        acre_json_put_u64(&json, "bytes", entries[i].bytes);
        acre_json_put_string(&json, "used", acre_format_time(entries[i].used_ms, time));
        acre_json_object_end(&json);
    }
    acre_json_array_end(&json);
    end_json(call, &json);
}

static void list_table(const struct compute_cache_call *call,
                       const struct acre_cache_entry *entries, uint32_t count, uint64_t bytes) {
    static const struct table_column columns[] = {
        {.heading = "PROGRAM", .shrink_to = 20},
        {.heading = "BACKEND"},
        {.heading = "SIZE", .right = true},
        {.heading = "USED", .right = true},
        {.heading = "FILE", .shrink_to = 12, .rank = 7},
    };
    struct term term = term_detect(STDOUT_FILENO);
    struct acre_clock clock = acre_clock_real();
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    char text[ACRE_WHEN_MAX], shown[PATH_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct acre_cache_entry *entry = &entries[i];
        table_row(table);
        table_cell(table, ACRE_COLOUR_NONE,
                   acre_str_show_text(acre_str_from(entry->name), shown, sizeof(shown)));
        table_cell(table, ACRE_COLOUR_NONE,
                   acre_str_show_text(acre_str_from(entry->backend), shown, sizeof(shown)));
        table_cell(table, ACRE_COLOUR_NONE, figure_bytes(entry->bytes, text, sizeof(text)));
        table_cell(table, ACRE_COLOUR_NONE,
                   when_relative(entry->used_ms, acre_clock_wall_ms(&clock), text, sizeof(text)));
        table_cell(table, ACRE_COLOUR_DIM, entry->file);
    }
    acre_buf_printf(call->out, "%s: %u program%s, %s\n",
                    acre_str_show_text(acre_str_from(call->directory), shown, sizeof(shown)), count,
                    count == 1 ? "" : "s", figure_bytes(bytes, text, sizeof(text)));
    if (count > 0) {
        acre_buf_putc(call->out, '\n');
        table_print(table, &term, call->out);
    }
    table_destroy(table);
}

static int list(const struct compute_cache_call *call, struct acre_error *err) {
    struct acre_cache_entry *entries = NULL;
    uint32_t count = 0;
    uint64_t bytes = 0;
    int r = acre_cache_list(call->directory, &entries, &count, err);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < count; i++) {
        bytes += entries[i].bytes;
    }
    (call->options->json ? list_json : list_table)(call, entries, count, bytes);
    free(entries);
    return 0;
}

/* --- the others ----------------------------------------------------------------------------- */

static void tell(const struct compute_cache_call *call, const char *done,
                 const struct acre_cache_count *count) {
    char text[ACRE_FIGURE_MAX];
    if (!call->options->json) {
        acre_buf_printf(call->out, "%s: %u program%s, %s", done, count->entries,
                        count->entries == 1 ? "" : "s",
                        figure_bytes(count->bytes, text, sizeof(text)));
        if (strcmp(done, "checked") == 0) {
            acre_buf_printf(call->out, "; %u damaged%s", count->damaged,
                            count->damaged > 0 ? " and removed" : "");
        }
        acre_buf_putc(call->out, '\n');
        return;
    }
    struct acre_json json;
    begin_json(call, &json);
    acre_json_put_u64(&json, done, count->entries);
    acre_json_put_u64(&json, "bytes", count->bytes);
    acre_json_put_u64(&json, "damaged", count->damaged);
    end_json(call, &json);
}

static int verify(const struct compute_cache_call *call, struct acre_error *err) {
    struct acre_cache_count count;
    int r = acre_cache_verify(call->directory, &count, err);
    if (r == 0) {
        tell(call, "checked", &count);
    }
    return r;
}

static int prune(const struct compute_cache_call *call, struct acre_error *err) {
    struct acre_cache_count count;
    if (call->options->to_mib == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "--to is missing: the size to keep, as in 'prune --to 200MiB' ('clear' "
                         "removes everything)");
    }
    int r = acre_cache_prune(call->directory, call->options->to_mib << 20, &count, err);
    if (r == 0) {
        tell(call, "removed", &count);
    }
    return r;
}

static int clear(const struct compute_cache_call *call, struct acre_error *err) {
    struct acre_cache_count count;
    int r = acre_cache_clear(call->directory, &count, err);
    if (r == 0) {
        tell(call, "removed", &count);
    }
    return r;
}

static const struct {
    const char *name;
    int (*run)(const struct compute_cache_call *call, struct acre_error *err);
} actions[] = {{"list", list}, {"verify", verify}, {"prune", prune}, {"clear", clear}};

static int act(struct compute_cache_call *call, const char *name, struct acre_error *err) {
    char shown[64];
    size_t i = 0;
    while (i < ACRE_COUNT(actions) && strcmp(actions[i].name, name) != 0) {
        i++;
    }
    if (i == ACRE_COUNT(actions)) {
        return acre_fail(err, ACRE_EINVALID,
                         "unknown action '%s'; accepted: list, verify, prune, clear",
                         acre_str_show(acre_str_from(name), shown, sizeof(shown)));
    }
    if (call->options->to_mib != 0 && actions[i].run != prune) {
        return acre_fail(err, ACRE_EINVALID, "--to: only for 'prune', not '%s'", name);
    }
    return actions[i].run(call, err);
}

static int run(int argument_count, char **arguments, void *target) {
    const struct compute_cache_options *options = target;
    char path[PATH_MAX];
    struct acre_error err = {0};
    struct acre_buf out;
    acre_buf_init(&out, ACRE_COMPUTE_OUTPUT_MAX_BYTES);
    struct compute_cache_call call = {
        .options = options, .directory = options->directory, .out = &out};
    int r = 0;
    if (call.directory == NULL) {
        r = acre_cache_directory(path, sizeof(path), &err);
        call.directory = path;
    }
    r = r == 0 ? act(&call, argument_count > 0 ? arguments[0] : "list", &err) : r;
    int code = r < 0 ? cli_fail(&err) : cli_write(&out);
    acre_buf_finish(&out);
    return code;
}

/* The default one is made when it is needed; one that was named is meant to be there. */
static int check_directory(const char *option, const char *value, struct acre_error *err) {
    char shown[128];
    struct stat info;
    return stat(value, &info) == 0 && S_ISDIR(info.st_mode)
               ? 0
               : acre_fail(err, ACRE_EINVALID, "%s: no such directory '%s'", option,
                           acre_str_show(acre_str_from(value), shown, sizeof(shown)));
}

#define AT(member) offsetof(struct compute_cache_options, member)
static const struct acre_opt rows[] = {
    {.name = "to",
     .kind = ACRE_OPT_MIB,
     .offset = AT(to_mib),
     .value = "SIZE",
     .help = "the size that 'prune' keeps, such as 200MiB"},
    {.name = "directory",
     .kind = ACRE_OPT_STRING,
     .offset = AT(directory),
     .value = "DIR",
     .help = "the cache (default: $XDG_CACHE_HOME/acre or ~/.cache/acre)",
     .check = check_directory},
    {.name = "json", .kind = ACRE_OPT_FLAG, .offset = AT(json), .help = "print JSON"},
};

const struct acre_command command_compute_cache = {
    .name = "compute cache",
    .summary = "list, verify, prune or clear the cache of compiled kernels",
    .usage = "acre compute cache [list|verify|prune --to SIZE|clear] [options]",
    .details =
        "The cache is limited to 1 GiB. 'verify' reads every entry and removes damaged ones\n"
        "(they are compiled again when next used, and would be without 'verify' too);\n"
        "'prune' removes the least recently used.\n"
        "\n"
        "Examples:\n"
        "  acre compute cache\n"
        "  acre compute cache verify\n"
        "  acre compute cache prune --to 200MiB\n",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .max_arguments = 1,
    .takes = "cache",
    .run = run,
    .options_size = sizeof(struct compute_cache_options),
};
