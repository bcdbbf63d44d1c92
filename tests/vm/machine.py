"""One guest: an emulated machine with no network device, which a time limit ends whatever it does.

Its channels are ports of virtio-serial that lead into pipes of ours: the command's stdout and stderr as they
come, a tar archive of the results, and how it ended. The console is kept for when something goes wrong.
Whatever comes out was written by a machine that may be harmed, and is taken as such.
"""

import contextlib
import ctypes
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import image
import kernels

# The conformance kit runs drivers that isolate nothing only where this stands on the kernel's command line.
THROWAWAY_WORD = "palmshed.throwaway"
ARCHITECTURE = "x86_64"
LATE, BROKEN = 124, 125
RESULTS = "/results"  # In the guest, where $GUEST_RESULTS says so too.
MOST_RESULTS = 256 * 1024 * 1024
MOST_STATUS = 4096
CONSOLE_SHOWN = 25
_PIECE = 65536
_PR_SET_PDEATHSIG = 1
_QEMU = "qemu-system-x86_64"
_LIBC = ctypes.CDLL(None)


class GuestFailed(Exception):
    """The guest, not the command in it."""


@dataclass(frozen=True)
class Request:
    args: tuple[str, ...]
    trees: tuple[Path, ...] = ()
    kernel: str = kernels.DEFAULT
    user: str = "root"
    timeout_s: float = 60.0  # Of the command, whose results come out even then.
    around_s: float = 90.0  # Of everything around it: two seconds on an idle machine.
    directory: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    results: Path | None = None  # Where the guest's /results goes.
    memory_mib: int = 1024
    processors: int = 1


@dataclass(frozen=True)
class Ended:
    exit_code: int
    late: bool = False  # The time limit ended it.


class _Channel:
    """A pipe whose writing end is QEMU's, and the thread that empties it."""

    def __init__(self, name: str, take: Callable[[bytes], object]):
        self.name = name
        self._reading, self.writing = os.pipe()
        self._take = take
        self._thread = threading.Thread(target=self._empty, daemon=True)

    def arguments(self, number: int) -> list[str]:
        backend = f"file,id={self.name},path=/dev/fd/{self.writing}"
        port = f"virtserialport,nr={number},chardev={self.name},name={self.name}"
        return ["-chardev", backend, "-device", port]

    def start(self) -> None:
        os.close(self.writing)
        self._thread.start()

    def end(self) -> None:
        """All ends of the pipe are QEMU's, so it ends with that."""
        self._thread.join()
        os.close(self._reading)

    def _empty(self) -> None:
        while piece := os.read(self._reading, _PIECE):
            with contextlib.suppress(OSError, ValueError):  # Nobody wants it any more.
                self._take(piece)


def run(request: Request, stdout: BinaryIO, stderr: BinaryIO) -> Ended:
    if platform.machine() != ARCHITECTURE:
        raise GuestFailed(f"the guest runs this host's programs, which are not of {ARCHITECTURE}")
    if shutil.which(_QEMU) is None:
        raise GuestFailed(f"{_QEMU} is missing")
    kernel = kernels.get(request.kernel)
    with tempfile.TemporaryDirectory(prefix="palmshed-vm-") as directory:
        place = Path(directory)
        with (place / "image").open("wb") as stream:
            image.build(stream, kernel, request.trees, _inside(request))
        results, status = io.BytesIO(), io.BytesIO()
        channels = [
            _Channel("stdout", lambda piece: _pass_on(piece, stdout)),
            _Channel("stderr", lambda piece: _pass_on(piece, stderr)),
            _Channel("results", lambda piece: _keep(piece, results, MOST_RESULTS)),
            _Channel("status", lambda piece: _keep(piece, status, MOST_STATUS)),
        ]
        in_time = _boot(request, kernel.image, place, channels)
        return _outcome(request, in_time, results, status, place / "console")


def _inside(request: Request) -> dict[str, object]:
    return {
        "args": request.args,
        "as": request.user,
        "timeout": request.timeout_s,
        "directory": request.directory,
        "env": request.env,
    }


def _pass_on(piece: bytes, sink: BinaryIO) -> None:
    sink.write(piece)
    sink.flush()


def _keep(piece: bytes, sink: io.BytesIO, most: int) -> None:
    sink.write(piece[: most - sink.tell()])


def _boot(request: Request, kernel: Path, place: Path, channels: list[_Channel]) -> bool:
    """Whether the machine went off by itself."""
    # Mitigations guard a processor that is not there, and nearly double the time of a boot.
    words = ("console=ttyS0", "quiet", "panic=-1", "mitigations=off", THROWAWAY_WORD)
    command = [
        *(_QEMU, "-accel", "tcg", "-machine", "q35", "-cpu", "max", "-bios", "qboot.rom"),
        *("-smp", str(request.processors), "-m", str(request.memory_mib)),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-serial", f"file:{place / 'console'}", "-device", "virtio-serial-pci"),
        *("-kernel", str(kernel), "-initrd", str(place / "image"), "-append", " ".join(words)),
    ]
    for number, channel in enumerate(channels, start=1):
        command += channel.arguments(number)
    with (place / "qemu").open("wb") as said, _started(command, channels, said) as machine:
        try:
            machine.wait(request.timeout_s + request.around_s)
            return True
        except subprocess.TimeoutExpired:
            return False


@contextlib.contextmanager
def _started(
    command: list[str], channels: list[_Channel], said: BinaryIO
) -> Iterator[subprocess.Popen[bytes]]:
    machine = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=[channel.writing for channel in channels],
        start_new_session=True,
        preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
    )
    try:
        for channel in channels:
            channel.start()
        yield machine
    finally:
        machine.kill()
        machine.wait()
        for channel in channels:
            channel.end()


def _outcome(
    request: Request, in_time: bool, results: io.BytesIO, status: io.BytesIO, console: Path
) -> Ended:
    if request.results is not None:
        unpack(results, request.results)
    try:
        ended = json.loads(status.getvalue())
        if "error" in ended:
            raise GuestFailed(str(ended["error"]))
        return Ended(LATE, late=True) if ended.get("late") else Ended(int(ended["exitCode"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # It did not come so far.
    if not in_time:
        return Ended(LATE, late=True)
    raise GuestFailed(f"the guest ended without a word; its last ones were:\n{_last_words(console)}")


def _last_words(console: Path) -> str:
    said = [path for path in (console, console.with_name("qemu")) if path.exists()]
    lines = [line for path in said for line in path.read_text(errors="replace").splitlines()]
    return "\n".join(lines[-CONSOLE_SHOWN:])


def unpack(archive: io.BytesIO, target: Path) -> None:
    """Plain files and directories below `target`; anything else that such an archive can hold is left out."""
    archive.seek(0)
    target.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(tarfile.ReadError), tarfile.open(fileobj=archive, mode="r|") as members:
        for member in members:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                continue
            if member.isdir():
                (target / name).mkdir(parents=True, exist_ok=True)
            elif member.isreg() and (content := members.extractfile(member)):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (target / name).write_bytes(content.read())
