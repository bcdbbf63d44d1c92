"""The drivers in Python: what they pass on, and how they leave."""

import base64
import json
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from runner import machine
from runner.driver import Driver, Refusal
from runner.paths import ENTRY, KIT

DRIVERS = KIT / "drivers"
# Stands in for palmshed: runs nothing, and tells in its result how it was called.
STAND_IN = """#!{python}
import json, signal, sys, time
verb, words = sys.argv[1], sys.argv[2:]
if verb == "version":
    print(json.dumps({{"version": "9", "specVersion": "1.4.0"}}))
elif verb == "doctor":
    flags = ("filesystem", "networkIsolation", "cpuLimits", "memoryLimits", "streaming", "remoteExecution")
    print(json.dumps(dict.fromkeys(flags, True)))
else:
    def write(document):
        open(words[words.index("--json") + 1], "w").write(json.dumps(document))
    if "--memory" in words:
        write({{"code": "UNSUPPORTED", "message": "no memory limits", "field": "memory"}})
        sys.exit(125)
    def end(status="completed"):
        code = 0 if status == "completed" else -1
        shared = {{"id": "exec_01234567", "exitCode": code, "timedOut": False, "durationMs": 1}}
        metadata = {{**shared, "backend": "b", "specVersion": "1.4.0", "startedAt": "2026-01-01T00:00:00.000Z"}}
        said = json.dumps([words[3:], sys.stdin.read() if "--interactive" in words else ""])
        write({{**shared, "status": status, "stdout": said, "stderr": "", "metadata": metadata}})
        sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: end("cancelled"))
    if words[-1] == "sleep":
        print("asleep", flush=True)
        time.sleep(1000)
    end()
"""


class Conversation(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name)

    def start(self, name: str, *arguments: str) -> None:
        self.log = self.top / "log"
        environment = {"TMPDIR": str(self.top), "PATH": "/usr/bin:/bin", "HOME": str(self.top)}
        command = [sys.executable, str(DRIVERS / name), *arguments]
        self.driver = Driver(command, environment, self.log)
        self.addCleanup(self.driver.kill)

    def ask(self, op: str, **fields: object) -> dict:
        return self.driver.ask(op, dict(fields), time.monotonic() + 20)

    def leave(self) -> None:
        self.driver.shut_down(time.monotonic() + 10)
        self.assertEqual([p for p in self.top.iterdir() if p.name.startswith("sbx_")], [])
        self.assertEqual(self.log.read_text(), "")

    def result(self, sandbox: str, args: list[str], **options: object) -> dict:
        execution = self.ask("exec", sandbox=sandbox, args=args, options=options)["execution"]
        return self.ask("wait", execution=execution)["result"]


