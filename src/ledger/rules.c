/* rules.c - reading the policy strictly, then four comparisons.
 *
 * Loading fills a copy of the defaults and hands it over only when every key is right, so a bad
 * file leaves the rules that were in force. */
#include "ledger/rules.h"

#include "core/json.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>

#define ALL_ISOLATIONS ((UINT32_C(1) << ACRE_ISOLATION_COUNT) - 1)

static const struct acre_rules defaults = {
    .min_milli = ACRE_RULES_MIN_MILLI,
    .max_milli = ACRE_RULES_MAX_MILLI,
    .isolation_mask = ALL_ISOLATIONS,
    .max_allocations_per_device = ACRE_RULES_ALLOCATIONS,
    .sharing_allowed = true,
};

const struct acre_rules *rules_default(void) {
    return &defaults;
}

static int read_u32(const json_t *root, const char *key, uint64_t min, uint64_t max,
                    uint32_t *value, struct acre_error *err) {
    uint64_t wide = *value;
    int r = acre_json_get_u64(root, key, false, min, max, &wide, err);
    *value = (uint32_t)wide;
    return r;
}

static int read_isolation(const json_t *root, uint32_t *mask, struct acre_error *err) {
    const json_t *list = json_object_get(root, "isolation");
    if (list == NULL || json_is_null(list)) {
        return 0;
    }
    if (!json_is_array(list) || json_array_size(list) == 0) {
        return acre_fail(
            err, ACRE_EINVALID,
            "isolation: accepted: a list with at least one of " ACRE_ISOLATION_CHOICES);
    }
    uint32_t read = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        enum acre_isolation isolation;
        if (text == NULL || !isolation_parse(acre_str_from(text), &isolation)) {
            char shown[64];
            return acre_fail(err, ACRE_EINVALID,
                             "isolation[%zu]: '%s'; accepted: " ACRE_ISOLATION_CHOICES, i,
                             acre_str_show(acre_str_from(text), shown, sizeof(shown)));
        }
        if ((read & UINT32_C(1) << isolation) != 0) {
            return acre_fail(err, ACRE_EINVALID, "isolation[%zu]: '%s' appears twice", i, text);
        }
        read |= UINT32_C(1) << isolation;
    }
    *mask = read;
    return 0;
}

static int read_rules(const json_t *root, struct acre_rules *rules, struct acre_error *err) {
    static const char *const known[] = {"min_milli", "max_milli", "isolation",
                                        "max_allocations_per_device", "sharing_allowed"};
    if (!json_is_object(root)) {
        return acre_fail(err, ACRE_EINVALID, "not an object; accepted: {\"name\": value, ...}");
    }
    int r = acre_json_only_keys(root, known, ACRE_COUNT(known), err);
    if (r == 0) {
        r = read_u32(root, "min_milli", ACRE_RULES_MIN_MILLI, ACRE_RULES_MAX_MILLI,
                     &rules->min_milli, err);
    }
    if (r == 0) {
        r = read_u32(root, "max_milli", ACRE_RULES_MIN_MILLI, ACRE_RULES_MAX_MILLI,
                     &rules->max_milli, err);
    }
    if (r == 0) {
        r = read_u32(root, "max_allocations_per_device", 1, ACRE_RULES_ALLOCATIONS_MAX,
                     &rules->max_allocations_per_device, err);
    }
    if (r == 0) {
        r = acre_json_get_bool(root, "sharing_allowed", false, &rules->sharing_allowed, err);
    }
    if (r == 0) {
        r = read_isolation(root, &rules->isolation_mask, err);
    }
    if (r == 0 && rules->min_milli > rules->max_milli) {
        r = acre_fail(err, ACRE_EINVALID,
                      "min_milli: %" PRIu32 "; accepted: at most max_milli %" PRIu32,
                      rules->min_milli, rules->max_milli);
    }
    return r;
}

int rules_load(const char *name, struct acre_str text, struct acre_rules *ret_rules,
               struct acre_error *err) {
    json_t *root;
    int r = acre_json_parse(name, text, ACRE_RULES_BYTES_MAX, &root, err);
    if (r < 0) {
        return r;
    }
    struct acre_rules rules = defaults;
    r = read_rules(root, &rules, err);
    json_decref(root);
    if (r < 0) {
        return acre_fail_in(err, r, "%s", name);
    }
    *ret_rules = rules;
    return 0;
}

static char *list_allowed(const struct acre_rules *rules, char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < ACRE_ISOLATION_COUNT; i++) {
        if ((rules->isolation_mask & UINT32_C(1) << i) != 0) {
            length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "",
                                       isolation_name((enum acre_isolation)i));
            ACRE_ASSERT(length < size);
        }
    }
    return text;
}

int rules_check(const struct acre_rules *rules, uint32_t milli, enum acre_isolation isolation,
                bool shared, struct acre_error *err) {
    ACRE_ASSERT((unsigned)isolation < ACRE_ISOLATION_COUNT);
    if (milli > 0 && (milli < rules->min_milli || milli > rules->max_milli)) {
        char asked[24], low[24], high[24];
        return acre_fail(err, ACRE_EDENIED,
                         "the policy does not allow a share of %s; allowed: %s to %s",
                         acre_format_milli(milli, asked, sizeof(asked)),
                         acre_format_milli(rules->min_milli, low, sizeof(low)),
                         acre_format_milli(rules->max_milli, high, sizeof(high)));
    }
    if (shared && !rules->sharing_allowed) {
        return acre_fail(err, ACRE_EDENIED,
                         "the policy does not allow sharing; ask for whole GPUs");
    }
    if ((rules->isolation_mask & UINT32_C(1) << isolation) == 0) {
        char allowed[64];
        return acre_fail(err, ACRE_EDENIED, "the policy does not allow isolation '%s'; allowed: %s",
                         isolation_name(isolation), list_allowed(rules, allowed, sizeof(allowed)));
    }
    return 0;
}
