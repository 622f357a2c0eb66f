"""`afterturn mask` on this process's own streams."""

import sys
from io import TextIOWrapper

from cli import mask
from cli.failure import Failed


def run(*, as_json: bool) -> None:
    """Masks standard input. Failed at the first line that is not what `--json` takes."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogatepass")
    try:
        mask.run(sys.stdin, sys.stdout, as_json=as_json)
    except ValueError as error:  # what it says names the place, never the text
        raise Failed(str(error)) from None
