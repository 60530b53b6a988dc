/* sim.h - clusters that do not exist, from a small text file; the top of examples/two-nodes.acre
 * describes the format.
 *
 * Parsing is pure. Equal devices stay one group, so 100,000 nodes fit in a few megabytes. Any
 * thread may read a parsed cluster. Everything that shows one must say that it is simulated. */
#ifndef ACRE_DEVICE_SIM_H
#define ACRE_DEVICE_SIM_H

#include "core/error.h"
#include "core/str.h"

enum {
    ACRE_SIM_NODES_MAX = 100000,  /* ten times the largest clusters there are */
    ACRE_SIM_DEVICES_MAX = 64,    /* on one node; the densest machines sold have 16 to 32 */
    ACRE_SIM_LABELS_MAX = 32,     /* on one node */
    ACRE_SIM_NAME_MAX = 63,       /* a DNS label */
    ACRE_SIM_FILE_MAX = 64 << 20, /* 100,000 nodes with some lines each */
};

struct acre_sim_label {
    const char *key;
    const char *value;
};

/* Which of the optional attributes were given. */
enum {
    ACRE_SIM_UTILIZATION = 1 << 0,
    ACRE_SIM_TEMPERATURE = 1 << 1,
    ACRE_SIM_POWER = 1 << 2,
    ACRE_SIM_POWER_LIMIT = 1 << 3,
};

struct acre_sim_group {
    const char *model;
    const char *vendor; /* "" when not given */
    uint64_t memory_mib;
    uint64_t used_mib;
    uint32_t count;
    uint32_t island; /* devices per island, counted from the group's first; 0: no fast links */
    uint32_t given;  /* bits above */
    uint32_t utilization_pct;
    int32_t temperature_c;
    uint32_t power_w;
    uint32_t power_limit_w;
    bool lost;
};

struct acre_sim_node {
    const char *name;
    uint64_t cpu_milli; /* 0: not given */
    uint64_t ram_mib;   /* 0: not given */
    uint32_t first_label, label_count;
    uint32_t first_group, group_count;
    uint32_t device_count; /* sum over its groups */
};

struct acre_sim_cluster;

/* `name` is the file's, for messages: "file:line: ...". On failure nothing is returned. */
int acre_sim_parse(const char *name, struct acre_str text, struct acre_sim_cluster **ret_cluster,
                   struct acre_error *err);
int acre_sim_load(const char *path, struct acre_sim_cluster **ret_cluster, struct acre_error *err);
void acre_sim_destroy(struct acre_sim_cluster *cluster); /* NULL is fine */

uint32_t acre_sim_node_count(const struct acre_sim_cluster *cluster);
const struct acre_sim_node *acre_sim_node(const struct acre_sim_cluster *cluster, uint32_t index);
/* The node's groups and labels: node->group_count and node->label_count of them. */
const struct acre_sim_group *acre_sim_groups(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node);
const struct acre_sim_label *acre_sim_labels(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node);

/* The group of the node's device `index` (below device_count), and its index in the group. */
const struct acre_sim_group *acre_sim_device(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node, uint32_t index,
                                             uint32_t *ret_index);
/* "sim:<node>/<index>"; the one name of a simulated device everywhere. */
char *acre_sim_device_id(const struct acre_sim_node *node, uint32_t index, char *text, size_t size);

#endif
