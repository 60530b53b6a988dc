/* auth.c - tokens in a table by id, unix users in a small cache.
 *
 * A token's id is public, so looking it up leaks nothing; the secret is 256 random bits, so its
 * plain SHA-256 cannot be searched for, and the hashes are compared in constant time. Every
 * failure gives the same text, so a guess reveals nothing about which part was wrong.
 *
 * Names of unix users come from the system's databases, which may be remote: they are asked once
 * a minute for each user, not with every request. */
#include "api/auth.h"

#include <ctype.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    SECRET_BYTES = 32,
    ID_DIGITS_MAX = 18, /* fits 63 bits */
    HASH_BYTES = 32,
    PEERS_MAX = 64,
    PEER_FRESH_MS = 60000,
    PEER_FAILED_MS = 1000, /* the database did not answer: that may pass */
    GROUPS_MAX = 256,
    DATABASE_MAX_BYTES = 64 << 10, /* of one entry with its group's members */
    DEAD_KEPT = 20, /* expired and revoked tokens of a user: the last ones explain a refusal */
};

struct auth_token {
    struct acre_token shown;
    bool is_going;      /* revoked by the call under way */
    uint64_t user_hash; /* to pass over the others' without looking at their names */
    uint8_t hash[HASH_BYTES];
};

struct peer {
    uint32_t uid;
    uint64_t until_ms; /* 0: free */
    char name[ACRE_AUTH_NAME_MAX];
};

struct acre_auth {
    struct acre_auth_options options;
    char *operators, *admins, *project;
    struct auth_token *tokens; /* by id */
    uint32_t count, capacity;
    uint64_t next_id;
    struct peer peers[PEERS_MAX];
    struct acre_clock monotonic;
};

struct acre_auth *auth_create(const struct acre_auth_options *options) {
    struct acre_auth *auth = acre_calloc(1, sizeof(*auth));
    auth->options = *options;
    auth->operators = acre_strdup(options->operators != NULL ? options->operators : "");
    auth->admins = acre_strdup(options->admins != NULL ? options->admins : "");
    auth->project = acre_strdup(options->project != NULL ? options->project : "default");
    auth->next_id = 1;
    auth->monotonic = acre_clock_real();
    return auth;
}

void auth_set_names(struct acre_auth *auth, const char *operators, const char *admins,
                    const char *project) {
    free(auth->operators);
    free(auth->admins);
    free(auth->project);
    auth->operators = acre_strdup(operators);
    auth->admins = acre_strdup(admins);
    auth->project = acre_strdup(project);
}

static void token_finish(struct auth_token *token) {
    free((char *)token->shown.user);
    free((char *)token->shown.project);
    free((char *)token->shown.note);
}

void auth_destroy(struct acre_auth *auth) {
    if (auth == NULL) {
        return;
    }
    for (uint32_t i = 0; i < auth->count; i++) {
        token_finish(&auth->tokens[i]);
    }
    free(auth->tokens);
    free(auth->operators);
    free(auth->admins);
    free(auth->project);
    free(auth);
}

/* --- tokens --------------------------------------------------------------------------------- */

