/* bpf.c - a list of allowed devices as a small eBPF program, or as lines for cgroup v1.
 *
 * The kernel runs the program on each open and mknod of a device node by a process of the cgroup
 * and hands it the type, the access wanted, major and minor. The program is the list, unrolled:
 * each rule is a few compares that jump to the next rule when one does not match; the first that
 * matches answers 1 (allow), the end answers 0. No maps, no helpers, no jump backwards, so the
 * verifier has nothing to object to and any kernel since 4.15 takes it.
 *
 * Everything is denied but the list, as systemd's DevicePolicy=closed does: a list of what is
 * forbidden would be out of date with the next driver. The program is attached as one of several
 * (ALLOW_MULTI): all of them, also those of the directories above, must allow. */
#include "engine/bpf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAJOR_END = 1 << 12, /* the kernel's dev_t has 12 and 20 bits */
    MINOR_END = 1 << 20,
    ALL_ACCESS = ACRE_BPF_READ | ACRE_BPF_WRITE | ACRE_BPF_MKNOD,
    READ_WRITE = ACRE_BPF_READ | ACRE_BPF_WRITE,
    ATTACHED_MAX = 16, /* programs on one directory; the kernel allows 64 */
};

#define PROGRAM_NAME "acre_devices"

static const struct bpf_rule base[] = {
    {'c', ALL_ACCESS, 1, 3},              /* null */
    {'c', ALL_ACCESS, 1, 5},              /* zero */
    {'c', ALL_ACCESS, 1, 7},              /* full */
    {'c', ALL_ACCESS, 1, 8},              /* random */
    {'c', ALL_ACCESS, 1, 9},              /* urandom */
    {'c', ALL_ACCESS, 5, 0},              /* tty */
    {'c', READ_WRITE, 5, 2},              /* ptmx */
    {'c', READ_WRITE, 136, ACRE_BPF_ANY}, /* pts */
};

const struct bpf_rule *bpf_base(uint32_t *ret_count) {
    *ret_count = ACRE_COUNT(base);
    return base;
}

static void format_number(uint32_t number, char text[12]) {
    if (number == ACRE_BPF_ANY) {
        snprintf(text, 12, "*");
    } else {
        snprintf(text, 12, "%u", number);
    }
}

char *bpf_rule_text(const struct bpf_rule *rule, char text[40]) {
    char major[12], minor[12];
    format_number(rule->major, major);
    format_number(rule->minor, minor);
    snprintf(text, 40, "%c %s:%s %s%s%s", rule->type, major, minor,
             (rule->access & ACRE_BPF_READ) != 0 ? "r" : "",
             (rule->access & ACRE_BPF_WRITE) != 0 ? "w" : "",
             (rule->access & ACRE_BPF_MKNOD) != 0 ? "m" : "");
    return text;
}

static int check_rules(const struct bpf_rule *rules, uint32_t count, struct acre_error *err) {
    if (count > ACRE_BPF_RULES_MAX - ACRE_COUNT(base)) {
        return acre_fail(err, ACRE_ELIMIT, "%u device rules are too many; accepted: at most %zu",
                         count, ACRE_BPF_RULES_MAX - ACRE_COUNT(base));
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct bpf_rule *rule = &rules[i];
        bool type_ok = rule->type == 'c' || rule->type == 'b';
        bool access_ok = rule->access != 0 && (rule->access & ~ALL_ACCESS) == 0;
        bool major_ok = rule->major < MAJOR_END || rule->major == ACRE_BPF_ANY;
        bool minor_ok = rule->minor < MINOR_END || rule->minor == ACRE_BPF_ANY;
        if (!type_ok || !access_ok || !major_ok || !minor_ok) {
            return acre_fail(err, ACRE_EINVALID,
                             "device rule %u is not valid: type 0x%02x, %u:%u, access %u; "
                             "accepted: type c or b, major below %u, minor below %u, access 1 to 7",
                             i, (unsigned char)rule->type, rule->major, rule->minor, rule->access,
                             MAJOR_END, MINOR_END);
        }
    }
    return 0;
}

