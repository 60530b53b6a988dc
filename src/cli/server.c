/* server.c - the daemon by option, environment, or the first of the usual sockets that exists.
 *
 * What a person names is taken as it is and never replaced by something else that happens to
 * answer: a job in the wrong queue is worse than an error. */
#include "cli/server.h"

#include "core/file.h"
#include "core/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char default_url[] = "http://127.0.0.1:10000";

/* The usual places, in this order: the variable that begins the path, and the rest. */
static const struct {
    const char *variable;
    const char *rest;
} places[] = {
    {"XDG_RUNTIME_DIR", "/acre/acre.sock"},
    {NULL, "/run/acre/acre.sock"},
    {"HOME", "/.local/state/acre/acre.sock"},
};

static bool is_socket(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISSOCK(status.st_mode);
}

static int take_path(const char *path, struct acre_server *server, struct acre_error *err) {
    if (!acre_str_copy(server->socket, sizeof(server->socket), acre_str_from(path))) {
        return acre_fail(err, ACRE_EINVALID,
                         "--server: the path of a socket has at most %d bytes; this one has %zu",
                         ACRE_SERVER_PATH_MAX - 1, strlen(path));
    }
    snprintf(server->url, sizeof(server->url), "http://localhost");
    return 0;
}

static int take_url(const char *text, struct acre_server *server, struct acre_error *err) {
    bool has_scheme = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '/') {
        length--;
    }
    bool plain = length > 0;
    for (size_t i = 0; i < length; i++) {
        plain = plain && text[i] > ' ' && text[i] < 0x7f;
    }
    char shown[128];
    if (!plain || (!has_scheme && strstr(text, "://") != NULL) ||
        length + sizeof("http://") > sizeof(server->url)) {
        return acre_fail(err, ACRE_EINVALID,
                         "--server: '%s' is no server; accepted: the path of a socket, "
                         "http://HOST:PORT, https://HOST:PORT or HOST:PORT",
                         acre_str_show(acre_str_from(text), shown, sizeof(shown)));
    }
    snprintf(server->url, sizeof(server->url), "%s%.*s", has_scheme ? "" : "http://", (int)length,
             text);
    return 0;
}

static int take_named(const char *text, struct acre_server *server, struct acre_error *err) {
    server->found = true;
    bool is_path = text[0] == '/' || text[0] == '.' ||
                   (strchr(text, '/') != NULL && strstr(text, "://") == NULL);
    return is_path ? take_path(text, server, err) : take_url(text, server, err);
}

static int take_usual(struct acre_server *server, struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(places); i++) {
        const char *start = places[i].variable != NULL ? getenv(places[i].variable) : "";
        char path[ACRE_SERVER_PATH_MAX];
        int length = start == NULL || (places[i].variable != NULL && start[0] == '\0')
                         ? -1
                         : snprintf(path, sizeof(path), "%s%s", start, places[i].rest);
        if (length > 0 && (size_t)length < sizeof(path) && is_socket(path)) {
            server->found = true;
            return take_path(path, server, err);
        }
    }
    return take_url(default_url, server, err);
}

static int take_token(const char *from, struct acre_str text, struct acre_server *server,
                      struct acre_error *err) {
    while (text.length > 0 && (unsigned char)text.data[text.length - 1] <= ' ') {
        text.length--;
    }
    bool plain = text.length > 0;
    for (size_t i = 0; i < text.length; i++) {
        plain = plain && text.data[i] > ' ' && text.data[i] < 0x7f;
    }
    if (!plain || !acre_str_copy(server->token, sizeof(server->token), text)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: is no token; accepted: one line like acre_ID_SECRET, as 'acre token "
                         "create' prints it",
                         from);
    }
    return 0;
}

static int read_token(const char *path, struct acre_server *server, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, ACRE_SERVER_TOKEN_MAX * 2);
    int r = acre_file_read(path, ACRE_SERVER_TOKEN_MAX, &text, err);
    if (r == 0) {
        r = take_token(path, (struct acre_str){text.data, text.length}, server, err);
    }
    acre_buf_finish(&text);
    return r;
}

static int find_token(const char *token_file, struct acre_server *server, struct acre_error *err) {
    const char *variable = getenv("ACRE_TOKEN");
    if (token_file != NULL) {
        return read_token(token_file, server, err);
    }
    if (variable != NULL && variable[0] != '\0') {
        return take_token("ACRE_TOKEN", acre_str_from(variable), server, err);
    }
    const char *home = getenv("HOME");
    char path[512];
    if (server->socket[0] != '\0' || home == NULL ||
        (size_t)snprintf(path, sizeof(path), "%s/.config/acre/token", home) >= sizeof(path)) {
        return 0;
    }
    struct stat status;
    return stat(path, &status) == 0 ? read_token(path, server, err) : 0;
}

int acre_server_find(const char *named, const char *token_file, struct acre_server *ret_server,
                     struct acre_error *err) {
    struct acre_server server = {0};
    const char *variable = getenv("ACRE_SERVER");
    if (named == NULL && variable != NULL && variable[0] != '\0') {
        named = variable;
    }
    int r = named != NULL ? take_named(named, &server, err) : take_usual(&server, err);
    if (r == 0) {
        r = find_token(token_file, &server, err);
    }
    if (r == 0) {
        *ret_server = server;
    }
    return r;
}

const char *acre_server_name(const struct acre_server *server) {
    return server->socket[0] != '\0' ? server->socket : server->url;
}
