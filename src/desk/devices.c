/* devices.c - what is asked about devices: draining, reserving, memory that strangers use.
 *
 * A drain is a mark in the ledger and a row in the store, both made in one turn. */
#include "desk/commands.h"

#include "desk/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- draining ------------------------------------------------------------------------------- */

/* The row of a drain, and the audit row that goes with it. */
static void record_drain(struct acre_desk *desk, const char *kind, const char *name,
                         const char *reason) {
    char target[160];
    snprintf(target, sizeof(target), "%s:%s", kind, name);
    struct acre_batch *batch = acre_desk_batch(desk);
    if (reason != NULL) {
        struct acre_store_drain row = {
            .target = target, .reason = reason, .since_ms = acre_desk_now(desk)};
        acre_batch_put_drain(batch, &row);
    } else {
        acre_batch_remove_drain(batch, target);
    }
    acre_desk_audit(desk, reason != NULL ? "drained" : "undrained", target, "ok",
                    reason != NULL ? reason : "");
    acre_sched_ledger_changed(desk->sched);
}

void acre_desk_drain_device(struct acre_desk *desk, uint32_t device, const char *reason) {
    struct acre_ledger_device info;
    int r = reason != NULL ? acre_ledger_drain_device(desk->ledger, device, reason, NULL)
                           : acre_ledger_undrain_device(desk->ledger, device, NULL);
    ACRE_ASSERT(r == 0);
    acre_ledger_device_info(desk->ledger, device, &info);
    record_drain(desk, "device", info.id, reason);
}

void acre_desk_drain_node(struct acre_desk *desk, uint32_t node, const char *reason) {
    struct acre_ledger_node info;
    bool is_lost = inventory_node(desk->inventory, node)->is_lost;
    int r = acre_ledger_drain_node(desk->ledger, node, reason != NULL || is_lost, NULL);
    ACRE_ASSERT(r == 0);
    acre_ledger_node_info(desk->ledger, node, &info);
    desk_set_node_reason(desk, node, reason != NULL ? reason : "");
    record_drain(desk, "node", info.name, reason);
}

void acre_desk_set_foreign(struct acre_desk *desk, uint32_t device, uint64_t mib) {
    if (acre_ledger_set_foreign(desk->ledger, device, mib, NULL) == 0) {
        acre_sched_ledger_changed(desk->sched);
        desk->touched = true;
    }
}

void acre_desk_set_live(struct acre_desk *desk, uint32_t device,
                        const struct acre_device_live *live) {
    inventory_set_live(desk->inventory, device, live);
    desk_heard(desk, device);
}

/* --- reserving ------------------------------------------------------------------------------ */

static void write_reservation(const struct acre_desk *desk, const struct acre_reservation *from,
                              struct acre_buf *out) {
    struct acre_json json;
    acre_json_begin(&json, out, false);
    acre_json_object(&json);
    acre_json_put_u64(&json, "share_milli", from->milli);
    acre_json_put_string(&json, "isolation", isolation_name(from->isolation));
    acre_json_key(&json, "devices");
    acre_json_array(&json);
    for (uint32_t i = 0; i < from->device_count; i++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(desk->ledger, from->devices[i], &device);
        acre_json_string(&json, device.id);
    }
    acre_json_array_end(&json);
    acre_json_object_end(&json);
    acre_json_end(&json);
}

void desk_put_reservation(struct acre_desk *desk, uint64_t id) {
    struct acre_reservation from;
    if (!acre_ledger_find_reservation(desk->ledger, id, &from)) {
        return;
    }
    struct acre_buf detail;
    acre_buf_init(&detail, ACRE_RECORD_DETAIL_MAX);
    write_reservation(desk, &from, &detail);
    struct acre_store_reservation row = {
        .id = id,
        .user = acre_names_text(acre_ledger_names(desk->ledger), from.user),
        .state = acre_reservation_state_name(from.state),
        .start_ms = from.start_ms,
        .end_ms = from.end_ms,
        .detail = {detail.data, detail.length},
    };
    acre_batch_put_reservation(acre_desk_batch(desk), &row);
    acre_sched_ledger_changed(desk->sched);
    desk_note_reservations(desk, acre_desk_now(desk));
    acre_buf_finish(&detail);
}

static void audit_reservation(struct acre_desk *desk, const char *action, uint64_t id) {
    char target[40];
    snprintf(target, sizeof(target), "reservation:%llu", (unsigned long long)id);
    acre_desk_audit(desk, action, target, "ok", "");
}

/* The first ones that could be reserved alone, tried one by one; the error is the last one's. */
static int choose_devices(struct acre_desk *desk, const struct acre_reservation_spec *spec,
                          uint64_t now_ms, uint32_t *devices, struct acre_error *err) {
    struct acre_reservation_spec one = *spec;
    uint32_t total = acre_ledger_device_count(desk->ledger);
    uint32_t wanted = spec->device_count;
    uint32_t found = 0;
    one.device_count = 1;
    for (uint32_t d = 0; d < total && found < wanted; d++) {
        struct acre_ledger_device info;
        acre_ledger_device_info(desk->ledger, d, &info);
        one.devices = &d;
        int r = info.drained ? ACRE_ECONFLICT
                             : acre_ledger_may_reserve(desk->ledger, &one, now_ms, err);
        if (r == 0) {
            devices[found++] = d;
        } else if (r != ACRE_ECONFLICT) {
            return r;
        }
    }
    if (found < wanted) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "gpus: %u asked for, but only %u of %u are free in that period", wanted,
                         found, total);
    }
    return 0;
}

int acre_desk_reserve(struct acre_desk *desk, const char *user,
                      const struct acre_reservation_spec *spec, uint64_t now_ms, uint64_t *ret_id,
                      struct acre_error *err) {
    struct acre_reservation_spec named = *spec;
    uint32_t *chosen = acre_calloc(spec->device_count + 1U, sizeof(*chosen));
    uint64_t id = 0;
    int r = 0;
    named.user = acre_names_intern(acre_ledger_names(desk->ledger), acre_str_from(user));
    if (spec->devices == NULL) {
        r = choose_devices(desk, &named, now_ms, chosen, err);
        named.devices = chosen;
    }
    if (r == 0) {
        r = acre_ledger_reserve(desk->ledger, &named, now_ms, &id, err);
    }
    free(chosen);
    if (r < 0) {
        return r;
    }
    desk_put_reservation(desk, id);
    audit_reservation(desk, "reserved", id);
    *ret_id = id;
    return 0;
}

int acre_desk_unreserve(struct acre_desk *desk, uint64_t id, struct acre_error *err) {
    int r = acre_ledger_cancel_reservation(desk->ledger, id, acre_desk_now(desk), err);
    if (r == 0) {
        desk_put_reservation(desk, id);
        audit_reservation(desk, "reservation canceled", id);
    }
    return r;
}
