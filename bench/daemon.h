/* daemon.h - a real daemon for benchmarks, and many clients of it in one thread.
 *
 * Programs only. Failures end the program with what went wrong. */
#ifndef ACRE_BENCH_DAEMON_H
#define ACRE_BENCH_DAEMON_H

#include "bench.h"

#include <sys/types.h>

struct bench_daemon {
    char folder[256], socket[300], state[300];
    char token[128]; /* of the admin, as the first start leaves it */
    uint16_t port;
    pid_t pid;
};

/* Starts `acre serve` on a new directory below `parent`, with `sim` as its nodes. */
void bench_daemon_start(struct bench_daemon *daemon, const char *parent, const char *sim);
/* End it and start it again on what it has recorded; ms until it answers. */
double bench_daemon_restart(struct bench_daemon *daemon, const char *sim);
void bench_daemon_stop(struct bench_daemon *daemon); /* and removes the directory */
void bench_wait_ms(int ms);
/* CPU time it has used so far, and its resident memory. */
double bench_daemon_cpu_s(const struct bench_daemon *daemon);
uint64_t bench_daemon_resident_kib(const struct bench_daemon *daemon);

/* One request and its answer (body alone; the caller frees it). */
char *bench_ask(const struct bench_daemon *daemon, const char *method, const char *path,
                const char *body, int *ret_status);

/* `connections` clients, each with one request at a time, until `seconds` are over or `most`
 * requests were answered (0: no limit). Latencies go to `times`. Returns how many were answered
 * with `status`; any other answer ends the program. */
struct bench_load {
    const struct bench_daemon *daemon;
    uint32_t connections;
    bool over_tcp; /* with a token; else the unix socket */
    const char *method, *path, *body;
    int status;
    double seconds;
    uint64_t most;
};
uint64_t bench_load_run(const struct bench_load *load, struct bench_times *times, size_t times_max);

#endif
