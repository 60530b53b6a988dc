/* directory.h - opens directories that no other user can put anything into.
 *
 * A root daemon that follows another user's link can be made to write any file. So nothing is kept
 * in a directory that belongs to another user or that others may write to, or below one, or behind
 * another user's link. Sticky directories (/tmp) are fine on the way: others can neither remove nor
 * rename our entries there. Used at start only; one thread. */
#ifndef ACRE_DAEMON_DIRECTORY_H
#define ACRE_DAEMON_DIRECTORY_H

#include "core/error.h"

#include <sys/types.h>

struct directory {
    const char *what;   /* for messages: "state directory" */
    const char *option; /* that names another: "--state" */
    const char *path;
    mode_t mode;          /* when it has to be made; those above it get 0755 */
    bool is_ours;         /* nobody else has business in it: an existing one gets the mode, too */
    const char *known_by; /* an entry without which an existing one that has others is not ours */
};

/* Make what is lacking, and check all of the way. ACRE_EDENIED: somebody else could get in between;
 * the text says who, where, and what to do. The descriptor is the caller's to close. */
int directory_open(const struct directory *place, int *ret_fd, struct acre_error *err);

enum directory_kind { ACRE_ENTRY_FILE, ACRE_ENTRY_DIRECTORY, ACRE_ENTRY_FIFO };
struct directory_entry {
    const char *name;
    enum directory_kind kind;
};
/* Those of the entries that are there must be of their kind, ours, and closed to others' writing.
 */
int directory_check(const struct directory *place, int fd, const struct directory_entry *entries,
                    size_t count, struct acre_error *err);

#endif
