/* reserve.c - reservations, and calendars of the devices that have them.
 *
 * Only a device with a pending reservation has a calendar: the parts on it with their ends, and
 * the windows ahead. What is free of it changes at the starts of those windows only (parts end,
 * they do not begin), so the least over time is the least over now and the starts. That least is
 * what the index offers for open-ended requests; a request with an end is tried against the
 * starts before its end, on the few nodes that have calendars.
 *
 * When a window opens, the reservation takes an allocation like any other; requests that name
 * it draw on that allocation's devices (draw.c). */
#include "ledger/reserve.h"

#include "core/units.h"
#include "ledger/draw.h"
#include "ledger/node_order.h"
#include "ledger/place.h"
#include "ledger/shape.h"

#include <stdlib.h>
#include <string.h>

enum { FINISHED_KEPT_MAX = 1024 }; /* finished ones stay to be asked about: about 100 KB */

#define DAY_MS (UINT64_C(24) * 3600 * 1000)
const struct acre_reservation_limits acre_reservation_limits_default = {
    .per_user = 5,
    .per_device = 10,
    .max_duration_ms = 7 * DAY_MS,
    .max_ahead_ms = 30 * DAY_MS,
};

struct stay {
    uint64_t allocation;
    uint64_t ends_ms; /* UINT64_MAX: never */
    uint32_t milli;
    uint32_t mib;
    bool by_share;
    uint32_t isolation; /* as in the word */
};

struct calendar {
    uint32_t device;
    struct stay *stays;
    uint32_t count, capacity;
};

struct reservations {
    struct acre_reservation_limits limits;
    struct reservation *all; /* by id */
    uint32_t count, capacity;
    uint64_t next_id;
    struct calendar *calendars;
    uint32_t calendar_count, calendar_capacity;
};

static const char *const state_names[] = {
#define X(name, text) text,
    ACRE_RESERVATION_STATES(X)
#undef X
};

const char *acre_reservation_state_name(enum acre_reservation_state state) {
    return state_names[state];
}

struct reservations *reservations_create(void) {
    struct reservations *reservations = acre_calloc(1, sizeof(*reservations));
    reservations->limits = acre_reservation_limits_default;
    reservations->next_id = 1;
    return reservations;
}

static void reservation_finish(struct reservation *reservation) {
    uint32_t *devices = (uint32_t *)(uintptr_t)reservation->shown.devices;
    free(devices);
    free(reservation->drawn);
}

void reservations_destroy(struct reservations *reservations) {
    if (reservations == NULL) {
        return;
    }
    for (uint32_t i = 0; i < reservations->count; i++) {
        reservation_finish(&reservations->all[i]);
    }
    for (uint32_t i = 0; i < reservations->calendar_count; i++) {
        free(reservations->calendars[i].stays);
    }
    free(reservations->all);
    free(reservations->calendars);
    free(reservations);
}

size_t reservations_bytes(const struct reservations *reservations) {
    size_t bytes = sizeof(*reservations) + reservations->capacity * sizeof(*reservations->all) +
                   reservations->calendar_capacity * sizeof(*reservations->calendars);
    for (uint32_t i = 0; i < reservations->count; i++) {
        bytes +=
            reservations->all[i].shown.device_count * (sizeof(uint32_t) + sizeof(struct drawn));
    }
    for (uint32_t i = 0; i < reservations->calendar_count; i++) {
        bytes += reservations->calendars[i].capacity * sizeof(struct stay);
    }
    return bytes;
}

bool reservations_ahead(const struct acre_ledger *ledger) {
    return ledger->reservations->calendar_count > 0;
}

void acre_ledger_set_reservation_limits(struct acre_ledger *ledger,
                                        const struct acre_reservation_limits *limits) {
    ledger->reservations->limits = limits != NULL ? *limits : acre_reservation_limits_default;
}

static struct reservation *find(const struct acre_ledger *ledger, uint64_t id) {
    const struct reservations *reservations = ledger->reservations;
    for (uint32_t i = 0; i < reservations->count; i++) {
        if (reservations->all[i].shown.id == id) {
            return &reservations->all[i];
        }
    }
    return NULL;
}

