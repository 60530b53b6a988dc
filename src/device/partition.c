/* partition.c - the rules of partitioning, as two small tables.
 *
 * A compute mode makes 1, 2, 3, 4 or xcds devices; a memory mode makes 1, 2, 4 or 8 memories. Every
 * rule follows from the counts: XCDs divide evenly, and every memory has a device. Which of the
 * remaining pairs are available is up to the firmware. */
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

struct partition partition_default(void) {
    return (struct partition){ACRE_COMPUTE_SPX, ACRE_MEMORY_NPS1, ACRE_PARTITION_XCDS_MAX};
}

int partition_compute_parse(struct acre_str text, enum compute_partition *ret_compute,
                            struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(computes); i++) {
        if (acre_str_is(text, computes[i].name)) {
            *ret_compute = (enum compute_partition)i;
            return 0;
        }
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID,
                     "unknown compute partition '%s'; accepted: SPX, DPX, TPX, QPX, CPX",
                     acre_str_show(text, shown, sizeof(shown)));
}

int partition_memory_parse(struct acre_str text, enum memory_partition *ret_memory,
                           struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(memories); i++) {
        if (acre_str_is(text, memories[i].name)) {
            *ret_memory = (enum memory_partition)i;
            return 0;
        }
    }
    char shown[64];
    return acre_fail(err, ACRE_EINVALID,
                     "unknown memory partition '%s'; accepted: NPS1, NPS2, NPS4, NPS8",
                     acre_str_show(text, shown, sizeof(shown)));
}

const char *compute_partition_name(enum compute_partition compute) {
    ACRE_ASSERT((size_t)compute < ACRE_COUNT(computes));
    return computes[compute].name;
}

const char *memory_partition_name(enum memory_partition memory) {
    ACRE_ASSERT((size_t)memory < ACRE_COUNT(memories));
    return memories[memory].name;
}

uint32_t partition_count(const struct partition *partition) {
    ACRE_ASSERT((size_t)partition->compute < ACRE_COUNT(computes));
    uint32_t count = computes[partition->compute].count;
    return count == 0 ? partition->xcds : count;
}

int partition_check(const struct partition *partition, struct acre_error *err) {
    if ((size_t)partition->compute >= ACRE_COUNT(computes) ||
        (size_t)partition->memory >= ACRE_COUNT(memories)) {
        return acre_fail(err, ACRE_EINVALID, "unknown partition mode %u/%u",
                         (unsigned)partition->compute, (unsigned)partition->memory);
    }
    if (partition->xcds != ACRE_PARTITION_XCDS_MAX) {
        return acre_fail(err, ACRE_EINVALID, "%u XCDs; an MI300X has %u", partition->xcds,
                         (unsigned)ACRE_PARTITION_XCDS_MAX);
    }
    uint32_t devices = partition_count(partition);
    if (partition->xcds % devices != 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s: %u XCDs cannot be divided evenly into %u partitions",
                         computes[partition->compute].name, partition->xcds, devices);
    }
    uint32_t count = memories[partition->memory].count;
    if (count > devices) {
        return acre_fail(err, ACRE_EINVALID,
                         "%s with %s: %u memory partitions need at least as many compute "
                         "partitions, but there %s %u",
                         computes[partition->compute].name, memories[partition->memory].name, count,
                         devices == 1 ? "is" : "are", devices);
    }
    return 0;
}

uint32_t partition_step_milli(const struct partition *partition) {
    uint32_t count = partition_count(partition);
    ACRE_ASSERT(count > 0 && 1000 % count == 0);
    return 1000 / count;
}

int partition_xcds(const struct partition *partition, uint32_t share_milli, uint32_t *ret_xcds,
                   struct acre_error *err) {
    int r = partition_check(partition, err);
    if (r < 0) {
        return r;
    }
    uint32_t step_milli = partition_step_milli(partition);
    if (share_milli == 0 || share_milli > 1000 || share_milli % step_milli != 0) {
        return acre_fail(
            err, ACRE_EINVALID, "share %u.%03u of a GPU in %s mode; accepted: %s%u.%03u",
            share_milli / 1000, share_milli % 1000, computes[partition->compute].name,
            step_milli == 1000 ? "" : "multiples of ", step_milli / 1000, step_milli % 1000);
    }
    *ret_xcds = partition->xcds * share_milli / 1000;
    return 0;
}
