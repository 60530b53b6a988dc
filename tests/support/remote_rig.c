/* See remote_rig.h. */
#include "support/remote_rig.h"

#include "support/test.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>

static void rig_make(struct rig *rig) {
    struct acre_error err = {0};
    struct native_region region;
    int r = rig->table->region_create(rig->seat, ACRE_MEMORY_MAPPED, HOST_BYTES, (void *)rig->words,
                                      &region, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    rig->host = region.handle;
    rig->issued = 0;
    atomic_store(rig->words, 0);
    REQUIRE_EQ(rig->table->stream_create(rig->seat, rig->host, 0, &rig->stream, &err), 0);
    acre_test_context("%s", "");
}

struct rig rig_open(const char *backend, uint32_t device) {
    struct rig rig = {0};
    struct acre_error err = {0};
    setenv("ACRE_RUNNER", strcmp(backend, "double") == 0 ? RUNNER_DOUBLE : RUNNER, 1);
    /* Sanitizers let it die of what it does. */
    setenv("ASAN_OPTIONS", "handle_segv=0:handle_abort=0:handle_sigill=0:use_sigaltstack=0", 1);
    setenv("TSAN_OPTIONS", "handle_segv=0:handle_abort=0:handle_sigill=0", 1);
    int r = remote_open(backend, device, &rig.seat, &err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", err.text); /* no such device here */
    }
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    rig.table = remote_table(rig.seat);
    void *host;
    REQUIRE_EQ(remote_map_host(rig.seat, HOST_BYTES, &host, &err), 0);
    rig.words = host;
    rig.numbers = (void *)((uint8_t *)host + NUMBERS_AT);
    rig_make(&rig);
    return rig;
}

struct rig rig_open_here(const struct backend *table) {
    struct rig rig = {.table = table};
    struct acre_error err = {0};
    int r = table->open(&rig.self, &err);
    r = r < 0 ? r : table->seat_open(rig.self, 0, &rig.seat, &err);
    if (r < 0) {
        acre_test_skip("%s", err.text);
    }
    void *host = mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(host != MAP_FAILED);
    rig.words = host;
    rig.numbers = (void *)((uint8_t *)host + NUMBERS_AT);
    rig_make(&rig);
    return rig;
}

void rig_close(struct rig *rig) {
    bool is_here = rig->table->close != NULL; /* the table of a remote seat goes with it */
    rig->table->seat_close(rig->seat);
    if (is_here) {
        rig->table->close(rig->self);
        munmap((void *)rig->words, HOST_BYTES);
    }
}

uint64_t rig_find(struct rig *rig, const char *name) {
    struct acre_error err = {0};
    struct kernel_facts facts;
    uint64_t module, kernel = 0;
    REQUIRE_EQ(rig->table->load(rig->seat, "kkk", 3, &module, &err), 0);
    REQUIRE_EQ(rig->table->kernel(rig->seat, module, name, &kernel, &facts, &err), 0);
    CHECK_EQ(facts.local_bytes, 3);
    return kernel;
}

struct native_launch rig_launch_of(uint64_t kernel) {
    return (struct native_launch){.kernel = kernel, .grid = {{1, 1, 1}, {1, 1, 1}}};
}

int rig_launch(struct rig *rig, const char *name, struct acre_error *err) {
    struct native_launch native = rig_launch_of(rig_find(rig, name));
    return rig->table->launch(rig->seat, rig->stream, &native, err);
}

int rig_add(struct rig *rig, uint64_t region, uint64_t offset, uint64_t count, uint32_t value,
            struct acre_error *err) {
    uint8_t extra[16] = {0};
    memcpy(extra, &value, sizeof(value));
    const struct native_arg args[] = {
        {.kind = ACRE_NATIVE_BUFFER, .region = region, .offset = offset, .length = 4 * count},
        {.kind = ACRE_NATIVE_VALUE, .bytes = 4}};
    struct native_launch native = rig_launch_of(1);
    native.args = args;
    native.arg_count = 2;
    native.extra = extra;
    native.extra_bytes = sizeof(extra);
    return rig->table->launch(rig->seat, rig->stream, &native, err);
}

int rig_reach(struct rig *rig, struct acre_error *err) {
    int r = rig->table->signal(rig->seat, rig->stream, ++rig->issued, err);
    bool is_here = rig->table->close != NULL;
    struct pollfd fd = {.fd = is_here ? -1 : remote_pidfd(rig->seat), .events = POLLIN};
    while (r == 0 && atomic_load(rig->words) < rig->issued) {
        if (poll(&fd, 1, 0) == 1) {
            return rig->table->check(rig->seat, err);
        }
    }
    return r == 0 && !is_here ? rig->table->stream_error(rig->seat, rig->stream, err) : r;
}

void rig_await_end(struct rig *rig) {
    struct pollfd fd = {.fd = remote_pidfd(rig->seat), .events = POLLIN};
    REQUIRE_EQ(poll(&fd, 1, 20000), 1);
}

void rig_restart(struct rig *rig) {
    struct acre_error err = {0};
    int r = remote_restart(rig->seat, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    rig_make(rig);
}

void rig_check_works(struct rig *rig) {
    struct acre_error err = {0};
    rig->numbers[0] = 5;
    CHECK_EQ(rig_add(rig, rig->host, NUMBERS_AT, 1, 7, &err), 0);
    CHECK_EQ(rig_reach(rig, &err), 0);
    CHECK_EQ(rig->numbers[0], 12);
}
