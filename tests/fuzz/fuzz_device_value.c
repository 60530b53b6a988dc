/* Any bytes as a kernel's or driver's value: number files, uevent, properties, clock levels, CPU
 * lists, PCI ids, command lines. The first byte picks the parser. */
#include "device/partition.h"
#include "device/process_name.h"
#include "device/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(int r, const struct acre_error *err) {
    ACRE_ASSERT(r == 0 || (r < 0 && err->code == r && err->text[0] != '\0'));
}

static int parse_numbers(struct acre_str text, struct acre_error *err) {
    int64_t whole = 0;
    uint64_t value = 0;
    int r = value_i64(text, -1000, 1000, &whole, err);
    ACRE_ASSERT(whole >= -1000 && whole <= 1000);
    check_error(r, err);
    r = value_u64(text, 1000000, &value, err);
    ACRE_ASSERT(value <= 1000000);
    return r;
}

static int parse_keys(struct acre_str text, struct acre_error *err) {
    struct acre_str value;
    uint64_t number = 0;
    if (value_find(text, "PCI_SLOT_NAME", '=', &value, err) == 0) {
        char id[ACRE_PCI_ID_MAX];
        return value_pci_id(value, id, err);
    }
    check_error(value_find_u64(text, "ue", ':', UINT32_MAX, &number, err), err);
    return value_find_u64(text, "simd_count", ' ', UINT32_MAX, &number, err);
}

static int parse_modes(struct acre_str text, struct acre_error *err) {
    enum compute_partition compute;
    enum memory_partition memory;
    check_error(partition_compute_parse(text, &compute, err), err);
    return partition_memory_parse(text, &memory, err);
}

static int parse_one(uint8_t which, struct acre_str text, struct acre_error *err) {
    uint64_t a = 0;
    uint64_t b = 0;
    char id[ACRE_PCI_ID_MAX];
    struct acre_str line;
    struct acre_device_process process = {0};
    int r = 0;
    switch (which % 9) {
    case 0:
        return parse_numbers(text, err);
    case 1:
        r = value_line(text, &line, err);
        ACRE_ASSERT(r < 0 || line.length > 0);
        return r;
    case 2:
        return parse_keys(text, err);
    case 3:
        r = value_dpm(text, &a, &b, err);
        ACRE_ASSERT(a <= b);
        return r;
    case 4:
        return value_pcie_gen(text, &a, err);
    case 5:
        return value_pci_id(text, id, err);
    case 6:
        r = value_cpu_list(text, &a, err);
        ACRE_ASSERT(r < 0 || (a > 0 && a <= UINT64_C(1) << 20));
        return r;
    case 7:
        process_command(text, &process);
        return 0;
    default:
        return parse_modes(text, err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_error err = {0};
    if (size == 0) {
        return 0;
    }
    struct acre_str text = {(const char *)data + 1, size - 1};
    int r = parse_one(data[0], text, &err);
    check_error(r, &err);
    return 0;
}
