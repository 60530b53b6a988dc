/* gpus.c - `acre gpus`: lists the devices of this node, or of a simulated cluster.
 *
 * The columns come from the field tables (fields.h). Real devices are opened once and read for
 * every update; simulated nodes are opened one after the other each time, so that a file of
 * 100,000 nodes needs the memory of one. */
#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/term.h"
#include "core/clock.h"
#include "core/loop.h"
#include "core/units.h"
#include "device/node.h"
#include "device/report.h"
#include "device/sim.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OUTPUT_MAX_BYTES = 64 << 20, /* a node's JSON is under 1 MiB; nodes are flushed one by one */
    TABLE_ROWS_MAX = 2000,       /* what a person scrolls through; --json has them all */
    DEVICE_SHRINK_TO = 16,
    MODEL_SHRINK_TO = 12,
    COMMAND_SHRINK_TO = 16,
};

struct gpus_options {
    struct common common;
    bool cluster;
    bool watch;
    bool processes;
    uint64_t interval_ms;
    uint64_t count;
    const char *sim;
};

struct gpus_view {
    const struct gpus_options *options;
    struct acre_device_options where;
    struct acre_sim_cluster *cluster; /* NULL: this machine */
    struct acre_devices *devices;     /* this machine's, kept open */
    struct acre_device_reading *readings;
    struct acre_clock clock;
    struct term term;
    struct acre_loop *loop;
    uint64_t drawn;
    uint32_t lines; /* of the last picture on the terminal */
    int result;
};

/* A column takes its text from one of the field tables. */
struct source {
    const struct acre_record_type *type; /* NULL: the node's name */
    uint32_t column;
};

struct picture {
    struct table_column columns[ACRE_INFO_COUNT + ACRE_SAMPLE_COUNT + 1];
    struct source sources[ACRE_INFO_COUNT + ACRE_SAMPLE_COUNT + 1];
    uint32_t count;
    struct text_table *devices;
    struct text_table *processes;
    uint32_t device_count; /* all of them, shown or not */
    uint32_t gpu_count;
    uint32_t process_count;
};

static void add_columns(struct picture *picture, const struct acre_record_type *type) {
    for (uint32_t i = 0; i < type->count; i++) {
        const struct acre_column *column = &type->columns[i];
        if (column->heading[0] == '\0') {
            continue;
        }
        uint32_t shrink_to = strcmp(column->name, "id") == 0        ? DEVICE_SHRINK_TO
                             : strcmp(column->name, "model") == 0   ? MODEL_SHRINK_TO
                             : strcmp(column->name, "command") == 0 ? COMMAND_SHRINK_TO
                                                                    : 0;
        picture->columns[picture->count] = (struct table_column){
            .heading = column->heading,
            .right = column->kind == ACRE_COLUMN_number || column->kind == ACRE_COLUMN_whole,
            .rank = column->rank,
            .shrink_to = shrink_to,
        };
        picture->sources[picture->count++] = (struct source){type, i};
    }
}

static enum colour colour_of(const struct acre_column *column, const char *text) {
    if (strcmp(column->name, "state") == 0) {
        return strcmp(text, "ok") == 0 ? ACRE_COLOUR_GREEN : ACRE_COLOUR_RED;
    }
    return strcmp(text, "-") == 0 ? ACRE_COLOUR_DIM : ACRE_COLOUR_NONE;
}

static void add_device(struct picture *picture, const struct acre_node_info *node,
                       const struct acre_device_info *info,
                       const struct acre_device_sample *sample) {
    table_row(picture->devices);
    for (uint32_t i = 0; i < picture->count; i++) {
        struct source source = picture->sources[i];
        char text[ACRE_COLUMN_TEXT_MAX];
        if (source.type == NULL) {
            table_cell(picture->devices, ACRE_COLOUR_NONE, node->name);
            continue;
        }
        const void *record = source.type == &info_type ? (const void *)info : sample;
        column_format(source.type, record, source.column, text, sizeof(text));
        table_cell(picture->devices, colour_of(&source.type->columns[source.column], text), text);
    }
}

