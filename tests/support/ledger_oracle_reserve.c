/* ledger_oracle_reserve.c - states of devices over time, and the oracle's reservations.
 *
 * What is free of a device until some time is the least of what is free now and at the start of
 * each window before that time: parts end, they do not begin. Nothing is kept between questions;
 * everything is added up from the allocations and windows there are. */
#include "support/ledger_oracle_room.h"

struct oracle_state oracle_state_of(const struct oracle *oracle, const struct oracle_device *device,
                                    const struct oracle_usage *usage) {
    struct oracle_state none = {0};
    uint32_t max = oracle_shares_max(oracle);
    if (usage->milli >= 1000 || usage->count >= max) {
        return none;
    }
    struct oracle_state state = {
        .milli = 1000 - usage->milli,
        .room = 1000 - usage->milli,
        .kind = usage->kind,
        .shares = oracle->counts_shares ? max - usage->count : 0,
    };
    int64_t memory = device->memory_mib;
    if (memory > 0) {
        /* Shares without memory hold their part of it together, rounded once. */
        int64_t left = memory - (int64_t)usage->memory_mib;
        left = ACRE_MAX(left, 0);
        int64_t room = left * 1000 / memory - usage->milli_by_share;
        int64_t mib = left - (memory * usage->milli_by_share + 999) / 1000;
        state.room = (uint32_t)ACRE_MAX(ACRE_MIN(room, (int64_t)state.milli), 0);
        state.mib = (uint32_t)ACRE_MAX(mib, 0);
    }
    return state;
}

struct oracle_state oracle_state_now(const struct oracle *oracle, uint32_t index) {
    const struct oracle_device *device = &oracle->devices[index];
    struct oracle_usage usage = {
        .milli = device->drained ? 1000 : device->milli,
        .milli_by_share = device->milli_by_share,
        .memory_mib = (uint64_t)device->asked_mib + device->foreign_mib,
        .kind = device->kind,
        .count = device->count,
    };
    return oracle_state_of(oracle, device, &usage);
}

static bool is_on(const struct oracle_reservation *reservation, uint32_t device) {
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        if (reservation->devices[i] == device) {
            return true;
        }
    }
    return false;
}

static void add_usage(struct oracle_usage *usage, uint32_t milli, uint32_t asked_mib, bool by_share,
                      uint32_t kind) {
    bool mixed = usage->kind != 0 && usage->kind != kind; /* then nothing is free at all */
    usage->milli += mixed ? 1000 : milli;
    usage->milli_by_share += by_share ? milli : 0;
    usage->memory_mib += asked_mib;
    usage->kind = kind;
    usage->count++;
}

/* What is free at some time, others' processes and drains aside. */
static struct oracle_state state_at(const struct oracle *oracle, uint32_t device, uint64_t time_ms,
                                    uint64_t without) {
    struct oracle_usage usage = {0};
    for (uint32_t i = 0; i < oracle->grant_count; i++) {
        const struct oracle_grant *grant = &oracle->grants[i];
        bool ended = grant->expires_ms != 0 && grant->expires_ms <= time_ms;
        for (uint32_t j = 0; j < grant->part_count && !ended && grant->reservation == 0; j++) {
            const struct acre_part *part = &grant->parts[j];
            if (part->device == device && grant->id != without) {
                add_usage(&usage, part->milli, part->by_share ? 0 : part->mib, part->by_share,
                          grant->isolation + 1U);
            }
        }
    }
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        const struct oracle_reservation *window = &oracle->reservations[i];
        if (window->state == ACRE_RESERVATION_PENDING && window->start_ms <= time_ms &&
            window->end_ms > time_ms && is_on(window, device)) {
            add_usage(&usage, window->milli, 0, true, window->isolation + 1U);
        }
    }
    return oracle_state_of(oracle, &oracle->devices[device], &usage);
}

