"""The `afterturn` command: exit code 0 done, 1 failed, 2 wrong use; an error is one line on standard error."""

import os
import sys
from collections.abc import Sequence

import typer

from cli.commands import app
from cli.failure import Ended

_DONE, _FAILED, _WRONG_USE = 0, 1, 2


def main() -> None:
    """Runs what the command line says and exits."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may not know every letter
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command and answers its exit code."""
    try:
        code = typer.main.get_command(app).main(list(arguments), prog_name="afterturn", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return _told("stopped", _FAILED)
    except Exception as error:  # noqa: BLE001 - an operator gets one line, never a traceback with what it may quote
        return _ended(error)
    return code if isinstance(code, int) else _DONE


def _ended(error: Exception) -> int:
    match error:
        case typer.TyperException():
            return _misused(error)
        case Ended():
            return _told(str(error), error.exit_code)
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
            return _FAILED
        case ImportError():
            return _told(f"the package {error.name} is missing or broken: install everything by `make setup`", _FAILED)
    return _unforeseen(error)


def _misused(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    place = context.command_path if context else "afterturn"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if "\n" in message:  # no command at all: the message is the help
        sys.stderr.write(f"{message}\n")
    else:
        sys.stderr.write(f"{place}: {message} (`{place} --help` says more)\n")
    return _WRONG_USE


def _told(message: str, code: int) -> int:
    sys.stderr.write(f"afterturn: {' '.join(message.split())}\n")
    return code


def _unforeseen(error: Exception) -> int:
    from cli.trouble import explained  # noqa: PLC0415 - knowing every library's errors takes as long as loading them

    message, code = explained(error)
    return _told(message, code)


if __name__ == "__main__":
    main()
