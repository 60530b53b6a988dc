/* test_engine_bpf.c - ENG-1, part 7 of isolation: a job opens its own device nodes and no other.
 *
 * The program is run by a small interpreter on a table of accesses, then loaded into the kernel
 * and tried by a process that joins the cgroup. The kernel asks the filter before the driver: a
 * node without a driver answers ENXIO when it is allowed and EPERM when it is not. */
#include "engine/bpf.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

enum { R = ACRE_BPF_READ, W = ACRE_BPF_WRITE, M = ACRE_BPF_MKNOD };

/* Majors 240 to 254 are for local use: no driver here has them. */
static const struct bpf_rule gpu_rules[] = {
    {'c', R | W, 240, 0},
    {'c', R | W, 241, ACRE_BPF_ANY},
    {'b', R, 242, 5},
};

static uint64_t interpret(const struct bpf_insn *program, uint32_t length,
                          const struct bpf_cgroup_dev_ctx *input) {
    uint64_t reg[11] = {[1] = (uintptr_t)input};
    for (uint32_t at = 0; at < length; at++) {
        const struct bpf_insn *i = &program[at];
        uint64_t immediate = (uint64_t)(int64_t)i->imm;
        uint32_t word;
        switch (i->code) {
        case BPF_LDX | BPF_MEM | BPF_W:
            REQUIRE(reg[i->src_reg] == (uintptr_t)input);
            memcpy(&word, (const char *)input + i->off, sizeof(word));
            reg[i->dst_reg] = word;
            break;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            reg[i->dst_reg] = immediate;
            break;
        case BPF_ALU64 | BPF_MOV | BPF_X:
            reg[i->dst_reg] = reg[i->src_reg];
            break;
        case BPF_ALU64 | BPF_AND | BPF_K:
            reg[i->dst_reg] &= immediate;
            break;
        case BPF_ALU64 | BPF_RSH | BPF_K:
            reg[i->dst_reg] >>= immediate;
            break;
        case BPF_JMP | BPF_JNE | BPF_K:
            REQUIRE(i->off > 0);
            at += reg[i->dst_reg] != immediate ? (uint32_t)i->off : 0;
            break;
        case BPF_JMP | BPF_EXIT:
            return reg[0];
        default:
            acre_test_context("code 0x%x at %u", i->code, at);
            REQUIRE(false);
        }
    }
    REQUIRE(false); /* ran off the end */
    return 0;
}

static bool allows(const struct bpf_insn *program, uint32_t length, char type, unsigned access,
                   uint32_t major, uint32_t minor) {
    uint32_t wanted = ((access & R) != 0 ? BPF_DEVCG_ACC_READ : 0u) |
                      ((access & W) != 0 ? BPF_DEVCG_ACC_WRITE : 0u) |
                      ((access & M) != 0 ? BPF_DEVCG_ACC_MKNOD : 0u);
    uint32_t kind = type == 'c' ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK;
    struct bpf_cgroup_dev_ctx input = {wanted << 16 | kind, major, minor};
    uint64_t answer = interpret(program, length, &input);
    CHECK(answer <= 1);
    return answer == 1;
}

static void denies_all_but_base_and_rules(void) {
    static const struct {
        char type;
        unsigned access;
        uint32_t major, minor;
        bool allowed;
    } rows[] = {
        {'c', R, 1, 3, true},        {'c', R | W, 1, 3, true},     {'c', R | W | M, 1, 3, true},
        {'c', R | W, 1, 5, true},    {'c', W, 1, 7, true},         {'c', R, 1, 8, true},
        {'c', R, 1, 9, true},        {'c', R | W, 5, 0, true},     {'c', R | W, 5, 2, true},
        {'c', R | W, 136, 0, true},  {'c', R | W, 136, 777, true}, {'c', R | W, 240, 0, true},
        {'c', W, 240, 0, true},      {'c', R, 241, 0, true},       {'c', R, 241, 1048575, true},
        {'b', R, 242, 5, true},      {'c', R, 1, 1, false}, /* mem */
        {'c', R, 1, 11, false},                             /* kmsg */
        {'c', R | W, 5, 1, false},                          /* console */
        {'c', M, 5, 2, false},       {'c', R | M, 136, 0, false},  {'b', R, 1, 3, false},
        {'c', R, 240, 1, false},     {'c', R | M, 240, 0, false},  {'c', R, 239, 0, false},
        {'b', R, 240, 0, false},     {'b', W, 242, 5, false},      {'b', R | W, 242, 5, false},
        {'c', R, 242, 5, false},     {'b', R, 242, 6, false},      {'b', R, 8, 0, false},
        {'c', R | W, 195, 0, false}, {'c', R | W, 226, 128, false}};
    struct bpf_insn program[ACRE_BPF_PROGRAM_MAX];
    uint32_t length;
    REQUIRE_EQ(bpf_build(gpu_rules, ACRE_COUNT(gpu_rules), program, &length, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%c %u:%u access %u", rows[i].type, rows[i].major, rows[i].minor,
                          rows[i].access);
        CHECK_EQ(
            allows(program, length, rows[i].type, rows[i].access, rows[i].major, rows[i].minor),
            rows[i].allowed);
    }
}

