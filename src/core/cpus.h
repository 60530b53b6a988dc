/* cpus.h - counts the processors of this machine. */
#ifndef ACRE_CORE_CPUS_H
#define ACRE_CORE_CPUS_H

#include <stdint.h>

uint32_t acre_cpu_count(void); /* that this process may use; 1 or more */

#endif
