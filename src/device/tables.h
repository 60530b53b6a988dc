/* tables.h - what Acre knows about a device, its state, a process and a node: one table each.
 *
 * A row gives name, type, unit and table heading; the struct, the validity bits, the JSON output
 * and the terminal table all come from it, so that no column is written twice. Bit N of `valid`
 * says whether column N is known: unknown is null in JSON and "-" in tables, never 0. Any thread;
 * pure. It does not know where values come from (device.h). */
#ifndef ACRE_DEVICE_TABLES_H
#define ACRE_DEVICE_TABLES_H

#include "core/json.h"

/* The longest is an NVML name or UUID: 96 bytes with the NUL. */
enum { ACRE_COLUMN_TEXT_MAX = 96 };

/* kind: text, number, whole (signed), flag, reasons. Heading "" stays out of the table; rank is
 * the order in which columns are dropped when the terminal is narrow (0: never, 9: first). */
/* clang-format off */
#define ACRE_INFO_COLUMNS(X)                                                        \
    /* kind    name                        unit   heading     rank */              \
    X(text,    id,                         NONE,  "DEVICE",   0) /* UUID or PCI */ \
    X(flag,    simulated,                  NONE,  "",         0)                   \
    X(text,    driver,                     NONE,  "DRIVER",   7)                   \
    X(text,    kind,                       NONE,  "KIND",     6) /* gpu mig xcp cpu */ \
    X(text,    parent_id,                  NONE,  "",         0) /* of a slice */  \
    X(flag,    divided,                    NONE,  "",         0) /* use its slices */ \
    X(text,    vendor,                     NONE,  "",         0)                   \
    X(text,    model,                      NONE,  "MODEL",    0)                   \
    X(text,    uuid,                       NONE,  "",         0)                   \
    X(text,    pci_id,                     NONE,  "PCI",      4)                   \
    X(text,    serial,                     NONE,  "",         0)                   \
    X(text,    architecture,               NONE,  "",         0)                   \
    X(text,    compute_capability,         NONE,  "",         0)                   \
    X(number,  compute_units,              NONE,  "",         0)                   \
    X(text,    driver_version,             NONE,  "",         0)                   \
    X(text,    library_version,            NONE,  "",         0)                   \
    X(text,    api_version,                NONE,  "",         0) /* CUDA, OpenCL */ \
    X(number,  memory_total_mib,           MIB,   "MEMORY",   0)                   \
    X(whole,   temperature_slowdown_c,     C,     "",         0)                   \
    X(whole,   temperature_shutdown_c,     C,     "",         0)                   \
    X(number,  power_limit_max_mw,         MW,    "",         0)                   \
    X(number,  clock_sm_max_mhz,           MHZ,   "",         0)                   \
    X(number,  clock_memory_max_mhz,       MHZ,   "",         0)                   \
    X(number,  pcie_gen_max,               NONE,  "",         0)                   \
    X(number,  pcie_width_max,             NONE,  "",         0)                   \
    X(number,  nvlinks,                    NONE,  "",         0) /* active links */ \
    X(number,  nvlink_version,             NONE,  "",         0)                   \
    X(number,  numa_node,                  NONE,  "",         0)                   \
    X(text,    cpu_affinity,               NONE,  "",         0) /* "0-31,64-95" */ \
    X(number,  island,                     NONE,  "ISLAND",   5) /* equal: close */ \
    X(text,    island_kind,                NONE,  "",         0)                   \
    X(flag,    ecc_enabled,                NONE,  "",         0)                   \
    X(flag,    persistence_enabled,        NONE,  "",         0)                   \
    X(text,    compute_mode,               NONE,  "",         0)                   \
    X(flag,    mig_enabled,                NONE,  "",         0)                   \
    X(number,  gpu_instance,               NONE,  "",         0) /* MIG */         \
    X(number,  compute_instance,           NONE,  "",         0) /* MIG */         \
    X(text,    compute_partition,          NONE,  "",         0) /* SPX ... CPX */ \
    X(text,    memory_partition,           NONE,  "",         0) /* NPS1 ... */    \
    X(number,  xcds,                       NONE,  "",         0) /* AMD dies */    \
    X(number,  share_step_milli,           NONE,  "",         0) /* CPX: 125 */

