/* thread.h - starts threads that take no signals of the program. */
#ifndef ACRE_CORE_THREAD_H
#define ACRE_CORE_THREAD_H

#include <pthread.h>

/* As pthread_create, named (at most 15 characters), and with all signals blocked: those are for the
 * program's own threads. Returns 0 or an errno. */
int acre_thread_start(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *user);

#endif
