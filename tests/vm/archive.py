"""An archive in the format that the kernel unpacks as its first root ("newc"). Everything in it belongs to root."""

import os
import stat
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"
_MOST_BYTES = 0xFFFFFFFF  # A size has eight hexadecimal digits.


class Archive:
    """Each path once: the first one stays. Directories above an entry come by themselves."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._seen: dict[str, int] = {}  # Path to kind.

    def directory(self, path: str, mode: int = 0o755) -> None:
        self._entry(path, stat.S_IFDIR | mode, b"")

    def text(self, path: str, content: str, mode: int = 0o644) -> None:
        self._entry(path, stat.S_IFREG | mode, content.encode())

    def data(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self._entry(path, stat.S_IFREG | mode, content)

    def link(self, path: str, target: str) -> None:
        self._entry(path, stat.S_IFLNK | 0o777, os.fsencode(target))

    def device(self, path: str, major: int, minor: int) -> None:
        self._entry(path, stat.S_IFCHR | 0o600, b"", (major, minor))

    def copy(self, source: Path, path: str) -> None:
        """A file, link or directory of the host; whatever else it is has no place in an archive."""
        status = source.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            self.link(path, os.readlink(source))
        elif stat.S_ISDIR(status.st_mode):
            self.directory(path, mode)
        elif stat.S_ISREG(status.st_mode):
            content, changed = source.read_bytes(), int(status.st_mtime)
            self._entry(path, stat.S_IFREG | mode, content, changed=changed)

    def has(self, path: str) -> bool:
        return _relative(path) in self._seen

    def close(self) -> None:
        self._write(_TRAILER, 0, b"", (0, 0), 0)

    def _entry(
        self,
        path: str,
        mode: int,
        content: bytes,
        device: tuple[int, int] = (0, 0),
        changed: int = 0,
    ) -> None:
        name = _relative(path)
        if name in ("", ".") or name in self._seen:
            return
        above = str(PurePosixPath(name).parent)
        self.directory(above)
        if above != "." and not stat.S_ISDIR(self._seen[above]):
            raise ValueError(f"/{name} would lie in /{above}, which is no directory")
        self._seen[name] = mode
        self._write(name, mode, content, device, changed)

    def _write(
        self, name: str, mode: int, content: bytes, device: tuple[int, int], changed: int
    ) -> None:
        if len(content) > _MOST_BYTES:
            raise ValueError(f"{name} is too large for an archive")
        written = os.fsencode(name) + b"\0"
        inode, links, owner, checksum = len(self._seen), 1, 0, 0
        fields = (
            *(inode, mode, owner, owner, links, changed, len(content)),
            *(0, 0, *device, len(written), checksum),
        )
        header = _MAGIC + b"".join(b"%08X" % field for field in fields)
        self._stream.write(_padded(header + written))
        self._stream.write(_padded(content))


def _relative(path: str) -> str:
    return os.path.normpath(path).lstrip("/")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
