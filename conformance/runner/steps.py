"""Carries out the steps of a case against one driver."""

import os
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runner import archives
from runner.answers import brief, failures_of, plain
from runner.driver import Driver, DriverFault, Refusal
from runner.matching import MISSING, lookup, show
from runner.model import RUNNER_OPERATIONS, Document, Failure, KitError, Seen, Step, on_host
from runner.observing import Observer
from runner.prepared import content
from runner.variables import fill

_OF_EXECUTION = frozenset({"wait", "stream", "status", "stdin", "signal", "resize", "cancel"})
_LIMITS = ("maxEntries", "maxBytes", "timeout")
_PASSED_ON = {
    "stream": ("stream", "cursor", "waitMs"),
    "signal": ("signal",),
    "resize": ("rows", "cols"),
    "write": ("path", "mode"),
    "read": ("path",),
    "upload": ("hostPath", "path"),
    "download": ("path", "hostPath"),
    "archive-up": ("path", *_LIMITS),
    "archive-down": ("path", *_LIMITS),
    "list": ("path",),
    "stat": ("path",),
    "mkdir": ("path", "mode"),
    "remove": ("path", "recursive"),
    "move": ("from", "to"),
    "chmod": ("path", "mode"),
}
_DEFAULTS: dict[str, Document] = {"stream": {"stream": "stdout", "cursor": 0, "waitMs": 1000}}
_OBSERVED = ("files_unchanged", "hits", "alive", "gone", "present", "no_process", "processes")
PAUSE_S = 0.02  # Between two looks of a step that has within_ms.

# What was not as it must be, and what was observed, in words.
_Attempt = tuple[list[Failure], str]


