/* auth.h - who is asking: peers of the unix socket by their user, others by their token (SEC-1).
 *
 * Tokens are "acre_<id>_<secret>": the id finds the row, the secret's SHA-256 is compared in
 * constant time. The secret is shown once, when it is made, and is nowhere else. Loop thread only.
 * It does not decide what a user may do: the role and the handlers do. */
#ifndef ACRE_API_AUTH_H
#define ACRE_API_AUTH_H

#include "api/route.h"
#include "core/clock.h"
#include "store/store.h"

struct acre_auth;

enum {
    ACRE_TOKEN_TEXT_MAX = 96, /* "acre_", 20 digits, "_", 43 of base64url */
    ACRE_AUTH_NAME_MAX = 64,
};

struct acre_auth_options {
    const struct acre_clock *clock;
    const char *operators; /* names of users with role operator, separated by commas; NULL: none */
    const char *admins;    /* likewise, besides uid 0 and the daemon's own */
    const char *project;   /* who is charged when nobody says otherwise; NULL: "default" */
    uint32_t min_uid;      /* unix peers below are nobody, but for root and the daemon's own */
};

struct acre_auth *auth_create(const struct acre_auth_options *options);
void auth_destroy(struct acre_auth *auth); /* NULL is fine */
/* New names; see the options. */
void auth_set_names(struct acre_auth *auth, const char *operators, const char *admins,
                    const char *project);
/* Read the tokens (again) from the store. */
int auth_load(struct acre_auth *auth, struct acre_store *store, struct acre_error *err);

/* For router_options.authenticate. ACRE_EDENIED: who are you. A uid without an account is
 * nobody: one user may have thousands of those (/etc/subuid), and each would have limits of its
 * own. */
int auth_identify(struct acre_auth *auth, struct acre_exchange *exchange,
                  const struct acre_http_request *request, struct api_user *ret_user,
                  struct acre_error *err);
/* Would a peer of the unix socket with this uid be somebody? */
bool auth_knows_uid(struct acre_auth *auth, uint32_t uid);
/* May this user's jobs be charged to `project`? Its own, or for unix users a group they are in;
 * operators: any. ACRE_EDENIED. */
int auth_may_charge(const struct acre_call *call, const char *project, struct acre_error *err);

/* A token as it is shown: without its hash. */
struct acre_token {
    uint64_t id;
    const char *user, *project, *note;
    enum role role;
    uint64_t created_ms, expires_ms, revoked_ms; /* 0: never */
    uint64_t parent;                             /* the one it was made with; 0: none */
};
/* Make one; the caller puts `ret_row` into a batch, and shows the text once. ACRE_EUNAVAILABLE: no
 * random numbers. It is good at once. */
int auth_make(struct acre_auth *auth, const struct acre_token *token,
              struct acre_store_token *ret_row, char ret_text[ACRE_TOKEN_TEXT_MAX],
              struct acre_error *err);
/* Revoke a token, and with it those that were made with it, and with those, and so on: the
 * thief of one may have made others. `visit` gets the row of each, the first is the one that was
 * named; they go into a batch. ACRE_ENOTFOUND, ACRE_ECONFLICT (revoked before). */
typedef void auth_visit(void *context, const struct acre_store_token *row);
int auth_revoke(struct acre_auth *auth, uint64_t id, uint64_t now_ms, auth_visit *visit,
                void *context, struct acre_error *err);
/* How many tokens of this user are good now. */
uint32_t auth_count_good(const struct acre_auth *auth, const char *user);
/* Forget the oldest of this user's that is no longer good, if there are more of those than are kept
 * to be looked at: its id, whose row is to be removed. It is never the newest token of all, so that
 * ids are not given twice. */
bool auth_forget(struct acre_auth *auth, const char *user, uint64_t *ret_id);
/* The token after `id`, by id; start with 0. */
bool auth_next(const struct acre_auth *auth, uint64_t id, struct acre_token *ret_token);
uint32_t auth_count(const struct acre_auth *auth);

#endif
