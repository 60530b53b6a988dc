/* value.h - the small texts that kernels and drivers provide, parsed strictly.
 *
 * Numbers that do not fit are errors, never wrapped; on failure outputs are untouched and `err`
 * (NULL is fine) shows the value and what is accepted. The caller adds the file's name. Pure; any
 * thread. It reads no files (sysfs.h does). */
#ifndef ACRE_DEVICE_VALUE_H
#define ACRE_DEVICE_VALUE_H

#include "core/error.h"
#include "core/str.h"

enum { ACRE_PCI_ID_MAX = 20 }; /* "ffffffff:ff:1f.7" and the NUL, rounded up */

/* "123\n" or "0x1a2b\n". */
int value_u64(struct acre_str text, uint64_t max, uint64_t *ret_value, struct acre_error *err);
/* "-5000\n": a temperature in thousandths. */
int value_i64(struct acre_str text, int64_t min, int64_t max, int64_t *ret_value,
              struct acre_error *err);
/* One line of text without its newline; empty and multi-line texts are refused. */
int value_line(struct acre_str text, struct acre_str *ret_line, struct acre_error *err);

/* The value of `key` in lines of "KEY=value" (uevent), "key value" (KFD properties) or
 * "key: value" (RAS counts, meminfo); `separator` is '=', ' ' or ':'. Blanks around the value
 * are cut. ACRE_ENOTFOUND when no line has the key. */
int value_find(struct acre_str text, const char *key, char separator, struct acre_str *ret_value,
               struct acre_error *err);
int value_find_u64(struct acre_str text, const char *key, char separator, uint64_t max,
                   uint64_t *ret_value, struct acre_error *err);

/* pp_dpm_sclk: "S: 19Mhz *\n0: 132Mhz\n1: 2100Mhz\n"; the starred level is the current one.
 * ACRE_ENOTFOUND when no level is starred. */
int value_dpm(struct acre_str text, uint64_t *ret_current_mhz, uint64_t *ret_max_mhz,
              struct acre_error *err);

/* "32.0 GT/s PCIe" -> 5. */
int value_pcie_gen(struct acre_str text, uint64_t *ret_gen, struct acre_error *err);

/* "0000:3B:00.0" or NVML's "00000000:3B:00.0" -> "0000:3b:00.0", the kernel's spelling. */
int value_pci_id(struct acre_str text, char ret_id[ACRE_PCI_ID_MAX], struct acre_error *err);
void pci_id_format(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function,
                   char ret_id[ACRE_PCI_ID_MAX]);

/* How many CPUs "0-31,64-95\n" names. Descending, doubled or overlapping ranges are refused. */
int value_cpu_list(struct acre_str text, uint64_t *ret_count, struct acre_error *err);

#endif
