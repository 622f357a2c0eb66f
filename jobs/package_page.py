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

from jobs.package_words import words
from models.dataset import Row

_SHOWN = 200  # rows of a data set
_LARGEST = 512 * 1024  # characters of a data set on the page
_LONGEST = 4_000  # characters of one value
_SHORT = 36  # characters that stay on one line
_FIRST = ("handles", "observations", "turns")  # what people look for

# What people read stands before what only programs do.
_LEAD = ("said_at", "observed_at", "at", "role", "text", "kind", "handle", "name", "title", "action", "state")

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --quiet: #595959; --line: #d5d5d5; --paper: #fff; --band: #f5f5f3; --link: #0b4f9e }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e3; --quiet: #a9a9a5; --line: #44443f; --paper: #191917; --band: #242421; --link: #8ab8f5 }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere }
h1, h2 { line-height: 1.2 }
h2 { margin: 2.5rem 0 .5rem; padding-top: .5rem; border-top: 2px solid var(--line) }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 }
th, td { text-align: start; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line) }
th { font-weight: 600 }
td > div { white-space: pre-wrap; min-width: 3.5rem; max-width: 46rem }
.wide { overflow-x: auto }
.rows { font-size: 14px }
.rows thead th { white-space: nowrap; background: var(--band) }
.text > div { min-width: 24rem; font-size: 15px }
.short > div { white-space: nowrap }
.number { text-align: end; font-variant-numeric: tabular-nums }
.quiet { color: var(--quiet) }
a { color: var(--link) }
@media (max-width: 44rem) {
  body { margin: 1rem auto }
  .rows thead { position: absolute; clip-path: inset(50%) }
  .rows, .rows tbody, .rows tr, .rows td.text { display: block }
  .rows tr { border: 1px solid var(--line); border-radius: 6px; margin: 0 0 .75rem; padding: .25rem 0 }
  .rows td { display: flex; border: 0; padding: .15rem .6rem }
  .rows td.none { display: none }
  .rows td::before { content: attr(data-of); flex: 0 0 8rem; color: var(--quiet) }
  .rows td > div { flex: 1; min-width: 0; white-space: pre-wrap }
  .rows td.text { padding: .4rem .6rem }
  .rows td.text::before { content: none }
  .contents tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--line) }
  .contents th, .contents td { border: 0; padding-bottom: 0 }
  .contents td:nth-child(2) { grid-area: 2 / 1 / 3 / 3; padding: 0 .6rem .35rem; font-size: 14px; color: var(--quiet) }
}
@media print {
  :root { --ink: #000; --quiet: #333; --line: #aaa; --paper: #fff; --band: #eee; --link: #000 }
  body { font-size: 10pt; margin: 0; max-width: none }
  .wide { overflow: visible }
  .rows { font-size: 8pt }
  .rows thead { display: table-header-group }
  td > div, .text > div { min-width: 0; white-space: pre-wrap }
  tr { break-inside: avoid }
  h2 { break-after: avoid }
}
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
    _shown: list[list[str]] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)
    _size: int = 0

    def note(self, row: Row) -> None:
        """One row more. Only the first of them are kept."""
        self.rows += 1
        if len(self._shown) >= _SHOWN or self._size > _LARGEST:
            return
        self._columns = self._columns or sorted(row, key=_rank)
        cells = [_cell(column, row.get(column)) for column in self._columns]
        self._used.update(column for column in self._columns if not _is_nothing(row.get(column)))
        self._shown.append(cells)
        self._size += sum(map(len, cells))

    def written(self) -> Iterator[str]:
        """As HTML: nothing, where there are no rows."""
        if not self.rows:
            return
        title, what = words(self.name)
        yield f'<h2 id="{_text(self.name)}">{_text(title)}</h2>'
        some = "" if len(self._shown) == self.rows else f" The first {len(self._shown)} are shown."
        file = f'<a href="{_text(self.file)}">{_text(self.file)}</a>'
        yield f"<p>{_text(what)}</p>" if what else ""
        yield f'<p class="quiet">{_rows(self.rows)}, all of them in {file}.{some}</p>'
        yield from self._table()

    def listed(self) -> str:
        """Its line in the table of contents."""
        title, what = words(self.name)
        name = f'<a href="#{_text(self.name)}">{_text(title)}</a>' if self.rows else _text(title)
        known = "number" if self.rows else "number quiet"
        return (
            f'<tr><th scope="row">{name}</th><td>{_text(what)}</td><td class="{known}">{self.rows or "none"}</td></tr>'
        )

    def _table(self) -> Iterator[str]:
        """Without the columns in which no row that is shown has anything."""
        used = [nth for nth, column in enumerate(self._columns) if column in self._used]
        heads = "".join(f'<th scope="col">{_text(_named(self._columns[nth]))}</th>' for nth in used)
        yield f'<div class="wide"><table class="rows"><thead><tr>{heads}</tr></thead><tbody>'
        yield from (f"<tr>{''.join(cells[nth] for nth in used)}</tr>" for cells in self._shown)
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
    yield "<h1>What is kept about you</h1>"
    yield "<p>Everything that this service keeps about you, as it was at one moment. Nothing on this page was sent anywhere to"
    yield "show it to you. Words in angle brackets stand where something personal was replaced before it was stored.</p>"
    yield '<h2>Contents</h2>\n<table class="contents"><tbody>'
    in_order = sorted(sections, key=lambda one: (not one.rows, one.name not in _FIRST, words(one.name).title))
    yield from (section.listed() for section in in_order)
    yield "</tbody></table>"
    for section in in_order:
        yield from section.written()
    yield "<h2>Not in this package</h2>\n<ul>"
    yield from (f"<li>{_text(one['what'])}: {_text(one['why'])}</li>" for one in left_out)
    yield "</ul>\n<h2>About this package</h2>\n<table><tbody>"
    yield from (
        f'<tr><th scope="row">{_text(_named(name))}</th><td><div>{_value(fact)}</div></td></tr>'
        for name, fact in facts.items()
    )
    yield "</tbody></table>\n</main>\n</body>\n</html>"


def _rank(column: str) -> tuple[int, str]:
    return (_LEAD.index(column) if column in _LEAD else len(_LEAD), column)


def _cell(column: str, value: Any) -> str:
    kind = "none" if _is_nothing(value) else "text" if column == "text" else "short" if _is_short(value) else ""
    marked = f' class="{kind}"' if kind else ""
    return f'<td{marked} data-of="{_text(_named(column))}"><div dir="auto">{_value(value)}</div></td>'


def _is_nothing(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _is_short(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and len(value) <= _SHORT)


def _named(name: str) -> str:
    return name.replace("_", " ")


def _rows(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"


def _value(value: Any) -> str:
    if _is_nothing(value):
        return ""
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(told) <= _LONGEST:
        return _text(told)
    return f'{_text(told[:_LONGEST])}… <span class="quiet">(cut here; whole in the file)</span>'


def _text(text: str) -> str:
    return html.escape(text.translate(_UNSHOWN))
