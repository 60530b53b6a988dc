/* handlers.h - every route's function, and the fields of queries and bodies that are rows of the
 * route table. One file a resource; routes.c puts them together. Loop thread only. */
#ifndef ACRE_API_HANDLERS_H
#define ACRE_API_HANDLERS_H

#include "api/route.h"

/* jobs.c, jobs_list.c, jobs_submit.c, logs.c */
void handle_jobs_submit(void *api, struct acre_call *call);
void handle_jobs_list(void *api, struct acre_call *call);
void handle_job_show(void *api, struct acre_call *call);
void handle_job_cancel(void *api, struct acre_call *call);
void handle_job_hold(void *api, struct acre_call *call);
void handle_job_release(void *api, struct acre_call *call);
void handle_job_priority(void *api, struct acre_call *call);
void handle_job_why(void *api, struct acre_call *call);
void handle_job_logs(void *api, struct acre_call *call);
extern const struct field jobs_list_fields[];
extern const struct field logs_fields[];

/* arrays.c */
void handle_array_cancel(void *api, struct acre_call *call);
void handle_array_hold(void *api, struct acre_call *call);
void handle_array_release(void *api, struct acre_call *call);
void handle_array_priority(void *api, struct acre_call *call);

/* cluster.c */
void handle_nodes(void *api, struct acre_call *call);
void handle_gpus(void *api, struct acre_call *call);
void handle_node_drain(void *api, struct acre_call *call);
void handle_node_undrain(void *api, struct acre_call *call);
void handle_gpu_drain(void *api, struct acre_call *call);
void handle_gpu_undrain(void *api, struct acre_call *call);
extern const struct field drain_fields[];

/* capacity.c, balance.c */
void handle_capacity(void *api, struct acre_call *call);
void handle_best(void *api, struct acre_call *call);
void handle_balance(void *api, struct acre_call *call);
extern const struct field best_fields[];
extern const struct field balance_fields[];

/* reservations.c */
void handle_reservations(void *api, struct acre_call *call);
void handle_reserve(void *api, struct acre_call *call);
void handle_unreserve(void *api, struct acre_call *call);
extern const struct field reserve_fields[];

/* policy.c */
void handle_policy(void *api, struct acre_call *call);
void handle_policy_put(void *api, struct acre_call *call);
void handle_quotas(void *api, struct acre_call *call);
void handle_quota_put(void *api, struct acre_call *call);
void handle_quota_delete(void *api, struct acre_call *call);
void handle_usage(void *api, struct acre_call *call);
extern const struct field policy_fields[];
extern const struct field quota_fields[];

/* tokens.c */
void handle_tokens(void *api, struct acre_call *call);
void handle_token_create(void *api, struct acre_call *call);
void handle_token_revoke(void *api, struct acre_call *call);
extern const struct field token_fields[];

/* audit.c */
void handle_audit(void *api, struct acre_call *call);
void handle_audit_verify(void *api, struct acre_call *call);
extern const struct field audit_fields[];

/* stats.c */
void handle_stats(void *api, struct acre_call *call);
void handle_version(void *api, struct acre_call *call);
void handle_live(void *api, struct acre_call *call);
void handle_ready(void *api, struct acre_call *call);
void handle_openapi(void *api, struct acre_call *call);

/* events.c */
void handle_events(void *api, struct acre_call *call);
extern const struct field events_fields[];

/* aliases.c */
void handle_gpu_status(void *api, struct acre_call *call);
void handle_gpu_allocate(void *api, struct acre_call *call);
void handle_gpu_release(void *api, struct acre_call *call);
void handle_queue(void *api, struct acre_call *call);
void handle_queue_statistics(void *api, struct acre_call *call);
void handle_orchestrator(void *api, struct acre_call *call);
void handle_orchestrator_start(void *api, struct acre_call *call);
void handle_orchestrator_stop(void *api, struct acre_call *call);
void handle_job_complete(void *api, struct acre_call *call);
extern const struct field allocate_fields[];
extern const struct field gpu_release_fields[];
extern const struct field complete_fields[];

#endif
