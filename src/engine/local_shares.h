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
int local_write_list(const struct local *self, struct acre_run run, const char *suffix,
                     const char *text, struct acre_error *err);
char *local_read_list(const struct local *self, struct acre_run run, const char *suffix);
void local_remove_list(const struct local *self, struct acre_run run, const char *suffix);
void local_each_list(struct local *self, const char *suffix,
                     void (*function)(struct local *self, struct acre_run run));

/* local_mps.c: shares of GPUs by MPS. need: before prepare, finds out which; take: after it, and
 * run->mps_waiting says how many answers come before the run can be enqueued. */
int local_need_mps(struct local *self, struct local_run *run, const struct acre_run_spec *spec,
                   struct acre_error *err);
int local_take_mps(struct local *self, struct local_run *run, uid_t user, struct acre_error *err);
void local_retake_mps(struct local *self, struct local_run *run);
void local_give_mps(struct local *self, struct local_run *run);
void local_reap_mps(struct local *self); /* after all retakes: what ended runs held */

/* local_cu.c: shares of AMD GPUs by compute units. prepare: as local_prepare, with units for
 * the devices that need them; the rest as for MPS. */
int local_prepare_cu(struct local *self, struct local_run *run, const struct acre_run_spec *spec,
                     uid_t *ret_user, struct acre_error *err);
void local_retake_cu(struct local *self, struct local_run *run);
void local_give_cu(struct local *self, struct local_run *run);
void local_reap_cu(struct local *self);

#endif
