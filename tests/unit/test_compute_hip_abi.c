/* HIP's tables against AMD's own headers (issue 4: "ABI checked against its real headers").
 *
 * A C file is written from the tables (not from a copy of them) and given to gcc
 * beside /usr/include/hip: each function of ours is the header's, cast, under
 * -Werror=cast-function-type, which refuses another number of arguments, another width, a pointer
 * where a number is; each number is a _Static_assert. Addresses and handles, numbers for us, are
 * pointers there, and are written so. A second file with one thing wrong in each row must be
 * refused for each of them. */
#include "compute/gpu/hip.h"

#include "core/buf.h"
#include "core/file.h"
#include "support/test.h"
#include "support/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char header[] = "/usr/include/hip/hip_runtime_api.h";

struct function {
    bool need;
    const char *symbol, *result, *arguments;
};

static const struct function functions[] = {
#define X(need, field, cuda, hip, arguments) {need, hip, "int", #arguments},
    GPU_SYMBOLS(X)
#undef X
#define X(need, field, symbol, result, arguments) {need, symbol, #result, #arguments},
        HIP_SYMBOLS(X) HIPRTC_SYMBOLS(X)
#undef X
};

struct number {
    const char *theirs;
    int value;
};

static const struct number numbers[] = {
#define X(ours, theirs, value) {theirs, value},
    HIP_NUMBERS(X)
#undef X
#define X(name, code, error, lasting, words) {name, code},
        HIP_FAULTS(X)
#undef X
    /* What compute/gpu takes to be the same as in CUDA. */
    {"hipErrorNotReady", 600},
    {"hipStreamNonBlocking", 1},
    {"hipHostRegisterPortable", 1},
    {"hipHostRegisterMapped", 2},
    {"hipEventDefault", 0},
    {"hipEventDisableTiming", 2},
    {"HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK", 0},
    {"HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES", 1},
    {"HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES", 3},
    {"HIP_FUNC_ATTRIBUTE_NUM_REGS", 4},
};

static const char prelude[] =
    "#include <hip/hip_runtime_api.h>\n"
    "#include <hip/hiprtc.h>\n"
    "#include <hip/hip_version.h>\n"
    "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    "typedef void *address;\n"
    "#define uintptr_t address\n"
    "#define gpu_handle address\n"
    "#define gpu_ticket hipIpcMemHandle_st\n" /* sizes are compared below */
    "#define hip_uuid hipUUID_t\n"
    "#define hip_callback void\n"; /* a pointer to a function is one to void here */

/* --- the file -------------------------------------------------------------------------------- */

static struct acre_buf header_text;

static void begin(struct acre_buf *out) {
    if (access(header, R_OK) != 0) {
        acre_test_skip("%s is not here (Debian: libamdhip64-dev)", header);
    }
    acre_buf_init(&header_text, (size_t)4 << 20);
    REQUIRE(acre_file_read(header, (size_t)4 << 20, &header_text, NULL) == 0);
    acre_buf_init(out, (size_t)1 << 20);
    acre_buf_puts(out, prelude);
}

static void end(struct acre_buf *out, struct acre_buf *log) {
    acre_buf_finish(out);
    acre_buf_finish(log);
    acre_buf_finish(&header_text);
}

/* What not all versions have is optional in our tables. */
static bool is_there(const struct function *function) {
    char call[96];
    snprintf(call, sizeof(call), "%s(", function->symbol);
    return function->need || strstr(header_text.data, call) != NULL;
}

/* `more` is put behind the last argument. */
static void write_functions(struct acre_buf *out, const char *more) {
    for (size_t i = 0; i < ACRE_COUNT(functions); i++) {
        const struct function *function = &functions[i];
        if (is_there(function)) {
            int length = (int)strlen(function->arguments) - 1; /* without the last ')' */
            acre_buf_printf(out, "typedef %s type_%zu%.*s%s);\n", function->result, i, length,
                            function->arguments, more);
            acre_buf_printf(out, "type_%zu *ours_%zu = (type_%zu *)%s;\n", i, i, i,
                            function->symbol);
        }
    }
}

/* `by` is added to all values. */
static void write_numbers(struct acre_buf *out, int by) {
    for (size_t i = 0; i < ACRE_COUNT(numbers); i++) {
        acre_buf_printf(out, "_Static_assert((int)(%s) == %d, \"value %zu.\");\n",
                        numbers[i].theirs, numbers[i].value + by, i);
    }
}

