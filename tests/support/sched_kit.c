/* sched_kit.c - actions are collected as they are told and done between calls: a scheduler must not
 * be called from its own events. */
#include "support/sched_kit.h"

#include <stdio.h>
#include <stdlib.h>

static void note_action(void *context, const struct acre_sched_action *action) {
    struct sched_kit *kit = context;
    kit->actions =
        acre_grow(kit->actions, kit->action_count, &kit->action_capacity, sizeof(*kit->actions));
    kit->actions[kit->action_count++] = *action;
}

static void start(struct sched_kit *kit, struct acre_ledger *ledger, const char *json) {
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    struct acre_error err = {0};
    int r = acre_policy_load("policy", acre_str_from(json), acre_policy_default(), policy, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    *kit = (struct sched_kit){.ledger = ledger, .now_ms = SCHED_KIT_START_MS};
    struct acre_sched_options options = {
        .ledger = ledger, .policy = policy, .action = note_action, .context = kit};
    kit->sched = acre_sched_create(&options);
    free(policy);
}

void sched_kit_init(struct sched_kit *kit, const char *cluster, const char *policy) {
    start(kit, kit_cluster(ACRE_STRATEGY_DEFAULT, cluster), policy);
}

void sched_kit_init_large(struct sched_kit *kit, uint32_t nodes, uint32_t gpus,
                          const char *policy) {
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    for (uint32_t i = 0; i < nodes; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%05u", i);
        kit_add(ledger, name, gpus, KIT_MEMORY_MIB);
    }
    start(kit, ledger, policy);
}

void sched_kit_finish(struct sched_kit *kit) {
    struct acre_error err = {0};
    acre_sched_check(kit->sched, &err);
    CHECK_STR(err.text, "");
    acre_sched_destroy(kit->sched);
    kit_destroy(kit->ledger);
    free(kit->actions);
}

struct acre_job_spec sched_kit_spec(struct sched_kit *kit, const char *user,
                                    struct acre_request request) {
    char project[64];
    snprintf(project, sizeof(project), "p-%s", user);
    return (struct acre_job_spec){.id = ++kit->last_id,
                                  .user = kit_name(kit->ledger, user),
                                  .project = kit_name(kit->ledger, project),
                                  .request = request,
                                  .priority = ACRE_PRIORITY_NORMAL};
}

uint64_t sched_kit_submit(struct sched_kit *kit, const struct acre_job_spec *spec, const char *file,
                          int line) {
    struct acre_error err = {0};
    acre_sched_submit(kit->sched, spec, kit->now_ms, &err);
    acre_check_str(err.text, "", true, "refusal", "none", file, line);
    return spec->id;
}

void sched_kit_settle(struct sched_kit *kit) {
    do {
        acre_sched_pass(kit->sched, kit->now_ms, 0);
        for (uint32_t i = 0; i < kit->action_count; i++) {
            struct acre_sched_action action = kit->actions[i];
            if (action.kind == ACRE_ACTION_START) {
                acre_sched_dispatched(kit->sched, action.job, action.attempt, kit->now_ms);
                acre_sched_started(kit->sched, action.job, action.attempt, kit->now_ms);
            }
        }
        kit->action_count = 0;
    } while (acre_sched_pass(kit->sched, kit->now_ms, 0) > 0);
}

void sched_kit_end(struct sched_kit *kit, uint64_t job) {
    struct acre_job row;
    struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE, .peak_gpu_mib = ACRE_UNKNOWN};
    REQUIRE(acre_sched_find(kit->sched, job, &row));
    acre_sched_exited(kit->sched, job, row.attempt, &exit, kit->now_ms);
    acre_sched_drop(kit->sched, job);
    sched_kit_settle(kit);
}

enum acre_job_state sched_kit_state(const struct sched_kit *kit, uint64_t job) {
    struct acre_job row;
    REQUIRE(acre_sched_find(kit->sched, job, &row));
    return row.state;
}
