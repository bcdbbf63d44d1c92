"""The report as JUnit XML."""

import re
from typing import Any
from xml.etree import ElementTree

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KINDS = {"failed": "failure", "error": "error", "interrupted": "error", "skipped": "skipped"}


def _clean(text: str) -> str:
    return _NOT_XML.sub("?", text)


def _sentence(failure: dict[str, str]) -> str:
    return "{where}: {what}: expected {expected}, observed {observed}".format(**failure)


def _add_case(suite: ElementTree.Element, case: dict[str, Any]) -> None:
    area = case["file"].removesuffix(".toml")
    attributes = {"name": case["id"], "classname": area, "time": f"{case['seconds']:.3f}"}
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case["status"] not in _KINDS:
        return
    lines = [_clean(_sentence(failure)) for failure in case["failures"]]
    message = lines[0] if lines else _clean(case["reason"] or case["status"])
    child = ElementTree.SubElement(element, _KINDS[case["status"]], {"message": message})
    if case["status"] != "skipped":
        child.text = "\n".join([f"rules {', '.join(case['rules'])}", *lines, case["command"]])
    if case["stderr"]:
        ElementTree.SubElement(element, "system-err").text = _clean(case["stderr"])


def render(document: dict[str, Any]) -> str:
    counts, driver = document["counts"], document["driver"]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": f"conformance of {driver['name']} ({document['profile']['name']})",
            "tests": str(len(document["cases"])),
            "failures": str(counts["failed"]),
            "errors": str(counts["error"] + counts["interrupted"]),
            "skipped": str(counts["skipped"]),
            "time": str(document["seconds"]),
            "timestamp": document["startedAt"],
        },
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {**document["machine"], "verdict": document["verdict"], "driver": driver["version"]}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
    for case in document["cases"]:
        _add_case(suite, case)
    for number, problem in enumerate(document["problems"], start=1):
        element = ElementTree.SubElement(suite, "testcase", {"name": f"profile-{number}"})
        ElementTree.SubElement(element, "failure", {"message": _clean(problem)})
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
