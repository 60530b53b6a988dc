/* capacity.c - GET /cluster/capacity and /cluster/best: the nodes' reports and the director's
 * choice (CAP-1 to CAP-7). Numbers that are not known are null, not 0. */
#include "desk/capacity.h"

#include "api/api.h"
#include "api/handlers.h"
#include "api/view.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 16, WHY_MAX = 512 };

const struct field best_fields[] = {
    {.name = "memory", .kinds = ACRE_KIND_MEMORY, .help = "free on one GPU: 20GiB; default any"},
    {.name = "model", .kinds = ACRE_KIND_STRING, .help = "any of these, separated by commas: h100"},
    {.name = "vendor", .kinds = ACRE_KIND_STRING, .max_length = 64},
    {.name = "label",
     .kinds = ACRE_KIND_STRING,
     .help = "all of these labels of a node, separated by commas: zone=a"},
    {.name = "near", .kinds = ACRE_KIND_STRING, .help = "this node, if it fits"},
    {.name = "cpu",
     .kinds = ACRE_KIND_BOOL,
     .help = "true: a node without GPUs if no GPU fits; default false"},
    {0},
};

/* A sum over devices: nothing is known of it when no device's memory is. */
static void put_mib(struct acre_json *json, const char *key, bool known, uint64_t mib) {
    view_put_known(json, key, known ? mib : ACRE_UNKNOWN);
}

static void put_ratio(struct acre_json *json, const char *key, bool known, double value) {
    if (known) {
        acre_json_put_double(json, key, value, 3);
    } else {
        acre_json_put_null(json, key);
    }
}

static void write_report(struct acre_api *api, uint32_t index,
                         const struct acre_capacity_view *view, struct acre_json *json) {
    const struct acre_capacity_report *report = &view->effective;
    const struct inventory_node *node = inventory_node(acre_desk_inventory(api->desk), index);
    struct acre_ledger_node info;
    acre_ledger_node_info(acre_desk_ledger(api->desk), index, &info);
    bool known = report->total_mib > 0 || report->device_count == 0;
    acre_json_object(json);
    acre_json_put_string(json, "name", node->name);
    acre_json_put_u64(json, "devices", report->device_count);
    put_mib(json, "total_mib", known, report->total_mib);
    put_mib(json, "available_mib", known, report->available_mib);
    put_mib(json, "largest_device_available_mib", known, report->largest_device_available_mib);
    acre_json_put_u64(json, "queue_depth", report->queue_depth);
    acre_json_put_string(json, "backend", acre_desk_backend_name(report->backend));
    view_put_time(json, "reported", report->time_ms);
    put_ratio(json, "usage_pct", known, acre_capacity_usage_pct(report));
    put_ratio(json, "score", known, view->score);
    acre_json_put_bool(json, "stale", view->stale);
    acre_json_put_bool(json, "drained", info.drained);
    acre_json_put_bool(json, "simulated", node->simulated);
    acre_json_object_end(json);
}

static void write_statistics(struct acre_api *api, struct acre_json *json) {
    struct acre_capacity_stats stats = acre_desk_capacity_stats(api->desk);
    acre_json_key(json, "statistics");
    acre_json_object(json);
    acre_json_put_u64(json, "nodes", stats.nodes);
    acre_json_put_u64(json, "capable_nodes", stats.capable);
    acre_json_put_u64(json, "devices", stats.devices);
    acre_json_put_u64(json, "total_mib", stats.total_mib);
    acre_json_put_u64(json, "available_mib", stats.available_mib);
    acre_json_put_u64(json, "queue_depth", stats.queue_depth);
    acre_json_put_double(json, "average_queue", stats.average_queue, 3);
    acre_json_object_end(json);
}

void handle_capacity(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    uint32_t count = acre_ledger_node_count(acre_desk_ledger(api->desk));
    uint64_t at = page.after;
    acre_json_key(json, "nodes");
    acre_json_array(json);
    for (uint32_t shown = 0; shown < page.limit && at < count; at++) {
        struct acre_capacity_view view;
        if (acre_desk_capacity(api->desk, (uint32_t)at, &view)) {
            write_report(api, (uint32_t)at, &view, json);
            shown++;
        }
    }
    acre_json_array_end(json);
    write_statistics(api, json);
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_page_write(json, at < count, at);
    acre_reply_send(api, call, &reply, 200);
}

