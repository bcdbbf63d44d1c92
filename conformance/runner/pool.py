"""Runs cases in worker processes, and sees to it that nothing of this ever hangs or stays.

Mounts, control groups and the like belong to the whole host, and several cases run at once. Whatever is new when
a case ends is held against all cases that ran at that moment, and counts when it is still there at the end.
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from runner import leftovers, processes
from runner.case_run import GRACE_S, LEAVING_S, Setting
from runner.model import RUNTIME, Case, Failure, Outcome, Status
from runner.paths import ENTRY
from runner.prepared import make_directory, remove_tree
from runner.worker import as_document

SLACK_S = 2 * GRACE_S + LEAVING_S + 15  # What a worker may need beyond the time of its case.
STOP_S = 8.0


class Worker:
    def __init__(self, setting: Setting, cases: Path):
        self._process = subprocess.Popen(
            [sys.executable, str(ENTRY), "worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # ^C on a terminal is for the pool alone.
        )
        self.case: Case | None = None
        self.deadline = 0.0
        self._patience = setting.patience
        self._write(as_document(setting, cases))

    def _write(self, document: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(document).encode() + b"\n")
        self._process.stdin.flush()

    def fileno(self) -> int:
        assert self._process.stdout
        return self._process.stdout.fileno()

    def start(self, case: Case) -> None:
        self.case = case
        self.deadline = time.monotonic() + case.timeout_s * self._patience + SLACK_S
        self._write({"case": case.id})

    def outcome(self) -> Outcome | None:
        """None: it has died. Blocks only for the rest of a line."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        return Outcome.from_document(json.loads(line)) if line.endswith(b"\n") else None

    def ask_to_stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()

    def stop(self, patience: float) -> None:
        """Lets it clean up, and then ends it with everything below it."""
        assert self._process.stdin and self._process.stdout
        self.ask_to_stop()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            processes.end(self._process.pid, "", set())
            self._process.kill()
            self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


@dataclass
class HostWatch:
    """Things of the whole host that were not there before, with the cases that may have left them."""

    watch: tuple[str, ...]
    keeps: tuple[str, ...]

    def __post_init__(self) -> None:
        self._before = self._now()
        self._suspects: dict[str, set[str]] = {}
        self._ids: set[str] = set()

    def _now(self) -> set[str]:
        return leftovers.host_wide(self.watch, self.keeps)

    def look(self, running: Iterable[str], ids: Iterable[str]) -> None:
        self._ids.update(ids)
        new = self._now() - self._before
        self._suspects = {item: names for item, names in self._suspects.items() if item in new}
        for item in new:
            if not leftovers.foreign(item, self._ids):
                self._suspects.setdefault(item, set(running))

    def forget(self) -> None:
        """After a case that may leave things."""
        self._before = self._now()

    def left(self) -> dict[str, set[str]]:
        until = time.monotonic() + GRACE_S
        self.look((), ())
        while self._suspects and time.monotonic() < until:
            time.sleep(0.1)
            self.look((), ())
        return {item: names for item, names in self._suspects.items() if names}


class Pool:
    def __init__(
        self,
        setting: Setting,
        cases: Path,
        jobs: int,
        report: Callable[[Outcome], None],
    ):
        # One directory for all, so that a worker that is lost leaves nothing either.
        place = make_directory(setting.place)
        runtime = place / "runtime"
        runtime.mkdir(mode=0o700)
        self._setting = replace(setting, place=place, runtime=runtime)
        self._cases, self._jobs, self._report = cases, jobs, report
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        self._outcomes: dict[str, Outcome] = {}
        keeps = tuple(keep.replace(RUNTIME, str(runtime)) for keep in setting.hello.keeps)
        self._host = HostWatch((*setting.hello.watch, str(runtime)), keeps)
        self.interrupted = False

    def run(self, cases: list[Case]) -> dict[str, Outcome]:
        try:
            self._run(cases)
            self._charge()
        finally:
            remove_tree(self._setting.place)
        return self._outcomes

    def _run(self, cases: list[Case]) -> None:
        together = deque(case for case in cases if not case.alone)
        alone = deque(case for case in cases if case.alone)
        try:
            self._drain(together, self._jobs)
            self._drain(alone, 1)
        except KeyboardInterrupt:
            self.interrupted = True
            self._interrupt(cases)
        finally:
            self._stop_all()

    def _drain(self, waiting: deque[Case], jobs: int) -> None:
        while waiting or self._busy():
            while waiting and len(self._busy()) < jobs:
                self._idle_worker().start(waiting.popleft())
            for key, _ in self._selector.select(timeout=0.5):
                self._collect(key.fileobj)  # type: ignore[arg-type]
            self._end_overdue()

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.case]

    def _idle_worker(self) -> Worker:
        for worker in self._workers:
            if worker.case is None:
                return worker
        worker = Worker(self._setting, self._cases)
        self._workers.append(worker)
        self._selector.register(worker, selectors.EVENT_READ)
        return worker

    def _collect(self, worker: Worker) -> None:
        outcome = worker.outcome()
        if outcome is None:
            self._give_up(worker, "it ended")
            return
        case = worker.case
        assert case
        self._host.look([one.case.id for one in self._busy() if one.case], outcome.sandboxes)
        if not case.after.get("no_leftovers", True):
            self._host.forget()
        worker.case = None
        self._settle(outcome)

    def _settle(self, outcome: Outcome) -> None:
        self._outcomes[outcome.case] = outcome
        self._report(outcome)

    def _end_overdue(self) -> None:
        for worker in self._busy():
            if time.monotonic() > worker.deadline:
                self._give_up(worker, "it said nothing")

    def _give_up(self, worker: Worker, why: str) -> None:
        """A worker that is lost takes its case with it."""
        self._selector.unregister(worker)
        self._workers.remove(worker)
        worker.stop(patience=1)
        if worker.case:
            failure = Failure("the kit", "the worker", "an outcome", why, True)
            self._settle(Outcome(worker.case.id, Status.ERROR, (failure,)))

    def _interrupt(self, cases: list[Case]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):  # What follows is short and must not be cut.
            signal.signal(number, signal.SIG_IGN)
        for case in cases:
            if case.id not in self._outcomes:
                self._outcomes[case.id] = Outcome(case.id, Status.INTERRUPTED)

    def _stop_all(self) -> None:
        for worker in self._workers:
            worker.ask_to_stop()
        until = time.monotonic() + STOP_S
        for worker in self._workers:
            worker.stop(max(0.1, until - time.monotonic()))
        processes.end(os.getpid(), "", {os.getpid()})

    def _charge(self) -> None:
        for item, names in sorted(self._host.left().items()):
            together = f"{item}, left while {', '.join(sorted(names))} ran"
            failure = Failure("leftovers", "on the host", "nothing", together)
            for name in sorted(names & self._outcomes.keys()):
                before = self._outcomes[name]
                failed = before.status if before.status is Status.ERROR else Status.FAILED
                self._outcomes[name] = replace(
                    before, status=failed, failures=(*before.failures, failure)
                )
                self._report(self._outcomes[name])
