"""`acre simulate packing` from outside: answers, pictures, refusals, progress."""
import json
import os
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import program

COMMAND = ["simulate", "packing", "--nodes", program.NODES, "--tasks", program.TASKS,
           "--seeds", "3"]
SVG = "{http://www.w3.org/2000/svg}"

NODE_LINES = "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,4,H100\n"
TASK_LINES = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nt,4000,16384,1,500,\n"

# nodes, tasks (None: no such file; "/": a directory), exit status, message after the folder
BAD_FILES = [
    (None, TASK_LINES, 4, "/n.csv: No such file or directory"),
    (NODE_LINES, None, 4, "/t.csv: No such file or directory"),
    ("/", TASK_LINES, 2, "/n.csv: is a directory; accepted: a file"),
    (NODE_LINES, "/", 2, "/t.csv: is a directory; accepted: a file"),
    ("", TASK_LINES, 2, "/n.csv:1: the file is empty"),
    (NODE_LINES[:-1], TASK_LINES, 2, "/n.csv:2: the file is truncated"),
    (NODE_LINES + "a,1,1,1,\n", TASK_LINES, 2, "/n.csv:3: column 'sn': node 'a' appears twice"),
    (NODE_LINES.replace("4,H100", "65,H100"), TASK_LINES, 2, "/n.csv:2: column 'gpu': '65'"),
    (NODE_LINES, TASK_LINES.replace("500", "1001"), 2, "/t.csv:2: column 'gpu_milli': '1001'"),
    (NODE_LINES, TASK_LINES + "t,-1,1,1,500,\n", 2, "/t.csv:3: column 'cpu_milli': '-1'"),
    (NODE_LINES, TASK_LINES.replace("num_gpu", "gpus"), 2, "/t.csv:1: column 'num_gpu' is missing"),
    (NODE_LINES.replace("\na", "\n\x1b[31m"), TASK_LINES, 2,
     "/n.csv:2: invalid character '\\x1b' at byte 1"),
]


class Packing(program.TestCase):
    def check_answer(self, answer, strategy):
        self.assertEqual(list(answer), ["strategy", "seeds", "allocated_pct_at_100",
                                        "allocated_pct_end", "wall_s"])
        self.assertEqual((answer["strategy"], answer["seeds"]), (strategy, 3))
        for key in ("allocated_pct_at_100", "allocated_pct_end"):
            self.assertEqual(list(answer[key]), ["mean", "min", "max"])
            spread = answer[key]
            self.assertTrue(1 < spread["min"] <= spread["mean"] <= spread["max"] <= 100, spread)
        self.assertTrue(0 <= answer["wall_s"] < program.TIMEOUT_S)

    def test_json_has_the_documented_keys(self):
        result = program.run(*COMMAND, "--json")
        self.assert_ended(result)
        self.check_answer(json.loads(result.stdout), "least-fragmentation")

    def test_several_strategies_make_an_array_in_their_order(self):
        names = ["fgd", "least-fragmentation", "random"]
        result = program.run(*COMMAND, "--json", "--strategy", ",".join(names))
        self.assert_ended(result)
        answers = json.loads(result.stdout)
        self.assertEqual(len(answers), len(names))
        for name, answer in zip(names, answers):
            self.check_answer(answer, name)
            alone = json.loads(program.run(*COMMAND, "--json", "-s", name).stdout)
            del alone["wall_s"], answer["wall_s"]
            self.assertEqual(answer, alone)

    def test_the_table_has_the_figures_of_the_json(self):
        strategies = ["--strategy", "best-fit,random"]
        answers = json.loads(program.run(*COMMAND, *strategies, "--json").stdout)
        result = program.run(*COMMAND, *strategies)
        self.assert_ended(result)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[2].split("  ")[0], "STRATEGY")
        self.assertEqual(len(lines), 3 + len(answers))
        for answer, line in zip(answers, lines[3:]):
            cells = [answer["strategy"], "3"]
            for key in ("allocated_pct_at_100", "allocated_pct_end"):
                cells += [answer[key]["mean"], (answer[key]["min"], answer[key]["max"])]
            for cell, text in zip(cells, line.split()):
                if isinstance(cell, str):
                    self.assertEqual(text, cell)
                elif isinstance(cell, tuple):
                    for value, part in zip(cell, text.split("-")):
                        self.assertAlmostEqual(float(part), value, delta=0.006)
                else:
                    self.assertAlmostEqual(float(text), cell, delta=0.006)

    def test_seeds_decide_the_result(self):
        def mean(*more):
            return json.loads(program.run(*COMMAND, "--json", *more).stdout)["allocated_pct_end"]
        self.assertEqual(mean(), mean("--first-seed", "42"))
        self.assertNotEqual(mean(), mean("--first-seed", "43"))

    def test_an_unknown_strategy_is_refused(self):
        for names in ("none", "fgd,none", "", "fgd,", "x" * 100, ",".join(["random"] * 17)):
            with self.subTest(names=names):
                result = program.run(*COMMAND, "--strategy", names)
                self.assert_ended(result, 2, "strategy")
                self.assertEqual(result.stdout, "")

    def test_bad_files_are_refused_with_their_line(self):
        for nodes, tasks, status, message in BAD_FILES:
            with self.subTest(message=message), tempfile.TemporaryDirectory() as folder:
                for name, text in (("n.csv", nodes), ("t.csv", tasks)):
                    path = os.path.join(folder, name)
                    if text == "/":
                        os.mkdir(path)
                    elif text is not None:
                        with open(path, "w", encoding="utf-8", newline="") as file:
                            file.write(text)
                result = program.run("simulate", "packing", "--nodes", f"{folder}/n.csv",
                                     "--tasks", f"{folder}/t.csv")
                self.assert_ended(result, status, f"acre: {folder}{message}")
                self.assertEqual(result.stdout, "")
                self.assertNotIn("\x1b", result.stderr)