/* Registers: r2 type, r3 access wanted, r4 major, r5 minor; r1 the context, then scratch. */
static struct bpf_insn load(unsigned to, size_t offset) {
    return (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W,
                             .dst_reg = to & 0xfu,
                             .src_reg = BPF_REG_1,
                             .off = (int16_t)offset};
}

static struct bpf_insn compute(uint8_t operation, unsigned to, int32_t value) {
    return (struct bpf_insn){
        .code = (uint8_t)(BPF_ALU64 | operation | BPF_K), .dst_reg = to & 0xfu, .imm = value};
}

static struct bpf_insn copy(unsigned to, unsigned from) {
    return (struct bpf_insn){
        .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to & 0xfu, .src_reg = from & 0xfu};
}

/* Jump when the register is something else; the distance is filled in by end_rule. */
static struct bpf_insn unless(unsigned reg, uint32_t value) {
    return (struct bpf_insn){
        .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = reg & 0xfu, .imm = (int32_t)value};
}

static struct bpf_insn leave(void) {
    return (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
}

/* Make the jumps of a rule that begins at `first` go behind it. */
static void end_rule(struct bpf_insn *program, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        if (program[i].code == (BPF_JMP | BPF_JNE | BPF_K)) {
            program[i].off = (int16_t)(end - i - 1);
        }
    }
}

static int32_t kernel_access(uint8_t access) {
    return ((access & ACRE_BPF_READ) != 0 ? BPF_DEVCG_ACC_READ : 0) |
           ((access & ACRE_BPF_WRITE) != 0 ? BPF_DEVCG_ACC_WRITE : 0) |
           ((access & ACRE_BPF_MKNOD) != 0 ? BPF_DEVCG_ACC_MKNOD : 0);
}

static uint32_t put_rule(struct bpf_insn *program, uint32_t at, const struct bpf_rule *rule) {
    uint32_t first = at;
    program[at++] = unless(BPF_REG_2, rule->type == 'c' ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK);
    if (rule->access != ALL_ACCESS) { /* nothing may be wanted that is not in the rule */
        program[at++] = copy(BPF_REG_1, BPF_REG_3);
        program[at++] = compute(BPF_AND, BPF_REG_1, ~kernel_access(rule->access));
        program[at++] = unless(BPF_REG_1, 0);
    }
    if (rule->major != ACRE_BPF_ANY) {
        program[at++] = unless(BPF_REG_4, rule->major);
    }
    if (rule->minor != ACRE_BPF_ANY) {
        program[at++] = unless(BPF_REG_5, rule->minor);
    }
    program[at++] = compute(BPF_MOV, BPF_REG_0, 1);
    program[at++] = leave();
    end_rule(program, first, at);
    return at;
}

int bpf_build(const struct bpf_rule *rules, uint32_t count,
              struct bpf_insn ret_program[ACRE_BPF_PROGRAM_MAX], uint32_t *ret_length,
              struct acre_error *err) {
    int r = check_rules(rules, count, err);
    if (r < 0) {
        return r;
    }
    uint32_t at = 0;
    ret_program[at++] = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    ret_program[at++] = copy(BPF_REG_3, BPF_REG_2);
    ret_program[at++] = compute(BPF_AND, BPF_REG_2, 0xffff);
    ret_program[at++] = compute(BPF_RSH, BPF_REG_3, 16);
    ret_program[at++] = load(BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, major));
    ret_program[at++] = load(BPF_REG_5, offsetof(struct bpf_cgroup_dev_ctx, minor));
    for (size_t i = 0; i < ACRE_COUNT(base); i++) {
        at = put_rule(ret_program, at, &base[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        at = put_rule(ret_program, at, &rules[i]);
    }
    ret_program[at++] = compute(BPF_MOV, BPF_REG_0, 0);
    ret_program[at++] = leave();
    ACRE_ASSERT(at <= ACRE_BPF_PROGRAM_MAX);
    *ret_length = at;
    return 0;
}

static int call_bpf(int command, union bpf_attr *attr) {
    return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load_program(const struct bpf_insn *program, uint32_t length) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr)); /* the kernel refuses rest bytes that are not 0 */
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = length;
    attr.license = (uintptr_t) "Apache-2.0";
    memcpy(attr.prog_name, PROGRAM_NAME, sizeof(PROGRAM_NAME));
    return call_bpf(BPF_PROG_LOAD, &attr);
}

