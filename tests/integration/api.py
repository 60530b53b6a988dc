"""The daemon as a program sees it: HTTP over its unix socket or over TCP with a token."""
import http.client
import json
import re
import socket
import time

import daemon

TIMEOUT_S = 120


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Client:
    """One caller: the socket's owner, or whoever has the token."""

    def __init__(self, target, token=None, header="Authorization"):
        self.target = target
        self.token = token
        self.header = header

    def connect(self):
        if isinstance(self.target, int):
            return http.client.HTTPConnection("127.0.0.1", self.target, timeout=TIMEOUT_S)
        return UnixConnection(self.target)

    def headers(self):
        if self.token is None:
            return {}
        return {self.header: f"Bearer {self.token}" if self.header == "Authorization"
                else self.token}

    def ask(self, method, path, body=None, raw=None, **headers):
        connection = self.connect()
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        try:
            connection.request(method, path, data, {**self.headers(), **headers})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body=None):
        return self.ask("POST", path, {} if body is None else body)

    def submit(self, **body):
        answer = self.ask("POST", "/jobs", body)
        assert answer.status == 201, answer
        return answer.json["job"]["id"]

    def job(self, number):
        return self.get(f"/jobs/{number}").json["job"]

    def wait(self, number, *states):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            job = self.job(number)
            if job["state"] in states:
                return job
            assert time.monotonic() < deadline, f"job stays {job}"
            time.sleep(0.02)

    def events(self, path="/events", last=None):
        """A stream of events, as (id, name, data); ends with the connection."""
        connection = self.connect()
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        connection.request("GET", path, headers={**self.headers(), **headers})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        return self.read_events(connection, response)

    @staticmethod
    def read_events(connection, response):
        event = {}
        try:
            while True:
                line = response.fp.readline()
                if not line:
                    return
                line = line.decode().rstrip("\r\n")
                if line == "" and "data" in event:
                    yield event.get("id"), event.get("event"), json.loads(event["data"])
                    event = {}
                elif ":" in line and not line.startswith(":"):
                    name, value = line.split(":", 1)
                    event[name] = value.lstrip()
        finally:
            connection.close()


class Daemon(daemon.Daemon):
    """Also over TCP, on a port of its own."""

    def __init__(self, *options, sim=daemon.NODES, tcp=True):
        super().__init__(*options, *(("--listen", "127.0.0.1:0") if tcp else ()), sim=sim)

    def wait_said(self, pattern):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            found = re.search(pattern, self.said(), re.M)
            if found:
                return found[1]
            assert time.monotonic() < deadline, f"no {pattern} in {self.said()}"
            time.sleep(0.02)

    @property
    def port(self):
        return int(self.wait_said(r"tcp=127\.0\.0\.1:(\d+)"))

    @property
    def admin_token(self):
        """As the first start leaves it."""
        path = self.wait_said(r"admin token written.* path=\"?([^\s\"]+)")
        with open(path, encoding="ascii") as file:
            return file.read().strip()

    @property
    def admin(self):
        return Client(self.socket)

    def user(self, name, role="user", **fields):
        """A client over TCP with a new token."""
        answer = self.admin.post("/tokens", {"user": name, "role": role, **fields})
        assert answer.status == 201, answer
        return Client(self.port, answer.json["secret"])


class TestCase(daemon.TestCase):
    kind = Daemon

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.admin = cls.daemon.admin

    def assert_problem(self, answer, status, *parts):
        """A problem object (RFC 9457) with this status and these words."""
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        problem = answer.json
        self.assertEqual(problem["status"], status)
        for key in ("type", "title", "detail", "code"):
            self.assertTrue(problem[key], problem)
        for part in parts:
            self.assertIn(part, problem["detail"])
        return problem
