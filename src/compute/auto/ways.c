/* ways.c - the variants of an automatic call.
 *
 * Memory is kept between calls and grown to powers of two, and graphs are kept for each power of
 * two of items, so a call allocates nothing. Variants that copy put all arrays into one block: one
 * copy in, one copy out. On the CPU the kernel works on the caller's arrays in place. */
#include "compute/auto/inner.h"

#include "compute/auto/resident.h"
#include "compute/context.h"
#include "compute/cpu/cpu.h"
#include "compute/memory/buffer.h"
#include "compute/quiet.h"
#include "compute/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN_BYTES = 256, /* of arrays in a block: what devices read at once, and more */
    BLOCK_MIN_BYTES = 64 << 10,
    GROUP = 256,
    VALUE_ALIGN = 16,
};
#define MAPPED_MAX_BYTES (UINT64_C(16) << 20)
#define GRAPH_MAX_BYTES  (UINT64_C(16) << 20)
#define COPIED_MAX_BYTES (UINT64_C(256) << 20)
#define PIECES_MIN_BYTES (UINT64_C(1) << 20)

/* --- memory --------------------------------------------------------------------------------- */

static uint64_t power_of_two(uint64_t number) {
    uint64_t power = 1;
    while (power < number) {
        power *= 2;
    }
    return power;
}

static uint32_t item_bytes(const struct acre_auto_array *array) {
    return ACRE_MAX(array->in_bytes, array->out_bytes);
}

static struct auto_layout lay_out(const struct acre_auto *automatic, uint32_t items) {
    struct auto_layout layout = {0};
    for (int turn = 0; turn < 3; turn++) { /* read; read and written; written */
        layout.out_offset = turn == 1 ? layout.bytes : layout.out_offset;
        for (uint32_t i = 0; i < automatic->array_count; i++) {
            const struct acre_auto_array *array = &automatic->arrays[i];
            int its = array->out_bytes == 0 ? 0 : array->in_bytes != 0 ? 1 : 2;
            if (its == turn) {
                layout.offsets[i] = layout.bytes;
                layout.bytes += ((uint64_t)items * item_bytes(array) + ALIGN_BYTES - 1) /
                                ALIGN_BYTES * ALIGN_BYTES;
            }
        }
        layout.in_bytes = turn == 1 ? layout.bytes : layout.in_bytes;
    }
    return layout;
}

static void block_free(struct acre_auto *automatic, struct auto_block *block) {
    if (block->buffer.id != 0) {
        acre_buffer_free(automatic->device.stream, block->buffer, NULL);
    }
    *block = (struct auto_block){0};
}

static int block_grow(struct acre_auto *automatic, struct auto_block *block, enum acre_memory kind,
                      uint64_t bytes, struct acre_error *err) {
    uint32_t epoch = atomic_load(&automatic->device.context->epoch);
    bool is_lost = kind == ACRE_MEMORY_DEVICE && block->epoch != epoch;
    if (block->buffer.id != 0 && block->bytes >= bytes && !is_lost) {
        return 0;
    }
    block_free(automatic, block);
    uint64_t size = power_of_two(ACRE_MAX(bytes, (uint64_t)BLOCK_MIN_BYTES));
    struct acre_buffer buffer;
    int r = acre_buffer_alloc(automatic->device.stream, kind, size, &buffer, err);
    if (r == 0) {
        *block = (struct auto_block){.buffer = buffer, .bytes = size, .epoch = epoch};
    }
    return r;
}

/* The array as an argument, where it is mapped memory; false: it is not. */
static bool map_directly(const struct acre_auto *automatic, const struct auto_call *call,
                         uint32_t index, struct acre_arg *ret_arg) {
    struct acre_context *context = automatic->device.context;
    const char *array = call->arrays[index];
    uint64_t bytes = (uint64_t)call->items * item_bytes(&automatic->arrays[index]);
    struct acre_buffer buffer = buffer_at_host(context, array, bytes);
    struct buffer_range range;
    if (buffer.id == 0 || buffer_resolve(context, buffer, 0, bytes, "", &range, NULL) < 0 ||
        range.kind != ACRE_MEMORY_MAPPED) {
        return false;
    }
    uint64_t offset = (uint64_t)(array - (const char *)range.host);
    uint32_t unit = automatic->signature->parameters[index].bytes;
    *ret_arg = ACRE_BUFFER_AT(buffer, offset);
    return unit <= 1 || offset % unit == 0;
}

