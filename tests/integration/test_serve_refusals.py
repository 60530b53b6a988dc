"""What the daemon refuses, and that it says so (SEC-1, SEC-3): bad input, wrong callers, limits,
full disks, damage. Nothing is lost by any of it."""
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api
import daemon
import program

ROLES = ["viewer", "user", "operator", "admin"]


class BadInput(api.TestCase):
    def test_bodies(self):
        deep = "[" * 100000 + "]" * 100000
        for raw, status, part in [
                (b"", 400, "command"), (b"{", 400, ""), (b"[]", 400, ""), (b"null", 400, ""),
                (b'{"command": "x", "command": "y"}', 400, "command"),
                (b'{"command": "a\\u0000b"}', 400, ""), (b'{"command": "\xff"}', 400, ""),
                (b'{"command": "x"} trailing', 400, ""),
                (b'{"command": "x", "colour": "red"}', 400, "colour"),
                (b'{"command": "x", "gpus": "many"}', 400, "gpus"),
                (b'{"command": "x", "gpus": 0}', 400, "gpus: 0"),
                (b'{"command": "x", "gpus": 1000000000}', 400, "gpus: 1000000000"),
                (b'{"command": "x", "gpus": 0.05}', 400, "gpus: 0.05"),
                (b'{"command": "x", "gpus": 1e400}', 400, ""),
                (b'{"command": ""}', 400, "command: empty"),
                (b'{"command": "x", "after": ["999999"]}', 404, "999999"),
                (f'{{"command": {deep}}}'.encode(), 413, "nested too deep"),
                (b'{"command": "' + b"x" * (10 << 20) + b'"}', 413, "")]:
            with self.subTest(raw=raw[:60]):
                try:
                    answer = self.admin.ask("POST", "/jobs", raw=raw)
                except (BrokenPipeError, ConnectionResetError):
                    self.assertEqual(status, 413)  # told and cut before all was sent
                    continue
                self.assert_problem(answer, status, part)
        self.assertEqual(self.admin.get("/jobs?all=1").json["jobs"], [])

    def test_jobs_that_are_not_there(self):
        for method, path in [("GET", "/jobs/99"), ("DELETE", "/jobs/99"), ("GET", "/jobs/x"),
                             ("GET", "/jobs/99/logs"), ("GET", "/jobs/99/why"),
                             ("POST", "/jobs/99/hold"), ("DELETE", "/queue/0"),
                             ("GET", "/jobs/18446744073709551616"), ("POST", "/jobs/99/complete"),
                             ("DELETE", "/reservations/99"), ("DELETE", "/tokens/99")]:
            with self.subTest(path=path):
                body = {} if method == "POST" else None
                self.assert_problem(self.admin.ask(method, path, body), 404)
        self.assert_problem(self.admin.get("/nothing/here"), 404)
        answer = self.admin.ask("PUT", "/jobs")
        self.assert_problem(answer, 405)
        self.assertEqual(set(answer.headers["Allow"].split(", ")), {"GET", "HEAD", "POST"})

    def test_states_that_do_not_allow_it(self):
        number = self.admin.submit(command="sleep 600")
        self.admin.wait(number, "running")
        self.assert_problem(self.admin.ask("PATCH", f"/jobs/{number}/priority", {"priority": 1}),
                            409, f"job {number}")
        self.assert_problem(self.admin.post(f"/jobs/{number}/hold"), 409)
        self.assert_problem(self.admin.post(f"/jobs/{number}/release"), 409)
        self.admin.ask("DELETE", f"/jobs/{number}")
        self.admin.wait(number, "canceled")
        self.assert_problem(self.admin.ask("DELETE", f"/jobs/{number}"), 409, "has already ended")

    def test_refusals_are_in_the_audit_trail(self):
        self.admin.ask("POST", "/jobs", {"command": "x", "gpus": 0})
        rows, deadline = [], time.monotonic() + api.TIMEOUT_S
        while not rows and time.monotonic() < deadline:  # a refusal is told before it is recorded
            rows = [row for row in self.admin.get("/audit?action=POST").json["audit"]
                    if "gpus: 0" in row["detail"]]
        row = rows[0]
        self.assertEqual((row["result"], row["target"]), ("INVALID", "/jobs"))
        self.assertTrue(row["origin"].startswith("unix:"))
        self.assertTrue(row["actor"].startswith("user:"))


