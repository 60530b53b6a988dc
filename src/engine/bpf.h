/* bpf.h - which device nodes the processes of a cgroup may open: everything else is refused.
 *
 * One list of rules, two ways to put it into force: an eBPF program attached to a cgroup v2
 * directory (raw bpf(2); it goes when the directory is removed), or the files devices.deny and
 * devices.allow of a v1 directory. Any thread. It does not find out which nodes a run needs
 * (visible.h). */
#ifndef ACRE_ENGINE_BPF_H
#define ACRE_ENGINE_BPF_H

#include "core/error.h"

#include <linux/bpf.h>

enum {
    ACRE_BPF_READ = 1,
    ACRE_BPF_WRITE = 2,
    ACRE_BPF_MKNOD = 4,
    ACRE_BPF_RULES_MAX = 256, /* 64 GPUs with three nodes each, and what all may open */
    ACRE_BPF_PROGRAM_MAX = 6 + ACRE_BPF_RULES_MAX * 8 + 2,
};
#define ACRE_BPF_ANY UINT32_MAX

struct bpf_rule {
    char type;      /* 'c' or 'b' */
    uint8_t access; /* ACRE_BPF_READ | ... */
    uint32_t major; /* under 4096, or ACRE_BPF_ANY */
    uint32_t minor; /* under 2^20, or ACRE_BPF_ANY */
};

/* What every run may open: null, zero, full, random, urandom, tty, ptmx, pts. */
const struct bpf_rule *bpf_base(uint32_t *ret_count);

/* The program that allows the base and `rules`, and nothing else. Pure. ACRE_EINVALID names the
 * rule that is out of range; ACRE_ELIMIT: too many. */
int bpf_build(const struct bpf_rule *rules, uint32_t count,
              struct bpf_insn ret_program[ACRE_BPF_PROGRAM_MAX], uint32_t *ret_length,
              struct acre_error *err);

/* Put base and rules into force for the cgroup v2 directory open as `directory_fd`, replacing
 * what an earlier call put there. ACRE_EDENIED: not permitted (no CAP_BPF, CAP_SYS_ADMIN);
 * ACRE_EUNSUPPORTED: this kernel has no device programs. */
int bpf_attach(int directory_fd, const struct bpf_rule *rules, uint32_t count,
               struct acre_error *err);

/* The same by the files of a v1 `devices` directory. When one line is refused, everything stays
 * denied but what was allowed before it. */
int bpf_allow_v1(int directory_fd, const struct bpf_rule *rules, uint32_t count,
                 struct acre_error *err);

/* "c 195:* rw", as v1 spells it and people read it. Returns `text`. */
char *bpf_rule_text(const struct bpf_rule *rule, char text[40]);

#endif
