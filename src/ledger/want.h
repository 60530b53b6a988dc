/* want.h - a checked request in its shortest form, and what it needs of a device.
 *
 * Two requests with equal wants are the same to every placement, so judgements are kept per
 * want (class.h). Constraints (vendor, models, labels) are interned as one number. Private to
 * src/ledger; core thread only. */
#ifndef ACRE_LEDGER_WANT_H
#define ACRE_LEDGER_WANT_H

#include "ledger/state.h"

/* No padding: compared and hashed as bytes. */
struct want {
    uint32_t gpus;
    uint32_t milli; /* 0: by memory alone */
    uint32_t mib;   /* 0: in proportion to milli */
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint32_t constraint; /* 0: none */
    uint16_t replicas;
    uint8_t isolation;
    uint8_t whole; /* devices are taken alone and entirely; milli is 1000 */
    uint32_t strategy;
};
_Static_assert(sizeof(struct want) == 32, "a want has no padding");

uint64_t want_hash(const struct want *want);

/* Check the request against limits and rules and bring it to its shortest form. */
int want_from(struct acre_ledger *ledger, const struct acre_request *request, struct want *ret_want,
              struct acre_error *err);

/* Which slots of this hardware can ever serve the want (model, vendor, kind, memory, step).
 * False: the node can never serve it (labels, CPU, RAM, number of devices). */
bool want_matches(const struct acre_ledger *ledger, const struct want *want,
                  const struct profile *profile, uint64_t *ret_slots);
/* As want_matches, for the labels alone. */
bool want_labels_match(const struct acre_ledger *ledger, const struct want *want,
                       const struct profile *profile);

/* milli that the want takes of a device of this memory. */
static inline uint32_t want_milli_on(const struct want *want, const struct hardware *hardware) {
    return want->milli > 0 ? want->milli
                           : (uint32_t)(((uint64_t)want->mib * 1000 + hardware->memory_mib - 1) /
                                        hardware->memory_mib);
}

/* Does a device in this state take it now? */
static inline bool want_fits(const struct want *want, const struct hardware *hardware,
                             uint64_t word) {
    if (want->whole) {
        return word_milli(word) == 1000 && word_mib(word) == hardware->memory_mib;
    }
    uint32_t isolation = word_isolation(word);
    return (isolation == 0 || isolation == want->isolation + 1U) &&
           word_milli(word) >= want_milli_on(want, hardware) &&
           (want->mib > 0 ? word_mib(word) >= want->mib : word_room(word) >= want->milli);
}

/* The device's state afterwards. Rounding may leave it a MiB or a milli below what the books
 * will say; that matters to scores only, never to what fits. */
uint64_t want_word_after(const struct want *want, const struct hardware *hardware, uint64_t word);

struct constraints;
struct constraints *constraints_create(void);
void constraints_destroy(struct constraints *constraints);

#endif
