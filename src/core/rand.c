/* rand.c - xoshiro256** (Blackman and Vigna), seeded through splitmix64.
 *
 * Four words of state, a period of 2^256 - 1 and well-tested low bits; splitmix64 spreads a small
 * seed over the state, so that seeds 1, 2, 3 ... give unrelated sequences. Uses only fixed-width
 * integer arithmetic, so results are the same everywhere. */
#include "core/rand.h"

#include <string.h>

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void acre_rand_seed(struct acre_rand *rand, uint64_t seed) {
    for (size_t i = 0; i < ACRE_COUNT(rand->state); i++) {
        rand->state[i] = splitmix(&seed);
    }
}

static uint64_t rotate_left(uint64_t value, unsigned bits) {
    return value << bits | value >> (64 - bits);
}

uint64_t acre_rand_next(struct acre_rand *rand) {
    uint64_t *s = rand->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t acre_rand_below(struct acre_rand *rand, uint64_t bound) {
    ACRE_ASSERT(bound > 0);
    /* 2^64 mod bound values at the low end would make small remainders likelier: draw again. */
    uint64_t surplus = (UINT64_C(0) - bound) % bound;
    uint64_t value;
    do {
        value = acre_rand_next(rand);
    } while (value < surplus);
    return value % bound;
}

double acre_rand_unit(struct acre_rand *rand) {
    return (double)(acre_rand_next(rand) >> 11) * 0x1p-53;
}

static void swap_bytes(char *a, char *b, size_t size) {
    char held[64];
    while (size > 0) {
        size_t part = ACRE_MIN(size, sizeof(held));
        memcpy(held, a, part);
        memcpy(a, b, part);
        memcpy(b, held, part);
        a += part;
        b += part;
        size -= part;
    }
}

void acre_rand_shuffle(struct acre_rand *rand, void *array, size_t count, size_t size) {
    char *items = array;
    for (size_t left = count; left > 1; left--) { /* Fisher and Yates */
        size_t chosen = (size_t)acre_rand_below(rand, left);
        if (chosen != left - 1) {
            swap_bytes(items + chosen * size, items + (left - 1) * size, size);
        }
    }
}
