/* handlers.h - every route's function, and the fields of queries and bodies that are rows of the
 * route table. One file a resource; routes.c puts them together. Loop thread only. */
#ifndef ACRE_API_HANDLERS_H
#define ACRE_API_HANDLERS_H

#include "api/route.h"

/* jobs.c, jobs_list.c, jobs_submit.c, logs.c */
acre_route_handler acre_handle_jobs_submit;
acre_route_handler acre_handle_jobs_list;
acre_route_handler acre_handle_job_show;
acre_route_handler acre_handle_job_cancel;
acre_route_handler acre_handle_job_hold;
acre_route_handler acre_handle_job_release;
acre_route_handler acre_handle_job_priority;
acre_route_handler acre_handle_job_why;
acre_route_handler acre_handle_job_logs;
extern const struct acre_field acre_jobs_list_fields[];
extern const struct acre_field acre_logs_fields[];

/* cluster.c */
acre_route_handler acre_handle_nodes;
acre_route_handler acre_handle_gpus;
acre_route_handler acre_handle_node_drain;
acre_route_handler acre_handle_node_undrain;
acre_route_handler acre_handle_gpu_drain;
acre_route_handler acre_handle_gpu_undrain;
extern const struct acre_field acre_drain_fields[];

/* reservations.c */
acre_route_handler acre_handle_reservations;
acre_route_handler acre_handle_reserve;
acre_route_handler acre_handle_unreserve;
extern const struct acre_field acre_reserve_fields[];

/* policy.c */
acre_route_handler acre_handle_policy;
acre_route_handler acre_handle_policy_put;
acre_route_handler acre_handle_quotas;
acre_route_handler acre_handle_quota_put;
acre_route_handler acre_handle_quota_delete;
acre_route_handler acre_handle_usage;
extern const struct acre_field acre_policy_fields[];
extern const struct acre_field acre_quota_fields[];

/* tokens.c */
acre_route_handler acre_handle_tokens;
acre_route_handler acre_handle_token_create;
acre_route_handler acre_handle_token_revoke;
extern const struct acre_field acre_token_fields[];

/* audit.c */
acre_route_handler acre_handle_audit;
acre_route_handler acre_handle_audit_verify;
extern const struct acre_field acre_audit_fields[];

/* stats.c */
acre_route_handler acre_handle_stats;
acre_route_handler acre_handle_version;
acre_route_handler acre_handle_live;
acre_route_handler acre_handle_ready;
acre_route_handler acre_handle_openapi;

/* events.c */
acre_route_handler acre_handle_events;
extern const struct acre_field acre_events_fields[];

/* seeds.c */
acre_route_handler acre_handle_gpu_status;
acre_route_handler acre_handle_gpu_allocate;
acre_route_handler acre_handle_gpu_release;
acre_route_handler acre_handle_queue;
acre_route_handler acre_handle_queue_submit;
acre_route_handler acre_handle_queue_cancel;
acre_route_handler acre_handle_queue_statistics;
acre_route_handler acre_handle_orchestrator;
acre_route_handler acre_handle_orchestrator_start;
acre_route_handler acre_handle_orchestrator_stop;
acre_route_handler acre_handle_job_complete;
extern const struct acre_field acre_allocate_fields[];
extern const struct acre_field acre_gpu_release_fields[];
extern const struct acre_field acre_queue_fields[];
extern const struct acre_field acre_complete_fields[];

#endif