/* Where the token `id` is, or would be. */
static uint32_t place_of(const struct acre_auth *auth, uint64_t id) {
    uint32_t low = 0;
    uint32_t high = auth->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (auth->tokens[middle].shown.id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct auth_token *find_token(const struct acre_auth *auth, uint64_t id) {
    uint32_t at = place_of(auth, id);
    return at < auth->count && auth->tokens[at].shown.id == id ? &auth->tokens[at] : NULL;
}

static struct auth_token *add_token(struct acre_auth *auth, const struct acre_token *from,
                                    const uint8_t hash[HASH_BYTES]) {
    auth->tokens = acre_grow(auth->tokens, auth->count, &auth->capacity, sizeof(*auth->tokens));
    struct auth_token *to = &auth->tokens[auth->count++]; /* ids only grow: it stays sorted */
    *to = (struct auth_token){.shown = *from};
    to->shown.user = acre_strdup(from->user);
    to->shown.project = acre_strdup(from->project);
    to->shown.note = acre_strdup(from->note);
    to->user_hash = acre_hash_bytes(from->user, strlen(from->user));
    memcpy(to->hash, hash, HASH_BYTES);
    auth->next_id = from->id + 1;
    return to;
}

static bool visit_token(void *context, const struct acre_store_token *row) {
    struct acre_auth *auth = context;
    struct acre_token token = {.id = row->id,
                               .user = row->user,
                               .project = row->project,
                               .note = row->note,
                               .created_ms = row->created_ms,
                               .expires_ms = row->expires_ms,
                               .revoked_ms = row->revoked_ms,
                               .parent = row->parent};
    if (role_parse(row->role, &token.role) && row->id >= auth->next_id) {
        add_token(auth, &token, row->hash);
    }
    return true;
}

int auth_load(struct acre_auth *auth, struct acre_store *store, struct acre_error *err) {
    for (uint32_t i = 0; i < auth->count; i++) {
        token_finish(&auth->tokens[i]);
    }
    auth->count = 0;
    auth->next_id = 1;
    return acre_store_tokens(store, visit_token, auth, err);
}

static void fill_row(const struct auth_token *token, struct acre_store_token *row) {
    *row = (struct acre_store_token){.id = token->shown.id,
                                     .user = token->shown.user,
                                     .project = token->shown.project,
                                     .role = role_name(token->shown.role),
                                     .note = token->shown.note,
                                     .created_ms = token->shown.created_ms,
                                     .expires_ms = token->shown.expires_ms,
                                     .revoked_ms = token->shown.revoked_ms,
                                     .parent = token->shown.parent};
    memcpy(row->hash, token->hash, sizeof(row->hash));
}

static void hash_text(const char *text, size_t length, uint8_t hash[HASH_BYTES]) {
    unsigned size = 0;
    int ok = EVP_Digest(text, length, hash, &size, EVP_sha256(), NULL);
    ACRE_ASSERT(ok == 1 && size == HASH_BYTES);
}

/* base64url without padding: 43 characters for 32 bytes. */
static void encode(const uint8_t *bytes, size_t count, char *text) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    uint32_t held = 0;
    for (size_t i = 0; i < count; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6) {
            *text++ = digits[bits >> (held - 6) & 63];
        }
    }
    if (held > 0) {
        *text++ = digits[bits << (6 - held) & 63];
    }
    *text = '\0';
}

int auth_make(struct acre_auth *auth, const struct acre_token *token,
              struct acre_store_token *ret_row, char ret_text[ACRE_TOKEN_TEXT_MAX],
              struct acre_error *err) {
    uint8_t secret[SECRET_BYTES];
    uint8_t hash[HASH_BYTES];
    char text[64];
    if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret)) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "the system has no random numbers");
    }
    encode(secret, sizeof(secret), text);
    hash_text(text, strlen(text), hash);
    struct acre_token made = *token;
    made.id = auth->next_id;
    snprintf(ret_text, ACRE_TOKEN_TEXT_MAX, "acre_%llu_%s", (unsigned long long)made.id, text);
    fill_row(add_token(auth, &made, hash), ret_row);
    OPENSSL_cleanse(secret, sizeof(secret));
    OPENSSL_cleanse(text, sizeof(text));
    return 0;
}

static bool is_good(const struct acre_token *token, uint64_t now_ms) {
    return token->revoked_ms == 0 && (token->expires_ms == 0 || token->expires_ms > now_ms);
}

static void revoke_one(struct auth_token *token, uint64_t now_ms, auth_visit *visit,
                       void *context) {
    struct acre_store_token row;
    token->shown.revoked_ms = now_ms;
    token->is_going = true;
    fill_row(token, &row);
    visit(context, &row);
}

/* A child has a higher id than its parent, so one walk finds all generations. One that is no longer
 * good has no good descendants: they were revoked with it, or expired no later. */
int auth_revoke(struct acre_auth *auth, uint64_t id, uint64_t now_ms, auth_visit *visit,
                void *context, struct acre_error *err) {
    struct auth_token *first = find_token(auth, id);
    struct auth_token *end = auth->tokens + auth->count;
    if (first == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no token %llu", (unsigned long long)id);
    }
    if (first->shown.revoked_ms != 0) {
        return acre_fail(err, ACRE_ECONFLICT, "token %llu is already revoked",
                         (unsigned long long)id);
    }
    revoke_one(first, now_ms, visit, context);
    for (struct auth_token *token = first + 1; token < end; token++) {
        const struct auth_token *parent =
            token->shown.parent >= id ? find_token(auth, token->shown.parent) : NULL;
        if (parent != NULL && parent->is_going && is_good(&token->shown, now_ms)) {
            revoke_one(token, now_ms, visit, context);
        }
    }
    for (struct auth_token *token = first; token < end; token++) {
        token->is_going = false;
    }
    return 0;
}

