/* fiber.h - the work items of one group, as fibers of one thread: for kernels with barriers.
 *
 * Each item has its own stack. A barrier continues with the next item, so all items have reached
 * it before the first one passes it. An item that has ended is not waited for. One thread uses one
 * struct cpu_fibers. build.c makes the compiler refuse kernels with frames of half a stack; a
 * deeper call chain hits the tripwire page below the stack and faults. The system limits the
 * mappings of a process, and tripwires are many: on a large machine only the lowest stacks have
 * one. A stack without a tripwire works like the others. */
#ifndef ACRE_COMPUTE_CPU_FIBER_H
#define ACRE_COMPUTE_CPU_FIBER_H

#include "core/base.h"

/* With a tripwire of 4 KiB below it, a stack takes 64 KiB; where pages are larger, so is the
 * tripwire. */
enum { CPU_FIBER_STACK_BYTES = 61440 };

struct cpu_fibers;

/* What is left for tripwires: of all pools of a runtime. Any thread. */
struct cpu_tripwires {
    _Atomic uint32_t left;
    uint32_t page_bytes; /* of the system: what one tripwire takes */
};
void cpu_tripwires_init(struct cpu_tripwires *tripwires);
/* How many each of so many threads may have, so that as many are left for others. */
uint32_t cpu_tripwires_share(const struct cpu_tripwires *tripwires, uint32_t threads);

/* With tripwires below the first `tripwire_max` stacks at most. NULL: out of memory. */
struct cpu_fibers *cpu_fibers_create(uint32_t items_max, struct cpu_tripwires *tripwires,
                                     uint32_t tripwire_max);
void cpu_fibers_destroy(struct cpu_fibers *fibers); /* NULL is fine */

/* What compiled kernels get (its layout is repeated in dialect_cpu.c). */
struct cpu_fibers_call {
    struct cpu_fibers *fibers;
    /* item(context, 0 .. items - 1), each in a fiber; done when all have ended. */
    void (*run)(struct cpu_fibers *fibers, uint32_t items,
                void (*item)(const void *context, uint32_t index), const void *context);
    void (*barrier)(struct cpu_fibers *fibers); /* by an item */
};

void cpu_fibers_call_init(struct cpu_fibers_call *call, struct cpu_fibers *fibers);

#endif
