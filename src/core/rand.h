/* rand.h - seeded random numbers (xoshiro256**, seeded through splitmix64).
 *
 * The same seed gives the same sequence on every machine, so a failing test can be replayed from
 * the seed it prints. Not for secrets. One thread at a time. */
#ifndef ACRE_CORE_RAND_H
#define ACRE_CORE_RAND_H

#include "core/base.h"

struct acre_rand {
    uint64_t state[4];
};

void acre_rand_seed(struct acre_rand *rand, uint64_t seed);
uint64_t acre_rand_next(struct acre_rand *rand);
uint64_t acre_rand_below(struct acre_rand *rand, uint64_t bound); /* unbiased; bound > 0 */
double acre_rand_unit(struct acre_rand *rand);                    /* [0, 1) */
void acre_rand_shuffle(struct acre_rand *rand, void *array, size_t count, size_t size);

#endif
