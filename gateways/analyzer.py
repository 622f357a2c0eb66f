"""The models layer: a presidio-analyzer server that looks for people's names in a text.

Whatever keeps it from answering is one error with a code. Names are all that it is asked for: everything else that is
personal is found in-process.
"""

import asyncio
import time
from dataclasses import dataclass, field

import httpx
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from privacy.span import Span, united

_ENTITY = "PERSON"
_LONGEST = 8_000  # characters of one question: models take seconds for ten thousand
_OVERLAP = 200  # so that no name is cut in two
_REST = 5.0  # seconds in which one that is away is not asked again
_ASKED_AT_ONCE = 4
PROBE = "Good morning"


class AnalyzerAway(Exception):
    """The server did not say what is in the text; the message is a code, as `timeout` or `http_500`."""


class _Found(TypedDict):
    entity_type: str
    start: int
    end: int


_ANSWER = TypeAdapter(list[_Found])


@dataclass(slots=True)
class Analyzer:
    """One server, asked in one language. Questions beyond a few at once wait here; `timeout` is in seconds."""

    url: str = field(repr=False)
    language: str
    timeout: float
    _client: httpx.AsyncClient = field(init=False)
    _turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_ASKED_AT_ONCE))
    _rests_until: float = float("-inf")

    def __post_init__(self) -> None:
        base = self.url.rstrip("/").removesuffix("/analyze")
        self._client = httpx.AsyncClient(
            base_url=base,
            timeout=self.timeout,
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=8),
        )

    async def close(self) -> None:
        """Ends its connections."""
        await self._client.aclose()

    async def persons(self, text: str) -> list[Span]:
        """Where people's names stand in `text`, in characters. AnalyzerAway: nobody has said."""
        if not text.strip():
            return []
        found = await asyncio.gather(*(self._piece(text, start, end) for start, end in _pieces(len(text))))
        return united(span for spans in found for span in spans)

    async def works(self) -> bool:
        """Whether it answers a harmless question: then what it could not answer is the text's own fault."""
        self._rests_until = float("-inf")
        try:
            await self._ask(PROBE)
        except AnalyzerAway:
            return False
        return True

    async def _piece(self, text: str, start: int, end: int) -> list[Span]:
        async with self._turn:
            found = await self._ask(text[start:end])
        return [
            Span(start + one["start"], start + one["end"], _ENTITY) for one in found if one["entity_type"] == _ENTITY
        ]

    async def _ask(self, text: str) -> list[_Found]:
        if time.monotonic() < self._rests_until:
            raise AnalyzerAway("resting")
        try:
            return _read(await self._post(text), len(text))
        except AnalyzerAway as away:
            if str(away) in _AWAY:
                self._rests_until = time.monotonic() + _REST
            raise

    async def _post(self, text: str) -> httpx.Response:
        question = {"text": text, "language": self.language, "entities": [_ENTITY]}
        try:
            async with asyncio.timeout(self.timeout):
                return await self._client.post("/analyze", json=question)
        except (TimeoutError, httpx.TimeoutException):
            raise AnalyzerAway("timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            raise AnalyzerAway("unreachable") from None


_AWAY = frozenset({"timeout", "unreachable", "http_502", "http_503", "http_504"})


def _read(answer: httpx.Response, length: int) -> list[_Found]:
    """What the server found. A place outside the text says that it read another one."""
    if answer.status_code != httpx.codes.OK:
        raise AnalyzerAway(f"http_{answer.status_code}")
    try:
        found = _ANSWER.validate_json(answer.content)
    except ValidationError:
        raise AnalyzerAway("unparsable") from None
    if not all(0 <= one["start"] < one["end"] <= length for one in found):
        raise AnalyzerAway("unparsable")
    return found


def _pieces(length: int) -> list[tuple[int, int]]:
    starts = [*range(0, max(length - _OVERLAP, 1), _LONGEST - _OVERLAP)]
    return [(start, min(start + _LONGEST, length)) for start in starts]
