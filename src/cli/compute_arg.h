/* compute_arg.h - kernel arguments from the command line, by parameter name: arrays from files or
 * filled with zeros, and numbers.
 *
 * Programs only, one thread. Errors name the option, parameter, value and what is accepted. */
#ifndef ACRE_CLI_COMPUTE_ARG_H
#define ACRE_CLI_COMPUTE_ARG_H

#include "cli/compute.h"
#include "cli/npy.h"

enum { ACRE_BINDINGS_MAX = 64 }; /* parameters of one kernel */

/* A parameter and what it is given. */
struct binding {
    struct acre_parameter parameter;
    const char *value; /* of --arg, behind the '='; NULL: not given */
    const char *out;   /* file of --out; NULL: none */
    bool is_array;     /* has `npy`, and memory */
    struct npy npy;
    int fd;                          /* of the file it comes from; -1: none */
    struct acre_buffer device, host; /* id 0: none */
    void *data;                      /* the array in host memory */
    struct acre_arg arg;             /* for the launch */
};

struct bindings {
    const char *kernel;
    uint32_t count;
    struct binding all[ACRE_BINDINGS_MAX];
};

/* The kernel's parameters, each with what the options say, judged; files are open, nothing is read.
 * Finish it in any case. */
int bindings_init(struct bindings *bindings, const struct acre_kernel *kernel,
                  const struct acre_opt_list *args, const struct acre_opt_list *outs,
                  struct acre_error *err);
void bindings_finish(struct bindings *bindings);
/* One number for a parameter that takes one. `what` begins the message. */
int binding_number(const char *what, const struct acre_parameter *parameter, const char *text,
                   struct acre_arg *ret_arg, struct acre_error *err);
/* What to call a parameter: its name, or its number from 1. Returns `text`. */
char *binding_name(const struct bindings *bindings, uint32_t index, char *text, size_t size);
/* How many items an array has for a kernel: vectors and structs count once. */
uint64_t binding_items(const struct binding *binding);

/* Memory, files read, copies to the device given to the stream. */
int bindings_load(struct bindings *bindings, struct target *target, struct acre_error *err);
/* Copies of what the kernel may have written, given to the stream: in `data` when it is synced. */
int bindings_fetch(struct bindings *bindings, struct target *target, struct acre_error *err);
/* The arrays on the device are freed; ACRE_ECORRUPT: something was written before or behind one. */
int bindings_check(struct bindings *bindings, struct target *target, struct acre_error *err);
/* Files of --out: all of them, or none. */
int bindings_write(struct bindings *bindings, struct acre_error *err);

#endif
