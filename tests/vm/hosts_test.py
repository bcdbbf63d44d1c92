import fnmatch
import json
import tempfile
import unittest
from pathlib import Path

import hosts
import kernels
import verdict

ROOT = Path(__file__).resolve().parents[2]


def setting(reports: Path, **more: object) -> hosts.Setting:
    fields = {"whole": False, "only": (), "timeout_s": 1.0, **more}
    return hosts.Setting(checkout=ROOT, build=ROOT / "build/dev", reports=reports, **fields)  # type: ignore[arg-type]


def report(status: str, *problems: str) -> str:
    failure = {"where": "step 1", "what": "exitCode", "expected": "0", "observed": "1"}
    failures = [failure] if status == "failed" else []
    case = {"id": "some-case", "status": status, "failures": failures}
    counts = {"passed": int(status == "passed"), "failed": int(status == "failed")}
    return json.dumps({"problems": problems, "cases": [case], "counts": counts})


class TableTest(unittest.TestCase):
    def test_every_host_has_a_name_a_kernel_and_a_profile_that_exist(self) -> None:
        table = hosts.load()
        self.assertEqual(len({host.name for host in table}), len(table))
        for host in table:
            self.assertIn(host.kernel, kernels.NAMES)
            self.assertTrue((ROOT / f"conformance/profiles/{host.profile}.toml").exists(), host)
            self.assertIn(host.user, ("root", "user"))

    def test_every_pattern_names_a_case(self) -> None:
        known = verdict.cases(ROOT / "conformance/cases")
        for host in hosts.load():
            for pattern in host.few:
                self.assertTrue(fnmatch.filter(known, pattern), f"{host.name}: {pattern}")

    def test_a_delegated_host_starts_each_driver_in_a_scope(self) -> None:
        (delegated,) = [host for host in hosts.load() if host.groups]
        words = hosts.kit_words(delegated, setting(Path("/reports")))
        self.assertTrue(words[words.index("--driver") + 1].startswith(f"{hosts.SCOPE} /"))


class VerdictTest(unittest.TestCase):
    host = hosts.load()[0]

    def lines(self, text: str | None) -> list[str]:
        with tempfile.TemporaryDirectory() as directory:
            reports = Path(directory)
            if text is not None:
                (reports / self.host.name).mkdir()
                (reports / self.host.name / "report.json").write_text(text)
            return list(hosts.verdict(self.host, setting(reports)))

    def test_a_host_without_failures_is_one_line(self) -> None:
        self.assertEqual(
            self.lines(report("passed")), [f"ok {self.host.name} was run: 1 passed, 0 failed"]
        )

    def test_a_failed_case_is_a_line_of_its_own(self) -> None:
        first, _ = self.lines(report("failed"))
        self.assertEqual(
            first,
            f"not ok {self.host.name}: some-case failed: step 1: exitCode: expected 0, observed 1",
        )

    def test_a_capability_that_the_profile_wants_is_one_too(self) -> None:
        self.assertIn(f"not ok {self.host.name}: no memory", self.lines(report("passed", "no memory")))

    def test_a_host_that_was_never_run_is_no_success(self) -> None:
        (line,) = self.lines(None)
        self.assertTrue(line.startswith(f"not ok {self.host.name}: "))


if __name__ == "__main__":
    unittest.main()
