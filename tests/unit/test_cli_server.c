/* Which daemon is asked, and with which token: what is named wins, nothing is guessed. */
#include "cli/server.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void clean(void) {
    static const char *const names[] = {"ACRE_SERVER", "ACRE_TOKEN", "XDG_RUNTIME_DIR"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        unsetenv(names[i]);
    }
    setenv("HOME", "/nonexistent", 1);
}

static void every_way_to_name_a_server(void) {
    static const struct {
        const char *named, *socket, *url;
    } cases[] = {
        {"/run/x.sock", "/run/x.sock", "http://localhost"},
        {"./x.sock", "./x.sock", "http://localhost"},
        {"state/x.sock", "state/x.sock", "http://localhost"},
        {"http://host:1/", "", "http://host:1"},
        {"https://host", "", "https://host"},
        {"host:10000", "", "http://host:10000"},
        {"[::1]:10000", "", "http://[::1]:10000"},
    };
    clean();
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        for (int way = 0; way < 2; way++) { /* option, environment */
            struct acre_server server;
            struct acre_error err = {0};
            acre_test_context("%s", cases[i].named);
            setenv("ACRE_SERVER", way == 1 ? cases[i].named : "http://other", 1);
            REQUIRE_EQ(acre_server_find(way == 0 ? cases[i].named : NULL, NULL, &server, &err), 0);
            CHECK_STR(server.socket, cases[i].socket);
            CHECK_STR(server.url, cases[i].url);
            CHECK_STR(acre_server_name(&server),
                      cases[i].socket[0] != '\0' ? cases[i].socket : cases[i].url);
            CHECK(server.found && server.token[0] == '\0');
        }
    }
}

static void what_is_no_server_is_refused(void) {
    static char long_path[300];
    memset(long_path, '/', sizeof(long_path) - 1);
    const struct {
        const char *named, *says;
    } cases[] = {
        {"ftp://host", "'ftp://host' is no server; accepted: the path of a socket"},
        {"http://a b", "is no server"},
        {"", "is no server"},
        {"h\x1b", "'h\\x1b' is no server"},
        {long_path, "at most 107 bytes; this one has 299"},
    };
    clean();
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_server server;
        struct acre_error err = {0};
        CHECK_EQ(acre_server_find(cases[i].named, NULL, &server, &err), ACRE_EINVALID);
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
}

static void the_usual_sockets_come_before_the_port(void) {
    if (access("/run/acre/acre.sock", F_OK) == 0) {
        acre_test_skip("a daemon of root's is running here");
    }
    struct tree tree = tree_create(NULL);
    const char *folder = tree.root;
    char path[200];
    struct acre_server server;
    struct acre_error err = {0};
    clean();
    setenv("HOME", folder, 1);
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(acre_server_name(&server), "http://127.0.0.1:10000");
    CHECK(!server.found);
    static const char *const folders[] = {".local/state/acre", "acre", ".config/acre"};
    for (size_t i = 0; i < ACRE_COUNT(folders); i++) {
        tree_make_directory(&tree, folders[i]);
    }
    snprintf(path, sizeof(path), "%s/.local/state/acre/acre.sock", folder);
    put_file(path, "a file is no socket");
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.socket, "");
    unlink(path);
    make_socket(path);
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.socket, path);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    snprintf(path, sizeof(path), "%s/acre/acre.sock", folder);
    make_socket(path);
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.socket, path);
    /* A token of the configuration is for TCP; one that is named is always shown. */
    snprintf(path, sizeof(path), "%s/.config/acre/token", folder);
    put_file(path, "acre_1_secret\n");
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.token, "");
    REQUIRE_EQ(acre_server_find("http://h", NULL, &server, &err), 0);
    CHECK_STR(server.token, "acre_1_secret");
    REQUIRE_EQ(acre_server_find(NULL, path, &server, &err), 0);
    CHECK_STR(server.token, "acre_1_secret");
    setenv("ACRE_TOKEN", "acre_2_other", 1);
    REQUIRE_EQ(acre_server_find(NULL, NULL, &server, &err), 0);
    CHECK_STR(server.token, "acre_2_other");
    put_file(path, "two\nlines\n");
    CHECK_EQ(acre_server_find(NULL, path, &server, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "is no token");
    CHECK_EQ(acre_server_find(NULL, "/nonexistent", &server, &err), ACRE_ENOTFOUND);
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"every_way_to_name_a_server", every_way_to_name_a_server, 0},
    {"what_is_no_server_is_refused", what_is_no_server_is_refused, 0},
    {"the_usual_sockets_come_before_the_port", the_usual_sockets_come_before_the_port, 0},
};

ACRE_TEST_MAIN(tests)
