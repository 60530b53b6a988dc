#!/usr/bin/env python3
"""Does root's MPS daemon stay root's when users want more? On a real NVIDIA GPU, as root.

    python3 tests/gpu/mps_abuse.py [--programs DIR] [--python PATH] [--json FILE]

Two users (of a mount namespace of our own) have PyTorch jobs on shares of one GPU at the same
time; meanwhile, before and after, one of them tries to plant links where the daemon makes its
files, to change or remove those, to pass off a daemon as ours, to command it, and to connect to it
when his last job has ended. What is tried and what happened goes to stderr, a JSON object to
stdout. DIR has acre and acre-shim (and libraries), as a build directory or enforcement.py --pack.
Exit: 0 all checks hold, 1 some do not, 77 no GPU here. It ends within four minutes.
"""
import argparse
import errno
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "abuse")]
import enforcement
import kit

HOME = "/run/acre-mps"
ALICE, MALLORY = kit.USERS["acre-alice"], kit.USERS["acre-mallory"]
PID_FILE = "nvidia-cuda-mps-control.pid"
PIPE_NAMES = ("control", "control_lock", "control_privileged", "log", PID_FILE, "new")
LOG_NAMES = ("control.log", "server.log", "new")
SECRET = "root's own words\n"
SECONDS_MAX = 180
SHARE = {"gpus": 0.3, "isolation": "mps", "max_retries": 0}
TORCH = """
import json, os, sys, time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
(a @ a).sum().item()
print("begun", flush=True)
start, steps = time.monotonic(), 0
while time.monotonic() < start + float(sys.argv[1]):
    for _ in range(10):
        b = a @ a
    torch.cuda.synchronize()
    steps += 10
print(json.dumps({"uid": os.getuid(), "steps_per_s": round(steps / (time.monotonic() - start)),
                  "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
                  "finite": bool(torch.isfinite(b.float()).all())}), flush=True)
"""


# --- as a user ---

def as_user(uid, function, *arguments):
    """What the function returns in a process of that user, through JSON."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            result = function(*arguments)
        except OSError as error:
            result = f"failed: {error}"
        with os.fdopen(write_end, "w") as stream:
            json.dump(result, stream)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return json.loads(text)


def attempt(function, *arguments):
    """"worked", or the name of the error."""
    try:
        function(*arguments)
        return "worked"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def write_to(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o644))


def meddle(pipe, log, secret):
    """Everything but connecting: what is tried, and what came of it."""
    seen = {}
    for directory, names in ((pipe, PIPE_NAMES), (log, LOG_NAMES)):
        seen[f"list {directory}"] = attempt(os.listdir, directory)
        seen[f"chmod {directory}"] = attempt(os.chmod, directory, 0o777)
        seen[f"rename {directory}"] = attempt(os.rename, directory, directory + ".mine")
        seen[f"mkdir in {directory}"] = attempt(os.mkdir, directory + "/folder")
        for name in names:
            path = f"{directory}/{name}"
            seen[f"link {path}"] = attempt(os.symlink, secret, path)
            seen[f"write {path}"] = attempt(write_to, path)
            seen[f"truncate {path}"] = attempt(os.truncate, path, 0)
            seen[f"rename {path}"] = attempt(os.rename, path, path + ".mine")
            seen[f"unlink {path}"] = attempt(os.unlink, path)
    seen[f"read {log}"] = attempt(lambda: open(f"{log}/control.log").close())
    seen[f"mkdir in {HOME}"] = attempt(os.mkdir, HOME + "/GPU-mine")
    return seen


def plant_for_ever(pipe, log, secret, made):
    """Until it is stopped: links under all names. Tells which worked, by the number of times."""
    stopped, worked, tried = [], {}, 0
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    paths = [f"{pipe}/{name}" for name in PIPE_NAMES] + [f"{log}/{name}" for name in LOG_NAMES]
    while not stopped:
        for path in paths:
            tried += 1
            for target in (secret, made):
                if attempt(os.symlink, target, path) == "worked":
                    worked[path] = worked.get(path, 0) + 1
    return {"tried": tried, "worked": worked}


class Planter:
    """A process of the user that plants links from now on."""

    def __init__(self, uid, *arguments):
        self.read_end, write_end = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            result = plant_for_ever(*arguments)
            with os.fdopen(write_end, "w") as stream:
                json.dump(result, stream)
            os._exit(0)
        os.close(write_end)

    def stop(self):
        os.kill(self.child, signal.SIGTERM)
        with os.fdopen(self.read_end) as stream:
            text = stream.read()
        os.waitpid(self.child, 0)
        return json.loads(text)


def connect(path):
    """The connection, and the kernel's word on who listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(3)
    connection.connect(path)
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return connection, struct.unpack("3i", peer)


