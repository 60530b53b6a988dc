/* fiber.c - fibers for the work items of a group.
 *
 * The unfinished items form a circle in the order of their numbers. A barrier switches to the next
 * in the circle: when an item runs again, every other one has reached its barrier, so one lap is a
 * barrier. Switching saves the registers that a called function must preserve and changes the stack
 * pointer. It takes 10 ns between two fibers and 18 ns among 256; the library's swapcontext, which
 * asks the kernel for the signal mask each time, takes 220 to 270. A group of 256 with ten barriers
 * switches 2560 times.
 *
 * Stacks are mapped at once and touched when used. Their tops are staggered, because equal
 * distances of a power of two would put all of them into the same few cache lines.
 *
 * A tripwire is one page that no one may touch, up to 64 KiB on arm64. It splits a mapping in
 * three, and a process usually may have 65530 mappings, after which malloc fails too. So tripwires
 * take at most a quarter of them in the whole process: each newcomer gets half of what is left,
 * divided among its threads, for the stacks that are used most.
 *
 * Sanitizers do not instrument this file: they track only the one stack they know. Kernels are
 * never instrumented. */
#include "compute/cpu/fiber.h"

#include "core/file.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__clang__) /* whose no_sanitize("thread") still tells of entry and exit */
#define PLAIN __attribute__((disable_sanitizer_instrumentation))
#else
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

enum {
    STAGGER_BYTES = 320, /* five lines: odd, so that all sets are met */
    STAGGER_STEPS = 12,
    MAPS_DEFAULT = 65530, /* of a process, where the system does not tell */
    MAPS_PART = 4,        /* the share of tripwires: one of so many */
    MAPS_PER_TRIPWIRE = 2,
    MAPS_TEXT_BYTES = 8 << 20, /* of a hundred thousand maps */
};

struct fiber {
    void *stack_pointer;
    uint32_t next; /* of the circle */
};

struct cpu_fibers {
    char *stacks;
    struct cpu_tripwires *tripwires;
    uint32_t items_max, tripwire_count;
    uint32_t tripwire_bytes, step_bytes; /* below a stack; from one stack to the next, with it */
    uint32_t current, before; /* of the circle: the one that runs, and whose next it is */
    void *caller;             /* stack pointer of who called run */
    void (*item)(const void *context, uint32_t index);
    const void *context;
    struct fiber fibers[];
};

/* Keep what a callee must, leave the stack pointer in *from, take the other's. The first return of
 * a fiber goes to acre_fiber_enter, with its struct in a register that was kept. */
void acre_fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
enum {
    FRAME_WORDS = 9,  /* six registers, where to go, and two above that align the stack */
    FRAME_STRUCT = 4, /* rbx: popped fifth */
    FRAME_ENTER = 6,
};
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
        ".type acre_fiber_enter, @function\n"
        "acre_fiber_enter:\n"
        "    movq %rbx, %rdi\n"
        "    call acre_fiber_main\n"
        "    ud2\n"
        ".size acre_fiber_enter, . - acre_fiber_enter\n");
#elif defined(__aarch64__)
enum {
    FRAME_WORDS = 20, /* x19 to x30 and d8 to d15: a multiple of 16 bytes, as the stack must be */
    FRAME_STRUCT = 0, /* x19 */
    FRAME_ENTER = 11, /* x30 */
};
__asm__(".text\n"
        ".globl acre_fiber_switch\n"
        ".hidden acre_fiber_switch\n"
        ".type acre_fiber_switch, %function\n"
        "acre_fiber_switch:\n"
        "    stp x19, x20, [sp, #-160]!\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x19, x20, [sp], #160\n"
        "    ret\n"
        ".size acre_fiber_switch, . - acre_fiber_switch\n"
        ".type acre_fiber_enter, %function\n"
        "acre_fiber_enter:\n"
        "    mov x0, x19\n"
        "    bl acre_fiber_main\n"
        "    brk #0\n"
        ".size acre_fiber_enter, . - acre_fiber_enter\n");
