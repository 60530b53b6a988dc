"""The isolation tests once more, on a machine whose cgroups are version 2 only.

Such a machine is booted for it: Debian's user-mode-linux (about 3 s) where there is one and it
works, or, when ACRE_TEST_KERNEL names a kernel image, that one in qemu without acceleration. Its
file system is an initrd with busybox, the test program, its libraries and acre-shim."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TEST = os.environ.get("ACRE_ISOLATION_TEST", "")
SHIM = os.environ.get("ACRE_SHIM", "")
KERNEL = os.environ.get("ACRE_TEST_KERNEL", "")
BUSYBOX = "/bin/busybox"
TIMEOUT_S = 240

INIT = """#!/bin/sh
export PATH=/bin ACRE_TEST_LAYOUT=v2
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
for place in /tmp /run /var/tmp /dev/shm; do mount -t tmpfs none $place; done
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
{test}
echo "ended with $?"
poweroff -f
"""

DIRECTORIES = ["bin", "dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr/bin",
               "var/tmp"]


def put(root, path, text):
    with open(os.path.join(root, path), "w", encoding="utf-8") as file:
        file.write(text)


def copy(root, path):
    """To the same place below `root`."""
    place = root + path
    os.makedirs(os.path.dirname(place), exist_ok=True)
    shutil.copy(os.path.realpath(path), place)


def libraries(program):
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def make_initrd(directory):
    root = os.path.join(directory, "root")
    for name in DIRECTORIES:
        os.makedirs(os.path.join(root, name))
    shutil.copy(BUSYBOX, os.path.join(root, "bin/busybox"))
    applets = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    for name in applets.stdout.split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(root, "bin", name))
    os.symlink("/bin/busybox", os.path.join(root, "usr/bin/id"))
    for path in [TEST, SHIM, *libraries(TEST)]:
        copy(root, path)
    put(root, "etc/passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    put(root, "etc/group", "root:x:0:\nnogroup:x:65534:\n")
    put(root, "init", INIT.format(test=TEST))
    os.chmod(os.path.join(root, "init"), 0o755)
    names = [os.path.relpath(os.path.join(at, name), root)
             for at, below, files in os.walk(root) for name in below + files]
    initrd = os.path.join(directory, "initrd")
    with open(initrd, "wb") as file:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, stdout=file, check=True,
                       input="\n".join(names).encode())
    return initrd


def boot(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
                          check=False).stdout.decode(errors="replace").replace("\r", "")


def boot_uml(initrd):
    return boot(["linux.uml", "mem=256M", "initrd=" + initrd, "con=null", "con0=fd:0,fd:1",
                 "quiet", "root=/dev/ram0"])


def boot_qemu(initrd):
    return boot(["qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-m", "512", "-nodefaults",
                 "-no-user-config", "-nographic", "-vga", "none", "-serial", "stdio",
                 "-no-reboot", "-kernel", KERNEL, "-initrd", initrd, "-append",
                 "console=ttyS0 quiet panic=-1 rdinit=/init reboot=t"])


class CgroupV2(unittest.TestCase):  # SEC-2
    def test_isolation_holds_with_cgroup_v2_alone(self):
        missing = [name for name in ["cpio", "linux.uml" if not KERNEL else "qemu-system-x86_64"]
                   if shutil.which(name) is None]
        if not os.path.exists(BUSYBOX):
            missing.append(BUSYBOX)
        if missing:
            self.skipTest("not installed: " + ", ".join(missing))
        if "statically linked" not in subprocess.run(
                ["ldd", BUSYBOX], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False).stdout.replace("not a dynamic executable", "statically linked"):
            self.skipTest(BUSYBOX + " is not the static one")
        with tempfile.TemporaryDirectory() as directory:
            output = (boot_qemu if KERNEL else boot_uml)(make_initrd(directory))
        if "ptrace set fp regs failed" in output:
            self.skipTest("this user-mode-linux does not know this CPU's registers (AMX); "
                          "ACRE_TEST_KERNEL=vmlinuz runs it in qemu")
        passed = re.findall(r"^ok \d+ - (?!.*# SKIP)", output, re.M)
        self.assertNotIn("not ok", output)
        self.assertIn("ended with 0", output)
        self.assertGreater(len(passed), 8, output)


if __name__ == "__main__":
    unittest.main()
