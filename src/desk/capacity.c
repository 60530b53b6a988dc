/* capacity.c - nodes report to the table of ledger/capacity.h, out of what the desk knows.
 *
 * Nothing is kept up to date: a turn that may have changed something sets one flag, and reports are
 * made when somebody asks. They cost one walk over allocations and devices, as GET /nodes does;
 * while nothing changes a question costs the table's index alone, and every 30 s (CAP-2) they are
 * made again. The timer only notes how much of each device is given, for the trend. */
#include "desk/capacity.h"

#include "desk/inner.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    REPORT_MS = 30000,
    HISTORY = 4, /* two minutes: the means of its halves are one minute apart */
    NO_SAMPLE = UINT16_MAX,
};

/* --- reports -------------------------------------------------------------------------------- */

enum capacity_backend {
    BACKEND_CPU,
    BACKEND_UNKNOWN,
    BACKEND_MIXED,
    BACKEND_OPENCL,
    BACKEND_CUDA,
    BACKEND_HIP
};

static const char *const backend_names[] = {
    [BACKEND_CPU] = "cpu",       [BACKEND_UNKNOWN] = "unknown", [BACKEND_MIXED] = "mixed",
    [BACKEND_OPENCL] = "opencl", [BACKEND_CUDA] = "cuda",       [BACKEND_HIP] = "hip"};

const char *acre_desk_backend_name(uint32_t backend) {
    ACRE_ASSERT(backend < ACRE_COUNT(backend_names));
    return backend_names[backend];
}

static enum capacity_backend backend_of_device(const struct acre_engine_device *device) {
    if (strcmp(device->driver, "opencl") == 0) {
        return BACKEND_OPENCL;
    }
    return strcasecmp(device->vendor, "nvidia") == 0 ? BACKEND_CUDA
           : strcasecmp(device->vendor, "amd") == 0  ? BACKEND_HIP
                                                     : BACKEND_UNKNOWN;
}

static enum capacity_backend backend_of(const struct acre_desk *desk,
                                        const struct inventory_node *node) {
    enum capacity_backend found = BACKEND_CPU;
    for (uint32_t d = 0; d < node->device_count; d++) {
        enum capacity_backend one =
            backend_of_device(inventory_device(desk->inventory, node->first_device + d));
        found = d == 0 || found == one ? one : BACKEND_MIXED;
    }
    return found;
}

/* Jobs that hold something of each node, once a job and node. */
static uint32_t *count_jobs(const struct acre_desk *desk, uint32_t node_count) {
    uint32_t *depths = acre_calloc(node_count + 1U, sizeof(*depths));
    uint64_t *last = acre_calloc(node_count + 1U, sizeof(*last)); /* allocation counted there */
    struct acre_allocation allocation;
    for (uint32_t cursor = 0; acre_ledger_walk(desk->ledger, &cursor, &allocation);) {
        struct acre_job job;
        bool is_job = acre_sched_find(desk->sched, allocation.owner, &job) &&
                      job.allocation == allocation.id; /* else a reservation's */
        for (uint32_t i = 0; is_job && i < allocation.part_count; i++) {
            uint32_t node = allocation.parts[i].node;
            depths[node] += last[node] != allocation.id;
            last[node] = allocation.id;
        }
    }
    free(last);
    return depths;
}

static struct acre_capacity_report report_of(const struct acre_desk *desk, uint32_t index,
                                             uint32_t queue_depth, uint64_t now_ms) {
    const struct inventory_node *node = inventory_node(desk->inventory, index);
    uint64_t heard_ms = index < desk->capacity.node_count ? desk->capacity.heard_ms[index] : 0;
    struct acre_capacity_report report = {.device_count = node->device_count,
                                          .queue_depth = queue_depth,
                                          .backend = (uint32_t)backend_of(desk, node),
                                          .time_ms = heard_ms != 0 ? heard_ms : now_ms};
    for (uint32_t d = 0; d < node->device_count; d++) {
        struct acre_ledger_device device;
        acre_ledger_device_info(desk->ledger, node->first_device + d, &device);
        report.total_mib += device.memory_mib;
        report.available_mib += device.free_mib;
        report.largest_device_available_mib =
            ACRE_MAX(report.largest_device_available_mib, (uint64_t)device.free_mib);
    }
    return report;
}

