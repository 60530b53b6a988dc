/* Annotations and resource quantities (ALC-5; vectors of B1 and seed 003). */
#include "ledger/annotation.h"
#include "support/test.h"

#define FRACTION  "kaiwo.ai/gpu-fraction"
#define MEMORY    "kaiwo.ai/gpu-memory"
#define SHARING   "kaiwo.ai/gpu-sharing"
#define ISOLATION "kaiwo.ai/gpu-isolation"
#define AMD       "amd.com/gpu"
#define NVIDIA    "nvidia.com/gpu"

enum { PAIRS = 5 };

static size_t count_pairs(const struct acre_annotation_pair *pairs) {
    size_t count = 0;
    while (count < PAIRS && pairs[count].key != NULL) {
        count++;
    }
    return count;
}

static const struct {
    struct acre_annotation_pair pairs[PAIRS];
    struct acre_annotation expect; /* `present` has a test of its own */
} understood[] = {
    {{{"kubernetes.io/name", "x"}}, {0}},
    {{{FRACTION, "0.5"}}, {0, 0, 500, 0, true, ACRE_ISOLATION_NONE, ACRE_VENDOR_ANY}},
    {{{FRACTION, "0.1"}}, {0, 0, 100, 0, true, ACRE_ISOLATION_NONE, ACRE_VENDOR_ANY}},
    {{{FRACTION, "0.125"}}, {0, 0, 125, 0, true, ACRE_ISOLATION_NONE, ACRE_VENDOR_ANY}},
    {{{FRACTION, "1"}}, {0, 0, 1000, 0, false, ACRE_ISOLATION_NONE, ACRE_VENDOR_ANY}},
    {{{FRACTION, "1.0"}, {SHARING, "true"}}, {0, 0, 1000, 0, true, 0, 0}},
    {{{FRACTION, "1.0"}, {SHARING, "false"}}, {0, 0, 1000, 0, false, 0, 0}},
    {{{MEMORY, "4000"}}, {0, 0, 0, 4000, true, ACRE_ISOLATION_NONE, ACRE_VENDOR_ANY}},
    {{{MEMORY, "4000"}, {SHARING, "false"}}, {0, 1, 0, 4000, false, 0, 0}},
    {{{MEMORY, "1099511627776"}}, {0, 0, 0, UINT64_C(1) << 40, true, 0, 0}},
    {{{FRACTION, "0.25"}, {MEMORY, "1"}}, {0, 0, 250, 1, true, 0, 0}},
    /* the manifest of seed 003 */
    {{{FRACTION, "0.5"}, {MEMORY, "4000"}, {SHARING, "true"}, {ISOLATION, "mps"}, {AMD, "500"}},
     {0, 0, 500, 4000, true, ACRE_ISOLATION_MPS, ACRE_VENDOR_AMD}},
    {{{AMD, "1"}}, {0, 1, 0, 0, false, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "99"}}, {0, 99, 0, 0, false, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "100"}}, {0, 0, 100, 0, true, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "500"}}, {0, 0, 500, 0, true, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "999"}}, {0, 0, 999, 0, true, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "1000"}}, {0, 1, 0, 0, false, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "2000"}}, {0, 2, 0, 0, false, 0, ACRE_VENDOR_AMD}},
    {{{AMD, "4096000"}}, {0, 4096, 0, 0, false, 0, ACRE_VENDOR_AMD}},
    {{{NVIDIA, "1"}}, {0, 1, 0, 0, false, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "500"}}, {0, 500, 0, 0, false, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "8"}, {MEMORY, "80000"}}, {0, 8, 0, 80000, false, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "1"}, {MEMORY, "80000"}}, {0, 1, 0, 80000, false, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "1"}, {MEMORY, "8000"}, {SHARING, "true"}},
     {0, 0, 0, 8000, true, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "2"}, {SHARING, "false"}, {ISOLATION, "none"}},
     {0, 2, 0, 0, false, 0, ACRE_VENDOR_NVIDIA}},
    {{{NVIDIA, "1"}, {FRACTION, "0.5"}}, {0, 0, 500, 0, true, 0, ACRE_VENDOR_NVIDIA}},
    {{{FRACTION, "0.5"}, {ISOLATION, "time-slicing"}},
     {0, 0, 500, 0, true, ACRE_ISOLATION_TIME_SLICING, 0}},
    {{{FRACTION, "0.5"}, {ISOLATION, "mig"}}, {0, 0, 500, 0, false, ACRE_ISOLATION_MIG, 0}},
    {{{FRACTION, "0.5"}, {ISOLATION, "mig"}, {SHARING, "false"}, {NVIDIA, "1"}},
     {0, 0, 500, 0, false, ACRE_ISOLATION_MIG, ACRE_VENDOR_NVIDIA}},
    {{{MEMORY, "20000"}, {ISOLATION, "mig"}, {NVIDIA, "1"}},
     {0, 0, 0, 20000, false, ACRE_ISOLATION_MIG, ACRE_VENDOR_NVIDIA}},
    {{{MEMORY, "20000"}, {ISOLATION, "mig"}, {SHARING, "False"}},
     {0, 0, 0, 20000, false, ACRE_ISOLATION_MIG, 0}},
    {{{SHARING, "TRUE"}, {FRACTION, "0.9"}}, {0, 0, 900, 0, true, 0, 0}},
    {{{"kaiwo.ai/queue", "gpu"}, {"nvidia.com/gpu.shared", "2"}, {"amd.com/gpu-x", "z"}}, {0}},
    {{{"", ""}}, {0}},
};

