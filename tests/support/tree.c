/* tree.c - manifests to files and back to nothing. */
#include "support/tree.h"

#include "core/file.h"
#include "core/str.h"
#include "support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_MAX = 8 << 20, LINE_MAX_BYTES = 64 << 10 };

const char *tree_path(const struct tree *tree, const char *part) {
    static char paths[4][1024];
    static unsigned next;
    char *path = paths[next++ % ACRE_COUNT(paths)];
    snprintf(path, sizeof(paths[0]), "%s/%s", tree->root, part);
    return path;
}

void tree_make_directory(const struct tree *tree, const char *path) {
    char full[1024];
    snprintf(full, sizeof(full), "%s/%s", tree->root, path);
    for (char *p = full + strlen(tree->root) + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0755);
            *p = '/';
        }
    }
    mkdir(full, 0755);
}

void tree_put(const struct tree *tree, const char *path, const char *value) {
    char directory[1024];
    snprintf(directory, sizeof(directory), "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL) {
        *slash = '\0';
        tree_make_directory(tree, directory);
    }
    FILE *file = fopen(tree_path(tree, path), "w");
    REQUIRE(file != NULL);
    fputs(value, file);
    fclose(file);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info;
    (void)walk;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

void tree_delete(const struct tree *tree, const char *path) {
    REQUIRE(nftw(tree_path(tree, path), remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

void tree_erase(const struct tree *tree) {
    nftw(tree->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_line(const struct tree *tree, struct acre_str line) {
    static char path[1024];
    static char value[LINE_MAX_BYTES];
    const char *tab = memchr(line.data, '\t', line.length);
    size_t path_length = tab != NULL ? (size_t)(tab - line.data) : line.length;
    REQUIRE(path_length < sizeof(path) && line.length < sizeof(value));
    memcpy(path, line.data, path_length);
    path[path_length] = '\0';
    if (tab == NULL) {
        REQUIRE(path_length > 1 && path[path_length - 1] == '/');
        path[path_length - 1] = '\0';
        tree_make_directory(tree, path);
        return;
    }
    size_t length = 0;
    for (const char *p = tab + 1; p < line.data + line.length; p++) {
        bool escaped = p[0] == '\\' && p + 1 < line.data + line.length && p[1] == 'n';
        value[length++] = escaped ? '\n' : *p;
        p += escaped;
    }
    value[length] = '\n';
    value[length + 1] = '\0';
    tree_put(tree, path, value);
}

struct tree tree_create(const char *name) {
    struct tree tree = {.root = "/tmp/acre-tree-XXXXXX"};
    REQUIRE(mkdtemp(tree.root) != NULL);
    if (name == NULL) {
        return tree;
    }
    char path[512];
    struct acre_buf text;
    snprintf(path, sizeof(path), "%s/%s", ACRE_TEST_DATA, name);
    acre_buf_init(&text, MANIFEST_MAX);
    REQUIRE(acre_file_read(path, MANIFEST_MAX, &text, NULL) == 0);
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    struct acre_str line;
    while (acre_split_next(&lines, &line)) {
        if (line.length > 0 && line.data[0] != '#') {
            put_line(&tree, line);
        }
    }
    acre_buf_finish(&text);
    return tree;
}
