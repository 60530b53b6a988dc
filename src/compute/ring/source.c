/* source.c - the kernels around a handler.
 *
 * A message is a row of 16-byte vectors: three words and its number. Either side writes and reads
 * whole vectors, so a vector with the right number has the right words, and no fence is needed
 * between the words and a flag. The lanes of a warp read one vector each.
 *
 * acre_ring stays: it polls one message when it is idle (short reads are fastest), and as many as
 * its lanes can take at once after a hit, so that under load one bus crossing brings up to 32
 * messages. It checks the stop word in every 16th poll, in a lane that is otherwise idle, and
 * between messages that take long. When it stops, it leaves the number of its next message.
 * acre_ring_batch handles what a worker found and ends; the worker writes the numbers. */
#include "compute/ring/ring.h"

static const char batch_source[] =
    "\n"
    "kernel void acre_ring_batch(global const uint *in, global uint *out, global uint *state,\n"
    "                            global uint *control, uint in_vectors, uint out_vectors, uint "
    "mask, uint first,\n"
    "                            uint count) {\n"
    "    local uint words_in[96];\n"
    "    local uint words_out[96];\n"
    "    for (uint i = (uint)group_id(0); i < count; i += (uint)group_count(0)) {\n"
    "        uint slot = (first + i) & mask;\n"
    "        atomic_add(&control[ACRE_RING_BEATS + (uint)group_id(0)], 1u);\n"
    "        for (uint j = 0; j < in_vectors * 3; j++) {\n"
    "            words_in[j] = in[(slot * in_vectors + j / 3) * 4 + j % 3];\n"
    "        }\n"
    "        ACRE_RING_HANDLER(words_in, words_out, state, 0, 1);\n"
    "        for (uint j = 0; j < out_vectors * 3; j++) {\n"
    "            out[(slot * out_vectors + j / 3) * 4 + j % 3] = words_out[j];\n"
    "        }\n"
    "    }\n"
    "}\n";

