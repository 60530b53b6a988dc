/* ledger_kit.h - small clusters, requests and answers for the tests of the ledger.
 *
 * A cluster is written as text: nodes "a", "b" ... separated by '|', their devices by blanks,
 * islands of fast links by '/'. A device is the shares on it: "0" idle, "300+200" two shares,
 * "500t" time-slicing, "500p" MPS, "x" drained. "@4000" ends a node with its CPU in milli (else
 * 64000). Devices are called "a/0", "a/1" ... and have KIT_MEMORY_MIB. Where something was placed
 * is text too: "a/0 a/1", or "a" for CPU and RAM alone.
 *
 * Every call that ends a test says the line of its caller. One thread. */
#ifndef ACRE_TEST_LEDGER_KIT_H
#define ACRE_TEST_LEDGER_KIT_H

#include "ledger/ledger.h"
#include "ledger/nodes.h"
#include "ledger/reservation.h"
#include "support/test.h"

enum {
    KIT_MEMORY_MIB = 81559, /* what an 80 GB H100 says: no tenth of it is a whole number */
    KIT_CPU_MILLI = 64000,
    KIT_RAM_MIB = 262144,
    KIT_NOW_MS = 1000,
    KIT_TEXT_MAX = 512,
};

struct acre_ledger *kit_create(enum acre_strategy strategy);
struct acre_ledger *kit_cluster(enum acre_strategy strategy, const char *text);
/* Checks the ledger once more; NULL is fine. */
void kit_destroy(struct acre_ledger *ledger);

/* A node of `count` equal devices. */
uint32_t kit_add(struct acre_ledger *ledger, const char *name, uint32_t count, uint64_t memory_mib);
/* A node of these devices; those without an id get "name/0" ... */
uint32_t kit_add_devices(struct acre_ledger *ledger, const char *name,
                         const struct acre_device_spec *devices, uint32_t count);
uint32_t kit_device(const struct acre_ledger *ledger, const char *id);
uint32_t kit_name(struct acre_ledger *ledger, const char *text);

struct acre_request kit_share(uint32_t milli);
struct acre_request kit_memory(uint64_t mib);
struct acre_request kit_both(uint32_t milli, uint64_t mib);
struct acre_request kit_whole(uint32_t gpus);
struct acre_request kit_cpu(uint64_t cpu_milli, uint64_t ram_mib);
struct acre_request kit_gang(uint32_t replicas, uint32_t gpus, uint32_t milli);

struct acre_ledger_device kit_row(const struct acre_ledger *ledger, const char *id);

bool kit_same_part(const struct acre_part *a, const struct acre_part *b);

/* Everything the public interface shows, as text to compare. The caller frees it. */
char *kit_snapshot(const struct acre_ledger *ledger);
/* "a/0 a/1" into `text`, "-" when there is no such allocation; returns `text`. */
char *kit_where(const struct acre_ledger *ledger, uint64_t id, char *text, size_t size);

/* The ledger's own check finds nothing. */
#define KIT_SOUND(ledger) kit_sound((ledger), __FILE__, __LINE__)
void kit_sound(const struct acre_ledger *ledger, const char *file, int line);

/* Allocate at KIT_NOW_MS: it must succeed. Returns the id. */
#define KIT_TAKE(ledger, request) kit_take((ledger), (request), __FILE__, __LINE__)
uint64_t kit_take(struct acre_ledger *ledger, struct acre_request request, const char *file,
                  int line);

/* Allocate and plan at KIT_NOW_MS: both must be refused with this code and a text that contains
 * `part`, and nothing may change. */
#define KIT_REFUSED(ledger, request, code, part)                                                   \
    kit_refused((ledger), (request), (code), (part), __FILE__, __LINE__)
void kit_refused(struct acre_ledger *ledger, struct acre_request request, int code,
                 const char *part, const char *file, int line);

#define KIT_RELEASE(ledger, id) kit_release((ledger), (id), __FILE__, __LINE__)
void kit_release(struct acre_ledger *ledger, uint64_t id, const char *file, int line);

/* Allocate and say where it went; "-" when refused. The text must be this. */
#define KIT_PLACED(ledger, request, where)                                                         \
    kit_placed((ledger), (request), (where), __FILE__, __LINE__)
uint64_t kit_placed(struct acre_ledger *ledger, struct acre_request request, const char *where,
                    const char *file, int line);

#endif
