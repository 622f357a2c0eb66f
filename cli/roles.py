"""`afterturn api`, `worker`, `scheduler`: this process becomes that one."""

import os
import sys
from pathlib import Path

from cli.servers import environment, settings

_MODULES = {"api": ("api",), "worker": ("scheduler", "worker"), "scheduler": ("scheduler", "scheduler")}


def become(role: str, data_dir: Path | None) -> None:
    """Runs the role's module in place of the command, with the servers of the data folder where one is given."""
    handed = environment(settings(data_dir))
    # A folder `models` or `config` where the command is typed must not pass for ours.
    command = [sys.executable, "-m", *_MODULES[role]]
    os.execve(sys.executable, command, os.environ | handed | {"PYTHONSAFEPATH": "1"})  # noqa: S606 - our own module
