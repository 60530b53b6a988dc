/* mix.c - provisional: fill value. */
#include "ledger/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 64, LANES = 16, NOTES_MAX = 512 };

struct note {
    struct want want;
    double weight;
};

struct mix {
    struct note notes[NOTES_MAX];
    uint32_t note_count;
    uint64_t arrivals, next_refresh;
    double step;
    uint32_t epoch;
    uint32_t count;
    struct want wants[CLASSES_MAX];
    float weight[CLASSES_MAX], per_cpu[CLASSES_MAX], per_ram[CLASSES_MAX];
    float per_gpus[CLASSES_MAX];
    uint8_t fits[1001][CLASSES_MAX];
    uint64_t *serves; /* by profile: a bit per class */
    uint32_t profile_count;
};

struct mix *mix_create(void) {
    struct mix *mix = acre_calloc(1, sizeof(*mix));
    mix->next_refresh = 64;
    mix->step = 1;
    return mix;
}

void mix_destroy(struct mix *mix) {
    if (mix != NULL) {
        free(mix->serves);
        free(mix);
    }
}

uint32_t mix_epoch(const struct mix *mix) {
    return mix->epoch;
}

size_t mix_bytes(const struct mix *mix) {
    return sizeof(*mix) + mix->profile_count * sizeof(*mix->serves);
}

static int heavier_first(const void *a, const void *b) {
    const struct note *x = a;
    const struct note *y = b;
    return (x->weight < y->weight) - (x->weight > y->weight);
}

static void refresh(struct acre_ledger *ledger, struct mix *mix) {
    qsort(mix->notes, mix->note_count, sizeof(mix->notes[0]), heavier_first);
    double total = 0;
    mix->count = 0;
    for (uint32_t i = 0; i < mix->note_count && mix->count < CLASSES_MAX; i++) {
        if (mix->notes[i].want.gpus > 0 && mix->notes[i].want.milli > 0) {
            total += mix->notes[i].weight;
            mix->wants[mix->count++] = mix->notes[i].want;
            mix->weight[mix->count - 1] = (float)mix->notes[i].weight;
        }
    }
    memset(mix->fits, 0, sizeof(mix->fits));
    for (uint32_t k = 0; k < mix->count; k++) {
        const struct want *want = &mix->wants[k];
        mix->weight[k] = mix->weight[k] / (float)total * (float)(want->milli * want->gpus);
        mix->per_cpu[k] = want->cpu_milli > 0 ? 1.0F / (float)want->cpu_milli : 1.0F;
        mix->per_ram[k] = want->ram_mib > 0 ? 1.0F / (float)want->ram_mib : 1.0F;
        mix->per_gpus[k] = 1.0F / (float)want->gpus;
        for (uint32_t milli = 0; milli <= 1000; milli++) {
            mix->fits[milli][k] =
                (uint8_t)ACRE_MIN(want->whole ? milli == 1000 : milli / want->milli, 255U);
        }
    }
    free(mix->serves);
    mix->profile_count = ledger->profile_count;
    mix->serves = acre_calloc(ACRE_MAX(mix->profile_count, 1U), sizeof(*mix->serves));
    for (uint32_t p = 0; p < mix->profile_count; p++) {
        for (uint32_t k = 0; k < mix->count; k++) {
            uint64_t slots;
            if (want_matches(ledger, &mix->wants[k], ledger->profiles[p], &slots)) {
                mix->serves[p] |= UINT64_C(1) << k;
            }
        }
    }
    mix->epoch++;
}

void mix_note(struct acre_ledger *ledger, const struct want *want) {
    struct mix *mix = ledger->mix;
    struct want key = *want;
    key.strategy = 0;
    key.replicas = 1;
    uint32_t at = 0;
    while (at < mix->note_count && memcmp(&mix->notes[at].want, &key, sizeof(key)) != 0) {
        at++;
    }
    if (at == mix->note_count && mix->note_count < NOTES_MAX) {
        mix->notes[mix->note_count++] = (struct note){.want = key};
    }
    if (at < mix->note_count) {
        mix->notes[at].weight += mix->step;
    }
    if (++mix->arrivals == mix->next_refresh) {
        refresh(ledger, mix);
        mix->next_refresh = mix->arrivals + ACRE_MAX(mix->arrivals / 8, UINT64_C(64));
    }
}

double mix_worth(const struct mix *mix, const struct room *room) {
    if (mix->count == 0) {
        return 0;
    }
    uint16_t counts[CLASSES_MAX] = {0};
    uint32_t padded = (mix->count + LANES - 1) / LANES * LANES;
    for (uint32_t i = 0; i < room->profile->device_count; i++) {
        const uint8_t *fits = mix->fits[word_milli(room->words[i])];
        for (uint32_t k = 0; k < padded; k++) {
            counts[k] = (uint16_t)(counts[k] + fits[k]);
        }
    }
    float cpu = (float)room->cpu_free_milli;
    float ram = (float)room->ram_free_mib;
    float terms[CLASSES_MAX];
    for (uint32_t k = 0; k < padded; k++) {
        int32_t members = (int32_t)((float)counts[k] * mix->per_gpus[k]);
        int32_t by_cpu = (int32_t)(cpu * mix->per_cpu[k]);
        int32_t by_ram = (int32_t)(ram * mix->per_ram[k]);
        members = members < by_cpu ? members : by_cpu;
        members = members < by_ram ? members : by_ram;
        terms[k] = mix->weight[k] * (float)members;
    }
    uint64_t serves = mix->serves[room->profile_index];
    double worth = 0;
    for (uint32_t k = 0; k < mix->count; k++) {
        worth += (serves >> k & 1) != 0 ? (double)terms[k] : 0;
    }
    return worth;
}
