#!/usr/bin/env python3
"""Are shares of a GPU enforced? Tried on a real NVIDIA GPU, as root.

    here:       tests/gpu/enforcement.py --pack DIR       (programs and libraries they need)
    over there: python3 tests/gpu/enforcement.py --programs DIR --json FILE --markdown FILE

First without the daemon (mps_try: the engine's own MPS, environment and device filter), then
with it, where the program has `acre serve`. Exit: 0 all checks hold, 1 some do not, 77 no GPU here.
"""
import argparse
import glob
import http.client
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = {"acre": "acre", "acre-shim": "acre-shim", "cuda_probe": "tests/gpu/cuda_probe",
            "mps_try": "tests/gpu/mps_try"}
C_LIBRARY = re.compile(r"/(ld-linux|libc|libm|libdl|libpthread|librt|libresolv)[-.]")
TOLERANCE_MIB = 64    # as the watchdog's
CONTEXT_MIB = 2048    # what a CUDA context and a server may take of a limit
USERS = tuple(pwd.getpwnam(name).pw_uid for name in ("nobody", "daemon"))  # on every Debian
HOLD_S = 6
SKIPPED = 77


class Skip(Exception):
    pass


# --- the machine ---

def pack(directory):
    """Copy the built programs and the libraries they are linked with."""
    build = os.path.join(SOURCE, "build")
    os.makedirs(directory, exist_ok=True)
    for name, path in PROGRAMS.items():
        program = os.path.join(build, path)
        shutil.copy2(program, os.path.join(directory, name))
        listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True)
        for library in re.findall(r"=> (/\S+)", listed.stdout):
            if not C_LIBRARY.search(library):
                shutil.copy2(library, directory)
    print(f"carry {directory} and {os.path.relpath(__file__, SOURCE)}; then, as root:\n"
          f"  python3 {os.path.relpath(__file__, SOURCE)} --programs {directory} "
          "--json enforcement.json --markdown enforcement.md")


def find_gpu():
    """UUID and PCI address (as the kernel writes it) of the first GPU."""
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        found = re.search(r"GPU UUID:\s*(GPU-\S+)", open(path).read())
        if found and "?" not in found.group(1):
            return found.group(1), path.split("/")[-2]
    listed = smi("uuid,pci.bus_id")
    if not listed:
        raise Skip("no NVIDIA GPU: nothing in /proc/driver/nvidia/gpus, no answer of nvidia-smi")
    uuid, bus = [part.strip() for part in listed[0].split(",")]
    return uuid, bus.lower()[-12:]


def smi(fields, kind="gpu"):
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--query-{kind}={fields}", "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return answer.stdout.strip().split("\n") if answer.returncode == 0 else []


def used_mib():
    listed = smi("memory.used")
    return int(listed[0]) if listed else None


def cgroup_directory():
    """A cgroup v2 directory where we may make others; None: none."""
    for path in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.path.exists(os.path.join(path, "cgroup.controllers")) and os.access(path, os.W_OK):
            return path
    return None


