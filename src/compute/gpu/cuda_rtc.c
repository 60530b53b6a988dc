/* cuda_rtc.c - NVRTC, found at run time.
 *
 * It is looked up by name, where the toolkit is installed, and below $CUDA_HOME, which also works
 * for Python packages (lib instead of lib64). Code of a newer major version than the driver's may
 * not load, so the driver's own version is tried first, then older ones.
 *
 * NVRTC opens a second library by its bare name and does not look in its own directory. That
 * library is loaded here first, from NVRTC's directory, so that it is already there.
 *
 * NVRTC makes machine code for the GPU (CUBIN), which loads in microseconds and is what a cache
 * should hold. Only for a GPU that NVRTC does not know yet it makes PTX, which the driver compiles.
 */
#include "compute/gpu/cuda_rtc.h"

#include "core/dl.h"
#include "core/str.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARCHS_MAX = 64, OPTIONS_MAX = 64, PATHS_MAX = 16, VERSIONS = 3 };

static const struct acre_dl_symbol symbols[] = {
#define X(required, member, symbol, arguments)                                                     \
    {(symbol), offsetof(struct nvrtc_library, member), (required)},
    NVRTC_SYMBOLS(X)
#undef X
        {"nvrtcGetErrorString", offsetof(struct nvrtc_library, text), true},
};

/* --- finding -------------------------------------------------------------------------------- */

static const struct {
    int major;
    const char *soname;
} versions[VERSIONS] = {{13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}};

struct paths {
    char texts[PATHS_MAX * VERSIONS][PATH_MAX];
    const char *list[PATHS_MAX * VERSIONS + 1];
    size_t count;
};

static void add_path(struct paths *paths, const char *directory, const char *below,
                     const char *soname) {
    char *text = paths->texts[paths->count];
    int length = snprintf(text, PATH_MAX, "%s%s%s", directory, below, soname);
    if (length > 0 && length < PATH_MAX) {
        paths->list[paths->count++] = text;
    }
}

/* Versions the driver can take first (newest first), then the others. */
static void list_paths(struct paths *paths, int driver_version) {
    const char *home = getenv("CUDA_HOME");
    int driver_major = driver_version == 0 ? INT_MAX : driver_version / 1000;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < VERSIONS; i++) {
            if ((versions[i].major <= driver_major) != (pass == 0)) {
                continue;
            }
            if (home != NULL && home[0] == '/') {
                add_path(paths, home, "/lib64/", versions[i].soname);
                add_path(paths, home, "/lib/", versions[i].soname);
            }
            add_path(paths, "", "", versions[i].soname);
            add_path(paths, "/usr/local/cuda", "/lib64/", versions[i].soname);
        }
    }
}

/* Where it was loaded from; "" when the loader does not tell. */
static void directory_of(const struct nvrtc_library *library, char *ret_directory, size_t size) {
    Dl_info info;
    void *address;
    memcpy(&address, &library->version, sizeof(address));
    char path[PATH_MAX];
    ret_directory[0] = '\0';
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL && info.dli_fname[0] == '/' &&
        acre_str_copy(path, sizeof(path), acre_str_from(info.dli_fname))) {
        snprintf(ret_directory, size, "%s", dirname(path));
    }
}

/* It is never closed, as no vendor's library is (core/dl.h). Not found: NVRTC will say so. */
static void load_builtins(const struct cuda_rtc *rtc, const char *directory) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/libnvrtc-builtins.so.%d.%d", directory,
                          rtc->major, rtc->minor);
    if (directory[0] != '\0' && length > 0 && (size_t)length < sizeof(path)) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        (void)library;
    }
}

static bool has_headers(const char *directory, const char *below, char *ret_include, size_t size) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s%s/cuda_runtime.h", directory, below);
    if (directory[0] != '/' || access(path, R_OK) != 0) {
        return false;
    }
    return (size_t)snprintf(ret_include, size, "%s%s", directory, below) < size;
}

static void find_headers(struct cuda_rtc *rtc, const char *directory) {
    const char *home = getenv("CUDA_HOME");
    char *include = rtc->include[0];
    size_t size = sizeof(rtc->include[0]);
    if ((home != NULL && has_headers(home, "/include", include, size)) ||
        has_headers(directory, "/../include", include, size) ||
        has_headers("/usr/local/cuda", "/include", include, size)) {
        /* Since 13 the C++ headers live in a directory of their own. */
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/cccl", include);
        if (access(path, X_OK) == 0 && strlen(path) < size) {
            memcpy(rtc->include[1], path, strlen(path) + 1);
        }
        return;
    }
    include[0] = '\0';
}

