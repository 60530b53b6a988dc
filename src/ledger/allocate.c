/* allocate.c - the verbs: plan, allocate, place, activate, release, extend, tick.
 *
 * plan: the class's best shape and its first node; for in-order strategies the order's first
 * node; then several nodes if it is a gang; then devices reserved for later if the want ends in
 * time. allocate is plan + take; place is take alone. Nothing changes unless all of it can. */
#include "ledger/mix.h"
#include "ledger/node_order.h"
#include "ledger/place.h"
#include "ledger/reserve.h"
#include "ledger/shape.h"

#include <stdlib.h>
#include <string.h>

static const char *const event_names[] = {
#define X(name, text) text,
    ACRE_LEDGER_EVENTS(X)
#undef X
};

const char *acre_ledger_event_name(enum acre_ledger_event_kind kind) {
    ACRE_ASSERT((unsigned)kind < ACRE_COUNT(event_names));
    return event_names[kind];
}

void ledger_tell(struct acre_ledger *ledger, enum acre_ledger_event_kind kind, uint64_t now_ms,
                 uint64_t owner, uint64_t allocation, int code) {
    if (ledger->event != NULL) {
        struct acre_ledger_event event = {kind, now_ms, owner, allocation, code};
        ledger->event(ledger->event_context, &event);
    }
}

/* A place on one node for all members. */
static bool find_on_one_node(struct acre_ledger *ledger, struct want_class *class,
                             struct acre_part *parts) {
    const struct want *want = class_want(class);
    if (want->strategy == ACRE_STRATEGY_FIRST_FIT || want->strategy == ACRE_STRATEGY_ROUND_ROBIN) {
        uint32_t from = want->strategy == ACRE_STRATEGY_ROUND_ROBIN ? ledger->after_last_used : 0;
        uint32_t node = node_order_find(ledger, class, from);
        return node != UINT32_MAX &&
               place_on_node(ledger, class, node, want->replicas, NULL, parts);
    }
    const struct candidate *best = class_best(ledger, class);
    if (best == NULL) {
        return false;
    }
    ACRE_ASSERT(shapes_get(ledger->shapes, best->shape)->node_count > 0);
    uint32_t node = shapes_get(ledger->shapes, best->shape)->nodes[0];
    if (want->replicas == 1 && want->gpus == 1) {
        place_on_slot(ledger, want, node, best->slot, parts);
        return true;
    }
    return place_on_node(ledger, class, node, want->replicas, NULL, parts);
}

/* Only load balancing asks for the number of shares, and gangs that could put more of them on one
 * device than it takes. */
static bool counts_matter(const struct acre_ledger *ledger, const struct want *want) {
    return want->strategy == ACRE_STRATEGY_LOAD_BALANCED ||
           (want->replicas > 1 && want->gpus > 0 && !want->whole &&
            want->milli * shares_max(ledger) < 1000);
}

/* From now on words say how many more shares a device takes: more states, hence not before. */
static void track_counts(struct acre_ledger *ledger) {
    ledger->track_counts = true;
    for (uint32_t i = 0; i < ledger->node_count; i++) {
        shapes_file_node(ledger, i);
    }
}

static int find_place(struct acre_ledger *ledger, const struct acre_request *request,
                      const struct want *want, struct acre_part *parts, struct acre_error *err) {
    if (counts_matter(ledger, want) && !ledger->track_counts) {
        track_counts(ledger);
    }
    if (request->reservation != 0) {
        return reserved_place_within(ledger, want, request->reservation, parts, err);
    }
    if (find_on_one_node(ledger, classes_get(ledger, want), parts)) {
        return 0;
    }
    if (want->replicas > 1 && place_gang(ledger, want, parts)) {
        return 0;
    }
    if (request->expires_ms != 0 && reserved_place(ledger, want, request->expires_ms, parts)) {
        return 0;
    }
    return err != NULL ? explain_no_fit(ledger, want, err) : ACRE_ENOFIT;
}