enum cost_memory auto_memory(const struct acre_auto *automatic, const struct auto_call *call) {
    enum cost_memory memory = COST_MEMORY_MAPPED;
    if (automatic->device.kernel == NULL) {
        return COST_MEMORY_PLAIN;
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        uint64_t bytes = (uint64_t)call->items * item_bytes(&automatic->arrays[i]);
        struct acre_arg ignored;
        if (buffer_at_host(automatic->device.context, call->arrays[i], bytes).id == 0) {
            return COST_MEMORY_PLAIN;
        }
        memory = map_directly(automatic, call, i, &ignored) ? memory : COST_MEMORY_PINNED;
    }
    return memory;
}

/* --- on the device -------------------------------------------------------------------------- */

/* Values and number behind the arrays' arguments. */
static uint32_t add_values(const struct acre_auto *automatic, const struct auto_call *call,
                           struct acre_arg *args) {
    uint32_t count = automatic->array_count;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        args[count++] = call->values[i];
    }
    args[count++] = ACRE_U32(call->items);
    return count;
}

static int launch(struct acre_auto *automatic, const struct auto_call *call, struct acre_arg *args,
                  struct acre_error *err) {
    uint32_t count = add_values(automatic, call, args);
    return acre_launch(automatic->device.stream, automatic->device.kernel,
                       acre_grid_for(call->items), args, count, err);
}

/* Wait for all that was queued, also after a failure: it may use the caller's arrays. */
static int finish(struct acre_auto *automatic, int result, struct acre_error *err) {
    int r = acre_stream_sync(automatic->device.stream, ACRE_FOREVER, result == 0 ? err : NULL);
    return result == 0 ? r : result;
}

static int prepare_copied(struct acre_auto *automatic, const struct auto_call *call,
                          struct acre_error *err) {
    struct auto_layout layout = lay_out(automatic, call->items);
    return block_grow(automatic, &automatic->copied, ACRE_MEMORY_DEVICE, layout.bytes, err);
}

static int go_copied(struct acre_auto *automatic, const struct auto_call *call,
                     struct acre_error *err) {
    struct auto_layout layout = lay_out(automatic, call->items);
    struct acre_stream *stream = automatic->device.stream;
    struct acre_buffer block = automatic->copied.buffer;
    struct acre_arg args[ACRE_ARGS_MAX];
    int r = 0;
    for (uint32_t i = 0; i < automatic->array_count && r == 0; i++) {
        uint64_t bytes = (uint64_t)call->items * automatic->arrays[i].in_bytes;
        args[i] = ACRE_BUFFER_AT(block, layout.offsets[i]);
        if (bytes > 0) {
            r = acre_copy_in(stream, block, layout.offsets[i], call->arrays[i], bytes, err);
        }
    }
    r = r == 0 ? launch(automatic, call, args, err) : r;
    for (uint32_t i = 0; i < automatic->array_count && r == 0; i++) {
        uint64_t bytes = (uint64_t)call->items * automatic->arrays[i].out_bytes;
        if (bytes > 0) {
            r = acre_copy_out(stream, call->arrays[i], block, layout.offsets[i], bytes, err);
        }
    }
    return finish(automatic, r, err);
}

/* --- on the CPU ----------------------------------------------------------------------------- */

static const void *value_of(const struct acre_arg *value) {
    return value->kind == ACRE_ARG_BYTES ? value->pointer : (const void *)&value->u64;
}

void auto_go_one(const struct acre_auto *automatic, const struct auto_call *call) {
    const void *args[ACRE_ARGS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        args[count++] = call->arrays[i];
    }
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        args[count++] = value_of(&call->values[i]);
    }
    args[count] = &call->items;
    uint32_t group = ACRE_MIN(call->items, (uint32_t)GROUP); /* no work items without an item */
    uint32_t groups = (uint32_t)(((uint64_t)call->items + group - 1) / group);
    struct acre_groups all = {.end = groups, .groups = {groups, 1, 1}, .group = {group, 1, 1}};
    automatic->function(&all, args);
}

static int go_one(struct acre_auto *automatic, const struct auto_call *call,
                  struct acre_error *err) {
    (void)err;
    auto_go_one(automatic, call);
    return 0;
}

