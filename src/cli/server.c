/* server.c - finds the daemon by option, by environment, or at the first of the usual sockets that
 * can be trusted.
 *
 * A server that a person names is never replaced by another one that happens to answer: a job in
 * the wrong queue is worse than an error, and a token in the wrong hands is worse still. So a port
 * is never guessed, because any user of the machine could listen on it, and a usual socket that
 * belongs to another user is not used. */
#include "cli/server.h"

#include "core/file.h"
#include "core/str.h"
#include "core/units.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKENS_MAX_BYTES = 64 << 10, SHOWN_BYTES = 128 };

/* The usual places, in this order: the variable that begins the path, and the rest. */
static const struct {
    const char *variable;
    const char *rest;
} places[] = {
    {"XDG_RUNTIME_DIR", "/acre/acre.sock"},
    {NULL, "/run/acre/acre.sock"},
    {"HOME", "/.local/state/acre/acre.sock"},
};

/* --- the server ----------------------------------------------------------------------------- */

static int take_path(const char *path, struct server_address *server, struct acre_error *err) {
    if (!acre_str_copy(server->socket, sizeof(server->socket), acre_str_from(path))) {
        return acre_fail(err, ACRE_EINVALID,
                         "--server: a socket path may have at most %d bytes; this one has %zu",
                         ACRE_SERVER_PATH_MAX - 1, strlen(path));
    }
    snprintf(server->url, sizeof(server->url), "http://localhost");
    return 0;
}

static size_t span(struct acre_str text, const char *others) {
    size_t length = 0;
    while (
        length < text.length && text.data[length] != '\0' &&
        (isalnum((unsigned char)text.data[length]) || strchr(others, text.data[length]) != NULL)) {
        length++;
    }
    return length;
}

static struct acre_str cut(struct acre_str *rest, size_t length) {
    struct acre_str part = {rest->data, length};
    rest->data += length;
    rest->length -= length;
    return part;
}

/* "gpu.example.org", "10.0.0.1" or "[::1]"; empty when there is none. */
static struct acre_str cut_host(struct acre_str *rest) {
    if (rest->length > 0 && rest->data[0] == '[') {
        struct acre_str inside = {rest->data + 1, rest->length - 1};
        size_t length = span(inside, ":.");
        bool closed = length > 0 && length < inside.length && inside.data[length] == ']';
        return cut(rest, closed ? length + 2 : 0);
    }
    return cut(rest, span(*rest, ".-_"));
}

static bool is_port(struct acre_str text) {
    char port[8];
    uint64_t number;
    return acre_str_copy(port, sizeof(port), text) &&
           acre_parse_count("port", port, 1, UINT16_MAX, &number, NULL) == 0;
}

/* The parts of HOST[:PORT][/PATH]. Nothing but these is taken: who reads "http://127.0.0.1:80@host"
 * and who connects must not differ on which host that is. */
static bool split_url(struct acre_str text, struct acre_str *ret_host, struct acre_str *ret_rest) {
    struct acre_str rest = text;
    *ret_host = cut_host(&rest);
    *ret_rest = rest;
    if (rest.length > 0 && rest.data[0] == ':') {
        cut(&rest, 1);
        size_t length = span(rest, "");
        if (!is_port(cut(&rest, length))) {
            return false;
        }
    }
    return ret_host->length > 0 && (rest.length == 0 || rest.data[0] == '/') &&
           span(rest, "/.-_~") == rest.length;
}

