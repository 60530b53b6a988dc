/* settings.h - the settings of `acre serve`: one table for command line, environment and file.
 *
 * An option overrides the variable ACRE_<NAME>, which overrides the file, which overrides the
 * default. The file has one "name = value" per line; '#' starts a comment; a list takes several
 * lines. One thread at a time. */
#ifndef ACRE_DAEMON_SETTINGS_H
#define ACRE_DAEMON_SETTINGS_H

#include "core/error.h"
#include "core/opt.h"

/* kind: STRING, FLAG, COUNT, DURATION, LIST. */
/* clang-format off */
#define ACRE_SETTINGS(X)                                                                           \
    /* member          name               kind      value      default */                          \
    X(state,           "state",           STRING,   "DIR",     NULL,                               \
      "state directory (default: /var/lib/acre for root, else ~/.local/state/acre)")               \
    X(socket,          "socket",          STRING,   "PATH",    NULL,                               \
      "Unix socket (default: /run/acre/acre.sock for root, else STATE/acre.sock)")                 \
    X(listen,          "listen",          STRING,   "ADDRESS", NULL,                               \
      "TCP address and port, or 'none' (default: 127.0.0.1:10000)")                                \
    X(no_tcp,          "no-tcp",          FLAG,     NULL,      NULL,                               \
      "the same as --listen none")                                                                 \
    X(tls_cert,        "tls-cert",        STRING,   "FILE",    NULL,                               \
      "PEM certificate chain; TCP then accepts only TLS")                                          \
    X(tls_key,         "tls-key",         STRING,   "FILE",    NULL,                               \
      "PEM key of the certificate")                                                                \
    X(sim,             "sim",             LIST,     "FILE",    NULL,                               \
      "simulate the nodes in FILE instead of using this machine's GPUs; repeatable")               \
    X(engine,          "engine",          LIST,     "NAME",    NULL,                               \
      "where jobs run, NAME or NAME=ADDRESS (default: this machine); repeatable")                  \
    X(policy,          "policy",          STRING,   "FILE",    NULL,                               \
      "scheduling policy as JSON, until it is changed through the API")                            \
    X(run_as,          "run-as",          STRING,   "USER",    NULL,                               \
      "run all jobs as USER; users then share it and can reach each other's jobs and files")       \
    X(min_uid,         "min-uid",         COUNT,    "N",       "1000",                             \
      "start no jobs of accounts with a lower uid, the system accounts (default: 1000)")           \
    X(allow_root,      "allow-root",      FLAG,     NULL,      NULL,                               \
      "run root's jobs as root; without this option they do not start")                            \
    X(admins,          "admins",          STRING,   "NAMES",   "",                                 \
      "users with the admin role, separated by commas; root and the daemon's user always are")     \
    X(operators,       "operators",       STRING,   "NAMES",   "",                                 \
      "users with the operator role, who may manage all jobs and drain nodes")                     \
    X(project,         "project",         STRING,   "NAME",    "default",                          \
      "project to charge if a job names none (default: default)")                                  \
    X(rate,            "rate",            COUNT,    "N",       "20000",                            \
      "most requests per second from one user (default: 20000)")                                   \
    X(failures,        "failures",        COUNT,    "N",       "60",                               \
      "most failed logins per minute from one address (default: 60)")                              \
    X(connections,     "connections",     COUNT,    "N",       "4000",                             \
      "most connections, three quarters of them over TCP; root can always connect (default: 4000)")\
    X(sample,          "sample",          DURATION, "TIME",    "2s",                               \
      "time between GPU readings while jobs use them (default: 2s)")                               \
    X(log_level,       "log-level",       STRING,   "LEVEL",   "info",                             \
      "debug, info, warn, error or none (default: info)")
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

struct settings_list {
    char *items[ACRE_OPT_LIST_MAX];
    uint32_t count;
};

/* In force. Strings belong to it. */
struct settings {
#define X(member, name, kind, value, absent, help) ACRE_SETTING_##kind(member)
#define ACRE_SETTING_STRING(member)                char *member;
#define ACRE_SETTING_COUNT(member)                 uint64_t member;
#define ACRE_SETTING_DURATION(member)              uint64_t member; /* ms */
#define ACRE_SETTING_FLAG(member)                  bool member;
#define ACRE_SETTING_LIST(member)                  struct settings_list member;
    ACRE_SETTINGS(X)
#undef X
};

/* ACRE_EINVALID naming the option, the variable or file:line, with the value and what is accepted;
 * what reading the file answered. `ret_settings` is filled only on success. */
int settings_read(const struct acre_settings_given *given, struct settings *ret_settings,
                  struct acre_error *err);
void settings_finish(struct settings *settings);

#endif
