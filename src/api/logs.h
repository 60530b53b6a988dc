/* logs.h - notifies followers of logs that a run has ended. Loop thread only. */
#ifndef ACRE_API_LOGS_H
#define ACRE_API_LOGS_H

#include "api/api.h"

/* The run and all before it have ended: their followers get the rest, and the end. */
void logs_ended(struct acre_api *api, uint64_t job, uint32_t attempt);

#endif
