"""Debian's kernels for the cloud, fetched once by apt and kept in the user's cache."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

# What a kernel is called here, and what its packages are called there.
NAMES = {
    "cloud-6.1": re.compile(r"linux-image-6\.1\.[0-9][\w.+-]*-cloud-amd64"),
    "cloud-6.12": re.compile(r"linux-image-6\.12\.[0-9][\w.+-]*-cloud-amd64"),
}
DEFAULT = "cloud-6.1"


class NoKernel(Exception):
    """There is none of this name, and it cannot be fetched."""


@dataclass(frozen=True)
class Kernel:
    image: Path
    modules: Path  # The directory that holds kernel/, modules.builtin and so on.


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "palmshed" / "vm"


def get(name: str) -> Kernel:
    """The newest of those that are cached, else the newest that apt knows."""
    kept = [path.name for path in cache().glob("linux-image-*") if NAMES[name].fullmatch(path.name)]
    package = max(kept, key=_age, default="") or _fetch(NAMES[name])
    top = cache() / package
    images = list(top.glob("boot/vmlinuz-*"))
    modules = list(top.glob("lib/modules/*"))
    if len(images) != 1 or len(modules) != 1:
        raise NoKernel(f"{top} is no unpacked kernel: remove it")
    return Kernel(images[0], modules[0])


def _age(package: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", package)]


def _fetch(pattern: re.Pattern[str]) -> str:
    for tool in ("apt-cache", "apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NoKernel(f"{tool} is missing: kernels come as packages of Debian")
    listed = subprocess.run(
        ["apt-cache", "pkgnames", "linux-image-"], capture_output=True, text=True, check=True
    )
    known = [package for package in listed.stdout.split() if pattern.fullmatch(package)]
    if not known:
        raise NoKernel(f"apt knows no package {pattern.pattern}")
    package = max(known, key=_age)
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache()) as directory:
        _run(["apt-get", "--quiet", "--quiet", "download", package], directory)
        (archive,) = Path(directory).glob("*.deb")
        _run(["dpkg-deb", "--extract", str(archive), "unpacked"], directory)
        try:
            Path(directory, "unpacked").rename(cache() / package)
        except OSError:  # Somebody else was faster.
            if not (cache() / package).is_dir():
                raise
    return package


def _run(command: list[str], directory: str) -> None:
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NoKernel(f"{' '.join(command)}: {ended.stderr.strip()}")