int cuda_rtc_load(struct cuda_rtc *rtc, int driver_version, struct acre_error *err) {
    struct paths *paths = calloc(1, sizeof(*paths));
    struct acre_error said = {0};
    if (paths == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "NVRTC");
    }
    *rtc = (struct cuda_rtc){0};
    list_paths(paths, driver_version);
    int r = acre_dl_load(paths->list, symbols, ACRE_COUNT(symbols), &rtc->library, NULL, &said);
    free(paths);
    if (r == ACRE_EUNAVAILABLE) {
        return acre_fail(err, r,
                         "NVRTC is not installed (libnvrtc.so.13, .12 or .11.2, by name, in "
                         "/usr/local/cuda or $CUDA_HOME)");
    }
    if (r < 0) {
        return acre_fail(err, r, "NVRTC: %s", said.text);
    }
    int result = rtc->library.version(&rtc->major, &rtc->minor);
    if (result != 0) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "nvrtcVersion: %s", rtc->library.text(result));
    }
    char directory[PATH_MAX];
    directory_of(&rtc->library, directory, sizeof(directory));
    load_builtins(rtc, directory);
    find_headers(rtc, directory);
    return 0;
}

/* --- targets -------------------------------------------------------------------------------- */

int cuda_target_choose(const int *archs, int count, int device_arch, struct cuda_target *ret_target,
                       struct acre_error *err) {
    int best = 0;
    for (int i = 0; i < count; i++) {
        if (archs[i] <= device_arch && archs[i] > best) {
            best = archs[i];
        }
    }
    if (best == 0) {
        return acre_fail(err, ACRE_EUNSUPPORTED,
                         "this GPU is sm_%d; the installed NVRTC supports only sm_%d and newer",
                         device_arch, count > 0 ? archs[0] : 0);
    }
    *ret_target = (struct cuda_target){.arch = best, .is_ptx = best / 10 != device_arch / 10};
    return 0;
}

static int find_target(const struct cuda_rtc *rtc, int device_arch, struct cuda_target *ret_target,
                       struct acre_error *err) {
    int count = 0;
    int archs[ARCHS_MAX];
    int result = rtc->library.arch_count(&count);
    if (result == 0 && count <= ARCHS_MAX) {
        result = rtc->library.archs(archs);
    }
    if (result != 0 || count <= 0 || count > ARCHS_MAX) {
        return acre_fail(err, ACRE_EINTERNAL, "nvrtcGetSupportedArchs: %s, %d of them",
                         rtc->library.text(result), count);
    }
    return cuda_target_choose(archs, count, device_arch, ret_target, err);
}

/* --- compiling ------------------------------------------------------------------------------ */

struct nvrtc_options {
    const char *list[OPTIONS_MAX];
    int count;
    bool has_arch;
    char arch[40];
    char include[2][264];
    char *words; /* the source's own, cut at blanks */
};

static int add_option(struct nvrtc_options *options, const char *word, struct acre_error *err) {
    if (options->count == OPTIONS_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "options: more than %d options", OPTIONS_MAX);
    }
    static const char *const arch_words[] = {"--gpu-architecture", "-arch"};
    for (size_t i = 0; i < ACRE_COUNT(arch_words); i++) {
        options->has_arch |= strncmp(word, arch_words[i], strlen(arch_words[i])) == 0;
    }
    options->list[options->count++] = word;
    return 0;
}

static int make_options(const struct cuda_rtc *rtc, const struct cuda_target *target,
                        const char *given, struct nvrtc_options *options, struct acre_error *err) {
    int r = 0;
    options->words = strdup(given);
    if (options->words == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "options");
    }
    for (char *at = options->words; *at != '\0' && r == 0;) {
        char *word = at + strspn(at, " \t\n");
        at = word + strcspn(word, " \t\n");
        if (*at != '\0') {
            *at++ = '\0';
        }
        r = word[0] != '\0' ? add_option(options, word, err) : 0;
    }
    for (size_t i = 0; i < ACRE_COUNT(rtc->include) && r == 0; i++) {
        if (rtc->include[i][0] != '\0') {
            snprintf(options->include[i], sizeof(options->include[i]), "-I%s", rtc->include[i]);
            r = add_option(options, options->include[i], err);
        }
    }
    /* Helper functions need no __device__, as in the other languages. */
    r = r == 0 ? add_option(options, "--device-as-default-execution-space", err) : r;
    if (r == 0 && !options->has_arch) {
        snprintf(options->arch, sizeof(options->arch), "--gpu-architecture=%s_%d",
                 target->is_ptx ? "compute" : "sm", target->arch);
        r = add_option(options, options->arch, err);
    }
    return r;
}