class Callers(api.TestCase):
    """Every route of the table, as nobody, with too small a role, and as somebody else."""
    options = ("--failures", "1000")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = cls.daemon.port
        cls.clients = {role: cls.daemon.user(f"a-{role}", role) for role in ROLES}
        cls.nobody = api.Client(cls.port)
        document = cls.admin.get("/openapi.json").json
        cls.routes = [(method.upper(), path, row["x-acre-role"], row)
                      for path, rows in document["paths"].items() for method, row in rows.items()]

    def call(self, client, method, path, number="1"):
        path = path.replace("{id}", str(number)).replace("{name}", "x").replace("{who}", "user:x")
        return client.ask(method, path, {} if method in ("POST", "PUT", "PATCH") else None)

    def test_the_table_is_complete(self):
        self.assertGreaterEqual(len(self.routes), 50)
        self.assertEqual({role for _, _, role, _ in self.routes}, {"none", *ROLES})

    def test_nobody_gets_nothing(self):
        for method, path, role, _ in self.routes:
            with self.subTest(route=f"{method} {path}"):
                answer = self.call(self.nobody, method, path)
                if role == "none":
                    self.assertEqual(answer.status, 200)
                else:
                    self.assert_problem(answer, 401, "token")
                    self.assertIn("Bearer", answer.headers["WWW-Authenticate"])

    def test_a_smaller_role_is_not_enough(self):
        for method, path, role, _ in self.routes:
            for smaller in ROLES[:ROLES.index(role)] if role in ROLES else []:
                with self.subTest(route=f"{method} {path}", role=smaller):
                    self.assert_problem(self.call(self.clients[smaller], method, path), 403, role)

    def test_a_sufficient_role_is_let_in(self):
        for method, path, role, _ in self.routes:
            if role != "none" and path not in ("/events", "/orchestrator/stop"):
                with self.subTest(route=f"{method} {path}"):
                    answer = self.call(self.clients[role], method, path, number=999999)
                    self.assertNotIn(answer.status, (401, 403), answer)

    def test_somebody_elses_job_is_not_touched(self):
        number = self.admin.post("/jobs", {"command": "sleep 600; echo secret", "hold": True,
                                           "array": "0-0"}).json["array"]
        other = self.clients["user"]
        touched = []
        for method, path, role, _ in self.routes:
            if not path.startswith(("/jobs/{id}", "/queue/{id}", "/arrays/{id}")) or role != "user":
                continue
            with self.subTest(route=f"{method} {path}"):
                body = {"priority": 1} if path.endswith("priority") else {}
                path = path.replace("{id}", str(number))
                answer = other.ask(method, path, body if method in ("POST", "PATCH") else None)
                self.assertIn(answer.status, (403, 409), answer)
                if answer.status == 403:
                    self.assertIn("belongs to", answer.json["detail"])
                touched.append(path)
        self.assertGreaterEqual(len(touched), 12)
        self.assertEqual(self.admin.job(number)["state"], "queued")
        self.assertEqual(other.get(f"/jobs/{number}").status, 200)  # seeing it is allowed
        self.assertEqual(self.clients["operator"].ask("DELETE", f"/jobs/{number}").status, 202)

    def test_own_jobs(self):
        mine = self.clients["user"]
        number = mine.submit(command="true", hold=True)
        self.assertEqual(mine.job(number)["user"], "a-user")
        self.assertEqual(mine.post(f"/jobs/{number}/release").status, 200)
        mine.wait(number, "completed", "failed")
        self.assertEqual(mine.get(f"/jobs/{number}/logs").status, 200)
        self.assert_problem(mine.post("/jobs", {"command": "true", "priority": 4}), 403,
                            "operator")
        self.assert_problem(mine.post("/jobs", {"command": "true", "project": "other"}), 403,
                            "other")

    def test_tokens(self):
        mine = self.clients["user"]
        self.assert_problem(mine.post("/tokens", {"role": "admin"}), 403, "higher than your own")
        self.assert_problem(mine.post("/tokens", {"user": "bob"}), 403, "requires the admin role")
        made = mine.post("/tokens", {"note": "second", "expires": "1h"})
        self.assertEqual(made.status, 201, made)
        second = api.Client(self.port, made.json["secret"])
        self.assertEqual(second.get("/jobs").status, 200)
        self.assertEqual(api.Client(self.port, made.json["secret"], "X-Auth-Token")
                         .get("/jobs").status, 200)
        seen = mine.get("/tokens").json["tokens"]
        self.assertEqual({token["user"] for token in seen}, {"a-user"})
        self.assertNotIn("secret", json.dumps(seen))
        number = made.json["token"]["id"]
        self.assertEqual(mine.ask("DELETE", f"/tokens/{number}").status, 200)
        self.assert_problem(second.get("/jobs"), 401)
        self.assert_problem(mine.ask("DELETE", f"/tokens/{number}"), 409)
        self.assert_problem(mine.ask("DELETE", "/tokens/1"), 404)  # the admin's, not yours
        self.assert_problem(mine.post("/tokens", {"expires": "2001-01-01T00:00:00Z"}), 400,
                            "expires")

    def test_bad_tokens(self):
        good = self.clients["viewer"].token
        for token in ["", "x", "acre_", "acre_1_", "acre_99999_" + "A" * 43, good[:-1], good + "A",
                      good.replace("acre_", "acre_0"), "acre_1_" + "A" * 43, "A" * 4000]:
            with self.subTest(token=token[:60]):
                self.assert_problem(api.Client(self.port, token).get("/jobs"), 401)

    def test_an_expired_token(self):
        brief = self.daemon.user("brief", expires="3s")
        self.assertEqual(brief.get("/jobs").status, 200)
        answer, deadline = brief.get("/jobs"), time.monotonic() + api.TIMEOUT_S
        while answer.status == 200 and time.monotonic() < deadline:
            time.sleep(0.1)
            answer = brief.get("/jobs")
        self.assert_problem(answer, 401)


