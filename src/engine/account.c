/* account.c - getpwnam and getgrouplist behind four rules.
 *
 * The rules: an account must exist; root only when it was allowed in so many words; without root
 * only ourselves; and none of the system's (www-data, postgres), which own files that no job should
 * reach when the service is broken into, unless whoever runs the daemon named it. Groups beyond the
 * maximum would silently lose access, so they are refused. */
#include "engine/account.h"

#include "core/str.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOKUP_BYTES = 16384, SHOWN = 80 };

static bool is_given(const char *run_as) {
    return run_as != NULL && run_as[0] != '\0';
}

static int check(const char *shown, const struct passwd *entry,
                 const struct acre_account_rules *rules, struct acre_error *err) {
    if (entry->pw_uid == 0 && !rules->allow_root) {
        return acre_fail(err, ACRE_EDENIED,
                         "account %s is root; jobs run as root only with --allow-root", shown);
    }
    if (rules->own != 0 && entry->pw_uid != rules->own) {
        return acre_fail(
            err, ACRE_EDENIED,
            "account %s: a daemon without root runs jobs of its own user (uid %u) only", shown,
            (unsigned)rules->own);
    }
    if (rules->own == 0 && entry->pw_uid != 0 && entry->pw_uid < rules->min_uid &&
        !is_given(rules->run_as)) {
        return acre_fail(err, ACRE_EDENIED,
                         "user %s: its uid %u is below --min-uid %u: system accounts run no jobs",
                         shown, (unsigned)entry->pw_uid, (unsigned)rules->min_uid);
    }
    return 0;
}

int acre_account_find(const char *user, const struct acre_account_rules *rules,
                      struct acre_account *ret_account, struct acre_error *err) {
    const char *name = is_given(rules->run_as) ? rules->run_as : user;
    char shown[SHOWN], text[LOOKUP_BYTES];
    acre_str_show(acre_str_from(name), shown, sizeof(shown));
    struct passwd entry, *found = NULL;
    int error = getpwnam_r(name, &entry, text, sizeof(text), &found);
    if (found == NULL) {
        return error != 0
                   ? acre_fail_errno(err, error, "account %s", shown)
                   : acre_fail(err, ACRE_ENOTFOUND,
                               "no account named %s on this machine (--run-as sets one for all)",
                               shown);
    }
    int r = check(shown, found, rules, err);
    if (r < 0) {
        return r;
    }
    struct acre_account account = {.uid = found->pw_uid, .gid = found->pw_gid};
    if (!acre_str_copy(account.name, sizeof(account.name), acre_str_from(found->pw_name)) ||
        !acre_str_copy(account.home, sizeof(account.home), acre_str_from(found->pw_dir)) ||
        !acre_str_copy(account.shell, sizeof(account.shell), acre_str_from(found->pw_shell))) {
        return acre_fail(err, ACRE_ELIMIT, "account %s: name, home or shell is too long", shown);
    }
    int count = ACRE_ACCOUNT_GROUPS_MAX;
    _Static_assert(sizeof(gid_t) == sizeof(account.groups[0]), "group ids travel as 32 bits");
    if (getgrouplist(found->pw_name, found->pw_gid, account.groups, &count) < 0) {
        return acre_fail(err, ACRE_ELIMIT, "account %s is in %d groups; at most %d", shown, count,
                         ACRE_ACCOUNT_GROUPS_MAX);
    }
    account.group_count = (uint32_t)count;
    *ret_account = account;
    return 0;
}
