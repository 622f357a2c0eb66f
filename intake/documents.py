"""The JSON values of a file, one after the other, without holding the file: lines, elements of one list, or one value."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

_CHUNK = 1 << 20  # characters read at once
_LONGEST_FIRST_LINE = 1 << 26  # characters; a longer first line is taken for a document written in one line
_LONGEST_VALUE = 1 << 28  # characters of one line, one element, or one value: what is held at once

# Raw tabs and line ends inside strings are wrong, and frequent, and harmless.
_DECODER = json.JSONDecoder(strict=False)


class UnreadableFile(Exception):
    """A file that holds no JSON that can be read; `reason` says what is wrong and where."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def documents(path: Path) -> Iterator[Any]:
    """The values in order: each line of JSON Lines, each element of a top-level list, or the one value.

    Raises UnreadableFile where the file goes wrong, after the values before that place.
    """
    if path.exists() and not path.is_file():
        raise UnreadableFile("is no regular file")
    try:
        with path.open("rb") as head:
            encoding = json.detect_encoding(head.read(4))
        with path.open(encoding=encoding, errors="strict") as text:
            yield from _values(text)
    except UnicodeDecodeError:
        raise UnreadableFile("is not text in UTF-8 or UTF-16") from None
    except OSError as error:
        raise UnreadableFile(f"cannot be opened: {error.strerror}") from None


def _values(text: TextIO) -> Iterator[Any]:
    if _is_json_lines(text):
        yield from _lines(text)
        return
    start = _first_character(text)
    if start == "":
        raise UnreadableFile("is empty")
    if start == "[":
        yield from _elements(text)
    else:
        yield _decoded(_bounded(text.read(_LONGEST_VALUE + 1)), "")


def _is_json_lines(text: TextIO) -> bool:
    """Whether the first line is a JSON value of its own, and others follow."""
    line = "\n"
    while line and line.isspace():
        line = text.readline(_LONGEST_FIRST_LINE)
    try:
        json_lines = (
            line.endswith("\n")
            and _DECODER.decode(line) is not None
            and any(not rest.isspace() for rest in _read(text))
        )
    except (ValueError, RecursionError):
        json_lines = False
    text.seek(0)
    return json_lines


def _lines(text: TextIO) -> Iterator[Any]:
    for number, line in enumerate(_read(text), 1):
        if not line.isspace():
            yield _decoded(_bounded(line), f"line {number} ")


def _read(text: TextIO) -> Iterator[str]:
    """Line after line; one that is too long comes cut, and is refused by `_bounded`."""
    while line := text.readline(_LONGEST_VALUE + 1):
        yield line


def _bounded(value: str) -> str:
    if len(value) > _LONGEST_VALUE:
        raise UnreadableFile(f"holds a value of more than {_LONGEST_VALUE >> 20} Mi characters")
    return value


def _first_character(text: TextIO) -> str:
    """The first character that is no blank; the next read begins with it."""
    place = text.tell()
    while (character := text.read(1)).isspace():
        place = text.tell()
    text.seek(place)
    return character


def _elements(text: TextIO) -> Iterator[Any]:
    window = _Window(text)
    window.step()
    if window.character() == "]":
        window.step()
    else:
        while True:
            yield window.value()
            separator, place = window.character(), window.place()
            window.step()
            if separator == "]":
                break
            if separator != ",":
                raise UnreadableFile(f"is not JSON: no comma between two elements (character {place})")
    if window.character():
        raise UnreadableFile(f"goes on after its end (character {window.place()})")


class _Window:
    """The part of a text that is being decoded."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._held = ""
        self._at = 0
        self._before = 0

    def place(self) -> int:
        """How many characters of the text were passed."""
        return self._before + self._at

    def step(self) -> None:
        """Past the current character; past the end there is no step."""
        if not self.character():
            raise UnreadableFile(f"ends in the middle of its list (character {self.place()})")
        self._at += 1

    def character(self) -> str:
        """The next character that is no blank, or nothing at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at].isspace():
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """Decode the next value. More is read, twice as much each time, until it is whole."""
        self.character()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    place = self._before + error.pos
                    raise UnreadableFile(f"is not JSON, or ends too early (character {place}: {error.msg})") from None
            except (ValueError, RecursionError) as error:
                raise UnreadableFile(_too_much(error, f"element at character {self.place()} ")) from None
            else:
                # A number at the window's edge may go on beyond it.
                if end < len(self._held) or not self._more():
                    self._at = end
                    return value

    def _more(self) -> bool:
        rest = _bounded(self._held[self._at :])
        chunk = self._text.read(max(_CHUNK, len(rest)))
        if chunk:
            self._before += self._at
            self._held, self._at = rest + chunk, 0
        return bool(chunk)


def _decoded(text: str, where: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}: " if not where else f"column {error.colno}: "
        raise UnreadableFile(f"{where}is not JSON, or ends too early ({place}{error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(_too_much(error, where)) from None


def _too_much(error: Exception, where: str) -> str:
    if isinstance(error, RecursionError):
        return f"{where}is nested too deeply"
    return f"{where}holds a number that is too long"