int reservation_active(const struct acre_ledger *ledger, uint64_t id,
                       struct reservation **ret_reservation, struct acre_error *err) {
    struct reservation *reservation = find(ledger, id);
    if (reservation == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no reservation %llu",
                         (unsigned long long)id);
    }
    if (reservation->shown.state != ACRE_RESERVATION_ACTIVE) {
        return acre_fail(err, ACRE_ECONFLICT, "reservation %llu is %s, not active",
                         (unsigned long long)id,
                         acre_reservation_state_name(reservation->shown.state));
    }
    *ret_reservation = reservation;
    return 0;
}

static struct calendar *calendar_of(const struct acre_ledger *ledger, uint32_t device) {
    const struct reservations *reservations = ledger->reservations;
    for (uint32_t i = 0; i < reservations->calendar_count; i++) {
        if (reservations->calendars[i].device == device) {
            return &reservations->calendars[i];
        }
    }
    return NULL;
}

static bool is_on(const struct acre_reservation *reservation, uint32_t device) {
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        if (reservation->devices[i] == device) {
            return true;
        }
    }
    return false;
}

static bool is_live(const struct acre_reservation *reservation) {
    return reservation->state == ACRE_RESERVATION_PENDING ||
           reservation->state == ACRE_RESERVATION_ACTIVE;
}

static void use(struct usage *usage, uint32_t milli, uint32_t mib, bool by_share,
                uint32_t isolation) {
    usage->milli += milli;
    usage->milli_by_share += by_share ? milli : 0;
    usage->memory_mib += by_share ? 0 : mib;
    /* Different kinds cannot meet: then nothing at all is free. */
    usage->milli = usage->isolation != 0 && usage->isolation != isolation ? 1000 : usage->milli;
    usage->isolation = isolation;
}

/* What will be taken of the device at `time_ms` by the parts on it now and by windows ahead. */
static uint64_t word_at(const struct acre_ledger *ledger, const struct calendar *calendar,
                        uint64_t time_ms) {
    struct usage usage = {0};
    uint32_t shares = 0;
    for (uint32_t i = 0; i < calendar->count; i++) {
        const struct stay *stay = &calendar->stays[i];
        if (stay->ends_ms > time_ms) {
            shares++;
            use(&usage, stay->milli, stay->mib, stay->by_share, stay->isolation);
        }
    }
    for (uint32_t i = 0; i < ledger->reservations->count; i++) {
        const struct acre_reservation *other = &ledger->reservations->all[i].shown;
        if (other->state == ACRE_RESERVATION_PENDING && other->start_ms <= time_ms &&
            other->end_ms > time_ms && is_on(other, calendar->device)) {
            shares++;
            use(&usage, other->milli, 0, true, other->isolation + 1U);
        }
    }
    if (shares >= shares_max(ledger)) {
        return 0;
    }
    usage.shares_left = ledger->track_counts ? shares_max(ledger) - shares : 0;
    return usage_word(hardware_of(ledger, calendar->device), &usage);
}

/* The least of both, field by field; nothing when they are of different kinds. */
static uint64_t lesser_word(uint64_t a, uint64_t b) {
    uint32_t kind_a = word_isolation(a);
    uint32_t kind_b = word_isolation(b);
    uint32_t milli = ACRE_MIN(word_milli(a), word_milli(b));
    if (milli == 0 || (kind_a != 0 && kind_b != 0 && kind_a != kind_b)) {
        return 0;
    }
    uint32_t shares_a = word_shares(a);
    uint32_t shares_b = word_shares(b);
    uint32_t shares = shares_a == 0 || shares_b == 0 ? ACRE_MAX(shares_a, shares_b)
                                                     : ACRE_MIN(shares_a, shares_b);
    return word_make(milli, ACRE_MIN(word_room(a), word_room(b)), ACRE_MAX(kind_a, kind_b),
                     ACRE_MIN(word_mib(a), word_mib(b)), shares);
}