static void without_rules_only_the_base_is_open(void) {
    struct bpf_insn program[ACRE_BPF_PROGRAM_MAX];
    uint32_t length;
    REQUIRE_EQ(bpf_build(NULL, 0, program, &length, NULL), 0);
    CHECK(allows(program, length, 'c', R | W, 1, 3));
    CHECK(!allows(program, length, 'c', R, 240, 0));
    CHECK(!allows(program, length, 'c', R, 195, 255));
}

static void the_longest_list_fits(void) {
    uint32_t base_count;
    bpf_base(&base_count);
    struct bpf_rule rules[ACRE_BPF_RULES_MAX + 1];
    for (uint32_t i = 0; i < ACRE_COUNT(rules); i++) {
        rules[i] = (struct bpf_rule){'b', R | W, 4095, i};
    }
    struct bpf_insn program[ACRE_BPF_PROGRAM_MAX];
    struct acre_error err;
    uint32_t length = 0, most = ACRE_BPF_RULES_MAX - base_count;
    REQUIRE_EQ(bpf_build(rules, most, program, &length, &err), 0);
    CHECK(length <= ACRE_BPF_PROGRAM_MAX);
    CHECK(allows(program, length, 'b', R, 4095, most - 1));
    CHECK(!allows(program, length, 'b', R, 4095, most));
    CHECK_EQ(bpf_build(rules, most + 1, program, &length, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "249 device rules");
}

static void refuses_rules_out_of_range(void) {
    static const struct bpf_rule rows[] = {
        {'x', R, 1, 1}, {'c', 0, 1, 1}, {'c', 8, 1, 1}, {'c', R, 4096, 1}, {'c', R, 1, 1 << 20},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bpf_insn program[ACRE_BPF_PROGRAM_MAX];
        struct acre_error err;
        uint32_t length = 77;
        acre_test_context("row %zu", i);
        CHECK_EQ(bpf_build(&rows[i], 1, program, &length, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "device rule 0");
        CHECK_U64(length, 77);
        CHECK_EQ(bpf_allow_v1(-1, &rows[i], 1, &err), ACRE_EINVALID);
        CHECK_EQ(bpf_attach(-1, &rows[i], 1, &err), ACRE_EINVALID);
    }
}

static void rules_read_as_v1_spells_them(void) {
    static const struct {
        struct bpf_rule rule;
        const char *text;
    } rows[] = {
        {{'c', R | W | M, 1, 3}, "c 1:3 rwm"},
        {{'c', R | W, 136, ACRE_BPF_ANY}, "c 136:* rw"},
        {{'b', R, ACRE_BPF_ANY, ACRE_BPF_ANY}, "b *:* r"},
        {{'c', R | W | M, 4095, 1048575}, "c 4095:1048575 rwm"},
    };
    char text[40];
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        CHECK_STR(bpf_rule_text(&rows[i].rule, text), rows[i].text);
    }
}

/* --- the real thing --- */

static const char *const cgroups[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};

/* A new directory of cgroup v2 (or of v1 `devices`); skips where there is none. */
static int make_cgroup(bool v1, char path[128]) {
    if (geteuid() != 0) {
        acre_test_skip("needs root");
    }
    if (v1) {
        snprintf(path, 128, "/sys/fs/cgroup/devices/acre-test-%d", (int)getpid());
        if (access("/sys/fs/cgroup/devices/devices.allow", F_OK) != 0 || mkdir(path, 0755) != 0) {
            acre_test_skip("no cgroup v1 devices directory here");
        }
    } else {
        size_t i = access("/sys/fs/cgroup/unified/cgroup.procs", F_OK) == 0 ? 0 : 1;
        char procs[64];
        snprintf(procs, sizeof(procs), "%s/cgroup.controllers", cgroups[i]);
        snprintf(path, 128, "%s/acre-test-%d", cgroups[i], (int)getpid());
        if (access(procs, F_OK) != 0 || mkdir(path, 0755) != 0) {
            acre_test_skip("no cgroup v2 directory here");
        }
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    return fd;
}

/* errno of open("<major>:<minor>") in a process that joined the cgroup; 0: it opened. */
static int open_inside(int cgroup_fd, int flags, unsigned major, unsigned minor) {
    char node[64];
    snprintf(node, sizeof(node), "/tmp/acre-node-%d", (int)getpid());
    unlink(node);
    if (mknod(node, S_IFCHR | 0666, makedev(major, minor)) != 0) {
        return -1;
    }
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int procs = openat(cgroup_fd, "cgroup.procs", O_WRONLY);
        if (procs < 0 || write(procs, "0", 1) != 1) {
            _exit(255);
        }
        int fd = open(node, flags);
        _exit(fd >= 0 ? 0 : errno);
    }
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    unlink(node);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) != 255);
    return WEXITSTATUS(status);
}

