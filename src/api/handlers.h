/* handlers.h - every route's function, and the fields of queries and bodies that are rows of the
 * route table. One file a resource; routes.c puts them together. Loop thread only. */
#ifndef ACRE_API_HANDLERS_H
#define ACRE_API_HANDLERS_H

#include "api/route.h"

/* jobs.c, jobs_list.c, jobs_submit.c, logs.c */
void acre_handle_jobs_submit(void *api, struct acre_call *call);
void acre_handle_jobs_list(void *api, struct acre_call *call);
void acre_handle_job_show(void *api, struct acre_call *call);
void acre_handle_job_cancel(void *api, struct acre_call *call);
void acre_handle_job_hold(void *api, struct acre_call *call);
void acre_handle_job_release(void *api, struct acre_call *call);
void acre_handle_job_priority(void *api, struct acre_call *call);
void acre_handle_job_why(void *api, struct acre_call *call);
void acre_handle_job_logs(void *api, struct acre_call *call);
extern const struct acre_field acre_jobs_list_fields[];
extern const struct acre_field acre_logs_fields[];

/* arrays.c */
void acre_handle_array_cancel(void *api, struct acre_call *call);
void acre_handle_array_hold(void *api, struct acre_call *call);
void acre_handle_array_release(void *api, struct acre_call *call);
void acre_handle_array_priority(void *api, struct acre_call *call);

/* cluster.c */
void acre_handle_nodes(void *api, struct acre_call *call);
void acre_handle_gpus(void *api, struct acre_call *call);
void acre_handle_node_drain(void *api, struct acre_call *call);
void acre_handle_node_undrain(void *api, struct acre_call *call);
void acre_handle_gpu_drain(void *api, struct acre_call *call);
void acre_handle_gpu_undrain(void *api, struct acre_call *call);
extern const struct acre_field acre_drain_fields[];

/* reservations.c */
void acre_handle_reservations(void *api, struct acre_call *call);
void acre_handle_reserve(void *api, struct acre_call *call);
void acre_handle_unreserve(void *api, struct acre_call *call);
extern const struct acre_field acre_reserve_fields[];

/* policy.c */
void acre_handle_policy(void *api, struct acre_call *call);
void acre_handle_policy_put(void *api, struct acre_call *call);
void acre_handle_quotas(void *api, struct acre_call *call);
void acre_handle_quota_put(void *api, struct acre_call *call);
void acre_handle_quota_delete(void *api, struct acre_call *call);
void acre_handle_usage(void *api, struct acre_call *call);
extern const struct acre_field acre_policy_fields[];
extern const struct acre_field acre_quota_fields[];

/* tokens.c */
void acre_handle_tokens(void *api, struct acre_call *call);
void acre_handle_token_create(void *api, struct acre_call *call);
void acre_handle_token_revoke(void *api, struct acre_call *call);
extern const struct acre_field acre_token_fields[];

/* audit.c */
void acre_handle_audit(void *api, struct acre_call *call);
void acre_handle_audit_verify(void *api, struct acre_call *call);
extern const struct acre_field acre_audit_fields[];

/* stats.c */
void acre_handle_stats(void *api, struct acre_call *call);
void acre_handle_version(void *api, struct acre_call *call);
void acre_handle_live(void *api, struct acre_call *call);
void acre_handle_ready(void *api, struct acre_call *call);
void acre_handle_openapi(void *api, struct acre_call *call);

/* events.c */
void acre_handle_events(void *api, struct acre_call *call);
extern const struct acre_field acre_events_fields[];

/* aliases.c */
void acre_handle_gpu_status(void *api, struct acre_call *call);
void acre_handle_gpu_allocate(void *api, struct acre_call *call);
void acre_handle_gpu_release(void *api, struct acre_call *call);
void acre_handle_queue(void *api, struct acre_call *call);
void acre_handle_queue_statistics(void *api, struct acre_call *call);
void acre_handle_orchestrator(void *api, struct acre_call *call);
void acre_handle_orchestrator_start(void *api, struct acre_call *call);
void acre_handle_orchestrator_stop(void *api, struct acre_call *call);
void acre_handle_job_complete(void *api, struct acre_call *call);
extern const struct acre_field acre_allocate_fields[];
extern const struct acre_field acre_gpu_release_fields[];
extern const struct acre_field acre_complete_fields[];

#endif
