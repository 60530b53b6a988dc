"""scripts/arm with made-up tools: what is missing is said, what is wrong is not passed over."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ARM = pathlib.Path(__file__).parents[2] / "scripts" / "arm"

# apt-get fails while ./offline exists; a download leaves one package per name.
APT = """#!/bin/sh
[ ! -f "$FAKE/offline" ] || { echo "E: no network"; exit 100; }
while [ "$1" != update ] && [ "$1" != download ]; do shift; done
[ "$1" = update ] && exit 0
shift
for name; do echo "$name" >"$name.deb"; done
"""
DPKG_DEB = """#!/bin/sh
mkdir -p "$3/usr" && cat "$2" >>"$3/usr/names"
"""
MESON = """#!/bin/sh
mkdir -p "$4" && : >"$4/build.ninja"
"""
TEST = """#!/bin/sh
echo "tested $* with $(command -v cc)"
"""


class Arm(unittest.TestCase):
    def setUp(self):
        self.fake = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.fake)
        self.bin = self.fake / "bin"
        self.bin.mkdir()
        (self.fake / "scripts").mkdir()
        text = ARM.read_text(encoding="utf-8")
        self.assertIn("/usr/aarch64-linux-gnu/lib", text)
        self.put("scripts/arm", text.replace("/usr/aarch64-linux-gnu/lib", f"{self.fake}/lib"))
        self.put("scripts/test", TEST)
        self.put("lib/libc.so.6", "")
        for name, body in (("apt-get", APT), ("dpkg-deb", DPKG_DEB), ("meson", MESON),
                           ("aarch64-linux-gnu-gcc", '#!/bin/sh\necho "$@"\n'),
                           ("qemu-aarch64", "#!/bin/sh\n"), ("ninja", "#!/bin/sh\n")):
            self.put(f"bin/{name}", body)
        for name in ("sh dirname cat mkdir rm chmod grep tail id").split():
            os.symlink(shutil.which(name), self.bin / name)

    def put(self, path, text):
        file = self.fake / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)

    def run_arm(self):
        result = subprocess.run([self.fake / "scripts" / "arm", "build/arm"], text=True,
                                env={"PATH": str(self.bin), "FAKE": str(self.fake)},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return result.returncode, result.stdout

    def test_what_is_missing_is_skipped_with_its_name(self):
        for name in ("aarch64-linux-gnu-gcc", "qemu-aarch64", "apt-get", "dpkg-deb"):
            with self.subTest(name=name):
                os.rename(self.bin / name, self.fake / name)
                status, said = self.run_arm()
                os.rename(self.fake / name, self.bin / name)
                self.assertEqual(status, 0, said)
                self.assertIn(f"skipped: make arm: no {name} ", said)
                self.assertNotIn("tested", said)
        os.remove(self.fake / "lib" / "libc.so.6")
        self.assertIn("skipped: make arm: no C library for arm64", self.run_arm()[1])

    def test_without_a_network_it_is_skipped_until_there_is_one(self):
        (self.fake / "offline").touch()
        status, said = self.run_arm()
        self.assertEqual(status, 0, said)
        self.assertIn("skipped: make arm: no arm64 libraries: E: no network", said)
        os.remove(self.fake / "offline")
        self.assertIn("tested --emulated", self.run_arm()[1])
        (self.fake / "offline").touch()  # they are kept
        self.assertIn("tested --emulated", self.run_arm()[1])

    def test_packages_are_unpacked_and_the_compiler_is_theirs(self):
        status, said = self.run_arm()
        sysroot = self.fake / "build" / "sysroot" / "arm64"
        self.assertEqual(status, 0, said)
        self.assertIn("libuv1-dev", (sysroot / "usr" / "names").read_text().split())
        self.assertIn(f"with {sysroot}/bin/cc", said)
        compiled = subprocess.run([sysroot / "bin" / "cc", "-O3", "-mcpu=native", "a b.c"],
                                  env={"PATH": str(self.bin)}, capture_output=True, text=True)
        self.assertEqual(compiled.stdout, "-O3 a b.c\n")

    def test_what_does_not_build_fails(self):
        for name in ("meson", "ninja"):
            with self.subTest(name=name):
                self.put(f"bin/{name}", "#!/bin/sh\nexit 1\n")
                status, said = self.run_arm()
                self.assertEqual(status, 1, said)
                self.assertNotIn("tested", said)
                self.put(f"bin/{name}", MESON if name == "meson" else "#!/bin/sh\n")
        self.put("scripts/test", "#!/bin/sh\nexit 3\n")
        self.assertEqual(self.run_arm()[0], 3)
