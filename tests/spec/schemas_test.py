"""Checks spec/schemas: against their meta-schema, and by example.

examples/valid/<schema>/*.json     the schema accepts, and so does the engine
examples/invalid/<schema>/*.json   the schema refuses, and so does the engine
examples/refused/<schema>/*.json   beyond what a schema can say: the engine refuses
"""

import json
import pathlib
import unittest
import warnings

import jsonschema

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CLOSED = ("sandbox-options", "exec-options", "filesystem-request")


def load_schemas():
    schemas = {}
    for path in sorted((REPOSITORY / "spec/schemas").glob("*.schema.json")):
        schemas[path.name.removesuffix(".schema.json")] = json.loads(path.read_text())
    return schemas


def make_resolver(schemas, name):
    # Its successor is not in Debian 12's package.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        store = {schema["$id"]: schema for schema in schemas.values()}
        return jsonschema.RefResolver.from_schema(schemas[name], store=store)


def make_validators(schemas):
    return {
        name: jsonschema.Draft202012Validator(
            schema,
            resolver=make_resolver(schemas, name),
            format_checker=jsonschema.FormatChecker(),
        )
        for name, schema in schemas.items()
    }


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


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = load_schemas()
        cls.validators = make_validators(cls.schemas)

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
            resolver = make_resolver(self.schemas, name)
            for part in subschemas(schema):
                if isinstance(part.get("$ref"), str):
                    with self.subTest(schema=name, reference=part["$ref"]):
                        resolver.resolve(part["$ref"])
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


if __name__ == "__main__":
    unittest.main()
