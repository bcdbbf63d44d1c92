"""The life of one case: prepare the host, controls, steps, a look at the host, and what is left there."""

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from runner import leftovers, processes
from runner.driver import Driver, DriverFault, Refusal
from runner.matching import show
from runner.model import Case, Failure, Hello, KitError, Outcome, Seen, Status
from runner.observing import Observer
from runner.prepared import PLACE, Prepared
from runner.steps import Steps
from runner.variables import fill

GRACE_S = 3.0  # For what disappears by itself: a deleted directory, a dying process.
LEAVING_S = 10.0
STDERR_SHOWN = 4000
LEFT_SHOWN = 6


@dataclass(frozen=True)
class Setting:
    """What all cases of a run have in common."""

    command: tuple[str, ...]
    hello: Hello
    probes: Path | None
    throwaway: bool  # This machine may be harmed.
    place: Path = PLACE  # Where the directories of cases are made.
    runtime: Path | None = None  # What implementations may share between cases, such as a cache.
    patience: int = 1  # How many times as long as usual a case may take.


@dataclass
class _Run:
    """One case while it runs."""

    case: Case
    setting: Setting
    prepared: Prepared
    drivers: list[Driver] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    sandboxes: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    hello: Hello | None = None  # Of the driver that was started last.

    @property
    def log(self) -> Path:
        return self.prepared.root / "driver.log"

    def start_driver(self, deadline: float) -> Driver:
        environment = self.prepared.environment(
            fill(self.case.host.get("env", {}), self.variables())
        )
        descriptors = self.prepared.descriptors() if not self.drivers else {}
        groups = tuple(self.case.host.get("groups", ()))
        driver = Driver(self.command(), environment, self.log, descriptors, groups)
        self.drivers.append(driver)
        self.hello = introduce(driver, deadline)
        check_hello(self.hello, self.setting)
        return driver

    def command(self) -> tuple[str, ...]:
        if not self.case.host.get("odd_attributes"):
            return self.setting.command
        probe = self.variables().get("probe.identity")
        if probe is None:
            raise KitError("the probe identity is not built")
        return (probe, "set-all", *self.setting.command)

    def variables(self) -> dict[str, str]:
        probes = self.setting.probes
        files = sorted(probes.iterdir()) if probes and probes.is_dir() else []
        return {**self.prepared.variables, **{f"probe.{path.name}": str(path) for path in files}}

    def ours(self) -> set[int]:
        """Processes of the runner, which are no leftovers."""
        prepared = (process.pid for process in self.prepared.processes.values())
        return {os.getpid(), *prepared, *(driver.pid for driver in self.drivers)}

    def fail(self, where: str, what: str, expected: str, observed: str) -> None:
        self.failures.append(Failure(where, what, expected, observed))


def introduce(driver: Driver, deadline: float) -> Hello:
    try:
        return Hello.from_answer(driver.ask("hello", {}, deadline))
    except Refusal as refusal:
        raise DriverFault(f"answered hello with the error {refusal}") from refusal


def check_hello(hello: Hello, setting: Setting) -> None:
    """Each start must be that of the driver that was let in."""
    if not hello.isolates() and not setting.throwaway:
        raise DriverFault("no longer reports any isolation")
    if (hello.name, hello.version) != (setting.hello.name, setting.hello.version):
        raise DriverFault(f"is now {hello.name} {hello.version}")


def run_case(case: Case, setting: Setting) -> Outcome:
    began = time.monotonic()
    try:
        marker = f"palmshed-case-{secrets.token_hex(8)}"
        prepared = Prepared(case.host, marker, setting.place, setting.runtime)
    except KitError as error:
        failure = Failure("the kit", "the host", "prepared", str(error), True)
        return Outcome(case.id, Status.ERROR, (failure,))
    run = _Run(case, setting, prepared)
    try:
        _go_through(run, began + case.timeout_s * setting.patience)
        return _outcome(run, time.monotonic() - began)
    finally:
        _clean_up(run)


def _outcome(run: _Run, seconds: float) -> Outcome:
    failed = Status.FAILED if run.failures else Status.PASSED
    status = Status.ERROR if any(failure.of_kit for failure in run.failures) else failed
    said = run.log.read_text(errors="replace")[-STDERR_SHOWN:] if run.log.exists() else ""
    made, seen = tuple(run.sandboxes), tuple(run.seen)
    return Outcome(run.case.id, status, tuple(run.failures), "", seconds, said, made, seen)


