/* process_name.c - /proc/PID/cmdline, comm and status.
 *
 * Kernel threads and zombies have an empty cmdline; their comm is shown in brackets, as in ps. A
 * pid may be reused between the driver's answer and ours: a name is a hint for people; memory is
 * counted by pid either way. */
#include "device/process_name.h"

#include "device/value.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

void process_command(struct acre_str cmdline, struct acre_device_process *process) {
    char text[ACRE_COLUMN_TEXT_MAX];
    size_t length = ACRE_MIN(cmdline.length, sizeof(text) - 1);
    while (length > 0 && cmdline.data[length - 1] == '\0') {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        text[i] = cmdline.data[i] == '\0' ? ' ' : cmdline.data[i];
    }
    ACRE_PUT_TEXT(process, ACRE_PROCESS, command, ((struct acre_str){text, length}));
}

/* "Uid:\t1000\t1000\t1000\t1000": the second is the effective one. */
static void put_user(struct acre_str status, struct acre_device_process *process) {
    struct acre_str uids;
    struct acre_str part;
    uint64_t uid = 0;
    if (value_find(status, "Uid", ':', &uids, NULL) < 0) {
        return;
    }
    struct acre_split parts = acre_split_begin(uids, '\t');
    if (!acre_split_next(&parts, &part) || !acre_split_next(&parts, &part) ||
        value_u64(part, UINT32_MAX, &uid, NULL) < 0) {
        return;
    }
    char buffer[4096];
    char number[24];
    struct passwd entry;
    struct passwd *found = NULL;
    snprintf(number, sizeof(number), "%" PRIu64, uid);
    bool named = getpwuid_r((uid_t)uid, &entry, buffer, sizeof(buffer), &found) == 0 && found;
    ACRE_PUT_TEXT(process, ACRE_PROCESS, user, acre_str_from(named ? entry.pw_name : number));
}

void process_describe(struct acre_sysfs *proc, struct acre_device_process *process) {
    struct acre_str text;
    sysfs_at(proc, "%" PRIu64 "/cmdline", process->pid);
    if (sysfs_text(proc, &text) == 0) {
        process_command(text, process);
    }
    sysfs_at(proc, "%" PRIu64 "/comm", process->pid);
    if (!ACRE_HAS(process, ACRE_PROCESS, command) && sysfs_line(proc, &text) == 0) {
        char name[ACRE_COLUMN_TEXT_MAX];
        snprintf(name, sizeof(name), "[%.*s]", (int)ACRE_MIN(text.length, (size_t)64), text.data);
        ACRE_PUT_TEXT(process, ACRE_PROCESS, command, acre_str_from(name));
    }
    sysfs_at(proc, "%" PRIu64 "/status", process->pid);
    if (sysfs_text(proc, &text) == 0) {
        put_user(text, process);
    }
}
