/* pipeline.c - a pipeline's plan (GRN-3), and its run: one array in, one array out (pieces.c). */
#include "compute/auto/pieces.h"
#include "compute/program.h"

#include <inttypes.h>

enum { PART_ITEMS_MIN = 256 };

int acre_pipeline_plan(uint64_t items, uint32_t in_bytes, uint32_t out_bytes,
                       uint64_t available_bytes, struct acre_pipeline_plan *ret_plan,
                       struct acre_error *err) {
    uint64_t item_bytes = (uint64_t)in_bytes + out_bytes;
    if (item_bytes == 0) {
        return acre_fail(err, ACRE_EINVALID,
                         "in_bytes and out_bytes are both 0; at least one must be 1 or more");
    }
    uint64_t usable = available_bytes / 5 * 4 + available_bytes % 5 * 4 / 5;
    if (usable / item_bytes < PART_ITEMS_MIN) {
        return acre_fail(err, ACRE_ENOFIT,
                         "%d items of %" PRIu64 " bytes do not fit into 80 %% of %" PRIu64
                         " bytes of device memory",
                         PART_ITEMS_MIN, item_bytes, available_bytes);
    }
    uint64_t part = ACRE_MAX(usable / item_bytes, (uint64_t)PART_ITEMS_MIN);
    *ret_plan = (struct acre_pipeline_plan){
        .items = items, .part_items = part, .parts = items / part + (items % part != 0)};
    return 0;
}

int acre_pipeline_run(const struct acre_pipeline *pipeline, struct acre_pipeline_report *ret_report,
                      struct acre_error *err) {
    struct pieces_array arrays[2];
    uint32_t count = 0;
    if (ret_report != NULL) { /* what is refused has nothing that failed */
        *ret_report =
            (struct acre_pipeline_report){.kernel_efficiency = -1, .failed_item = UINT64_MAX};
    }
    if (pipeline == NULL || (pipeline->kernel_count > 0 && pipeline->kernels == NULL)) {
        return acre_fail(err, ACRE_EINVALID, "%s: NULL; at least one kernel is required",
                         pipeline == NULL ? "pipeline" : "pipeline: kernels");
    }
    for (uint32_t i = 0; i < pipeline->kernel_count; i++) {
        int r = kernel_check(pipeline->kernels[i], err);
        if (r < 0) {
            return acre_fail_in(err, r, "pipeline: kernels[%u]", i);
        }
    }
    if (pipeline->items > 0 && ((pipeline->in_bytes > 0 && pipeline->in == NULL) ||
                                (pipeline->out_bytes > 0 && pipeline->out == NULL))) {
        return acre_fail(
            err, ACRE_EINVALID,
            "pipeline: %s: NULL; accepted: memory for %" PRIu64 " items, or an item size of 0",
            pipeline->in_bytes > 0 && pipeline->in == NULL ? "in" : "out", pipeline->items);
    }
    if (pipeline->in_bytes > 0) {
        arrays[count++] = (struct pieces_array){.in = pipeline->in, .in_bytes = pipeline->in_bytes};
    }
    if (pipeline->out_bytes > 0) {
        arrays[count++] =
            (struct pieces_array){.out = pipeline->out, .out_bytes = pipeline->out_bytes};
    }
    for (uint32_t i = 0; i < pipeline->more_count; i++) {
        if (pipeline->more[i].kind == ACRE_ARG_BUFFER && pipeline->kernel_count > 1) {
            return acre_fail(err, ACRE_EINVALID,
                             "pipeline: more[%u] is a buffer, which belongs to one context; with "
                             "several kernels only values are accepted",
                             i);
        }
    }
    const struct pieces pieces = {.kernels = pipeline->kernels,
                                  .kernel_count = pipeline->kernel_count,
                                  .arrays = arrays,
                                  .array_count = count,
                                  .items = pipeline->items,
                                  .tells_first = true,
                                  .more = pipeline->more,
                                  .more_count = pipeline->more_count,
                                  .piece_bytes = pipeline->piece_bytes,
                                  .slots = pipeline->slots};
    int r = pieces_run(&pieces, ret_report, err);
    return r < 0 ? acre_fail_in(err, r, "pipeline") : 0;
}
