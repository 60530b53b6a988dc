/* pocl_leaks.c - what PoCL's compiler never frees, for the leak checker of programs that run it.
 *
 * LLVM's passes and PoCL's own C++ around them: all of it from operator new or from within LLVM.
 * Ours is C and calls neither, and neither do the objects PoCL makes for callers (malloc): leaks
 * of those are still reported. */

const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
    return "leak:operator new\nleak:libLLVM\n";
}

const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}