uint64_t reserved_word(const struct acre_ledger *ledger, uint32_t device, uint64_t word,
                       uint64_t until_ms) {
    const struct calendar *calendar = calendar_of(ledger, device);
    for (uint32_t i = 0; i < ledger->reservations->count; i++) {
        const struct acre_reservation *other = &ledger->reservations->all[i].shown;
        if (other->state == ACRE_RESERVATION_PENDING && other->start_ms < until_ms &&
            is_on(other, device)) {
            word = lesser_word(word, word_at(ledger, calendar, other->start_ms));
        }
    }
    return word;
}

static void refile(struct acre_ledger *ledger, uint32_t device) {
    uint32_t node = ledger->devices[device].node;
    if (!ledger->nodes[node].drained) {
        shapes_refile_device(ledger, node, device);
        node_order_changed(ledger, node);
    }
}

static void calendar_add(struct calendar *calendar, const struct grant *grant,
                         const struct acre_part *part) {
    if (calendar->count == calendar->capacity) {
        calendar->capacity = ACRE_MAX(2 * calendar->capacity, 4U);
        calendar->stays =
            acre_realloc(calendar->stays, calendar->capacity, sizeof(*calendar->stays));
    }
    calendar->stays[calendar->count++] = (struct stay){
        .allocation = grant->id,
        .ends_ms = grant->expires_ms != 0 ? grant->expires_ms : UINT64_MAX,
        .milli = part->milli,
        .mib = part->mib,
        .by_share = part->by_share,
        .isolation = grant->isolation + 1U,
    };
}

static void calendar_remove(struct calendar *calendar, uint64_t allocation) {
    for (uint32_t i = 0; i < calendar->count; i++) {
        if (calendar->stays[i].allocation == allocation) {
            calendar->stays[i] = calendar->stays[--calendar->count];
            return;
        }
    }
    ACRE_ASSERT(false);
}

void reserved_note(struct acre_ledger *ledger, struct grant *grant, bool taken) {
    if (grant->reservation != 0) {
        struct reservation *reservation = find(ledger, grant->reservation);
        ACRE_ASSERT(reservation != NULL);
        drawn_note(ledger, reservation, grant, taken);
        return;
    }
    if (ledger->reservations->calendar_count == 0) {
        return;
    }
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    for (uint32_t i = 0; i < grant->part_count; i++) {
        struct calendar *calendar =
            parts[i].device != ACRE_DEVICE_NONE ? calendar_of(ledger, parts[i].device) : NULL;
        if (calendar != NULL && taken) {
            calendar_add(calendar, grant, &parts[i]);
            refile(ledger, parts[i].device);
        } else if (calendar != NULL) {
            calendar_remove(calendar, grant->id);
        }
    }
}

/* Begin a calendar from all allocations on the device. */
static void calendar_begin(struct acre_ledger *ledger, uint32_t device) {
    ACRE_ASSERT((ledger->devices[device].flags & DEVICE_CALENDAR) == 0);
    struct reservations *reservations = ledger->reservations;
    if (reservations->calendar_count == reservations->calendar_capacity) {
        reservations->calendar_capacity = ACRE_MAX(2 * reservations->calendar_capacity, 8U);
        reservations->calendars = acre_realloc(
            reservations->calendars, reservations->calendar_capacity, sizeof(struct calendar));
    }
    struct calendar *calendar = &reservations->calendars[reservations->calendar_count++];
    *calendar = (struct calendar){.device = device};
    uint32_t cursor = 0;
    for (struct grant *grant; (grant = grants_walk(ledger->grants, &cursor)) != NULL;) {
        struct acre_part one;
        const struct acre_part *parts = grant_parts(ledger, grant, &one);
        for (uint32_t i = 0; i < grant->part_count && grant->reservation == 0; i++) {
            if (parts[i].device == device) {
                calendar_add(calendar, grant, &parts[i]);
            }
        }
    }
    ledger->devices[device].flags |= DEVICE_CALENDAR;
}