static bool is_of(const struct auth_token *token, const char *user, uint64_t hash) {
    return token->user_hash == hash && strcmp(token->shown.user, user) == 0;
}

uint32_t auth_count_good(const struct acre_auth *auth, const char *user) {
    uint64_t hash = acre_hash_bytes(user, strlen(user));
    uint64_t now_ms = acre_clock_wall_ms(auth->options.clock);
    uint32_t count = 0;
    for (uint32_t i = 0; i < auth->count; i++) {
        count += is_of(&auth->tokens[i], user, hash) && is_good(&auth->tokens[i].shown, now_ms);
    }
    return count;
}

bool auth_forget(struct acre_auth *auth, const char *user, uint64_t *ret_id) {
    uint64_t hash = acre_hash_bytes(user, strlen(user));
    uint64_t now_ms = acre_clock_wall_ms(auth->options.clock);
    uint32_t dead = 0, oldest = 0;
    for (uint32_t i = auth->count; i-- > 0;) {
        if (is_of(&auth->tokens[i], user, hash) && !is_good(&auth->tokens[i].shown, now_ms)) {
            oldest = i;
            dead++;
        }
    }
    if (dead <= DEAD_KEPT) {
        return false;
    }
    *ret_id = auth->tokens[oldest].shown.id;
    token_finish(&auth->tokens[oldest]);
    auth->count--;
    memmove(&auth->tokens[oldest], &auth->tokens[oldest + 1],
            (auth->count - oldest) * sizeof(*auth->tokens));
    return true;
}

bool auth_next(const struct acre_auth *auth, uint64_t id, struct acre_token *ret_token) {
    uint32_t at = id < UINT64_MAX ? place_of(auth, id + 1) : auth->count;
    if (at == auth->count) {
        return false;
    }
    *ret_token = auth->tokens[at].shown;
    return true;
}

uint32_t auth_count(const struct acre_auth *auth) {
    return auth->count;
}

/* "acre_<id>_<secret>": NULL when it is not good, for whatever reason. */
static const struct auth_token *check_token(const struct acre_auth *auth, const char *text) {
    uint64_t id = 0;
    uint8_t hash[HASH_BYTES];
    size_t digits = 0;
    static const char prefix[] = "acre_";
    if (strnlen(text, ACRE_TOKEN_TEXT_MAX) >= ACRE_TOKEN_TEXT_MAX ||
        strncmp(text, prefix, strlen(prefix)) != 0) {
        return NULL;
    }
    text += strlen(prefix);
    for (; digits < ID_DIGITS_MAX && isdigit((unsigned char)text[digits]); digits++) {
        id = id * 10 + (uint64_t)(text[digits] - '0');
    }
    if (text[0] == '0' || digits == 0 || text[digits] != '_') { /* one text for one token */
        return NULL;
    }
    text += digits + 1;
    const struct auth_token *token = find_token(auth, id);
    hash_text(text, strlen(text), hash);
    if (token == NULL || CRYPTO_memcmp(hash, token->hash, HASH_BYTES) != 0) {
        return NULL;
    }
    return is_good(&token->shown, acre_clock_wall_ms(auth->options.clock)) ? token : NULL;
}

static const char *given_token(struct acre_exchange *exchange) {
    const char *header = acre_http_header(exchange, "Authorization");
    if (header != NULL && strncasecmp(header, "Bearer ", 7) == 0) {
        header += 7;
        return header + strspn(header, " ");
    }
    return acre_http_header(exchange, "X-Auth-Token");
}

/* --- unix users ----------------------------------------------------------------------------- */

static bool is_listed(const char *names, const char *name) {
    struct acre_split split = acre_split_begin(acre_str_from(names), ',');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        if (acre_str_is(acre_str_trim(part), name)) {
            return true;
        }
    }
    return false;
}

/* The name of a uid; "": it has no account. */
static const char *peer_name(struct acre_auth *auth, uint32_t uid) {
    uint64_t now_ms = acre_clock_monotonic_ns(&auth->monotonic) / 1000000;
    struct peer *oldest = &auth->peers[0];
    for (uint32_t i = 0; i < PEERS_MAX; i++) {
        struct peer *peer = &auth->peers[i];
        if (peer->uid == uid && peer->until_ms > now_ms) {
            return peer->name;
        }
        oldest = peer->until_ms < oldest->until_ms ? peer : oldest;
    }
    char *buffer = acre_calloc(1, DATABASE_MAX_BYTES);
    struct passwd entry;
    struct passwd *found = NULL;
    int error = getpwuid_r(uid, &entry, buffer, DATABASE_MAX_BYTES, &found);
    if (found == NULL ||
        !acre_str_copy(oldest->name, sizeof(oldest->name), acre_str_from(found->pw_name))) {
        oldest->name[0] = '\0';
    }
    free(buffer);
    oldest->uid = uid;
    oldest->until_ms = now_ms + (error == 0 ? PEER_FRESH_MS : PEER_FAILED_MS);
    return oldest->name;
}

