/* login.c - getpwnam and getgrouplist, with four rules.
 *
 * The rules: an account must exist; root only when it was allowed in so many words; without root
 * only ourselves; and none of the system's (www-data, postgres), which own files that no job should
 * reach when the service is broken into, unless the administrator named it. Groups beyond the
 * maximum would silently lose access, so they are refused. */
#include "engine/login.h"

#include "core/str.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOKUP_BYTES = 16384, SHOWN = 80 };

static bool is_given(const char *run_as) {
    return run_as != NULL && run_as[0] != '\0';
}

static int check(const char *shown, const struct passwd *entry, const struct login_rules *rules,
                 struct acre_error *err) {
    if (entry->pw_uid == 0 && !rules->allow_root) {
        return acre_fail(
            err, ACRE_EDENIED,
            "account %s is root; start the daemon with --allow-root to run jobs as root", shown);
    }
    if (rules->own != 0 && entry->pw_uid != rules->own) {
        return acre_fail(
            err, ACRE_EDENIED,
            "account %s: a daemon that is not root runs jobs only as its own user (uid %u)", shown,
            (unsigned)rules->own);
    }
    if (rules->own == 0 && entry->pw_uid != 0 && entry->pw_uid < rules->min_uid &&
        !is_given(rules->run_as)) {
        return acre_fail(err, ACRE_EDENIED,
                         "user %s: uid %u is below --min-uid %u: system accounts may not run jobs",
                         shown, (unsigned)entry->pw_uid, (unsigned)rules->min_uid);
    }
    return 0;
}

int login_find(const char *user, const struct login_rules *rules, struct login *ret_login,
               struct acre_error *err) {
    const char *name = is_given(rules->run_as) ? rules->run_as : user;
    char shown[SHOWN], text[LOOKUP_BYTES];
    acre_str_show(acre_str_from(name), shown, sizeof(shown));
    struct passwd entry, *found = NULL;
    int error = getpwnam_r(name, &entry, text, sizeof(text), &found);
    if (found == NULL) {
        return error != 0 ? acre_fail_errno(err, error, "account %s", shown)
                          : acre_fail(err, ACRE_ENOTFOUND,
                                      "there is no account named %s on this machine (--run-as NAME "
                                      "runs all jobs as one account)",
                                      shown);
    }
    int r = check(shown, found, rules, err);
    if (r < 0) {
        return r;
    }
    struct login login = {.uid = found->pw_uid, .gid = found->pw_gid};
    if (!acre_str_copy(login.name, sizeof(login.name), acre_str_from(found->pw_name)) ||
        !acre_str_copy(login.home, sizeof(login.home), acre_str_from(found->pw_dir)) ||
        !acre_str_copy(login.shell, sizeof(login.shell), acre_str_from(found->pw_shell))) {
        return acre_fail(err, ACRE_ELIMIT, "account %s: its name, home or shell is too long",
                         shown);
    }
    int count = ACRE_LOGIN_GROUPS_MAX;
    _Static_assert(sizeof(gid_t) == sizeof(login.groups[0]), "group ids travel as 32 bits");
    if (getgrouplist(found->pw_name, found->pw_gid, login.groups, &count) < 0) {
        return acre_fail(err, ACRE_ELIMIT, "account %s is in %d groups; accepted: at most %d",
                         shown, count, ACRE_LOGIN_GROUPS_MAX);
    }
    login.group_count = (uint32_t)count;
    *ret_login = login;
    return 0;
}