static struct oracle_state lesser(const struct oracle_state *a, const struct oracle_state *b) {
    struct oracle_state none = {0};
    bool two_kinds = a->kind != 0 && b->kind != 0 && a->kind != b->kind;
    if (a->milli == 0 || b->milli == 0 || two_kinds) {
        return none;
    }
    struct oracle_state least = {
        .milli = ACRE_MIN(a->milli, b->milli),
        .room = ACRE_MIN(a->room, b->room),
        .kind = ACRE_MAX(a->kind, b->kind),
        .mib = ACRE_MIN(a->mib, b->mib),
        .shares = ACRE_MIN(a->shares, b->shares),
    };
    if (a->shares == 0 || b->shares == 0) { /* one of them was not counted */
        least.shares = ACRE_MAX(a->shares, b->shares);
    }
    return least;
}

static struct oracle_state lower(const struct oracle *oracle, uint32_t device, uint64_t until_ms,
                                 uint64_t without, struct oracle_state state) {
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        const struct oracle_reservation *window = &oracle->reservations[i];
        if (window->state == ACRE_RESERVATION_PENDING && window->start_ms < until_ms &&
            is_on(window, device)) {
            struct oracle_state then = state_at(oracle, device, window->start_ms, without);
            state = lesser(&state, &then);
        }
    }
    return state;
}

struct oracle_state oracle_state_until(const struct oracle *oracle, uint32_t device,
                                       uint64_t until_ms) {
    return lower(oracle, device, until_ms, 0, oracle_state_now(oracle, device));
}

struct oracle_state oracle_state_without(const struct oracle *oracle, uint32_t device,
                                         uint64_t until_ms, uint64_t without) {
    struct oracle_usage idle = {0};
    struct oracle_state state = oracle_state_of(oracle, &oracle->devices[device], &idle);
    state.shares = 0;
    return lower(oracle, device, until_ms, without, state);
}

uint32_t oracle_largest_milli(const struct oracle *oracle, uint32_t device) {
    return oracle->nodes[oracle->devices[device].node].drained
               ? 0
               : oracle_state_until(oracle, device, UINT64_MAX).room;
}

const struct oracle_reservation *oracle_find_reservation(const struct oracle *oracle, uint64_t id) {
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        if (oracle->reservations[i].id == id) {
            return &oracle->reservations[i];
        }
    }
    return NULL;
}

/* What is drawn on the reservation's share of this device. */
static struct oracle_usage drawn_on(const struct oracle *oracle, uint64_t reservation,
                                    uint32_t device) {
    struct oracle_usage usage = {0};
    for (uint32_t i = 0; i < oracle->grant_count; i++) {
        const struct oracle_grant *grant = &oracle->grants[i];
        for (uint32_t j = 0; j < grant->part_count && grant->reservation == reservation; j++) {
            const struct acre_part *part = &grant->parts[j];
            if (part->device == device) {
                add_usage(&usage, part->milli, part->by_share ? 0 : part->mib, part->by_share,
                          grant->isolation + 1U);
            }
        }
    }
    return usage;
}

struct oracle_state oracle_state_within(const struct oracle *oracle, uint32_t index,
                                        const struct oracle_reservation *reservation) {
    struct oracle_state none = {0};
    const struct oracle_device *device = &oracle->devices[index];
    if (device->drained || !is_on(reservation, index)) {
        return none;
    }
    struct oracle_usage usage = drawn_on(oracle, reservation->id, index);
    /* As if all but the reserved share were taken by share. */
    uint32_t others = 1000 - reservation->milli;
    usage.milli += others;
    usage.milli_by_share += others;
    if (usage.kind == 0 && reservation->milli < 1000) {
        usage.kind = reservation->isolation + 1U;
    }
    /* What others' processes took of the memory that was promised is missing here. */
    uint64_t promised = (uint64_t)device->foreign_mib + device->asked_mib +
                        ((uint64_t)device->memory_mib * device->milli_by_share + 999) / 1000;
    if (promised > device->memory_mib) {
        usage.memory_mib += promised - device->memory_mib;
    }
    return oracle_state_of(oracle, device, &usage);
}

