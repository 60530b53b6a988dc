/* plot.c - SVG by hand: axes from 60 to 130 % arrived, where the strategies part. */
#include "sim/plot.h"

enum { WIDTH = 760, HEIGHT = 460, LEFT = 60, RIGHT = 170, TOP = 30, BOTTOM = 50 };
enum { X_FROM = 60, X_TO = 130, Y_FROM = 60, Y_TO = 100 };

static const char *const colours[] = {"#0b6e4f", "#c1440e", "#2b59c3", "#8f2d8c",
                                      "#b8860b", "#00798c", "#6b705c", "#d81159"};

static double x_of(double arrived_pct) {
    return LEFT + (arrived_pct - X_FROM) * (WIDTH - LEFT - RIGHT) / (X_TO - X_FROM);
}

static double y_of(double allocated_pct) {
    return HEIGHT - BOTTOM - (allocated_pct - Y_FROM) * (HEIGHT - TOP - BOTTOM) / (Y_TO - Y_FROM);
}

static void put_line(struct acre_buf *out, double x1, double y1, double x2, double y2,
                     const char *style) {
    acre_buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2,
                    y2, style);
}

static void put_axes(struct acre_buf *out) {
    for (int x = X_FROM; x <= X_TO; x += 10) {
        put_line(out, x_of(x), y_of(Y_FROM), x_of(x), y_of(Y_TO),
                 x == 100 ? "stroke=\"#999\" stroke-dasharray=\"4 3\"" : "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                        x_of(x), HEIGHT - BOTTOM + 18, x);
    }
    for (int y = Y_FROM; y <= Y_TO; y += 5) {
        put_line(out, x_of(X_FROM), y_of(y), x_of(X_TO), y_of(y), "stroke=\"#eee\"");
        acre_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", LEFT - 8,
                        y_of(y) + 4, y);
    }
    acre_buf_printf(out,
                    "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">GPU requests arrived, %% of "
                    "capacity</text>\n",
                    (x_of(X_FROM) + x_of(X_TO)) / 2, HEIGHT - 10);
    acre_buf_printf(out, "<text x=\"%d\" y=\"18\">GPU capacity allocated, %%</text>\n", LEFT);
}

static void put_curve(struct acre_buf *out, const struct acre_packing_result *result, size_t at) {
    const char *colour = colours[at % ACRE_COUNT(colours)];
    acre_buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                    colour);
    for (int x = X_FROM; x <= X_TO; x++) {
        double y = ACRE_MAX(result->curve[x], (double)Y_FROM);
        acre_buf_printf(out, "%.1f,%.1f ", x_of(x), y_of(y));
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
    put_axes(out);
    for (size_t i = 0; i < count; i++) {
        put_curve(out, &results[i], i);
    }
    acre_buf_puts(out, "</svg>\n");
    return acre_buf_failed(out) ? ACRE_ELIMIT : 0;
}