class Limits(api.TestCase):
    options = ("--rate", "20", "--failures", "5", "--connections", "40")

    def test_too_many_requests(self):
        client = self.daemon.user("busy", "viewer")
        statuses = [client.get("/version").status for _ in range(5)]
        self.assertEqual(set(statuses), {200})
        answers = [client.get("/jobs") for _ in range(60)]
        refused = [answer for answer in answers if answer.status == 429]
        self.assertTrue(refused)
        self.assert_problem(refused[0], 429)
        self.assertGreaterEqual(int(refused[0].headers["Retry-After"]), 1)
        other = self.daemon.user("calm", "viewer")
        self.assertEqual(other.get("/jobs").status, 200)

    def test_slow_clients_do_not_keep_others_waiting(self):
        slow = []
        try:
            for _ in range(30):
                client = socket.socket(socket.AF_UNIX)
                client.connect(self.daemon.socket)
                client.sendall(b"POST /jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
                slow.append(client)
            began = time.monotonic()
            self.assertEqual(self.admin.get("/health/live").status, 200)
            self.assertLess(time.monotonic() - began, 8)
        finally:
            for client in slow:
                client.close()


class Guessing(api.TestCase):
    options = ("--failures", "5")

    def test_guessing_is_slowed_down(self):
        statuses = [api.Client(self.daemon.port, f"acre_1_{i:043d}").get("/jobs").status
                    for i in range(12)]
        self.assertEqual(statuses[:5], [401] * 5)
        self.assertEqual(statuses[-1], 429)


class Starting(unittest.TestCase):
    """What makes `acre serve` refuse to start, and what it says."""

    def serve(self, *arguments, **changes):
        return program.run("serve", "--listen", "none", "--sim", daemon.NODES, *arguments,
                           **changes)

    def test_a_second_daemon_on_the_same_state(self):
        with api.Daemon() as one:
            with tempfile.TemporaryDirectory() as folder:
                result = self.serve("--state", os.path.join(one.folder, "state"), "--socket",
                                    os.path.join(folder, "s"))
            self.assertEqual(result.returncode, 5, result)
            self.assertIn(str(one.child.pid), result.stderr)
            self.assertEqual(one.admin.get("/health/ready").status, 200)

    def test_a_corrupt_database(self):
        with api.Daemon() as one:
            number = one.admin.submit(command="true", hold=True)
            one.stop()
            path = os.path.join(one.folder, "state", "acre.db")
            with open(path, "r+b") as file:
                file.write(b"this is not a database at all, not in the least")
            state = os.path.join(one.folder, "state")
            result = self.serve("--state", state)
            self.assertEqual(result.returncode, 14, result)
            self.assertIn("acre.db", result.stderr)
            self.assertIn("Restore it from a backup", result.stderr)
            self.assertGreater(number, 0)

    def test_a_changed_row(self):
        with api.Daemon() as one:
            number = one.admin.submit(command="true", hold=True)
            one.stop()
            path = os.path.join(one.folder, "state", "acre.db")
            with sqlite3.connect(path) as database:
                database.execute("UPDATE jobs SET detail = '{\"held\": \"maybe\"}'")
            database.close()
            result = self.serve("--state", os.path.join(one.folder, "state"))
            self.assertEqual(result.returncode, 14, result)
            self.assertIn(f"job {number} in the store: held", result.stderr)

    def test_a_state_directory_that_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            with open(path, "w", encoding="utf-8"):
                pass
            result = self.serve("--state", os.path.join(path, "state"))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(path, result.stderr)

    @unittest.skipIf(os.geteuid() != 0, "mounting needs root")
    def test_a_read_only_state_directory(self):
        folder = tempfile.mkdtemp()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            os.rmdir(folder)
            self.skipTest("nothing can be mounted here")
        try:
            result = self.serve("--state", folder, "--socket", "/nonexistent")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(folder, result.stderr)
            self.assertIn("Read-only file system", result.stderr)
        finally:
            subprocess.run(["umount", folder], check=False)
            os.rmdir(folder)

    def test_settings_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "acre.conf")
            with open(config, "w", encoding="utf-8") as file:
                file.write("rate = 10\nspeed = high\n")
            for arguments, code, part in [
                    (["--rate", "none"], 2, "--rate: 'none'"),
                    (["--log-level", "loud"], 2, "log-level: unknown level 'loud'"),
                    (["--sample", "5"], 2, "--sample"), (["--tls-cert", "x"], 2, "tls-key"),
                    (["--config", config], 2, f"{config}:2: unknown setting 'speed'"),
                    (["--config", "/nonexistent"], 4, "/nonexistent"),
                    (["--policy", "/nonexistent"], 4, "/nonexistent"),
                    (["--sim", "/nonexistent"], 4, "/nonexistent"),
                    (["--engine", "nope"], 2, "unknown engine 'nope'; accepted: local, "),
                    (["--listen", "nowhere:x"], 2, "nowhere"), (["--speed", "9"], 2, "--speed")]:
                with self.subTest(arguments=arguments):
                    result = self.serve("--state", os.path.join(folder, "state"),
                                        *arguments) if arguments[0] != "--listen" else \
                        program.run("serve", "--state", os.path.join(folder, "state"), *arguments)
                    self.assertEqual(result.returncode, code, result)
                    self.assertIn(part, result.stderr)
            result = self.serve("--state", os.path.join(folder, "state"), ACRE_RATE="0")
            self.assertEqual(result.returncode, 2)
            self.assertIn("ACRE_RATE", result.stderr)


