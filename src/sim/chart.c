/* chart.c - writes SVG by hand. Values above the grid are drawn at its upper edge. */
#include "sim/chart.h"

enum { WIDTH = 800, HEIGHT = 460, LEFT = 60, RIGHT = 215, TOP = 30, BOTTOM = 50 };

static const char *const colours[] = {"#0b6e4f", "#c1440e", "#2b59c3", "#8f2d8c",
                                      "#b8860b", "#00798c", "#6b705c", "#d81159"};

static double x_of(const struct chart_axis *x, double value) {
    return LEFT + (value - x->from) * (WIDTH - LEFT - RIGHT) / (x->to - x->from);
}

static double y_of(const struct chart_axis *y, double value) {
    double inside = ACRE_MIN(value, y->to);
    return HEIGHT - BOTTOM - (inside - y->from) * (HEIGHT - TOP - BOTTOM) / (y->to - y->from);
}

static void put_line(struct acre_buf *out, double x1, double y1, double x2, double y2,
                     bool marked) {
    acre_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                    y2, marked ? "stroke=\"#999\" stroke-dasharray=\"4 3\"" : "stroke=\"#eee\"");
}

static int ticks_of(const struct chart_axis *axis) {
    return (int)((axis->to - axis->from) / axis->tick + 0.001);
}

static void put_axes(const struct chart_axis *x, const struct chart_axis *y, struct acre_buf *out) {
    for (int i = 0; i <= ticks_of(x); i++) {
        double at = x->from + i * x->tick;
        put_line(out, x_of(x, at), y_of(y, y->from), x_of(x, at), y_of(y, y->to), at == x->mark);
        acre_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                        x_of(x, at), HEIGHT - BOTTOM + 18, at);
    }
    for (int i = 0; i <= ticks_of(y); i++) {
        double at = y->from + i * y->tick;
        put_line(out, x_of(x, x->from), y_of(y, at), x_of(x, x->to), y_of(y, at), at == y->mark);
        acre_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8,
                        y_of(y, at) + 4, at);
    }
    acre_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                    (x_of(x, x->from) + x_of(x, x->to)) / 2, HEIGHT - 10, x->title);
    acre_buf_printf(out, "<text x=\"%d\" y=\"18\">%s</text>\n", LEFT, y->title);
}

static void put_curve(const struct chart_axis *x, const struct chart_axis *y,
                      const struct chart_line *line, size_t at, struct acre_buf *out) {
    const char *colour = colours[at % ACRE_COUNT(colours)];
    acre_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                    colour);
    for (size_t i = 0; i < line->count; i++) {
        double value_x = (double)i * line->x_step;
        if (value_x >= x->from && value_x <= x->to) {
            acre_buf_printf(out, "%.1f,%.1f ", x_of(x, value_x), y_of(y, line->values[i]));
        }
    }
    acre_buf_puts(out, "\"/>\n");
    double row = TOP + 16.0 * (double)at;
    acre_buf_printf(out,
                    "<rect x=\"%d\" y=\"%.1f\" width=\"20\" height=\"3\" fill=\"%s\"/>\n"
                    "<text x=\"%d\" y=\"%.1f\">%s</text>\n",
                    WIDTH - RIGHT + 10, row, colour, WIDTH - RIGHT + 36, row + 4, line->label);
}

int chart_draw(const struct chart_axis *x, const struct chart_axis *y,
               const struct chart_line *lines, size_t count, struct acre_buf *out) {
    acre_buf_printf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                    "font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                    WIDTH, HEIGHT);
    put_axes(x, y, out);
    for (size_t i = 0; i < count; i++) {
        put_curve(x, y, &lines[i], i, out);
    }
    acre_buf_puts(out, "</svg>\n");
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}