/* Drop the calendars of devices without pending reservations, and refile what changed. */
static void calendars_follow(struct acre_ledger *ledger, const struct acre_reservation *changed) {
    struct reservations *reservations = ledger->reservations;
    for (uint32_t i = 0; i < changed->device_count; i++) {
        uint32_t device = changed->devices[i];
        bool needed = false;
        for (uint32_t j = 0; j < reservations->count && !needed; j++) {
            const struct acre_reservation *other = &reservations->all[j].shown;
            needed = other->state == ACRE_RESERVATION_PENDING && is_on(other, device);
        }
        struct calendar *calendar = calendar_of(ledger, device);
        if (needed && calendar == NULL) {
            calendar_begin(ledger, device);
        } else if (!needed && calendar != NULL) {
            free(calendar->stays);
            *calendar = reservations->calendars[--reservations->calendar_count];
            ledger->devices[device].flags &= (uint8_t)~DEVICE_CALENDAR;
        }
        refile(ledger, device);
    }
}

static int check_fields(const struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                        struct acre_error *err) {
    if (spec->user == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "user: empty; accepted: the user the reservation is for");
    }
    if (spec->device_count == 0 || spec->device_count > UINT16_MAX) {
        return acre_fail(err, ACRE_EINVALID, "devices: %u devices; accepted: 1 to %d",
                         spec->device_count, UINT16_MAX);
    }
    for (uint32_t i = 0; i < spec->device_count; i++) {
        if (spec->devices[i] >= ledger->device_count) {
            return acre_fail(err, ACRE_ENOTFOUND,
                             "devices: there is no device %u; there are %u devices",
                             spec->devices[i], ledger->device_count);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (spec->devices[i] == spec->devices[j]) {
                return acre_fail(
                    err, ACRE_EINVALID, "devices: '%s' appears twice",
                    acre_names_text(ledger->names, ledger->devices[spec->devices[i]].name));
            }
        }
    }
    if (spec->milli == 0 || spec->milli > 1000) {
        return acre_fail(err, ACRE_EINVALID, "milli: %u is out of range; accepted: 1 to 1000",
                         spec->milli);
    }
    if (spec->isolation >= ACRE_ISOLATION_COUNT) {
        return acre_fail(err, ACRE_EINVALID, "isolation: unknown isolation %u; accepted: 0 to %u",
                         spec->isolation, ACRE_ISOLATION_COUNT - 1);
    }
    return 0;
}

static int check_spec(const struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                      uint64_t now_ms, struct acre_error *err) {
    const struct acre_reservation_limits *limits = &ledger->reservations->limits;
    int r = check_fields(ledger, spec, err);
    if (r < 0) {
        return r;
    }
    char asked[32], most[32];
    if (spec->start_ms < now_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "start_ms: %llu is in the past (now %llu); accepted: now or later",
                         (unsigned long long)spec->start_ms, (unsigned long long)now_ms);
    }
    acre_format_span(limits->max_duration_ms, most, sizeof(most));
    if (spec->end_ms <= spec->start_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "end_ms: not after the start; accepted: at most %s after it", most);
    }
    if (spec->end_ms - spec->start_ms > limits->max_duration_ms) {
        acre_format_span(spec->end_ms - spec->start_ms, asked, sizeof(asked));
        return acre_fail(err, ACRE_EINVALID, "end_ms: %s after the start; accepted: at most %s",
                         asked, most);
    }
    if (spec->start_ms - now_ms > limits->max_ahead_ms) {
        return acre_fail(err, ACRE_EINVALID,
                         "start_ms: %s ahead is too far; accepted: at most %s ahead",
                         acre_format_span(spec->start_ms - now_ms, asked, sizeof(asked)),
                         acre_format_span(limits->max_ahead_ms, most, sizeof(most)));
    }
    return rules_check(&ledger->rules, spec->milli, spec->isolation, spec->milli < 1000, err);
}

