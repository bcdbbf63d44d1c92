"""What agrees with an expectation, and above all what does not."""

import hashlib
import unittest

from runner.matching import MISSING, agrees, compare, lookup

HOLDS = [
    (7, 7),
    (1, 1.0),
    ("text", b"text"),
    ([1, "a"], [1, "a"]),
    ({"equals": {"a": 1}}, {"a": 1}),
    ({"matches": "^a.c$"}, b"abc"),
    ({"contains": ["a", "c"]}, b"abc"),
    ({"contains": "b"}, ["a", "b"]),
    ({"lacks": ["x"]}, b"abc"),
    ({"at_least": 3, "at_most": 5, "because": "bounds"}, 4),
    ({"absent": True}, MISSING),
    ({"absent": False}, None),
    ({"one_of": [1, "a"]}, b"a"),
    ({"bytes": 3}, b"\0\1\2"),
    ({"base64": "AAEC"}, b"\0\1\2"),
    ({"sha256": hashlib.sha256(b"x").hexdigest()}, b"x"),
    ({"json": {"a": {"b": 1}}}, b'{"a": {"b": 1, "c": 2}}'),
]
HOLDS_NOT = [
    (7, 8),
    (1, True),
    (0, False),
    (7, "7"),
    (7, MISSING),
    ("text", b"text\n"),
    ([1], [1, 2]),
    ({"equals": {"a": 1}}, {"a": 1, "b": 2}),
    ({"matches": "^b"}, b"abc"),
    ({"contains": ["a", "x"]}, b"abc"),
    ({"contains": "b"}, MISSING),
    ({"lacks": "b"}, b"abc"),
    ({"lacks": "b"}, MISSING),
    ({"at_least": 3}, 2),
    ({"at_most": 3, "because": "bounds"}, 4),
    ({"at_most": 3, "because": "bounds"}, True),
    ({"at_most": 3, "because": "bounds"}, "2"),
    ({"absent": True}, 1),
    ({"absent": False}, MISSING),
    ({"one_of": [1, 2]}, 3),
    ({"bytes": 3}, b"1234"),
    ({"base64": "AAEC"}, b"\0\1"),
    ({"sha256": "0" * 64}, b"x"),
    ({"json": {"a": 1}}, b'{"a": 2}'),
    ({"json": {"a": 1}}, b"no json"),
    ({"at_least": 1, "lacks": "2"}, 2),
]
TREE = [
    {"name": "f", "type": "file", "mode": 0o644, "bytes": b"x"},
    {"name": "\udcff", "type": "symlink", "target": "f"},
]
LINES = b'{"attempt": "open-a", "result": "denied", "errno": "EACCES"}\n{"attempt": "open-b", "result": "ok"}\n'


class Matching(unittest.TestCase):
    def test_what_agrees(self) -> None:
        for expected, observed in HOLDS:
            with self.subTest(expected=expected, observed=observed):
                self.assertEqual(agrees(expected, observed), "")

    def test_what_does_not(self) -> None:
        for expected, observed in HOLDS_NOT:
            with self.subTest(expected=expected, observed=observed):
                self.assertNotEqual(agrees(expected, observed), "")

    def test_paths_into_documents(self) -> None:
        document = {"a": [{"b": 1}], "n": None}
        self.assertEqual(lookup(document, "a.0.b"), 1)
        self.assertIsNone(lookup(document, "n"))
        for path in ("a.1", "a.x", "b", "n.x"):
            self.assertIs(lookup(document, path), MISSING)

    def test_relations_between_fields(self) -> None:
        document = {"a": "2026-01-01", "b": "2026-01-02", "n": 1}
        later = {"not_less_than": "a"}
        self.assertEqual(compare({"b": later, "a": later}, document), [])
        self.assertEqual(len(compare({"a": {"not_less_than": "b"}}, document)), 1)
        self.assertEqual(len(compare({"n": later}, document)), 1)
        self.assertEqual(len(compare({"a": {"not_less_than": "missing"}}, document)), 1)

    def test_a_bound_says_why(self) -> None:
        found = compare({"elapsedMs": {"at_most": 5, "because": "it is quick"}}, {"elapsedMs": 9})
        self.assertEqual((found[0].expected, found[0].observed), ("at_most 5 (it is quick)", "9"))


class Trees(unittest.TestCase):
    def failing(self, *wanted: dict, observed: object = TREE) -> list[str]:
        return [found.field for found in compare({"tree": list(wanted)}, {"tree": observed})]

    def test_all_entries_in_any_order_with_what_is_said(self) -> None:
        link = {"name": {"base64": "/w=="}, "target": {"matches": "^f"}}
        self.assertEqual(self.failing(link, {"name": "f", "mode": 0o644, "bytes": "x"}), [])
        self.assertEqual(self.failing(observed=[]), [])

    def test_an_entry_too_many_or_too_few(self) -> None:
        self.assertEqual(self.failing({"name": "f"}), ['tree "\\udcff"'])
        both = ({"name": "f"}, {"name": {"base64": "/w=="}})
        self.assertEqual(self.failing(*both, {"name": "g"}), ['tree "g"'])
        self.assertEqual(self.failing({"name": "f"}, observed=[TREE[0], TREE[0]]), ['tree "f"'])

    def test_a_fact_that_differs_or_is_missing(self) -> None:
        file = {"name": "f", "mode": 0o600, "target": "g"}
        found = self.failing(file, {"name": {"base64": "/w=="}})
        self.assertEqual(found, ['tree "f" mode', 'tree "f" target'])

    def test_no_archive_at_all(self) -> None:
        self.assertEqual([m.field for m in compare({"tree": []}, {"bytes": b""})], ["tree"])


class Probes(unittest.TestCase):
    def failing(self, *entries: dict, output: bytes = LINES) -> list[str]:
        return [found.field for found in compare({"probe": list(entries)}, {"stdout": output})]

    def test_lines_that_agree(self) -> None:
        entry = {"attempt": "open-a", "result": "denied", "errno": ["EPERM", "EACCES"]}
        self.assertEqual(self.failing(entry, {"attempt": "open-b", "result": "ok"}), [])

    def test_every_line_that_is_named_must_agree(self) -> None:
        self.assertEqual(
            self.failing({"attempt": "open-*", "result": "denied"}), ["probe open-b result"]
        )

    def test_an_attempt_that_was_not_made(self) -> None:
        self.assertEqual(
            self.failing({"attempt": "write-*", "result": "denied"}), ["probe write-*"]
        )
        self.assertEqual(
            self.failing({"attempt": "*", "result": "denied"}, output=b""), ["probe *"]
        )

    def test_a_field_that_is_missing(self) -> None:
        self.assertEqual(
            self.failing({"attempt": "open-b", "errno": "EPERM"}), ["probe open-b errno"]
        )
        self.assertEqual(self.failing({"attempt": "open-b", "errno": {"absent": True}}), [])

    def test_a_line_that_is_none(self) -> None:
        output = LINES + b"Segmentation fault\n"
        self.assertEqual(
            self.failing({"attempt": "open-b", "result": "ok"}, output=output), ["probe"]
        )


if __name__ == "__main__":
    unittest.main()
