/* workers.h - tasks, streams of tasks, and the threads that run them.
 *
 * pool.lock tripwires the lists of the pool, and `state`, `head` and `tail` of streams; `running`
 * belongs to the worker that runs the stream; `pending` shows the stream's user whether anything
 * is left. Any thread may call; for one stream, one at a time. */
#ifndef ACRE_COMPUTE_CPU_WORKERS_H
#define ACRE_COMPUTE_CPU_WORKERS_H

#include "compute/backend.h"
#include "compute/cpu/fiber.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    CPU_WORKERS_MAX = 1024,
    CPU_GROUP_MAX = 1024,         /* work items: what GPUs take */
    CPU_LOCAL_MAX_BYTES = 65536,  /* of a group */
    CPU_PIECE_BYTES = 256 * 1024, /* copies and fills are divided into these: fits in an L2 */
};

enum cpu_task_kind { CPU_COPY, CPU_FILL, CPU_LAUNCH, CPU_SIGNAL, CPU_WAIT, CPU_NOTIFY };

struct cpu_kernel {
    struct cpu_kernel *next; /* of its module or seat */
    acre_native_function *function;
    /* For kernels that meet barriers: tell the module where this thread's fibers are; else NULL. */
    void (*bind)(const struct cpu_fibers_call *call);
    bool is_bounded; /* no loop in it: it ends soon for few items */
    bool is_source;
    char name[48];
    /* Picoseconds for a work item, as measured; 0: not yet. Any thread writes, any value will do:
     * it only decides who runs a launch. */
    _Atomic uint64_t item_ps;
    _Atomic uint32_t runs; /* at once, by the caller */
};

struct cpu_task {
    struct cpu_task *next;
    struct cpu_stream *stream;
    enum cpu_task_kind kind;
    uint64_t queued_ns; /* of the call, while profiled; else 0 */
    uint64_t begun_ns;
    uint64_t units, chunk;  /* groups or pieces; how many are taken at once */
    _Atomic uint64_t taken; /* units, by those who run it */
    uint32_t users;         /* who run it now; pool.lock */
    struct cpu_task *next_job;
    union {
        struct {
            char *to;
            const char *from;
            uint64_t bytes;
            const char *label;
        } copy;
        struct {
            char *to;
            uint64_t bytes, pattern; /* widened to 8 bytes */
        } fill;
        struct {
            struct cpu_kernel *kernel;
            struct acre_grid grid;
            const void **args;
            uint32_t arg_count;
            uint64_t locals; /* which arguments: a bit each; their `args` are offsets */
            uint64_t items;
        } launch;
        uint64_t value;
        struct {
            const _Atomic uint64_t *word;
            uint64_t value;
            bool is_foreign; /* no stream of the seat writes it */
        } wait;
        int fd;
    };
};

enum cpu_stream_state { CPU_IDLE, CPU_READY, CPU_RUNNING, CPU_PARKED };

struct cpu_stream {
    struct cpu_seat *seat;
    struct cpu_stream *next, **link; /* of the seat */
    _Atomic uint64_t *word;
    enum cpu_stream_state state;
    struct cpu_task *head, **tail;
    struct cpu_task *running;
    struct cpu_stream *next_waiting; /* in pool.ready or pool.parked */
    bool is_foreign;                 /* parked on such a word */
    _Atomic uint64_t pending;        /* tasks not done; release pairs with the user's acquire */
    bool is_profiled;                /* the user's */
    struct acre_timing *timings;     /* whoever runs the stream; the user while pending is 0 */
    uint32_t timing_count, timing_capacity;
};

struct cpu_worker {
    struct cpu_pool *pool;
    pthread_t thread;
    bool owes_job;             /* its last turn was a stream's: a shared launch is next */
    struct cpu_fibers *fibers; /* of 1024 items; NULL until a kernel needs them */
    char *local;               /* for LOCAL arguments; likewise */
};

struct cpu_pool {
    pthread_mutex_t lock;
    pthread_cond_t settled; /* a stream became idle */
    struct cpu_stream *ready, **ready_tail;
    struct cpu_stream *parked;
    struct cpu_task *jobs;       /* launches and copies that others may help with */
    uint32_t settling;           /* threads that wait for `settled` */
    _Atomic uint32_t work_count; /* streams in `ready`, and jobs: what a worker looks at */
    _Atomic uint32_t ready_count;
    _Atomic uint32_t parked_count; /* pairs with the word a signal wrote just before */
    uint32_t foreign_count;
    _Atomic uint32_t bell;     /* futex: changes when sleepers shall look */
    _Atomic uint32_t sleepers; /* pairs with work_count */
    _Atomic bool has_spinner;  /* likewise */
    bool has_watcher;
    _Atomic uint32_t told; /* one more before each signal and notice: cpu_pool_see, cpu.h */
    _Atomic bool is_started, has_local;
    bool is_ending;
    uint32_t worker_count, worker_max;
    struct cpu_worker *workers;
    struct cpu_tripwires *tripwires; /* shared with other pools */
};

/* workers.c. Start threads if there are none yet. */
int cpu_pool_init(struct cpu_pool *pool, uint32_t cores, struct cpu_tripwires *tripwires,
                  struct acre_error *err);
void cpu_pool_end(struct cpu_pool *pool);    /* threads end after the task they are at */
void cpu_pool_finish(struct cpu_pool *pool); /* after that */
int cpu_pool_start(struct cpu_pool *pool, struct acre_error *err);
/* What workers need for kernels with barriers, and for LOCAL arguments. */
int cpu_pool_equip(struct cpu_pool *pool, bool fibers, bool local, struct acre_error *err);
/* Append to the stream's list and see that somebody runs it. The task is from malloc. */
void cpu_pool_give(struct cpu_pool *pool, struct cpu_stream *stream, struct cpu_task *task);
/* Wait until no worker has the stream in its hands. */
void cpu_pool_settle(struct cpu_pool *pool, struct cpu_stream *stream);
/* A word was written: streams that waited for it go on. */
void cpu_pool_wake_parked(struct cpu_pool *pool);

/* task.c: tasks as such. `worker` NULL: the calling thread, for tasks that need none. */
void cpu_task_run(struct cpu_worker *worker, struct cpu_task *task, uint64_t first, uint64_t end);
/* About how long all of it takes on one core; UINT64_MAX: not known. */
uint64_t cpu_task_estimate_ns(const struct cpu_task *task);
void cpu_task_measured(struct cpu_task *task, uint64_t units, uint64_t ns);
void cpu_task_record(struct cpu_task *task, uint64_t end_ns);
void cpu_signal(struct cpu_stream *stream, uint64_t value);

#endif
