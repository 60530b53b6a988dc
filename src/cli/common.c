/* common.c - asks the daemon and shows the answer. The first failure gives the exit code, but the
 * rest still runs, so that `acre cancel 1 2 3` cancels what it can. */
#include "cli/common.h"

#include "cli/cli.h"
#include "core/clock.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_ITEMS = 1000 };

#define AT(field) offsetof(struct common, field)
const struct acre_opt common_rows[ACRE_COMMON_ROWS] = {
    {.name = "server",
     .kind = ACRE_OPT_STRING,
     .offset = AT(server),
     .value = "PATH|URL",
     .help =
         "the daemon's socket, or http(s)://HOST:PORT (default: ACRE_SERVER, or the usual socket)"},
    {.name = "token-file",
     .kind = ACRE_OPT_STRING,
     .offset = AT(token_file),
     .value = "FILE",
     .help = "file with your token, for HTTP (default: ACRE_TOKEN, or ~/.config/acre/tokens)"},
    {.name = "cacert",
     .kind = ACRE_OPT_STRING,
     .offset = AT(authorities),
     .value = "FILE",
     .help = "CA certificates to trust for https (default: the system's)"},
    {.name = "insecure",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(insecure),
     .help = "allow unencrypted http to another machine (or set ACRE_INSECURE=1)"},
    {.name = "json",
     .kind = ACRE_OPT_FLAG,
     .offset = AT(json),
     .help = "print the daemon's answer as JSON"},
    {.name = "quiet",
     .letter = 'q',
     .kind = ACRE_OPT_FLAG,
     .offset = AT(quiet),
     .help = "print only ids, or nothing"},
};

struct server_options common_server(const struct common *common) {
    return (struct server_options){
        .server = common->server, .token_file = common->token_file, .insecure = common->insecure};
}

void session_fail(struct session *session, const struct acre_error *err) {
    int code = cli_fail(err);
    session->result = session->result != 0 ? session->result : code;
}

bool session_open(struct session *session, const struct common *common) {
    struct acre_error err = {0};
    struct server_address server;
    *session = (struct session){.common = common};
    struct server_options options = common_server(common);
    int r = server_find(&options, &server, &err);
    if (r == 0) {
        r = client_create(&server, common->authorities, &session->client, &err);
    }
    if (r < 0) {
        session_fail(session, &err);
    }
    return r == 0;
}

void session_close(struct session *session) {
    client_destroy(session->client);
    session->client = NULL;
}

json_t *session_call(struct session *session, const char *method, const char *path, json_t *body) {
    struct acre_error err = {0};
    json_t *answer = NULL;
    int r = client_call(session->client, method, path, body, &answer, &err);
    json_decref(body);
    if (r < 0) {
        session_fail(session, &err);
        return NULL;
    }
    return answer != NULL ? answer : json_object();
}

void session_show(struct session *session, const json_t *answer, show_function *view,
                  show_function *brief) {
    struct acre_buf out;
    struct acre_clock clock = acre_clock_real();
    acre_buf_init(&out, ACRE_OUTPUT_MAX_BYTES);
    struct show how = {
        .term = term_detect(STDOUT_FILENO), .now_ms = acre_clock_wall_ms(&clock), .out = &out};
    if (session->common->json) {
        char *text = json_dumps(answer, JSON_INDENT(2));
        acre_buf_printf(&out, "%s\n", text != NULL ? text : "null");
        free(text);
    } else if (!session->common->quiet) {
        view(&how, answer);
    } else if (brief != NULL) {
        brief(&how, answer);
    }
    int r = cli_write(&out);
    session->result = session->result != 0 ? session->result : r;
    acre_buf_finish(&out);
}

int cli_ask(const struct common *common, const char *method, const char *path, json_t *body,
            show_function *view, show_function *brief) {
    struct session session;
    if (!session_open(&session, common)) {
        json_decref(body);
        return session.result;
    }
    json_t *answer = session_call(&session, method, path, body);
    if (answer != NULL) {
        session_show(&session, answer, view, brief);
        json_decref(answer);
    }
    session_close(&session);
    return session.result;
}

int cli_path(char path[ACRE_PATH_MAX], const char *before, const char *part, const char *after,
             struct acre_error *err) {
    struct acre_buf out;
    acre_buf_init(&out, ACRE_PATH_MAX - 1);
    acre_buf_puts(&out, before);
    client_escape(&out, part);
    acre_buf_puts(&out, after);
    bool bad = acre_buf_failed(&out) || part[0] == '\0' || strcmp(part, ".") == 0 ||
               strcmp(part, "..") == 0;
    if (!bad) {
        memcpy(path, out.data, out.length + 1);
    }
    acre_buf_finish(&out);
    char shown[64];
    return bad ? acre_fail(err, ACRE_EINVALID, "'%s' is not a valid name",
                           acre_str_show(acre_str_from(part), shown, sizeof(shown)))
               : 0;
}

