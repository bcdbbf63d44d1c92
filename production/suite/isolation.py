"""What a program inside sees of the host: nothing that it was not given."""

import os
import secrets
from pathlib import Path

from suite.listening import Listeners
from suite.stage import Stage

# Everything but what the kernel makes up and what is the system's own.
_SEARCH = ("grep", "-rlsF", "--exclude-dir=proc", "--exclude-dir=sys", "--exclude-dir=usr")


def filesystem(stage: Stage) -> None:
    """A secret on the host is out of reach by every path, and the host's files cannot be changed."""
    secret = secrets.token_hex(16)
    places = [stage.file("secret", secret), Path.home() / f".palmshed-{os.getpid()}"]
    places[1].write_text(secret)
    try:
        _reading(stage, secret, places)
    finally:
        places[1].unlink()
    _writing(stage)
    _given(stage, secret)


def _reading(stage: Stage, secret: str, places: list[Path]) -> None:
    with stage.step("the control: the host reads", 10):
        for place in places:
            stage.equal(f"{place} on the host", stage.run("cat", str(place)).text, secret)
    with stage.step("reading", 20):
        for place in places:
            for path in (str(place), f"/proc/1/root{place}", f"/proc/self/root{place}"):
                ran = stage.inside("cat", path)
                stage.check(ran.status != 0 and secret not in ran.text, f"{path} was read")
    with stage.step("a search of everything, which finds what is there", 90):
        search = f"printf {secret} > here; {' '.join(_SEARCH)} {secret} /"
        stage.equal("what it finds", stage.inside("sh", "-c", search).text, "/workspace/here\n")


def _append(path: Path | str) -> tuple[str, str, str]:
    return "sh", "-c", f"echo x >> {path}"


def _writing(stage: Stage) -> None:
    users, control = stage.file("open/users", "as it was\n"), stage.file("open/control", "as it was\n")
    for path in (users.parent, users, control):
        path.chmod(0o777)
    with stage.step("the control: writing", 10):
        stage.equal("its exit code on the host", stage.run(*_append(control)).status, 0)
        stage.equal("what the host wrote", control.read_text(), "as it was\nx\n")
        for path in ("/workspace/x", "/tmp/x"):
            stage.equal(f"the exit code for {path}", stage.inside(*_append(path)).status, 0)
    with stage.step("writing", 20):
        passwords, new = Path("/etc/passwd"), Path("/usr/bin/palmshed-was-here")
        before = passwords.read_bytes()
        for path in (users, passwords, new, Path("/lib/palmshed-was-here")):
            stage.check(stage.inside(*_append(path)).status != 0, f"{path} was written")
        stage.equal("the user's file", users.read_text(), "as it was\n")
        stage.check(passwords.read_bytes() == before, f"{passwords} of the host was changed")
        stage.check(not new.exists(), f"{new} is on the host")


def _given(stage: Stage, secret: str) -> None:
    """What the user shows can be read, and written where that was said."""
    shown = stage.file("given/shown", secret)
    for path in (shown.parent, shown):
        path.chmod(0o777)
    with stage.step("what is given", 20):
        volume = ("--volume", f"{shown.parent}:/given")
        stage.equal("what it reads", stage.inside("cat", "/given/shown", options=volume).text, secret)
        wrote = stage.inside(*_append("/given/shown"), options=volume)
        stage.check(wrote.status != 0 and shown.read_text() == secret, "what was to be read was written")
        volume = ("--volume", f"{shown.parent}:/given:rw")
        wrote = stage.inside(*_append("/given/shown"), options=volume)
        stage.equal("what it wrote", (wrote.status, shown.read_text()), (0, secret + "x\n"))


_ASK = """\
import socket, sys
kind, where = sys.argv[1:]
families = {"tcp": socket.AF_INET, "tcp6": socket.AF_INET6, "udp": socket.AF_INET, "abstract": socket.AF_UNIX}
hosts = {"tcp": "127.0.0.1", "tcp6": "::1", "udp": "127.0.0.1"}
try:
    with socket.socket(families[kind], socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as asks:
        asks.settimeout(5)
        asks.connect((hosts[kind], int(where)) if kind in hosts else chr(0) + where)
        asks.send(b"?")
        print(asks.recv(64).decode())
except OSError as error:
    sys.exit(f"refused: {error}")
"""
_OWN = """\
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print("own")
"""


def network(stage: Stage) -> None:
    """Whoever listens on the host is not reached, unless the network was allowed."""
    word = secrets.token_hex(16)
    with Listeners(word) as listeners:
        asks = {kind: ("python3", "-c", _ASK, kind, where) for kind, where in listeners.places.items()}
        with stage.step("refused by default: " + ", ".join(asks), 30):
            for kind, words in asks.items():
                ran = stage.inside(*words)
                stage.check(ran.status == 1 and b"refused" in ran.err, f"{kind} was not refused")
        with stage.step("the control: the host is answered", 20):
            for kind, words in asks.items():
                stage.equal(f"what {kind} answers", stage.run(*words).text, word + "\n")
        with stage.step("the control: allowed", 20):
            ran = stage.inside(*asks["tcp"], options=("--network", "allow"))
            stage.equal("what tcp answers inside", ran.text, word + "\n")
    # Who comes first is answered first: had it been somebody inside, there would be one more.
    stage.equal("who was answered", listeners.answered, dict.fromkeys(asks, 1) | {"tcp": 2})
    with stage.step("its own loopback", 20):
        stage.equal("its output", stage.inside("python3", "-c", _OWN).text, "own\n")
