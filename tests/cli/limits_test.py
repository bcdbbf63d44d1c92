#!/usr/bin/env python3
"""Limits from the command line, as far as this host enforces them: flags, lines, exit codes, documents."""

import json
import re
import unittest

from program import ProgramTest, validator

MIB = 1 << 20
TAKE_300_MIB = ("python3", "-c", "print('before', flush=True); bytearray(300 << 20)")
COMPUTE = ("sh", "-c", "while :; do :; done")
FILL = "for i in $(seq 32); do head -c 1M /dev/zero >f$i || exit 1; done; echo all"
FORK = "for i in $(seq 20); do sleep 60 & done; echo all"
CONTROLS = ("memory", "pids", "cpuTimeLimit", "cpuQuota", "diskQuota", "storage.memory",
            "storage.loop")


class LimitsTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.capabilities = None

    def setUp(self):
        super().setUp()
        cls = type(self)
        if cls.capabilities is None:
            cls.capabilities = json.loads(self.palmshed("doctor", "--format", "json").stdout)

    def control(self, name):
        return next(one for one in self.capabilities["controls"] if one["name"] == name)

    def need(self, name):
        if not self.control(name)["works"]:
            self.skipTest(f"{name}: {self.control(name)['detail']}")

    def by_groups(self, name):
        return self.control(name)["mechanism"].startswith("cgroup")

    def document(self, *arguments):
        """The answer, and the result document, which follows its schema."""
        path = self.directory / "result.json"
        answer = self.run_program("--json", str(path), *arguments)
        document = json.loads(path.read_text())
        validator("exec-result" if "termination" in document else "error").validate(document)
        return answer, document

    def assert_met(self, answer, document, cause, limit, code):
        """A limit of that kind has ended it: exit code 137, one line, a complete record."""
        self.assertEqual(answer.returncode, 137, answer)
        end = document["termination"]
        self.assertEqual((end["cause"], end["limit"]), (cause, limit), document)
        self.assertEqual((document["status"], document["exitCode"]), ("failed", -1))
        self.assertEqual(document["error"]["code"], code)
        self.assertEqual(document["error"]["observed"], end["observed"])

    def assert_line(self, answer, pattern):
        ours = [line for line in answer.stderr.decode().splitlines() if "palmshed: " in line]
        self.assertEqual(len(ours), 1, answer)
        self.assertRegex(ours[0], f"^palmshed: {pattern}$")


class Memory(LimitsTest):
    def setUp(self):
        super().setUp()
        self.need("memory")

    def test_within_the_limit_nothing_is_said(self):
        answer, document = self.document("-m", "512m", "--", *TAKE_300_MIB)
        self.assert_result(answer, 0, b"before\n", b"")
        self.assertEqual(document["termination"]["cause"], "exited")

    def test_is_met(self):
        answer, document = self.document("-m", "64m", "--", *TAKE_300_MIB)
        self.assert_met(answer, document, "memory", 64 * MIB, "ERR_OOM_EXCEEDED")
        self.assertEqual(answer.stdout, b"before\n")
        self.assert_line(
            answer, r"memory limit of 64 MiB reached \(used [\d.]+ MiB\); raise it with -m/--memory"
        )
        self.assertGreaterEqual(document["termination"]["observed"], 64 * MIB)
        counter = "oom" if self.by_groups("memory") else "sampled_looks"
        self.assertGreater(document["termination"]["evidence"][counter], 0)

    def test_quiet_leaves_the_exit_code_alone_to_tell(self):
        answer = self.run_program("--quiet", "--memory", "64m", "--", *TAKE_300_MIB)
        self.assert_result(answer, 137, b"before\n", b"")

    def test_exit_code_137_of_the_programs_own_is_no_limit(self):
        answer, document = self.document("-m", "64m", "--", "sh", "-c", "exit 137")
        self.assert_result(answer, 137, b"", b"")
        self.assertEqual(document["termination"]["cause"], "exited")


class CpuTime(LimitsTest):
    def setUp(self):
        super().setUp()
        self.need("cpuTimeLimit")

    def test_sleep_is_free(self):
        answer = self.run_program("--cpu-time", "300ms", "--", "sleep", "0.6")
        self.assert_result(answer, 0, b"", b"")

    def test_is_met(self):
        answer, document = self.document("--cpu-time", "300ms", "--timeout", "30s", "--", *COMPUTE)
        self.assert_met(answer, document, "cpu_time", 300, "ERR_CPU_EXCEEDED")
        self.assertGreaterEqual(document["termination"]["observed"], 300)
        self.assert_line(
            answer, r"CPU time limit of 300 ms reached \(used \d+ ms\); raise it with --cpu-time"
        )

    def test_the_timeout_is_told_apart(self):
        """The control: under the same limit, the one that is met first decides."""
        answer, document = self.document("--cpu-time", "30s", "--timeout", "500ms", "--", *COMPUTE)
        self.assertEqual(answer.returncode, 124, answer)
        self.assertEqual(document["termination"]["cause"], "wall_timeout")


class Processes(LimitsTest):
    def setUp(self):
        super().setUp()
        self.need("pids")

    def test_within_the_limit_nothing_is_said(self):
        answer = self.shell(FORK, "--pids-limit", "64")
        self.assert_result(answer, 0, b"all\n", b"")

    def test_forks_fail_and_it_is_said_why(self):
        answer, document = self.document("--pids-limit", "8", "--", "sh", "-c", FORK)
        self.assertEqual((answer.returncode, answer.stdout), (2, b""), answer)
        self.assertIn(b"Cannot fork", answer.stderr)
        self.assertEqual(document["termination"]["cause"], "exited")
        if self.capabilities["pidsScope"] == "execution":
            self.assertGreater(document["termination"]["evidence"]["pids_refused"], 0)
            self.assert_line(
                answer,
                r"the process limit refused \d+ new process(es)?, which may be why it failed; "
                "raise it with --pids-limit",
            )


