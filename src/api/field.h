/* field.h - what a request body or a query may hold: tables of fields, checked and documented.
 *
 * A table ends with a row without a name. Unknown fields, missing ones, wrong types, numbers out
 * of range and words that are not known are refused with the field, the value and what is
 * accepted; null counts as absent. The OpenAPI document is printed from the same rows. What a
 * table cannot say (one of two fields, a name that must exist) is the handler's to check.
 *
 * Pure; any thread. */
#ifndef ACRE_API_FIELD_H
#define ACRE_API_FIELD_H

#include "core/json.h"

struct acre_exchange;

/* What a value may be; a field may accept several: ACRE_KIND_STRING | ACRE_KIND_STRINGS. In a query
 * everything is text, so there lists, maps and objects make no sense. */
enum field_kind {
    ACRE_KIND_STRING = 1 << 0,   /* at most max_length bytes; one of `words` where there are some */
    ACRE_KIND_INTEGER = 1 << 1,  /* min ... max */
    ACRE_KIND_NUMBER = 1 << 2,   /* whole or not, min ... max */
    ACRE_KIND_BOOL = 1 << 3,     /* in a query: 1, true, 0, false */
    ACRE_KIND_STRINGS = 1 << 4,  /* a list of at most max_length strings */
    ACRE_KIND_MAP = 1 << 5,      /* an object of at most max_length strings */
    ACRE_KIND_DURATION = 1 << 6, /* seconds as a number, or "2h30m" */
    ACRE_KIND_MEMORY = 1 << 7,   /* MiB as a whole number, or "20GiB" */
    ACRE_KIND_TIME = 1 << 8,     /* "2026-11-15T02:30:00Z" (RFC 3339) */
    ACRE_KIND_OBJECT = 1 << 9,   /* any: the handler looks inside */
    ACRE_KIND_ARRAY = 1 << 10,   /* any: the handler looks inside */
};

struct field {
    const char *name;
    uint32_t kinds;
    bool required;
    double min, max;          /* of numbers; both 0: 0 ... 2^53 */
    const char *const *words; /* the strings that are accepted, NULL at the end; NULL: any */
    uint32_t max_length; /* bytes or items; 0: ACRE_FIELD_LENGTH_MAX bytes, ..ITEMS_MAX items */
    const char *help;    /* a line for OpenAPI */
};

enum { ACRE_FIELD_LENGTH_MAX = 4096, ACRE_FIELD_ITEMS_MAX = 1024 };
#define ACRE_FIELD_NUMBER_MAX 9007199254740992.0 /* 2^53: whole numbers are exact up to here */

/* ACRE_EINVALID naming the first field that is wrong. `fields` NULL: none is accepted. */
int fields_check_body(const struct field *fields, const json_t *body, struct acre_error *err);
int fields_check_query(const struct field *fields, struct acre_exchange *exchange,
                       struct acre_error *err);
/* One value given as text; the query's rules. */
int field_check_text(const struct field *field, const char *text, struct acre_error *err);

/* Read what has been checked: false (and nothing written) when it is absent, null or not of that
 * kind. A duration is ms, a time is wall ms, memory is MiB. */
bool field_duration(const json_t *value, uint64_t *ret_ms);
bool field_memory(const json_t *value, uint64_t *ret_mib);
bool field_time(const json_t *value, uint64_t *ret_wall_ms);
bool field_duration_text(const char *text, uint64_t *ret_ms);
bool field_time_text(const char *text, uint64_t *ret_wall_ms);

#endif
