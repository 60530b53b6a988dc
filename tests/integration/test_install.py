"""What `make install` leaves for programs that link libacre: headers, library, acre.pc, runner.

Everything is installed below a folder (DESTDIR), and a program outside the tree is compiled and run
with nothing but that.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program
import tutorial

BUILD = os.path.dirname(program.ACRE)
PREFIX, LIBDIR, BINDIR = (os.environ["ACRE_" + name] for name in ("PREFIX", "LIBDIR", "BINDIR"))
API = re.compile(r"^ACRE_API\s[^;(]*?\b(acre_\w+)\(", re.M)


def output_of(*command, **changes):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=program.TIMEOUT_S,
                            env=program.environment(**changes))
    if result.returncode != 0:
        raise AssertionError(f"{command}: {result.stdout}")
    return result.stdout


def needs(name):
    if shutil.which(name) is None:
        raise unittest.SkipTest(f"{name} is not installed")


class Installed(program.TestCase):
    @classmethod
    def setUpClass(cls):
        needs("meson")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.scratch.name, "root")
        output_of("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", cls.root)
        cls.prefix = cls.root + PREFIX
        cls.libdir = os.path.join(cls.prefix, LIBDIR)
        cls.library = os.path.join(cls.libdir, "libacre.so.0")
        cls.runner = os.path.join(cls.prefix, BINDIR, "acre-runner")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def headers(self):
        folder = os.path.join(self.prefix, "include", "acre")
        self.assertEqual(sorted(os.listdir(folder)),
                         sorted(os.listdir(os.path.join(program.SOURCE, "include", "acre"))))
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]

    def compiled(self, text):
        needs("pkg-config")
        flags = output_of("pkg-config", "--cflags", "--libs", "acre",
                          PKG_CONFIG_SYSROOT_DIR=self.root,
                          PKG_CONFIG_LIBDIR=os.path.join(self.libdir, "pkgconfig")).split()
        self.assertIn("-lacre", flags)
        binary, result = tutorial.compile_c(tempfile.mkdtemp(dir=self.scratch.name), text, *flags)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        return binary

    def run_installed(self, binary, runner):
        return tutorial.run_on(binary, "cpu", self.scratch.name, ACRE_RUNNER=runner,
                               LD_LIBRARY_PATH=self.libdir)

    def test_a_program_outside_the_tree_compiles_and_runs(self):
        found = tutorial.read()
        for line, text, output in (found[0], found[-1]):  # alone, and with a runner
            with self.subTest(at=f"docs/compute.md:{line}"):
                result = self.run_installed(self.compiled(text), self.runner)
                self.assertEqual((result.returncode, result.stdout), (0, output), result.stderr)

    def test_the_library_shows_what_the_headers_declare(self):
        declared = set()
        for header in self.headers():
            with open(header, encoding="utf-8") as file:
                declared |= set(API.findall(file.read()))
        lines = output_of("nm", "-D", "--defined-only", self.library).splitlines()
        shown = [line.split()[-1] for line in lines if line.split()[1] != "A"]  # A: the version
        self.assertEqual(sorted(shown), sorted(name + "@@ACRE_0" for name in declared))
        with open(os.path.join(program.SOURCE, "src", "compute", "libacre.map"),
                  encoding="utf-8") as file:
            self.assertEqual(re.findall(r"^ +(acre_\w+);", file.read(), re.M), sorted(declared))

    def test_the_library_needs_no_vendor(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*?)\.so", output_of("readelf", "-d", self.library))
        self.assertLessEqual(set(needed), {"libc", "libm", "libcrypto", "ld-linux-x86-64"})

    def test_the_runner_is_where_the_library_looks(self):
        self.assertTrue(os.access(self.runner, os.X_OK), self.runner)
        _, text, output = tutorial.read()[-1]
        binary = self.compiled(text)
        result = self.run_installed(binary, None)
        self.assertEqual((result.returncode, result.stdout), (0, output), result.stderr)

    def test_a_runner_that_is_missing_is_reported(self):
        place = os.path.join(PREFIX, BINDIR, "acre-runner")
        if os.path.exists(place):
            raise unittest.SkipTest(f"there is a {place}: which one was taken would not be seen")
        os.rename(self.runner, self.runner + "-away")
        self.addCleanup(os.rename, self.runner + "-away", self.runner)
        result = self.run_installed(self.compiled(tutorial.read()[-1][1]), None)
        self.assert_ended(result, 1, f"or at {place};")

    def check_headers(self, compiler, suffix, body, *flags):
        needs(compiler)
        for header in self.headers():
            source = os.path.join(self.scratch.name, "header" + suffix)
            with open(source, "w", encoding="utf-8") as file:
                file.write("#define X mine\n")
                file.write(f"#include <acre/{os.path.basename(header)}>\n")
                file.write("int X;\nint *pointer_to_mine = &mine;\n")
                file.write(body if header.endswith("kernel.h") else "")
            with self.subTest(header=os.path.basename(header)):
                output_of(compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags,
                          "-I" + os.path.join(self.prefix, "include"), source)

    # The values of arguments are macros: they must be good in both languages.
    ARGUMENTS = ("int call(struct acre_stream *, struct acre_kernel *, struct acre_buffer);\n"
                 "int call(struct acre_stream *s, struct acre_kernel *k, struct acre_buffer b) {\n"
                 "    struct acre_arg args[] = {ACRE_BUFFER(b), ACRE_I32(-1), ACRE_U64(1),\n"
                 "                              ACRE_F32(1), ACRE_F64(1), ACRE_BYTES(&b, 8),\n"
                 "                              ACRE_LOCAL(64)};\n"
                 "    return acre_launch(s, k, acre_grid_for(1), args, 7, 0);\n"
                 "}\n")

    # In C++ they are functions: each value must be where C has it.
    VALUES = ("#include <acre/compute.h>\n#include <cstdio>\n#include <cstring>\n"
              "static bool is(const acre_arg &arg, uint32_t kind, uint32_t bytes,\n"
              "               const void *at) {\n"
              "    return arg.kind == kind && arg.bytes == bytes &&\n"
              "           std::memcmp(&arg.u64, at, bytes != 0 ? bytes : 16) == 0;\n}\n"
              "int main() {\n"
              "    int32_t i = -5; uint32_t u = 4000000000u; int64_t l = -7; uint64_t ul = ~0ull;\n"
              "    float f = 1.5f; double d = -2.25; const acre_buffer b = {77};\n"
              "    const uint64_t at[2] = {77, 12}, zero = 0;\n"
              "    bool ok = is(ACRE_I32(i), ACRE_ARG_INTEGER, 4, &i) &&\n"
              "        is(ACRE_U32(u), ACRE_ARG_INTEGER, 4, &u) &&\n"
              "        is(ACRE_I64(l), ACRE_ARG_INTEGER, 8, &l) &&\n"
              "        is(ACRE_U64(ul), ACRE_ARG_INTEGER, 8, &ul) &&\n"
              "        is(ACRE_F32(f), ACRE_ARG_FLOAT, 4, &f) &&\n"
              "        is(ACRE_F64(d), ACRE_ARG_FLOAT, 8, &d) &&\n"
              "        is(ACRE_BUFFER_AT(b, 12), ACRE_ARG_BUFFER, 0, at) &&\n"
              "        is(ACRE_LOCAL(8), ACRE_ARG_LOCAL, 8, &zero) &&\n"
              "        ACRE_BYTES(at, 16).pointer == at && ACRE_BYTES(at, 16).bytes == 16;\n"
              "    std::puts(ok ? acre_version() : \"wrong\");\n}\n")

    def test_values_are_the_same_in_cpp(self):
        needs("g++")
        source, binary = (os.path.join(self.scratch.name, "values" + end) for end in (".cc", ""))
        with open(source, "w", encoding="utf-8") as file:
            file.write(self.VALUES)
        output_of("g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                  "-I" + os.path.join(self.prefix, "include"), source, "-o", binary,
                  "-L" + self.libdir, "-lacre")
        self.assertRegex(output_of(binary, LD_LIBRARY_PATH=self.libdir), r"^\d+\.\d+\.\d+\n$")

    def test_each_header_stands_alone_in_c(self):
        self.check_headers("cc", ".c", self.ARGUMENTS, "-std=c11", "-Wpedantic")

    def test_each_header_stands_alone_in_cpp(self):
        self.check_headers("g++", ".cc", self.ARGUMENTS, "-std=c++11", "-Wpedantic")
