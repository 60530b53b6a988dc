/* admin.c - usage, statistics, tokens and the audit log: `usage`, `stats`, `token`, `audit`. */
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/show.h"
#include "cli/when.h"

static int run_usage(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/usage", NULL, show_usage, NULL);
}

static int run_stats(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/stats", NULL, show_stats, NULL);
}

struct token_options {
    struct common common;
    const char *user, *project, *role, *note, *expires;
};

static void show_token_ids(const struct show *view, const json_t *answer) {
    show_id_list(view, answer, "tokens");
}

static int run_token_list(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    return cli_ask(target, "GET", "/tokens", NULL, show_tokens, show_token_ids);
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
        if (body_put_text(body, values[i].key, values[i].text, &err) < 0) {
            json_decref(body);
            return cli_fail(&err);
        }
    }
    return cli_ask(&options->common, "POST", "/tokens", body, show_token, show_token);
}

/* "token 2 revoked, and the tokens made with it: 3, 4" */
static void show_revoked(const struct show *view, const json_t *answer) {
    const json_t *id;
    size_t i;
    char text[32];
    acre_buf_printf(view->out, "token %s revoked",
                    answer_count(answer, "token.id", text, sizeof(text)));
    json_array_foreach(answer_at(answer, "descendants"), i, id) {
        acre_buf_printf(view->out, "%s%" JSON_INTEGER_FORMAT,
                        i == 0 ? ", and the tokens made with it: " : ", ", json_integer_value(id));
    }
    acre_buf_putc(view->out, '\n');
}

static int run_token_revoke(int argument_count, char **arguments, void *target) {
    static const struct session_question question = {
        .method = "DELETE", .before = "/tokens/", .after = "", .view = show_revoked};
    return cli_ask_each(target, &question, argument_count, arguments);
}

struct audit_options {
    struct common common;
    bool verify;
    const char *actor, *action, *target;
    uint64_t limit;
};

static int verify(const struct audit_options *options) {
    struct session session;
    if (!session_open(&session, &options->common)) {
        return session.result;
    }
    json_t *answer = session_call(&session, "GET", "/audit/verify", NULL);
    if (answer != NULL) {
        session_show(&session, answer, show_audit_verdict, NULL);
        if (session.result == 0 && !answer_true(answer, "ok")) {
            session.result = acre_error_exit(ACRE_ECORRUPT);
        }
    }
    json_decref(answer);
    session_close(&session);
    return session.result;
}

static int run_audit(int argument_count, char **arguments, void *target) {
    (void)argument_count;
    (void)arguments;
    const struct audit_options *options = target;
    const struct filter filters[] = {
        {"actor", options->actor}, {"action", options->action}, {"target", options->target}};
    if (options->verify) {
        return verify(options);
    }
    struct session session;
    struct acre_error err = {0};
    char path[ACRE_PATH_MAX];
    if (cli_query(path, "/audit", filters, ACRE_COUNT(filters), &err) < 0) {
        return cli_fail(&err);
    }
    if (session_open(&session, &options->common)) {
        json_t *answer = session_list(&session, path, "audit", options->limit);
        if (answer != NULL) {
            session_show(&session, answer, show_audit, NULL);
        }
        json_decref(answer);
    }
    session_close(&session);
    return session.result;
}

