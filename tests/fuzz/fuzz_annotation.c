/* Annotations: whatever the pairs, a request that does not contradict itself and does not depend
 * on their order, or a refusal that can be read and leaves the output alone.
 *
 * Input: one pair a line, "KEY=VALUE"; a KEY of one digit stands for one of the known keys. */
#include "fuzz.h"
#include "ledger/annotation.h"

enum { TEXT_BYTES = 1200, PAIRS_MAX = 12 };

static const char *const keys[] = {
    "kaiwo.ai/gpu-fraction",  "kaiwo.ai/gpu-memory", "kaiwo.ai/gpu-sharing",
    "kaiwo.ai/gpu-isolation", "amd.com/gpu",         "nvidia.com/gpu",
    "kaiwo.ai/gpu-isolation "};

static size_t split(char *text, struct acre_annotation_pair pairs[PAIRS_MAX]) {
    size_t count = 0;
    for (char *at = text; at != NULL && count < PAIRS_MAX;) {
        char *next = strchr(at, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        char *value = strchr(at, '=');
        if (value != NULL) {
            *value++ = '\0';
            unsigned known = (unsigned)(at[0] - '0');
            bool short_form = known < ACRE_COUNT(keys) && at[1] == '\0';
            pairs[count++] = (struct acre_annotation_pair){short_form ? keys[known] : at, value};
        }
        at = next;
    }
    return count;
}

static bool same(struct acre_annotation a, struct acre_annotation b) {
    return a.present == b.present && a.whole_gpus == b.whole_gpus && a.milli == b.milli &&
           a.mib == b.mib && a.sharing == b.sharing && a.isolation == b.isolation &&
           a.vendor == b.vendor;
}

static void check_request(struct acre_annotation got) {
    if (got.present == 0) {
        ACRE_ASSERT(same(got, (struct acre_annotation){0}));
        return;
    }
    bool mig = got.isolation == ACRE_ISOLATION_MIG;
    ACRE_ASSERT(got.whole_gpus <= ACRE_ANNOTATION_GPUS_MAX);
    ACRE_ASSERT(got.milli == 0 || (got.milli >= 100 && got.milli <= 1000));
    ACRE_ASSERT(got.whole_gpus > 0 ? got.milli == 0 : got.milli > 0 || got.mib > 0);
    ACRE_ASSERT(got.whole_gpus == 0 || (!got.sharing && got.isolation == ACRE_ISOLATION_NONE));
    ACRE_ASSERT(!mig || (!got.sharing && got.vendor != ACRE_VENDOR_AMD));
    ACRE_ASSERT(got.whole_gpus > 0 || got.milli == 1000 || mig || got.sharing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[TEXT_BYTES];
    size_t length = ACRE_MIN(size, sizeof(text) - 1);
    memcpy(text, data, length);
    text[length] = '\0';
    struct acre_annotation_pair pairs[PAIRS_MAX];
    size_t count = split(text, pairs);
    struct acre_error err = {0};
    const struct acre_annotation before = {.present = 77, .mib = 77};
    struct acre_annotation got = before;
    int r = acre_annotation_parse(pairs, count, &got, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(same(got, before));
    } else {
        check_request(got);
    }
    struct acre_annotation_pair reversed[PAIRS_MAX];
    for (size_t i = 0; i < count; i++) {
        reversed[i] = pairs[count - 1 - i];
    }
    struct acre_annotation again = before;
    ACRE_ASSERT(acre_annotation_parse(reversed, count, &again, NULL) == r);
    ACRE_ASSERT(same(again, got));
    return 0;
}
