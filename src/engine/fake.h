/* fake.h - an engine that runs nothing: runs last as long as the settings say.
 *
 * For tests, and for `acre serve --engine fake --sim FILE` (every run ends at once: to try out a
 * policy, or to measure the queue alone); it obeys the same contract as the others. Its runs live
 * in a world that outlives the engine, as processes outlive a daemon: close and open again is what
 * a restart is to a real one. Time is the loop's, or (loop NULL) virtual: the owner of the world
 * advances it. Faults come by seed. One thread. */
#ifndef ACRE_ENGINE_FAKE_H
#define ACRE_ENGINE_FAKE_H

#include "engine/engines.h"

/* What becomes of one run. All zero: it starts at once and exits with 0 at once. */
struct fake_plan {
    uint64_t start_ms;      /* from start() to its beginning */
    uint64_t run_ms;        /* from its beginning to its end */
    uint64_t term_ms;       /* from SIGTERM to its end, if grace is longer */
    enum run_ending ending; /* EXITED, SIGNALED, OUT_OF_MEMORY, NOT_STARTED */
    int code;
    uint64_t peak_ram_mib, cpu_ms;
    char text[64]; /* of NOT_STARTED */
};

struct fake_faults {         /* each of 1000 */
    uint32_t lost_milli;     /* a fact is not told, until someone asks again */
    uint32_t late_milli;     /* ... is told up to late_ms later */
    uint32_t repeated_milli; /* ... is told twice */
    uint32_t vanished_milli; /* a run is lost when it should begin */
    uint32_t refused_milli;  /* a run is NOT_STARTED */
    uint64_t late_ms;
};

struct fake_world;

struct fake_world_options {
    uint64_t seed, now_ms;
    struct fake_faults faults;
    /* Decides what becomes of a run; NULL: all zero. */
    void (*plan)(void *context, const struct acre_run_spec *spec, struct fake_plan *plan);
    void *context;
};

struct fake_world *fake_world_create(const struct fake_world_options *options);
void fake_world_destroy(struct fake_world *world); /* NULL is fine; engines closed */

/* Virtual time: when something happens next (UINT64_MAX: nothing will), and going there. Facts
 * are told to the engine that is open, in order of time. */
uint64_t fake_world_next_ms(const struct fake_world *world);
void fake_world_advance(struct fake_world *world, uint64_t now_ms);
/* How many runs began, so that nothing was started twice; and how many go on now. */
uint64_t fake_world_began(const struct fake_world *world);
uint64_t fake_world_running(const struct fake_world *world);

struct fake_options {
    struct fake_world *world;             /* one engine at a time */
    const struct acre_engine_node *nodes; /* reported when it is opened */
    uint32_t node_count;
};

/* What a cluster does by itself, reported to the engine that is open. */
void fake_join(struct fake_world *world, const struct acre_engine_node *node);
void fake_lose(struct fake_world *world, const char *node, const char *why);
void fake_write(struct fake_world *world, struct acre_run run, int stream, uint64_t offset,
                const char *text);

#endif