/* The caller's arrays as regions of the seat. */
static int open_regions(struct acre_auto *automatic, const struct auto_call *call,
                        uint64_t *regions, struct native_arg *args, struct acre_error *err) {
    struct acre_context *context = automatic->cpu.context;
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        uint64_t bytes = (uint64_t)call->items * item_bytes(&automatic->arrays[i]);
        struct native_region region;
        int r = context->table->region_create(context->seat, ACRE_MEMORY_MAPPED, bytes,
                                              call->arrays[i], &region, err);
        if (r < 0) {
            return r;
        }
        regions[i] = region.handle;
        args[i] = (struct native_arg){
            .kind = ACRE_NATIVE_BUFFER, .region = region.handle, .length = bytes};
    }
    return 0;
}

static void close_regions(struct acre_auto *automatic, const uint64_t *regions) {
    struct quiet quiet;
    quiet_begin(&quiet, automatic->cpu.context);
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        if (regions[i] != 0) {
            quiet_region_destroy(&quiet, regions[i]);
        }
    }
    quiet_end(&quiet);
}

/* Queued with its signal; the number to wait for. */
static int queue_all(struct acre_auto *automatic, const struct native_launch *launch,
                     uint64_t *ret_sequence, struct acre_error *err) {
    struct acre_stream *stream = automatic->cpu.stream;
    int r = kernel_ready(automatic->cpu.kernel, err);
    r = r == 0 ? stream_enter(stream, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_context *context = stream->context;
    struct native_launch own = *launch;
    r = kernel_handle(automatic->cpu.kernel, &own.kernel, err);
    r = r == 0 ? context->table->launch(context->seat, stream->handle, &own, err) : r;
    automatic->is_given = r == 0;
    r = r == 0 ? stream_launched(stream, automatic->cpu.kernel, err) : r;
    r = r == 0 ? stream_signal(stream, err) : r;
    *ret_sequence = stream->issued;
    stream_leave(stream, r);
    return r;
}

static int go_all(struct acre_auto *automatic, const struct auto_call *call,
                  struct acre_error *err) {
    struct native_arg args[ACRE_ARGS_MAX];
    uint64_t regions[PIECES_ARRAYS_MAX] = {0};
    _Alignas(VALUE_ALIGN) uint8_t extra[ACRE_EXTRA_MAX];
    uint32_t count = automatic->array_count;
    uint32_t used = 0;
    for (uint32_t i = 0; i <= automatic->value_count; i++) {
        bool is_last = i == automatic->value_count;
        uint32_t bytes = is_last ? sizeof(uint32_t) : call->values[i].bytes;
        if (bytes > ACRE_EXTRA_MAX - used) {
            return acre_fail(err, ACRE_ELIMIT, "kernel '%s': the values have more than %d bytes",
                             automatic->signature->name, ACRE_EXTRA_MAX);
        }
        memcpy(extra + used, is_last ? &call->items : value_of(&call->values[i]), bytes);
        args[count++] =
            (struct native_arg){.kind = ACRE_NATIVE_VALUE, .bytes = bytes, .region = used};
        used +=
            ACRE_MIN((bytes + VALUE_ALIGN - 1) / VALUE_ALIGN * VALUE_ALIGN, ACRE_EXTRA_MAX - used);
    }
    struct native_launch launch = {.grid = acre_grid_for(call->items),
                                   .is_limited = automatic->cpu.context->kernel_limit_ms > 0,
                                   .args = args,
                                   .arg_count = count,
                                   .extra_bytes = used,
                                   .extra = extra};
    uint64_t sequence;
    automatic->is_given = false;
    int r = open_regions(automatic, call, regions, args, err);
    r = r == 0 ? queue_all(automatic, &launch, &sequence, err) : r;
    r = r == 0 ? stream_wait(automatic->cpu.stream, sequence, ACRE_FOREVER, err) : r;
    close_regions(automatic, regions);
    return r;
}

/* --- in pieces ------------------------------------------------------------------------------ */

static int go_pieces(struct acre_auto *automatic, const struct auto_call *call,
                     struct acre_error *err) {
    struct pieces_array arrays[PIECES_ARRAYS_MAX];
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        const struct acre_auto_array *array = &automatic->arrays[i];
        arrays[i] = (struct pieces_array){.in = array->in_bytes != 0 ? call->arrays[i] : NULL,
                                          .out = array->out_bytes != 0 ? call->arrays[i] : NULL,
                                          .in_bytes = array->in_bytes,
                                          .out_bytes = array->out_bytes};
    }
    struct pieces pieces = {.kernels = &automatic->device.kernel,
                            .kernel_count = 1,
                            .arrays = arrays,
                            .array_count = automatic->array_count,
                            .items = call->items,
                            .more = call->values,
                            .more_count = automatic->value_count};
    return pieces_run(&pieces, NULL, err);
}

