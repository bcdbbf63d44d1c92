"""Whether a driver is let in: it must introduce itself, and isolate, and report what the profile wants."""

import time
from dataclasses import replace

from runner.case_run import LEAVING_S, introduce
from runner.driver import Driver, DriverFault
from runner.machine import THROWAWAY_WORD
from runner.matching import agrees, lookup, show
from runner.model import RUNTIME, Hello, KitError, Profile
from runner.prepared import Prepared

HELLO_S = 30.0


def preflight(command: tuple[str, ...]) -> Hello:
    """Lets the driver introduce itself, and nothing more."""
    prepared = Prepared({}, "palmshed-case-hello")
    log = prepared.root / "driver.log"
    try:
        driver = Driver(command, prepared.environment({}), log)
        try:
            hello = introduce(driver, time.monotonic() + HELLO_S)
            hello = _without_place(hello, prepared)
            driver.shut_down(time.monotonic() + LEAVING_S)
        finally:
            driver.kill()
        return hello
    except DriverFault as fault:
        said = log.read_text(errors="replace").strip() if log.exists() else ""
        raise KitError(f"the driver {fault}" + (f"; it said:\n{said}" if said else "")) from fault
    finally:
        prepared.close()


def _without_place(hello: Hello, prepared: Prepared) -> Hello:
    """The directories are others in each case or run; the report says so in a word."""

    def word(pattern: str) -> str:
        runtime = prepared.environment({})["XDG_RUNTIME_DIR"]
        return pattern.replace(runtime, RUNTIME).replace(str(prepared.root), "<case>")

    return replace(hello, keeps=tuple(map(word, hello.keeps)))


def admit(hello: Hello, throwaway: bool) -> None:
    if not hello.isolates() and not throwaway:
        raise KitError(
            f'{hello.name} reports neither osFilesystemIsolation "supported" nor networkIsolation true: it would '
            "run programs that try to break out with nothing around them. It is run only inside a throwaway "
            f"machine, one that was booted with the word {THROWAWAY_WORD} on its kernel's command line."
        )


def capability_problems(profile: Profile, hello: Hello) -> tuple[str, ...]:
    found = []
    for field, wanted in profile.capabilities.items():
        seen = lookup(hello.capabilities, field)
        if problem := agrees(wanted, seen):
            found.append(
                f"capability {field}: the profile {profile.name} wants {problem}, reported is {show(seen)}"
            )
    return tuple(found)
