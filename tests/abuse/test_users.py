"""What holds for users by default (SEC-2): a job is its user's, and root's things are root's."""
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit


class Users(kit.TestCase):
    def test_a_job_runs_as_the_user_who_submitted_it(self):
        number = self.mallory.submit("--", "sh", "-c", "id -u; id -g; id -G")
        self.daemon.wait_for(number, "completed")
        log = self.mallory.acre("logs", number)
        self.assertEqual(log.stdout.split(), [str(self.mallory.uid)] * 3, log)

    def test_a_uid_without_an_account_is_nobody(self):
        """A user may have thousands of them (/etc/subuid), and limits are of one user."""
        for uid in (100001, 33):  # and one of the system
            ghost = kit.User(self.mallory.name, self.daemon)
            ghost.uid = uid
            statuses, answer = ghost.ask("POST", "/jobs", {"command": "true"})
            self.assertEqual(statuses, {401: 1}, answer)
            self.assertIn(f"uid {uid}", answer["detail"])
            statuses, answer = ghost.ask("GET", "/jobs")
            self.assertEqual(statuses, {401: 1}, answer)

    def test_uids_without_an_account_have_the_places_of_one(self):
        """Otherwise twenty of them would fill the socket."""
        most = self.daemon.json("policy")["max_connections"]

        def as_ghosts():
            """Half of what one may have, for each of four; what the last of each hears."""
            statuses, clients = [], []
            for uid in range(200001, 200005):
                os.setresuid(uid, uid, 0)
                for _ in range(most // 2):
                    clients.append(socket.socket(socket.AF_UNIX))
                    clients[-1].settimeout(kit.SECONDS)
                    clients[-1].connect(self.daemon.socket)
                clients[-1].send(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
                statuses.append(clients[-1].recv(4096).split(b" ")[1].decode())
                os.setresuid(0, 0, 0)
            return statuses
        ghosts = kit.User(self.mallory.name, self.daemon)
        ghosts.uid = 0
        self.assertEqual(ghosts.run(as_ghosts), ["200", "200", "429", "429"])

    def test_the_state_is_closed_to_users(self):
        for name in ("", "/acre.db", "/logs", "/runs"):
            result = self.mallory.sh("ls", self.daemon.state + name)
            self.assertNotEqual(result.returncode, 0, result)

    def test_others_jobs_and_logs_are_not_for_users(self):
        number = self.alice.submit("--", "sh", "-c", "echo secret")
        self.daemon.wait_for(number, "completed")
        self.assertNotEqual(self.mallory.acre("cancel", number).returncode, 0)
        log = self.mallory.acre("logs", number)
        self.assertNotEqual(log.returncode, 0, log)
        self.assertNotIn("secret", log.stdout)
