/* graph.c - graphs: a recipe resolved into an executable of the back end, launched as a whole.
 *
 * Instantiating an executable costs as much as many launches. So the executable of a destroyed
 * graph stays for a while, and a new recipe of the same shape (kernels, edges, copies, fills) takes
 * it over: only launches whose arguments differ are updated. An executable from before a region was
 * destroyed is never reused: back ends keep addresses, and nodes are compared by handles, which may
 * be reused for other regions. Back ends without graphs get the nodes one by one, in the order of
 * recording. */
#include "compute/graph.h"

#include "compute/context.h"
#include "compute/memory/buffer.h"
#include "compute/process.h"
#include "compute/program.h"
#include "compute/stream.h"

#include <stdlib.h>
#include <string.h>

enum { IDLE_MAX = 32 }; /* executables kept of one context */

struct executable {
    struct executable *next; /* of the idle ones, the latest first */
    uint64_t handle;         /* 0: the back end has no graphs */
    uint64_t regions_gone;   /* when it was resolved: its regions are not those of later handles */
    uint32_t epoch;
    uint32_t count;
    struct native_node *nodes; /* `after` is its own; a launch's arguments are one block */
    bool is_spoiled;           /* changed in part: nothing is left but to destroy it */
};

/* What a recipe reads and writes. */
struct uses {
    struct acre_buffer *buffers;
    uint32_t count;
};

struct acre_graph {
    struct acre_context *context;
    struct acre_graph *next;
    pthread_mutex_t lock; /* the rest */
    struct recipe recipe;
    struct executable *executable;
    atomic_uint epoch; /* its */
    struct uses uses;
};

static int no_memory(struct acre_error *err) {
    return acre_fail(err, ACRE_ENOMEM, "graph: out of host memory");
}

/* --- resolving ------------------------------------------------------------------------------ */

static void executable_free(struct executable *executable) {
    for (uint32_t i = 0; i < executable->count; i++) {
        struct native_node *node = &executable->nodes[i];
        if (node->kind == ACRE_NODE_LAUNCH) {
            free((void *)node->launch.args);
        }
        free((void *)node->after);
    }
    free(executable->nodes);
    free(executable);
}

/* A launch with its arguments in a block of its own, which starts with them. */
static int launch_keep(const struct native_launch *launch, struct native_launch *ret) {
    size_t args_bytes = launch->arg_count * sizeof(*launch->args);
    struct native_arg *args = malloc(args_bytes + launch->extra_bytes + 1);
    if (args == NULL) {
        return ACRE_ENOMEM;
    }
    memcpy(args, launch->args, args_bytes);
    uint8_t *extra = (uint8_t *)args + args_bytes;
    memcpy(extra, launch->extra, launch->extra_bytes);
    *ret = *launch;
    ret->args = args;
    ret->extra = extra;
    return 0;
}

static int resolve_call(struct acre_context *context, const struct graph_call *call,
                        struct native_launch *ret_launch, struct acre_error *err) {
    struct launch launch;
    int r = launch_make(context, call->kernel, call->grid, call->args, call->count, &launch, err);
    if (r < 0) {
        return r;
    }
    return launch_keep(&launch.native, ret_launch) < 0 ? no_memory(err) : 0;
}

static int resolve_copy(struct acre_context *context, const struct graph_copy *copy,
                        struct native_copy *ret_copy, struct acre_error *err) {
    struct buffer_range to;
    struct buffer_range from;
    int r =
        buffer_resolve(context, copy->to, copy->to_offset, copy->bytes, "graph: copy to", &to, err);
    r = r == 0 ? buffer_resolve(context, copy->from, copy->from_offset, copy->bytes,
                                "graph: copy from", &from, err)
               : r;
    if (r == 0) {
        *ret_copy = (struct native_copy){.to = to.region,
                                         .to_offset = to.offset + copy->to_offset,
                                         .from = from.region,
                                         .from_offset = from.offset + copy->from_offset,
                                         .bytes = copy->bytes};
    }
    return r;
}

static int resolve_fill(struct acre_context *context, const struct graph_fill *fill,
                        struct native_fill *ret_fill, struct acre_error *err) {
    struct buffer_range to;
    int r =
        buffer_resolve(context, fill->to, fill->to_offset, fill->bytes, "graph: fill", &to, err);
    if (r == 0) {
        *ret_fill = (struct native_fill){.to = to.region,
                                         .to_offset = to.offset + fill->to_offset,
                                         .bytes = fill->bytes,
                                         .pattern = fill->pattern,
                                         .pattern_bytes = fill->pattern_bytes};
    }
    return r;
}

