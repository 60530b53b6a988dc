/* thread.c - starts threads that take no signals of the program. */
#include "core/thread.h"

#include <signal.h>

int acre_thread_start(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *user) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(ret_thread, NULL, main, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_setname_np(*ret_thread, name);
    }
    return error;
}
