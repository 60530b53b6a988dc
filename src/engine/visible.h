/* visible.h - what a member of a run sees of its GPUs: environment and device nodes.
 *
 * Environment variables are how CUDA and ROCm choose devices; they are no fence. The fence is
 * the list of nodes, put into force by bpf.h. Loop thread or shim; it reads small files of /proc,
 * /sys and /dev and changes nothing. */
#ifndef ACRE_ENGINE_VISIBLE_H
#define ACRE_ENGINE_VISIBLE_H

#include "engine/bpf.h"
#include "engine/engine.h"

struct visible_roots {
    const char *proc; /* NULL: "/proc" */
    const char *sys;  /* NULL: "/sys" */
    const char *dev;  /* NULL: "/dev" */
};

/* The device of `member` that needs an MPS control daemon (mps.h): an NVIDIA one with isolation
 * "mps" and a share under 1000. `*ret_device` is NULL when there is none. ACRE_EUNSUPPORTED: more
 * than one, which one process cannot use (a client joins one daemon). */
int visible_mps(const struct acre_run_device *devices, uint32_t count, uint32_t member,
                const struct acre_run_device **ret_device, struct acre_error *err);

/* Append "NAME=value" strings, each with its NUL, for the devices of `member` (the others are
 * passed over). They must win over the job's own of the same name. A member without GPUs is told
 * so, and sees none. `pipe_directory` is that of the daemon that visible_mps asks for, NULL
 * otherwise (its log directory is not for clients). ACRE_EUNAVAILABLE: it is missing;
 * ACRE_ENOTFOUND: a device that must be named by its number was not found under `roots`. On failure
 * `env` is as it was. */
int visible_environment(const struct visible_roots *roots, const struct acre_run_device *devices,
                        uint32_t count, uint32_t member, const char *pipe_directory,
                        struct acre_buf *env, struct acre_error *err);

enum { ACRE_VISIBLE_PATH_MAX = 96 };

struct visible_node {
    char path[ACRE_VISIBLE_PATH_MAX]; /* "/dev/nvidia0" */
    struct bpf_rule rule;             /* read and write */
};

struct visible_nodes {
    struct visible_node *items;
    uint32_t count;
    uint32_t capacity;
};
void visible_nodes_finish(struct visible_nodes *nodes);

/* Add the nodes that the devices of `member` need (ACRE_VISIBLE_ALL: of all members), each once.
 * ACRE_ENOTFOUND names a node or a file that must be there and is not; simulated devices need
 * none. On failure `nodes` is as it was. */
#define ACRE_VISIBLE_ALL UINT32_MAX
int visible_find_nodes(const struct visible_roots *roots, const struct acre_run_device *devices,
                       uint32_t count, uint32_t member, struct visible_nodes *nodes,
                       struct acre_error *err);

#endif