#else
#error "fibers: write acre_fiber_switch for this processor"
#endif
extern const char acre_fiber_enter[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) void acre_fiber_main(struct cpu_fibers *fibers);

PLAIN void acre_fiber_main(struct cpu_fibers *fibers) {
    uint32_t self = fibers->current;
    fibers->item(fibers->context, self);
    /* Out of the circle; the last one goes back to the caller. */
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
    char *top = fibers->stacks + ((size_t)index + 1) * fibers->step_bytes -
                (size_t)(index % STAGGER_STEPS) * STAGGER_BYTES;
    uint64_t *frame = (uint64_t *)(void *)top - FRAME_WORDS;
    for (uint32_t i = 0; i < FRAME_WORDS; i++) {
        frame[i] = 0;
    }
    frame[FRAME_STRUCT] = (uint64_t)(uintptr_t)fibers;
    frame[FRAME_ENTER] = (uint64_t)(uintptr_t)acre_fiber_enter;
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

/* --- tripwires -------------------------------------------------------------------------------- */

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

void cpu_tripwires_init(struct cpu_tripwires *tripwires) {
    uint64_t limit = read_map_limit();
    uint64_t mark = (limit > 0 ? limit : MAPS_DEFAULT) / MAPS_PART;
    tripwires->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    atomic_init(&tripwires->left,
                (uint32_t)((mark - ACRE_MIN(mark, count_maps())) / MAPS_PER_TRIPWIRE));
}

uint32_t cpu_tripwires_share(const struct cpu_tripwires *tripwires, uint32_t threads) {
    return atomic_load(&tripwires->left) / 2 / threads;
}

static uint32_t take_tripwires(struct cpu_tripwires *tripwires, uint32_t count) {
    uint32_t left = atomic_load(&tripwires->left);
    uint32_t taken;
    do {
        taken = ACRE_MIN(count, left);
    } while (!atomic_compare_exchange_weak(&tripwires->left, &left, left - taken));
    return taken;
}

static void give_tripwires(struct cpu_tripwires *tripwires, uint32_t count) {
    atomic_fetch_add(&tripwires->left, count);
}

static uint32_t set_tripwires(const struct cpu_fibers *fibers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char *tripwire = fibers->stacks + (size_t)i * fibers->step_bytes;
        if (mprotect(tripwire, fibers->tripwire_bytes, PROT_NONE) < 0) {
            return i; /* others have too many maps: without */
        }
    }
    return count;
}

/* --- life ----------------------------------------------------------------------------------- */

struct cpu_fibers *cpu_fibers_create(uint32_t items_max, struct cpu_tripwires *tripwires,
                                     uint32_t tripwire_max) {
    struct cpu_fibers *fibers = calloc(1, sizeof(*fibers) + items_max * sizeof(struct fiber));
    if (fibers == NULL) {
        return NULL;
    }
    uint32_t page_bytes = tripwires->page_bytes;
    fibers->items_max = items_max;
    fibers->tripwires = tripwires;
    fibers->tripwire_bytes = page_bytes;
    fibers->step_bytes =
        page_bytes + (CPU_FIBER_STACK_BYTES + page_bytes - 1) / page_bytes * page_bytes;
    void *stacks = mmap(NULL, (size_t)items_max * fibers->step_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        free(fibers);
        return NULL;
    }
    fibers->stacks = stacks;
    uint32_t taken = take_tripwires(tripwires, ACRE_MIN(tripwire_max, items_max));
    fibers->tripwire_count = set_tripwires(fibers, taken);
    give_tripwires(tripwires, taken - fibers->tripwire_count);
    return fibers;
}

void cpu_fibers_destroy(struct cpu_fibers *fibers) {
    if (fibers == NULL) {
        return;
    }
    munmap(fibers->stacks, (size_t)fibers->items_max * fibers->step_bytes);
    give_tripwires(fibers->tripwires, fibers->tripwire_count);
    free(fibers);
}