/* What the table refuses is a reading that is too old; it drops the node by itself. */
static void refresh(struct acre_desk *desk) {
    struct desk_capacity *capacity = &desk->capacity;
    uint64_t now_ms = acre_desk_now(desk);
    if (!capacity->is_old && !desk->touched && now_ms - capacity->made_ms < REPORT_MS) {
        return;
    }
    uint32_t count = acre_ledger_node_count(desk->ledger);
    uint32_t *depths = count_jobs(desk, count);
    for (uint32_t node = 0; node < count; node++) {
        if (inventory_node(desk->inventory, node)->is_lost) {
            acre_capacity_unregister(capacity->table, node, now_ms);
            continue;
        }
        struct acre_capacity_report report = report_of(desk, node, depths[node], now_ms);
        acre_capacity_report(capacity->table, node, &report, now_ms, NULL);
    }
    free(depths);
    capacity->is_old = false;
    capacity->made_ms = now_ms;
}

bool acre_desk_capacity(struct acre_desk *desk, uint32_t node,
                        struct acre_capacity_view *ret_view) {
    refresh(desk);
    return acre_capacity_get(desk->capacity.table, node, acre_desk_now(desk), ret_view) == 0;
}

struct acre_capacity_stats acre_desk_capacity_stats(struct acre_desk *desk) {
    refresh(desk);
    return acre_capacity_stats(desk->capacity.table, acre_desk_now(desk));
}

/* --- the best node -------------------------------------------------------------------------- */

struct question {
    const struct acre_desk *desk;
    const struct acre_best_request *request;
};

static bool has_label(const void *context, uint32_t index, uint32_t label) {
    const struct question *question = context;
    const struct inventory_node *node = inventory_node(question->desk->inventory, index);
    uint32_t i = 0;
    while (i < node->label_count &&
           strcmp(node->labels[i], question->request->labels[label]) != 0) {
        i++;
    }
    return i < node->label_count;
}

/* Has one device the model, the vendor and the memory? Another device's memory would not help. */
static bool has_model(const void *context, uint32_t index, uint32_t model) {
    const struct question *question = context;
    const struct acre_best_request *request = question->request;
    const struct acre_inventory *inventory = question->desk->inventory;
    const struct inventory_node *node = inventory_node(inventory, index);
    bool found = false;
    for (uint32_t d = node->first_device; d < node->first_device + node->device_count && !found;
         d++) {
        const struct acre_engine_device *device = inventory_device(inventory, d);
        struct acre_ledger_device info;
        acre_ledger_device_info(question->desk->ledger, d, &info);
        found = info.free_mib > 0 && info.free_mib >= request->min_mib &&
                (request->model_count == 0 ||
                 strcasestr(device->model, request->models[model]) != NULL) &&
                (request->vendor == NULL || strcasecmp(device->vendor, request->vendor) == 0);
    }
    return found;
}

int acre_desk_best_node(struct acre_desk *desk, const struct acre_best_request *request,
                        struct acre_director_answer *ret_answer, struct acre_error *err) {
    refresh(desk);
    struct question question = {desk, request};
    struct acre_director_facts facts = {&question, has_label, has_model};
    uint32_t *numbers = acre_calloc(request->label_count + request->model_count + 1U,
                                    sizeof(*numbers)); /* texts by their places */
    uint32_t most = ACRE_MAX(request->label_count, request->model_count);
    for (uint32_t i = 0; i < most; i++) {
        numbers[i] = i;
    }
    bool any_vendor = request->vendor == NULL;
    struct acre_director_request asked = {
        .min_mib = request->min_mib,
        .local_node = request->near,
        .labels = numbers,
        .label_count = request->label_count,
        .models = numbers,
        /* A vendor alone is asked about as one model that every device has. */
        .model_count = request->model_count > 0 ? request->model_count : (any_vendor ? 0 : 1),
        .cpu_allowed = request->cpu_allowed,
    };
    uint64_t now_ms = acre_desk_now(desk);
    int r = acre_director_choose(desk->capacity.table, &facts, &asked, now_ms, ret_answer, err);
    if (r == 0) { /* a question takes nothing */
        acre_capacity_cancel(desk->capacity.table, ret_answer->token, now_ms);
        ret_answer->token = 0;
    }
    free(numbers);
    return r;
}