static int resolve_node(struct acre_context *context, const struct graph_node *node,
                        struct native_node *native, struct acre_error *err) {
    uint32_t *after = calloc(node->after_count + 1, sizeof(*after));
    if (after == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < node->after_count; i++) {
        after[i] = node->after[i];
    }
    *native =
        (struct native_node){.kind = node->kind, .after = after, .after_count = node->after_count};
    switch (node->kind) {
    case ACRE_NODE_LAUNCH:
        return resolve_call(context, &node->call, &native->launch, err);
    case ACRE_NODE_COPY:
        return resolve_copy(context, &node->copy, &native->copy, err);
    case ACRE_NODE_FILL:
        return resolve_fill(context, &node->fill, &native->fill, err);
    default:
        return ACRE_EINTERNAL;
    }
}

/* Everything but the back end's own. Gate held. */
static int resolve(struct acre_context *context, const struct recipe *recipe,
                   struct executable **ret_executable, struct acre_error *err) {
    struct executable *executable = calloc(1, sizeof(*executable));
    if (executable == NULL) {
        return no_memory(err);
    }
    executable->epoch = atomic_load(&context->epoch);
    executable->regions_gone = atomic_load(&context->regions_gone);
    executable->nodes = calloc(recipe->count + 1, sizeof(*executable->nodes));
    int r = executable->nodes != NULL ? 0 : no_memory(err);
    while (r == 0 && executable->count < recipe->count) {
        uint32_t i = executable->count++;
        r = resolve_node(context, &recipe->nodes[i], &executable->nodes[i], err);
    }
    if (r < 0) {
        executable_free(executable);
        return r;
    }
    *ret_executable = executable;
    return 0;
}

/* --- executables ------------------------------------------------------------------------------ */

static void executable_destroy(const struct quiet *quiet, struct executable *executable) {
    if (executable->handle != 0 && executable->epoch == atomic_load(&quiet->context->epoch)) {
        quiet_graph_destroy(quiet, executable->handle);
    }
    executable_free(executable);
}

/* Gate held. */
static void destroy_all(const struct quiet *quiet, struct executable *executable) {
    while (executable != NULL) {
        struct executable *next = executable->next;
        executable_destroy(quiet, executable);
        executable = next;
    }
}

static void put_idle(struct acre_context *context, struct executable *executable) {
    pthread_mutex_lock(&context->lock);
    executable->next = context->idle_graphs;
    context->idle_graphs = executable;
    pthread_mutex_unlock(&context->lock);
}

static bool same_shape(const struct executable *a, const struct executable *b) {
    if (a->is_spoiled || a->epoch != b->epoch || a->regions_gone != b->regions_gone ||
        a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct native_node *x = &a->nodes[i];
        const struct native_node *y = &b->nodes[i];
        if (x->kind != y->kind || x->after_count != y->after_count ||
            memcmp(x->after, y->after, x->after_count * sizeof(*x->after)) != 0) {
            return false;
        }
        bool is_same = x->kind == ACRE_NODE_LAUNCH ? x->launch.kernel == y->launch.kernel
                       : x->kind == ACRE_NODE_COPY
                           ? memcmp(&x->copy, &y->copy, sizeof(x->copy)) == 0
                           : memcmp(&x->fill, &y->fill, sizeof(x->fill)) == 0;
        if (!is_same) {
            return false;
        }
    }
    return true;
}

static bool same_launch(const struct native_launch *a, const struct native_launch *b) {
    return a->arg_count == b->arg_count && a->extra_bytes == b->extra_bytes &&
           memcmp(&a->grid, &b->grid, sizeof(a->grid)) == 0 &&
           memcmp(a->args, b->args, a->arg_count * sizeof(*a->args)) == 0 &&
           memcmp(a->extra, b->extra, a->extra_bytes) == 0;
}

