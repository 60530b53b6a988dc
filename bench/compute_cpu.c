/* compute_cpu.c - what acre's CPU back end is compared with: plain C in this thread.
 *
 * A launch is a call, device memory is malloc's, a copy is memcpy. The ratios show what streams
 * and threads cost; they have no limits. The mailbox is a thread. */
#include "compute_raw.h"

#include "core/spin.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAILBOX_STOP UINT32_MAX
enum { SPINS_BEFORE_YIELD = 256 }; /* the other side may need this core */

struct cpu {
    volatile uint32_t counter; /* volatile: a call is a call */
    float *device_memory[3];
    float *host_memory[2];
    pthread_t mailbox;
    bool is_ringing;
    _Atomic uint32_t in, out; /* the caller's and the mailbox's, each read by the other */
    uint32_t letters;
};

static int raw_open(void **ret_self, struct acre_error *err) {
    (void)err;
    *ret_self = acre_calloc(1, sizeof(struct cpu));
    return 0;
}

static int raw_launch(void *self, uint32_t count, struct acre_error *err) {
    struct cpu *cpu = self;
    (void)err;
    for (uint32_t i = 0; i < count; i++) {
        cpu->counter = cpu->counter + 1;
    }
    return 0;
}

/* --- the mailbox ---------------------------------------------------------------------------- */

static void relax(uint32_t spins) {
    if (spins % SPINS_BEFORE_YIELD == 0) {
        sched_yield();
    } else {
        acre_cpu_relax();
    }
}

static void *run_mailbox(void *user) {
    struct cpu *cpu = user;
    uint32_t last = 0;
    for (uint32_t spins = 1;; spins++) {
        uint32_t now = atomic_load_explicit(&cpu->in, memory_order_acquire);
        if (now == MAILBOX_STOP) {
            return NULL;
        }
        if (now != last) {
            last = now;
            atomic_store_explicit(&cpu->out, now + 1, memory_order_release);
            continue;
        }
        relax(spins);
    }
}

static int raw_ring_start(void *self, struct acre_error *err) {
    struct cpu *cpu = self;
    cpu->letters = 0;
    atomic_store(&cpu->in, 0);
    atomic_store(&cpu->out, 0);
    int code = pthread_create(&cpu->mailbox, NULL, run_mailbox, cpu);
    cpu->is_ringing = code == 0;
    return code == 0 ? 0 : acre_fail_errno(err, code, "cannot start the mailbox thread");
}

static int raw_ring_call(void *self, struct acre_error *err) {
    struct cpu *cpu = self;
    uint32_t letter = ++cpu->letters;
    (void)err;
    atomic_store_explicit(&cpu->in, letter, memory_order_release);
    for (uint32_t spins = 1; atomic_load_explicit(&cpu->out, memory_order_acquire) != letter + 1;
         spins++) {
        relax(spins);
    }
    return 0;
}

static void raw_ring_stop(void *self) {
    struct cpu *cpu = self;
    if (cpu->is_ringing) {
        atomic_store(&cpu->in, MAILBOX_STOP);
        pthread_join(cpu->mailbox, NULL);
        cpu->is_ringing = false;
    }
}

/* --- memory --------------------------------------------------------------------------------- */

static void raw_release(void *self) {
    struct cpu *cpu = self;
    for (size_t i = 0; i < ACRE_COUNT(cpu->device_memory); i++) {
        free(cpu->device_memory[i]);
        cpu->device_memory[i] = NULL;
    }
    for (size_t i = 0; i < ACRE_COUNT(cpu->host_memory); i++) {
        free(cpu->host_memory[i]);
        cpu->host_memory[i] = NULL;
    }
}

static float *make_ones(uint64_t bytes) {
    float *floats = bytes > 0 ? acre_calloc(1, bytes) : NULL;
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        floats[i] = 1.0f;
    }
    return floats;
}

