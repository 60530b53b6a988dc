/* column.h - reading and printing any record of tables.h through its table.
 *
 * Pure; any thread. It does not decide what is shown where: callers pick columns by heading. */
#ifndef ACRE_DEVICE_COLUMN_H
#define ACRE_DEVICE_COLUMN_H

#include "device/tables.h"

enum column_kind {
    ACRE_COLUMN_text,
    ACRE_COLUMN_number,
    ACRE_COLUMN_whole,
    ACRE_COLUMN_flag,
    ACRE_COLUMN_reasons, /* bits of enum throttle */
};

enum unit {
    ACRE_UNIT_NONE,
    ACRE_UNIT_MIB,
    ACRE_UNIT_MW,
    ACRE_UNIT_PCT,
    ACRE_UNIT_C,
    ACRE_UNIT_MHZ,
};

enum throttle {
#define X(name) ACRE_THROTTLE_##name,
    ACRE_THROTTLES(X)
#undef X
        ACRE_THROTTLE_COUNT
};

struct acre_column {
    const char *name; /* the JSON key; its ending is its unit */
    const char *heading;
    enum column_kind kind;
    enum unit unit;
    uint32_t rank;
    size_t offset;
};

struct acre_record_type {
    const char *name;
    const struct acre_column *columns;
    uint32_t count;
};

extern const struct acre_record_type info_type;
extern const struct acre_record_type sample_type;
extern const struct acre_record_type process_type;
extern const struct acre_record_type node_type;

/* ACRE_HAS(info, ACRE_INFO, uuid); ACRE_PUT(sample, ACRE_SAMPLE, power_mw, 75000);
 * ACRE_PUT_TEXT cuts at ACRE_COLUMN_TEXT_MAX, makes control characters visible as '?', and
 * leaves the column unknown when the text is empty. */
#define ACRE_HAS(record, PREFIX, column) ((((record)->valid) >> PREFIX##_##column & 1) != 0)
#define ACRE_PUT(record, PREFIX, column, value)                                                    \
    ((record)->column = (value), (record)->valid |= UINT64_C(1) << PREFIX##_##column, (void)0)
#define ACRE_PUT_TEXT(record, PREFIX, column, view)                                                \
    column_put_text((record)->column, &(record)->valid, PREFIX##_##column, (view))
#define ACRE_FORGET(record, PREFIX, column)                                                        \
    ((record)->valid &= ~(UINT64_C(1) << PREFIX##_##column), (void)0)

void column_put_text(char *to, uint64_t *valid, int bit, struct acre_str text);

bool column_known(const struct acre_record_type *type, const void *record, uint32_t index);

/* The column as JSON: null when unknown; reasons as an array of names. Inside an object. */
void column_json(struct acre_json *json, const struct acre_record_type *type, const void *record,
                 uint32_t index);
/* All columns, in table order, into the open object. */
void record_json(struct acre_json *json, const struct acre_record_type *type, const void *record);

/* The column as people read it: "139.8 GiB", "76 W", "31 C", "yes"; "-" when unknown. Writes at
 * most `size` bytes, NUL included, and returns `text`. */
char *column_format(const struct acre_record_type *type, const void *record, uint32_t index,
                    char *text, size_t size);

const char *throttle_name(enum throttle reason);

#endif
