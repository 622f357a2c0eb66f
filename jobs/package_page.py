"""The package's page for people: index.html, which needs nothing but a browser and asks nothing of anybody.

It has no script, and its policy lets none run; whatever a person once wrote is text on it, never markup.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from models.dataset import Row

_SHOWN = 200  # rows of a data set
_LARGEST = 512 * 1024  # characters of a data set on the page
_LONGEST = 4_000  # characters of one value
_FIRST = ("handles", "observations", "turns")  # what people look for

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c1c1c; background: #fff }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
th, td { text-align: start; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #d5d5d5 }
td { overflow-wrap: anywhere; white-space: pre-wrap }
.wide { overflow-x: auto }
.rows td { font-size: 14px }
.quiet { color: #595959 }
a { color: #0b4f9e }
"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
_UNSHOWN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "\ufffd")


@dataclass(slots=True)
class Section:
    """One data set on the page: its first rows, and how many there are."""

    name: str
    file: str
    rows: int = 0
    _columns: list[str] = field(default_factory=list)
    _shown: list[str] = field(default_factory=list)
    _size: int = 0

    def note(self, row: Row) -> None:
        """One row more. Only the first of them are kept."""
        self.rows += 1
        if len(self._shown) >= _SHOWN or self._size > _LARGEST:
            return
        self._columns = self._columns or list(row)
        cells = "".join(f'<td dir="auto">{_value(row.get(column))}</td>' for column in self._columns)
        self._shown.append(f"<tr>{cells}</tr>")
        self._size += len(cells)

    def written(self) -> Iterator[str]:
        """As HTML."""
        yield f'<h2 id="{_text(self.name)}">{_text(self.name)}</h2>'
        if not self.rows:
            yield '<p class="quiet">Nothing is kept here.</p>'
            return
        some = "" if len(self._shown) == self.rows else f" The first {len(self._shown)} are shown."
        yield f'<p>{self.rows} rows, all of them in <a href="{_text(self.file)}">{_text(self.file)}</a>.{some}</p>'
        heads = "".join(f'<th scope="col">{_text(column)}</th>' for column in self._columns)
        yield f'<div class="wide"><table class="rows"><thead><tr>{heads}</tr></thead><tbody>'
        yield from self._shown
        yield "</tbody></table></div>"


def page(facts: Mapping[str, object], sections: Sequence[Section], left_out: Sequence[Mapping[str, str]]) -> str:
    """The whole page. `facts` are what the package is, by name; `left_out` says what is not in it (`what`, `why`)."""
    return "\n".join(_page(facts, sections, left_out)) + "\n"


def _page(
    facts: Mapping[str, object], sections: Sequence[Section], left_out: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_text(_POLICY)}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>What is kept about you</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>"
    yield "<h1>What is kept about you</h1>\n<table><tbody>"
    yield from (f'<tr><th scope="row">{_text(name)}</th><td>{_value(fact)}</td></tr>' for name, fact in facts.items())
    yield "</tbody></table>\n<h2>Contents</h2>\n<ul>"
    in_order = sorted(sections, key=lambda one: (not one.rows, one.name not in _FIRST, one.name))
    yield from (f'<li><a href="#{_text(one.name)}">{_text(one.name)}</a>: {one.rows}</li>' for one in in_order)
    yield "</ul>"
    for section in in_order:
        yield from section.written()
    yield "<h2>Not in this package</h2>\n<ul>"
    yield from (f"<li>{_text(one['what'])}: {_text(one['why'])}</li>" for one in left_out)
    yield "</ul>\n</main>\n</body>\n</html>"


def _value(value: Any) -> str:
    if value is None:
        return ""
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return _text(told if len(told) <= _LONGEST else f"{told[:_LONGEST]}…")


def _text(text: str) -> str:
    return html.escape(text.translate(_UNSHOWN))
