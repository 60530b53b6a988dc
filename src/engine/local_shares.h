/* local_shares.h - what a run holds of a GPU it shares: an MPS daemon, compute units.
 *
 * Included by local*.c only. Loop thread only. take when it is started, give when it has ended,
 * retake when it is adopted after a restart, and reap, after that, what ended runs left. */
#ifndef ACRE_ENGINE_LOCAL_SHARES_H
#define ACRE_ENGINE_LOCAL_SHARES_H

#include "engine/local_state.h"

/* local_runs.c: what a run holds is also beside its record, kept over a restart: the file
 * runs/<name><suffix>. The text that was read is to be freed; NULL: there is none. */
enum { ACRE_LOCAL_LIST_MAX = 65536 };
int acre_local_write_list(const struct acre_local *self, struct acre_run run, const char *suffix,
                          const char *text, struct acre_error *err);
char *acre_local_read_list(const struct acre_local *self, struct acre_run run, const char *suffix);
void acre_local_remove_list(const struct acre_local *self, struct acre_run run, const char *suffix);
void acre_local_each_list(struct acre_local *self, const char *suffix,
                          void (*function)(struct acre_local *self, struct acre_run run));

/* local_mps.c: shares of GPUs by MPS. need: before prepare, finds out which; take: after it, and
 * run->mps_waiting says how many answers come before the run can be enqueued. */
int acre_local_need_mps(struct acre_local *self, struct acre_local_run *run,
                        const struct acre_run_spec *spec, struct acre_error *err);
int acre_local_take_mps(struct acre_local *self, struct acre_local_run *run, uid_t user,
                        struct acre_error *err);
void acre_local_retake_mps(struct acre_local *self, struct acre_local_run *run);
void acre_local_give_mps(struct acre_local *self, struct acre_local_run *run);
void acre_local_reap_mps(struct acre_local *self); /* after all retakes: what ended runs held */

/* local_cu.c: shares of AMD GPUs by compute units. prepare: as acre_local_prepare, with units for
 * the devices that need them; the rest as for MPS. */
int acre_local_prepare_cu(struct acre_local *self, struct acre_local_run *run,
                          const struct acre_run_spec *spec, uid_t *ret_user,
                          struct acre_error *err);
void acre_local_retake_cu(struct acre_local *self, struct acre_local_run *run);
void acre_local_give_cu(struct acre_local *self, struct acre_local_run *run);
void acre_local_reap_cu(struct acre_local *self);

#endif
