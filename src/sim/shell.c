/* shell.c - keeps rows by id, each with a dirty mark; a commit copies the dirty jobs from the
 * scheduler. The ledger's names are created in the same order at every start, so that ids in rows
 * stay valid. */
#include "sim/shell.h"

#include "ledger/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"ada", "bo", "cy", "vision", "speech"};

static void mix_in(struct shell *shell, uint64_t value) {
    uint64_t pair[2] = {shell->fingerprint, value};
    shell->fingerprint = acre_hash_bytes(pair, sizeof(pair));
}

static void on_event(void *context, const struct acre_sched_event *event) {
    struct shell *shell = context;
    ACRE_ASSERT(event->job <= ACRE_SHELL_JOBS_MAX);
    shell->dirty[event->job] = true;
    shell->preemptions += event->kind == ACRE_SCHED_PREEMPTED;
    mix_in(shell, (uint64_t)event->kind << 32 | event->job);
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct shell *shell = context;
    ACRE_ASSERT(shell->waiting_count < shell->action_capacity);
    shell->waiting[shell->waiting_count++] = *action;
    mix_in(shell, (uint64_t)action->kind << 48 | (uint64_t)action->attempt << 32 | action->job);
}

static void add_node(struct acre_ledger *ledger, uint32_t node) {
    struct acre_device_spec devices[ACRE_SHELL_GPUS];
    char ids[ACRE_SHELL_GPUS][32], name[32];
    for (uint32_t d = 0; d < ACRE_SHELL_GPUS; d++) {
        snprintf(ids[d], sizeof(ids[d]), "%u/%u", node, d);
        devices[d] = (struct acre_device_spec){
            .id = ids[d], .model = node == 0 ? "A" : "B", .memory_mib = 8192, .island = d / 2};
    }
    snprintf(name, sizeof(name), "node-%u", node);
    struct acre_node_spec spec = {.name = name,
                                  .cpu_milli = 16000,
                                  .ram_mib = 65536,
                                  .devices = devices,
                                  .device_count = ACRE_SHELL_GPUS};
    uint32_t index;
    int r = acre_ledger_add_node(ledger, &spec, &index, NULL);
    ACRE_ASSERT(r == 0);
}

static void create_core(struct shell *shell) {
    shell->ledger = acre_ledger_create(&(struct acre_ledger_options){0});
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        acre_names_intern(acre_ledger_names(shell->ledger), acre_str_from(names[i]));
    }
    for (uint32_t n = 0; n < ACRE_SHELL_NODES; n++) {
        add_node(shell->ledger, n);
        if (shell->node_down[n]) {
            acre_ledger_drain_node(shell->ledger, n, true, NULL);
        }
    }
    shell->sched = acre_sched_create(&(struct acre_sched_options){
        .ledger = shell->ledger,
        .policy = &shell->policy,
        .event = on_event,
        .action = on_action,
        .context = shell,
    });
}

static void destroy_core(struct shell *shell) {
    acre_sched_destroy(shell->sched);
    acre_ledger_destroy(shell->ledger);
}

void shell_init(struct shell *shell) {
    enum { ACTIONS_MAX = 16 * ACRE_SHELL_JOBS_MAX }; /* between two commits */
    *shell = (struct shell){
        .policy = *acre_policy_default(),
        .rows = acre_calloc(ACRE_SHELL_JOBS_MAX + 1, sizeof(struct shell_row)),
        .dirty = acre_calloc(ACRE_SHELL_JOBS_MAX + 1, sizeof(bool)),
        .node_down = acre_calloc(ACRE_SHELL_NODES, sizeof(bool)),
        .waiting = acre_calloc(ACTIONS_MAX, sizeof(struct acre_sched_action)),
        .due = acre_calloc(ACTIONS_MAX, sizeof(struct acre_sched_action)),
        .action_capacity = ACTIONS_MAX,
    };
    create_core(shell);
}

void shell_finish(struct shell *shell) {
    destroy_core(shell);
    free(shell->rows);
    free(shell->dirty);
    free(shell->node_down);
    free(shell->waiting);
    free(shell->due);
}

