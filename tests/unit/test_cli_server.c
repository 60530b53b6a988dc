/* Which daemon is asked, and with which token: what is named wins, nothing is guessed. */
#include "cli/server.h"

#include "support/test.h"
#include "support/tree.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void clean(void) {
    static const char *const names[] = {"ACRE_SERVER", "ACRE_TOKEN", "ACRE_INSECURE",
                                        "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        unsetenv(names[i]);
    }
    setenv("HOME", "/nonexistent", 1);
}

static int find(const char *named, const char *token_file, struct server_address *ret_server,
                struct acre_error *err) {
    struct server_options options = {.server = named, .token_file = token_file};
    return server_find(&options, ret_server, err);
}

static void every_way_to_name_a_server(void) {
    static const struct {
        const char *named, *socket, *url;
    } cases[] = {
        {"/run/x.sock", "/run/x.sock", "http://localhost"},
        {"./x.sock", "./x.sock", "http://localhost"},
        {"unix:/run/x.sock", "/run/x.sock", "http://localhost"},
        {"unix:///run/x.sock", "/run/x.sock", "http://localhost"},
        {"state/x.sock", "state/x.sock", "http://localhost"},
        {"http://127.0.0.1:1/", "", "http://127.0.0.1:1"},
        {"http://127.8.9.1", "", "http://127.8.9.1"},
        {"https://host", "", "https://host"},
        {"https://Host.Example:1/Acre/", "", "https://host.example:1/Acre"},
        {"localhost:10000", "", "http://localhost:10000"},
        {"[::1]:10000", "", "http://[::1]:10000"},
        {"https://[2001:db8::1]", "", "https://[2001:db8::1]"},
    };
    clean();
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        for (int way = 0; way < 2; way++) { /* option, environment */
            struct server_address server;
            struct acre_error err = {0};
            acre_test_context("%s", cases[i].named);
            setenv("ACRE_SERVER", way == 1 ? cases[i].named : "https://other", 1);
            REQUIRE_EQ(find(way == 0 ? cases[i].named : NULL, NULL, &server, &err), 0);
            CHECK_STR(server.socket, cases[i].socket);
            CHECK_STR(server.url, cases[i].url);
            CHECK_STR(server_name(&server),
                      cases[i].socket[0] != '\0' ? cases[i].socket : cases[i].url);
            CHECK_STR(server.token, "");
        }
    }
}

static void what_is_no_server_is_refused(void) {
    static char long_path[300];
    memset(long_path, '/', sizeof(long_path) - 1);
    const struct {
        const char *named, *says;
    } cases[] = {
        {"ftp://host", "'ftp://host' is not a server; accepted: the path of a socket"},
        {"http://a b", "is not a server"},
        {"", "is not a server"},
        {"http://", "is not a server"},
        {"http:///x", "is not a server"},
        {"https://127.0.0.1@host", "is not a server"},
        {"https://host:1:2", "is not a server"},
        {"https://host:0", "is not a server"},
        {"https://host:65536", "is not a server"},
        {"https://host:", "is not a server"},
        {"https://host?x", "is not a server"},
        {"https://host#x", "is not a server"},
        {"https://host\\x", "is not a server"},
        {"https://[::1", "is not a server"},
        {"https://[]", "is not a server"},
        {"https://[::1]x", "is not a server"},
        {"h\x1b", "'h\\x1b' is not a server"},
        {long_path, "at most 107 bytes; this one has 299"},
    };
    clean();
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct server_address server;
        struct acre_error err = {0};
        CHECK_EQ(find(cases[i].named, NULL, &server, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, cases[i].says);
    }
}

static void make_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    close(fd);
}

static void put_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
    REQUIRE(chmod(path, 0600) == 0);
}

