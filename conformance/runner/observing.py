"""What a case sees on the host: [case.after], and the step observe."""

import glob
from collections.abc import Mapping
from typing import Any

from runner import processes
from runner.matching import agrees, show
from runner.model import Failure
from runner.prepared import Prepared


class Observer:
    """Looks at one prepared host. Hits are counted from the end of the controls on."""

    def __init__(self, prepared: Prepared):
        self._prepared = prepared
        self._during_controls: dict[str, int] = {}

    def controls_are_done(self) -> None:
        self._during_controls = {name: one.hits for name, one in self._prepared.listeners.items()}

    def unseen_by_controls(self, hits: Mapping[str, Any]) -> list[str]:
        """Listeners that are to see nobody although no control has shown that they could."""
        return [name for name, wanted in hits.items() if wanted == 0 and not self._controlled(name)]

    def _controlled(self, name: str) -> bool:
        return self._during_controls.get(name, 0) > 0

    def look(self, wanted: Mapping[str, Any], where: str) -> list[Failure]:
        found = []
        for what, expected, observed in self._differences(wanted):
            found.append(Failure(where, what, expected, observed))
        return found

    def _differences(self, wanted: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        return [
            *self._files(wanted.get("files_unchanged", ())),
            *self._hits(wanted.get("hits", {})),
            *self._alive(wanted.get("alive", ())),
            *self._paths(wanted.get("gone", ()), wanted.get("present", ())),
            *self._processes(
                {**dict.fromkeys(wanted.get("no_process", ()), 0), **wanted.get("processes", {})}
            ),
        ]

    def _files(self, names: list[str]) -> list[tuple[str, str, str]]:
        changed = [(name, self._prepared.changes(name)) for name in names]
        return [(f"file {name}", change[0], change[1]) for name, change in changed if change]

    def _hits(self, hits: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        found = []
        for name, wanted in hits.items():
            seen = self._prepared.listeners[name].hits - self._during_controls.get(name, 0)
            if problem := agrees(wanted, seen):
                found.append((f"hits of {name}", problem, str(seen)))
        return found

    def _alive(self, names: list[str]) -> list[tuple[str, str, str]]:
        states = [(name, self._prepared.processes[name].poll()) for name in names]
        return [(f"process {n}", "alive", f"ended ({s})") for n, s in states if s is not None]

    def _paths(self, gone: list[str], present: list[str]) -> list[tuple[str, str, str]]:
        found = [
            (f"path {p}", "nothing", ", ".join(glob.glob(p)[:5])) for p in gone if glob.glob(p)
        ]
        return found + [(f"path {p}", "something", "nothing") for p in present if not glob.glob(p)]

    def _processes(self, counts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
        found = []
        for text, wanted in counts.items():
            matching = processes.with_text(text)
            if problem := agrees(wanted, len(matching)):
                seen = f"{len(matching)}: " + "; ".join(map(str, matching[:5]))
                found.append((f"processes with {show(text)}", problem, seen))
        return found
