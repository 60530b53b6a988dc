/* ledger_kit.c - clusters from text, answers as text; see ledger_kit.h.
 *
 * Loads are put in place with acre_ledger_place, part by part, so that a cluster is exactly what
 * its text says and no strategy had a say in it. */
#include "support/ledger_kit.h"

#include "core/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEVICES_MAX = 64, SHARES_MAX = 16 };

/* The shares on one device of a cluster's text. */
struct load {
    uint32_t milli[SHARES_MAX];
    uint32_t count;
    enum acre_isolation isolation;
    bool drained;
};

struct acre_ledger *kit_create(enum acre_strategy strategy) {
    struct acre_ledger_options options = {.strategy = strategy};
    return acre_ledger_create(&options);
}

void kit_destroy(struct acre_ledger *ledger) {
    if (ledger != NULL) {
        KIT_SOUND(ledger);
        acre_ledger_destroy(ledger);
    }
}

static uint32_t add_node(struct acre_ledger *ledger, const char *name, uint64_t cpu_milli,
                         const struct acre_device_spec *devices, uint32_t count) {
    struct acre_device_spec named[DEVICES_MAX];
    char ids[DEVICES_MAX][64];
    for (uint32_t i = 0; i < count; i++) {
        named[i] = devices[i];
        if (named[i].id == NULL) {
            snprintf(ids[i], sizeof(ids[i]), "%s/%u", name, i);
            named[i].id = ids[i];
        }
    }
    struct acre_node_spec spec = {
        .name = name,
        .cpu_milli = cpu_milli,
        .ram_mib = KIT_RAM_MIB,
        .devices = named,
        .device_count = count,
    };
    uint32_t node = 0;
    struct acre_error err = {0};
    if (acre_ledger_add_node(ledger, &spec, &node, &err) < 0) {
        CHECK_STR(err.text, "");
        REQUIRE(false);
    }
    return node;
}

uint32_t kit_add_devices(struct acre_ledger *ledger, const char *name,
                         const struct acre_device_spec *devices, uint32_t count) {
    return add_node(ledger, name, KIT_CPU_MILLI, devices, count);
}

uint32_t kit_add(struct acre_ledger *ledger, const char *name, uint32_t count,
                 uint64_t memory_mib) {
    struct acre_device_spec devices[DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < count; i++) {
        devices[i] = (struct acre_device_spec){
            .model = "H100", .vendor = "nvidia", .memory_mib = memory_mib};
    }
    return add_node(ledger, name, KIT_CPU_MILLI, devices, count);
}

uint32_t kit_device(const struct acre_ledger *ledger, const char *id) {
    uint32_t device = 0;
    REQUIRE(acre_ledger_find_device(ledger, id, &device));
    return device;
}

uint32_t kit_name(struct acre_ledger *ledger, const char *text) {
    return acre_names_intern(acre_ledger_names(ledger), acre_str_from(text));
}

/* Read one device of the text; returns what follows it. */
static const char *read_load(const char *at, struct load *load) {
    *load = (struct load){0};
    if (*at == 'x') {
        load->drained = true;
        return at + 1;
    }
    for (;;) {
        char *end;
        unsigned long milli = strtoul(at, &end, 10);
        REQUIRE(end != at);
        REQUIRE(load->count < SHARES_MAX);
        at = end;
        if (milli > 0) {
            load->milli[load->count++] = (uint32_t)milli;
        }
        if (*at == 't' || *at == 'p') {
            load->isolation = *at == 't' ? ACRE_ISOLATION_TIME_SLICING : ACRE_ISOLATION_MPS;
            at++;
        }
        if (*at != '+') {
            return at;
        }
        at++;
    }
}

static void put_load(struct acre_ledger *ledger, uint32_t node, uint32_t device,
                     const struct load *load) {
    for (uint32_t i = 0; i < load->count; i++) {
        struct acre_request request = kit_share(load->milli[i]);
        request.isolation = load->isolation;
        struct acre_part part = {
            .node = node,
            .device = device,
            .milli = load->milli[i],
            .mib = KIT_MEMORY_MIB * load->milli[i] / 1000,
            .by_share = true,
        };
        uint64_t id;
        struct acre_error err = {0};
        acre_ledger_place(ledger, &request, &part, 1, 0, KIT_NOW_MS, &id, &err);
        CHECK_STR(err.text, "");
    }
    if (load->drained) {
        REQUIRE_EQ(acre_ledger_drain_device(ledger, device, "drained", NULL), 0);
    }
}

