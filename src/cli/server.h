/* server.h - finds the daemon and the token to use with it.
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

struct server_address {
    char socket[ACRE_SERVER_PATH_MAX]; /* "": TCP */
    char url[ACRE_SERVER_URL_MAX];     /* "http://host:port", without a slash at the end */
    char token[ACRE_SERVER_TOKEN_MAX]; /* "": none */
};

/* What the options say; NULL: not given. */
struct server_options {
    const char *server, *token_file;
    bool insecure;
};

/* The daemon: the option, then ACRE_SERVER, then the first of the usual sockets that belongs to
 * root or to the user. Nothing else is guessed: ACRE_EUNAVAILABLE. Plain http to another machine is
 * refused unless `insecure` or ACRE_INSECURE says that it is meant.
 *
 * The token: the option's file, then ACRE_TOKEN; then, over TCP only, the one kept for this server
 * in ~/.config/acre/tokens, then the one in ~/.config/acre/token, which is for whatever server the
 * user names. (A socket knows who asks by itself.) Files that others can read are refused with
 * ACRE_EDENIED. */
int server_find(const struct server_options *options, struct server_address *ret_server,
                struct acre_error *err);

/* How people name it: the socket's path or the URL. */
const char *server_name(const struct server_address *server);

#endif
