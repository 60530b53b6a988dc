"""What the documents and --help show is run, so that it stays true; links lead to files.

In the documents: every fenced block ```sh whose first line is `# tested`, as one script. In --help:
every line under Example(s). Both run in a folder that has examples/ and build/acre, with acre also
on the path, a cache of its own, and a daemon with simulated devices to ask; a watch ends after one
picture, a daemon after two seconds, and what a pipe does with the output is left out.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon
import program

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
BLOCK = re.compile(r"^```sh\n# tested\n(.*?)^```$", re.M | re.S)
EXAMPLES = re.compile(r"^Examples?:\n((?:  .*\n)+)", re.M)


def documents():
    for folder, folders, names in os.walk(program.SOURCE):
        folders[:] = [name for name in folders if name not in ("build", ".git")]
        yield from (os.path.join(folder, name) for name in names if name.endswith(".md"))


def examples_of(text):
    """The command lines under Example(s), continued ones joined."""
    found = EXAMPLES.search(text)
    lines = found[1].replace("\\\n", " ").splitlines() if found else []
    return [line.strip() for line in lines]


def runnable(line):
    line = line.split(" | ")[0]
    if line.startswith("acre serve"):
        return f"timeout --preserve-status --signal TERM 2 {line}"
    return line + " --count 1" if " --watch" in line and " --count" not in line else line


def run_script(script, server="/nonexistent"):
    # Not in /tmp: a job has one of its own.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(program.ACRE)) as folder:
        os.symlink(os.path.join(program.SOURCE, "examples"), os.path.join(folder, "examples"))
        os.mkdir(os.path.join(folder, "build"))
        os.symlink(program.ACRE, os.path.join(folder, "build", "acre"))
        path = os.path.join(folder, "build") + os.pathsep + os.environ["PATH"]
        return subprocess.run(["sh", "-eu", "-c", script], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=program.TIMEOUT_S,
                              env=program.environment(PATH=path, ACRE_SERVER=server,
                                                      XDG_CACHE_HOME=folder))


class Documents(program.TestCase):
    def test_every_tested_block_runs(self):
        count = 0
        for document in sorted(documents()):
            with open(document, encoding="utf-8") as file:
                text = file.read()
            for block in BLOCK.finditer(text):
                line = text.count("\n", 0, block.start()) + 1
                count += 1
                with self.subTest(at=f"{os.path.relpath(document, program.SOURCE)}:{line}"):
                    with daemon.Daemon() as fresh:
                        result = run_script(block[1], fresh.socket)
                    self.assertEqual(result.returncode, 0, result.stdout)
        self.assertGreater(count, 0, "no block is marked; see CONTRIBUTING.md")

    def test_every_link_and_picture_is_there(self):
        count = 0
        for document in sorted(documents()):
            with open(document, encoding="utf-8") as file:
                links = LINK.findall(file.read())
            for link in links:
                if "://" not in link:
                    count += 1
                    with self.subTest(at=os.path.relpath(document, program.SOURCE), link=link):
                        path = os.path.join(os.path.dirname(document), link)
                        self.assertTrue(os.path.exists(path), "no such file")
        self.assertGreater(count, 0)

    def test_the_examples_of_help_run(self):
        listed = re.findall(r"^  (\w+(?: \w+)?)  +\S", program.run("--help").stdout, re.M)
        lines = [line for name in listed
                 for line in examples_of(program.run(*name.split(), "--help").stdout)]
        self.assertGreater(len(lines), 2)
        with daemon.Daemon() as fresh:
            # What the examples name: job 1 has ended, 2 runs, 3 waits, and 4 is an array.
            fresh.submit("--wait", "--", "echo", "one")
            fresh.submit("--name", "two", "--", "sleep", "600")
            fresh.submit("--begin", "1h", "--", "echo", "three")
            fresh.run("submit", "--begin", "1h", "--array", "0-1", "--", "true")
            for line in lines:
                with self.subTest(line=line):
                    self.assertTrue(line.startswith("acre "), line)
                    result = run_script(runnable(line), fresh.socket)
                    good = (0, 9) if line.startswith("acre doctor") else (0,)  # 9: a broken GPU
                    self.assertIn(result.returncode, good, result.stdout)
                    quiet = ">" in line or " stderr " in line
                    self.assertTrue(quiet or result.stdout, line)


class Reading(program.TestCase):
    """This file's own reading: marked blocks only, and a failure anywhere in one is seen."""

    def test_blocks_are_found_by_their_mark(self):
        text = ("```sh\n# tested\na\n\nb\n```\ntext\n```sh\nc\n```\n```\n# tested\nd\n```\n"
                "    ```sh\n    # tested\n    e\n    ```\n```sh\n# tested\nf\n```\n")
        self.assertEqual([block[1] for block in BLOCK.finditer(text)], ["a\n\nb\n", "f\n"])

    def test_examples_are_joined_and_end(self):
        text = "Usage: x\n\nExamples:\n  acre a \\\n      --b\n  acre gpus --watch\n\nMore:\n  no\n"
        self.assertEqual(examples_of(text), ["acre a        --b", "acre gpus --watch"])
        self.assertEqual(runnable("acre gpus --watch | cat"), "acre gpus --watch --count 1")
        self.assertEqual(examples_of("Usage: x\n"), [])

    def test_a_failing_line_fails_the_block(self):
        self.assertEqual(run_script("acre version\nbuild/acre version").returncode, 0)
        self.assertEqual(run_script("acre gpsu\nacre version").returncode, 2)
        self.assertNotEqual(run_script("echo $unset_variable").returncode, 0)