static void write_layouts(struct acre_buf *out) {
    acre_buf_printf(out,
                    "#if HIP_VERSION_MAJOR >= 6\n"
                    "enum { arch_at = %d, ticket_flags = 1 };\n#else\n"
                    "enum { arch_at = %d, ticket_flags = 0 };\n#endif\n"
                    "_Static_assert(offsetof(hipDeviceProp_t, gcnArchName) == arch_at, \"arch\");\n"
                    "_Static_assert(sizeof(((hipDeviceProp_t *)0)->gcnArchName) == %d, \"arch\");\n"
                    "_Static_assert(sizeof(hipDeviceProp_t) <= %d, \"properties\");\n"
                    "_Static_assert(hipIpcMemLazyEnablePeerAccess == ticket_flags, \"tickets\");\n",
                    HIP_ARCH_AT_6, HIP_ARCH_AT_5, HIP_ARCH_BYTES, HIP_PROPERTIES_BYTES);
    acre_buf_printf(out,
                    "_Static_assert(sizeof(hipIpcMemHandle_t) == %zu, \"ticket\");\n"
                    "_Static_assert(sizeof(hipUUID) == %zu, \"uuid\");\n"
                    "_Static_assert(sizeof(hipStream_t) == %zu, \"handles\");\n"
                    "_Static_assert(sizeof(hipDeviceptr_t) == %zu, \"addresses\");\n",
                    sizeof(struct gpu_ticket), sizeof(struct hip_uuid), sizeof(gpu_handle),
                    sizeof(uintptr_t));
}

/* --- the compiler ---------------------------------------------------------------------------- */

/* Its exit status; what it said goes to `log`. */
static int compile(const struct acre_buf *text, struct acre_buf *log) {
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "abi.c", text->data);
    const char *source = tree_path(&tree, "abi.c"), *said = tree_path(&tree, "log");
    pid_t child = fork();
    if (child == 0) {
        int to = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(to, STDOUT_FILENO);
        dup2(to, STDERR_FILENO);
        execlp("gcc", "gcc", "-std=gnu17", "-fsyntax-only", "-Werror=cast-function-type",
               "-D__HIP_PLATFORM_AMD__", source, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    acre_buf_init(log, (size_t)1 << 20);
    REQUIRE(acre_file_read(said, (size_t)1 << 20, log, NULL) == 0);
    tree_erase(&tree);
    if (WEXITSTATUS(status) == 127) {
        acre_test_skip("no gcc here");
    }
    return WEXITSTATUS(status);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void our_tables_are_those_of_the_headers(void) {
    struct acre_buf text, log;
    begin(&text);
    write_functions(&text, "");
    write_numbers(&text, 0);
    write_layouts(&text);
    int status = compile(&text, &log);
    acre_test_context("%s", log.data);
    CHECK_EQ(status, 0);
    end(&text, &log);
}

/* The check above would tell: each function with one argument too many is refused. */
static void one_argument_more_is_refused(void) {
    struct acre_buf text, log;
    begin(&text);
    write_functions(&text, ", int");
    CHECK(compile(&text, &log) != 0);
    for (size_t i = 0; i < ACRE_COUNT(functions); i++) {
        char cast[128];
        snprintf(cast, sizeof(cast), "(type_%zu *)%s", i, functions[i].symbol);
        acre_test_context("%s", functions[i].symbol);
        CHECK(!is_there(&functions[i]) || strstr(log.data, cast) != NULL);
    }
    end(&text, &log);
}

/* A number where an address is expected travels in the same register, but is not the same width as
 * an int: this is what a wrong row would most likely be. */
static void an_int_for_an_address_is_refused(void) {
    struct acre_buf text, log;
    begin(&text);
    acre_buf_puts(&text, "#undef gpu_handle\n#define gpu_handle int\n");
    write_functions(&text, "");
    CHECK(compile(&text, &log) != 0);
    CHECK_HAS(log.data, "hipModuleLaunchKernel");
    CHECK_HAS(log.data, "hipStreamWriteValue64");
    CHECK_HAS(log.data, "hiprtcCompileProgram");
    end(&text, &log);
}

static void every_other_number_is_refused(void) {
    struct acre_buf text, log;
    begin(&text);
    write_numbers(&text, 1);
    CHECK(compile(&text, &log) != 0);
    for (size_t i = 0; i < ACRE_COUNT(numbers); i++) {
        char value[32];
        snprintf(value, sizeof(value), "value %zu.", i);
        acre_test_context("%s", numbers[i].theirs);
        CHECK(strstr(log.data, value) != NULL);
    }
    end(&text, &log);
}

static const struct acre_test tests[] = {
    {"our_tables_are_those_of_the_headers", our_tables_are_those_of_the_headers, 0},
    {"one_argument_more_is_refused", one_argument_more_is_refused, 0},
    {"an_int_for_an_address_is_refused", an_int_for_an_address_is_refused, 0},
    {"every_other_number_is_refused", every_other_number_is_refused, 0},
};
ACRE_TEST_MAIN(tests)
