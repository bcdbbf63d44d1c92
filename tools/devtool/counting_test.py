import tempfile
import unittest
from pathlib import Path

from devtool.counting import Count, Outcome, by_ctest, by_lines, by_unittest, one_check, verdict

JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="4" failures="1" disabled="0" skipped="2">
  <testcase name="a" status="run"/>
  <testcase name="b" status="fail"><failure message="Failed"/></testcase>
  <testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
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
        self.assertEqual(count.notes, ["failed: b", "skipped: c", "failed: d"])

    def test_unittest_summaries(self) -> None:
        ok = "....\nRan 4 tests in 0.1s\n\nOK\n"
        bad = "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3)\n"
        self.assertEqual(by_unittest(self.outcome(ok)), Count(passed=4))
        self.assertEqual(by_unittest(self.outcome(bad)), Count(3, 3, 3))

    def test_lines(self) -> None:
        count = by_lines(self.outcome("ok a\nnoise ok\nnot ok b: no\nok c\n"))
        self.assertEqual((count.passed, count.failed), (2, 1))
        self.assertEqual(count.notes, ["failed: b: no"])

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
        self.assertEqual(verdict(one_check, self.outcome(status=1)), Count(failed=1))


if __name__ == "__main__":
    unittest.main()
