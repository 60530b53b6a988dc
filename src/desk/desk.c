/* desk.c - the desk's public functions: create, close, query, notify. The turn itself is turn.c,
 * runs are run.c, reading the store is load.c. */
#include "desk/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPECS_MAX = 4096, /* about what one second of submissions brings */
    SPECS_MAX_BYTES = 4 << 20,
    ARENA_MAX_BYTES = 64 << 20, /* names of who asked, in one turn */
    PROBE_MS = 1000,
};

int acre_desk_create(const struct acre_desk_options *options, struct acre_desk **ret_desk,
                     struct acre_error *err) {
    struct acre_desk *desk = acre_calloc(1, sizeof(*desk));
    desk->options = *options;
    desk->sink = options->sink;
    desk->options.probe_ms = options->probe_ms != 0 ? options->probe_ms : PROBE_MS;
    desk->last_waiter = &desk->waiters;
    desk->sequence = 1;
    desk->timer_at_ms = UINT64_MAX;
    desk->specs = specs_create(SPECS_MAX, SPECS_MAX_BYTES);
    desk->arena = acre_arena_create(ARENA_MAX_BYTES);
    desk->policy = acre_calloc(1, sizeof(*desk->policy));
    desk->inventory = inventory_create();
    desk_init_capacity(desk);
    acre_buf_init(&desk->spec_text, ACRE_RECORD_SPEC_MAX);
    acre_buf_init(&desk->detail, ACRE_RECORD_DETAIL_MAX);
    acre_desk_set_actor(desk, NULL, NULL);
    struct acre_store_options store = {.url = options->store_url, .loop = options->loop};
    int r = acre_store_open(&store, &desk->store, err);
    if (r < 0) {
        acre_desk_destroy(desk);
        return r;
    }
    *ret_desk = desk;
    return 0;
}

void acre_desk_destroy(struct acre_desk *desk) {
    if (desk == NULL) {
        return;
    }
    if (desk->state == DESK_OPEN) {
        desk_commit(desk, false);
    }
    desk->state = DESK_CLOSED;
    acre_loop_each_turn(desk->options.loop, NULL, NULL);
    acre_timer_cancel(desk->timer);
    acre_timer_cancel(desk->probe);
    acre_store_close(desk->store); /* commits what was given, and tells those who wait */
    struct acre_error gone = {.code = ACRE_EUNAVAILABLE, .text = "the server is stopping"};
    desk_fail_waiters(desk, &gone);
    desk_close_engines(desk);
    desk_unload(desk);
    desk_finish_capacity(desk);
    inventory_destroy(desk->inventory);
    acre_batch_destroy(desk->batch);
    specs_destroy(desk->specs);
    acre_arena_destroy(desk->arena);
    acre_buf_finish(&desk->spec_text);
    json_decref(desk->parsed);
    acre_buf_finish(&desk->detail);
    free(desk->policy);
    free(desk->node_reasons);
    free(desk->events.items);
    free(desk->actions.items);
    acre_map_finish(&desk->rows);
    acre_map_finish(&desk->accounts);
    free(desk->external);
    free(desk->submissions);
    free(desk->last_parts);
    free(desk->texts);
    acre_map_finish(&desk->text_of_job);
    free(desk->holding);
    free(desk);
}

int acre_desk_load(struct acre_desk *desk, struct acre_error *err) {
    ACRE_ASSERT(desk->state == DESK_IDLE && desk->ledger == NULL);
    int r = desk_recall_nodes(desk, err);
    return r == 0 ? desk_load(desk, err) : r;
}

void acre_desk_start(struct acre_desk *desk) {
    ACRE_ASSERT(desk->state == DESK_IDLE && desk->ledger != NULL);
    desk->state = DESK_OPEN;
    desk_adopt(desk);
    desk_start_capacity(desk);
    acre_loop_each_turn(desk->options.loop, desk_turn, desk);
}

const struct acre_sched *acre_desk_sched(const struct acre_desk *desk) {
    return desk->sched;
}

const struct acre_ledger *acre_desk_ledger(const struct acre_desk *desk) {
    return desk->ledger;
}

const struct acre_names *acre_desk_names(const struct acre_desk *desk) {
    return acre_ledger_names(desk->ledger);
}

struct acre_store *acre_desk_store(struct acre_desk *desk) {
    return desk->store;
}

const struct acre_inventory *acre_desk_inventory(const struct acre_desk *desk) {
    return desk->inventory;
}

const struct acre_policy *acre_desk_policy(const struct acre_desk *desk) {
    return desk->policy;
}

int acre_desk_why(struct acre_desk *desk, uint64_t job, struct acre_why *ret_why,
                  struct acre_error *err) {
    return acre_sched_why(desk->sched, job, acre_desk_now(desk), ret_why, err);
}

int acre_desk_when(struct acre_desk *desk, uint64_t job, struct acre_when *ret_when,
                   struct acre_error *err) {
    return acre_sched_when(desk->sched, job, acre_desk_now(desk), ret_when, err);
}

const char *acre_desk_node_reason(const struct acre_desk *desk, uint32_t node) {
    const struct inventory_node *known = inventory_node(desk->inventory, node);
    return desk->node_reasons[node] != NULL ? desk->node_reasons[node]
           : known->is_lost                 ? known->why_lost
                                            : "";
}

void desk_set_node_reason(struct acre_desk *desk, uint32_t node, const char *reason) {
    ACRE_ASSERT(node < inventory_nodes(desk->inventory));
    free(desk->node_reasons[node]);
    desk->node_reasons[node] = reason[0] != '\0' ? acre_strdup(reason) : NULL;
}