def send_raw(path, message):
    try:
        connection, _ = connect(path)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    try:
        connection.send(message)
        return "answered " + repr(connection.recv(4096)[:80])
    except OSError as error:
        return f"connected, then {error}"


def try_connect(path):
    return attempt(lambda: connect(path)[0].close())


def control(pipe, log, *words, command=""):
    """The vendor's program with these directories: exit code and output."""
    variables = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": pipe, "CUDA_MPS_LOG_DIRECTORY": log}
    with tempfile.TemporaryFile("w+") as out:  # a daemon it leaves may keep a pipe open
        try:
            done = subprocess.run(["nvidia-cuda-mps-control", *words], input=command, env=variables,
                                  cwd="/", stdout=out, stderr=out, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)[:200]
        out.seek(0)
        return f"exit {done.returncode}: {out.read().strip()[:200]}"


def ask(pipe, log, command):
    return control(pipe, log, command=command + "\n")


# --- as root ---

def processes():
    """All MPS processes: pid, parent, uids, command."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        try:
            words = open(path + "/cmdline").read().split("\0")
            status = open(path + "/status").read()
        except OSError:
            continue
        if "nvidia-cuda-mps" in words[0] and "State:\tZ" not in status:
            found.append({"pid": int(os.path.basename(path)),
                          "parent": int(re.search(r"PPid:\t(\d+)", status)[1]),
                          "uids": re.search(r"Uid:\t(.*)", status)[1].split(),
                          "command": " ".join(words).strip()})
    return found


def roots():
    return [row for row in processes() if row["uids"][0] == "0"]


def listing(directory):
    rows = []
    for name in [".", *sorted(os.listdir(directory))]:
        info = os.lstat(os.path.join(directory, name))
        rows.append(f"{stat.filemode(info.st_mode)} {info.st_uid} {name}")
    return rows


class Server(enforcement.Daemon):
    """That can be started again on the same state."""

    def restart(self, trial):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait(30)
        self.child = subprocess.Popen(
            [trial.program("acre"), "serve", "--state", self.state, "--socket", self.socket,
             "--no-tcp", "--min-uid", "1"],
            env=trial.environment, stdout=self.log, stderr=self.log)
        return enforcement.wait_until(self.ready, 30)

    def said(self, number):
        text = self.ask("GET", f"/jobs/{number}/logs?stream=stdout")[1]
        return text if isinstance(text, str) else json.dumps(text)


class Abuse(enforcement.Trial):
    def __init__(self, programs, python, uuid):
        super().__init__(programs)
        self.python = python
        self.pipe, self.log = f"{HOME}/{uuid}", f"{HOME}/{uuid}.log"
        self.secret, self.made = f"{self.root}/secret", f"{self.root}/made"
        self.mallory_home = f"{self.root}/mallory"
        self.home_is_new = not os.path.exists(HOME)
        with open(self.secret, "w") as out:
            out.write(SECRET)
        os.mkdir(self.mallory_home)
        os.chown(self.mallory_home, MALLORY, MALLORY)
        self.daemon = self.planter = None

    def check(self, part, name, expected, seen, holds):
        self.checks.append({"part": part, "check": name, "expected": str(expected),
                            "seen": seen, "holds": bool(holds)})
        print(f"{'ok  ' if holds else 'FAIL'} {part}: {name}: expected {expected}, seen {seen}",
              file=sys.stderr, flush=True)

    def check_untouched(self, part):
        text = open(self.secret).read()
        info = os.stat(self.secret)
        self.check(part, "root's file", "as it was", repr(text[:200]),
                   text == SECRET and info.st_uid == 0 and stat.S_IMODE(info.st_mode) == 0o644)
        self.check(part, "files made through links", "none", os.path.lexists(self.made),
                   not os.path.lexists(self.made))

    def check_meddling(self, part, uid=MALLORY):
        seen = as_user(uid, meddle, self.pipe, self.log, self.secret)
        self.notes.setdefault("meddling", {})[part] = seen
        worked = [what for what, result in seen.items() if result == "worked"]
        self.check(part, f"what worked of {len(seen)} attempts", "nothing", worked, not worked)

    def submit(self, uid, seconds):
        variables = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        body = {"command": [self.python, "-c", TORCH, str(seconds)], "directory": "/",
                "environment": variables, **SHARE}
        status, answer = self.daemon.ask("POST", "/jobs", body, uid)
        if status != 201:
            raise RuntimeError(f"job not accepted: {answer}")
        return answer["job"]["id"]

    def wait_begun(self, part, *jobs):
        def begun():
            return all("begun" in self.daemon.said(job) or
                       self.daemon.job(job).get("state") in enforcement.ENDED for job in jobs)
        came = enforcement.wait_until(begun, 60)
        states = [self.daemon.job(job).get("state") for job in jobs]
        self.check(part, "both compute", ["running"] * len(jobs), states,
                   came and all(state == "running" for state in states))

    def check_ended(self, part, *jobs):
        for job in jobs:
            ended = self.daemon.wait(job, enforcement.ENDED, 60)
            answer, code = self.daemon.answer(job), enforcement.code_of(ended)
            self.notes.setdefault("jobs", {})[f"{part}: {job}"] = {"job": ended, "answer": answer}
            self.check(part, f"job {job} completed", "exit 0, with results",
                       f"exit {code}, {answer}", code == 0 and answer.get("finite") is True)

    def root_daemons(self):
        """Control daemons of root's for this GPU, by the kernel's word on the socket."""
        try:
            connection, peer = connect(self.pipe + "/control")
            connection.close()
            return {"pid": peer[0], "uid": peer[1]}
        except OSError as error:
            return {"error": str(error)}

    def wait_down(self, part):
        """Root's MPS processes go when the last share is given back."""
        gone = enforcement.wait_until(lambda: not roots(), 30)
        self.check(part, "MPS processes of root's left", [], roots(), gone)