class Steps:
    """The state that steps share: sandboxes, executions and what was saved, by name."""

    def __init__(
        self,
        start: Callable[[], Driver],
        observer: Observer,
        variables: Mapping[str, str],
        probes: Path | None,
        deadline: float,
    ):
        self._start = start
        self._observer = observer
        self._probes = probes
        self.deadline = deadline
        self.driver = start()
        self._beside: Driver | None = None
        self.sandboxes: dict[str, str] = {}
        self.ever: list[str] = []  # Ids of all sandboxes.
        self.seen: list[Seen] = []
        self._variables = dict(variables)
        self._executions: dict[str, str] = {}
        self._uploaded: set[tuple[str, str]] = set()
        self._background: dict[str, tuple[threading.Thread, list[Failure]]] = {}
        self._creating = threading.RLock()

    def run(self, steps: tuple[Step, ...], kind: str = "") -> list[Failure]:
        """Up to the first step that fails, and then those in the background. `kind` of step they are."""
        failures: list[Failure] = []
        for number, step in enumerate(steps, start=1):
            for name in step.get("join", ()):
                failures += self._joined(name)
            failures = failures or self._begin(
                f"{kind}step {step.get('name', number)}", number, step
            )
            if failures:
                break
        return failures + self._join_all()

    def filled(self, value: Any) -> Any:
        """With the variables as they are now."""
        return fill(value, self._variables)

    def destroy_all(self) -> list[str]:
        """Destroys what the steps have left, and returns the ids."""
        ids = list(self.sandboxes.values())
        for identifier in ids:
            self.driver.ask("destroy", {"sandbox": identifier}, self.deadline)
        self.sandboxes.clear()
        return ids

    def _begin(self, where: str, number: int, step: Step) -> list[Failure]:
        if not step.get("background"):
            return self._repeated(where, step)
        name = step.get("name", str(number))
        failures: list[Failure] = []
        thread = threading.Thread(
            target=lambda: failures.extend(self._repeated(where, step)), daemon=True
        )
        self._background[name] = (thread, failures)
        thread.start()
        return []

    def _joined(self, name: str) -> list[Failure]:
        thread, failures = self._background.pop(name)
        thread.join(max(0.0, self.deadline - time.monotonic()) + 1)
        if thread.is_alive():
            raise KitError(f"step {name} does not end")
        return failures

    def _join_all(self) -> list[Failure]:
        return [failure for name in list(self._background) for failure in self._joined(name)]

    def _repeated(self, where: str, step: Step) -> list[Failure]:
        if "copies" in step:
            return self._at_once(where, step)
        if "times" not in step:
            return self._guarded(where, step, self._variables, step.get("name", ""))
        for index in range(step["times"]):
            if failures := self._indexed(where, step, index):
                return failures
        return []

    def _indexed(self, where: str, step: Step, index: int) -> list[Failure]:
        values = {**self._variables, "index": str(index)}
        return self._guarded(f"{where} ({index})", step, values, f"{step.get('name', '')}-{index}")

    def _at_once(self, where: str, step: Step) -> list[Failure]:
        found: list[list[Failure]] = [[] for _ in range(step["copies"])]

        def one(index: int) -> None:
            found[index] = self._indexed(where, step, index)

        threads = [threading.Thread(target=one, args=(index,)) for index in range(step["copies"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [failure for failures in found for failure in failures]

    def _guarded(
        self, where: str, step: Step, values: Mapping[str, str], name: str
    ) -> list[Failure]:
        try:
            return self._until(where, fill(step, values), name)
        except DriverFault as fault:
            return [Failure(where, "the driver", "an answer", f"it {fault}")]
        except KitError as error:
            return [Failure(where, "the kit", "a step that can be carried out", str(error), True)]

    def _until(self, where: str, step: Step, name: str) -> list[Failure]:
        patience = time.monotonic() + step.get("within_ms", 0) / 1000
        while True:
            failures, observed = self._once(where, step, name)
            if not failures or time.monotonic() >= min(patience, self.deadline):
                self.seen.append(Seen(where, asked(step), expected(step), observed))
                return failures
            time.sleep(PAUSE_S)

    def _once(self, where: str, step: Step, name: str) -> _Attempt:
        op = "exec" if "probe" in step else step["op"]
        if op == "observe":
            wanted = {k: step[k] for k in _OBSERVED if k in step}
            failures = self._observer.look(wanted, where)
            return failures, "; ".join(map(str, failures)) or "just that"
        began = time.monotonic()
        try:
            seen = self._on_host(step) if on_host(step) else self._answer(op, step, name)
        except Refusal as refusal:
            return self._refused(where, op, step, {**refusal.document, "elapsedMs": _since(began)})
        seen["elapsedMs"] = _since(began)
        if "expect_error" in step and "expect" not in step:
            error = f"the error {show(step['expect_error'])}"
            return [Failure(where, op, error, f"no error: {brief(seen)}")], brief(seen)
        failures = self._save(where, step.get("save", {}), seen)
        failures += failures_of(where, step.get("expect", {}), seen)
        return failures, in_words(step.get("expect", {}), seen)

    def _refused(self, where: str, op: str, step: Step, error: Document) -> _Attempt:
        if "expect_error" in step:
            failures = failures_of(where, step["expect_error"], error)
            return failures, f"the error {in_words(step['expect_error'], error)}"
        return [Failure(where, op, "an answer without an error", show(error))], show(error)

    def _save(self, where: str, wanted: Mapping[str, str], seen: Document) -> list[Failure]:
        missing = []
        for name, field in wanted.items():
            value = lookup(seen, field)
            if value is MISSING:
                missing.append(Failure(where, field, "something to save", "nothing"))
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            self._variables[f"saved.{name}"] = text.strip()
        return missing

    def _answer(self, op: str, step: Step, name: str) -> Document:
        if op in RUNNER_OPERATIONS:
            return self._change_driver(op, step)
        if op == "create":
            return self._create(step.get("sandbox", "main"), step.get("options", {}))
        if op == "exec":
            return self._exec(step, name)
        if op == "capabilities":
            return dict(self._ask("capabilities", {})["capabilities"])
        fields = self._fields(op, step)
        if op == "destroy":
            self.sandboxes.pop(step.get("sandbox", "main"), None)
        return plain(op, self._ask(op, fields))

    def _change_driver(self, op: str, step: Step) -> Document:
        beside = step.get("beside", False)
        if op == "start-driver":
            return self._start_driver(beside)
        driver = self._beside if beside else self.driver
        if driver is None:
            raise KitError("there is no second driver")
        if op == "kill-driver":
            driver.kill(step.get("signal", 9))
        else:
            driver.close_input(self.deadline)
        if not beside:
            self.sandboxes.clear()
        return {}

    def _start_driver(self, beside: bool) -> Document:
        if not beside:
            self.driver = self._start()
            return {}
        self._beside = self._start()
        made = self._beside.ask("create", {"options": {}}, self.deadline)
        self.ever.append(made["sandbox"])
        return self._beside.ask("destroy", made, self.deadline)

    def end_drivers(self) -> None:
        """Lets those go that are still there."""
        for driver in (self._beside, self.driver):
            if driver and not driver.ended:
                driver.shut_down(self.deadline)

    def _ask(self, op: str, fields: Document) -> Document:
        return self.driver.ask(op, fields, self.deadline)

    def _fields(self, op: str, step: Step) -> Document:
        given = {**_DEFAULTS.get(op, {}), **step}
        fields: Document = {key: given[key] for key in _PASSED_ON.get(op, ()) if key in given}
        if op in _OF_EXECUTION:
            fields["execution"] = self._execution(step["execution"])
        else:
            fields["sandbox"] = self._sandbox(step.get("sandbox", "main"))
        if op in ("write", "stdin"):
            fields["bytes"] = b64encode(content(step)).decode()
        if op == "archive-up":
            fields["bytes"] = b64encode(archives.packed(step)).decode()
        if op == "stdin":
            fields["close"] = step.get("close", False)
        return fields

    def _execution(self, name: str) -> str:
        if name not in self._executions:
            raise KitError(f"no step {name} has started a program")
        return self._executions[name]

    def _sandbox(self, name: str) -> str:
        with self._creating:
            if name not in self.sandboxes:
                gone = f"saved.sandbox.{name}"
                if gone in self._variables:  # Destroyed before; the case asks what happens then.
                    return self._variables[gone]
                self._create(name, {})
            return self.sandboxes[name]

    def _create(self, name: str, options: Document) -> Document:
        answer = self._ask("create", {"options": options})
        with self._creating:
            self.sandboxes[name] = answer["sandbox"]
            self.ever.append(answer["sandbox"])
            self._variables[f"saved.sandbox.{name}"] = answer["sandbox"]
        return dict(answer)

    def _exec(self, step: Step, name: str) -> Document:
        sandbox = self._sandbox(step.get("sandbox", "main"))
        fields: Document = {"sandbox": sandbox, "options": step.get("options", {})}
        fields |= {key: step[key] for key in ("args", "command") if key in step}
        if "probe" in step:
            self._upload_probe(sandbox, step["probe"])
            fields["args"] = [f"./probe-{step['probe']}", *step.get("probe_args", ())]
        answer = self._ask("exec", fields)
        self._executions[name] = answer["execution"]
        if not step.get("wait", True):
            return dict(answer)
        return plain("wait", self._ask("wait", {"execution": answer["execution"]}))

    def _probe(self, name: str) -> Path:
        path = self._probes / name if self._probes else None
        if path is None or not os.access(path, os.X_OK):
            raise KitError(f"the probe {name} is not built (looked in {self._probes})")
        return path

    def _upload_probe(self, sandbox: str, name: str) -> None:
        with self._creating:
            if (sandbox, name) in self._uploaded:
                return
            data = b64encode(self._probe(name).read_bytes()).decode()
            fields = {"sandbox": sandbox, "path": f"probe-{name}", "bytes": data, "mode": 0o755}
            self._ask("write", fields)
            self._uploaded.add((sandbox, name))

    def _on_host(self, step: Step) -> Document:
        """The same attempt with no sandbox around it."""
        args = (
            [str(self._probe(step["probe"])), *step.get("probe_args", ())]
            if "probe" in step
            else []
        )
        args = args or step.get("args") or ["/bin/sh", "-c", step["command"]]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            **step.get("options", {}).get("env", {}),
        }
        try:
            done = subprocess.run(
                args,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=self._variables["host.dir"],
                env=environment,
                timeout=max(0.1, self.deadline - time.monotonic()),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KitError(f"{args[0]} on the host: {error}") from error
        return {"exitCode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def asked(step: Step) -> str:
    """What a step does, in words."""
    what = "the probe" if "probe" in step else step["op"]
    named = ("probe", "probe_args", "args", "command", "path", "from", "to", "signal", "sandbox")
    words = [what, *(show(step[key]) for key in named if key in step)]
    words += [f"{key} {show(step[key])}" for key in ("entries", *_LIMITS) if key in step]
    words += [f"with {show(step['options'])}"] if step.get("options") else []
    return " ".join([*words, "on the host"] if on_host(step) else words)


def expected(step: Step) -> str:
    if "expect_error" in step:
        either = f"{show(step['expect'])}, or " if "expect" in step else ""
        return f"{either}the error {show(step['expect_error'])}"
    wanted = step.get("expect") or {k: step[k] for k in _OBSERVED if k in step}
    return show(wanted) if wanted else "an answer without an error"


def in_words(wanted: Mapping[str, Any], seen: Document) -> str:
    """Of what was seen, that which something was expected of."""
    fields = dict.fromkeys("stdout" if field == "probe" else field for field in wanted)
    return ", ".join(f"{field} {show(lookup(seen, field))}" for field in fields) or brief(seen)


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
