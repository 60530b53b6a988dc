/* tokens.c - tokens made, listed and revoked. Admins for every user; users for themselves, with no
 * higher role than their own, and no more of them than the policy allows.
 *
 * A token that was made with another one is its child: it expires with it at the latest, and is
 * revoked with it. So a stolen token is of no use once it has ended. */
#include "api/api.h"
#include "api/budget.h"
#include "api/handlers.h"
#include "api/view.h"

#include <stdio.h>
#include <string.h>

const struct field token_fields[] = {
    {.name = "user",
     .kinds = ACRE_KIND_STRING,
     .max_length = ACRE_AUTH_NAME_MAX - 1,
     .help = "its user (default: you)"},
    {.name = "project",
     .kinds = ACRE_KIND_STRING,
     .max_length = ACRE_AUTH_NAME_MAX - 1,
     .help = "project to charge for its jobs"},
    {.name = "role",
     .kinds = ACRE_KIND_STRING,
     .words = &role_names[ACRE_ROLE_VIEWER],
     .help = "default: user"},
    {.name = "note", .kinds = ACRE_KIND_STRING, .max_length = 200},
    {.name = "expires",
     .kinds = ACRE_KIND_TIME | ACRE_KIND_DURATION,
     .help =
         "a time, or a duration from now (default: never, or with the token used to create it)"},
    {0},
};

static void write_token(struct acre_json *json, const struct acre_token *token) {
    acre_json_object(json);
    acre_json_put_u64(json, "id", token->id);
    acre_json_put_string(json, "user", token->user);
    acre_json_put_string(json, "project", token->project);
    acre_json_put_string(json, "role", role_name(token->role));
    acre_json_put_string(json, "note", token->note);
    view_put_time(json, "created", token->created_ms);
    view_put_time(json, "expires", token->expires_ms);
    view_put_time(json, "revoked", token->revoked_ms);
    view_put_known(json, "parent", token->parent != 0 ? token->parent : ACRE_UNKNOWN);
    acre_json_object_end(json);
}

static bool may_see(const struct acre_call *call, const struct acre_token *token) {
    return call->user.role == ACRE_ROLE_ADMIN || strcmp(token->user, call->user.name) == 0;
}

void handle_tokens(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct acre_token token;
    uint64_t id = page.after;
    bool more = true;
    acre_json_key(json, "tokens");
    acre_json_array(json);
    for (uint32_t shown = 0; shown < page.limit;) {
        more = auth_next(api->auth, id, &token);
        if (!more) {
            break;
        }
        id = token.id;
        if (may_see(call, &token)) {
            write_token(json, &token);
            shown++;
        }
    }
    acre_json_array_end(json);
    acre_page_write(json, more, id);
    acre_reply_send(api, call, &reply, 200);
}

static const char *text_of(const json_t *body, const char *key, const char *absent) {
    const char *text = json_string_value(json_object_get(body, key));
    return text != NULL ? text : absent;
}

static bool find(const struct acre_api *api, uint64_t id, struct acre_token *ret_token) {
    return id > 0 && auth_next(api->auth, id - 1, ret_token) && ret_token->id == id;
}

/* A token that is made with another one ends with it. */
static int bind_to_parent(const struct acre_api *api, const struct acre_call *call,
                          struct acre_token *to, struct acre_error *err) {
    struct acre_token parent;
    if (!find(api, call->user.token, &parent)) {
        return 0; /* over the socket, as oneself */
    }
    to->parent = parent.id;
    if (parent.expires_ms == 0 || to->expires_ms == 0) {
        to->expires_ms = to->expires_ms != 0 ? to->expires_ms : parent.expires_ms;
        return 0;
    }
    char asked[25], most[25];
    return to->expires_ms <= parent.expires_ms
               ? 0
               : acre_fail(err, ACRE_EDENIED,
                           "expires: %s is after your own token expires; accepted: %s or earlier "
                           "(no such limit over the daemon's socket)",
                           acre_format_time(to->expires_ms, asked),
                           acre_format_time(parent.expires_ms, most));
}

static int check_count(const struct acre_api *api, const struct acre_token *token,
                       struct acre_error *err) {
    uint32_t most = acre_desk_policy(api->desk)->limits.tokens;
    uint32_t count = auth_count_good(api->auth, token->user);
    return count < most ? 0
                        : acre_fail(err, ACRE_ELIMIT,
                                    "tokens: the user already has %u valid tokens; accepted: at "
                                    "most %u (max_tokens in the policy). List them with 'acre "
                                    "token list' and revoke one with 'acre token revoke'",
                                    count, most);
}

