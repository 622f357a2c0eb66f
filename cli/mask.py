"""`afterturn mask`: a policy tried on text from standard input, with no server, key or data folder."""

import json
import sys
from collections.abc import Iterable, Iterator
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


def _masked_lines(lines: Iterable[str]) -> Iterator[str]:
    names: list[str] = []
    known = Known()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        document = _document(line, number)
        if document.get("known", []) != names:  # neighbours mostly share their names
            names = document.get("known", [])
            known = Known.compile(names)
        masked = mask(document["text"], known=known)
        yield json.dumps({"text": masked.text, "spans": masked.spans}, ensure_ascii=False) + "\n"


def _document(line: str, number: int) -> dict[str, object]:
    document = json.loads(line)
    if not isinstance(document, dict) or not isinstance(document.get("text"), str):
        raise ValueError(f'line {number}: expected {{"text": …}}')
    return document


def main() -> None:
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", errors="surrogatepass")
    run(sys.stdin, sys.stdout, as_json="--json" in sys.argv[1:])


if __name__ == "__main__":
    main()
