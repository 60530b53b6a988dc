/* record.h - reading and printing any record of fields.h through its table.
 *
 * Pure; any thread. It does not decide what is shown where: callers pick fields by heading. */
#ifndef ACRE_DEVICE_RECORD_H
#define ACRE_DEVICE_RECORD_H

#include "device/fields.h"

enum acre_column_kind {
    ACRE_FIELD_text,
    ACRE_FIELD_number,
    ACRE_FIELD_whole,
    ACRE_FIELD_flag,
    ACRE_FIELD_reasons, /* bits of enum acre_throttle */
};

enum acre_unit {
    ACRE_UNIT_NONE,
    ACRE_UNIT_MIB,
    ACRE_UNIT_MW,
    ACRE_UNIT_PCT,
    ACRE_UNIT_C,
    ACRE_UNIT_MHZ,
};

enum acre_throttle {
#define X(name) ACRE_THROTTLE_##name,
    ACRE_THROTTLES(X)
#undef X
        ACRE_THROTTLE_COUNT
};

struct acre_column {
    const char *name; /* the JSON key; its ending is its unit */
    const char *heading;
    enum acre_column_kind kind;
    enum acre_unit unit;
    uint32_t rank;
    size_t offset;
};

struct acre_record_type {
    const char *name;
    const struct acre_column *fields;
    uint32_t count;
};

extern const struct acre_record_type acre_info_type;
extern const struct acre_record_type acre_sample_type;
extern const struct acre_record_type acre_process_type;
extern const struct acre_record_type acre_node_type;

/* ACRE_HAS(info, ACRE_INFO, uuid); ACRE_PUT(sample, ACRE_SAMPLE, power_mw, 75000);
 * ACRE_PUT_TEXT cuts at ACRE_FIELD_TEXT_MAX, makes control characters visible as '?', and
 * leaves the field unknown when the text is empty. */
#define ACRE_HAS(record, PREFIX, field) ((((record)->valid) >> PREFIX##_##field & 1) != 0)
#define ACRE_PUT(record, PREFIX, field, value)                                                     \
    ((record)->field = (value), (record)->valid |= UINT64_C(1) << PREFIX##_##field, (void)0)
#define ACRE_PUT_TEXT(record, PREFIX, field, view)                                                 \
    acre_column_put_text((record)->field, &(record)->valid, PREFIX##_##field, (view))
#define ACRE_FORGET(record, PREFIX, field)                                                         \
    ((record)->valid &= ~(UINT64_C(1) << PREFIX##_##field), (void)0)

void acre_column_put_text(char *to, uint64_t *valid, int bit, struct acre_str text);

bool acre_column_known(const struct acre_record_type *type, const void *record, uint32_t index);

/* The field as JSON: null when unknown; reasons as an array of names. Inside an object. */
void acre_column_json(struct acre_json *json, const struct acre_record_type *type,
                      const void *record, uint32_t index);
/* All fields, in table order, into the open object. */
void acre_record_json(struct acre_json *json, const struct acre_record_type *type,
                      const void *record);

/* The field as people read it: "139.8 GiB", "76 W", "31 C", "yes"; "-" when unknown. Writes at
 * most `size` bytes, NUL included, and returns `text`. */
char *acre_column_format(const struct acre_record_type *type, const void *record, uint32_t index,
                         char *text, size_t size);

const char *acre_throttle_name(enum acre_throttle reason);

#endif