def _go_through(run: _Run, deadline: float) -> None:
    observer = Observer(run.prepared)
    try:
        steps = Steps(
            lambda: run.start_driver(deadline),
            observer,
            run.variables(),
            run.setting.probes,
            deadline,
        )
    except DriverFault as fault:
        run.fail("start", "the driver", "an introduction", f"it {fault}")
        return
    except KitError as error:
        run.failures.append(Failure("start", "the kit", "a driver", str(error), True))
        return
    run.sandboxes, run.seen = steps.ever, steps.seen
    if _controls_hold(run, steps, observer):
        run.failures += steps.run(run.case.steps)
        _look_after(run, steps, observer)
    _leave(run, steps)


def _look_after(run: _Run, steps: Steps, observer: Observer) -> None:
    try:
        wanted = steps.filled(_without_leftovers(run.case))
    except KitError as error:
        # Where a step has failed, that is why what it was to save is not there.
        if not run.failures:
            run.failures.append(Failure("after", "the kit", "a look at the host", str(error), True))
        return
    found = observer.look(wanted, "after")
    run.failures += found
    if wanted:
        observed = "; ".join(map(str, found)) or "just that"
        run.seen.append(Seen("after", "a look at the host", show(wanted), observed))


def _without_leftovers(case: Case) -> dict[str, object]:
    return {key: value for key, value in case.after.items() if key != "no_leftovers"}


def _controls_hold(run: _Run, steps: Steps, observer: Observer) -> bool:
    """Without its controls a case says nothing, whatever it sees."""
    for failure in steps.run(run.case.controls, "control, "):
        run.failures.append(replace(failure, of_kit=True))
    observer.controls_are_done()
    for name in observer.unseen_by_controls(run.case.after.get("hits", {})):
        run.failures.append(Failure("control", f"hits of {name}", "at least 1", "0", True))
    return not run.failures


def _leave(run: _Run, steps: Steps) -> None:
    """Destroys the sandboxes, lets the driver go, and looks for leftovers after each."""
    steps.deadline = max(steps.deadline, time.monotonic() + LEAVING_S)
    look = run.case.after.get("no_leftovers", True)
    try:
        steps.destroy_all()
        if look:
            _after_destroy(run)
        steps.end_drivers()
        if look:
            _after_shutdown(run)
    except Refusal as refusal:
        run.fail("end", "destroy", "an answer without an error", str(refusal))
    except DriverFault as fault:
        if not any(failure.what == "the driver" for failure in run.failures):
            run.fail("end", "the driver", "a shutdown", f"it {fault}")


def _after_destroy(run: _Run) -> None:
    watch = run.hello.watch if run.hello else ()
    shared = [run.setting.runtime] if run.setting.runtime else []
    places: list[Path | str] = [*run.prepared.private_directories(), *shared, *watch]
    for identifier in run.sandboxes:
        left = _settled(partial(leftovers.with_id, identifier, places))
        _fail_for(run, "after destroy", f"nothing of {identifier}", left)


def _after_shutdown(run: _Run) -> None:
    _fail_for(run, "after shutdown", "nothing", _settled(lambda: _of_case(run)))


def _fail_for(run: _Run, when: str, expected: str, left: list[str]) -> None:
    more = f"; and {len(left) - LEFT_SHOWN} more" if len(left) > LEFT_SHOWN else ""
    observed = "; ".join(left[:LEFT_SHOWN]) + more
    run.seen.append(Seen("leftovers", when, expected, observed or "nothing"))
    if left:
        run.fail("leftovers", when, expected, observed)


def _of_case(run: _Run) -> set[str]:
    processes.reap(os.getpid(), run.ours())
    keeps = run.hello.keeps if run.hello else ()
    prepared = run.prepared
    private = prepared.private_directories()
    return leftovers.of_case(
        os.getpid(), run.ours(), prepared.marker, prepared.root, private, keeps
    )


def _settled(look: Callable[[], set[str]]) -> list[str]:
    """What is still there when everything has had its time to go."""
    until = time.monotonic() + GRACE_S
    while left := look():
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return sorted(left)


def _clean_up(run: _Run) -> None:
    """Ends what this case has started, and only that."""
    for driver in run.drivers:
        driver.kill()
    processes.end(os.getpid(), run.prepared.marker, run.ours())
    run.prepared.close()
