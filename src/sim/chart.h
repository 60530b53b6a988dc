/* chart.h - draws lines over a grid, with a legend, as an SVG image. Pure. */
#ifndef ACRE_SIM_CHART_H
#define ACRE_SIM_CHART_H

#include "core/buf.h"

struct chart_axis {
    const char *title;
    double from, to, tick;
    double mark; /* a dashed line here, when it is a tick; NAN: none */
};

struct chart_line {
    const char *label;
    const double *values; /* at 0, x_step, ... */
    size_t count;
    double x_step;
};

/* At most 8 colours, then they repeat. ACRE_ELIMIT: the buffer was too small. */
int chart_draw(const struct chart_axis *x, const struct chart_axis *y,
               const struct chart_line *lines, size_t count, struct acre_buf *out);

#endif