/* Those that take_over put back. Gate held. */
static void destroy_spoiled(const struct quiet *quiet) {
    struct acre_context *context = quiet->context;
    struct executable *spoiled = NULL;
    pthread_mutex_lock(&context->lock);
    for (struct executable **link = &context->idle_graphs; *link != NULL;) {
        struct executable *each = *link;
        if (each->is_spoiled) {
            *link = each->next;
            each->next = spoiled;
            spoiled = each;
        } else {
            link = &each->next;
        }
    }
    pthread_mutex_unlock(&context->lock);
    destroy_all(quiet, spoiled);
}

/* An idle executable of this shape, made to do what the new one is to do; NULL: none. One that
 * cannot be made to goes back, for destroy_spoiled: no other is created without a quiet scope. */
static struct executable *take_over(struct acre_context *context, const struct executable *wanted) {
    pthread_mutex_lock(&context->lock);
    struct executable **link = &context->idle_graphs;
    while (*link != NULL && !same_shape(*link, wanted)) {
        link = &(*link)->next;
    }
    struct executable *found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    pthread_mutex_unlock(&context->lock);
    for (uint32_t i = 0; found != NULL && i < found->count; i++) {
        const struct native_node *node = &found->nodes[i];
        if (node->kind != ACRE_NODE_LAUNCH ||
            same_launch(&node->launch, &wanted->nodes[i].launch)) {
            continue;
        }
        if (context->table->graph_update(context->seat, found->handle, i, &wanted->nodes[i].launch,
                                         NULL) < 0) {
            found->is_spoiled = true;
            put_idle(context, found);
            return NULL; /* `wanted` is as it was, to be created */
        }
    }
    for (uint32_t i = 0; found != NULL && i < found->count; i++) {
        if (found->nodes[i].kind == ACRE_NODE_LAUNCH) {
            struct native_launch old = found->nodes[i].launch;
            found->nodes[i].launch = wanted->nodes[i].launch;
            wanted->nodes[i].launch = old; /* freed with it */
        }
    }
    return found;
}

/* Its kernels loaded, and the most stack one of them needs. Not entered: resident kernels leave for
 * loading. A recipe's kernels stay the same. */
static int make_ready(const struct recipe *recipe, uint32_t *ret_stack_bytes,
                      struct acre_error *err) {
    int r = 0;
    uint32_t stack_bytes = 0;
    for (uint32_t i = 0; i < recipe->count && r == 0; i++) {
        if (recipe->nodes[i].kind == ACRE_NODE_LAUNCH) {
            struct acre_kernel *kernel = recipe->nodes[i].call.kernel;
            r = kernel_ready(kernel, err);
            stack_bytes = r == 0 ? ACRE_MAX(stack_bytes, kernel->facts.stack_bytes) : 0;
        }
    }
    *ret_stack_bytes = stack_bytes;
    return r;
}

enum { MUST_CREATE = 1 };

/* The graph's executable in the present epoch. Gate and the graph's lock held. MUST_CREATE: there
 * is none to take over, and `quiet` is NULL, so that none can be created. `ret_asked`: the device
 * was, also when it fails. */
static int prepare(struct acre_graph *graph, const struct quiet *quiet, bool *ret_asked,
                   struct acre_error *err) {
    struct acre_context *context = graph->context;
    uint32_t epoch = atomic_load(&context->epoch);
    if (graph->executable != NULL && graph->executable->epoch == epoch) {
        return 0;
    }
    struct executable *executable = NULL;
    int r = resolve(context, &graph->recipe, &executable, err);
    *ret_asked = r == 0;
    if (r < 0) {
        return r;
    }
    bool has_graphs = (context_device(context)->capabilities & ACRE_CAN_GRAPH) != 0;
    if (has_graphs && executable->count > 0) {
        struct executable *found = take_over(context, executable);
        if (found != NULL) {
            executable_free(executable);
            executable = found;
        } else {
            r = quiet != NULL ? quiet_graph_create(quiet, executable->nodes, executable->count,
                                                   &executable->handle, err)
                              : MUST_CREATE;
        }
        if (quiet != NULL) {
            destroy_spoiled(quiet);
        }
    }
    if (r != 0) {
        executable_free(executable);
        return r;
    }
    if (graph->executable != NULL) {
        executable_free(graph->executable); /* of an epoch that is past */
    }
    graph->executable = executable;
    atomic_store(&graph->epoch, epoch);
    return 0;
}

static void leave(struct acre_context *context, bool is_asked, int result) {
    if (is_asked) {
        context_leave(context, result);
    } else {
        context_pass(context);
    }
}

