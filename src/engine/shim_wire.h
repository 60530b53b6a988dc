/* shim_wire.h - what daemon, spawner and shims say to each other.
 *
 * They are always the same build (the daemon starts the spawner from its own image), so structs
 * travel as they are; lengths are checked all the same. Descriptors the spawner is started with
 * have fixed numbers. Any thread. */
#ifndef ACRE_ENGINE_SHIM_WIRE_H
#define ACRE_ENGINE_SHIM_WIRE_H

#include "engine/cgroup.h"

#include <signal.h>

enum {
    ACRE_WIRE_SOCKET_FD = 3,      /* to the daemon, SOCK_SEQPACKET */
    ACRE_WIRE_STATE_FD = 4,       /* the state directory */
    ACRE_WIRE_LOCK_FD = 5,        /* <state>/engine.lock, locked; shims close it */
    ACRE_WIRE_INLINE_MAX = 65536, /* longer starts come in a memory file */
    ACRE_WIRE_START_MAX = 4 << 20,
    ACRE_WIRE_ACK_EVERY = 16,
};
#define ACRE_WIRE_MAGIC     UINT32_C(0x61637231) /* "acr1" */
#define ACRE_FACT_PIPE      "facts"              /* a FIFO: writes of one fact are atomic */
#define ACRE_RUNS_DIRECTORY "runs"
#define ACRE_LOGS_DIRECTORY "logs"

/* First message to the spawner; the seccomp program follows. */
struct acre_wire_hello {
    uint32_t magic;
    uint32_t filter_bytes;
    struct cgroup cgroup;
    uint64_t log_max_bytes; /* a stream's file; then it is renamed and begun again */
    bool is_root;
};

/* One start, as the shim sees it: strings and arrays point into the message. */
struct wire_job {
    struct acre_run run;
    uint32_t uid, gid;
    uint32_t group_count, member_count, argument_count, rule_count, pids_max;
    int32_t warn_signal;
    uint64_t cpu_milli, ram_mib, limit_ms, warn_ms, grace_ms, stdin_bytes;
    uint64_t common_bytes, own_bytes;
    uint8_t no_network, has_stdin, any_directory; /* no bool: any byte may come */
    uint8_t ram_is_default;
    uint8_t private_processes; /* in a PID namespace; the spawner looks at it */
    const uint32_t *groups;
    const struct bpf_rule *rules;
    const char *directory;
    char **arguments; /* NULL-terminated */
    /* Strings with their NULs: variables of all members, and stronger ones of each of them. */
    char *common, *own;
    const uint64_t *own_ends; /* of each member's part of `own` */
    char **environment;       /* room for one, made by decode */
    const char *stdin_text;
};

/* `own[i]` are the stronger variables of member i. The other fields as above. */
int wire_encode(const struct wire_job *job, const struct acre_buf *own, struct acre_buf *out,
                struct acre_error *err);
/* `bytes` (aligned as by malloc) must stay as long as the job. ACRE_ECORRUPT: not a start. */
int wire_decode(char *bytes, size_t length, struct wire_job *ret_job, struct acre_error *err);
/* NULL-terminated, its own variables first, and each name once. Good until the next call: one large
 * block that is given back as a whole, however many members there are. */
char **wire_environment(struct wire_job *job, uint32_t member);
/* Is the name of "NAME=value" among the strings of `text[0, length)`? */
bool wire_has_name(const char *text, size_t length, const char *assignment);
void wire_job_finish(struct wire_job *job); /* frees what decode allocated */

/* From the spawner to the daemon. */
struct shim_note {
    uint32_t handled; /* starts taken over since the last note: each has its record by now */
    uint32_t failed;  /* errno: `run` could not be forked; 0: none */
    int64_t lost_pid; /* a shim ended otherwise than by finishing its work; 0: none */
    struct acre_run run;
};

/* From a shim to the daemon, one write to the FIFO each; and, in the file runs/<name>, what is true
 * of the run so far. The file is locked (flock) by the shim as long as it lives. */
enum fact_kind {
    ACRE_FACT_NONE,
    ACRE_FACT_STARTED,
    ACRE_FACT_EXITED,
    ACRE_FACT_STARTING, /* before STARTED, and only when that takes long: the supervisor is there */
};
struct fact {
    uint32_t magic;
    uint32_t kind;
    struct acre_run run;
    int64_t shim_pid; /* pids are the daemon's, whatever namespace the run is in */
    int64_t pid;      /* first member's; 0: none */
    uint64_t started_ms;
    union {
        struct acre_run_result result; /* EXITED */
        struct {                       /* before */
            uint64_t is_known;         /* 0: of a supervisor that did not say it yet */
            uint64_t begun_ms;         /* monotonic, which all processes of one boot share */
            uint64_t limit_ms, grace_ms;
        } plan;
    };
    uint64_t checksum; /* of all before it */
};
_Static_assert(sizeof(struct fact) <= 512, "atomic on every system: _POSIX_PIPE_BUF");
void fact_seal(struct fact *fact);
bool fact_is_whole(const struct fact *fact);

/* Values of the real-time signal that asks a shim for something: enum acre_run_signal. */
#define ACRE_WIRE_SIGNAL SIGRTMIN

#endif
