/* partition.c - the rules of partitioning, as two small tables.
 *
 * A compute mode makes 1, 2, 3, 4 or xcds devices; a memory mode makes 1, 2, 4 or 8 memories.
 * Every rule follows from the counts: XCDs divide evenly, and no memory may be left without
 * a device. Which of the remaining pairs a firmware offers is the firmware's affair. */
#include "device/partition.h"

#include <stdio.h>

static const struct {
    const char *name;
    uint32_t count; /* 0: one per XCD */
} computes[] = {
    [ACRE_COMPUTE_SPX] = {"SPX", 1}, [ACRE_COMPUTE_DPX] = {"DPX", 2},
    [ACRE_COMPUTE_TPX] = {"TPX", 3}, [ACRE_COMPUTE_QPX] = {"QPX", 4},
    [ACRE_COMPUTE_CPX] = {"CPX", 0},
};

static const struct {
    const char *name;
    uint32_t count;
} memories[] = {
    [ACRE_MEMORY_NPS1] = {"NPS1", 1},
    [ACRE_MEMORY_NPS2] = {"NPS2", 2},
    [ACRE_MEMORY_NPS4] = {"NPS4", 4},
    [ACRE_MEMORY_NPS8] = {"NPS8", 8},
};

struct acre_partition acre_partition_default(void) {
    return (struct acre_partition){ACRE_COMPUTE_SPX, ACRE_MEMORY_NPS1, ACRE_PARTITION_XCDS_MAX};
}

int acre_partition_compute_parse(struct acre_str text, enum acre_compute_partition *ret_compute,
                                 struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(computes); i++) {
        if (acre_str_is(text, computes[i].name)) {
            *ret_compute = (enum acre_compute_partition)i;
            return 0;
        }
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID,
                     "compute partition '%s'; accepted: SPX, DPX, TPX, QPX, CPX",
                     acre_str_show(text, shown, sizeof(shown)));
}

int acre_partition_memory_parse(struct acre_str text, enum acre_memory_partition *ret_memory,
                                struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(memories); i++) {
        if (acre_str_is(text, memories[i].name)) {
            *ret_memory = (enum acre_memory_partition)i;
            return 0;
        }
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID, "memory partition '%s'; accepted: NPS1, NPS2, NPS4, NPS8",
                     acre_str_show(text, shown, sizeof(shown)));
}

const char *acre_compute_partition_name(enum acre_compute_partition compute) {
    ACRE_ASSERT((size_t)compute < ACRE_COUNT(computes));
    return computes[compute].name;
}

const char *acre_memory_partition_name(enum acre_memory_partition memory) {
    ACRE_ASSERT((size_t)memory < ACRE_COUNT(memories));
    return memories[memory].name;
}

uint32_t acre_partition_count(const struct acre_partition *partition) {
    ACRE_ASSERT((size_t)partition->compute < ACRE_COUNT(computes));
    uint32_t count = computes[partition->compute].count;
    return count == 0 ? partition->xcds : count;
}

int acre_partition_check(const struct acre_partition *partition, struct acre_error *err) {
    if ((size_t)partition->compute >= ACRE_COUNT(computes) ||
        (size_t)partition->memory >= ACRE_COUNT(memories)) {
        return acre_fail(err, ACRE_EINVALID, "unknown partition mode %u/%u",
                         (unsigned)partition->compute, (unsigned)partition->memory);
    }
    if (partition->xcds != ACRE_PARTITION_XCDS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "%u XCDs: an MI300X has %u", partition->xcds,
                         (unsigned)ACRE_PARTITION_XCDS_MAX);
    }
    uint32_t devices = acre_partition_count(partition);
    if (partition->xcds % devices != 0) {
        return acre_fail(err, ACRE_EINVALID, "%s: %u XCDs do not divide into %u partitions",
                         computes[partition->compute].name, partition->xcds, devices);
    }
    uint32_t count = memories[partition->memory].count;
    if (count > devices) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s with %s: %u memory partitions need at least as many compute "
                         "partitions, there are %u",
                         computes[partition->compute].name, memories[partition->memory].name, count,
                         devices);
    }
    return 0;
}

uint32_t acre_partition_step_milli(const struct acre_partition *partition) {
    uint32_t count = acre_partition_count(partition);
    ACRE_ASSERT(count > 0 && 1000 % count == 0);
    return 1000 / count;
}

int acre_partition_xcds(const struct acre_partition *partition, uint32_t share_milli,
                        uint32_t *ret_xcds, struct acre_error *err) {
    int r = acre_partition_check(partition, err);
    if (r < 0) {
        return r;
    }
    uint32_t step_milli = acre_partition_step_milli(partition);
    if (share_milli == 0 || share_milli > 1000 || share_milli % step_milli != 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "share %u.%03u of a GPU in %s mode; accepted: %s%u/1000",
                         share_milli / 1000, share_milli % 1000, computes[partition->compute].name,
                         step_milli == 1000 ? "the whole, " : "multiples of ", step_milli);
    }
    *ret_xcds = partition->xcds * share_milli / 1000;
    return 0;
}
