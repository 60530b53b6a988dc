/* visible_nodes.c - the device nodes of the GPUs of a member.
 *
 * NVIDIA: /proc/driver/nvidia/gpus/<pci>/information gives the minor number of /dev/nvidia<minor>;
 * every process also needs nvidiactl and nvidia-uvm. They must be there already: a job may not
 * gain privileges, so the vendor's set-uid helper cannot make them for it. nvidia-modeset is for
 * displays and is left out. A MIG slice needs its two capability nodes as well.
 *
 * AMD: /dev/kfd and the render node. Others: the render node by PCI address. The numbers for the
 * filter are those of the node itself. */
#include "engine/lines.h"
#include "engine/rocm.h"
#include "engine/visible.h"

#include "core/str.h"
#include "core/units.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { PATH_BYTES = 256 };

struct finder {
    const char *proc, *sys, *dev;
    struct visible_nodes found;
};

void visible_nodes_finish(struct visible_nodes *nodes) {
    free(nodes->items);
    *nodes = (struct visible_nodes){0};
}

static void append(struct visible_nodes *nodes, const struct visible_node *node) {
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->items[i].path, node->path) == 0) {
            return;
        }
    }
    nodes->items = acre_grow(nodes->items, nodes->count, &nodes->capacity, sizeof(nodes->items[0]));
    nodes->items[nodes->count++] = *node;
}

static int add_node(struct finder *finder, const char *name, bool required,
                    struct acre_error *err) {
    struct visible_node node = {.rule = {.access = ACRE_BPF_READ | ACRE_BPF_WRITE}};
    struct stat info;
    int length = snprintf(node.path, sizeof(node.path), "%s/%s", finder->dev, name);
    if (length < 0 || (size_t)length >= sizeof(node.path)) {
        return acre_fail(err, ACRE_ELIMIT, "%s/%s: the path is too long; accepted: below %zu bytes",
                         finder->dev, name, sizeof(node.path));
    }
    if (stat(node.path, &info) != 0) {
        return required ? acre_fail_errno(err, errno, "%s", node.path) : 0;
    }
    if (!S_ISCHR(info.st_mode)) {
        return acre_fail(err, ACRE_ENOTFOUND, "%s is not a character device", node.path);
    }
    node.rule.type = 'c';
    node.rule.major = major(info.st_rdev);
    node.rule.minor = minor(info.st_rdev);
    append(&finder->found, &node);
    return 0;
}

static int add_capability(struct finder *finder, const char *path, struct acre_error *err) {
    uint32_t number;
    int r = lines_number(path, "DeviceFileMinor", ':', &number, err);
    if (r < 0) {
        return r;
    }
    char name[48];
    snprintf(name, sizeof(name), "nvidia-caps/nvidia-cap%u", number);
    return add_node(finder, name, true, err);
}

static int add_slice(struct finder *finder, const struct acre_run_device *device, uint32_t gpu,
                     struct acre_error *err) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/driver/nvidia/capabilities/gpu%u/mig/gi%u/access",
             finder->proc, gpu, device->gpu_instance);
    int r = add_capability(finder, path, err);
    if (r == 0) {
        snprintf(path, sizeof(path), "%s/driver/nvidia/capabilities/gpu%u/mig/gi%u/ci%u/access",
                 finder->proc, gpu, device->gpu_instance, device->compute_instance);
        r = add_capability(finder, path, err);
    }
    return r;
}