int cli_query(char path[ACRE_PATH_MAX], const char *list, const struct filter *filters,
              size_t count, struct acre_error *err) {
    struct acre_buf out;
    char mark = '?';
    acre_buf_init(&out, ACRE_PATH_MAX / 2); /* the rest is for limit and cursor */
    acre_buf_puts(&out, list);
    for (size_t i = 0; i < count; i++) {
        if (filters[i].value != NULL) {
            acre_buf_printf(&out, "%c%s=", mark, filters[i].key);
            client_escape(&out, filters[i].value);
            mark = '&';
        }
    }
    bool failed = acre_buf_failed(&out);
    if (!failed) {
        memcpy(path, out.data, out.length + 1);
    }
    acre_buf_finish(&out);
    return failed ? acre_fail(err, ACRE_ELIMIT, "the filters are too long") : 0;
}

static int refuse_text(const char *key, const char *text, struct acre_error *err) {
    char shown[64];
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not valid UTF-8", key,
                     acre_str_show(acre_str_from(text), shown, sizeof(shown)));
}

int body_put_text(json_t *body, const char *key, const char *text, struct acre_error *err) {
    bool good = text == NULL || json_object_set_new(body, key, json_string(text)) == 0;
    return good ? 0 : refuse_text(key, text, err);
}

int body_put_list(json_t *body, const char *key, const struct acre_opt_list *list,
                  struct acre_error *err) {
    if (list->count == 0) {
        return 0;
    }
    json_t *items = json_array();
    json_object_set_new(body, key, items);
    for (uint32_t i = 0; i < list->count; i++) {
        if (json_array_append_new(items, json_string(list->items[i])) < 0) {
            return refuse_text(key, list->items[i], err);
        }
    }
    return 0;
}

static int path_of(char path[ACRE_PATH_MAX], const struct session_question *question,
                   const char *name, struct acre_error *err) {
    uint64_t number;
    if (question->number == NULL) {
        return cli_path(path, question->before, name, question->after, err);
    }
    int r = acre_parse_count(question->number, name, 1, INT64_MAX, &number, err);
    if (r == 0) {
        snprintf(path, ACRE_PATH_MAX, "%s%" PRIu64 "%s", question->before, number, question->after);
    }
    return r;
}

int cli_ask_each(const struct common *common, const struct session_question *question, int count,
                 char **names) {
    struct session session;
    bool open = session_open(&session, common);
    for (int i = 0; i < count && open; i++) {
        struct acre_error err = {0};
        char path[ACRE_PATH_MAX];
        if (path_of(path, question, names[i], &err) < 0) {
            session_fail(&session, &err);
            continue;
        }
        json_t *answer =
            session_call(&session, question->method, path, json_incref(question->body));
        if (answer != NULL) {
            session_show(&session, answer, question->view, question->brief);
        }
        json_decref(answer);
    }
    session_close(&session);
    return session.result;
}

/* One page into `all`; returns the cursor of the next one (owned by `page`), NULL at the end. */
static const char *take_page(const json_t *page, const char *key, uint64_t limit, json_t *all) {
    const json_t *items = json_object_get(page, key);
    size_t count = json_array_size(items);
    for (size_t i = 0; i < count && (limit == 0 || json_array_size(all) < limit); i++) {
        json_array_append(all, json_array_get(items, i));
    }
    const char *next = json_string_value(json_object_get(page, "next"));
    return count > 0 ? next : NULL;
}

json_t *session_list(struct session *session, const char *path, const char *key, uint64_t limit) {
    json_t *whole = NULL, *all = json_array();
    char asked[ACRE_PATH_MAX];
    char mark = strchr(path, '?') != NULL ? '&' : '?';
    uint64_t page_items = limit > 0 ? ACRE_MIN(limit, (uint64_t)PAGE_ITEMS) : PAGE_ITEMS;
    snprintf(asked, sizeof(asked), "%s%climit=%" PRIu64, path, mark, page_items);
    while (true) {
        json_t *page = session_call(session, "GET", asked, NULL);
        if (page == NULL) {
            json_decref(all);
            json_decref(whole);
            return NULL;
        }
        const char *next = take_page(page, key, limit, all);
        struct acre_buf buf;
        acre_buf_init(&buf, sizeof(asked) - 1);
        acre_buf_printf(&buf, "%s%climit=%" PRIu64 "&cursor=", path, mark, page_items);
        client_escape(&buf, next != NULL ? next : "");
        bool more =
            next != NULL && !acre_buf_failed(&buf) && (limit == 0 || json_array_size(all) < limit);
        memcpy(asked, buf.data, more ? buf.length + 1 : 0);
        acre_buf_finish(&buf);
        json_decref(whole);
        whole = page;
        if (!more) {
            break;
        }
    }
    json_object_set_new(whole, key, all);
    return whole;
}
