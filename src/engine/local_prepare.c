/* local_prepare.c - everything that is decided about a start before it is sent: account,
 * environment, device nodes.
 *
 * The environment is clean: what the daemon was started with does not leak into jobs. Of two
 * values for a name the stronger wins: devices and ACRE_* over the job's own, those over the
 * base. libc finds the first one of a name, so the strongest come first, and weaker ones of the
 * same name are left out. What is the same for all members is sent once. */
#include "engine/local_state.h"

#include "core/clock.h"
#include "core/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOGIN_KEPT_MS = 60000, ENVIRONMENT_MAX = ACRE_WIRE_START_MAX, MEMBERS_MAX = 65536 };

/* ---- account ---- */

static int find_login(struct local *self, const char *user, const struct login **ret_login,
                      struct acre_error *err) {
    struct acre_clock clock = acre_clock_real();
    uint64_t now_ms = acre_clock_monotonic_ns(&clock) / 1000000;
    size_t at = 0;
    while (at < self->login_count && strcmp(self->logins[at].user, user) != 0) {
        at++;
    }
    if (at < self->login_count && now_ms < self->logins[at].until_ms) {
        *ret_login = &self->logins[at].login;
        return 0;
    }
    if (strlen(user) >= sizeof(self->logins[0].user)) {
        return acre_fail(err, ACRE_EINVALID,
                         "user: a name of %zu bytes is too long; accepted: at most %zu",
                         strlen(user), sizeof(self->logins[0].user) - 1);
    }
    struct login login;
    struct login_rules rules = {.run_as = self->run_as,
                                .allow_root = self->allow_root,
                                .min_uid = self->min_uid,
                                .own = geteuid()};
    int r = login_find(user, &rules, &login, err);
    if (r < 0) {
        return r;
    }
    at = ACRE_MIN(at, (size_t)ACRE_LOCAL_LOGINS - 1); /* full: the last place is reused */
    self->login_count = ACRE_MAX(self->login_count, at + 1);
    acre_str_copy(self->logins[at].user, sizeof(self->logins[at].user), acre_str_from(user));
    self->logins[at].until_ms = now_ms + LOGIN_KEPT_MS;
    self->logins[at].login = login;
    *ret_login = &self->logins[at].login;
    return 0;
}

/* ---- environment ---- */

static void put(struct acre_buf *out, const char *name, const char *value) {
    acre_buf_printf(out, "%s=%s", name, value);
    acre_buf_putc(out, '\0');
}

static void put_number(struct acre_buf *out, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    put(out, name, text);
}

static void put_base(struct acre_buf *out, const struct login *login) {
    const char *const base[][2] = {
        {"PATH", "/usr/local/bin:/usr/bin:/bin"},
        {"HOME", login->home},
        {"USER", login->name},
        {"LOGNAME", login->name},
        {"SHELL", login->shell},
        {"TMPDIR", "/tmp"},
    };
    for (size_t i = 0; i < ACRE_COUNT(base); i++) {
        char name[16];
        snprintf(name, sizeof(name), "%s=", base[i][0]);
        if (!wire_has_name(out->data, out->length, name)) {
            put(out, base[i][0], base[i][1]);
        }
    }
}

/* The same for all members. */
static int put_common(const struct acre_run_spec *spec, const struct login *login,
                      struct acre_buf *out, struct acre_error *err) {
    for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++) {
        acre_buf_append(out, spec->env[i], strlen(spec->env[i]) + 1);
    }
    put_base(out, login);
    return acre_buf_failed(out)
               ? acre_fail(err, ACRE_ELIMIT, "environment: longer than %d bytes", ENVIRONMENT_MAX)
               : 0;
}

static int put_own(struct local *self, const struct acre_run_spec *spec, uint32_t member,
                   struct acre_buf *out, struct acre_error *err) {
    const struct acre_run_device *mps = NULL;
    char pipe[108] = "";
    int r = visible_mps(spec->devices, spec->device_count, member, &mps, err);
    if (r == 0 && mps != NULL) {
        ACRE_ASSERT(self->mps != NULL); /* taken before */
        mps_pipe(self->mps, mps->id, pipe);
    }
    r = r == 0 ? visible_environment(self->roots, spec->devices, spec->device_count, member,
                                     mps != NULL ? pipe : NULL, out, err)
               : r;
    if (r < 0) {
        return r;
    }
    put_number(out, "ACRE_JOB_ID", spec->run.job);
    put_number(out, "ACRE_ATTEMPT", spec->run.attempt);
    put(out, "ACRE_NODE", spec->nodes != NULL ? spec->nodes[member] : "");
    put_number(out, "ACRE_RANK", member);
    put_number(out, "ACRE_MEMBERS", spec->members);
    return acre_buf_failed(out)
               ? acre_fail(err, ACRE_ELIMIT, "environment: longer than %d bytes", ENVIRONMENT_MAX)
               : 0;
}

/* ---- all of it ---- */

