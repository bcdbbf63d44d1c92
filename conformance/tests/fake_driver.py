#!/usr/bin/env python3
"""A driver that runs nothing, and misbehaves on request.

Its programs are words: print TEXT, exit CODE, sleep, connect PORT, kill PID, overwrite PATH. Unless a fault says
otherwise it answers what a good implementation would, without doing anything.

Usage: fake_driver.py [--state FILE] [--watch DIRECTORY] [FAULT...]
"""

import argparse
import base64
import ctypes
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

CAPABILITIES = {
    "filesystem": True,
    "networkIsolation": True,
    "cpuLimits": True,
    "cpuTimeEnforcement": "kernel",
    "cpuQuotaLimits": True,
    "memoryLimits": True,
    "memoryEnforcement": "kernel",
    "pids": True,
    "pidsScope": "execution",
    "diskQuota": True,
    "storage": ["disk", "memory", "loop"],
    "tty": True,
    "mounts": True,
    "streaming": True,
    "remoteExecution": False,
    "osFilesystemIsolation": "supported",
    "filesystemView": "private",
    "crashKill": "kernel",
    "supplementaryGroups": "dropped",
}

parser = argparse.ArgumentParser()
parser.add_argument("--state", type=Path)
parser.add_argument("--watch", type=Path)
parser.add_argument("--lacks", action="append", default=[])
parser.add_argument("faults", nargs="*")
OPTIONS = parser.parse_args()
FAULTS = set(OPTIONS.faults)
LOCK = threading.Lock()
CANCELLED = threading.Event()
EXECUTIONS = {}
UPLOADED = []


def say(document):
    line = document if isinstance(document, str) else json.dumps(document)
    with LOCK:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def leave_process(*command, escaped=False):
    if escaped and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp(command[0], command)
        os._exit(0)
    if not escaped:
        subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)


def starts_so_far():
    """Counts the starts of this driver, itself included."""
    number = int(OPTIONS.state.read_text()) + 1 if OPTIONS.state.exists() else 1
    OPTIONS.state.write_text(str(number))
    return number


def hello():
    capabilities = dict(CAPABILITIES)
    if "no-isolation" in FAULTS or ("no-isolation-later" in FAULTS and starts_so_far() > 1):
        capabilities |= {"networkIsolation": False, "osFilesystemIsolation": "unsupported"}
    if "no-private-view" in FAULTS:
        capabilities |= {"filesystemView": "host"}
    version = "2" if "other-version-later" in FAULTS and starts_so_far() > 1 else "1"
    answer = {
        "name": "fake",
        "version": version,
        "specVersion": "1.4.0",
        "capabilities": capabilities,
    }
    if "no-version" in FAULTS:
        del answer["version"]
    return answer | {"lacks": OPTIONS.lacks, "watch": [str(OPTIONS.watch)] if OPTIONS.watch else []}


def create(_):
    sandbox = f"sbx_{secrets.token_hex(8)}"
    directory = Path(os.environ["XDG_STATE_HOME"])
    if "leaves-process" in FAULTS:
        leave_process("sleep", "3071")
    if "leaves-escaped-process" in FAULTS:
        leave_process("sleep", "3072", escaped=True)
    if "leaves-process-until-shutdown" in FAULTS:
        EXECUTIONS["process"] = subprocess.Popen(["sh", "-c", f"sleep 3073; : {sandbox}"])
    if "leaves-file" in FAULTS:
        (directory / "forgotten").write_text("")
    if "leaves-sandbox-until-shutdown" in FAULTS:
        (directory / sandbox).mkdir()
    if "leaves-shared-file" in FAULTS:
        (OPTIONS.watch / "forgotten").write_text("")
    if "leaves-runtime-file" in FAULTS:
        (Path(os.environ["XDG_RUNTIME_DIR"]) / "forgotten").write_text("")
    if "leaves-shared-memory" in FAULTS:
        ctypes.CDLL(None).shmget(0, 4096, 0o1600)
    return {"sandbox": sandbox}


def tidy_up():
    if process := EXECUTIONS.pop("process", None):
        process.kill()
        process.wait()
    if "leaves-sandbox-until-shutdown" in FAULTS:
        for path in Path(os.environ["XDG_STATE_HOME"]).glob("sbx_*"):
            path.rmdir()


def run(words):
    """Output, exit code."""
    match words:
        case ["print", text]:
            return (text.upper() if "wrong-output" in FAULTS else text), 0
        case ["exit", code]:
            return "", 0 if "wrong-exit-code" in FAULTS else int(code)
        case ["sleep"]:
            CANCELLED.wait()
            return "", -1
        case ["connect", port]:
            if "reaches-listener" in FAULTS:
                socket.create_connection(("127.0.0.1", int(port))).recv(100)
            return json.dumps(
                {"attempt": "connect", "result": "denied", "errno": "EPERM"}
            ) + "\n", 0
        case ["kill", pid]:
            if "kills" in FAULTS:
                os.kill(int(pid), signal.SIGKILL)
            return "", 1
        case ["overwrite", path]:
            if "overwrites" in FAULTS:
                Path(path).write_text("changed")
            return "", 1
    return "", 127