/* What the compiler said, whole; the first line that tells of an error, for the text. */
static void read_log(const struct cuda_rtc *rtc, gpu_handle program, struct acre_buf *log,
                     char *ret_first, size_t size) {
    size_t length = 0;
    ret_first[0] = '\0';
    if (rtc->library.log_size(program, &length) != 0 || length <= 1) {
        return;
    }
    char *text = calloc(1, length + 1);
    if (text == NULL || rtc->library.log(program, text) != 0) {
        free(text);
        return;
    }
    acre_buf_puts(log, text);
    const char *error = strstr(text, "error");
    const char *line = text;
    if (error != NULL) {
        line = error;
        while (line > text && line[-1] != '\n') {
            line--;
        }
    }
    snprintf(ret_first, size, "%.*s", (int)ACRE_MIN(strcspn(line, "\n"), size - 1), line);
    free(text);
}

static int take_code(const struct cuda_rtc *rtc, gpu_handle program, struct acre_buf *binary,
                     struct acre_error *err) {
    const struct nvrtc_library *library = &rtc->library;
    size_t length = 0;
    /* No machine code: the options asked for a virtual architecture. */
    bool is_cubin = library->cubin_size(program, &length) == 0 && length > 0;
    int result = is_cubin ? 0 : library->ptx_size(program, &length); /* with its NUL */
    if (result != 0 || length == 0) {
        return acre_fail(err, ACRE_EINTERNAL, "NVRTC returned no code: %s", library->text(result));
    }
    char *code = malloc(length);
    if (code == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "no memory for %zu bytes of code", length);
    }
    result = is_cubin ? library->cubin(program, code) : library->ptx(program, code);
    int r = result == 0 ? acre_buf_append(binary, code, length)
                        : acre_fail(err, ACRE_EINTERNAL, "NVRTC: %s", library->text(result));
    if (r == ACRE_ELIMIT) {
        acre_fail(err, r, "the compiled code has %zu bytes; accepted: at most %zu", length,
                  binary->max);
    }
    free(code);
    return r;
}

static int compile(const struct cuda_rtc *rtc, const struct nvrtc_options *options,
                   const char *text, struct acre_buf *binary, struct acre_buf *log,
                   struct acre_error *err) {
    gpu_handle program = 0;
    int result = rtc->library.create(&program, text, "kernel", 0, NULL, NULL);
    if (result != 0) {
        return acre_fail(err, ACRE_EINTERNAL, "nvrtcCreateProgram: %s", rtc->library.text(result));
    }
    char first[256];
    result = rtc->library.compile(program, options->count, options->list);
    read_log(rtc, program, log, first, sizeof(first));
    int r = 0;
    if (result == 0) {
        r = take_code(rtc, program, binary, err);
    } else {
        bool is_theirs = result == NVRTC_COMPILATION || result == NVRTC_INVALID_OPTION;
        r = acre_fail(err,
                      is_theirs                       ? ACRE_EINVALID
                      : result == NVRTC_OUT_OF_MEMORY ? ACRE_ENOMEM
                                                      : ACRE_EINTERNAL,
                      "%s", first[0] != '\0' ? first : rtc->library.text(result));
    }
    rtc->library.destroy(&program);
    return r;
}

int cuda_rtc_compile(const struct cuda_rtc *rtc, int device_arch,
                     const struct native_source *source, struct acre_buf *binary,
                     struct acre_buf *log, struct acre_error *err) {
    struct cuda_target target = {0};
    int r = find_target(rtc, device_arch, &target, err);
    if (r < 0) {
        return r;
    }
    struct nvrtc_options options = {0};
    r = make_options(rtc, &target, source->options, &options, err);
    if (r == 0) {
        char *text = strndup(source->text, source->length); /* NVRTC wants its NUL */
        r = text != NULL ? compile(rtc, &options, text, binary, log, err)
                         : acre_fail(err, ACRE_ENOMEM, "%zu bytes of source", source->length);
        free(text);
    }
    free(options.words);
    return r;
}
