"""Whose files the daemon keeps its state in, and whose jobs it runs (SEC-2)."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit
import program

MIN_UID = 61002  # mallory's: alice's is below


class Places(kit.program.TestCase):
    """Nothing is kept where somebody else could have put, or could put, a link."""

    def setUp(self):
        kit.need_users()
        self.folder = tempfile.mkdtemp(prefix="acre-place-")
        os.chmod(self.folder, 0o755)
        self.state = os.path.join(self.folder, "state")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self, *names, mode=0o700, owner=0):
        path = os.path.join(self.folder, *names)
        os.mkdir(path)
        os.chmod(path, mode)
        os.chown(path, owner, owner)
        return path

    def refuse(self, *words, state=None):
        """The daemon does not start, and says why; nothing was made anywhere."""
        state = state or self.state
        try:
            result = subprocess.run(
                [program.ACRE, "serve", "--state", state, "--listen", "none", "--sim",
                 os.path.join(program.SOURCE, "examples/two-by-eight.acre"), "--socket",
                 os.path.join(self.folder, "sock")],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                check=False, timeout=kit.SECONDS,
                env=program.environment(ACRE_SERVER=None, ACRE_TOKEN=None))
        except subprocess.TimeoutExpired as error:
            self.fail(f"the daemon started: {error.stdout}")
        self.assertNotEqual(result.returncode, 0)
        for word in (state, *words):
            self.assertIn(word, result.stderr)

    def test_a_state_directory_of_somebody_else_is_refused(self):
        self.make("state", owner=kit.USERS["acre-mallory"])
        self.refuse("acre-mallory", "chown", "--state")
        self.assertEqual(os.listdir(self.state), [])

    def test_a_state_directory_that_others_may_write_to_is_refused(self):
        self.make("state", mode=0o777)
        self.refuse("chmod")
        self.assertEqual(os.listdir(self.state), [])

    def test_a_directory_that_is_used_for_something_else_is_left_as_it_is(self):
        self.make("state", mode=0o755)
        self.make(os.path.join("state", "passwords"))
        self.refuse("other files", "acre.db", "--state")
        self.assertEqual(os.listdir(self.state), ["passwords"])
        self.assertEqual(os.stat(self.state).st_mode & 0o7777, 0o755)

    def test_a_link_to_a_directory_is_refused(self):
        self.make("elsewhere")
        os.symlink("elsewhere", self.state)
        self.refuse("link")
        self.assertEqual(os.listdir(os.path.join(self.folder, "elsewhere")), [])

    def test_a_directory_below_one_of_somebody_else_is_refused(self):
        self.make("hers", mode=0o755, owner=kit.USERS["acre-mallory"])
        self.refuse("acre-mallory", state=os.path.join(self.folder, "hers", "state"))
        self.assertEqual(os.listdir(os.path.join(self.folder, "hers")), [])

    def test_a_directory_below_one_that_others_may_write_to_is_refused(self):
        self.make("open", mode=0o777)
        self.refuse("chmod", state=os.path.join(self.folder, "open", "state"))
        self.assertEqual(os.listdir(os.path.join(self.folder, "open")), [])

    def test_a_link_of_somebody_else_on_the_way_is_refused(self):
        self.make("open", mode=0o1777)
        self.make("target")
        link = os.path.join(self.folder, "open", "link")
        os.symlink(os.path.join(self.folder, "target"), link)
        os.chown(link, 61002, 61002, follow_symlinks=False)
        self.refuse("link", "acre-mallory", state=os.path.join(link, "state"))
        self.assertEqual(os.listdir(os.path.join(self.folder, "target")), [])

    def test_links_and_files_of_somebody_else_inside_are_refused(self):
        victim = os.path.join(self.folder, "victim")
        for name in ("acre.db", "acre.db-wal", "acre.db-lock", "engine.lock", "logs", "runs",
                     "facts"):
            with self.subTest(name=name):
                shutil.rmtree(self.state, ignore_errors=True)
                self.make("state")
                os.symlink(victim, os.path.join(self.state, name))
                self.refuse(name, "link")
                self.assertFalse(os.path.exists(victim))
                os.unlink(os.path.join(self.state, name))
                with open(os.path.join(self.state, name), "w", encoding="ascii"):
                    pass
                os.chown(os.path.join(self.state, name), 61002, 61002)
                self.refuse(name)

    def test_below_a_sticky_directory_and_through_roots_links_it_starts(self):
        self.make("sticky", mode=0o1777)
        self.make("real", mode=0o755)
        os.symlink("../real", os.path.join(self.folder, "sticky", "link"))
        daemon = kit.Daemon()
        daemon.options[1] = os.path.join(self.folder, "sticky", "link", "a", "state")
        with daemon:
            self.assertEqual(daemon.run("queue").returncode, 0)
        state = os.path.join(self.folder, "real", "a", "state")
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)


class Smallest(kit.TestCase):
    options = ("--min-uid", str(MIN_UID))

    def test_accounts_below_the_smallest_uid_run_no_jobs(self):
        refused = self.alice.acre("submit", "--", "true")
        self.assertNotEqual(refused.returncode, 0, refused)
        self.assertIn("61001 is below --min-uid 61002", refused.stderr)
        self.assert_runs(self.mallory)

    def test_nor_do_they_with_a_token(self):
        alice = self.daemon.user("acre-alice")
        job = alice.wait(alice.submit(command="true"), "completed", "failed")
        self.assertEqual(job["state"], "failed", job)
        for words in ("acre-alice", "61001", "--min-uid 61002"):
            self.assertIn(words, job["exit"]["text"])


class System(kit.TestCase):
    def test_accounts_of_the_system_run_no_jobs(self):
        daemon = kit.User("acre-mallory", self.daemon)
        daemon.uid = 1  # daemon's, on every Debian
        refused = daemon.acre("submit", "--", "true", cwd="/")
        self.assertNotEqual(refused.returncode, 0, refused)
        self.assertIn("--min-uid 1000", refused.stderr)
        self.assert_runs(self.mallory)


class Shared(kit.TestCase):
    options = ("--run-as", "acre-alice")

    def test_one_account_for_all_is_said_to_keep_nobody_apart(self):
        self.assertRegex(self.daemon.said(), r"level=warn.*run-as.*acre-alice")
        number = self.mallory.submit("--", "id", "-u", cwd="/")
        self.daemon.wait_for(number, "completed")
        self.assertEqual(self.mallory.acre("logs", number).stdout, "61001\n")
        self.assertIn("share", program.run("serve", "--help").stdout.split("--run-as", 1)[1][:300])
