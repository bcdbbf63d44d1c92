"""A workspace that is a directory of the host, and the operations on its files."""

import base64
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.execution import encoded, timestamp
from support.protocol import Document, DriverError


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # Path.resolve, of links that lead in a circle.
        raise DriverError("FS_ERROR", "too many levels of links", errno=errno.ELOOP) from error
    except OSError as error:
        code = error.errno or 5
        raise DriverError("FS_ERROR", error.strerror or str(error), errno=code) from error


def _facts(path: Path) -> Document:
    status = path.lstat()
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
    return {
        "type": kinds.get(stat.S_IFMT(status.st_mode), "other"),
        "size": status.st_size,
        "mode": stat.S_IMODE(status.st_mode),
        "modifiedAt": timestamp(datetime.fromtimestamp(status.st_mtime, UTC)),
    }


class Workspace:
    """`contained`: whether a path that leads out of it is refused."""

    def __init__(self, contained: bool):
        self.id = f"sbx_{secrets.token_hex(8)}"
        self._contained = contained
        self._top = Path(tempfile.mkdtemp(prefix=f"{self.id}-"))
        self.directory = self._top / "workspace"
        self.directory.mkdir()

    def close(self) -> None:
        shutil.rmtree(self._top, ignore_errors=True)

    def place(self, path: Any, follow: bool = True) -> Path:
        """Where `path` leads. Resolved first and opened later: good enough for a peer that is measured."""
        name = os.fsdecode(base64.b64decode(path["base64"])) if isinstance(path, dict) else path
        where = self.directory / name
        follow = follow or where.name in ("", "..")
        resolved = where.resolve() if follow else where.parent.resolve() / where.name
        if self._contained and not resolved.is_relative_to(self.directory.resolve()):
            raise DriverError("FS_ERROR", f"{name} leads out of the workspace")
        return resolved

    def _regular(self, path: Any) -> Path:
        """Where a file is or can be made; opening a FIFO would wait for somebody."""
        where = self.place(path)
        if where.exists() and not where.is_file():
            raise DriverError("FS_ERROR", "not a regular file")
        return where

    def write(self, path: Any, bytes: str, mode: int = 0o644) -> Document:
        with _file_errors():
            where = self._regular(path)
            where.parent.mkdir(parents=True, exist_ok=True)
            where.write_bytes(base64.b64decode(bytes))
            where.chmod(mode)
        return {}

    def read(self, path: Any) -> Document:
        with _file_errors():
            return {"bytes": base64.b64encode(self._regular(path).read_bytes()).decode()}

    def upload(self, hostPath: str, path: Any) -> Document:
        with _file_errors():
            where = self.place(path)
            where.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(hostPath):
                shutil.copytree(hostPath, where, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy(hostPath, where)
        return {}

    def download(self, path: Any, hostPath: str) -> Document:
        with _file_errors():
            shutil.copyfile(self._regular(path), hostPath)
            os.chmod(hostPath, self.place(path).stat().st_mode & 0o777)
        return {}

    def list(self, path: Any) -> Document:
        with _file_errors():
            names = sorted(os.listdir(os.fsencode(self.place(path))))
            where = self.place(path)
            facts = [(name, _facts(where / os.fsdecode(name))) for name in names]
        return {"entries": [{**encoded("name", name), **one} for name, one in facts]}

    def stat(self, path: Any) -> Document:
        with _file_errors():
            return {"stat": _facts(self.place(path, follow=False))}

    def mkdir(self, path: Any, mode: int = 0o755) -> Document:
        with _file_errors():
            where = self.place(path)
            if not where.exists():
                where.mkdir(parents=True)
                where.chmod(mode)
        return {}

    def remove(self, path: Any, recursive: bool = False) -> Document:
        with _file_errors():
            where = self.place(path, follow=False)
            if where == self.directory.resolve():
                raise DriverError("FS_ERROR", "the workspace itself stays")
            if where.is_dir() and not where.is_symlink():
                shutil.rmtree(where) if recursive else where.rmdir()
            else:
                where.unlink()
        return {}

    def move(self, source: Any, target: Any) -> Document:
        with _file_errors():
            self.place(source, follow=False).rename(self.place(target, follow=False))
        return {}

    def chmod(self, path: Any, mode: int) -> Document:
        with _file_errors():
            self.place(path).chmod(mode)
        return {}
