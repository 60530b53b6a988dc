/* doctor.h - why the devices are what they are: what was tried, the result, what to do.
 *
 * Looks at drivers, the PCI bus, device files, driver versions, cgroups and MPS; changes nothing.
 * Roots are parameters for tests. One thread at a time. It does not print. */
#ifndef ACRE_DEVICE_DOCTOR_H
#define ACRE_DEVICE_DOCTOR_H

#include "device/device.h"

enum acre_finding_status {
    ACRE_FINDING_OK,
    ACRE_FINDING_ABSENT,  /* not here, and nothing says it should be */
    ACRE_FINDING_NOTE,    /* works, but something is odd */
    ACRE_FINDING_PROBLEM, /* hardware is here and cannot be used */
};

enum { ACRE_FINDINGS_MAX = 128, ACRE_FINDING_TEXT_MAX = 384 };

struct acre_finding {
    enum acre_finding_status status;
    char area[24];                      /* "nvml", "permissions" */
    char tried[ACRE_FINDING_TEXT_MAX];  /* library or path */
    char answer[ACRE_FINDING_TEXT_MAX]; /* what it said */
    char advice[ACRE_FINDING_TEXT_MAX]; /* "" when nothing is to be done */
};

struct acre_doctor_options {
    struct acre_device_options devices;
    const char *dev_root;      /* NULL: "/dev" */
    const char *mps_directory; /* NULL: $CUDA_MPS_PIPE_DIRECTORY or /tmp/nvidia-mps */
};

struct acre_doctor {
    struct acre_finding findings[ACRE_FINDINGS_MAX];
    uint32_t count;
    uint32_t gpus;     /* whole GPUs that can be used */
    uint32_t problems; /* findings of that status */
    char verdict[ACRE_FINDING_TEXT_MAX];
};

/* `devices` were opened with options->devices; `readings` are theirs. */
void acre_doctor_examine(const struct acre_doctor_options *options,
                         const struct acre_devices *devices,
                         const struct acre_device_reading *readings,
                         struct acre_doctor *ret_doctor);

const char *acre_finding_status_name(enum acre_finding_status status); /* "ok", "problem" */

#endif
