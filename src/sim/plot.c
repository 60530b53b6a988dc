/* plot.c - SVG by hand. Both axes begin a little below the worst result: until there, all that
 * arrives is allocated, and the curves are one. */
#include "sim/plot.h"

enum { WIDTH = 800, HEIGHT = 460, LEFT = 60, RIGHT = 215, TOP = 30, BOTTOM = 50 };
enum { X_TO = 130, Y_TO = 100, MARGIN_PCT = 3, TICK_PCT = 5 };

static const char *const colours[] = {"#0b6e4f", "#c1440e", "#2b59c3", "#8f2d8c",
                                      "#b8860b", "#00798c", "#6b705c", "#d81159"};

/* Where both axes begin: a multiple of the tick. */
static int axes_begin(const struct acre_packing_result *results, size_t count) {
    double least = Y_TO - TICK_PCT;
    for (size_t i = 0; i < count; i++) {
        least = ACRE_MIN(least, results[i].at_100.mean - MARGIN_PCT);
    }
    return (int)ACRE_MAX(least, 0.0) / TICK_PCT * TICK_PCT;
}

static double x_of(int from, double arrived_pct) {
    return LEFT + (arrived_pct - from) * (WIDTH - LEFT - RIGHT) / (X_TO - from);
}

static double y_of(int from, double allocated_pct) {
    return HEIGHT - BOTTOM - (allocated_pct - from) * (HEIGHT - TOP - BOTTOM) / (Y_TO - from);
}

static void put_line(struct acre_buf *out, double x1, double y1, double x2, double y2,
                     const char *style) {
    acre_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                    y2, style);
}

static void put_axes(struct acre_buf *out, int from) {
    for (int x = from; x <= X_TO; x += TICK_PCT) {
        put_line(out, x_of(from, x), y_of(from, from), x_of(from, x), y_of(from, Y_TO),
                 x == 100 ? "stroke=\"#999\" stroke-dasharray=\"4 3\"" : "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                        x_of(from, x), HEIGHT - BOTTOM + 18, x);
    }
    for (int y = from; y <= Y_TO; y += TICK_PCT) {
        put_line(out, x_of(from, from), y_of(from, y), x_of(from, X_TO), y_of(from, y),
                 "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", LEFT - 8,
                        y_of(from, y) + 4, y);
    }
    acre_buf_printf(out,
                    "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">GPU requests arrived, %% of "
                    "capacity</text>\n",
                    (x_of(from, from) + x_of(from, X_TO)) / 2, HEIGHT - 10);
    acre_buf_printf(out, "<text x=\"%d\" y=\"18\">GPU capacity allocated, %%</text>\n", LEFT);
}

static void put_curve(struct acre_buf *out, const struct acre_packing_result *result, size_t at,
                      int from) {
    const char *colour = colours[at % ACRE_COUNT(colours)];
    acre_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                    colour);
    for (int x = from; x <= X_TO; x++) {
        double y = ACRE_MAX(result->curve[x], (double)from);
        acre_buf_printf(out, "%.1f,%.1f ", x_of(from, x), y_of(from, y));
    }
    acre_buf_puts(out, "\"/>\n");
    double row = TOP + 16.0 * (double)at;
    acre_buf_printf(out,
                    "<rect x=\"%d\" y=\"%.1f\" width=\"20\" height=\"3\" fill=\"%s\"/>\n"
                    "<text x=\"%d\" y=\"%.1f\">%s %.2f</text>\n",
                    WIDTH - RIGHT + 10, row, colour, WIDTH - RIGHT + 36, row + 4, result->strategy,
                    result->at_100.mean);
}

int acre_packing_plot(const struct acre_packing_result *results, size_t count,
                      struct acre_buf *out) {
    acre_buf_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                    WIDTH, HEIGHT);
    int from = axes_begin(results, count);
    put_axes(out, from);
    for (size_t i = 0; i < count; i++) {
        put_curve(out, &results[i], i, from);
    }
    acre_buf_puts(out, "</svg>\n");
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}
