/* api.h - what handlers share: the desk, the caller, and how to answer.
 *
 * Loop thread only. A handler does one thing to the desk and answers through these, so that every
 * answer waits for its commit and every refused change stands in the audit trail. */
#ifndef ACRE_API_API_H
#define ACRE_API_API_H

#include "api/auth.h"
#include "api/refusals.h"
#include "api/route.h"
#include "desk/desk.h"
#include "http/problem.h"
#include "http/sse.h"

/* What was counted of ended jobs, and when it is counted again (stats.c). */
struct acre_ended {
    struct acre_job_statistics day;
    uint64_t last_hour;
    uint64_t counted_ms, again_ms;
};

struct acre_follow_count;
struct acre_follower;
struct acre_verify;

/* What each user may have of something by time. */
struct acre_allowance {
    struct acre_limit *limit; /* NULL: nobody has asked */
    uint32_t burst;           /* as the policy had it */
};

struct acre_api {
    struct acre_desk *desk;
    struct acre_auth *auth;
    struct acre_sse *sse;
    struct acre_http *http; /* NULL until it listens */
    struct acre_router *router;
    const struct acre_clock *clock;
    struct acre_limit *requests, *strangers, *guesses, *bodies;
    struct acre_allowance records; /* KiB that users add to the store */
    struct acre_allowance members; /* of their arrays */
    struct acre_refusals *refusals;
    struct acre_timer *refusals_timer; /* the end of their minute; NULL: there are none */
    uint64_t refusals_ms;              /* its beginning */
    const char *store_url; /* for long walks of the audit trail, on a thread of their own */
    struct acre_loop *loop;
    uint64_t started_ms;
    bool stopping;
    struct acre_follow_count *follow_counts; /* by user */
    struct acre_follower *followers;         /* of logs */
    struct acre_watch *logs_watch;           /* of their changes; NULL: nobody follows */
    int logs_notify;
    const char *logs_directory;
    struct acre_ended ended;
    struct acre_verify *verify; /* the walk of the audit trail under way; NULL: none */
};

/* All routes; the table is in routes.c. */
extern const struct acre_route acre_routes[];
extern const size_t acre_route_count;

/* How often; see router_options. */
struct acre_api_limits {
    struct acre_limit_options requests, strangers, guesses;
};

struct acre_api_options {
    struct acre_loop *loop;
    const struct acre_clock *clock;
    const char *store_url;
    struct acre_desk *desk;
    struct acre_auth *auth;
    struct acre_sse *sse;
    const char *logs_directory; /* where runs' logs appear; NULL: nowhere */
    struct acre_api_limits limits;
};
struct acre_api *acre_api_create(const struct acre_api_options *options);
void acre_api_destroy(struct acre_api *api); /* NULL is fine */
/* The server it answers through, once it listens: its connections are shown. */
void acre_api_set_http(struct acre_api *api, struct acre_http *http);
/* From now on it says that it is stopping: health is no longer good. */
void acre_api_stop(struct acre_api *api);
/* New limits; who was limited starts afresh. */
void acre_api_set_limits(struct acre_api *api, const struct acre_api_limits *limits);
/* Record how many refusals were not recorded one by one; also before the end. */
void acre_api_sum_refusals(struct acre_api *api);
/* Connections of one user or address: acre_http_options.peer_max. */
uint32_t acre_api_peer_max(void *api);
/* acre_http_options.knows_uid. */
bool acre_api_knows_uid(void *api, uint32_t uid);
/* An acre_http_handler. */
void acre_api_handle(void *api, struct acre_exchange *exchange,
                     const struct acre_http_request *request);
/* The desk's events, for followers: the desk's sink with this context. */
void acre_api_event(void *api, const struct acre_desk_event *event);

/* --- for handlers --------------------------------------------------------------------------- */

enum { ACRE_ANSWER_MAX_BYTES = 64 << 20 };

/* A JSON answer under construction. */
struct acre_reply {
    struct acre_buf buf;
    struct acre_json json;
};
/* Opens the object. */
struct acre_json *acre_reply_begin(struct acre_reply *reply);
/* Closes it and answers when what it saw is durable. */
void acre_reply_send(struct acre_api *api, struct acre_call *call, struct acre_reply *reply,
                     int status);
/* Throw it away. */
void acre_reply_drop(struct acre_reply *reply);

/* Answer when everything seen so far is durable. Takes the body. */
void acre_api_answer(struct acre_api *api, struct acre_exchange *exchange, int status,
                     const char *content_type, struct acre_buf *body);
/* The request is refused: audited if it would have changed something. */
void acre_api_fail(struct acre_api *api, struct acre_call *call, const struct acre_error *err);
/* May anything be changed now? False: it was refused. Names the caller for the audit trail. */
bool acre_api_may_change(struct acre_api *api, struct acre_call *call);
/* Before the loop is destroyed: a walk of the audit trail that is under way is waited for. */
void acre_audit_finish(struct acre_api *api);
/* Nodes are either all real or all simulated. */
bool acre_api_is_simulated(const struct acre_api *api);
/* A change that is no event of a job, in the audit trail. */
void acre_api_audit(struct acre_api *api, const char *action, const char *target,
                    const char *detail);
/* May the caller act for `owner`? Operators may for everybody. ACRE_EDENIED. */
int acre_api_owns(const struct acre_call *call, const char *owner, const char *what,
                  struct acre_error *err);

/* ?limit and ?cursor of lists: rows for their fields. The cursor is a number that means something
 * to the list alone. */
/* clang-format off */
#define ACRE_PAGE_FIELDS                                                                           \
    {.name = "limit", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = 1000, .help = "default: 100"},  \
    {.name = "cursor", .kinds = ACRE_KIND_STRING, .max_length = 32,                           \
     .help = "'next' of the previous page"}
/* clang-format on */
struct acre_page {
    uint32_t limit;
    uint64_t after;
};
/* False: it was refused. */
bool acre_page_read(struct acre_api *api, struct acre_call *call, struct acre_page *ret_page);
/* "next": "..." or null. */
void acre_page_write(struct acre_json *json, bool more, uint64_t after);

#endif
