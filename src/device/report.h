/* report.h - a node and its devices as JSON, from the tables of columns.
 *
 * Every device and node carries "simulated"; unknown is null. One thread at a time. */
#ifndef ACRE_DEVICE_REPORT_H
#define ACRE_DEVICE_REPORT_H

#include "device/device.h"

/* One object: the node's columns, labels, "drivers" (what each answered) and "devices", each
 * with its columns, "links", "live" and "process_list" (null when the driver has none). */
void acre_report_node(struct acre_json *json, const struct acre_device_options *options,
                      const struct acre_node_info *node, const struct acre_devices *devices,
                      const struct acre_device_reading *readings);

#endif
