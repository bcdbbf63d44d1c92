"""What is picked from a build tree: for the ordinary user, for clang-tidy, for the symbol check."""

import argparse
import json
import os
import pwd
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from devtool import helper, ordinary_user, tidy


class Trees(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name, "checkout")
        self.build = self.root / "build/dev"
        for module in (helper, ordinary_user, tidy):
            for name, value in (("ROOT", self.root), ("BUILD", self.root / "build")):
                patch = mock.patch.object(module, name, value)
                patch.start()
                self.addCleanup(patch.stop)

    def plant(self, path: str, text: str = "") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def test_the_copy_for_the_ordinary_user_names_no_path_of_the_checkout(self) -> None:
        self.plant("build/dev/bin/engine_test", "program")
        self.plant("build/dev/CTestTestfile.cmake", f'include("{self.build}/engine/x.cmake")')
        self.plant("build/dev/engine/x.cmake", f"add_test(a {self.build}/bin/engine_test)")
        self.plant("build/dev/CMakeFiles/rules.cmake", str(self.root))
        stage = self.root.parent / "stage"
        ordinary_user.copy_build(self.build, stage)
        copied = {str(p.relative_to(stage)): p.read_text() for p in stage.rglob("*") if p.is_file()}
        self.assertEqual(
            copied,
            {
                "build/dev/bin/engine_test": "program",
                "build/dev/CTestTestfile.cmake": f'include("{stage}/build/dev/engine/x.cmake")',
                "build/dev/engine/x.cmake": f"add_test(a {stage}/build/dev/bin/engine_test)",
            },
        )

    @unittest.skipUnless(os.geteuid() == 0, "needs root: gives files to another user")
    def test_everything_in_the_copy_belongs_to_the_user(self) -> None:
        file = self.plant("a/b/c")
        nobody = pwd.getpwnam("nobody")
        ordinary_user.give_to(nobody, self.root)
        for path in (self.root, self.root / "a", self.root / "a/b", file):
            self.assertEqual(path.stat().st_uid, nobody.pw_uid, path)

    def test_what_is_not_linked_is_no_part_of_the_helper(self) -> None:
        folder = "build/dev/engine/child/CMakeFiles"
        kept = self.plant(f"{folder}/palmshed_init_objects.dir/main.cc.o")
        self.plant(f"{folder}/palmshed_init_dumpable_objects.dir/main.cc.o")
        self.plant("build/dev/engine/base/CMakeFiles/x.dir/result.cc.o")
        self.assertEqual(helper.objects("dev"), [kept])

    def test_no_objects_of_the_helper_is_a_failure(self) -> None:
        self.assertEqual(helper.main(["dev"]), 1)

    def test_clang_tidy_reads_the_sources_asked_for(self) -> None:
        names = ["engine/base/a.cc", "engine/model/b.cc", "engine/child/c.S"]
        commands = [{"file": str(self.plant(name))} for name in names]
        commands.append({"file": "/usr/include/foreign.cc"})
        self.plant("build/dev/compile_commands.json", json.dumps(commands))
        sources = tidy.database(self.build)
        parser = argparse.ArgumentParser()
        tidy.add_arguments(parser)

        def chosen(*arguments: str) -> list[str]:
            return [str(s) for s in tidy.chosen(parser.parse_args(arguments), sources)]

        self.assertEqual(chosen("--all"), ["engine/base/a.cc", "engine/model/b.cc"])
        self.assertEqual(chosen(str(self.root / "engine/model/b.cc")), ["engine/model/b.cc"])


if __name__ == "__main__":
    unittest.main()
