/* records.c - where the scheduler's records live: arrays with lists of free ones.
 *
 * Records are named by index, so that growing an array can move it. Classes
 * and arrays are found by what they are and live as long as jobs of them do; that keeps a stream of
 * requests that never repeat from filling the memory. */
#include "sched/inner.h"

#include "ledger/nodes.h"
#include "ledger/supply.h"
#include "sched/burden.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more, by a quarter: there may be a million of them, read at random. */
static void *grow_records(void *records, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) {
        return records;
    }
    uint32_t old = *capacity;
    *capacity = old + ACRE_MAX(old / 4, 64U);
    return acre_grow_table(records, old, *capacity, size);
}

uint32_t job_add(struct acre_sched *sched, uint64_t id) {
    ACRE_ASSERT(id != 0 && acre_map_get(&sched->job_of_id, id) == ACRE_MAP_NONE);
    uint32_t at = sched->job_free;
    if (at != NONE) {
        sched->job_free = sched->jobs[at].array;
    } else {
        sched->jobs =
            grow_records(sched->jobs, sched->job_limit, &sched->job_capacity, sizeof(*sched->jobs));
        at = sched->job_limit++;
    }
    sched->jobs[at] = (struct job){
        .id = id,
        .class = NONE,
        .line = NONE,
        .run = NONE,
        .array = NONE,
        .needs = NONE,
        .needed_by = NONE,
    };
    acre_map_put(&sched->job_of_id, id, at);
    return at;
}

void job_remove(struct acre_sched *sched, uint32_t at) {
    struct job *job = &sched->jobs[at];
    ACRE_ASSERT(job->id != 0 && job->stand == STAND_ENDED);
    ACRE_ASSERT(job->needs == NONE && job->needed_by == NONE && job->line == NONE);
    acre_map_remove(&sched->job_of_id, job->id);
    if (job->run != NONE) {
        sched->runs[job->run].newer = sched->run_free;
        sched->run_free = job->run;
    }
    job->id = 0;
    job->array = sched->job_free;
    sched->job_free = at;
}

uint32_t run_add(struct acre_sched *sched) {
    uint32_t at = sched->run_free;
    if (at != NONE) {
        sched->run_free = sched->runs[at].newer;
    } else {
        sched->runs =
            grow_records(sched->runs, sched->run_limit, &sched->run_capacity, sizeof(*sched->runs));
        at = sched->run_limit++;
    }
    sched->runs[at] = (struct run){.newer = NONE, .older = NONE};
    return at;
}

uint32_t edge_add(struct acre_sched *sched) {
    uint32_t at = sched->edge_free;
    if (at != NONE) {
        sched->edge_free = sched->edges[at].next_need;
    } else {
        sched->edges = acre_grow(sched->edges, sched->edge_limit, &sched->edge_capacity,
                                 sizeof(*sched->edges));
        at = sched->edge_limit++;
    }
    sched->edges[at] = (struct edge){NONE, NONE, NONE, NONE, NONE, 0};
    return at;
}

void edge_remove(struct acre_sched *sched, uint32_t at) {
    ACRE_ASSERT(at < sched->edge_limit && sched->edges[at].waiter != NONE);
    sched->edges[at] = (struct edge){.waiter = NONE, .next_need = sched->edge_free};
    sched->edge_free = at;
}

struct owner *owner_at(struct acre_sched *sched, uint32_t account) {
    while (sched->owner_count <= account) {
        uint32_t had = sched->owner_capacity;
        sched->owners = acre_grow(sched->owners, sched->owner_count, &sched->owner_capacity,
                                  sizeof(*sched->owners));
        if (sched->owner_capacity != had) {
            size_t words = sched->open_words;
            sched->open_lines =
                acre_realloc(sched->open_lines, sched->owner_capacity, words * sizeof(uint64_t));
            memset(sched->open_lines + had * words, 0,
                   (sched->owner_capacity - had) * words * sizeof(uint64_t));
        }
        sched->owners[sched->owner_count++] = (struct owner){.order = {TREE_NONE}};
    }
    return &sched->owners[account];
}

static uint64_t pair_key(uint32_t account, uint32_t class) {
    return ((uint64_t)account + 1) << 32 | class;
}

uint32_t line_find(const struct acre_sched *sched, uint32_t account, uint32_t class) {
    return acre_map_get(&sched->line_of_pair, pair_key(account, class));
}