static int add_nvidia(struct finder *finder, const struct acre_run_device *device,
                      struct acre_error *err) {
    static const struct {
        const char *name;
        bool required;
    } common[] = {{"nvidiactl", true}, {"nvidia-uvm", true}, {"nvidia-uvm-tools", false}};
    char path[PATH_BYTES];
    uint32_t number;
    snprintf(path, sizeof(path), "%s/driver/nvidia/gpus/%s/information", finder->proc, device->pci);
    int r = lines_number(path, "Device Minor", ':', &number, err);
    if (r == 0) {
        char name[32];
        snprintf(name, sizeof(name), "nvidia%u", number);
        r = add_node(finder, name, true, err);
    }
    for (size_t i = 0; r == 0 && i < ACRE_COUNT(common); i++) {
        r = add_node(finder, common[i].name, common[i].required, err);
    }
    if (r == 0 && strncmp(device->id, "MIG-", 4) == 0) {
        r = add_slice(finder, device, number, err);
    }
    return r;
}

static int add_render(struct finder *finder, uint32_t number, struct acre_error *err) {
    char name[32];
    snprintf(name, sizeof(name), "dri/renderD%u", number);
    return add_node(finder, name, true, err);
}

/* The render nodes below the PCI device: one, as a rule. */
static int add_drm(struct finder *finder, const struct acre_run_device *device,
                   struct acre_error *err) {
    static const char prefix[] = "renderD";
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/drm", finder->sys, device->pci);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return acre_fail_errno(err, errno, "%s", path);
    }
    int r = 0;
    uint32_t found = 0;
    const struct dirent *entry;
    while (r == 0 && (entry = readdir(directory)) != NULL) {
        uint64_t number;
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) == 0 &&
            acre_parse_count("render", entry->d_name + sizeof(prefix) - 1, 0, UINT32_MAX, &number,
                             NULL) == 0) {
            r = add_render(finder, (uint32_t)number, err);
            found++;
        }
    }
    closedir(directory);
    return r == 0 && found == 0 ? acre_fail(err, ACRE_ENOTFOUND, "%s has no renderD*", path) : r;
}

static int add_amd(struct finder *finder, const struct acre_run_device *device,
                   struct acre_error *err) {
    uint32_t xcp = 0;
    bool slice = rocm_partition(device->id, &xcp);
    int r = add_node(finder, "kfd", true, err);
    if (r < 0) {
        return r;
    }
    struct rocm_gpu gpu = {0};
    r = rocm_find(finder->sys, device->pci, xcp, &gpu, err);
    if (r == 0 && gpu.render_minor > 0) {
        return add_render(finder, gpu.render_minor, err);
    }
    return r < 0 && slice ? r : add_drm(finder, device, err);
}

static int add_device(struct finder *finder, const struct acre_run_device *device,
                      struct acre_error *err) {
    const char *vendor = device->vendor != NULL ? device->vendor : "";
    if (device->pci == NULL || device->pci[0] == '\0') {
        return acre_fail(err, ACRE_ENOTFOUND, "its PCI address is unknown");
    }
    if (strcasecmp(vendor, "nvidia") == 0) {
        return add_nvidia(finder, device, err);
    }
    return strcasecmp(vendor, "amd") == 0 ? add_amd(finder, device, err)
                                          : add_drm(finder, device, err);
}

int visible_find_nodes(const struct visible_roots *roots, const struct acre_run_device *devices,
                       uint32_t count, uint32_t member, struct visible_nodes *nodes,
                       struct acre_error *err) {
    struct finder finder = {
        .proc = roots != NULL && roots->proc != NULL ? roots->proc : "/proc",
        .sys = roots != NULL && roots->sys != NULL ? roots->sys : "/sys",
        .dev = roots != NULL && roots->dev != NULL ? roots->dev : "/dev",
    };
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        bool wanted = member == ACRE_VISIBLE_ALL || devices[i].member == member;
        if (wanted && !devices[i].simulated) {
            r = add_device(&finder, &devices[i], err);
            if (r < 0) {
                r = acre_fail_in(err, r, "device nodes of %s", devices[i].id);
            }
        }
    }
    for (uint32_t i = 0; r == 0 && i < finder.found.count; i++) {
        append(nodes, &finder.found.items[i]);
    }
    visible_nodes_finish(&finder.found);
    return r;
}
