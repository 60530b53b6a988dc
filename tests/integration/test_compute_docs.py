"""The tutorial, docs/compute.md, does what it says.

Every piece of C on it is compiled against libacre and run on the CPU, and on OpenCL and CUDA where
they are, and prints what the page says.
"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program
import tutorial

LIBRARY = os.environ["ACRE_LIBRARY"]


def compile_here(folder, text):
    return tutorial.compile_c(folder, text, "-I" + os.path.join(program.SOURCE, "include"), LIBRARY,
                              "-Wl,-rpath," + os.path.dirname(LIBRARY))


class Tutorial(program.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = tutorial.read()
        cls.folder = tempfile.TemporaryDirectory()
        cls.binaries = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compiled(self, line, text):
        if line not in self.binaries:
            binary, result = compile_here(tempfile.mkdtemp(dir=self.folder.name), text)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
            self.binaries[line] = binary
        return self.binaries[line]

    def run_all(self, backend):
        first = tutorial.run_on(self.compiled(*self.programs[0][:2]), backend, self.folder.name)
        if backend != "cpu" and first.returncode != 0 and "no device" in first.stderr:
            raise unittest.SkipTest(first.stderr.strip())
        for line, text, output in self.programs:
            with self.subTest(at=f"docs/compute.md:{line}"):
                result = tutorial.run_on(self.compiled(line, text), backend, self.folder.name)
                self.assertEqual((result.returncode, result.stdout), (0, output), result.stderr)

    def test_every_piece_has_its_output(self):
        self.assertGreater(len(self.programs), 5)
        for line, _, output in self.programs:
            with self.subTest(at=f"docs/compute.md:{line}"):
                self.assertTrue(output)

    def test_pieces_run_on_the_cpu(self):
        self.run_all("cpu")

    def test_pieces_run_on_opencl(self):
        self.run_all("opencl")

    def test_pieces_run_on_cuda(self):
        self.run_all("cuda")


class Reading(program.TestCase):
    """How the page is read: no piece is passed over, and a wrong one is seen."""

    TEXT = ("```c\nint main(void) {\n    /* begin */\n    one();\n    /* end */\n}\n```\n\n"
            "```\n1\n```\n```sh\nx\n```\n```c\n    two();\n```\ntext\n```\n2\n```\n"
            "```c\n    three();\n```\n```c\n    four();\n```\n")

    def test_pieces_have_what_follows_them(self):
        self.assertEqual([piece[2] for piece in tutorial.pieces(self.TEXT)],
                         ["1\n", "2\n", None, None])

    def test_pieces_are_put_into_the_first(self):
        self.assertEqual(tutorial.programs(self.TEXT)[1][1], "int main(void) {\n    two();\n}\n")

    def test_a_piece_that_does_not_compile_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            _, result = compile_here(folder, "int main(void) { int unused; return 0; }")
        self.assertNotEqual(result.returncode, 0)
