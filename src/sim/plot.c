/* plot.c - SVG by hand. Both axes begin a little below the worst result: until there, all that
 * arrives is allocated, and the curves are one. Where they are not, the axis of the allocated part
 * begins below the lowest value. */
#include "sim/plot.h"

enum { WIDTH = 800, HEIGHT = 460, LEFT = 60, RIGHT = 215, TOP = 30, BOTTOM = 50 };
enum { X_TO = 130, Y_TO = 100, MARGIN_PCT = 3, TICK_PCT = 5 };

static const char *const colours[] = {"#0b6e4f", "#c1440e", "#2b59c3", "#8f2d8c",
                                      "#b8860b", "#00798c", "#6b705c", "#d81159"};

/* Where the axes begin, in multiples of the tick. */
struct origin {
    int x, y;
};

static struct origin find_origin(const struct acre_packing_result *results, size_t count) {
    double least = Y_TO - TICK_PCT;
    for (size_t i = 0; i < count; i++) {
        least = ACRE_MIN(least, results[i].at_100.mean - MARGIN_PCT);
    }
    struct origin from = {.x = (int)ACRE_MAX(least, 0.0) / TICK_PCT * TICK_PCT};
    double lowest = from.x;
    for (size_t i = 0; i < count; i++) { /* a curve only rises */
        lowest = ACRE_MIN(lowest, results[i].curve[from.x]);
    }
    from.y = (int)lowest / TICK_PCT * TICK_PCT;
    return from;
}

static double x_of(struct origin from, double arrived_pct) {
    return LEFT + (arrived_pct - from.x) * (WIDTH - LEFT - RIGHT) / (X_TO - from.x);
}

static double y_of(struct origin from, double allocated_pct) {
    return HEIGHT - BOTTOM - (allocated_pct - from.y) * (HEIGHT - TOP - BOTTOM) / (Y_TO - from.y);
}

static void put_line(struct acre_buf *out, double x1, double y1, double x2, double y2,
                     const char *style) {
    acre_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                    y2, style);
}

static void put_axes(struct acre_buf *out, struct origin from) {
    for (int x = from.x; x <= X_TO; x += TICK_PCT) {
        put_line(out, x_of(from, x), y_of(from, from.y), x_of(from, x), y_of(from, Y_TO),
                 x == 100 ? "stroke=\"#999\" stroke-dasharray=\"4 3\"" : "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                        x_of(from, x), HEIGHT - BOTTOM + 18, x);
    }
    for (int y = from.y; y <= Y_TO; y += TICK_PCT) {
        put_line(out, x_of(from, from.x), y_of(from, y), x_of(from, X_TO), y_of(from, y),
                 "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", LEFT - 8,
                        y_of(from, y) + 4, y);
    }
    acre_buf_printf(out,
                    "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">GPU requests arrived, %% of "
                    "capacity</text>\n",
                    (x_of(from, from.x) + x_of(from, X_TO)) / 2, HEIGHT - 10);
    acre_buf_printf(out, "<text x=\"%d\" y=\"18\">GPU capacity allocated, %%</text>\n", LEFT);
}

static void put_curve(struct acre_buf *out, const struct acre_packing_result *result, size_t at,
                      struct origin from) {
    const char *colour = colours[at % ACRE_COUNT(colours)];
    acre_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                    colour);
    for (int x = from.x; x <= X_TO; x++) {
        acre_buf_printf(out, "%.1f,%.1f ", x_of(from, x), y_of(from, result->curve[x]));
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
    struct origin from = find_origin(results, count);
    put_axes(out, from);
    for (size_t i = 0; i < count; i++) {
        put_curve(out, &results[i], i, from);
    }
    acre_buf_puts(out, "</svg>\n");
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}
