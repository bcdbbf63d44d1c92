"""What the guest's root holds: Debian's own programs as they stand on this host, and the trees that are asked for."""

import contextlib
import json
import os
import py_compile
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import modules
from archive import Archive
from kernels import Kernel

INSIDE = Path(__file__).resolve().parent / "inside"
# Their files, and the libraries that these load. Beside Python, what commands of tests commonly use.
PACKAGES = (
    *("busybox-static", "base-files", "coreutils", "dash", "bash", "grep", "sed", "findutils"),
    *("procps", "util-linux", "mount", "libc-bin", "git", "bubblewrap", "e2fsprogs"),
    *("python3-minimal", "python3.11", "python3.11-minimal"),
    *("libpython3.11-stdlib", "libpython3.11-minimal"),
    *("python3-jsonschema", "python3-attr", "python3-pyrsistent"),
)
_REQUIRED = ("/bin/busybox", "/usr/bin/python3.11", "/usr/lib/python3/dist-packages/jsonschema")
# Documents, and programs of other packages' maintainers that nothing here runs.
_LEFT_OUT = ("/usr/share/", "/etc/init.d/", "/etc/cron", "/lib/systemd/", "/usr/lib/systemd/")
_KEPT = ("/usr/share/git-core",)
_SKIPPED_IN_TREES = {".git", "__pycache__", ".mypy_cache", ".ruff_cache"}
_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
user:x:1000:1000:user:/home/user:/bin/sh
"""
_GROUP = "root:x:0:\ndaemon:x:1:\nsudo:x:27:\nnogroup:x:65534:\nuser:x:1000:\n"
_MOUNTED = ("proc", "sys", "dev")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


class NoImage(Exception):
    """Something that the guest cannot do without is missing on this host."""


def build(stream: BinaryIO, kernel: Kernel, trees: Iterable[Path], request: dict[str, Any]) -> None:
    trees = list(trees)
    for tree in trees:
        _check(tree)
    archive = Archive(stream)
    _skeleton(archive)
    _programs(archive, [tree for tree in trees if _is_elf(tree)])
    _own(archive, kernel, request)
    for tree in trees:
        _tree(archive, tree)
    archive.close()


def _skeleton(archive: Archive) -> None:
    for name in _MERGED:
        if os.path.islink(f"/{name}"):
            archive.link(f"/{name}", os.readlink(f"/{name}"))
    for name in ("proc", "sys", "dev", "run", "mnt", "etc", "var"):
        archive.directory(f"/{name}")
    archive.directory("/root", 0o700)
    archive.directory("/tmp", 0o1777)
    archive.directory("/var/tmp", 0o1777)
    archive.device("/dev/console", 5, 1)  # What init speaks to before devtmpfs is there.
    archive.text("/etc/passwd", _PASSWD)
    archive.text("/etc/group", _GROUP)
    archive.text("/etc/shadow", "root:*:19000::::::\nuser:*:19000::::::\n", 0o640)
    archive.text("/var/lib/guest/state", "what a service keeps\n")
    archive.text("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
    archive.text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")


def _programs(archive: Archive, others: list[Path]) -> None:
    """What is installed, and the libraries of that and of the other programs."""
    files = list(_installed())
    for path in files:
        archive.copy(path, _merged(path))
    for library in _libraries([*others, *(path for path in files if _is_elf(path))]):
        archive.copy(library.resolve(), _merged(library))
    for cache in ("/etc/ld.so.cache", "/usr/share/zoneinfo/UTC"):
        if os.path.exists(cache):
            archive.copy(Path(cache).resolve(), cache)


def _installed() -> Iterator[Path]:
    if missing := [path for path in _REQUIRED if not os.path.exists(path)]:
        raise NoImage(f"not installed on this host: {', '.join(missing)}")
    listed = subprocess.run(
        ["dpkg-query", "--listfiles", *PACKAGES], capture_output=True, text=True, check=False
    )  # Fails for those that are not installed, after it has listed the others.
    for line in listed.stdout.splitlines():
        wanted = not line.startswith(_LEFT_OUT) or line.startswith(_KEPT)
        if line.startswith("/") and wanted and os.path.lexists(line):
            yield Path(line)
            if (compiled := _compiled(line)) and os.path.exists(compiled):
                yield Path(compiled)


def _compiled(source: str) -> str:
    """Where Python keeps what it made of a source, which an emulated processor takes long to make."""
    directory, name = os.path.split(source)
    if not name.endswith(".py"):
        return ""
    return f"{directory}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc"


def _merged(path: Path) -> str:
    """Packages say /bin where /bin is a link into /usr."""
    top = path.parts[1] if len(path.parts) > 2 else ""
    return f"/usr{path}" if top in _MERGED and os.path.islink(f"/{top}") else str(path)


def _is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _libraries(programs: Iterable[Path]) -> set[Path]:
    listed = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
    )  # Fails as soon as one of them is static.
    words = (line.split(" (0x")[0].split(" => ")[-1].strip() for line in listed.stdout.splitlines())
    return {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}


def _own(archive: Archive, kernel: Kernel, request: dict[str, Any]) -> None:
    archive.data("/init", (INSIDE / "init").read_bytes(), 0o755)
    for script in INSIDE.iterdir():
        if script.name != "init":
            archive.data(f"/guest/{script.name}", script.read_bytes(), 0o755)
    archive.text("/guest/request.json", json.dumps(request))
    order = modules.in_order(kernel.modules)
    for name, content in order.items():
        archive.data(f"/guest/modules/{name}.ko", content)
    archive.text("/guest/modules/order", "".join(f"{name}\n" for name in order))
    archive.directory("/home/user", 0o755)


def _check(tree: Path) -> None:
    if not tree.exists():
        raise NoImage(f"there is no {tree}")
    if tree.parts[1:2] and tree.parts[1] in _MOUNTED:
        raise NoImage(f"{tree} would be hidden by what the guest mounts at /{tree.parts[1]}")


def _tree(archive: Archive, tree: Path) -> None:
    archive.copy(tree, str(tree))
    for directory, names, files in os.walk(tree):
        names[:] = [name for name in names if name not in _SKIPPED_IN_TREES]
        for name in (*names, *files):
            path = Path(directory, name)
            archive.copy(path, str(path))
            if compiled := _compiled(str(path)):
                _compile(archive, path, compiled)


def _compile(archive: Archive, source: Path, compiled: str) -> None:
    if sys.version_info[:2] != (3, 11):
        return  # The guest's Python compiles it again, each time.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    with tempfile.NamedTemporaryFile() as made, contextlib.suppress(py_compile.PyCompileError):
        py_compile.compile(str(source), made.name, doraise=True, invalidation_mode=mode)
        archive.data(compiled, Path(made.name).read_bytes())
