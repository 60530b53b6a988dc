/* fiber.c - fibers for the work items of a group.
 *
 * The items that have not ended form a ring in the order of their numbers. A barrier switches to
 * the next of the ring: when an item is back, every other one has come to its barrier, so a lap is
 * a barrier. Switching saves the registers that a called function must keep and changes the stack
 * pointer: 10 ns measured between two fibers, 18 among 256, where the library's swapcontext, which
 * asks the system for the signal mask each time, took 220 to 270. A group of 256 with ten barriers
 * switches 2560 times.
 *
 * Stacks are mapped at once and touched when used. Their tops are staggered, because equal
 * distances of a power of two would put all of them into the same few lines of the cache.
 *
 * A guard splits a map in three, and a process has 65530 maps as a rule, after which its malloc
 * fails too. So guards take a quarter of them at most, in the whole process: each who comes has
 * half of what is left, shared out among its threads, for the stacks that are used most.
 *
 * Nothing here is instrumented by sanitizers: they keep a picture of the one stack they know. The
 * kernels in between never are. */
#include "compute/cpu/fiber.h"

#include "core/file.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__clang__) /* whose no_sanitize("thread") still tells of entry and exit */
#define PLAIN __attribute__((disable_sanitizer_instrumentation))
#else
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

enum {
    STAGGER_BYTES = 320, /* five lines: odd, so that all sets are met */
    STAGGER_STEPS = 12,
    MAPS_DEFAULT = 65530, /* of a process, where the system does not tell */
    MAPS_PART = 4,        /* the share of guards: one of so many */
    MAPS_PER_GUARD = 2,
    MAPS_TEXT_BYTES = 8 << 20, /* of a hundred thousand maps */
    FRAME_WORDS = 9,           /* six registers, where to go, and two above that align the stack */
};

struct fiber {
    void *stack_pointer;
    uint32_t next; /* of the ring */
};

struct cpu_fibers {
    char *stacks;
    struct cpu_guards *guards;
    uint32_t items_max, guard_count;
    uint32_t current, before; /* of the ring: the one that runs, and whose next it is */
    void *caller;             /* stack pointer of who called run */
    void (*item)(const void *context, uint32_t index);
    const void *context;
    struct fiber fibers[];
};

/* Keep what a callee must, leave the stack pointer in *from, take the other's. */
void acre_fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl acre_fiber_switch\n"
        ".hidden acre_fiber_switch\n"
        ".type acre_fiber_switch, @function\n"
        "acre_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size acre_fiber_switch, . - acre_fiber_switch\n"
        /* The first return of a fiber comes here, with its struct in rbx. */
        ".type acre_fiber_enter, @function\n"
        "acre_fiber_enter:\n"
        "    movq %rbx, %rdi\n"
        "    call acre_fiber_main\n"
        "    ud2\n"
        ".size acre_fiber_enter, . - acre_fiber_enter\n");
extern const char acre_fiber_enter[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) void acre_fiber_main(struct cpu_fibers *fibers);

PLAIN void acre_fiber_main(struct cpu_fibers *fibers) {
    uint32_t self = fibers->current;
    fibers->item(fibers->context, self);
    /* Out of the ring; the last one goes back to the caller. */
    struct fiber *fiber = &fibers->fibers[self];
    if (fiber->next == self) {
        acre_fiber_switch(&fiber->stack_pointer, fibers->caller);
    }
    fibers->fibers[fibers->before].next = fiber->next;
    fibers->current = fiber->next;
    acre_fiber_switch(&fiber->stack_pointer, fibers->fibers[fiber->next].stack_pointer);
}

PLAIN static void barrier(struct cpu_fibers *fibers) {
    struct fiber *fiber = &fibers->fibers[fibers->current];
    if (fiber->next == fibers->current) {
        return;
    }
    fibers->before = fibers->current;
    fibers->current = fiber->next;
    acre_fiber_switch(&fiber->stack_pointer, fibers->fibers[fiber->next].stack_pointer);
}

PLAIN static void *prepare(struct cpu_fibers *fibers, uint32_t index) {
    char *top = fibers->stacks + ((size_t)index + 1) * CPU_FIBER_STACK_BYTES -
                (size_t)(index % STAGGER_STEPS) * STAGGER_BYTES;
    uint64_t *frame = (uint64_t *)(void *)top - FRAME_WORDS;
    for (uint32_t i = 0; i < FRAME_WORDS; i++) {
        frame[i] = 0;
    }
    frame[4] = (uint64_t)(uintptr_t)fibers; /* rbx: popped fifth */
    frame[6] = (uint64_t)(uintptr_t)acre_fiber_enter;
    return frame;
}

