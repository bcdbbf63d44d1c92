"""The engine where the host is changed under it: namespaces refused and allowed again, the wall clock stepped."""

import io
import json
import unittest
from pathlib import Path
from typing import Any

import kernels
import machine

PALMSHED = Path(__file__).resolve().parents[2] / "build/dev/bin/palmshed"
SANDBOX_FAILED = 125  # Exit code of a run that could not be had, which no program gives.


class OlderKernelTest(unittest.TestCase):
    """Landlock without scopes: where user namespaces are refused there is nothing left."""

    kernel = "cloud-6.1"
    without_namespaces = SANDBOX_FAILED
    seen: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        try:
            kernels.get(cls.kernel)
        except kernels.NoKernel as missing:
            if cls.kernel == kernels.DEFAULT:
                raise
            raise unittest.SkipTest(f"no kernel {cls.kernel}: {missing}") from missing
        stdout, stderr = io.BytesIO(), io.BytesIO()
        request = machine.Request(
            args=("/usr/bin/python3.11", "-I", "/guest/engine_checks.py", str(PALMSHED)),
            trees=(PALMSHED,),
            kernel=cls.kernel,
            timeout_s=180,
        )
        ended = machine.run(request, stdout, stderr)
        if ended.exit_code != 0:
            raise AssertionError(f"{ended}: {stderr.getvalue().decode(errors='replace')}")
        cls.seen = json.loads(stdout.getvalue())

    def refusals(self) -> dict[str, Any]:
        refused: dict[str, Any] = self.seen["refused"]
        self.assertIn("user.max_user_namespaces", refused)
        return refused

    def test_nothing_is_missing_before(self) -> None:
        for name, seen in self.refusals().items():
            self.assertEqual(seen["healthy"], {"exit": 0, "missing": [], "remedies": []}, name)

    def test_what_is_missing_is_named_with_the_command_that_helps(self) -> None:  # C037
        for name, seen in self.refusals().items():
            self.assertNotEqual(seen["told"]["missing"], [], name)
            self.assertTrue(any(name in remedy for remedy in seen["told"]["remedies"]), seen)

    def test_each_run_there_ends_the_same_way(self) -> None:  # C037
        for seen in self.refusals().values():
            codes = [code for code, _, _ in seen["runs"]]
            self.assertEqual(codes, [self.without_namespaces] * 2, seen)

    def test_after_the_command_nothing_is_missing(self) -> None:
        for name, seen in self.refusals().items():
            self.assertEqual(set(seen["taken"]), {0}, name)
            self.assertEqual(seen["after"], {"exit": 0, "missing": [], "remedies": []}, name)
            self.assertEqual(seen["again"], [0, "/workspace\n"], name)

    def test_a_stepped_wall_clock_moves_no_deadline(self) -> None:  # C102
        seen = self.seen["in time"]
        self.assertEqual((seen["rest"], seen["result"]["status"]), ("ok\n", "completed"))

    def test_a_stepped_wall_clock_does_not_put_off_a_timeout(self) -> None:  # C102
        result = self.seen["too long"]["result"]
        self.assertEqual((result["status"], result["termination"]["cause"]), ("timedout", "wall_timeout"))

    def test_durations_are_those_of_a_clock_that_nobody_steps(self) -> None:  # C102
        for name, least in (("in time", 3000), ("too long", 4000)):
            seen = self.seen[name]
            # It began before we heard of it; starting and ending take a while on an emulated processor.
            self.assertGreaterEqual(seen["result"]["durationMs"], least, name)
            self.assertLess(seen["result"]["durationMs"], seen["tookMs"] + 10000, name)


class NewerKernelTest(OlderKernelTest):
    """Landlock with scopes: where user namespaces are refused there is the weaker rung, and it is named."""

    kernel = "cloud-6.12"
    without_namespaces = 0

    def test_what_is_weaker_there_is_where_the_program_is(self) -> None:
        for seen in self.refusals().values():
            for _, stdout, _ in seen["runs"]:
                self.assertRegex(stdout, r"/sbx_[0-9a-f]+")


if __name__ == "__main__":
    unittest.main()
