"""What a case finds on the host: files, links, listeners, processes, open descriptors."""

import base64
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.listeners import Listener
from runner.model import KitError

_PRIVATE = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "TMPDIR": "tmp"}
# Not /tmp: a private one in the sandbox would hide the canaries, whatever else of the host it shows.
PLACE = Path("/var/tmp")
MARKER = "PALMSHED_CONFORMANCE_CASE"


def content(item: Mapping[str, Any]) -> bytes:
    """The bytes that a case writes as text, as base64 or as one byte so many times."""
    if "base64" in item:
        return base64.b64decode(item["base64"])
    if "fill" in item:
        return bytes([item["fill"]["byte"]]) * int(item["fill"]["count"])
    return str(item.get("text", item.get("content", ""))).encode()


def _fingerprint(path: Path) -> str:
    try:
        status = path.lstat()
        data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    except OSError as error:
        return f"{error.strerror}"
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"mode {status.st_mode:o}, owner {status.st_uid}:{status.st_gid}, content {digest}"


def make_directory(place: Path) -> Path:
    """Open to all: permissions that hide what is in it would show nothing about isolation."""
    try:
        directory = Path(tempfile.mkdtemp(prefix="palmshed-kit-", dir=place))
    except OSError as error:
        raise KitError(f"no directory can be made in {place}: {error}") from error
    directory.chmod(0o755)
    return directory


def remove_tree(directory: Path) -> None:
    """Directories that a program has closed to its own user are opened first."""
    for top, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


class Prepared:
    """Made before the driver starts. Everything stands below one directory that goes at the end."""

    def __init__(
        self,
        host: Mapping[str, Any],
        marker: str,
        place: Path = PLACE,
        runtime: Path | None = None,
    ):
        """`runtime`: an XDG_RUNTIME_DIR that all cases of a run have in common; None: one of its own."""
        self.runtime = runtime
        self.root = make_directory(place)
        self.directory = self.root / "host"
        self.marker = marker
        self.variables: dict[str, str] = {"host.dir": str(self.directory), "case.marker": marker}
        self.listeners: dict[str, Listener] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._paths: dict[str, Path] = {}
        self._descriptors: dict[int, int] = {}
        try:
            self._make(host)
        except (OSError, KeyError) as error:
            self.close()
            raise KitError(f"the host cannot be prepared: {error}") from error
        self._before = {name: _fingerprint(path) for name, path in self._paths.items()}

    def _make(self, host: Mapping[str, Any]) -> None:
        self.directory.mkdir()
        for name in _PRIVATE.values():
            (self.root / name).mkdir(mode=0o700)
        for item in host.get("directories", ()):
            path = self._place(item)
            path.mkdir(exist_ok=True)
            path.chmod(int(item.get("mode", "0755"), 8))
        for item in host.get("files", ()):
            path = self._place(item)
            path.write_bytes(content(item))
            path.chmod(int(item.get("mode", "0644"), 8))
            self.variables[f"host.{item['name']}.content"] = content(item).decode(
                "utf-8", "replace"
            )
        for item in host.get("links", ()):
            self._place(item).symlink_to(item["target"])
        for item in host.get("listeners", ()):
            self._listen(item["name"], item["kind"])
        for item in host.get("processes", ()):
            self._start(item["name"])
        for item in host.get("descriptors", ()):
            path = self._paths[item["file"]]
            self._descriptors[item["number"]] = os.open(path, os.O_RDONLY)

    def _place(self, item: Mapping[str, Any]) -> Path:
        path = self.directory / str(item.get("path", item["name"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._paths[item["name"]] = path
        self.variables[f"host.{item['name']}"] = str(path)
        return path

    def _listen(self, name: str, kind: str) -> None:
        listener = Listener(name, kind, self.directory, self.marker)
        listener.open_to_all()
        self.listeners[name] = listener
        self.variables[f"host.{name}.port"] = str(listener.port)
        self.variables[f"host.{name}.path"] = listener.path

    def _start(self, name: str) -> None:
        process = subprocess.Popen(["sleep", "100000"], stdin=subprocess.DEVNULL, cwd="/")
        self.processes[name] = process
        self.variables[f"host.{name}.pid"] = str(process.pid)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """That of the driver: ours, with the case's own directories and its marker."""
        private = {variable: str(self.root / name) for variable, name in _PRIVATE.items()}
        if self.runtime:
            private["XDG_RUNTIME_DIR"] = str(self.runtime)
        return {**os.environ, **private, MARKER: self.marker, **extra}

    def descriptors(self) -> dict[int, int]:
        return dict(self._descriptors)

    def private_directories(self) -> list[Path]:
        return [self.root / name for name in _PRIVATE.values()]

    def changes(self, name: str) -> tuple[str, str] | None:
        """How a prepared file was and how it is, where that differs."""
        before, now = self._before[name], _fingerprint(self._paths[name])
        return None if before == now else (before, now)

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        for descriptor in self._descriptors.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        remove_tree(self.root)