bool acre_desk_is_paused(const struct acre_desk *desk) {
    return desk->paused;
}

/* Time goes on from where it was when the clock is set back; the difference is carried until the
 * clock has caught up. */
uint64_t acre_desk_now(struct acre_desk *desk) {
    uint64_t wall_ms = acre_clock_wall_ms(desk->options.clock);
    if (wall_ms >= desk->now_ms) {
        desk->skew_ms = 0;
    } else if (wall_ms + desk->skew_ms < desk->now_ms) {
        desk->skew_ms = desk->now_ms - wall_ms;
    }
    desk->now_ms = wall_ms + desk->skew_ms;
    return desk->now_ms;
}

void acre_desk_set_actor(struct acre_desk *desk, const char *actor, const char *origin) {
    desk->actor = actor != NULL ? acre_arena_strndup(desk->arena, actor, strlen(actor)) : "acre";
    desk->origin = origin != NULL ? acre_arena_strndup(desk->arena, origin, strlen(origin)) : "";
}

int acre_desk_writable(const struct acre_desk *desk, struct acre_error *err) {
    if (desk->state == DESK_OPEN) {
        return 0;
    }
    return acre_fail(err, desk->fault.code == ACRE_ENOMEM ? ACRE_ENOMEM : ACRE_EUNAVAILABLE,
                     "cannot record changes now, so none are made (jobs keep running): %s",
                     desk->fault.text);
}

int acre_desk_readable(const struct acre_desk *desk, struct acre_error *err) {
    return desk->state != DESK_BLIND ? 0 : acre_desk_writable(desk, err);
}

struct acre_batch *acre_desk_batch(struct acre_desk *desk) {
    desk_changed(desk);
    return desk->batch;
}

void acre_desk_audit(struct acre_desk *desk, const char *action, const char *target,
                     const char *result, const char *detail) {
    if (desk->state != DESK_OPEN) {
        return; /* there is nowhere to write it */
    }
    if (desk->batch == NULL) {
        desk->batch = acre_batch_create();
    }
    struct acre_store_audit row = {.at_ms = acre_desk_now(desk),
                                   .actor = desk->actor,
                                   .origin = desk->origin,
                                   .action = action,
                                   .target = target,
                                   .result = result,
                                   .detail = detail};
    acre_batch_audit(desk->batch, &row);
}

static bool keep_spec(void *context, const struct acre_store_job *row) {
    struct acre_desk *desk = context;
    acre_buf_clear(&desk->spec_text);
    acre_buf_append(&desk->spec_text, row->spec.data, row->spec.length);
    return false;
}

/* The job that has the spec: the first of an array. */
static uint64_t spec_owner(const struct acre_desk *desk, uint64_t job) {
    struct acre_job found;
    bool shared = acre_sched_find(desk->sched, job, &found) && found.spec.array != 0;
    return shared ? found.spec.array : job;
}

static int find_spec(struct acre_desk *desk, uint64_t owner, struct acre_str *ret_text,
                     struct acre_error *err) {
    if (specs_find(desk->specs, owner, ret_text)) {
        return 0;
    }
    int r = acre_store_job(desk->store, owner, keep_spec, desk, err);
    if (r == 0) {
        *ret_text = (struct acre_str){desk->spec_text.data, desk->spec_text.length};
    }
    return r;
}

int acre_desk_spec(struct acre_desk *desk, uint64_t job, struct acre_str *ret_text,
                   struct acre_error *err) {
    return find_spec(desk, spec_owner(desk, job), ret_text, err);
}

int acre_desk_parsed_spec(struct acre_desk *desk, uint64_t job, json_t **ret_spec,
                          struct acre_error *err) {
    uint64_t owner = spec_owner(desk, job);
    struct acre_str text = {0};
    if (desk->parsed == NULL || desk->parsed_id != owner) {
        json_t *parsed = NULL;
        int r = find_spec(desk, owner, &text, err);
        if (r == 0) {
            r = acre_json_parse("spec", text, ACRE_RECORD_SPEC_MAX, &parsed, err);
        }
        if (r < 0) {
            return r;
        }
        json_decref(desk->parsed);
        desk->parsed = parsed;
        desk->parsed_id = owner;
        desk->parsed_bytes = text.length;
    }
    *ret_spec = desk->parsed;
    return 0;
}

size_t acre_desk_parsed_bytes(const struct acre_desk *desk) {
    return desk->parsed != NULL ? desk->parsed_bytes : 0;
}

/* The turn whose commit is needed for all that was seen. */
static uint64_t needed(const struct acre_desk *desk) {
    return desk->dirty ? desk->sequence : desk->seen;
}

bool acre_desk_is_durable(const struct acre_desk *desk) {
    return needed(desk) <= desk->committed;
}

void acre_desk_wait(struct acre_desk *desk, struct acre_desk_waiter *waiter) {
    if (acre_desk_is_durable(desk)) {
        waiter->done(waiter, NULL);
        return;
    }
    waiter->sequence = needed(desk);
    waiter->next = NULL;
    *desk->last_waiter = waiter;
    desk->last_waiter = &waiter->next;
    desk->waiting++;
}

void acre_desk_timings(const struct acre_desk *desk, struct acre_desk_timings *ret_timings) {
    *ret_timings = desk->timings;
    ret_timings->waiting = desk->waiting;
}
