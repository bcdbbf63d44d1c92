"""prctl: orphans come to us, and we do not outlive our parent."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUSER = 0x10000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, where they can be seen."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int = signal.SIGTERM) -> None:
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def can_make_user_namespace() -> bool:
    """Tries it in a child."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if _LIBC.unshare(_CLONE_NEWUSER) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0
