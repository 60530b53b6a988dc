/* main.c - acre-runner: a process for one context on one device, started by remote.c. */
#include "compute/runner/runner.h"
#include "opencl/pocl.h"

int main(void) {
    acre_pocl_settle();
    return runner_run(all_backends, ACRE_BACKEND_COUNT);
}
