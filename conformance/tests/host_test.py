"""What the runner finds out about the host."""

import os
import tempfile
import unittest
from pathlib import Path

from runner import leftovers, machine, prepared, processes
from runner.loading import load_profile
from runner.paths import PROFILES


class Machine(unittest.TestCase):
    def test_only_a_word_on_the_kernels_command_line_makes_it_throwaway(self) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            for line, expected in (
                ("console=ttyS0 palmshed.throwaway quiet\n", True),
                ("console=ttyS0 palmshed.throwaway=0\n", False),
                ("console=ttyS0\n", False),
            ):
                file.seek(0)
                file.truncate()
                file.write(line)
                file.flush()
                self.assertEqual(machine.is_throwaway(Path(file.name)), expected)

    def test_profiles_are_for_their_hosts(self) -> None:
        facts = {"user": "ordinary", "user namespaces": "allowed"}
        self.assertEqual(machine.mismatches(load_profile(PROFILES, "user"), facts), [])
        self.assertIn(
            "for the user root", machine.mismatches(load_profile(PROFILES, "root"), facts)[0]
        )
        filtered = machine.mismatches(load_profile(PROFILES, "user-filtered"), facts)
        self.assertIn("wants user namespaces to be refused", filtered[0])

    def test_facts_are_there(self) -> None:
        facts = machine.facts()
        self.assertEqual(facts["user"], "root" if os.geteuid() == 0 else "ordinary")
        self.assertTrue(all(facts.values()))


class Leftovers(unittest.TestCase):
    def test_what_a_driver_keeps(self) -> None:
        keeps = ["/run/palmshed", "/run/palmshed/uids", "/state/*"]
        self.assertTrue(leftovers.kept("file /run/palmshed/uids", keeps))
        self.assertTrue(leftovers.kept("file /state/cache/a", keeps))
        self.assertFalse(leftovers.kept("file /run/palmshed/other", keeps))
        self.assertFalse(leftovers.kept("process 1 /run/palmshed", keeps))

    def test_things_of_a_sandbox_are_never_kept(self) -> None:
        self.assertFalse(leftovers.kept("file /state/sbx_0123abcd.lock", ["/state/*"]))

    def test_sandboxes_of_others(self) -> None:
        self.assertTrue(leftovers.foreign("file /state/sbx_1", ["sbx_2"]))
        self.assertFalse(leftovers.foreign("file /state/sbx_2", ["sbx_2"]))
        self.assertFalse(leftovers.foreign("file /state/other", ["sbx_2"]))

    def test_a_file_that_is_new(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            before = leftovers.host_wide([directory], [])
            (Path(directory) / "a").mkdir()
            (Path(directory) / "a/b").write_text("")
            new = leftovers.host_wide([directory], []) - before
            ours = {item for item in new if directory in item}
            self.assertEqual(ours, {f"file {directory}/a", f"file {directory}/a/b"})


class Directories(unittest.TestCase):
    def test_one_that_is_closed_goes_and_the_target_of_a_link_stays_as_it_is(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            top, target = Path(directory) / "top", Path(directory) / "target"
            (top / "a/b").mkdir(parents=True)
            target.mkdir(mode=0o750)
            (top / "link").symlink_to(target)
            (top / "a").chmod(0)
            prepared.remove_tree(top)
            self.assertFalse(top.exists())
            self.assertEqual(target.stat().st_mode & 0o777, 0o750)


class Processes(unittest.TestCase):
    def test_this_one(self) -> None:
        table = processes.all_processes()
        self.assertEqual(table[os.getpid()].parent, os.getppid())
        self.assertIn(os.getpid(), {process.pid for process in processes.descendants(os.getppid())})


if __name__ == "__main__":
    unittest.main()
