/* partition.h - how an AMD MI300X may be divided: compute modes, memory modes, fractions.
 *
 * Pure; any thread. It neither reads nor sets modes; amdgpu.c reads them. */
#ifndef ACRE_DEVICE_PARTITION_H
#define ACRE_DEVICE_PARTITION_H

#include "core/error.h"
#include "core/str.h"

enum compute_partition {
    ACRE_COMPUTE_SPX, /* all XCDs are one device */
    ACRE_COMPUTE_DPX,
    ACRE_COMPUTE_TPX,
    ACRE_COMPUTE_QPX,
    ACRE_COMPUTE_CPX, /* each XCD is its own device */
};

enum memory_partition {
    ACRE_MEMORY_NPS1, /* one interleaved memory */
    ACRE_MEMORY_NPS2,
    ACRE_MEMORY_NPS4,
    ACRE_MEMORY_NPS8,
};

enum { ACRE_PARTITION_XCDS_MAX = 8 };

struct partition {
    enum compute_partition compute;
    enum memory_partition memory;
    uint32_t xcds; /* dies on the whole GPU */
};

/* SPX, NPS1, 8: how an MI300X leaves the factory. */
struct partition partition_default(void);

/* "CPX", "NPS4". ACRE_EINVALID names what is accepted. */
int partition_compute_parse(struct acre_str text, enum compute_partition *ret_compute,
                            struct acre_error *err);
int partition_memory_parse(struct acre_str text, enum memory_partition *ret_memory,
                           struct acre_error *err);
const char *compute_partition_name(enum compute_partition compute);
const char *memory_partition_name(enum memory_partition memory);

/* An MI300X has 8 XCDs, which must divide evenly among the compute partitions, and there may
 * be no more memory partitions than compute partitions (so SPX with NPS4 is refused). */
int partition_check(const struct partition *partition, struct acre_error *err);

uint32_t partition_count(const struct partition *partition); /* devices it makes */
/* The smallest share: SPX 1000, CPX 125. The partition must have passed the check. */
uint32_t partition_step_milli(const struct partition *partition);

/* How many XCDs a share takes; only whole steps are accepted, without tolerance (a share of
 * 0.1255 is refused, not rounded to two XCDs). */
int partition_xcds(const struct partition *partition, uint32_t share_milli, uint32_t *ret_xcds,
                   struct acre_error *err);

#endif
