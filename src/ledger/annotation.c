/* annotation.c - a row per key reads its value; then a row per contradiction refuses the whole.
 *
 * Reading only fills a draft with what was said. Conclusions are drawn once, at the end, from the
 * draft as a whole: so the order of the keys cannot matter, and each rule of the header is one
 * line of a table that a test can point at. */
#include "ledger/annotation.h"

#include "core/units.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 64, THOUSANDTHS_FROM = 100, WHOLE_MILLI = 1000 };

static const char known_prefix[] = "kaiwo.ai/gpu";

/* The keys that say how much. */
#define AMOUNTS                                                                                    \
    (ACRE_ANNOTATION_FRACTION | ACRE_ANNOTATION_MEMORY | ACRE_ANNOTATION_AMD |                     \
     ACRE_ANNOTATION_NVIDIA)

/* What was said, before anything is concluded. */
struct draft {
    uint32_t present;
    uint32_t fraction_milli;
    uint32_t thousandths; /* of amd.com/gpu, when it is a share */
    uint32_t gpus;
    uint64_t mib;
    bool sharing;
    enum acre_isolation isolation;
};

static int refuse(struct acre_error *err, const char *key, const char *value,
                  const char *accepted) {
    char shown[SHOWN];
    return acre_fail(err, ACRE_EINVALID, "%s: '%s' is not valid; accepted: %s", key,
                     acre_str_show(acre_str_from(value), shown, sizeof(shown)), accepted);
}

static int read_fraction(struct draft *draft, const char *key, const char *value,
                         struct acre_error *err) {
    return acre_parse_milli(key, value, 100, WHOLE_MILLI, &draft->fraction_milli, err);
}

static int read_memory(struct draft *draft, const char *key, const char *value,
                       struct acre_error *err) {
    return acre_parse_count(key, value, 1, ACRE_MIB_MAX, &draft->mib, err);
}

static int read_sharing(struct draft *draft, const char *key, const char *value,
                        struct acre_error *err) {
    if (strcasecmp(value, "true") != 0 && strcasecmp(value, "false") != 0) {
        return refuse(err, key, value, "true or false");
    }
    draft->sharing = strcasecmp(value, "true") == 0;
    return 0;
}

static int read_isolation(struct draft *draft, const char *key, const char *value,
                          struct acre_error *err) {
    if (!isolation_parse(acre_str_from(value), &draft->isolation)) {
        return refuse(err, key, value, ACRE_ISOLATION_CHOICES);
    }
    return 0;
}

static int read_nvidia(struct draft *draft, const char *key, const char *value,
                       struct acre_error *err) {
    uint64_t count;
    int r = acre_parse_count(key, value, 1, ACRE_ANNOTATION_GPUS_MAX, &count, err);
    if (r == 0) {
        draft->gpus = (uint32_t)count;
    }
    return r;
}

static int read_amd(struct draft *draft, const char *key, const char *value,
                    struct acre_error *err) {
    const uint64_t max = (uint64_t)ACRE_ANNOTATION_GPUS_MAX * WHOLE_MILLI;
    uint64_t count;
    if (acre_parse_count(key, value, 1, max, &count, NULL) < 0 ||
        (count > WHOLE_MILLI && count % WHOLE_MILLI != 0)) {
        return refuse(err, key, value,
                      "1 to 99 GPUs, or thousandths of a GPU: 100 to 999 for a share, multiples of "
                      "1000 up to 4096000 for whole GPUs");
    }
    if (count >= THOUSANDTHS_FROM && count < WHOLE_MILLI) {
        draft->thousandths = (uint32_t)count;
    } else {
        draft->gpus = (uint32_t)(count >= WHOLE_MILLI ? count / WHOLE_MILLI : count);
    }
    return 0;
}

static const struct {
    const char *key;
    uint32_t bit;
    int (*read)(struct draft *draft, const char *key, const char *value, struct acre_error *err);
} keys[] = {
    {"kaiwo.ai/gpu-fraction", ACRE_ANNOTATION_FRACTION, read_fraction},
    {"kaiwo.ai/gpu-memory", ACRE_ANNOTATION_MEMORY, read_memory},
    {"kaiwo.ai/gpu-sharing", ACRE_ANNOTATION_SHARING, read_sharing},
    {"kaiwo.ai/gpu-isolation", ACRE_ANNOTATION_ISOLATION, read_isolation},
    {"amd.com/gpu", ACRE_ANNOTATION_AMD, read_amd},
    {"nvidia.com/gpu", ACRE_ANNOTATION_NVIDIA, read_nvidia},
};

static int read_pair(struct draft *draft, const char *key, const char *value,
                     struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        if (strcmp(key, keys[i].key) != 0) {
            continue;
        }
        if ((draft->present & keys[i].bit) != 0) {
            return acre_fail(err, ACRE_EINVALID, "%s: given twice; it may be given once", key);
        }
        draft->present |= keys[i].bit;
        return keys[i].read(draft, key, value, err);
    }
    if (strncasecmp(key, known_prefix, sizeof(known_prefix) - 1) == 0) {
        char shown[SHOWN];
        return acre_fail(err, ACRE_EINVALID,
                         "unknown annotation '%s'; accepted: kaiwo.ai/gpu-fraction, "
                         "kaiwo.ai/gpu-memory, kaiwo.ai/gpu-sharing, kaiwo.ai/gpu-isolation",
                         acre_str_show(acre_str_from(key), shown, sizeof(shown)));
    }
    return 0;
}

static bool has(const struct draft *draft, uint32_t bits) {
    return (draft->present & bits) != 0;
}