static const char resident_source[] =
    "\n"
    "static __device__ uint4 acre_ring_load(const uint4 *at) {\n"
    "    uint4 v;\n"
    "    asm volatile(\"ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];\"\n"
    "                 : \"=r\"(v.x), \"=r\"(v.y), \"=r\"(v.z), \"=r\"(v.w) : \"l\"(at)\n"
    "                 : \"memory\");\n"
    "    return v;\n"
    "}\n"
    "static __device__ void acre_ring_store(uint4 *at, uint x, uint y, uint z, uint w) {\n"
    "    asm volatile(\"st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};\"\n"
    "                 :: \"l\"(at), \"r\"(x), \"r\"(y), \"r\"(z), \"r\"(w) : \"memory\");\n"
    "}\n"
    "kernel void acre_ring(global uint *control, global const uint *in, global uint *out,\n"
    "                      global uint *state, uint in_vectors, uint out_vectors, uint mask) {\n"
    "    __shared__ uint words_in[96];\n"
    "    __shared__ uint words_out[96];\n"
    "    volatile uint *shared_control = control;\n"
    "    const uint4 *in4 = (const uint4 *)in;\n"
    "    uint4 *out4 = (uint4 *)out;\n"
    "    const uint lane = threadIdx.x, warp = blockIdx.x, warps = gridDim.x;\n"
    "    const uint message = lane / in_vectors, vector = lane % in_vectors;\n"
    "    const uint most = 32 / in_vectors;\n"
    "    uint next = shared_control[ACRE_RING_NEXT + warp];\n"
    "    uint wanted = 1;\n"
    "    uint beats = shared_control[ACRE_RING_BEATS + warp] + 1;\n"
    "    if (lane == 0) {\n"
    "        shared_control[ACRE_RING_BEATS + warp] = beats;\n"
    "    }\n"
    "    long long looked = clock64();\n"
    "    for (uint polls = 1;; polls++) {\n"
    "        const uint number = next + message * warps;\n"
    "        const bool is_mine = message < wanted;\n"
    "        uint4 v = make_uint4(0, 0, 0, 0);\n"
    "        uint stop = 0;\n"
    "        if (is_mine) {\n"
    "            v = acre_ring_load(in4 + (size_t)(number & mask) * in_vectors + vector);\n"
    "        }\n"
    "        if (polls % 16 == 0 && lane == 31) {\n"
    "            stop = shared_control[ACRE_RING_STOP];\n"
    "        }\n"
    "        if (polls % 1024 == 0 && lane == 0) {\n"
    "            shared_control[ACRE_RING_BEATS + warp] = ++beats;\n"
    "        }\n"
    "        const uint missing = ~__ballot_sync(~0u, !is_mine || v.w == number);\n"
    "        const uint whole = missing == 0 ? wanted : (__ffs(missing) - 1) / in_vectors;\n"
    "        const uint count = whole < wanted ? whole : wanted;\n"
    "        if (message < count) {\n"
    "            words_in[lane * 3] = v.x;\n"
    "            words_in[lane * 3 + 1] = v.y;\n"
    "            words_in[lane * 3 + 2] = v.z;\n"
    "        }\n"
    "        __syncwarp();\n"
    "        for (uint i = 0; i < count; i++) {\n"
    "            ACRE_RING_HANDLER(words_in + i * in_vectors * 3, words_out, state, lane, 32);\n"
    "            __syncwarp();\n"
    "            if (lane < out_vectors) {\n"
    "                acre_ring_store(out4 + (size_t)(next & mask) * out_vectors + lane,\n"
    "                                words_out[lane * 3], words_out[lane * 3 + 1],\n"
    "                                words_out[lane * 3 + 2], next);\n"
    "            }\n"
    "            __syncwarp();\n"
    "            next += warps;\n"
    "            if (__any_sync(~0u, lane == 0 && clock64() - looked > ACRE_RING_LOOK_CYCLES)) {\n"
    "                looked = clock64();\n"
    "                stop |= lane == 0 ? shared_control[ACRE_RING_STOP] : 0;\n"
    "                if (__any_sync(~0u, stop)) {\n"
    "                    break;\n"
    "                }\n"
    "            }\n"
    "        }\n"
    "        wanted = count > 0 ? most : 1;\n"
    "        if (__any_sync(~0u, stop)) {\n"
    "            break;\n"
    "        }\n"
    "    }\n"
    "    if (lane == 0) {\n"
    "        shared_control[ACRE_RING_NEXT + warp] = next;\n"
    "        __threadfence_system();\n"
    "    }\n"
    "}\n"
    "kernel void acre_ring_probe(global uint *control) {\n"
    "    volatile uint *shared_control = control;\n"
    "    for (uint i = 1; i <= ACRE_RING_PROBES; i++) {\n"
    "        for (uint polls = 0; shared_control[ACRE_RING_PING] != i; polls++) {\n"
    "            if (polls == 1000000) {\n"
    "                return;\n"
    "            }\n"
    "        }\n"
    "        shared_control[ACRE_RING_PONG] = i;\n"
    "    }\n"
    "}\n";

int ring_source_write(const char *text, const char *handler, bool is_resident,
                      struct acre_buf *out) {
    acre_buf_printf(out, "%s\n#define ACRE_RING_HANDLER %s\n#define ACRE_RING_BEATS %d\n", text,
                    handler, RING_BEATS);
    if (is_resident) {
        acre_buf_printf(out,
                        "#define ACRE_RING_STOP %d\n#define ACRE_RING_PING %d\n"
                        "#define ACRE_RING_PONG %d\n#define ACRE_RING_NEXT %d\n"
                        "#define ACRE_RING_PROBES %d\n"
                        "#define ACRE_RING_LOOK_CYCLES %d\n",
                        RING_STOP, RING_PING, RING_PONG, RING_NEXT, RING_PROBES, RING_LOOK_CYCLES);
        acre_buf_puts(out, resident_source);
    }
    acre_buf_puts(out, batch_source);
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}
