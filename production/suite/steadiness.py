"""Much at once, sudden deaths, large and broken input."""

import hashlib
import os
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial

from runner import processes

from suite.stage import Stage

_TREE = 2000
_STREAM = 4 << 20


def concurrency(stage: Stage) -> None:
    """Fifty sandboxes at once, and twenty executions at once in one."""
    with stage.step("fifty sandboxes, twenty executions", 60):
        ran = stage.run(stage.program("concurrency"), "50", "20")
    stage.equal("what it found", (ran.status, ran.text), (0, "50 sandboxes and 20 executions kept apart\n"))


def recovery(stage: Stage) -> None:
    """A sandbox is as good as new after each way in which a program can be ended."""
    with stage.step("timeout, memory, signal, cancel, pids", 60):
        ran = stage.run(stage.program("recovery"))
    ways = ("timeout", "memory", "signal", "cancel", "processes")
    wanted = "".join(f"usable after {way}\n" for way in ways)
    stage.equal("what it found", (ran.status, ran.text), (0, wanted))


def _await(what: Callable[[], bool], longest_s: float) -> bool:
    until = time.monotonic() + longest_s
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _kill(victim: subprocess.Popen[bytes]) -> None:
    victim.kill()
    victim.communicate()


def crash_recovery(stage: Stage) -> None:
    """The program `palmshed` is killed at any moment: what it ran dies, and the next one cleans up."""
    marker = f"sleep-{os.getpid()}"
    job = f"(setsid bash -c 'exec -a {marker} sleep 300' &) ; exec -a {marker} sleep 300"
    words = (stage.palmshed, "run", "--", "bash", "-c", job)
    running = partial(processes.with_text, marker)
    with stage.step("the control: both run", 20):
        victim = stage.start(*words)
        seen = _await(lambda: sum(p.name == "sleep" for p in running()) == 2, 10)
        _kill(victim)
        stage.check(seen, "the job did not start")
    moments = random.Random(os.getpid())
    rounds = 200 if stage.full else 20
    with stage.step(f"{rounds} kills", 3.0 * rounds):
        for _ in range(rounds):
            victim = stage.start(*words)
            time.sleep(moments.uniform(0, 0.06))  # What is tried is the moment.
            _kill(victim)
            gone = _await(lambda: not running(), 2)
            stage.check(gone, f"{running()} outlived the program that ran it")
    with stage.step("the next", 10):
        stage.equal("its output", stage.inside("echo", "healthy").text, "healthy\n")


def resilience(stage: Stage) -> None:
    """A tree of many files, streams of megabytes, and input that is no input."""
    tree = {f"{number % 40}/{number}": f"file {number}\n" for number in range(_TREE)}
    for name, text in tree.items():
        stage.file(f"repository/{name}", text)
    sums = "".join(f"{hashlib.sha256(tree[n].encode()).hexdigest()}  ./{n}\n" for n in sorted(tree))
    listing = "find . -type f | LC_ALL=C sort | xargs sha256sum"
    with stage.step(f"a tree of {_TREE} files", 60):
        ran = stage.run(
            stage.program("ci_runner"), "repository", "none", "none", "sh", "-c", listing
        )
    seen = sorted(line for line in ran.text.splitlines(True) if "  ./" in line)
    stage.check(seen == sorted(sums.splitlines(True)), "the tree is not the one that was copied")
    data = random.Random(1).randbytes(_STREAM)
    with stage.step("four megabytes in and out", 30):
        ran = stage.inside("cat", stdin=data)
    stage.check(ran.status == 0 and ran.out == data, "what came out is not what went in")
    with stage.step("four megabytes on both streams", 30):
        ran = stage.inside("sh", "-c", f"head -c {_STREAM} /dev/zero; head -c {_STREAM} /dev/zero >&2")
    stage.equal("their sizes", (len(ran.out), len(ran.err)), (_STREAM, _STREAM))
    malformed = (
        ("--memory", "-1"),
        ("--memory", "9e99"),
        ("--cpus", "nan"),
        ("--timeout", ""),
        ("--no-such-option",),
        ("--env", "=x"),
    )
    with stage.step("malformed input", 20):
        for options in malformed:
            refused = stage.inside("true", options=options)
            stage.check(refused.status != 0 and refused.err != b"", f"{options} was taken")
    with stage.step("what is not there", 20):
        stage.equal("its exit code", stage.inside("no-such-program").status, 127)
