/* cpus.c - counts the processors of this machine. */
#include "core/cpus.h"

#include <sched.h>

uint32_t acre_cpu_count(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 1 ? (uint32_t)count : 1;
}