@unittest.skipIf(os.geteuid() != 0, "a small disk needs root to be mounted")
class FullDisk(unittest.TestCase):
    def test_a_full_disk_loses_nothing_and_is_survived(self):
        disk = tempfile.mkdtemp()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            os.rmdir(disk)
            self.skipTest("nothing can be mounted here")
        one = api.Daemon()
        one.options[1] = os.path.join(disk, "state")
        try:
            one.start()
            admin = one.admin
            acknowledged, refused = [], None
            for _ in range(500):
                answer = admin.post("/jobs", {"command": "x" * 20000, "hold": True})
                if answer.status != 201:
                    refused = answer
                    break
                acknowledged.append(answer.json["job"]["id"])
            self.assertIsNotNone(refused)
            self.assertIn(refused.status, (503, 507), refused)
            self.assertIn("cannot record the change", refused.json["detail"])
            self.assertIn("full", refused.json["detail"])
            self.assertTrue(acknowledged)
            answer = admin.post("/jobs", {"command": "true"})
            self.assertIn(answer.status, (503, 507), answer)
            ready = admin.get("/health/ready")
            self.assertEqual(ready.status, 503)
            self.assertEqual(admin.get("/health/live").status, 200)
            seen = set()  # reading goes on
            cursor = "0"
            while cursor is not None:
                page = admin.get(f"/jobs?limit=1000&cursor={cursor}").json
                seen |= {job["id"] for job in page["jobs"]}
                cursor = page["next"]
            self.assertEqual(seen, set(acknowledged))
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            deadline = time.monotonic() + api.TIMEOUT_S
            while admin.get("/health/ready").status != 200 and time.monotonic() < deadline:
                time.sleep(0.05)
            number = admin.submit(command="true", hold=True)
            self.assertGreater(number, max(acknowledged))
            one.child.kill()
            one.child.wait()
            one.start()
            self.assertEqual(admin.job(acknowledged[-1])["state"], "queued")
            self.assertEqual(admin.job(number)["state"], "queued")
            self.assertTrue(admin.get("/audit/verify").json["ok"])
        finally:
            one.__exit__()
            subprocess.run(["umount", disk], check=False)
            shutil.rmtree(disk, ignore_errors=True)


