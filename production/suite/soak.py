"""A process that makes sandboxes for a while: none may fail, and what the process takes must not grow."""

import contextlib
import select
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner import leftovers, processes

from suite.stage import LONGEST_S, Stage, Violation

# Rounds between two looks at what the process takes.
_BATCH = 10
# A hundred bytes in a round make a hundred megabytes in a million.
_MOST_PER_1000 = {"PSS in KiB": 100.0, "descriptors": 1.0, "cgroups": 1.0}
# What comes and goes, and makes a slope of a short run.
_NOISE = {"PSS in KiB": 256.0, "descriptors": 2.0, "cgroups": 2.0}

_PSS = ("Pss_Anon:", "Pss_Shmem:")


@dataclass(frozen=True)
class Sample:
    rounds: int
    taken: dict[str, float]


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line that is nearest to the points, by least squares."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def slopes(samples: list[Sample]) -> dict[str, float]:
    """What is taken more after each 1,000 rounds, over the second half, when everything is warm."""
    half = samples[len(samples) // 2 :]
    return {
        what: 1000 * slope([(sample.rounds, sample.taken[what]) for sample in half])
        for what in half[0].taken
    }


def too_steep(samples: list[Sample]) -> list[str]:
    """Slopes beyond their bound: so much in 1,000 rounds, and the noise of the whole."""
    thousands = (samples[-1].rounds - samples[len(samples) // 2].rounds) / 1000
    return [
        f"{what}: {per_1000:+.1f} in 1,000 rounds"
        for what, per_1000 in slopes(samples).items()
        if per_1000 * thousands > _MOST_PER_1000[what] * thousands + _NOISE[what]
    ]


def _pss_kib(pid: int) -> float:
    """Without files, whose share depends on who else has them open; 0 for one that is not ours to see."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) for line in lines if line.startswith(_PSS))


def _descriptors(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def _is_empty(group: Path) -> bool:
    """Whether nothing runs in it: one in use is another engine's."""
    try:
        return not any(file.read_text() for file in group.rglob("cgroup.procs"))
    except OSError:  # Gone meanwhile.
        return False


def _empty_groups() -> int:
    groups = (Path(item.removeprefix("control group ")) for item in leftovers.control_groups())
    return sum(map(_is_empty, groups))


def taken_by(pid: int) -> dict[str, float]:
    """What a process and those below it take, and the empty groups that the host has by now."""
    pids = [pid, *(process.pid for process in processes.descendants(pid))]
    return {
        "PSS in KiB": sum(map(_pss_kib, pids)),
        "descriptors": sum(map(_descriptors, pids)),
        "cgroups": _empty_groups(),
    }


def _batches(stage: Stage, program: subprocess.Popen[bytes]) -> Iterator[tuple[int, int]]:
    """Rounds made and failed in each batch, until the time is up or there were enough."""
    assert program.stdin and program.stdout
    until, made = time.monotonic() + stage.soak_seconds, 0
    while time.monotonic() < until and made < stage.soak_iterations:
        rounds = min(_BATCH, stage.soak_iterations - made)
        with contextlib.suppress(BrokenPipeError):  # There will be no answer either.
            program.stdin.write(f"{rounds}\n".encode())
        answers = select.select([program.stdout], [], [], LONGEST_S)[0]
        stage.check(bool(answers), f"{rounds} rounds do not end")
        line = program.stdout.readline()
        stage.check(line != b"", "the program has ended")
        made += rounds
        yield rounds, int(line)


def soak(stage: Stage) -> None:
    """Throughput, failures, and the slopes of memory, descriptors and control groups."""
    samples: list[Sample] = []
    made = failed = 0
    began = time.monotonic()
    command = stage.program("soak")
    with (
        stage.step("rounds", stage.soak_seconds + 20),
        subprocess.Popen([command], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program,
    ):
        try:
            for rounds, wrong in _batches(stage, program):
                made, failed = made + rounds, failed + wrong
                samples.append(Sample(made, taken_by(program.pid)))
        except Violation:
            program.kill()
            raise
    stage.equal("its exit code", program.returncode, 0)
    stage.notes.append(f"{made} rounds, {made / (time.monotonic() - began):.0f} a second, {failed} failed")
    told = (f"{what} {per_1000:+.1f}" for what, per_1000 in slopes(samples).items())
    stage.notes.append("in 1,000 rounds " + ", ".join(told))
    stage.equal("the number of rounds that failed", failed, 0)
    steep = too_steep(samples)
    stage.check(not steep, "; ".join(steep))