static bool is_trusted(uint32_t uid) {
    return uid == 0 || uid == (uint32_t)geteuid();
}

bool auth_knows_uid(struct acre_auth *auth, uint32_t uid) {
    return is_trusted(uid) || (uid >= auth->options.min_uid && peer_name(auth, uid)[0] != '\0');
}

static int identify_peer(struct acre_auth *auth, const struct acre_http_request *request,
                         struct api_user *to, struct acre_error *err) {
    uint32_t uid = request->peer->uid;
    if (uid < auth->options.min_uid && !is_trusted(uid)) {
        return acre_fail(err, ACRE_EDENIED,
                         "uid %u is below --min-uid %u: system accounts may not use acre", uid,
                         auth->options.min_uid);
    }
    const char *name = peer_name(auth, uid);
    char number[24];
    if (name[0] == '\0' && !is_trusted(uid)) {
        return acre_fail(err, ACRE_EDENIED, "uid %u has no account on this machine", uid);
    }
    if (name[0] == '\0') {
        snprintf(number, sizeof(number), "uid-%u", uid);
        name = number;
    }
    to->name = acre_arena_strndup(request->arena, name, strlen(name));
    to->project = acre_arena_strndup(request->arena, auth->project, strlen(auth->project));
    to->token = 0;
    to->role = is_trusted(uid) || is_listed(auth->admins, name) ? ACRE_ROLE_ADMIN
               : is_listed(auth->operators, name)               ? ACRE_ROLE_OPERATOR
                                                                : ACRE_ROLE_USER;
    return 0;
}

int auth_identify(struct acre_auth *auth, struct acre_exchange *exchange,
                  const struct acre_http_request *request, struct api_user *ret_user,
                  struct acre_error *err) {
    const char *text = given_token(exchange);
    if (text == NULL && request->peer->is_unix) {
        return identify_peer(auth, request, ret_user, err);
    }
    if (text == NULL) {
        return acre_fail(err, ACRE_EDENIED,
                         "no token; send 'Authorization: Bearer acre_...' (create one with 'acre "
                         "token create')");
    }
    const struct auth_token *token = check_token(auth, text);
    if (token == NULL) {
        return acre_fail(err, ACRE_EDENIED, "the token is unknown, expired or revoked");
    }
    struct acre_arena *arena = request->arena; /* the table may move before the answer */
    const char *project = token->shown.project[0] != '\0' ? token->shown.project : auth->project;
    ret_user->name = acre_arena_strndup(arena, token->shown.user, strlen(token->shown.user));
    ret_user->project = acre_arena_strndup(arena, project, strlen(project));
    ret_user->role = token->shown.role;
    ret_user->token = token->shown.id;
    return 0;
}

/* Is the user of this unix peer in the group of that name? */
static bool is_in_group(uint32_t gid, const char *user, const char *group) {
    char *buffer = acre_calloc(1, DATABASE_MAX_BYTES);
    struct group entry;
    struct group *found = NULL;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;
    bool is_in = false;
    getgrnam_r(group, &entry, buffer, DATABASE_MAX_BYTES, &found);
    if (found != NULL && getgrouplist(user, gid, groups, &count) >= 0) {
        for (int i = 0; i < count; i++) {
            is_in = is_in || groups[i] == found->gr_gid;
        }
    }
    free(buffer);
    return is_in;
}

int auth_may_charge(const struct acre_call *call, const char *project, struct acre_error *err) {
    const struct acre_http_peer *peer = call->request->peer;
    if (strcmp(project, call->user.project) == 0 || call->user.role >= ACRE_ROLE_OPERATOR ||
        (peer->is_unix && given_token(call->exchange) == NULL &&
         is_in_group(peer->gid, call->user.name, project))) {
        return 0;
    }
    char shown[80];
    return acre_fail(
        err, ACRE_EDENIED,
        "project: you may not charge '%s'; accepted: '%s', or one of your groups on this machine",
        acre_str_show(acre_str_from(project), shown, sizeof(shown)), call->user.project);
}
