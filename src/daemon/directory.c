/* directory.c - opens one path component after the other, each from the descriptor of the last.
 *
 * What was checked stays true: only root or we can change entries of a directory that belongs to
 * root or us and is closed to others; in a sticky one others may add names, but not touch ours.
 * Links on the way are followed by hand, because their owner matters: only root's links and ours
 * are followed. The last component must not be a link. */
#include "daemon/directory.h"

#include "core/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40, SHOWN = 160, OWNER_MAX = 64 }; /* links: as many as the kernel follows */

struct path_walk {
    const struct directory *place;
    char so_far[PATH_MAX]; /* what `at` is, for messages */
    char rest[PATH_MAX];   /* still to go */
    int at;
    int links;
};

static const char *owner_name(uid_t uid, char text[OWNER_MAX]) {
    const struct passwd *entry = getpwuid(uid);
    if (entry != NULL) {
        acre_str_show(acre_str_from(entry->pw_name), text, OWNER_MAX);
    } else {
        snprintf(text, OWNER_MAX, "uid %u", (unsigned)uid);
    }
    return text;
}

/* May somebody write to it who is neither the owner nor of our group or root's? */
static bool is_open(const struct stat *info) {
    bool group = info->st_gid != 0 && info->st_gid != getegid();
    return (info->st_mode & S_IWOTH) != 0 || (group && (info->st_mode & S_IWGRP) != 0);
}

static int refuse_owner(const struct path_walk *walk, const char *what, const struct stat *info,
                        struct acre_error *err) {
    char owner[OWNER_MAX], own[OWNER_MAX], shown[SHOWN];
    return acre_fail(err, ACRE_EDENIED,
                     "%s %s belongs to %s, not to %s; chown it, or choose another place with %s",
                     what, acre_str_show(acre_str_from(walk->so_far), shown, sizeof(shown)),
                     owner_name(info->st_uid, owner), owner_name(geteuid(), own),
                     walk->place->option);
}

static int refuse_mode(const struct path_walk *walk, const struct stat *info,
                       struct acre_error *err) {
    char shown[SHOWN];
    acre_str_show(acre_str_from(walk->so_far), shown, sizeof(shown));
    return acre_fail(
        err, ACRE_EDENIED,
        "other users can write to %s (mode %o); run 'chmod go-w %s', or choose another place "
        "with %s",
        shown, (unsigned)(info->st_mode & 07777), shown, walk->place->option);
}

static int fail_here(const struct path_walk *walk, int error, struct acre_error *err) {
    char shown[SHOWN];
    return acre_fail_errno(err, error, "%s",
                           acre_str_show(acre_str_from(walk->so_far), shown, sizeof(shown)));
}

/* Of a directory on the way, or of the place itself. */
static int check_directory(const struct path_walk *walk, const struct stat *info, bool last,
                           struct acre_error *err) {
    bool trusted = info->st_uid == geteuid() || (!last && info->st_uid == 0);
    bool sticky = !last && (info->st_mode & S_ISVTX) != 0;
    if (!S_ISDIR(info->st_mode)) {
        return fail_here(walk, ENOTDIR, err);
    }
    if (!trusted) {
        return refuse_owner(walk, "directory", info, err);
    }
    return is_open(info) && !sticky ? refuse_mode(walk, info, err) : 0;
}

/* Go on from where the link `fd` leads. */
static int follow_link(struct path_walk *walk, int fd, const struct stat *info, bool last,
                       struct acre_error *err) {
    char target[PATH_MAX], rest[PATH_MAX], shown[SHOWN];
    if (last) {
        return acre_fail(err, ACRE_EDENIED, "%s is a link; give the directory itself with %s",
                         acre_str_show(acre_str_from(walk->so_far), shown, sizeof(shown)),
                         walk->place->option);
    }
    if (info->st_uid != 0 && info->st_uid != geteuid()) {
        return refuse_owner(walk, "link", info, err);
    }
    ssize_t length = readlinkat(fd, "", target, sizeof(target) - 1);
    if (length < 0 || ++walk->links > LINKS_MAX) {
        return fail_here(walk, length < 0 ? errno : ELOOP, err);
    }
    target[length] = '\0';
    int whole = snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest);
    if (whole < 0 || (size_t)whole >= sizeof(rest)) {
        return fail_here(walk, ENAMETOOLONG, err);
    }
    memcpy(walk->rest, rest, sizeof(rest));
    if (target[0] == '/') {
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0) {
            return fail_here(walk, errno, err);
        }
        close(walk->at);
        walk->at = root;
        walk->so_far[0] = '\0';
    } else {
        *strrchr(walk->so_far, '/') = '\0';
    }
    return 0;
}

/* Enter, after it was made where it was not there. */
static int step(struct path_walk *walk, const char *name, bool last, struct acre_error *err) {
    size_t before = strlen(walk->so_far);
    int length = snprintf(walk->so_far + before, PATH_MAX - before, "/%s", name);
    if (length < 0 || (size_t)length >= PATH_MAX - before) {
        return fail_here(walk, ENAMETOOLONG, err);
    }
    int fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(walk->at, name, last ? walk->place->mode : 0755) != 0 && errno != EEXIST) {
            return fail_here(walk, errno, err);
        }
        fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    struct stat info;
    int r = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        r = fail_here(walk, errno, err);
    } else if (S_ISLNK(info.st_mode)) {
        r = follow_link(walk, fd, &info, last, err);
        close(fd);
        return r;
    } else if (last && faccessat(walk->at, name, W_OK | X_OK, AT_EACCESS) != 0 &&
               info.st_uid == geteuid()) { /* a read-only file system, say */
        r = fail_here(walk, errno, err);
    } else {
        r = check_directory(walk, &info, last, err);
    }
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return r;
    }
    close(walk->at);
    walk->at = fd;
    return 0;
}