int oracle_may_draw(const struct oracle *oracle, uint64_t id, const struct acre_part *parts,
                    uint32_t count, uint32_t kind, bool exclusive) {
    const struct oracle_reservation *reservation = oracle_find_reservation(oracle, id);
    if (reservation == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (reservation->state != ACRE_RESERVATION_ACTIVE) {
        return ACRE_ECONFLICT;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].device == ACRE_DEVICE_NONE) {
            continue;
        }
        if (!is_on(reservation, parts[i].device) ||
            oracle->devices[parts[i].device].node != parts[i].node) {
            return ACRE_ENOTFOUND;
        }
        const struct oracle_device *device = &oracle->devices[parts[i].device];
        struct oracle_usage usage = drawn_on(oracle, id, parts[i].device);
        for (uint32_t j = 0; j < i; j++) {
            if (parts[j].device == parts[i].device) {
                add_usage(&usage, parts[j].milli, parts[j].by_share ? 0 : parts[j].mib,
                          parts[j].by_share, kind);
            }
        }
        bool other_kind = (usage.count > 0 && (exclusive || usage.kind != kind)) ||
                          (reservation->milli < 1000 && kind != reservation->isolation + 1U);
        bool too_much = (exclusive && parts[i].milli != 1000) || parts[i].milli == 0 ||
                        parts[i].milli > 1000 || usage.milli + parts[i].milli > reservation->milli;
        add_usage(&usage, parts[i].milli, parts[i].by_share ? 0 : parts[i].mib, parts[i].by_share,
                  kind);
        uint64_t memory = device->memory_mib;
        if (other_kind || too_much ||
            usage.memory_mib * 1000 + memory * usage.milli_by_share > memory * reservation->milli) {
            return ACRE_ECONFLICT;
        }
    }
    return 0;
}

static bool is_pending_on(const struct oracle *oracle, uint32_t device) {
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        if (oracle->reservations[i].state == ACRE_RESERVATION_PENDING &&
            is_on(&oracle->reservations[i], device)) {
            return true;
        }
    }
    return false;
}

bool oracle_may_last(const struct oracle *oracle, const struct oracle_grant *grant,
                     uint64_t expires_ms) {
    uint64_t until_ms = expires_ms != 0 ? expires_ms : UINT64_MAX;
    for (uint32_t device = 0; device < oracle->device_count && grant->reservation == 0; device++) {
        if (!is_pending_on(oracle, device)) {
            continue;
        }
        struct oracle_state state = oracle_state_without(oracle, device, until_ms, grant->id);
        for (uint32_t i = 0; i < grant->part_count; i++) {
            const struct acre_part *part = &grant->parts[i];
            if (part->device != device) {
                continue;
            }
            struct acre_request request = {.gpus = 1, .mib = part->by_share ? 0 : part->mib};
            struct oracle_want want = {.request = &request,
                                       .milli = part->milli,
                                       .kind = grant->isolation + 1U,
                                       .whole = grant->exclusive};
            if (!oracle_fits(&want, &oracle->devices[device], &state)) {
                return false;
            }
            state = oracle_after(&want, &oracle->devices[device], &state);
        }
    }
    return true;
}

/* Keep the list of devices with windows ahead: new ones last, the last one into a gap. */
static void follow(struct oracle *oracle, const struct oracle_reservation *changed) {
    for (uint32_t i = 0; i < changed->device_count; i++) {
        uint32_t device = changed->devices[i];
        bool needed = is_pending_on(oracle, device);
        uint32_t at = 0;
        while (at < oracle->calendar_count && oracle->calendars[at] != device) {
            at++;
        }
        if (needed && at == oracle->calendar_count) {
            oracle->calendars[oracle->calendar_count++] = device;
        } else if (!needed && at < oracle->calendar_count) {
            oracle->calendars[at] = oracle->calendars[--oracle->calendar_count];
        }
    }
}

