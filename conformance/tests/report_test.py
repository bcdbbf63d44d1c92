"""The formats of the report, and the verdict."""

import json
import unittest
from dataclasses import replace
from xml.etree import ElementTree

from runner import junit, markdown, report
from runner.model import Case, Failure, Hello, Outcome, Profile, Rule, Status

FAILURE = Failure("step 1", "stdout", '"a|b"', "'\x00\x1b'")
CASES = {
    name: Case(id=name, title=f"Title of {name}", rules=(rule,), file="exec.toml", steps=())
    for name, rule in (("good", "EXEC-001"), ("bad", "EXEC-002"), ("left", "EXEC-003"))
}
RULES = {
    f"EXEC-00{number}": Rule(f"EXEC-00{number}", level, f"Rule {number}.", cases, "1.3.0", "")
    for number, level, cases in (
        (1, "MUST", ("good",)),
        (2, "SHOULD", ("bad",)),
        (3, "MUST", ("left", "good")),
    )
}
OUTCOMES = {
    "good": Outcome("good", Status.PASSED, seconds=0.5),
    "bad": Outcome("bad", Status.FAILED, (FAILURE,), stderr="said \x00"),
    "left": Outcome("left", Status.SKIPPED, reason="the profile says so"),
}
RUN = report.Run(
    hello=Hello("fake", "1", "1.4.0", {"networkIsolation": True}),
    command="./driver",
    again="conformance run --only",
    profile=Profile("user", "Somebody", ("user",), {}, {}, ()),
    machine={"kernel": "Linux"},
    cases=CASES,
    rules=RULES,
    outcomes=OUTCOMES,
    problems=(),
    started_at="2026-01-01T00:00:00Z",
    seconds=1.5,
    interrupted=False,
)


def verdict_with(**outcomes: Outcome) -> str:
    return replace(RUN, outcomes={**OUTCOMES, **outcomes}).verdict()


class Verdict(unittest.TestCase):
    def test_a_recommendation_is_no_requirement(self) -> None:
        self.assertEqual(RUN.verdict(), "conforms, with recommendations not met")
        self.assertTrue(RUN.failed())

    def test_everything_passed(self) -> None:
        self.assertEqual(verdict_with(bad=Outcome("bad", Status.PASSED)), "conforms")

    def test_a_requirement_that_fails(self) -> None:
        self.assertEqual(verdict_with(good=Outcome("good", Status.FAILED)), "does not conform")

    def test_capabilities_that_the_profile_misses(self) -> None:
        self.assertEqual(replace(RUN, problems=("none",)).verdict(), "does not conform")

    def test_no_verdict_without_all_cases(self) -> None:
        part = replace(RUN, outcomes={"good": OUTCOMES["good"]})
        for run in (part, replace(RUN, interrupted=True)):
            self.assertEqual(run.verdict(), "none: not every case was run")

    def test_no_verdict_where_the_kit_is_at_fault(self) -> None:
        broken = verdict_with(bad=Outcome("bad", Status.ERROR))
        self.assertEqual(broken, "none: the kit could not decide every case")

    def test_results_of_rules(self) -> None:
        results = [report.rule_result(rule, OUTCOMES) for rule in RULES.values()]
        self.assertEqual(results, ["passed", "failed", "passed in part"])
        self.assertEqual(report.rule_result(RULES["EXEC-001"], {}), "not run")


class Formats(unittest.TestCase):
    def setUp(self) -> None:
        self.document = report.as_document(RUN)

    def test_json(self) -> None:
        again = json.loads(json.dumps(self.document))
        self.assertEqual(again["counts"]["failed"], 1)
        self.assertEqual(again["cases"][1]["command"], "conformance run --only bad")
        self.assertEqual(again["cases"][1]["failures"][0]["observed"], "'\x00\x1b'")

    def test_junit(self) -> None:
        suite = ElementTree.fromstring(junit.render(self.document).split("\n", 1)[1])
        counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
        self.assertEqual(counts, ["3", "1", "0", "1"])
        bad = suite.find("testcase[@name='bad']")
        assert bad is not None
        self.assertIn("conformance run --only bad", bad.findtext("failure", ""))
        self.assertEqual(bad.findtext("system-err"), "said ?")
        skipped = suite.find("testcase[@name='left']/skipped")
        assert skipped is not None
        self.assertEqual(skipped.get("message"), "the profile says so")

    def test_markdown(self) -> None:
        text = markdown.render(self.document)
        self.assertIn("Verdict: **conforms, with recommendations not met**.", text)
        self.assertIn("| EXEC-001 | ok | MUST: Rule 1. | good (passed) |", text)
        self.assertIn("| EXEC-002 | **failed** | SHOULD: Rule 2. | bad (failed) |", text)
        self.assertIn("| 1 | the profile says so | left |", text)
        self.assertIn("| kernel | Linux |", text)


if __name__ == "__main__":
    unittest.main()
