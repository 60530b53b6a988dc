/* report.c - the JSON document, a walk over the records. */
#include "device/report.h"

#include "device/sim.h"

static void write_labels(struct acre_json *json, const struct acre_device_options *options) {
    acre_json_key(json, "labels");
    acre_json_object(json);
    if (options->sim != NULL) {
        const struct acre_sim_node *node = acre_sim_node(options->sim, options->sim_node);
        const struct acre_sim_label *labels = acre_sim_labels(options->sim, node);
        for (uint32_t i = 0; i < node->label_count; i++) {
            acre_json_put_string(json, labels[i].key, labels[i].value);
        }
    }
    acre_json_object_end(json);
}

static void write_drivers(struct acre_json *json, const struct acre_devices *devices) {
    uint32_t count = 0;
    const struct acre_device_attempt *attempts = acre_devices_attempts(devices, &count);
    acre_json_key(json, "drivers");
    acre_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct acre_device_attempt *attempt = &attempts[i];
        acre_json_object(json);
        acre_json_put_string(json, "name", attempt->driver->name);
        acre_json_put_string(json, "answer",
                             attempt->skipped ? "skipped" : acre_error_name(attempt->code));
        acre_json_put_string(json, "text", attempt->code < 0 ? attempt->err.text : NULL);
        acre_json_put_u64(json, "found", attempt->found);
        acre_json_put_u64(json, "listed", attempt->listed);
        acre_json_put_u64(json, "open_us", attempt->open_us);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static void write_links(struct acre_json *json, const struct acre_devices *devices,
                        uint32_t index) {
    uint32_t count = 0;
    const struct acre_device_link *links = acre_devices_links(devices, &count);
    acre_json_key(json, "links");
    acre_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        if (links[i].a != index && links[i].b != index) {
            continue;
        }
        uint32_t peer = links[i].a == index ? links[i].b : links[i].a;
        acre_json_object(json);
        acre_json_put_string(json, "peer", acre_devices_info(devices, peer)->id);
        acre_json_put_string(json, "kind", link_name(links[i].kind));
        if (links[i].count > 0) {
            acre_json_put_u64(json, "count", links[i].count);
        } else {
            acre_json_put_null(json, "count");
        }
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static void write_processes(struct acre_json *json, const struct acre_device_reading *reading) {
    acre_json_key(json, "process_list");
    if (!ACRE_HAS(&reading->sample, ACRE_SAMPLE, processes)) {
        acre_json_null(json);
        return;
    }
    acre_json_array(json);
    for (uint32_t i = 0; i < reading->processes.count; i++) {
        acre_json_object(json);
        record_json(json, &process_type, &reading->processes.items[i]);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

void acre_report_node(struct acre_json *json, const struct acre_device_options *options,
                      const struct acre_node_info *node, const struct acre_devices *devices,
                      const struct acre_device_reading *readings) {
    acre_json_object(json);
    record_json(json, &node_type, node);
    write_labels(json, options);
    write_drivers(json, devices);
    acre_json_key(json, "devices");
    acre_json_array(json);
    for (uint32_t i = 0; i < acre_devices_count(devices); i++) {
        acre_json_object(json);
        record_json(json, &info_type, acre_devices_info(devices, i));
        write_links(json, devices, i);
        acre_json_key(json, "live");
        acre_json_object(json);
        record_json(json, &sample_type, &readings[i].sample);
        acre_json_object_end(json);
        write_processes(json, &readings[i]);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
    acre_json_object_end(json);
}
