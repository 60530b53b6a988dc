/* compute_suite.h - the cases of the compute suite, by what they are about. */
#ifndef ACRE_TEST_COMPUTE_SUITE_H
#define ACRE_TEST_COMPUTE_SUITE_H

#include "conformance/compute_kit.h"

struct suite {
    const struct acre_test *tests;
    size_t count;
};

#define SUITE(name, tests) const struct suite name = {(tests), ACRE_COUNT(tests)}
#define TEST(name)                                                                                 \
    { #name, name, 60 }

extern const struct suite compute_devices_suite, compute_copy_suite, compute_launch_suite,
    compute_math_suite, compute_atomic_suite, compute_source_suite, compute_stream_suite,
    compute_graph_suite, compute_ring_suite, compute_pool_suite, compute_batch_suite,
    compute_storage_suite, compute_auto_suite, compute_cache_suite, compute_refuse_suite,
    compute_fault_suite, compute_loss_suite, compute_ring_time_suite;

struct compute_soak_options {
    uint64_t operations;
    uint32_t threads;
    const char *only; /* one operation; NULL: all but those that race */
};

/* Mixed operations from some threads; the exit code. */
int compute_soak(const struct compute_soak_options *options, char *program);

#endif