/* --- the best node -------------------------------------------------------------------------- */

/* The words of a list with commas, in the arena. */
static int read_words(const struct acre_call *call, const char *key, const char **words,
                      uint32_t *ret_count, struct acre_error *err) {
    const char *text = call_query(call, key);
    struct acre_split split = acre_split_begin(acre_str_from(text != NULL ? text : ""), ',');
    struct acre_str word;
    uint32_t count = 0;
    while (text != NULL && acre_split_next(&split, &word)) {
        word = acre_str_trim(word);
        if (word.length == 0 || count == WORDS_MAX) {
            char shown[80];
            return acre_fail(err, ACRE_EINVALID, "%s: '%s'; accepted: 1 to %d words with commas",
                             key, acre_str_show(acre_str_from(text), shown, sizeof(shown)),
                             WORDS_MAX);
        }
        words[count++] = acre_arena_strndup(call->arena, word.data, word.length);
    }
    *ret_count = count;
    return 0;
}

static int read_near(struct acre_api *api, const struct acre_call *call, uint32_t *ret_node,
                     struct acre_error *err) {
    const char *name = call_query(call, "near");
    *ret_node = ACRE_CAPACITY_NO_NODE;
    if (name == NULL || inventory_find_node(acre_desk_inventory(api->desk), name, ret_node)) {
        return 0;
    }
    char shown[80];
    return acre_fail(err, ACRE_ENOTFOUND, "near: there is no node '%s'",
                     acre_str_show(acre_str_from(name), shown, sizeof(shown)));
}

/* Why this node: its numbers, and what was asked beyond them. */
static void explain(const struct acre_director_answer *answer,
                    const struct acre_capacity_view *view, char why[WHY_MAX]) {
    const struct acre_capacity_report *report = &view->effective;
    char available[32], total[32], largest[32];
    if (answer->is_cpu) {
        snprintf(why, WHY_MAX, "%s; a node without GPUs is allowed", answer->why);
        return;
    }
    snprintf(why, WHY_MAX,
             "%s: score %.1f of 100, %s of %s GPU memory free (%s on one GPU), %u job%s there",
             answer->is_local ? "the node you asked to be near" : "the highest score that fits",
             view->score, acre_format_mib(report->available_mib, available, sizeof(available)),
             acre_format_mib(report->total_mib, total, sizeof(total)),
             acre_format_mib(report->largest_device_available_mib, largest, sizeof(largest)),
             report->queue_depth, report->queue_depth == 1 ? "" : "s");
}

void handle_best(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    const char *models[WORDS_MAX], *labels[WORDS_MAX];
    const char *memory = call_query(call, "memory");
    struct acre_director_answer answer;
    struct acre_capacity_view view;
    struct acre_best_request request = {.models = models,
                                        .labels = labels,
                                        .vendor = call_query(call, "vendor"),
                                        .cpu_allowed = call_query_bool(call, "cpu")};
    int r = memory != NULL ? acre_parse_mib("memory", memory, &request.min_mib, &err) : 0;
    if (r == 0) {
        r = read_words(call, "model", models, &request.model_count, &err);
    }
    if (r == 0) {
        r = read_words(call, "label", labels, &request.label_count, &err);
    }
    if (r == 0) {
        r = read_near(api, call, &request.near, &err);
    }
    if (r == 0) {
        r = acre_desk_best_node(api->desk, &request, &answer, &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    bool found = acre_desk_capacity(api->desk, answer.node, &view);
    ACRE_ASSERT(found);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    char why[WHY_MAX];
    explain(&answer, &view, why);
    acre_json_key(json, "node");
    write_report(api, answer.node, &view, json);
    acre_json_put_bool(json, "is_near", answer.is_local);
    acre_json_put_bool(json, "is_cpu", answer.is_cpu);
    acre_json_put_string(json, "why", why);
    acre_reply_send(api, call, &reply, 200);
}
