/* hip_rtc.c - HIPRTC: source to code objects, on any machine that has AMD's libraries.
 *
 * The compiler needs no device. The architecture is always passed (a device's gcnArchName, with its
 * features: "gfx90a:sramecc+:xnack-"), so code compiled for a device runs there, and the tests
 * compile for devices that are not here. HIPRTC is a separate library, or part of the runtime
 * (Debian, HIP 5.2); in both cases it opens libamd_comgr, which is clang.
 *
 * Three of its habits are worked around here:
 *   - It names the source after a temporary file. `#line` gives it a better name; the dialect's own
 *     `#line` comes later and wins.
 *   - An unknown architecture makes it crash (5.2), so options must not name one.
 *   - Distributions link comgr and PoCL with the same libLLVM, and each brings a copy of clang: the
 *     second to be loaded registers its options again, and LLVM ends the process. If PoCL's copy is
 *     already loaded, compiling fails with that reason. (With a device, the runtime loads comgr at
 *     once, so it is first wherever HIP is tried before OpenCL.)
 * It is not safe for two threads at once: each registers LLVM's targets, which then exist twice;
 * and with only the compilations serialized, four threads once hung for a minute, for a reason that
 * was not found. Its state belongs to the process, whatever handle is used, and so does the lock:
 * one thread at a time is in it, from a program's creation until its end. */
#include "compute/gpu/hip.h"

#include "core/dl.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, OPTION_BYTES_MAX = 4096, ARCH_OPTION_BYTES = HIP_ARCH_BYTES + 32 };
enum { LOG_BYTES_MAX = 16 << 20 }; /* more than any compiler says: clang stops after 20 errors */

/* --- loading -------------------------------------------------------------------------------- */

static const struct acre_dl_symbol symbols[] = {
#define X(need, member, symbol, result, arguments) {symbol, offsetof(struct hiprtc, member), need},
    HIPRTC_SYMBOLS(X)
#undef X
};

int hiprtc_load(int major, struct hiprtc *ret_rtc, struct acre_error *err) {
    char own[32], inside[32];
    snprintf(own, sizeof(own), "libhiprtc.so.%d", major);
    snprintf(inside, sizeof(inside), "libamdhip64.so.%d", major);
    const char *const sonames[] = {own, inside, NULL};
    return acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), ret_rtc, NULL, err);
}

struct loaded {
    bool comgr, clang;
};

static int look(struct dl_phdr_info *info, size_t size, void *user) {
    (void)size;
    struct loaded *loaded = user;
    loaded->comgr |= strstr(info->dlpi_name, "/libamd_comgr.so") != NULL;
    loaded->clang |= strstr(info->dlpi_name, "/libclang-cpp.so") != NULL;
    return 0;
}

static int check_clang(struct acre_error *err) {
    struct loaded loaded = {0};
    dl_iterate_phdr(look, &loaded);
    if (loaded.clang && !loaded.comgr) {
        return acre_fail(err, ACRE_EUNAVAILABLE,
                         "HIPRTC: AMD's clang cannot be loaded because this process already has "
                         "PoCL's (libclang-cpp.so); compile in a separate process");
    }
    return 0;
}

/* --- options -------------------------------------------------------------------------------- */

static const char *const architectures[] = {
    "--offload-arch", "--gpu-architecture", "-march", "--cuda-gpu-arch",
    "-mcpu",          "--target",           "-target"};

struct hiprtc_options {
    char arch[ARCH_OPTION_BYTES];
    char *words; /* one string after the other */
    const char *all[OPTIONS_MAX];
    int count;
};

static int check_option(const char *option, struct acre_error *err) {
    for (size_t i = 0; i < ACRE_COUNT(architectures); i++) {
        size_t length = strlen(architectures[i]);
        if (strncmp(option, architectures[i], length) == 0 &&
            (option[length] == '\0' || option[length] == '=')) {
            return acre_fail(
                err, ACRE_EINVALID,
                "option '%.64s' is not accepted: the architecture is always that of the device",
                option);
        }
    }
    return 0;
}

static int split_options(const char *text, const char *arch, struct hiprtc_options *ret_options,
                         struct acre_error *err) {
    struct hiprtc_options options = {.count = 1};
    if (strlen(text) > OPTION_BYTES_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "options: %zu bytes; accepted: at most %d", strlen(text),
                         OPTION_BYTES_MAX);
    }
    snprintf(options.arch, sizeof(options.arch), "--offload-arch=%s", arch);
    options.words = strdup(text);
    if (options.words == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "no memory for the compiler options");
    }
    int r = 0;
    char *rest = options.words, *word = NULL;
    while (r == 0 && (word = strsep(&rest, " \t\n")) != NULL) {
        if (*word == '\0') {
            continue;
        }
        if (options.count == OPTIONS_MAX) {
            r = acre_fail(err, ACRE_ELIMIT, "options: more than %d options", OPTIONS_MAX - 1);
        } else {
            r = check_option(word, err);
            options.all[options.count++] = word;
        }
    }
    if (r < 0) {
        free(options.words);
        return r;
    }
    *ret_options = options;
    ret_options->all[0] = ret_options->arch;
    return 0;
}