class Plot(program.TestCase):
    def test_the_plot_is_svg_with_a_line_a_strategy(self):
        names = ["least-fragmentation", "best-fit", "worst-fit"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plot.svg")
            for _ in range(2):  # the second replaces the first
                result = program.run(*COMMAND, "--strategy", ",".join(names), "--plot", path,
                                     "--json")
                self.assert_ended(result)
            self.assertEqual(os.listdir(folder), ["plot.svg"])
            root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual(len(root.findall(SVG + "polyline")), len(names))
        texts = [element.text for element in root.iter(SVG + "text")]
        for answer in json.loads(result.stdout):
            labels = [text for text in texts if text.startswith(answer["strategy"] + " ")]
            self.assertEqual(len(labels), 1, texts)
            self.assertAlmostEqual(float(labels[0].split()[1]),
                                   answer["allocated_pct_at_100"]["mean"], delta=0.006)

    def test_an_unwritable_plot_is_an_error_and_the_results_are_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, status, message in (
                    (f"{folder}/absent/plot.svg", 4, "No such file or directory"),
                    (folder, 2, "is a directory; accepted: a file"),
                    ("/dev/null", 2, "is not a regular file; accepted: a file")):
                with self.subTest(path=path):
                    result = program.run(*COMMAND, "--plot", path, "--json")
                    self.assert_ended(result, status, f"acre: {path}: {message}")
                    self.check_json(result.stdout)
            self.assertEqual(os.listdir(folder), [])

    def check_json(self, text):
        self.assertEqual(json.loads(text)["strategy"], "least-fragmentation")


class Terminal(program.TestCase):
    def test_progress_is_for_terminals(self):
        for words in ([], ["--json"]):
            result = program.on_terminal(*COMMAND, *words, stream="stderr")
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr, r"\A\rleast-fragmentation: seed 1 of 3, +\d+ %\x1b\[K")
            self.assertTrue(result.stderr.endswith("\r\x1b[K"), repr(result.stderr))
            self.assertNotIn("seed 1", result.stdout)
        self.assert_ended(program.on_terminal(*COMMAND, stream="stdout"))
        self.assert_ended(program.on_terminal(*COMMAND, "--quiet", stream="stderr"))
        self.assert_ended(program.run(*COMMAND))

    def test_the_table_fits_the_terminal(self):
        for columns in (70, 80, 140):
            result = program.on_terminal(*COMMAND, "-s", "least-fragmentation,random",
                                         columns=columns)
            self.assert_ended(result)
            lines = program.ESCAPE.sub("", result.stdout).splitlines()
            self.assertEqual(len(lines), 5, lines)
            for line in lines[2:] if columns < 80 else lines:
                self.assertLessEqual(len(line), columns, line)
            self.assertEqual("WALL" in result.stdout, columns >= 80)
