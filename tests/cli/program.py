"""Runs the built program, named by the variable PALMSHED, and sees what it leaves behind."""

import array
import ctypes
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest
import warnings
from pathlib import Path

import jsonschema

PALMSHED = os.environ.get("PALMSHED", "palmshed")
REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMAS = REPOSITORY / "spec" / "schemas"
DEADLINE = 60.0  # Seconds; far above what anything here takes, so that a hang is a failure.
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """From now on what the program leaves running becomes a child of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def wait_until(condition, what):
    """Polls for something that nobody announces."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting for: {what}")
        time.sleep(0.01)


def read_until(stream, marker):
    """Reads from an unbuffered stream until the marker has come."""
    seen = b""
    deadline = time.monotonic() + DEADLINE
    while marker not in seen:
        ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        piece = os.read(stream.fileno(), 4096) if ready else b""
        if not piece:
            raise AssertionError(f"no {marker!r} in {seen!r}")
        seen += piece
    return seen


def queued(pipe):
    """How many bytes wait in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def validator(name):
    schemas = [json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema.json")]
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    with warnings.catch_warnings():
        # What replaces it is missing from the oldest jsonschema that is to be supported.
        warnings.simplefilter("ignore", DeprecationWarning)
        store = {one["$id"]: one for one in schemas}
        resolver = jsonschema.RefResolver(schema["$id"], schema, store=store)
        return jsonschema.Draft202012Validator(schema, resolver=resolver)


class ProgramTest(unittest.TestCase):
    """A test with a directory and a state directory of its own."""

    @classmethod
    def setUpClass(cls):
        adopt_orphans()

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="palmshed-cli-")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.state = self.directory / "state"
        self.state.mkdir(mode=0o700)
        self.environment = dict(os.environ, XDG_STATE_HOME=str(self.state))
        self.environment.pop("SANDBOX_LOG", None)

    def start(self, *arguments, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("env", self.environment)
        process = subprocess.Popen([PALMSHED, *arguments], bufsize=0, **options)
        self.addCleanup(self.discard, process)
        return process

    def discard(self, process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def palmshed(self, *arguments, input=None, **options):
        """Runs it to its end; the answer has returncode, stdout and stderr."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, **options)
        stdout, stderr = process.communicate(input, timeout=DEADLINE)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def run_program(self, *arguments, **options):
        return self.palmshed("run", *arguments, **options)

    def shell(self, command, *flags, **options):
        return self.run_program(*flags, "--", "sh", "-c", command, **options)

    def started(self, command, *flags, **options):
        """A run whose program has said that it is ready."""
        process = self.start("run", *flags, "--", "sh", "-c", command, **options)
        read_until(process.stdout, b"ready\n")
        return process

    def assert_result(self, answer, returncode, stdout=None, stderr=None):
        self.assertEqual(answer.returncode, returncode, answer)
        if stdout is not None:
            self.assertEqual(answer.stdout, stdout, answer)
        if stderr is not None:
            self.assertEqual(answer.stderr, stderr, answer)

    def assert_says(self, answer, *words):
        """All that it says is its own: lines with its name before them; one holds the words."""
        lines = answer.stderr.decode().splitlines()
        self.assertTrue(lines, "it said nothing")
        for line in lines:
            self.assertTrue(line.startswith("palmshed: "), lines)
        self.assertTrue(any(all(w in line for w in words) for line in lines), (words, lines))

    def assert_no_orphans(self):
        """Everything that the program started has gone; call it when the program has ended."""

        def all_reaped():
            try:
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
            except ChildProcessError:
                return True
            return False

        wait_until(all_reaped, "the end of every process that was left")


def own_states(state):
    """The directories where this user's sandboxes keep something."""
    roots = [state / "palmshed", Path("/var/lib/palmshed"), Path("/run/palmshed")]
    if "XDG_RUNTIME_DIR" in os.environ:
        roots.append(Path(os.environ["XDG_RUNTIME_DIR"]) / "palmshed")
    roots += Path(tempfile.gettempdir()).glob("palmshed-[0-9]*")
    return [root for root in roots if os.access(root, os.R_OK | os.X_OK)]


def paths_naming(sandbox, state):
    """Files and mounts of this machine that carry a sandbox's name."""
    found = [
        os.path.join(root, name)
        for top in own_states(state)
        for root, directories, files in os.walk(top)
        for name in directories + files
        if sandbox in name
    ]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return found + [line for line in mounts if sandbox in line]


def groups_naming(sandbox):
    """Control groups that carry a sandbox's name."""
    return [
        os.path.join(root, name)
        for root, directories, _ in os.walk("/sys/fs/cgroup")
        for name in directories
        if sandbox in name
    ]


def sandbox_in(log):
    """The sandbox that the lines of SANDBOX_LOG=debug name."""
    match = re.search(rb"\bsandbox=(sbx_[0-9a-f]+)", log)
    if not match:
        raise AssertionError(f"no sandbox is named in {log!r}")
    return match[1].decode()


SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
