/* baseline.c - the rules published with the packing experiment, to compare with.
 *
 *   random    any node that fits; any of its devices that fits
 *   best-fit  100 (1 - (CPU left / 128 cores + GPU left / 8) / 2), truncated; tightest device
 *   fgd       100 / (1 + exp(-d / 1000)), truncated, d the fragmentation that the placement
 *             removes: F = sum over typical tasks of weight x the node's idle GPU that such a
 *             task could not use (all of it when the task does not fit the node at all). Typical
 *             are the commonest of the whole list that together make 95 % of it: this rule, as
 *             published, knows the mix in advance, CPU-only tasks included, RAM left out.
 *
 * The highest score wins, the first node in the list on a tie; whole devices are the first idle
 * ones. Scores are cached per node and kind of task until the node changes. This shares nothing
 * with the ledger on purpose: these are other people's rules, as simple as published. */
#include "sim/packer.h"

#include "core/rand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64 };
#define SPEC_CPU_MILLI 128000.0 /* the largest node of the published experiment */
#define SPEC_GPU_MILLI 8000.0
#define TYPICAL_PART   0.95
#define DOES_NOT_FIT   INT32_MIN /* a node larger than that scores below 0 */

struct host {
    uint32_t cpu_milli;
    uint32_t ram_mib;
    uint32_t model;
    uint32_t gpus;
    uint32_t version; /* grows with every change */
    uint32_t free_milli[DEVICES_MAX];
};

struct kept {
    uint32_t version; /* of the host when scored, + 1 */
    int32_t score;    /* or DOES_NOT_FIT */
    uint32_t device;
};

struct typical {
    const struct trace_task *task;
    double weight;
};

struct baseline {
    const struct acre_trace *trace;
    int32_t (*score)(const struct baseline *self, struct host *host, const struct trace_task *task,
                     uint32_t *ret_device);
    struct host *hosts;
    uint32_t *kind_of_task;
    uint32_t kind_count;
    struct kept *kept; /* by kind and host */
    struct typical *typical;
    uint32_t typical_count;
    struct acre_rand rand;
};

static bool model_allowed(const struct trace_task *task, uint32_t model) {
    bool allowed = task->models[0] == 0;
    for (uint32_t i = 0; i < ACRE_REQUEST_MODELS_MAX && task->models[i] != 0; i++) {
        allowed |= task->models[i] == model;
    }
    return allowed;
}

static uint32_t devices_with(const struct host *host, uint32_t milli) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < host->gpus; d++) {
        count += host->free_milli[d] >= milli;
    }
    return count;
}

static bool fits(const struct host *host, const struct trace_task *task) {
    return host->cpu_milli >= task->cpu_milli && host->ram_mib >= task->ram_mib &&
           (task->gpus == 0 ||
            (model_allowed(task, host->model) && devices_with(host, task->milli) >= task->gpus));
}

static uint32_t free_total(const struct host *host) {
    uint32_t total = 0;
    for (uint32_t d = 0; d < host->gpus; d++) {
        total += host->free_milli[d];
    }
    return total;
}

/* Take a share of `device`, or whole devices from the first idle one on. */
static void take(struct host *host, const struct trace_task *task, uint32_t device) {
    host->cpu_milli -= task->cpu_milli;
    host->ram_mib -= task->ram_mib;
    host->version++;
    if (task->gpus == 1 && task->milli < 1000) {
        host->free_milli[device] -= task->milli;
        return;
    }
    uint32_t left = task->gpus;
    for (uint32_t d = 0; d < host->gpus && left > 0; d++) {
        if (host->free_milli[d] >= task->milli) {
            host->free_milli[d] -= task->milli;
            left--;
        }
    }
}