static bool is_this_machine(struct acre_str host) {
    char name[64];
    struct in_addr v4;
    struct in6_addr v6;
    if (host.length > 2 && host.data[0] == '[') {
        host = (struct acre_str){host.data + 1, host.length - 2};
    }
    if (!acre_str_copy(name, sizeof(name), host)) {
        return false;
    }
    return strcasecmp(name, "localhost") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
           (inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

static int take_url(const char *text, bool insecure, struct server_address *server,
                    struct acre_error *err) {
    static const struct acre_str plain = {"http://", 7}, secure = {"https://", 8};
    struct acre_str rest = acre_str_from(text), host, after;
    bool is_plain = strncmp(text, plain.data, plain.length) == 0;
    bool is_secure = strncmp(text, secure.data, secure.length) == 0;
    cut(&rest, is_plain ? plain.length : is_secure ? secure.length : 0);
    while (rest.length > 0 && rest.data[rest.length - 1] == '/') {
        rest.length--;
    }
    char shown[SHOWN_BYTES];
    acre_str_show(acre_str_from(text), shown, sizeof(shown));
    if (!split_url(rest, &host, &after) || secure.length + rest.length >= sizeof(server->url)) {
        return acre_fail(err, ACRE_EINVALID,
                         "--server: '%s' is not a server; accepted: the path of a socket, "
                         "http://HOST:PORT, https://HOST:PORT or HOST:PORT",
                         shown);
    }
    if (!is_secure && !insecure && !is_this_machine(host)) {
        return acre_fail(err, ACRE_EINVALID,
                         "--server: '%s' would send your token and your jobs unencrypted over the "
                         "network; accepted: https://%.*s, or --insecure (ACRE_INSECURE=1) on a "
                         "network you trust",
                         shown, (int)ACRE_MIN(rest.length, (size_t)SHOWN_BYTES), rest.data);
    }
    char *at = server->url;
    at += snprintf(at, secure.length + 1, "%s", is_secure ? secure.data : plain.data);
    for (size_t i = 0; i < host.length; i++) { /* one text for one server, to find its token by */
        *at++ = (char)tolower((unsigned char)host.data[i]);
    }
    memcpy(at, after.data, after.length);
    at[after.length] = '\0';
    return 0;
}

static int take_named(const char *text, bool insecure, struct server_address *server,
                      struct acre_error *err) {
    if (strncmp(text, "unix:/", 6) == 0) { /* unix:/PATH or unix:///PATH, as other programs do */
        text += strlen("unix:");
        text += strncmp(text, "///", 3) == 0 ? 2 : 0;
    }
    bool is_path = text[0] == '/' || text[0] == '.' ||
                   (strchr(text, '/') != NULL && strstr(text, "://") == NULL);
    return is_path ? take_path(text, server, err) : take_url(text, insecure, server, err);
}

static const char *user_name(uid_t uid, char *text, size_t size) {
    const struct passwd *entry = getpwuid(uid);
    snprintf(text, size, "uid %u", uid);
    return entry != NULL ? entry->pw_name : text;
}

/* ACRE_EUNAVAILABLE: there is none that can be trusted. */
static int take_usual(struct server_address *server, struct acre_error *err) {
    char foreign[ACRE_SERVER_PATH_MAX] = "";
    uid_t owner = 0;
    for (size_t i = 0; i < ACRE_COUNT(places); i++) {
        const char *start = places[i].variable != NULL ? getenv(places[i].variable) : "";
        char path[ACRE_SERVER_PATH_MAX];
        struct stat status;
        int length = start == NULL || (places[i].variable != NULL && start[0] == '\0')
                         ? -1
                         : snprintf(path, sizeof(path), "%s%s", start, places[i].rest);
        if (length < 0 || (size_t)length >= sizeof(path) || stat(path, &status) != 0 ||
            !S_ISSOCK(status.st_mode)) {
            continue;
        }
        if (status.st_uid == 0 || status.st_uid == geteuid()) {
            return take_path(path, server, err);
        }
        memcpy(foreign, path, (size_t)length + 1);
        owner = status.st_uid;
    }
    char text[32];
    if (foreign[0] != '\0') {
        return acre_fail(err, ACRE_EUNAVAILABLE,
                         "no daemon found that belongs to root or you; %s belongs to %s and is "
                         "used only if you name it with --server or ACRE_SERVER",
                         foreign, user_name(owner, text, sizeof(text)));
    }
    return acre_fail(err, ACRE_EUNAVAILABLE,
                     "no daemon found: there is no socket in /run/acre, XDG_RUNTIME_DIR or "
                     "~/.local/state/acre; start one with 'acre serve', or name one with "
                     "--server or ACRE_SERVER");
}

/* --- the token ------------------------------------------------------------------------------ */

static int take_token(const char *from, struct acre_str text, struct server_address *server,
                      struct acre_error *err) {
    while (text.length > 0 && (unsigned char)text.data[text.length - 1] <= ' ') {
        text.length--;
    }
    bool plain = text.length > 0;
    for (size_t i = 0; i < text.length; i++) {
        plain = plain && text.data[i] > ' ' && text.data[i] < 0x7f;
    }
    if (!plain || !acre_str_copy(server->token, sizeof(server->token), text)) {
        return acre_fail(
            err, ACRE_EINVALID,
            "%s: not a token; accepted: one line of the form acre_ID_SECRET, as printed by "
            "'acre token create'",
            from);
    }
    return 0;
}

static int read_token(const char *path, struct server_address *server, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, ACRE_SERVER_TOKEN_MAX * 2);
    int r = acre_file_read_private(path, ACRE_SERVER_TOKEN_MAX, &text, err);
    if (r == 0) {
        r = take_token(path, (struct acre_str){text.data, text.length}, server, err);
    }
    acre_buf_finish(&text);
    return r;
}

/* One line of the list: 0 and the token, when it is this server's. */
static int read_line(const char *from, struct acre_str line, struct server_address *server,
                     struct acre_error *err) {
    struct server_address kept = {0};
    char name[ACRE_SERVER_URL_MAX];
    size_t length = 0;
    if (line.length > 0 && line.data[line.length - 1] == '\r') {
        line.length--; /* of an editor that ends lines so */
    }
    line = acre_str_trim(line);
    if (line.length == 0 || line.data[0] == '#') {
        return 0;
    }
    while (length < line.length && line.data[length] != ' ' && line.data[length] != '\t') {
        length++;
    }
    struct acre_str named = cut(&line, length);
    line = acre_str_trim(line);
    if (line.length == 0 || !acre_str_copy(name, sizeof(name), named)) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: malformed line; accepted: a server and its token, as in "
                         "https://gpu.example.org:10000 "
                         "acre_ID_SECRET",
                         from);
    }
    int r = take_url(name, true, &kept, err);
    if (r < 0) {
        return acre_fail_in(err, r, "%s", from);
    }
    return strcmp(kept.url, server->url) == 0 ? take_token(from, line, server, err) : 0;
}