/* --- compiling ------------------------------------------------------------------------------ */

static int fail(const struct hiprtc *rtc, int code, const char *call, struct acre_error *err) {
    return acre_fail(err, code == HIPRTC_NO_MEMORY ? ACRE_ENOMEM : ACRE_EINTERNAL, "%s: %s", call,
                     rtc->error_name(code));
}

/* What `size` and `get` of the program have, appended. */
static int take(const struct hiprtc *rtc, gpu_handle program, int (*size)(gpu_handle, size_t *),
                int (*get)(gpu_handle, char *), struct acre_buf *out, const char *call,
                struct acre_error *err) {
    size_t length = 0;
    int code = size(program, &length);
    if (code != 0) {
        return fail(rtc, code, call, err);
    }
    if (length == 0) {
        return 0;
    }
    char *bytes = malloc(length + 1);
    if (bytes == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "no memory for %zu bytes of %s", length, call);
    }
    code = get(program, bytes);
    int r = code != 0 ? fail(rtc, code, call, err) : acre_buf_append(out, bytes, length);
    if (r == ACRE_ELIMIT) {
        r = acre_fail(err, r, "%s: %zu bytes; accepted: at most %zu", call, length, out->max);
    }
    free(bytes);
    return r;
}

/* The first line of the log that tells of an error, else its first line. */
static int fail_compile(const char *log, struct acre_error *err) {
    const char *line = strstr(log, "error:");
    line = line != NULL ? line : log;
    while (line > log && line[-1] != '\n') {
        line--;
    }
    int length = (int)strcspn(line, "\n");
    return length == 0 ? acre_fail(err, ACRE_EINVALID,
                                   "HIPRTC failed to compile the source and gave no reason")
                       : acre_fail(err, ACRE_EINVALID, "%.*s", length, line);
}

static int compile(const struct hiprtc *rtc, gpu_handle program,
                   const struct hiprtc_options *options, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err) {
    int code = rtc->compile(program, options->count, (const char **)options->all);
    struct acre_buf said;
    acre_buf_init(&said, LOG_BYTES_MAX);
    take(rtc, program, rtc->log_size, rtc->log, &said, "hiprtcGetProgramLog", NULL);
    /* Versions differ in whether the terminating NUL counts. A log that is cut is still one. */
    size_t room = log->max - ACRE_MIN(log->max, log->length);
    acre_buf_append(log, said.data, ACRE_MIN(strlen(said.data), room));
    int r = 0;
    if (code == HIPRTC_DOES_NOT_COMPILE || code == HIPRTC_BAD_OPTION) {
        r = fail_compile(said.data, err);
    } else if (code != 0) {
        r = fail(rtc, code, "hiprtcCompileProgram", err);
    } else {
        r = take(rtc, program, rtc->code_size, rtc->code, binary, "hiprtcGetCode", err);
    }
    acre_buf_finish(&said);
    return r;
}

static int create_and_compile(const struct hiprtc *rtc, const char *text,
                              const struct hiprtc_options *options, struct acre_buf *binary,
                              struct acre_buf *log, struct acre_error *err) {
    int r = check_clang(err);
    if (r < 0) {
        return r;
    }
    gpu_handle program = 0;
    int code = rtc->create(&program, text, "kernel", 0, NULL, NULL);
    if (code != 0) {
        return fail(rtc, code, "hiprtcCreateProgram", err);
    }
    r = compile(rtc, program, options, binary, log, err);
    rtc->destroy(&program);
    return r;
}

int hiprtc_compile(const struct hiprtc *rtc, const char *arch, const struct native_source *source,
                   struct acre_buf *binary, struct acre_buf *log, struct acre_error *err) {
    ACRE_ASSERT(arch[0] != '\0' && strlen(arch) < HIP_ARCH_BYTES);
    static const char name[] = "#line 1 \"kernel\"\n";
    struct hiprtc_options options;
    int r = split_options(source->options, arch, &options, err);
    if (r < 0) {
        return r;
    }
    char *text = malloc(sizeof(name) + source->length);
    if (text == NULL) {
        r = acre_fail(err, ACRE_ENOMEM, "a source of %zu bytes", source->length);
    } else {
        memcpy(text, name, sizeof(name) - 1);
        memcpy(text + sizeof(name) - 1, source->text, source->length);
        text[sizeof(name) - 1 + source->length] = '\0';
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&one_at_a_time);
        r = create_and_compile(rtc, text, &options, binary, log, err);
        pthread_mutex_unlock(&one_at_a_time);
    }
    free(text);
    free(options.words);
    return r;
}