def result(identifier, text, code):
    metadata = {
        "id": identifier,
        "backend": "fake",
        "specVersion": "1.4.0",
        "startedAt": "2026-01-01T00:00:00.000Z",
        "durationMs": 1,
        "exitCode": code,
        "timedOut": False,
    }
    status = "cancelled" if code < 0 else "failed" if code else "completed"
    cause = "cancelled" if code < 0 else "memory" if "wrong-cause" in FAULTS else "exited"
    document = {key: metadata[key] for key in ("id", "durationMs", "exitCode", "timedOut")}
    document |= {"status": status, "stdout": text, "stderr": "", "termination": {"cause": cause}}
    if "invalid-result" in FAULTS:
        document["status"] = "running"
    if "bad-base64" in FAULTS:
        document |= {"stdout": "A", "stdoutEncoding": "base64"}
    if "no-metadata" not in FAULTS:
        document["metadata"] = metadata
    return document


def start(request):
    identifier = f"exec_{secrets.token_hex(8)}"
    EXECUTIONS[identifier] = request.get("args") or ["print", request["command"]]
    return {"execution": identifier}


def wait(request):
    text, code = run(EXECUTIONS[request["execution"]])
    return {"result": result(request["execution"], text, code)}


def archive(op, request):
    """What went up comes down again."""
    if op == "archive-up":
        UPLOADED.append(base64.b64decode(request["bytes"]))
    with tarfile.open(fileobj=io.BytesIO(UPLOADED[-1])) as up:
        names, down = len(up.getnames()), io.BytesIO()
        with tarfile.open(fileobj=down, mode="w") as changed:
            for member in up:
                member.mode = 0o644 if "loses-modes" in FAULTS else member.mode
                changed.addfile(member, up.extractfile(member))
    document = {"summary": {"entries": names, "bytes": 0, "skipped": 1, "skippedPaths": ["fifo"]}}
    if op == "archive-down":
        data = b"no archive" if "no-archive" in FAULTS else down.getvalue()
        document["bytes"] = base64.b64encode(data).decode()
    return {} if "no-summary" in FAULTS else document


def answer(op, request):
    match op:
        case "hello":
            return hello()
        case "capabilities":
            return {"capabilities": CAPABILITIES}
        case "create":
            return create(request)
        case "exec":
            return start(request)
        case "wait":
            return wait(request)
        case "cancel":
            CANCELLED.set()
        case "read":
            return {"bytes": base64.b64encode(b"\0\xff").decode()}
        case "archive-up" | "archive-down":
            return archive(op, request)
    return {}


def misbehave(op, number):
    """True: there is no other answer."""
    if f"crash-at-{op}" in FAULTS:
        print("the driver is about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if f"exit-at-{op}" in FAULTS:
        os._exit(3)
    if f"hang-at-{op}" in FAULTS:
        time.sleep(1000)
    lines = {
        "garbage": "Traceback (most recent call last):",
        "no-object": "[]",
        "no-document": {"id": number},
        "both": {"id": number, "ok": {}, "error": {"code": "UNKNOWN", "message": "both"}},
        "wrong-id": {"id": number + 1000, "ok": {}},
        "unknown-code": {"id": number, "error": {"code": "OOPS", "message": "unheard of"}},
        "error": {"id": number, "error": {"code": "UNSUPPORTED", "message": "not here"}},
    }
    for fault, line in lines.items():
        if f"{fault}-at-{op}" in FAULTS:
            say(line)
            return True
    if f"unfinished-at-{op}" in FAULTS:
        os.write(1, b'{"id": ')
        os._exit(0)
    if f"long-line-at-{op}" in FAULTS:
        os.write(1, b"x" * 70000)
        time.sleep(1000)
    if f"closes-output-at-{op}" in FAULTS:
        os.close(1)
        time.sleep(1000)
    return False


def serve(request):
    op, number = request["op"], request["id"]
    if misbehave(op, number):
        return
    for limit in ("maxEntries", "maxBytes", "timeout"):
        if f"wants-{limit}" in FAULTS and op.startswith("archive-") and limit not in request:
            told = {"message": f"there is no {limit}", "field": limit}
            say({"id": number, "error": {"code": "INVALID_OPTIONS", **told}})
            return
    document = {"id": number, "ok": answer(op, request)}
    say(document)
    if f"twice-at-{op}" in FAULTS:
        say(document)


def main():
    if "deaf" in FAULTS:
        request = json.loads(sys.stdin.readline())
        serve(request)
        time.sleep(1000)
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "shutdown":
            tidy_up()
            serve(request)
            break
        threading.Thread(target=serve, args=(request,), daemon=True).start()
    if "hang-after-shutdown" in FAULTS:
        time.sleep(1000)
    os._exit(4 if "exit-code-after-shutdown" in FAULTS else 0)


main()
