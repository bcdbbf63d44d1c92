"""Those who run code for others: a coding agent, a CI runner, a judge of submissions."""

import hashlib

from suite.stage import Stage

_BROKEN = "def add(a, b):\n    return a - b\n"
# Of another size: Python takes what it has compiled for a file of the same second and size.
_MENDED = "def add(a, b):\n    return a + b  # not minus\n"
_RUN_TESTS = """\
printf 'collecting\\n'
python3 -c '
from calculator import add
assert add(2, 3) == 5, "2 + 3 is not 5"
print("1 test passed")
' || exit 1
python3 -c '
import sys
sys.stdout.buffer.write(bytes(range(256)) * 4096)
' > report.bin
"""
_REPORT = bytes(range(256)) * 4096


def coding_agent(stage: Stage) -> None:
    """Tests fail, a file is changed, tests pass, and the report arrives byte for byte."""
    stage.file("project/calculator.py", _BROKEN)
    stage.file("project/run-tests", _RUN_TESTS)
    mended, report = stage.file("calculator.py", _MENDED), stage.work / "report.bin"
    with stage.step("run, patch, run again, keep the report", 30):
        ran = stage.run(
            stage.program("agent_runner"),
            *("project", "calculator.py", str(mended), "report.bin", str(report)),
        )
    stage.equal("the agent's exit code", ran.status, 0)
    wanted = (
        "collecting\ntests: exited with 1\n"
        "collecting\n1 test passed\ntests: exited with 0\nkept report.bin\n"
    )
    stage.equal("the transcript", ran.text, wanted)
    stage.check(b"2 + 3 is not 5" in ran.err, "the failed test said nothing")
    digests = [hashlib.sha256(data).hexdigest() for data in (report.read_bytes(), _REPORT)]
    stage.equal("the report", *digests)
    stage.equal("the project on the host", (stage.work / "project/calculator.py").read_text(), _BROKEN)


def ci_runner(stage: Stage) -> None:
    """A job that passes, one that fails and still keeps its artifact, one that never ends well."""
    stage.file("repository/answer", "42\n")
    artifact = stage.work / "artifact"
    job = (stage.program("ci_runner"), "repository", "out/log", str(artifact), "sh", "-c")
    with stage.step("a green job", 20):
        green = stage.run(*job, "mkdir out; grep -x 42 answer | tee out/log")
    stage.equal("the exit code of the green job", green.status, 0)
    stage.equal("its log", green.text, "42\njob: exited with 0\n")
    stage.equal("its artifact", artifact.read_text(), "42\n")
    stage.file("repository/answer", "41\n")
    with stage.step("a regression", 20):
        red = stage.run(*job, "mkdir out; cat answer > out/log; echo $CI; grep -x 42 answer || exit 3")
    stage.equal("the exit code of the regression", red.status, 3)
    stage.equal("its log", red.text, "true\njob: exited with 3\n")
    stage.equal("its artifact", artifact.read_text(), "41\n")
    with stage.step("a job that is not there", 20):
        absent = stage.run(*job[:-2], "no-such-program")
    stage.equal("the exit code of the job that is not there", absent.status, 127)
    with stage.step("a job over its memory", 60):
        over = stage.run(*job, "exec python3 -c 'x = bytearray(3 << 30); x[::4096] = x[::4096]'")
    stage.equal("the exit code of the job over its memory", over.status, 137)
    stage.equal("its log", over.text, "no artifact\njob: memory with 137\n")


# Each of its processes makes more until that is refused; then the first one ends.
_FORK_BOMB = """\
import os, signal
first = os.getpid()
try:
    while True: os.fork()
except OSError:
    if os.getpid() != first: signal.pause()
    raise SystemExit(1)
"""
_SUBMISSIONS = (
    ("accepted", "print(int(input()) * 2)"),
    ("wrong answer", "print(int(input()) * 3)"),
    ("runtime error", "raise SystemExit(7)"),
    ("time limit exceeded", "while True: pass"),
    (
        "memory limit exceeded",
        "x = bytearray(300 << 20); x[::4096] = x[::4096]; import signal; signal.pause()",
    ),
    ("runtime error", "import os; os.abort()"),
    ("runtime error", _FORK_BOMB),
)
_ENDS = ("a timeout", "too much memory", "too much CPU time", "a fork bomb", "a cancel", "a crash")


def code_evaluation(stage: Stage) -> None:
    """Twenty sandboxes, eight at a time, for submissions of every kind; then eight that are used again."""
    wanted = []
    for number in range(20):
        verdict, program = _SUBMISSIONS[number % len(_SUBMISSIONS)]
        stage.file(f"submissions/s{number:02}.py", program + "\n")
        wanted.append(f"s{number:02} {verdict}\n")
    words = ("submissions", str(stage.file("input", "21\n")), str(stage.file("expected", "42\n")))
    with stage.step("twenty submissions", 90):
        ran = stage.run(stage.program("code_evaluator"), *words, "8")
    stage.equal("the exit code of the judge", ran.status, 0)
    stage.equal("the verdicts", ran.text, "".join(wanted))
    with stage.step("a pool of eight, each used again after every kind of end", 90):
        ran = stage.run(stage.program("reuse"), "8")
    stage.equal("what it said of any that were not", ran.err, b"")
    stage.equal("the exit code of the pool", ran.status, 0)
    stage.equal("its account", ran.text, "".join(f"8 went on after {end}\n" for end in _ENDS))
