"""`acre compute` from outside: kernels on the CPU, and on OpenCL where it is here (PoCL)."""
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

SAXPY = "examples/saxpy.acl"
ADD = "examples/add.acl"
RAMP = "examples/ramp.npy"
CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<u4": "I", "|u1": "B", "<i2": "h", "<i8": "q",
         "<u8": "Q"}


def npy(descr, values, shape=None, version=1):
    """The bytes of a .npy file, as numpy.save would write them."""
    shape = (len(values),) if shape is None else shape
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}\n"
    prefix = struct.pack("<H" if version == 1 else "<I", len(header))
    data = struct.pack(f"<{len(values)}{CODES[descr]}", *values)
    return b"\x93NUMPY" + bytes([version, 0]) + prefix + header.encode() + data


def read_npy(path):
    """descr, shape and values of a file that was written."""
    with open(path, "rb") as file:
        text = file.read()
    assert text[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", text[8:10])[0]
    header = eval(text[10:10 + length], {"__builtins__": {}})  # a dictionary of constants
    data = text[10 + length:]
    code = CODES[header["descr"]]
    return header["descr"], header["shape"], list(
        struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


class ComputeCase(program.TestCase):
    """Each test has a folder, and a cache of its own in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # What PoCL's compiler never frees is not ours (tests/support/pocl_leaks.c).
        leaks = self.put("leaks", "leak:operator new\nleak:libLLVM\n")
        self.environment = {"XDG_CACHE_HOME": os.path.join(self.folder, "cache"),
                            "LSAN_OPTIONS": f"suppressions={leaks}:print_suppressions=0"}

    def compute(self, *words):
        return program.run("compute", *words, **self.environment)

    def answer(self, *words):
        result = self.compute(*words, "--json")
        self.assert_ended(result)
        return json.loads(result.stdout)

    def put(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        return path

    def path(self, name):
        return os.path.join(self.folder, name)

    def devices(self):
        """A device of each back end that is here, but for GPUs."""
        names = [device["device"] for device in self.answer("devices")["devices"]]
        return [name for name in ("cpu:0", "opencl:0") if name in names]


class Devices(ComputeCase):
    def test_the_cpu_is_last_and_what_is_absent_has_a_reason(self):  # GPU-1
        answer = self.answer("devices")
        devices = answer["devices"]
        self.assertEqual(devices[-1]["device"], "cpu:0")
        self.assertEqual([device["number"] for device in devices], list(range(len(devices))))
        present = {device["backend"] for device in devices}
        self.assertEqual(present | set(answer["absent"]), {"cuda", "hip", "opencl", "cpu"})
        self.assertEqual(present & set(answer["absent"]), set())
        for reason in answer["absent"].values():
            self.assertGreater(len(reason), 10)
        for device in devices:
            self.assertGreater(device["memory_bytes"], 1 << 20)
            self.assertGreater(device["units"], 0)
        self.assertIn("native", devices[-1]["capabilities"])

    def test_the_table_says_the_same_and_fits(self):
        answer = self.answer("devices")
        for words in (["devices"], []):
            result = self.compute(*words)
            self.assert_ended(result)
            for device in answer["devices"]:
                self.assertIn(device["device"], result.stdout)
                self.assertIn(" ".join(device["capabilities"]), result.stdout)
            for name in answer["absent"]:
                self.assertRegex(result.stdout, rf"(?m)^no {name} +\S")
        for columns in (80, 140):
            shown = program.on_terminal("compute", "devices", columns=columns).stdout
            lines = program.ESCAPE.sub("", shown).splitlines()
            self.assertLessEqual(max(map(len, lines)), columns, lines)


class Run(ComputeCase):
    def saxpy(self, device, *more):
        return ["run", SAXPY, "--device", device, "--arg", "n=256", "--arg", "a=2", "--arg",
                f"x=@{RAMP}", *more]

    def test_files_in_and_out(self):
        expect = [3 * i / 256 for i in range(256)]
        for device in self.devices():
            with self.subTest(device=device):
                path = self.path("y.npy")
                result = self.compute(*self.saxpy(device, "--arg", f"y=@{RAMP}", "--out",
                                                  f"y=@{path}"))
                self.assert_ended(result)
                self.assertIn(f"y as float32[256] to {path}", result.stdout)
                self.assertEqual(read_npy(path), ("<f4", (256,), expect))

    def test_without_a_file_the_result_is_summed_up(self):
        for device in self.devices():
            with self.subTest(device=device):
                words = self.saxpy(device, "--arg", "y=float32[16,16]")
                output = self.answer(*words)["outputs"][0]
                self.assertEqual((output["name"], output["shape"], output["file"]),
                                 ("y", [16, 16], None))
                self.assertEqual(output["first"], [2 * i / 256 for i in range(6)])
                self.assertEqual((output["min"], output["max"], output["mean"]),
                                 (0, 510 / 256, 255 / 256))
                self.assertRegex(self.compute(*words).stdout,
                                 r"y +float32\[16,16\] +0 +1.99219 +0.996094 .*0 0.0078125 ")

    def test_the_grid_is_chosen_and_said(self):
        words = self.saxpy("cpu", "--arg", "y=float32[1000]")
        result = self.compute(*words)
        self.assert_ended(result)
        self.assertIn("4 groups of 250: 1000 items, from the largest array, 'y'",
                      result.stdout)
        for more, groups, group in (([], [4, 1, 1], [250, 1, 1]),
                                    (["--items", "256"], [1, 1, 1], [256, 1, 1]),
                                    (["--items", "256", "--group", "100"], [3, 1, 1], [100, 1, 1]),
                                    (["--items", "1000000"], [4000, 1, 1], [250, 1, 1]),
                                    (["--items", "17,16"], [17, 1, 1], [1, 16, 1]),
                                    (["--items", "16,65537"], [1, 4097, 1], [16, 16, 1]),
                                    (["--items", "8,8,5"], [1, 1, 5], [8, 8, 1]),
                                    (["--grid", "3"], [3, 1, 1], [256, 1, 1]),
                                    (["--grid", "2,3,4", "--group", "2"], [2, 3, 4], [2, 1, 1])):
            with self.subTest(more=more):
                answer = json.loads(self.compute(*words, *more, "--json").stdout)
                self.assertEqual((answer["groups"], answer["group"]), (groups, group))

    def test_no_more_items_run_than_there_are(self):
        source = self.put("w.acl", "kernel void w(global int *a, global int *b) {\n"
                                   "    a[global_id(0)] = 7;\n}\n")
        for device in self.devices():
            for count in (1, 3, 256, 257, 300, 509, 1021):
                with self.subTest(device=device, count=count):
                    result = self.compute("run", source, "-d", device, "-a", f"a=int32[{count}]",
                                          "-a", f"b=int32[{count}]", "--json")
                    self.assertEqual(result.returncode, 0, result.stderr)
                    answer = json.loads(result.stdout)
                    self.assertEqual([(output["min"], output["max"])
                                      for output in answer["outputs"]], [(7, 7), (0, 0)])
                    self.assertEqual(answer["groups"][0] * answer["group"][0], count)

    def test_groups_that_are_slow_or_run_past_the_end_are_noted(self):
        words = self.saxpy(self.devices()[-1], "--arg", "y=float32[1021]")
        slow = "groups of 1 are slow, but none larger divides the items; --group 256 is faster"
        rows = [([], slow if len(self.devices()) > 1 else None),
                (["--group", "100"], "whole groups run 1100 items for 1021: the kernel must skip"),
                (["--items", "33,31", "--group", "8,8"], "whole groups run 1280 items for 1023"),
                (["--items", "1021", "--group", "1021"], None), (["--items", "31"], None),
                (["--grid", "2"], None)]
        for more, note in rows:
            with self.subTest(more=more):
                result = self.compute(*words, *more)
                note = rf"acre: note: {note}.*\n" if note else ""
                self.assertEqual(result.returncode, 0)
                self.assertRegex(result.stderr, rf"\A{note}\Z")
                self.assertEqual(self.compute(*words, *more, "-q").stderr, "")
        one = self.put("one.acl", "kernel void f(global int *a) { a[0] = 1; }\n")
        self.assertIn("1 group of 1: 1 item, from the largest array, 'a'",
                      self.compute("run", one, "-d", "cpu", "-a", "a=int32[1]").stdout)

    def test_a_group_that_the_source_requires_is_chosen(self):
        if "opencl:0" not in self.devices():
            self.skipTest("no OpenCL here")
        source = self.put("fixed.cl", "__kernel __attribute__((reqd_work_group_size(16, 1, 1)))\n"
                                      "void f(__global int *x) { x[get_global_id(0)] = 1; }\n")
        words = ["run", source, "-d", "opencl", "-a", "x=int32[64]"]
        answer = self.answer(*words)
        self.assertEqual((answer["groups"], answer["group"]), ([4, 1, 1], [16, 1, 1]))
        self.assertEqual(answer["outputs"][0]["min"], 1)
        self.assert_ended(self.compute(*words, "--group", "64"), 2, "kernel 'f': the group is 64 x "
                          "1 x 1; the source requires 16 x 1 x 1")
        self.assert_ended(self.compute(*words, "--group", "16"))
        result = self.compute(*words, "--items", "60")
        self.assertIn("whole groups run 64 items for 60", result.stderr)

    def test_whole_numbers_are_shown_to_the_last_digit(self):
        source = self.put("copy.acl", "kernel void f(global const ulong *u, global const long *i,\n"
                                      "              global ulong *a, global long *b) {\n"
                                      "    a[global_id(0)] = u[global_id(0)];\n"
                                      "    b[global_id(0)] = i[global_id(0)];\n}\n")
        wide = [2**64 - 1, 2**64 - 2, 2**53 + 1, 2**53]
        low = [2**53 + 1, 2**53, -2**63, -2**53 - 1]
        words = ["run", source, "-d", "cpu", "-a", f"u=@{self.put('u.npy', npy('<u8', wide))}",
                 "-a", f"i=@{self.put('i.npy', npy('<i8', low))}", "-a", "a=uint64[4]", "-a",
                 "b=int64[4]"]
        for output, values in zip(self.answer(*words)["outputs"], (wide, low)):
            self.assertEqual((output["first"], output["min"], output["max"]),
                             (values, min(values), max(values)))
        text = self.compute(*words).stdout
        self.assertRegex(text, rf"uint64\[4\] +{2**53} +{2**64 - 1} .*{2**64 - 1} {2**64 - 2}")
        self.assertRegex(text, rf"int64\[4\] +-{2**63} +{2**53 + 1} ")

    def test_macros_and_names_of_types_are_seen(self):
        source = self.put("real.acl", "#define REAL float\ntypedef int number, *numbers;\n"
                                      "kernel void f(REAL a, number n, global const REAL *x,\n"
                                      "              global REAL *y) { y[0] = a * x[0] + n; }\n")
        answer = self.answer("run", source, "-d", "cpu", "-a", "a=2.5", "-a", "n=-1", "-a",
                             f"x=@{self.put('x.npy', npy('<f4', [4]))}", "-a", "y=float32[1]")
        self.assertEqual(answer["outputs"][0]["first"], [9])

    def test_a_header_that_changes_is_compiled_again(self):
        source = self.put("h.acl", '#include "value.h"\n'
                                   "kernel void f(global int *x) { x[0] = VALUE; }\n")
        for device in self.devices():
            for value in (1, 2):
                with self.subTest(device=device, value=value):
                    self.put("value.h", f"#define VALUE {value}\n")
                    answer = self.answer("run", source, "-d", device, "-a", "x=int32[1]",
                                         f"--options=-I{self.folder}")
                    self.assertEqual(answer["outputs"][0]["first"], [value])
                    self.assertFalse(answer["build_was_cached"])
                    self.assertIn("includes files that may change", answer["cache"])

    def test_kernels_under_an_if_and_files_of_windows(self):
        source = self.put("if.acl", b"\xef\xbb\xbf#ifdef NEVER\r\nit's off\r\n#endif\r\n"
                                    b"#ifdef NEVER\r\nkernel void off(global int *x) "
                                    b"{ x[0] = no; }\r\n#endif\r\n"
                                    b"kernel void on(global int *x) { x[0] = 3; }\r\n")
        none = self.put("none.acl", "#ifdef NEVER\nkernel void off(global int *x) { }\n#endif\n")
        bad = self.put("bad.acl", b"// one\r\nkernel void f(global int *x) { x[0] = no; }\r\n")
        for device in self.devices():
            with self.subTest(device=device):
                words = ["-d", device, "-a", "x=int32[1]"]
                result = self.compute("run", source, *words, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)  # compilers warn of "it's"
                self.assertEqual(json.loads(result.stdout)["outputs"][0]["first"], [3])
                self.assert_ended(self.compute("run", none, *words), 4,
                                  "no kernel was compiled; is every kernel inside an #if")
                self.assertNotIn("\\r", self.compute("run", bad, *words).stderr)

    def test_files_are_all_written_or_none(self):
        source = self.put("two.acl", "kernel void f(global int *a, global int *b) {\n"
                                     "    a[0] = b[0] = 1;\n}\n")
        words = ["run", source, "-d", "cpu", "-a", "a=int32[1]", "-a", "b=int32[1]", "-o",
                 f"a=@{self.path('a.npy')}"]
        os.mkdir(self.path("folder"))
        os.mkdir(self.path("closed"), 0o500)
        hang = self.put("hang.acl", "kernel void f(global int *a, global int *b) {\n"
                                    "    while (b[0] == 0) { a[0]++; }\n}\n")
        rows = [(self.path("none/b.npy"), 4, f"--out b: {self.path('none/b.npy')}: No such file"),
                (self.path("folder"), 2, f"--out b: {self.path('folder')}: is a directory"),
                ("/dev/full", 2, "--out b: /dev/full: is not a regular file"),
                (self.path("a.npy"), 2, "is already the output of another array; give each"),
                (self.path("folder/../a.npy"), 2, "is already the output of another array")]
        if os.getuid() != 0:
            rows.append((self.path("closed/b.npy"), 3, "--out b: "))
        for path, status, message in rows:
            for file in (source, hang):  # nothing runs before it is told
                with self.subTest(path=path, file=file):
                    self.assert_ended(self.compute("run", file, *words[2:], "-o", f"b=@{path}",
                                                   "--limit", "60s"), status, message)
                    self.assertFalse(os.path.exists(self.path("a.npy")))
        before = sorted(os.listdir(self.folder))
        self.assert_ended(self.compute(*words, "-o", f"b=@{self.path('b.npy')}"))
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*before, "a.npy", "b.npy"]))
        self.assertEqual(read_npy(self.path("b.npy"))[2], [1])

    def test_closed_streams_are_nobody_elses(self):
        source = self.put("warned.acl", "#warning it is told\n"
                                        "kernel void f(global int *x) { x[0] = 1; }\n")
        out = self.path("x.npy")
        words = [program.ACRE, "compute", "run", source, "-a", "x=int32[1]", "-o", f"x=@{out}"]
        for device in self.devices():
            for closed, status in ((">&-", 11), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 11)):
                with self.subTest(device=device, closed=closed):
                    result = subprocess.run(
                        ["sh", "-c", f'exec "$0" "$@" {closed}', *words, "-d", device],
                        stdin=subprocess.DEVNULL, capture_output=True, text=True,
                        timeout=program.TIMEOUT_S, env=program.environment(**self.environment))
                    self.assertEqual(result.returncode, status, result.stderr)
                    self.assertEqual("standard output: Bad file descriptor" in result.stderr,
                                     closed == ">&-")
                    self.assertEqual(read_npy(out)[2], [1])

    def test_no_room_for_a_cache_costs_only_the_keeping(self):
        if "opencl:0" not in self.devices():
            self.skipTest("no OpenCL here")
        words = self.saxpy("opencl", "--arg", "y=float32[256]")
        self.environment["POCL_CACHE_DIR"] = None
        self.environment["XDG_CACHE_HOME"] = os.path.join(self.put("file", ""), "cache")
        self.environment["TMPDIR"] = self.folder
        answer = self.answer(*words)
        self.assertEqual(answer["device"], "opencl:0")
        self.assertIn("file/cache", answer["cache"])
        kept = self.path(f"acre-pocl-{os.geteuid()}")
        self.assertEqual(os.stat(kept).st_mode & 0o777, 0o700)
        os.chmod(kept, 0o755)  # what is in it is executed
        self.assert_ended(self.compute(*words), 4, "PoCL needs a writable directory: "
                          f"{self.path('file/cache/pocl/kcache')}: Not a directory")

    def test_times_are_told_and_the_second_build_is_from_the_cache(self):
        self.environment["POCL_CACHE_DIR"] = None  # or the first is nearly as fast
        for device in self.devices():
            with self.subTest(device=device):
                words = self.saxpy(device, "--arg", "y=float32[256]", "--repeat", "100")
                first, second = self.answer(*words), self.answer(*words)
                self.assertEqual((first["build_was_cached"], second["build_was_cached"]),
                                 (False, True))
                self.assertLess(second["build_ms"], first["build_ms"])
                self.assertEqual(second["copy_in"]["bytes"], 1024)
                self.assertEqual(second["copy_out"]["bytes"], 1024)
                run = second["run"]
                self.assertEqual(run["launches"], 100)
                self.assertTrue(0 < run["min_us"] <= run["p50_us"] <= run["max_us"], run)
                self.assertIn("from the cache", self.compute(*words).stdout)

    def test_parameters_by_number_and_one_kernel_of_several(self):
        source = self.put("two.acl", "kernel void one(global int *x) { x[0] = 1; }\n"
                                     "kernel void two(global int *x) { x[0] = 2; }\n")
        output = self.answer("run", source, "-d", "cpu", "-k", "two", "-a",
                             "1=int32[1]")["outputs"][0]
        self.assertEqual(output["first"], [2])
        self.assert_ended(self.compute("run", source, "-d", "cpu", "-a", "x=int32[1]"), 2,
                          "--kernel: choose one; accepted: one, two")
        self.assert_ended(self.compute("run", source, "-d", "cpu", "-k", "six"), 4,
                          "no kernel 'six' in the program; its kernels: one, two")

    def test_types_keep_their_bits(self):
        rows = [("uchar", "|u1", [0, 1, 255]), ("short", "<i2", [-32768, 0, 32767]),
                ("int", "<i4", [-2**31, 5]), ("uint", "<u4", [2**32 - 1]),
                ("long", "<i8", [-2**63, 2**63 - 1]), ("double", "<f8", [0.1, 1e300])]
        for word, descr, values in rows:
            for version in (1, 2):
                with self.subTest(word=word, version=version):
                    source = self.put("copy.acl",
                                      f"kernel void copy(global const {word} *in, global {word} "
                                      "*out) { out[global_id(0)] = in[global_id(0)]; }\n")
                    given = self.put("in.npy", npy(descr, values, version=version))
                    kind = {"u": "uint", "i": "int", "f": "float"}[descr[1]]
                    out = self.path("out.npy")
                    result = self.compute(
                        "run", source, "-d", "cpu", "-a", f"in=@{given}", "-a",
                        f"out={kind}{8 * int(descr[2])}[{len(values)}]", "-o", f"out=@{out}",
                        "--grid", str(len(values)), "--group", "1", "-q")
                    self.assert_ended(result)
                    self.assertEqual(result.stdout, "")
                    self.assertEqual(read_npy(out)[2], values)

    def test_numbers_are_given_as_their_parameters_want_them(self):
        source = self.put("sum.acl", "kernel void f(int a, char b, double c, global double *x) {\n"
                                     "    x[0] = (double)a + b + c;\n}\n")
        words = ["run", source, "-d", "cpu", "-a", "x=float64[1]", "--items", "1"]
        for a, b, c, status, expect in (
                ("-5", "-128", "0.5", 0, -132.5), ("2147483647", "127", "-1e3", 0, 2147482774),
                ("2147483648", "0", "0", 2, "--arg a: '2147483648' is not a valid 'int'; accepted: "
                                            "a whole number from -2147483648 to 2147483647"),
                ("0", "128", "0", 2, "from -128 to 127"),
                ("0", "0", "1e999", 2, "--arg c: '1e999'"),
                ("0", "0", " 1", 2, "--arg c: ' 1'"), ("+1", "0", "0", 2, "--arg a: '+1'"),
                ("0", "0", "inf", 0, None)):
            with self.subTest(a=a, b=b, c=c):
                given = ["-a", f"a={a}", "-a", f"b={b}", "-a", f"c={c}"]
                if status == 0:
                    answer = self.answer(*words, *given)
                    self.assertEqual(answer["outputs"][0]["first"], [expect])
                else:
                    self.assert_ended(self.compute(*words, *given), status, expect)

    def test_vectors_structs_and_local_memory(self):
        source = self.put("v.acl", "struct pair { float x; int n; };\n"
                                   "kernel void f(global float4 *v, float4 by, struct pair p) {\n"
                                   "    v[global_id(0)].x += by.y + p.x;\n}\n")
        four = self.put("four.npy", npy("<f4", [1, 2, 3, 4]))
        pair = self.put("pair.npy", npy("<f4", [0.5, 0]))
        answer = self.answer("run", source, "-d", "cpu", "-a", "v=float32[3,4]", "-a",
                             f"by=@{four}", "-a", f"p=@{pair}", "--grid", "3", "--group", "1")
        self.assertEqual(answer["outputs"][0]["first"], [2.5, 0, 0, 0, 2.5, 0])
        self.assertEqual(self.answer("run", source, "-d", "cpu", "-a", "v=float32[3,4]", "-a",
                                     f"by=@{four}", "-a", f"p=@{pair}", "--group",
                                     "3")["groups"], [1, 1, 1])  # three items, not twelve
        self.assert_ended(self.compute("run", source, "-d", "cpu", "-a", "v=float32[3]", "-a",
                                       f"by=@{four}", "-a", f"p=@{pair}"), 2,
                          "--arg v: the 12 bytes of float32[3] are not a multiple of 16")
        if "opencl:0" not in self.devices():
            self.skipTest("no OpenCL here: the rest needs it")
        source = self.put("l.cl", "__kernel void f(__global int *x, __local int *t) {\n"
                                  "    t[0] = 7; x[0] = t[0];\n}\n")
        words = ["run", source, "-a", "x=int32[1]", "-a", "t=16", "--group", "1"]
        answer = self.answer(*words)
        self.assertEqual((answer["device"], answer["outputs"][0]["first"]), ("opencl:0", [7]))
        words[words.index("t=16")] = "t=1073741824"
        self.assert_ended(self.compute(*words), 2, "1073741824 bytes of local memory; accepted: at")

    def test_structs_may_be_called_like_numbers(self):
        source = self.put("named.acl", "typedef struct { int a, b; } int_t;\n"
                                       "kernel void f(global const int_t *in, global int *out) {\n"
                                       "    out[global_id(0)] = in[global_id(0)].b;\n}\n")
        given = self.put("in.npy", npy("<i4", [1, 2, 3, 4]))
        answer = self.answer("run", source, "-d", "cpu", "-a", f"in=@{given}", "-a", "out=int32[2]",
                             "--items", "2")
        self.assertEqual(answer["outputs"][0]["first"], [2, 4])

    def test_numbers_that_are_none_are_counted(self):
        source = self.put("nan.acl", "kernel void f(global float *x) {\n"
                                     "    x[global_id(0)] = sqrt(-1.0f * (float)local_id(0));\n}\n")
        output = self.answer("run", source, "-d", "cpu", "-a", "x=float32[4]", "--grid", "1",
                             "--group", "4")["outputs"][0]
        self.assertEqual((output["nan"], output["min"], output["max"]), (3, 0, 0))
        self.assertEqual(output["first"][1], None)

    def test_what_the_compiler_says_is_shown_with_its_line(self):  # Bad input
        source = self.put("bad.acl", "kernel void f(global float *x) {\n    x[0] = nowhere;\n}\n")
        for device in self.devices():
            with self.subTest(device=device):
                result = self.compute("run", source, "-d", device, "-a", "x=float32[1]")
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn(f"{source}:2:12", result.stderr)
                self.assertRegex(result.stderr, r"(?m)^ +2 \| +x\[0\] = nowhere;\n +\| {12}\^")
                self.assertRegex(result.stderr, r"acre: .*bad\.acl does not compile for .*\n\Z")

    def test_every_refusal_names_the_argument_and_what_is_accepted(self):
        good = ["-a", "n=4", "-a", "a=1", "-a", "x=float32[4]", "-a", "y=float32[4]"]
        cut = self.put("cut.npy", npy("<f4", [1, 2])[:-1])
        text = self.put("text.npy", "hello, this is no array")
        ints = self.put("ints.npy", npy("<i4", [1, 2]))
        one = self.put("one.npy", npy("<i4", [1]))
        reals = self.put("reals.npy", npy("<f4", [1]))
        empty = self.put("empty.npy", npy("<f4", []))
        short = self.put("short.npy", npy("<f4", [1])[:40])
        negative = self.put("negative.npy", npy("<f4", [], shape=(-4,)))
        rows = [
            (["-a", "n"], 2, "--arg: 'n'; accepted: NAME=VALUE"),
            (["-a", "z=1"], 2, "no parameter 'z'; accepted: n, a, x, y, or a number from 1 to 4"),
            (["-a", "5=1"], 2, "no parameter '5'"),
            (["-a", "n=1", "-a", "1=2"], 2, "--arg n: given twice"),
            ([], 2, "--arg n is missing (parameter 1 of kernel 'saxpy', 'uint')"),
            (["-a", "n=-1"], 2, "--arg n: '-1' is not a valid 'uint'; accepted: a whole number "
                                "from 0 to 4294967295"),
            (["-a", "n=4294967296"], 2, "--arg n: '4294967296'"),
            (["-a", "n=1x"], 2, "--arg n: '1x'"),
            (["-a", "n=1", "-a", "a=much"], 2, "--arg a: 'much' is not a valid 'float'"),
            (["-a", "n=1", "-a", "a=1e39"], 2, "--arg a: '1e39'"),
            (["-a", "n=1", "-a", "a=1", "-a", "x=3"], 2,
             "--arg x: '3' is not a valid 'global const float *'; accepted: @FILE.npy, or zeros"),
            (["-a", "n=1", "-a", "a=1", "-a", "x=float64[4]"], 2,
             "--arg x: type float64 does not match 'global const float *'; accepted: "
             "floating-point numbers of 4 bytes"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{ints}"], 2,
             f"--arg x: {ints}: type int32 does not match"),
            (["-a", f"n=@{reals}"], 2,
             f"--arg n: {reals}: float32[1] does not match 'uint'; accepted: one whole number"),
            (["-a", "n=1", "-a", f"a=@{one}"], 2,
             f"{one}: int32[1] does not match 'float'; accepted: one floating-point number"),
            (["-a", f"n=@{ints}"], 2, "int32[2] has 8 bytes; accepted: 4, the size of 'uint'"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{empty}"], 2,
             f"--arg x: {empty}: float32[0] has no items; accepted: 1 or more"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{short}"], 2,
             f"--arg x: {short}: truncated in the .npy header"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{negative}"], 2,
             "invalid shape (-4,); accepted: at most 8 whole numbers"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{cut}"], 2,
             "has 7 bytes of data; float32[2] has 8"),
            (["-a", "n=1", "-a", "a=1", "-a", f"x=@{text}"], 2, "not a .npy file"),
            (["-a", "n=@"], 2, "--arg n: '@' is not a valid 'uint'; accepted: a whole number"),
            (["-a", "n=1", "-a", "a=1", "-a", "x=@"], 2,
             "--arg x: '@' is not a valid 'global const float *'; accepted: @FILE.npy, or zeros"),
            (["-a", "n=1", "-a", "a=1", "-a", "x=@/nonexistent"], 4, "--arg x: /nonexistent"),
            (["-a", "n=1", "-a", "a=1", "-a", "x=float32[0]"], 2, "lengths of 1 or more"),
            ([*good, "-o", "x=@out.npy"], 2,
             "--out x: the kernel does not write 'global const float *'; accepted: arrays"),
            ([*good, "-o", "y=out.npy"], 2, "--out y: 'out.npy'; accepted: y=@FILE.npy"),
            ([*good, "-o", f"y=@{self.folder}/none/y.npy"], 4, "--out y: "),
            ([*good, "--grid", "1", "--items", "1"], 2, "--grid and --items"),
            ([*good, "--grid", "0"], 2, "--grid: invalid '0'; accepted: one to three numbers"),
            ([*good, "--grid", "1,1,1,1"], 2, "--grid: invalid '1,1,1,1'"),
            ([*good, "--grid", "1,70000"], 2, "grid.groups y: 70000; accepted: 1 to 65535"),
            ([*good, "--items", "1099511627776", "--group", "1"], 2,
             "--items: 1099511627776 items in groups of 1 make too many groups; accepted: at most"),
            ([*good, "--group", "60000"], 2, "the group has 60000 work items; accepted: at most"),
            ([*good, "--repeat", "0"], 2, "--repeat: '0'"),
            ([*good[:6], "-a", "y=float32[70368744177664]"], 2, "70368744177664 items in groups"),
            ([*good[:6], "-a", "y=float32[70368744177664]", "--items", "4"], 7,
             "--arg y: pinned memory: cannot allocate 28147497671"),
        ]
        for words, status, message in rows:
            with self.subTest(words=words):
                result = self.compute("run", SAXPY, "-d", "cpu", *words)
                self.assert_ended(result, status, message)
                self.assertEqual(result.stdout, "")
                self.assertRegex(result.stderr, r"\Aacre: .*\n\Z")

    def test_devices_and_files_that_are_not_there(self):
        names = [device["device"] for device in self.answer("devices")["devices"]]
        rows = [
            (["run", SAXPY, "-d", "gpu"], 2, "--device: 'gpu' is not a device; accepted: cuda"),
            (["run", SAXPY, "-d", "cuda:x"], 2, "--device: 'cuda:x'"),
            (["run", SAXPY, "-d", "cpu:3"], 4, "no device cpu:3; available: cpu:0"),
            (["run", SAXPY, "-d", "99"], 4, f"no device 99; available: {', '.join(names)}"),
            (["run", RAMP], 2, "unknown language; accepted: a name that ends in .acl"),
            (["run", "none.acl"], 4, "none.acl: No such file"),
            (["run", self.put("empty.acl", "")], 2, "is empty"),
            (["run", self.put("zero.acl", b"kernel\0")], 2, "contains a NUL byte"),
            (["run"], 2, "0 arguments; accepted: 1; usage: acre compute run"),
        ]
        if "cuda:0" not in names:
            rows.append((["run", self.put("x.cu", "__global__ void f() {}")], 4,
                         "no cuda device here: "))
        for words, status, message in rows:
            with self.subTest(words=words):
                self.assert_ended(self.compute(*words), status, message)

    def test_a_kernel_that_never_ends_is_ended(self):  # GPU-6
        source = self.put("hang.acl", "kernel void hang(global volatile uint *p) {\n"
                                      "    while (p[0] != 1234567u) { }\n}\n")
        words = ["run", source, "-a", "p=uint32[4]", "--items", "1"]
        for device in self.devices():
            with self.subTest(device=device):
                self.assert_ended(self.compute(*words, "-d", device, "--limit", "2s"), 13,
                                  "kernel 'hang' ran longer than 2000 ms")
        for limit, message in (("9ms", "--limit: '9ms' is out of range; accepted: 10ms to 1d"),
                               ("25h", "--limit: '25h' is out of range"),
                               ("10", "--limit: '10' is not a valid duration")):
            with self.subTest(limit=limit):
                self.assert_ended(self.compute(*words, "-d", "cpu", "--limit", limit), 2, message)

    def test_a_kernel_that_runs_long_is_what_the_terminal_says(self):
        source = self.put("hang.acl", "kernel void hang(global volatile uint *p) {\n"
                                      "    while (p[0] != 1234567u) { }\n}\n")
        words = ["compute", "run", source, "-d", "cpu", "-a", "p=uint32[4]", "--limit", "1s"]
        program.on_terminal(*words, stream="stderr", **self.environment)
        result = program.on_terminal(*words, stream="stderr", **self.environment)  # from the cache
        self.assertIn("run: running the kernel", result.stderr)

    def test_a_kernel_that_writes_where_it_may_not_is_told(self):  # GPU-6
        source = self.put("wild.acl", "kernel void wild(global uint *p, ulong at) {\n"
                                      "    p[at] = 7u;\n}\n")
        for device in self.devices():
            with self.subTest(device=device):
                result = self.compute("run", source, "-d", device, "-a", "p=uint32[4]", "-a",
                                      f"at={1 << 43}", "--items", "1")
                self.assert_ended(result, 9, "the contents of its device memory are lost")
                self.assertEqual(result.stdout, "")

    def test_a_kernel_that_writes_beside_an_array_is_told(self):
        source = self.put("beside.acl", "kernel void beside(global uint *p, global uint *q, "
                                        "long at) {\n    p[0] = q[at] = 7u;\n}\n")
        for device in self.devices():
            for at, where in ((1000, "after the end of"), (-1, "before the start of"), (999, None)):
                with self.subTest(device=device, at=at):
                    result = self.compute("run", source, "-d", device, "-a", "p=uint32[8]", "-a",
                                          "q=uint32[1000]", "-a", f"at={at}", "--items", "1",
                                          "-o", f"p=@{self.path('p.npy')}")
                    if where is not None:
                        self.assert_ended(result, 14, "kernel 'beside' wrote outside of 'q': 4 "
                                          "of the ")
                        self.assertIn(where + " a buffer of 4000 bytes were", result.stderr)
                        self.assertEqual(result.stdout, "")
                    else:
                        self.assert_ended(result)
                    self.assertEqual(os.path.exists(self.path("p.npy")), where is None)
            os.unlink(self.path("p.npy"))

    def test_docs_kernels_shows_what_is_told(self):
        with open(os.path.join(program.SOURCE, "docs/kernels.md"), encoding="utf-8") as file:
            page = file.read()
        source = re.search(r"```c portable\n(kernel void past.*?)```", page, re.S)[1]
        words, told = re.search(r"\$ acre compute run past\.acl (.*)\n(.*\n)```", page).groups()
        result = self.compute("run", self.put("past.acl", source), *shlex.split(words))
        self.assert_ended(result, 14, told)

    def test_a_kernel_without_parameters_takes_none(self):
        source = self.put("f.acl", "kernel void f() { }\n")
        words = ["run", source, "-d", "cpu", "--items", "1"]
        self.assert_ended(self.compute(*words))
        for option, value in (("--arg", "x=1"), ("--arg", "1=1"), ("--out", "1=@y.npy")):
            with self.subTest(option=option, value=value):
                self.assert_ended(self.compute(*words, option, value), 2,
                                  f"{option}: '{value[0]}' was given, but kernel 'f' has no "
                                  "parameters")

    def test_a_kernel_without_arrays_needs_to_be_told_how_many(self):
        source = self.put("none.acl", "kernel void f(uint n) { }\n")
        words = ["run", source, "-d", "cpu", "-a", "n=1"]
        self.assert_ended(self.compute(*words), 2, "--items is missing: kernel 'f' has no array")
        self.assert_ended(self.compute(*words, "--items", "1"))


class Cache(ComputeCase):
    def fill(self):
        for name in ("one", "two"):
            source = self.put(f"{name}.acl", f"kernel void {name}(global int *x) {{ x[0] = 1; }}\n")
            self.assert_ended(self.compute("run", source, "-d", "cpu", "-a", "x=int32[1]"))

    def entries(self):
        return self.answer("cache")["entries"]

    def test_it_is_listed_verified_pruned_and_cleared(self):
        self.assertEqual(self.entries(), [])
        self.assertIn("0 programs, 0 bytes", self.compute("cache").stdout)
        self.fill()
        entries = self.entries()
        self.assertEqual([os.path.basename(entry["name"]) for entry in entries],
                         ["two.acl", "one.acl"])
        self.assertRegex(self.compute("cache", "list").stdout, r"cache/acre: 2 programs, \d")
        directory = self.answer("cache")["directory"]
        self.assertEqual(directory, os.path.join(self.folder, "cache", "acre"))
        with open(os.path.join(directory, entries[0]["file"]), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        self.assertIn("checked: 2 programs", self.compute("cache", "verify").stdout)
        self.assertEqual(self.entries(), entries[1:])
        self.assertEqual(self.answer("cache", "verify")["damaged"], 0)
        self.assertIn("removed: 0 programs", self.compute("cache", "prune", "--to", "1GiB").stdout)
        self.assertEqual(self.answer("cache", "clear")["removed"], 1)
        self.assertEqual(self.entries(), [])

    def test_wrong_words_are_refused(self):
        for words, message in ((["empty"], "'empty'; accepted: list, verify, prune, clear"),
                               (["prune"], "--to is missing: the size to keep"),
                               (["list", "--to", "1GiB"], "--to: only for 'prune'"),
                               (["clear", "clear"], "'clear' is one too many")):
            with self.subTest(words=words):
                self.assert_ended(self.compute("cache", *words), 2, message)
        for path in (self.path("none"), self.put("file", "")):
            with self.subTest(path=path):
                self.assert_ended(self.compute("cache", "clear", "--directory", path), 2,
                                  f"--directory: no such directory '{path}'")


class Explain(ComputeCase):
    def test_what_was_learned_is_shown_again(self):
        for device in self.devices():
            with self.subTest(device=device):
                words = ["explain", ADD, "--device", device]
                self.assertIn("No measurements yet", self.compute(*words).stdout)
                learned = self.answer(*words, "--learn")
                self.assertEqual([size["items"] for size in learned["sizes"]],
                                 [1 << i for i in range(25)])
                for size in learned["sizes"]:
                    us = {way: cost["us"] for way, cost in size["ways"].items()
                          if cost["us"] is not None}
                    self.assertIn(size["chosen"], us)
                    self.assertEqual(us[size["chosen"]], min(us.values()))
                    for way, cost in size["ways"].items():
                        self.assertTrue(cost["us"] is not None or cost["reason"], (way, cost))
                again = self.answer(*words)
                self.assertEqual([size["chosen"] for size in again["sizes"]],
                                 [size["chosen"] for size in learned["sizes"]])
                text = self.compute(*words).stdout
                self.assertRegex(text, r"(?m)^ *16777216 .*\* [\d.]+ [mu]s")
                self.assertRegex(text, r"(?m)^no ring +\S")

    def test_arrays_both_ways_and_values_are_another_question(self):
        source = self.put("scale.acl", "kernel void scale(global float *x, float by, uint n) {\n"
                                       "    ulong i = global_id(0);\n"
                                       "    if (i < n) { x[i] *= by; }\n}\n")
        words = ["explain", source, "--device", "cpu"]
        self.assert_ended(self.compute(*words, "--inout", "x", "--learn", "--arg", "by=0.5", "-q"))
        self.assertEqual(len(self.answer(*words, "--inout", "x")["sizes"]), 25)
        self.assertEqual(self.answer(*words)["sizes"], [])
        self.assert_ended(self.compute(*words, "--arg", "by=fast"), 2, "--arg by: 'fast'")

    def test_kernels_it_is_not_for(self):
        rows = [
            ([SAXPY], 2, "kernel 'saxpy' does not fit automatic choice; accepted: kernels f("),
            ([ADD, "--inout", "a"], 2, "--inout: 'a' is not an array that kernel 'add' can write"),
            ([ADD, "-a", "n=3"], 2, "--arg: 'n=3'; accepted: NAME=NUMBER"),
            ([self.put("x.cl", "__kernel void f(__global int *x) {}")], 2, "accepted: FILE.acl"),
            ([self.put("s.acl", "struct s { float a; };\n"
                                "kernel void f(global struct s *x, uint n) { x[0].a = 1.0f; }")], 2,
             "array 'x' is 'global struct s *', whose items have no known size; accepted: arrays"),
        ]
        for words, status, message in rows:
            with self.subTest(words=words):
                self.assert_ended(self.compute("explain", *words, "-d", "cpu"), status, message)


class Bench(ComputeCase):
    def test_every_figure_is_a_number_or_says_why_not(self):
        figures = {figure["name"]: figure
                   for figure in self.answer("bench", "--device", "cpu")["figures"]}
        for name in ("launch, and wait", "ring round trip", "add 1 M floats, cpu",
                     "copy to the device, 64 MiB", "graph of 20 kernels"):
            self.assertGreater(figures[name]["p50"], 0, figures[name])
        for figure in figures.values():
            self.assertTrue(figure["p50"] is not None or figure["note"], figure)
            self.assertIn(figure["unit"], ("us", "GB/s"))

    def test_the_table_fits_and_says_why_a_way_is_absent(self):
        device = self.devices()[-1]
        result = program.on_terminal("compute", "bench", "--device", device, "--quiet",
                                     **self.environment)
        self.assert_ended(result)
        text = program.ESCAPE.sub("", result.stdout)
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith(device + ", "), lines)
        self.assertLessEqual(max(map(len, lines)), 80, lines)
        for what in (r"launch, and wait +[\d.]+ [um]s +[\d.]+ [um]s", r"copy to .* GB/s",
                     r"ring round trip +[\d.]+ [um]s .* by a worker"):
            self.assertRegex(text, what)
        if device != "cpu:0":
            self.assertRegex(text, r"(?m)^no add 1000 floats, ring +the device cannot keep")
