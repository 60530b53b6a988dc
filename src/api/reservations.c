/* reservations.c - devices kept for one user from one time to another (ALC-8).
 *
 * A reservation names its devices, or asks for a number of them: then the first ones that are free
 * in the window are taken, in the order of the ledger. */
#include "api/api.h"
#include "api/budget.h"
#include "api/handlers.h"
#include "api/submit.h"
#include "api/view.h"
#include "desk/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 4096 };

const struct field reserve_fields[] = {
    {.name = "gpus",
     .kinds = ACRE_KIND_INTEGER,
     .min = 1,
     .max = DEVICES_MAX,
     .help = "how many; or list them in devices"},
    {.name = "devices",
     .kinds = ACRE_KIND_STRINGS,
     .max_length = DEVICES_MAX,
     .help = "their ids, as in GET /gpus"},
    {.name = "share",
     .kinds = ACRE_KIND_NUMBER,
     .min = 0.1,
     .max = 1,
     .help = "of each GPU, in steps of 0.001 (default: 1, exclusive)"},
    {.name = "start",
     .kinds = ACRE_KIND_TIME | ACRE_KIND_DURATION,
     .help = "a time, or a duration from now (default: now)"},
    {.name = "end", .kinds = ACRE_KIND_TIME},
    {.name = "duration", .kinds = ACRE_KIND_DURATION},
    {.name = "isolation", .kinds = ACRE_KIND_STRING, .words = submit_isolations},
    {0},
};

static void write_reservation(struct acre_api *api, const struct acre_reservation *from,
                              struct acre_json *json) {
    const struct acre_ledger *ledger = acre_desk_ledger(api->desk);
    acre_json_object(json);
    acre_json_put_u64(json, "id", from->id);
    acre_json_put_string(json, "user", acre_names_text(acre_desk_names(api->desk), from->user));
    acre_json_put_string(json, "state", acre_reservation_state_name(from->state));
    acre_json_put_u64(json, "share_milli", from->milli);
    acre_json_put_string(json, "isolation", isolation_name(from->isolation));
    view_put_time(json, "start", from->start_ms);
    view_put_time(json, "end", from->end_ms);
    acre_json_key(json, "devices");
    acre_json_array(json);
    for (uint32_t i = 0; i < from->device_count; i++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, from->devices[i], &device);
        acre_json_string(json, device.id);
    }
    acre_json_array_end(json);
    acre_json_put_bool(json, "simulated", acre_api_is_simulated(api));
    acre_json_object_end(json);
}

void handle_reservations(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_page page;
    if (!acre_page_read(api, call, &page)) {
        return;
    }
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    struct acre_reservation found;
    uint64_t id = page.after;
    bool more = true;
    acre_json_key(json, "reservations");
    acre_json_array(json);
    for (uint32_t shown = 0; shown < page.limit; shown++) {
        more = acre_ledger_next_reservation(acre_desk_ledger(api->desk), id, &found);
        if (!more) {
            break;
        }
        id = found.id;
        write_reservation(api, &found, json);
    }
    acre_json_array_end(json);
    acre_page_write(json, more, id);
    acre_reply_send(api, call, &reply, 200);
}

static int read_window(const json_t *body, uint64_t now_ms, struct acre_reservation_spec *to,
                       struct acre_error *err) {
    uint64_t ms = 0;
    const json_t *start = json_object_get(body, "start");
    to->start_ms = now_ms;
    if (start != NULL && !field_time(start, &to->start_ms) && field_duration(start, &ms)) {
        to->start_ms = now_ms + ms;
    }
    bool has_end = field_time(json_object_get(body, "end"), &to->end_ms);
    bool has_duration = field_duration(json_object_get(body, "duration"), &ms);
    if (has_end == has_duration) {
        return acre_fail(err, ACRE_EINVALID, "end: %s; accepted: either end or duration",
                         has_end ? "given together with duration" : "absent");
    }
    if (has_duration) {
        to->end_ms = to->start_ms + ms;
    }
    if (to->start_ms < now_ms) {
        char text[25];
        return acre_fail(err, ACRE_EINVALID, "start: %s is in the past; accepted: now or later",
                         acre_format_time(to->start_ms, text));
    }
    if (to->end_ms <= to->start_ms) {
        return acre_fail(
            err, ACRE_EINVALID, "%s: the reservation would end before it starts; accepted: %s",
            has_end ? "end" : "duration", has_end ? "a time after start" : "1ms or more");
    }
    return 0;
}

