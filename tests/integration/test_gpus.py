"""`acre gpus` and `acre doctor` from outside: simulated clusters, this machine, terminals."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

SIMULATED = ["gpus", "--sim", program.CLUSTER]

# What may be 0 on a simulated device: counted or given, never unknown.
ZEROS = {"island", "memory_used_mib", "memory_foreign_mib", "memory_unattributed_mib", "processes"}
KNOWN_WHEN_LOST = {"sampled_ms", "state", "reason"}


def devices_of(answer):
    return [device for node in answer["nodes"] for device in node["devices"]]


def has_gpu():
    answer = json.loads(program.run("gpus", "--json").stdout)
    return any(device["kind"] != "cpu" for device in devices_of(answer))


class Simulated(program.TestCase):  # DEV-4
    def setUp(self):
        result = program.run(*SIMULATED, "--json")
        self.assert_ended(result)
        self.answer = json.loads(result.stdout)

    def test_everything_is_labelled_simulated(self):
        self.assertIs(self.answer["simulated"], True)
        self.assertEqual([node["name"] for node in self.answer["nodes"]], ["gpu-a", "gpu-b"])
        for node in self.answer["nodes"]:
            self.assertIs(node["simulated"], True)
        self.assertEqual(len(devices_of(self.answer)), 12)
        for device in devices_of(self.answer):
            self.assertIs(device["simulated"], True)
            self.assertEqual(device["driver"], "sim")
            self.assertTrue(device["id"].startswith("sim:"), device["id"])

    def test_what_is_given_is_told_and_the_rest_is_null(self):
        devices = devices_of(self.answer)
        for device in devices[:8]:
            self.assertEqual((device["model"], device["memory_total_mib"]), ("H100", 81920))
            self.assertEqual(device["live"]["temperature_c"], 45)
            self.assertEqual(device["live"]["power_limit_mw"], 700000)
            self.assertIsNone(device["live"]["utilization_gpu_pct"])
        for device in devices[8:11]:
            self.assertEqual(device["live"]["utilization_gpu_pct"], 35)
            self.assertEqual(device["live"]["memory_foreign_mib"], 10240)
            self.assertIsNone(device["live"]["temperature_c"])
            self.assertIsNone(device["live"]["power_mw"])

    def test_unknown_is_never_zero(self):
        for device in devices_of(self.answer):
            values = {**device, **device["live"]}
            zeros = {key for key, value in values.items()
                     if value is not None and value is not False and value == 0}
            self.assertLessEqual(zeros, ZEROS)
        lost = devices_of(self.answer)[11]["live"]
        self.assertEqual(lost["state"], "lost")
        self.assertEqual({key for key, value in lost.items() if value is not None},
                         KNOWN_WHEN_LOST)

    def test_the_table_is_labelled_and_shows_unknown_as_a_dash(self):
        result = program.run(*SIMULATED)
        self.assert_ended(result)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], r"^simulated: 2 nodes, 12 devices from .*two-nodes\.acre$")
        self.assertEqual(len(lines), 3 + 12)
        headings = lines[2].split()
        for line in lines[3:]:
            self.assertIn(" sim:", line)
        temperature = headings.index("TEMP")
        cells = re.split(r" {2,}", lines[14])
        self.assertEqual((cells[temperature], cells[-1]), ("-", "lost"))

    def test_bad_files_are_refused_with_their_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.acre")
            for text, status, message in (
                    ("node a\nnode a\n", 5, f"{path}:2: 'a'"),
                    ("node a\n    gpu 4 x H100 memory -1\n", 2, f"{path}:2: "),
                    ("nodes a\n", 2, f"{path}:1: 'nodes'")):
                with self.subTest(text=text):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    result = program.run("gpus", "--sim", path)
                    self.assert_ended(result, status, message)
                    self.assertEqual(result.stdout, "")
            self.assert_ended(program.run("gpus", "--sim", folder), 2, "is a directory")
            self.assert_ended(program.run("gpus", "--sim", path + "x"), 4, "No such file")


class Watch(program.TestCase):
    WORDS = [*SIMULATED, "--watch", "--count", "2", "--interval", "100ms"]

    def test_it_ends_after_the_given_number(self):
        result = program.run(*self.WORDS)
        self.assert_ended(result)
        self.assertEqual(len(re.findall(r"^simulated: ", result.stdout, re.M)), 2)
        self.assertEqual(result.stdout.count("sim:gpu-b/3"), 2)
        self.assertNotIn("\x1b", result.stdout)

    def test_json_is_a_document_a_line_with_rising_times(self):
        result = program.run(*self.WORDS, "--json")
        self.assert_ended(result)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(len(answers), 2)
        self.assertLess(answers[0]["time"], answers[1]["time"])
        self.assertTrue(all(answer["simulated"] for answer in answers))

    def test_a_terminal_is_redrawn_and_never_wider(self):
        for columns in (80, 140):
            result = program.on_terminal(*self.WORDS, columns=columns, rows=10)
            self.assert_ended(result)
            self.assertEqual(result.stdout.count("\x1b[H"), 2)
            lines = program.ESCAPE.sub("", result.stdout).splitlines()
            self.assertEqual(len(lines), 2 * 9)
            self.assertLessEqual(max(map(len, lines)), columns)


class Terminal(program.TestCase):
    def test_no_line_is_longer_than_the_terminal(self):
        for words in (SIMULATED, [*SIMULATED, "--processes"], ["gpus"]):
            for columns in (80, 140):
                with self.subTest(words=words, columns=columns):
                    result = program.on_terminal(*words, columns=columns)
                    self.assert_ended(result)
                    lines = program.ESCAPE.sub("", result.stdout).splitlines()
                    self.assertGreater(len(lines), 2)
                    self.assertLessEqual(max(map(len, lines)), columns, lines)
                    self.assertIn("STATE", result.stdout)

    def test_colours_are_for_terminals_that_want_them(self):
        for changes, coloured in (({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False),
                                  ({"TERM": "dumb"}, False), ({"TERM": None}, True)):
            for words in (SIMULATED, ["doctor"]):
                with self.subTest(changes=changes, words=words):
                    result = program.on_terminal(*words, **changes)
                    self.assertEqual("\x1b[" in result.stdout, coloured, result.stdout)
        self.assertNotIn("\x1b", program.run(*SIMULATED).stdout)
        self.assertNotIn("\x1b", program.run("doctor").stdout)


class ThisMachine(program.TestCase):
    def setUp(self):
        if has_gpu():
            self.skipTest("this machine has a GPU")

    def test_gpus_without_one_says_so_and_what_to_do(self):  # Must show 2
        result = program.run("gpus")
        self.assert_ended(result)
        self.assertIn("No GPU found. 'acre doctor' shows what was tried and what to do.",
                      result.stdout)
        self.assertNotIn("simulated", result.stdout)

    def test_nothing_is_simulated_unless_asked_for(self):  # DEV-4
        answer = json.loads(program.run("gpus", "--json").stdout)
        self.assertIs(answer["simulated"], False)
        for device in devices_of(answer):
            self.assertEqual((device["simulated"], device["kind"]), (False, "cpu"))

    def test_the_doctor_says_what_was_tried_and_what_to_do(self):  # DEV-5
        result = program.run("doctor")
        self.assert_ended(result)
        for tried in (r"nvml +tried +libnvidia-ml\.so\.1", r"amdgpu +tried +\S.*"):
            self.assertRegex(result.stdout, tried + r"\n +answer +\S.*\n +do +\S")
        self.assertRegex(result.stdout, r"\nverdict: no GPU on this machine")
        answer = json.loads(program.run("doctor", "--json").stdout)
        self.assertEqual((answer["gpus"], answer["problems"]), (0, 0))
        for finding in answer["findings"]:
            self.assertTrue(finding["tried"] and finding["answer"], finding)
