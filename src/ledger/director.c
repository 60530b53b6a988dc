/* director.c - local, else best, else CPU, else a refusal with its numbers.
 *
 * Without labels and models the best node comes straight from the index (one walk of the tree).
 * With them the index is searched best first, asking about a node only if it fits and could still
 * win. When the search fails it has asked about every node that fits, so its counts are the
 * explanation: how many had the memory, how many of these lacked a label, how many the model. */
#include "ledger/director.h"

#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>

struct node_choice {
    const struct acre_director_facts *facts;
    const struct acre_director_request *request;
    uint32_t asked;
    uint32_t without_label;
    uint32_t without_model;
};

static bool has_labels(const struct node_choice *choice, uint32_t node) {
    for (uint32_t i = 0; i < choice->request->label_count; i++) {
        if (!choice->facts->has_label(choice->facts->context, node, choice->request->labels[i])) {
            return false;
        }
    }
    return true;
}

static bool has_model(const struct node_choice *choice, uint32_t node) {
    for (uint32_t i = 0; i < choice->request->model_count; i++) {
        if (choice->facts->has_model(choice->facts->context, node, choice->request->models[i])) {
            return true;
        }
    }
    return choice->request->model_count == 0;
}

static bool accept_gpu(void *context, uint32_t node) {
    struct node_choice *choice = context;
    choice->asked++;
    if (!has_labels(choice, node)) {
        choice->without_label++;
        return false;
    }
    if (!has_model(choice, node)) {
        choice->without_model++;
        return false;
    }
    return true;
}

static bool accept_cpu(void *context, uint32_t node) {
    return has_labels(context, node);
}

/* The preferred node, if it is fresh and of the wanted kind, fits and is accepted. */
static bool local_fits(struct acre_capacity *capacity, struct node_choice *choice, bool cpu,
                       uint64_t now_ms) {
    struct acre_capacity_view view;
    uint32_t node = choice->request->local_node;
    if (acre_capacity_get(capacity, node, now_ms, &view) < 0 || view.stale) {
        return false;
    }
    if (cpu) {
        return view.effective.device_count == 0 && accept_cpu(choice, node);
    }
    return acre_capacity_has(&view.effective) &&
           view.effective.largest_device_available_mib >= choice->request->min_mib &&
           has_labels(choice, node) && has_model(choice, node);
}

static int find_gpu(struct acre_capacity *capacity, struct node_choice *choice, uint64_t now_ms,
                    uint32_t *ret_node) {
    const struct acre_director_request *request = choice->request;
    if (local_fits(capacity, choice, false, now_ms)) {
        *ret_node = request->local_node;
        return 0;
    }
    bool constrained = request->label_count > 0 || request->model_count > 0;
    return acre_capacity_best_where(capacity, request->min_mib, now_ms,
                                    constrained ? accept_gpu : NULL, choice, ret_node);
}

static int find_cpu(struct acre_capacity *capacity, struct node_choice *choice, uint64_t now_ms,
                    uint32_t *ret_node) {
    if (local_fits(capacity, choice, true, now_ms)) {
        *ret_node = choice->request->local_node;
        return 0;
    }
    return acre_capacity_best_cpu(
        capacity, now_ms, choice->request->label_count > 0 ? accept_cpu : NULL, choice, ret_node);
}

/* Exact, so that a request that misses by one MiB is seen to. */
static const char *show_mib(uint64_t mib, char text[32]) {
    if (mib % 1024 == 0) {
        return acre_format_mib(mib, text, 32);
    }
    snprintf(text, 32, "%" PRIu64 " MiB", mib);
    return text;
}

static void explain(struct acre_capacity *capacity, const struct node_choice *choice,
                    uint64_t now_ms, char why[ACRE_DIRECTOR_WHY_MAX]) {
    struct acre_capacity_summary summary = acre_capacity_summarise(capacity, now_ms);
    char wanted[32], largest[32];
    int length = snprintf(why, ACRE_DIRECTOR_WHY_MAX,
                          "no GPU that fits has %s free: %" PRIu32 " node%s, %" PRIu32
                          " stale; the largest free device has %s",
                          choice->request->min_mib > 0 ? show_mib(choice->request->min_mib, wanted)
                                                       : "memory",
                          summary.nodes, summary.nodes == 1 ? "" : "s", summary.stale,
                          show_mib(summary.largest_device_available_mib, largest));
    ACRE_ASSERT(length > 0 && length < ACRE_DIRECTOR_WHY_MAX);
    if (choice->asked > 0) {
        snprintf(why + length, (size_t)(ACRE_DIRECTOR_WHY_MAX - length),
                 "; of %" PRIu32 " with enough memory, %" PRIu32 " lack a label and %" PRIu32
                 " lack such a GPU with the memory free",
                 choice->asked, choice->without_label, choice->without_model);
    }
}

int acre_director_choose(struct acre_capacity *capacity, const struct acre_director_facts *facts,
                         const struct acre_director_request *request, uint64_t now_ms,
                         struct acre_director_answer *ret_answer, struct acre_error *err) {
    ACRE_ASSERT(facts != NULL || (request->label_count == 0 && request->model_count == 0));
    struct node_choice choice = {.facts = facts, .request = request};
    struct acre_director_answer answer = {.node = ACRE_CAPACITY_NO_NODE};
    int r = find_gpu(capacity, &choice, now_ms, &answer.node);
    if (r < 0) {
        explain(capacity, &choice, now_ms, answer.why);
        r = request->cpu_allowed ? find_cpu(capacity, &choice, now_ms, &answer.node) : r;
        answer.is_cpu = true;
    }
    if (r < 0) {
        return acre_fail(err, ACRE_ENOFIT, "%s; %s", answer.why,
                         request->cpu_allowed ? "no node without GPUs is fresh and has the labels"
                                              : "nodes without GPUs are not allowed");
    }
    answer.is_local = answer.node == request->local_node;
    r = acre_capacity_reserve(capacity, answer.node, answer.is_cpu ? 0 : request->min_mib, now_ms,
                              &answer.token, err);
    if (r == 0) {
        *ret_answer = answer;
    }
    return r;
}
