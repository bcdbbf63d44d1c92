"""One driver process and the conversation with it.

A thread reads the answers; whoever asks waits for its own. The first fault (an end, a line that is no
answer, silence beyond the deadline) is final: everybody who waits gets it, and nothing is asked again.
"""

import base64
import binascii
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runner import schemas
from runner.model import Document

LONGEST_LINE = 128 << 20
LONG_TEXT = 1 << 16
PROTOCOL = f"{schemas.KIT}protocol.schema.json"

# Gives inherited descriptors the numbers that a case wants, and becomes the driver.
_RENUMBER = """
import fcntl, os, resource, sys
pairs = [tuple(map(int, pair.split(':'))) for pair in sys.argv[1].split(',')]
above = max(number for pair in pairs for number in pair) + 1
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
least = above + len(pairs)
if 0 <= soft < least and not 0 <= hard < least:  # -1: no limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, hard))
high = [(fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, above), target) for source, target in pairs]
for source, _ in pairs:
    os.close(source)
for source, target in high:
    os.dup2(source, target, inheritable=True)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class DriverFault(Exception):
    """The driver broke the protocol."""


class Refusal(Exception):
    """The driver answered with an error document."""

    def __init__(self, document: Document):
        super().__init__(f"{document.get('code')}: {document.get('message')}")
        self.document = document


def _slim(value: Any) -> Any:
    """The document with long texts cut, at a multiple of four so that base64 stays base64."""
    if isinstance(value, str) and len(value) > LONG_TEXT:
        return value[:LONG_TEXT]
    if isinstance(value, dict):
        return {key: _slim(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_slim(inner) for inner in value]
    return value


def decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise DriverFault(f"bytes that are not base64: {error}") from error


def ended(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-status).name}"
    return f"signal {-status}"


class Driver:
    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        descriptors: Mapping[int, int] | None = None,
        groups: Sequence[int] = (),
    ):
        """`descriptors`: number in the driver -> ours. `groups`: supplementary ones, for root to give."""
        wanted = descriptors or {}
        if wanted:
            pairs = ",".join(f"{ours}:{number}" for number, ours in wanted.items())
            command = [sys.executable, "-I", "-S", "-c", _RENUMBER, pairs, *command]
        with log.open("ab") as stderr:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=dict(environment),
                    pass_fds=tuple(wanted.values()),
                    extra_groups=groups or None,
                    start_new_session=True,
                    bufsize=0,
                )
            except OSError as error:
                raise DriverFault(f"cannot be started: {error}") from error
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._last = 0
        self._asked: dict[int, str] = {}
        self._answers: dict[int, Document] = {}
        self._fault = ""
        self._leaving = False
        self.ended = False  # On purpose.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, op: str, fields: Document, deadline: float) -> Document:
        """The `ok` of the answer; Refusal with its error document; DriverFault."""
        if self.ended:
            raise DriverFault(self._fault or "has been ended")
        number = self._send(op, fields, deadline)
        answer = self._receive(number, op, deadline)
        if "error" in answer:
            raise Refusal(answer["error"])
        return dict(answer["ok"])

    def shut_down(self, deadline: float) -> None:
        """Asks it to leave, and wants exit code 0."""
        self._leaving = True
        self.ask("shutdown", {}, deadline)
        self.close_input(deadline)

    def close_input(self, deadline: float) -> None:
        """The end of its standard input is as good as a shutdown."""
        self._leaving = self.ended = True
        assert self._process.stdin
        self._process.stdin.close()
        try:
            status = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise DriverFault("did not exit after shutdown or the end of its input") from None
        self._reader.join(timeout=1)
        if status != 0:
            raise DriverFault(f"ended with {ended(status)} after shutdown, not with exit code 0")
        if self._fault:
            raise DriverFault(self._fault)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Ends it as a crash does; what it started is not touched."""
        self._leaving = True
        self.ended = True
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with self._changed:
            self._fault = self._fault or "was killed"
            self._changed.notify_all()
        # What it has left running may hold the pipe; then the thread keeps it, and ends with that.
        self._reader.join(timeout=0.2)
        if not self._reader.is_alive():
            self._process.stdout.close()

    def _send(self, op: str, fields: Document, deadline: float) -> int:
        with self._changed:
            self._last += 1
            number = self._last
            self._asked[number] = op
        line = json.dumps({"id": number, "op": op, **fields}, allow_nan=False) + "\n"
        if not self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._fail(f"did not take the request {op} in time")
        try:
            self._write(line.encode(), op, deadline)
        finally:
            self._writing.release()
        return number

    def _write(self, data: bytes, op: str, deadline: float) -> None:
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            if self._fault:
                raise DriverFault(self._fault)
            if left <= 0:
                self._fail(f"did not take the request {op} in time")
            _, ready, _ = select.select([], [self._input], [], min(left, 0.2))
            try:
                view = view[os.write(self._input, view[: 1 << 16]) :] if ready else view
            except BlockingIOError:
                continue
            except OSError:
                self._await_end()
                self._fail(f"closed its standard input before {op}")

    def _await_end(self) -> None:
        """A closed pipe is mostly the first sign of an end, about which there is more to say."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._fault), timeout=1)

    def _receive(self, number: int, op: str, deadline: float) -> Document:
        with self._changed:
            while number not in self._answers:
                if self._fault:
                    raise DriverFault(self._fault)
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    self._fault = self._fault or f"gave no answer to {op} (id {number}) in time"
            answer = self._answers.pop(number)
        ok = f"{PROTOCOL}#/$defs/ok/{op}"
        wrong = schemas.problems(ok, _slim(answer["ok"])) if "ok" in answer else []
        if wrong:
            self._fail(f"answered {op} with a document that breaks its schema: {'; '.join(wrong)}")
        return answer

    def _fail(self, fault: str) -> None:
        with self._changed:
            self._fault = self._fault or fault
            self._changed.notify_all()
        raise DriverFault(self._fault)

    def _read(self) -> None:
        try:
            self._read_lines()
        except DriverFault:
            return
        with contextlib.suppress(DriverFault):
            self._end_of_answers()

    def _read_lines(self) -> None:
        pending = bytearray()
        while chunk := self._chunk():
            pending += chunk
            while b"\n" in chunk and b"\n" in pending:
                line, _, rest = pending.partition(b"\n")
                pending = bytearray(rest)
                self._take(bytes(line))
            if len(pending) > LONGEST_LINE:
                self._fail(f"a line of more than {LONGEST_LINE} bytes")
        if pending:
            self._fail(f"a line without an end: {bytes(pending[:120])!r}")

    def _chunk(self) -> bytes:
        try:
            return os.read(self._output, 1 << 16)
        except OSError:
            return b""

    def _end_of_answers(self) -> None:
        try:
            status = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._fail("closed its standard output")
            return
        if not self._leaving or self._unanswered():
            self._fail(f"ended with {ended(status)}")

    def _unanswered(self) -> bool:
        with self._changed:
            return bool(self._asked)

    def _take(self, line: bytes) -> None:
        try:
            answer = json.loads(line)
        except ValueError:
            self._fail(f"printed a line that is not JSON: {line[:120]!r}")
            return
        wrong = schemas.problems(PROTOCOL, _slim(answer))
        if wrong:
            self._fail(f"printed a line that is no answer: {'; '.join(wrong)}")
        with self._changed:
            known = self._asked.pop(answer["id"], None)
            if known is not None:
                self._answers[answer["id"]] = answer
                self._changed.notify_all()
                return
        self._fail(f"answered id {answer['id']}, which no open request has")
