/* reserve.c - `acre reserve`, `reserve list`, `reserve cancel`: GPUs kept for a time. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "cli/when.h"
#include "core/clock.h"
#include "core/units.h"

struct reserve_options {
    struct common common;
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

static json_t *make_body(const struct reserve_options *options, struct acre_error *err) {
    if ((options->gpus > 0) == (options->devices.count > 0)) {
        acre_fail(err, ACRE_EINVALID, "no GPUs given; give either --gpus N or --device ID");
        return NULL;
    }
    if ((options->end != NULL) == (options->duration != NULL)) {
        acre_fail(err, ACRE_EINVALID, "no end given; give either --for TIME or --end TIME");
        return NULL;
    }
    json_t *body = json_object();
    if (body_put_list(body, "devices", &options->devices, err) < 0) {
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

static void show_id(const struct show *view, const json_t *answer) {
    char id[32];
    acre_buf_printf(view->out, "%s\n", answer_count(answer, "reservation.id", id, sizeof(id)));
}

static int run_reserve(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct reserve_options *options = target;
    struct acre_error err = {0};
    json_t *body = make_body(options, &err);
    if (body == NULL) {
        return cli_fail(&err);
    }
    return cli_ask(&options->common, "POST", "/reservations", body, show_reservation, show_id);
}

static void show_ids(const struct show *view, const json_t *answer) {
    show_id_list(view, answer, "reservations");
}

static int run_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/reservations", NULL, show_reservation_list, show_ids);
}

static void show_gone(const struct show *view, const json_t *answer) {
    (void)answer;
    acre_buf_puts(view->out, "canceled\n");
}

static int run_cancel(int argument_count, char **arguments, void *target) {
    static const struct session_question question = {.method = "DELETE",
                                                     .before = "/reservations/",
                                                     .after = "",
                                                     .number = "reservation",
                                                     .view = show_gone};
    return cli_ask_each(target, &question, argument_count, arguments);
}

#define AT(field) offsetof(struct reserve_options, field)
/* clang-format off */
static const struct acre_opt rows[] = {
    {.name = "gpus", .letter = 'g', .kind = ACRE_OPT_COUNT, .offset = AT(gpus), .value = "N",
     .help = "number of GPUs; the daemon chooses which", .min = 1, .max = 100000},
    {.name = "device", .letter = 'd', .kind = ACRE_OPT_LIST, .offset = AT(devices), .value = "ID",
     .help = "reserve this GPU; repeatable"},
    {.name = "share", .kind = ACRE_OPT_MILLI, .offset = AT(share_milli), .value = "0.X",
     .help = "reserve only this fraction of each (default: 1.0)", .min = 100, .max = 1000},
    {.name = "start", .letter = 's', .kind = ACRE_OPT_STRING, .offset = AT(start), .value = "TIME",
     .help = "start: a delay (2h) or a time (default: now)", .check = when_check_time},
    {.name = "for", .letter = 'f', .kind = ACRE_OPT_STRING, .offset = AT(duration), .value = "TIME",
     .help = "how long, such as 8h", .check = when_check_span},
    {.name = "end", .letter = 'e', .kind = ACRE_OPT_STRING, .offset = AT(end), .value = "TIME",
     .help = "end: a delay from now (8h) or a time", .check = when_check_time},
    {.name = "isolation", .kind = ACRE_OPT_CHOICE, .offset = AT(isolation), .value = "KIND",
     .choices = "none,time-slicing,mps,mig", .help = "how to isolate a fraction of a GPU"},
};
/* clang-format on */

static const struct reserve_options defaults = {.share_milli = 1000};

const struct acre_command command_reserve = {
    .name = "reserve",
    .summary = "reserve GPUs, now or for later",
    .usage = "acre reserve [options] --gpus N --for TIME",
    .details =
        "Run jobs in it with 'acre submit --reservation ID'. Jobs of other users start there only\n"
        "if they will end before the reservation begins.\n"
        "\n"
        "Examples:\n"
        "  acre reserve --gpus 2 --start 12h --for 8h\n"
        "  acre reserve --gpus 1 --share 0.5 --for 1h",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_reserve,
    .options_size = sizeof(struct reserve_options),
    .defaults = &defaults,
};

const struct acre_command command_reserve_list = {
    .name = "reserve list",
    .summary = "list all reservations",
    .usage = "acre reserve list [options]",
    .details = "Example:\n"
               "  acre reserve list",
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run_list,
    .options_size = sizeof(struct common),
};

const struct acre_command command_reserve_cancel = {
    .name = "reserve cancel",
    .summary = "cancel reservations",
    .usage = "acre reserve cancel [options] ID...",
    .details = "Example:\n"
               "  acre reserve cancel 1",
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "reservations",
    .run = run_cancel,
    .options_size = sizeof(struct common),
};
