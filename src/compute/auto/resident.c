/* resident.c - a kernel as the handler of a resident ring, for calls of a few items.
 *
 * A ring's warp has 32 lanes and is group 0, so global_id(0) is the lane: an element-wise kernel of
 * up to 32 items becomes a function that the lanes call. The source is turned into a handler's by
 * writing `handler` in place of each word `kernel` and appending one more handler. That one takes
 * the count, values and arrays out of the message, calls the kernel's function, and puts the arrays
 * it wrote into the answer. Arrays in a message have room for the most items, so that their
 * positions are constants. */
#include "compute/auto/resident.h"

#include "compute/context.h"
#include "compute/ring/ring.h"
#include "compute/source/lexer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SOURCE_MAX = SOURCE_MAX_BYTES + (64 << 10),
    WORD = sizeof(uint32_t),
    IDLE_MAX = 256, /* far more than all variants are tried */
    LEAVE_MS = 1000,
};

static const char handler_name[] = "acre_auto_handle";

static uint32_t value_words(const struct parameter *parameter) {
    return (parameter->bytes + WORD - 1) / WORD;
}

/* --- whether it can be ---------------------------------------------------------------------- */

/* Arrays whose items are whole words, of elements of a word at most: a message is aligned to
 * words only. */
static bool is_wordly(const struct acre_auto *automatic) {
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        const struct parameter *parameter = &automatic->signature->parameters[i];
        const struct acre_auto_array *array = &automatic->arrays[i];
        bool has_element = parameter->bytes == 1 || parameter->bytes == 2 || parameter->bytes == 4;
        if (!has_element || array->in_bytes % WORD != 0 || array->out_bytes % WORD != 0) {
            return false;
        }
    }
    return true;
}

/* Values that are whole words, or integers that are less. */
static bool has_plain_values(const struct acre_auto *automatic) {
    const struct signature *signature = automatic->signature;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        const struct parameter *parameter = &signature->parameters[automatic->array_count + i];
        bool is_integer =
            parameter->kind == PARAMETER_SIGNED || parameter->kind == PARAMETER_UNSIGNED;
        bool is_whole = parameter->bytes != 0 && parameter->bytes % WORD == 0;
        if ((!is_whole && !is_integer) || strstr(parameter->type, "...") != NULL) {
            return false;
        }
    }
    return true;
}

/* Words by which work items meet: a handler's lanes cannot. */
static bool has_meetings(const struct acre_auto *automatic) {
    struct lexer lexer = lexer_begin("", acre_str_from(automatic->source.text));
    struct source_token token;
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (token_is(&token, "local") || token_is(&token, "barrier")) {
            return true;
        }
    }
    return false;
}

/* The most items that fit into a message and its answer; 0: not one. */
static uint32_t count_items(struct acre_auto *automatic) {
    const struct signature *signature = automatic->signature;
    struct auto_ring *ring = &automatic->ring;
    uint64_t head = 1;
    uint64_t in = 0;
    uint64_t out = 0;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        head += value_words(&signature->parameters[automatic->array_count + i]);
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        in += automatic->arrays[i].in_bytes / WORD;
        out += automatic->arrays[i].out_bytes / WORD;
    }
    if (head >= RING_WORDS_MAX || out == 0) {
        return 0;
    }
    uint64_t items = ACRE_MIN(RING_WORDS_MAX / out, (uint64_t)AUTO_RING_ITEMS_MAX);
    items = in > 0 ? ACRE_MIN(items, (RING_WORDS_MAX - head) / in) : items;
    ring->in_words = (uint32_t)(head + items * in);
    ring->out_words = (uint32_t)(items * out);
    return (uint32_t)items;
}

void auto_ring_init(struct acre_auto *automatic, char *reason) {
    const struct acre_compute_device *device = context_device(automatic->device.context);
    enum acre_language language = automatic->source.language;
    if (language == ACRE_LANGUAGE_AUTO) {
        language = language_of(acre_str_from(automatic->source.text));
    }
    automatic->ring.items_max = count_items(automatic);
    const char *why = "";
    if ((device->capabilities & ACRE_CAN_RING) == 0) {
        why = "the device cannot keep a kernel resident";
    } else if (language != ACRE_LANGUAGE_PORTABLE) {
        why = "the source is not in the portable dialect";
    } else if (has_meetings(automatic)) {
        why = "the source uses local memory or barriers";
    } else if (!is_wordly(automatic) || !has_plain_values(automatic)) {
        why = "items must be multiples of 4 bytes, with elements of at most 4 bytes";
    } else if (automatic->ring.items_max == 0) {
        why = "an item does not fit in a message of 96 words";
    }
    snprintf(reason, AUTO_REASON_MAX, "%s", why);
}

