/* mix.c - the recent mix of requests, and what it makes a node's free room worth.
 *
 * Learning. Every arrival is counted under its want; counts halve every HALF_LIFE arrivals (the
 * weight of a new one grows instead). From time to time the mix is frozen: the CLASSES_MAX
 * classes that matter most, by number and by GPU asked, with their prices. Judgements are kept
 * per frozen mix, so it is frozen again only when it would differ: while there is little history,
 * when an eighth of the requests are of other classes than it says, or when a quarter of the free
 * GPU was added or removed; and never more often than the index can take (see is_due).
 *
 * Worth. For class m (p its part of the requests, s its size in milli, g its part of the GPU
 * asked for, S the mean size) a node has room for
 *
 *     K(m) = min(members its devices take, free CPU / (c s), free RAM / (r s))
 *
 * members, c and r being the CPU and RAM that the average request takes per milli of GPU: what
 * goes onto a node is a mixture, so its CPU lasts as the mixture uses it, not as m would. No
 * room at all if not even one m fits. With A(m) the room for m on the whole cluster and G all
 * free GPU, both in milli,
 *
 *     worth = sum over m of K(m) (p + g (s / S) max(0, G / A(m) - 1))
 *
 * The first term counts the requests the node could serve, class by class. The second is a
 * premium for room that is rare: if all free GPU could serve m, A = G and there is none; it
 * grows as the devices that could go to smaller or less particular requests. Why so, and what
 * else was tried: docs/design/002-least-fragmentation.md.
 *
 * Cost. The members that each class gets out of a device with f milli free are a row of bytes;
 * rows are added over the devices, and the rest is a few vector operations per 16 classes. */
#include "ledger/mix.h"

#include "core/index.h"
#include "ledger/shape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLASSES_MAX = MIX_CLASSES_MAX,
    LANES = 16,       /* classes are worked on in steps of so many */
    NOTES_MAX = 512,  /* wants counted; the lightest half is dropped when they run out */
    HALF_LIFE = 4096, /* arrivals */
    CHECK_EVERY = 64, /* arrivals between looks at whether to freeze anew */
};
#define STEP_MAX 0x1p500 /* weights are rescaled long before doubles end */

struct mix_note {
    struct want want; /* without strategy and replicas */
    double weight;
    double frozen; /* its part of the requests when last frozen */
};

struct mix {
    struct mix_note notes[NOTES_MAX];
    uint32_t note_count;
    double growth; /* of the weight, per arrival */
    double step;   /* weight of the next arrival */
    double total;  /* of all notes */
    uint64_t arrivals, frozen_at;
    uint32_t shapes_then; /* live shapes when last frozen: what a fresh start costs */
    double free_then;
    uint32_t epoch;

    /* The frozen mix. */
    uint32_t count;
    struct want wants[CLASSES_MAX];
    double part[CLASSES_MAX];                           /* of the requests */
    float cpu_milli[CLASSES_MAX], ram_mib[CLASSES_MAX]; /* of one member */
    float per_cpu[CLASSES_MAX], per_ram[CLASSES_MAX];   /* members per unit, as the mixture uses */
    float per_gpus[CLASSES_MAX];
    uint64_t by_memory; /* classes that ask for memory: a bit each */
    uint8_t members[1001][CLASSES_MAX];
    uint64_t *slots;  /* by profile and class: which slots can serve it */
    bool *is_plain;   /* by profile: each class is served by all slots or by none */
    uint64_t *serves; /* by profile: classes it serves, a bit each */
    float *price;     /* by profile and class: 0 where it is not served */
    uint32_t profile_count;

    struct acre_index index; /* of the notes by want; last, for the alignment of the arrays */
};

struct mix *mix_create(void) {
    struct mix *mix = acre_calloc(1, sizeof(*mix));
    mix->step = 1;
    mix->growth = exp2(1.0 / HALF_LIFE);
    return mix;
}

void mix_destroy(struct mix *mix) {
    if (mix != NULL) {
        acre_index_finish(&mix->index);
        free(mix->slots);
        free(mix->is_plain);
        free(mix->serves);
        free(mix->price);
        free(mix);
    }
}