class Tls(unittest.TestCase):
    def make_certificate(self, folder):
        """Answers the paths of a new key and its certificate, over those there were."""
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "cert")
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
             certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
             "subjectAltName=IP:127.0.0.1"], capture_output=True, check=False)
        if made.returncode != 0:
            self.skipTest("no openssl to make a certificate with")
        return key, certificate

    def test_a_renewed_certificate_is_used_after_sighup(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = self.make_certificate(folder)
            with api.Daemon("--tls-cert", certificate, "--tls-key", key) as one:
                def reload(said):
                    one.child.send_signal(signal.SIGHUP)
                    deadline = time.monotonic() + api.TIMEOUT_S
                    while one.said().count("settings read again") < said:
                        self.assertLess(time.monotonic(), deadline)
                        time.sleep(0.02)

                def served():
                    return ssl.get_server_certificate(("127.0.0.1", one.port))

                first = served()
                self.make_certificate(folder)
                self.assertEqual(served(), first)
                reload(1)
                second = served()
                self.assertNotEqual(second, first)
                with open(certificate, encoding="utf-8") as file:
                    self.assertEqual(second.split(), file.read().split())
                with open(certificate, "w", encoding="utf-8") as file:
                    file.write("no certificate")
                reload(2)
                self.assertIn("keeping the old certificate", one.said())
                self.assertEqual(served(), second)

    def test_tcp_speaks_tls_only(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = self.make_certificate(folder)
            with api.Daemon("--tls-cert", certificate, "--tls-key", key) as one:
                token, port = one.admin_token, one.port
                context = ssl.create_default_context(cafile=certificate)
                connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
                connection.request("GET", "/jobs", headers={"Authorization": f"Bearer {token}"})
                self.assertEqual(connection.getresponse().status, 200)
                connection.close()
                with self.assertRaises((OSError, http.client.HTTPException)):
                    api.Client(port, token).get("/jobs")
                self.assertEqual(one.admin.get("/jobs").status, 200)
            result = program.run("serve", "--state", os.path.join(folder, "state"), "--listen",
                                 "127.0.0.1:0", "--sim", daemon.NODES, "--tls-cert", key,
                                 "--tls-key", certificate)
            self.assertNotEqual(result.returncode, 0)


class Load(api.TestCase):
    def test_many_clients_at_once_get_ids_of_their_own(self):
        numbers, lock = [], threading.Lock()

        def work():
            connection = api.UnixConnection(self.daemon.socket)
            for _ in range(50):
                connection.request("POST", "/jobs", json.dumps({"command": "true", "hold": True}))
                answer = connection.getresponse()
                body = json.loads(answer.read())
                with lock:
                    numbers.append(body["job"]["id"])
            connection.close()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(numbers)), 400)
        self.assertEqual(self.admin.get("/stats").json["jobs"]["queued"], 400)

    def test_what_runs_do_is_nobody_elses_doing(self):
        """Starts and ends come in between requests that change something (SEC-3)."""
        over = threading.Event()

        def change():
            while not over.is_set():
                self.admin.ask("PUT", "/policy", {"backfill": True})

        threads = [threading.Thread(target=change) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for number in [self.admin.submit(command="true", gpus=0.1) for _ in range(100)]:
                self.admin.wait(number, "completed")
        finally:
            over.set()
            for thread in threads:
                thread.join()
        for action in ("job started", "job completed"):
            rows = self.admin.get(f"/audit?limit=1000&action={action.replace(' ', '%20')}")
            self.assertEqual({row["actor"] for row in rows.json["audit"]}, {"acre"}, action)