/* --- on memory of the host ------------------------------------------------------------------ */

static int prepare_mapped(struct acre_auto *automatic, const struct auto_call *call,
                          struct acre_error *err) {
    struct auto_layout layout = lay_out(automatic, call->items);
    return auto_memory(automatic, call) == COST_MEMORY_MAPPED
               ? 0
               : block_grow(automatic, &automatic->mapped, ACRE_MEMORY_MAPPED, layout.bytes, err);
}

static int go_mapped(struct acre_auto *automatic, const struct auto_call *call,
                     struct acre_error *err) {
    struct auto_layout layout = lay_out(automatic, call->items);
    struct acre_buffer block = automatic->mapped.buffer;
    char *host = acre_buffer_host(automatic->device.context, block);
    struct acre_arg args[ACRE_ARGS_MAX];
    uint32_t direct = 0;
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        if (map_directly(automatic, call, i, &args[i])) {
            direct |= UINT32_C(1) << i;
            continue;
        }
        args[i] = ACRE_BUFFER_AT(block, layout.offsets[i]);
        if (automatic->arrays[i].in_bytes != 0) {
            memcpy(host + layout.offsets[i], call->arrays[i],
                   (uint64_t)call->items * automatic->arrays[i].in_bytes);
        }
    }
    int r = launch(automatic, call, args, err);
    r = finish(automatic, r, err);
    for (uint32_t i = 0; i < automatic->array_count && r == 0; i++) {
        if ((direct >> i & 1) == 0 && automatic->arrays[i].out_bytes != 0) {
            memcpy(call->arrays[i], host + layout.offsets[i],
                   (uint64_t)call->items * automatic->arrays[i].out_bytes);
        }
    }
    return r;
}

/* --- as a graph ----------------------------------------------------------------------------- */

static struct auto_graph *graph_of(struct acre_auto *automatic, uint32_t items) {
    uint32_t power = (uint32_t)__builtin_ctzll(power_of_two(ACRE_MAX(items, (uint32_t)GROUP)));
    ACRE_ASSERT(power < AUTO_GRAPHS_MAX);
    return &automatic->graphs[power];
}

static uint32_t graph_items(const struct acre_auto *automatic, const struct auto_graph *graph) {
    return UINT32_C(1) << (graph - automatic->graphs);
}

static void graph_free(struct acre_auto *automatic, struct auto_graph *graph) {
    acre_graph_destroy(graph->graph);
    block_free(automatic, &graph->device);
    block_free(automatic, &graph->host);
    *graph = (struct auto_graph){0};
}

static uint32_t graph_args(const struct acre_auto *automatic, const struct auto_graph *graph,
                           const struct auto_layout *layout, const struct auto_call *call,
                           struct acre_arg *args) {
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        args[i] = ACRE_BUFFER_AT(graph->device.buffer, layout->offsets[i]);
    }
    return add_values(automatic, call, args);
}

/* Values side by side, to see whether they changed; too many: they did. */
static bool same_values(const struct acre_auto *automatic, const struct auto_call *call,
                        const struct auto_graph *graph) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        uint32_t bytes = call->values[i].bytes;
        if (bytes > graph->value_bytes - at ||
            memcmp(graph->values + at, value_of(&call->values[i]), bytes) != 0) {
            return false;
        }
        at += bytes;
    }
    return at == graph->value_bytes;
}

static void keep_values(const struct acre_auto *automatic, const struct auto_call *call,
                        struct auto_graph *graph) {
    graph->items = call->items;
    graph->value_bytes = 0;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        uint32_t bytes = call->values[i].bytes;
        if (bytes > AUTO_VALUES_MAX - graph->value_bytes) {
            graph->items = 0; /* too long to be compared */
            return;
        }
        memcpy(graph->values + graph->value_bytes, value_of(&call->values[i]), bytes);
        graph->value_bytes += bytes;
    }
}

