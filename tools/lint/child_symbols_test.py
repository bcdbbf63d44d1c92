import subprocess
import tempfile
import unittest
from pathlib import Path

from lint import child_symbols

CALLER = 'extern "C" long write(int, const void*, unsigned long);\nint Own();\n'
CALLER += "long Call() { return write(1, nullptr, 0) + Own(); }\n"
OWN = "int Own() { return 1; }\n"
ALLOCATING = "int* Make() { return new int; }\n"


class ChildSymbols(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)

    def compile(self, name: str, source: str) -> Path:
        (self.root / f"{name}.cc").write_text(source)
        subprocess.run(
            ["g++", "-c", "-O1", "-fno-pic", f"{name}.cc", "-o", f"{name}.o"],
            cwd=self.root,
            check=True,
        )
        return self.root / f"{name}.o"

    def check(self, allowed: str, *objects: Path) -> list[str]:
        file = self.root / "allowed.txt"
        file.write_text(allowed)
        return child_symbols.check(file, list(objects))[1]

    def test_allowed_and_own_symbols_pass(self) -> None:
        objects = self.compile("caller", CALLER), self.compile("own", OWN)
        self.assertEqual(self.check("# The output.\nwrite  # 2\n", *objects), [])

    def test_a_symbol_off_the_list_is_reported(self) -> None:
        problems = self.check("", self.compile("allocating", ALLOCATING))
        self.assertEqual(problems, ["_Znwm is needed and not allowed"])

    def test_a_stale_entry_is_reported(self) -> None:
        problems = self.check("malloc\n", self.compile("own", OWN))
        self.assertEqual(problems, ["malloc is allowed and not needed"])

    def test_no_objects_is_a_failure(self) -> None:
        self.assertEqual(child_symbols.main([]), 2)
        self.assertEqual(child_symbols.check(self.root / "allowed.txt", [])[0], 0)


if __name__ == "__main__":
    unittest.main()
