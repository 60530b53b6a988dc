/* followers.c - one counter a user, while the user follows anything. A list: as long as there are
 * users with streams, and walked only when one begins. */
#include "api/followers.h"

#include <stdlib.h>
#include <string.h>

struct acre_follow_count {
    struct acre_follow_count *next, **previous;
    uint32_t streams;
    char *user;
};

static struct acre_follow_count *find(struct acre_api *api, const char *user) {
    struct acre_follow_count *count = api->follow_counts;
    while (count != NULL && strcmp(count->user, user) != 0) {
        count = count->next;
    }
    return count;
}

static struct acre_follow_count *add(struct acre_api *api, const char *user) {
    struct acre_follow_count *count = acre_calloc(1, sizeof(*count));
    *count = (struct acre_follow_count){
        .next = api->follow_counts, .previous = &api->follow_counts, .user = acre_strdup(user)};
    if (count->next != NULL) {
        count->next->previous = &count->next;
    }
    api->follow_counts = count;
    return count;
}

struct acre_follow_count *follow_begin(struct acre_api *api, struct acre_call *call) {
    struct acre_follow_count *count = find(api, call->user.name);
    uint32_t has = count != NULL ? count->streams : 0;
    uint32_t most = acre_desk_policy(api->desk)->limits.followers;
    if (has >= most && call->user.role < ACRE_ROLE_OPERATOR) {
        struct acre_error err;
        acre_fail(
            &err, ACRE_ELIMIT,
            "followers: %s already follows %u logs and event streams, of at most %u (max_followers "
            "in the policy); end one of them, or ask an administrator to raise the limit",
            call->user.name, has, most);
        acre_problem_answer_as(call->exchange, 429, &err);
        return NULL;
    }
    count = count != NULL ? count : add(api, call->user.name);
    count->streams++;
    return count;
}

void follow_end(struct acre_follow_count *count) {
    if (--count->streams > 0) {
        return;
    }
    *count->previous = count->next;
    if (count->next != NULL) {
        count->next->previous = count->previous;
    }
    free(count->user);
    free(count);
}
