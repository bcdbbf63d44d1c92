#!/usr/bin/env python3
"""A driver that runs programs with no sandbox at all, to show that the kit finds out.

The runner refuses it everywhere but inside a throwaway machine.
"""

import os
import platform
import sys

sys.dont_write_bytecode = True

from support.local import LocalDriver, Program, Sandbox  # noqa: E402
from support.protocol import serve  # noqa: E402

CAPABILITIES = {
    "filesystem": True,
    "networkIsolation": False,
    "cpuLimits": False,
    "memoryLimits": False,
    "streaming": True,
    "remoteExecution": False,
    "osFilesystemIsolation": "unsupported",
    "filesystemView": "host",
}


def wrap(_: Sandbox, program: Program) -> tuple[list[str], dict[str, str]]:
    return program.args, {**os.environ, **program.env}


if __name__ == "__main__":
    driver = LocalDriver("unconfined", platform.python_version(), CAPABILITIES, False, wrap)
    sys.exit(serve(driver))
