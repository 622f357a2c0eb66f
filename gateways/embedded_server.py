"""What embedded servers have in common: a folder held, a process run in it, and an end of both."""

import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from gateways.embedded_folder import EmbeddedServerError, Hold, end, leave_socket_folder


def own_folder(folder: Path, mode: int) -> Path:
    """The folder's whole path; made with `mode` where it is new."""
    folder = folder.absolute()
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise EmbeddedServerError(f"{folder} is no folder, and a server's data belong there: move it away") from None
    return folder


class EmbeddedServer(ABC):
    """A running server, from its making until `stop`. The program's own end stops it too."""

    SIGNALS: ClassVar[Sequence[tuple[signal.Signals, float]]]
    """What ends it, softly first, each with the seconds that it may take."""

    _process: "subprocess.Popen[bytes]"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hold = Hold(folder)
        try:
            self._end_survivor()
            self._start()
        except BaseException:
            self._hold.let_go()
            raise
        self._hold.stop_at_exit(self.stop)

    @abstractmethod
    def _end_survivor(self) -> None:
        """Ends what a program that was killed has left behind."""

    @abstractmethod
    def _start(self) -> None:
        """Starts `_process`; EmbeddedServerError when it does not serve."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End the server cleanly and let go of the folder. Harmless when it has ended already."""
        if self._hold.holds:
            self._end()
            leave_socket_folder(self._folder)
            self._hold.let_go()

    def restart(self) -> None:
        """End the server, or take note of its death, and start it again under the same URL."""
        self._end()
        self._start()

    def kill(self) -> None:
        """SIGKILL, as a crash would. `restart`, or a new `start`, takes up what is left."""
        self._process.kill()
        self._process.wait()

    def _end(self) -> None:
        if self._process.poll() is None:
            end(self._process.pid, self.SIGNALS, lambda: self._process.poll() is not None)
