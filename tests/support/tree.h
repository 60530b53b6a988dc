/* tree.h - directory trees for tests: recorded sysfs and proc layouts, materialised in a
 * temporary directory.
 *
 * A manifest has one file a line: path, tab, value; "\n" in a value is a line end, and a last
 * line end is added, as sysfs does. A path that ends in '/' is an empty directory. '#' starts a
 * comment line. Failures end the test. */
#ifndef ACRE_TEST_TREE_H
#define ACRE_TEST_TREE_H

#include "core/base.h"

struct tree {
    char root[64]; /* no '/' at the end */
};

/* An empty tree, or one from tests/data/<name>. */
struct tree tree_create(const char *name);
void tree_erase(const struct tree *tree);

/* "<root>/<part>", in a buffer of its own until the next call but three. */
const char *tree_path(const struct tree *tree, const char *part);
/* Write a file, making its directories; an existing one is replaced. */
void tree_put(const struct tree *tree, const char *path, const char *value);
void tree_delete(const struct tree *tree, const char *path);
void tree_make_directory(const struct tree *tree, const char *path);

#endif
