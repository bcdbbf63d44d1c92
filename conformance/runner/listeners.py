"""Servers on the host, on loopback only, that nobody inside a sandbox may reach."""

import contextlib
import os
import socket
import threading
from pathlib import Path

_FAMILIES = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM),
    "udp": (socket.AF_INET, socket.SOCK_DGRAM),
    "unix": (socket.AF_UNIX, socket.SOCK_STREAM),
    "unix-abstract": (socket.AF_UNIX, socket.SOCK_STREAM),
}


class Listener:
    """Counts connections or datagrams, and answers each with its own name."""

    def __init__(self, name: str, kind: str, directory: Path, marker: str):
        self.name = name
        self.hits = 0
        self.path = ""
        family, style = _FAMILIES[kind]
        self._socket = socket.socket(family, style)
        self._socket.bind(self._address(kind, directory, marker))
        self.port = self._socket.getsockname()[1] if kind in ("tcp", "tcp6", "udp") else 0
        self._streams = style == socket.SOCK_STREAM
        if self._streams:
            self._socket.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def _address(self, kind: str, directory: Path, marker: str) -> tuple[str, int] | str:
        if kind in ("tcp", "udp"):
            return ("127.0.0.1", 0)
        if kind == "tcp6":
            return ("::1", 0)
        if kind == "unix-abstract":
            self.path = f"{marker}-{self.name}"
            return "\0" + self.path
        self.path = str(directory / f"{self.name}.sock")
        return self.path

    def open_to_all(self) -> None:
        """A server that file permissions hide would show nothing about isolation."""
        if self.path and os.path.exists(self.path):
            os.chmod(self.path, 0o777)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                if self._streams:
                    connection, _ = self._socket.accept()
                    self.hits += 1
                    with connection, contextlib.suppress(OSError):
                        connection.sendall(self.name.encode() + b"\n")
                else:
                    _, sender = self._socket.recvfrom(65536)
                    if sender is None:  # Shut down.
                        return
                    self.hits += 1
                    self._socket.sendto(self.name.encode(), sender)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
