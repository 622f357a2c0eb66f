"""The benches' own parts: what the load client sends and takes, and what is said where there is nothing to measure."""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench import locomo, reflect, talk
from bench.__main__ import BENCHES
from bench.load import Plan, drive, requests
from bench.report import percentile, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n12345"
REFUSED = b"HTTP/1.1 422 Unprocessable\r\ncontent-length: 2\r\n\r\n{}"


class Server:
    """Answers every request on every connection with the same bytes, sent in the pieces that it is given."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces, self.heard = pieces, 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with suppress(ConnectionError):  # a client that was refused hangs up
            self._answer(line)

    def _answer(self, line: socket.socket) -> None:
        came = b""
        while piece := line.recv(65_536):
            came += piece
            head, found, body = came.partition(b"\r\n\r\n")
            if found and len(body) >= int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0]):
                self.heard, came = self.heard + 1, b""
                for part in self._pieces:
                    line.sendall(part)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    there = Server(request.param)
    yield there
    there.close()


def plan(*ports: int, calls: int = 12, clients: int = 3, rate: float | None = None) -> Plan:
    return Plan(ports or (1,), "secret", calls, clients, turns_a_call=2, users=5, label="run", rate=rate)


@pytest.mark.parametrize("server", [[ACCEPTED], [ACCEPTED[:30], ACCEPTED[30:90], ACCEPTED[90:]]], indirect=True)
def test_each_call_is_sent_once_and_its_whole_answer_awaited(server: Server) -> None:
    driven = drive(plan(server.port))
    assert server.heard == len(driven.latencies) == 12
    assert 0 < max(driven.latencies) <= driven.seconds
    assert driven.rate == 12 / driven.seconds


@pytest.mark.parametrize("server", [[ACCEPTED]], indirect=True)
def test_at_a_pace_the_last_call_leaves_when_it_is_due(server: Server) -> None:
    driven = drive(plan(server.port, calls=11, rate=200.0))
    assert driven.seconds >= 10 / 200.0


@pytest.mark.parametrize("server", [[REFUSED]], indirect=True)
def test_an_answer_that_is_no_acceptance_ends_the_run(server: Server) -> None:
    with pytest.raises(RuntimeError, match="422"):
        drive(plan(server.port))


def test_requests_are_whole_calls_of_people_in_turn_with_ids_of_their_own() -> None:
    sent = list(requests(plan(calls=10)))
    heads, bodies = zip(*(request.split(b"\r\n\r\n", 1) for request in sent), strict=True)
    said = [json.loads(body) for body in bodies]
    ids = [turn["id"] for one in said for turn in one["turns"]]
    assert len(set(ids)) == len(ids) == 20
    assert all(
        f"Content-Length: {len(body)}\r\n".encode() in head + b"\r\n" for head, body in zip(heads, bodies, strict=True)
    )
    assert [b"X-Canonical-User: user-%d\r\n" % (call % 5) in head for call, head in enumerate(heads)] == [True] * 10
    assert len({one["conversation_id"] for one in said}) == 5


def test_the_same_seed_says_the_same_and_some_turns_hold_an_address() -> None:
    said = [text for text, _ in zip(talk.sentences(3), range(200), strict=False)]
    assert said == [text for text, _ in zip(talk.sentences(3), range(200), strict=False)]
    assert 5 < sum("@" in text or "+44" in text for text in said) < 60


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 51), (0.99, 100), (1.0, 100)])
def test_a_percentile_is_one_of_the_values(share: float, value: float) -> None:
    assert percentile(range(100, 0, -1), share) == value
    assert percentile([], share) == 0.0


def test_a_bench_tells_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    tell("name", "ratio >= 1", ratio=0.5)
    assert json.loads(capsys.readouterr().out) == {"bench": "name", "ratio": 0.5, "goal": "ratio >= 1"}


@pytest.mark.parametrize("bench", [locomo, reflect])
def test_a_bench_without_its_data_says_so_and_is_no_failure(
    bench: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AFTERTURN_SHARED", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["bench"])
    bench.main()  # type: ignore[attr-defined]
    assert "skipped" in json.loads(capsys.readouterr().out)


def test_every_bench_that_is_run_with_the_others_exists_and_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in BENCHES:
        assert importlib.util.find_spec(f"bench.{name}"), name
        assert f"`{name}`" in page, name
