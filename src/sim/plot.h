/* plot.h - the packing curves as one SVG picture. Pure. */
#ifndef ACRE_SIM_PLOT_H
#define ACRE_SIM_PLOT_H

#include "core/buf.h"
#include "sim/packing.h"

/* Allocated against arrived, one line a result (at most 8 colours, then they repeat). */
int acre_packing_plot(const struct acre_packing_result *results, size_t count,
                      struct acre_buf *out);

#endif
