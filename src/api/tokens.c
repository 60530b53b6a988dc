/* tokens.c - tokens made, listed and revoked. Admins for everybody; users for themselves, with no
 * higher role than their own. */
#include "api/api.h"
#include "api/handlers.h"
#include "api/view.h"

#include <stdio.h>
#include <string.h>

const struct acre_field acre_token_fields[] = {
    {.name = "user",
     .kinds = ACRE_KIND_STRING,
     .max_length = ACRE_AUTH_NAME_MAX - 1,
     .help = "whose it is; you when absent"},
    {.name = "project",
     .kinds = ACRE_KIND_STRING,
     .max_length = ACRE_AUTH_NAME_MAX - 1,
     .help = "who is charged for its jobs"},
    {.name = "role",
     .kinds = ACRE_KIND_STRING,
     .words = &acre_role_names[ACRE_ROLE_VIEWER],
     .help = "default user"},
    {.name = "note", .kinds = ACRE_KIND_STRING, .max_length = 200},
    {.name = "expires",
     .kinds = ACRE_KIND_TIME | ACRE_KIND_DURATION,
     .help = "a time, or so long from now; never when absent"},
    {0},
};

static void write_token(struct acre_json *json, const struct acre_token *token) {
    acre_json_object(json);
    acre_json_put_u64(json, "id", token->id);
    acre_json_put_string(json, "user", token->user);
    acre_json_put_string(json, "project", token->project);
    acre_json_put_string(json, "role", acre_role_name(token->role));
    acre_json_put_string(json, "note", token->note);
    acre_view_put_time(json, "created", token->created_ms);
    acre_view_put_time(json, "expires", token->expires_ms);
    acre_view_put_time(json, "revoked", token->revoked_ms);
    acre_json_object_end(json);
}

static bool may_see(const struct acre_call *call, const struct acre_token *token) {
    return call->user.role == ACRE_ROLE_ADMIN || strcmp(token->user, call->user.name) == 0;
}

void acre_handle_tokens(void *context, struct acre_call *call) {
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
        more = acre_auth_next(api->auth, id, &token);
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

static int read_token(struct acre_api *api, const struct acre_call *call, struct acre_token *to,
                      struct acre_error *err) {
    const json_t *expires = json_object_get(call->body, "expires");
    uint64_t now_ms = acre_desk_now(api->desk);
    uint64_t ms = 0;
    *to = (struct acre_token){.user = text_of(call->body, "user", call->user.name),
                              .project = text_of(call->body, "project", call->user.project),
                              .note = text_of(call->body, "note", ""),
                              .created_ms = now_ms};
    acre_role_parse(text_of(call->body, "role", "user"), &to->role);
    if (expires != NULL && !acre_field_time(expires, &to->expires_ms) &&
        acre_field_duration(expires, &ms)) {
        to->expires_ms = now_ms + ms;
    }
    const char *const names[] = {to->user, to->project};
    static const char *const fields[] = {"user", "project"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        if (!acre_str_is_name(acre_str_from(names[i]), ACRE_AUTH_NAME_MAX - 1)) {
            char shown[80];
            return acre_fail(err, ACRE_EINVALID,
                             "%s: '%s'; accepted: 1 to %d letters, digits and -_./:@+", fields[i],
                             acre_str_show(acre_str_from(names[i]), shown, sizeof(shown)),
                             ACRE_AUTH_NAME_MAX - 1);
        }
    }
    if (to->expires_ms != 0 && to->expires_ms <= now_ms) {
        char text[25];
        return acre_fail(err, ACRE_EINVALID, "expires: %s is past; accepted: later than now",
                         acre_format_time(to->expires_ms, text));
    }
    if (call->user.role == ACRE_ROLE_ADMIN) {
        return 0;
    }
    if (strcmp(to->user, call->user.name) != 0) {
        return acre_fail(err, ACRE_EDENIED, "user: '%s'; a token for somebody else needs an admin",
                         to->user);
    }
    if (to->role > call->user.role) {
        return acre_fail(err, ACRE_EDENIED, "role: '%s' is more than your own, '%s'",
                         acre_role_name(to->role), acre_role_name(call->user.role));
    }
    return acre_auth_may_charge(call, to->project, err);
}

void acre_handle_token_create(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_token token;
    struct acre_store_token row;
    char text[ACRE_TOKEN_TEXT_MAX];
    char target[40];
    if (!acre_api_may_change(api, call)) {
        return;
    }
    int r = read_token(api, call, &token, &err);
    if (r == 0) {
        r = acre_auth_make(api->auth, &token, &row, text, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    token.id = row.id;
    snprintf(target, sizeof(target), "token:%llu", (unsigned long long)row.id);
    acre_batch_put_token(acre_desk_batch(api->desk), &row);
    acre_api_audit(api, "token created", target, row.user);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "token");
    write_token(json, &token);
    acre_json_put_string(json, "secret", text); /* shown this once */
    acre_reply_send(api, call, &reply, 201);
}

void acre_handle_token_revoke(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_token token;
    struct acre_store_token row;
    uint64_t id = 0;
    char target[40];
    int r = acre_call_id(call, "id", &id, &err);
    if (r == 0 && (id == 0 || !acre_auth_next(api->auth, id - 1, &token) || token.id != id ||
                   !may_see(call, &token))) { /* others' tokens do not exist for a user */
        r = acre_fail(&err, ACRE_ENOTFOUND, "there is no token %llu", (unsigned long long)id);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    if (!acre_api_may_change(api, call)) {
        return;
    }
    if (acre_auth_revoke(api->auth, id, acre_desk_now(api->desk), &row, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    snprintf(target, sizeof(target), "token:%llu", (unsigned long long)id);
    acre_batch_put_token(acre_desk_batch(api->desk), &row);
    acre_api_audit(api, "token revoked", target, row.user);
    token.revoked_ms = row.revoked_ms;
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "token");
    write_token(json, &token);
    acre_reply_send(api, call, &reply, 200);
}