uint32_t line_add(struct acre_sched *sched, uint32_t account, uint32_t class) {
    ACRE_ASSERT(class < sched->class_limit && sched->classes[class].jobs > 0);
    uint32_t at = line_find(sched, account, class);
    if (at != ACRE_MAP_NONE) {
        return at;
    }
    at = sched->line_free;
    if (at != NONE) {
        sched->line_free = sched->lines[at].next;
    } else {
        sched->lines = grow_records(sched->lines, sched->line_limit, &sched->line_capacity,
                                    sizeof(*sched->lines));
        at = sched->line_limit++;
    }
    owner_at(sched, account);
    sched->lines[at] = (struct line){
        .account = account,
        .class = class,
        .jobs = {TREE_NONE},
        .first = NONE,
        .next = NONE,
        .blocker = NONE,
        .next_parked = NONE,
        .previous_parked = NONE,
    };
    acre_map_put(&sched->line_of_pair, pair_key(account, class), at);
    return at;
}

void line_remove(struct acre_sched *sched, uint32_t at) {
    struct line *line = &sched->lines[at];
    ACRE_ASSERT(line->jobs.root == TREE_NONE && line->blocker == NONE);
    acre_map_remove(&sched->line_of_pair, pair_key(line->account, line->class));
    line->account = NONE;
    line->next = sched->line_free;
    sched->line_free = at;
}

/* What makes requests the same: what is asked for, not who asks. No padding is compared. */
static struct acre_request plain(const struct acre_request *request) {
    struct acre_request key;
    memset(&key, 0, sizeof(key));
    key.replicas = request->replicas;
    key.gpus = request->gpus;
    key.milli = request->milli;
    key.mib = request->mib;
    key.cpu_milli = request->cpu_milli;
    key.ram_mib = request->ram_mib;
    key.exclusive = request->exclusive;
    key.isolation = request->isolation;
    key.strategy = request->strategy;
    key.vendor = request->vendor;
    memcpy(key.models, request->models, sizeof(key.models));
    memcpy(key.labels, request->labels, sizeof(key.labels));
    key.reservation = request->reservation;
    return key;
}

