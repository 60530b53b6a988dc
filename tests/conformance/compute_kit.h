/* compute_kit.h - what the cases of the compute suite stand on.
 *
 * A case is a process of its own: it opens a runtime with the one back end under test, a context
 * in the isolation under test, a stream, and closes them at its end, which also checks that no
 * buffer stayed. Only include/acre is used; core gives random numbers and a clock. */
#ifndef ACRE_TEST_COMPUTE_KIT_H
#define ACRE_TEST_COMPUTE_KIT_H

#include "conformance/compute_kernels.h"
#include "core/rand.h"
#include "support/test.h"

#include <acre/compute.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum { KIT_SOURCES_MAX = 16, KIT_MIB = 1 << 20 };

/* What the command line asked for; the same for all cases. */
struct kit_choice {
    const char *backend;
    enum acre_context_isolation isolation;
    uint32_t device; /* among the back end's */
    uint64_t seed;
    char scratch[128]; /* a directory for files of the run */
};
extern struct kit_choice kit_choice;

struct kit {
    struct acre_compute *compute;
    uint32_t device; /* in the runtime's list */
    const struct acre_compute_device *facts;
    struct acre_context *context;
    struct acre_stream *stream;
    struct acre_rand rand;
    struct acre_program *programs[KIT_SOURCES_MAX];
};

void kit_open(struct kit *kit);
/* The same with options; isolation is the chosen one unless they name another. */
void kit_open_with(struct kit *kit, struct acre_context_options options);
/* Another context on the same device. */
struct acre_context *kit_context(struct kit *kit, struct acre_context_options options);
void kit_close(struct kit *kit); /* checks that no buffer is left */
/* What opens a runtime for the back end under test. */
struct acre_compute_options kit_options(void);
bool kit_is(const char *backend);
bool kit_is_isolated(void);
void kit_needs_isolation(void); /* skips the case where a fault would end the test itself */
pid_t kit_runner(void);         /* a runner of this process; 0: there is none */

/* --- errors --------------------------------------------------------------------------------- */

struct acre_error *kit_error(void); /* cleared; this thread's */
int kit_ok(int result, const char *call, const char *file, int line);
void kit_fails(int result, int code, const char *const *parts, const char *call, const char *file,
               int line);

#define ERR kit_error()
/* The call works, or the case ends with its text. */
#define OK(call) kit_ok((call), #call, __FILE__, __LINE__)
/* The call fails with this code and a text that has all these parts. */
#define FAILS(call, code, ...)                                                                     \
    kit_fails((call), (code), (const char *const[]){__VA_ARGS__, NULL}, #call, __FILE__, __LINE__)

/* --- kernels -------------------------------------------------------------------------------- */

/* A kernel of compute_kernels.h by name; its source is built on first use. */
struct acre_kernel *kit_kernel(struct kit *kit, const char *name);
const struct compute_source *kit_source(const char *kernel); /* that has it */
/* The same for any context; the program is given too. */
struct acre_kernel *kit_kernel_in(struct acre_context *context, const char *name,
                                  struct acre_program **ret_program);
struct acre_grid kit_grid(uint32_t groups, uint32_t group);

#define ARGS(...)                                                                                  \
    ((const struct acre_arg[]){__VA_ARGS__}),                                                      \
        (uint32_t)ACRE_COUNT(((const struct acre_arg[]){__VA_ARGS__}))
#define RUN_ON(stream_, kit_, name, grid, ...)                                                     \
    OK(acre_launch((stream_), kit_kernel((kit_), name), (grid), ARGS(__VA_ARGS__), ERR))
#define RUN(kit_, name, grid, ...) RUN_ON((kit_)->stream, kit_, name, grid, __VA_ARGS__)

/* --- memory --------------------------------------------------------------------------------- */

struct acre_buffer kit_buffer(struct kit *kit, enum acre_memory kind, uint64_t bytes);
/* Device memory with a copy of these bytes. */
struct acre_buffer kit_data(struct kit *kit, const void *data, uint64_t bytes);
void kit_get(struct kit *kit, void *to, struct acre_buffer from, uint64_t bytes);
void kit_free(struct kit *kit, struct acre_buffer buffer);
void kit_random(struct kit *kit, void *to, size_t bytes);
void kit_random_floats(struct kit *kit, float *to, size_t count, double low, double high);
/* Shows where the first difference is. */
void kit_check_same(const void *got, const void *expected, size_t bytes, const char *file,
                    int line);
#define CHECK_SAME(got, expected, bytes)                                                           \
    kit_check_same((got), (expected), (bytes), __FILE__, __LINE__)
/* Memory and buffers (of the host's, too) before and after something that must not leak. */
struct kit_held {
    uint64_t used_bytes;
    uint32_t buffers, files;
};
struct kit_held kit_held(struct acre_context *context);
void kit_check_held(struct acre_context *context, const struct kit_held *before, const char *file,
                    int line);
#define CHECK_HELD(context, before) kit_check_held((context), (before), __FILE__, __LINE__)

/* --- time ----------------------------------------------------------------------------------- */

double kit_seconds(void); /* monotonic */
void kit_pass(int ms);    /* lets time pass where there is no condition to wait for */

/* A kernel that holds its stream until it is opened: what is behind it has not happened yet. It
 * ends by itself after some seconds, so that a failing case does not hang. */
struct kit_gate {
    struct kit *kit;
    struct acre_buffer buffer;
    volatile uint32_t *word;
    pthread_t opener;
    atomic_bool is_cancelled;
    int delay_ms;
    bool has_opener;
};
void kit_gate_close(struct kit *kit, struct acre_stream *stream, struct kit_gate *gate);
/* The same by a kernel of more than one item. */
void kit_gate_close_by(struct kit *kit, struct acre_stream *stream, struct acre_grid grid,
                       struct kit_gate *gate);
void kit_gate_open(struct kit_gate *gate);
/* From a thread, so that a call that should not have waited is found and not waited for. */
void kit_gate_open_in(struct kit_gate *gate, int delay_ms);
/* After the stream was waited for. */
void kit_gate_finish(struct kit_gate *gate);

#endif
