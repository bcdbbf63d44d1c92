import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from devtool import runner
from devtool.counting import by_ctest, by_lines, one_check
from devtool.suites import Suite


def prints(text: str, status: int = 0) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.logs = Path(directory.name)
        for target in ("LOGS", "ROOT"):
            patch = mock.patch.object(runner, target, self.logs)
            patch.start()
            self.addCleanup(patch.stop)

    def run_all(self, *suites: Suite) -> tuple[int, list[str]]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = runner.run_suites(list(suites))
        return status, output.getvalue().splitlines()

    def test_the_last_line_sums_over_all_suites(self) -> None:
        status, lines = self.run_all(
            Suite("a", lambda: [prints("ok x\nok y")], by_lines),
            Suite("b", lambda: [prints("fine")], one_check),
        )
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))

    def test_a_failure_shows_its_log_and_fails_the_run(self) -> None:
        status, lines = self.run_all(
            Suite("a", lambda: [prints("the reason", 3), prints("never")], one_check),
            Suite("b", lambda: [prints("ok x\nnot ok y", 1)], by_lines),
        )
        self.assertEqual((status, lines[-1]), (1, "1 passed, 2 failed"))
        self.assertIn("    the reason", lines)
        self.assertFalse(any("never" in line for line in lines if "$" not in line))

    def test_what_a_suite_shows_is_printed_although_it_passed(self) -> None:
        _, lines = self.run_all(
            Suite("a", lambda: [prints("exec 1.2 V\nunseen")], one_check, shown="exec"),
            Suite("b", lambda: [prints("exec 1.3 V")], one_check),
        )
        self.assertIn("    exec 1.2 V", lines)
        self.assertFalse(any("unseen" in line or "1.3" in line for line in lines))

    def test_what_failed_is_said_again_at_the_end(self) -> None:
        junit = self.logs / "a.xml"
        case = '<testcase name="x" status="fail"><system-out>the reason</system-out></testcase>'
        write = f"open({str(junit)!r}, 'w').write({'<testsuite>' + case + '</testsuite>'!r})"
        _, lines = self.run_all(
            Suite("a", lambda: [[sys.executable, "-c", write]], by_ctest),
            Suite("b", lambda: [prints("ok x")], by_lines),
        )
        end = lines[lines.index("Summary") :]
        self.assertIn("--- a: failed: x", end)
        self.assertIn("    the reason", end)

    def test_a_suite_whose_need_failed_fails_unrun(self) -> None:
        status, lines = self.run_all(
            Suite("a", lambda: [prints("no", 1)], one_check),
            Suite("b", lambda: [prints("ok x")], by_lines, needs="a"),
            Suite("c", lambda: [prints("ok x")], by_lines, needs="b"),
        )
        self.assertEqual((status, lines[-1]), (1, "0 passed, 3 failed"))

    def test_an_old_result_is_not_counted(self) -> None:
        (self.logs / "a.xml").write_text('<testsuite><testcase name="x" status="run"/></testsuite>')
        status, lines = self.run_all(Suite("a", lambda: [prints("nothing")], by_ctest))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_a_hung_command_is_ended(self) -> None:
        hang = [sys.executable, "-c", "import signal; signal.pause()"]
        status, lines = self.run_all(Suite("a", lambda: [hang], one_check, longest_s=0.2))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