static int check_counts(const struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                        struct acre_error *err) {
    const struct reservations *reservations = ledger->reservations;
    uint32_t of_user = 0;
    for (uint32_t i = 0; i < reservations->count; i++) {
        const struct acre_reservation *other = &reservations->all[i].shown;
        of_user += is_live(other) && other->user == spec->user;
    }
    if (of_user >= reservations->limits.per_user) {
        return acre_fail(
            err, ACRE_ELIMIT, "user '%s' already has %u reservations; accepted: at most %u",
            acre_names_text(ledger->names, spec->user), of_user, reservations->limits.per_user);
    }
    for (uint32_t d = 0; d < spec->device_count; d++) {
        uint32_t of_device = 0;
        for (uint32_t i = 0; i < reservations->count; i++) {
            const struct acre_reservation *other = &reservations->all[i].shown;
            of_device += is_live(other) && is_on(other, spec->devices[d]);
        }
        if (of_device >= reservations->limits.per_device) {
            return acre_fail(err, ACRE_ELIMIT,
                             "device '%s' already has %u reservations; accepted: at most %u",
                             acre_names_text(ledger->names, ledger->devices[spec->devices[d]].name),
                             of_device, reservations->limits.per_device);
        }
    }
    return 0;
}

/* Can the device give the share during the whole window? */
static int check_window(struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                        uint32_t device, struct acre_error *err) {
    char share[32];
    const struct hardware *hardware = hardware_of(ledger, device);
    const char *name = acre_names_text(ledger->names, ledger->devices[device].name);
    if (spec->milli < 1000 &&
        ((hardware->flags & HARDWARE_EXCLUSIVE_ONLY) != 0 ||
         (hardware->flags & HARDWARE_MIG) != 0 ||
         (hardware->step_milli != 0 && spec->milli % hardware->step_milli != 0))) {
        return acre_fail(err, ACRE_EINVALID, "milli: %s; device '%s' cannot be shared that way",
                         acre_format_milli(spec->milli, share, sizeof(share)), name);
    }
    struct want want = {.gpus = 1,
                        .milli = spec->milli,
                        .isolation = (uint8_t)spec->isolation,
                        .whole = spec->milli == 1000};
    bool had_calendar = calendar_of(ledger, device) != NULL;
    if (!had_calendar) {
        calendar_begin(ledger, device);
    }
    const struct calendar *calendar = calendar_of(ledger, device);
    bool fits = want_fits(&want, hardware, word_at(ledger, calendar, spec->start_ms));
    for (uint32_t i = 0; i < ledger->reservations->count && fits; i++) {
        const struct acre_reservation *other = &ledger->reservations->all[i].shown;
        if (other->state == ACRE_RESERVATION_PENDING && other->start_ms > spec->start_ms &&
            other->start_ms < spec->end_ms && is_on(other, device)) {
            fits = want_fits(&want, hardware, word_at(ledger, calendar, other->start_ms));
        }
    }
    if (!had_calendar) {
        struct reservations *reservations = ledger->reservations;
        free(reservations->calendars[--reservations->calendar_count].stays);
        ledger->devices[device].flags &= (uint8_t)~DEVICE_CALENDAR;
    }
    return fits
               ? 0
               : acre_fail(
                     err, ACRE_ECONFLICT,
                     "device '%s' is in use or reserved in that period; a share of %s does not fit",
                     name, acre_format_milli(spec->milli, share, sizeof(share)));
}

/* Forget the oldest finished ones beyond the number kept. */
static void forget_finished(struct reservations *reservations) {
    uint32_t finished = 0;
    for (uint32_t i = 0; i < reservations->count; i++) {
        finished += !is_live(&reservations->all[i].shown);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < reservations->count; i++) {
        if (finished > FINISHED_KEPT_MAX && !is_live(&reservations->all[i].shown)) {
            reservation_finish(&reservations->all[i]);
            finished--;
        } else {
            reservations->all[kept++] = reservations->all[i];
        }
    }
    reservations->count = kept;
}

static struct reservation *append(struct reservations *reservations,
                                  const struct acre_reservation_spec *spec,
                                  enum acre_reservation_state state) {
    forget_finished(reservations);
    if (reservations->count == reservations->capacity) {
        reservations->capacity = ACRE_MAX(2 * reservations->capacity, 8U);
        reservations->all =
            acre_realloc(reservations->all, reservations->capacity, sizeof(*reservations->all));
    }
    ACRE_ASSERT(spec->device_count > 0 && spec->milli > 0);
    uint32_t *devices = acre_calloc(spec->device_count, sizeof(*devices));
    memcpy(devices, spec->devices, spec->device_count * sizeof(*devices));
    struct reservation *reservation = &reservations->all[reservations->count++];
    *reservation = (struct reservation){
        .shown =
            {
                .id = reservations->next_id++,
                .user = spec->user,
                .state = state,
                .milli = spec->milli,
                .isolation = spec->isolation,
                .start_ms = spec->start_ms,
                .end_ms = spec->end_ms,
                .devices = devices,
                .device_count = spec->device_count,
            },
        .drawn = acre_calloc(spec->device_count, sizeof(struct drawn)),
    };
    return reservation;
}

