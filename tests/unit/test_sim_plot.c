/* The curves of packing and replay as SVG: well-formed, one line a result, every value where the
 * axes say. */
#include "sim/plot.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { RESULTS = 9, SVG_MAX_BYTES = 1 << 20, DEPTH_MAX = 8 };

/* Rises in equal steps from 0 to `end`. */
static struct acre_packing_result straight(const char *strategy, double end) {
    struct acre_packing_result result = {.strategy = strategy, .seeds = 1};
    for (int i = 0; i < ACRE_PACKING_CURVE; i++) {
        result.curve[i] = end * i / (ACRE_PACKING_CURVE - 1);
    }
    result.at_100.mean = result.curve[100];
    return result;
}

static uint32_t count_of(const char *text, const char *part) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

/* Elements nest, attributes are quoted, nothing follows the root; for plain SVG like ours, without
 * comments or entities. */
static void check_well_formed(const char *svg) {
    char names[DEPTH_MAX][32];
    size_t depth = 0;
    size_t roots = 0;
    for (const char *p = svg; *p != '\0'; p++) {
        if (*p != '<') {
            REQUIRE(*p != '>' && *p != '&' && (depth > 0 || *p == '\n'));
            continue;
        }
        bool closes = p[1] == '/';
        const char *name = p + 1 + closes;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        REQUIRE(length > 0 && length < sizeof(names[0]));
        for (p = name + length; *p != '>' && *p != '\0'; p++) {
            REQUIRE(*p != '<');
            if (*p == '"') {
                p = strpbrk(p + 1, "\"<&");
                REQUIRE(p != NULL && *p == '"');
            }
        }
        REQUIRE(*p == '>');
        if (closes) {
            REQUIRE(depth > 0 && strncmp(names[depth - 1], name, length) == 0);
            depth--;
        } else if (p[-1] != '/') {
            REQUIRE(depth < DEPTH_MAX);
            snprintf(names[depth], sizeof(names[0]), "%.*s", (int)length, name);
            roots += depth++ == 0;
        }
    }
    CHECK_U64(depth, 0);
    CHECK_U64(roots, 1);
}

/* A scale as a reader sees it: the first and the last number along an axis. */
struct scale {
    double first_at, first, last_at, last;
};

static struct scale read_scale(const char *svg, const char *anchor, char coordinate,
                               double shift_px) {
    struct scale scale = {0};
    bool any = false;
    for (const char *at = svg; (at = strstr(at, "<text ")) != NULL; at++) {
        double x, y, number;
        char place[16];
        if (sscanf(at, "<text x=\"%lf\" y=\"%lf\" text-anchor=\"%15[a-z]\">%lf</text>", &x, &y,
                   place, &number) == 4 &&
            strcmp(place, anchor) == 0) {
            scale.last_at = (coordinate == 'x' ? x : y) - shift_px;
            scale.last = number;
            scale.first_at = any ? scale.first_at : scale.last_at;
            scale.first = any ? scale.first : number;
            any = true;
        }
    }
    REQUIRE(scale.last > scale.first);
    return scale;
}

static double value_at(const struct scale *scale, double at) {
    return scale->first + (at - scale->first_at) * (scale->last - scale->first) /
                              (scale->last_at - scale->first_at);
}

/* Every point of the n-th polyline, read off the axes, is the curve there. */
static void check_curve(const char *svg, uint32_t index, const struct acre_packing_result *result) {
    struct scale across = read_scale(svg, "middle", 'x', 0);
    struct scale up = read_scale(svg, "end", 'y', 4); /* the text's foot is below its line */
    const char *at = svg;
    for (uint32_t i = 0; i <= index; i++) {
        at = strstr(at, "points=\"");
        REQUIRE(at != NULL);
        at += strlen("points=\"");
    }
    int arrived = (int)across.first;
    for (; *at != '"'; arrived++) {
        char *end = NULL;
        double x = strtod(at, &end);
        REQUIRE(*end == ',');
        double y = strtod(end + 1, &end);
        REQUIRE(*end == ' ' && arrived < ACRE_PACKING_CURVE);
        at = end + 1;
        CHECK_NEAR(value_at(&across, x), arrived, 0.1);
        CHECK_NEAR(value_at(&up, y), result->curve[arrived], 0.1);
        CHECK(value_at(&up, y) > up.first - 0.1 && value_at(&up, y) < up.last + 0.1);
    }
    CHECK_EQ(arrived, ACRE_PACKING_CURVE); /* to the end */
}

