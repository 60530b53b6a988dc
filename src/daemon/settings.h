/* settings.h - what `acre serve` can be told: one table for flags, environment and file.
 *
 * A flag wins over the variable ACRE_<NAME>, which wins over the file, which wins over the default.
 * The file has one "name = value" a line; '#' starts a comment; a list is given by several lines.
 * One thread at a time. */
#ifndef ACRE_DAEMON_SETTINGS_H
#define ACRE_DAEMON_SETTINGS_H

#include "core/error.h"
#include "core/opt.h"

/* kind: STRING, FLAG, COUNT, DURATION, LIST. */
/* clang-format off */
#define ACRE_SETTINGS(X)                                                                           \
    /* member          name               kind      value      default */                          \
    X(state,           "state",           STRING,   "DIR",     NULL,                               \
      "where everything is kept: /var/lib/acre for root, else ~/.local/state/acre")                \
    X(socket,          "socket",          STRING,   "PATH",    NULL,                               \
      "unix socket: /run/acre/acre.sock for root, else acre.sock in the state directory")          \
    X(listen,          "listen",          STRING,   "ADDRESS", NULL,                               \
      "TCP address and port, 'none' for no TCP (default 127.0.0.1:10000)")                         \
    X(no_tcp,          "no-tcp",          FLAG,     NULL,      NULL,                               \
      "the same as --listen none")                                                                 \
    X(tls_cert,        "tls-cert",        STRING,   "FILE",    NULL,                               \
      "certificate chain in PEM: TCP speaks TLS only")                                             \
    X(tls_key,         "tls-key",         STRING,   "FILE",    NULL,                               \
      "its key in PEM")                                                                            \
    X(sim,             "sim",             LIST,     "FILE",    NULL,                               \
      "simulated nodes instead of this machine's GPUs; may be given several times")                \
    X(engine,          "engine",          LIST,     "NAME",    NULL,                               \
      "where jobs run, NAME or NAME=ADDRESS (default: this machine); may be given several times") \
    X(policy,          "policy",          STRING,   "FILE",    NULL,                               \
      "rules of the queue in JSON, until others are set through the API")                          \
    X(run_as,          "run-as",          STRING,   "USER",    NULL,                               \
      "all jobs share this account: users can reach each other's jobs and files")                  \
    X(min_uid,         "min-uid",         COUNT,    "N",       "1000",                             \
      "accounts with a smaller uid, the system's, run no jobs (default 1000)")                     \
    X(allow_root,      "allow-root",      FLAG,     NULL,      NULL,                               \
      "jobs of root run as root; without this they are not started")                               \
    X(admins,          "admins",          STRING,   "NAMES",   "",                                 \
      "users who may do everything, separated by commas; root and the daemon's own always")        \
    X(operators,       "operators",       STRING,   "NAMES",   "",                                 \
      "users who may act on everybody's jobs and drain nodes")                                     \
    X(project,         "project",         STRING,   "NAME",    "default",                          \
      "who is charged when nobody says otherwise (default: default)")                              \
    X(rate,            "rate",            COUNT,    "N",       "20000",                            \
      "requests a second of one user (default 20000)")                                             \
    X(failures,        "failures",        COUNT,    "N",       "60",                               \
      "failed log-ins a minute from one address (default 60)")                                     \
    X(connections,     "connections",     COUNT,    "N",       "4000",                             \
      "at once (default 4000), of which TCP gets three quarters; root always gets in")             \
    X(sample,          "sample",          DURATION, "TIME",    "2s",                               \
      "between readings of GPUs while jobs use them (default 2s)")                                 \
    X(log_level,       "log-level",       STRING,   "LEVEL",   "info",                             \
      "debug, info, warn, error or none (default info)")
/* clang-format on */

/* As given on the command line. */
struct acre_settings_given {
    const char *config;
#define X(member, name, kind, value, absent, help) ACRE_GIVEN_##kind(member)
#define ACRE_GIVEN_STRING(member)                  const char *member;
#define ACRE_GIVEN_COUNT(member)                   const char *member;
#define ACRE_GIVEN_DURATION(member)                const char *member;
#define ACRE_GIVEN_FLAG(member)                    bool member;
#define ACRE_GIVEN_LIST(member)                    struct acre_opt_list member;
    ACRE_SETTINGS(X)
#undef X
};

struct acre_settings_list {
    char *items[ACRE_OPT_LIST_MAX];
    uint32_t count;
};

/* In force. Strings belong to it. */
struct acre_settings {
#define X(member, name, kind, value, absent, help) ACRE_SETTING_##kind(member)
#define ACRE_SETTING_STRING(member)                char *member;
#define ACRE_SETTING_COUNT(member)                 uint64_t member;
#define ACRE_SETTING_DURATION(member)              uint64_t member; /* ms */
#define ACRE_SETTING_FLAG(member)                  bool member;
#define ACRE_SETTING_LIST(member)                  struct acre_settings_list member;
    ACRE_SETTINGS(X)
#undef X
};

/* ACRE_EINVALID naming the option, the variable or file:line, with the value and what is accepted;
 * what reading the file answered. `ret_settings` is filled only on success. */
int acre_settings_read(const struct acre_settings_given *given, struct acre_settings *ret_settings,
                       struct acre_error *err);
void acre_settings_finish(struct acre_settings *settings);

#endif
