/* column.c - one walk over a column table prints any record.
 *
 * Every record begins with its `valid` word, so a column is reached by type + offset and its
 * validity by position; the four tables need no code of their own. */
#include "device/column.h"

#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COLUMN_ROW(tag, column_kind, column_name, column_unit, column_heading, column_rank)        \
    {.name = #column_name,                                                                         \
     .heading = column_heading,                                                                    \
     .kind = ACRE_COLUMN_##column_kind,                                                            \
     .unit = ACRE_UNIT_##column_unit,                                                              \
     .rank = column_rank,                                                                          \
     .offset = offsetof(struct tag, column_name)},

static const struct acre_column info_columns[] = {
#define X(...) COLUMN_ROW(acre_device_info, __VA_ARGS__)
    ACRE_INFO_COLUMNS(X)
#undef X
};

static const struct acre_column sample_columns[] = {
#define X(...) COLUMN_ROW(acre_device_sample, __VA_ARGS__)
    ACRE_SAMPLE_COLUMNS(X)
#undef X
};

static const struct acre_column process_columns[] = {
#define X(...) COLUMN_ROW(acre_device_process, __VA_ARGS__)
    ACRE_PROCESS_COLUMNS(X)
#undef X
};

static const struct acre_column node_columns[] = {
#define X(...) COLUMN_ROW(acre_node_info, __VA_ARGS__)
    ACRE_NODE_COLUMNS(X)
#undef X
};

const struct acre_record_type info_type = {"device", info_columns, ACRE_INFO_COUNT};
const struct acre_record_type sample_type = {"live", sample_columns, ACRE_SAMPLE_COUNT};
const struct acre_record_type process_type = {"process", process_columns, ACRE_PROCESS_COUNT};
const struct acre_record_type node_type = {"node", node_columns, ACRE_NODE_COUNT};

_Static_assert(offsetof(struct acre_device_info, valid) == 0, "valid comes first");
_Static_assert(offsetof(struct acre_device_sample, valid) == 0, "valid comes first");
_Static_assert(offsetof(struct acre_device_process, valid) == 0, "valid comes first");
_Static_assert(offsetof(struct acre_node_info, valid) == 0, "valid comes first");

static const char *const throttle_names[] = {
#define X(name) #name,
    ACRE_THROTTLES(X)
#undef X
};

const char *throttle_name(enum throttle reason) {
    ACRE_ASSERT((size_t)reason < ACRE_COUNT(throttle_names));
    return throttle_names[reason];
}

/* Back off over the bytes of a UTF-8 character that the cut would split. */
static size_t cut_length(struct acre_str text, size_t room) {
    size_t length = ACRE_MIN(text.length, room);
    if (length == text.length) {
        return length;
    }
    while (length > 0 && ((unsigned char)text.data[length] & 0xc0) == 0x80) {
        length--;
    }
    return length;
}

void column_put_text(char *to, uint64_t *valid, int bit, struct acre_str text) {
    ACRE_ASSERT(bit >= 0 && bit < 64);
    text = acre_str_trim(text);
    size_t length = cut_length(text, ACRE_COLUMN_TEXT_MAX - 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text.data[i];
        to[i] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    to[length] = '\0';
    if (length > 0) {
        *valid |= UINT64_C(1) << bit;
    } else {
        *valid &= ~(UINT64_C(1) << bit);
    }
}

bool column_known(const struct acre_record_type *type, const void *record, uint32_t index) {
    ACRE_ASSERT(index < type->count);
    return (*(const uint64_t *)record >> index & 1) != 0;
}

static const void *member_of(const struct acre_column *column, const void *record) {
    return (const char *)record + column->offset;
}

static void reasons_json(struct acre_json *json, uint64_t reasons) {
    acre_json_array(json);
    for (uint32_t i = 0; i < ACRE_THROTTLE_COUNT; i++) {
        if ((reasons >> i & 1) != 0) {
            acre_json_string(json, throttle_names[i]);
        }
    }
    acre_json_array_end(json);
}

void column_json(struct acre_json *json, const struct acre_record_type *type, const void *record,
                 uint32_t index) {
    const struct acre_column *column = &type->columns[index];
    acre_json_key(json, column->name);
    if (!column_known(type, record, index)) {
        acre_json_null(json);
        return;
    }
    const void *at = member_of(column, record);
    switch (column->kind) {
    case ACRE_COLUMN_text:
        acre_json_string(json, at);
        break;
    case ACRE_COLUMN_number:
        acre_json_u64(json, *(const uint64_t *)at);
        break;
    case ACRE_COLUMN_whole:
        acre_json_i64(json, *(const int64_t *)at);
        break;
    case ACRE_COLUMN_flag:
        acre_json_bool(json, *(const bool *)at);
        break;
    case ACRE_COLUMN_reasons:
        reasons_json(json, *(const uint64_t *)at);
        break;
    }
}

void record_json(struct acre_json *json, const struct acre_record_type *type, const void *record) {
    for (uint32_t i = 0; i < type->count; i++) {
        column_json(json, type, record, i);
    }
}

static char *format_reasons(uint64_t reasons, char *text, size_t size) {
    size_t used = 0;
    snprintf(text, size, "none");
    for (uint32_t i = 0; i < ACRE_THROTTLE_COUNT && used < size; i++) {
        if ((reasons >> i & 1) != 0) {
            int length =
                snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "", throttle_names[i]);
            used += (size_t)length;
        }
    }
    return text;
}

static char *format_number(enum unit unit, uint64_t value, char *text, size_t size) {
    switch (unit) {
    case ACRE_UNIT_MIB:
        return acre_format_mib(value, text, size);
    case ACRE_UNIT_MW:
        snprintf(text, size, "%" PRIu64 " W", value / 1000 + (value % 1000 >= 500));
        return text;
    case ACRE_UNIT_PCT:
        snprintf(text, size, "%" PRIu64 " %%", value);
        return text;
    case ACRE_UNIT_MHZ:
        snprintf(text, size, "%" PRIu64 " MHz", value);
        return text;
    case ACRE_UNIT_C:
    case ACRE_UNIT_NONE:
        break;
    }
    snprintf(text, size, "%" PRIu64, value);
    return text;
}

char *column_format(const struct acre_record_type *type, const void *record, uint32_t index,
                    char *text, size_t size) {
    ACRE_ASSERT(size > 0);
    const struct acre_column *column = &type->columns[index];
    const void *at = member_of(column, record);
    if (!column_known(type, record, index)) {
        snprintf(text, size, "-");
        return text;
    }
    switch (column->kind) {
    case ACRE_COLUMN_text:
        snprintf(text, size, "%s", (const char *)at);
        break;
    case ACRE_COLUMN_number:
        return format_number(column->unit, *(const uint64_t *)at, text, size);
    case ACRE_COLUMN_whole:
        snprintf(text, size, "%" PRId64 "%s", *(const int64_t *)at,
                 column->unit == ACRE_UNIT_C ? " C" : "");
        break;
    case ACRE_COLUMN_flag:
        snprintf(text, size, "%s", *(const bool *)at ? "yes" : "no");
        break;
    case ACRE_COLUMN_reasons:
        return format_reasons(*(const uint64_t *)at, text, size);
    }
    return text;
}