/* --- the handler ---------------------------------------------------------------------------- */

/* The source with `handler` for `kernel`; directives too, as far as they name it. */
static void write_source(const char *text, struct acre_buf *out) {
    struct lexer lexer = lexer_begin("", acre_str_from(text));
    struct source_token token;
    size_t done = 0;
    while (lexer_next(&lexer, &token, NULL) == 0 && token.kind != TOKEN_END) {
        if (token.kind == TOKEN_WORD && token_is(&token, "kernel")) {
            acre_buf_append(out, text + done, token.offset - done);
            acre_buf_puts(out, "handler");
            done = token.offset + token.text.length;
        }
    }
    acre_buf_puts(out, text + done);
}

/* A value out of the words from `at` on. */
static void write_value(const struct parameter *parameter, uint32_t index, uint32_t at,
                        struct acre_buf *out) {
    uint32_t words = value_words(parameter);
    if (parameter->bytes % WORD != 0) {
        acre_buf_printf(out, "    %s v%u = (%s)in[%u];\n", parameter->type, index, parameter->type,
                        at);
        return;
    }
    acre_buf_printf(out, "    %s v%u;\n", parameter->type, index);
    for (uint32_t i = 0; i < words; i++) {
        acre_buf_printf(out, "    ((uint *)&v%u)[%u] = in[%u];\n", index, i, at + i);
    }
}

/* Where the kernel finds an array: what it only reads in the message, the rest in the answer. What
 * is read and written is copied there first, by the lane that has the item. */
static void write_array(const struct acre_auto *automatic, uint32_t index, uint32_t *in_at,
                        uint32_t *out_at, struct acre_buf *out) {
    const struct acre_auto_array *array = &automatic->arrays[index];
    uint32_t items = automatic->ring.items_max;
    uint32_t in_words = array->in_bytes / WORD;
    uint32_t out_words = array->out_bytes / WORD;
    acre_buf_printf(out, "    const uint a%u = %uu;\n", index, out_words > 0 ? *out_at : *in_at);
    if (in_words > 0 && out_words > 0) {
        acre_buf_printf(out,
                        "    for (uint i = 0; lane < in[0] && i < %uu; i++) {\n"
                        "        out[%uu + lane * %uu + i] = in[%uu + lane * %uu + i];\n"
                        "    }\n",
                        in_words, *out_at, in_words, *in_at, in_words);
    }
    *in_at += in_words * items;
    *out_at += out_words * items;
}

int auto_ring_source(const struct acre_auto *automatic, struct acre_buf *out) {
    const struct signature *signature = automatic->signature;
    write_source(automatic->source.text, out);
    acre_buf_printf(out,
                    "\nhandler void %s(local const uint *in, local uint *out, global uint *state,\n"
                    "                  uint lane, uint lanes) {\n",
                    handler_name);
    uint32_t in_at = 1;
    uint32_t out_at = 0;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        const struct parameter *parameter = &signature->parameters[automatic->array_count + i];
        write_value(parameter, i, in_at, out);
        in_at += value_words(parameter);
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        write_array(automatic, i, &in_at, &out_at, out);
    }
    acre_buf_printf(out, "    %s(", signature->name);
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        acre_buf_printf(out, "(%s)(%s + a%u), ", signature->parameters[i].type,
                        automatic->arrays[i].out_bytes != 0 ? "out" : "in", i);
    }
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        acre_buf_printf(out, "v%u, ", i);
    }
    acre_buf_puts(out, "in[0]);\n}\n");
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}

/* A ring that failed for good makes room for the next. */
static void drop_if_ended(struct auto_ring *ring) {
    struct acre_ring_report report;
    acre_ring_report(ring->ring, &report);
    if (!report.is_running) {
        acre_ring_destroy(ring->ring);
        ring->ring = NULL;
        ring->is_stopped = false;
    }
}

