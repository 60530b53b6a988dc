/* plot.c - decides which part of the curves to show. Both axes start a little below the worst
 * result: up to there everything that arrives is allocated, and the curves coincide. If they do
 * not, the axis of allocated capacity starts below the lowest value. A replay's axis starts at 0.
 */
#include "sim/plot.h"

#include "sim/chart.h"

#include <math.h>
#include <stdio.h>

enum { LINES_MAX = 16, LABEL_MAX = 96 };
enum { X_TO = 130, Y_TO = 100, MARGIN_PCT = 3, TICK_PCT = 5 };

int acre_packing_plot(const struct acre_packing_result *results, size_t count,
                      struct acre_buf *out) {
    ACRE_ASSERT(count <= LINES_MAX);
    double least = Y_TO - TICK_PCT;
    for (size_t i = 0; i < count; i++) {
        least = ACRE_MIN(least, results[i].at_100.mean - MARGIN_PCT);
    }
    int x_from = (int)ACRE_MAX(least, 0.0) / TICK_PCT * TICK_PCT;
    double lowest = x_from;
    struct chart_line lines[LINES_MAX];
    char labels[LINES_MAX][LABEL_MAX];
    for (size_t i = 0; i < count; i++) { /* a curve only rises */
        lowest = ACRE_MIN(lowest, results[i].curve[x_from]);
        snprintf(labels[i], LABEL_MAX, "%s %.2f", results[i].strategy, results[i].at_100.mean);
        lines[i] = (struct chart_line){
            .label = labels[i], .values = results[i].curve, .count = X_TO + 1, .x_step = 1};
    }
    struct chart_axis x = {"GPUs requested, % of capacity", x_from, X_TO, TICK_PCT, 100};
    struct chart_axis y = {"GPUs allocated, % of capacity", (int)lowest / TICK_PCT * TICK_PCT, Y_TO,
                           TICK_PCT, (double)NAN};
    return chart_draw(&x, &y, lines, count, out);
}

/* 1, 2 or 5 times a power of ten, so that a range has 5 to 12 ticks. */
static double tick_for(double range) {
    double tick = pow(10, floor(log10(range / 5)));
    return range / tick > 25 ? tick * 5 : range / tick > 12 ? tick * 2 : tick;
}

int acre_replay_plot(const struct acre_replay_result *results, size_t count, double days,
                     struct acre_buf *out) {
    ACRE_ASSERT(count <= LINES_MAX);
    double highest = 0.1;
    struct chart_line lines[LINES_MAX];
    char labels[LINES_MAX][LABEL_MAX];
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < ACRE_REPLAY_CURVE; p++) {
            highest = ACRE_MAX(highest, results[i].waiting_curve[p]);
        }
        snprintf(labels[i], LABEL_MAX, "%s, mean wait %.0f min", results[i].policy,
                 results[i].wait.mean_s / 60);
        lines[i] = (struct chart_line){.label = labels[i],
                                       .values = results[i].waiting_curve,
                                       .count = ACRE_REPLAY_CURVE,
                                       .x_step = days / ACRE_REPLAY_CURVE};
    }
    double x_tick = tick_for(days), y_tick = tick_for(highest);
    struct chart_axis x = {"days", 0, ceil(days / x_tick) * x_tick, x_tick, (double)NAN};
    struct chart_axis y = {"waiting GPUs / GPUs in the cluster", 0, ceil(highest / y_tick) * y_tick,
                           y_tick, (double)NAN};
    return chart_draw(&x, &y, lines, count, out);
}