static int record(struct acre_auto *automatic, struct auto_graph *graph,
                  const struct auto_layout *layout, const struct auto_call *call,
                  struct acre_error *err) {
    struct acre_stream *stream = automatic->device.stream;
    struct acre_buffer device = graph->device.buffer, host = graph->host.buffer;
    struct acre_arg args[ACRE_ARGS_MAX];
    uint32_t count = graph_args(automatic, graph, layout, call, args);
    uint64_t out_bytes = layout->bytes - layout->out_offset;
    int r = acre_graph_begin(stream, err);
    if (r < 0) {
        return r;
    }
    r = layout->in_bytes > 0 ? acre_copy(stream, device, 0, host, 0, layout->in_bytes, err) : 0;
    r = r == 0 ? acre_launch(stream, automatic->device.kernel, acre_grid_for(call->items), args,
                             count, err)
               : r;
    if (r == 0 && out_bytes > 0) {
        r = acre_copy(stream, host, layout->out_offset, device, layout->out_offset, out_bytes, err);
    }
    struct acre_graph *made = NULL;
    int end = acre_graph_end(stream, &made, r == 0 ? err : NULL);
    if (r < 0 && end == 0) {
        acre_graph_destroy(made);
    }
    r = r == 0 ? end : r;
    if (r == 0) {
        graph->graph = made;
        keep_values(automatic, call, graph);
    }
    return r;
}

static int prepare_graph(struct acre_auto *automatic, const struct auto_call *call,
                         struct acre_error *err) {
    struct auto_graph *graph = graph_of(automatic, call->items);
    uint32_t epoch = atomic_load(&automatic->device.context->epoch);
    if (graph->graph != NULL && graph->epoch == epoch) {
        return 0;
    }
    graph_free(automatic, graph);
    struct auto_layout layout = lay_out(automatic, graph_items(automatic, graph));
    graph->epoch = epoch;
    int r = block_grow(automatic, &graph->device, ACRE_MEMORY_DEVICE, layout.bytes, err);
    r = r == 0 ? block_grow(automatic, &graph->host, ACRE_MEMORY_PINNED, layout.bytes, err) : r;
    r = r == 0 ? record(automatic, graph, &layout, call, err) : r;
    if (r < 0) {
        graph_free(automatic, graph);
    }
    return r;
}

static int go_graph(struct acre_auto *automatic, const struct auto_call *call,
                    struct acre_error *err) {
    struct auto_graph *graph = graph_of(automatic, call->items);
    struct auto_layout layout = lay_out(automatic, graph_items(automatic, graph));
    char *host = acre_buffer_host(automatic->device.context, graph->host.buffer);
    int r = 0;
    if (graph->items != call->items || !same_values(automatic, call, graph)) {
        struct acre_arg args[ACRE_ARGS_MAX];
        uint32_t count = graph_args(automatic, graph, &layout, call, args);
        r = acre_graph_update(graph->graph, 0, acre_grid_for(call->items), args, count, err);
        if (r < 0) {
            return r;
        }
        keep_values(automatic, call, graph);
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        if (automatic->arrays[i].in_bytes != 0) {
            memcpy(host + layout.offsets[i], call->arrays[i],
                   (uint64_t)call->items * automatic->arrays[i].in_bytes);
        }
    }
    r = acre_graph_launch(graph->graph, automatic->device.stream, err);
    r = finish(automatic, r, err);
    for (uint32_t i = 0; i < automatic->array_count && r == 0; i++) {
        if (automatic->arrays[i].out_bytes != 0) {
            memcpy(call->arrays[i], host + layout.offsets[i],
                   (uint64_t)call->items * automatic->arrays[i].out_bytes);
        }
    }
    return r;
}

/* --- all of them ---------------------------------------------------------------------------- */

