/* Records: unknown is never shown as 0, and one table gives every picture (DEV, STYLE). */
#include "device/column.h"

#include "support/test.h"

#include <stdlib.h>

static const struct acre_record_type *const types[] = {&info_type, &sample_type, &process_type,
                                                       &node_type};

/* The JSON of a record; the caller frees the buffer. */
static struct acre_buf as_json(const struct acre_record_type *type, const void *record) {
    struct acre_buf out;
    struct acre_json json;
    acre_buf_init(&out, 1 << 16);
    acre_json_begin(&json, &out, false);
    acre_json_object(&json);
    record_json(&json, type, record);
    acre_json_object_end(&json);
    REQUIRE(acre_json_end(&json) == 0);
    return out;
}

static void unknown_is_null_and_a_dash(void) {
    static const char nothing[8192];
    for (size_t t = 0; t < ACRE_COUNT(types); t++) {
        struct acre_buf out = as_json(types[t], nothing);
        json_t *root = json_loads(out.data, 0, NULL);
        REQUIRE(root != NULL);
        CHECK_U64(json_object_size(root), types[t]->count);
        for (uint32_t i = 0; i < types[t]->count; i++) {
            char text[32];
            acre_test_context("%s", types[t]->columns[i].name);
            CHECK(json_is_null(json_object_get(root, types[t]->columns[i].name)));
            CHECK_STR(column_format(types[t], nothing, i, text, sizeof(text)), "-");
            CHECK(!column_known(types[t], nothing, i));
        }
        json_decref(root);
        acre_buf_finish(&out);
    }
}

static void a_known_zero_is_zero(void) {
    struct acre_device_sample sample = {0};
    char text[32];
    ACRE_PUT(&sample, ACRE_SAMPLE, utilization_gpu_pct, 0);
    struct acre_buf out = as_json(&sample_type, &sample);
    CHECK_HAS(out.data, "\"utilization_gpu_pct\":0");
    CHECK_HAS(out.data, "\"power_mw\":null");
    CHECK_STR(
        column_format(&sample_type, &sample, ACRE_SAMPLE_utilization_gpu_pct, text, sizeof(text)),
        "0 %");
    acre_buf_finish(&out);
}

static void fields_read_as_people_write_them(void) {
    struct acre_device_sample sample = {0};
    struct acre_device_info info = {0};
    ACRE_PUT(&sample, ACRE_SAMPLE, memory_used_mib, 1536);
    ACRE_PUT(&sample, ACRE_SAMPLE, power_mw, 76500);
    ACRE_PUT(&sample, ACRE_SAMPLE, temperature_c, -5);
    ACRE_PUT(&sample, ACRE_SAMPLE, clock_sm_mhz, 1980);
    ACRE_PUT(&sample, ACRE_SAMPLE, rows_remap_pending, true);
    ACRE_PUT(&sample, ACRE_SAMPLE, rows_remap_failed, false);
    ACRE_PUT(&sample, ACRE_SAMPLE, throttle_reasons,
             1U << ACRE_THROTTLE_software_power_cap | 1U << ACRE_THROTTLE_hardware_thermal);
    ACRE_PUT(&info, ACRE_INFO, nvlinks, 18);
    static const struct {
        int index;
        const char *text;
    } cases[] = {
        {ACRE_SAMPLE_memory_used_mib, "1.5 GiB"},
        {ACRE_SAMPLE_power_mw, "77 W"},
        {ACRE_SAMPLE_temperature_c, "-5 C"},
        {ACRE_SAMPLE_clock_sm_mhz, "1980 MHz"},
        {ACRE_SAMPLE_rows_remap_pending, "yes"},
        {ACRE_SAMPLE_rows_remap_failed, "no"},
        {ACRE_SAMPLE_throttle_reasons, "software_power_cap,hardware_thermal"},
    };
    char text[64];
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        CHECK_STR(
            column_format(&sample_type, &sample, (uint32_t)cases[i].index, text, sizeof(text)),
            cases[i].text);
    }
    CHECK_STR(column_format(&info_type, &info, ACRE_INFO_nvlinks, text, sizeof(text)), "18");
    CHECK_STR(column_format(&sample_type, &sample, ACRE_SAMPLE_throttle_reasons, text, 8),
              "softwar");
    ACRE_PUT(&sample, ACRE_SAMPLE, throttle_reasons, 0);
    CHECK_STR(
        column_format(&sample_type, &sample, ACRE_SAMPLE_throttle_reasons, text, sizeof(text)),
        "none");
    struct acre_buf out = as_json(&sample_type, &sample);
    CHECK_HAS(out.data, "\"throttle_reasons\":[]");
    CHECK_HAS(out.data, "\"temperature_c\":-5");
    CHECK_HAS(out.data, "\"rows_remap_pending\":true");
    acre_buf_finish(&out);
}

