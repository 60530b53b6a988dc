/* foreign.c - foreign = used - what our own processes hold.
 *
 * Starting from the device's own "used" instead of the process list counts memory whose process is
 * not visible (another container, a crashed context, the driver itself), which a sum over visible
 * processes would call free. A process may appear twice (compute and graphics context); its memory
 * is counted once, the larger of the two. */
#include "device/foreign.h"

#include "device/column.h"

static bool is_known(uint64_t pid, const uint64_t *known_pids, uint32_t known_count) {
    for (uint32_t i = 0; i < known_count; i++) {
        if (known_pids[i] == pid) {
            return true;
        }
    }
    return false;
}

/* True when an earlier entry of the same pid stands for this one. */
static bool is_repeat(const struct acre_device_process *processes, uint32_t at) {
    for (uint32_t i = 0; i < at; i++) {
        if (processes[i].pid == processes[at].pid) {
            return true;
        }
    }
    return false;
}

static uint64_t memory_of(const struct acre_device_process *processes, uint32_t count,
                          uint64_t pid) {
    uint64_t most_mib = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (processes[i].pid == pid && ACRE_HAS(&processes[i], ACRE_PROCESS, memory_mib)) {
            most_mib = ACRE_MAX(most_mib, processes[i].memory_mib);
        }
    }
    return most_mib;
}

static uint64_t subtract(uint64_t from, uint64_t what) {
    return from > what ? from - what : 0;
}

struct foreign device_foreign(const struct acre_device_sample *sample,
                              struct acre_device_process *processes, uint32_t count,
                              const uint64_t *known_pids, uint32_t known_count) {
    struct foreign result = {.exact = true};
    result.known = ACRE_HAS(sample, ACRE_SAMPLE, memory_used_mib);
    uint64_t used_mib = result.known ? sample->memory_used_mib : 0;
    result.memory_mib = used_mib;
    result.unattributed_mib = used_mib;
    for (uint32_t i = 0; i < count; i++) {
        bool known = is_known(processes[i].pid, known_pids, known_count);
        ACRE_PUT(&processes[i], ACRE_PROCESS, foreign, !known);
        if (known && !ACRE_HAS(&processes[i], ACRE_PROCESS, memory_mib)) {
            result.exact = false;
        }
        if (is_repeat(processes, i)) {
            continue;
        }
        uint64_t memory_mib = memory_of(processes, count, processes[i].pid);
        result.unattributed_mib = subtract(result.unattributed_mib, memory_mib);
        if (known) {
            result.memory_mib = subtract(result.memory_mib, memory_mib);
        } else {
            result.processes++;
        }
    }
    return result;
}
