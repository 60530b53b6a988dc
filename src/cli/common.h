/* common.h - what all commands that ask a daemon share: their first options, a session, and the
 * three ways to show an answer (for people, --json, --quiet).
 *
 * Programs only, one thread. */
#ifndef ACRE_CLI_COMMON_H
#define ACRE_CLI_COMMON_H

#include "cli/client.h"
#include "cli/term.h"
#include "core/opt.h"

enum { ACRE_OUTPUT_MAX_BYTES = 256 << 20 };

/* The options of such a command begin with these. */
struct acre_common {
    const char *server;
    const char *token_file;
    const char *authorities;
    bool insecure;
    bool json;
    bool quiet;
};

enum { ACRE_COMMON_ROWS = 6 };
extern const struct acre_opt acre_common_rows[ACRE_COMMON_ROWS];

/* Where and for when an answer is drawn. */
struct acre_show {
    struct acre_term term;
    uint64_t now_ms;
    struct acre_buf *out;
};
typedef void acre_show_function(const struct acre_show *view, const json_t *answer);

/* Of the daemon that they name. */
struct acre_server_options acre_common_server(const struct acre_common *common);

struct acre_session {
    const struct acre_common *common;
    struct acre_client *client;
    int result; /* exit code of the first failure; 0: none */
};

/* False: told, and session->result is the exit code. */
bool acre_session_open(struct acre_session *session, const struct acre_common *common);
void acre_session_close(struct acre_session *session);
/* NULL after a failure (told, and kept in session->result). Takes the reference to `body`. An
 * answer without content is an empty object. */
json_t *acre_session_call(struct acre_session *session, const char *method, const char *path,
                          json_t *body);
/* Tell a failure; the first one is the exit code. */
void acre_session_fail(struct acre_session *session, const struct acre_error *err);
/* Print as the options say: JSON, `brief` (NULL: nothing) when quiet, else `view`. */
void acre_session_show(struct acre_session *session, const json_t *answer, acre_show_function *view,
                       acre_show_function *brief);

/* One question, its answer shown; returns the exit code. Takes the reference to `body`. */
int acre_cli_ask(const struct acre_common *common, const char *method, const char *path,
                 json_t *body, acre_show_function *view, acre_show_function *brief);

/* The same question about each of some things, all that can be asked. */
struct acre_question {
    const char *method, *before, *after; /* "POST" "/jobs/" NAME "/hold" */
    const char *number;                  /* the names are numbers of these ("job"); NULL: any */
    json_t *body;                        /* borrowed, may be NULL */
    acre_show_function *view, *brief;
};
int acre_cli_ask_each(const struct acre_common *common, const struct acre_question *question,
                      int count, char **names);

/* "/jobs/42/hold" from its parts, escaped where they came from outside. */
enum { ACRE_PATH_MAX = 1024 };
int acre_cli_path(char path[ACRE_PATH_MAX], const char *before, const char *part, const char *after,
                  struct acre_error *err);
/* "/jobs?user=ada&name=x": those that have a value. ACRE_ELIMIT when that is too long. */
struct acre_filter {
    const char *key, *value; /* NULL: not asked for */
};
int acre_cli_query(char path[ACRE_PATH_MAX], const char *list, const struct acre_filter *filters,
                   size_t count, struct acre_error *err);
/* Words of the command line as members of a request; none (NULL, or a list of none) is left out.
 * ACRE_EINVALID: not UTF-8, which is all that JSON can carry. */
int acre_body_put_text(json_t *body, const char *key, const char *text, struct acre_error *err);
int acre_body_put_list(json_t *body, const char *key, const struct acre_opt_list *list,
                       struct acre_error *err);
/* A list with all its pages, up to `limit` items (0: all); `path` may have a query. */
json_t *acre_session_list(struct acre_session *session, const char *path, const char *key,
                          uint64_t limit);

#endif
