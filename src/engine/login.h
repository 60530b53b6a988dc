/* login.h - the login: the Unix account a user's jobs run as, and which users are refused one.
 *
 * Never silently root, nor an account of the system; a daemon that is not root has one account to
 * offer, its own. Loop thread; it may ask name services (files, LDAP), so callers keep the answer
 * for a while. */
#ifndef ACRE_ENGINE_LOGIN_H
#define ACRE_ENGINE_LOGIN_H

#include "core/error.h"

#include <sys/types.h>

enum { ACRE_LOGIN_GROUPS_MAX = 256 };

struct login {
    char name[64], home[256], shell[128];
    uid_t uid;
    gid_t gid;
    uint32_t group_count;
    uint32_t groups[ACRE_LOGIN_GROUPS_MAX];
};

struct login_rules {
    const char *run_as; /* the account for all; NULL or "": the one with the user's name */
    bool allow_root;
    uid_t min_uid; /* of the user's account, unless it is root's; one that is named may have any */
    uid_t own;     /* the daemon's effective user id */
};

/* ACRE_ENOTFOUND: no such account; ACRE_EDENIED: not as that one, and why. */
int login_find(const char *user, const struct login_rules *rules, struct login *ret_login,
               struct acre_error *err);

#endif