static int check_spec(const struct oracle *oracle, const struct acre_reservation_spec *spec,
                      uint64_t now_ms) {
    const struct acre_reservation_limits *limits = &acre_reservation_limits_default;
    if (spec->user == 0 || spec->device_count == 0) {
        return ACRE_EINVALID;
    }
    for (uint32_t i = 0; i < spec->device_count; i++) {
        if (spec->devices[i] >= oracle->device_count) {
            return ACRE_ENOTFOUND;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (spec->devices[i] == spec->devices[j]) {
                return ACRE_EINVALID;
            }
        }
    }
    if (spec->milli == 0 || spec->milli > 1000 || spec->isolation >= ACRE_ISOLATION_COUNT ||
        spec->start_ms < now_ms || spec->end_ms <= spec->start_ms ||
        spec->end_ms - spec->start_ms > limits->max_duration_ms ||
        spec->start_ms - now_ms > limits->max_ahead_ms) {
        return ACRE_EINVALID;
    }
    return rules_check(&oracle->rules, spec->milli, spec->isolation, spec->milli < 1000, NULL);
}

static int check_counts(const struct oracle *oracle, const struct acre_reservation_spec *spec) {
    uint32_t of_user = 0;
    uint32_t of_device[ORACLE_DEVICES_MAX] = {0};
    bool too_many = false;
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        const struct oracle_reservation *other = &oracle->reservations[i];
        bool live =
            other->state == ACRE_RESERVATION_PENDING || other->state == ACRE_RESERVATION_ACTIVE;
        of_user += live && other->user == spec->user;
        for (uint32_t j = 0; j < spec->device_count; j++) {
            of_device[j] += live && is_on(other, spec->devices[j]);
            too_many |= of_device[j] >= acre_reservation_limits_default.per_device;
        }
    }
    return too_many || of_user >= acre_reservation_limits_default.per_user ? ACRE_ELIMIT : 0;
}

/* Does the window fit on this device, at its start and wherever another one begins inside it? */
static int check_window(const struct oracle *oracle, const struct acre_reservation_spec *spec,
                        uint32_t index) {
    const struct oracle_device *device = &oracle->devices[index];
    if (spec->milli < 1000 &&
        (device->exclusive_only || device->is_mig ||
         (device->step_milli != 0 && spec->milli % device->step_milli != 0))) {
        return ACRE_EINVALID;
    }
    struct acre_request request = {.gpus = 1};
    struct oracle_want want = {.request = &request,
                               .milli = spec->milli,
                               .kind = spec->isolation + 1U,
                               .whole = spec->milli == 1000};
    struct oracle_state state = state_at(oracle, index, spec->start_ms, 0);
    bool fits = oracle_fits(&want, device, &state);
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        const struct oracle_reservation *other = &oracle->reservations[i];
        if (other->state == ACRE_RESERVATION_PENDING && other->start_ms > spec->start_ms &&
            other->start_ms < spec->end_ms && is_on(other, index)) {
            state = state_at(oracle, index, other->start_ms, 0);
            fits = fits && oracle_fits(&want, device, &state);
        }
    }
    return fits ? 0 : ACRE_ECONFLICT;
}

