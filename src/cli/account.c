/* account.c - who used what, who may do what, who did what: `usage`, `stats`, `token`, `audit`. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "cli/when.h"

static int run_usage(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/usage", NULL, acre_show_usage, NULL);
}

static int run_stats(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/stats", NULL, acre_show_stats, NULL);
}

struct token_options {
    struct acre_common common;
    const char *user, *project, *role, *note, *expires;
};

static void show_token_ids(const struct acre_show *view, const json_t *answer) {
    acre_show_ids(view, answer, "tokens");
}

static int run_token_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return acre_cli_ask(target, "GET", "/tokens", NULL, acre_show_tokens, show_token_ids);
}

static int run_token_create(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct token_options *options = target;
    const struct {
        const char *key, *text;
    } values[] = {{"user", options->user},
                  {"project", options->project},
                  {"role", options->role},
                  {"note", options->note},
                  {"expires", options->expires}};
    json_t *body = json_object();
    for (size_t i = 0; i < ACRE_COUNT(values); i++) {
        struct acre_error err = {0};
        if (acre_body_put_text(body, values[i].key, values[i].text, &err) < 0) {
            json_decref(body);
            return acre_cli_fail(&err);
        }
    }
    return acre_cli_ask(&options->common, "POST", "/tokens", body, acre_show_token,
                        acre_show_token);
}

/* "token 2 is revoked, and with it those it made: 3, 4" */
static void show_revoked(const struct acre_show *view, const json_t *answer) {
    const json_t *id;
    size_t i;
    char text[32];
    acre_buf_printf(view->out, "token %s is revoked",
                    acre_answer_count(answer, "token.id", text, sizeof(text)));
    json_array_foreach(acre_answer_at(answer, "descendants"), i, id) {
        acre_buf_printf(view->out, "%s%" JSON_INTEGER_FORMAT,
                        i == 0 ? ", and with it those it made: " : ", ", json_integer_value(id));
    }
    acre_buf_putc(view->out, '\n');
}

static int run_token_revoke(int argument_count, char **arguments, void *target) {
    static const struct acre_question question = {
        .method = "DELETE", .before = "/tokens/", .after = "", .view = show_revoked};
    return acre_cli_ask_each(target, &question, argument_count, arguments);
}

struct audit_options {
    struct acre_common common;
    bool verify;
    const char *actor, *action, *target;
    uint64_t limit;
};

static int verify(const struct audit_options *options) {
    struct acre_session session;
    if (!acre_session_open(&session, &options->common)) {
        return session.result;
    }
    json_t *answer = acre_session_call(&session, "GET", "/audit/verify", NULL);
    if (answer != NULL) {
        acre_session_show(&session, answer, acre_show_audit_verdict, NULL);
        if (session.result == 0 && !acre_answer_true(answer, "ok")) {
            session.result = acre_error_exit(ACRE_ECORRUPT);
        }
    }
    json_decref(answer);
    acre_session_close(&session);
    return session.result;
}

static int run_audit(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct audit_options *options = target;
    const struct acre_filter filters[] = {
        {"actor", options->actor}, {"action", options->action}, {"target", options->target}};
    if (options->verify) {
        return verify(options);
    }
    struct acre_session session;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    if (acre_cli_query(path, "/audit", filters, ACRE_COUNT(filters), &err) < 0) {
        return acre_cli_fail(&err);
    }
    if (acre_session_open(&session, &options->common)) {
        json_t *answer = acre_session_list(&session, path, "audit", options->limit);
        if (answer != NULL) {
            acre_session_show(&session, answer, acre_show_audit, NULL);
        }
        json_decref(answer);
    }
    acre_session_close(&session);
    return session.result;
}

