/* account.h - the Unix account a user's jobs run as, and who is refused one.
 *
 * Never silently root, nor an account of the system; a daemon that is not root has one account to
 * offer, its own. Loop thread; it may ask name services (files, LDAP), so callers keep the answer
 * for a while. */
#ifndef ACRE_ENGINE_ACCOUNT_H
#define ACRE_ENGINE_ACCOUNT_H

#include "core/error.h"

#include <sys/types.h>

enum { ACRE_ACCOUNT_GROUPS_MAX = 256 };

struct acre_account {
    char name[64], home[256], shell[128];
    uid_t uid;
    gid_t gid;
    uint32_t group_count;
    uint32_t groups[ACRE_ACCOUNT_GROUPS_MAX];
};

struct acre_account_rules {
    const char *run_as; /* the account for all; NULL or "": the one with the user's name */
    bool allow_root;
    uid_t min_uid; /* of the user's account, unless it is root's; one that is named may have any */
    uid_t own;     /* the daemon's effective user id */
};

/* ACRE_ENOTFOUND: no such account; ACRE_EDENIED: not as that one, and why. */
int acre_account_find(const char *user, const struct acre_account_rules *rules,
                      struct acre_account *ret_account, struct acre_error *err);

#endif
