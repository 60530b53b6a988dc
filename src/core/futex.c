/* futex.c - the only caller of the futex system call. */
#include "core/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_A_SECOND = 1000000000 };

static int operation_of(int operation, enum acre_futex_scope scope) {
    return scope == ACRE_FUTEX_PRIVATE ? operation | FUTEX_PRIVATE_FLAG : operation;
}

bool acre_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns,
                     enum acre_futex_scope scope) {
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / NS_A_SECOND),
                               .tv_nsec = (long)(timeout_ns % NS_A_SECOND)};
    bool has_limit = timeout_ns != ACRE_FUTEX_NO_LIMIT;
    long r = syscall(SYS_futex, word, operation_of(FUTEX_WAIT, scope), seen,
                     has_limit ? &timeout : NULL, NULL, 0);
    return r == 0 || errno != ETIMEDOUT;
}

uint32_t acre_futex_wake(_Atomic uint32_t *word, uint32_t count, enum acre_futex_scope scope) {
    long woken = syscall(SYS_futex, word, operation_of(FUTEX_WAKE, scope), count, NULL, NULL, 0);
    return woken > 0 ? (uint32_t)woken : 0;
}