/* Read one node of the text and add it; returns what follows it. */
static const char *read_node(struct acre_ledger *ledger, const char *name, const char *at) {
    struct acre_device_spec devices[DEVICES_MAX] = {0};
    struct load loads[DEVICES_MAX];
    uint32_t count = 0;
    uint32_t island = 0;
    uint64_t cpu_milli = KIT_CPU_MILLI;
    for (; *at != '\0' && *at != '|'; at += *at == ' ' ? 1 : 0) {
        if (*at == '/') {
            island++;
            at++;
        } else if (*at == '@') {
            char *end;
            cpu_milli = strtoull(at + 1, &end, 10);
            at = end;
        } else if (*at != ' ') {
            devices[count] = (struct acre_device_spec){.model = "H100",
                                                       .vendor = "nvidia",
                                                       .memory_mib = KIT_MEMORY_MIB,
                                                       .island = island};
            at = read_load(at, &loads[count++]);
        }
    }
    uint32_t node = add_node(ledger, name, cpu_milli, devices, count);
    struct acre_ledger_node info;
    acre_ledger_node_info(ledger, node, &info);
    for (uint32_t i = 0; i < count; i++) {
        put_load(ledger, node, info.first_device + i, &loads[i]);
    }
    return at;
}

struct acre_ledger *kit_cluster(enum acre_strategy strategy, const char *text) {
    struct acre_ledger *ledger = kit_create(strategy);
    char name[2] = "a";
    const char *at = read_node(ledger, name, text);
    while (*at == '|') {
        name[0]++;
        at = read_node(ledger, name, at + 1);
    }
    KIT_SOUND(ledger);
    return ledger;
}

struct acre_request kit_share(uint32_t milli) {
    return kit_gang(1, 1, milli);
}

struct acre_request kit_memory(uint64_t mib) {
    return kit_both(0, mib);
}

struct acre_request kit_both(uint32_t milli, uint64_t mib) {
    struct acre_request request = kit_share(milli);
    request.mib = mib;
    return request;
}

struct acre_request kit_whole(uint32_t gpus) {
    return kit_gang(1, gpus, 1000);
}

struct acre_request kit_cpu(uint64_t cpu_milli, uint64_t ram_mib) {
    return (struct acre_request){
        .replicas = 1, .cpu_milli = cpu_milli, .ram_mib = ram_mib, .owner = 7};
}

struct acre_request kit_gang(uint32_t replicas, uint32_t gpus, uint32_t milli) {
    return (struct acre_request){.replicas = replicas, .gpus = gpus, .milli = milli, .owner = 7};
}

struct acre_ledger_device kit_row(const struct acre_ledger *ledger, const char *id) {
    struct acre_ledger_device row;
    acre_ledger_device_info(ledger, kit_device(ledger, id), &row);
    return row;
}

bool kit_same_part(const struct acre_part *a, const struct acre_part *b) {
    return a->node == b->node && a->device == b->device && a->milli == b->milli &&
           a->mib == b->mib && a->cpu_milli == b->cpu_milli && a->ram_mib == b->ram_mib &&
           a->by_share == b->by_share;
}

static void show_hosts(const struct acre_ledger *ledger, struct acre_buf *out) {
    for (uint32_t i = 0; i < acre_ledger_node_count(ledger); i++) {
        struct acre_ledger_node node;
        acre_ledger_node_info(ledger, i, &node);
        acre_buf_printf(out, "node %s devices %u+%u cpu %u/%u ram %u/%u%s\n", node.name,
                        node.first_device, node.device_count, node.cpu_free_milli, node.cpu_milli,
                        node.ram_free_mib, node.ram_mib, node.drained ? " drained" : "");
    }
    for (uint32_t i = 0; i < acre_ledger_device_count(ledger); i++) {
        struct acre_ledger_device row;
        acre_ledger_device_info(ledger, i, &row);
        acre_buf_printf(
            out, "device %s %s node %u mib %u foreign %u used %u by %u largest %u%s%s\n", row.id,
            row.model, row.node, row.memory_mib, row.foreign_mib, row.milli_used, row.allocations,
            row.largest_milli, row.drained ? " drained " : "", row.reason);
    }
}

static void show_allocations(const struct acre_ledger *ledger, struct acre_buf *out) {
    uint32_t cursor = 0;
    for (struct acre_allocation a; acre_ledger_walk(ledger, &cursor, &a);) {
        acre_buf_printf(out,
                        "allocation %" PRIu64 " owner %" PRIu64 " tenant %u %d %d %d %" PRIu64
                        "-%" PRIu64 " of %" PRIu64 ":",
                        a.id, a.owner, a.tenant, (int)a.status, (int)a.isolation, a.exclusive,
                        a.created_ms, a.expires_ms, a.reservation);
        for (uint32_t i = 0; i < a.part_count; i++) {
            const struct acre_part *part = &a.parts[i];
            acre_buf_printf(out, " %u/%u %u %u %u %u %d", part->node, part->device, part->milli,
                            part->mib, part->cpu_milli, part->ram_mib, part->by_share);
        }
        acre_buf_putc(out, '\n');
    }
}

