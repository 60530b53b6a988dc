/* dies.h - for tests of asserts: does this function end the process with SIGABRT?
 *
 * Runs it in a child, so the test goes on. What the child prints is dropped. */
#ifndef ACRE_TEST_DIES_H
#define ACRE_TEST_DIES_H

#include "core/base.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool acre_dies(void (*function)(void)) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* sanitizers may have set their own */
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        function();
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

#endif
