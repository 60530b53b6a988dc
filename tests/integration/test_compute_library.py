"""Programs that use libacre where PoCL has trouble: no directory for it, and what it prints."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program
import tutorial

LIBRARY = os.environ["ACRE_LIBRARY"]

# Prints why there is no OpenCL, or what a build on it says, in a runner. With "threads" there is
# another thread before the library is used.
SOURCE = r"""
#include <acre/compute.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void *rest(void *nothing) { pause(); return nothing; }
int main(int count, char **words) {
    struct acre_compute_options options = {.backends = "opencl", .cache = ""};
    struct acre_source source = {.text = "kernel void f(global int *a) { a[0] = wrong; }"};
    struct acre_build_report report = {0};
    struct acre_error err = {0};
    struct acre_compute *compute;
    struct acre_context *context;
    struct acre_program *built;
    pthread_t thread;
    if (count > 1 && strcmp(words[1], "threads") == 0) {
        pthread_create(&thread, NULL, rest, NULL);
    }
    if (acre_compute_open(&options, &compute, &err) < 0) {
        return 2;
    }
    if (acre_compute_count(compute) == 0) {
        printf("absent: %s\n", acre_compute_absent(compute, "opencl"));
        acre_compute_close(compute);
        return 0;
    }
    if (acre_context_open(compute, 0, NULL, &context, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 3;
    }
    acre_program_build(context, &source, &built, &report, &err);
    printf("error: %s\n%s", err.text, report.log);
    acre_build_report_finish(&report);
    acre_compute_close(compute);
    return 0;
}
"""


class Pocl(program.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.binary, result = tutorial.compile_c(
            cls.folder.name, SOURCE, "-pthread", "-I" + os.path.join(program.SOURCE, "include"),
            LIBRARY, "-Wl,-rpath," + os.path.dirname(LIBRARY))
        assert result.returncode == 0, result.stdout

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_at(self, home, what="alone"):
        result = tutorial.run_on(self.binary, what, home, POCL_CACHE_DIR=None,
                                 TMPDIR=self.folder.name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def setUp(self):
        self.good = self.run_at(self.folder.name)
        if self.good.stdout.startswith("absent: "):
            raise unittest.SkipTest(self.good.stdout.strip())

    def test_what_the_driver_prints_is_in_the_log(self):
        self.assertIn("error: ", self.good.stdout)
        self.assertIn("use of undeclared identifier 'wrong'", self.good.stdout)
        self.assertEqual(self.good.stderr, "")

    def test_a_home_that_cannot_be_written_costs_no_device(self):
        for home in ("/dev/null/home", "/proc/home"):
            with self.subTest(home=home):
                self.assertEqual(self.run_at(home).stdout, self.good.stdout)

    def test_with_threads_the_reason_is_reported(self):
        for home in ("/dev/null/home", "/proc/home"):
            with self.subTest(home=home):
                said = self.run_at(home, "threads").stdout
                self.assertIn("absent: ", said)
                self.assertIn(f"PoCL needs a writable directory: {home}/.cache/pocl/kcache: ",
                              said)
                self.assertIn("set POCL_CACHE_DIR to one", said)
