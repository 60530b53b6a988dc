/* cluster.h - the daemon's devices, for `acre gpus --cluster`. Programs only, one thread. */
#ifndef ACRE_CLI_CLUSTER_H
#define ACRE_CLI_CLUSTER_H

#include "cli/common.h"

int cluster_gpus(const struct common *common); /* returns the exit code */

#endif
