"""Mistakes in cases, rules and profiles are found before anything runs."""

import tempfile
import unittest
from pathlib import Path

from runner import lint, loading
from runner.model import KitError
from runner.paths import PROFILES
from tests.support import GOOD_STEP, case_text, rules_text

DENIED = 'probe = "files"\nexpect = { probe = [{ attempt = "x", result = "denied" }] }'
SLIPS = {
    'op = "exec"\nargs = ["true"]\ncolour = "red"': "'colour' was unexpected",
    'op = "jump"': "'jump' is not one of",
    'op = "read"': "'path' is a required property",
    'op = "exec"\nargs = ["true"]\nexpect = { exitCode = { equal = 0 } }': "'equal' was unexpected",
    'op = "exec"\nargs = ["true"]\nexpect = { elapsedMs = { at_most = 5 } }': "'because' is a dependency",
    'op = "exec"\nargs = ["true"]\nexpect = { termination.cause = "exited" }': "'cause' was unexpected",
    'op = "write"\npath = "f"\ntext = "a"\nbase64 = "YQ=="': "is valid under each of",
    'op = "archive-up"\npath = "t"': "is not valid under any of",
    'op = "archive-up"\npath = "t"\ntext = ""\nentries = []': "is valid under each of",
    'op = "archive-up"\npath = "t"\ntext = ""\nformat = "zip"': "'entries' is a dependency",
    'op = "archive-up"\npath = "t"\nentries = [{ name = "l", type = "symlink" }]': "'target' is a required",
    'op = "archive-up"\npath = "t"\nentries = [{ name = "f", target = "g" }]': "False schema",
    'op = "archive-down"\npath = "t"\nexpect.tree = [{ name = "f", colour = "red" }]': "'colour' was unexpected",
}
MISTAKES = {
    'op = "exec"\nargs = ["${host.canary}"]': "there is no variable ${host.canary}",
    'op = "exec"\nargs = ["${index}"]': "${index} counts nothing",
    'op = "wait"\nexecution = "run"': "no earlier step run starts a program",
    'op = "exec"\nargs = ["true"]\njoin = ["x"]': "no step x runs in the background",
    'op = "exec"\nargs = ["true"]\noptions = { timeout = -1 }': "exec-options: timeout",
    'op = "exec"\nargs = ["true"]\ncommand = "true"': "exec-options",
    'op = "create"\noptions = { tiemout = 1 }': "sandbox-options",
    'op = "kill-driver"': "start-driver is needed",
    'op = "observe"\nalive = ["victim"]': "alive: nothing called victim is prepared",
    DENIED: "no control shows it allowed",
    GOOD_STEP + "\n[case.after]\nno_leftovers = false": "only a case that kills the driver",
    GOOD_STEP + '\n[case.after]\nfiles_unchanged = ["x"]': "nothing called x is prepared",
    '[case.host]\nlisteners = [{ name = "l", kind = "tcp" }]\n[[case.step]]\n'
    + GOOD_STEP
    + "\n[case.after]\nhits = { l = 0 }": "no control has reached it",
}


class Kit(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self._top = Path(directory.name)
        (self._top / "cases").mkdir()
        (self._top / "rules").mkdir()

    def problems(self, cases: str, rules: str) -> list[str]:
        (self._top / "cases/a.toml").write_text(cases)
        (self._top / "rules/a.toml").write_text(rules)
        loaded = loading.load_cases(self._top / "cases"), loading.load_rules(self._top / "rules")
        return lint.problems(*loaded, {"root", "user"})

    def test_a_good_kit(self) -> None:
        self.assertEqual(self.problems(case_text(GOOD_STEP), rules_text("the-case")), [])

    def test_what_the_schema_refuses(self) -> None:
        for body, told in SLIPS.items():
            with self.subTest(body=body), self.assertRaises(KitError) as caught:
                self.problems(case_text(body), rules_text("the-case"))
            self.assertIn(told, str(caught.exception))
            self.assertIn("the-case", str(caught.exception))

    def test_what_only_the_lint_sees(self) -> None:
        for body, told in MISTAKES.items():
            with self.subTest(body=body):
                found = self.problems(case_text(body), rules_text("the-case"))
                self.assertIn(told, "\n".join(found))

    def test_a_denial_may_say_why_it_has_no_control(self) -> None:
        body = 'without_control = "it cannot be shown"\n[[case.step]]\n' + DENIED
        self.assertEqual(self.problems(case_text(body), rules_text("the-case")), [])

    def test_long_texts_and_variables_are_lawful(self) -> None:
        body = 'op = "exec"\nargs = ["true", "${fill.a.100}", "${probe.files}", { repeat = "b", count = 3 }]'
        self.assertEqual(self.problems(case_text(body), rules_text("the-case")), [])

    def test_isolation_is_no_condition(self) -> None:
        body = 'when = { "capabilities.networkIsolation" = false }\n[[case.step]]\n' + GOOD_STEP
        found = self.problems(case_text(body), rules_text("the-case"))
        self.assertIn("isolation would be a matter of choice", "\n".join(found))

    def test_rules_and_cases_name_each_other(self) -> None:
        found = self.problems(case_text(GOOD_STEP), rules_text("another-case"))
        self.assertIn("a.toml: EXEC-001 does not name the case the-case", found)
        self.assertIn("a.toml: EXEC-001: there is no case another-case", found)
        strange = case_text(GOOD_STEP).replace("EXEC-001", "EXEC-002")
        found = self.problems(strange, rules_text("the-case"))
        self.assertIn("a.toml: the-case: there is no rule EXEC-002", found)
        self.assertIn("a.toml: the-case does not name the rule EXEC-001", found)

    def test_a_profile_that_is_not_there(self) -> None:
        body = 'profiles = ["moon"]\n[[case.step]]\n' + GOOD_STEP
        found = self.problems(case_text(body), rules_text("the-case"))
        self.assertIn("there is no profile moon", "\n".join(found))

    def test_names_are_unique(self) -> None:
        with self.assertRaisesRegex(KitError, "the-case stands in"):
            self.problems(case_text(GOOD_STEP) * 2, rules_text("the-case"))

    def test_a_rule_is_a_sentence_with_a_level(self) -> None:
        with self.assertRaisesRegex(KitError, "'MAY' is not one of"):
            self.problems(case_text(GOOD_STEP), rules_text("the-case").replace("MUST", "MAY"))

    def test_an_empty_kit_is_a_mistake(self) -> None:
        with self.assertRaisesRegex(KitError, "no cases"):
            loading.load_cases(self._top / "rules")


class Profiles(unittest.TestCase):
    def test_each_can_be_read(self) -> None:
        names = sorted(path.stem for path in PROFILES.glob("*.toml"))
        self.assertLessEqual({"root", "user", "user-filtered"}, set(names))
        for name in names:
            self.assertEqual(loading.load_profile(PROFILES, name).lineage[0], name)

    def test_one_that_extends_another_has_all_of_it(self) -> None:
        base, own = (loading.load_profile(PROFILES, name) for name in ("user", "user-one-shot"))
        self.assertEqual(own.lineage, ("user-one-shot", "user"))
        self.assertEqual((own.host, own.capabilities), (base.host, base.capabilities))
        self.assertGreater(len(own.skips), len(base.skips))

    def test_one_that_does_not_exist(self) -> None:
        with self.assertRaisesRegex(KitError, "there are root, "):
            loading.load_profile(PROFILES, "moon")


if __name__ == "__main__":
    unittest.main()
