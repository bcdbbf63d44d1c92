import tempfile
import unittest
from pathlib import Path

from devtool.counting import (
    Count,
    Failure,
    Outcome,
    by_ctest,
    by_junit,
    by_lines,
    by_unittest,
    one_check,
    verdict,
)

JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="4" failures="1" disabled="0" skipped="2">
  <testcase name="a" status="run"/>
  <testcase name="b" status="fail">
    <failure message=""/><system-out>the reason</system-out>
  </testcase>
  <testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
"""

KIT = """<?xml version="1.0"?>
<testsuite name="x">
  <testcase name="a"/>
  <testcase name="b"><failure message="short">expected 1</failure></testcase>
  <testcase name="c"><error message="no answer"/></testcase>
  <testcase name="d"><skipped message="profile"/></testcase>
</testsuite>
"""


class Counting(unittest.TestCase):
    def outcome(self, log: str = "", status: int = 0, junit: str | None = None) -> Outcome:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = Path(directory.name, "junit.xml")
        if junit is not None:
            path.write_text(junit)
        return Outcome(status, log, path)

    def test_ctest_tells_a_skip_from_a_test_that_could_not_run(self) -> None:
        count = by_ctest(self.outcome(junit=JUNIT))
        self.assertEqual((count.passed, count.failed, count.skipped), (1, 2, 1))
        self.assertEqual(count.left_out, ["c"])
        failures = [Failure("b", "the reason"), Failure("d", "Unable to find executable")]
        self.assertEqual(count.failures, failures)

    def test_the_kits_cases(self) -> None:
        count = by_junit(self.outcome(junit=KIT))
        self.assertEqual((count.passed, count.failed, count.skipped), (1, 2, 1))
        self.assertEqual(count.left_out, ["d"])
        self.assertEqual(count.failures, [Failure("b", "expected 1"), Failure("c", "no answer")])

    def test_unittest_summaries(self) -> None:
        ok = "....\nRan 4 tests in 0.1s\n\nOK\n"
        bad = "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3)\n"
        self.assertEqual(by_unittest(self.outcome(ok)), Count(passed=4))
        self.assertEqual(by_unittest(self.outcome(bad)), Count(3, 3, 3))

    def test_lines(self) -> None:
        count = by_lines(self.outcome("ok a\nnoise ok\nnot ok b: no\nok c\n"))
        self.assertEqual((count.passed, count.failed), (2, 1))
        self.assertEqual(count.failures, [Failure("b: no")])

    def test_a_suite_that_executed_nothing_has_failed(self) -> None:
        for counter in (by_unittest, by_lines, by_ctest):
            with self.subTest(counter.__name__):
                count = verdict(counter, self.outcome())
                self.assertEqual((count.passed, count.failed), (0, 1))
        only_skips = "Ran 2 tests in 0.1s\n\nOK (skipped=2)\n"
        self.assertEqual(verdict(by_unittest, self.outcome(only_skips)).failed, 1)

    def test_a_bad_end_without_a_named_failure_has_failed(self) -> None:
        count = verdict(by_unittest, self.outcome("Ran 4 tests in 0.1s\n\nOK\n", status=139))
        self.assertEqual((count.passed, count.failed), (4, 1))

    def test_a_good_end_stays_good(self) -> None:
        self.assertEqual(verdict(one_check, self.outcome()), Count(passed=1))
        count = verdict(one_check, self.outcome(status=1))
        self.assertEqual((count.passed, count.failed), (0, 1))


if __name__ == "__main__":
    unittest.main()