class CpuQuota(LimitsTest):
    def test_slows_down_where_there_are_groups(self):
        self.need("cpuQuota")
        work = ("python3", "-c", "import time\nwhile time.process_time() < 0.3: pass")
        answer, document = self.document("--cpus", "0.2", "--", *work)
        self.assert_result(answer, 0, b"", b"")
        self.assertGreater(document["termination"]["evidence"]["throttled_periods"], 0)
        self.assertGreaterEqual(document["durationMs"], 1000)  # Of 1500, by 100 for each period.
        answer, document = self.document("--", *work)
        self.assertNotIn("throttled_periods", document["termination"].get("evidence", {}))

    def test_is_refused_elsewhere_with_the_remedy(self):
        quota = self.control("cpuQuota")
        if quota["works"]:
            self.skipTest("cpuQuota is enforced here")
        answer, error = self.document("--cpus", "0.5", "--", "echo", "ran")
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "--cpus", quota["remedy"], "degraded")
        self.assertEqual((error["code"], error["field"]), ("UNSUPPORTED", "cpuQuota"))
        self.assertIn(quota["remedy"], error["remedy"])

    def test_may_be_done_without(self):
        if self.control("cpuQuota")["works"]:
            self.skipTest("cpuQuota is enforced here")
        answer, document = self.document(
            "--cpus", "0.5", "--degraded", "cpuQuota", "--", "echo", "ran"
        )
        self.assert_result(answer, 0, b"ran\n")
        self.assert_says(answer, "cpuQuota was not enforced")
        self.assertEqual(document["weaker"], ["cpuQuota"])


class Disk(LimitsTest):
    def test_within_the_quota_nothing_is_said(self):
        for storage in ("disk", "memory", "loop"):
            with self.subTest(storage):
                self.need("diskQuota" if storage == "disk" else f"storage.{storage}")
                answer = self.shell(FILL, "--disk", "64m", "--storage", storage)
                self.assert_result(answer, 0, b"all\n", b"")

    def test_measured_it_is_met_and_taken_back(self):
        self.need("diskQuota")
        answer, document = self.document("--disk", "8m", "--", "sh", "-c", FILL)
        self.assert_met(answer, document, "disk", 8 * MIB, "ERR_DISK_QUOTA_EXCEEDED")
        self.assertGreater(document["termination"]["observed"], 8 * MIB)
        self.assertEqual(document["termination"]["evidence"]["rolledBack"], 1)
        self.assert_line(
            answer, r"disk limit of 8 MiB reached \(used [\d.]+ MiB\); raise it with --disk"
        )

    def check_hard(self, storage):
        self.need(f"storage.{storage}")
        answer, document = self.document(
            "--disk", "8m", "--storage", storage, "--", "sh", "-c", FILL
        )
        self.assert_met(answer, document, "disk", 8 * MIB, "ERR_DISK_QUOTA_EXCEEDED")
        self.assertIn(b"No space left on device", answer.stderr)
        # Nothing was killed: how it ended is its own.
        self.assertEqual(document["termination"]["evidence"]["exit_code"], 1)
        self.assert_line(
            answer, r"disk limit of 8 MiB reached \(used [\d.]+ MiB\); raise it with --disk"
        )

    def test_in_memory_it_is_full(self):
        self.check_hard("memory")

    def test_in_an_image_it_is_full(self):
        self.check_hard("loop")

    def test_storage_that_cannot_be_had_is_refused_with_the_remedy(self):
        for storage in ("memory", "loop"):
            control = self.control(f"storage.{storage}")
            if control["works"]:
                continue
            with self.subTest(storage):
                answer, error = self.document(
                    "--disk", "8m", "--storage", storage, "--", "echo", "ran"
                )
                self.assert_result(answer, 125, b"")
                self.assert_says(answer, "--storage", control["remedy"])
                self.assertEqual(error["code"], "UNSUPPORTED")


class Doctor(LimitsTest):
    def test_names_the_mechanism_of_every_limit_or_what_would_enable_it(self):
        text = self.palmshed("doctor").stdout.decode()
        for name in CONTROLS:
            with self.subTest(name):
                control = self.control(name)
                self.assertTrue(control["detail"], control)
                if control["works"]:
                    self.assertTrue(control["mechanism"], control)
                    self.assertRegex(text, rf"(?m)^  ok  {name} +{re.escape(control['mechanism'])}$")
                else:
                    self.assertTrue(control["remedy"], control)
                    self.assertIn(f"to enable:  {control['remedy']}\n", text)

    def test_flags_say_what_the_controls_say(self):
        for name, flag, enforcement in (
            ("memory", "memoryLimits", "memoryEnforcement"),
            ("cpuTimeLimit", "cpuLimits", "cpuTimeEnforcement"),
        ):
            control = self.control(name)
            self.assertEqual(self.capabilities[flag], control["works"])
            if not control["works"]:
                continue
            sampled = "sampling" in control["mechanism"]
            self.assertEqual(self.capabilities[enforcement], "sampled" if sampled else "kernel")
        self.assertEqual(self.capabilities["cpuQuotaLimits"], self.control("cpuQuota")["works"])


if __name__ == "__main__":
    unittest.main()
