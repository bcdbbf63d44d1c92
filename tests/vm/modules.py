"""Kernel modules: which files are needed, and in which order they go in."""

import lzma
import re
from pathlib import Path

# Whatever the kernel has built in is no file, and then nothing has to be loaded.
WANTED = (
    "virtio_pci",  # The channels to the outside.
    "virtio_console",
    "overlay",
    "loop",
    "lzo_rle",  # How zram compresses, on Linux 6.1.
    "zram",  # Disks and swap of guests.
    "fuse",
    "tun",
    "veth",
    "binfmt_misc",
    "vsock",
    "vsock_loopback",
)
_DEPENDS = re.compile(rb"(?:^|\0)depends=([^\0]*)\0")


def in_order(directory: Path) -> dict[str, bytes]:
    """Name to content, each after all that it depends on."""
    files = {_name(path.name): path for path in directory.glob("kernel/**/*.ko*")}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found or name not in files:
            return
        content = _content(files[name])
        depends = _DEPENDS.search(content)
        for other in depends[1].decode().split(",") if depends else ():
            add(_name(other))
        found[name] = content

    for name in WANTED:
        add(name)
    return found


def _name(file: str) -> str:
    return file.split(".ko")[0].replace("-", "_")


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data