static void show_reservations(const struct acre_ledger *ledger, struct acre_buf *out) {
    struct acre_reservation r = {0};
    while (acre_ledger_next_reservation(ledger, r.id, &r)) {
        acre_buf_printf(out,
                        "reservation %" PRIu64 " user %u %s %u %d %" PRIu64 "-%" PRIu64
                        " allocation %" PRIu64 ":",
                        r.id, r.user, acre_reservation_state_name(r.state), r.milli,
                        (int)r.isolation, r.start_ms, r.end_ms, r.allocation);
        for (uint32_t i = 0; i < r.device_count; i++) {
            acre_buf_printf(out, " %u", r.devices[i]);
        }
        acre_buf_putc(out, '\n');
    }
}

char *kit_snapshot(const struct acre_ledger *ledger) {
    struct acre_buf out;
    acre_buf_init(&out, (size_t)1 << 24);
    show_hosts(ledger, &out);
    show_allocations(ledger, &out);
    show_reservations(ledger, &out);
    REQUIRE(!acre_buf_failed(&out));
    return out.data;
}

char *kit_where(const struct acre_ledger *ledger, uint64_t id, char *text, size_t size) {
    struct acre_allocation allocation;
    if (!acre_ledger_find(ledger, id, &allocation)) {
        snprintf(text, size, "-");
        return text;
    }
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < allocation.part_count && length < size; i++) {
        const struct acre_part *part = &allocation.parts[i];
        struct acre_ledger_node node;
        acre_ledger_node_info(ledger, part->node, &node);
        const char *name = node.name;
        if (part->device != ACRE_DEVICE_NONE) {
            struct acre_ledger_device row;
            acre_ledger_device_info(ledger, part->device, &row);
            name = row.id;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? " " : "", name);
    }
    return text;
}

void kit_sound(const struct acre_ledger *ledger, const char *file, int line) {
    struct acre_error err = {0};
    acre_ledger_check(ledger, &err);
    acre_check_str(err.text, "", true, "acre_ledger_check", "nothing wrong", file, line);
}

uint64_t kit_take(struct acre_ledger *ledger, struct acre_request request, const char *file,
                  int line) {
    struct acre_error err = {0};
    uint64_t id = 0;
    int r = acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, &err);
    acre_check_str(err.text, "", false, "the refusal", "none", file, line);
    acre_check_i64(r, 0, true, "allocate", "success", file, line);
    kit_sound(ledger, file, line);
    return id;
}

void kit_refused(struct acre_ledger *ledger, struct acre_request request, int code,
                 const char *part, const char *file, int line) {
    char *before = kit_snapshot(ledger);
    uint64_t id = 4711;
    struct acre_error err = {0};
    int r = acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, &err);
    acre_check_i64(r, code, false, "allocate", "the code", file, line);
    acre_check_i64(err.code, code, false, "err.code", "the code", file, line);
    acre_check_has(err.text, part, file, line);
    acre_check_u64(id, 4711, false, "the id", "untouched", file, line);

    struct acre_error plan_err = {0};
    struct acre_part parts[64];
    uint32_t count = 4711;
    r = acre_ledger_plan(ledger, &request, KIT_NOW_MS, parts, ACRE_COUNT(parts), &count, &plan_err);
    if (r != ACRE_ELIMIT) {
        acre_check_i64(r, code, false, "plan", "the code", file, line);
        acre_check_str(plan_err.text, err.text, false, "plan says", "allocate says", file, line);
    }
    acre_check_u64(count, 4711, false, "the count", "untouched", file, line);
    acre_check_i64(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, NULL), code, false,
                   "allocate without err", "the code", file, line);

    char *after = kit_snapshot(ledger);
    acre_check_str(after, before, false, "afterwards", "before", file, line);
    free(before);
    free(after);
    kit_sound(ledger, file, line);
}

void kit_release(struct acre_ledger *ledger, uint64_t id, const char *file, int line) {
    struct acre_error err = {0};
    acre_ledger_release(ledger, id, ACRE_ALLOCATION_COMPLETED, KIT_NOW_MS, &err);
    acre_check_str(err.text, "", false, "release", "success", file, line);
    kit_sound(ledger, file, line);
}

uint64_t kit_placed(struct acre_ledger *ledger, struct acre_request request, const char *where,
                    const char *file, int line) {
    uint64_t id = 0;
    struct acre_error err = {0};
    acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, &err);
    char text[KIT_TEXT_MAX];
    kit_where(ledger, id, text, sizeof(text));
    acre_check_str(text, where, false, "placed", "where", file, line);
    kit_sound(ledger, file, line);
    return id;
}
