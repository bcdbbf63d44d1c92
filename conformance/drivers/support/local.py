"""A driver for anything that is a command put in front of another: the parts that all of them share."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.execution import KEPT, SPEC_VERSION, Execution, size
from support.protocol import Document, DriverError
from support.workspace import Workspace

_UNDERSTOOD = frozenset(
    {"env", "workDir", "timeout", "network", "maxOutputBytes", "stdin", "name", "labels"}
)
_LACKS = ("archive-up", "archive-down", "exec.timings")  # What none of these drivers can do.


@dataclass
class Sandbox:
    workspace: Workspace
    options: Document
    executions: list[Execution] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """What is to be run, before anything is put in front of it."""

    args: list[str]
    env: dict[str, str]
    work_dir: str
    network: str


def _understood(options: Document) -> Document:
    """A control that cannot be had is refused; nothing is ignored in silence."""
    for name, value in options.items():
        default = (name, value) in (
            ("backend", "native"),
            ("descendants", "kill"),
            ("osFilesystemIsolation", True),
        )
        if name not in _UNDERSTOOD and not default:
            raise DriverError("UNSUPPORTED", f"{name} cannot be enforced here", field=name)
    if options.get("network", "disabled") not in ("disabled", "allow"):
        raise DriverError("UNSUPPORTED", "there is no proxy", field="network")
    return options


class LocalDriver:
    def __init__(
        self,
        name: str,
        version: str,
        capabilities: Document,
        contained: bool,
        wrap: Callable[[Sandbox, Program], tuple[list[str], dict[str, str]]],
        lacks: tuple[str, ...] = (),
    ):
        """`wrap` gives arguments and environment of the process to start."""
        self._name, self._version, self._lacks = name, version, lacks
        self._capabilities, self._contained, self._wrap = capabilities, contained, wrap
        self._sandboxes: dict[str, Sandbox] = {}
        self._executions: dict[str, Execution] = {}

    def hello(self) -> Document:
        return {
            "name": self._name,
            "version": self._version,
            "specVersion": SPEC_VERSION,
            "capabilities": self._capabilities,
            "lacks": [*self._lacks, *_LACKS],
        }

    def capabilities(self) -> Document:
        return {"capabilities": self._capabilities}

    def create(self, options: Document) -> Document:
        options = _understood(options)  # First: a refusal leaves nothing.
        sandbox = Sandbox(Workspace(self._contained), options)
        self._sandboxes[sandbox.workspace.id] = sandbox
        return {"sandbox": sandbox.workspace.id}

    def exec(
        self,
        sandbox: str,
        options: Document,
        args: list[str] | None = None,
        command: str | None = None,
    ) -> Document:
        box = self._sandbox(sandbox)
        own = _understood(options)
        given = {**box.options, **own}
        if (args is None) == (command is None):
            raise DriverError("INVALID_OPTIONS", "exactly one of args and command", field="args")
        program = Program(
            args=args if args is not None else ["/bin/sh", "-c", command or ""],
            env={**box.options.get("env", {}), **own.get("env", {})},
            work_dir=given.get("workDir", ""),
            network=given.get("network", "disabled"),
        )
        box.workspace.mkdir(program.work_dir or ".")
        execution = self._start(box, program, given)
        box.executions.append(execution)
        self._executions[execution.id] = execution
        return {"execution": execution.id}

    def _start(self, box: Sandbox, program: Program, options: Document) -> Execution:
        words, environment = self._wrap(box, program)
        directory = str(box.workspace.place(program.work_dir or "."))
        try:
            return Execution(
                words,
                environment,
                directory,
                _input(options.get("stdin", "null")),
                self._name,
                timeout_ms=options.get("timeout", 0),
                kept=size(options.get("maxOutputBytes")) or KEPT,
            )
        except (OSError, ValueError) as error:
            raise DriverError("EXEC_FAILED", str(error)) from error

    def wait(self, execution: str) -> Document:
        return {"result": self._execution(execution).wait()}

    def stream(self, execution: str, stream: str, cursor: int, waitMs: int) -> Document:
        source = self._execution(execution)
        chosen = source.stdout if stream == "stdout" else source.stderr
        return chosen.since(cursor, waitMs / 1000)

    def status(self, execution: str) -> Document:
        return {"metadata": self._execution(execution).metadata()}

    def stdin(self, execution: str, bytes: str, close: bool) -> Document:
        self._execution(execution).feed(base64.b64decode(bytes), close)
        return {}

    def signal(self, execution: str, signal: int) -> Document:
        self._execution(execution).signal(signal)
        return {}

    def cancel(self, execution: str) -> Document:
        self._execution(execution).end("cancelled")
        return {}

    def destroy(self, sandbox: str) -> Document:
        box = self._sandbox(sandbox)
        del self._sandboxes[sandbox]
        for execution in box.executions:
            execution.end("cancelled")
            execution.wait()
        box.workspace.close()
        return {}

    def close(self) -> None:
        for identifier in list(self._sandboxes):
            self.destroy(identifier)

    def __getattr__(self, op: str) -> Any:
        """The operations on files are those of the workspace."""
        if op not in (
            "write",
            "read",
            "upload",
            "download",
            "list",
            "stat",
            "mkdir",
            "remove",
            "chmod",
            "move",
        ):
            raise AttributeError(op)

        def carry_out(sandbox: str, **fields: Any) -> Document:
            workspace = self._sandbox(sandbox).workspace
            if op == "move":
                return workspace.move(fields["from"], fields["to"])
            return getattr(workspace, op)(**fields)

        return carry_out

    def _sandbox(self, identifier: str) -> Sandbox:
        if identifier not in self._sandboxes:
            raise DriverError("NOT_FOUND", f"there is no sandbox {identifier}")
        return self._sandboxes[identifier]

    def _execution(self, identifier: str) -> Execution:
        if identifier not in self._executions:
            raise DriverError("NOT_FOUND", f"there is no execution {identifier}")
        return self._executions[identifier]


def _input(stdin: Any) -> bytes | None:
    if stdin == "pipe":
        return None
    if stdin == "null":
        return b""
    return base64.b64decode(stdin["base64"]) if "base64" in stdin else stdin["text"].encode()
