"""Cases, rules and settings for the tests of the runner."""

import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

from runner import loading
from runner.case_run import Setting, run_case
from runner.model import Case, Hello, Outcome

FAKE = Path(__file__).resolve().parent / "fake_driver.py"
GOOD_STEP = 'op = "exec"\nargs = ["print", "hello"]\nexpect = { stdout = "hello", exitCode = 0 }'
HEAD = '[[case]]\nid = "{name}"\nrules = ["EXEC-001"]\ntitle = "What the test is about"\ntimeout_s = {seconds}\n'


def fake_command(*faults: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(FAKE), *faults]


def case_text(body: str, name: str = "the-case", seconds: int = 5) -> str:
    if "[[case.step]]" not in body:
        body = "[[case.step]]\n" + body
    return HEAD.format(name=name, seconds=seconds) + body + "\n"


def make_case(body: str, **more: object) -> Case:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "cases.toml").write_text(case_text(body, **more))  # type: ignore[arg-type]
        return next(iter(loading.load_cases(Path(directory)).values()))


def rules_text(*names: str) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f'[[rule]]\nid = "EXEC-001"\nlevel = "MUST"\ntext = "Programs run."\ncases = [{listed}]\nsince = "1.3.0"\n'


def setting(*faults: str, probes: Path | None = None) -> Setting:
    hello = Hello("fake", "1", "1.4.0", {"networkIsolation": True})
    return Setting(tuple(fake_command(*faults)), hello, probes, throwaway=False)


class RunnerTest(unittest.TestCase):
    def run_fake(self, body: str, *faults: str, **more: object) -> Outcome:
        return run_case(make_case(body, **more), setting(*faults))

    def assert_said(self, outcome: Outcome, *words: str) -> None:
        said = "\n".join(map(str, outcome.failures))
        for word in words:
            self.assertIn(word, said)


def parse(text: str) -> dict[str, object]:
    return tomllib.loads(text)
