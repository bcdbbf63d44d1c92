"""A lint that cannot fail is no lint: each rule meets a planted violation and a control."""

import tempfile
import unittest
from pathlib import Path

from lint import layers

ROOMS = "# A\n\n## Rooms\n\n```\nengine/   The library.\n  base/   B.\n  run/    R.\n```\n"


class Planted(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        for header in (
            "include/palmshed/error.h",
            "base/sys.h",
            "model/json.h",
            "plan/plan.h",
            "run/state.h",
            "workspace/files.h",
            "kernel/mounts.h",
            "child/wire.h",
            "backends/backend.h",
            "backends/registry.h",
            "backends/native/view.h",
            "backends/docker/client.h",
        ):
            self.plant(f"engine/{header}", "#pragma once\n")
        self.plant("cli/output/text.h", "#pragma once\n")

    def plant(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def problems(self, path: str, *includes: str) -> list[str]:
        self.plant(path, "".join(f"#include {include}\n" for include in includes))
        return [p for p in layers.check(self.root)[1] if p.startswith(path)]

    def test_every_room_may_include_what_is_below_it(self) -> None:
        allowed = {
            "engine/model/a.cc": ['"base/sys.h"', '"palmshed/error.h"'],
            "engine/plan/a.cc": ['"model/json.h"'],
            "engine/run/a.cc": ['"plan/plan.h"', '"backends/backend.h"', '"workspace/files.h"'],
            "engine/backends/native/a.cc": [
                '"plan/plan.h"',
                '"workspace/files.h"',
                '"kernel/mounts.h"',
                '"child/wire.h"',
                '"backends/backend.h"',
                '"backends/native/view.h"',
            ],
            "engine/backends/registry.cc": ['"backends/native/view.h"', '"backends/docker/client.h"'],
            "engine/kernel/a.cc": ['"base/sys.h"', "<sys/mount.h>", "<boost/asio.hpp>"],
            "cli/commands/a.cc": ['"palmshed/error.h"', '"output/text.h"', '"cli/output/text.h"'],
            "tests/kernel/a_test.cc": ['"kernel/mounts.h"', '"backends/native/view.h"'],
            "engine/base/sys_test.cc": ['"kernel/mounts.h"'],
        }
        for path, includes in allowed.items():
            with self.subTest(path):
                self.assertEqual(self.problems(path, *includes), [])

    def test_no_room_may_include_what_is_above_it(self) -> None:
        refused = {
            "engine/base/a.cc": '"model/json.h"',
            "engine/model/a.cc": '"plan/plan.h"',
            "engine/plan/a.cc": '"run/state.h"',
            "engine/run/a.cc": '"backends/registry.h"',
            "engine/run/b.cc": '"backends/native/view.h"',
            "engine/run/c.cc": '"kernel/mounts.h"',
            "engine/workspace/a.cc": '"plan/plan.h"',
            "engine/kernel/a.cc": '"child/wire.h"',
            "engine/child/a.cc": '"base/sys.h"',
            "engine/child/b.cc": '"palmshed/error.h"',
            "engine/backends/native/a.cc": '"backends/docker/client.h"',
            "engine/backends/native/b.cc": '"run/state.h"',
            "cli/commands/a.cc": '"base/sys.h"',
        }
        for path, include in refused.items():
            with self.subTest(path):
                self.assertEqual(len(self.problems(path, include)), 1)

    def test_public_headers_include_the_standard_library_alone(self) -> None:
        path = "engine/include/palmshed/a.h"
        self.assertEqual(self.problems(path, "<string>", "<chrono>", '"palmshed/error.h"'), [])
        for foreign in ("<boost/json.hpp>", "<unistd.h>", "<sys/types.h>", '"base/sys.h"'):
            with self.subTest(foreign):
                self.assertEqual(len(self.problems(path, foreign)), 1)

    def test_a_quoted_include_of_a_missing_file_is_reported(self) -> None:
        self.assertEqual(len(self.problems("engine/base/a.cc", '"missing.h"')), 1)

    def test_the_line_is_reported(self) -> None:
        self.plant("engine/base/a.cc", '// First.\n\n#  include "plan/plan.h"\n')
        self.assertIn("engine/base/a.cc:3: base must not", "\n".join(layers.check(self.root)[1]))

    def test_rooms_and_their_list_agree(self) -> None:
        self.plant("docs/architecture.md", ROOMS)
        problems = layers.check_rooms(self.root, [Path("engine/base/a.cc"), Path("engine/attic/a.cc")])
        self.assertEqual(problems, ["engine/attic/ holds code and is not listed under Rooms"])
        self.plant("docs/architecture.md", ROOMS.replace("  run/", "  cellar/"))
        problems = layers.check_rooms(self.root, [Path("engine/base/a.cc")])
        self.assertEqual(
            problems, ["docs/architecture.md lists engine/cellar/, which does not exist"]
        )

    def test_an_empty_tree_is_a_failure(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(layers.main([empty]), 1)


if __name__ == "__main__":
    unittest.main()
