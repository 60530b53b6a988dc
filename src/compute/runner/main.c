/* main.c - acre-runner: a process for one context on one device, started by remote.c. */
#include "compute/runner/runner.h"
#include "opencl/pocl.h"

int main(void) {
    static const struct acre_backend *const tables[] = {&acre_backend_cuda, &acre_backend_hip,
                                                        &acre_backend_opencl, &acre_backend_cpu};
    acre_pocl_settle();
    return acre_runner_run(tables, ACRE_COUNT(tables));
}
