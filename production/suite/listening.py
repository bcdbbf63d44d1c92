"""Listeners on the host, of every kind that a network namespace is to keep apart."""

import contextlib
import os
import selectors
import socket
import threading
from pathlib import Path


class Listeners:
    """Answer everybody who asks with a word, and count them."""

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._sockets = {
            "tcp": socket.create_server(("127.0.0.1", 0)),
            "udp": socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            "abstract": socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        }
        self._sockets["udp"].bind(("127.0.0.1", 0))
        self._sockets["abstract"].bind(f"\0production-{os.getpid()}-{id(self)}")
        self._sockets["abstract"].listen()
        if _has_ipv6_loopback():
            self._sockets["tcp6"] = socket.create_server(("::1", 0), family=socket.AF_INET6)
        self.places = {kind: _place(listener) for kind, listener in self._sockets.items()}
        self.answered = dict.fromkeys(self._sockets, 0)
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Listeners":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.close()
        self._thread.join()
        for listener in (*self._sockets.values(), self._stopped):
            listener.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._stopped, selectors.EVENT_READ)
            for kind, listener in self._sockets.items():
                selector.register(listener, selectors.EVENT_READ, kind)
            while True:
                kinds = [key.data for key, _ in selector.select()]
                for kind in filter(None, kinds):
                    self._answer(kind)
                if kinds == [None]:
                    return

    def _answer(self, kind: str) -> None:
        self.answered[kind] += 1
        if kind == "udp":
            self._sockets[kind].sendto(self._word, self._sockets[kind].recvfrom(64)[1])
            return
        with self._sockets[kind].accept()[0] as asked, contextlib.suppress(OSError):
            asked.settimeout(5)
            asked.recv(64)
            asked.sendall(self._word)


def _has_ipv6_loopback() -> bool:
    addresses = Path("/proc/net/if_inet6")
    return addresses.exists() and "00000000000000000000000000000001" in addresses.read_text()


def _place(listener: socket.socket) -> str:
    name = listener.getsockname()
    return name[1:].decode() if isinstance(name, bytes) else str(name[1])
