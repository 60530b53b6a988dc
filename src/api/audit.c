/* audit.c - the audit trail: pages of it, and proof that no record was changed.
 *
 * The proof walks every record, which takes long for a long history: it has a thread and a
 * read-only store of its own, one at a time, and the answer is given back on the loop. */
#include "api/api.h"
#include "api/handlers.h"
#include "api/view.h"
#include "core/thread.h"

#include <pthread.h>
#include <stdlib.h>

const struct field audit_fields[] = {
    {.name = "actor",
     .kinds = ACRE_KIND_STRING,
     .max_length = 80,
     .help = "user:ada, or acre for the daemon itself"},
    {.name = "action",
     .kinds = ACRE_KIND_STRING,
     .max_length = 80,
     .help = "how the action begins: 'job' for everything about jobs"},
    {.name = "target", .kinds = ACRE_KIND_STRING, .max_length = 160, .help = "job:42"},
    ACRE_PAGE_FIELDS,
    {0},
};

struct audit_listing {
    struct acre_json *json;
    uint64_t last;
    uint32_t count;
};

static bool write_row(void *context, const struct acre_store_audit *row) {
    static const char digits[] = "0123456789abcdef";
    struct audit_listing *listing = context;
    struct acre_json *json = listing->json;
    char hash[2 * sizeof(row->hash) + 1] = "";
    for (size_t i = 0; i < sizeof(row->hash); i++) {
        hash[2 * i] = digits[row->hash[i] >> 4];
        hash[2 * i + 1] = digits[row->hash[i] & 15];
    }
    listing->last = row->seq;
    listing->count++;
    acre_json_object(json);
    acre_json_put_u64(json, "seq", row->seq);
    view_put_time(json, "at", row->at_ms);
    acre_json_put_string(json, "actor", row->actor);
    acre_json_put_string(json, "origin", row->origin);
    acre_json_put_string(json, "action", row->action);
    acre_json_put_string(json, "target", row->target);
    acre_json_put_string(json, "result", row->result);
    acre_json_put_string(json, "detail", row->detail);
    acre_json_put_string(json, "hash", hash);
    acre_json_object_end(json);
    return true;
}

void handle_audit(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    struct acre_audit_filter filter = {.actor = call_query(call, "actor"),
                                       .action = call_query(call, "action"),
                                       .target = call_query(call, "target"),
                                       .after_seq = page.after,
                                       .newest_first = true,
                                       .limit = page.limit};
    struct acre_reply reply;
    struct audit_listing listing = {.json = acre_reply_begin(&reply)};
    acre_json_key(listing.json, "audit");
    acre_json_array(listing.json);
    if (acre_store_audit(acre_desk_store(api->desk), &filter, write_row, &listing, &err) < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &err);
        return;
    }
    acre_json_array_end(listing.json);
    acre_page_write(listing.json, listing.count == page.limit && listing.last > 1, listing.last);
    acre_reply_send(api, call, &reply, 200);
}

/* --- the proof ------------------------------------------------------------------------------ */

struct acre_verify {
    struct acre_api *api;
    struct acre_exchange *exchange;
    pthread_t thread;
    int result;
    uint64_t count;
    uint8_t head[32];
    struct acre_error err;
};

static void answer_verify(void *context) {
    struct acre_verify *verify = context;
    struct acre_buf body;
    struct acre_json json;
    pthread_join(verify->thread, NULL);
    if (verify->api->verify == verify) {
        verify->api->verify = NULL;
    }
    if (verify->result < 0 && verify->result != ACRE_ECORRUPT) {
        acre_problem_answer(verify->exchange, &verify->err);
        free(verify);
        return;
    }
    acre_buf_init(&body, 4096);
    acre_json_begin(&json, &body, false);
    acre_json_object(&json);
    acre_json_put_bool(&json, "ok", verify->result == 0);
    acre_json_put_u64(&json, "count", verify->count);
    acre_json_put_string(&json, "text", verify->result == 0 ? "" : verify->err.text);
    acre_json_object_end(&json);
    acre_json_end(&json);
    acre_http_answer(verify->exchange, 200, "application/json", &body);
    acre_buf_finish(&body);
    free(verify);
}

static void *walk(void *context) {
    struct acre_verify *verify = context;
    struct acre_store *store = NULL;
    struct acre_store_options options = {.url = verify->api->store_url, .read_only = true};
    verify->result = acre_store_open(&options, &store, &verify->err);
    if (verify->result == 0) {
        verify->result = acre_store_verify_audit(store, &verify->count, verify->head, &verify->err);
    }
    acre_store_close(store);
    acre_loop_post(verify->api->loop, answer_verify, verify);
    return NULL;
}

void handle_audit_verify(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    if (api->verify != NULL) {
        acre_problem_fail(call->exchange, ACRE_EUNAVAILABLE,
                          "another verification of the audit trail is running; try again later");
        return;
    }
    struct acre_verify *verify = acre_calloc(1, sizeof(*verify));
    verify->api = api;
    verify->exchange = call->exchange;
    int r = acre_thread_start(&verify->thread, "acre-verify", walk, verify);
    if (r != 0) {
        free(verify);
        acre_problem_fail(call->exchange, ACRE_EUNAVAILABLE,
                          "cannot start a thread to verify the audit trail");
        return;
    }
    api->verify = verify;
}

/* Before the loop goes: wait for the walk, and answer it. */
void acre_audit_finish(struct acre_api *api) {
    struct acre_verify *verify = api->verify;
    if (verify == NULL) {
        return;
    }
    pthread_join(verify->thread, NULL);
    acre_loop_unpost(api->loop, verify);
    struct acre_error gone = {.code = ACRE_EUNAVAILABLE, .text = "the server is stopping"};
    acre_problem_answer(verify->exchange, &gone);
    api->verify = NULL;
    free(verify);
}
