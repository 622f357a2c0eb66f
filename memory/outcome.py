"""What a model call is asked and how it ended: eight ways to fail, one to succeed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    OK = "ok"
    PROVIDER_ERROR = "provider_error"
    TIMEOUT = "timeout"
    REFUSAL = "refusal"
    RATE_LIMIT = "rate_limit"
    UNPARSABLE = "unparsable"
    DEGENERATE = "degenerate"
    OVER_LONG = "over_long"
    EMPTY = "empty"

    @property
    def transient(self) -> bool:
        """The same question may well be answered later; the others blame the question or the answer."""
        return self in {Outcome.PROVIDER_ERROR, Outcome.TIMEOUT, Outcome.RATE_LIMIT}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model.

    `instructions` are the same bytes at every call of a kind, so that a provider's prompt cache holds them;
    `data` is what changes. `schema` is the JSON schema of the answer, `schema_name` its name on the wire.
    """

    instructions: str
    data: str
    schema: Mapping[str, Any]
    schema_name: str
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them; `cached_tokens` are a part of `input_tokens`."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


NOTHING_USED = Usage()


@dataclass(frozen=True, slots=True)
class Answer:
    """How one call ended.

    OK only says that the provider delivered text; whether the text holds is for the reader. `retry_after` is in
    seconds, where the provider named it. `detail` is for logs: a status, an error's class, never personal text.
    """

    outcome: Outcome
    text: str = ""
    retry_after: float | None = None
    finish_reason: str | None = None
    usage: Usage = NOTHING_USED
    detail: str = ""
