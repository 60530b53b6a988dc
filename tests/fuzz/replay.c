/* replay.c - a main() for fuzzers without libFuzzer: every file of the given directories, once.
 *
 * Prints TAP, one line per file. A finding is a crash, as it is under libFuzzer: the line that
 * is missing names the file. */
#include "core/file.h"
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_MAX_BYTES = 1 << 20, PATH_BYTES = 4096 };

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static bool replay(const char *directory, const char *name, unsigned number) {
    char path[PATH_BYTES];
    struct acre_error err = {0};
    struct acre_buf input;
    acre_buf_init(&input, INPUT_MAX_BYTES);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    bool ok = acre_file_read(path, INPUT_MAX_BYTES, &input, &err) == 0;
    if (ok) { /* a copy of exactly that size, so that reading past it is seen */
        uint8_t *bytes = malloc(ACRE_MAX(input.length, (size_t)1));
        ACRE_ASSERT(bytes != NULL);
        memcpy(bytes, input.data, input.length);
        LLVMFuzzerTestOneInput(bytes, input.length);
        free(bytes);
    } else {
        printf("# %s\n", err.text);
    }
    printf("%s %u - %s\n", ok ? "ok" : "not ok", number, name);
    fflush(stdout);
    acre_buf_finish(&input);
    return ok;
}

int main(int argc, char **argv) {
    unsigned number = 0;
    unsigned failed = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        struct dirent **entries = NULL;
        int count = scandir(argv[i], &entries, is_visible, alphasort);
        if (count <= 0) {
            printf("not ok %u - no seeds in %s\n", ++number, argv[i]);
            failed++;
        }
        for (int j = 0; j < count; j++) {
            failed += !replay(argv[i], entries[j]->d_name, ++number);
            free(entries[j]);
        }
        free(entries);
    }
    printf("1..%u\n", number);
    return failed > 0 || number == 0;
}