static int read_token(struct acre_api *api, const struct acre_call *call, struct acre_token *to,
                      struct acre_error *err) {
    const json_t *expires = json_object_get(call->body, "expires");
    uint64_t now_ms = acre_desk_now(api->desk);
    uint64_t ms = 0;
    *to = (struct acre_token){.user = text_of(call->body, "user", call->user.name),
                              .project = text_of(call->body, "project", call->user.project),
                              .note = text_of(call->body, "note", ""),
                              .created_ms = now_ms};
    role_parse(text_of(call->body, "role", "user"), &to->role);
    if (expires != NULL && !field_time(expires, &to->expires_ms) && field_duration(expires, &ms)) {
        to->expires_ms = now_ms + ms;
    }
    const char *const names[] = {to->user, to->project};
    static const char *const fields[] = {"user", "project"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        if (!acre_str_is_name(acre_str_from(names[i]), ACRE_AUTH_NAME_MAX - 1)) {
            char shown[80];
            return acre_fail(
                err, ACRE_EINVALID,
                "%s: '%s' is not a name; accepted: 1 to %d letters, digits and -_./:@+", fields[i],
                acre_str_show(acre_str_from(names[i]), shown, sizeof(shown)),
                ACRE_AUTH_NAME_MAX - 1);
        }
    }
    if (to->expires_ms != 0 && to->expires_ms <= now_ms) {
        char text[25];
        return acre_fail(err, ACRE_EINVALID, "expires: %s is in the past; accepted: a later time",
                         acre_format_time(to->expires_ms, text));
    }
    int r = bind_to_parent(api, call, to, err);
    if (r < 0 || call->user.role == ACRE_ROLE_ADMIN) {
        return r;
    }
    if (strcmp(to->user, call->user.name) != 0) {
        return acre_fail(err, ACRE_EDENIED,
                         "user: a token for another user ('%s') requires the admin role", to->user);
    }
    if (to->role > call->user.role) {
        return acre_fail(err, ACRE_EDENIED,
                         "role: '%s' is higher than your own; accepted: %s or lower",
                         role_name(to->role), role_name(call->user.role));
    }
    r = auth_may_charge(call, to->project, err);
    return r < 0 || call->user.role >= ACRE_ROLE_OPERATOR ? r : check_count(api, to, err);
}

/* Those of the user that are long of no use go, so that making and revoking fills nothing. */
static void forget_old(struct acre_api *api, const char *user) {
    uint64_t id;
    while (auth_forget(api->auth, user, &id)) {
        acre_batch_remove_token(acre_desk_batch(api->desk), id);
    }
}

void handle_token_create(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_token token;
    struct acre_store_token row;
    char text[ACRE_TOKEN_TEXT_MAX];
    char target[40];
    if (!acre_api_may_change(api, call) || !budget_take(api, call, 1)) {
        return;
    }
    int r = read_token(api, call, &token, &err);
    if (r == 0) {
        r = auth_make(api->auth, &token, &row, text, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    token.id = row.id;
    snprintf(target, sizeof(target), "token:%llu", (unsigned long long)row.id);
    acre_batch_put_token(acre_desk_batch(api->desk), &row);
    acre_api_audit(api, "token created", target, row.user);
    forget_old(api, token.user);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "token");
    write_token(json, &token);
    acre_json_put_string(json, "secret", text); /* shown this once */
    acre_reply_send(api, call, &reply, 201);
}

struct revocation {
    struct acre_api *api;
    struct acre_token first;
    struct acre_json *descendants; /* an array of ids */
};

static void record_revoked(void *context, const struct acre_store_token *row) {
    struct revocation *revocation = context;
    char target[40], detail[ACRE_AUTH_NAME_MAX + 64];
    snprintf(target, sizeof(target), "token:%llu", (unsigned long long)row->id);
    if (row->id == revocation->first.id) {
        snprintf(detail, sizeof(detail), "%s", row->user);
        revocation->first.revoked_ms = row->revoked_ms;
    } else {
        snprintf(detail, sizeof(detail), "%s; created with token:%llu", row->user,
                 (unsigned long long)row->parent);
        acre_json_u64(revocation->descendants, row->id);
    }
    acre_batch_put_token(acre_desk_batch(revocation->api->desk), row);
    acre_api_audit(revocation->api, "token revoked", target, detail);
}

void handle_token_revoke(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct revocation revocation = {.api = api};
    uint64_t id = 0;
    int r = call_id(call, "id", &id, &err);
    if (r == 0 && (!find(api, id, &revocation.first) ||
                   !may_see(call, &revocation.first))) { /* others' do not exist for a user */
        r = acre_fail(&err, ACRE_ENOTFOUND, "there is no token %llu", (unsigned long long)id);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    if (!acre_api_may_change(api, call)) {
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    revocation.descendants = json;
    acre_json_key(json, "descendants");
    acre_json_array(json);
    r = auth_revoke(api->auth, id, acre_desk_now(api->desk), record_revoked, &revocation, &err);
    acre_json_array_end(json);
    if (r < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &err);
        return;
    }
    acre_json_key(json, "token");
    write_token(json, &revocation.first);
    acre_reply_send(api, call, &reply, 200);
}
