"""Tokens: how many one user has, how long they are good, and what goes with one that is revoked."""
import json
import os
import re
import sqlite3
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kit
import api

# As mallory, over the socket: makes argv[2] tokens and revokes each at once.
CHURN = """
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
def ask(*words):
    connection.request(*words)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
connection = Unix("localhost")
for i in range(int(sys.argv[2])):
    status, made = ask("POST", "/tokens", "{}")
    assert status == 201, made
    status, gone = ask("DELETE", f"/tokens/{made['token']['id']}")
    assert status == 200, gone
"""


class First(kit.TestCase):
    def test_the_admins_token_is_in_a_file_of_roots_alone(self):
        path = os.path.join(self.daemon.state, "admin-token")
        self.eventually(lambda: path in self.daemon.said(), what=path)
        self.assertNotRegex(self.daemon.said(), r"acre_\d+_")
        status = os.stat(path)
        self.assertEqual((stat.S_IMODE(status.st_mode), status.st_uid), (0o600, 0))
        with open(path, encoding="ascii") as file:
            token = file.read()
        self.assertRegex(token, r"\Aacre_1_[\w-]{43}\n\Z")
        self.assertEqual(api.Client(self.daemon.port, token.strip()).get("/audit").status, 200)
        result = self.mallory.sh("cat", path)
        self.assertNotEqual(result.returncode, 0)

    def test_it_is_written_once_and_through_no_link(self):
        """Whoever gets something into an old state directory does not get the token."""
        other = kit.Daemon()
        try:
            target = os.path.join(other.folder, "target")
            os.mkdir(other.state, 0o700)
            os.symlink(target, os.path.join(other.state, "admin-token"))
            other.start()
            path = os.path.join(other.state, "admin-token")
            self.eventually(lambda: not os.path.islink(path), what="a file in place of the link")
            self.assertFalse(os.path.exists(target))
            os.unlink(path)
            other.stop()
            other.start()
            self.assertEqual(other.admin.get("/jobs").status, 200)
            self.assertFalse(os.path.exists(path), "a second admin's token")
        finally:
            other.__exit__()


class Limits(kit.TestCase):
    def setUp(self):
        self.daemon.run("policy", "set", "max_tokens=5")

    def good(self, user):
        rows = self.admin.get("/tokens?limit=1000").json["tokens"]
        return [row["id"] for row in rows if row["user"] == user.name and row["revoked"] is None]

    def test_a_user_has_so_many_tokens_and_no_more(self):
        for _ in range(5):
            self.assertEqual(self.alice.acre("token", "create").returncode, 0)
        refused = self.alice.acre("token", "create")
        self.assertNotEqual(refused.returncode, 0, refused)
        for part in ("max_tokens", "5", "acre token revoke"):
            self.assertIn(part, refused.stderr)
        token = self.alice.acre("token", "revoke", str(self.good(self.alice)[0]))
        self.assertEqual(token.returncode, 0, token)
        self.assertEqual(self.alice.acre("token", "create").returncode, 0)
        for _ in range(3):  # an admin decides for himself
            self.assertEqual(self.daemon.run("token", "create", "-u", "acre-alice").returncode, 0)
        self.assertEqual(len(self.good(self.alice)), 8)

    def test_nor_does_making_and_revoking_fill_the_daemon(self):
        churn = self.mallory.python(CHURN, self.daemon.socket, "60")
        self.assertEqual(churn.returncode, 0, churn)
        rows = self.admin.get("/tokens?limit=1000").json["tokens"]
        rows = [row for row in rows if row["user"] == "acre-mallory"]
        self.assertLess(len(rows), 50)
        self.assertGreater(len(rows), 0, "the last ones are still listed")
        database = sqlite3.connect(f"file:{self.daemon.state}/acre.db?mode=ro", uri=True)
        count = database.execute("SELECT count(*) FROM tokens WHERE user = 'acre-mallory'")
        self.assertLess(count.fetchone()[0], 50)
        database.close()
        newest = max(row["id"] for row in rows)
        self.daemon.stop()
        self.daemon.start()
        made = self.admin.post("/tokens", {"user": "x"}).json["token"]["id"]
        self.assertGreater(made, newest, "numbers are not given twice")


