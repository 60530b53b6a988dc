/* device.c - how long it takes to find the devices of this node and to read all of them.
 *
 *   build/bench/device --json [--samples 200]
 *
 * "discovery_us" is one open of every driver in turn, as the first command of a day does it.
 * "read_us" is a full live reading of the node: events, every device's sample, its processes
 * with user and command, and foreign memory. "drivers" then times the parts of one reading,
 * driver by driver: where the time goes. */
#include "bench.h"

#include "device/device.h"
#include "device/node.h"

#include <stdlib.h>

struct options {
    bool json; /* bench_main's */
    uint64_t samples;
};

#define US_NS 1000.0

static void bench_read(struct acre_json *json, struct acre_devices *devices,
                       struct bench_times *times) {
    uint32_t count = acre_devices_count(devices);
    struct acre_device_reading *readings = acre_calloc(count + 1U, sizeof(*readings));
    for (uint64_t i = 0; i < times->count; i++) {
        double start_ns = bench_now_ns();
        acre_devices_read(devices, 0, NULL, 0, readings);
        times->ns[i] = bench_now_ns() - start_ns;
    }
    bench_put_times(json, "read_us", times, US_NS);
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
                         struct bench_times *times) {
    static const char *const names[] = {"poll_us", "sample_us", "processes_us"};
    struct acre_device_options options = {0};
    struct acre_error err = {0};
    struct acre_process_list list = {0};
    void *self = NULL;
    double start_ns = bench_now_ns();
    int r = driver->open(&options, &self, &err);
    double open_us = (bench_now_ns() - start_ns) / US_NS;
    acre_json_object(json);
    acre_json_put_string(json, "name", driver->name);
    acre_json_put_string(json, "answer", r == 0 ? "OK" : err.text);
    acre_json_put_double(json, "open_us", open_us, 1);
    acre_json_put_u64(json, "devices", r == 0 ? driver->count(self) : 0);
    const bool has[] = {driver->poll != NULL, true, driver->processes != NULL};
    for (enum part part = POLL; r == 0 && driver->count(self) > 0 && part <= PROCESSES; part++) {
        for (uint64_t i = 0; has[part] && i < times->count; i++) {
            start_ns = bench_now_ns();
            run_part(driver, self, part, &list);
            times->ns[i] = bench_now_ns() - start_ns;
        }
        if (has[part]) {
            bench_put_times(json, names[part], times, US_NS);
        }
    }
    acre_json_object_end(json);
    free(list.items);
    driver->close(self);
}

static void run(const void *context, struct acre_json *json) {
    static const struct acre_device_driver *const drivers[] = {
        &acre_driver_nvml, &acre_driver_amdgpu, &acre_driver_opencl, &acre_driver_cpu};
    const struct options *options = context;
    struct acre_device_options where = {0};
    struct bench_times times = {acre_calloc(options->samples, sizeof(double)), options->samples};
    struct acre_node_info node;
    double start_ns = bench_now_ns();
    struct acre_devices *devices = acre_devices_open(&where);
    double discovery_us = (bench_now_ns() - start_ns) / US_NS;
    acre_node_read(&where, 0, &node);
    acre_json_put_string(json, "kernel", node.kernel);
    acre_json_put_u64(json, "samples", options->samples);
    acre_json_put_u64(json, "devices", acre_devices_count(devices));
    acre_json_put_double(json, "discovery_us", discovery_us, 1);
    bench_read(json, devices, &times);
    acre_devices_close(devices);
    acre_json_key(json, "drivers");
    acre_json_array(json);
    for (size_t i = 0; i < ACRE_COUNT(drivers); i++) {
        bench_driver(json, drivers[i], &times);
    }
    acre_json_array_end(json);
    free(times.ns);
}

static const struct acre_opt rows[] = {
    {.name = "samples",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, samples),
     .value = "N",
     .help = "readings to time (200)",
     .min = 1,
     .max = 1000000},
};

static const struct options defaults = {.samples = 200};

static const struct acre_command command = {
    .name = "device",
    .summary = "time discovery and readings of this node's devices",
    .usage = "device [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
