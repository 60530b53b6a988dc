"""Memory: what the jobs of one user take of the machine (SEC-2)."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit

SHARE = 0.01  # of the machine's memory: a limit that is reached in no time


def meminfo_mib(key):
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key + ":")) >> 10


def adjustment(pid):
    with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as file:
        return int(file.read())


def may_lower():
    """Root in a container may not."""
    return subprocess.run(["sh", "-c", "echo -900 > /proc/self/oom_score_adj"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def parent_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("PPid:"))


def memory_group(text):
    """The directory and the name of the limit, from the lines of /proc/PID/cgroup."""
    rows = [line.split(":", 2) for line in text.split() if line.count(":") >= 2]
    for _, controllers, path in rows:
        if "memory" in controllers.split(","):
            return "/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes"
    for number, _, path in rows:
        if number == "0" and os.path.exists("/sys/fs/cgroup" + path + "/memory.max"):
            return "/sys/fs/cgroup" + path, "memory.max"
    return None, None


class Memory(kit.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.daemon.run("policy", "set", f"default_memory={SHARE}")
        assert result.returncode == 0, result
        cls.limit_mib = int(meminfo_mib("MemTotal") * SHARE)

    def run_job(self, *words):
        """A job of mallory's from submission to its end."""
        number = self.mallory.submit(*words)
        return self.daemon.wait_for(number, "completed", "failed")

    def grow(self, mib, *words):
        """A job with a process that needs so much."""
        return self.run_job(*words, "--", "sh", "-c",
                            f"head -c {mib}M /dev/zero | tail -c {mib}M > /dev/null")

    def log_of(self, job):
        return self.mallory.acre("logs", str(job["id"])).stdout

    def need_groups(self):
        job = self.run_job("--memory", "64MiB", "--", "cat", "/proc/self/cgroup")
        directory, name = memory_group(self.log_of(job))
        if directory is None or "acre" not in directory:
            self.skipTest("no memory cgroups here")
        return os.path.dirname(directory), name

    def test_a_job_that_asks_for_no_memory_ends_at_the_default(self):
        self.need_groups()
        job = self.grow(self.limit_mib * 2)
        self.assertEqual(job["state"], "failed", job)
        self.assertEqual(job["exit"]["kind"], "out of memory", job["exit"])
        for words in ("ran out of memory", "the default", "--memory"):
            self.assertIn(words, job["exit"]["text"])

    def test_a_job_that_asks_for_more_than_the_default_gets_it(self):
        job = self.grow(self.limit_mib * 2, "--memory", f"{self.limit_mib * 3}MiB")
        self.assertEqual(job["state"], "completed", job)

    def test_files_in_tmp_are_memory_of_the_job(self):
        self.need_groups()
        job = self.run_job("--", "sh", "-c",
                           f"exec head -c {self.limit_mib * 2}M /dev/zero > /tmp/large")
        self.assertEqual(job["state"], "failed", job)

    def test_every_job_says_how_much_it_used(self):
        self.need_groups()
        text = f"head -c {self.limit_mib // 2}M /dev/zero > /tmp/large"
        job = self.run_job("--", "sh", "-c", text)
        self.assertEqual(job["state"], "completed", job)
        self.assertGreaterEqual(job["exit"]["peak_ram_mib"], self.limit_mib // 2)
        # The next one starts from nothing, in whatever group it runs.
        job = self.run_job("--", "true")
        self.assertLess(job["exit"]["peak_ram_mib"], self.limit_mib // 2)

    def test_a_job_after_one_that_ran_out_of_memory_has_all_of_its_own(self):
        self.need_groups()
        self.grow(self.limit_mib * 2)
        for _ in range(3):
            job = self.run_job("--", "false")
            self.assertEqual(job["exit"]["kind"], "exited", job["exit"])
            job = self.grow(self.limit_mib // 2)
            self.assertEqual(job["state"], "completed", job)

    def test_all_jobs_together_leave_room_for_the_system(self):
        parent, name = self.need_groups()
        job = self.run_job("--", "cat", "/proc/self/cgroup")
        directory, _ = memory_group(self.log_of(job))
        self.assertTrue(directory.startswith(parent + "/"), "not below the parent of all jobs")
        while not os.path.basename(parent).startswith("acre"):
            parent = os.path.dirname(parent)  # v2: run/ and plain/ are below it
        with open(os.path.join(parent, name), encoding="ascii") as file:
            limit = file.read().strip()
        self.assertTrue(limit.isdigit(), limit)
        total = meminfo_mib("MemTotal")
        self.assertLessEqual(int(limit) >> 20, total - min(512, total // 2))
        self.assertGreaterEqual(int(limit) >> 20, total // 2)

    def test_jobs_go_before_the_daemon_and_its_supervisors(self):
        number = self.mallory.submit("--", "sh", "-c", "echo $$; cat /proc/self/oom_score_adj; "
                                     "echo -1 > /proc/self/oom_score_adj || echo refused; "
                                     "exec sleep 600")
        said = self.eventually(lambda: self.mallory.acre("logs", number).stdout.split()[2:] and
                               self.mallory.acre("logs", number).stdout.split(), what="the job")
        pid = int(said[0])
        self.assertGreaterEqual(int(said[1]), 0)
        self.assertEqual(said[2], "refused")
        supervisor = parent_of(pid)
        self.assertNotEqual(supervisor, 1)
        for protected in (self.daemon.pid, supervisor, parent_of(supervisor)):
            most = -500 if may_lower() else adjustment(pid) - 100
            self.assertLess(adjustment(protected), most, f"of process {protected}")
        self.assertEqual(self.mallory.acre("cancel", number).returncode, 0)
