/* log.h - logfmt lines on standard error: one event, one line, ids as keys.
 *
 *   ts=2026-11-15T02:30:00.123Z level=info msg="job started" job=42 node=gpu-3
 *
 * Only programs log (src/cli, src/daemon); libraries return errors. The level is the only global
 * of the program. Any thread; a line is written with one write(2). */
#ifndef ACRE_CORE_LOG_H
#define ACRE_CORE_LOG_H

#include "core/base.h"

enum acre_log_level {
    ACRE_LOG_DEBUG,
    ACRE_LOG_INFO,
    ACRE_LOG_WARN,
    ACRE_LOG_ERROR,
    ACRE_LOG_NONE,
};

struct acre_log_pair {
    const char *key; /* letters, digits, '_' ; the value is quoted when it must be */
    const char *value;
};

void acre_log_set_level(enum acre_log_level level);
bool acre_log_enabled(enum acre_log_level level);
bool acre_log_level_parse(const char *text, enum acre_log_level *ret_level);

/* acre_log(ACRE_LOG_INFO, "job started", {"job", "42"}, {"node", name}); */
void acre_log_write(enum acre_log_level level, const char *message,
                    const struct acre_log_pair *pairs, size_t count);
#define acre_log(level, message, ...)                                                              \
    acre_log_write(level, message, (const struct acre_log_pair[]){__VA_ARGS__},                    \
                   sizeof((const struct acre_log_pair[]){__VA_ARGS__}) /                           \
                       sizeof(struct acre_log_pair))

/* The line itself, without writing it (tests, other sinks). Cut at `size`. Returns `line`. */
char *acre_log_format(char *line, size_t size, uint64_t wall_ms, enum acre_log_level level,
                      const char *message, const struct acre_log_pair *pairs, size_t count);

#endif