static int try_prepare(struct acre_graph *graph, const struct quiet *quiet,
                       struct acre_error *err) {
    int r = context_enter(graph->context, err);
    if (r < 0) {
        return r;
    }
    bool is_asked = false;
    pthread_mutex_lock(&graph->lock);
    r = prepare(graph, quiet, &is_asked, err);
    pthread_mutex_unlock(&graph->lock);
    leave(graph->context, is_asked, r);
    return r;
}

/* Everything a launch needs, before the gate is taken, since modules are loaded and graphs created
 * in quiet scopes. Also the most stack that a kernel needs. */
static int graph_ready(struct acre_graph *graph, uint32_t *ret_stack_bytes,
                       struct acre_error *err) {
    struct acre_context *context = graph->context;
    int r = make_ready(&graph->recipe, ret_stack_bytes, err);
    if (r < 0 || atomic_load(&graph->epoch) == atomic_load(&context->epoch)) {
        return r;
    }
    r = try_prepare(graph, NULL, err);
    if (r == MUST_CREATE) {
        struct quiet quiet;
        quiet_begin(&quiet, context);
        r = try_prepare(graph, &quiet, err);
        quiet_end(&quiet);
    }
    return r;
}

/* Gate and the graph's lock held, after graph_ready. */
static int check_ready(const struct acre_graph *graph, struct acre_error *err) {
    return atomic_load(&graph->epoch) == atomic_load(&graph->context->epoch)
               ? 0
               : context_loss(graph->context, err);
}

/* --- graphs ----------------------------------------------------------------------------------- */

static void use(struct uses *uses, struct acre_buffer buffer) {
    for (uint32_t i = 0; i < uses->count; i++) {
        if (uses->buffers[i].id == buffer.id) {
            return;
        }
    }
    uses->buffers[uses->count++] = buffer;
}

static int list_uses(const struct recipe *recipe, struct uses *ret_uses, struct acre_error *err) {
    size_t max = 0;
    for (uint32_t i = 0; i < recipe->count; i++) {
        const struct graph_node *node = &recipe->nodes[i];
        max += node->kind == ACRE_NODE_LAUNCH ? node->call.count : 2;
    }
    struct uses uses = {.buffers = calloc(max + 1, sizeof(*uses.buffers))};
    if (uses.buffers == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < recipe->count; i++) {
        const struct graph_node *node = &recipe->nodes[i];
        switch (node->kind) {
        case ACRE_NODE_LAUNCH:
            for (uint32_t j = 0; j < node->call.count; j++) {
                if (node->call.args[j].kind == ACRE_ARG_BUFFER) {
                    use(&uses, node->call.args[j].buffer);
                }
            }
            break;
        case ACRE_NODE_COPY:
            use(&uses, node->copy.to);
            use(&uses, node->copy.from);
            break;
        case ACRE_NODE_FILL:
            use(&uses, node->fill.to);
            break;
        }
    }
    *ret_uses = uses;
    return 0;
}

int graph_make(struct acre_context *context, struct recipe *recipe, struct acre_graph **ret_graph,
               struct acre_error *err) {
    struct acre_graph *graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        recipe_finish(recipe);
        return no_memory(err);
    }
    pthread_mutex_init(&graph->lock, NULL);
    graph->context = context;
    graph->recipe = *recipe;
    pthread_mutex_lock(&context->lock);
    graph->next = context->graphs;
    context->graphs = graph;
    pthread_mutex_unlock(&context->lock);
    uint32_t stack_bytes;
    int r = list_uses(&graph->recipe, &graph->uses, err);
    r = r == 0 ? graph_ready(graph, &stack_bytes, err) : r;
    if (r < 0) {
        acre_graph_destroy(graph);
        return r;
    }
    *ret_graph = graph;
    return 0;
}

/* Each of its buffers is still there. */
static int check_uses(const struct acre_graph *graph, struct acre_error *err) {
    int r = 0;
    for (uint32_t i = 0; i < graph->uses.count && r == 0; i++) {
        struct buffer_range range;
        r = buffer_resolve(graph->context, graph->uses.buffers[i], 0, 0, "graph", &range, err);
    }
    return r;
}

static void note_uses(const struct acre_graph *graph, const struct acre_stream *stream) {
    for (uint32_t i = 0; i < graph->uses.count; i++) {
        buffer_used(graph->context, graph->uses.buffers[i], stream);
    }
}

