"""What each node has, which is best and how GPUs are loaded: the real daemon, simulated nodes."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon

# CAP-6: one GPU with 4 of 8 GiB free, and two with 4 of 8 GiB free each.
VECTOR = """
node one cpus 8 ram 16GiB labels name=one
    gpu 1 x T4 memory 8GiB vendor NVIDIA used 4GiB utilization 90
node two cpus 8 ram 16GiB labels name=two
    gpu 2 x MI210 memory 8GiB vendor AMD used 4GiB utilization 5
node plain cpus 8 ram 16GiB labels name=plain
"""


class Idle(daemon.TestCase):
    def test_a_report_of_each_node(self):
        answer = self.daemon.json("nodes", "--capacity")
        self.assertEqual([node["name"] for node in answer["nodes"]], ["gpu-a", "gpu-b"])
        for node in answer["nodes"]:
            self.assertEqual(node["devices"], 8)
            self.assertEqual(node["total_mib"], 8 * 81920)
            self.assertEqual(node["backend"], "cuda")
            self.assertFalse(node["stale"])
            self.assertTrue(node["simulated"])
        self.assertEqual(answer["statistics"]["devices"], 16)
        shown = self.daemon.run("nodes", "--capacity")
        self.assertRegex(shown.stdout, r"(?m)^gpu-b +ok .* of 640 GiB .*SIMULATED")
        self.assertRegex(shown.stdout, r"(?m)^2 nodes, 2 with room; 16 GPUs, ")

    def test_jobs_change_the_report_at_once(self):
        def report():
            nodes = self.daemon.json("nodes", "--capacity")["nodes"]
            return {node["name"]: node for node in nodes}
        before = report()["gpu-b"]
        number = self.daemon.submit("--gpus", "2", "--label", "rack=r2", "--", "sleep", "600")
        self.daemon.wait_for(number, "running")
        held = report()["gpu-b"]
        self.assertEqual(held["available_mib"], before["available_mib"] - 2 * 81920)
        self.assertEqual(held["queue_depth"], before["queue_depth"] + 1)
        self.assertEqual((held["usage_pct"], held["score"]), (25.0, 73.0))
        self.assertEqual(self.daemon.run("nodes", "--best", "-q").stdout, "gpu-a\n")
        near = self.daemon.json("nodes", "--best", "--near", "gpu-b")
        self.assertEqual((near["node"]["name"], near["is_near"]), ("gpu-b", True))
        self.daemon.run("cancel", number)
        self.daemon.wait_for(number, "canceled")
        self.assertEqual(report()["gpu-b"]["available_mib"], before["available_mib"])

    def test_the_best_node_and_why(self):
        result = self.daemon.run("nodes", "--best", "--memory", "20GiB", "--model", "h100",
                                 "--vendor", "nvidia", "--label", "rack=r2")
        self.assert_ended(result)
        self.assertRegex(result.stdout, r"^gpu-b SIMULATED\n  why +the highest score that fits: ")
        self.assert_ended(self.daemon.run("nodes", "--best", "--memory", "81GiB"), 6,
                          "no GPU that fits has 81 GiB free: 2 nodes, 0 stale; the largest free "
                          "device has 80 GiB; nodes without GPUs are not allowed")
        self.assert_ended(self.daemon.run("nodes", "--best", "--model", "a100"), 6,
                          "of 2 with enough memory, 0 lack a label and 2 lack such a GPU")
        self.assert_ended(self.daemon.run("nodes", "--best", "--near", "gpu-z"), 4, "'gpu-z'")
        self.assert_ended(self.daemon.run("nodes", "--best", "--memory", "lots"), 2, "'lots'")
        self.assert_ended(self.daemon.run("nodes", "--best", "--model", "a,,b"), 2, "'a,,b'")
        self.assert_ended(self.daemon.run("nodes", "--memory", "1GiB"), 2, "add --best")
        self.assert_ended(self.daemon.run("nodes", "--best", "--capacity"), 2, "choose one")

    def test_unknown_utilization_is_unknown(self):
        answer = self.daemon.json("balance")
        self.assertEqual([gpu["utilization"] for gpu in answer["gpus"]], [None] * 16)
        self.assertEqual([gpu["load"] for gpu in answer["gpus"]], [None] * 16)
        self.assertIsNone(answer["advice"]["urgency"])
        self.assertEqual(answer["advice"]["unknown"], 16)
        self.assertIn("0 of 16 GPUs can be judged", self.daemon.run("balance").stdout)
        self.assertIsNone(self.daemon.json("balance", "-s", "weighted")["choice"]["gpu"])
        chosen = self.daemon.run("balance", "-s", "least-loaded", "--node", "gpu-b", "-q")
        self.assertRegex(chosen.stdout, r"^sim:gpu-b/\d\n$")


class Vector(daemon.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile("w", suffix=".acre", encoding="utf-8")
        cls.file.write(VECTOR)
        cls.file.flush()
        cls.sim = cls.file.name
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.file.close()

    def test_statistics(self):
        numbers = []
        for node, count in (("one", 2), ("two", 3)):
            for _ in range(count):
                numbers.append(self.daemon.submit("--gpus", "0", "--cpus", "1", "--label",
                                                  f"name={node}", "--", "sleep", "600"))
        for number in numbers:
            self.daemon.wait_for(number, "running")
        answer = self.daemon.json("nodes", "--capacity")
        self.assertEqual(answer["statistics"],
                         {"nodes": 3, "capable_nodes": 2, "devices": 3, "total_mib": 24576,
                          "available_mib": 12288, "queue_depth": 5, "average_queue": 2.5})
        self.assertEqual({node["name"]: (node["usage_pct"], node["score"], node["backend"])
                          for node in answer["nodes"]},
                         {"one": (50.0, 46.0, "cuda"), "two": (50.0, 44.0, "hip"),
                          "plain": (0.0, 0.0, "cpu")})
        self.daemon.run("cancel", *numbers)

    def test_a_node_without_gpus_is_the_last_resort(self):
        asked = ("nodes", "--best", "--memory", "5GiB")
        self.assert_ended(self.daemon.run(*asked), 6, "not allowed")
        result = self.daemon.run(*asked, "--cpu")
        self.assert_ended(result)
        self.assertIn("plain SIMULATED\n", result.stdout)
        self.assertIn("a node without GPUs is allowed", " ".join(result.stdout.split()))

    def test_advice_and_choice(self):
        answer = self.daemon.json("balance", "--strategy", "weighted")
        self.assertEqual([gpu["load"] for gpu in answer["gpus"]], [0.42, 0.165, 0.165])
        self.assertEqual(answer["advice"]["urgency"], "low")
        self.assertEqual((answer["advice"]["max"], answer["advice"]["min"]), (0.42, 0.165))
        self.assertEqual(answer["choice"]["gpu"], "sim:two/0")
        self.assertFalse(answer["choice"]["fallback"])
        after = self.daemon.run("balance", "-s", "round-robin", "--last", "sim:two/0", "-q")
        self.assertEqual(after.stdout, "sim:two/1\n")
        again = self.daemon.run("balance", "-s", "round-robin", "--last", "sim:two/1", "-q")
        self.assertEqual(again.stdout, "sim:one/0\n")
        kept = self.daemon.run("balance", "-s", "affinity-first", "--affinity", "sim:one/0", "-q")
        self.assertEqual(kept.stdout, "sim:one/0\n")
        full = self.daemon.run("balance", "-s", "weighted", "--memory", "6GiB")
        self.assertIn("as a fallback", full.stdout)
        self.assert_ended(self.daemon.run("balance", "--memory", "1GiB"), 2, "add --strategy")
        self.assert_ended(self.daemon.run("balance", "--node", "x"), 4, "no node 'x'")
        self.assert_ended(self.daemon.run("balance", "-s", "weighted", "--affinity", "x"), 4,
                          "affinity: there is no GPU 'x'")