static void save_row(struct shell *shell, uint64_t id) {
    struct shell_row *row = &shell->rows[id];
    struct acre_job job;
    bool found = acre_sched_find(shell->sched, id, &job);
    ACRE_ASSERT(found); /* an ended job stays until it is dropped below */
    *row = (struct shell_row){.there = true, .job = job};
    for (uint32_t i = 0; i < job.spec.dependency_count; i++) {
        row->dependencies[i] = job.spec.dependencies[i];
    }
    row->job.spec.dependencies = row->dependencies;
    struct acre_allocation allocation;
    if (acre_job_state_holds(job.state)) {
        found = acre_ledger_find(shell->ledger, job.allocation, &allocation);
        ACRE_ASSERT(found && allocation.part_count <= ACRE_WORLD_PARTS_MAX);
        memcpy(row->parts, allocation.parts, allocation.part_count * sizeof(*row->parts));
        row->part_count = allocation.part_count;
    }
    if (!acre_job_state_is_live(job.state)) {
        acre_sched_drop(shell->sched, id);
    }
}

bool shell_is_dirty(const struct shell *shell) {
    return memchr(shell->dirty, true, ACRE_SHELL_JOBS_MAX + 1) != NULL || shell->waiting_count > 0;
}

void shell_commit(struct shell *shell) {
    for (uint64_t id = 1; id <= shell->last_job; id++) {
        if (shell->dirty[id]) {
            save_row(shell, id);
            shell->dirty[id] = false;
        }
    }
    ACRE_ASSERT(shell->due_count + shell->waiting_count <= shell->action_capacity);
    memcpy(&shell->due[shell->due_count], shell->waiting,
           shell->waiting_count * sizeof(*shell->due));
    shell->due_count += shell->waiting_count;
    shell->waiting_count = 0;
}

bool shell_next_action(struct shell *shell, struct acre_sched_action *ret_action) {
    if (shell->due_count == 0) {
        return false;
    }
    *ret_action = shell->due[0];
    shell->due_count--;
    memmove(shell->due, shell->due + 1, shell->due_count * sizeof(*shell->due));
    return true;
}

/* A run that was committed but may never have been asked for is asked for (again); others are
 * asked how they are. */
static void adopt(struct shell *shell, struct fault_world *world, const struct acre_job *job) {
    bool asked_for = job->state == ACRE_JOB_SCHEDULED || job->state == ACRE_JOB_ALLOCATING;
    if (asked_for && !job->canceling) {
        shell->due[shell->due_count++] =
            (struct acre_sched_action){ACRE_ACTION_START, job->spec.id, job->attempt};
    } else {
        world_ask(world, job->spec.id, job->attempt);
    }
}

int shell_restart(struct shell *shell, struct fault_world *world, uint64_t now_ms,
                  struct acre_error *err) {
    destroy_core(shell);
    memset(shell->dirty, 0, (ACRE_SHELL_JOBS_MAX + 1) * sizeof(*shell->dirty));
    shell->waiting_count = 0;
    shell->due_count = 0;
    create_core(shell);
    for (uint64_t id = 1; id <= ACRE_SHELL_JOBS_MAX; id++) {
        const struct shell_row *row = &shell->rows[id];
        if (!row->there || !acre_job_state_is_live(row->job.state)) {
            continue;
        }
        int r =
            acre_sched_restore(shell->sched, &row->job, row->parts, row->part_count, now_ms, err);
        if (r < 0) {
            return acre_fail_in(err, r, "job %lu was not restored", (unsigned long)id);
        }
        if (acre_job_state_holds(row->job.state)) {
            adopt(shell, world, &row->job);
        }
    }
    return 0;
}

void shell_set_node(struct shell *shell, uint32_t node, bool down) {
    shell->node_down[node] = down;
    acre_ledger_drain_node(shell->ledger, node, down, NULL);
    acre_sched_ledger_changed(shell->sched);
}

int shell_check(const struct shell *shell, struct acre_error *err) {
    int r = acre_ledger_check(shell->ledger, err);
    r = r == 0 ? acre_sched_check(shell->sched, err) : r;
    for (uint64_t id = 1; r == 0 && id <= shell->last_job; id++) {
        const struct shell_row *row = &shell->rows[id];
        struct acre_job job;
        if (row->there && acre_job_state_is_live(row->job.state) &&
            !acre_sched_find(shell->sched, id, &job)) {
            r = acre_fail(err, ACRE_EINTERNAL, "job %lu is %s on disk, but missing from the queue",
                          (unsigned long)id, acre_job_state_name(row->job.state));
        }
    }
    return r;
}
