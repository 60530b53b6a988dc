/* server.h - where the daemon is, and the token shown to it.
 *
 * Programs only, one thread. Reads the environment and the user's files; connects nowhere. */
#ifndef ACRE_CLI_SERVER_H
#define ACRE_CLI_SERVER_H

#include "core/error.h"

enum {
    ACRE_SERVER_PATH_MAX = 108, /* what sockaddr_un holds, NUL included */
    ACRE_SERVER_URL_MAX = 512,
    ACRE_SERVER_TOKEN_MAX = 256, /* "acre_<id>_<secret>" has under 100 */
};

struct acre_server {
    char socket[ACRE_SERVER_PATH_MAX]; /* "": TCP */
    char url[ACRE_SERVER_URL_MAX];     /* "http://host:port", without a slash at the end */
    char token[ACRE_SERVER_TOKEN_MAX]; /* "": none */
    bool found;                        /* false: nothing was named and no socket is there */
};

/* `named` and `token_file` are the options (NULL: not given); then ACRE_SERVER and ACRE_TOKEN; then
 * the usual sockets, the first that exists; then http://127.0.0.1:10000. A socket knows who asks by
 * itself: the token in the user's configuration is only for TCP. */
int acre_server_find(const char *named, const char *token_file, struct acre_server *ret_server,
                     struct acre_error *err);

/* How people name it: the socket's path or the URL. */
const char *acre_server_name(const struct acre_server *server);

#endif