static void plain_http_stays_on_this_machine(void) {
    static const char *const beyond[] = {
        "http://host:1",      "host:1",       "http://127.0.0.1.x",      "http://128.0.0.1",
        "http://localhost.x", "http://[::2]", "http://[::ffff:8.8.8.8]", "0.0.0.0:1"};
    clean();
    for (size_t i = 0; i < ACRE_COUNT(beyond); i++) {
        struct server_address server;
        struct acre_error err = {0};
        struct server_options options = {.server = beyond[i]};
        acre_test_context("%s", beyond[i]);
        CHECK_EQ(server_find(&options, &server, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "--insecure (ACRE_INSECURE=1)");
        setenv("ACRE_INSECURE", "0", 1);
        CHECK_EQ(server_find(&options, &server, &err), ACRE_EINVALID);
        setenv("ACRE_INSECURE", "1", 1);
        CHECK_EQ(server_find(&options, &server, &err), 0);
        unsetenv("ACRE_INSECURE");
        options.insecure = true;
        CHECK_EQ(server_find(&options, &server, &err), 0);
    }
}

static void the_usual_sockets_and_nothing_else(void) {
    if (access("/run/acre/acre.sock", F_OK) == 0) {
        acre_test_skip("a daemon of root's is running here");
    }
    struct tree tree = tree_create(NULL);
    const char *folder = tree.root;
    char path[200];
    struct server_address server;
    struct acre_error err = {0};
    clean();
    setenv("HOME", folder, 1);
    setenv("ACRE_TOKEN", "acre_1_secret", 1);
    CHECK_EQ(find(NULL, NULL, &server, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "'acre serve', or name one with --server");
    unsetenv("ACRE_TOKEN");
    static const char *const folders[] = {".local/state/acre", "acre"};
    for (size_t i = 0; i < ACRE_COUNT(folders); i++) {
        tree_make_directory(&tree, folders[i]);
    }
    snprintf(path, sizeof(path), "%s/.local/state/acre/acre.sock", folder);
    put_file(path, "a file is no socket");
    CHECK_EQ(find(NULL, NULL, &server, &err), ACRE_EUNAVAILABLE);
    unlink(path);
    make_socket(path);
    REQUIRE_EQ(find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.socket, path);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    snprintf(path, sizeof(path), "%s/acre/acre.sock", folder);
    make_socket(path);
    REQUIRE_EQ(find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.socket, path);
    const struct passwd *other = getpwnam("nobody");
    if (geteuid() == 0 && other != NULL && chown(path, other->pw_uid, other->pw_gid) == 0) {
        REQUIRE_EQ(find(NULL, NULL, &server, &err), 0); /* the next one */
        CHECK_HAS(server.socket, ".local");
        unsetenv("HOME");
        CHECK_EQ(find(NULL, NULL, &server, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, "acre/acre.sock belongs to nobody");
        REQUIRE_EQ(find(path, NULL, &server, &err), 0); /* named, it is asked */
    }
    tree_erase(&tree);
}

static void a_token_goes_to_its_server(void) {
    struct tree tree = tree_create(NULL);
    char list[200], bare[200];
    struct server_address server;
    struct acre_error err = {0};
    clean();
    setenv("HOME", tree.root, 1);
    tree_make_directory(&tree, ".config/acre");
    snprintf(list, sizeof(list), "%s/.config/acre/tokens", tree.root);
    snprintf(bare, sizeof(bare), "%s/.config/acre/token", tree.root);
    put_file(list, "# mine\n\n  https://A.example:1/\tacre_1_a \nb.example acre_2_b\n"
                   "https://b.example acre_3_c\n");
    static const struct {
        const char *named, *token;
    } cases[] = {
        {"https://a.example:1", "acre_1_a"},
        {"https://A.EXAMPLE:1//", "acre_1_a"},
        {"https://a.example:2", ""},
        {"https://a.example", ""},
        {"https://b.example", "acre_3_c"},
        {"https://a.example.b:1", ""},
        {"/run/x.sock", ""},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].named);
        REQUIRE_EQ(find(cases[i].named, NULL, &server, &err), 0);
        CHECK_STR(server.token, cases[i].token);
    }
    put_file(bare, "acre_9_z\n"); /* for any server that is named, but no socket */
    REQUIRE_EQ(find("https://a.example:2", NULL, &server, &err), 0);
    CHECK_STR(server.token, "acre_9_z");
    REQUIRE_EQ(find("https://b.example", NULL, &server, &err), 0);
    CHECK_STR(server.token, "acre_3_c");
    REQUIRE_EQ(find("/run/x.sock", NULL, &server, &err), 0);
    CHECK_STR(server.token, "");
    REQUIRE_EQ(find("/run/x.sock", bare, &server, &err), 0); /* one that is named is shown */
    CHECK_STR(server.token, "acre_9_z");
    setenv("ACRE_TOKEN", "acre_8_y", 1);
    REQUIRE_EQ(find("https://b.example", NULL, &server, &err), 0);
    CHECK_STR(server.token, "acre_8_y");
    tree_erase(&tree);
}

static void a_bad_token_file_is_refused(void) {
    static const struct {
        const char *name, *text, *says;
        mode_t mode;
        int code;
    } cases[] = {
        {"token", "two\nlines\n", "token: not a token", 0600, ACRE_EINVALID},
        {"token", "", "token: not a token", 0600, ACRE_EINVALID},
        {"token", "acre_1_a\n", "mode 0640 lets other users", 0640, ACRE_EDENIED},
        {"token", "acre_1_a\n", "chmod 600", 0602, ACRE_EDENIED},
        {"tokens", "#\nacre_1_a\n", "tokens:2: malformed line; accepted: a server and its token",
         0600, ACRE_EINVALID},
        {"tokens", "ftp://x y\n", "tokens:1: --server: 'ftp://x' is not a server", 0600,
         ACRE_EINVALID},
        {"tokens", "https://h a b\n", "tokens:1: not a token", 0600, ACRE_EINVALID},
        {"tokens", "https://h a\n", "mode 0644 lets other users", 0644, ACRE_EDENIED},
    };
    struct tree tree = tree_create(NULL);
    clean();
    setenv("HOME", tree.root, 1);
    tree_make_directory(&tree, ".config/acre");
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char path[200];
        struct server_address server;
        struct acre_error err = {0};
        acre_test_context("%s: %s", cases[i].name, cases[i].text);
        snprintf(path, sizeof(path), "%s/.config/acre/%s", tree.root, cases[i].name);
        put_file(path, cases[i].text);
        REQUIRE(chmod(path, cases[i].mode) == 0);
        CHECK_EQ(find("https://h", NULL, &server, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].says);
        unlink(path);
    }
    struct server_address server;
    CHECK_EQ(find("https://h", "/nonexistent", &server, NULL), ACRE_ENOTFOUND);
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"every_way_to_name_a_server", every_way_to_name_a_server, 0},
    {"what_is_no_server_is_refused", what_is_no_server_is_refused, 0},
    {"plain_http_stays_on_this_machine", plain_http_stays_on_this_machine, 0},
    {"the_usual_sockets_and_nothing_else", the_usual_sockets_and_nothing_else, 0},
    {"a_token_goes_to_its_server", a_token_goes_to_its_server, 0},
    {"a_bad_token_file_is_refused", a_bad_token_file_is_refused, 0},
};

ACRE_TEST_MAIN(tests)
