/* reserve.c - `acre reserve`, `reserve list`, `reserve cancel`: GPUs for a time to come. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "cli/when.h"
#include "core/clock.h"
#include "core/units.h"

struct options {
    struct acre_common common;
    uint64_t gpus;
    struct acre_opt_list devices;
    uint32_t share_milli;
    const char *start, *end, *duration, *isolation;
};

/* A duration from now on becomes a time: the daemon is asked for both ends of the window. */
static json_t *time_of(const char *text) {
    uint64_t ms;
    char absolute[25];
    struct acre_clock clock = acre_clock_real();
    if (acre_parse_duration("", text, &ms, NULL) == 0) {
        return json_string(acre_format_time(acre_clock_wall_ms(&clock) + ms, absolute));
    }
    return json_string(text);
}

static json_t *make_body(const struct options *options, struct acre_error *err) {
    if ((options->gpus > 0) == (options->devices.count > 0)) {
        acre_fail(err, ACRE_EINVALID, "which GPUs? give either --gpus N or --device ID");
        return NULL;
    }
    if ((options->end != NULL) == (options->duration != NULL)) {
        acre_fail(err, ACRE_EINVALID, "until when? give either --for TIME or --end TIME");
        return NULL;
    }
    json_t *body = json_object();
    if (acre_body_put_list(body, "devices", &options->devices, err) < 0) {
        json_decref(body);
        return NULL;
    }
    if (options->gpus > 0) {
        json_object_set_new(body, "gpus", json_integer((json_int_t)options->gpus));
    }
    if (options->share_milli < 1000) {
        json_object_set_new(body, "share", json_real(options->share_milli / 1000.0));
    }
    if (options->start != NULL) {
        json_object_set_new(body, "start", time_of(options->start));
    }
    if (options->end != NULL) {
        json_object_set_new(body, "end", time_of(options->end));
    } else {
        json_object_set_new(body, "duration", json_string(options->duration));
    }
    if (options->isolation != NULL) {
        json_object_set_new(body, "isolation", json_string(options->isolation));
    }
    return body;
}

static void show_id(const struct acre_show *view, const json_t *answer) {
    char id[32];
    acre_buf_printf(view->out, "%s\n", acre_answer_count(answer, "reservation.id", id, sizeof(id)));
}

static int run_reserve(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct options *options = target;
    struct acre_error err = {0};
    json_t *body = make_body(options, &err);
    if (body == NULL) {
        return acre_cli_fail(&err);
    }
    return acre_cli_ask(&options->common, "POST", "/reservations", body, acre_show_reservation,
                        show_id);
}

static void show_ids(const struct acre_show *view, const json_t *answer) {
    acre_show_ids(view, answer, "reservations");
}

static int run_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/reservations", NULL, acre_show_reservations, show_ids);
}

static void show_gone(const struct acre_show *view, const json_t *answer) {
    (void)answer;
    acre_buf_puts(view->out, "canceled\n");
}

static int run_cancel(int argument_count, char **arguments, void *target) {
    static const struct acre_question question = {.method = "DELETE",
                                                  .before = "/reservations/",
                                                  .after = "",
                                                  .number = "reservation",
                                                  .view = show_gone};
    return acre_cli_ask_each(target, &question, argument_count, arguments);
}

#define AT(field) offsetof(struct options, field)
/* clang-format off */
static const struct acre_opt rows[] = {
    {.name = "gpus", .letter = 'g', .kind = ACRE_OPT_COUNT, .offset = AT(gpus), .value = "N",
     .help = "so many, the daemon chooses which", .min = 1, .max = 100000},
    {.name = "device", .letter = 'd', .kind = ACRE_OPT_LIST, .offset = AT(devices), .value = "ID",
     .help = "this one; repeatable"},
    {.name = "share", .kind = ACRE_OPT_MILLI, .offset = AT(share_milli), .value = "0.X",
     .help = "only this part of each (1.0)", .min = 100, .max = 1000},
    {.name = "start", .letter = 's', .kind = ACRE_OPT_STRING, .offset = AT(start), .value = "TIME",
     .help = "from: from now on (2h), or a time (now)", .check = acre_when_check_time},
    {.name = "for", .letter = 'f', .kind = ACRE_OPT_STRING, .offset = AT(duration), .value = "TIME",
     .help = "for so long, like 8h", .check = acre_when_check_span},
    {.name = "end", .letter = 'e', .kind = ACRE_OPT_STRING, .offset = AT(end), .value = "TIME",
     .help = "until: from now on (8h), or a time", .check = acre_when_check_time},
    {.name = "isolation", .kind = ACRE_OPT_CHOICE, .offset = AT(isolation), .value = "KIND",
     .choices = "none,time-slicing,mps,mig", .help = "how a part is divided off"},
};
/* clang-format on */

static const struct options defaults = {.share_milli = 1000};

const struct acre_command acre_command_reserve = {
    .name = "reserve",
    .summary = "keep GPUs for yourself, now or later",
    .usage = "acre reserve [options] --gpus N --for TIME",
    .details =
        "Jobs use it with 'acre submit --reservation ID'; others' jobs end before it begins,\n"
        "or do not start there.\n"
        "\n"
        "Examples:\n"
        "  acre reserve --gpus 2 --start 12h --for 8h\n"
        "  acre reserve --gpus 1 --share 0.5 --for 1h",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_reserve,
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

const struct acre_command acre_command_reserve_list = {
    .name = "reserve list",
    .summary = "all reservations",
    .usage = "acre reserve list [options]",
    .details = "Example:\n"
               "  acre reserve list",
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_list,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_reserve_cancel = {
    .name = "reserve cancel",
    .summary = "give reservations back",
    .usage = "acre reserve cancel [options] ID...",
    .details = "Example:\n"
               "  acre reserve cancel 1",
    .shared = acre_common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "reservations",
    .run = run_cancel,
    .options_size = sizeof(struct acre_common),
};
