/* value.c - hand-written scanners over a view.
 *
 * Each must consume the whole text: a sysfs file that holds more or less than its format is damaged
 * (or from a newer kernel), and a guess would become a wrong number in the ledger. No scanf or
 * strtoul: they skip blanks, take signs and wrap. */
#include "device/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int refuse(struct acre_error *err, struct acre_str value, const char *accepted) {
    char shown[80];
    return acre_fail(err, ACRE_EINVALID, "value '%s'; accepted: %s",
                     acre_str_show(value, shown, sizeof(shown)), accepted);
}

static struct acre_str without_newline(struct acre_str text) {
    if (text.length > 0 && text.data[text.length - 1] == '\n') {
        text.length--;
    }
    return text;
}

static int digit_of(char c, unsigned base) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return digit < (int)base ? digit : -1;
}

/* True when all of `text` is digits and the number fits. */
static bool scan_u64(struct acre_str text, unsigned base, uint64_t *ret_value) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        int digit = digit_of(text.data[i], base);
        if (digit < 0 || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return text.length > 0;
}

static struct acre_str skip(struct acre_str text, size_t count) {
    ACRE_ASSERT(count <= text.length);
    return (struct acre_str){text.data + count, text.length - count};
}

int value_u64(struct acre_str text, uint64_t max, uint64_t *ret_value, struct acre_error *err) {
    struct acre_str line = acre_str_trim(without_newline(text));
    bool hex = line.length > 2 && line.data[0] == '0' && (line.data[1] | 0x20) == 'x';
    uint64_t value = 0;
    if (!scan_u64(hex ? skip(line, 2) : line, hex ? 16 : 10, &value) || value > max) {
        char accepted[64];
        snprintf(accepted, sizeof(accepted), "a whole number from 0 to %" PRIu64, max);
        return refuse(err, line, accepted);
    }
    *ret_value = value;
    return 0;
}

int value_i64(struct acre_str text, int64_t min, int64_t max, int64_t *ret_value,
              struct acre_error *err) {
    struct acre_str line = acre_str_trim(without_newline(text));
    bool negative = line.length > 0 && line.data[0] == '-';
    uint64_t size = 0;
    bool ok = scan_u64(negative ? skip(line, 1) : line, 10, &size) && size <= INT64_MAX;
    int64_t value = ok ? (negative ? -(int64_t)size : (int64_t)size) : 0;
    if (!ok || value < min || value > max) {
        char accepted[96];
        snprintf(accepted, sizeof(accepted), "a whole number from %" PRId64 " to %" PRId64, min,
                 max);
        return refuse(err, line, accepted);
    }
    *ret_value = value;
    return 0;
}

int value_line(struct acre_str text, struct acre_str *ret_line, struct acre_error *err) {
    struct acre_str line = acre_str_trim(without_newline(text));
    if (line.length == 0 || memchr(line.data, '\n', line.length) != NULL) {
        return refuse(err, line, "one line of text");
    }
    *ret_line = line;
    return 0;
}

int value_find(struct acre_str text, const char *key, char separator, struct acre_str *ret_value,
               struct acre_error *err) {
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    size_t key_length = strlen(key);
    while (acre_split_next(&lines, &line)) {
        if (line.length > key_length && line.data[key_length] == separator &&
            memcmp(line.data, key, key_length) == 0) {
            *ret_value = acre_str_trim(skip(line, key_length + 1));
            return 0;
        }
    }
    return acre_fail(err, ACRE_ENOTFOUND, "no line that starts with '%s%c'", key, separator);
}

int value_find_u64(struct acre_str text, const char *key, char separator, uint64_t max,
                   uint64_t *ret_value, struct acre_error *err) {
    struct acre_str value;
    int r = value_find(text, key, separator, &value, err);
    if (r < 0) {
        return r;
    }
    r = value_u64(value, max, ret_value, err);
    return r < 0 ? acre_fail_in(err, r, "%s", key) : 0;
}

/* "132Mhz *" after the colon; the star may be missing. */
static bool scan_level(struct acre_str text, uint64_t *ret_mhz, bool *ret_current) {
    text = acre_str_trim(text);
    bool current = text.length > 0 && text.data[text.length - 1] == '*';
    if (current) {
        text = acre_str_trim((struct acre_str){text.data, text.length - 1});
    }
    if (text.length <= 3 || strncasecmp(text.data + text.length - 3, "mhz", 3) != 0) {
        return false;
    }
    text.length -= 3;
    *ret_current = current;
    return scan_u64(text, 10, ret_mhz) && *ret_mhz <= 1000000;
}

