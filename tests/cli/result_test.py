#!/usr/bin/env python3
"""The documents: `run --json`, `doctor` and `version`, against the specification's schemas."""

import base64
import json
import os
import unittest

import jsonschema

from program import ProgramTest, validator


class ResultDocument(ProgramTest):
    def document(self, *arguments, code=0):
        path = self.directory / "result.json"
        answer = self.run_program("--json", str(path), *arguments)
        self.assertEqual(answer.returncode, code, answer)
        return json.loads(path.read_text())

    def test_follows_the_schema_however_the_program_ends(self):
        for arguments, code, cause in (
            (("--", "echo", "hi"), 0, "exited"),
            (("--", "sh", "-c", "kill -9 $$"), 137, "signaled"),
            (("--timeout", "200ms", "--", "sleep", "60"), 124, "wall_timeout"),
            (("--", "nosuch-program"), 127, "startup_failed"),
        ):
            with self.subTest(cause):
                result = self.document(*arguments, code=code)
                validator("exec-result").validate(result)
                self.assertEqual(result["termination"]["cause"], cause)

    def test_the_schema_can_refuse(self):
        with self.assertRaises(jsonschema.ValidationError):
            validator("exec-result").validate({"exitCode": 0})

    def test_holds_the_output(self):
        result = self.document("--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(result["stdout"], "out\n")
        self.assertEqual(result["stderr"], "err\n")
        self.assertFalse(result["truncated"])

    def test_says_what_it_left_out(self):
        result = self.document("--max-output", "1k", "--", "seq", "1", "100000")
        self.assertTrue(result["truncated"])
        self.assertLess(len(json.dumps(result)), 5000)

    def test_an_error_leaves_an_error_document(self):
        error = self.document("--copy", "/nosuch/file", "--", "true", code=125)
        validator("error").validate(error)
        self.assertEqual(error["code"], "NOT_FOUND")

    def test_may_go_to_a_descriptor(self):
        reader, writer = os.pipe()
        answer = self.run_program(
            "--json", f"/dev/fd/{writer}", "--", "echo", "hi", pass_fds=(writer,)
        )
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            result = json.loads(file.read())
        self.assert_result(answer, 0, b"hi\n", b"")
        self.assertEqual(result["exitCode"], 0)

    def test_a_path_that_cannot_be_written_stops_the_run(self):
        answer = self.run_program("--json", "/nosuch/result.json", "--", "echo", "ran")
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "--json", "/nosuch/result.json", "ENOENT")


class Doctor(ProgramTest):
    def test_the_document_follows_the_schema_and_agrees_with_the_exit_code(self):
        answer = self.palmshed("doctor", "--format", "json")
        self.assertIn(answer.returncode, (0, 1), answer)
        document = json.loads(answer.stdout)
        validator("capabilities").validate(document)
        isolated = (
            document["filesystem"]
            and document["networkIsolation"]
            and document["osFilesystemIsolation"] == "supported"
        )
        self.assertEqual(answer.returncode == 0, isolated)

    def test_people_see_every_control(self):
        document = json.loads(self.palmshed("doctor", "--format", "json").stdout)
        text = self.palmshed("doctor").stdout.decode()
        self.assertTrue(document["controls"])
        for control in document["controls"]:
            mark = "ok" if control["works"] else "NO"
            self.assertRegex(text, rf"(?m)^  {mark}  +?{control['name']}\b")


class Version(ProgramTest):
    def test_both_forms_name_both_versions(self):
        document = json.loads(self.palmshed("version", "--format", "json").stdout)
        self.assertEqual(sorted(document), ["specVersion", "version"])
        for arguments in (("version",), ("--version",), ("-V",)):
            answer = self.palmshed(*arguments)
            self.assertEqual(answer.returncode, 0)
            self.assertEqual(
                answer.stdout.decode(),
                f"palmshed {document['version']} (specification {document['specVersion']})\n",
            )


if __name__ == "__main__":
    unittest.main()
