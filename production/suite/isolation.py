"""What a program inside sees of the host: nothing that it was not given."""

import os
import secrets
import socket
import threading
from pathlib import Path

from suite.stage import Stage


def filesystem(stage: Stage) -> None:
    """A secret on the host is out of reach by every path, and the host's files cannot be changed."""
    secret = secrets.token_hex(16)
    places = [stage.file("secret", secret), Path.home() / f".palmshed-{os.getpid()}"]
    places[1].write_text(secret)
    try:
        with stage.step("the control", 10):
            for place in places:
                stage.check(secret in stage.run("cat", str(place)).text, "the control cannot read")
        with stage.step("reading", 110):
            for place in places:
                for path in (str(place), f"/proc/1/root{place}", f"/proc/self/root{place}"):
                    ran = stage.inside("cat", path)
                    stage.check(ran.status != 0 and secret not in ran.text, f"{path} was read")
            found = stage.inside("grep", "-rlsF", "--exclude-dir=proc", "--exclude-dir=sys", "--exclude-dir=usr", secret, "/")
            stage.equal("what a search of everything finds", found.out, b"")
        with stage.step("writing", 20):
            for path in ("/etc/passwd", "/usr/bin/palmshed-was-here", "/lib/x"):
                ran = stage.inside("sh", "-c", f"echo x >> {path}")
                stage.check(ran.status != 0, f"{path} was written")
            here = Path("/usr/bin/palmshed-was-here")
            stage.check(not here.exists(), f"{here} is on the host")
    finally:
        places[1].unlink()


_CONNECT = """\
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5).close()
except OSError as error:
    sys.exit(f"refused: {error}")
print("connected")
"""


def network(stage: Stage) -> None:
    """A listener on the host's loopback sees nobody, unless the network was allowed."""
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    seen.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            connect = ("python3", "-c", _CONNECT, port)
            with stage.step("refused by default", 20):
                ran = stage.inside(*connect)
                stage.check(ran.status == 1 and b"refused" in ran.err, "it was not refused")
                stage.equal("connections", len(seen), 0)
            with stage.step("the control: allowed", 20):
                ran = stage.inside(*connect, options=("--network", "allow"))
                stage.equal("its output", ran.text, "connected\n")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in seen:
                connection.close()
    stage.equal("connections, all told", len(seen), 1)
    with stage.step("its own loopback", 20):
        own = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('own')"
        stage.equal("its output", stage.inside("python3", "-c", own).text, "own\n")
