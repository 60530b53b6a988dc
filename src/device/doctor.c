/* doctor.c - findings, one examiner after another.
 *
 * The PCI bus separates "absent" from "problem": it shows the GPU even if no driver is loaded, so a
 * missing library needs a fix on a machine that has the card and is only a remark on others. Advice
 * is a table by driver and kind of failure. */
#include "device/doctor.h"

#include "device/sysfs.h"
#include "device/value.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct examination {
    const struct acre_doctor_options *options;
    const struct acre_devices *devices;
    const struct acre_device_reading *readings;
    struct acre_doctor *doctor;
    struct acre_sysfs sys;
    struct acre_sysfs proc;
    uint32_t nvidia_on_bus;
    uint32_t amd_on_bus;
};

const char *acre_finding_status_name(enum acre_finding_status status) {
    static const char *const names[] = {"ok", "absent", "note", "problem"};
    ACRE_ASSERT((size_t)status < ACRE_COUNT(names));
    return names[status];
}

/* The next finding; past the maximum the last one is overwritten. */
static struct acre_finding *add(struct examination *ex, enum acre_finding_status status,
                                const char *area, const char *tried) {
    struct acre_doctor *doctor = ex->doctor;
    uint32_t at = ACRE_MIN(doctor->count, (uint32_t)ACRE_FINDINGS_MAX - 1);
    doctor->count = at + 1;
    doctor->problems += status == ACRE_FINDING_PROBLEM;
    struct acre_finding *finding = &doctor->findings[at];
    *finding = (struct acre_finding){.status = status};
    snprintf(finding->area, sizeof(finding->area), "%s", area);
    snprintf(finding->tried, sizeof(finding->tried), "%s", tried);
    return finding;
}

static void say(char text[ACRE_FINDING_TEXT_MAX], const char *format, ...) ACRE_PRINTF(2, 3);
static void say(char text[ACRE_FINDING_TEXT_MAX], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, ACRE_FINDING_TEXT_MAX, format, arguments);
    va_end(arguments);
}

