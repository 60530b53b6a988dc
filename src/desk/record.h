/* record.h - a job on its way between the scheduler and the store.
 *
 * A row has two JSON texts. `spec` says what was asked and how to start it; it is written once and
 * is the same for all members of an array. `detail` says what changes: open dependencies, times,
 * the parts held (by node name and device id, never by index), how the last run ended. Fields that
 * have their default value are left out of both.
 *
 * Loop thread only (it reads and writes names of the ledger). Pure otherwise. */
#ifndef ACRE_DESK_RECORD_H
#define ACRE_DESK_RECORD_H

#include "core/arena.h"
#include "core/json.h"
#include "sched/job.h"
#include "store/rows.h"

/* How to start a job: what the scheduler does not know. Strings and values are borrowed. */
struct acre_recipe {
    const json_t *command;     /* a string for /bin/sh -c, or an array of strings; NULL: none */
    const char *script;        /* NULL: none */
    const json_t *environment; /* an object of strings; NULL: none */
    const char *directory;     /* "": the home directory */
    uint64_t warn_ms, grace_ms;
    int warn_signal; /* 0: the default */
    bool no_network;
    bool external; /* runs elsewhere: no engine starts it, its owner says when it has ended */
};

enum {
    ACRE_RECORD_SPEC_MAX = 2 << 20,   /* a body of 1 MiB, escaped */
    ACRE_RECORD_DETAIL_MAX = 8 << 20, /* 4096 members of 64 devices would be more: see parts */
};

/* Append the spec as JSON. The id, user, project and what `detail` holds are not in it. */
int acre_record_write_spec(const struct acre_names *names, const struct acre_job_spec *spec,
                           const struct acre_recipe *recipe, struct acre_buf *out);
/* Append the detail. `exit_text` is what the engine said about the end, "" for nothing; `parts` is
 * what a job that has ended held last, as acre_record_write_parts wrote it (empty: unknown). */
int acre_record_write_detail(const struct acre_ledger *ledger, const struct acre_job *job,
                             const char *exit_text, struct acre_str parts, struct acre_buf *out);
/* Append the member "after": the jobs that it waits for, and how. */
void acre_record_write_after(const struct acre_job_spec *spec, struct acre_json *json);
/* Is there an exit to report: of a run, or of a job that ended without one, when something is known
 * about that? */
bool acre_record_has_exit(const struct acre_job *job, const char *exit_text);
/* Append what the job holds as a JSON array. False: nothing. */
bool acre_record_write_parts(const struct acre_ledger *ledger, const struct acre_job *job,
                             struct acre_buf *out);

/* A part as it is recorded: by names. */
struct acre_recorded_part {
    const char *node;
    const char *device; /* NULL: CPU and RAM only */
    uint32_t milli, mib, cpu_milli, ram_mib;
    bool by_share;
};

/* A row read back. Everything lives in the arena. */
struct acre_recorded_job {
    struct acre_job job; /* names are 0 unless a ledger's were given */
    struct acre_recipe recipe;
    json_t *spec; /* the parsed text; the reader json_decref()s it when done with `recipe` */
    struct acre_recorded_part *parts;
    uint32_t part_count;
    const char *exit_text; /* "" for none */
    bool exited;           /* job.exit is of a run that ended */
};

/* How to start it, of a parsed spec, which is borrowed: ACRE_ECORRUPT names what is wrong. */
int acre_record_read_recipe(const json_t *spec, struct acre_recipe *ret_recipe,
                            struct acre_error *err);
/* Read a whole row. `spec` is the row's, parsed (borrowed); NULL: it is in the row. `names` NULL:
 * nothing is interned (to show it), else as acre_sched_restore wants it; the caller gives the job's
 * name back when the scheduler has it. */
int acre_record_read_job(const struct acre_store_job *row, json_t *spec, struct acre_names *names,
                         struct acre_arena *arena, struct acre_recorded_job *ret_recorded,
                         struct acre_error *err);
/* The parts as the ledger numbers them now. ACRE_ENOTFOUND names a node or device that is gone. */
int acre_record_find_parts(const struct acre_ledger *ledger,
                           const struct acre_recorded_job *recorded, struct acre_part *ret_parts,
                           struct acre_error *err);

#endif