# --- the rounds ---

def plant_leftovers(trial):
    """As earlier versions left the directories: open to the users, with what they put there."""
    os.makedirs(HOME, exist_ok=True)
    for directory in (trial.pipe, trial.log):
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        os.chmod(directory, 0o1777)

    def plant():
        os.makedirs(trial.pipe + "/folder/below")
        for path in (f"{trial.pipe}/control_lock", f"{trial.log}/server.log"):
            os.symlink(trial.made, path)
        for path in (f"{trial.pipe}/{PID_FILE}", f"{trial.log}/control.log"):
            os.symlink(trial.secret, path)
        return "planted"
    trial.notes["leftovers"] = as_user(MALLORY, plant)


def round_of_links(trial):
    """Links before, while and after the daemon starts; both users' jobs work all the same."""
    part = "links"
    plant_leftovers(trial)
    trial.planter = Planter(MALLORY, trial.pipe, trial.log, trial.secret, trial.made)
    # What it plants before the directories are renewed goes with them; none may be there after.
    jobs = [trial.submit(ALICE, 10), trial.submit(MALLORY, 10)]
    trial.wait_begun(part, *jobs)
    trial.notes["pipe"], trial.notes["log"] = listing(trial.pipe), listing(trial.log)
    trial.notes["processes"], trial.notes["peer"] = processes(), trial.root_daemons()
    trial.notes["access_list"] = attempt_xattr(trial.pipe)
    links = [row for row in trial.notes["pipe"] + trial.notes["log"] if row.startswith("l")]
    trial.check(part, "links in the directories", "none", links, not links)
    trial.check_meddling("while both run")
    trial.check_meddling("while both run, as the other user", ALICE)
    fake = as_user(MALLORY, control, trial.pipe, trial.mallory_home, "-d")
    trial.notes["a daemon of his in our place"] = fake
    peer = trial.root_daemons()
    trial.check(part, "who listens", {"uid": 0}, peer, peer.get("uid") == 0 and
                peer == trial.notes["peer"])
    trial.check_ended(part, *jobs)
    trial.wait_down(part)
    trial.check_meddling("after both ended")
    trial.notes["planter"] = trial.planter.stop()
    trial.planter = None
    trial.check_untouched(part)