def bubblewrap_problem() -> str:
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    done = subprocess.run(
        ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"bwrap does not work here: {done.stderr.strip()}" if done.returncode else ""


class Bubblewrap(Conversation):
    def setUp(self) -> None:
        super().setUp()
        if problem := bubblewrap_problem():
            self.skipTest(problem)
        self.start("bubblewrap.py")
        self.assertEqual(self.ask("hello")["name"], "bubblewrap")
        self.sandbox = self.ask("create", options={})["sandbox"]

    def test_endings(self) -> None:
        self.assertEqual(
            self.result(self.sandbox, ["sh", "-c", "echo hi; exit 7"])["stdout"], "hi\n"
        )
        self.assertEqual(self.result(self.sandbox, ["sh", "-c", "exit 7"])["exitCode"], 7)
        late = self.result(self.sandbox, ["sleep", "100"], timeout=100)
        self.assertEqual(
            (late["status"], late["timedOut"], late["exitCode"]), ("timedout", True, -1)
        )
        self.leave()

    def test_what_is_inside_is_apart(self) -> None:
        seen = self.result(self.sandbox, ["ls", "-A", str(self.top)])
        self.assertNotEqual(seen["exitCode"], 0)
        self.leave()

    def test_a_program_outlives_the_request_that_started_it(self) -> None:
        execution = self.ask(
            "exec", sandbox=self.sandbox, command="read x; echo $x", options={"stdin": "pipe"}
        )
        first = self.ask("stream", **execution, stream="stdout", cursor=0, waitMs=200)
        self.assertEqual((first["next"], first["end"]), (0, False))
        self.ask("stdin", **execution, bytes=base64.b64encode(b"word\n").decode(), close=True)
        self.assertEqual(self.ask("wait", **execution)["result"]["stdout"], "word\n")
        with self.assertRaises(Refusal) as caught:
            self.ask("stdin", **execution, bytes="", close=True)
        self.assertEqual(caught.exception.document["code"], "CONFLICT")
        self.leave()

    def test_cancel_and_destroy(self) -> None:
        execution = self.ask("exec", sandbox=self.sandbox, args=["sleep", "100"], options={})
        self.ask("cancel", **execution)
        self.assertEqual(self.ask("wait", **execution)["result"]["status"], "cancelled")
        left = self.ask("exec", sandbox=self.sandbox, args=["sleep", "100"], options={})
        self.ask("destroy", sandbox=self.sandbox)
        self.assertEqual(self.ask("wait", **left)["result"]["termination"]["cause"], "cancelled")
        self.leave()

    def test_output_is_kept_at_its_end(self) -> None:
        seen = self.result(self.sandbox, ["sh", "-c", "printf 0123456789"], maxOutputBytes=4)
        self.assertEqual(
            (seen["stdout"], seen["stdoutTotalBytes"], seen["truncated"]), ("6789", 10, True)
        )
        self.leave()

    def test_files(self) -> None:
        data = base64.b64encode(bytes(range(256))).decode()
        self.ask("write", sandbox=self.sandbox, path="a/b", bytes=data)
        self.assertEqual(self.ask("read", sandbox=self.sandbox, path="a/b")["bytes"], data)
        self.assertEqual(self.result(self.sandbox, ["wc", "-c", "a/b"])["stdout"], "256 a/b\n")
        self.ask("move", sandbox=self.sandbox, **{"from": "a/b", "to": "c"})
        entries = self.ask("list", sandbox=self.sandbox, path=".")["entries"]
        self.assertEqual([entry["name"] for entry in entries], ["a", "c"])
        with self.assertRaises(Refusal) as caught:
            self.ask("read", sandbox=self.sandbox, path="../../log")
        self.assertEqual(caught.exception.document["code"], "FS_ERROR")
        self.leave()

    def test_what_it_cannot_enforce_it_refuses(self) -> None:
        with self.assertRaises(Refusal) as caught:
            self.ask("create", options={"memory": "64m"})
        self.assertEqual(caught.exception.document["code"], "UNSUPPORTED")
        self.leave()


class PalmshedRun(Conversation):
    def setUp(self) -> None:
        super().setUp()
        program = self.top / "palmshed"
        program.write_text(STAND_IN.format(python=sys.executable))
        program.chmod(0o755)
        self.start("palmshed_run.py", str(program))

    def called(self, result: dict) -> list[str]:
        return json.loads(result["stdout"])[0]

    def test_options_become_flags(self) -> None:
        sandbox = self.ask("create", options={"timeout": 900, "env": {"A": "1"}})["sandbox"]
        words = self.called(
            self.result(sandbox, ["echo", "x"], timeout=0, env={"B": "2"}, maxOutputBytes=9)
        )
        expected = [
            "--timeout",
            "900ms",
            "--env",
            "A=1",
            "--env",
            "B=2",
            "--max-output",
            "9b",
            "--",
            "echo",
            "x",
        ]
        self.assertEqual(words, expected)
        self.leave()

    def test_files_are_copied_in(self) -> None:
        sandbox = self.ask("create", options={})["sandbox"]
        self.ask("write", sandbox=sandbox, path="f", bytes="")
        words = self.called(self.result(sandbox, ["true"]))
        self.assertEqual(words[0], "--copy")
        self.assertRegex(words[1], f"{sandbox}-.*/workspace:\\.$")
        self.leave()

    def test_input(self) -> None:
        sandbox = self.ask("create", options={})["sandbox"]
        result = self.result(sandbox, ["cat"], stdin={"text": "typed"})
        self.assertEqual(json.loads(result["stdout"])[1], "typed")
        self.leave()

    def test_an_error_document_is_passed_on(self) -> None:
        with self.assertRaises(Refusal) as caught:
            self.ask("create", options={"memory": "64m"})
        self.assertEqual(caught.exception.document["field"], "memory")
        self.leave()

    def test_cancelling_twice_still_gives_a_result(self) -> None:
        sandbox = self.ask("create", options={})["sandbox"]
        execution = self.ask("exec", sandbox=sandbox, args=["sleep"], options={})
        self.ask("stream", **execution, stream="stdout", cursor=0, waitMs=10000)
        self.ask("cancel", **execution)
        self.ask("cancel", **execution)
        self.assertEqual(self.ask("wait", **execution)["result"]["status"], "cancelled")
        self.leave()

    def test_destroy_ends_what_runs_and_its_result_stays(self) -> None:
        sandbox = self.ask("create", options={})["sandbox"]
        execution = self.ask("exec", sandbox=sandbox, args=["sleep"], options={})
        self.ask("stream", **execution, stream="stdout", cursor=0, waitMs=10000)
        self.ask("destroy", sandbox=sandbox)
        self.assertEqual(self.ask("wait", **execution)["result"]["status"], "cancelled")
        self.leave()


class Unconfined(Conversation):
    def test_it_says_what_it_is(self) -> None:
        self.start("unconfined.py")
        capabilities = self.ask("hello")["capabilities"]
        self.assertEqual(capabilities["osFilesystemIsolation"], "unsupported")
        self.assertFalse(capabilities["networkIsolation"])
        self.assertLessEqual({"archive-up", "archive-down"}, set(self.ask("hello")["lacks"]))
        self.leave()

    @unittest.skipIf(machine.is_throwaway(), "this machine may be harmed, so nothing is refused")
    def test_the_runner_refuses_it(self) -> None:
        done = subprocess.run(
            [sys.executable, str(ENTRY), "run", "--driver", str(DRIVERS / "unconfined.py")],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unconfined reports neither", done.stderr)


if __name__ == "__main__":
    unittest.main()
