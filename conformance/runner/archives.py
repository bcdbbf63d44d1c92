"""Archives that cases describe entry by entry, and what is in those that a driver brought down.

The same entries are the same bytes each time.
"""

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runner.driver import DriverFault
from runner.matching import entry_name
from runner.model import Document, KitError
from runner.prepared import content

Entry = Mapping[str, Any]

_TYPES = {
    "file": tarfile.REGTYPE,
    "directory": tarfile.DIRTYPE,
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
    "fifo": tarfile.FIFOTYPE,
    "character-device": tarfile.CHRTYPE,
    "block-device": tarfile.BLKTYPE,
}
_NULL_DEVICE = (1, 3)  # Harmless where a device is made after all.
_ZIP_TYPES = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "symlink": stat.S_IFLNK}
_MADE_ON_UNIX = 3
_BLOCK = 512
_LEVEL = 6


def packed(step: Mapping[str, Any]) -> bytes:
    """The bytes that a step sends: an archive of its entries, or what it gives in an archive's place."""
    whole = content(step)
    if "entries" in step:
        whole = _FORMATS[step.get("format", "tar")](step["entries"])
    return whole[: step.get("cut", len(whole))]


def tree(archive: bytes) -> list[Document]:
    """The facts about each entry of a plain tar. What is another name of a file is a file."""
    if len(archive) % _BLOCK or archive[-2 * _BLOCK :] != bytes(2 * _BLOCK):
        raise DriverFault("brought down what does not end as a tar archive does")
    try:
        with _open(io.BytesIO(archive), "r:") as read:
            return [_facts(read, member) for member in read if _path(member.name) != ""]
    except (tarfile.TarError, KeyError) as error:
        raise DriverFault(f"brought down what is no tar archive: {error}") from error


def _open(file: io.BytesIO, mode: Any) -> tarfile.TarFile:
    return tarfile.open(
        fileobj=file,
        mode=mode,
        format=tarfile.PAX_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    )


def _mode(entry: Entry) -> int:
    return int(entry.get("mode", 0o755 if entry.get("type") == "directory" else 0o644))


def _tar(entries: Iterable[Entry]) -> bytes:
    file = io.BytesIO()
    with _open(file, "w") as archive:
        for entry in entries:
            data = content(entry)
            archive.addfile(_member(entry, len(data)), io.BytesIO(data))
    return file.getvalue()


def _member(entry: Entry, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(entry_name(entry))
    member.type = _TYPES[entry.get("type", "file")]
    member.mode = _mode(entry)
    member.mtime = entry.get("modified", 0)
    member.linkname = entry.get("target", "")
    member.size = size
    if member.isdev() and not member.isfifo():
        member.devmajor, member.devminor = _NULL_DEVICE
    return member


def _zip(entries: Iterable[Entry]) -> bytes:
    """Of what a zip can have: files, directories and symbolic links."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in entries:
            kind = entry.get("type", "file")
            if kind not in _ZIP_TYPES:
                raise KitError(f"a zip has no {kind}")
            member = zipfile.ZipInfo(entry_name(entry) + ("/" if kind == "directory" else ""))
            member.create_system = _MADE_ON_UNIX
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (_ZIP_TYPES[kind] | _mode(entry)) << 16
            target = str(entry.get("target", "")).encode()
            archive.writestr(member, target or content(entry))
    return file.getvalue()


_FORMATS: dict[str, Callable[[Iterable[Entry]], bytes]] = {
    "tar": _tar,
    "tar.gz": lambda entries: gzip.compress(_tar(entries), _LEVEL, mtime=0),
    "tar.xz": lambda entries: lzma.compress(_tar(entries), preset=_LEVEL),
    "zip": _zip,
}


def _path(name: str) -> str:
    """The same, whether a tar says "f", "./f" or, of a directory, "f/"; empty for the top."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _facts(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Document:
    facts: Document = {
        "name": ("/" if member.name.startswith("/") else "") + _path(member.name),
        "mode": member.mode,
        "modified": int(member.mtime),
    }
    if member.issym():
        return {**facts, "type": "symlink", "target": member.linkname}
    if member.isdir():
        return {**facts, "type": "directory"}
    file = archive.extractfile(member) if member.isreg() or member.islnk() else None
    if file is None:
        return {**facts, "type": "other"}
    data = file.read()
    return {**facts, "type": "file", "size": len(data), "bytes": data}