def attempt_xattr(path):
    try:
        return os.getxattr(path, "system.posix_acl_access").hex()
    except OSError as error:
        return str(error)


def start_his_daemon(trial):
    """The vendor's own program as the user, where earlier versions let it run."""
    for directory in (trial.pipe, trial.log):
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        os.chmod(directory, 0o1777)
    seen = as_user(MALLORY, control, trial.pipe, trial.log, "-d")
    enforcement.wait_until(lambda: "pid" in trial.root_daemons(), 5)
    peer = trial.root_daemons()
    trial.notes["his daemon"] = {"start": seen, "peer": peer}
    return peer["pid"] if peer.get("uid") == MALLORY else None


def command_attempts(trial):
    """What he asks the daemon to do, while he has a share and may connect."""
    seen = {}
    servers = [row["pid"] for row in processes() if "server" in row["command"].split()[0]]
    commands = ["get_server_list", "get_default_active_thread_percentage",
                "set_default_active_thread_percentage 1",
                "set_default_device_pinned_mem_limit 0 1M"]
    endings = [*[f"shutdown_server {pid} -f" for pid in servers], "quit -t 0"]
    for command in commands:
        seen[command] = as_user(MALLORY, ask, trial.pipe, trial.mallory_home, command)
    for name in ("control_privileged", "control"):
        for message in (b"\0" * 64, b"x" * 4096, b"quit\n"):
            seen[f"{name}: {message[:8]!r}"] = as_user(MALLORY, send_raw, f"{trial.pipe}/{name}",
                                                       message)
    for command in endings:  # last: if one is obeyed there is nothing left to ask
        seen[command] = as_user(MALLORY, ask, trial.pipe, trial.mallory_home, command)
    return seen


def defaults(trial):
    """What root's own client says the daemon's defaults are."""
    return [ask(trial.pipe, trial.mallory_home, text) for text in
            ("get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0")]


def round_of_daemons(trial):
    """A daemon of his is there first; he commands ours; ours is restarted; his access ends."""
    part = "daemons"
    his = start_his_daemon(trial)
    trial.check(part, "his own daemon runs (or nothing is tried)", "a pid", his, his is not None)
    jobs = [trial.submit(ALICE, 25), trial.submit(MALLORY, 10)]
    trial.wait_begun(part, *jobs)
    peer = trial.root_daemons()
    trial.check(part, "his daemon is not taken for ours: who listens", {"uid": 0}, peer,
                peer.get("uid") == 0)
    before = defaults(trial)
    trial.notes["commands"] = command_attempts(trial)
    for what, answer in trial.notes["commands"].items():
        print(f"     {part}: he sends {what}: {answer}", file=sys.stderr)
    after, now = defaults(trial), trial.root_daemons()
    trial.check(part, "the daemon after his commands", peer, now, now == peer)
    trial.check(part, "its defaults after his commands", before, after, before == after)
    came = trial.daemon.restart(trial)
    trial.check(part, "acre started again", True, came, came)
    trial.check_ended(part, jobs[1])
    refused = enforcement.wait_until(
        lambda: as_user(MALLORY, try_connect, trial.pipe + "/control") == "EACCES", 5)
    seen = {name: as_user(MALLORY, try_connect, f"{trial.pipe}/{name}")
            for name in ("control", "control_privileged")}
    trial.check(part, "he connects after his last job", "EACCES", seen,
                refused and set(seen.values()) == {"EACCES"})
    hers = as_user(ALICE, try_connect, trial.pipe + "/control")
    trial.check(part, "she still may", "worked", hers, hers == "worked")
    now = trial.root_daemons()
    trial.check(part, "the same daemon, adopted", peer, now, now == peer)
    trial.check_ended(part, jobs[0])
    trial.wait_down(part)
    trial.check_meddling("at the end")
    trial.check_untouched(part)
    trial.notes["his daemon at the end"] = [row for row in processes() if row["pid"] == his]


