/* device.c - how long it takes to find the devices of this node and to read all of them.
 *
 *   build/bench/device --json [--samples 200]
 *
 * "discovery_us" is one open of every driver in turn, as the first command of a day does it.
 * "read_us" is a full live reading of the node: events, every device's sample, its processes
 * with user and command, and foreign memory. "drivers" then times the parts of one reading,
 * driver by driver: where the time goes. */
#include "device/device.h"
#include "core/clock.h"
#include "core/opt.h"
#include "device/node.h"

#include <stdio.h>
#include <stdlib.h>

struct options {
    uint64_t samples;
    bool json;
};

struct timing {
    double *us;
    uint64_t count;
};

static double now_us(void) {
    struct acre_clock clock = acre_clock_real();
    return (double)acre_clock_monotonic_ns(&clock) / 1000;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_timing(struct acre_json *json, const char *key, struct timing *timing) {
    double sum = 0;
    for (uint64_t i = 0; i < timing->count; i++) {
        sum += timing->us[i];
    }
    qsort(timing->us, timing->count, sizeof(*timing->us), compare_doubles);
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_double(json, "mean", sum / (double)timing->count, 1);
    acre_json_put_double(json, "p50", timing->us[timing->count / 2], 1);
    acre_json_put_double(json, "p99", timing->us[timing->count * 99 / 100], 1);
    acre_json_put_double(json, "max", timing->us[timing->count - 1], 1);
    acre_json_object_end(json);
}

static void bench_read(struct acre_json *json, struct acre_devices *devices,
                       struct timing *timing) {
    uint32_t count = acre_devices_count(devices);
    struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
    for (uint64_t i = 0; i < timing->count; i++) {
        double start_us = now_us();
        acre_devices_read(devices, 0, NULL, 0, readings);
        timing->us[i] = now_us() - start_us;
    }
    put_timing(json, "read_us", timing);
    for (uint32_t i = 0; i < count; i++) {
        acre_device_reading_finish(&readings[i]);
    }
    free(readings);
}

enum part { POLL, SAMPLE, PROCESSES };

static void run_part(const struct acre_device_driver *driver, void *self, enum part part,
                     struct acre_process_list *list) {
    struct acre_device_sample sample;
    if (part == POLL) {
        driver->poll(self);
        return;
    }
    for (uint32_t i = 0; i < driver->count(self); i++) {
        list->count = 0;
        if (part == SAMPLE) {
            driver->sample(self, i, &sample, NULL);
        } else {
            driver->processes(self, i, list, NULL);
        }
    }
}

static void bench_driver(struct acre_json *json, const struct acre_device_driver *driver,
                         struct timing *timing) {
    static const char *const names[] = {"poll_us", "sample_us", "processes_us"};
    struct acre_device_options options = {0};
    struct acre_error err = {0};
    struct acre_process_list list = {0};
    void *self = NULL;
    double start_us = now_us();
    int r = driver->open(&options, &self, &err);
    double open_us = now_us() - start_us;
    acre_json_object(json);
    acre_json_put_string(json, "name", driver->name);
    acre_json_put_string(json, "answer", r == 0 ? "OK" : err.text);
    acre_json_put_double(json, "open_us", open_us, 1);
    acre_json_put_u64(json, "devices", r == 0 ? driver->count(self) : 0);
    const bool has[] = {driver->poll != NULL, true, driver->processes != NULL};
    for (enum part part = POLL; r == 0 && driver->count(self) > 0 && part <= PROCESSES; part++) {
        for (uint64_t i = 0; has[part] && i < timing->count; i++) {
            start_us = now_us();
            run_part(driver, self, part, &list);
            timing->us[i] = now_us() - start_us;
        }
        if (has[part]) {
            put_timing(json, names[part], timing);
        }
    }
    acre_json_object_end(json);
    free(list.items);
    driver->close(self);
}

static int run(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    static const struct acre_device_driver *const drivers[] = {
        &acre_driver_nvml, &acre_driver_amdgpu, &acre_driver_opencl, &acre_driver_cpu};
    const struct options *options = target;
    struct acre_device_options where = {0};
    struct timing timing = {acre_calloc(options->samples, sizeof(double)), options->samples};
    struct acre_node_info node;
    struct acre_buf out;
    struct acre_json json;
    acre_buf_init(&out, 1 << 20);
    double start_us = now_us();
    struct acre_devices *devices = acre_devices_open(&where);
    double discovery_us = now_us() - start_us;
    acre_node_read(&where, 0, &node);
    acre_json_begin(&json, &out, true);
    acre_json_object(&json);
    acre_json_put_string(&json, "bench", "device");
    acre_json_put_string(&json, "kernel", node.kernel);
    acre_json_put_u64(&json, "samples", options->samples);
    acre_json_put_u64(&json, "devices", acre_devices_count(devices));
    acre_json_put_double(&json, "discovery_us", discovery_us, 1);
    bench_read(&json, devices, &timing);
    acre_devices_close(devices);
    acre_json_key(&json, "drivers");
    acre_json_array(&json);
    for (size_t i = 0; i < ACRE_COUNT(drivers); i++) {
        bench_driver(&json, drivers[i], &timing);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    int r = acre_json_end(&json);
    puts(out.data);
    acre_buf_finish(&out);
    free(timing.us);
    return acre_error_exit(r);
}

int main(int argc, char **argv) {
    static const struct acre_opt rows[] = {
        {.name = "samples",
         .kind = ACRE_OPT_COUNT,
         .offset = offsetof(struct options, samples),
         .value = "N",
         .help = "readings to time (200)",
         .min = 1,
         .max = 1000000},
        {.name = "json",
         .kind = ACRE_OPT_FLAG,
         .offset = offsetof(struct options, json),
         .help = "print JSON (it always does)"},
    };
    static const struct acre_command command = {
        .name = "device",
        .summary = "time discovery and readings of this node's devices",
        .usage = "device [--samples N] --json",
        .options = rows,
        .option_count = ACRE_COUNT(rows),
        .run = run,
        .options_size = sizeof(struct options),
    };
    struct options options = {.samples = 200};
    struct acre_error err = {0};
    int count = 0;
    if (acre_opt_parse(&command, argc - 1, argv + 1, &options, &count, &err) < 0) {
        fprintf(stderr, "device: %s\n", err.text);
        return acre_error_exit(err.code < 0 ? err.code : ACRE_EINVALID);
    }
    return run(count, argv + 1, &options);
}
