"""Installs a build and runs the production suite on it: as this user and, being root, as an ordinary one too.

Usage: production.py PRESET [--full]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from devtool.checkout import BUILD, PYTHON, ROOT
from devtool.ordinary_user import account, give_to, run_as

PARTS = ("production", "examples", "conformance")


def install(preset: str, prefix: Path) -> int:
    command = ["cmake", "--install", str(BUILD / preset), "--prefix", str(prefix)]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def suite(top: Path, prefix: Path, options: list[str]) -> list[str]:
    return [PYTHON, str(top / "production/production"), "--prefix", str(prefix), *options]


def main(arguments: list[str]) -> int:
    preset, *options = arguments
    with tempfile.TemporaryDirectory(prefix="palmshed-production-", dir="/tmp") as directory:
        top, prefix = Path(directory), Path(directory, "package")
        top.chmod(0o755)
        if install(preset, prefix) != 0:
            print("not ok the package is installed")
            return 1
        status = subprocess.run(suite(ROOT, prefix, options), check=False).returncode
        if os.geteuid() != 0:
            return status
        # The checkout may lie where only root may look.
        stage = top / "stage"
        for part in PARTS:
            shutil.copytree(ROOT / part, stage / part)
        give_to(account(), stage)
        print("as an ordinary user", flush=True)
        return run_as(account(), stage, suite(stage, prefix, options)) or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