static void add_process(struct picture *picture, const struct acre_device_info *info,
                        const struct acre_device_process *process) {
    if (table_rows(picture->processes) >= TABLE_ROWS_MAX) {
        return;
    }
    table_row(picture->processes);
    table_cell(picture->processes, ACRE_COLOUR_NONE, info->id);
    for (uint32_t i = 0; i < process_type.count; i++) {
        char text[ACRE_COLUMN_TEXT_MAX];
        column_format(&process_type, process, i, text, sizeof(text));
        table_cell(picture->processes, colour_of(&process_type.columns[i], text), text);
    }
}

static void add_node(struct picture *picture, const struct acre_node_info *node,
                     const struct acre_devices *devices,
                     const struct acre_device_reading *readings) {
    for (uint32_t i = 0; i < acre_devices_count(devices); i++) {
        const struct acre_device_info *info = acre_devices_info(devices, i);
        picture->device_count++;
        picture->gpu_count += strcmp(info->kind, "cpu") != 0;
        if (table_rows(picture->devices) < TABLE_ROWS_MAX) {
            add_device(picture, node, info, &readings[i].sample);
        }
        for (uint32_t p = 0; p < readings[i].processes.count; p++) {
            picture->process_count++;
            add_process(picture, info, &readings[i].processes.items[p]);
        }
    }
}

/* Visit each node with its devices read: this machine, or every simulated node. */
typedef void visit_node(void *context, const struct acre_device_options *where,
                        const struct acre_node_info *node, const struct acre_devices *devices,
                        const struct acre_device_reading *readings);

static void visit_simulated(struct gpus_view *view, visit_node *visit, void *context) {
    for (uint32_t n = 0; n < acre_sim_node_count(view->cluster); n++) {
        view->where.sim_node = n;
        struct acre_devices *devices = acre_devices_open(&view->where);
        uint32_t count = acre_devices_count(devices);
        struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
        struct acre_node_info node;
        uint64_t now_ms = acre_clock_wall_ms(&view->clock);
        acre_node_read(&view->where, now_ms, &node);
        acre_devices_read(devices, now_ms, NULL, 0, readings);
        visit(context, &view->where, &node, devices, readings);
        for (uint32_t i = 0; i < count; i++) {
            acre_device_reading_finish(&readings[i]);
        }
        free(readings);
        acre_devices_close(devices);
    }
}

static void visit_nodes(struct gpus_view *view, visit_node *visit, void *context) {
    if (view->cluster != NULL) {
        visit_simulated(view, visit, context);
        return;
    }
    struct acre_node_info node;
    uint64_t now_ms = acre_clock_wall_ms(&view->clock);
    acre_node_read(&view->where, now_ms, &node);
    acre_devices_read(view->devices, now_ms, NULL, 0, view->readings);
    visit(context, &view->where, &node, view->devices, view->readings);
}

static void visit_picture(void *context, const struct acre_device_options *where,
                          const struct acre_node_info *node, const struct acre_devices *devices,
                          const struct acre_device_reading *readings) {
    (void)where;
    add_node(context, node, devices, readings);
}

static void print_head(struct gpus_view *view, const struct picture *picture,
                       struct acre_buf *out) {
    char line[512];
    if (view->cluster != NULL) {
        snprintf(line, sizeof(line), "simulated: %" PRIu32 " node%s, %" PRIu32 " device%s from %s",
                 acre_sim_node_count(view->cluster),
                 acre_sim_node_count(view->cluster) == 1 ? "" : "s", picture->device_count,
                 picture->device_count == 1 ? "" : "s", view->options->sim);
        term_put(&view->term, out, ACRE_COLOUR_YELLOW, line);
        acre_buf_puts(out, "\n\n");
        return;
    }
    struct acre_node_info node;
    char cpus[32];
    char total[32];
    char available[32];
    acre_node_read(&view->where, acre_clock_wall_ms(&view->clock), &node);
    snprintf(cpus, sizeof(cpus), "%" PRIu64, node.cpu_milli / 1000);
    term_put(&view->term, out, ACRE_COLOUR_BOLD, node.name);
    acre_buf_printf(out, ": %s CPUs, %s RAM (%s available)\n\n",
                    ACRE_HAS(&node, ACRE_NODE, cpu_milli) ? cpus : "-",
                    column_format(&node_type, &node, ACRE_NODE_ram_total_mib, total, sizeof(total)),
                    column_format(&node_type, &node, ACRE_NODE_ram_available_mib, available,
                                  sizeof(available)));
}