static int read_tokens(const char *path, struct server_address *server, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, TOKENS_MAX_BYTES);
    int r = acre_file_read_private(path, TOKENS_MAX_BYTES, &text, err);
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    struct acre_str line;
    for (uint32_t number = 1; r == 0 && server->token[0] == '\0' && acre_split_next(&lines, &line);
         number++) {
        char from[600];
        snprintf(from, sizeof(from), "%.500s:%u", path, number);
        r = read_line(from, line, server, err);
    }
    acre_buf_finish(&text);
    return r;
}

static int find_token(const char *token_file, struct server_address *server,
                      struct acre_error *err) {
    static const struct {
        const char *name;
        int (*read)(const char *path, struct server_address *server, struct acre_error *err);
    } files[] = {{"tokens", read_tokens}, {"token", read_token}};
    const char *variable = getenv("ACRE_TOKEN");
    const char *home = getenv("HOME");
    if (token_file != NULL) {
        return read_token(token_file, server, err);
    }
    if (variable != NULL && variable[0] != '\0') {
        return take_token("ACRE_TOKEN", acre_str_from(variable), server, err);
    }
    if (server->socket[0] != '\0' || home == NULL) {
        return 0;
    }
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(files) && r == 0 && server->token[0] == '\0'; i++) {
        char path[512];
        int length = snprintf(path, sizeof(path), "%s/.config/acre/%s", home, files[i].name);
        if ((size_t)length < sizeof(path) && access(path, F_OK) == 0) {
            r = files[i].read(path, server, err);
        }
    }
    return r;
}

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

int server_find(const struct server_options *options, struct server_address *ret_server,
                struct acre_error *err) {
    struct server_address server = {0};
    const char *named = options->server;
    const char *variable = getenv("ACRE_SERVER");
    if (named == NULL && variable != NULL && variable[0] != '\0') {
        named = variable;
    }
    int r = named != NULL
                ? take_named(named, options->insecure || is_set("ACRE_INSECURE"), &server, err)
                : take_usual(&server, err);
    if (r == 0) {
        r = find_token(options->token_file, &server, err);
    }
    if (r == 0) {
        *ret_server = server;
    }
    return r;
}

const char *server_name(const struct server_address *server) {
    return server->socket[0] != '\0' ? server->socket : server->url;
}