static int read_spec(const struct acre_call *call, uint64_t now_ms,
                     struct acre_reservation_spec *to, struct acre_error *err) {
    const json_t *share = json_object_get(call->body, "share");
    const json_t *isolation = json_object_get(call->body, "isolation");
    double milli = share != NULL ? round(json_number_value(share) * 1000.0) : 1000.0;
    to->milli = (uint32_t)milli;
    if (isolation != NULL) {
        isolation_parse(acre_str_from(json_string_value(isolation)), &to->isolation);
    }
    const json_t *gpus = json_object_get(call->body, "gpus");
    const json_t *devices = json_object_get(call->body, "devices");
    if ((gpus != NULL) == (json_array_size(devices) > 0)) {
        return acre_fail(err, ACRE_EINVALID, "gpus: %s; accepted: either gpus or devices",
                         gpus != NULL ? "given together with devices" : "absent");
    }
    return read_window(call->body, now_ms, to, err);
}

/* Devices by name. */
static int find_devices(struct acre_api *api, const json_t *list, uint32_t *devices,
                        struct acre_error *err) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (!acre_ledger_find_device(acre_desk_ledger(api->desk), id, &devices[i])) {
            char shown[100];
            return acre_fail(err, ACRE_ENOTFOUND, "devices: there is no GPU '%s'; see GET /gpus",
                             acre_str_show(acre_str_from(id), shown, sizeof(shown)));
        }
    }
    return 0;
}

void handle_reserve(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    struct acre_error err = {0};
    struct acre_reservation_spec spec = {0};
    struct acre_reservation made;
    uint64_t id = 0;
    if (!acre_api_may_change(api, call) || !budget_take(api, call, 1)) {
        return;
    }
    const json_t *list = json_object_get(call->body, "devices");
    uint32_t wanted = list != NULL
                          ? (uint32_t)json_array_size(list)
                          : (uint32_t)json_integer_value(json_object_get(call->body, "gpus"));
    uint32_t *devices = acre_calloc(wanted + 1U, sizeof(*devices));
    uint64_t now_ms = acre_desk_now(api->desk); /* one now: a later one would call this one past */
    int r = read_spec(call, now_ms, &spec, &err);
    if (r == 0 && list != NULL) {
        r = find_devices(api, list, devices, &err);
    }
    spec.devices = list != NULL ? devices : NULL;
    spec.device_count = wanted;
    if (r == 0) {
        r = acre_desk_reserve(api->desk, call->user.name, &spec, now_ms, &id, &err);
    }
    free(devices);
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    acre_ledger_find_reservation(acre_desk_ledger(api->desk), id, &made);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "reservation");
    write_reservation(api, &made, json);
    acre_reply_send(api, call, &reply, 201);
}

void handle_unreserve(void *context, struct acre_call *call) {
    struct acre_api *api = context;
    const struct acre_ledger *ledger = acre_desk_ledger(api->desk);
    struct acre_error err = {0};
    struct acre_reservation found;
    uint64_t id = 0;
    char what[40];
    int r = call_id(call, "id", &id, &err);
    snprintf(what, sizeof(what), "reservation:%llu", (unsigned long long)id);
    if (r == 0 && !acre_ledger_find_reservation(ledger, id, &found)) {
        r = acre_fail(&err, ACRE_ENOTFOUND, "there is no reservation %llu", (unsigned long long)id);
    }
    if (r == 0) {
        r = acre_api_owns(call, acre_names_text(acre_desk_names(api->desk), found.user), what,
                          &err);
    }
    if (r < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    if (!acre_api_may_change(api, call)) {
        return;
    }
    if (acre_desk_unreserve(api->desk, id, &err) < 0) {
        acre_api_fail(api, call, &err);
        return;
    }
    acre_ledger_find_reservation(ledger, id, &found);
    struct acre_reply reply;
    struct acre_json *json = acre_reply_begin(&reply);
    acre_json_key(json, "reservation");
    write_reservation(api, &found, json);
    acre_reply_send(api, call, &reply, 200);
}
