"""Runs the benchmark programs of a release build, and writes one page about what they found.

The page is build/benchmarks/README.md, with charts and results.json beside it.
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtool import benchmark_page
from devtool.benchmark_smoke import smoke
from devtool.checkout import BUILD, ROOT, run
from devtool.figures import Run, read
from devtool.suites import configure_and_build

PAGE = BUILD / "benchmarks"
BINARIES = BUILD / "release/bin"
PROGRAMS = ("palmshed_latency", "palmshed_measure")
SUBJECTS = ("steps", "live", "resident", "mounts", "files", "output", "much-output", "limits", "ramp")
TIMEOUT_S = 60 * 60.0
ABSENT = "absent: "  # What a program says that cannot measure here, and is no failure.


@dataclass(frozen=True)
class Part:
    """One run of one program."""

    name: str
    program: str
    arguments: tuple[str, ...]


def parts(rounds: int | None, most: int | None) -> tuple[Part, ...]:
    often = () if rounds is None else ("--rounds", str(rounds))
    many = () if most is None else ("--most", str(most))
    return (
        Part("latency", "palmshed_latency", often),
        Part("throughput", "palmshed_latency", ("--throughput",)),
        *(Part(subject, "palmshed_measure", (subject, *often, *many)) for subject in SUBJECTS),
    )


def build() -> int:
    for command in configure_and_build("release", targets=PROGRAMS):
        if status := run(*command):
            return status
    return 0


def last_line(words: str, fallback: str) -> str:
    lines = [line for line in words.splitlines() if line.strip()]
    return lines[-1].removeprefix("benchmark: ") if lines else fallback


def run_part(part: Part, scratch: Path, binaries: Path = BINARIES) -> tuple[dict[str, Any] | None, str]:
    """What the program wrote, or the reason why there is nothing."""
    output = scratch / f"{part.name}.json"
    command = [str(binaries / part.program), *part.arguments, "--json", str(output)]
    environment = {**os.environ, "TMPDIR": str(scratch)}  # Peers leave things there.
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        _, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None, f"stopped after {TIMEOUT_S:.0f} s"
    finally:
        if process.poll() is None:
            process.kill()  # Its sandboxes end with it, and what it has on disk is in `scratch`.
            process.wait()
    if process.returncode != 0 or not output.is_file():
        return None, last_line(errors, f"ended with status {process.returncode}")
    return read(output), ""


def commit() -> str:
    """Of the checkout, and whether it has changes beside."""

    def git(*words: str) -> str:
        command = ["git", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    head = git("rev-parse", "--short", "HEAD") or "unknown"
    return head + (", changed" if git("status", "--porcelain") else "")


def load() -> str:
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def memory() -> str:
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{size / 2**30:.1f} GiB"


def hypervisor() -> str:
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return "yes" if flags and "hypervisor" in flags[1].split() else "none seen"


def setting(path: str) -> str:
    """What the kernel says in one line; of several words the chosen one stands in brackets."""
    try:
        words = Path(path).read_text().strip()
    except OSError:
        return "unknown"
    chosen = re.search(r"\[(\S+)\]", words)
    return chosen[1] if chosen else words


def control_groups() -> str:
    types = [line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()]
    return " and ".join(name for name in ("cgroup", "cgroup2") if name in types) or "none"


def measure(chosen: tuple[Part, ...]) -> Run:
    surroundings = {
        "memory": memory(),
        "hypervisor": hypervisor(),
        "clock source": setting("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "frequency": setting("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge pages": setting("/sys/kernel/mm/transparent_hugepage/enabled"),
        "control groups": control_groups(),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": commit(),
        "load before": load(),
    }
    result = Run(machine={}, surroundings=surroundings, peers=[], figures=[], missing={})
    with tempfile.TemporaryDirectory(prefix="palmshed-benchmark-") as scratch:
        for part in chosen:
            print(f"\n== {part.name}", flush=True)
            document, reason = run_part(part, Path(scratch))
            if document is None:
                print(reason, flush=True)
                result.missing[part.name] = reason
                continue
            result.machine.update(document["machine"])
            result.peers.extend([] if result.peers else document["peers"])
            result.figures.extend(document["figures"])
    surroundings["load after"] = load()
    return result


def status_of(result: Run) -> int:
    failed = [reason for reason in result.missing.values() if not reason.startswith(ABSENT)]
    return 1 if failed or not result.figures else 0


def write(result: Run, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for old in where.glob("*.svg"):
        old.unlink()
    words, drawings = benchmark_page.page(result)
    (where / "README.md").write_text(words)
    (where / "results.json").write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n")
    for name, drawing in drawings.items():
        (where / name).write_text(drawing)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [part.name for part in parts(None, None)]
    parser.add_argument("part", nargs="*", metavar="part", help="only these: " + ", ".join(names))
    parser.add_argument("--smoke", action="store_true", help="two minutes: a few ratios against their limits")
    parser.add_argument("--rounds", type=int, help="rounds of each comparison")
    parser.add_argument("--most", type=int, help="most sandboxes alive at a time")


def benchmark(options: argparse.Namespace) -> int:
    known = parts(options.rounds, options.most)
    if unknown := set(options.part) - {part.name for part in known}:
        print("no such part:", ", ".join(sorted(unknown)))
        return 2
    if status := build():
        return status
    if options.smoke:
        return smoke()
    result = measure(tuple(part for part in known if not options.part or part.name in options.part))
    write(result, PAGE)
    print("\nwritten to", (PAGE / "README.md").relative_to(ROOT))
    return status_of(result)