static void reasons_are_listed_by_name(void) {
    struct acre_device_sample sample = {0};
    ACRE_PUT(&sample, ACRE_SAMPLE, throttle_reasons, (1U << ACRE_THROTTLE_COUNT) - 1);
    struct acre_buf out = as_json(&sample_type, &sample);
    for (uint32_t i = 0; i < ACRE_THROTTLE_COUNT; i++) {
        CHECK_HAS(out.data, throttle_name((enum throttle)i));
    }
    acre_buf_finish(&out);
}

static void texts_are_trimmed_cut_and_made_printable(void) {
    struct acre_device_info info = {0};
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, ACRE_STR("  NVIDIA \x1b[31mH200\n "));
    CHECK_STR(info.model, "NVIDIA ?[31mH200?");
    char big[300];
    memset(big, 'x', sizeof(big));
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, ((struct acre_str){big, sizeof(big)}));
    CHECK_U64(strlen(info.model), ACRE_COLUMN_TEXT_MAX - 1);
    memcpy(big + ACRE_COLUMN_TEXT_MAX - 2, "\xc3\xa9", 2); /* would be cut in the middle */
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, ((struct acre_str){big, sizeof(big)}));
    CHECK_U64(strlen(info.model), ACRE_COLUMN_TEXT_MAX - 2);
    CHECK(ACRE_HAS(&info, ACRE_INFO, model));
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, ACRE_STR("   "));
    CHECK(!ACRE_HAS(&info, ACRE_INFO, model));
    ACRE_PUT_TEXT(&info, ACRE_INFO, model, ACRE_STR("x"));
    ACRE_FORGET(&info, ACRE_INFO, model);
    CHECK(!ACRE_HAS(&info, ACRE_INFO, model));
}

static void names_end_in_their_unit(void) {
    static const char *const endings[] = {
        [ACRE_UNIT_NONE] = "",    [ACRE_UNIT_MIB] = "_mib", [ACRE_UNIT_MW] = "_mw",
        [ACRE_UNIT_PCT] = "_pct", [ACRE_UNIT_C] = "_c",     [ACRE_UNIT_MHZ] = "_mhz",
    };
    for (size_t t = 0; t < ACRE_COUNT(types); t++) {
        for (uint32_t i = 0; i < types[t]->count; i++) {
            const struct acre_column *field = &types[t]->columns[i];
            size_t length = strlen(endings[field->unit]);
            acre_test_context("%s", field->name);
            CHECK(strlen(field->name) > length);
            CHECK_STR(field->name + strlen(field->name) - length, endings[field->unit]);
            for (uint32_t j = 0; j < i; j++) {
                CHECK(strcmp(field->name, types[t]->columns[j].name) != 0);
            }
        }
    }
}

static const struct acre_test tests[] = {
    {"unknown_is_null_and_a_dash", unknown_is_null_and_a_dash, 0},
    {"a_known_zero_is_zero", a_known_zero_is_zero, 0},
    {"fields_read_as_people_write_them", fields_read_as_people_write_them, 0},
    {"reasons_are_listed_by_name", reasons_are_listed_by_name, 0},
    {"texts_are_trimmed_cut_and_made_printable", texts_are_trimmed_cut_and_made_printable, 0},
    {"names_end_in_their_unit", names_end_in_their_unit, 0},
};

ACRE_TEST_MAIN(tests)