static int32_t score_best_fit(const struct baseline *self, struct host *host,
                              const struct trace_task *task, uint32_t *ret_device) {
    (void)self;
    uint32_t tightest = 0;
    for (uint32_t d = 0; d < host->gpus; d++) {
        bool better = host->free_milli[tightest] < task->milli ||
                      host->free_milli[d] < host->free_milli[tightest];
        if (host->free_milli[d] >= task->milli && better) {
            tightest = d;
        }
    }
    *ret_device = tightest;
    double cpu_left = (double)(host->cpu_milli - task->cpu_milli) / SPEC_CPU_MILLI;
    double gpu_left = (double)(free_total(host) - task->gpus * task->milli) / SPEC_GPU_MILLI;
    return (int32_t)(100 * (1 - (0.5 * cpu_left + 0.5 * gpu_left)));
}

static double fragmentation(const struct baseline *self, const struct host *host) {
    double sum = 0;
    double total = free_total(host);
    for (uint32_t i = 0; i < self->typical_count; i++) {
        const struct trace_task *task = self->typical[i].task;
        double lost = total;
        if (task->gpus > 0 && model_allowed(task, host->model) &&
            host->cpu_milli >= task->cpu_milli && devices_with(host, task->milli) >= task->gpus) {
            lost = 0;
            for (uint32_t d = 0; d < host->gpus; d++) {
                lost += host->free_milli[d] < task->milli ? host->free_milli[d] : 0;
            }
        }
        sum += self->typical[i].weight * lost;
    }
    return sum;
}

static int32_t score_fgd(const struct baseline *self, struct host *host,
                         const struct trace_task *task, uint32_t *ret_device) {
    bool is_share = task->gpus == 1 && task->milli < 1000;
    double before = fragmentation(self, host);
    int32_t best = DOES_NOT_FIT;
    for (uint32_t d = 0; d < (is_share ? host->gpus : 1); d++) {
        if (is_share && host->free_milli[d] < task->milli) {
            continue;
        }
        struct host after = *host;
        take(&after, task, d);
        double removed = before - fragmentation(self, &after);
        int32_t score = (int32_t)(100 / (1 + exp(-removed / 1000)));
        if (score > best) {
            best = score;
            *ret_device = d;
        }
    }
    return best;
}

static bool place_by_score(void *context, const struct trace_task *task) {
    struct baseline *self = context;
    uint32_t kind = self->kind_of_task[task - self->trace->tasks];
    struct kept *kept = &self->kept[(size_t)kind * self->trace->node_count];
    const struct kept *best = NULL;
    for (uint32_t i = 0; i < self->trace->node_count; i++) {
        struct host *host = &self->hosts[i];
        if (kept[i].version != host->version + 1) {
            kept[i] = (struct kept){.version = host->version + 1, .score = DOES_NOT_FIT};
            if (fits(host, task)) {
                kept[i].score = self->score(self, host, task, &kept[i].device);
            }
        }
        if (kept[i].score > (best != NULL ? best->score : DOES_NOT_FIT)) {
            best = &kept[i];
        }
    }
    if (best != NULL) {
        take(&self->hosts[best - kept], task, best->device);
    }
    return best != NULL;
}

static bool place_at_random(void *context, const struct trace_task *task) {
    struct baseline *self = context;
    struct host *chosen = NULL;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < self->trace->node_count; i++) {
        if (fits(&self->hosts[i], task) && acre_rand_below(&self->rand, ++seen) == 0) {
            chosen = &self->hosts[i];
        }
    }
    if (chosen == NULL) {
        return false;
    }
    uint32_t device = 0;
    seen = 0;
    for (uint32_t d = 0; d < chosen->gpus && task->gpus > 0; d++) {
        if (chosen->free_milli[d] >= task->milli && acre_rand_below(&self->rand, ++seen) == 0) {
            device = d;
        }
    }
    take(chosen, task, device);
    return true;
}

/* Tasks sorted so that equal ones are neighbours. */
static int compare_tasks(const void *a, const void *b) {
    const struct trace_task *x = *(const struct trace_task *const *)a;
    const struct trace_task *y = *(const struct trace_task *const *)b;
    const uint32_t pairs[][2] = {
        {x->cpu_milli, y->cpu_milli}, {x->milli, y->milli}, {x->gpus, y->gpus}};
    for (size_t i = 0; i < ACRE_COUNT(pairs); i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return pairs[i][0] > pairs[i][1] ? -1 : 1; /* larger first */
        }
    }
    int models = memcmp(x->models, y->models, sizeof(x->models));
    return models != 0 ? models : (x->ram_mib > y->ram_mib) - (x->ram_mib < y->ram_mib);
}