int acre_ledger_may_reserve(struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                            uint64_t now_ms, struct acre_error *err) {
    int r = check_spec(ledger, spec, now_ms, err);
    if (r == 0) {
        r = check_counts(ledger, spec, err);
    }
    for (uint32_t i = 0; i < spec->device_count && r == 0; i++) {
        r = check_window(ledger, spec, spec->devices[i], err);
    }
    return r;
}

int acre_ledger_reserve(struct acre_ledger *ledger, const struct acre_reservation_spec *spec,
                        uint64_t now_ms, uint64_t *ret_id, struct acre_error *err) {
    struct reservations *reservations = ledger->reservations;
    int r = acre_ledger_may_reserve(ledger, spec, now_ms, err);
    if (r < 0) {
        return r;
    }
    struct reservation *reservation = append(reservations, spec, ACRE_RESERVATION_PENDING);
    *ret_id = reservation->shown.id;
    calendars_follow(ledger, &reservation->shown);
    reservations_tick(ledger, now_ms);
    return 0;
}

/* Take the allocation of a reservation whose window has opened. */
static bool start(struct acre_ledger *ledger, struct reservation *reservation, uint64_t now_ms) {
    ACRE_ASSERT(reservation->shown.allocation == 0 &&
                reservation->shown.state == ACRE_RESERVATION_ACTIVE);
    struct acre_reservation *shown = &reservation->shown;
    struct acre_part *parts = acre_calloc(shown->device_count, sizeof(*parts));
    for (uint32_t i = 0; i < shown->device_count; i++) {
        uint32_t memory = hardware_of(ledger, shown->devices[i])->memory_mib;
        parts[i] = (struct acre_part){
            .node = ledger->devices[shown->devices[i]].node,
            .device = shown->devices[i],
            .milli = shown->milli,
            .mib = (uint32_t)((uint64_t)memory * shown->milli / 1000),
            .by_share = true,
        };
    }
    if (books_take(ledger, parts, shown->device_count, shown->isolation, shown->milli == 1000,
                   false, NULL) < 0) {
        free(parts); /* tried again at the next tick */
        return false;
    }
    struct grant *grant = grants_add(ledger->grants, 0, shown->device_count);
    grant_set_parts(grant, parts, shown->milli == 1000);
    free(parts);
    grant->owner = shown->id;
    grant->tenant = shown->user;
    grant->isolation = (uint8_t)shown->isolation;
    grant->status = GRANT_RESERVED;
    grant->created_ms = now_ms;
    grant->expires_ms = shown->end_ms; /* for calendars; its end is noted here, not in grant.c */
    reserved_note(ledger, grant, true);
    shown->allocation = grant->id;
    ledger_tell(ledger, ACRE_LEDGER_ALLOCATED, now_ms, grant->owner, grant->id, 0);
    return true;
}

/* End what was drawn on it, then its own allocation; returns how many were drawn. */
static uint32_t end(struct acre_ledger *ledger, struct reservation *reservation, uint64_t now_ms) {
    uint32_t drawn = 0;
    uint32_t cursor = 0;
    for (struct grant *grant; (grant = grants_walk(ledger->grants, &cursor)) != NULL;) {
        if (grant->reservation == reservation->shown.id) {
            grant_end(ledger, grant, ACRE_ALLOCATION_EXPIRED, now_ms);
            drawn++;
        }
    }
    struct grant *own = grants_find(ledger->grants, reservation->shown.allocation);
    ACRE_ASSERT(own != NULL);
    ACRE_ASSERT(own->status == GRANT_RESERVED && own->owner == reservation->shown.id);
    reservation->shown.allocation = 0;
    grant_end(ledger, own, ACRE_ALLOCATION_COMPLETED, now_ms);
    return drawn;
}

