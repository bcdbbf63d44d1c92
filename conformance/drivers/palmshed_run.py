#!/usr/bin/env python3
"""A driver over `palmshed run`: every execution is one run of the program, in a sandbox of its own.

Files that are written before an execution are copied in (--copy); nothing lasts from one to the next. The result
document is the one that --json writes, untouched.

Usage: palmshed_run.py PALMSHED
"""

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

from support.execution import KEPT, Stream, size, write_to  # noqa: E402
from support.protocol import Document, DriverError, serve  # noqa: E402
from support.workspace import Workspace  # noqa: E402

LACKS = (
    *("status", "signal", "resize", "read", "download", "list", "stat", "mkdir", "remove", "move", "chmod"),
    *("archive-up", "archive-down"),
    *("workspace", "concurrent", "raw-options"),
    *("create.backend", "create.image", "create.labels", "create.networkAllow", "create.proxyUrl"),
    *("create.idleTimeout", "create.maxLifetime", "exec.descendants"),
    "exec.tty",
)
KNOWN_S = 60.0
FLAGS = {
    "memory": "--memory",
    "diskQuota": "--disk",
    "network": "--network",
    "workDir": "--workdir",
    "name": "--name",
    "maxOutputBytes": "--max-output",
    "storage": "--storage",
}
TIMES = {"timeout": "--timeout", "cpuTimeLimit": "--cpu-time"}
NUMBERS = {"cpuQuota": "--cpus", "cpu": "--cpus", "pids": "--pids-limit"}


def flags(options: Document) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        if name in FLAGS:
            words += [FLAGS[name], f"{value}b" if isinstance(value, int) else str(value)]
        elif name in TIMES:
            words += [TIMES[name], f"{value}ms"]
        elif name in NUMBERS:
            words += [NUMBERS[name], str(value)]
        elif name == "env":
            words += [word for key, text in value.items() for word in ("--env", f"{key}={text}")]
        elif name == "degraded":
            words += ["--degraded", ",".join(value)] if value else []
        elif name == "mounts":
            words += [word for mount in value for word in ("--volume", _volume(mount))]
        elif name == "osFilesystemIsolation":
            words += ["--osfs", "on" if value else "off"]
        elif name == "timings":
            words += ["--timings"] if value else []
        elif name != "stdin":
            raise DriverError("UNSUPPORTED", f"there is no flag for {name}", field=name)
    return words


def _volume(mount: Document) -> str:
    writable = "" if mount.get("readOnly", True) else ":rw"
    return f"{mount['source']}:{mount['target']}{writable}"


