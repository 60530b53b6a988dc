/* route.h - the table of everything the API serves, and the way from a request to its handler.
 *
 * One row a route: method, path, role, fields of query and body, summary, handler. The router
 * asks who it is, limits (429 with Retry-After), matches (404; 405 with Allow; HEAD as GET), turns
 * strangers away (401), checks the role (403), the query and the body (400 naming the field), and
 * calls the handler, which answers the exchange now or later. openapi.h prints the same table.
 *
 * Loop thread only. It knows no user and no job: `authenticate` says who is asking, handlers check
 * ownership. */
#ifndef ACRE_API_ROUTE_H
#define ACRE_API_ROUTE_H

#include "api/field.h"
#include "api/limit.h"
#include "http/http.h"

enum role {
    ACRE_ROLE_NONE, /* of a route: everybody, without authentication */
    ACRE_ROLE_VIEWER,
    ACRE_ROLE_USER,
    ACRE_ROLE_OPERATOR,
    ACRE_ROLE_ADMIN,
};
extern const char *const role_names[]; /* by role, then NULL */
const char *role_name(enum role role); /* "viewer" */
bool role_parse(const char *text, enum role *ret_role);

struct api_user {
    const char *name, *project; /* in the request's arena, or longer-lived; "" for nobody */
    enum role role;
    uint64_t token; /* the id of the one that was shown; 0: none */
};

enum { ACRE_ROUTE_PARAMETERS_MAX = 4 };

/* One request on its way. Lives until the exchange is answered, but for `body`. */
struct acre_call {
    struct acre_exchange *exchange;
    const struct acre_http_request *request;
    const struct acre_route *route;
    struct api_user user;
    const char *parameters[ACRE_ROUTE_PARAMETERS_MAX]; /* in the order of the path */
    json_t *body; /* checked, without nulls; NULL: none came. json_incref() it to keep it. */
    struct acre_arena *arena;
};

typedef void route_handler(void *context, struct acre_call *call);

struct acre_route {
    const char *method, *path;        /* "GET", "/jobs/{id}/logs" */
    enum role role;                   /* this one or a higher one */
    const struct field *query, *body; /* NULL: none is accepted */
    const char *summary;
    route_handler *handler;
    int status;               /* of success, for OpenAPI; 0: 200 */
    const char *content_type; /* of success; NULL: application/json */
};

struct acre_router;

struct router_options {
    const struct acre_route *routes; /* borrowed */
    size_t count;
    /* Who is asking: 0, or an error that becomes 401 (DENIED) or what its code says. */
    int (*authenticate)(void *context, struct acre_exchange *exchange,
                        const struct acre_http_request *request, struct api_user *ret_user,
                        struct acre_error *err);
    /* After a refusal (401, 403, 404, 405, 429, 400) was decided; NULL: nobody wants to know.
     * `user` is NULL when the client is not known. */
    void (*refused)(void *context, const struct acre_http_request *request,
                    const struct api_user *user, int status, const struct acre_error *err);
    void *context;               /* of these two and of every handler */
    struct acre_limit *requests; /* per user; NULL: none */
    struct acre_limit *bodies;   /* KiB of the larger ones, per user; NULL: none */
    /* Per address (IPv6: per /64): all requests of clients that are not known, and of these those
     * that needed a client that is. NULL: none. */
    struct acre_limit *strangers, *guesses;
    uint64_t (*now_ms)(void *context); /* for the limits; monotonic */
};

/* Asserts that the table is sound: paths, parameters, no two rows alike. */
struct acre_router *router_create(const struct router_options *options);
void router_destroy(struct acre_router *router); /* NULL is fine */
void router_handle(void *router, struct acre_exchange *exchange,
                   const struct acre_http_request *request); /* an acre_http_handler */

/* The row for a request, without calling it. ACRE_ENOTFOUND; ACRE_EUNSUPPORTED when the path is
 * there but not with this method: then `ret_allow` lists those ("GET, DELETE"). */
int router_match(const struct acre_router *router, const char *method, const char *path,
                 struct acre_arena *arena, const struct acre_route **ret_route,
                 const char *ret_parameters[ACRE_ROUTE_PARAMETERS_MAX], const char **ret_allow,
                 struct acre_error *err);

/* A parameter of the path by its name; asserts that the route has it. */
const char *call_parameter(const struct acre_call *call, const char *name);
/* The same as a number: ACRE_ENOTFOUND when it is none ("no job 'abc'" is what a client needs). */
int call_id(const struct acre_call *call, const char *name, uint64_t *ret_id,
            struct acre_error *err);
/* Query values; checked before the handler ran, so a wrong one cannot come here. */
const char *call_query(const struct acre_call *call, const char *key); /* NULL: absent */
bool call_query_bool(const struct acre_call *call, const char *key);   /* absent: false */
int64_t call_query_i64(const struct acre_call *call, const char *key, int64_t absent);

#endif
