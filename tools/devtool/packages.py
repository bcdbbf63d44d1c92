"""What a build machine needs, as packages of Debian 12."""

import os
import shutil
import subprocess

from devtool.checkout import run

PACKAGES = (
    # Build.
    "g++",
    "cmake",
    "ninja-build",
    "libboost1.81-dev",
    "libboost-json1.81-dev",
    "libarchive-dev",
    "liblzma-dev",
    "libbz2-dev",
    "libzstd-dev",
    "nettle-dev",
    "zlib1g-dev",
    "libcap-dev",
    "libcli11-dev",
    "libfmt-dev",
    "musl-tools",
    "mold",
    "ccache",
    "pkg-config",
    # Tests and checks.
    "libgtest-dev",
    "libgmock-dev",
    "libseccomp-dev",
    "libbenchmark-dev",
    "bubblewrap",
    "busybox-static",
    "e2fsprogs",
    "git",
    "qemu-system-x86",
    "uidmap",
    "clang-19",
    "clang-tidy-19",
    "clang-format-19",
    "libclang-rt-19-dev",
    "doxygen",
    "python3",
    "python3-jsonschema",
    "util-linux",
)


def missing() -> list[str]:
    query = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *PACKAGES],
        capture_output=True,
        text=True,
        check=False,  # Fails as soon as one of them is unknown.
    )
    lines = (line.split() for line in query.stdout.splitlines())
    installed = {fields[0] for fields in lines if fields[1:] == ["installed"]}
    return [package for package in PACKAGES if package not in installed]


def setup() -> int:
    """Installs what is missing; does nothing, quickly, when nothing is."""
    if shutil.which("dpkg-query") is None:
        print("This is not Debian: install the equivalents of\n  " + "\n  ".join(PACKAGES))
        return 1
    packages = missing()
    if not packages:
        return 0
    print("installing:", " ".join(packages), flush=True)
    if os.geteuid() != 0 and shutil.which("sudo") is None:
        print("This needs root or sudo.")
        return 1
    become = [] if os.geteuid() == 0 else ["sudo"]
    apt = [*become, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]
    status = run(*apt, "update")
    return status or run(*apt, "install", "--yes", "--no-install-recommends", *packages)
