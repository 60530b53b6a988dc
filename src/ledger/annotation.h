/* annotation.h - what a pod's annotations and resource quantities ask of a GPU (ALC-5).
 *
 *   kaiwo.ai/gpu-fraction    "0.1" to "1.0", at most three decimals: a share of one GPU
 *   kaiwo.ai/gpu-memory      whole MiB, "1" and up: memory on each GPU
 *   kaiwo.ai/gpu-sharing     "true" or "false", any case
 *   kaiwo.ai/gpu-isolation   "none", "time-slicing", "mps" or "mig"
 *   amd.com/gpu              below 100: whole GPUs; from 100: thousandths of a GPU, so 500 is half
 *                            of one and 2000 are two; 1500 is neither and refused
 *   nvidia.com/gpu           whole GPUs
 *
 * What was not said is concluded: less than one GPU (a fraction, thousandths, memory alone) is
 * shared with others; whole GPUs, a fraction of 1.0 and a MIG slice are not. Memory alone with
 * sharing "false" is one whole GPU that has so much free. One GPU together with a fraction, or
 * with memory and sharing "true" or isolation "mig", is the usual way to name the vendor of a
 * share: it is read as that share of one GPU.
 *
 * Refused, because two parts contradict each other: both vendors; more than one GPU with a
 * fraction; thousandths and a different fraction; less than one GPU with sharing "false" (except
 * MIG, whose slice is not shared); whole GPUs with sharing "true", or with any isolation but
 * "none"; time-slicing or mps with sharing "false"; mig with sharing "true" or on AMD; sharing
 * or isolation without saying how much; a key given twice. Unknown keys that begin with
 * "kaiwo.ai/gpu" (in any case) are refused as typing errors; other keys are passed over.
 *
 * Pure; any thread. It knows no limits of the cluster: that is rules.h. */
#ifndef ACRE_LEDGER_ANNOTATION_H
#define ACRE_LEDGER_ANNOTATION_H

#include "core/error.h"
#include "ledger/isolation.h"

/* 4096 GPUs are 512 nodes of eight: the largest gang anybody runs. */
enum { ACRE_ANNOTATION_GPUS_MAX = 4096, ACRE_ANNOTATION_PAIRS_MAX = 1024 };

enum acre_vendor {
    ACRE_VENDOR_ANY,
    ACRE_VENDOR_AMD,
    ACRE_VENDOR_NVIDIA,
};

enum { /* which keys were given */
       ACRE_ANNOTATION_FRACTION = 1 << 0,
       ACRE_ANNOTATION_MEMORY = 1 << 1,
       ACRE_ANNOTATION_SHARING = 1 << 2,
       ACRE_ANNOTATION_ISOLATION = 1 << 3,
       ACRE_ANNOTATION_AMD = 1 << 4,
       ACRE_ANNOTATION_NVIDIA = 1 << 5,
};

struct acre_annotation_pair {
    const char *key;
    const char *value;
};

struct acre_annotation {
    uint32_t present;    /* 0: no GPU is asked for */
    uint32_t whole_gpus; /* 0: a share of one GPU */
    uint32_t milli;      /* the share, 100..1000; 0: not said (memory decides) */
    uint64_t mib;        /* on each GPU; 0: not said */
    bool sharing;
    enum acre_isolation isolation;
    enum acre_vendor vendor;
};

/* ACRE_EINVALID: the text names the key, the value and what is accepted; ACRE_ELIMIT: more than
 * ACRE_ANNOTATION_PAIRS_MAX pairs. Nothing is written on failure. */
int acre_annotation_parse(const struct acre_annotation_pair *pairs, size_t count,
                          struct acre_annotation *ret_annotation, struct acre_error *err);

#endif
