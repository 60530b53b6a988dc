/* balance.c - GET /cluster/balance: how loaded each GPU is, and what follows from it (CAP-9).
 *
 * The load of a GPU is 0.4 of the share that is given, 0.3 of its utilization, 0.3 of its memory in
 * use. Both readings must be known: a GPU that does not report its utilization is shown, counted as
 * unknown, and neither judged nor chosen by a strategy that needs it. Drained GPUs are left out.
 * The answer changes nothing; round robin goes on from the GPU that the caller had last. */
#include "desk/capacity.h"

#include "api/api.h"
#include "api/handlers.h"
#include "api/view.h"
#include "core/units.h"

#include <string.h>

enum { MOVES_MAX = 64 };

static const char *const strategies[] = {"round-robin", "least-loaded",   "weighted",
                                         "adaptive",    "affinity-first", NULL};
_Static_assert(ACRE_COUNT(strategies) == ACRE_BALANCE_STRATEGY_COUNT + 1, "one word each");

const struct field balance_fields[] = {
    ACRE_PAGE_FIELDS,
    {.name = "node", .kinds = ACRE_KIND_STRING, .help = "its GPUs only; default all"},
    {.name = "strategy",
     .kinds = ACRE_KIND_STRING,
     .words = strategies,
     .help = "also choose a GPU by it"},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY, .help = "free on the GPU to choose: 20GiB"},
    {.name = "affinity", .kinds = ACRE_KIND_STRING, .help = "choose this GPU while it is not full"},
    {.name = "last", .kinds = ACRE_KIND_STRING, .help = "round-robin: the GPU chosen last"},
    {0},
};

/* The devices in question, and those of them that can be judged. */
struct devices {
    uint32_t first, count;
    struct acre_device_load *all; /* by device - first */
    struct acre_balance_load *loads;
    uint32_t *numbers; /* of the devices in `loads` */
    uint32_t load_count;
    uint32_t unknown, drained;
};

static bool is_judged(const struct acre_device_load *load) {
    return !load->drained && load->has_memory && load->has_utilisation;
}

static int find_devices(struct acre_api *api, struct acre_call *call, struct devices *to,
                        struct acre_error *err) {
    const char *name = call_query(call, "node");
    uint32_t index = 0;
    *to = (struct devices){.count = acre_ledger_device_count(acre_desk_ledger(api->desk))};
    if (name != NULL) {
        if (!inventory_find_node(acre_desk_inventory(api->desk), name, &index)) {
            char shown[80];
            return acre_fail(err, ACRE_ENOTFOUND, "node: there is no node '%s'",
                             acre_str_show(acre_str_from(name), shown, sizeof(shown)));
        }
        const struct inventory_node *node = inventory_node(acre_desk_inventory(api->desk), index);
        to->first = node->first_device;
        to->count = node->device_count;
    }
    to->all = acre_arena_alloc(call->arena, (to->count + 1U) * sizeof(*to->all));
    to->loads = acre_arena_alloc(call->arena, (to->count + 1U) * sizeof(*to->loads));
    to->numbers = acre_arena_alloc(call->arena, (to->count + 1U) * sizeof(*to->numbers));
    for (uint32_t i = 0; i < to->count; i++) {
        struct acre_device_load *load = &to->all[i];
        acre_desk_device_load(api->desk, to->first + i, load);
        to->drained += load->drained;
        to->unknown += !load->drained && !is_judged(load);
        if (is_judged(load)) {
            to->numbers[to->load_count] = to->first + i;
            to->loads[to->load_count++] = load->load;
        }
    }
    return 0;
}

static const char *id_of(struct acre_api *api, uint32_t device) {
    return inventory_device(acre_desk_inventory(api->desk), device)->id;
}

/* --- loads ---------------------------------------------------------------------------------- */

static void put_ratio(struct acre_json *json, const char *key, bool known, double value) {
    if (known) {
        acre_json_put_double(json, key, value, 3);
    } else {
        acre_json_put_null(json, key);
    }
}