static void what_is_asked_is_understood(void) {
    for (size_t i = 0; i < ACRE_COUNT(understood); i++) {
        acre_test_context("row %zu: %s=%s", i, understood[i].pairs[0].key,
                          understood[i].pairs[0].value);
        struct acre_annotation got;
        struct acre_error err = {0};
        memset(&got, 0xaa, sizeof(got));
        size_t count = count_pairs(understood[i].pairs);
        int r = acre_annotation_parse(understood[i].pairs, count, &got, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(r, 0);
        CHECK_U64(got.whole_gpus, understood[i].expect.whole_gpus);
        CHECK_U64(got.milli, understood[i].expect.milli);
        CHECK_U64(got.mib, understood[i].expect.mib);
        CHECK_EQ(got.sharing, understood[i].expect.sharing);
        CHECK_EQ(got.isolation, understood[i].expect.isolation);
        CHECK_EQ(got.vendor, understood[i].expect.vendor);
        /* The order of the keys does not matter. */
        struct acre_annotation_pair reversed[PAIRS];
        for (size_t k = 0; k < count; k++) {
            reversed[k] = understood[i].pairs[count - 1 - k];
        }
        struct acre_annotation again;
        REQUIRE_EQ(acre_annotation_parse(reversed, count, &again, NULL), 0);
        CHECK(again.present == got.present && again.whole_gpus == got.whole_gpus &&
              again.milli == got.milli && again.sharing == got.sharing);
    }
}

static void present_says_which_keys_were_given(void) {
    static const struct acre_annotation_pair all[] = {
        {FRACTION, "0.5"}, {MEMORY, "1"}, {SHARING, "true"}, {ISOLATION, "none"}, {NVIDIA, "1"}};
    struct acre_annotation got;
    REQUIRE_EQ(acre_annotation_parse(all, 5, &got, NULL), 0);
    CHECK_U64(got.present, ACRE_ANNOTATION_FRACTION | ACRE_ANNOTATION_MEMORY |
                               ACRE_ANNOTATION_SHARING | ACRE_ANNOTATION_ISOLATION |
                               ACRE_ANNOTATION_NVIDIA);
    REQUIRE_EQ(acre_annotation_parse(NULL, 0, &got, NULL), 0);
    CHECK_U64(got.present, 0);
}

static void bad_values_are_refused_with_what_is_accepted(void) {
    static const struct {
        const char *key, *value, *says;
    } rows[] = {
        {FRACTION, "0.05", "0.1 to 1"},
        {FRACTION, "1.5", "kaiwo.ai/gpu-fraction: '1.5'"},
        {FRACTION, "half", "'half'"},
        {FRACTION, "", "''"},
        {FRACTION, "0.0999", "0.1 to 1"},
        {FRACTION, "-0.5", "'-0.5'"},
        {FRACTION, " 0.5", "' 0.5'"},
        {FRACTION, "5e-1", "'5e-1'"},
        {FRACTION, "nan", "'nan'"},
        {FRACTION, "0.5\n", "'0.5\\n'"},
        {MEMORY, "-1", "whole numbers from 1 to 1099511627776"},
        {MEMORY, "0", "whole numbers from 1"},
        {MEMORY, "9223372036854775808", "whole numbers from 1"},
        {MEMORY, "1099511627777", "whole numbers from 1"},
        {MEMORY, "99999999999999999999999", "whole numbers from 1"},
        {MEMORY, "4Gi", "'4Gi'"},
        {MEMORY, "4000.5", "whole numbers"},
        {SHARING, "yes", "kaiwo.ai/gpu-sharing: 'yes' is not valid; accepted: true or false"},
        {SHARING, "", "true or false"},
        {SHARING, "1", "true or false"},
        {ISOLATION, "MPS",
         "kaiwo.ai/gpu-isolation: 'MPS' is not valid; accepted: none, time-slicing, mps or mig"},
        {ISOLATION, "vgpu", "none, time-slicing, mps or mig"},
        {ISOLATION, "", "none, time-slicing, mps or mig"},
        {AMD, "0",
         "amd.com/gpu: '0' is not valid; accepted: 1 to 99 GPUs, or thousandths of a GPU: 100 to "
         "999 for a share, multiples of 1000 up to 4096000 for whole GPUs"},
        {AMD, "1500",
         "amd.com/gpu: '1500' is not valid; accepted: 1 to 99 GPUs, or thousandths of a GPU: 100 "
         "to 999 for a share, multiples of 1000 up to 4096000 for whole GPUs"},
        {AMD, "1001", "multiples of 1000"},
        {AMD, "4097000", "up to 4096000"},
        {AMD, "0.5", "'0.5'"},
        {AMD, "500m", "'500m'"},
        {AMD, "-1", "'-1'"},
        {NVIDIA, "0", "whole numbers from 1 to 4096"},
        {NVIDIA, "4097", "whole numbers from 1 to 4096"},
        {NVIDIA, "0.5", "whole numbers from 1 to 4096"},
        {"kaiwo.ai/gpu-fracton", "0.5",
         "unknown annotation 'kaiwo.ai/gpu-fracton'; accepted: kaiwo.ai/gpu-fraction, "
         "kaiwo.ai/gpu-memory, kaiwo.ai/gpu-sharing, kaiwo.ai/gpu-isolation"},
        {"kaiwo.ai/gpu", "1", "unknown annotation 'kaiwo.ai/gpu'"},
        {"Kaiwo.ai/GPU-fraction", "0.5", "unknown annotation"},
        {"kaiwo.ai/gpu-fraction\t", "0.5",
         "unknown annotation 'kaiwo.ai/gpu-fraction\\t'; accepted: "},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s=%s", rows[i].key, rows[i].value);
        struct acre_annotation_pair pair = {rows[i].key, rows[i].value};
        struct acre_annotation got = {.milli = 77};
        struct acre_error err = {0};
        CHECK_EQ(acre_annotation_parse(&pair, 1, &got, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        CHECK_U64(got.milli, 77);
    }
}

static void contradictions_are_refused(void) {
    static const struct {
        struct acre_annotation_pair pairs[PAIRS];
        const char *says;
    } rows[] = {
        {{{AMD, "1"}, {NVIDIA, "1"}}, "amd.com/gpu and nvidia.com/gpu"},
        {{{FRACTION, "0.5"}, {NVIDIA, "2"}},
         "kaiwo.ai/gpu-fraction is a share of one GPU; ask for at most 1 GPU with it"},
        {{{FRACTION, "1.0"}, {AMD, "2000"}},
         "kaiwo.ai/gpu-fraction is a share of one GPU; ask for at most 1 GPU with it"},
        {{{FRACTION, "0.5"}, {AMD, "400"}}, "different shares"},
        {{{FRACTION, "1.0"}, {AMD, "999"}}, "different shares"},
        {{{FRACTION, "0.5"}, {SHARING, "false"}}, "'false' with less than one GPU"},
        {{{AMD, "500"}, {SHARING, "false"}}, "'false' with less than one GPU"},
        {{{NVIDIA, "1"}, {SHARING, "true"}}, "'true' with whole GPUs"},
        {{{NVIDIA, "2"}, {MEMORY, "8000"}, {SHARING, "true"}}, "'true' with whole GPUs"},
        {{{NVIDIA, "2"}, {ISOLATION, "mps"}}, "whole GPUs are not shared"},
        {{{NVIDIA, "1"}, {ISOLATION, "mig"}}, "whole GPUs are not shared"},
        {{{NVIDIA, "2"}, {MEMORY, "8000"}, {ISOLATION, "mig"}}, "whole GPUs are not shared"},
        {{{MEMORY, "8000"}, {ISOLATION, "mps"}, {SHARING, "false"}},
         "kaiwo.ai/gpu-isolation: 'time-slicing' and 'mps' need a shared GPU; set "
         "kaiwo.ai/gpu-sharing to 'true' or leave it out"},
        {{{FRACTION, "1.0"}, {ISOLATION, "time-slicing"}, {SHARING, "false"}},
         "kaiwo.ai/gpu-isolation: 'time-slicing' and 'mps' need a shared GPU; set "
         "kaiwo.ai/gpu-sharing to 'true' or leave it out"},
        {{{FRACTION, "0.5"}, {ISOLATION, "mig"}, {SHARING, "true"}},
         "kaiwo.ai/gpu-isolation: a 'mig' slice cannot be shared; set kaiwo.ai/gpu-sharing to "
         "'false' or leave it out"},
        {{{AMD, "500"}, {ISOLATION, "mig"}},
         "kaiwo.ai/gpu-isolation: 'mig' works with nvidia.com/gpu, not with amd.com/gpu"},
        {{{SHARING, "true"}},
         "kaiwo.ai/gpu-sharing and kaiwo.ai/gpu-isolation do not say how much; also give "
         "kaiwo.ai/gpu-fraction, kaiwo.ai/gpu-memory, amd.com/gpu or nvidia.com/gpu"},
        {{{ISOLATION, "mps"}},
         "kaiwo.ai/gpu-sharing and kaiwo.ai/gpu-isolation do not say how much; also give "
         "kaiwo.ai/gpu-fraction, kaiwo.ai/gpu-memory, amd.com/gpu or nvidia.com/gpu"},
        {{{SHARING, "false"}, {ISOLATION, "none"}},
         "kaiwo.ai/gpu-sharing and kaiwo.ai/gpu-isolation do not say how much; also give "
         "kaiwo.ai/gpu-fraction, kaiwo.ai/gpu-memory, amd.com/gpu or nvidia.com/gpu"},
        {{{FRACTION, "0.5"}, {FRACTION, "0.5"}}, "kaiwo.ai/gpu-fraction: given twice"},
        {{{AMD, "1"}, {AMD, "1"}}, "amd.com/gpu: given twice"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_annotation got = {.milli = 77};
        struct acre_error err = {0};
        CHECK_EQ(acre_annotation_parse(rows[i].pairs, count_pairs(rows[i].pairs), &got, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
        CHECK_U64(got.milli, 77);
    }
}

static void too_many_pairs_are_refused(void) {
    static struct acre_annotation_pair pairs[ACRE_ANNOTATION_PAIRS_MAX + 1];
    for (size_t i = 0; i < ACRE_COUNT(pairs); i++) {
        pairs[i] = (struct acre_annotation_pair){"app", "x"};
    }
    struct acre_annotation got;
    struct acre_error err;
    CHECK_EQ(acre_annotation_parse(pairs, ACRE_ANNOTATION_PAIRS_MAX, &got, &err), 0);
    CHECK_EQ(acre_annotation_parse(pairs, ACRE_ANNOTATION_PAIRS_MAX + 1, &got, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "1025 annotations are too many; accepted: at most 1024");
}

static void isolations_have_names(void) {
    for (int i = 0; i < ACRE_ISOLATION_COUNT; i++) {
        enum acre_isolation isolation = ACRE_ISOLATION_COUNT;
        const char *name = isolation_name((enum acre_isolation)i);
        CHECK(isolation_parse(acre_str_from(name), &isolation));
        CHECK_EQ(isolation, i);
        CHECK_HAS(ACRE_ISOLATION_CHOICES, name);
    }
    enum acre_isolation isolation = ACRE_ISOLATION_MPS;
    CHECK(!isolation_parse(ACRE_STR("mpss"), &isolation));
    CHECK_EQ(isolation, ACRE_ISOLATION_MPS);
}

static const struct acre_test tests[] = {
    {"what_is_asked_is_understood", what_is_asked_is_understood, 0},
    {"present_says_which_keys_were_given", present_says_which_keys_were_given, 0},
    {"bad_values_are_refused_with_what_is_accepted", bad_values_are_refused_with_what_is_accepted,
     0},
    {"contradictions_are_refused", contradictions_are_refused, 0},
    {"too_many_pairs_are_refused", too_many_pairs_are_refused, 0},
    {"isolations_have_names", isolations_have_names, 0},
};

ACRE_TEST_MAIN(tests)
