#!/usr/bin/env python3
"""Runs a command in a guest that is thrown away: a packaged kernel, emulated, with no network device.

    guest.py fetch
    guest.py run --tree "$PWD/conformance" --as user -- "$PWD/conformance/conformance" list

The trees are inside at the paths that they have outside. What the command writes below $GUEST_RESULTS is
brought out to the directory of --results. The exit code is that of the command, 124 when the time limit ended
it, and 125 when the guest itself failed.
"""

import argparse
import platform
import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True

import kernels  # noqa: E402
import machine  # noqa: E402
from image import NoImage  # noqa: E402


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError("NAME=VALUE")
    return name, value


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError("more than 0, at most a day")
    return seconds


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="guest.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="run|fetch")
    verbs.add_parser("fetch", help="get the kernels, so that later nothing is fetched")
    run = verbs.add_parser("run", help="boot, run the command, power off")
    run.add_argument("--kernel", choices=sorted(kernels.NAMES), default=kernels.DEFAULT)
    run.add_argument("--timeout", type=_seconds, default=60.0, metavar="S", help="of the command")
    run.add_argument("--as", choices=("root", "user"), default="root", dest="user")
    run.add_argument("--tree", type=Path, action="append", default=[], metavar="DIR")
    run.add_argument("--results", type=Path, metavar="DIR", help="where $GUEST_RESULTS goes")
    run.add_argument("--directory", default="/", metavar="DIR", help="where the command starts")
    run.add_argument("--env", type=_variable, action="append", default=[], metavar="NAME=VALUE")
    run.add_argument("--memory", type=int, default=1024, metavar="MIB")
    run.add_argument("--processors", type=int, default=1, metavar="N")
    run.add_argument("command", nargs="+", metavar="COMMAND")
    return parser.parse_args(words)


def _fetch() -> int:
    """Fails only without the kernel that everything here uses."""
    if platform.machine() != machine.ARCHITECTURE:
        print(f"guest.py: there are no guests on {platform.machine()}")
        return 0
    missing = []
    for name in kernels.NAMES:
        try:
            kernels.get(name)
        except kernels.NoKernel as error:
            print(f"guest.py: {name}: {error}", file=sys.stderr)
            missing.append(name)
    return machine.BROKEN if kernels.DEFAULT in missing else 0


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    return _fetch() if arguments.verb == "fetch" else _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    request = machine.Request(
        args=tuple(arguments.command),
        trees=tuple(tree.absolute() for tree in arguments.tree),
        kernel=arguments.kernel,
        user=arguments.user,
        timeout_s=arguments.timeout,
        directory=arguments.directory,
        env=dict(arguments.env),
        results=arguments.results,
        memory_mib=arguments.memory,
        processors=arguments.processors,
    )
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # In order, as ^C.
    try:
        ended = machine.run(request, sys.stdout.buffer, sys.stderr.buffer)
    except (machine.GuestFailed, kernels.NoKernel, NoImage) as error:
        print(f"guest.py: {error}", file=sys.stderr)
        return machine.BROKEN
    except KeyboardInterrupt:
        return 130
    if ended.late:
        print(f"guest.py: ended by the time limit of {arguments.timeout:g} s", file=sys.stderr)
    return ended.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
