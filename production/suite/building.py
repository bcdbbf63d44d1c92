"""Builds the examples and the suite's own programs against an installed package, as a stranger would."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    *(ROOT / "examples" / name for name in ("agent_runner", "ci_runner", "code_evaluator")),
    ROOT / "production/programs",
)


class CannotBuild(Exception):
    """The package is not usable."""


def _must(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def build(prefix: Path, into: Path) -> Path:
    """The directory with the programs."""
    programs = into / "bin"
    for source in SOURCES:
        tree = str(into / source.name)
        places = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_RUNTIME_OUTPUT_DIRECTORY={programs}"]
        _must("cmake", "-G", "Ninja", "-S", str(source), "-B", tree, *places)
        _must("cmake", "--build", tree)
    return programs