static int queue_node(struct acre_stream *stream, const struct native_node *node,
                      struct acre_error *err) {
    struct acre_context *context = stream->context;
    switch (node->kind) {
    case ACRE_NODE_LAUNCH:
        return context->table->launch(context->seat, stream->handle, &node->launch, err);
    case ACRE_NODE_COPY:
        return context->table->copy(context->seat, stream->handle, &node->copy, err);
    case ACRE_NODE_FILL:
        return context->table->fill(context->seat, stream->handle, &node->fill, err);
    default:
        return ACRE_EINTERNAL;
    }
}

static int queue(struct acre_graph *graph, struct acre_stream *stream, struct acre_error *err) {
    struct acre_context *context = graph->context;
    const struct executable *executable = graph->executable;
    if (executable->handle != 0) {
        return context->table->graph_launch(context->seat, stream->handle, executable->handle, err);
    }
    int r = 0;
    for (uint32_t i = 0; i < executable->count && r == 0; i++) {
        r = queue_node(stream, &executable->nodes[i], err);
    }
    return r;
}

static int launch(struct acre_graph *graph, struct acre_stream *stream, struct acre_error *err) {
    int r = stream_enter(stream, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&graph->lock);
    r = check_uses(graph, err);
    r = r == 0 ? check_ready(graph, err) : r;
    if (r < 0) {
        pthread_mutex_unlock(&graph->lock);
        stream_pass(stream);
        return r;
    }
    if (graph->executable->count > 0) {
        note_uses(graph, stream);
        r = queue(graph, stream, err); /* some of it, when it fails */
        const struct graph_node *first = &graph->recipe.nodes[0];
        int told = stream_launched(
            stream, first->kind == ACRE_NODE_LAUNCH ? first->call.kernel : NULL, NULL);
        r = r == 0 ? told : r;
    }
    pthread_mutex_unlock(&graph->lock);
    stream_leave(stream, r);
    return r;
}

static int graph_check(const struct acre_graph *graph, struct acre_error *err) {
    return graph != NULL && process_is_ours(graph->context->process)
               ? 0
               : process_refuse("graph", graph, err);
}

int acre_graph_launch(struct acre_graph *graph, struct acre_stream *stream,
                      struct acre_error *err) {
    int r = graph_check(graph, err);
    r = r == 0 ? stream_check(stream, err) : r;
    if (r < 0) {
        return r;
    }
    struct acre_context *context = graph->context;
    if (stream->context != context) {
        return acre_fail(err, ACRE_EINVALID,
                         "graph: recorded in another context than the stream's");
    }
    if (stream->recording != NULL) {
        return acre_fail(err, ACRE_ECONFLICT,
                         "graph: cannot be launched on a stream that records a graph");
    }
    uint32_t stack_bytes = 0;
    r = graph_ready(graph, &stack_bytes, err);
    if (r < 0) {
        return r;
    }
    struct quiet quiet = {0};
    stack_begin(&quiet, context, stack_bytes);
    r = launch(graph, stream, err);
    return stack_end(&quiet, stream, stack_bytes, r, err);
}

static struct graph_node *launch_node(struct acre_graph *graph, uint32_t number,
                                      uint32_t *ret_launches) {
    uint32_t launches = 0;
    struct graph_node *found = NULL;
    for (uint32_t i = 0; i < graph->recipe.count; i++) {
        struct graph_node *node = &graph->recipe.nodes[i];
        if (node->kind == ACRE_NODE_LAUNCH && launches++ == number) {
            found = node;
        }
    }
    *ret_launches = launches;
    return found;
}

/* All but the kernel, which stays, and is read without the lock. */
static void call_set(struct graph_call *to, const struct graph_call *from) {
    to->grid = from->grid;
    to->args = from->args;
    to->count = from->count;
}

/* Entered and locked, after check_ready. */
static int update(struct acre_graph *graph, struct graph_node *node, struct graph_call *call,
                  struct acre_error *err) {
    struct acre_context *context = graph->context;
    uint32_t index = (uint32_t)(node - graph->recipe.nodes);
    struct native_launch launch;
    int r = resolve_call(context, call, &launch, err);
    if (r < 0) {
        return r;
    }
    struct executable *executable = graph->executable;
    struct graph_call old = node->call;
    struct uses uses = {0};
    call_set(&node->call, call);
    r = list_uses(&graph->recipe, &uses, err); /* before: nothing may fail after the back end's */
    if (r == 0 && executable->handle != 0) {
        r = context->table->graph_update(context->seat, executable->handle, index, &launch, err);
    }
    if (r < 0) {
        call_set(&node->call, &old);
        free(uses.buffers);
        free((void *)launch.args);
        return r;
    }
    free(graph->uses.buffers);
    graph->uses = uses;
    *call = old;
    free((void *)executable->nodes[index].launch.args);
    executable->nodes[index].launch = launch;
    return 0;
}

