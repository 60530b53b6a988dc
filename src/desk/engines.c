/* engines.c - the engines of a desk: which of them has a run, and what is asked of all of them.
 *
 * A run belongs to the engine of the nodes that its job holds. When nothing is held any more (logs,
 * forgetting), every engine is asked: they answer for what they know. */
#include "desk/desk.h"

#include "desk/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int acre_desk_add_engine(struct acre_desk *desk, const struct acre_engine_driver *driver,
                         const struct acre_engine_options *options, struct acre_error *err) {
    ACRE_ASSERT(desk->state == DESK_IDLE && desk->engine_count < DESK_ENGINES_MAX);
    struct desk_engine *engine = &desk->engines[desk->engine_count];
    *engine = (struct desk_engine){.desk = desk, .driver = driver, .index = desk->engine_count};
    struct acre_engine_sink sink = desk_engine_sink(engine);
    desk->engine_count++; /* nodes are reported while it is opened */
    int r = driver->open(options, desk->options.loop, &sink, &engine->self, err);
    if (r < 0) {
        desk->engine_count--;
        return r;
    }
    return 0;
}

void desk_close_engines(struct acre_desk *desk) {
    while (desk->engine_count > 0) {
        struct desk_engine *engine = &desk->engines[--desk->engine_count];
        engine->driver->close(engine->self);
    }
}

void acre_desk_describe_engines(struct acre_desk *desk, struct acre_buf *out) {
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        const struct desk_engine *engine = &desk->engines[i];
        if (engine->driver->describe != NULL) {
            engine->driver->describe(engine->self, out);
        }
    }
}

const struct desk_engine *desk_engine_of(const struct acre_desk *desk, const struct acre_job *job,
                                         struct acre_error *err) {
    struct acre_allocation allocation;
    if (!acre_ledger_find(desk->ledger, job->allocation, &allocation) ||
        allocation.part_count == 0) {
        acre_fail(err, ACRE_ECONFLICT, "its devices are no longer held");
        return NULL;
    }
    uint32_t first = inventory_node(desk->inventory, allocation.parts[0].node)->engine;
    for (uint32_t i = 1; i < allocation.part_count; i++) {
        const struct inventory_node *node =
            inventory_node(desk->inventory, allocation.parts[i].node);
        if (node->engine != first) {
            acre_fail(err, ACRE_EUNSUPPORTED,
                      "its members are on nodes of two different engines, %s and %s",
                      desk->engines[first].driver->name, desk->engines[node->engine].driver->name);
            return NULL;
        }
    }
    return &desk->engines[first];
}

void desk_limit_engines(const struct acre_desk *desk) {
    struct acre_engine_limits limits = {.memory_milli = desk->policy->limits.memory_milli,
                                        .logs_mib = desk->policy->limits.logs_mib};
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        const struct desk_engine *engine = &desk->engines[i];
        if (engine->driver->limit != NULL) {
            engine->driver->limit(engine->self, &limits);
        }
    }
}

void desk_forget_run(struct acre_desk *desk, struct acre_run run) {
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        desk->engines[i].driver->forget(desk->engines[i].self, run);
    }
}

uint32_t acre_desk_pids(struct acre_desk *desk, struct acre_run run, int64_t *pids, uint32_t max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < desk->engine_count; i++) {
        const struct desk_engine *engine = &desk->engines[i];
        uint32_t room = count < max ? max - count : 0;
        if (engine->driver->pids != NULL) {
            count += engine->driver->pids(engine->self, run, room > 0 ? pids + count : NULL, room);
        }
    }
    return count;
}

/* --- logs ----------------------------------------------------------------------------------- */

/* Where delivered output is kept: named as the logs of runs on this machine. */
static bool kept_path(const struct acre_desk *desk, struct acre_run run, int stream, char *path,
                      size_t size) {
    ACRE_ASSERT(stream == 1 || stream == 2);
    int length =
        desk->options.logs_directory == NULL
            ? -1
            : snprintf(path, size, "%s/%llu.%u.%s", desk->options.logs_directory,
                       (unsigned long long)run.job, run.attempt, stream == 1 ? "out" : "err");
    return length > 0 && (size_t)length < size;
}

void desk_keep_output(struct acre_desk *desk, struct acre_run run, int stream, uint64_t offset,
                      const void *bytes, size_t length) {
    char path[PATH_MAX];
    if (!kept_path(desk, run, stream, path, sizeof(path))) {
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t wrote = fd >= 0 ? pwrite(fd, bytes, length, (off_t)offset) : -1;
    if ((wrote < 0 || (size_t)wrote < length) && desk->sink.trouble != NULL) {
        struct acre_error err = {0};
        acre_fail_errno(&err, wrote < 0 ? errno : ENOSPC, "%s", path);
        desk->sink.trouble(desk->sink.context, "cannot keep a log", &err);
    }
    if (fd >= 0) {
        close(fd);
    }
}

int acre_desk_log_path(struct acre_desk *desk, struct acre_run run, int stream, char *path,
                       size_t size, struct acre_error *err) {
    bool kept = kept_path(desk, run, stream, path, size);
    if (kept && access(path, F_OK) == 0) {
        return 0;
    }
    bool any = kept;
    path[0] = '\0';
    for (uint32_t i = 0; i < desk->engine_count && path[0] == '\0'; i++) {
        const struct desk_engine *engine = &desk->engines[i];
        if (engine->driver->log_path != NULL) {
            int r = engine->driver->log_path(engine->self, run, stream, path, size, err);
            if (r < 0) {
                return r;
            }
            any = true;
        }
    }
    return any ? 0 : acre_fail(err, ACRE_EUNSUPPORTED, "no engine here keeps logs");
}