static bool is_ours(int program_fd) {
    struct bpf_prog_info info;
    union bpf_attr attr;
    memset(&info, 0, sizeof(info));
    memset(&attr, 0, sizeof(attr));
    attr.info.bpf_fd = (uint32_t)program_fd;
    attr.info.info_len = sizeof(info);
    attr.info.info = (uintptr_t)&info;
    return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 && strcmp(info.name, PROGRAM_NAME) == 0;
}

/* The program that an earlier call attached to this directory, or -1. */
static int find_earlier(int directory_fd) {
    uint32_t ids[ATTACHED_MAX];
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.query.target_fd = (uint32_t)directory_fd;
    attr.query.attach_type = BPF_CGROUP_DEVICE;
    attr.query.prog_ids = (uintptr_t)ids;
    attr.query.prog_cnt = ATTACHED_MAX;
    if (call_bpf(BPF_PROG_QUERY, &attr) != 0) {
        return -1;
    }
    uint32_t count = ACRE_MIN(attr.query.prog_cnt, (uint32_t)ATTACHED_MAX);
    for (uint32_t i = 0; i < count; i++) {
        memset(&attr, 0, sizeof(attr));
        attr.prog_id = ids[i];
        int fd = call_bpf(BPF_PROG_GET_FD_BY_ID, &attr);
        if (fd >= 0 && is_ours(fd)) {
            return fd;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return -1;
}

static int attach_program(int directory_fd, int program_fd) {
    int earlier = find_earlier(directory_fd);
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.target_fd = (uint32_t)directory_fd;
    attr.attach_bpf_fd = (uint32_t)program_fd;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    if (earlier >= 0) {
        attr.attach_flags |= BPF_F_REPLACE;
        attr.replace_bpf_fd = (uint32_t)earlier;
    }
    int r = call_bpf(BPF_PROG_ATTACH, &attr);
    int errnum = errno;
    if (earlier >= 0) {
        close(earlier);
    }
    errno = errnum;
    return r;
}

static int fail_bpf(struct acre_error *err, int errnum, const char *what) {
    bool unknown = errnum == EINVAL || errnum == ENOSYS;
    if (unknown) {
        return acre_fail(
            err, ACRE_EUNSUPPORTED,
            "device filter: the kernel did not %s; it needs CONFIG_CGROUP_BPF and cgroup v2", what);
    }
    return acre_fail_errno(err, errnum, "device filter: %s", what);
}

int bpf_attach(int directory_fd, const struct bpf_rule *rules, uint32_t count,
               struct acre_error *err) {
    struct bpf_insn program[ACRE_BPF_PROGRAM_MAX];
    uint32_t length;
    int r = bpf_build(rules, count, program, &length, err);
    if (r < 0) {
        return r;
    }
    int program_fd = load_program(program, length);
    if (program_fd < 0) {
        return fail_bpf(err, errno, "load the program");
    }
    if (attach_program(directory_fd, program_fd) != 0) {
        r = fail_bpf(err, errno, "attach the program");
    }
    close(program_fd); /* the cgroup holds it */
    return r;
}

static int write_line(int directory_fd, const char *file, const char *line,
                      struct acre_error *err) {
    int fd = openat(directory_fd, file, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "%s", file);
    }
    ssize_t written = write(fd, line, strlen(line));
    int errnum = errno;
    close(fd);
    return written < 0 ? acre_fail_errno(err, errnum, "%s: '%s'", file, line) : 0;
}

int bpf_allow_v1(int directory_fd, const struct bpf_rule *rules, uint32_t count,
                 struct acre_error *err) {
    char text[40];
    int r = check_rules(rules, count, err);
    if (r == 0) {
        r = write_line(directory_fd, "devices.deny", "a", err);
    }
    for (size_t i = 0; r == 0 && i < ACRE_COUNT(base); i++) {
        r = write_line(directory_fd, "devices.allow", bpf_rule_text(&base[i], text), err);
    }
    for (uint32_t i = 0; r == 0 && i < count; i++) {
        r = write_line(directory_fd, "devices.allow", bpf_rule_text(&rules[i], text), err);
    }
    return r;
}
