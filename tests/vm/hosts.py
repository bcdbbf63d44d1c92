#!/usr/bin/env python3
"""Holds the engine to the conformance kit on kinds of host that this machine is not (hosts.toml).

    hosts.py --reports DIR [--whole] [HOST...]

Hosts of one kernel share a guest and come one after another; guests of different kernels run at the same time. With
--whole, where a guest's start is nothing beside the cases, each host has its own. A line for each host and for each case
that failed there. Reports and what the kit said are kept.
"""

import argparse
import io
import json
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

import kernels  # noqa: E402
import machine  # noqa: E402
from image import NoImage  # noqa: E402

HERE = Path(__file__).resolve().parent
TABLE = HERE / "hosts.toml"
TURNS = "turns.json"
SCOPE = "/guest/scope"  # inside/scope
# On an emulated processor, cases that move megabytes take 12 to 22 s of the 20 that cases have.
PATIENCE = "4"
NEW_GUEST_S = 60.0  # For whatever a guest does beside its turns.


@dataclass(frozen=True)
class Host:
    name: str
    kernel: str
    user: str
    profile: str
    few: tuple[str, ...]
    groups: str = ""
    sysctls: dict[str, str] = field(default_factory=dict)
    swap_mib: int = 0


@dataclass(frozen=True)
class Setting:
    checkout: Path
    build: Path
    reports: Path
    whole: bool
    only: tuple[str, ...]
    timeout_s: float  # Of each host.


def load(path: Path = TABLE) -> list[Host]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["host"]
    return [
        Host(user=entry.pop("as"), few=tuple(entry.pop("few")), **entry) for entry in entries
    ]


def kit_words(host: Host, setting: Setting) -> list[str]:
    driver = str(setting.build / "bin/palmshed_conformance_driver")
    words = [str(setting.checkout / "conformance/conformance"), "run", "--checked", "--jobs", "1"]
    words += ["--patience", PATIENCE]
    words += ["--profile", host.profile, "--probes", str(setting.build / "conformance/probes")]
    words += ["--driver", shlex.join([SCOPE, driver] if host.groups == "delegated" else [driver])]
    words += ["--json", f"{machine.RESULTS}/{host.name}/report.json"]
    chosen = setting.only or (() if setting.whole else host.few)
    words += [word for pattern in chosen for word in ("--only", pattern)]
    return words if setting.only or not setting.whole else [*words, "--smoke"]


def turn(host: Host, setting: Setting) -> dict[str, Any]:
    return {
        "name": host.name,
        "as": host.user,
        "groups": host.groups,
        "sysctls": host.sysctls,
        "swap_mib": host.swap_mib,
        "args": kit_words(host, setting),
        "directory": str(setting.checkout),
        "timeout_s": setting.timeout_s,
    }


def run(hosts: list[Host], setting: Setting) -> None:
    """In one guest, of one kernel; what came of it is below the directory of reports."""
    kernel = hosts[0].kernel
    with tempfile.TemporaryDirectory(prefix="palmshed-turns-") as directory:
        turns = Path(directory, TURNS)
        turns.write_text(json.dumps([turn(host, setting) for host in hosts]))
        Path(directory).chmod(0o755)
        build, checkout = setting.build, setting.checkout
        request = machine.Request(
            args=("/usr/bin/python3.11", "-I", "/guest/turns.py", str(turns)),
            trees=(
                *(checkout / "conformance", checkout / "spec", build / "conformance/probes"),
                *(build / "bin/palmshed_conformance_driver", build / "bin/palmshed", turns),
            ),
            kernel=kernel,
            timeout_s=setting.timeout_s * len(hosts) + NEW_GUEST_S,
            results=setting.reports,
            memory_mib=2048,
        )
        said = io.BytesIO()
        ended = machine.run(request, said, said)
        if ended.exit_code != 0:
            last = said.getvalue().decode(errors="replace")[-2000:]
            raise machine.GuestFailed(f"{kernel}: exit code {ended.exit_code}\n{last}")


def verdict(host: Host, setting: Setting) -> Iterator[str]:
    report = setting.reports / host.name / "report.json"
    if not report.exists():
        said = setting.reports / f"{host.name}.out"
        last = said.read_text(errors="replace")[-2000:] if said.exists() else "it was never run"
        yield f"not ok {host.name}: the kit made no report\n{last}"
        return
    document = json.loads(report.read_text())
    for problem in document["problems"]:
        yield f"not ok {host.name}: {problem}"
    for case in document["cases"]:
        if case["status"] not in ("passed", "skipped"):
            yield f"not ok {host.name}: {case['id']} {case['status']}: {_why(case)}"
    counts = ", ".join(f"{number} {status}" for status, number in document["counts"].items())
    yield f"ok {host.name} was run: {counts}"


def _why(case: dict[str, Any]) -> str:
    first = next(iter(case["failures"]), None)
    if first is None:
        return "no reason given"
    return "{where}: {what}: expected {expected}, observed {observed}".format(**first)


def _clear(hosts: list[Host], setting: Setting) -> None:
    for host in hosts:
        for path in (f"{host.name}/report.json", f"{host.name}.out", f"{host.name}.exit"):
            (setting.reports / path).unlink(missing_ok=True)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hosts", nargs="*", metavar="HOST")
    parser.add_argument("--checkout", type=Path, default=HERE.parents[1], metavar="DIR")
    parser.add_argument("--build", type=Path, metavar="DIR", help="else build/dev of the checkout")
    parser.add_argument("--reports", type=Path, required=True, metavar="DIR")
    parser.add_argument("--whole", action="store_true", help="the first case of each rule")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="these cases")
    parser.add_argument("--timeout", type=float, default=1800.0, metavar="S", help="of each host")
    parser.add_argument("--guests", type=int, default=2, metavar="N", help="at the same time")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    known = load()
    if unknown := set(arguments.hosts) - {host.name for host in known}:
        print(f"hosts.py: no such host: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    hosts = [host for host in known if not arguments.hosts or host.name in arguments.hosts]
    checkout = arguments.checkout.absolute()
    setting = Setting(
        checkout=checkout,
        build=(arguments.build or checkout / "build/dev").absolute(),
        reports=arguments.reports.absolute(),
        whole=arguments.whole,
        only=tuple(arguments.only),
        timeout_s=arguments.timeout,
    )
    _clear(hosts, setting)
    guests: dict[str, list[Host]] = {}
    for host in hosts:
        guests.setdefault(host.name if setting.whole else host.kernel, []).append(host)
    failed = False
    with ThreadPoolExecutor(max(1, arguments.guests)) as pool:
        runs = {name: pool.submit(run, some, setting) for name, some in guests.items()}
    for name, running in runs.items():
        try:
            running.result()
        except (machine.GuestFailed, kernels.NoKernel, NoImage) as error:
            failed = True
            print(f"not ok {name}: {error}")
    for host in hosts:
        for line in verdict(host, setting):
            failed = failed or line.startswith("not ok")
            print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