uint32_t mix_epoch(const struct mix *mix) {
    return mix->epoch;
}

size_t mix_bytes(const struct mix *mix) {
    size_t per_class = sizeof(*mix->slots) + sizeof(*mix->price);
    return sizeof(*mix) + acre_index_bytes(&mix->index) +
           mix->profile_count *
               (CLASSES_MAX * per_class + sizeof(*mix->is_plain) + sizeof(*mix->serves));
}

static double size_of(const struct want *want) {
    return (double)want->gpus * want->milli;
}

/* Members of each class that the room's devices take. */
static void count_members(const struct mix *mix, const struct room *room, uint32_t padded,
                          uint16_t *counts) {
    bool is_plain = mix->is_plain[room->profile_index];
    uint32_t devices = is_plain ? room->profile->device_count : 0;
    for (uint32_t k = 0; k < padded; k += LANES) {
        uint16_t lanes[LANES] = {0};
        for (uint32_t i = 0; i < devices; i++) {
            const uint8_t *members = &mix->members[word_room(room->words[i])][k];
            for (uint32_t lane = 0; lane < LANES; lane++) {
                lanes[lane] = (uint16_t)(lanes[lane] + members[lane]);
            }
        }
        memcpy(&counts[k], lanes, sizeof(lanes));
    }
    /* Classes that ask for memory, and nodes of mixed devices: one by one. */
    uint64_t rest = mix->serves[room->profile_index] & (is_plain ? mix->by_memory : UINT64_MAX);
    for (; rest != 0; rest &= rest - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(rest);
        const struct want *want = &mix->wants[k];
        uint64_t slots = mix->slots[room->profile_index * CLASSES_MAX + k];
        uint32_t count = 0;
        for (; slots != 0; slots &= slots - 1) {
            uint32_t slot = (uint32_t)__builtin_ctzll(slots);
            const struct hardware *hardware = &room->profile->slots[slot];
            uint64_t word = room->words[slot];
            uint32_t members = word_room(word) / want_milli_on(want, hardware);
            if (want->mib > 0 && !want->whole) {
                members = ACRE_MIN(word_milli(word) / want_milli_on(want, hardware),
                                   word_mib(word) / want->mib);
            }
            count += want_fits(want, hardware, word) ? members : 0;
        }
        counts[k] = (uint16_t)ACRE_MIN(count, (uint32_t)UINT16_MAX);
    }
}

/* Members that CPU and RAM allow, none when there is too little for one. */
static void limit_members(const struct mix *mix, const struct room *room, uint32_t padded,
                          float *most) {
    float cpu = (float)room->cpu_free_milli;
    float ram = (float)room->ram_free_mib;
    for (uint32_t k = 0; k < padded; k++) {
        float by_cpu = cpu * mix->per_cpu[k];
        float by_ram = ram * mix->per_ram[k];
        float fits = cpu >= mix->cpu_milli[k] && ram >= mix->ram_mib[k] ? 1.0F : 0.0F;
        most[k] = (by_cpu < by_ram ? by_cpu : by_ram) * fits;
    }
}

/* K of one class. */
static inline float room_of(const struct mix *mix, uint32_t k, uint16_t count, float most) {
    float members = (float)(int32_t)((float)count * mix->per_gpus[k]);
    return members < most ? members : most;
}

