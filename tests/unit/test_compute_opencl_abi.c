/* OpenCL back end: its own declarations against the installed headers of OpenCL, row by row. The
 * compiler compares; where it or the headers are missing the test is skipped. */
#include "support/test.h"
#include "support/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char comparison[] =
    "#define CL_TARGET_OPENCL_VERSION 300\n"
    "#define CL_USE_DEPRECATED_OPENCL_1_2_APIS\n"
    "#include <CL/cl.h>\n"
    "#include <CL/cl_ext.h>\n"
    "#include \"compute/opencl/abi.h\"\n"
    "#include \"device/opencl_abi.h\"\n"
    "#define SAME(name) _Static_assert(OPENCL_##name == CL_##name, #name);\n"
    "#define X(name, value) SAME(name)\n"
    "OPENCL_QUERY_CONSTANTS(X)\n"
    "OPENCL_CONSTANTS(X)\n"
    "#undef X\n"
    "SAME(PLATFORM_NOT_FOUND_KHR) SAME(DEVICE_TYPE_ALL) SAME(DEVICE_PCI_BUS_INFO_KHR)\n"
    "#define X(name, value, ours) SAME(name)\n"
    "OPENCL_ERRORS(X)\n"
    "#undef X\n"
    "#define X(required, result, field, symbol, arguments) \\\n"
    "    _Static_assert(__builtin_types_compatible_p(result (*) arguments, \\\n"
    "                   __typeof__(&symbol)), #symbol);\n"
    "OPENCL_QUERY_SYMBOLS(X)\n"
    "OPENCL_SYMBOLS(X)\n"
    "_Static_assert(sizeof(struct opencl_sub_range) == sizeof(cl_buffer_region), \"size\");\n"
    "_Static_assert(sizeof(struct opencl_pci) == sizeof(cl_device_pci_bus_info_khr), \"size\");\n"
    "#ifdef WRONG_VALUE\n"
    "enum { OPENCL_MAP_READ = 2 };\n"
    "SAME(MAP_READ)\n"
    "#endif\n"
    "#ifdef WRONG_TYPE\n"
    "X(true, int32_t, finish, clFinish, (opencl_mem))\n"
    "#endif\n";

/* The compiler's exit status for a text with one more definition. What it says is shown only where
 * it should say nothing. */
static int compile(const char *file, const char *definition, bool is_shown) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (!is_shown && nowhere >= 0) {
            dup2(nowhere, STDERR_FILENO);
        }
        execlp("cc", "cc", "-std=gnu17", "-fsyntax-only", "-Wall", "-Werror", "-I",
               ACRE_SOURCE "/src", "-I", ACRE_SOURCE "/include", definition, file, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void declarations_are_those_of_the_headers(void) {
    static const struct {
        const char *definition;
        bool is_accepted;
    } cases[] = {{"-DRIGHT", true}, {"-DWRONG_VALUE", false}, {"-DWRONG_TYPE", false}};
    if (access("/usr/include/CL/cl_ext.h", R_OK) != 0) {
        acre_test_skip("no OpenCL headers here (Debian package opencl-headers)");
    }
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "compare.c", comparison);
    const char *file = tree_path(&tree, "compare.c");
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].definition);
        int status = compile(file, cases[i].definition, cases[i].is_accepted);
        if (status == 127) {
            tree_erase(&tree);
            acre_test_skip("no compiler 'cc' here");
        }
        CHECK_EQ(status == 0, cases[i].is_accepted);
    }
    tree_erase(&tree);
}

static const struct acre_test tests[] = {
    {"declarations_are_those_of_the_headers", declarations_are_those_of_the_headers, 0},
};
ACRE_TEST_MAIN(tests)