int auto_ring_prepare(struct acre_auto *automatic, const struct auto_call *call,
                      struct acre_error *err) {
    (void)call;
    struct auto_ring *ring = &automatic->ring;
    ring->idle = 0;
    if (ring->ring != NULL) {
        int started = ring->is_stopped ? acre_ring_start(ring->ring, err) : 0;
        ring->is_stopped = false;
        if (started < 0) {
            drop_if_ended(ring);
        }
        return started;
    }
    struct acre_buf text;
    acre_buf_init(&text, SOURCE_MAX);
    int r = auto_ring_source(automatic, &text);
    if (r < 0) {
        acre_buf_finish(&text);
        return acre_fail(err, r, "ring: the source is too long");
    }
    struct acre_source source = automatic->source;
    source.text = text.data;
    source.language = ACRE_LANGUAGE_PORTABLE;
    struct acre_ring_options options = {.handler = handler_name,
                                        .in_words = ring->in_words,
                                        .out_words = ring->out_words,
                                        .idle_ms = LEAVE_MS};
    struct acre_ring *made = NULL;
    r = acre_ring_create(automatic->device.context, &source, &options, &made, err);
    acre_buf_finish(&text);
    struct acre_ring_report report = {.path = ACRE_RING_RESIDENT};
    if (r == 0) {
        acre_ring_report(made, &report);
    }
    if (r == 0 && report.path == ACRE_RING_RESIDENT) {
        ring->ring = made;
        return 0;
    }
    /* A kernel that cannot be a handler stays so; a device may work again, and have memory. */
    bool is_final = r != ACRE_EUNAVAILABLE && r != ACRE_ETIMEOUT && r != ACRE_EIO &&
                    r != ACRE_EINTERNAL && r != ACRE_ENOMEM && r != ACRE_ELIMIT;
    if (r == 0) {
        acre_ring_destroy(made);
        acre_fail(err, ACRE_EUNSUPPORTED, "%s", report.reason);
    }
    if (is_final) {
        automatic->present &= ~(UINT32_C(1) << COST_RING);
        snprintf(automatic->reason[COST_RING], AUTO_REASON_MAX, "%.95s",
                 r == 0 ? report.reason : "the kernel does not compile as a handler");
        r = ACRE_EUNSUPPORTED;
    }
    return r;
}

void auto_ring_pass(struct acre_auto *automatic) {
    struct auto_ring *ring = &automatic->ring;
    if (ring->ring != NULL && !ring->is_stopped && ++ring->idle > IDLE_MAX) {
        ring->is_stopped = acre_ring_stop(ring->ring, NULL) == 0;
        ring->idle = 0;
    }
}

/* --- calls ---------------------------------------------------------------------------------- */

void auto_ring_pack(const struct acre_auto *automatic, const struct auto_call *call, uint32_t *in) {
    const struct signature *signature = automatic->signature;
    uint32_t at = 1;
    memset(in, 0, automatic->ring.in_words * sizeof(*in));
    in[0] = call->items;
    for (uint32_t i = 0; i < automatic->value_count; i++) {
        const struct acre_arg *value = &call->values[i];
        uint32_t words = value_words(&signature->parameters[automatic->array_count + i]);
        memcpy(&in[at], value->kind == ACRE_ARG_BYTES ? value->pointer : (const void *)&value->u64,
               value->bytes);
        at += words;
    }
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        uint32_t bytes = automatic->arrays[i].in_bytes;
        if (bytes > 0) {
            memcpy(&in[at], call->arrays[i], (size_t)call->items * bytes);
        }
        at += automatic->ring.items_max * (bytes / WORD);
    }
}

void auto_ring_unpack(const struct acre_auto *automatic, const struct auto_call *call,
                      const uint32_t *out) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        uint32_t bytes = automatic->arrays[i].out_bytes;
        if (bytes > 0) {
            memcpy(call->arrays[i], &out[at], (size_t)call->items * bytes);
        }
        at += automatic->ring.items_max * (bytes / WORD);
    }
}

int auto_ring_go(struct acre_auto *automatic, const struct auto_call *call,
                 struct acre_error *err) {
    uint32_t in[RING_WORDS_MAX], out[RING_WORDS_MAX];
    auto_ring_pack(automatic, call, in);
    int r = acre_ring_call(automatic->ring.ring, in, out, ACRE_FOREVER, err);
    if (r < 0) {
        drop_if_ended(&automatic->ring);
        return r;
    }
    auto_ring_unpack(automatic, call, out);
    return 0;
}