static int check_times(const struct acre_request *request, uint64_t now_ms,
                       struct acre_error *err) {
    if (request->expires_ms != 0 && request->expires_ms <= now_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "expires_ms: %llu is not in the future (now %llu); accepted: a later "
                         "time, or 0 for never",
                         (unsigned long long)request->expires_ms, (unsigned long long)now_ms);
    }
    return 0;
}

uint32_t acre_request_parts(const struct acre_request *request) {
    return request->replicas * ACRE_MAX(request->gpus, 1U);
}

int acre_ledger_plan(struct acre_ledger *ledger, const struct acre_request *request,
                     uint64_t now_ms, struct acre_part *parts, uint32_t max, uint32_t *ret_count,
                     struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r == 0) {
        r = check_times(request, now_ms, err);
    }
    if (r < 0) {
        return r;
    }
    uint32_t count = acre_request_parts(request);
    if (count > max) {
        return acre_fail(err, ACRE_ELIMIT,
                         "parts: the request has %u parts, but there is room for %u", count, max);
    }
    r = find_place(ledger, request, &want, parts, err);
    if (r == 0) {
        *ret_count = count;
    }
    return r;
}

int acre_ledger_plan_on(struct acre_ledger *ledger, const struct acre_request *request,
                        const uint32_t *nodes, uint32_t node_count, struct acre_part *parts,
                        uint32_t max, uint32_t *ret_count, struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r < 0) {
        return r;
    }
    uint32_t count = acre_request_parts(request);
    if (count > max) {
        return acre_fail(err, ACRE_ELIMIT,
                         "parts: the request has %u parts, but there is room for %u", count, max);
    }
    struct want_class *class = classes_get(ledger, &want);
    for (uint32_t i = 0; i < node_count && request->reservation == 0; i++) {
        if (nodes[i] < ledger->node_count &&
            place_on_node(ledger, class, nodes[i], want.replicas, NULL, parts)) {
            *ret_count = count;
            return 0;
        }
    }
    return acre_fail(err, ACRE_ENOFIT, "none of these %u nodes has room for it now", node_count);
}

void acre_ledger_expect(struct acre_ledger *ledger, const struct acre_request *request) {
    struct want want;
    if (want_from(ledger, request, &want, NULL) == 0) {
        mix_note(ledger, &want);
    }
}

/* Take the parts under `id` and keep them. */
static int keep(struct acre_ledger *ledger, const struct acre_request *request, bool exclusive,
                const struct acre_part *parts, uint32_t count, uint64_t id, uint64_t now_ms,
                uint64_t *ret_id, struct acre_error *err) {
    bool within = request->reservation != 0;
    ACRE_ASSERT(count > 0 && count == acre_request_parts(request));
    ACRE_ASSERT(id <= GRANT_ID_MAX);
    if (grants_find(ledger->grants, id) != NULL) {
        return acre_fail(err, ACRE_EEXISTS, "allocation %llu is already in the ledger",
                         (unsigned long long)id);
    }
    int r = within ? reserved_may_draw(ledger, request->reservation, parts, count,
                                       request->isolation, exclusive, err)
                   : 0;
    if (r == 0) {
        r = books_take(ledger, parts, count, request->isolation, exclusive, within, err);
    }
    if (r < 0) {
        return r;
    }
    struct grant *grant = grants_add(ledger->grants, id, count);
    grant->owner = request->owner;
    grant->tenant = request->tenant;
    grant->isolation = (uint8_t)request->isolation;
    grant->status = request->pending ? ACRE_ALLOCATION_PENDING : ACRE_ALLOCATION_ACTIVE;
    grant->created_ms = now_ms;
    grant->expires_ms = request->expires_ms;
    grant->reservation = (uint32_t)request->reservation;
    grant_set_parts(grant, parts, exclusive);
    if (grant->expires_ms != 0 && !request->overstays) {
        grants_note_end(ledger->grants, grant);
    }
    reserved_note(ledger, grant, true);
    ledger->after_last_used = parts[count - 1].node + 1;
    ledger_tell(ledger, ACRE_LEDGER_ALLOCATED, now_ms, grant->owner, grant->id, 0);
    *ret_id = grant->id;
    return 0;
}