int oracle_reserve(struct oracle *oracle, const struct acre_reservation_spec *spec, uint64_t now_ms,
                   uint64_t *ret_id) {
    int r = check_spec(oracle, spec, now_ms);
    if (r == 0) {
        r = check_counts(oracle, spec);
    }
    for (uint32_t i = 0; i < spec->device_count && r == 0; i++) {
        r = check_window(oracle, spec, spec->devices[i]);
    }
    if (r < 0) {
        return r;
    }
    ACRE_ASSERT(oracle->reservation_count < ORACLE_RESERVATIONS_MAX);
    struct oracle_reservation *reservation = &oracle->reservations[oracle->reservation_count++];
    *reservation = (struct oracle_reservation){
        .id = oracle->next_reservation++,
        .start_ms = spec->start_ms,
        .end_ms = spec->end_ms,
        .user = spec->user,
        .milli = spec->milli,
        .isolation = spec->isolation,
        .device_count = spec->device_count,
    };
    for (uint32_t i = 0; i < spec->device_count; i++) {
        reservation->devices[i] = spec->devices[i];
    }
    *ret_id = reservation->id;
    follow(oracle, reservation);
    oracle_tick_reservations(oracle, now_ms);
    return 0;
}

static bool start(struct oracle *oracle, struct oracle_reservation *reservation, uint64_t now_ms) {
    struct acre_part parts[ORACLE_DEVICES_MAX];
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        const struct oracle_device *device = &oracle->devices[reservation->devices[i]];
        parts[i] = (struct acre_part){
            .node = device->node,
            .device = reservation->devices[i],
            .milli = reservation->milli,
            .mib = (uint32_t)((uint64_t)device->memory_mib * reservation->milli / 1000),
            .by_share = true,
        };
    }
    uint32_t kind = reservation->isolation + 1U;
    bool alone = reservation->milli == 1000;
    if (oracle_check_parts(oracle, parts, reservation->device_count, kind, alone, true) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        oracle_count_part(oracle, &parts[i], kind, true, true);
    }
    struct oracle_grant *grant = oracle_keep(oracle, parts, reservation->device_count, 0);
    grant->owner = reservation->id;
    grant->tenant = reservation->user;
    grant->created_ms = now_ms;
    grant->expires_ms = reservation->end_ms;
    grant->isolation = reservation->isolation;
    grant->exclusive = alone;
    grant->is_reserved = true;
    reservation->allocation = grant->id;
    return true;
}

/* End what was drawn on it and its own allocation; returns how many were drawn. */
static uint32_t end(struct oracle *oracle, struct oracle_reservation *reservation) {
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < oracle->grant_count;) {
        struct oracle_grant *grant = &oracle->grants[i];
        bool is_drawn = grant->reservation == reservation->id;
        if (is_drawn || grant->id == reservation->allocation) {
            drawn += is_drawn;
            oracle_end(oracle, grant);
        } else {
            i++;
        }
    }
    reservation->allocation = 0;
    return drawn;
}

uint32_t oracle_tick_reservations(struct oracle *oracle, uint64_t now_ms) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        struct oracle_reservation *reservation = &oracle->reservations[i];
        if (reservation->state == ACRE_RESERVATION_ACTIVE && reservation->end_ms <= now_ms) {
            changed += 1 + end(oracle, reservation);
            reservation->state = ACRE_RESERVATION_COMPLETED;
        }
    }
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        struct oracle_reservation *reservation = &oracle->reservations[i];
        if (reservation->state != ACRE_RESERVATION_PENDING || reservation->start_ms > now_ms) {
            continue;
        }
        if (reservation->end_ms <= now_ms) {
            reservation->state = ACRE_RESERVATION_EXPIRED;
        } else if (start(oracle, reservation, now_ms)) {
            reservation->state = ACRE_RESERVATION_ACTIVE;
        } else {
            continue;
        }
        follow(oracle, reservation);
        changed++;
    }
    return changed;
}

int oracle_cancel(struct oracle *oracle, uint64_t id) {
    struct oracle_reservation *reservation =
        (struct oracle_reservation *)(uintptr_t)oracle_find_reservation(oracle, id);
    if (reservation == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (reservation->state == ACRE_RESERVATION_ACTIVE) {
        end(oracle, reservation);
    } else if (reservation->state != ACRE_RESERVATION_PENDING) {
        return ACRE_ECONFLICT;
    }
    reservation->state = ACRE_RESERVATION_CANCELLED;
    follow(oracle, reservation);
    return 0;
}
