/* class.h - for each want, the shapes that can serve it now, best first.
 *
 * A class is a want and a heap of judged shapes. Asked for the best, it first judges the shapes
 * that came to life since it was last asked (shape.h keeps the log) and drops dead ones as they
 * come to the top. Classes not used lately give up their heaps. Private to src/ledger. */
#ifndef ACRE_LEDGER_CLASS_H
#define ACRE_LEDGER_CLASS_H

#include "ledger/choose.h"

struct want_class;

struct candidate {
    struct rank rank;
    uint32_t shape;
    uint32_t slot; /* of a want for one device: which one */
};

struct want_classes *classes_create(void);
void classes_destroy(struct want_classes *classes);

/* The class of this want; valid until the next call. */
struct want_class *classes_get(struct acre_ledger *ledger, const struct want *want);

const struct want *class_want(const struct want_class *class);

/* The best shape for it; NULL when none serves it now. */
const struct candidate *class_best(struct acre_ledger *ledger, struct want_class *class);

/* All shapes judged able to serve it, in no order; some may have died (no nodes). */
const struct candidate *class_candidates(struct acre_ledger *ledger, struct want_class *class,
                                         uint32_t *ret_count);

/* want_matches of the class's want for a profile, remembered. */
bool class_matches(const struct acre_ledger *ledger, struct want_class *class, uint32_t profile,
                   uint64_t *ret_slots);
/* Drop dead shapes from all heaps: their ids are about to mean others. */
void classes_forget_dead(struct acre_ledger *ledger);
size_t classes_bytes(const struct want_classes *classes);

#endif