def logs_of(trial):
    """The last lines of what MPS wrote."""
    logs = {}
    for path in glob.glob(f"{trial.log}*/*.log"):
        if not os.path.islink(path):
            logs[path] = open(path, errors="replace").read()[-3000:]
    return logs


def finish(trial):
    if trial.planter is not None:
        trial.notes["planter"] = trial.planter.stop()
    if trial.daemon is not None:
        for job in trial.daemon.ask("GET", "/jobs")[1].get("jobs", []):
            trial.daemon.ask("DELETE", f"/jobs/{job['id']}")
        enforcement.wait_until(lambda: not roots(), 20)
        trial.notes["daemon_log"] = trial.daemon.stop()
    trial.notes["mps_logs"] = logs_of(trial)
    for row in processes():  # there were none when we began
        attempt(os.kill, row["pid"], signal.SIGKILL)
    if trial.home_is_new:
        shutil.rmtree(HOME, ignore_errors=True)
    shutil.rmtree(trial.root, ignore_errors=True)
    shutil.rmtree(kit.need_users(), ignore_errors=True)


def on_alarm(*_):
    raise TimeoutError(f"not done in {SECONDS_MAX} s")


def run(arguments):
    if os.geteuid() != 0:
        raise enforcement.Skip("needs root: users, and MPS for several of them")
    uuid, _ = enforcement.find_gpu()
    if processes():
        raise enforcement.Skip(f"another MPS daemon is running here: {processes()}")
    kit.need_users()
    trial = Abuse(os.path.abspath(arguments.programs), arguments.python, uuid)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(SECONDS_MAX)
    try:
        known = as_user(MALLORY, lambda: subprocess.run(
            [trial.python, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd="/", timeout=60).stdout.strip()[-200:])
        trial.check("start", "PyTorch, as a user", "a version", known, known[:1].isdigit())
        trial.daemon = Server(trial)
        came = enforcement.wait_until(trial.daemon.ready, 30) and trial.daemon.child.poll() is None
        trial.check("start", "acre serve", True, came, came)
        if came:
            round_of_links(trial)
            round_of_daemons(trial)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        trial.check("end", "without an error", "none", f"{type(error).__name__}: {error}", False)
    finally:
        signal.alarm(0)
        finish(trial)
    holds = all(row["holds"] for row in trial.checks)
    driver = (enforcement.smi("driver_version") or ["?"])[0]
    report = {"holds": holds, "gpu": uuid, "driver": driver,
              "kernel": os.uname().release, "checks": trial.checks, "notes": trial.notes}
    print(json.dumps(report, indent=1))
    if arguments.json:
        with open(arguments.json, "w") as stream:
            json.dump(report, stream, indent=1)
    return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", metavar="DIR",
                        default=os.path.join(enforcement.SOURCE, "build"))
    parser.add_argument("--python", metavar="PATH", default=sys.executable,
                        help="with PyTorch, for users to run (default: this one)")
    parser.add_argument("--json", metavar="FILE")
    try:
        return run(parser.parse_args())
    except enforcement.Skip as reason:
        print(json.dumps({"skipped": str(reason)}))
        return enforcement.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
