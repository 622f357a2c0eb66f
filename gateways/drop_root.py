"""Run a program as another user: `drop_root.py UID GID pass|plain PROGRAM ARGUMENT…`, started by root as a script.

With `pass` the program may still go through folders that are closed to that user, such as /root at 0700: it keeps one
capability, and no permission on the disk has to be widened. A file of its own, since forking a threaded process to
change its user by hand can deadlock.
"""

import ctypes
import os
import sys

_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2
_PR_CAPBSET_READ, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 23, 28, 47, 2
_NO_SETUID_FIXUP = 4  # capabilities outlive the change of user, and access(2), by which PostgreSQL looks, counts them
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def become(uid: int, gid: int, capability: int | None) -> None:
    """Give up root for good, but for the one capability, which survives the coming exec."""
    if capability is not None:
        _checked(_libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if capability is not None:
        _keep_only(capability)
        _checked(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability, 0, 0))


def passing_capability() -> int:
    """Reading and passing suffices; containers often grant only the wider one."""
    allowed = _libc.prctl(_PR_CAPBSET_READ, _DAC_READ_SEARCH, 0, 0, 0) == 1
    return _DAC_READ_SEARCH if allowed else _DAC_OVERRIDE


def _keep_only(capability: int) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    bit = 1 << capability
    sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)  # effective, permitted, inheritable, then the upper halves
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(sets)))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(arguments: list[str]) -> None:
    uid, gid, way, *command = arguments
    try:
        become(int(uid), int(gid), passing_capability() if way == "pass" else None)
    except OSError as error:
        sys.exit(f"root may not become another user here ({error.strerror}): start as an ordinary user instead")
    os.execv(command[0], command)  # noqa: S606 - the caller names the program


if __name__ == "__main__":
    main(sys.argv[1:])
