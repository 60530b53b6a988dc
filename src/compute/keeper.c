/* keeper.c - one thread per context that notices what no caller waits for: a runner that died, a
 * kernel that does not end, a device that may work again.
 *
 * A kernel is hung if work is pending and no stream of the context has progressed for longer than
 * the limit: then each kernel that could be running has been. A single stream's counter says less:
 * its kernel may not have started, after those of active streams that share workers and queues with
 * it. Streams of resident kernels do not count (ring.c watches those). A hung kernel is killed with
 * its runner, whose death is then a loss like any other. */
#include "compute/keeper.h"

#include "compute/context.h"
#include "compute/program.h"
#include "compute/runner/remote.h"
#include "compute/stream.h"
#include "core/clock.h"
#include "core/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { RETRY_MS = 1000 };

struct keeper_watch {
    uint64_t sum;       /* of all words: changes when a stream moves */
    uint64_t waited_ms; /* since it last did, as far as this thread could look */
    uint64_t looked_ms;
};

/* The oldest launch that is not done; "?" when it was long ago. */
static const char *hung_kernel(struct acre_context *context) {
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        uint64_t word = atomic_load(&context->words[stream->word_index]);
        if (stream->is_resident || word >= atomic_load(&stream->watched)) {
            continue;
        }
        const struct launched *oldest = NULL;
        for (size_t i = 0; i < LAUNCHES_KEPT; i++) {
            const struct launched *launched = &stream->launched[i];
            if (launched->sequence > word && launched->kernel != NULL &&
                (oldest == NULL || launched->sequence < oldest->sequence)) {
                oldest = launched;
            }
        }
        if (oldest != NULL) {
            return oldest->kernel->signature.name;
        }
    }
    return "?";
}

static bool is_hung(struct acre_context *context, struct keeper_watch *watch, char *why,
                    size_t size) {
    uint64_t now_ms = acre_monotonic_ns() / 1000000;
    uint64_t sum = 0;
    bool is_pending = false;
    pthread_mutex_lock(&context->lock);
    for (struct acre_stream *stream = context->streams; stream != NULL; stream = stream->next) {
        uint64_t word = atomic_load(&context->words[stream->word_index]);
        sum += stream->is_resident ? 0 : word;
        is_pending = is_pending || (!stream->is_resident && word < atomic_load(&stream->watched));
    }
    if (!is_pending || sum != watch->sum) {
        *watch = (struct keeper_watch){.sum = sum, .looked_ms = now_ms};
    }
    /* A process that was stopped has waited for nothing. */
    watch->waited_ms += ACRE_MIN(now_ms - watch->looked_ms, context->kernel_limit_ms / 4 + 1);
    watch->looked_ms = now_ms;
    bool hung = is_pending && watch->waited_ms > context->kernel_limit_ms;
    if (hung) {
        snprintf(why, size, "kernel '%s' ran longer than %u ms", hung_kernel(context),
                 context->kernel_limit_ms);
        watch->waited_ms = 0;
    }
    pthread_mutex_unlock(&context->lock);
    return hung;
}

static void look(struct acre_context *context, struct keeper_watch *watch) {
    char why[200];
    if (context->kernel_limit_ms == 0 || atomic_load(&context->failed) != 0 ||
        !is_hung(context, watch, why, sizeof(why))) {
        return;
    }
    if (context->is_remote) {
        remote_end(context->seat, why);
    }
    context_lose(context, ACRE_ETIMEOUT, why);
}

static void *keep(void *argument) {
    struct acre_context *context = argument;
    struct keeper_watch watch = {.looked_ms = acre_monotonic_ns() / 1000000};
    for (;;) {
        bool has_failed = atomic_load(&context->failed) != 0;
        struct pollfd fds[] = {
            {.fd = context->keeper_fd, .events = POLLIN},
            {.fd = context->is_remote && !has_failed ? remote_pidfd(context->seat) : -1,
             .events = POLLIN}};
        int timeout_ms = has_failed && context->is_remote ? RETRY_MS
                         : context->kernel_limit_ms > 0
                             ? (int)ACRE_MAX(context->kernel_limit_ms / 8, 1U)
                             : -1;
        int n = poll(fds, ACRE_COUNT(fds), timeout_ms);
        if (n < 0 && errno != EINTR) {
            return NULL;
        }
        if (n > 0 && fds[0].revents != 0) {
            return NULL;
        }
        if ((n > 0 && fds[1].revents != 0) || (n == 0 && has_failed && context->is_remote)) {
            context_lose_runner(context);
            watch = (struct keeper_watch){.looked_ms = acre_monotonic_ns() / 1000000};
        } else {
            look(context, &watch);
        }
    }
}

int keeper_start(struct acre_context *context, struct acre_error *err) {
    if (!context->is_remote && context->kernel_limit_ms == 0) {
        return 0;
    }
    context->keeper_fd = eventfd(0, EFD_CLOEXEC);
    if (context->keeper_fd < 0) {
        return acre_fail_errno(err, errno, "eventfd");
    }
    int error = acre_thread_start(&context->keeper, "acre-keeper", keep, context);
    if (error != 0) {
        close(context->keeper_fd);
        return acre_fail_errno(err, error, "cannot start the context's thread");
    }
    context->has_keeper = true;
    return 0;
}

void keeper_stop(struct acre_context *context) {
    if (!context->has_keeper) {
        return;
    }
    uint64_t one = 1;
    ssize_t written = write(context->keeper_fd, &one, sizeof(one));
    ACRE_ASSERT(written == sizeof(one));
    pthread_join(context->keeper, NULL);
    close(context->keeper_fd);
    context->has_keeper = false;
}