static bool is_not_shared(const struct draft *draft) {
    return has(draft, ACRE_ANNOTATION_SHARING) && !draft->sharing;
}

/* One GPU beside a fraction, or beside memory that is shared or sliced, only names the vendor. */
static bool is_share(const struct draft *draft) {
    if (has(draft, ACRE_ANNOTATION_FRACTION) || draft->thousandths > 0) {
        return true;
    }
    bool mig = draft->isolation == ACRE_ISOLATION_MIG;
    bool alone = draft->gpus == 0 && !is_not_shared(draft);
    return has(draft, ACRE_ANNOTATION_MEMORY) && (mig || draft->sharing ? draft->gpus <= 1 : alone);
}

static int refuse_contradictions(const struct draft *draft, struct acre_error *err) {
    bool is_amd = has(draft, ACRE_ANNOTATION_AMD);
    bool share = is_share(draft);
    bool not_shared = is_not_shared(draft);
    bool mig = draft->isolation == ACRE_ISOLATION_MIG;
    bool by_turns =
        draft->isolation == ACRE_ISOLATION_TIME_SLICING || draft->isolation == ACRE_ISOLATION_MPS;
    bool less_than_one = draft->thousandths > 0 || (has(draft, ACRE_ANNOTATION_FRACTION) &&
                                                    draft->fraction_milli < WHOLE_MILLI);
    const struct {
        bool holds;
        const char *text;
    } rows[] = {
        {is_amd && has(draft, ACRE_ANNOTATION_NVIDIA),
         "amd.com/gpu and nvidia.com/gpu are both given; accepted: one of them"},
        {!has(draft, AMOUNTS),
         "kaiwo.ai/gpu-sharing and kaiwo.ai/gpu-isolation do not say how much; also give "
         "kaiwo.ai/gpu-fraction, kaiwo.ai/gpu-memory, amd.com/gpu or nvidia.com/gpu"},
        {has(draft, ACRE_ANNOTATION_FRACTION) && draft->gpus > 1,
         "kaiwo.ai/gpu-fraction is a share of one GPU; ask for at most 1 GPU with it"},
        {has(draft, ACRE_ANNOTATION_FRACTION) && draft->thousandths > 0 &&
             draft->thousandths != draft->fraction_milli,
         "kaiwo.ai/gpu-fraction and amd.com/gpu ask for different shares; give one of them, or the "
         "same share in both"},
        {mig && draft->sharing, "kaiwo.ai/gpu-isolation: a 'mig' slice cannot be shared; set "
                                "kaiwo.ai/gpu-sharing to 'false' or leave it out"},
        {mig && is_amd,
         "kaiwo.ai/gpu-isolation: 'mig' works with nvidia.com/gpu, not with amd.com/gpu"},
        {less_than_one && not_shared && !mig,
         "kaiwo.ai/gpu-sharing: 'false' with less than one GPU; accepted: 'true', isolation 'mig', "
         "or whole GPUs"},
        {by_turns && not_shared, "kaiwo.ai/gpu-isolation: 'time-slicing' and 'mps' need a shared "
                                 "GPU; set kaiwo.ai/gpu-sharing to 'true' or leave it out"},
        {!share && draft->sharing, "kaiwo.ai/gpu-sharing: 'true' with whole GPUs; use it with "
                                   "kaiwo.ai/gpu-fraction, or with kaiwo.ai/gpu-memory on one GPU"},
        {!share && draft->isolation != ACRE_ISOLATION_NONE,
         "kaiwo.ai/gpu-isolation: whole GPUs are not shared; accepted: 'none'"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        if (rows[i].holds) {
            return acre_fail(err, ACRE_EINVALID, "%s", rows[i].text);
        }
    }
    return 0;
}

static struct acre_annotation conclude(const struct draft *draft) {
    struct acre_annotation annotation = {
        .present = draft->present,
        .milli = ACRE_MAX(draft->fraction_milli, draft->thousandths),
        .mib = draft->mib,
        .isolation = draft->isolation,
        .sharing = draft->sharing,
    };
    if (!is_share(draft)) {
        annotation.whole_gpus = ACRE_MAX(draft->gpus, 1U);
    } else if (!has(draft, ACRE_ANNOTATION_SHARING)) {
        annotation.sharing =
            annotation.milli < WHOLE_MILLI && draft->isolation != ACRE_ISOLATION_MIG;
    }
    if (has(draft, ACRE_ANNOTATION_AMD | ACRE_ANNOTATION_NVIDIA)) {
        annotation.vendor = has(draft, ACRE_ANNOTATION_AMD) ? ACRE_VENDOR_AMD : ACRE_VENDOR_NVIDIA;
    }
    return annotation;
}

int acre_annotation_parse(const struct acre_annotation_pair *pairs, size_t count,
                          struct acre_annotation *ret_annotation, struct acre_error *err) {
    if (count > ACRE_ANNOTATION_PAIRS_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "%zu annotations are too many; accepted: at most %d",
                         count, ACRE_ANNOTATION_PAIRS_MAX);
    }
    struct draft draft = {0};
    for (size_t i = 0; i < count; i++) {
        ACRE_ASSERT(pairs[i].key != NULL && pairs[i].value != NULL);
        int r = read_pair(&draft, pairs[i].key, pairs[i].value, err);
        if (r < 0) {
            return r;
        }
    }
    if (draft.present == 0) {
        *ret_annotation = (struct acre_annotation){0};
        return 0;
    }
    int r = refuse_contradictions(&draft, err);
    if (r == 0) {
        *ret_annotation = conclude(&draft);
    }
    return r;
}
