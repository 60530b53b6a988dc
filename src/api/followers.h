/* followers.h - how many streams (logs, events) each user follows at once.
 *
 * Loop thread only. The limit is read from the policy each time; operators and administrators are
 * counted but not limited. */
#ifndef ACRE_API_FOLLOWERS_H
#define ACRE_API_FOLLOWERS_H

#include "api/api.h"

struct acre_follow_count;

/* One more stream of the caller. NULL: it has too many; answered with 429. */
struct acre_follow_count *follow_begin(struct acre_api *api, struct acre_call *call);
void follow_end(struct acre_follow_count *count);

#endif
