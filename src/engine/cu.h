/* cu.h - compute units of an AMD GPU shared out in ranges that do not overlap.
 *
 * Ranges are text, as HSA_CU_MASK takes them: "0-29,60-79", ascending. Units go in pairs (RDNA
 * switches them so). Pure; any thread. */
#ifndef ACRE_ENGINE_CU_H
#define ACRE_ENGINE_CU_H

#include "core/error.h"

enum {
    ACRE_CU_MAX = 1024,         /* MI300X has 304 */
    ACRE_CU_RANGES_TEXT = 4096, /* every second pair taken: 256 ranges of at most 9 bytes, ',' */
};

/* Take the lowest free units for a share of `milli` on a device of `units`, rounded down to
 * pairs, where `held[held_count]` are the ranges given before. ACRE_ENOFIT: too few are free;
 * ACRE_EINVALID: units or share out of range, or a held text is no list of ranges. */
int cu_take(const char *const *held, uint32_t held_count, uint32_t units, uint32_t milli,
            char ret_ranges[ACRE_CU_RANGES_TEXT], struct acre_error *err);

#endif
