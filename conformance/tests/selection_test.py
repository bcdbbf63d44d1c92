"""A case is skipped only where the profile says so."""

import unittest

from runner.model import Case, Hello, KitError, Profile, Rule, Skip, Status
from runner.selection import choose, select

STREAM = Skip("there is no live output", lacks="stream")


def case(name: str, *operations: str, **more: object) -> Case:
    steps = tuple({"op": operation} for operation in operations or ("exec",))
    return Case(id=name, title="", rules=("EXEC-001",), file="", steps=steps, **more)  # type: ignore[arg-type]


def profile(*skips: Skip) -> Profile:
    return Profile("user-one-shot", "", ("user-one-shot", "user"), {}, {}, skips)


def hello(*lacks: str) -> Hello:
    return Hello("fake", "1", "1.4.0", {}, frozenset(lacks))


class Selection(unittest.TestCase):
    def only(self, one: Case, which: Profile, who: Hello) -> tuple[Status | None, str]:
        chosen = select([one], which, who)
        if chosen.to_run:
            return None, ""
        outcome = chosen.decided[0]
        return outcome.status, outcome.reason or str(outcome.failures[0])

    def test_what_can_be_done_is_run(self) -> None:
        self.assertEqual(self.only(case("a", "stream"), profile(STREAM), hello()), (None, ""))

    def test_what_is_excused_is_skipped_with_the_reason(self) -> None:
        status, reason = self.only(case("a", "stream"), profile(STREAM), hello("stream"))
        self.assertEqual(status, Status.SKIPPED)
        self.assertEqual(reason, "there is no live output")

    def test_what_is_not_excused_fails(self) -> None:
        status, reason = self.only(case("a", "stream"), profile(), hello("stream"))
        self.assertEqual(status, Status.FAILED)
        self.assertIn("which the profile user-one-shot does not excuse", reason)
        other = profile(Skip("only b", lacks="stream", cases="b*"))
        self.assertEqual(self.only(case("a", "stream"), other, hello("stream"))[0], Status.FAILED)

    def test_one_excuse_of_two_is_not_enough(self) -> None:
        both = case("a", "stream", "read")
        self.assertEqual(
            self.only(both, profile(STREAM), hello("stream", "read"))[0], Status.FAILED
        )

    def test_features_are_those_of_the_steps_and_of_needs(self) -> None:
        used = Case(
            id="a",
            title="",
            rules=(),
            file="",
            steps=(
                {"op": "create", "options": {"network": "allow"}},
                {"op": "exec", "options": {"stdin": "pipe"}},
                {"op": "exec", "on": "host"},
                {"op": "observe"},
                {"probe": "files"},
            ),
            needs=frozenset({"workspace"}),
        )
        self.assertEqual(used.features(), {"create.network", "exec.stdin", "write", "workspace"})

    def test_a_profile_that_does_not_require_it(self) -> None:
        status, reason = self.only(case("a", profiles=("root",)), profile(), hello())
        self.assertEqual(
            (status, reason), (Status.SKIPPED, "the profile user-one-shot does not require it")
        )
        self.assertIsNone(self.only(case("a", profiles=("user",)), profile(), hello())[0])

    def test_a_case_that_applies_to_some(self) -> None:
        refusal = case("a", when={"capabilities.memoryLimits": False})
        for reported, expected in (
            ({}, None),
            ({"memoryLimits": False}, None),
            ({"memoryLimits": True}, Status.SKIPPED),
        ):
            who = Hello("fake", "1", "1.4.0", reported)
            self.assertEqual(self.only(refusal, profile(), who)[0], expected)

    def test_what_is_chosen(self) -> None:
        cases = {name: case(name) for name in ("a-one", "a-two", "b-one")}
        rules = {"EXEC-001": Rule("EXEC-001", "MUST", "", ("a-two", "a-one"), "1.3.0", "")}
        self.assertEqual([c.id for c in choose(cases, rules, ["a-*"], False)], ["a-one", "a-two"])
        self.assertEqual([c.id for c in choose(cases, rules, ["EXEC-*"], False)], list(cases))
        self.assertEqual([c.id for c in choose(cases, rules, [], True)], ["a-two"])
        with self.assertRaises(KitError):
            choose(cases, rules, ["c-*"], False)


if __name__ == "__main__":
    unittest.main()
