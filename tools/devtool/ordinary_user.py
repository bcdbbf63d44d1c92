"""Runs the tests of a build tree as an ordinary user; needs root.

The checkout may lie below a directory that only root may enter, and the tests may write beside
themselves. So the sources, the programs and CTest's lists are copied to a directory of that user's,
with the checkout's path replaced in the lists, and CTest, or another command, runs there.

Usage: ordinary_user.py PRESET JUNIT [COMMAND [ARGUMENT...]]
  In the command {build} stands for the copy of the build tree, {junit} for the file to write.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from devtool.checkout import BUILD, DEFECTS, NOT_WITH_THE_REST, ROOT, jobs

USER = "palmshed-test"


def account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(
            ["useradd", "--system", "--create-home", "--shell", "/bin/sh", USER], check=True
        )
        return pwd.getpwnam(USER)


def tracked_files() -> list[str]:
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return [name for name in os.fsdecode(listing.stdout).split("\0") if (ROOT / name).is_file()]


def copy_sources(stage: Path) -> None:
    for name in tracked_files():
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, stage / name)


def copy_build(build: Path, stage: Path) -> None:
    """Programs as they are; CTest's lists with the paths of the copy."""
    target = stage / build.relative_to(ROOT)
    for part in ("bin", "conformance/probes"):
        if (build / part).is_dir():
            unwanted = shutil.ignore_patterns("CMakeFiles", "*.cmake")
            shutil.copytree(build / part, target / part, ignore=unwanted)
    for path in build.rglob("*.cmake"):
        if "CMakeFiles" in path.parts:
            continue
        copy = target / path.relative_to(build)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text().replace(str(ROOT), str(stage)))


def give_to(user: pwd.struct_passwd, stage: Path) -> None:
    for directory, names, files in os.walk(stage):
        for name in [".", *names, *files]:
            os.chown(Path(directory, name), user.pw_uid, user.pw_gid, follow_symlinks=False)


def tests(tree: str, junit: str) -> list[str]:
    command = ["ctest", "--test-dir", tree, "--no-tests=error", "--output-on-failure"]
    command += ["--exclude-regex", f"{NOT_WITH_THE_REST}|{DEFECTS}", "--timeout", "120"]
    return [*command, "--parallel", str(jobs()), "--output-junit", junit]


def run_as(user: pwd.struct_passwd, stage: Path, command: list[str]) -> int:
    """As after a login, but without a session of systemd's: no XDG_RUNTIME_DIR."""
    identity = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    environment = [
        f"HOME={user.pw_dir}",
        f"USER={USER}",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "LANG=C.UTF-8",
    ]
    prefix = ["setpriv", *identity, "--inh-caps=-all", "env", "-i", *environment]
    return subprocess.run([*prefix, *command], cwd=stage, check=False).returncode


def main(arguments: list[str]) -> int:
    preset, junit, *command = arguments
    build, user = BUILD / preset, account()
    with tempfile.TemporaryDirectory(prefix="palmshed-test-", dir="/tmp") as directory:
        stage = Path(directory)
        copy_sources(stage)
        copy_build(build, stage)
        give_to(user, stage)
        tree, written = str(stage / build.relative_to(ROOT)), stage / "junit.xml"
        places = {"build": tree, "junit": str(written)}
        command = [word.format(**places) for word in command] or tests(tree, str(written))
        status = run_as(user, stage, command)
        if written.is_file():
            shutil.copyfile(written, junit)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