/* clang-format off */
#define AT(field) offsetof(struct token_options, field)
static const struct acre_opt token_rows[] = {
    {.name = "user", .letter = 'u', .kind = ACRE_OPT_STRING, .offset = AT(user), .value = "NAME",
     .help = "whose it is (yours); jobs run as this Unix account"},
    {.name = "project", .letter = 'P', .kind = ACRE_OPT_STRING, .offset = AT(project),
     .value = "NAME", .help = "who is charged"},
    {.name = "role", .kind = ACRE_OPT_CHOICE, .offset = AT(role), .value = "ROLE",
     .choices = "viewer,user,operator,admin", .help = "what it may do (user)"},
    {.name = "note", .letter = 'n', .kind = ACRE_OPT_STRING, .offset = AT(note), .value = "TEXT",
     .help = "what it is for"},
    {.name = "expires", .letter = 'e', .kind = ACRE_OPT_STRING, .offset = AT(expires),
     .value = "TIME", .help = "good for so long, like 90d (until it is revoked)",
     .check = acre_when_check_span},
};
#undef AT
#define AT(field) offsetof(struct audit_options, field)
static const struct acre_opt audit_rows[] = {
    {.name = "verify", .kind = ACRE_OPT_FLAG, .offset = AT(verify),
     .help = "check that no record was changed, left out or put in; exit 14 when one was"},
    {.name = "actor", .kind = ACRE_OPT_STRING, .offset = AT(actor), .value = "WHO",
     .help = "only what this one did, like user:ada"},
    {.name = "action", .kind = ACRE_OPT_STRING, .offset = AT(action), .value = "WHAT",
     .help = "only this, like 'job submitted'"},
    {.name = "target", .kind = ACRE_OPT_STRING, .offset = AT(target), .value = "WHICH",
     .help = "only about this, like job:42"},
    {.name = "limit", .kind = ACRE_OPT_COUNT, .offset = AT(limit), .value = "N",
     .help = "at most N, the newest (100); 0: all", .max = INT64_MAX},
};
/* clang-format on */

static const struct token_options token_defaults = {.role = "user"};
static const struct audit_options audit_defaults = {.limit = 100};

#define SHARED .shared = acre_common_rows, .shared_count = ACRE_COMMON_ROWS

const struct acre_command acre_command_usage = {
    .name = "usage",
    .summary = "who used how much, and what that means for their turn",
    .usage = "acre usage [options]",
    .details =
        "Use decays (half of it is forgotten every week, by default). FACTOR is what the queue\n"
        "orders by: 1 for who used nothing, less for who used much for their share.\n"
        "\n"
        "Example:\n"
        "  acre usage",
    SHARED,
    .run = run_usage,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_stats = {
    .name = "stats",
    .summary = "the queue in numbers: lengths, waits, throughput, success",
    .usage = "acre stats [options]",
    .details = "Example:\n"
               "  acre stats",
    SHARED,
    .run = run_stats,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_token_list = {
    .name = "token list",
    .summary = "the tokens that were given out",
    .usage = "acre token [list] [options]",
    .details = "Example:\n"
               "  acre token list",
    SHARED,
    .run = run_token_list,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_token_create = {
    .name = "token create",
    .summary = "let somebody in over HTTP",
    .usage = "acre token create [options]",
    .details = "The token is printed once; the daemon keeps only its hash. Needs an administrator\n"
               "for anybody but yourself. When you show a token yourself, the new one is good no\n"
               "longer than that, and is revoked with it.\n"
               "\n"
               "Example:\n"
               "  acre token create --user ada --project vision --expires 90d",
    .options = token_rows,
    .option_count = ACRE_COUNT(token_rows),
    SHARED,
    .run = run_token_create,
    .options_size = sizeof(struct token_options),
    .defaults = &token_defaults,
};

const struct acre_command acre_command_token_revoke = {
    .name = "token revoke",
    .summary = "make tokens useless, at once",
    .usage = "acre token revoke [options] ID...",
    .details = "Tokens that were made with them are revoked too, and named.\n"
               "\n"
               "Example:\n"
               "  acre token revoke 2",
    SHARED,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "tokens",
    .run = run_token_revoke,
    .options_size = sizeof(struct acre_common),
};

const struct acre_command acre_command_audit = {
    .name = "audit",
    .summary = "who did what, when, from where; and whether the record was changed",
    .usage = "acre audit [options]",
    .details = "Examples:\n"
               "  acre audit --limit 20\n"
               "  acre audit --verify",
    .options = audit_rows,
    .option_count = ACRE_COUNT(audit_rows),
    SHARED,
    .run = run_audit,
    .options_size = sizeof(struct audit_options),
    .defaults = &audit_defaults,
};
