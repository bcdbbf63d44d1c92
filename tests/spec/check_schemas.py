#!/usr/bin/env python3
"""Checks spec/schemas: against their meta-schema, by example, and against the engine.

Usage: check_schemas.py REPOSITORY [PRINT_DOCUMENTS PARSE_REQUEST]

tests/spec/examples/valid/<schema>/*.json     the schema accepts, and so does the engine
tests/spec/examples/invalid/<schema>/*.json   the schema refuses, and so does the engine
tests/spec/examples/refused/<schema>/*.json   beyond what a schema can say: the engine refuses
"""

import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema
import referencing

REPOSITORY = PRINT_DOCUMENTS = PARSE_REQUEST = None
PARSED = ("sandbox-options", "exec-options")
CLOSED = ("sandbox-options", "exec-options", "filesystem-request")


def load_schemas():
    schemas = {}
    for path in sorted((REPOSITORY / "spec/schemas").glob("*.schema.json")):
        schemas[path.name.removesuffix(".schema.json")] = json.loads(path.read_text())
    return schemas


def make_registry(schemas):
    contents = [referencing.Resource.from_contents(schema) for schema in schemas.values()]
    return referencing.Registry().with_resources((c.id(), c) for c in contents)


def make_validator(schema, registry):
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return jsonschema.Draft202012Validator(schema, registry=registry, format_checker=checker)


def subschemas(value):
    """Every object inside a schema, the schema itself included."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from subschemas(item)


def examples(kind):
    directory = REPOSITORY / "tests/spec/examples" / kind
    return [(path.parent.name, path) for path in sorted(directory.glob("*/*.json"))]


def lookup(schema, pointer):
    for part in pointer.strip("/").split("/"):
        schema = schema[part]
    return schema


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = load_schemas()
        cls.registry = make_registry(cls.schemas)
        cls.validators = {n: make_validator(s, cls.registry) for n, s in cls.schemas.items()}

    def test_each_is_a_schema_of_2020_12(self):
        self.assertGreater(len(self.schemas), 10)
        for name, schema in self.schemas.items():
            with self.subTest(schema=name):
                self.assertEqual(
                    schema["$schema"], "https://json-schema.org/draft/2020-12/schema"
                )
                self.assertTrue(schema["$id"].endswith(f"/{name}.schema.json"))
                self.assertTrue(schema["title"] and schema["description"])
                jsonschema.Draft202012Validator.check_schema(schema)

    def test_each_reference_resolves(self):
        references = 0
        for name, schema in self.schemas.items():
            resolver = self.registry.resolver(schema["$id"])
            for part in subschemas(schema):
                if isinstance(part.get("$ref"), str):
                    with self.subTest(schema=name, reference=part["$ref"]):
                        resolver.lookup(part["$ref"])
                    references += 1
        self.assertGreater(references, 50)

    def test_requests_are_closed_and_answers_are_open(self):
        for name, schema in self.schemas.items():
            if name == "common":
                continue
            with self.subTest(schema=name):
                parts = [part for part in subschemas(schema) if "properties" in part]
                whole = [part for part in parts if part.get("type") == "object"]
                self.assertTrue(whole)
                for part in whole:
                    closed = part.get("additionalProperties") is False
                    self.assertEqual(closed, name in CLOSED)

    def test_each_has_examples(self):
        valid = {schema for schema, _ in examples("valid")}
        invalid = {schema for schema, _ in examples("invalid")}
        self.assertEqual(valid, set(self.schemas) - {"common"})
        self.assertEqual(invalid, set(self.schemas) - {"common"})

    def test_valid_examples_are_accepted(self):
        for schema, path in examples("valid") + examples("refused"):
            with self.subTest(example=path.name, schema=schema):
                self.validators[schema].validate(json.loads(path.read_text()))

    def test_invalid_examples_are_refused(self):
        for schema, path in examples("invalid"):
            with self.subTest(example=path.name, schema=schema):
                document = json.loads(path.read_text())
                self.assertFalse(self.validators[schema].is_valid(document))


class Engine(Schemas):
    """What the engine prints and parses, against the same schemas."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
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
        requests = [(schema, path) for schema, path in examples(kind) if schema in PARSED]
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


def main():
    global REPOSITORY, PRINT_DOCUMENTS, PARSE_REQUEST
    REPOSITORY = pathlib.Path(sys.argv[1])
    suite = Schemas
    if len(sys.argv) == 4:
        PRINT_DOCUMENTS, PARSE_REQUEST = sys.argv[2:]
        suite = Engine
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(suite)
    return 0 if unittest.TextTestRunner().run(tests).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
