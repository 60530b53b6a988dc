/* common.h - shared by all commands that talk to a daemon: the common options, a session, and the
 * three ways to show an answer (as text, --json, --quiet).
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_COMMON_H
#define ACRE_CLI_COMMON_H

#include "cli/client.h"
#include "cli/term.h"
#include "core/opt.h"

enum { ACRE_OUTPUT_MAX_BYTES = 256 << 20 };

/* The options of such a command begin with these. */
struct common {
    const char *server;
    const char *token_file;
    const char *authorities;
    bool insecure;
    bool json;
    bool quiet;
};

enum { ACRE_COMMON_ROWS = 6 };
extern const struct acre_opt common_rows[ACRE_COMMON_ROWS];

/* Where and for when an answer is drawn. */
struct show {
    struct term term;
    uint64_t now_ms;
    struct acre_buf *out;
};
typedef void show_function(const struct show *view, const json_t *answer);

/* Of the daemon that they name. */
struct server_options common_server(const struct common *common);

struct session {
    const struct common *common;
    struct curl_client *client;
    int result; /* exit code of the first failure; 0: none */
};

/* False: told, and session->result is the exit code. */
bool session_open(struct session *session, const struct common *common);
void session_close(struct session *session);
/* NULL after a failure (told, and kept in session->result). Takes the reference to `body`. An
 * answer without content is an empty object. */
json_t *session_call(struct session *session, const char *method, const char *path, json_t *body);
/* Tell a failure; the first one is the exit code. */
void session_fail(struct session *session, const struct acre_error *err);
/* Print as the options say: JSON, `brief` (NULL: nothing) when quiet, else `view`. */
void session_show(struct session *session, const json_t *answer, show_function *view,
                  show_function *brief);

/* One question, its answer shown; returns the exit code. Takes the reference to `body`. */
int cli_ask(const struct common *common, const char *method, const char *path, json_t *body,
            show_function *view, show_function *brief);

/* The same question about each of some things, all that can be asked. */
struct session_question {
    const char *method, *before, *after; /* "POST" "/jobs/" NAME "/hold" */
    const char *number;                  /* the names are numbers of these ("job"); NULL: any */
    json_t *body;                        /* borrowed, may be NULL */
    show_function *view, *brief;
};
int cli_ask_each(const struct common *common, const struct session_question *question, int count,
                 char **names);

/* "/jobs/42/hold" from its parts, escaped where they came from outside. */
enum { ACRE_PATH_MAX = 1024 };
int cli_path(char path[ACRE_PATH_MAX], const char *before, const char *part, const char *after,
             struct acre_error *err);
/* "/jobs?user=ada&name=x": those that have a value. ACRE_ELIMIT when that is too long. */
struct filter {
    const char *key, *value; /* NULL: not asked for */
};
int cli_query(char path[ACRE_PATH_MAX], const char *list, const struct filter *filters,
              size_t count, struct acre_error *err);
/* Words of the command line as members of a request; none (NULL, or a list of none) is left out.
 * ACRE_EINVALID: not UTF-8, which is all that JSON can carry. */
int body_put_text(json_t *body, const char *key, const char *text, struct acre_error *err);
int body_put_list(json_t *body, const char *key, const struct acre_opt_list *list,
                  struct acre_error *err);
/* A list with all its pages, up to `limit` items (0: all); `path` may have a query. */
json_t *session_list(struct session *session, const char *path, const char *key, uint64_t limit);

#endif