static const struct {
    int (*prepare)(struct acre_auto *automatic, const struct auto_call *call,
                   struct acre_error *err); /* NULL: nothing to do */
    int (*go)(struct acre_auto *automatic, const struct auto_call *call, struct acre_error *err);
    uint64_t min_bytes, max_bytes; /* of all arrays; 0: any */
    bool is_device;
} ways[] = {
    [COST_RING] = {auto_ring_prepare, auto_ring_go, 0, 0, true},
    [COST_GRAPH] = {prepare_graph, go_graph, 0, GRAPH_MAX_BYTES, true},
    [COST_MAPPED] = {prepare_mapped, go_mapped, 0, MAPPED_MAX_BYTES, true},
    [COST_COPIED] = {prepare_copied, go_copied, 0, COPIED_MAX_BYTES, true},
    [COST_PIECES] = {NULL, go_pieces, PIECES_MIN_BYTES, 0, true},
    [COST_ONE] = {NULL, go_one, 0, 0, false},
    [COST_ALL] = {NULL, go_all, 0, 0, false},
};
_Static_assert(ACRE_COUNT(ways) == COST_VARIANTS_COUNT, "a row for each");

/* What can be called in any thread: a given function, or a compiled one that meets no barrier and
 * that nobody wants ended. */
static void find_function(struct acre_auto *automatic) {
    struct acre_kernel *kernel = automatic->cpu.kernel;
    uint64_t handle;
    if (automatic->function != NULL || kernel == NULL) {
        return;
    }
    struct acre_context *context = automatic->cpu.context;
    if (kernel_ready(kernel, NULL) < 0 || context_enter(context, NULL) < 0) {
        return;
    }
    if (kernel_handle(kernel, &handle, NULL) == 0) {
        const struct cpu_kernel *compiled = (const struct cpu_kernel *)(uintptr_t)handle;
        bool ends = compiled->is_bounded || context->kernel_limit_ms == 0;
        automatic->function = compiled->bind == NULL && ends ? compiled->function : NULL;
    }
    context_pass(context);
}

void auto_ways_init(struct acre_auto *automatic) {
    find_function(automatic);
    for (uint32_t i = 0; i < COST_VARIANTS_COUNT; i++) {
        const struct auto_side *side = ways[i].is_device ? &automatic->device : &automatic->cpu;
        uint64_t min = (ways[i].min_bytes + automatic->item_bytes - 1) / automatic->item_bytes;
        uint64_t max =
            ways[i].max_bytes == 0 ? UINT32_MAX : ways[i].max_bytes / automatic->item_bytes;
        automatic->min_items[i] = (uint32_t)ACRE_MIN(min, (uint64_t)UINT32_MAX);
        automatic->max_items[i] = (uint32_t)ACRE_MIN(max, (uint64_t)UINT32_MAX);
        char *reason = automatic->reason[i];
        if (side->kernel == NULL) {
            memcpy(reason, side->reason, AUTO_REASON_MAX);
        } else if (i == COST_RING) {
            auto_ring_init(automatic, reason);
        } else if (i == COST_ONE && automatic->function == NULL) {
            snprintf(reason, AUTO_REASON_MAX, "the kernel has barriers or a time limit");
        }
        automatic->present |= reason[0] == '\0' ? UINT32_C(1) << i : 0;
    }
    automatic->max_items[COST_RING] = automatic->ring.items_max;
}

void auto_ways_finish(struct acre_auto *automatic) {
    acre_ring_destroy(automatic->ring.ring);
    if (automatic->device.stream == NULL) {
        return;
    }
    for (size_t i = 0; i < AUTO_GRAPHS_MAX; i++) {
        graph_free(automatic, &automatic->graphs[i]);
    }
    block_free(automatic, &automatic->copied);
    block_free(automatic, &automatic->mapped);
}

int auto_prepare(struct acre_auto *automatic, enum cost_variant variant,
                 const struct auto_call *call, struct acre_error *err) {
    return ways[variant].prepare != NULL ? ways[variant].prepare(automatic, call, err) : 0;
}

int auto_go(struct acre_auto *automatic, enum cost_variant variant, const struct auto_call *call,
            struct acre_error *err) {
    return ways[variant].go(automatic, call, err);
}

bool auto_spoils(const struct acre_auto *automatic, enum cost_variant variant,
                 const struct auto_call *call) {
    if (variant == COST_ALL && automatic->is_given) {
        return true; /* a kernel that was given up here is not ended: it may write on */
    }
    if (!automatic->is_in_place) {
        return false;
    }
    bool is_direct = false;
    for (uint32_t i = 0; variant == COST_MAPPED && i < automatic->array_count; i++) {
        struct acre_arg ignored;
        is_direct |=
            automatic->arrays[i].out_bytes != 0 && map_directly(automatic, call, i, &ignored);
    }
    return is_direct || variant == COST_PIECES || !ways[variant].is_device;
}
