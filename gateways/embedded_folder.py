"""The folder of one embedded server: who holds it, where its socket lies, whether a server still runs in it."""

import atexit
import contextlib
import fcntl
import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# Linux takes 107 bytes for the path of a socket, macOS 103.
_LONGEST_SOCKET = 107 if sys.platform == "linux" else 103


class EmbeddedServerError(RuntimeError):
    """An embedded server did not start or did not stop. The message says why and what to do."""


class EmbeddedServerBusy(EmbeddedServerError):
    """Another living program holds this folder and runs its server."""


def installed(package: str) -> Path:
    """The folder of an installed package, found without importing it: what its import does besides is not wanted."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise EmbeddedServerError(f"the package {package} is not installed")
    return Path(found.origin).parent


def hold(folder: Path) -> int:
    """Take the folder for this process until the descriptor is closed, or the process ends, in whatever way."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise EmbeddedServerBusy(f"{folder} is in use: another program runs its server. Stop it first.") from None
    return lock


class Hold:
    """A server's folder, held until it is let go, and the server's end with the program's."""

    def __init__(self, folder: Path) -> None:
        self._lock: int | None = hold(folder)
        self._taken_by = os.getpid()
        self._stop: Callable[[], None] | None = None

    @property
    def holds(self) -> bool:
        return self._lock is not None

    def stop_at_exit(self, stop: Callable[[], None]) -> None:
        """Have `stop` called when the program ends without having let go."""
        self._stop = stop
        atexit.register(self._end)

    def let_go(self) -> None:
        atexit.unregister(self._end)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _end(self) -> None:
        if self._stop is not None and os.getpid() == self._taken_by:  # a fork of the program is not its owner
            self._stop()


def socket_folder(folder: Path, name: str, owner: int) -> Path:
    """A folder that only `owner` (a uid) opens, short enough for a socket called `name`: inside `folder` where it fits.

    Where it does not, a folder under the system's temporary one, which `folder/socket` then points to.
    """
    place = folder / "socket"
    if place.is_symlink():
        if _is_private(place.resolve(), owner):
            return place.resolve()
        place.unlink()
    if _fits(place / name):
        return _make_private(place, owner)
    short = Path(tempfile.mkdtemp(prefix="afterturn-", dir=_short_parent(name)))
    place.symlink_to(short)
    return _make_private(short, owner)


def leave_socket_folder(folder: Path) -> None:
    """Remove the temporary folder that `socket_folder` made, if it made one."""
    place = folder / "socket"
    if place.is_symlink():
        shutil.rmtree(place.resolve(), ignore_errors=True)
        place.unlink()


def running(pid_file: Path, home: Path) -> int | None:
    """The process that `pid_file` names in its first line, if it is alive and works in the folder `home`."""
    try:
        pid = int(pid_file.read_text().splitlines()[0])
        os.kill(pid, 0)
    except (OSError, ValueError, IndexError):
        return None
    return pid if pid > 1 and _works_in(pid, home) else None


def end(pid: int, signals: Sequence[tuple[signal.Signals, float]], is_gone: Callable[[], bool]) -> None:
    """Send each signal in turn and give the process its seconds, until `is_gone` says so."""
    for number, seconds in signals:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_for(is_gone, seconds):
            return
    raise EmbeddedServerError(f"process {pid} does not end")


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return met


def _make_private(place: Path, owner: int) -> Path:
    place.mkdir(mode=0o700, exist_ok=True)
    place.chmod(0o700)
    if place.stat().st_uid != owner:
        os.chown(place, owner, -1)
    return place


def _is_private(place: Path, owner: int) -> bool:
    try:
        found = place.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and stat.S_IMODE(found.st_mode) == 0o700


def _short_parent(name: str) -> str:
    parent = tempfile.gettempdir()
    fits = _fits(Path(parent, "afterturn-12345678", name))
    return parent if fits else "/tmp"  # noqa: S108 - the folder made in it is private and has a random name


def _fits(path: Path) -> bool:
    # Not every client that takes the path out of a URL undoes its quoting, so only paths that need none will do.
    return len(os.fsencode(path)) <= _LONGEST_SOCKET and re.fullmatch(r"[A-Za-z0-9/._-]+", str(path)) is not None


def _works_in(pid: int, home: Path) -> bool:
    # A process id alone proves nothing: after a crash or a reboot it may be anybody's.
    try:
        return Path(f"/proc/{pid}/cwd").samefile(home)
    except PermissionError:
        # Root in a container may not look there, but every command line can be read.
        return any(_is_same(argument, home) for argument in Path(f"/proc/{pid}/cmdline").read_text().split("\0"))
    except FileNotFoundError:
        return sys.platform != "linux" and str(home) in _command_line(pid)


def _is_same(argument: str, home: Path) -> bool:
    try:
        return argument.startswith("/") and Path(argument).samefile(home)
    except OSError:
        return False


def _command_line(pid: int) -> str:
    ps = ["/bin/ps", "-o", "command=", "-p", str(pid)]
    return subprocess.run(ps, capture_output=True, text=True, check=False).stdout  # noqa: S603 - fixed, but for a number
