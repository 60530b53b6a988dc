"""scripts/setup against a made-up dpkg-query, apt-get, id and sudo in a copy of the tree."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(__file__).parents[2] / "scripts" / "setup"

# Installed packages are the lines of ./installed, installable ones those of ./available; lists
# are fresh once ./fresh exists. Every call of apt-get is noted in ./calls.
DPKG = """#!/bin/sh
while read -r name; do echo "$name installed"; done <"$FAKE/installed"
"""
APT = """#!/bin/sh
echo "$*" >>"$FAKE/calls"
case "$*" in
*' update') touch "$FAKE/fresh"; exit 0 ;;
esac
[ -f "$FAKE/fresh" ] || { echo "E: lists are empty"; exit 100; }
for name in $(echo "$*" | sed 's/.*--no-install-recommends//'); do
    grep -qx "$name" "$FAKE/available" || { echo "E: no package $name"; exit 100; }
done
for name in $(echo "$*" | sed 's/.*--no-install-recommends//'); do
    echo "$name" >>"$FAKE/installed"
done
"""
ALL = ("gcc libc6-dev meson ninja-build pkg-config libuv1-dev libjansson-dev libsqlite3-dev "
       "libssl-dev libseccomp-dev libcurl4-openssl-dev libyaml-dev").split()
OPENCL = ["ocl-icd-libopencl1", "pocl-opencl-icd"]


class Setup(unittest.TestCase):
    def setUp(self):
        self.fake = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.fake)
        (self.fake / "bin").mkdir()
        (self.fake / "scripts").mkdir()
        shutil.copy(SETUP, self.fake / "scripts")
        self.tool("dpkg-query", DPKG)
        self.tool("apt-get", APT)
        self.tool("id", "#!/bin/sh\necho ${FAKE_UID:-0}\n")
        self.tool("sudo", "#!/bin/sh\nexit 1\n")
        self.have([], [])

    def tool(self, name, text):
        path = self.fake / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def have(self, installed, available):
        for name, lines in (("installed", installed), ("available", available)):
            (self.fake / name).write_text("".join(line + "\n" for line in lines))

    def run_setup(self, *groups, uid="0"):
        path = f"{self.fake}/bin:/usr/bin:/bin"
        result = subprocess.run([self.fake / "scripts" / "setup", *groups], text=True,
                                env={"PATH": path, "FAKE": str(self.fake), "FAKE_UID": uid},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        calls = self.fake / "calls"
        return result.returncode, result.stdout, calls.read_text() if calls.exists() else ""

    def test_nothing_missing_is_silent(self):
        self.have(ALL, [])
        self.assertEqual(self.run_setup("build"), (0, "", ""))

    def test_only_what_is_missing_is_installed(self):
        self.have(ALL[2:], ALL)
        (self.fake / "fresh").touch()
        status, said, calls = self.run_setup("build")
        self.assertEqual(status, 0, said)
        self.assertIn("installing gcc libc6-dev ...", said)
        self.assertEqual(calls.count("\n"), 1)
        self.assertTrue(calls.endswith("--no-install-recommends gcc libc6-dev\n"), calls)

    def test_lists_are_refreshed_only_after_a_failure(self):
        self.have([], ALL)
        status, said, calls = self.run_setup("build")
        self.assertEqual(status, 0, said)
        self.assertIn("refreshing the package lists", said)
        self.assertEqual(calls.count("\n"), 3)

    def test_a_required_package_that_cannot_be_installed_is_fatal(self):
        self.have([], ALL[1:])
        status, said, _ = self.run_setup("build")
        self.assertEqual(status, 1)
        self.assertIn("E: no package gcc", said)
        self.assertIn("could not install gcc", said)

    def test_an_optional_one_is_reported_and_tried_once(self):
        self.have(["python3"], OPENCL[:1])
        status, said, _ = self.run_setup("test")
        self.assertEqual(status, 0, said)
        self.assertIn("going on without pocl-opencl-icd: E: no package pocl-opencl-icd", said)
        (self.fake / "calls").unlink()
        status, said, calls = self.run_setup("test")
        self.assertEqual((status, calls), (0, ""))
        self.assertIn("going on without pocl-opencl-icd (it could not", said)

    def test_without_root_the_command_is_told(self):
        status, said, calls = self.run_setup("build", uid="1000")
        self.assertEqual((status, calls), (1, ""))
        self.assertIn("apt-get install --no-install-recommends " + " ".join(ALL), said)

    def test_without_root_an_optional_package_is_no_obstacle(self):
        self.have(["python3"], [])
        status, said, calls = self.run_setup("test", uid="1000")
        self.assertEqual((status, calls), (0, ""))
        self.assertIn("going on without ocl-icd-libopencl1 pocl-opencl-icd", said)

    def test_sudo_without_password_is_used(self):
        self.tool("sudo", '#!/bin/sh\nshift\nexec "$@"\n')
        self.have(ALL[1:], ALL)
        (self.fake / "fresh").touch()
        status, said, _ = self.run_setup("build", uid="1000")
        self.assertEqual(status, 0, said)
        self.assertIn("gcc", (self.fake / "installed").read_text().split())

    def test_unknown_group_is_refused(self):
        status, said, _ = self.run_setup("builds")
        self.assertEqual(status, 2)
        self.assertIn("no group 'builds' (there are: build test", said)

    def test_a_machine_without_dpkg_is_told_what_is_needed(self):
        os.remove(self.fake / "bin" / "dpkg-query")
        for name in ("sh", "dirname", "echo"):
            os.symlink(shutil.which(name), self.fake / "bin" / name)
        result = subprocess.run([self.fake / "scripts" / "setup", "tidy"], text=True,
                                env={"PATH": f"{self.fake}/bin"}, capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("equivalents of Debian's git python3 clang-format", result.stdout)