PLAIN static void run(struct cpu_fibers *fibers, uint32_t items,
                      void (*item)(const void *context, uint32_t index), const void *context) {
    ACRE_ASSERT(items > 0 && items <= fibers->items_max);
    fibers->item = item;
    fibers->context = context;
    for (uint32_t i = 0; i < items; i++) {
        fibers->fibers[i].next = i + 1 < items ? i + 1 : 0;
        fibers->fibers[i].stack_pointer = prepare(fibers, i);
    }
    fibers->before = items - 1;
    fibers->current = 0;
    acre_fiber_switch(&fibers->caller, fibers->fibers[0].stack_pointer);
}

void cpu_fibers_call_init(struct cpu_fibers_call *call, struct cpu_fibers *fibers) {
    *call = (struct cpu_fibers_call){.fibers = fibers, .run = run, .barrier = barrier};
}

/* --- guards --------------------------------------------------------------------------------- */

/* 0: it is not told. */
static uint64_t read_map_limit(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, 64);
    int r = acre_file_read("/proc/sys/vm/max_map_count", 64, &buf, NULL);
    uint64_t maps = r == 0 ? strtoull(buf.data, NULL, 10) : 0;
    acre_buf_finish(&buf);
    return ACRE_MIN(maps, (uint64_t)INT32_MAX);
}

/* Maps there are; UINT64_MAX: too many to count. 0: it is not told. */
static uint64_t count_maps(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, MAPS_TEXT_BYTES);
    int r = acre_file_read("/proc/self/maps", MAPS_TEXT_BYTES, &buf, NULL);
    uint64_t maps = r == ACRE_ELIMIT ? UINT64_MAX : 0;
    for (size_t i = 0; i < buf.length && r == 0; i++) {
        maps += buf.data[i] == '\n';
    }
    acre_buf_finish(&buf);
    return maps;
}

void cpu_guards_init(struct cpu_guards *guards) {
    uint64_t limit = read_map_limit();
    uint64_t mark = (limit > 0 ? limit : MAPS_DEFAULT) / MAPS_PART;
    atomic_init(&guards->left, (uint32_t)((mark - ACRE_MIN(mark, count_maps())) / MAPS_PER_GUARD));
}

uint32_t cpu_guards_share(const struct cpu_guards *guards, uint32_t threads) {
    return atomic_load(&guards->left) / 2 / threads;
}

static uint32_t take_guards(struct cpu_guards *guards, uint32_t count) {
    uint32_t left = atomic_load(&guards->left);
    uint32_t taken;
    do {
        taken = ACRE_MIN(count, left);
    } while (!atomic_compare_exchange_weak(&guards->left, &left, left - taken));
    return taken;
}

static void give_guards(struct cpu_guards *guards, uint32_t count) {
    atomic_fetch_add(&guards->left, count);
}

static uint32_t set_guards(char *stacks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (mprotect(stacks + (size_t)i * CPU_FIBER_STACK_BYTES, CPU_FIBER_GUARD_BYTES, PROT_NONE) <
            0) { /* others have too many maps: without */
            return i;
        }
    }
    return count;
}

/* --- life ----------------------------------------------------------------------------------- */

struct cpu_fibers *cpu_fibers_create(uint32_t items_max, struct cpu_guards *guards,
                                     uint32_t guard_max) {
    struct cpu_fibers *fibers = calloc(1, sizeof(*fibers) + items_max * sizeof(struct fiber));
    if (fibers == NULL) {
        return NULL;
    }
    fibers->items_max = items_max;
    fibers->guards = guards;
    void *stacks = mmap(NULL, (size_t)items_max * CPU_FIBER_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        free(fibers);
        return NULL;
    }
    fibers->stacks = stacks;
    uint32_t taken = take_guards(guards, ACRE_MIN(guard_max, items_max));
    fibers->guard_count = set_guards(fibers->stacks, taken);
    give_guards(guards, taken - fibers->guard_count);
    return fibers;
}

void cpu_fibers_destroy(struct cpu_fibers *fibers) {
    if (fibers == NULL) {
        return;
    }
    munmap(fibers->stacks, (size_t)fibers->items_max * CPU_FIBER_STACK_BYTES);
    give_guards(fibers->guards, fibers->guard_count);
    free(fibers);
}