/* --- loads of devices ----------------------------------------------------------------------- */

static struct acre_balance_trend trend_of(const struct desk_capacity *capacity, uint32_t device,
                                          double queue) {
    double samples[HISTORY];
    uint32_t count = 0;
    for (uint32_t i = 0; i < HISTORY && device < capacity->device_count; i++) {
        uint16_t milli =
            capacity->history[(size_t)device * HISTORY + (capacity->ticks + i) % HISTORY];
        if (milli != NO_SAMPLE) {
            samples[count++] = milli / 1000.0;
        }
    }
    return acre_balance_trend(samples, count, queue);
}

void acre_desk_device_load(struct acre_desk *desk, uint32_t device,
                           struct acre_device_load *ret_load) {
    const struct acre_device_live *live = &inventory_device(desk->inventory, device)->live;
    struct acre_ledger_device info;
    acre_ledger_device_info(desk->ledger, device, &info);
    double queue = ACRE_MIN(info.milli_used, 1000U) / 1000.0;
    struct acre_balance_trend trend = trend_of(&desk->capacity, device, queue);
    bool is_read = live->sampled_ms != 0 && live->utilization_pct != ACRE_UNKNOWN;
    *ret_load = (struct acre_device_load){
        .load = {.queue = queue,
                 .predicted_queue = trend.predicted,
                 .trend = trend.direction,
                 .utilisation =
                     is_read ? (double)ACRE_MIN(live->utilization_pct, UINT64_C(100)) / 100.0 : 0,
                 .available_mib = info.free_mib,
                 .total_mib = info.memory_mib},
        .has_utilisation = is_read,
        .has_memory = info.memory_mib != 0,
        .drained = info.drained};
}

/* --- the rhythm ----------------------------------------------------------------------------- */

static void tick(void *context) {
    struct acre_desk *desk = context;
    struct desk_capacity *capacity = &desk->capacity;
    if (desk->ledger == NULL) {
        return;
    }
    uint32_t count = acre_ledger_device_count(desk->ledger);
    if (count > capacity->device_count) {
        capacity->history =
            acre_realloc(capacity->history, (size_t)count * HISTORY, sizeof(*capacity->history));
        for (size_t i = (size_t)capacity->device_count * HISTORY; i < (size_t)count * HISTORY;
             i++) {
            capacity->history[i] = NO_SAMPLE;
        }
        capacity->device_count = count;
    }
    uint32_t at = capacity->ticks++ % HISTORY;
    for (uint32_t d = 0; d < count; d++) {
        struct acre_ledger_device info;
        acre_ledger_device_info(desk->ledger, d, &info);
        capacity->history[(size_t)d * HISTORY + at] = (uint16_t)ACRE_MIN(info.milli_used, 1000U);
    }
}

void desk_heard(struct acre_desk *desk, uint32_t device) {
    struct desk_capacity *capacity = &desk->capacity;
    struct acre_ledger_device info;
    if (desk->ledger == NULL) {
        return;
    }
    acre_ledger_device_info(desk->ledger, device, &info);
    uint32_t count = inventory_nodes(desk->inventory);
    if (count > capacity->node_count) {
        capacity->heard_ms = acre_realloc(capacity->heard_ms, count, sizeof(*capacity->heard_ms));
        memset(capacity->heard_ms + capacity->node_count, 0,
               (count - capacity->node_count) * sizeof(*capacity->heard_ms));
        capacity->node_count = count;
    }
    capacity->heard_ms[info.node] = acre_desk_now(desk);
    capacity->is_old = true;
}

void desk_init_capacity(struct acre_desk *desk) {
    desk->capacity.table = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    desk->capacity.is_old = true;
}

void desk_start_capacity(struct acre_desk *desk) {
    tick(desk);
    desk->capacity.timer = acre_loop_timer(desk->options.loop, REPORT_MS, REPORT_MS, tick, desk);
}

void desk_finish_capacity(struct acre_desk *desk) {
    acre_timer_cancel(desk->capacity.timer);
    acre_capacity_destroy(desk->capacity.table);
    free(desk->capacity.heard_ms);
    free(desk->capacity.history);
    desk->capacity = (struct desk_capacity){0};
}