int value_dpm(struct acre_str text, uint64_t *ret_current_mhz, uint64_t *ret_max_mhz,
              struct acre_error *err) {
    struct acre_split lines = acre_split_begin(without_newline(text), '\n');
    struct acre_str line;
    bool starred = false;
    uint64_t current_mhz = 0;
    uint64_t max_mhz = 0;
    while (acre_split_next(&lines, &line)) {
        const char *colon = line.length > 0 ? memchr(line.data, ':', line.length) : NULL;
        uint64_t mhz = 0;
        bool current = false;
        if (colon == NULL ||
            !scan_level(skip(line, (size_t)(colon - line.data) + 1), &mhz, &current)) {
            return refuse(err, line, "a level like '1: 2100Mhz *'");
        }
        max_mhz = ACRE_MAX(max_mhz, mhz);
        if (current) {
            starred = true;
            current_mhz = mhz;
        }
    }
    if (!starred) {
        return acre_fail(err, ACRE_ENOTFOUND, "no level is marked '*' as the current one");
    }
    *ret_current_mhz = current_mhz;
    *ret_max_mhz = max_mhz;
    return 0;
}

int value_pcie_gen(struct acre_str text, uint64_t *ret_gen, struct acre_error *err) {
    static const struct {
        const char *speed;
        uint64_t gen;
    } speeds[] = {{"2.5 GT/s", 1}, {"5.0 GT/s", 2},  {"5 GT/s", 2},  {"8.0 GT/s", 3},
                  {"8 GT/s", 3},   {"16.0 GT/s", 4}, {"16 GT/s", 4}, {"32.0 GT/s", 5},
                  {"32 GT/s", 5},  {"64.0 GT/s", 6}, {"64 GT/s", 6}};
    struct acre_str line = acre_str_trim(without_newline(text));
    for (size_t i = 0; i < ACRE_COUNT(speeds); i++) {
        size_t length = strlen(speeds[i].speed);
        if (line.length >= length && memcmp(line.data, speeds[i].speed, length) == 0 &&
            (line.length == length || line.data[length] == ' ')) {
            *ret_gen = speeds[i].gen;
            return 0;
        }
    }
    return refuse(err, line, "a PCIe speed like '32.0 GT/s PCIe'");
}

void pci_id_format(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function,
                   char ret_id[ACRE_PCI_ID_MAX]) {
    snprintf(ret_id, ACRE_PCI_ID_MAX, "%04x:%02x:%02x.%x", domain, bus & 0xff, device & 0x1f,
             function & 0x7);
}

int value_pci_id(struct acre_str text, char ret_id[ACRE_PCI_ID_MAX], struct acre_error *err) {
    struct acre_str line = acre_str_trim(without_newline(text));
    struct acre_split parts = acre_split_begin(line, ':');
    struct acre_str domain, bus, rest, extra;
    uint64_t number[4] = {0};
    bool ok = acre_split_next(&parts, &domain) && acre_split_next(&parts, &bus) &&
              acre_split_next(&parts, &rest) && !acre_split_next(&parts, &extra);
    ok = ok && domain.length >= 4 && domain.length <= 8 && bus.length == 2 && rest.length == 4 &&
         rest.data[2] == '.';
    ok = ok && scan_u64(domain, 16, &number[0]) && scan_u64(bus, 16, &number[1]) &&
         scan_u64((struct acre_str){rest.data, 2}, 16, &number[2]) &&
         scan_u64((struct acre_str){rest.data + 3, 1}, 16, &number[3]);
    if (!ok || number[2] > 0x1f || number[3] > 7) {
        return refuse(err, line, "a PCI id like '0000:3b:00.0'");
    }
    pci_id_format((uint32_t)number[0], (uint32_t)number[1], (uint32_t)number[2],
                  (uint32_t)number[3], ret_id);
    return 0;
}

/* "5" or "0-31": first and last, at most 2^20 CPUs (the kernel's limit is 8192 today). */
static bool scan_range(struct acre_str part, uint64_t *ret_first, uint64_t *ret_last) {
    const char *dash = part.length > 0 ? memchr(part.data, '-', part.length) : NULL;
    if (dash == NULL) {
        *ret_last = 0;
        bool ok = scan_u64(part, 10, ret_first);
        *ret_last = *ret_first;
        return ok && *ret_first < UINT64_C(1) << 20;
    }
    size_t at = (size_t)(dash - part.data);
    return scan_u64((struct acre_str){part.data, at}, 10, ret_first) &&
           scan_u64(skip(part, at + 1), 10, ret_last) && *ret_first <= *ret_last &&
           *ret_last < UINT64_C(1) << 20;
}

int value_cpu_list(struct acre_str text, uint64_t *ret_count, struct acre_error *err) {
    struct acre_str line = acre_str_trim(without_newline(text));
    struct acre_split parts = acre_split_begin(line, ',');
    struct acre_str part;
    uint64_t count = 0;
    uint64_t next = 0; /* lowest CPU a further range may start with */
    while (acre_split_next(&parts, &part)) {
        uint64_t first = 0;
        uint64_t last = 0;
        if (!scan_range(part, &first, &last) || first < next) {
            return refuse(err, line, "a CPU list like '0-31,64-95'");
        }
        count += last - first + 1;
        next = last + 1;
    }
    *ret_count = count;
    return 0;
}
