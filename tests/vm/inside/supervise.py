"""Process 1 of the guest, once everything is mounted: runs the command, brings out what came of it, powers off."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import traceback
from pathlib import Path
from typing import IO, Any

RESULTS = Path("/results")
SERVICE = "/run/docker.sock"
POWER_OFF = 0x4321FEDC
USERS = {"root": (0, "/root"), "user": (1000, "/home/user")}
PIECE = 65536


def channel(name: str) -> IO[bytes]:
    """The port of this name. What is written blocks until the outside has taken it."""
    for path in Path("/sys/class/virtio-ports").iterdir():
        if (path / "name").read_text().strip() == name:
            return open(f"/dev/{path.name}", "wb", buffering=0)
    raise FileNotFoundError(f"no channel {name}")


def pump(source: IO[bytes], sink: IO[bytes]) -> None:
    while piece := os.read(source.fileno(), PIECE):
        while piece:
            piece = piece[sink.write(piece) :]


def stand_in() -> socket.socket:
    """What cases look for on a host: the socket of a service, open to everybody. Nobody answers there."""
    service = socket.socket(socket.AF_UNIX)
    service.bind(SERVICE)
    os.chmod(SERVICE, 0o666)
    service.listen()
    return service


def start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    number, home = USERS[request["as"]]
    os.chown(home, number, number)
    os.chown(RESULTS, number, number)
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": home,
        "LANG": "C.UTF-8",
        "USER": request["as"],
        "GUEST_RESULTS": str(RESULTS),
        **request["env"],
    }
    return subprocess.Popen(
        request["args"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=request["directory"],
        env=environment,
        user=number,
        group=number,
        extra_groups=[],
        start_new_session=True,
    )


def reap_until(pid: int) -> int:
    """Orphans become ours, and nobody else collects them."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def supervise(request: dict[str, Any]) -> dict[str, Any]:
    RESULTS.mkdir()
    service = stand_in()
    try:
        command = start(request)
    except OSError as error:
        return {"error": f"{request['args'][0]}: {error.strerror}"}
    sinks = ((command.stdout, "stdout"), (command.stderr, "stderr"))
    pumps = [threading.Thread(target=pump, args=(end, channel(name))) for end, name in sinks]
    for thread in pumps:
        thread.start()
    late = threading.Event()

    def stop() -> None:
        late.set()
        os.kill(command.pid, signal.SIGKILL)

    limit = threading.Timer(request["timeout"], stop)
    limit.start()
    code = reap_until(command.pid)
    limit.cancel()
    try:
        os.kill(-1, signal.SIGKILL)  # Everything but us, so that the pipes end.
    except ProcessLookupError:
        pass  # Nothing was left.
    for thread in pumps:
        thread.join()
    service.close()
    return {"late": True} if late.is_set() else {"exitCode": code if code >= 0 else 128 - code}


def bring_out_results() -> None:
    with channel("results") as sink, tarfile.open(fileobj=sink, mode="w|") as archive:
        archive.add(RESULTS, arcname=".")


def main() -> None:
    try:
        ended = supervise(json.loads(Path("/guest/request.json").read_text()))
        bring_out_results()
        with channel("status") as sink:
            sink.write(json.dumps(ended).encode())
    except BaseException:  # Process 1 must not end; the console tells.
        traceback.print_exc()
    sys.stderr.flush()
    os.sync()
    ctypes.CDLL(None).reboot(POWER_OFF)


main()
