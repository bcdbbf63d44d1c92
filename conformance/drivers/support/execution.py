"""A program that runs, what it has written, and the result document that it ends with."""

import base64
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from support.protocol import Document, DriverError

SPEC_VERSION = "1.4.0"
KEPT = 16 << 20
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([bkmgt])i?b?", re.IGNORECASE)

# A parent-death signal (bwrap --die-with-parent) is sent when the thread ends that started the process.
_STARTER = ThreadPoolExecutor(1, "starter")


def write_to(process: subprocess.Popen[bytes], data: bytes, close: bool) -> None:
    """Everything, to the standard input of a process that may not want it."""
    assert process.stdin
    try:
        view = memoryview(data)
        while view:
            view = view[process.stdin.write(view) :]
        if close:
            process.stdin.close()
    except (BrokenPipeError, ValueError):
        pass  # The program reads no more, which is its right.


def encoded(name: str, data: bytes) -> Document:
    try:
        return {name: data.decode("utf-8"), f"{name}Encoding": "utf-8"}
    except UnicodeDecodeError:
        return {name: base64.b64encode(data).decode(), f"{name}Encoding": "base64"}


def timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def size(value: Any) -> int:
    """Bytes, from a number or a number with a unit; 0 for what is neither."""
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(value or "")
    return int(float(match[1]) * 1024 ** "bkmgt".index(match[2].lower())) if match else 0


class Stream:
    """Reads one pipe to its end and keeps the tail."""

    def __init__(self, descriptor: int, kept: int):
        self._data, self._dropped, self._kept = bytearray(), 0, kept
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(descriptor,), daemon=True)
        self._thread.start()

    def _read(self, descriptor: int) -> None:
        while chunk := os.read(descriptor, 1 << 16):
            with self._changed:
                self._data += chunk
                beyond = max(0, len(self._data) - self._kept)
                self._dropped += beyond
                del self._data[:beyond]
                self._changed.notify_all()
        self.end()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def drain(self, seconds: float) -> None:
        """Waits for the end of the pipe, which somebody in the background may hold open."""
        self._thread.join(seconds)
        self.end()

    def _end(self) -> int:
        return self._dropped + len(self._data)

    def tail(self) -> tuple[bytes, int]:
        """What is kept, and how many bytes there were in all."""
        with self._changed:
            return bytes(self._data), self._dropped + len(self._data)

    def since(self, cursor: int, seconds: float) -> Document:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._end() > cursor, seconds)
            if not self._dropped <= cursor <= self._end():
                raise DriverError(
                    "INVALID_OPTIONS", "no byte with this number is kept", field="cursor"
                )
            start = cursor - self._dropped
            part = bytes(self._data[start : start + (1 << 20)])
            following = cursor + len(part)
            end = self._ended and following >= self._end()
        return {"bytes": base64.b64encode(part).decode(), "next": following, "end": end}


class Execution:
    """Ends when its main process does; what is in the pipes then still counts."""

    def __init__(
        self,
        args: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        stdin: bytes | None,
        backend: str,
        timeout_ms: int = 0,
        kept: int = KEPT,
    ):
        """`stdin`: bytes and then the end; None: a pipe that stays open."""
        self.id = f"exec_{secrets.token_hex(8)}"
        self._backend = backend
        self._started, self._began = datetime.now(UTC), time.monotonic()
        self._limit_ms, self._cause = timeout_ms, ""
        self._open = stdin is None
        self._result: Document | None = None
        self._over = threading.Event()
        self.process = _STARTER.submit(
            subprocess.Popen,
            args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
            bufsize=0,
        ).result()
        assert self.process.stdout and self.process.stderr
        self.stdout = Stream(self.process.stdout.fileno(), kept)
        self.stderr = Stream(self.process.stderr.fileno(), kept)
        threading.Thread(target=self._attend, daemon=True).start()
        if stdin is not None:
            threading.Thread(target=write_to, args=(self.process, stdin, True), daemon=True).start()
        if timeout_ms:
            timer = threading.Timer(timeout_ms / 1000, self.end, ("wall_timeout",))
            timer.daemon = True
            timer.start()

    def feed(self, data: bytes, close: bool) -> None:
        """Bytes from the caller."""
        if not self._open:
            raise DriverError("CONFLICT", "its standard input is no open pipe")
        self._open = not close
        write_to(self.process, data, close)

    def signal(self, number: int) -> None:
        if not self._over.is_set():
            os.killpg(self.process.pid, number)

    def end(self, cause: str) -> None:
        """Kills it; `cause` becomes that of the result unless it is over already."""
        if self._over.is_set():
            return
        self._cause = self._cause or cause
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _attend(self) -> None:
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (self.stdout, self.stderr):
            stream.drain(0.3)
        self._result = self._document(self.process.returncode, usage)
        self._over.set()

    def wait(self) -> Document:
        self._over.wait()
        assert self._result
        return self._result

    def metadata(self) -> Document:
        if self._result:
            return dict(self._result["metadata"])
        return self._metadata(-1, {})

    def _metadata(self, exit_code: int, more: Document) -> Document:
        return {
            "id": self.id,
            "backend": self._backend,
            "specVersion": SPEC_VERSION,
            "startedAt": timestamp(self._started),
            "durationMs": int((time.monotonic() - self._began) * 1000),
            "exitCode": exit_code,
            "timedOut": self._cause == "wall_timeout",
            **more,
        }

    def _ending(self, code: int) -> tuple[str, int, Document]:
        """Status, exit code and termination."""
        if self._cause == "wall_timeout":
            return "timedout", -1, {"cause": self._cause, "limit": self._limit_ms}
        if self._cause:
            return "cancelled", -1, {"cause": self._cause}
        if code < 0:
            return "failed", 128 - code, {"cause": "signaled", "signal": -code}
        return ("failed" if code else "completed"), code, {"cause": "exited"}

    def _document(self, code: int, usage: Any) -> Document:
        status, exit_code, termination = self._ending(code)
        cpu = int((usage.ru_utime + usage.ru_stime) * 1000)
        measured = {"cpuTimeMs": cpu, "peakMemoryBytes": usage.ru_maxrss * 1024}
        more: Document = {"finishedAt": timestamp(datetime.now(UTC)), **measured}
        if "signal" in termination:
            more["signal"] = termination["signal"]
        metadata = self._metadata(exit_code, more)
        (out, out_total), (err, err_total) = self.stdout.tail(), self.stderr.tail()
        return {
            "id": self.id,
            "status": status,
            "exitCode": exit_code,
            "timedOut": metadata["timedOut"],
            **encoded("stdout", out),
            "stdoutTotalBytes": out_total,
            **encoded("stderr", err),
            "stderrTotalBytes": err_total,
            "truncated": out_total > len(out) or err_total > len(err),
            "durationMs": metadata["durationMs"],
            **measured,
            "termination": termination,
            "metadata": metadata,
        }
