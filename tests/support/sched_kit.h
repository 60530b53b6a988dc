/* sched_kit.h - a scheduler over a small cluster, for tests that care about what it answers.
 *
 * The cluster is written as in ledger_kit.h. Time stands still unless a test moves `now_ms`. Users
 * are names; the project of a user is "p-<user>" unless the spec says otherwise. One thread. */
#ifndef ACRE_TEST_SCHED_KIT_H
#define ACRE_TEST_SCHED_KIT_H

#include "sched/sched.h"
#include "support/ledger_kit.h"

struct sched_kit {
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms;
    uint64_t last_id;
    struct acre_sched_action *actions; /* told and not yet done */
    uint32_t action_count, action_capacity;
};

#define SCHED_KIT_START_MS UINT64_C(1700000000000)
#define SCHED_KIT_MIN_MS   UINT64_C(60000)
#define SCHED_KIT_HOUR_MS  UINT64_C(3600000)

/* `policy`: JSON, read over the default. */
void sched_kit_init(struct sched_kit *kit, const char *cluster, const char *policy);
/* The same with `nodes` nodes of `gpus` devices. */
void sched_kit_init_large(struct sched_kit *kit, uint32_t nodes, uint32_t gpus, const char *policy);
void sched_kit_finish(struct sched_kit *kit);

/* Normal priority, no estimate; the next id. */
struct acre_job_spec sched_kit_spec(struct sched_kit *kit, const char *user,
                                    struct acre_request request);
/* Must be accepted; returns the id. */
#define SCHED_KIT_SUBMIT(kit, spec) sched_kit_submit((kit), (spec), __FILE__, __LINE__)
uint64_t sched_kit_submit(struct sched_kit *kit, const struct acre_job_spec *spec, const char *file,
                          int line);
/* Passes until nothing more is placed; what is placed is dispatched and started at once. */
void sched_kit_settle(struct sched_kit *kit);
/* The run of a job exits with 0, and what then fits starts. */
void sched_kit_end(struct sched_kit *kit, uint64_t job);
enum acre_job_state sched_kit_state(const struct sched_kit *kit, uint64_t job);

#endif