class OneRun:
    """One process of `palmshed run`."""

    def __init__(self, program: str, box: Workspace, options: Document, words: list[str]):
        self.box = box.id
        self.id = f"exec_{secrets.token_hex(8)}"
        self._report = box.directory.parent / f"{self.id}.json"
        stdin = options.get("stdin", "null")
        command = [program, "run", "--quiet", "--json", str(self._report)]
        command += ["--copy", f"{box.directory}:."] if any(box.directory.iterdir()) else []
        command += ["--interactive"] if stdin != "null" else []
        self._process = subprocess.Popen(
            [*command, *flags(options), "--", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdout and self._process.stderr
        kept = size(options.get("maxOutputBytes")) or KEPT
        self.stdout = Stream(self._process.stdout.fileno(), kept)
        self.stderr = Stream(self._process.stderr.fileno(), kept)
        self._stopped = False
        self._reading = threading.Lock()
        self._document: Document = {}
        self._open = stdin == "pipe"
        if not self._open:
            data = b"" if stdin == "null" else _content(stdin)
            threading.Thread(target=write_to, args=(self._process, data, True), daemon=True).start()

    def feed(self, data: bytes, close: bool) -> None:
        """Bytes from the caller."""
        if not self._open:
            raise DriverError("CONFLICT", "its standard input is no open pipe")
        self._open = not close
        write_to(self._process, data, close)

    def cancel(self) -> None:
        """A second signal would end it at once, without a document."""
        if not self._stopped:
            self._stopped = True
            self._process.send_signal(signal.SIGTERM)

    def document(self) -> Document:
        """What --json wrote: a result, or the error because of which nothing ran."""
        with self._reading:
            self._document = self._document or self._read()
        if "code" in self._document:
            raise DriverError(**self._document)
        return self._document

    def _read(self) -> Document:
        status = self._process.wait()
        for stream in (self.stdout, self.stderr):
            stream.drain(5)
        try:
            document = json.loads(self._report.read_text())
        except (OSError, ValueError) as error:
            said = self.stderr.tail()[0].decode(errors="replace").strip()
            raise DriverError("UNKNOWN", f"exit code {status} and no document: {said}") from error
        return dict(document)


def _content(stdin: Document) -> bytes:
    return base64.b64decode(stdin["base64"]) if "base64" in stdin else stdin["text"].encode()


class PalmshedRun:
    def __init__(self, program: str):
        self._program = program
        self._sandboxes: dict[str, tuple[Workspace, Document]] = {}
        self._runs: dict[str, OneRun] = {}

    def _say(self, *words: str) -> Document:
        done = subprocess.run(
            [self._program, *words, "--format", "json"], capture_output=True, check=False
        )
        return dict(json.loads(done.stdout))

    def hello(self) -> Document:
        version, private = self._say("version"), os.environ
        state = [
            private.get("XDG_RUNTIME_DIR", "/nowhere"),
            private.get("XDG_STATE_HOME", "/nowhere"),
        ]
        shared = ["/run", "/var/lib"] if os.geteuid() == 0 else []
        return {
            "name": "palmshed run",
            "version": version["version"],
            "specVersion": version["specVersion"],
            "capabilities": self._known_capabilities(),
            "lacks": list(LACKS),
            "watch": [f"{top}/palmshed" for top in shared],
            "keeps": [f"{top}/palmshed" for top in state]
            + [f"{top}/palmshed/uids" for top in shared]
            + [f"{top}/palmshed/capabilities-*" for top in (state[0], *shared[:1])],
        }

    def _known_capabilities(self) -> Document:
        """Of this minute: `doctor` tests everything, each time, and every case begins with a driver."""
        directory = Path(os.environ.get("XDG_RUNTIME_DIR", "/nowhere"), "palmshed")
        known = directory / "capabilities-of-the-driver.json"
        with suppress(OSError, ValueError):
            if time.time() - known.stat().st_mtime < KNOWN_S:
                return dict(json.loads(known.read_text()))
        document = self._say("doctor")
        with suppress(OSError):
            directory.mkdir(mode=0o700, exist_ok=True)
            draft = known.with_suffix(f".{os.getpid()}")
            draft.write_text(json.dumps(document))
            draft.replace(known)
        return document

    def capabilities(self) -> Document:
        return {"capabilities": self._say("doctor")}

    def create(self, options: Document) -> Document:
        box = Workspace(contained=True)
        try:
            # Options are refused where they are given, and a run is the only place to give them.
            OneRun(self._program, box, options, ["true"]).document()
        except DriverError:
            box.close()
            raise
        self._sandboxes[box.id] = (box, options)
        return {"sandbox": box.id}

    def exec(
        self, sandbox: str, options: Document, args: Any = None, command: Any = None
    ) -> Document:
        box, defaults = self._sandbox(sandbox)
        env = {**defaults.get("env", {}), **options.get("env", {})}
        words = args if args is not None else ["/bin/sh", "-c", command]
        # 0 is the sandbox's own limit.
        own = {name: value for name, value in options.items() if value != 0}
        merged = {**defaults, **own, **({"env": env} if env else {})}
        run = OneRun(self._program, box, merged, words)
        self._runs[run.id] = run
        return {"execution": run.id}

    def wait(self, execution: str) -> Document:
        return {"result": self._run(execution).document()}

    def stream(self, execution: str, stream: str, cursor: int, waitMs: int) -> Document:
        run = self._run(execution)
        return (run.stdout if stream == "stdout" else run.stderr).since(cursor, waitMs / 1000)

    def stdin(self, execution: str, bytes: str, close: bool) -> Document:
        self._run(execution).feed(base64.b64decode(bytes), close)
        return {}

    def cancel(self, execution: str) -> Document:
        self._run(execution).cancel()
        return {}

    def write(self, sandbox: str, **fields: Any) -> Document:
        return self._sandbox(sandbox)[0].write(**fields)

    def upload(self, sandbox: str, **fields: Any) -> Document:
        return self._sandbox(sandbox)[0].upload(**fields)

    def destroy(self, sandbox: str) -> Document:
        box, _ = self._sandbox(sandbox)
        del self._sandboxes[sandbox]
        for run in self._runs.values():
            if run.box == sandbox:
                run.cancel()
                with suppress(DriverError):
                    run.document()
        box.close()
        return {}

    def close(self) -> None:
        for sandbox in list(self._sandboxes):
            self.destroy(sandbox)

    def _sandbox(self, identifier: str) -> tuple[Workspace, Document]:
        if identifier not in self._sandboxes:
            raise DriverError("NOT_FOUND", f"there is no sandbox {identifier}")
        return self._sandboxes[identifier]

    def _run(self, identifier: str) -> OneRun:
        if identifier not in self._runs:
            raise DriverError("NOT_FOUND", f"there is no execution {identifier}")
        return self._runs[identifier]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(serve(PalmshedRun(str(Path(sys.argv[1]).resolve()))))
