import argparse
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from devtool import benchmark
from devtool.benchmark import Part, parts, run_part, status_of, write
from devtool.figures import Figure, Run

DOCUMENT = {"machine": {"cores": 2}, "peers": [], "figures": []}
FIGURE = Figure("ramp", "most", "", 1, 5, 5, 5)
# The last argument is where the figures belong.
WRITES = f"for last; do :; done; echo '{json.dumps(DOCUMENT)}' > $last"


class Programs(unittest.TestCase):
    """Parts that are run with shell scripts in place of the programs."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name)

    def run_script(self, script: str) -> tuple[dict | None, str]:
        program = self.top / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return run_part(Part("part", "program", ("--rounds", "3")), self.top, self.top)

    def test_give_what_they_write(self) -> None:
        self.assertEqual(self.run_script(WRITES), (DOCUMENT, ""))

    def test_that_fail_give_their_last_words(self) -> None:
        script = WRITES + "; echo first >&2; echo 'benchmark: absent: needs root' >&2; exit 1"
        self.assertEqual(self.run_script(script), (None, "absent: needs root"))

    def test_that_say_nothing_give_their_status(self) -> None:
        self.assertEqual(self.run_script("exit 3"), (None, "ended with status 3"))
        self.assertEqual(self.run_script("exit 0"), (None, "ended with status 0"))

    def test_leave_their_files_where_they_are_removed(self) -> None:
        self.run_script('echo > "$TMPDIR/left"; ' + WRITES)
        self.assertTrue((self.top / "left").exists())


class Results(unittest.TestCase):
    def run_of(self, figures: list[Figure], missing: dict[str, str]) -> Run:
        return Run({}, {}, [], figures, missing)

    def test_what_cannot_be_measured_here_is_no_failure(self) -> None:
        self.assertEqual(status_of(self.run_of([FIGURE], {"mounts": "absent: needs root"})), 0)
        self.assertEqual(status_of(self.run_of([FIGURE], {"mounts": "ended with status 1"})), 1)
        self.assertEqual(status_of(self.run_of([], {})), 1)

    def test_are_written_beside_the_page_without_what_was_there(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory, "benchmarks")
            where.mkdir()
            (where / "old.svg").write_text("")
            write(self.run_of([FIGURE], {}), where)
            self.assertEqual({path.name for path in where.iterdir()}, {"README.md", "results.json"})
            results = json.loads((where / "results.json").read_text())
        self.assertEqual(results["figures"][0]["name"], "most")

    def test_of_several_settings_the_chosen_one_is_told(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "enabled")
            for words, told in (("always [madvise] never", "madvise"), ("tsc", "tsc")):
                file.write_text(words + "\n")
                self.assertEqual(benchmark.setting(str(file)), told)
        self.assertEqual(benchmark.setting("/nonexistent"), "unknown")

    def test_rounds_and_sandboxes_reach_the_programs_that_know_them(self) -> None:
        arguments = {part.name: part.arguments for part in parts(7, 100)}
        self.assertEqual(arguments["latency"], ("--rounds", "7"))
        self.assertEqual(arguments["throughput"], ("--throughput",))
        self.assertEqual(arguments["live"], ("live", "--rounds", "7", "--most", "100"))
        self.assertEqual(parts(None, None)[0].arguments, ())

    def test_of_unknown_parts_there_are_none(self) -> None:
        parser = argparse.ArgumentParser()
        benchmark.add_arguments(parser)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(benchmark.benchmark(parser.parse_args(["latency", "speed"])), 2)
        self.assertIn("speed", said.getvalue())


if __name__ == "__main__":
    unittest.main()