static void print_foot(struct gpus_view *view, const struct picture *picture,
                       struct acre_buf *out) {
    if (view->options->processes) {
        acre_buf_putc(out, '\n');
        if (picture->process_count > 0) {
            table_print(picture->processes, &view->term, out);
        } else {
            acre_buf_puts(out, "No processes on any device.\n");
        }
    }
    if (picture->device_count > table_rows(picture->devices)) {
        acre_buf_printf(out, "%" PRIu32 " more not shown; --json lists all.\n",
                        picture->device_count - table_rows(picture->devices));
    }
    if (picture->gpu_count == 0) {
        acre_buf_puts(out, "\nNo GPU found. 'acre doctor' shows what was tried and what to do.\n");
    }
}

static void draw_table(struct gpus_view *view, struct acre_buf *out) {
    struct picture picture = {0};
    struct table_column process_columns[ACRE_PROCESS_COUNT + 1];
    if (view->cluster != NULL) {
        picture.columns[picture.count++] = (struct table_column){.heading = "NODE"};
    }
    add_columns(&picture, &info_type);
    add_columns(&picture, &sample_type);
    struct picture borrowed = {0};
    borrowed.columns[borrowed.count++] =
        (struct table_column){.heading = "DEVICE", .shrink_to = DEVICE_SHRINK_TO};
    add_columns(&borrowed, &process_type);
    memcpy(process_columns, borrowed.columns, sizeof(process_columns));
    picture.devices = table_create(picture.columns, picture.count);
    picture.processes = table_create(process_columns, ACRE_COUNT(process_columns));
    visit_nodes(view, visit_picture, &picture);
    print_head(view, &picture, out);
    if (picture.device_count > 0) {
        table_print(picture.devices, &view->term, out);
    }
    print_foot(view, &picture, out);
    table_destroy(picture.devices);
    table_destroy(picture.processes);
}

struct json_walk {
    struct gpus_view *view;
    struct acre_json json;
    struct acre_buf *out;
};

static void visit_json(void *context, const struct acre_device_options *where,
                       const struct acre_node_info *node, const struct acre_devices *devices,
                       const struct acre_device_reading *readings) {
    struct json_walk *walk = context;
    acre_report_node(&walk->json, where, node, devices, readings);
    if (walk->view->result == 0) {
        walk->view->result = cli_write(walk->out);
    }
    acre_buf_clear(walk->out);
}

/* One document; with --watch, one line each. */
static void draw_json(struct gpus_view *view, struct acre_buf *out) {
    struct json_walk walk = {.view = view, .out = out};
    char time[25];
    acre_json_begin(&walk.json, out, !view->options->watch);
    acre_json_object(&walk.json);
    acre_json_put_string(&walk.json, "time",
                         acre_format_time(acre_clock_wall_ms(&view->clock), time));
    acre_json_put_bool(&walk.json, "simulated", view->cluster != NULL);
    acre_json_key(&walk.json, "nodes");
    acre_json_array(&walk.json);
    visit_nodes(view, visit_json, &walk);
    acre_json_array_end(&walk.json);
    acre_json_object_end(&walk.json);
    acre_json_end(&walk.json);
    acre_buf_putc(out, '\n');
}

static void visit_ids(void *context, const struct acre_device_options *where,
                      const struct acre_node_info *node, const struct acre_devices *devices,
                      const struct acre_device_reading *readings) {
    (void)where;
    (void)node;
    (void)readings;
    for (uint32_t i = 0; i < acre_devices_count(devices); i++) {
        acre_buf_printf(context, "%s\n", acre_devices_info(devices, i)->id);
    }
}

static void draw_ids(struct gpus_view *view, struct acre_buf *out) {
    visit_nodes(view, visit_ids, out);
}

static void draw(void *context) {
    struct gpus_view *view = context;
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    view->term = term_detect(STDOUT_FILENO); /* the window may have changed */
    bool quiet = view->options->common.quiet, json = view->options->common.json;
    bool in_place = view->options->watch && view->term.is_terminal && !json && !quiet;
    (json ? draw_json : quiet ? draw_ids : draw_table)(view, &out);
    if (view->result == 0) {
        view->result = in_place ? cli_redraw(&view->term, &out, &view->lines) : cli_write(&out);
    }
    acre_buf_finish(&out);
    view->drawn++;
    bool last = view->options->count > 0 && view->drawn >= view->options->count;
    if (view->loop != NULL && (last || view->result != 0)) {
        acre_loop_stop(view->loop);
    }
}

