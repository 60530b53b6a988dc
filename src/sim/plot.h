/* plot.h - plots the results of packing and replay as SVG. Pure. */
#ifndef ACRE_SIM_PLOT_H
#define ACRE_SIM_PLOT_H

#include "core/buf.h"
#include "sim/packing.h"
#include "sim/replay.h"

/* Allocated against arrived, one line a result; at most 16. */
int acre_packing_plot(const struct acre_packing_result *results, size_t count,
                      struct acre_buf *out);
/* What waits against time, one line a result; at most 16. `days`: from first to last submission. */
int acre_replay_plot(const struct acre_replay_result *results, size_t count, double days,
                     struct acre_buf *out);

#endif