/* clang-format off */
#define AT(field) offsetof(struct token_options, field)
static const struct acre_opt token_rows[] = {
    {.name = "user", .letter = 'u', .kind = ACRE_OPT_STRING, .offset = AT(user), .value = "NAME",
     .help = "its user (default: you); jobs run as this Unix account"},
    {.name = "project", .letter = 'P', .kind = ACRE_OPT_STRING, .offset = AT(project),
     .value = "NAME", .help = "project to charge"},
    {.name = "role", .kind = ACRE_OPT_CHOICE, .offset = AT(role), .value = "ROLE",
     .choices = "viewer,user,operator,admin", .help = "what it may do (default: user)"},
    {.name = "note", .letter = 'n', .kind = ACRE_OPT_STRING, .offset = AT(note), .value = "TEXT",
     .help = "what it is for"},
    {.name = "expires", .letter = 'e', .kind = ACRE_OPT_STRING, .offset = AT(expires),
     .value = "TIME", .help = "how long it is valid, such as 90d (default: until it is revoked)",
     .check = when_check_span},
};
#undef AT
#define AT(field) offsetof(struct audit_options, field)
static const struct acre_opt audit_rows[] = {
    {.name = "verify", .kind = ACRE_OPT_FLAG, .offset = AT(verify),
     .help = "check that no record was changed, removed or added; exit 14 if one was"},
    {.name = "actor", .kind = ACRE_OPT_STRING, .offset = AT(actor), .value = "WHO",
     .help = "only actions by this user or token, such as user:ada"},
    {.name = "action", .kind = ACRE_OPT_STRING, .offset = AT(action), .value = "WHAT",
     .help = "only this action, such as 'job submitted'"},
    {.name = "target", .kind = ACRE_OPT_STRING, .offset = AT(target), .value = "WHICH",
     .help = "only actions on this, such as job:42"},
    {.name = "limit", .kind = ACRE_OPT_COUNT, .offset = AT(limit), .value = "N",
     .help = "show the newest N records; 0 shows all (default: 100)", .max = INT64_MAX},
};
/* clang-format on */

static const struct token_options token_defaults = {.role = "user"};
static const struct audit_options audit_defaults = {.limit = 100};

#define SHARED .shared = common_rows, .shared_count = ACRE_COMMON_ROWS

const struct acre_command command_usage = {
    .name = "usage",
    .summary = "show GPU usage by user and its effect on fair share",
    .usage = "acre usage [options]",
    .details =
        "Usage decays: by default it halves every week. Under fair share, users with a higher\n"
        "FACTOR go first: it is 1 for no usage, and falls as usage grows relative to the\n"
        "user's share.\n"
        "\n"
        "Examples:\n"
        "  acre usage\n"
        "  acre usage --json",
    SHARED,
    .run = run_usage,
    .options_size = sizeof(struct common),
};

const struct acre_command command_stats = {
    .name = "stats",
    .summary = "show queue statistics: length, waits, throughput, success rate",
    .usage = "acre stats [options]",
    .details = "Examples:\n"
               "  acre stats\n"
               "  acre stats --json",
    SHARED,
    .run = run_stats,
    .options_size = sizeof(struct common),
};

const struct acre_command command_token_list = {
    .name = "token list",
    .summary = "list API tokens",
    .usage = "acre token [list] [options]",
    .details = "Examples:\n"
               "  acre token list\n"
               "  acre token list --json",
    SHARED,
    .run = run_token_list,
    .options_size = sizeof(struct common),
};

const struct acre_command command_token_create = {
    .name = "token create",
    .summary = "create an API token, for access over HTTP",
    .usage = "acre token create [options]",
    .details =
        "The token is printed once; the daemon keeps only its hash. A token for another user\n"
        "requires the admin role. A token created with another token expires no later than\n"
        "that one, and is revoked with it.\n"
        "\n"
        "Examples:\n"
        "  acre token create --user ada --project vision --expires 90d\n"
        "  acre token create --role viewer --note dashboard",
    .options = token_rows,
    .option_count = ACRE_COUNT(token_rows),
    SHARED,
    .run = run_token_create,
    .options_size = sizeof(struct token_options),
    .defaults = &token_defaults,
};

const struct acre_command command_token_revoke = {
    .name = "token revoke",
    .summary = "revoke API tokens immediately",
    .usage = "acre token revoke [options] ID...",
    .details = "Tokens created with them are revoked too; their ids are printed.\n"
               "\n"
               "Example:\n"
               "  acre token revoke 2",
    SHARED,
    .min_arguments = 1,
    .max_arguments = UINT32_MAX,
    .takes = "tokens",
    .run = run_token_revoke,
    .options_size = sizeof(struct common),
};

const struct acre_command command_audit = {
    .name = "audit",
    .summary = "show who did what, when and from where; verify that the log is intact",
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