class Children(kit.TestCase):
    def client(self, answer):
        self.assertEqual(answer.status, 201, answer)
        return api.Client(self.daemon.port, answer.json["secret"]), answer.json["token"]

    def ports(self):
        """One of each start so far."""
        return list(map(int, re.findall(r"tcp=127\.0\.0\.1:(\d+)", self.daemon.said())))

    def mine(self, **fields):
        return self.client(self.admin.post("/tokens", {"user": "acre-alice", **fields}))

    def test_a_token_makes_none_that_is_good_for_longer(self):
        parent, shown = self.mine(expires="1h")
        child, made = self.client(parent.post("/tokens", {}))
        self.assertEqual((made["expires"], made["parent"]), (shown["expires"], shown["id"]))
        for expires in ("2h", "2099-01-01T00:00:00Z"):
            answer = parent.post("/tokens", {"expires": expires})
            self.assert_problem(answer, 403, "expires", shown["expires"])
        self.assertEqual(self.client(child.post("/tokens", {}))[1]["expires"], shown["expires"])
        shorter = self.client(parent.post("/tokens", {"expires": "10m"}))[1]
        self.assertLess(shorter["expires"], shown["expires"])

    def test_nor_one_with_a_higher_role_admins_included(self):
        for role in ("user", "operator"):
            parent, _ = self.mine(role=role)
            self.assert_problem(parent.post("/tokens", {"role": "admin"}), 403, "role")
        admin, shown = self.mine(role="admin", expires="1h")
        made = self.client(admin.post("/tokens", {"user": "bob"}))[1]
        self.assertEqual(made["expires"], shown["expires"])
        self.assert_problem(admin.post("/tokens", {"user": "bob", "expires": "2h"}), 403)

    def test_who_is_known_by_the_socket_has_no_parent(self):
        result = self.alice.acre("token", "create", "--json")
        self.assertEqual(json.loads(result.stdout)["token"]["parent"], None)
        over = api.Client(self.daemon.socket, json.loads(result.stdout)["secret"])
        self.assertEqual(over.post("/tokens", {}).json["token"]["parent"],
                         json.loads(result.stdout)["token"]["id"])

    def test_what_a_token_made_is_revoked_with_it(self):
        parent, top = self.mine()
        child, second = self.client(parent.post("/tokens", {}))
        grandchild, third = self.client(child.post("/tokens", {}))
        brother, _ = self.client(parent.post("/tokens", {}))
        stranger, other = self.mine()
        result = self.daemon.run("token", "revoke", str(second["id"]))
        self.assertEqual(result.returncode, 0, result)
        self.assertIn(str(third["id"]), result.stdout)
        for client, status in ((parent, 200), (child, 401), (grandchild, 401), (brother, 200),
                               (stranger, 200)):
            self.assertEqual(client.get("/jobs").status, status)
        answer = parent.ask("DELETE", f"/tokens/{top['id']}")  # itself, and what is left of them
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(len(answer.json["descendants"]), 1)
        self.assertEqual([client.get("/jobs").status for client in (brother, stranger)], [401, 200])
        rows = self.admin.get("/audit?limit=1000&action=token%20revoked").json["audit"]
        details = {row["target"]: row["detail"] for row in rows}
        self.assertRegex(details[f"token:{third['id']}"], rf"created with token:{second['id']}\b")
        self.assertNotIn(f"token:{other['id']}", details)
        before = self.ports()
        self.daemon.stop()
        self.daemon.start()
        self.eventually(lambda: len(self.ports()) > len(before), what="the line with the port")
        for client, status in ((brother, 401), (stranger, 200)):
            client.target = self.ports()[-1]
            self.assertEqual(client.get("/jobs").status, status)
