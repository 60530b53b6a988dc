/* test.h - a small test harness: a table of named tests, each in a process of its own, TAP out.
 *
 * A test is a void function. CHECK* show both values and go on to the end of the test, which
 * then fails; REQUIRE* end the test at once. acre_test_skip() ends it as skipped, with the
 * reason. A crash, an assert, a sanitizer report or more than 5 x `timeout_s` fails that test only.
 * Run one by name: ./test_units parse_mib. ACRE_TEST_NOFORK=1 runs in one process (debuggers). */
#ifndef ACRE_TEST_H
#define ACRE_TEST_H

#include "core/base.h"

#include <string.h>

struct acre_test {
    const char *name; /* says the rule, e.g. "tenths_add_up_exactly" */
    void (*run)(void);
    unsigned timeout_s; /* 0: 60 */
};

int acre_test_main(const struct acre_test *tests, size_t count, int argc, char **argv);

#define ACRE_TEST_MAIN(tests)                                                                      \
    int main(int argc, char **argv) {                                                              \
        return acre_test_main(tests, ACRE_COUNT(tests), argc, argv);                               \
    }

_Noreturn void acre_test_skip(const char *format, ...) ACRE_PRINTF(1, 2);

/* What the current table row is, printed before the next failures ("" clears it). */
void acre_test_context(const char *format, ...) ACRE_PRINTF(1, 2);

/* A millisecond asleep, in a loop that looks for something. Threads that yield instead may keep
 * those they wait for from running for seconds, where there are few processors. */
void acre_test_rest(void);

/* How many descriptors this process has open, and a few more: for comparing. */
uint32_t acre_test_open_files(void);

void acre_check(bool ok, bool fatal, const char *text, const char *file, int line);
void acre_check_i64(int64_t a, int64_t b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line);
void acre_check_u64(uint64_t a, uint64_t b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line);
void acre_check_near(double a, double b, double tolerance, const char *ta, const char *tb,
                     const char *file, int line);
void acre_check_str(const char *a, const char *b, bool fatal, const char *ta, const char *tb,
                    const char *file, int line);
void acre_check_has(const char *text, const char *part, const char *file, int line);

#define CHECK(c)              acre_check((c), false, #c, __FILE__, __LINE__)
#define REQUIRE(c)            acre_check((c), true, #c, __FILE__, __LINE__)
#define CHECK_EQ(a, b)        acre_check_i64((a), (b), false, #a, #b, __FILE__, __LINE__)
#define REQUIRE_EQ(a, b)      acre_check_i64((a), (b), true, #a, #b, __FILE__, __LINE__)
#define CHECK_U64(a, b)       acre_check_u64((a), (b), false, #a, #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, t)   acre_check_near((a), (b), (t), #a, #b, __FILE__, __LINE__)
#define CHECK_STR(a, b)       acre_check_str((a), (b), false, #a, #b, __FILE__, __LINE__)
#define CHECK_HAS(text, part) acre_check_has((text), (part), __FILE__, __LINE__)

#endif