/* Returns how many allocations and reservations changed. */
static uint32_t advance(struct acre_ledger *ledger, struct reservation *reservation,
                        uint64_t now_ms) {
    struct acre_reservation *shown = &reservation->shown;
    if (shown->state == ACRE_RESERVATION_ACTIVE && shown->end_ms <= now_ms) {
        uint32_t drawn = end(ledger, reservation, now_ms);
        shown->state = ACRE_RESERVATION_COMPLETED;
        return drawn + 1;
    }
    if (shown->state != ACRE_RESERVATION_PENDING || shown->start_ms > now_ms) {
        return 0;
    }
    if (shown->end_ms <= now_ms) {
        shown->state = ACRE_RESERVATION_EXPIRED;
    } else {
        shown->state = ACRE_RESERVATION_ACTIVE; /* its window no longer counts against itself */
        if (!start(ledger, reservation, now_ms)) {
            shown->state = ACRE_RESERVATION_PENDING;
            return 0;
        }
    }
    calendars_follow(ledger, shown);
    return 1;
}

uint32_t reservations_tick(struct acre_ledger *ledger, uint64_t now_ms) {
    struct reservations *reservations = ledger->reservations;
    uint32_t changed = 0;
    for (uint32_t pass = 0; pass < 2; pass++) { /* those that end make room for those that start */
        for (uint32_t i = 0; i < reservations->count; i++) {
            bool ends = reservations->all[i].shown.state == ACRE_RESERVATION_ACTIVE;
            if (ends == (pass == 0)) {
                changed += advance(ledger, &reservations->all[i], now_ms);
            }
        }
    }
    return changed;
}

int acre_ledger_restore_reservation(struct acre_ledger *ledger,
                                    const struct acre_reservation *recorded, uint64_t now_ms,
                                    struct acre_error *err) {
    struct reservations *reservations = ledger->reservations;
    struct acre_reservation_spec spec = {.user = recorded->user,
                                         .devices = recorded->devices,
                                         .device_count = recorded->device_count,
                                         .milli = recorded->milli,
                                         .isolation = recorded->isolation,
                                         .start_ms = recorded->start_ms,
                                         .end_ms = recorded->end_ms};
    int r = check_fields(ledger, &spec, err);
    if (r < 0) {
        return r;
    }
    if (recorded->id == 0 || find(ledger, recorded->id) != NULL) {
        return acre_fail(err, ACRE_EEXISTS, "reservation %llu already exists",
                         (unsigned long long)recorded->id);
    }
    uint64_t next_id = reservations->next_id;
    reservations->next_id = recorded->id;
    struct reservation *reservation = append(reservations, &spec, recorded->state);
    reservations->next_id = ACRE_MAX(next_id, recorded->id + 1);
    if (recorded->state == ACRE_RESERVATION_ACTIVE && !start(ledger, reservation, now_ms)) {
        reservation_finish(reservation);
        reservations->count--;
        reservations->next_id = next_id;
        return acre_fail(err, ACRE_ECONFLICT, "reservation %llu: its devices are not free",
                         (unsigned long long)recorded->id);
    }
    while (reservation > reservations->all && reservation[-1].shown.id > recorded->id) {
        struct reservation moved = *reservation; /* kept by id */
        *reservation = reservation[-1];
        *--reservation = moved;
    }
    calendars_follow(ledger, &reservation->shown);
    return 0;
}

int acre_ledger_cancel_reservation(struct acre_ledger *ledger, uint64_t id, uint64_t now_ms,
                                   struct acre_error *err) {
    struct reservation *reservation = find(ledger, id);
    if (reservation == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no reservation %llu",
                         (unsigned long long)id);
    }
    if (!is_live(&reservation->shown)) {
        return acre_fail(err, ACRE_ECONFLICT, "reservation %llu has already ended (%s)",
                         (unsigned long long)id,
                         acre_reservation_state_name(reservation->shown.state));
    }
    bool was_active = reservation->shown.state == ACRE_RESERVATION_ACTIVE;
    if (was_active) {
        end(ledger, reservation, now_ms);
    }
    reservation->shown.state = ACRE_RESERVATION_CANCELLED;
    calendars_follow(ledger, &reservation->shown);
    return 0;
}