/* Take the next component off what is left. False: it is too long. */
static bool take_name(struct path_walk *walk, char name[NAME_MAX + 1], bool *ret_last) {
    const char *at = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(at, "/");
    const char *after = at + length + strspn(at + length, "/");
    bool fits = acre_str_copy(name, NAME_MAX + 1, (struct acre_str){at, length});
    *ret_last = *after == '\0';
    memmove(walk->rest, after, strlen(after) + 1);
    return fits;
}

/* To the end, or to what is wrong. The last step is always one into a directory with a name: the
 * root is nobody's place, and where ".." leads was not checked as the last one. */
static int walk_on(struct path_walk *walk, struct acre_error *err) {
    char name[NAME_MAX + 1];
    bool last = false;
    int r = 0;
    while (r == 0 && !last) {
        if (!take_name(walk, name, &last)) {
            r = fail_here(walk, ENAMETOOLONG, err);
        } else if (last && (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)) {
            r = acre_fail(err, ACRE_EINVALID, "the path must end with the name of a directory");
        } else if (name[0] != '\0' && strcmp(name, ".") != 0) {
            r = step(walk, name, last, err);
        }
    }
    return r;
}

static int begin(struct path_walk *walk, struct acre_error *err) {
    const char *path = walk->place->path;
    char here[PATH_MAX] = "";
    if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        return fail_here(walk, errno, err);
    }
    int length = snprintf(walk->rest, sizeof(walk->rest), "%s/%s", here, path);
    walk->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (walk->at < 0 || length < 0 || (size_t)length >= sizeof(walk->rest)) {
        return fail_here(walk, walk->at < 0 ? errno : ENAMETOOLONG, err);
    }
    for (char *end; (end = strrchr(walk->rest, '/')) != NULL && end > walk->rest &&
                    (end[1] == '\0' || strcmp(end, "/.") == 0);) {
        *end = '\0'; /* "state/." is "state" */
    }
    return 0;
}

static bool is_empty(int fd) {
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (directory == NULL) {
        return false;
    }
    uint32_t count = 0;
    while (readdir(directory) != NULL) {
        count++; /* with . and .. */
    }
    closedir(directory);
    return count <= 2;
}

/* Give a directory that is ours its mode. One that is full of other things (/etc, somebody's home)
 * was named by mistake: closing it would close it to those who need it. */
static int close_to_others(const struct path_walk *walk, int fd, struct acre_error *err) {
    struct stat info;
    const struct directory *place = walk->place;
    if (fstat(fd, &info) != 0) {
        return fail_here(walk, errno, err);
    }
    if ((info.st_mode & 07777) == place->mode) {
        return 0;
    }
    if (place->known_by != NULL && faccessat(fd, place->known_by, F_OK, 0) != 0 && !is_empty(fd)) {
        return acre_fail(
            err, ACRE_EDENIED,
            "it contains other files, but no %s; choose an empty or new directory with "
            "%s",
            place->known_by, place->option);
    }
    return fchmod(fd, place->mode) == 0 ? 0 : fail_here(walk, errno, err);
}

int directory_open(const struct directory *place, int *ret_fd, struct acre_error *err) {
    struct path_walk walk = {.place = place, .at = -1};
    char shown[SHOWN];
    int fd = -1;
    int r = begin(&walk, err);
    r = r == 0 ? walk_on(&walk, err) : r;
    if (r == 0) {
        fd = openat(walk.at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? fail_here(&walk, errno, err) : 0;
    }
    if (r == 0 && place->is_ours) {
        r = close_to_others(&walk, fd, err);
    }
    if (walk.at >= 0) {
        close(walk.at);
    }
    if (r < 0) {
        if (fd >= 0) {
            close(fd);
        }
        acre_str_show(acre_str_from(place->path), shown, sizeof(shown));
        return acre_fail_in(err, r, "%s %s", place->what, shown);
    }
    *ret_fd = fd;
    return 0;
}

static int check_entry(const struct path_walk *walk, const struct directory_entry *entry,
                       const struct stat *info, struct acre_error *err) {
    static const struct {
        mode_t type;
        const char *name;
    } kinds[] = {[ACRE_ENTRY_FILE] = {S_IFREG, "a file"},
                 [ACRE_ENTRY_DIRECTORY] = {S_IFDIR, "a directory"},
                 [ACRE_ENTRY_FIFO] = {S_IFIFO, "a FIFO"}};
    if ((info->st_mode & S_IFMT) != kinds[entry->kind].type) {
        return acre_fail(err, ACRE_EDENIED,
                         "%s is %s, not %s; remove it, or choose another place with %s",
                         entry->name, S_ISLNK(info->st_mode) ? "a link" : "something else",
                         kinds[entry->kind].name, walk->place->option);
    }
    if (info->st_uid != geteuid()) {
        return refuse_owner(walk, kinds[entry->kind].name + strlen("a "), info, err);
    }
    return is_open(info) ? refuse_mode(walk, info, err) : 0;
}

int directory_check(const struct directory *place, int fd, const struct directory_entry *entries,
                    size_t count, struct acre_error *err) {
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        struct path_walk walk = {.place = place, .at = fd};
        struct stat info;
        snprintf(walk.so_far, sizeof(walk.so_far), "%s", entries[i].name);
        if (fstatat(fd, entries[i].name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            r = check_entry(&walk, &entries[i], &info, err);
        } else if (errno != ENOENT) {
            r = fail_here(&walk, errno, err);
        }
    }
    char shown[SHOWN];
    acre_str_show(acre_str_from(place->path), shown, sizeof(shown));
    return r < 0 ? acre_fail_in(err, r, "%s %s", place->what, shown) : 0;
}
