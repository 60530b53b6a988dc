/* baseline.c - placeholder */
#include "sim/packer.h"
static void *c(const struct acre_trace *t, const struct packer *p, uint64_t s) {
    (void)t;
    (void)p;
    (void)s;
    return NULL;
}
static bool pl(void *s, const struct acre_trace_task *t) {
    (void)s;
    (void)t;
    return false;
}
static void d(void *s) {
    (void)s;
}
const struct packer packer_best_fit = {"best-fit", "", 0, c, pl, d};
const struct packer packer_fgd = {"fgd", "", 0, c, pl, d};
const struct packer packer_random = {"random", "", 0, c, pl, d};
