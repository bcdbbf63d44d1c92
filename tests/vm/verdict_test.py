import tempfile
import unittest
from pathlib import Path

import verdict

CASES = """
[[case]]
id = "runs"
rules = ["EXEC-001"]
[[case.step]]
op = "exec"
expect = { exitCode = 0 }

[[case]]
id = "denied"
rules = ["FS-001"]
[[case.control]]
probe = "files"
on = "host"
expect = { probe = [{ attempt = "open", result = "ok" }] }
[[case.step]]
probe = "files"
expect = { probe = [{ attempt = "open", result = "denied" }] }

[[case]]
id = "unreached"
rules = ["NET-001"]
[[case.step]]
op = "exec"
[case.after]
hits = { tcp = 0 }
"""
LIST = """
[[works]]
because = "it runs"
cases = ["runs"]

[[denied_anyway]]
because = "the kernel denies it to an ordinary user"
as = ["user"]
cases = ["denied"]

[[ends_the_kit]]
because = "it kills"
cases = ["unreached"]
"""


def report(**statuses: str) -> dict[str, object]:
    failure = {"where": "control", "what": "hits of tcp", "expected": "1", "observed": "0"}
    cases = [
        {"id": name, "rules": ["FS-001"], "status": status, "failures": [failure]}
        for name, status in statuses.items()
    ]
    return {"cases": cases}


class VerdictTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="palmshed-vm-test-")
        self.addCleanup(place.cleanup)
        Path(place.name, "some.toml").write_text(CASES)
        self.known = verdict.cases(Path(place.name))
        self.list = Path(place.name, "list")
        self.list.write_text(LIST)

    def test_failing_everything_but_what_is_listed_is_right(self) -> None:
        seen = report(runs="passed", denied="failed", unreached="skipped")
        self.assertEqual(verdict.of_report(verdict.load("root", self.list), seen), [])

    def test_passing_what_is_not_listed_is_a_problem(self) -> None:
        found = verdict.of_report(verdict.load("root", self.list), report(denied="passed"))
        self.assertEqual(found, ["denied [FS-001] passes with no sandbox around it"])

    def test_what_the_guest_denies_to_one_user_may_pass_for_that_one(self) -> None:
        found = verdict.of_report(verdict.load("user", self.list), report(denied="passed"))
        self.assertEqual(found, [])

    def test_a_case_without_a_verdict_is_a_problem(self) -> None:
        found = verdict.of_report(verdict.load("root", self.list), report(denied="error"))
        self.assertEqual(found, ["denied [FS-001] was not decided: control: hits of tcp: 0"])

    def test_the_list_names_cases_that_exist(self) -> None:
        self.assertEqual(verdict.of_list(verdict.load("root", self.list), self.known), [])
        self.list.write_text(LIST.replace('"runs"]', '"gone"]'))
        self.assertEqual(
            verdict.of_list(verdict.load("root", self.list), self.known),
            ["gone is on the list, and no case"],
        )

    def test_a_denial_cannot_be_listed_as_what_works(self) -> None:
        self.list.write_text(LIST.replace('"runs"]', '"runs", "denied", "unreached"]'))
        self.assertEqual(
            verdict.of_list(verdict.load("root", self.list), self.known),
            [
                "denied is listed as what works, and must be denied",
                "unreached is listed as what works, and must be denied",
            ],
        )


if __name__ == "__main__":
    unittest.main()