int acre_ledger_allocate(struct acre_ledger *ledger, const struct acre_request *request,
                         uint64_t now_ms, uint64_t *ret_id, struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r == 0) {
        r = check_times(request, now_ms, err);
    }
    if (r < 0) {
        return r;
    }
    ledger_tell(ledger, ACRE_LEDGER_REQUESTED, now_ms, request->owner, 0, 0);
    mix_note(ledger, &want);
    uint32_t count = acre_request_parts(request);
    struct acre_part one;
    struct acre_part *parts = count > 1 ? acre_calloc(count, sizeof(*parts)) : &one;
    r = find_place(ledger, request, &want, parts, err);
    if (r == 0) {
        r = keep(ledger, request, want.whole, parts, count, 0, now_ms, ret_id, err);
    }
    if (r < 0) {
        ledger_tell(ledger, ACRE_LEDGER_FAILED, now_ms, request->owner, 0, r);
    }
    if (parts != &one) {
        free(parts);
    }
    return r;
}

int acre_ledger_place(struct acre_ledger *ledger, const struct acre_request *request,
                      const struct acre_part *parts, uint32_t count, uint64_t id, uint64_t now_ms,
                      uint64_t *ret_id, struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r < 0) {
        return r;
    }
    if (id > GRANT_ID_MAX) {
        return acre_fail(err, ACRE_EINVALID, "id: %llu is out of range; accepted: 0 to %llu",
                         (unsigned long long)id, (unsigned long long)GRANT_ID_MAX);
    }
    if (count == 0 || count != acre_request_parts(request)) {
        return acre_fail(err, ACRE_EINVALID, "parts: %u given, but the request has %u", count,
                         acre_request_parts(request));
    }
    return keep(ledger, request, want.whole, parts, count, id, now_ms, ret_id, err);
}

static int no_such(uint64_t id, struct acre_error *err) {
    return acre_fail(err, ACRE_ENOTFOUND, "there is no live allocation %llu",
                     (unsigned long long)id);
}

static int held_by_reservation(const struct grant *grant, struct acre_error *err) {
    return acre_fail(
        err, ACRE_ECONFLICT,
        "allocation %llu belongs to reservation %llu; cancel the reservation to end it",
        (unsigned long long)grant->id, (unsigned long long)grant->owner);
}

int acre_ledger_activate(struct acre_ledger *ledger, uint64_t id, uint64_t now_ms,
                         struct acre_error *err) {
    struct grant *grant = grants_find(ledger->grants, id);
    if (grant == NULL) {
        return no_such(id, err);
    }
    if (grant->status != ACRE_ALLOCATION_PENDING) {
        return acre_fail(err, ACRE_ECONFLICT, "allocation %llu is already active",
                         (unsigned long long)id);
    }
    grant->status = ACRE_ALLOCATION_ACTIVE;
    ledger_tell(ledger, ACRE_LEDGER_MODIFIED, now_ms, grant->owner, id, 0);
    return 0;
}

void grant_end(struct acre_ledger *ledger, struct grant *grant, enum acre_allocation_status outcome,
               uint64_t now_ms) {
    struct acre_part one;
    ACRE_ASSERT(grant->id != 0 && grant->part_count > 0);
    ACRE_ASSERT(outcome >= ACRE_ALLOCATION_COMPLETED && outcome <= ACRE_ALLOCATION_EXPIRED);
    reserved_note(ledger, grant, false);
    books_give(ledger, grant_parts(ledger, grant, &one), grant->part_count,
               grant->reservation != 0);
    ledger_tell(
        ledger, outcome == ACRE_ALLOCATION_EXPIRED ? ACRE_LEDGER_EXPIRED : ACRE_LEDGER_RELEASED,
        now_ms, grant->owner, grant->id, outcome == ACRE_ALLOCATION_FAILED ? ACRE_EINTERNAL : 0);
    grants_remove(ledger->grants, grant);
}