static void check_open(int fd) {
    CHECK_EQ(open_inside(fd, O_RDWR, 1, 3), 0);
    CHECK_EQ(open_inside(fd, O_RDWR, 240, 0), ENXIO);   /* ours: the driver is asked */
    CHECK_EQ(open_inside(fd, O_RDONLY, 241, 9), ENXIO); /* any minor */
    CHECK_EQ(open_inside(fd, O_RDWR, 240, 1), EPERM);   /* another GPU */
    CHECK_EQ(open_inside(fd, O_RDONLY, 1, 11), EPERM);  /* kmsg */
    CHECK_EQ(open_inside(fd, O_RDONLY, 1, 1), EPERM);   /* mem */
}

static void the_kernel_enforces_it(void) {
    char path[128];
    struct acre_error err = {0};
    int fd = make_cgroup(false, path);
    int r = bpf_attach(fd, gpu_rules, ACRE_COUNT(gpu_rules), &err);
    if (r == ACRE_EUNSUPPORTED || r == ACRE_EDENIED) {
        rmdir(path);
        acre_test_skip("%s", err.text);
    }
    CHECK_EQ(r, 0);
    if (open_inside(fd, O_RDWR, 240, 0) == -1) {
        rmdir(path);
        acre_test_skip("no device nodes can be made here");
    }
    check_open(fd);
    /* A second call replaces the first: it does not add to what both must allow. */
    static const struct bpf_rule other = {'c', R | W, 240, 1};
    CHECK_EQ(bpf_attach(fd, &other, 1, &err), 0);
    CHECK_EQ(open_inside(fd, O_RDWR, 240, 1), ENXIO);
    CHECK_EQ(open_inside(fd, O_RDWR, 240, 0), EPERM);
    close(fd);
    CHECK_EQ(rmdir(path), 0);
}

static void version_one_enforces_it_too(void) {
    char path[128];
    struct acre_error err = {0};
    int fd = make_cgroup(true, path);
    CHECK_EQ(bpf_allow_v1(fd, gpu_rules, ACRE_COUNT(gpu_rules), &err), 0);
    check_open(fd);
    close(fd);
    CHECK_EQ(rmdir(path), 0);
}

static void other_directories_are_refused(void) {
    struct acre_error err;
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    REQUIRE(fd >= 0);
    CHECK(bpf_attach(fd, NULL, 0, &err) < 0);
    CHECK_HAS(err.text, "device filter");
    CHECK_EQ(bpf_allow_v1(fd, NULL, 0, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "devices.deny");
    close(fd);
    CHECK(bpf_attach(-1, NULL, 0, &err) < 0);
}

static const struct acre_test tests[] = {
    {"denies_all_but_base_and_rules", denies_all_but_base_and_rules, 0},
    {"without_rules_only_the_base_is_open", without_rules_only_the_base_is_open, 0},
    {"the_longest_list_fits", the_longest_list_fits, 0},
    {"refuses_rules_out_of_range", refuses_rules_out_of_range, 0},
    {"rules_read_as_v1_spells_them", rules_read_as_v1_spells_them, 0},
    {"the_kernel_enforces_it", the_kernel_enforces_it, 0},
    {"version_one_enforces_it_too", version_one_enforces_it_too, 0},
    {"other_directories_are_refused", other_directories_are_refused, 0},
};
ACRE_TEST_MAIN(tests)