int acre_graph_update(struct acre_graph *graph, uint32_t node, struct acre_grid grid,
                      const struct acre_arg *args, uint32_t count, struct acre_error *err) {
    int r = graph_check(graph, err);
    if (r < 0) {
        return r;
    }
    uint32_t launches;
    pthread_mutex_lock(&graph->lock);
    struct graph_node *found = launch_node(graph, node, &launches);
    pthread_mutex_unlock(&graph->lock);
    if (found == NULL) {
        return acre_fail(err, ACRE_EINVALID,
                         "graph: no kernel launch %u; this graph has %u, numbered from 0", node,
                         launches);
    }
    struct graph_call given = {
        .kernel = found->call.kernel, .grid = grid, .args = args, .count = count};
    struct graph_call call;
    struct launch checked;
    uint32_t stack_bytes;
    r = graph_ready(graph, &stack_bytes, err);
    r = r == 0 ? context_enter(graph->context, err) : r;
    if (r < 0) {
        return r;
    }
    r = launch_make(graph->context, given.kernel, grid, args, count, &checked, err);
    if (r == 0) {
        r = graph_call_copy(&given, &call) < 0 ? no_memory(err) : 0;
    }
    bool is_asked = false;
    if (r == 0) {
        pthread_mutex_lock(&graph->lock);
        r = check_ready(graph, err);
        is_asked = r == 0;
        r = is_asked ? update(graph, found, &call, err) : r;
        pthread_mutex_unlock(&graph->lock);
        graph_call_finish(&call);
    }
    leave(graph->context, is_asked, r);
    return r;
}

/* --- ends ------------------------------------------------------------------------------------- */

/* Idle ones beyond `keep`, the oldest first. */
static struct executable *take_idle(struct acre_context *context, uint32_t keep) {
    pthread_mutex_lock(&context->lock);
    struct executable **link = &context->idle_graphs;
    for (uint32_t i = 0; i < keep && *link != NULL; i++) {
        link = &(*link)->next;
    }
    struct executable *taken = *link;
    *link = NULL;
    pthread_mutex_unlock(&context->lock);
    return taken;
}

void graphs_forget(const struct quiet *quiet) {
    destroy_all(quiet, take_idle(quiet->context, 0));
}

void acre_graph_destroy(struct acre_graph *graph) {
    if (graph_check(graph, NULL) < 0) {
        return;
    }
    struct acre_context *context = graph->context;
    context_read(context);
    pthread_mutex_lock(&context->lock);
    struct acre_graph **link = &context->graphs;
    while (*link != graph) {
        link = &(*link)->next;
    }
    *link = graph->next;
    struct executable *executable = graph->executable;
    if (executable != NULL && executable->handle != 0 &&
        executable->epoch == atomic_load(&context->epoch)) {
        executable->next = context->idle_graphs;
        context->idle_graphs = executable;
        executable = NULL;
    }
    pthread_mutex_unlock(&context->lock);
    pthread_rwlock_unlock(&context->gate);
    struct executable *dropped = take_idle(context, IDLE_MAX);
    if (dropped != NULL) {
        struct quiet quiet;
        quiet_begin(&quiet, context);
        context_read(context);
        destroy_all(&quiet, dropped);
        pthread_rwlock_unlock(&context->gate);
        quiet_end(&quiet);
    }
    if (executable != NULL) {
        executable_free(executable);
    }
    recipe_finish(&graph->recipe);
    pthread_mutex_destroy(&graph->lock);
    free(graph->uses.buffers);
    free(graph);
}

void graphs_destroy(struct acre_context *context) {
    while (context->graphs != NULL) {
        acre_graph_destroy(context->graphs);
    }
    struct quiet quiet;
    quiet_begin(&quiet, context);
    graphs_forget(&quiet);
    quiet_end(&quiet);
}