static void stop(void *context) {
    acre_loop_stop(((struct gpus_view *)context)->loop);
}

static int watch(struct gpus_view *view) {
    struct acre_error err = {0};
    int r = acre_loop_create(&view->loop, &err);
    if (r == 0) {
        r = acre_loop_signal(view->loop, SIGINT, stop, view, &err);
    }
    if (r == 0) {
        r = acre_loop_signal(view->loop, SIGTERM, stop, view, &err);
    }
    if (r < 0) {
        acre_loop_destroy(view->loop);
        return cli_fail(&err);
    }
    acre_loop_timer(view->loop, 0, view->options->interval_ms, draw, view);
    acre_loop_run(view->loop);
    acre_loop_destroy(view->loop);
    return view->result;
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    struct gpus_view view = {
        .options = target, .clock = acre_clock_real(), .lines = ACRE_TERM_CLEAR};
    struct acre_error err = {0};
    if (view.options->cluster || view.options->common.server != NULL) {
        return cluster_gpus(&view.options->common);
    }
    if (view.options->sim != NULL) {
        if (acre_sim_load(view.options->sim, &view.cluster, &err) < 0) {
            return cli_fail(&err);
        }
        view.where.sim = view.cluster;
    } else {
        view.devices = acre_devices_open(&view.where);
        view.readings = acre_calloc(acre_devices_count(view.devices) + 1U, sizeof(*view.readings));
    }
    if (view.options->watch) {
        view.result = watch(&view);
    } else {
        draw(&view);
    }
    for (uint32_t i = 0; view.devices != NULL && i < acre_devices_count(view.devices); i++) {
        acre_device_reading_finish(&view.readings[i]);
    }
    free(view.readings);
    acre_devices_close(view.devices);
    acre_sim_destroy(view.cluster);
    return view.result;
}

#define AT(member) offsetof(struct gpus_options, member)
static const struct acre_opt rows[] = {
    {.name = "cluster",
     .letter = 'c',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(cluster),
     .help = "list the GPUs of the daemon's cluster and who holds them (--server implies it)"},
    {.name = "watch",
     .letter = 'w',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(watch),
     .help = "keep updating; with --json, one document per line"},
    {.name = "interval",
     .kind = ACRE_OPT_DURATION,
     .offset = AT(interval_ms),
     .value = "TIME",
     .help = "time between readings with --watch (default: 2s)",
     .min = 10,
     .max = 24 * 3600 * 1000},
    {.name = "count",
     .kind = ACRE_OPT_COUNT,
     .offset = AT(count),
     .value = "N",
     .help = "stop after N readings with --watch",
     .min = 1,
     .max = 1000000000},
    {.name = "processes",
     .letter = 'p',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(processes),
     .help = "list the processes on each device"},
    {.name = "sim",
     .kind = ACRE_OPT_STRING,
     .offset = AT(sim),
     .value = "FILE",
     .help = "list the simulated cluster in FILE instead of this machine"},
};

static const struct gpus_options defaults = {.interval_ms = 2000};

const struct acre_command command_gpus = {
    .name = "gpus",
    .summary = "list the GPUs of this machine and their current readings",
    .usage = "acre gpus [options]",
    .details =
        "Unknown values are '-' (null in JSON), never 0. FOREIGN is memory used by processes that\n"
        "are not Acre's jobs. Fast links connect devices with the same ISLAND.\n"
        "\n"
        "Examples:\n"
        "  acre gpus --cluster\n"
        "  acre gpus --watch --interval 500ms\n"
        "  acre gpus --json | jq '.nodes[].devices[].live.memory_free_mib'\n"
        "  acre gpus --sim examples/two-nodes.acre",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .shared = common_rows,
    .shared_count = ACRE_COMMON_ROWS,
    .run = run,
    .options_size = sizeof(struct gpus_options),
    .defaults = &defaults,
};
