#!/usr/bin/env python3
"""Checks what the engine prints and parses against spec/schemas.

Usage: check_engine.py PRINT_DOCUMENTS PARSE_REQUEST
"""

import json
import subprocess
import sys
import unittest

import schemas_test

PARSED = ("sandbox-options", "exec-options")
PRINT_DOCUMENTS, PARSE_REQUEST = sys.argv[1:3]


def lookup(schema, pointer):
    for part in pointer.strip("/").split("/"):
        schema = schema[part]
    return schema


class Engine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = schemas_test.load_schemas()
        cls.validators = schemas_test.make_validators(cls.schemas)
        output = subprocess.run([PRINT_DOCUMENTS], check=True, capture_output=True).stdout
        cls.lines = [json.loads(line) for line in output.splitlines()]

    def test_documents_keep_to_their_schemas(self):
        printed = set()
        for line in self.lines:
            if "document" in line:
                with self.subTest(document=line):
                    self.validators[line["schema"]].validate(line["document"])
                printed.add(line["schema"])
        answers = {"exec-result", "exec-metadata", "capabilities", "error", "event", "file-stat"}
        self.assertEqual(printed, answers)

    def test_every_property_printed_is_described(self):
        for line in self.lines:
            if "document" in line:
                known = self.schemas[line["schema"]]["properties"]
                with self.subTest(schema=line["schema"]):
                    self.assertLessEqual(set(line["document"]), set(known))

    def test_enumerations_are_those_of_the_engine(self):
        enumerations = [line for line in self.lines if "enumeration" in line]
        self.assertGreater(len(enumerations), 8)
        for line in enumerations:
            with self.subTest(enumeration=line["enumeration"]):
                name, pointer = line["enumeration"].split("#")
                self.assertEqual(lookup(self.schemas[name], pointer), line["values"])

    def verdicts(self, kind):
        requests = [(schema, path) for schema, path in schemas_test.examples(kind) if schema in PARSED]
        # A newline inside an example is white space between tokens: JSON strings have none.
        lines = [f"{s} {p.read_text().replace(chr(10), ' ')}" for s, p in requests]
        answer = subprocess.run(
            [PARSE_REQUEST], input="\n".join(lines), check=True, capture_output=True, text=True
        )
        self.assertTrue(requests)
        return zip(requests, answer.stdout.splitlines(), strict=True)

    def test_engine_accepts_valid_requests(self):
        for (schema, path), verdict in self.verdicts("valid"):
            with self.subTest(schema=schema, example=path.name):
                self.assertEqual(verdict, "ok")

    def test_engine_refuses_invalid_requests(self):
        for kind in ("invalid", "refused"):
            for (schema, path), verdict in self.verdicts(kind):
                with self.subTest(kind=kind, schema=schema, example=path.name):
                    error = json.loads(verdict)
                    self.assertEqual(error["code"], "INVALID_OPTIONS")
                    self.validators["error"].validate(error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