static bool same_typical(const struct trace_task *a, const struct trace_task *b) {
    return a->cpu_milli == b->cpu_milli && a->milli == b->milli && a->gpus == b->gpus &&
           memcmp(a->models, b->models, sizeof(a->models)) == 0;
}

static int heavier_first(const void *a, const void *b) {
    const struct typical *x = a;
    const struct typical *y = b;
    if (x->weight != y->weight) {
        return x->weight < y->weight ? 1 : -1;
    }
    return compare_tasks(&x->task, &y->task);
}

/* Number the kinds of tasks and find the typical ones. */
static void learn_tasks(struct baseline *self) {
    const struct acre_trace *trace = self->trace;
    const struct trace_task **sorted = acre_calloc(trace->task_count, sizeof(*sorted));
    for (uint32_t i = 0; i < trace->task_count; i++) {
        sorted[i] = &trace->tasks[i];
    }
    qsort(sorted, trace->task_count, sizeof(*sorted), compare_tasks);
    self->kind_of_task = acre_calloc(trace->task_count, sizeof(*self->kind_of_task));
    self->typical = acre_calloc(trace->task_count, sizeof(*self->typical));
    for (uint32_t i = 0; i < trace->task_count; i++) {
        bool is_new = i == 0 || compare_tasks(&sorted[i - 1], &sorted[i]) != 0;
        self->kind_count += is_new;
        self->kind_of_task[sorted[i] - trace->tasks] = self->kind_count - 1;
        if (i == 0 || !same_typical(sorted[i - 1], sorted[i])) {
            self->typical[self->typical_count++].task = sorted[i];
        }
        self->typical[self->typical_count - 1].weight++;
    }
    free(sorted);
    qsort(self->typical, self->typical_count, sizeof(*self->typical), heavier_first);
    double sum = 0;
    uint32_t kept = 0;
    while (kept < self->typical_count && sum < TYPICAL_PART * trace->task_count) {
        sum += self->typical[kept++].weight;
    }
    self->typical_count = kept;
    for (uint32_t i = 0; i < kept; i++) {
        self->typical[i].weight /= sum;
    }
}

static void *baseline_create(const struct acre_trace *trace, const struct packer *packer,
                             uint64_t seed) {
    struct baseline *self = acre_calloc(1, sizeof(*self));
    self->trace = trace;
    self->score = packer == &packer_fgd ? score_fgd : score_best_fit;
    acre_rand_seed(&self->rand, seed);
    self->hosts = acre_calloc(trace->node_count, sizeof(*self->hosts));
    for (uint32_t i = 0; i < trace->node_count; i++) {
        const struct trace_node *node = &trace->nodes[i];
        self->hosts[i] = (struct host){.cpu_milli = node->cpu_milli,
                                       .ram_mib = node->ram_mib,
                                       .model = node->model,
                                       .gpus = node->gpus};
        for (uint32_t d = 0; d < node->gpus; d++) {
            self->hosts[i].free_milli[d] = 1000;
        }
    }
    learn_tasks(self);
    self->kept = acre_calloc((size_t)self->kind_count * trace->node_count, sizeof(*self->kept));
    return self;
}

static void baseline_destroy(void *context) {
    struct baseline *self = context;
    free(self->hosts);
    free(self->kind_of_task);
    free(self->kept);
    free(self->typical);
    free(self);
}

const struct packer packer_best_fit = {
    .about = {"best-fit", "as published: least CPU and GPU left on the node"},
    .create = baseline_create,
    .place = place_by_score,
    .destroy = baseline_destroy,
};
const struct packer packer_fgd = {
    .about = {"fgd", "as published: largest drop in fragmentation (ATC'23)"},
    .create = baseline_create,
    .place = place_by_score,
    .destroy = baseline_destroy,
};
const struct packer packer_random = {
    .about = {"random", "as published: any node that fits"},
    .create = baseline_create,
    .place = place_at_random,
    .destroy = baseline_destroy,
};
