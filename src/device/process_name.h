/* process_name.h - a process's user and command, from /proc.
 *
 * One thread at a time (it uses the caller's acre_sysfs). */
#ifndef ACRE_DEVICE_PROCESS_NAME_H
#define ACRE_DEVICE_PROCESS_NAME_H

#include "device/column.h"
#include "device/sysfs.h"

/* Fill user and command of `process` from its pid. What is gone or hidden stays unknown. */
void process_describe(struct acre_sysfs *proc, struct acre_device_process *process);

/* The words of /proc/PID/cmdline joined by blanks; control characters become '?'. Pure. */
void process_command(struct acre_str cmdline, struct acre_device_process *process);

#endif
