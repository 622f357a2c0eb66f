"""`afterturn mask`: a policy tried on text from standard input, with no server, key or data folder."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TextIO

from privacy.known import Known
from privacy.masking import mask


def run(stdin: TextIO, stdout: TextIO, *, as_json: bool) -> None:
    """Plain text to masked text; or, line for line, `{"text", "known"?}` to `{"text", "spans": [[start, end, kind]]}`.

    Lines go out as they come in. Both streams should be UTF-8 with `errors="surrogatepass"`, so that a lone surrogate
    comes through. Raises ValueError at the first line that is no such object.
    """
    for line in _masked_lines(stdin) if as_json else [mask(stdin.read()).text]:
        stdout.write(line)
        stdout.flush()


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    known: list[str]


def _masked_lines(lines: Iterable[str]) -> Iterator[str]:
    names: list[str] = []
    known = Known()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        document = _document(line, number)
        if document.known != names:  # neighbours mostly share their names
            names, known = document.known, Known.compile(document.known)
        masked = mask(document.text, known=known)
        yield json.dumps({"text": masked.text, "spans": masked.spans}, ensure_ascii=False) + "\n"


def _document(line: str, number: int) -> _Line:
    try:
        document = json.loads(line)
    except ValueError:
        raise ValueError(f"line {number} is not JSON: --json takes JSON Lines") from None
    text, known = (document.get("text"), document.get("known", [])) if isinstance(document, dict) else (None, [])
    if not isinstance(text, str) or not isinstance(known, list) or not all(isinstance(name, str) for name in known):
        raise ValueError(f'line {number}: expected {{"text": "…", "known": ["…"]}}')
    return _Line(text, known)


def main() -> None:
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogatepass")
    run(sys.stdin, sys.stdout, as_json="--json" in sys.argv[1:])


if __name__ == "__main__":
    main()
