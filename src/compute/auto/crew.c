/* crew.c - a copy in parts, which the owner and its helpers take one after another.
 *
 * A helper that wakes late finds the copy closed and sleeps on. The owner waits only for helpers
 * that are already at work, so idle helpers never make a copy slower. */
#include "compute/auto/crew.h"

#include "core/thread.h"

#include <string.h>

enum { PART_BYTES = 256 << 10, ALONE_BYTES = 1 << 20 };

static void take_parts(struct crew *crew) {
    uint64_t at = atomic_fetch_add(&crew->taken, PART_BYTES);
    while (at < crew->bytes) {
        memcpy(crew->to + at, crew->from + at, ACRE_MIN(crew->bytes - at, (uint64_t)PART_BYTES));
        at = atomic_fetch_add(&crew->taken, PART_BYTES);
    }
}

static void *help(void *user) {
    struct crew *crew = user;
    uint64_t seen = 0;
    pthread_mutex_lock(&crew->lock);
    while (!crew->ends) {
        if (!crew->is_open || crew->copies == seen) {
            pthread_cond_wait(&crew->begun, &crew->lock);
            continue;
        }
        seen = crew->copies;
        crew->at_work++;
        pthread_mutex_unlock(&crew->lock);
        take_parts(crew);
        pthread_mutex_lock(&crew->lock);
        if (--crew->at_work == 0) {
            pthread_cond_signal(&crew->left);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

void crew_open(struct crew *crew, uint32_t helpers) {
    ACRE_ASSERT(helpers <= CREW_HELPERS_MAX);
    memset(crew, 0, sizeof(*crew));
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begun, NULL);
    pthread_cond_init(&crew->left, NULL);
    while (crew->helper_count < helpers &&
           acre_thread_start(&crew->helpers[crew->helper_count], "acre-crew", help, crew) == 0) {
        crew->helper_count++;
    }
}

void crew_close(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    crew->ends = true;
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->helper_count; i++) {
        pthread_join(crew->helpers[i], NULL);
    }
    pthread_cond_destroy(&crew->left);
    pthread_cond_destroy(&crew->begun);
    pthread_mutex_destroy(&crew->lock);
}

void crew_copy(struct crew *crew, void *to, const void *from, uint64_t bytes) {
    if (crew->helper_count == 0 || bytes < ALONE_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->to = to;
    crew->from = from;
    crew->bytes = bytes;
    atomic_store(&crew->taken, 0);
    crew->copies++;
    crew->is_open = true;
    pthread_cond_broadcast(&crew->begun);
    pthread_mutex_unlock(&crew->lock);
    take_parts(crew);
    pthread_mutex_lock(&crew->lock);
    crew->is_open = false;
    while (crew->at_work > 0) {
        pthread_cond_wait(&crew->left, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
}
