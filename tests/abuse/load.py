"""What the tests of abuse measure with, and flood with; run as the user it acts for.

    python3 load.py submit SOCKET COUNT            latencies of COUNT submissions, as JSON
    python3 load.py flood ADDRESS COUNT REQUEST [SECONDS]
                                                   COUNT copies of REQUEST, ahead of the answers,
                                                   but not for longer than SECONDS (60)
    python3 load.py burn - SECONDS                 work that has nothing to do with the daemon
    python3 load.py hold ADDRESS COUNT [FROM...]   COUNT connections, kept open until stdin ends;
                                                   on a unix socket each asks for /version once

ADDRESS is a port of 127.0.0.1, or the path of a unix socket. FROM are addresses to connect from.
"""
import json
import os
import resource
import select
import socket
import sys
import time

MOST = 20000  # requests on one connection
AHEAD = 64  # requests before the first answer, and with each answer
PIECE = 1 << 18  # bytes to send at once
FLOOD_S = 60
ANSWER = b"HTTP/1.1 "
PATIENCE_S = 20


def connect(address, source=None):
    one = socket.socket(socket.AF_INET if address.isdigit() else socket.AF_UNIX)
    try:
        one.settimeout(PATIENCE_S)
        if source:
            one.bind((source, 0))
        one.connect(("127.0.0.1", int(address)) if address.isdigit() else address)
    except OSError:
        one.close()
        raise
    return one


def request(line, body="", *fields):
    head = "".join(f"{field}\r\n" for field in fields)
    return f"{line} HTTP/1.1\r\nHost: a\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def read_answer(one, rest=b""):
    """The next answer and what came after it."""
    while b"\r\n\r\n" not in rest:
        piece = one.recv(65536)
        if not piece:
            raise ConnectionError("closed before the answer")
        rest += piece
    head, rest = rest.split(b"\r\n\r\n", 1)
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n")
                   if line.lower().startswith(b"content-length:")), 0)
    while len(rest) < length:
        piece = one.recv(65536)
        if not piece:
            raise ConnectionError("closed in the middle of the answer")
        rest += piece
    return int(head.split()[1]), rest[:length], rest[length:]


def submit(address, count):
    """One submission after the other on one connection; times in ms, sorted."""
    body = request("POST /jobs", json.dumps({"command": "true", "hold": True}))
    times = []
    with connect(address) as one:
        for _ in range(count):
            began = time.monotonic()
            one.sendall(body)
            status, text, _ = read_answer(one)
            times.append((time.monotonic() - began) * 1000)
            assert status == 201, text
    return sorted(times)


def flood(address, count, text, seconds=FLOOD_S):
    """Send ahead of the answers; where the daemon hangs up, go on with a new connection. `sent` are
    requests that the daemon answered or hung up on, not what was left in buffers."""
    sent = answered = connections = failed = 0
    copies = text * (PIECE // len(text) + 2)  # so that PIECE bytes can begin anywhere in the first
    began = time.monotonic()
    deadline = began + seconds
    while sent < count and time.monotonic() < deadline:
        try:
            one = connect(address)
        except OSError:
            failed += 1
            time.sleep(0.01)
            continue
        with one:
            connections += 1
            answers = flood_one(one, memoryview(copies), len(text), min(count - sent, MOST),
                                deadline)
        sent, answered = sent + max(answers, 1), answered + answers
    return {"sent": sent, "answered": answered, "connections": connections, "failed": failed,
            "seconds": round(time.monotonic() - began, 3)}


def flood_one(one, copies, length, count, deadline):
    """Send `count` requests of this length, of which `copies` has some; how many were answered."""
    one.setblocking(False)
    at, answered, tail = 0, 0, b""
    deadline = min(deadline, time.monotonic() + PATIENCE_S)
    while answered < count and time.monotonic() < deadline:
        rest = length * min(count, AHEAD * (answered + 1)) - at
        readable, writable, _ = select.select([one], [one] if rest else [], [], 1)
        try:
            if readable:
                piece = one.recv(1 << 20)
                if not piece:
                    break
                answered += (tail + piece).count(ANSWER)
                tail = (tail + piece)[-len(ANSWER) + 1:]
            if writable:
                begin = at % length
                at += one.send(copies[begin:begin + min(rest, PIECE)])
        except BlockingIOError:
            pass
        except OSError:
            break
    return answered


def burn(seconds):
    """What a program costs the others that does nothing to the daemon."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return {}


def hold(address, count, sources):
    """Open connections as fast as possible; those the daemon closes are opened again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    held, opened, refusal = {}, 0, ""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    said = False
    while True:
        if opened < count:
            try:
                one = connect(address, sources[opened % len(sources)] if sources else None)
                held[one.fileno()] = one
                poll.register(one, select.POLLIN | select.POLLHUP)
                if not address.isdigit():
                    one.sendall(request("GET /version"))  # what has asked may be idle for longer
            except OSError as error:
                refusal = refusal or str(error)
            opened += 1
        events = sorted(poll.poll(0 if opened < count else 50), reverse=True)
        if opened == count and not events and not said:  # those that are refused know it by now
            said = True
            print(json.dumps({"opened": opened}), flush=True)
        for fd, _ in events:
            if fd == 0:
                print(json.dumps({"held": len(held), "refusal": refusal}), flush=True)
                return
            try:
                piece = held[fd].recv(4096)
                if piece.startswith(ANSWER + b"200"):
                    continue
                refusal = piece.decode() or refusal
            except OSError as error:
                refusal = refusal or str(error)
            poll.unregister(fd)
            held.pop(fd).close()


def main():
    what, address, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "submit":
        times = submit(address, count)
        print(json.dumps({"p50": round(times[count // 2], 2),
                          "p99": round(times[count * 99 // 100], 2),
                          "max": round(times[-1], 2)}))
    elif what == "burn":
        print(json.dumps(burn(count)))
    elif what == "flood":
        text = sys.argv[4].encode().decode("unicode_escape").encode()
        print(json.dumps(flood(address, count, text, *map(float, sys.argv[5:]))))
    else:
        hold(address, count, sys.argv[4:])


if __name__ == "__main__":
    os.umask(0o077)
    main()