static void write_device(struct acre_api *api, uint32_t index, const struct acre_device_load *known,
                         struct acre_json *json) {
    static const char *const trends[] = {"falling", "flat", "rising"};
    const struct acre_balance_load *load = &known->load;
    const struct acre_engine_device *device =
        inventory_device(acre_desk_inventory(api->desk), index);
    struct acre_ledger_device info;
    struct acre_ledger_node node;
    acre_ledger_device_info(acre_desk_ledger(api->desk), index, &info);
    acre_ledger_node_info(acre_desk_ledger(api->desk), info.node, &node);
    acre_json_object(json);
    acre_json_put_string(json, "id", device->id);
    acre_json_put_string(json, "node", node.name);
    acre_json_put_double(json, "queue", load->queue, 3);
    acre_json_put_double(json, "predicted_queue", load->predicted_queue, 3);
    acre_json_put_string(json, "trend", trends[load->trend + 1]);
    put_ratio(json, "utilization", known->has_utilisation, load->utilisation);
    view_put_known(json, "available_mib", known->has_memory ? load->available_mib : ACRE_UNKNOWN);
    view_put_known(json, "memory_mib", known->has_memory ? load->total_mib : ACRE_UNKNOWN);
    put_ratio(json, "load", is_judged(known), acre_balance_load_score(load));
    acre_json_put_bool(json, "drained", known->drained);
    acre_json_put_bool(json, "simulated", device->simulated);
    acre_json_object_end(json);
}

/* --- advice --------------------------------------------------------------------------------- */

