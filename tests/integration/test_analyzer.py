"""What the models layer may answer, and what of it counts: names, where they stand, and nothing else."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from api.app import create_app
from cli import checks
from gateways.analyzer import Analyzer, AnalyzerAway
from privacy.span import Span
from tests.integration.logbook import changed
from tests.integration.namer import Namer, playing

if TYPE_CHECKING:
    from conftest import Serving

    from config.settings import Settings


@pytest.fixture
async def namer() -> AsyncIterator[Namer]:
    async with playing() as server:
        yield server


@pytest.fixture
async def analyzer(namer: Namer) -> AsyncIterator[Analyzer]:
    asked = Analyzer(namer.url + "/", "pt", 20.0)
    yield asked
    await asked.close()


async def test_names_are_asked_for_alone_and_found_where_they_stand(analyzer: Analyzer, namer: Namer) -> None:
    assert await analyzer.persons("😀 Zoraide is here") == [Span(2, 9, "PERSON")]
    assert namer.asked == [{"text": "😀 Zoraide is here", "language": "pt", "entities": ["PERSON"]}]
    assert await analyzer.persons(" \n") == []


async def test_a_long_text_is_asked_about_in_pieces_and_no_name_is_cut(analyzer: Analyzer, namer: Namer) -> None:
    text = "x" * 7_990 + " Zoraide " + "y" * 15_000
    assert await analyzer.persons(text) == [Span(7_991, 7_998, "PERSON")]
    assert len(namer.texts) == 3
    assert max(map(len, namer.texts)) <= 8_000


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("500", "http_500"),
        ("302", "http_302"),
        ("503", "http_503"),
        ("garbage", "unparsable"),
        ("elsewhere", "unparsable"),
        ("slow", "timeout"),
    ],
)
async def test_whatever_is_no_answer_has_a_code(analyzer: Analyzer, namer: Namer, mode: str, why: str) -> None:
    namer.mode = mode
    analyzer.timeout = 0.3 if mode == "slow" else 20.0
    with pytest.raises(AnalyzerAway, match=f"^{why}$"):
        await analyzer.persons("Zoraide")
    assert not await analyzer.works()
    namer.mode, analyzer.timeout = "good", 20.0
    namer.let_go.set()
    assert await analyzer.works()


async def test_one_that_is_away_is_not_asked_again_at_once(namer: Namer) -> None:
    analyzer = Analyzer("http://127.0.0.1:9", "en", 0.3)
    codes = []
    for _ in range(2):
        with pytest.raises(AnalyzerAway) as away:
            await analyzer.persons("Zoraide")
        codes.append(str(away.value))
    await analyzer.close()
    assert codes == ["unreachable", "resting"]


async def test_a_process_without_its_models_layer_is_degraded_and_serves(
    settings: "Settings", serving: "Serving", namer: Namer
) -> None:
    mine = changed(settings, pii_analyzer_url=SecretStr(namer.url))
    statuses = []
    for namer.mode in ("good", "500"):
        async with serving(create_app(mine)) as client:
            answer = await client.get("/readyz")
        statuses.append((answer.status_code, answer.json()["status"], answer.json()["checks"]["models_layer"]))
    assert statuses == [(200, "ready", "ok"), (200, "degraded", "down")]


@pytest.mark.parametrize(
    ("mode", "state", "says"),
    [("good", "ok", "answers in en"), ("500", "wrong", "http_500"), (None, "ok", "no models layer")],
)
async def test_the_doctor_asks_the_models_layer(
    settings: "Settings", namer: Namer, mode: str | None, state: str, says: str
) -> None:
    namer.mode = mode or "good"
    mine = settings if mode is None else changed(settings, pii_analyzer_url=SecretStr(namer.url))
    found = await checks.guarded("names", checks.CHECKS["names"], mine)
    assert found.state == state
    assert says in found.says