int acre_ledger_release(struct acre_ledger *ledger, uint64_t id,
                        enum acre_allocation_status outcome, uint64_t now_ms,
                        struct acre_error *err) {
    if (outcome != ACRE_ALLOCATION_COMPLETED && outcome != ACRE_ALLOCATION_FAILED) {
        return acre_fail(err, ACRE_EINVALID,
                         "outcome: unknown outcome %d; accepted: completed or failed", outcome);
    }
    struct grant *grant = grants_find(ledger->grants, id);
    if (grant == NULL) {
        return no_such(id, err);
    }
    if (grant->status == GRANT_RESERVED) {
        return held_by_reservation(grant, err);
    }
    grant_end(ledger, grant, outcome, now_ms);
    return 0;
}

int acre_ledger_extend(struct acre_ledger *ledger, uint64_t id, uint64_t expires_ms,
                       uint64_t now_ms, struct acre_error *err) {
    struct grant *grant = grants_find(ledger->grants, id);
    if (grant == NULL) {
        return no_such(id, err);
    }
    if (grant->status == GRANT_RESERVED) {
        return held_by_reservation(grant, err);
    }
    if (expires_ms != 0 && expires_ms <= now_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "expires_ms: %llu is not in the future (now %llu); accepted: a later "
                         "time, or 0 for never",
                         (unsigned long long)expires_ms, (unsigned long long)now_ms);
    }
    int r = reserved_may_last(ledger, grant, expires_ms, err);
    if (r < 0) {
        return r;
    }
    reserved_note(ledger, grant, false);
    grant->expires_ms = expires_ms;
    reserved_note(ledger, grant, true);
    if (expires_ms != 0) {
        grants_note_end(ledger->grants, grant);
    }
    ledger_tell(ledger, ACRE_LEDGER_MODIFIED, now_ms, grant->owner, id, 0);
    return 0;
}

uint32_t acre_ledger_tick(struct acre_ledger *ledger, uint64_t now_ms) {
    uint32_t changed = 0;
    for (struct grant *grant; (grant = grants_take_ended(ledger->grants, now_ms)) != NULL;) {
        grant_end(ledger, grant, ACRE_ALLOCATION_EXPIRED, now_ms);
        changed++;
    }
    return changed + reservations_tick(ledger, now_ms);
}

static void show_grant(const struct acre_ledger *ledger, const struct grant *grant,
                       struct acre_allocation *ret_allocation) {
    *ret_allocation = (struct acre_allocation){
        .id = grant->id,
        .owner = grant->owner,
        .tenant = grant->tenant,
        .status = grant->status == GRANT_RESERVED ? ACRE_ALLOCATION_ACTIVE
                                                  : (enum acre_allocation_status)grant->status,
        .isolation = (enum acre_isolation)grant->isolation,
        .exclusive = grant_is_exclusive(grant),
        .created_ms = grant->created_ms,
        .expires_ms = grant->expires_ms,
        .reservation = grant->reservation,
        .part_count = grant->part_count,
    };
    ret_allocation->parts = grant_parts(ledger, grant, &ret_allocation->one_part);
}

bool acre_ledger_find(const struct acre_ledger *ledger, uint64_t id,
                      struct acre_allocation *ret_allocation) {
    struct grant *grant = grants_find(ledger->grants, id);
    if (grant != NULL) {
        show_grant(ledger, grant, ret_allocation);
    }
    return grant != NULL;
}

bool acre_ledger_walk(const struct acre_ledger *ledger, uint32_t *cursor,
                      struct acre_allocation *ret_allocation) {
    struct grant *grant = grants_walk(ledger->grants, cursor);
    if (grant != NULL) {
        show_grant(ledger, grant, ret_allocation);
    }
    return grant != NULL;
}