static void write_moves(struct acre_api *api, const struct devices *devices,
                        const struct acre_balance_move *moves, uint32_t count,
                        struct acre_json *json) {
    acre_json_key(json, "moves");
    acre_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        acre_json_object(json);
        acre_json_put_string(json, "from", id_of(api, devices->numbers[moves[i].from]));
        acre_json_put_string(json, "to", id_of(api, devices->numbers[moves[i].to]));
        acre_json_put_double(json, "reduction", moves[i].reduction, 3);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static const char *explain_unjudged(const struct devices *devices, struct acre_arena *arena) {
    if (devices->count < 2) {
        return devices->count == 0 ? "there is no GPU" : "there is only one GPU: nothing to move";
    }
    return acre_arena_printf(arena,
                             "%u of %u GPUs can be judged, and it takes two: %u without a reading "
                             "of utilization or memory, %u drained",
                             devices->load_count, devices->count, devices->unknown,
                             devices->drained);
}

static int write_advice(struct acre_api *api, struct acre_call *call, const struct devices *devices,
                        struct acre_json *json, struct acre_error *err) {
    static const char *const urgencies[] = {"none", "low", "medium", "high", "critical"};
    struct acre_balance_move moves[MOVES_MAX];
    struct acre_balance_advice advice;
    int r =
        acre_balance_advise(devices->loads, devices->load_count, moves, MOVES_MAX, &advice, err);
    if (r < 0) {
        return r;
    }
    bool judged = devices->load_count >= 2;
    acre_json_key(json, "advice");
    acre_json_object(json);
    acre_json_put_string(json, "urgency", judged ? urgencies[advice.urgency] : NULL);
    acre_json_put_bool(json, "rebalance", advice.rebalance);
    acre_json_put_string(json, "reason",
                         judged ? advice.reason : explain_unjudged(devices, call->arena));
    put_ratio(json, "max", judged, advice.max);
    put_ratio(json, "min", judged, advice.min);
    put_ratio(json, "mean", judged, advice.mean);
    put_ratio(json, "deviation", judged, advice.deviation);
    put_ratio(json, "improvement", judged, advice.improvement);
    write_moves(api, devices, moves, advice.move_count, json);
    acre_json_put_u64(json, "judged", devices->load_count);
    acre_json_put_u64(json, "unknown", devices->unknown);
    acre_json_put_u64(json, "drained", devices->drained);
    acre_json_object_end(json);
    return 0;
}

/* --- choice --------------------------------------------------------------------------------- */

static enum acre_balance_strategy strategy_of(const char *name) {
    int i = 0;
    while (strcmp(acre_balance_strategy_name((enum acre_balance_strategy)i), name) != 0) {
        i++;
    }
    return (enum acre_balance_strategy)i;
}

/* Round robin and least loaded need no reading: every device that takes work is a candidate. */
static void add_unread(struct devices *devices) {
    devices->load_count = 0;
    for (uint32_t i = 0; i < devices->count; i++) {
        if (!devices->all[i].drained) {
            devices->numbers[devices->load_count] = devices->first + i;
            devices->loads[devices->load_count++] = devices->all[i].load;
        }
    }
}

/* Where the device that `key` names stands among the loads; NO_DEVICE: it is not asked for, or
 * cannot be used. ACRE_ENOTFOUND: there is none of that name. */
static int place_of(struct acre_api *api, const struct acre_call *call,
                    const struct devices *devices, const char *key, uint32_t *ret_place,
                    struct acre_error *err) {
    const char *id = call_query(call, key);
    uint32_t device = 0;
    *ret_place = ACRE_BALANCE_NO_DEVICE;
    if (id == NULL) {
        return 0;
    }
    if (!acre_ledger_find_device(acre_desk_ledger(api->desk), id, &device)) {
        char shown[80];
        return acre_fail(err, ACRE_ENOTFOUND, "%s: there is no GPU '%s'", key,
                         acre_str_show(acre_str_from(id), shown, sizeof(shown)));
    }
    for (uint32_t i = 0; i < devices->load_count; i++) {
        *ret_place = devices->numbers[i] == device ? i : *ret_place;
    }
    return 0;
}

static void write_choice(struct acre_api *api, const struct devices *devices,
                         const struct acre_balance_choice *choice, const char *strategy,
                         struct acre_json *json) {
    const char *id = choice != NULL ? id_of(api, devices->numbers[choice->device]) : NULL;
    acre_json_object(json);
    acre_json_put_string(json, "strategy", strategy);
    acre_json_put_string(json, "gpu", id);
    put_ratio(json, "score", choice != NULL && !choice->is_fallback,
              choice != NULL ? choice->score : 0);
    acre_json_put_bool(json, "fallback", choice != NULL && choice->is_fallback);
    acre_json_put_u64(json, "candidates", choice != NULL ? choice->candidates : 0);
    acre_json_put_string(json, "reason",
                         choice != NULL ? choice->reason
                                        : "no GPU reports what this strategy needs");
    acre_json_object_end(json);
}

static int choose(struct acre_api *api, struct acre_call *call, struct devices *devices,
                  struct acre_json *json, struct acre_error *err) {
    const char *name = call_query(call, "strategy");
    const char *memory = call_query(call, "memory");
    uint32_t last = ACRE_BALANCE_NO_DEVICE;
    acre_json_key(json, "choice");
    if (name == NULL) {
        acre_json_null(json);
        return 0;
    }
    struct acre_balance_request request = {.strategy = strategy_of(name),
                                           .max_queue = ACRE_BALANCE_MAX_UTILISATION};
    if (request.strategy == ACRE_BALANCE_ROUND_ROBIN ||
        request.strategy == ACRE_BALANCE_LEAST_LOADED) {
        add_unread(devices);
    }
    int r = memory != NULL ? acre_parse_mib("memory", memory, &request.min_mib, err) : 0;
    if (r == 0) {
        r = place_of(api, call, devices, "affinity", &request.affinity, err);
    }
    if (r == 0) {
        r = place_of(api, call, devices, "last", &last, err);
    }
    struct acre_balance_choice choice;
    uint32_t cursor = last != ACRE_BALANCE_NO_DEVICE ? last + 1 : 0;
    if (r == 0 && devices->load_count > 0) {
        r = acre_balance_choose(devices->loads, devices->load_count, &request, &cursor, &choice,
                                err);
    }
    if (r == 0) {
        write_choice(api, devices, devices->load_count > 0 ? &choice : NULL, name, json);
    }
    return r;
}

void handle_balance(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct devices devices;
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    int r = find_devices(api, call, &devices, &err);
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    uint64_t at = page.after;
    acre_json_key(json, "gpus");
    acre_json_array(json);
    for (uint32_t shown = 0; shown < page.limit && at < devices.count; shown++, at++) {
        write_device(api, devices.first + (uint32_t)at, &devices.all[at], json);
    }
    acre_json_array_end(json);
    r = write_advice(api, call, &devices, json, &err);
    if (r == 0) {
        r = choose(api, call, &devices, json, &err);
    }
    if (r < 0) {
        acre_reply_drop(&reply);
        acre_api_fail(api, call, &err);
        return;
    }
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_page_write(json, at < devices.count, at);
    acre_reply_send(api, call, &reply, 200);
}
