/* doctor.c - `acre doctor`: prints what device/doctor.h found.
 *
 * Exits with 0 with or without a GPU, with 9 if there is a GPU that cannot be used. */
#include "device/doctor.h"

#include "cli/cli.h"
#include "cli/term.h"
#include "core/clock.h"

#include <stdlib.h>
#include <unistd.h>

enum { OUTPUT_MAX_BYTES = 4 << 20, TEXT_COLUMN = 29 };

struct doctor_options {
    bool json;
};

static void print_text(const struct acre_doctor *doctor, struct acre_buf *out) {
    static const enum colour colours[] = {
        [ACRE_FINDING_OK] = ACRE_COLOUR_GREEN,
        [ACRE_FINDING_ABSENT] = ACRE_COLOUR_DIM,
        [ACRE_FINDING_NOTE] = ACRE_COLOUR_YELLOW,
        [ACRE_FINDING_PROBLEM] = ACRE_COLOUR_RED,
    };
    struct term term = term_detect(STDOUT_FILENO);
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct acre_finding *finding = &doctor->findings[i];
        char status[16];
        snprintf(status, sizeof(status), "%-8s", acre_finding_status_name(finding->status));
        term_put(&term, out, colours[finding->status], status);
        acre_buf_printf(out, "%-12s tried   ", finding->area);
        term_wrap(&term, out, TEXT_COLUMN, finding->tried);
        acre_buf_printf(out, "%21sanswer  ", "");
        term_wrap(&term, out, TEXT_COLUMN, finding->answer);
        if (finding->advice[0] != '\0') {
            acre_buf_printf(out, "%21sdo      ", "");
            term_wrap(&term, out, TEXT_COLUMN, finding->advice);
        }
    }
    acre_buf_puts(out, "\nverdict: ");
    term_put(&term, out, doctor->problems > 0 ? ACRE_COLOUR_RED : ACRE_COLOUR_BOLD,
             doctor->verdict);
    acre_buf_putc(out, '\n');
}

static void print_json(const struct acre_doctor *doctor, struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, true);
    acre_json_object(&json);
    acre_json_put_string(&json, "verdict", doctor->verdict);
    acre_json_put_u64(&json, "gpus", doctor->gpus);
    acre_json_put_u64(&json, "problems", doctor->problems);
    acre_json_key(&json, "findings");
    acre_json_array(&json);
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct acre_finding *finding = &doctor->findings[i];
        acre_json_object(&json);
        acre_json_put_string(&json, "status", acre_finding_status_name(finding->status));
        acre_json_put_string(&json, "area", finding->area);
        acre_json_put_string(&json, "tried", finding->tried);
        acre_json_put_string(&json, "answer", finding->answer);
        acre_json_put_string(&json, "advice", finding->advice[0] != '\0' ? finding->advice : NULL);
        acre_json_object_end(&json);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_buf_putc(out, '\n');
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct doctor_options *options = target;
    struct acre_doctor_options where = {0};
    struct acre_clock clock = acre_clock_real();
    struct acre_devices *devices = acre_devices_open(&where.devices);
    uint32_t count = acre_devices_count(devices);
    struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
    struct acre_doctor *doctor = acre_calloc(1, sizeof(*doctor));
    acre_devices_read(devices, acre_clock_wall_ms(&clock), NULL, 0, readings);
    acre_doctor_examine(&where, devices, readings, doctor);
    struct acre_buf out;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    (options->json ? print_json : print_text)(doctor, &out);
    int r = cli_write(&out);
    if (r == 0 && doctor->problems > 0) {
        r = acre_error_exit(ACRE_EUNAVAILABLE);
    }
    acre_buf_finish(&out);
    for (uint32_t i = 0; i < count; i++) {
        acre_device_reading_finish(&readings[i]);
    }
    free(readings);
    free(doctor);
    acre_devices_close(devices);
    return r;
}

static const struct acre_opt rows[] = {
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct doctor_options, json),
     .help = "print JSON"},
};

const struct acre_command command_doctor = {
    .name = "doctor",
    .summary = "check this machine's GPU drivers: what was tried, what answered, what to do",
    .usage = "acre doctor [--json]",
    .details =
        "Exits with 0 if no GPU is found or all work, and with 9 if there is a GPU that cannot\n"
        "be used.\n"
        "\n"
        "Examples:\n"
        "  acre doctor\n"
        "  acre doctor --json",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .run = run,
    .options_size = sizeof(struct doctor_options),
};