/* Sum of the lanes by halves: a fixed order that vector units like. */
static double sum_lanes(float *lanes) {
    for (uint32_t half = LANES / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return (double)lanes[0];
}

static uint32_t padded_count(const struct mix *mix) {
    return (mix->count + LANES - 1) / LANES * LANES;
}

static bool is_worthless(const struct mix *mix, const struct room *room) {
    return mix->count == 0 || room->profile_index >= mix->profile_count;
}

void mix_look_at_devices(const struct mix *mix, const struct room *room, struct mix_view *view) {
    if (!is_worthless(mix, room)) {
        count_members(mix, room, padded_count(mix), view->counts);
    }
}

void mix_look_at_host(const struct mix *mix, const struct room *room, struct mix_view *view) {
    if (!is_worthless(mix, room)) {
        limit_members(mix, room, padded_count(mix), view->most);
    }
}

double mix_worth_as_seen(const struct mix *mix, const struct room *room,
                         const struct mix_view *view) {
    if (is_worthless(mix, room)) {
        return 0;
    }
    const float *price = &mix->price[(size_t)room->profile_index * CLASSES_MAX];
    float lanes[LANES] = {0};
    for (uint32_t k = 0; k < padded_count(mix); k += LANES) {
        for (uint32_t i = 0; i < LANES; i++) {
            lanes[i] += price[k + i] * room_of(mix, k + i, view->counts[k + i], view->most[k + i]);
        }
    }
    return sum_lanes(lanes);
}

double mix_worth(const struct mix *mix, const struct room *room) {
    struct mix_view view;
    mix_look_at_devices(mix, room, &view);
    mix_look_at_host(mix, room, &view);
    return mix_worth_as_seen(mix, room, &view);
}

double mix_worth_after(const struct mix *mix, const struct room *room, const struct mix_view *view,
                       uint32_t slot, uint64_t word) {
    ACRE_ASSERT(slot < room->profile->device_count);
    if (is_worthless(mix, room)) {
        return 0;
    }
    if (!mix->is_plain[room->profile_index] || mix->by_memory != 0) {
        struct room after = *room;
        after.words[slot] = word;
        return mix_worth(mix, &after);
    }
    const uint8_t *old = mix->members[word_room(room->words[slot])];
    const uint8_t *new = mix->members[word_room(word)];
    const float *price = &mix->price[(size_t)room->profile_index * CLASSES_MAX];
    float lanes[LANES] = {0};
    for (uint32_t k = 0; k < padded_count(mix); k += LANES) {
        for (uint32_t i = 0; i < LANES; i++) {
            uint16_t count = (uint16_t)(view->counts[k + i] - old[k + i] + new[k + i]);
            lanes[i] += price[k + i] * room_of(mix, k + i, count, view->most[k + i]);
        }
    }
    return sum_lanes(lanes);
}

static int heavier_first(const void *a, const void *b) {
    const struct mix_note *x = a;
    const struct mix_note *y = b;
    if (x->weight != y->weight) {
        return x->weight < y->weight ? 1 : -1;
    }
    return memcmp(&x->want, &y->want, sizeof(x->want)); /* the same on every machine */
}

static uint32_t note_hash(uint32_t number, const void *context) {
    return (uint32_t)want_hash(&((const struct mix *)context)->notes[number].want);
}

static bool note_is(uint32_t number, const void *key, const void *context) {
    const struct want *want = &((const struct mix *)context)->notes[number].want;
    return memcmp(want, key, sizeof(*want)) == 0;
}

static const struct acre_index_kind by_want = {note_hash, note_is};

/* Heaviest first, dropping what lies beyond `keep`; weights begin at a step of 1 again. */
static void sort_notes(struct mix *mix, uint32_t keep) {
    qsort(mix->notes, mix->note_count, sizeof(mix->notes[0]), heavier_first);
    mix->note_count = ACRE_MIN(mix->note_count, keep);
    acre_index_clear(&mix->index);
    mix->total = 0;
    for (uint32_t i = 0; i < mix->note_count; i++) {
        mix->notes[i].weight /= mix->step;
        mix->total += mix->notes[i].weight;
        acre_index_add(&by_want, &mix->index, note_hash(i, mix), i, mix);
    }
    mix->step = 1;
}

/* Sums over the notes that ask for GPUs by share (those by memory alone have no size). */
struct mix_sums {
    double requests;
    double milli;
    double cpu_milli;
    double ram_mib;
};

static struct mix_sums sum_notes(const struct mix *mix) {
    struct mix_sums sums = {0};
    for (uint32_t i = 0; i < mix->note_count; i++) {
        const struct mix_note *note = &mix->notes[i];
        if (note->want.gpus > 0) {
            sums.requests += note->weight;
            sums.milli += note->weight * size_of(&note->want);
            sums.cpu_milli += note->weight * note->want.cpu_milli;
            sums.ram_mib += note->weight * note->want.ram_mib;
        }
    }
    return sums;
}

/* Which profiles and slots serve each class. */
static void match_profiles(struct acre_ledger *ledger, struct mix *mix) {
    uint32_t count = ledger->profile_count;
    mix->slots = acre_realloc(mix->slots, (size_t)count * CLASSES_MAX, sizeof(*mix->slots));
    mix->is_plain = acre_realloc(mix->is_plain, count, sizeof(*mix->is_plain));
    mix->serves = acre_realloc(mix->serves, count, sizeof(*mix->serves));
    mix->price = acre_realloc(mix->price, (size_t)count * CLASSES_MAX, sizeof(*mix->price));
    mix->profile_count = count;
    for (uint32_t p = 0; p < count; p++) {
        const struct profile *profile = ledger->profiles[p];
        uint32_t devices = profile->device_count;
        uint64_t all = devices == 64 ? UINT64_MAX : (UINT64_C(1) << devices) - 1;
        mix->is_plain[p] = true;
        mix->serves[p] = 0;
        for (uint32_t k = 0; k < mix->count; k++) {
            uint64_t *slots = &mix->slots[(size_t)p * CLASSES_MAX + k];
            if (want_matches(ledger, &mix->wants[k], profile, slots)) {
                mix->serves[p] |= UINT64_C(1) << k;
                mix->is_plain[p] &= *slots == all;
            }
        }
    }
}

/* Choose the classes and set all but their prices. */
static void freeze_classes(struct mix *mix, const struct mix_sums *sums) {
    double mean = sums->milli / sums->requests;
    double cpu_per_milli = sums->cpu_milli / sums->milli;
    double ram_per_milli = sums->ram_mib / sums->milli;
    mix->count = 0;
    mix->by_memory = 0;
    memset(mix->members, 0, sizeof(mix->members));
    memset(mix->per_gpus, 0, sizeof(mix->per_gpus));
    for (uint32_t i = 0; i < mix->note_count && mix->count < CLASSES_MAX; i++) {
        const struct want *want = &mix->notes[i].want;
        if (want->gpus == 0) {
            continue;
        }
        uint32_t k = mix->count++;
        double size = size_of(want) > 0 ? size_of(want) : mean;
        double cpu = cpu_per_milli * size;
        double ram = ram_per_milli * size;
        mix->wants[k] = *want;
        mix->part[k] = mix->notes[i].weight / sums->requests;
        mix->cpu_milli[k] = (float)want->cpu_milli;
        mix->ram_mib[k] = (float)want->ram_mib;
        mix->per_cpu[k] = cpu > 0 ? (float)(1 / cpu) : 1e9F;
        mix->per_ram[k] = ram > 0 ? (float)(1 / ram) : 1e9F;
        mix->per_gpus[k] = 1.0F / (float)want->gpus;
        mix->by_memory |= (uint64_t)(want->mib > 0) << k;
        for (uint32_t milli = 1; milli <= 1000 && want->milli > 0; milli++) {
            uint32_t members = want->whole ? milli == 1000 : milli / want->milli;
            mix->members[milli][k] = (uint8_t)ACRE_MIN(members, (uint32_t)UINT8_MAX);
        }
    }
}

/* Members that the whole cluster has room for, class by class; and all its free GPU. */
static void count_room(struct acre_ledger *ledger, struct mix *mix, double *room) {
    mix->free_then = 0;
    mix->shapes_then = 0;
    for (uint32_t i = 0; i < shapes_limit(ledger->shapes); i++) {
        const struct shape *shape = shapes_get(ledger->shapes, i);
        if (shape == NULL || shape->node_count == 0) {
            continue;
        }
        struct room state;
        struct mix_view view;
        room_from_shape(ledger, shape, &state);
        mix_look_at_devices(mix, &state, &view);
        mix_look_at_host(mix, &state, &view);
        mix->shapes_then++;
        mix->free_then += (double)shape->free_milli * shape->node_count;
        for (uint64_t rest = mix->serves[shape->profile]; rest != 0; rest &= rest - 1) {
            uint32_t k = (uint32_t)__builtin_ctzll(rest);
            room[k] += (double)room_of(mix, k, view.counts[k], view.most[k]) * shape->node_count;
        }
    }
}

/* Turn the classes' parts of the requests into prices, by how rare room for them is. */
static void freeze_prices(struct acre_ledger *ledger, struct mix *mix, double mean) {
    double room[CLASSES_MAX] = {0};
    count_room(ledger, mix, room);
    memset(mix->price, 0, (size_t)mix->profile_count * CLASSES_MAX * sizeof(*mix->price));
    for (uint32_t k = 0; k < mix->count; k++) {
        double relative = size_of(&mix->wants[k]) > 0 ? size_of(&mix->wants[k]) / mean : 1;
        double open = ACRE_MAX(room[k], 1.0) * relative * mean;
        double rarity = ACRE_MAX(mix->free_then / open - 1, 0.0);
        float price = (float)(mix->part[k] * (1 + relative * relative * rarity));
        for (uint32_t p = 0; p < mix->profile_count; p++) {
            if ((mix->serves[p] >> k & 1) != 0) {
                mix->price[(size_t)p * CLASSES_MAX + k] = price;
            }
        }
    }
}

static void freeze(struct acre_ledger *ledger, struct mix *mix) {
    sort_notes(mix, NOTES_MAX);
    struct mix_sums sums = sum_notes(mix);
    for (uint32_t i = 0; i < mix->note_count; i++) {
        mix->notes[i].frozen = mix->notes[i].weight / mix->total;
    }
    mix->frozen_at = mix->arrivals;
    mix->epoch++;
    mix->count = 0;
    if (sums.milli > 0) {
        freeze_classes(mix, &sums);
        match_profiles(ledger, mix);
        freeze_prices(ledger, mix, sums.milli / sums.requests);
    }
}

/* The part of the present requests that the frozen mix does not account for. */
static double drift(const struct mix *mix) {
    double moved = 0;
    for (uint32_t i = 0; i < mix->note_count; i++) {
        double excess = mix->notes[i].weight / mix->total - mix->notes[i].frozen;
        moved += excess > 0 ? excess : 0;
    }
    return moved;
}

/* A new epoch makes every class judge every shape again, which is why it must pay: not before
 * an eighth as many arrivals as there are shapes. */
static bool is_due(const struct acre_ledger *ledger, const struct mix *mix) {
    uint64_t since = mix->arrivals - mix->frozen_at;
    if (since * 8 < mix->shapes_then) {
        return false;
    }
    bool is_learning = mix->arrivals < 2 * HALF_LIFE && since * 4 >= mix->frozen_at;
    double freed = fabs((double)shapes_free_milli(ledger->shapes) - mix->free_then);
    return is_learning || freed * 4 >= mix->free_then || drift(mix) * 8 >= 1;
}

void mix_note(struct acre_ledger *ledger, const struct want *want) {
    struct mix *mix = ledger->mix;
    struct want key = *want;
    key.strategy = 0;
    key.replicas = 0;
    uint32_t hash = (uint32_t)want_hash(&key);
    uint32_t at = acre_index_find(&by_want, &mix->index, hash, &key, mix);
    if (at == ACRE_INDEX_NONE) {
        if (mix->note_count == NOTES_MAX) {
            sort_notes(mix, NOTES_MAX / 2);
        }
        at = mix->note_count++;
        mix->notes[at] = (struct mix_note){.want = key, .weight = mix->step};
        acre_index_add(&by_want, &mix->index, hash, at, mix);
    } else {
        mix->notes[at].weight += mix->step;
    }
    mix->total += mix->step;
    mix->step *= mix->growth;
    if (mix->step > STEP_MAX) {
        sort_notes(mix, NOTES_MAX);
    }
    mix->arrivals++;
    if (mix->arrivals % CHECK_EVERY == 0 && is_due(ledger, mix)) {
        freeze(ledger, mix);
    }
}
