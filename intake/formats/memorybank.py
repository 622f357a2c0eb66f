"""MemoryBank: people by name, each with a history of days, each day with questions and answers."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from intake.formats.draft import Draft
from intake.formats.instant import instant_of


def drafts(document: Any) -> list[Draft] | None:
    """One chat per person and day; None for any other shape."""
    if not isinstance(document, Mapping) or not document or not all(map(_is_person, document.values())):
        return None
    return [
        _day(key.strip(), date, exchanges)
        for key, person in document.items()
        for date, exchanges in person["history"].items()
    ]


def _is_person(value: Any) -> bool:
    history = value.get("history") if isinstance(value, Mapping) else None
    return isinstance(history, Mapping) and all(isinstance(day, list) for day in history.values())


def _day(person: str, date: str, exchanges: list[Any]) -> Draft:
    began = instant_of(date)
    messages: list[Any] = []
    for exchange in exchanges:
        messages += _exchange(exchange, person, began, len(messages))
    return Draft(f"{person}/{date}", messages, began)


def _exchange(exchange: Any, person: str, began: datetime | None, second: int) -> list[Any]:
    if not isinstance(exchange, Mapping):
        return [exchange]
    told: list[dict[str, Any]] = [
        {"role": "user", "name": person, "content": exchange.get("query")},
        {"role": "assistant", "content": exchange.get("response")},
    ]
    if began is not None:
        for later, message in enumerate(told):
            message["at"] = (began + timedelta(seconds=second + later)).isoformat()
    return told