bool acre_ledger_find_reservation(const struct acre_ledger *ledger, uint64_t id,
                                  struct acre_reservation *ret_reservation) {
    const struct reservation *reservation = find(ledger, id);
    if (reservation != NULL) {
        *ret_reservation = reservation->shown;
    }
    return reservation != NULL;
}

bool acre_ledger_next_reservation(const struct acre_ledger *ledger, uint64_t id,
                                  struct acre_reservation *ret_reservation) {
    const struct reservations *reservations = ledger->reservations;
    for (uint32_t i = 0; i < reservations->count; i++) {
        if (reservations->all[i].shown.id > id) {
            *ret_reservation = reservations->all[i].shown;
            return true;
        }
    }
    return false;
}

bool reserved_place(struct acre_ledger *ledger, const struct want *want, uint64_t expires_ms,
                    struct acre_part *parts) {
    const struct reservations *reservations = ledger->reservations;
    struct want_class *class = classes_get(ledger, want);
    for (uint32_t i = 0; i < reservations->calendar_count; i++) {
        uint32_t node = ledger->devices[reservations->calendars[i].device].node;
        const struct node *host = &ledger->nodes[node];
        uint64_t words[ACRE_NODE_DEVICES_MAX];
        for (uint32_t slot = 0; slot < host->device_count; slot++) {
            uint32_t device =
                host->first_device + ledger->devices[host->first_device + slot].at_slot;
            words[slot] =
                (ledger->devices[device].flags & DEVICE_CALENDAR) != 0
                    ? reserved_word(ledger, device, books_word(ledger, device), expires_ms)
                    : device_word(ledger, device);
        }
        if (place_on_node(ledger, class, node, want->replicas, words, parts)) {
            return true;
        }
    }
    return false;
}

/* Without the stays of this allocation, do the windows before `until_ms` leave room for all its
 * parts on the calendar's device? */
static bool may_stay(struct acre_ledger *ledger, struct calendar *calendar, struct grant *grant,
                     uint64_t until_ms) {
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    const struct hardware *hardware = hardware_of(ledger, calendar->device);
    for (uint32_t i = 0; i < grant->part_count; i++) {
        if (parts[i].device == calendar->device) {
            calendar_remove(calendar, grant->id);
        }
    }
    uint64_t idle = usage_word(hardware, &(struct usage){0});
    uint64_t word = reserved_word(ledger, calendar->device, idle, until_ms);
    bool fits = true;
    for (uint32_t i = 0; i < grant->part_count; i++) {
        if (parts[i].device != calendar->device) {
            continue;
        }
        struct want want = {.gpus = 1,
                            .milli = parts[i].milli,
                            .mib = parts[i].by_share ? 0 : parts[i].mib,
                            .isolation = grant->isolation,
                            .whole = grant_is_exclusive(grant)};
        fits = fits && want_fits(&want, hardware, word);
        word = want_word_after(&want, hardware, word);
        calendar_add(calendar, grant, &parts[i]);
    }
    return fits;
}

int reserved_may_last(struct acre_ledger *ledger, struct grant *grant, uint64_t expires_ms,
                      struct acre_error *err) {
    uint64_t until_ms = expires_ms != 0 ? expires_ms : UINT64_MAX;
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    for (uint32_t i = 0; i < grant->part_count && grant->reservation == 0; i++) {
        struct calendar *calendar =
            parts[i].device != ACRE_DEVICE_NONE ? calendar_of(ledger, parts[i].device) : NULL;
        if (calendar != NULL && !may_stay(ledger, calendar, grant, until_ms)) {
            return acre_fail(
                err, ACRE_ECONFLICT,
                "device '%s' is reserved before that time; choose an earlier end or release it",
                acre_names_text(ledger->names, ledger->devices[parts[i].device].name));
        }
    }
    return 0;
}