static int find_rules(struct local *self, const struct acre_run_spec *spec,
                      struct bpf_rule rules[ACRE_BPF_RULES_MAX], uint32_t *ret_count,
                      struct acre_error *err) {
    struct visible_nodes nodes = {0};
    int r = visible_find_nodes(self->roots, spec->devices, spec->device_count, ACRE_VISIBLE_ALL,
                               &nodes, err);
    if (r == 0 && nodes.count > ACRE_BPF_RULES_MAX) {
        r = acre_fail(err, ACRE_ELIMIT,
                      "%" PRIu32 " device nodes are too many; accepted: at most %d", nodes.count,
                      ACRE_BPF_RULES_MAX);
    }
    for (uint32_t i = 0; r == 0 && i < nodes.count; i++) {
        rules[i] = nodes.items[i].rule;
    }
    *ret_count = r == 0 ? nodes.count : 0;
    visible_nodes_finish(&nodes);
    return r;
}

static int encode(struct local *self, const struct acre_run_spec *spec, const struct login *login,
                  const struct acre_buf *common, const struct acre_buf *own,
                  struct acre_buf *message, struct acre_error *err) {
    struct bpf_rule rules[ACRE_BPF_RULES_MAX];
    struct wire_job job;
    memset(&job, 0, sizeof(job)); /* padding too: it travels */
    int r = find_rules(self, spec, rules, &job.rule_count, err);
    if (r < 0) {
        return r;
    }
    job.run = spec->run;
    job.uid = login->uid;
    job.gid = login->gid;
    job.group_count = login->group_count;
    job.groups = login->groups;
    job.rules = rules;
    job.common = common->data;
    job.common_bytes = common->length;
    job.member_count = spec->members;
    while (spec->argv[job.argument_count] != NULL) {
        job.argument_count++;
    }
    job.arguments = (char **)(uintptr_t)spec->argv;
    job.pids_max = spec->pids_max > 0 ? spec->pids_max : self->pids_max;
    job.warn_signal = spec->warn_signal > 0 && spec->warn_signal < 32 ? spec->warn_signal : SIGUSR1;
    job.cpu_milli = spec->cpu_milli;
    job.ram_mib = spec->ram_mib;
    if (spec->ram_mib == 0 && self->limits.memory_milli > 0 && self->cgroup.ram_mib > 0) {
        job.ram_mib = ACRE_MAX(self->cgroup.ram_mib * self->limits.memory_milli / 1000, 1);
        job.ram_is_default = true;
    }
    job.limit_ms = spec->limit_ms;
    job.warn_ms = spec->warn_ms;
    job.grace_ms = spec->grace_ms;
    job.no_network = spec->no_network;
    job.private_processes = spec->private_processes;
    job.any_directory = spec->directory == NULL || spec->directory[0] == '\0';
    job.directory = job.any_directory ? login->home : spec->directory;
    job.has_stdin = spec->stdin_text != NULL;
    job.stdin_text = spec->stdin_text;
    job.stdin_bytes = job.has_stdin ? strlen(spec->stdin_text) : 0;
    acre_buf_init(message, ACRE_WIRE_START_MAX);
    r = wire_encode(&job, own, message, err);
    if (r < 0) {
        acre_buf_finish(message);
    }
    return r;
}

int local_prepare(struct local *self, const struct acre_run_spec *spec, struct acre_buf *message,
                  uid_t *ret_user, struct acre_error *err) {
    ACRE_ASSERT(spec->members > 0 && spec->argv != NULL && spec->argv[0] != NULL);
    if (spec->members > MEMBERS_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "members: %" PRIu32 " is too many; accepted: at most %d",
                         spec->members, MEMBERS_MAX);
    }
    if (spec->no_network && !self->is_root) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "network: only a daemon that runs as root can cut a job off the network");
    }
    if (spec->private_processes && !self->is_root) {
        return acre_fail(
            err, ACRE_EUNSUPPORTED,
            "private_processes: only a daemon that runs as root can hide other processes from a "
            "job; set it to false in the policy, or run the daemon as root");
    }
    const struct login *login = NULL;
    int r = find_login(self, spec->user, &login, err);
    if (r < 0) {
        return r;
    }
    struct acre_buf common;
    acre_buf_init(&common, ENVIRONMENT_MAX);
    r = put_common(spec, login, &common, err);
    struct acre_buf *own = acre_calloc(spec->members, sizeof(*own));
    for (uint32_t i = 0; i < spec->members; i++) {
        acre_buf_init(&own[i], ENVIRONMENT_MAX);
        r = r == 0 ? put_own(self, spec, i, &own[i], err) : r;
    }
    r = r == 0 ? encode(self, spec, login, &common, own, message, err) : r;
    for (uint32_t i = 0; i < spec->members; i++) {
        acre_buf_finish(&own[i]);
    }
    free(own);
    acre_buf_finish(&common);
    if (r == 0) {
        *ret_user = login->uid;
    }
    return r;
}