/* By words: it is taken at every submission. */
static uint64_t hash_request(const struct acre_request *request) {
    uint64_t words[sizeof(*request) / sizeof(uint64_t)];
    memcpy(words, request, sizeof(words));
    uint64_t hash = 0;
    for (size_t i = 0; i < ACRE_COUNT(words); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return ACRE_MAX(hash, UINT64_C(1));
}
_Static_assert(sizeof(struct acre_request) % sizeof(uint64_t) == 0, "hashed by words");

/* Equal hashes of different requests take the next number. */
static uint32_t find_plain(const struct acre_sched *sched, const struct acre_request *key,
                           uint64_t *ret_hash) {
    uint64_t hash = hash_request(key);
    uint32_t at;
    while ((at = acre_map_get(&sched->class_of_hash, hash)) != ACRE_MAP_NONE &&
           memcmp(&sched->classes[at].request, key, sizeof(*key)) != 0) {
        hash = ACRE_MAX(hash + 1, UINT64_C(1));
    }
    *ret_hash = hash;
    return at;
}

uint32_t class_find(const struct acre_sched *sched, const struct acre_request *request) {
    struct acre_request key = plain(request);
    uint64_t hash;
    return find_plain(sched, &key, &hash);
}

/* A wider row of bits per account. */
static void widen_rows(struct acre_sched *sched) {
    uint32_t words = ACRE_MAX(2 * sched->open_words, 4U);
    uint64_t *rows = acre_calloc(ACRE_MAX(sched->owner_capacity, 1U), words * sizeof(*rows));
    for (uint32_t i = 0; i < sched->owner_count; i++) {
        memcpy(rows + (size_t)i * words, sched->open_lines + (size_t)i * sched->open_words,
               sched->open_words * sizeof(*rows));
    }
    free(sched->open_lines);
    sched->open_lines = rows;
    sched->open_words = words;
}

/* What one device of this node that serves the request takes at least: the share that its memory
 * is, the memory that its share is. */
static void weigh_node(const struct acre_sched *sched, const struct acre_request *request,
                       uint32_t at, struct account_load *least) {
    struct acre_ledger *ledger = sched->ledger;
    struct acre_ledger_node node;
    uint64_t slots;
    uint32_t asked;
    acre_ledger_node_info(ledger, at, &node);
    if (!acre_ledger_kind_serves(ledger, request, acre_ledger_kind_of(ledger, at), &slots,
                                 &asked)) {
        return;
    }
    for (uint32_t i = node.first_device; i < node.first_device + node.device_count; i++) {
        if ((slots >> acre_ledger_slot_of(ledger, i) & 1) == 0) {
            continue;
        }
        struct acre_ledger_device device;
        acre_ledger_device_info(ledger, i, &device);
        uint64_t memory = device.memory_mib;
        uint64_t milli = request->exclusive    ? 1000
                         : request->milli != 0 ? request->milli
                         : memory != 0         ? (request->mib * 1000 + memory - 1) / memory
                                               : asked;
        bool by_share = request->mib == 0 || request->exclusive;
        least->milli = ACRE_MIN(least->milli, milli);
        least->mib = ACRE_MIN(least->mib, by_share ? memory * milli / 1000 : request->mib);
    }
}

/* What a request takes at least of all its devices together, wherever it is placed. */
struct account_load request_load(const struct acre_sched *sched,
                                 const struct acre_request *request) {
    uint64_t devices = (uint64_t)request->replicas * request->gpus;
    struct account_load least = {UINT64_MAX, UINT64_MAX};
    uint32_t kinds = acre_ledger_kind_count(sched->ledger);
    bool *seen = acre_calloc(ACRE_MAX(kinds, 1U), sizeof(*seen));
    for (uint32_t i = 0, left = kinds; left > 0 && i < acre_ledger_node_count(sched->ledger); i++) {
        uint32_t kind = acre_ledger_kind_of(sched->ledger, i);
        if (!seen[kind]) {
            seen[kind] = true;
            left--;
            weigh_node(sched, request, i, &least);
        }
    }
    free(seen);
    if (least.milli == UINT64_MAX) { /* nothing here serves it */
        return load_of_request(request);
    }
    return (struct account_load){devices * least.milli, devices * least.mib};
}

uint32_t class_take(struct acre_sched *sched, const struct acre_request *request) {
    struct acre_request key = plain(request);
    uint64_t hash;
    uint32_t at = find_plain(sched, &key, &hash);
    if (at != ACRE_MAP_NONE) {
        sched->classes[at].jobs++;
        return at;
    }
    at = sched->class_free;
    if (at != NONE) {
        sched->class_free = sched->classes[at].waiting;
    } else {
        sched->classes = acre_grow(sched->classes, sched->class_limit, &sched->class_capacity,
                                   sizeof(*sched->classes));
        at = sched->class_limit++;
        if (sched->class_limit > 64 * sched->open_words) {
            widen_rows(sched);
        }
    }
    struct job_class *class = &sched->classes[at];
    memset(class, 0, sizeof(*class));
    memcpy(&class->request, &key, sizeof(key)); /* padding too: it is compared */
    class->hash = hash;
    class->jobs = 1;
    class->load = request_load(sched, &key);
    class->lines.root = TREE_NONE;
    class->state = CLASS_OPEN;
    acre_map_put(&sched->class_of_hash, hash, at);
    return at;
}

void class_give(struct acre_sched *sched, uint32_t at) {
    struct job_class *class = &sched->classes[at];
    ACRE_ASSERT(class->jobs > 0);
    if (--class->jobs > 0) {
        return;
    }
    ACRE_ASSERT(class->waiting == 0 && class->lines.root == TREE_NONE);
    acre_map_remove(&sched->class_of_hash, class->hash);
    class->waiting = sched->class_free;
    sched->class_free = at;
}

uint32_t array_take(struct acre_sched *sched, const struct acre_job_spec *spec) {
    uint64_t id = spec->array;
    uint32_t at = acre_map_get(&sched->array_of_id, id);
    if (at == ACRE_MAP_NONE) {
        at = sched->array_free;
        if (at != NONE) {
            sched->array_free = sched->arrays[at].open;
        } else {
            sched->arrays = acre_grow(sched->arrays, sched->array_limit, &sched->array_capacity,
                                      sizeof(*sched->arrays));
            at = sched->array_limit++;
        }
        sched->arrays[at] = (struct array){
            .id = id, .user = spec->user, .bytes = spec->bytes, .waiting = {TREE_NONE}};
        acre_map_put(&sched->array_of_id, id, at);
        acre_burdens_add_text(sched->burdens, spec->user, spec->bytes);
    }
    sched->arrays[at].limit = spec->array_limit;
    sched->arrays[at].members++;
    return at;
}

void array_give(struct acre_sched *sched, uint32_t at) {
    struct array *array = &sched->arrays[at];
    ACRE_ASSERT(array->members > 0);
    if (--array->members > 0) {
        return;
    }
    ACRE_ASSERT(array->open == 0 && array->waiting.root == TREE_NONE);
    acre_map_remove(&sched->array_of_id, array->id);
    acre_burdens_remove_text(sched->burdens, array->user, array->bytes);
    array->id = 0;
    array->open = sched->array_free;
    sched->array_free = at;
}