static int raw_reserve(void *self, const struct compute_memory *memory, struct acre_error *err) {
    struct cpu *cpu = self;
    (void)err;
    for (size_t i = 0; i < ACRE_COUNT(cpu->device_memory); i++) {
        cpu->device_memory[i] = make_ones(memory->device_bytes[i]);
    }
    for (size_t i = 0; i < ACRE_COUNT(cpu->host_memory); i++) {
        cpu->host_memory[i] = make_ones(memory->host_bytes[i]);
    }
    return 0;
}

static void *raw_host(void *self, uint32_t index) {
    return ((struct cpu *)self)->host_memory[index];
}

static int raw_alloc(void *self, bool is_pooled, uint64_t bytes, uintptr_t *ret_at,
                     struct acre_error *err) {
    (void)self;
    (void)is_pooled;
    void *volatile memory = malloc(bytes); /* volatile: the pair is not optimised away */
    if (memory == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "malloc");
    }
    *ret_at = (uintptr_t)memory;
    return 0;
}

static int raw_free(void *self, bool is_pooled, uintptr_t at, struct acre_error *err) {
    (void)self;
    (void)is_pooled;
    (void)err;
    free((void *)at);
    return 0;
}

static int raw_copy(void *self, bool is_in, uint64_t bytes, struct acre_error *err) {
    struct cpu *cpu = self;
    (void)err;
    memcpy(is_in ? cpu->device_memory[0] : cpu->host_memory[0],
           is_in ? cpu->host_memory[0] : cpu->device_memory[0], bytes);
    return 0;
}

static int raw_load(void *self, int fd, uint64_t bytes, struct acre_error *err) {
    struct cpu *cpu = self;
    for (uint64_t at = 0; at < bytes;) {
        ssize_t got = pread(fd, (char *)cpu->device_memory[0] + at,
                            ACRE_MIN(bytes - at, COMPUTE_PIECE_BYTES), (off_t)at);
        if (got <= 0) {
            return acre_fail_errno(err, got < 0 ? errno : EIO, "raw read");
        }
        at += (uint64_t)got;
    }
    return 0;
}

/* --- kernels -------------------------------------------------------------------------------- */

static int raw_add(void *self, uint32_t items, struct acre_error *err) {
    struct cpu *cpu = self;
    const float *a = cpu->device_memory[0];
    const float *b = cpu->device_memory[1];
    float *c = cpu->device_memory[2];
    (void)err;
    for (uint32_t i = 0; i < items; i++) {
        c[i] = a[i] + b[i];
    }
    return 0;
}

static int raw_multiply(void *self, uint32_t width, struct acre_error *err) {
    struct cpu *cpu = self;
    const float *b = cpu->device_memory[1];
    (void)err;
    for (uint32_t row = 0; row < width; row++) {
        const float *a = cpu->device_memory[0] + (size_t)row * width;
        float *c = cpu->device_memory[2] + (size_t)row * width;
        memset(c, 0, width * sizeof(float));
        for (uint32_t k = 0; k < width; k++) {
            for (uint32_t column = 0; column < width; column++) {
                c[column] += a[k] * b[(size_t)k * width + column];
            }
        }
    }
    return 0;
}

static int raw_batch(void *self, const float *in, float *out, uint64_t items,
                     struct acre_error *err) {
    (void)self;
    (void)err;
    for (uint64_t i = 0; i < items; i++) {
        out[i] = in[i] * 2.0f + 1.0f;
    }
    return 0;
}

static void raw_close(void *self) {
    raw_ring_stop(self);
    raw_release(self);
    free(self);
}

const struct compute_raw compute_raw_cpu = {
    .name = "plain C, one thread",
    .open = raw_open,
    .close = raw_close,
    .reserve = raw_reserve,
    .release = raw_release,
    .host = raw_host,
    .launch = raw_launch,
    .ring_start = raw_ring_start,
    .ring_call = raw_ring_call,
    .ring_stop = raw_ring_stop,
    .alloc = raw_alloc,
    .free = raw_free,
    .add = raw_add,
    .multiply = raw_multiply,
    .copy = raw_copy,
    .batch = raw_batch,
    .load = raw_load,
};
