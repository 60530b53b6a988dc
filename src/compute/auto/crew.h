/* crew.h - threads that copy plain memory together, because one cannot saturate a device's bus.
 *
 * Only its owner may use a crew. Helpers sleep between copies. */
#ifndef ACRE_COMPUTE_AUTO_CREW_H
#define ACRE_COMPUTE_AUTO_CREW_H

#include "core/base.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CREW_HELPERS_MAX = 7 };

struct crew {
    pthread_t helpers[CREW_HELPERS_MAX];
    uint32_t helper_count;
    pthread_mutex_t lock;
    pthread_cond_t begun, left;

    /* Under the lock, but for `taken`. */
    uint64_t copies; /* counted: helpers see by it that there is another */
    bool is_open;    /* the copy has parts left, for all its owner knows */
    bool ends;
    uint32_t at_work; /* helpers */
    char *to;
    const char *from;
    uint64_t bytes;
    _Atomic uint64_t taken; /* bytes of the copy, by any of them */
};

/* With fewer helpers, or none, where threads cannot be made. */
void crew_open(struct crew *crew, uint32_t helpers);
void crew_close(struct crew *crew);
/* As memcpy. */
void crew_copy(struct crew *crew, void *to, const void *from, uint64_t bytes);

#endif