def mps_processes():
    """Commands of all MPS processes on this machine."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path).read().split("\0")
        except OSError:
            continue
        if "nvidia-cuda-mps" in words[0]:
            found.append(" ".join(words).strip())
    return found


def wait_until(condition, timeout_s):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def json_lines(text):
    lines = []
    for line in text.split("\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass
    return [line for line in lines if isinstance(line, dict)]


class Trial:
    """One machine, its programs, and what was found."""

    def __init__(self, programs):
        self.programs = programs
        self.checks = []
        self.notes = {}
        self.root = tempfile.mkdtemp(prefix="acre-gpu-", dir="/opt")  # /tmp is each job's own
        os.chmod(self.root, 0o755)
        for name in PROGRAMS:
            if os.path.exists(os.path.join(programs, name)):
                shutil.copy2(os.path.join(programs, name), self.root)
                os.chmod(os.path.join(self.root, name), 0o755)
        for library in glob.glob(os.path.join(programs, "*.so*")):
            shutil.copy2(library, self.root)
        self.environment = dict(os.environ)
        path = self.environment.get("LD_LIBRARY_PATH")
        self.environment["LD_LIBRARY_PATH"] = self.root + (":" + path if path else "")

    def program(self, name):
        return os.path.join(self.root, name)

    def check(self, part, name, expected, seen, holds):
        self.checks.append({"part": part, "check": name, "expected": str(expected),
                            "seen": str(seen), "holds": bool(holds)})
        print(f"{'ok  ' if holds else 'FAIL'} {part}: {name}: expected {expected}, seen {seen}",
              flush=True)

    def probe(self, *arguments):
        """The probe alone, with the whole GPU: its answer; a "problem" when it found one."""
        done = subprocess.run([self.program("cuda_probe"), *arguments], env=self.environment,
                              stdout=subprocess.PIPE, text=True, timeout=120)
        answer = (json_lines(done.stdout) or [{}])[-1]
        if done.returncode != 0:
            answer["problem"] = answer.get("problem") or f"exit code {done.returncode}"
        return answer


# --- without the daemon ---

def run_shares(trial, gpu, shares, command, cgroup=None, during=None):
    """mps_try with these (milli, mib, uid): its events, and for each share exit code and answer."""
    directory = tempfile.mkdtemp(prefix="mps-", dir=trial.root)
    os.chmod(directory, 0o711)
    arguments = [trial.program("mps_try"), "--directory", directory, "--gpu", gpu[0],
                 "--pci", gpu[1]]
    arguments += ["--cgroup", cgroup] if cgroup else []
    for milli, mib, uid in shares:
        arguments += ["--share", f"{milli}:{mib}:{uid}"]
    child = subprocess.Popen([*arguments, "--", *command], env=trial.environment,
                             stdout=subprocess.PIPE, text=True)
    try:
        if during:
            during(directory)
        output = child.communicate(timeout=180)[0]
    finally:
        child.kill()
    events = json_lines(output)
    results = []
    for number in range(len(shares)):
        codes = [e["value"] for e in events if e["event"] == "exit" and e["share"] == number]
        path = os.path.join(directory, f"out.{number}")
        text = open(path).read() if os.path.exists(path) else ""
        lines = json_lines(text)
        results.append({"code": codes[0] if codes else None, "text": text[-500:],
                        "answer": lines[-1] if lines else {}})
    for log in glob.glob(os.path.join(directory, "*.log", "*.log")):
        trial.notes.setdefault("mps_logs", {})[os.path.basename(log)] = open(log).read()[-3000:]
    return {"exit": child.returncode, "events": events, "shares": results}


def overlap(answers):
    """Did all hold their memory at the same time?"""
    return max(a.get("holding_ms", 0) for a in answers) < min(a.get("ended_ms", 0) for a in answers)


def check_equal_shares(trial, gpu, whole, parts, cgroup):
    part = f"{parts} equal shares"
    milli, limit = 1000 // parts, whole["total_mib"] // parts
    sms = whole["multiprocessors"] * (milli // 10) // 100
    target = limit - CONTEXT_MIB
    shares = [(milli, limit, USERS[i % 2]) for i in range(parts)]
    result = run_shares(trial, gpu, shares, [trial.program("cuda_probe"), "--allocate", str(target),
                                             "--hold", str(HOLD_S)], cgroup)
    answers = [share["answer"] for share in result["shares"]]
    trial.notes[part] = result
    trial.check(part, "exit codes", [0] * parts, [s["code"] for s in result["shares"]],
                all(s["code"] == 0 for s in result["shares"]))
    trial.check(part, "ran at the same time", True, overlap(answers), overlap(answers))
    seen = [a.get("multiprocessors") for a in answers]
    odd = sms % 2  # the hardware gives them in pairs
    trial.check(part, "multiprocessors each one sees", f"{sms} +- {odd}", seen,
                all(n is not None and abs(n - sms) <= odd for n in seen))
    used = [a.get("multiprocessors_used") for a in answers]
    trial.check(part, "multiprocessors each ran on", f"1 to {sms + odd}", used,
                all(n is not None and 0 < n <= sms + odd for n in used))
    trial.check(part, "results correct", True, [a.get("correct") for a in answers],
                all(a.get("correct") for a in answers))
    trial.check(part, "memory each got (MiB)", target, [a.get("allocated_mib") for a in answers],
                all(a.get("allocated_mib") == target for a in answers))
    trial.check(part, "the daemon started and ended", 0, result["exit"], result["exit"] == 0)


def check_too_much(trial, gpu, whole, cgroup):
    part = "one takes too much"
    limit = whole["total_mib"] // 2
    probe = trial.program("cuda_probe")
    command = f"exec {probe} --hold {HOLD_S} --allocate $((" \
              f"{limit} - {CONTEXT_MIB} + (1 - {{N}}) * {3 * CONTEXT_MIB}))"
    result = run_shares(trial, gpu, [(500, limit, USERS[0]), (500, limit, USERS[1])],
                        ["/bin/sh", "-c", command], cgroup)
    greedy, modest = result["shares"]
    trial.notes[part] = result
    expected = "exit 3, CUDA_ERROR_OUT_OF_MEMORY"
    seen = f"exit {greedy['code']}, {greedy['answer'].get('refused')}"
    trial.check(part, "the greedy one is refused", expected, seen, seen == expected)
    got = greedy["answer"].get("allocated_mib", 0)
    trial.check(part, "what it got at most (MiB)", limit, got, 0 < got <= limit)
    trial.check(part, "the other one got all", 0, modest["code"], modest["code"] == 0)


def check_loss(trial, gpu, whole):
    part = "the control daemon is killed"
    limit = whole["total_mib"] // 2

    def kill_daemon(directory):
        path = os.path.join(directory, gpu[0], "nvidia-cuda-mps-control.pid")
        holds = os.path.join(directory, "out.0")
        wait_until(lambda: os.path.exists(holds) and "holding" in open(holds).read(), 60)
        if os.path.exists(path):
            os.kill(int(open(path).read()), signal.SIGKILL)

    result = run_shares(trial, gpu, [(500, limit, USERS[0])],
                        [trial.program("cuda_probe"), "--allocate", "1024", "--hold", "15"],
                        during=kill_daemon)
    trial.notes[part] = result
    lost = [e["text"] for e in result["events"] if e["event"] == "lost"]
    trial.check(part, "the loss is reported", "once", len(lost), len(lost) == 1)
    trial.check(part, "the client ends", "some exit code", result["shares"][0]["code"],
                result["shares"][0]["code"] is not None)


def check_restored(trial, part, whole, before_mib):
    gone = wait_until(lambda: not mps_processes(), 30)
    trial.check(part, "MPS processes left", [], mps_processes(), gone)
    again = trial.probe()
    seen = again.get("problem") or again["multiprocessors"]
    trial.check(part, "whole GPU: multiprocessors", whole["multiprocessors"], seen,
                seen == whole["multiprocessors"])
    if before_mib is not None:
        def is_back():
            now_mib = used_mib()
            return now_mib is not None and now_mib <= before_mib + TOLERANCE_MIB
        back = wait_until(is_back, 30)
        trial.check(part, "memory in use (MiB)", f"{before_mib} +- {TOLERANCE_MIB}", used_mib(),
                    back)
    else:
        free_mib = again.get("free_mib", 0)
        trial.check(part, "free memory (MiB)", whole["free_mib"], free_mib,
                    free_mib >= whole["free_mib"] - TOLERANCE_MIB)


def try_engine(trial, gpu, whole, before_mib):
    cgroup = cgroup_directory()
    trial.notes["cgroup"] = cgroup
    for parts in (2, 4):
        check_equal_shares(trial, gpu, whole, parts, None)
    check_too_much(trial, gpu, whole, None)
    check_loss(trial, gpu, whole)
    check_restored(trial, "after the shares", whole, before_mib)
    if cgroup is None:
        trial.notes["filter"] = "no cgroup v2 directory: the device filter was not tried"
        return
    result = run_shares(trial, gpu, [(500, whole["total_mib"] // 2, USERS[0])],
                        [trial.program("cuda_probe"), "--allocate", "1024"], cgroup)
    trial.notes["filter"] = result
    trial.check("device filter", "CUDA works with this GPU's nodes alone", 0,
                result["shares"][0]["code"], result["shares"][0]["code"] == 0)
    refused = [e["text"] for e in result["events"] if e["event"] == "filter" and e["value"] < 0]
    trial.check("device filter", "in force", [], refused, not refused)
    for path in glob.glob(os.path.join(cgroup, "acre-try-*")):
        os.rmdir(path)


# --- with the daemon ---

class Socket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """acre serve on a state directory of its own; requests as one of its users."""

    def __init__(self, trial):
        self.state = tempfile.mkdtemp(prefix="state-", dir=trial.root)
        self.socket = os.path.join(trial.root, "acre.sock")  # the state is the daemon's alone
        self.variables = {"LD_LIBRARY_PATH": trial.environment["LD_LIBRARY_PATH"]}
        self.log = open(os.path.join(self.state, "log"), "a+")
        self.child = subprocess.Popen(
            [trial.program("acre"), "serve", "--state", self.state, "--socket", self.socket,
             "--no-tcp", "--min-uid", "1"],  # USERS are the system's
            env=trial.environment, stdout=self.log, stderr=self.log)

    def ask(self, method, path, body=None, uid=0):
        """(status, JSON or text), asked by a process of that user."""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if uid:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                connection = Socket(self.socket)
                text = json.dumps(body) if body is not None else None
                connection.request(method, path, text, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                result = [answer.status, answer.read().decode(errors="replace")]
            except OSError as error:
                result = [0, str(error)]
            with os.fdopen(write_end, "w") as stream:
                json.dump(result, stream)
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as stream:
            status, text = json.load(stream)
        os.waitpid(child, 0)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def ready(self):
        return self.child.poll() is not None or self.ask("GET", "/health/ready")[0] == 200

    def submit(self, uid, command, **fields):
        body = {"command": command, "directory": "/", "environment": self.variables, **fields}
        status, answer = self.ask("POST", "/jobs", body, uid)
        return answer["job"]["id"] if status == 201 else answer

    def job(self, number):
        answer = self.ask("GET", f"/jobs/{number}")[1]
        return answer.get("job", {}) if isinstance(answer, dict) else {}

    def wait(self, number, states, timeout_s):
        wait_until(lambda: self.job(number).get("state") in states, timeout_s)
        return self.job(number)

    def answer(self, number):
        status, text = self.ask("GET", f"/jobs/{number}/logs?stream=stdout")
        lines = json_lines(text if isinstance(text, str) else json.dumps(text))
        return lines[-1] if status == 200 and lines else {}

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.log.seek(0)
        return self.log.read()[-4000:]


ENDED = ("completed", "failed", "canceled")


def code_of(job):
    """The exit status of a process that ran and ended; of all else, the words for it."""
    end = job.get("exit") or {}
    ran = end.get("kind") == "exited"
    return end.get("code") if ran else f"{end.get('kind')}: {end.get('text')}"


def check_halves(trial, daemon, whole):
    part = "daemon: two halves"
    probe, limit = trial.program("cuda_probe"), whole["total_mib"] // 2
    share = {"gpus": 0.5, "isolation": "mps", "max_retries": 0}
    jobs = [daemon.submit(USERS[i], [probe, "--allocate", str(limit - CONTEXT_MIB), "--hold",
                                     str(2 * HOLD_S)], **share) for i in range(2)]
    trial.check(part, "accepted", "two ids", jobs, all(isinstance(j, int) for j in jobs))
    if not all(isinstance(j, int) for j in jobs):
        return
    for job in jobs:
        daemon.wait(job, ("running",) + ENDED, 60)
    third = daemon.submit(USERS[0], [probe], **share)
    waiting = daemon.job(third) if isinstance(third, int) else {}
    why = (waiting.get("why") or {})
    trial.check(part, "a third waits and says why", "not running, with a reason",
                f"{waiting.get('state')}: {why.get('text')}",
                waiting.get("state") not in ("running",) + ENDED and why.get("text"))
    ended = [daemon.wait(job, ENDED, 120) for job in jobs]
    answers = [daemon.answer(job) for job in jobs]
    trial.notes[part] = {"jobs": ended, "answers": answers, "third": waiting}
    codes = [code_of(job) for job in ended]
    trial.check(part, "exit codes", [0, 0], codes, codes == [0, 0])
    sms = whole["multiprocessors"] // 2
    seen = [a.get("multiprocessors") for a in answers]
    trial.check(part, "multiprocessors each one sees", sms, seen, all(n == sms for n in seen))
    trial.check(part, "ran at the same time", True, overlap(answers), overlap(answers))
    if isinstance(third, int):
        code = code_of(daemon.wait(third, ENDED, 120))
        trial.check(part, "the third ran after them", 0, code, code == 0)


def check_greedy(trial, daemon, whole):
    part = "daemon: one takes too much"
    probe, limit = trial.program("cuda_probe"), whole["total_mib"] // 2
    share = {"gpus": 0.5, "isolation": "mps", "max_retries": 0}
    jobs = [daemon.submit(USERS[i], [probe, "--allocate", str(mib), "--hold", str(HOLD_S)], **share)
            for i, mib in enumerate((limit + 2 * CONTEXT_MIB, limit - CONTEXT_MIB))]
    if not all(isinstance(j, int) for j in jobs):
        trial.check(part, "accepted", "two ids", jobs, False)
        return
    codes = [code_of(daemon.wait(job, ENDED, 120)) for job in jobs]
    answers = [daemon.answer(job) for job in jobs]
    trial.notes[part] = {"codes": codes, "answers": answers}
    expected = ["out of memory: CUDA_ERROR_OUT_OF_MEMORY", 0]
    trial.check(part, "fails alone, and the reason is reported", expected, codes, codes == expected)
    got = answers[0].get("allocated_mib", 0)
    trial.check(part, "what it got at most (MiB)", limit, got, 0 < got <= limit)


def check_watchdog(trial, daemon, whole):
    """Shares that take turns have no limit of the driver's: the watchdog counts, and ends."""
    part = "daemon: too much where nothing but the watchdog limits"
    probe, limit = trial.program("cuda_probe"), whole["total_mib"] // 2
    share = {"gpus": 0.5, "isolation": "time-slicing", "max_retries": 0}
    jobs = [daemon.submit(USERS[i], [probe, "--allocate", str(mib), "--hold", str(hold)], **share)
            for i, (mib, hold) in enumerate(((limit + 2 * CONTEXT_MIB, 90),
                                             (limit // 2, 3 * HOLD_S)))]
    if not all(isinstance(j, int) for j in jobs):
        trial.check(part, "accepted", "two ids", jobs, False)
        return
    ended = [daemon.wait(job, ENDED, 120) for job in jobs]
    trial.notes[part] = ended
    kind = (ended[0].get("exit") or {}).get("kind")
    trial.check(part, "ended for its memory", "out of memory", kind, kind == "out of memory")
    code = code_of(ended[1])
    trial.check(part, "the other one is untouched", 0, code, code == 0)


def try_daemon(trial, whole, before_mib):
    acre = trial.program("acre")
    help_of = [acre, "serve", "--help"]
    if not os.path.exists(acre) or subprocess.run(
            help_of, env=trial.environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode != 0:
        trial.notes["daemon"] = "this build has no `acre serve`: not tried"
        return
    daemon = Daemon(trial)
    try:
        came = wait_until(daemon.ready, 30) and daemon.child.poll() is None
        trial.check("daemon", "ready", True, came, came)
        if came:
            check_halves(trial, daemon, whole)
            check_greedy(trial, daemon, whole)
            check_watchdog(trial, daemon, whole)
    finally:
        trial.notes["daemon_log"] = daemon.stop()
    check_restored(trial, "after the daemon", whole, before_mib)


# --- the report ---

def write_markdown(path, report):
    whole = report["whole"]
    lines = ["# Shares of a GPU, enforced", "",
             f"{whole['name']}, {whole['multiprocessors']} multiprocessors, "
             f"{whole['total_mib']} MiB; CUDA {whole['driver'] // 1000}."
             f"{whole['driver'] % 1000 // 10}; driver {report['driver']}; kernel "
             f"{report['kernel']}. Made by `tests/gpu/enforcement.py`.", "",
             "| part | check | expected | seen | holds |", "| --- | --- | --- | --- | --- |"]
    for row in report["checks"]:
        cells = [row["part"], row["check"], row["expected"], row["seen"],
                 "yes" if row["holds"] else "**no**"]
        lines.append("| " + " | ".join(cell.replace("|", "\\|")[:160] for cell in cells) + " |")
    with open(path, "w") as stream:
        stream.write("\n".join(lines) + "\n")


def run(arguments):
    if os.geteuid() != 0:
        raise Skip("needs root: users, cgroups, MPS for several users")
    trial = Trial(os.path.abspath(arguments.programs))
    try:
        gpu = find_gpu()
        before_mib = used_mib()
        whole = trial.probe()
        if whole.get("problem"):  # only now: later on it is a check that does not hold
            raise Skip(f"no CUDA: {whole['problem']}")
        trial.notes["gpu"] = gpu
        try_engine(trial, gpu, whole, before_mib)
        try_daemon(trial, whole, before_mib)
    finally:
        shutil.rmtree(trial.root, ignore_errors=True)
    holds = all(row["holds"] for row in trial.checks)
    report = {"holds": holds, "whole": whole, "driver": (smi("driver_version") or ["?"])[0],
              "kernel": os.uname().release, "checks": trial.checks, "notes": trial.notes}
    if arguments.json:
        with open(arguments.json, "w") as stream:
            json.dump(report, stream, indent=1)
            stream.write("\n")
    if arguments.markdown:
        write_markdown(arguments.markdown, report)
    return 0 if holds else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", metavar="DIR", help="collect what to carry to the GPU, and end")
    parser.add_argument("--programs", metavar="DIR", default=os.path.join(SOURCE, "build", "gpu"))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.pack:
        pack(arguments.pack)
        return 0
    try:
        return run(arguments)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