#define ACRE_SAMPLE_COLUMNS(X)                                                      \
    X(number,  sampled_ms,                 NONE,  "",         0) /* since 1970 */  \
    X(number,  memory_used_mib,            MIB,   "USED",     0)                   \
    X(number,  memory_free_mib,            MIB,   "FREE",     8)                   \
    X(number,  memory_reserved_mib,        MIB,   "",         0)                   \
    X(number,  memory_foreign_mib,         MIB,   "FOREIGN",  1) /* not Acre's */  \
    X(number,  memory_unattributed_mib,    MIB,   "",         0) /* no process */  \
    X(number,  utilization_gpu_pct,        PCT,   "UTIL",     0)                   \
    X(number,  utilization_memory_pct,     PCT,   "",         0)                   \
    X(whole,   temperature_c,              C,     "TEMP",     2)                   \
    X(whole,   temperature_memory_c,       C,     "",         0)                   \
    X(number,  power_mw,                   MW,    "POWER",    3)                   \
    X(number,  power_limit_mw,             MW,    "LIMIT",    9)                   \
    X(number,  clock_sm_mhz,               MHZ,   "CLOCK",    9)                   \
    X(number,  clock_memory_mhz,           MHZ,   "",         0)                   \
    X(reasons, throttle_reasons,           NONE,  "",         0)                   \
    X(number,  pcie_gen,                   NONE,  "",         0)                   \
    X(number,  pcie_width,                 NONE,  "",         0)                   \
    X(number,  ecc_corrected,              NONE,  "",         0) /* since load */  \
    X(number,  ecc_uncorrected,            NONE,  "",         0)                   \
    X(number,  ecc_corrected_lifetime,     NONE,  "",         0)                   \
    X(number,  ecc_uncorrected_lifetime,   NONE,  "",         0)                   \
    X(number,  pages_retired_corrected,    NONE,  "",         0)                   \
    X(number,  pages_retired_uncorrected,  NONE,  "",         0)                   \
    X(flag,    pages_retire_pending,       NONE,  "",         0)                   \
    X(number,  rows_remapped_corrected,    NONE,  "",         0)                   \
    X(number,  rows_remapped_uncorrected,  NONE,  "",         0)                   \
    X(flag,    rows_remap_pending,         NONE,  "",         0)                   \
    X(flag,    rows_remap_failed,          NONE,  "",         0)                   \
    X(number,  xid_events,                 NONE,  "",         0) /* since open */  \
    X(number,  xid_last,                   NONE,  "",         0)                   \
    X(number,  processes,                  NONE,  "PROCS",    8)                   \
    X(text,    state,                      NONE,  "STATE",    0) /* ok lost ... */ \
    X(text,    reason,                     NONE,  "",         0)

#define ACRE_PROCESS_COLUMNS(X)                                                     \
    X(number,  pid,                        NONE,  "PID",      0)                   \
    X(text,    kind,                       NONE,  "KIND",     3) /* compute ... */ \
    X(text,    user,                       NONE,  "USER",     1)                   \
    X(number,  memory_mib,                 MIB,   "MEMORY",   0)                   \
    X(flag,    foreign,                    NONE,  "FOREIGN",  2)                   \
    X(text,    command,                    NONE,  "COMMAND",  0)

#define ACRE_NODE_COLUMNS(X)                                                        \
    X(text,    name,                       NONE,  "NODE",     0)                   \
    X(flag,    simulated,                  NONE,  "",         0)                   \
    X(text,    kernel,                     NONE,  "",         0)                   \
    X(number,  cpu_milli,                  NONE,  "CPU",      0)                   \
    X(number,  ram_total_mib,              MIB,   "RAM",      0)                   \
    X(number,  ram_available_mib,          MIB,   "FREE",     0)                   \
    X(number,  time_ms,                    NONE,  "",         0)

#define ACRE_THROTTLES(X) /* why clocks are below their maximum */                 \
    X(idle) X(application_clocks) X(software_power_cap) X(hardware_slowdown)       \
    X(sync_boost) X(software_thermal) X(hardware_thermal) X(power_brake) X(display)
/* clang-format on */

#define ACRE_COLUMN_TYPE_text(name)                         char name[ACRE_COLUMN_TEXT_MAX];
#define ACRE_COLUMN_TYPE_number(name)                       uint64_t name;
#define ACRE_COLUMN_TYPE_whole(name)                        int64_t name;
#define ACRE_COLUMN_TYPE_flag(name)                         bool name;
#define ACRE_COLUMN_TYPE_reasons(name)                      uint64_t name;
#define ACRE_COLUMN_MEMBER(kind, name, unit, heading, rank) ACRE_COLUMN_TYPE_##kind(name)

#define ACRE_RECORD(tag, PREFIX, TABLE)                                                            \
    struct tag {                                                                                   \
        uint64_t valid; /* a bit per column, in table order */                                     \
        TABLE(ACRE_COLUMN_MEMBER)                                                                  \
    };                                                                                             \
    enum { TABLE(ACRE_COLUMN_BIT_##PREFIX) PREFIX##_COUNT };                                       \
    _Static_assert((int)PREFIX##_COUNT <= 64, "validity is one 64-bit word")

#define ACRE_COLUMN_BIT_ACRE_INFO(kind, name, unit, heading, rank)    ACRE_INFO_##name,
#define ACRE_COLUMN_BIT_ACRE_SAMPLE(kind, name, unit, heading, rank)  ACRE_SAMPLE_##name,
#define ACRE_COLUMN_BIT_ACRE_PROCESS(kind, name, unit, heading, rank) ACRE_PROCESS_##name,
#define ACRE_COLUMN_BIT_ACRE_NODE(kind, name, unit, heading, rank)    ACRE_NODE_##name,

ACRE_RECORD(acre_device_info, ACRE_INFO, ACRE_INFO_COLUMNS);
ACRE_RECORD(acre_device_sample, ACRE_SAMPLE, ACRE_SAMPLE_COLUMNS);
ACRE_RECORD(acre_device_process, ACRE_PROCESS, ACRE_PROCESS_COLUMNS);
ACRE_RECORD(acre_node_info, ACRE_NODE, ACRE_NODE_COLUMNS);

#endif