/* GPUs are display controllers: PCI class 0x03xxxx, or 0x12xxxx (accelerators). */
static void examine_bus(struct examination *ex) {
    char path[ACRE_SYSFS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices", ex->sys.root);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    uint32_t total = 0;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        uint64_t vendor = 0;
        uint64_t pci_class = 0;
        sysfs_at(&ex->sys, "bus/pci/devices/%s/class", entry->d_name);
        if (entry->d_name[0] == '.' || sysfs_u64(&ex->sys, 0xffffff, &pci_class) < 0) {
            continue;
        }
        total++;
        sysfs_at(&ex->sys, "bus/pci/devices/%s/vendor", entry->d_name);
        if ((pci_class >> 16 == 0x03 || pci_class >> 16 == 0x12) &&
            sysfs_u64(&ex->sys, 0xffff, &vendor) == 0) {
            ex->nvidia_on_bus += vendor == 0x10de;
            ex->amd_on_bus += vendor == 0x1002;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    bool any = ex->nvidia_on_bus + ex->amd_on_bus > 0;
    struct acre_finding *finding =
        add(ex, any ? ACRE_FINDING_OK : ACRE_FINDING_ABSENT, "pci bus", path);
    if (directory == NULL) {
        say(finding->answer, "cannot be read");
    } else {
        say(finding->answer, "%u PCI function%s: %u NVIDIA GPU%s, %u AMD GPU%s", total,
            total == 1 ? "" : "s", ex->nvidia_on_bus, ex->nvidia_on_bus == 1 ? "" : "s",
            ex->amd_on_bus, ex->amd_on_bus == 1 ? "" : "s");
    }
}

static const char *tried_by(const char *driver) {
    static const struct {
        const char *driver;
        const char *tried;
    } rows[] = {
        {"nvml", "libnvidia-ml.so.1"},
        {"amdgpu", "/sys/class/drm/card*/device, /sys/class/kfd"},
        {"opencl", "libOpenCL.so.1"},
        {"cpu", "/proc/cpuinfo, /proc/meminfo"},
        {"sim", "the simulated-device file"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (strcmp(rows[i].driver, driver) == 0) {
            return rows[i].tried;
        }
    }
    return driver;
}

static const char *advice_for(const char *driver, int code, bool on_bus) {
    static const struct {
        const char *driver;
        int code;
        bool on_bus;
        const char *advice;
    } rows[] = {
        {"nvml", ACRE_EUNAVAILABLE, false,
         "nothing to do, unless this machine should have an NVIDIA GPU; in a container, pass it in "
         "(docker run --gpus all)"},
        {"nvml", ACRE_EUNAVAILABLE, true,
         "install the NVIDIA driver (Debian: nvidia-driver) and load it (modprobe nvidia); in a "
         "container, pass the GPU in (docker run --gpus all)"},
        {"nvml", ACRE_EUNSUPPORTED, false, "upgrade the NVIDIA driver to R450 or newer"},
        {"nvml", ACRE_EUNSUPPORTED, true, "upgrade the NVIDIA driver to R450 or newer"},
        {"nvml", ACRE_EDENIED, false, "give this user access to /dev/nvidiactl and /dev/nvidia*"},
        {"nvml", ACRE_EDENIED, true, "give this user access to /dev/nvidiactl and /dev/nvidia*"},
        {"amdgpu", ACRE_EUNAVAILABLE, false,
         "nothing to do, unless this machine should have an AMD GPU"},
        {"amdgpu", ACRE_EUNAVAILABLE, true,
         "load the kernel driver (modprobe amdgpu) and check dmesg; Debian's firmware-amd-graphics "
         "has the firmware"},
        {"opencl", ACRE_EUNAVAILABLE, false,
         "only needed for GPUs of other vendors: install ocl-icd-libopencl1 and the vendor's "
         "OpenCL driver"},
        {"opencl", ACRE_EUNSUPPORTED, false,
         "install ocl-icd-libopencl1; the installed libOpenCL is not usable"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (strcmp(rows[i].driver, driver) == 0 && rows[i].code == code &&
            rows[i].on_bus == on_bus) {
            return rows[i].advice;
        }
    }
    return "see the message";
}

static void examine_notes(struct examination *ex, const struct acre_device_attempt *attempt) {
    struct acre_split lines = acre_split_begin(acre_str_from(attempt->notes), '\n');
    struct acre_str line;
    while (acre_split_next(&lines, &line)) {
        if (line.length > 0) {
            struct acre_finding *finding =
                add(ex, ACRE_FINDING_NOTE, attempt->driver->name, tried_by(attempt->driver->name));
            acre_str_show(line, finding->answer, sizeof(finding->answer));
        }
    }
}

static void examine_attempt(struct examination *ex, const struct acre_device_attempt *attempt) {
    const char *name = attempt->driver->name;
    bool nvidia = strcmp(name, "nvml") == 0;
    bool amd = strcmp(name, "amdgpu") == 0;
    bool on_bus = (nvidia && ex->nvidia_on_bus > 0) || (amd && ex->amd_on_bus > 0);
    if (attempt->skipped) {
        struct acre_finding *finding = add(ex, ACRE_FINDING_OK, name, tried_by(name));
        say(finding->answer, "not needed: a GPU was found");
        return;
    }
    if (attempt->code < 0) {
        /* A vendor library that answers is proof of a driver: then a refusal is a problem even
         * when the PCI bus is hidden. */
        bool refused = nvidia && strstr(attempt->err.text, "nvmlInit_v2 returned") != NULL;
        struct acre_finding *finding =
            add(ex, on_bus || refused ? ACRE_FINDING_PROBLEM : ACRE_FINDING_ABSENT, name,
                tried_by(name));
        say(finding->answer, "%s", attempt->err.text);
        say(finding->advice, "%s",
            refused && attempt->code == ACRE_EUNAVAILABLE
                ? "the library is installed, but the kernel driver does not work with it: see the "
                  "message"
                : advice_for(name, attempt->code, on_bus || refused));
        return;
    }
    bool missing = on_bus && attempt->found == 0;
    struct acre_finding *finding =
        add(ex, missing ? ACRE_FINDING_PROBLEM : ACRE_FINDING_OK, name, tried_by(name));
    say(finding->answer, "%u device%s found, %u listed, in %" PRIu64 ".%" PRIu64 " ms",
        attempt->found, attempt->found == 1 ? "" : "s", attempt->listed, attempt->open_us / 1000,
        attempt->open_us % 1000 / 100);
    if (missing) {
        say(finding->advice, "the PCI bus shows a GPU that the driver does not list; check dmesg");
    }
    examine_notes(ex, attempt);
}

static void examine_devices(struct examination *ex) {
    for (uint32_t i = 0; i < acre_devices_count(ex->devices); i++) {
        const struct acre_device_info *info = acre_devices_info(ex->devices, i);
        const struct acre_device_sample *sample = &ex->readings[i].sample;
        bool gpu = strcmp(info->kind, "gpu") == 0; /* slices are part of theirs */
        bool well = strcmp(sample->state, "ok") == 0;
        ex->doctor->gpus += gpu && well;
        if (!well) {
            struct acre_finding *finding = add(ex, ACRE_FINDING_PROBLEM, info->driver, info->id);
            say(finding->answer, "%s: %s", sample->state, sample->reason);
            say(finding->advice, "drain this device; reset it or reboot the node");
        }
    }
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 ..." */
static bool find_version(struct acre_str text, struct acre_str *ret_version) {
    struct acre_split words = acre_split_begin(text, ' ');
    struct acre_str word;
    while (acre_split_next(&words, &word)) {
        size_t dots = 0;
        bool number = word.length >= 5;
        for (size_t i = 0; i < word.length && number; i++) {
            dots += word.data[i] == '.';
            number = word.data[i] == '.' || (word.data[i] >= '0' && word.data[i] <= '9');
        }
        if (number && dots >= 1) {
            *ret_version = word;
            return true;
        }
    }
    return false;
}

static void examine_versions(struct examination *ex) {
    struct acre_str text;
    struct acre_str version;
    sysfs_at(&ex->proc, "driver/nvidia/version");
    if (sysfs_text(&ex->proc, &text) < 0) {
        return; /* no NVIDIA kernel driver; the nvml finding says so */
    }
    const char *library = "";
    for (uint32_t i = 0; i < acre_devices_count(ex->devices); i++) {
        const struct acre_device_info *info = acre_devices_info(ex->devices, i);
        library = strcmp(info->driver, "nvml") == 0 ? info->driver_version : library;
    }
    bool found = find_version(text, &version);
    bool same = found && acre_str_is(version, library);
    bool differ = found && library[0] != '\0' && !same;
    struct acre_finding *finding =
        add(ex, differ ? ACRE_FINDING_PROBLEM : ACRE_FINDING_OK, "versions", ex->proc.path);
    char shown[64] = "unknown";
    if (found) {
        acre_str_show(version, shown, sizeof(shown));
    }
    say(finding->answer, "kernel driver %s, library %s", shown,
        library[0] != '\0' ? library : "unknown");
    if (differ) {
        say(finding->advice, "the versions must match: reload the kernel driver or reboot");
    }
}

static void examine_device_file(struct examination *ex, const char *name, bool wanted) {
    char path[ACRE_SYSFS_PATH_MAX];
    const char *root = ex->options->dev_root != NULL ? ex->options->dev_root : "/dev";
    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (access(path, F_OK) != 0) {
        if (wanted) {
            struct acre_finding *finding = add(ex, ACRE_FINDING_NOTE, "permissions", path);
            say(finding->answer, "%s", strerror(errno));
            say(finding->advice, "in a container, pass the device in; otherwise load the driver");
        }
        return;
    }
    bool usable = access(path, R_OK | W_OK) == 0;
    struct acre_finding *finding =
        add(ex, usable ? ACRE_FINDING_OK : ACRE_FINDING_PROBLEM, "permissions", path);
    say(finding->answer, "%s", usable ? "readable and writable" : strerror(errno));
    if (!usable) {
        say(finding->advice,
            "add this user to the file's group (render, video), then log in again");
    }
}

static void examine_device_files(struct examination *ex) {
    static const char *const nvidia[] = {"nvidiactl", "nvidia-uvm"};
    for (size_t i = 0; i < ACRE_COUNT(nvidia); i++) {
        examine_device_file(ex, nvidia[i], ex->nvidia_on_bus > 0);
    }
    struct acre_sysfs dev;
    uint32_t numbers[64];
    sysfs_init(&dev, ex->options->dev_root != NULL ? ex->options->dev_root : "/dev");
    sysfs_at(&dev, ".");
    uint32_t count = sysfs_numbers(&dev, "nvidia", numbers, ACRE_COUNT(numbers));
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "nvidia%u", numbers[i]);
        examine_device_file(ex, name, false);
    }
    examine_device_file(ex, "kfd", ex->amd_on_bus > 0);
    sysfs_at(&dev, "dri");
    count = sysfs_numbers(&dev, "renderD", numbers, ACRE_COUNT(numbers));
    for (uint32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "dri/renderD%u", numbers[i]);
        examine_device_file(ex, name, false);
    }
    sysfs_finish(&dev);
}

static void examine_cgroups(struct examination *ex) {
    struct acre_str text;
    struct acre_finding *finding = NULL;
    sysfs_at(&ex->sys, "fs/cgroup/cgroup.controllers");
    if (sysfs_line(&ex->sys, &text) == 0) {
        finding = add(ex, ACRE_FINDING_OK, "cgroups", ex->sys.path);
        say(finding->answer, "version 2 (unified), controllers: %.*s",
            (int)ACRE_MIN(text.length, (size_t)200), text.data);
        return;
    }
    sysfs_at(&ex->sys, "fs/cgroup/unified/cgroup.controllers");
    if (sysfs_text(&ex->sys, &text) == 0) {
        finding = add(ex, ACRE_FINDING_NOTE, "cgroups", ex->sys.path);
        say(finding->answer, "hybrid: version 2 next to version 1");
        say(finding->advice,
            "job limits work; for version 2 alone, boot with systemd.unified_cgroup_hierarchy=1");
        return;
    }
    sysfs_at(&ex->sys, "fs/cgroup/memory/cgroup.procs");
    bool old = access(ex->sys.path, F_OK) == 0;
    finding = add(ex, ACRE_FINDING_NOTE, "cgroups", ex->sys.path);
    say(finding->answer, "%s", old ? "version 1 only" : "not mounted, or hidden in a container");
    say(finding->advice, "jobs will run without CPU and memory limits; mount cgroup version 2");
}

static void examine_mps(struct examination *ex) {
    const char *directory = ex->options->mps_directory;
    if (directory == NULL) {
        directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    }
    directory = directory != NULL ? directory : "/tmp/nvidia-mps";
    char path[ACRE_SYSFS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/control", directory);
    bool present = access(path, F_OK) == 0;
    struct acre_finding *finding =
        add(ex, present ? ACRE_FINDING_OK : ACRE_FINDING_ABSENT, "mps", path);
    say(finding->answer, "%s", present ? "the MPS control daemon's pipe exists" : strerror(errno));
    if (!present) {
        say(finding->advice,
            ex->nvidia_on_bus > 0
                ? "isolation 'mps' needs it; start it with nvidia-cuda-mps-control -d"
                : "nothing to do: MPS is for NVIDIA GPUs");
    }
}

static void decide(struct examination *ex) {
    struct acre_doctor *doctor = ex->doctor;
    bool simulated = ex->options->devices.sim != NULL;
    if (doctor->problems > 0) {
        say(doctor->verdict, "%u problem%s, %u usable GPU%s: see the lines marked 'problem'",
            doctor->problems, doctor->problems == 1 ? "" : "s", doctor->gpus,
            doctor->gpus == 1 ? "" : "s");
    } else if (doctor->gpus > 0) {
        say(doctor->verdict, "ready: %u %sGPU%s", doctor->gpus, simulated ? "simulated " : "",
            doctor->gpus == 1 ? "" : "s");
    } else {
        say(doctor->verdict, "no GPU on this machine; jobs can use the CPU, or try simulated "
                             "devices (acre gpus --sim FILE)");
    }
}

void acre_doctor_examine(const struct acre_doctor_options *options,
                         const struct acre_devices *devices,
                         const struct acre_device_reading *readings,
                         struct acre_doctor *ret_doctor) {
    *ret_doctor = (struct acre_doctor){0};
    struct examination ex = {
        .options = options, .devices = devices, .readings = readings, .doctor = ret_doctor};
    const struct acre_device_options *roots = &options->devices;
    sysfs_init(&ex.sys, roots->sysfs_root != NULL ? roots->sysfs_root : "/sys");
    sysfs_init(&ex.proc, roots->proc_root != NULL ? roots->proc_root : "/proc");
    examine_bus(&ex);
    uint32_t count = 0;
    const struct acre_device_attempt *attempts = acre_devices_attempts(devices, &count);
    for (uint32_t i = 0; i < count; i++) {
        examine_attempt(&ex, &attempts[i]);
    }
    examine_devices(&ex);
    examine_versions(&ex);
    examine_device_files(&ex);
    examine_cgroups(&ex);
    examine_mps(&ex);
    decide(&ex);
    sysfs_finish(&ex.sys);
    sysfs_finish(&ex.proc);
}