static void one_line_and_one_name_a_result(void) {
    static const char *const names[RESULTS] = {"least-fragmentation",
                                               "first-fit",
                                               "tightest",
                                               "worst-fit",
                                               "best-fit",
                                               "fgd",
                                               "random",
                                               "eighth",
                                               "ninth"};
    struct acre_packing_result results[RESULTS];
    for (size_t i = 0; i < RESULTS; i++) {
        results[i] = straight(names[i], 100.0 - (double)i);
    }
    for (size_t count = 0; count <= RESULTS; count++) {
        struct acre_buf svg;
        acre_buf_init(&svg, SVG_MAX_BYTES);
        acre_test_context("%zu results", count);
        REQUIRE_EQ(acre_packing_plot(results, count, &svg), 0);
        check_well_formed(svg.data);
        CHECK(strncmp(svg.data, "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 40) == 0);
        CHECK_U64(count_of(svg.data, "<polyline "), count);
        for (size_t i = 0; i < RESULTS; i++) {
            char label[64];
            snprintf(label, sizeof(label), ">%s %.2f<", names[i], results[i].at_100.mean);
            CHECK_U64(count_of(svg.data, label), i < count);
        }
        for (uint32_t i = 0; i < count; i++) {
            check_curve(svg.data, i, &results[i]);
        }
        acre_buf_finish(&svg);
    }
}

/* Results that are far apart, or near nothing, or full, are all drawn where they are. */
static void every_value_is_drawn_where_it_is(void) {
    static const double ends[][2] = {{130, 130}, {100, 100}, {95, 20}, {99, 60},
                                     {20, 20},   {0, 0},     {130, 0}, {5, 3}};
    for (size_t i = 0; i < ACRE_COUNT(ends); i++) {
        struct acre_packing_result results[2];
        for (size_t j = 0; j < 2; j++) {
            results[j] = straight("s", ends[i][j]);
            for (int x = 0; x < ACRE_PACKING_CURVE; x++) {
                results[j].curve[x] = ACRE_MIN(results[j].curve[x], 100.0);
            }
            results[j].at_100.mean = results[j].curve[100];
        }
        struct acre_buf svg;
        acre_buf_init(&svg, SVG_MAX_BYTES);
        acre_test_context("ends %.0f and %.0f", ends[i][0], ends[i][1]);
        REQUIRE_EQ(acre_packing_plot(results, 2, &svg), 0);
        check_well_formed(svg.data);
        check_curve(svg.data, 0, &results[0]);
        check_curve(svg.data, 1, &results[1]);
        acre_buf_finish(&svg);
    }
}

/* What waits, from minutes to years and from next to nothing to many times the cluster. */
static void a_replay_is_drawn_at_any_scale(void) {
    static const double days[] = {0.01, 1, 60, 1000};
    static const double waiting[] = {0, 0.03, 1, 7.5, 400};
    for (size_t i = 0; i < ACRE_COUNT(days) * ACRE_COUNT(waiting); i++) {
        double span = days[i / ACRE_COUNT(waiting)], most = waiting[i % ACRE_COUNT(waiting)];
        struct acre_replay_result results[2] = {{.policy = "fcfs", .wait.mean_s = 90},
                                                {.policy = "easy", .wait.mean_s = 600}};
        for (int p = 0; p < ACRE_REPLAY_CURVE; p++) { /* one falls, one rises */
            results[0].waiting_curve[p] = most * (ACRE_REPLAY_CURVE - 1 - p) / ACRE_REPLAY_CURVE;
            results[1].waiting_curve[p] = most * (p + 1) / ACRE_REPLAY_CURVE;
        }
        struct acre_buf svg;
        acre_buf_init(&svg, SVG_MAX_BYTES);
        acre_test_context("%g days, %g times the cluster", span, most);
        REQUIRE_EQ(acre_replay_plot(results, 2, span, &svg), 0);
        check_well_formed(svg.data);
        CHECK_U64(count_of(svg.data, "<polyline "), 2);
        CHECK_U64(count_of(svg.data, ">fcfs, mean wait 2 min<"), 1);
        CHECK_U64(count_of(svg.data, ">easy, mean wait 10 min<"), 1);
        struct scale across = read_scale(svg.data, "middle", 'x', 0);
        struct scale up = read_scale(svg.data, "end", 'y', 4);
        CHECK(across.first == 0 && across.last >= span && across.last <= 1.3 * span);
        CHECK(up.first == 0 && up.last >= most && up.last <= ACRE_MAX(1.3 * most, 0.1));
        acre_buf_finish(&svg);
    }
}

static void a_full_buffer_is_told(void) {
    struct acre_packing_result result = straight("s", 100);
    struct acre_buf svg;
    acre_buf_init(&svg, 100);
    CHECK_EQ(acre_packing_plot(&result, 1, &svg), ACRE_ELIMIT);
    acre_buf_finish(&svg);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(one_line_and_one_name_a_result),
    TEST(every_value_is_drawn_where_it_is),
    TEST(a_replay_is_drawn_at_any_scale),
    TEST(a_full_buffer_is_told),
};

ACRE_TEST_MAIN(tests)
