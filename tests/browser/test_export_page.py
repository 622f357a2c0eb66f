"""A package's page in a real browser: what a hostile person wrote is read, and does nothing."""

import asyncio
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.package_page import Section, page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server that nobody should ask for anything, and what it was asked for."""
    paths: list[str] = []

    class Noting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as it is called
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()


def hostile(url: str) -> list[str]:
    return [
        f"<script src='{url}/script'></script><script>document.title = 'taken'</script>",
        f"<img src='{url}/image' onerror=\"document.title = 'taken'\">",
        f"</td></table><style>@import '{url}/style'; * {{ background: url({url}/background) }}</style>",
        f"<iframe src='{url}/frame'></iframe><object data='{url}/object'></object><link rel=stylesheet href='{url}/link'>",
        f"<svg onload=\"document.title = 'taken'\"><use href='{url}/use'/></svg><base href='{url}/'>",
        f"<meta http-equiv=refresh content='0;url={url}/refresh'><form action='{url}/form'><input autofocus onfocus=alert(1)>",
        "\u202egnp.exe\u2066 \x00\x1b[2J </title></main></body></html> &lt;b&gt; ]]> --> '\"`",
        "=cmd|' /C calc'!A0",
    ]


def dumped(file: Path, *flags: str) -> str:
    """The document as the browser has it after whatever could run has run."""
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=3000",
        "--dump-dom",
        *flags,
    ]
    profile = file.with_name("profile")
    done = subprocess.run(
        [*command, f"--user-data-dir={profile}", file.as_uri()], capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout


async def test_the_page_shows_hostile_values_as_text(tmp_path: Path, asked: tuple[str, list[str]]) -> None:
    url, paths = asked
    section = Section("turns", "data/turns.jsonl")
    for text in hostile(url):
        section.note({"id": 1, "text": text, "tool_calls": [{"name": text}], text: "as a name"})
    file = tmp_path / "index.html"
    file.write_text(page({"package": hostile(url)[0]}, [section], [{"what": hostile(url)[1], "why": "x"}]))
    document = await asyncio.to_thread(dumped, file)
    assert "<title>What is kept about you</title>" in document
    assert paths == []
    body = document.partition("<body>")[2]
    for element in ("script", "img", "iframe", "object", "link", "svg", "base", "form", "input", "style", "meta"):
        assert f"<{element}" not in body
    assert "document.title = 'taken'" in body
    assert json.dumps("as a name")[1:-1] in body


async def test_the_browser_here_would_run_what_is_not_escaped(tmp_path: Path, asked: tuple[str, list[str]]) -> None:
    url, paths = asked
    file = tmp_path / "index.html"
    file.write_text(f"<!DOCTYPE html><title>x</title><img src='{url}/image'><script>document.title = 'taken'</script>")
    document = await asyncio.to_thread(dumped, file)
    assert "<title>taken</title>" in document
    assert paths == ["/image"]


async def test_on_a_phone_nothing_has_to_be_moved_sideways(tmp_path: Path) -> None:
    turns = Section("turns", "data/turns.jsonl")
    for text in (*hostile("x"), "A" * 3_000, "見積もり" * 200, "هل يغطي الضمان البطارية " * 40, None):
        turns.note({"said_at": "2026-03-01T09:30:00+00:00", "text": text, "tool_calls": [{"name": "z" * 500}], "id": 1})
    many = [Section(f"{'kind' * 12}_{nth}", f"data/{'kind' * 12}_{nth}.jsonl") for nth in range(30)]
    for one in many:
        one.note({"a_rather_long_name_of_a_member": {"deep": ["x" * 100]}, "n": None})
    whole = page({"package": "exp_" + "1" * 32}, [turns, *many], [{"what": "w" * 200, "why": "x"}])
    measured = "<script>document.title = `${innerWidth} ${document.documentElement.scrollWidth}`</script></body>"
    file = tmp_path / "index.html"
    file.write_text(re.sub("<meta http-equiv[^>]*>", "", whole).replace("</body>", measured))
    document = await asyncio.to_thread(dumped, file, "--window-size=390,800")
    inner, needed = map(int, document.partition("<title>")[2].partition("</title>")[0].split())
    assert inner <= 500
    assert needed <= inner
