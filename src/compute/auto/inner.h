/* inner.h - what the files of this directory share: an automatic call and its variants.
 *
 * `lock` guards everything except `hot` and the fields that are written only at creation. */
#ifndef ACRE_COMPUTE_AUTO_INNER_H
#define ACRE_COMPUTE_AUTO_INNER_H

#include "compute/auto/cost.h"
#include "compute/auto/pieces.h"
#include "compute/process.h"
#include "compute/program.h"

#include <acre/graph.h>
#include <acre/ring.h>

enum {
    AUTO_REASON_MAX = 96,
    AUTO_GRAPHS_MAX = 32,    /* one for each power of two of items */
    AUTO_VALUES_MAX = 256,   /* bytes of values that are compared */
    AUTO_RING_ITEMS_MAX = 32 /* the lanes of a warp */
};

/* One call, checked. */
struct auto_call {
    uint32_t items;
    void *const *arrays;
    const struct acre_arg *values;
};

/* Memory for all arrays side by side: those only read, those read and written, those only written.
 * So what goes in is one piece, and what comes out is one. */
struct auto_layout {
    uint64_t offsets[PIECES_ARRAYS_MAX];
    uint64_t in_bytes;   /* from 0 */
    uint64_t out_offset; /* to `bytes` */
    uint64_t bytes;
};

struct auto_block {
    struct acre_buffer buffer; /* id 0: none */
    uint64_t bytes;
    uint32_t epoch; /* of the context: device memory is lost with it */
};

struct auto_graph {
    struct acre_graph *graph;
    struct auto_block device, host;
    uint32_t epoch;
    uint32_t items; /* and values, that it was last given */
    uint32_t value_bytes;
    uint8_t values[AUTO_VALUES_MAX];
};

struct auto_ring {
    struct acre_ring *ring;
    uint32_t items_max;
    uint32_t in_words, out_words;
    uint32_t idle; /* calls that went elsewhere since it was last used */
    bool is_stopped;
};

/* One of the two contexts. */
struct auto_side {
    struct acre_context *context; /* NULL: not given */
    struct acre_program *program;
    struct acre_kernel *kernel; /* NULL: not there, and why */
    struct acre_stream *stream;
    char reason[AUTO_REASON_MAX];
};

struct acre_auto {
    uint32_t process; /* that made it (process.h) */
    pthread_mutex_t lock;
    struct signature *signatures;
    uint32_t signature_count;
    const struct signature *signature; /* the kernel's */
    struct acre_auto_array arrays[PIECES_ARRAYS_MAX];
    uintptr_t misalignment[PIECES_ARRAYS_MAX]; /* bits an address must not have */
    uint32_t array_count, value_count;
    uint32_t item_bytes; /* of all arrays */
    bool is_in_place;    /* an array is read and written */
    struct acre_source source;
    char *source_text, *source_name, *source_options; /* its own */

    struct auto_side device, cpu;
    bool is_given;                  /* the last COST_ALL: its kernel has the caller's arrays */
    acre_native_function *function; /* to be called in the caller's thread; NULL: cannot */
    struct auto_block copied, mapped;
    struct auto_graph graphs[AUTO_GRAPHS_MAX];
    struct auto_ring ring;

    uint32_t present; /* variants there are, a bit each */
    uint32_t min_items[COST_VARIANTS_COUNT];
    uint32_t max_items[COST_VARIANTS_COUNT];
    char reason[COST_VARIANTS_COUNT][AUTO_REASON_MAX]; /* why one is not there, or failed last */
    uint64_t rests_until_ns[COST_VARIANTS_COUNT];      /* after a failure; 0: does not */
    uint32_t resting;                                  /* a bit each */

    struct costs costs;
    struct cost_owner owner;
    char *learned;              /* path; "": none */
    char note[AUTO_REASON_MAX]; /* why what was learned before is not used */
    bool has_learned;           /* something since */
    bool has_native;
    /* Free calls of COST_ONE in each bucket: how many there were, and how many are left. Taken
     * without the lock. */
    _Atomic uint32_t hot[COST_BUCKETS];
};

static inline int auto_check(const struct acre_auto *automatic, struct acre_error *err) {
    return automatic != NULL && process_is_ours(automatic->process)
               ? 0
               : process_refuse("automatic", automatic, err);
}

/* --- ways.c: the variants. All but COST_ONE under the lock ------------------------------- */

/* Which are there at all, and for how many items. */
void auto_ways_init(struct acre_auto *automatic);
void auto_ways_finish(struct acre_auto *automatic);
/* What must be there before the call: memory, a graph, a ring. ACRE_EUNSUPPORTED: it turned out
 * that the variant is not there, and `present` and `reason` say so. */
int auto_prepare(struct acre_auto *automatic, enum cost_variant variant,
                 const struct auto_call *call, struct acre_error *err);
int auto_go(struct acre_auto *automatic, enum cost_variant variant, const struct auto_call *call,
            struct acre_error *err);
/* In this thread; nothing can fail. */
void auto_go_one(const struct acre_auto *automatic, const struct auto_call *call);
/* Whether a failure may have left arrays changed that the kernel also reads, or a kernel at work
 * that changes them later. */
bool auto_spoils(const struct acre_auto *automatic, enum cost_variant variant,
                 const struct auto_call *call);
/* What memory all arrays are in. Any thread. */
enum cost_memory auto_memory(const struct acre_auto *automatic, const struct auto_call *call);

/* --- auto_run.c: lock held -------------------------------------------------------------------- */

/* The variants for so many items, a bit each, also those that rest. */
uint32_t auto_possible(const struct acre_auto *automatic, uint32_t items, enum cost_memory memory);
/* Why a way cannot be gone, or was not when it was last tried; "". */
void auto_why_not(const struct acre_auto *automatic, enum acre_way way, uint32_t items,
                  char *reason, size_t size);
/* Count the free calls that were made. */
void auto_drain(struct acre_auto *automatic);

/* --- learned.c: what was learned, on disk ------------------------------------------------ */

int auto_learned_open(struct acre_auto *automatic, const char *learned, struct acre_error *err);
void auto_learned_keep(struct acre_auto *automatic);

#endif
