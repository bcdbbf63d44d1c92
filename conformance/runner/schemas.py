"""The schemas of the specification and of the kit, and what a document says against them."""

import json
import urllib.parse
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema

from runner.paths import KIT_SCHEMAS, SPEC_SCHEMAS

SPEC = "https://palmshed.dev/spec/1.4.0/"
KIT = "https://palmshed.dev/conformance/1.0.0/"


@cache
def _store() -> dict[str, Any]:
    paths = [*SPEC_SCHEMAS.glob("*.schema.json"), *KIT_SCHEMAS.glob("*.schema.json")]
    schemas = [json.loads(path.read_text()) for path in sorted(paths)]
    return {schema["$id"]: _absolute(schema, schema["$id"]) for schema in schemas}


def _absolute(value: Any, base: str) -> Any:
    """The schema with whole URIs as references, so that it does not matter from where it is reached."""
    if isinstance(value, list):
        return [_absolute(inner, base) for inner in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _absolute(part, base) for key, part in value.items() if key != "$id"}
    if isinstance(inner.get("$ref"), str):
        inner["$ref"] = urllib.parse.urljoin(base, inner["$ref"])
    return inner


@cache
def _validator(reference: str) -> Any:
    schema = {"$ref": reference}
    # The successor of RefResolver is not in Debian 12's package.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        resolver = jsonschema.RefResolver("", schema, store=_store())
    return jsonschema.Draft202012Validator(
        schema, resolver=resolver, format_checker=jsonschema.FormatChecker()
    )


def _leaves(error: Any) -> Iterator[Any]:
    """The errors that say what is wrong, instead of 'is not valid under any of the given schemas'."""
    if error.validator in ("oneOf", "anyOf") and error.context:
        deepest = max(len(inner.absolute_path) for inner in error.context)
        if deepest > len(error.absolute_path):
            error = max(error.context, key=lambda inner: len(inner.absolute_path))
    yield error


def problems(reference: str, document: Any) -> list[str]:
    """What is wrong with `document`; empty when it keeps to the schema that `reference` names."""
    found = []
    for error in _validator(reference).iter_errors(document):
        for leaf in _leaves(error):
            where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in leaf.absolute_path)
            found.append(f"{where.lstrip('.') or 'the document'}: {_shortened(leaf.message)}")
    return sorted(set(found))


def _shortened(message: str, most: int = 300) -> str:
    return message if len(message) <= most else message[: most - 60] + " ... " + message[-55:]
